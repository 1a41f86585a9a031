//! The order of candidates, total and written down:
//!
//! 1. expected cost over the costing hours (`usd_total`), less first;
//! 2. price an hour (`usd_per_hour`), less first;
//! 3. the worst availability among its offers: available, limited, unknown;
//! 4. main memory of a node, more first, not known last (of two equal prices the stronger host);
//! 5. fewer zones;
//! 6. the offers' keys: provider, region, zone, instance type, purchase model.
//!
//! So the answer does not depend on the order in which offers come, and two runs never differ.

use std::cmp::Ordering;

use crate::domain::{Availability, HourlyRate, Money, Offer};

/// What orders a candidate before its keys do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rank {
    pub(super) total: Money,
    pub(super) rate: HourlyRate,
    pub(super) availability: Availability,
    /// GiB of a node; negative where not known.
    pub(super) memory_gib: f64,
    pub(super) zones: usize,
    /// Place of its first offer in the snapshot, which is in the order of keys.
    pub(super) index: usize,
}

impl Rank {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.total
            .cmp(&other.total)
            .then_with(|| self.rate.cmp(&other.rate))
            .then_with(|| self.availability.cmp(&other.availability))
            .then_with(|| other.memory_gib.total_cmp(&self.memory_gib))
            .then_with(|| self.zones.cmp(&other.zones))
            .then_with(|| self.index.cmp(&other.index))
    }
}

/// Main memory for the order: not known counts as less than any.
pub(super) fn memory_for_order(offer: &Offer) -> f64 {
    offer.shape.memory_gib.filter(|m| m.is_finite()).unwrap_or(-1.0)
}

/// The best `top` of all, in order: a partial selection, then a sort of what is left.
pub(super) fn best<T>(mut all: Vec<T>, top: usize, rank: impl Fn(&T) -> &Rank) -> Vec<T> {
    if top == 0 {
        return Vec::new();
    }
    if all.len() > top {
        all.select_nth_unstable_by(top - 1, |a, b| rank(a).compare(rank(b)));
        all.truncate(top);
    }
    all.sort_unstable_by(|a, b| rank(a).compare(rank(b)));
    all
}
