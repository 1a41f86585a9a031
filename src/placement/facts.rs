//! What the core asks of the network, as a trait, so that tests can answer.

use crate::domain::{Location, Money};
use crate::network::{LatencySource, Network};

/// A round trip and how far it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrip {
    /// Milliseconds, median (for published figures: mean).
    pub ms: f64,
    /// Where the figure comes from.
    pub source: LatencySource,
}

/// Latency, tariffs and throughput between regions. `None` is "not known", never zero.
pub trait NetworkFacts {
    /// The round trip between two places.
    fn round_trip(&self, from: &Location, to: &Location) -> Option<RoundTrip>;
    /// What moving so many GiB costs.
    fn egress(&self, from: &Location, to: &Location, gib: f64) -> Option<Money>;
    /// How long moving so many GiB takes, in seconds.
    fn transfer_seconds(&self, from: &Location, to: &Location, gib: f64) -> Option<f64>;
}

impl NetworkFacts for Network {
    fn round_trip(&self, from: &Location, to: &Location) -> Option<RoundTrip> {
        self.latency(from, to).map(|l| RoundTrip { ms: l.p50_ms, source: l.source })
    }
    fn egress(&self, from: &Location, to: &Location, gib: f64) -> Option<Money> {
        Self::egress(self, from, to, gib)
    }
    fn transfer_seconds(&self, from: &Location, to: &Location, gib: f64) -> Option<f64> {
        Self::transfer_seconds(self, from, to, gib)
    }
}

/// Whether two places lie in one region, where moving data is free and near.
pub(super) fn same_region(a: &Location, b: &Location) -> bool {
    a.region == b.region && a.provider == b.provider
}
