//! A small world for placement tests: offers, a job and a network in plain words.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use gpudeck::domain::job::{Buying, Constraints, Data, Recovery, Resources, Schedule};
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, Evidence, HourlyRate, Interconnect, JobSpec, Location, Money, Offer,
    OfferKey, Purchase, QuotaRoom, Shape,
};
use gpudeck::market::Snapshot;
use gpudeck::network::LatencySource;
use gpudeck::placement::facts::{NetworkFacts, RoundTrip};
use gpudeck::placement::{Cooling, Question, Ranking, Rules, answer};

/// Noon of the day the tests play on.
pub(crate) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_126_400, 0).expect("a time")
}

pub(crate) fn place(text: &str) -> Location {
    text.parse().expect("PROVIDER/REGION[/ZONE]")
}

/// A job that asks for one node of so many of a chip, on demand or spot, for 24 hours.
pub(crate) fn job(chip: &str, count: u32) -> JobSpec {
    JobSpec {
        name: "test".into(),
        run: Some("true".into()),
        image: None,
        env: BTreeMap::new(),
        resources: Resources {
            accelerators: if chip.is_empty() { vec![] } else { vec![Accelerator::from_canonical(chip)] },
            accelerators_as_written: if chip.is_empty() { vec![] } else { vec![chip.to_owned()] },
            min_gpu_memory_gib: None,
            count,
            nodes: 1,
            vcpus: None,
            memory_gib: None,
        },
        buying: Buying { models: vec![Purchase::OnDemand, Purchase::Spot], max_usd_per_gpu_hour: None },
        constraints: Constraints::default(),
        data: Data::default(),
        schedule: Schedule {
            duration_hours: Some(24.0),
            deadline: None,
            recovery: Recovery::Restart,
            restart_loss_hours: 0.5,
        },
    }
}

/// An offer of eight H100 in a place, live and available.
pub(crate) fn offer(at: &str, instance_type: &str, purchase: Purchase, usd_per_hour: f64) -> Offer {
    let Location { provider, region, zone } = place(at);
    Offer {
        key: OfferKey { provider, region, zone, instance_type: instance_type.into(), purchase },
        shape: Arc::new(Shape {
            instance_type: instance_type.into(),
            accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(192),
            memory_gib: Some(2048.0),
            interconnect: Interconnect::Unknown,
        }),
        price: Some(HourlyRate::from_usd(usd_per_hour).expect("a price")),
        price_is_live: true,
        availability: Availability::Available,
        evidence: Evidence::Api,
        observed_at: noon(),
        stale: false,
        capacity: None,
        quota: None,
        interruptions_per_day: (purchase != Purchase::Spot).then_some(0.0),
        jurisdiction: None,
    }
}

/// The same offer with another shape.
pub(crate) fn shaped(mut offer: Offer, change: impl FnOnce(&mut Shape)) -> Offer {
    let mut shape = (*offer.shape).clone();
    change(&mut shape);
    offer.shape = Arc::new(shape);
    offer
}

pub(crate) fn quota(code: &str, limit: f64, used: f64, per_instance: f64) -> QuotaRoom {
    QuotaRoom { code: code.into(), limit, used, per_instance }
}

/// Figures between regions; what is not in it is not known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Net(pub(crate) BTreeMap<(String, String), Link>);

#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    pub(crate) ms: Option<f64>,
    pub(crate) usd_per_gib: Option<f64>,
    pub(crate) gbit_per_second: Option<f64>,
    #[serde(default)]
    pub(crate) estimated: bool,
}

impl Net {
    pub(crate) fn with(mut self, from: &str, to: &str, link: Link) -> Self {
        self.0.insert((from.into(), to.into()), link);
        self
    }
    pub(crate) fn link(&self, from: &Location, to: &Location) -> Option<Link> {
        let name = |l: &Location| format!("{}/{}", l.provider, l.region);
        self.0.get(&(name(from), name(to))).copied()
    }
}

impl NetworkFacts for Net {
    fn round_trip(&self, from: &Location, to: &Location) -> Option<RoundTrip> {
        let link = self.link(from, to)?;
        let source = if link.estimated { LatencySource::Estimated } else { LatencySource::Measured };
        link.ms.map(|ms| RoundTrip { ms, source })
    }
    fn egress(&self, from: &Location, to: &Location, gib: f64) -> Option<Money> {
        let usd = self.link(from, to)?.usd_per_gib?;
        Some(Money::from_micros((usd * 1e6).round() as i64).scaled(gib))
    }
    fn transfer_seconds(&self, from: &Location, to: &Location, gib: f64) -> Option<f64> {
        self.link(from, to)?.gbit_per_second.map(|g| gib * 8.0 * 1.073_741_824 / g)
    }
}

/// All that an answer depends on.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) offers: Vec<Offer>,
    pub(crate) net: Net,
    pub(crate) now: DateTime<Utc>,
    pub(crate) cooling: Vec<Cooling>,
    pub(crate) current: Option<Location>,
}

impl World {
    pub(crate) fn of(offers: impl IntoIterator<Item = Offer>) -> Self {
        Self { offers: offers.into_iter().collect(), net: Net::default(), now: noon(), cooling: vec![], current: None }
    }

    pub(crate) fn place(&self, spec: &JobSpec, top: usize) -> Ranking {
        self.place_by(spec, top, Rules::default())
    }

    pub(crate) fn place_by(&self, spec: &JobSpec, top: usize, rules: Rules<'_>) -> Ranking {
        let snapshot = Snapshot::from_offers(self.now, self.offers.iter().cloned());
        let question = Question {
            snapshot: &snapshot,
            network: &self.net,
            now: self.now,
            cooling: &self.cooling,
            current: self.current.as_ref(),
            rules,
        };
        answer(spec, &question, top)
    }
}
