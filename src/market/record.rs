//! What is known of one offer, fact by fact, each with the time it was seen. Merging is a join: it does not matter in
//! which order observations come, nor how often.

use std::cmp::Ordering;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::history::History;
use crate::config::limits;
use crate::domain::{
    Availability, Evidence, HourlyRate, Observation, Offer, OfferKey, PriceStatement, Purchase, QuotaRoom, Shape,
};

/// Micro-seconds since 1970: half the size of a `DateTime`, and there are six of them an offer.
pub(super) type Micros = i64;

/// Far away: never.
pub(super) const NEVER: Micros = i64::MAX;

pub(super) fn micros(time: DateTime<Utc>) -> Micros {
    time.timestamp_micros()
}
pub(super) fn time(micros: Micros) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or(DateTime::UNIX_EPOCH)
}
pub(super) fn span(duration: std::time::Duration) -> Micros {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A launch that was granted or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) at: Micros,
    pub(super) granted: bool,
}

impl Attempt {
    /// Whether it has nothing to say any more.
    pub(super) fn is_over(self, now: Micros) -> bool {
        now.saturating_sub(self.at) >= span(limits::REFUSAL_FADES)
    }
}

/// An offer in the market.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// As last shown.
    pub(super) offer: Arc<Offer>,
    pub(super) history: History,
    /// Whether the prices in the history are the provider's own; `None` while there is none in it.
    pub(super) history_is_live: Option<bool>,
    pub(super) facts: Facts,
    /// The number of its feed's last complete answer that listed it.
    pub(super) answer: u32,
    /// Something was merged since it was last shown.
    pub(super) dirty: bool,
    /// When it changes by the passing of time alone.
    pub(super) next_at: Micros,
}

impl Record {
    /// Note in the history how the offer is from `at` on; returns whether that is news. The history starts anew when
    /// the price comes from another source: a step from a price list to a live price is no change of price.
    pub(super) fn note(
        &mut self,
        at: Micros,
        price: Option<HourlyRate>,
        price_is_live: bool,
        availability: Availability,
        limit: usize,
    ) -> bool {
        if price.is_some() {
            if self.history_is_live.is_some_and(|live| live != price_is_live) {
                self.history.clear();
            }
            self.history_is_live = Some(price_is_live);
        }
        self.history.note(time(at), price, availability, limit)
    }
}

/// The facts, each with the time it was seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    shape: (Micros, Arc<Shape>),
    price: Option<PriceFact>,
    stock: Option<StockFact>,
    capacity: Option<(Micros, u32)>,
    quota: Option<Box<(Micros, QuotaRoom)>>,
    interruptions: Option<(Micros, f64)>,
    /// When a provider itself last spoke of the offer.
    live_at: Option<Micros>,
    /// The date of the newest published table that lists it.
    published_at: Option<Micros>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct PriceFact {
    at: Micros,
    statement: PriceStatement,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct StockFact {
    at: Micros,
    availability: Availability,
    evidence: Evidence,
}

/// Whether an observation comes from a published table rather than from the provider itself.
pub(super) fn is_published(observation: &Observation) -> bool {
    matches!(observation.price, Some(PriceStatement::Published(_)))
        && observation.availability.is_none_or(|(a, e)| a == Availability::Unknown || e == Evidence::Catalogue)
}

impl Facts {
    /// Nothing but the shape.
    pub(super) fn new(at: Micros, shape: Arc<Shape>) -> Self {
        Self {
            shape: (at, shape),
            price: None,
            stock: None,
            capacity: None,
            quota: None,
            interruptions: None,
            live_at: None,
            published_at: None,
        }
    }

    /// The newest time at which anything was said.
    pub(super) fn newest(&self) -> Micros {
        self.live_at.max(self.published_at).unwrap_or(self.shape.0)
    }

    /// Whether the provider itself has ever spoken of the offer.
    pub(super) fn is_live(&self) -> bool {
        self.live_at.is_some()
    }

    /// The provider's own last price.
    pub(super) fn live_price(&self) -> Option<HourlyRate> {
        match self.price {
            Some(PriceFact { statement: PriceStatement::Live(rate) | PriceStatement::Listed(rate), .. }) => Some(rate),
            _ => None,
        }
    }

    /// Join an observation as seen at `at`; returns whether anything is new. Newer beats older; at the same time the
    /// more careful statement wins, so that the order of arrival does not matter.
    pub(super) fn merge(&mut self, observation: &Observation, at: Micros, published: bool) -> bool {
        let mut changed = false;
        let seen = if published { &mut self.published_at } else { &mut self.live_at };
        if *seen < Some(at) {
            *seen = Some(at);
            changed = true;
        }
        let newer_shape = match at.cmp(&self.shape.0) {
            Ordering::Greater => true,
            Ordering::Equal => compare_shapes(&observation.shape, &self.shape.1) == Ordering::Greater,
            Ordering::Less => false,
        };
        if newer_shape {
            changed |= self.shape.1 != observation.shape;
            self.shape.0 = at;
            if self.shape.1 != observation.shape {
                self.shape.1 = Arc::clone(&observation.shape);
            }
        }
        if let Some(statement) = observation.price {
            changed |= join(&mut self.price, PriceFact { at, statement }, |f| {
                let (rank, rate) = rank(f.statement);
                (f.at, rank, rate)
            });
        }
        if let Some((availability, evidence)) = observation.availability {
            // At the same time "none" beats "limited" beats "available"; "unknown" beats nothing.
            changed |= join(&mut self.stock, StockFact { at, availability, evidence }, |f| {
                let known = f.availability != Availability::Unknown;
                (f.at, known, f.availability, f.evidence)
            });
        }
        if let Some(capacity) = observation.capacity {
            changed |= join(&mut self.capacity, (at, capacity), |f| (f.0, std::cmp::Reverse(f.1)));
        }
        if let Some(quota) = &observation.quota {
            let better = self.quota.as_deref().is_none_or(|(seen, known)| {
                at.cmp(seen).then_with(|| compare_quotas(known, quota)) == Ordering::Greater
            });
            if better {
                self.quota = Some(Box::new((at, quota.clone())));
                changed = true;
            }
        }
        // A rate that is negative or not a number says nothing.
        if let Some(rate) = observation.interruptions_per_day.filter(|r| r.is_finite() && *r >= 0.0) {
            let better = self
                .interruptions
                .is_none_or(|(seen, known)| at.cmp(&seen).then(rate.total_cmp(&known)) == Ordering::Greater);
            if better {
                self.interruptions = Some((at, rate));
                changed = true;
            }
        }
        changed
    }

    /// The price to show, and whether the provider itself said it.
    pub(super) fn price(&self) -> (Option<HourlyRate>, bool) {
        match self.price.map(|f| f.statement) {
            Some(PriceStatement::Live(rate) | PriceStatement::Listed(rate)) => (Some(rate), true),
            Some(PriceStatement::Published(rate)) => (Some(rate), false),
            Some(PriceStatement::Unpriced) | None => (None, false),
        }
    }

    /// The availability to show at `now`, given the last launch attempt there.
    pub(super) fn availability(&self, attempt: Option<Attempt>, now: Micros) -> Availability {
        self.stock_at(attempt, now).0.availability
    }

    /// The same with its evidence, and when that changes by itself.
    fn stock_at(&self, attempt: Option<Attempt>, now: Micros) -> (StockFact, Micros) {
        let reported = self.stock.unwrap_or(StockFact {
            at: self.newest(),
            availability: Availability::Unknown,
            evidence: Evidence::Catalogue,
        });
        let Some(attempt) = attempt else { return (reported, NEVER) };
        let by_attempt = |availability| StockFact { at: attempt.at, availability, evidence: Evidence::Attempt };
        let age = now.saturating_sub(attempt.at).max(0);
        let until = |limit: std::time::Duration| attempt.at.saturating_add(span(limit));
        let reported_later = reported.at > attempt.at;
        if attempt.granted {
            let overruled = reported_later && reported.availability != Availability::Unknown;
            if age < span(limits::GRANT_HOLDS) && !overruled {
                return (by_attempt(Availability::Available), until(limits::GRANT_HOLDS));
            }
        } else if age < span(limits::REFUSAL_HOLDS) {
            // Even against a listing that goes on saying "available": a refusal is the better witness for a while.
            return (by_attempt(Availability::None), until(limits::REFUSAL_HOLDS));
        } else if age < span(limits::REFUSAL_FADES) {
            let counts_stock = matches!(reported.evidence, Evidence::Api | Evidence::Simulated);
            let overruled = reported_later && counts_stock;
            if !overruled && reported.availability != Availability::None {
                return (by_attempt(Availability::Limited), until(limits::REFUSAL_FADES));
            }
        }
        (reported, NEVER)
    }

    /// The offer as it is to be shown at `now`, and when that changes by the passing of time alone. `stale_after` is
    /// the age limit of what the feed itself says.
    pub(super) fn offer(
        &self,
        key: &OfferKey,
        jurisdiction: Option<&Arc<str>>,
        attempt: Option<Attempt>,
        stale_after: Micros,
        now: Micros,
    ) -> (Offer, Micros) {
        let (price, price_is_live) = self.price();
        let (stock, stock_until) = self.stock_at(attempt, now);
        // As old as the oldest live thing it says. A published price carries its own mark, and what is unknown has no age.
        let live_price_at = self.price.filter(|f| matches!(f.statement, PriceStatement::Live(_))).map(|f| f.at);
        let stock_at = (stock.availability != Availability::Unknown).then_some(stock.at);
        let observed_at = match (live_price_at, stock_at) {
            (Some(price), Some(stock)) => price.min(stock),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.live_at.or(self.published_at).unwrap_or(self.shape.0),
        };
        let max_age = if self.live_at.is_some() { stale_after } else { span(limits::PUBLISHED_MAX_AGE) };
        let listed_at = self.price.filter(|f| matches!(f.statement, PriceStatement::Listed(_))).map(|f| f.at);
        let listed_until = listed_at.map_or(NEVER, |at| at.saturating_add(span(limits::LIST_PRICE_MAX_AGE)));
        let fresh_until = observed_at.saturating_add(max_age).min(listed_until);
        let stale = now > fresh_until;
        let stale_next = if stale { NEVER } else { fresh_until.saturating_add(1) };
        // A count from before the news that there is none is no count.
        let capacity =
            self.capacity.filter(|(at, _)| stock.availability != Availability::None || *at >= stock.at).map(|(_, n)| n);
        let interruptions_per_day = match key.purchase {
            Purchase::Spot => self.interruptions.map(|(_, rate)| rate),
            Purchase::OnDemand | Purchase::Reserved => Some(self.interruptions.map_or(0.0, |(_, rate)| rate)),
        };
        // Whoever reads it takes its time for that of the price: a table's is of the table's date, however lately the
        // provider listed the machine. How long the listing is believed is another matter.
        let told_at = match self.price {
            Some(PriceFact { at, statement: PriceStatement::Published(_) }) => at.min(observed_at),
            // The provider's own list holds until it is no longer believed; from then on it is as old as it is.
            Some(PriceFact { at, statement: PriceStatement::Listed(_) }) if now > listed_until => at.min(observed_at),
            _ => observed_at,
        };
        let offer = Offer {
            key: key.clone(),
            shape: Arc::clone(&self.shape.1),
            price,
            price_is_live,
            availability: stock.availability,
            evidence: stock.evidence,
            observed_at: time(told_at),
            stale,
            capacity,
            quota: self.quota.as_ref().map(|q| q.1.clone()),
            interruptions_per_day,
            jurisdiction: jurisdiction.cloned(),
        };
        (offer, stock_until.min(stale_next))
    }
}

/// Put `new` in place of what is there if it ranks higher; returns whether it did.
fn join<T: Copy, K: Ord>(slot: &mut Option<T>, new: T, rank: impl Fn(&T) -> K) -> bool {
    let better = slot.as_ref().is_none_or(|known| rank(&new) > rank(known));
    if better {
        *slot = Some(new);
    }
    better
}

/// At the same moment a live price beats a published one, that beats none, and the dearer beats the cheaper: what is
/// billed must not exceed what was shown.
fn rank(statement: PriceStatement) -> (u8, HourlyRate) {
    match statement {
        PriceStatement::Unpriced => (0, HourlyRate::ZERO),
        PriceStatement::Published(rate) => (1, rate),
        PriceStatement::Live(rate) | PriceStatement::Listed(rate) => (2, rate),
    }
}

/// Any total order does; it decides between two shapes of one offer that were seen at the same moment.
fn compare_shapes(a: &Shape, b: &Shape) -> Ordering {
    let float = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.is_some().cmp(&b.is_some()),
    };
    (&a.instance_type, &a.accelerator, a.accelerators, a.vcpus, a.interconnect)
        .cmp(&(&b.instance_type, &b.accelerator, b.accelerators, b.vcpus, b.interconnect))
        .then_with(|| float(a.gpu_memory_gib, b.gpu_memory_gib))
        .then_with(|| float(a.memory_gib, b.memory_gib))
}

/// `Greater` where `a` leaves more room than `b`; any total order on the rest.
fn compare_quotas(a: &QuotaRoom, b: &QuotaRoom) -> Ordering {
    a.instances_left()
        .cmp(&b.instances_left())
        .then_with(|| a.limit.total_cmp(&b.limit))
        .then_with(|| a.used.total_cmp(&b.used))
        .then_with(|| a.per_instance.total_cmp(&b.per_instance))
        .then_with(|| a.code.cmp(&b.code))
}
