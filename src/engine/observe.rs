//! What is seen of a machine, taken into its intent: the one place where state, price and proof of being gone change.

use chrono::{DateTime, Utc};

use super::shared::world;
use crate::config::limits::EngineLimits;
use crate::domain::{HourlyRate, Instance, InstanceState, Mark};
use crate::store::{IntentRow, IntentState};

/// Take in that a machine was given to this intent, or was found for it by a read.
pub(crate) fn accept(intent: &mut IntentRow, seen: Instance, now: DateTime<Utc>, by_read: bool) {
    intent.state = IntentState::Accepted;
    intent.instance = Some(seen.id.clone());
    intent.location = Some(seen.location.clone());
    intent.unknown_since = None;
    intent.error = None;
    intent.sent_at.get_or_insert(now);
    if let Some(price) = seen.price {
        // What is bound counts from the start; the offer's price was only what we hoped for.
        intent.bound_price = Some(price);
    }
    observe(intent, seen, now);
    if !by_read {
        // An answer to a launch is no read: until one finds it, a list that lags may miss it.
        intent.observed_at = None;
    }
}

/// Take in how a machine is now.
pub(crate) fn observe(intent: &mut IntentRow, seen: Instance, now: DateTime<Utc>) {
    if let Some(price) = seen.price {
        rebind(intent, price, now);
    }
    intent.absent_since = None;
    intent.observed_at = Some(now);
    if seen.preemption_notice.is_some() && intent.notice_at.is_none() {
        intent.notice_at = seen.preemption_notice;
    }
    if seen.state == InstanceState::Gone {
        intent.state = IntentState::Gone;
        intent.gone_at = Some(now);
    }
    intent.seen = Some(seen);
}

/// A price that changes while the machine runs is not applied to the time before.
pub(crate) fn rebind(intent: &mut IntentRow, price: HourlyRate, now: DateTime<Utc>) {
    match intent.bound_price {
        Some(bound) if bound == price => {}
        Some(_) => {
            intent.accrued = intent.cost(now);
            intent.accrued_until = Some(now);
            intent.bound_price = Some(price);
        }
        None => intent.bound_price = Some(price),
    }
}

/// Take in that a read did not find a machine that has an id. It is gone once two such reads lie far enough apart, none
/// between them found it, and one before did or it is old enough to be listed. Gives whether it is now.
pub(crate) fn absent(intent: &mut IntentRow, now: DateTime<Utc>, limits: &EngineLimits) -> bool {
    let first = *intent.absent_since.get_or_insert(now);
    let listed =
        intent.observed_at.is_some() || intent.sent_at.is_none_or(|sent| now - sent >= world(limits.absent_min_age));
    if listed && now - first >= world(limits.absent_apart) {
        intent.state = IntentState::Gone;
        // By the later of the two reads: what is shown as spent is never below what was billed.
        intent.gone_at = Some(now);
        if let Some(seen) = &mut intent.seen {
            seen.state = InstanceState::Gone;
        }
        return true;
    }
    false
}

/// Whether a machine carries this very mark. The owner is not compared: operation, attempt and node are unique for
/// ever, and the owner may have been renamed in the configuration.
pub(crate) fn same_mark(a: &Mark, b: &Mark) -> bool {
    a.job == b.job && a.operation == b.operation && a.attempt == b.attempt && a.node == b.node
}

/// Whether a machine that was found is the one of this intent: by its mark, else by its token.
pub(crate) fn is_of(intent: &IntentRow, owner: &str, seen: &Instance) -> bool {
    match (&seen.mark, &seen.token) {
        (Some(mark), _) => same_mark(mark, &intent.mark(owner)),
        (None, Some(token)) => token == &intent.token,
        (None, None) => false,
    }
}

/// Whether a machine that has our id is provably another's: it carries a mark, and not ours.
pub(crate) fn is_disputed(intent: &IntentRow, owner: &str, seen: &Instance) -> bool {
    seen.mark.as_ref().is_some_and(|mark| !same_mark(mark, &intent.mark(owner)))
}

/// Whether it was seen with the mark that it was launched with.
pub(crate) fn carried_its_mark(intent: &IntentRow, owner: &str) -> bool {
    let mark = intent.seen.as_ref().and_then(|seen| seen.mark.as_ref());
    mark.is_some_and(|mark| same_mark(mark, &intent.mark(owner)))
}

/// Whether a job cannot go on with a machine in this state, and nobody of us wanted that.
pub(crate) fn is_lost(intent: &IntentRow) -> bool {
    matches!(intent.state, IntentState::Gone)
        || (intent.state == IntentState::Accepted
            && matches!(
                intent.machine(),
                InstanceState::Preempted | InstanceState::Failed | InstanceState::Gone | InstanceState::Terminating
            ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{Accelerator, AcceleratorCount, Interconnect, Location, Money, OfferKey, Purchase, Shape};

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn intent() -> IntentRow {
        IntentRow {
            token: "t".into(),
            name: "n".into(),
            operation: "op".into(),
            job: "job".into(),
            attempt: 1,
            node: 0,
            offer: OfferKey {
                provider: "aws".into(),
                region: "r".into(),
                zone: None,
                instance_type: "p5".into(),
                purchase: Purchase::Spot,
            },
            shape: Arc::new(Shape {
                instance_type: "p5".into(),
                accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
                accelerators: AcceleratorCount::whole(8),
                gpu_memory_gib: None,
                vcpus: None,
                memory_gib: None,
                interconnect: Interconnect::Unknown,
            }),
            max_price: None,
            account: None,
            state: IntentState::Sent,
            intended_at: at(0),
            sent_at: Some(at(0)),
            tries: 1,
            unknown_since: None,
            instance: None,
            location: None,
            bound_price: Some(HourlyRate::from_micros(3_600_000)),
            accrued: Money::ZERO,
            accrued_until: None,
            seen: None,
            observed_at: None,
            absent_since: None,
            notice_at: None,
            terminate_at: None,
            terminate_by: None,
            alerted: 0,
            gone_at: None,
            error: None,
        }
    }

    fn seen(state: InstanceState, price: Option<i64>) -> Instance {
        Instance {
            id: "i-1".into(),
            location: Location::region("aws", "r"),
            instance_type: "p5".into(),
            purchase: Purchase::Spot,
            state,
            launched_at: None,
            ended_at: None,
            price: price.map(HourlyRate::from_micros),
            token: None,
            mark: None,
            preemption_notice: None,
            reason: None,
        }
    }

    #[test]
    fn b2_the_bound_price_is_recorded_not_the_offers() {
        let mut i = intent();
        accept(&mut i, seen(InstanceState::Provisioning, Some(7_200_000)), at(10), false);
        assert_eq!(i.cost(at(1000)).micros(), 2_000_000);
    }

    #[test]
    fn b19_a_price_that_changes_counts_from_then_on_only() {
        let mut i = intent();
        accept(&mut i, seen(InstanceState::Running, Some(3_600_000)), at(0), false);
        observe(&mut i, seen(InstanceState::Running, Some(36_000_000)), at(1000));
        assert_eq!(i.cost(at(1000)).micros(), 1_000_000);
        assert_eq!(i.cost(at(1100)).micros(), 2_000_000);
        observe(&mut i, seen(InstanceState::Gone, None), at(1100));
        assert_eq!(i.cost(at(999_999)).micros(), 2_000_000);
    }

    #[test]
    fn a9_one_missing_read_is_not_gone() {
        let limits = EngineLimits::default();
        let mut i = intent();
        accept(&mut i, seen(InstanceState::Running, None), at(0), false);
        // Never read, and too young to be missed.
        assert!(!absent(&mut i, at(10), &limits));
        assert!(!absent(&mut i, at(100), &limits));
        observe(&mut i, seen(InstanceState::Running, None), at(300));
        assert!(!absent(&mut i, at(400), &limits));
        assert!(!absent(&mut i, at(459), &limits));
        observe(&mut i, seen(InstanceState::Running, None), at(460));
        assert!(!absent(&mut i, at(470), &limits));
        assert!(absent(&mut i, at(530), &limits));
        assert_eq!(i.gone_at, Some(at(530)));
    }

    #[test]
    fn e1_a_word_that_we_do_not_know_counts_as_billed() {
        let mut i = intent();
        accept(&mut i, seen(InstanceState::Unknown("FROZEN".into()), None), at(0), false);
        assert!(i.state.may_bill() && !is_lost(&i));
        assert_eq!(i.cost(at(3600)).micros(), 3_600_000);
    }
}
