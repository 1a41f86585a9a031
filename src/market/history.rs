//! Price and availability of one offer over time.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::config::limits;
use crate::domain::{Availability, HourlyRate};

/// Price and availability of one offer over time: bounded, a point only where something changed. Cheap to clone.
///
/// A price list's figure is never mixed with the provider's own, so that a change here is a change of the price and
/// not of the source. When there are too many points the state that lasted shortest goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    points: Arc<[HistoryPoint]>,
}

/// From `at` on it was so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryPoint {
    /// From when on.
    pub at: DateTime<Utc>,
    /// The price then.
    pub price: Option<HourlyRate>,
    /// The availability then.
    pub availability: Availability,
}

impl History {
    /// Oldest first.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = &HistoryPoint> + ExactSizeIterator {
        self.points.iter()
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// What was so at that time: the last point not after it.
    pub fn at(&self, time: DateTime<Utc>) -> Option<&HistoryPoint> {
        let after = self.points.partition_point(|p| p.at <= time);
        after.checked_sub(1).and_then(|i| self.points.get(i))
    }

    /// How much the price changed in percent from `since` until now, and since when that is known: the first point's
    /// time where the history is shorter. `None` where either price is not known.
    pub fn change_percent(&self, since: DateTime<Utc>) -> Option<(f64, DateTime<Utc>)> {
        let (base, from) = match self.at(since) {
            Some(point) => (point, since),
            None => self.points.first().map(|p| (p, p.at))?,
        };
        let before = base.price.filter(|p| p.micros() > 0)?.to_usd();
        let now = self.points.last()?.price.filter(|p| p.micros() > 0)?.to_usd();
        Some(((now - before) / before * 100.0, from))
    }

    /// Note that it is so from `at` on; returns whether that is news. A time before the last point counts as the last
    /// point's: late news changes the present, not the past.
    pub(super) fn note(
        &mut self,
        at: DateTime<Utc>,
        price: Option<HourlyRate>,
        availability: Availability,
        limit: usize,
    ) -> bool {
        let Some(last) = self.points.last() else {
            self.points = Arc::from([HistoryPoint { at, price, availability }]);
            return true;
        };
        if last.price == price && last.availability == availability {
            return false;
        }
        let point = HistoryPoint { at: at.max(last.at), price, availability };
        let mut points = self.points.to_vec();
        if last.at == point.at {
            points.pop();
        }
        // Taking the last point back may leave the one before saying the same.
        if points.last().is_none_or(|p| p.price != price || p.availability != availability) {
            points.push(point);
        }
        let horizon = point.at - limits::HISTORY_WINDOW;
        let forgotten = points.partition_point(|p| p.at <= horizon).saturating_sub(1);
        points.drain(..forgotten);
        thin(&mut points, limit);
        self.points = points.into();
        true
    }

    /// Keep at most so many points.
    pub(super) fn trim(&mut self, limit: usize) {
        if self.points.len() > limit {
            let mut points = self.points.to_vec();
            thin(&mut points, limit);
            self.points = points.into();
        }
    }

    /// Start anew.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Remove the states that lasted shortest, never the first nor the last, until no more than `limit` are left.
fn thin(points: &mut Vec<HistoryPoint>, limit: usize) {
    while points.len() > limit.max(2) {
        let shortest = points
            .windows(2)
            .enumerate()
            .skip(1)
            .min_by_key(|(_, pair)| pair.last().zip(pair.first()).map(|(b, a)| b.at - a.at))
            .map_or(1, |(i, _)| i);
        points.remove(shortest);
    }
}

#[cfg(test)]
mod tests {
    use chrono::Duration;
    use proptest::prelude::*;

    use super::*;

    fn time(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::days(20_000) + Duration::minutes(minutes)
    }
    fn cents(cents: i64) -> HourlyRate {
        HourlyRate::from_micros(cents * 10_000)
    }

    #[test]
    fn a_point_only_where_something_changed() {
        let mut history = History::default();
        assert!(history.note(time(0), Some(cents(200)), Availability::Available, 64));
        assert!(!history.note(time(1), Some(cents(200)), Availability::Available, 64));
        assert!(history.note(time(2), Some(cents(250)), Availability::Available, 64));
        assert!(history.note(time(3), Some(cents(250)), Availability::None, 64));
        assert_eq!(history.len(), 3);
        assert_eq!(history.at(time(1)).and_then(|p| p.price), Some(cents(200)));
        assert_eq!(history.at(time(-1)), None);
        let (percent, from) = history.change_percent(time(1)).expect("both prices are known");
        assert!((percent - 25.0).abs() < 1e-9);
        assert_eq!(from, time(1));
        assert_eq!(history.change_percent(time(-60)).map(|c| c.1), Some(time(0)), "no older than what is known");
    }

    #[test]
    fn the_price_of_a_day_ago_outlives_the_window() {
        let mut history = History::default();
        history.note(time(0), Some(cents(100)), Availability::Available, 64);
        history.note(time(10), Some(cents(200)), Availability::Available, 64);
        history.note(time(60 * 48), Some(cents(300)), Availability::Available, 64);
        assert_eq!(history.len(), 2, "the first point is past the window, the second still held when it began");
        assert_eq!(history.at(time(60 * 24)).and_then(|p| p.price), Some(cents(200)));
    }

    proptest! {
        #[test]
        fn bounded_ordered_and_without_repeats(
            steps in prop::collection::vec((0_i64..3000, 1_i64..4, any::<bool>()), 1..200),
            limit in 4_usize..20,
        ) {
            let mut history = History::default();
            for (minute, price, stock) in steps {
                let stock = if stock { Availability::Available } else { Availability::None };
                history.note(time(minute), Some(cents(price)), stock, limit);
                prop_assert!(history.len() <= limit);
                let points: Vec<_> = history.points().collect();
                prop_assert!(points.windows(2).all(|w| w[0].at < w[1].at), "{points:?}");
                let last = points.last().expect("there is one");
                prop_assert_eq!((last.price, last.availability), (Some(cents(price)), stock));
            }
        }
    }
}
