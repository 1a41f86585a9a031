//! Counts of a snapshot's offers.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::order::gpu_price;
use super::snapshot::Snapshot;
use crate::domain::{Accelerator, Availability, Offer};

/// Counts of a snapshot's offers: all of them, and by accelerator. Every offer is counted exactly once in each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// All offers.
    pub total: Counts,
    /// By accelerator, unknown chips included.
    pub by_accelerator: BTreeMap<Accelerator, Counts>,
}

/// How many offers are how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Offers.
    pub offers: usize,
    /// Those without a known price.
    pub unpriced: usize,
    /// Those that the evidence says can be had.
    pub available: usize,
    /// Those of which there is little, or perhaps none.
    pub limited: usize,
    /// Those that the evidence says cannot be had.
    pub none: usize,
    /// Those without evidence.
    pub unknown: usize,
    /// Those past their source's age limit, whatever else they say.
    pub stale: usize,
}

impl Counts {
    pub(super) fn add(&mut self, offer: &Offer) {
        self.offers += 1;
        self.unpriced += usize::from(gpu_price(offer).is_none());
        self.stale += usize::from(offer.stale);
        match offer.availability {
            Availability::Available => self.available += 1,
            Availability::Limited => self.limited += 1,
            Availability::None => self.none += 1,
            Availability::Unknown => self.unknown += 1,
        }
    }
}

impl Summary {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let mut total = Counts::default();
        let mut by_accelerator: FxHashMap<&Accelerator, Counts> = FxHashMap::default();
        for offer in snapshot.iter() {
            total.add(offer);
            by_accelerator.entry(&offer.shape.accelerator).or_default().add(offer);
        }
        Self { total, by_accelerator: by_accelerator.into_iter().map(|(a, c)| (a.clone(), c)).collect() }
    }
}
