//! Latency between places and what moving data between them costs. Pure.
//!
//! - [`published`]: the bundled matrices (`data/latency.tsv`, `data/throughput.tsv`, `data/egress.tsv`), with their date.
//! - [`estimate`]: a round trip from the distance, where nobody measured one.
//! - [`tariff`]: what egress costs, with its tiers, and for regions that the published list leaves out.
//!
//! Figures are of regions; a place's zone is kept in the answer and does not change it. The best source wins: measured
//! before published before estimated, and every answer says which it is.

use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;

use crate::catalogue::regions;
use crate::domain::{Location, Money, ProviderId, Region};

pub mod estimate;
pub mod published;
pub mod tariff;

use published::Published;
pub use tariff::{Tariff, TariffBasis};

/// Gigabytes (10^9 bytes) in a gibibyte (2^30 bytes). Sizes of jobs are in GiB, tariffs in USD per GB. Some clouds call
/// a GiB a GB on their bills; taking the tariffs' unit as written is at most 7.4 % too much and never too little.
pub const GB_PER_GIB: f64 = 1.073_741_824;

/// Gigabits in a gibibyte.
const GBIT_PER_GIB: f64 = 8.0 * GB_PER_GIB;

/// Round trip within a region in ms. Zones of one region are built to lie within a millisecond or two of each other; no
/// published figure is at hand, so it counts as an estimate.
const SAME_REGION_MS: f64 = 1.0;

/// Where a latency figure comes from, in the order of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencySource {
    /// Measured by us.
    Measured,
    /// Published by somebody, with a date.
    Published,
    /// From the distance. A guess.
    Estimated,
}

/// Round trip between two regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// From this region.
    pub from: Location,
    /// To that one.
    pub to: Location,
    /// Median round trip in milliseconds. Of a published figure it is the mean (the median was not published); its
    /// minima are not used, as some are faster than light.
    pub p50_ms: f64,
    /// 99th percentile, where known.
    pub p99_ms: Option<f64>,
    /// Mean deviation, where known.
    pub jitter_ms: Option<f64>,
    /// Lost probes in percent, where known.
    pub loss_percent: Option<f64>,
    /// Probes, where known.
    pub samples: Option<u32>,
    /// Where the figure comes from.
    pub source: LatencySource,
    /// When it was measured or published; `None` for estimates.
    pub observed_at: Option<DateTime<Utc>>,
}

/// Latency and egress between places.
#[derive(Debug, Default)]
pub struct Network {
    published: Option<&'static Published>,
    measured: Measured,
}

/// What was measured here, by region.
#[derive(Debug, Default)]
struct Measured {
    places: FxHashMap<ProviderId, FxHashMap<Region, usize>>,
    figures: FxHashMap<(usize, usize), Latency>,
    count: usize,
}

impl Measured {
    fn place(&self, at: &Location) -> Option<usize> {
        self.places.get(&at.provider)?.get(&at.region).copied()
    }

    fn place_or_new(&mut self, at: &Location) -> usize {
        match self.places.entry(at.provider.clone()).or_default().entry(at.region.clone()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.count += 1;
                *new.insert(self.count)
            }
        }
    }

    /// In this direction, or else in the other: a round trip goes both ways.
    fn get(&self, from: &Location, to: &Location) -> Option<&Latency> {
        if self.figures.is_empty() {
            return None;
        }
        let (from, to) = (self.place(from)?, self.place(to)?);
        self.figures.get(&(from, to)).or_else(|| self.figures.get(&(to, from)))
    }

    fn add(&mut self, latency: Latency) {
        if !latency.p50_ms.is_finite() || latency.p50_ms < 0.0 {
            return;
        }
        let key = (self.place_or_new(&latency.from), self.place_or_new(&latency.to));
        let newest = self.figures.get(&key).is_none_or(|before| before.observed_at <= latency.observed_at);
        if newest {
            self.figures.insert(key, latency);
        }
    }
}

fn same_region(from: &Location, to: &Location) -> bool {
    from.region == to.region && from.provider == to.provider
}

impl Network {
    /// With the bundled figures. They are shared: asking again costs nothing.
    pub fn published() -> Arc<Self> {
        static BUNDLED: OnceLock<Arc<Network>> = OnceLock::new();
        let bundled = BUNDLED
            .get_or_init(|| Arc::new(Self { published: Some(Published::bundled()), measured: Measured::default() }));
        Arc::clone(bundled)
    }

    /// This network with own measurements, which come before published figures. Of several for a pair of regions the
    /// newest counts; one without a sensible round trip is left out.
    #[must_use]
    pub fn with_measurements(&self, measurements: Vec<Latency>) -> Self {
        let mut measured = Measured::default();
        let own = self.measured.figures.values().cloned();
        for latency in own.chain(measurements) {
            measured.add(Latency { source: LatencySource::Measured, ..latency });
        }
        Self { published: self.published, measured }
    }

    /// The round trip between two places, best source first; `None` where neither figures nor coordinates are known.
    pub fn latency(&self, from: &Location, to: &Location) -> Option<Latency> {
        let answer = |p50_ms, jitter_ms, source, observed_at| Latency {
            from: from.clone(),
            to: to.clone(),
            p50_ms,
            p99_ms: None,
            jitter_ms,
            loss_percent: None,
            samples: None,
            source,
            observed_at,
        };
        if let Some(measured) = self.measured.get(from, to) {
            return Some(Latency { from: from.clone(), to: to.clone(), ..measured.clone() });
        }
        if same_region(from, to) {
            return Some(answer(SAME_REGION_MS, None, LatencySource::Estimated, None));
        }
        if let Some((published, round_trip)) = self.published.and_then(|p| Some((p, p.round_trip(from, to)?))) {
            let jitter = Some(round_trip.deviation_ms);
            let date = Some(published.latency_date);
            return Some(answer(round_trip.mean_ms, jitter, LatencySource::Published, date));
        }
        let place = |at: &Location| regions::facts(at.provider.as_str(), at.region.as_str());
        let ms = estimate::round_trip_ms(place(from)?, place(to)?)?;
        Some(answer(ms, None, LatencySource::Estimated, None))
    }

    /// All pairs with published or measured figures, each direction as it was measured; where there are both, the
    /// measured one.
    pub fn pairs(&self) -> impl Iterator<Item = Latency> {
        let mut measured: Vec<&Latency> = self.measured.figures.values().collect();
        measured.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
        let published = self.published.into_iter().flat_map(|p| {
            p.round_trips().filter(|(from, to, _)| self.measured.get(from, to).is_none()).map(|(from, to, trip)| {
                Latency {
                    from: from.clone(),
                    to: to.clone(),
                    p50_ms: trip.mean_ms,
                    p99_ms: None,
                    jitter_ms: Some(trip.deviation_ms),
                    loss_percent: None,
                    samples: None,
                    source: LatencySource::Published,
                    observed_at: Some(p.latency_date),
                }
            })
        });
        measured.into_iter().cloned().chain(published)
    }

    /// What egress from one place to another costs, and how that is known; `None` where it is not.
    pub fn tariff(&self, from: &Location, to: &Location) -> Option<Tariff> {
        if same_region(from, to) {
            return Some(Tariff::WITHIN_REGION);
        }
        self.published?.tariff(from, to)
    }

    /// What moving so much from one place to another costs; zero within a region; `None` where the tariff is not known.
    ///
    /// List prices for a month's first so many GB: what the account moved before in that month, and what it negotiated,
    /// is not known here. What some clouds take for traffic between zones of a region is not in it.
    pub fn egress(&self, from: &Location, to: &Location, gib: f64) -> Option<Money> {
        if !gib.is_finite() {
            return None;
        }
        self.tariff(from, to).map(|t| t.cost(gib * GB_PER_GIB))
    }

    /// The date of the published egress prices.
    pub fn egress_date(&self) -> Option<DateTime<Utc>> {
        self.published.map(|p| p.egress_date)
    }

    /// Gbit/s from one machine to one machine; `None` where nobody published it. Within a region it is the best that was
    /// published from there to another region: it can hardly be less.
    pub fn throughput_gbit_per_s(&self, from: &Location, to: &Location) -> Option<f64> {
        let published = self.published?;
        if same_region(from, to) { published.best_throughput(from) } else { published.throughput(from, to) }
    }

    /// How long moving so much takes in seconds, from published throughput of one pair of machines.
    pub fn transfer_seconds(&self, from: &Location, to: &Location, gib: f64) -> Option<f64> {
        if !gib.is_finite() {
            return None;
        }
        self.throughput_gbit_per_s(from, to).map(|rate| gib.max(0.0) * GBIT_PER_GIB / rate)
    }
}

#[cfg(test)]
mod tests;
