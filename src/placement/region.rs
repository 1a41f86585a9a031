//! What is the same for all offers of one region, asked once a region: lists of places, latency, moving data.

use crate::config::limits::{
    PLACEMENT_START_UP_SECONDS, PLACEMENT_UNKNOWN_EGRESS_MICROS_PER_GIB, PLACEMENT_UNKNOWN_GBIT_PER_SECOND,
};
use crate::domain::{JobSpec, Location, Money, OfferKey};
use crate::network::LatencySource;

use super::facts::{NetworkFacts, same_region};

/// Bits in a GiB over bits in a Gbit.
const GBIT_PER_GIB: f64 = 8.0 * 1.073_741_824;

/// One region, as one job sees it. Latency and journey are worked out when first asked for.
#[derive(Debug)]
pub(super) struct RegionView {
    /// The region, without a zone.
    pub(super) location: Location,
    /// The job allows the provider.
    pub(super) provider_allowed: bool,
    /// The job's lists of regions name the region itself, or zones of it, or neither.
    pub(super) lists: ListRule,
    latency: Option<LatencyVerdict>,
    journey: Option<Journey>,
}

/// What `regions` and `exclude_regions` say of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRule {
    /// Every zone of it.
    All,
    /// No zone of it.
    Nothing,
    /// It depends on the zone.
    ByZone,
}

/// How near a region is to the places that the job names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LatencyVerdict {
    /// The longest round trip over all limits whose figure is known; `None` where there are none.
    pub(super) longest_ms: Option<f64>,
    /// Milliseconds above the limit that is exceeded most; zero or less where none is.
    pub(super) excess_ms: f64,
    /// A limit's figure is not known.
    pub(super) unknown: bool,
    /// A figure is estimated from distance.
    pub(super) estimated: bool,
    /// A limit names this very region, and nothing is measured inside it: counted as 0 ms.
    pub(super) inside: bool,
}

/// What a start in a region costs and takes because data has to come there.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Journey {
    /// Reading the input.
    pub(super) input: Leg,
    /// Moving the checkpoint from where the job runs now.
    pub(super) checkpoint: Leg,
}

/// One movement of data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Leg {
    /// What it costs.
    pub(super) cost: Money,
    /// How long it takes.
    pub(super) seconds: f64,
    /// No tariff is known: the dearest published one is charged.
    pub(super) cost_assumed: bool,
    /// No throughput is known: a slow one is assumed.
    pub(super) seconds_assumed: bool,
}

impl Leg {
    /// From one place to another; free and at once within a region or where there is nothing to move.
    pub(super) fn between<N: NetworkFacts>(network: &N, from: &Location, to: &Location, gib: f64) -> Self {
        if same_region(from, to) || gib.is_nan() || gib <= 0.0 {
            return Self::default();
        }
        let cost = network.egress(from, to, gib);
        let seconds = network.transfer_seconds(from, to, gib);
        Self {
            cost: cost.unwrap_or_else(|| Money::from_micros(PLACEMENT_UNKNOWN_EGRESS_MICROS_PER_GIB).scaled(gib)),
            seconds: seconds.unwrap_or(gib * GBIT_PER_GIB / PLACEMENT_UNKNOWN_GBIT_PER_SECOND),
            cost_assumed: cost.is_none(),
            seconds_assumed: seconds.is_none(),
        }
    }
}

impl Journey {
    /// What the whole start costs in egress.
    pub(super) fn cost(&self) -> Money {
        self.input.cost + self.checkpoint.cost
    }
    /// Seconds until the job works: start-up, then input and checkpoint.
    pub(super) fn seconds(&self) -> f64 {
        PLACEMENT_START_UP_SECONDS as f64 + self.input.seconds + self.checkpoint.seconds
    }
}

impl RegionView {
    pub(super) fn new(spec: &JobSpec, key: &OfferKey) -> Self {
        let location = Location { provider: key.provider.clone(), region: key.region.clone(), zone: None };
        let limits = &spec.constraints;
        let provider_allowed = limits.providers.is_empty() || limits.providers.contains(&key.provider);
        let named = |l: &&Location| same_region(l, &location);
        let (whole_in, zone_in) = (
            limits.regions.is_empty() || limits.regions.iter().filter(named).any(|l| l.zone.is_none()),
            limits.regions.iter().any(|l| named(&l)),
        );
        let (whole_out, zone_out) = (
            limits.exclude_regions.iter().filter(named).any(|l| l.zone.is_none()),
            limits.exclude_regions.iter().any(|l| named(&l)),
        );
        let lists = if whole_out || !(whole_in || zone_in) {
            ListRule::Nothing
        } else if whole_in && !zone_out {
            ListRule::All
        } else {
            ListRule::ByZone
        };
        Self { location, provider_allowed, lists, latency: None, journey: None }
    }

    /// Whether this is the region of a key, whose region's text lies at an address: neighbours in a snapshot often
    /// share the very text, and then comparing it is needless.
    pub(super) fn is_of(&self, key: &OfferKey, text: usize) -> bool {
        (self.location.region.as_str().as_ptr().addr() == text || self.location.region == key.region)
            && self.location.provider == key.provider
    }

    pub(super) fn latency<N: NetworkFacts>(&mut self, spec: &JobSpec, network: &N) -> LatencyVerdict {
        let location = &self.location;
        *self.latency.get_or_insert_with(|| {
            let mut verdict = LatencyVerdict {
                longest_ms: None,
                excess_ms: f64::NEG_INFINITY,
                unknown: false,
                estimated: false,
                inside: false,
            };
            for limit in &spec.constraints.latency {
                let ms = match network.round_trip(location, &limit.to) {
                    Some(trip) => {
                        verdict.estimated |= trip.source == LatencySource::Estimated;
                        trip.ms
                    }
                    None if same_region(location, &limit.to) => {
                        verdict.inside = true;
                        0.0
                    }
                    None => {
                        verdict.unknown = true;
                        continue;
                    }
                };
                verdict.longest_ms = Some(verdict.longest_ms.map_or(ms, |longest| longest.max(ms)));
                // A limit or figure that is not a number holds for nobody.
                let excess = ms - limit.max_ms;
                verdict.excess_ms = if excess.is_nan() { f64::INFINITY } else { verdict.excess_ms.max(excess) };
            }
            verdict
        })
    }

    pub(super) fn journey<N: NetworkFacts>(
        &mut self,
        spec: &JobSpec,
        network: &N,
        current: Option<&Location>,
    ) -> Journey {
        let location = &self.location;
        *self.journey.get_or_insert_with(|| Journey {
            input: spec
                .data
                .location
                .as_ref()
                .map(|from| Leg::between(network, from, location, spec.data.input_gib))
                .unwrap_or_default(),
            checkpoint: current
                .map(|from| Leg::between(network, from, location, spec.data.checkpoint_gib))
                .unwrap_or_default(),
        })
    }
}

/// Whether the lists of regions allow this very offer, where they speak of zones. An offer that names no zone may end
/// up in any: it is in a list only by its whole region, and out as soon as one of its zones is.
pub(super) fn zone_allowed(spec: &JobSpec, key: &OfferKey) -> bool {
    let here =
        |l: &Location| l.provider == key.provider && l.region == key.region && (l.zone.is_none() || l.zone == key.zone);
    let may_be_here =
        |l: &Location| here(l) || (key.zone.is_none() && l.provider == key.provider && l.region == key.region);
    let limits = &spec.constraints;
    (limits.regions.is_empty() || limits.regions.iter().any(here)) && !limits.exclude_regions.iter().any(may_be_here)
}
