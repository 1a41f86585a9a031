//! Every constraint of the job, all of them at once, tried in the order of [`Reason`]; the first that fails counts.
//!
//! What a job constrains and the market does not know is refused, under that constraint's reason. What the job does
//! not constrain may be unknown, except the price: without one an offer is never a candidate.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::domain::{Availability, HourlyRate, JobSpec, Location, Offer, Shape};

use super::cost::{self, Horizon};
use super::facts::NetworkFacts;
use super::region::{Journey, ListRule, RegionView, zone_allowed};
use super::{Question, Reason};

/// Why an offer was refused, and how far it is from what was asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    /// In the reason's own measure; less is nearer.
    pub(super) distance: f64,
    /// The fact itself is not known.
    pub(super) unknown: bool,
}

impl Refusal {
    pub(super) const fn at(reason: Reason, distance: f64) -> Self {
        Self { reason, distance, unknown: false }
    }
    const fn unknown(reason: Reason) -> Self {
        Self { reason, distance: f64::INFINITY, unknown: true }
    }
}

/// An offer that passed, with what cost needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    /// Of one instance.
    pub(super) rate: HourlyRate,
    /// Interruptions of one instance a day, as costs count them.
    pub(super) hazard: f64,
    /// How many nodes it can hold, at most as many as are asked for.
    pub(super) room: u32,
    /// Moving data there; nothing where the job already is.
    pub(super) journey: Journey,
    /// The job runs in this very place.
    pub(super) staying: bool,
}

/// One job against one market.
#[derive(Debug)]
pub(super) struct Check<'a, N> {
    pub(super) spec: &'a JobSpec,
    pub(super) question: &'a Question<'a, N>,
    pub(super) nodes: u32,
    pub(super) horizon: Horizon,
    hours_left: Option<f64>,
}

impl<'a, N: NetworkFacts> Check<'a, N> {
    pub(super) fn new(spec: &'a JobSpec, question: &'a Question<'a, N>) -> Self {
        let hours = |until: DateTime<Utc>| (until - question.now).num_milliseconds() as f64 / 3_600_000.0;
        Self {
            spec,
            question,
            nodes: spec.resources.nodes.max(1),
            horizon: Horizon::of(spec),
            hours_left: spec.schedule.deadline.map(hours),
        }
    }

    /// Whether the nodes of the gang may be spread from this offer over others.
    pub(super) fn may_spread(&self, offer: &Offer) -> bool {
        self.spec.constraints.combine_zones && self.nodes > 1 && offer.key.zone.is_some()
    }

    /// All constraints after those on the shape. For an offer whose gang may be spread, room for one node is enough
    /// here and the deadline is left to the gang.
    pub(super) fn offer(&self, offer: &Offer, region: &mut RegionView) -> Result<Passed, Refusal> {
        let (spec, question) = (self.spec, self.question);
        let price = || offer.price.map_or(f64::INFINITY, |p| p.micros() as f64);
        if !region.provider_allowed {
            return Err(Refusal::at(Reason::Provider, price()));
        }
        match region.lists {
            ListRule::All => {}
            ListRule::ByZone if zone_allowed(spec, &offer.key) => {}
            _ => return Err(Refusal::at(Reason::Region, price())),
        }
        let laws = &spec.constraints.jurisdictions;
        if !laws.is_empty() {
            match offer.jurisdiction.as_deref() {
                None => return Err(Refusal::unknown(Reason::Jurisdiction)),
                Some(law) if laws.iter().any(|l| l.eq_ignore_ascii_case(law)) => {}
                Some(_) => return Err(Refusal::at(Reason::Jurisdiction, price())),
            }
        }
        if !spec.buying.models.contains(&offer.key.purchase) {
            return Err(Refusal::at(Reason::Purchase, price()));
        }
        let rate = self.price(offer)?;
        if !spec.constraints.latency.is_empty() {
            let latency = region.latency(spec, question.network);
            if latency.excess_ms > 0.0 {
                return Err(Refusal::at(Reason::Latency, latency.excess_ms));
            }
            if latency.unknown {
                return Err(Refusal::unknown(Reason::Latency));
            }
        }
        if let Some(quota) = &offer.quota {
            let left = quota.instances_left();
            if left < self.nodes {
                return Err(Refusal::at(Reason::Quota, f64::from(self.nodes - left)));
            }
        }
        let spread = self.may_spread(offer);
        let room = offer.capacity.unwrap_or(u32::MAX).min(self.nodes);
        if offer.availability == Availability::None || room < if spread { 1 } else { self.nodes } {
            let missing = if offer.availability == Availability::None { self.nodes } else { self.nodes - room };
            return Err(Refusal::at(Reason::Availability, f64::from(missing)));
        }
        if let Some(until) = self.cooling_until(offer) {
            return Err(Refusal::at(Reason::CoolDown, (until - question.now).num_milliseconds() as f64));
        }
        let staying = question.current.is_some_and(|current| is_at(current, offer));
        let journey =
            if staying { Journey::default() } else { region.journey(spec, question.network, question.current) };
        let hazard = cost::hazard(offer);
        let passed = Passed { rate, hazard, room, journey, staying };
        if !spread && let Some(late) = self.hours_late(&passed, hazard * f64::from(self.nodes)) {
            return Err(Refusal::at(Reason::Deadline, late));
        }
        if self.is_expired(offer) {
            return Err(Refusal::at(Reason::Stale, (question.now - offer.observed_at).num_milliseconds() as f64));
        }
        if question.rules.forbid.is_some_and(|forbid| forbid(offer).is_some()) {
            return Err(Refusal::at(Reason::Policy, price()));
        }
        Ok(passed)
    }

    /// The price of one instance, under the cap. A price of zero is as unknown as none: it stands in lists for what
    /// can only be reserved.
    fn price(&self, offer: &Offer) -> Result<HourlyRate, Refusal> {
        let rate = offer.price.filter(|p| *p > HourlyRate::ZERO).ok_or(Refusal::unknown(Reason::Price))?;
        if let Some(cap) = self.spec.buying.max_usd_per_gpu_hour {
            let parts = i128::from(offer.shape.accelerators.ten_thousandths());
            if parts == 0 {
                return Err(Refusal::unknown(Reason::Price));
            }
            // `rate.per_gpu(…) > cap`, its rounding included, without a division for every offer.
            let tenfold = i128::from(rate.micros()) * 10_000 + parts / 2;
            if tenfold >= (i128::from(cap.micros()) + 1) * parts {
                return Err(Refusal::at(Reason::Price, tenfold as f64 / parts as f64));
            }
        }
        Ok(rate)
    }

    /// Until when the offer's place is left alone, if it is.
    pub(super) fn cooling_until(&self, offer: &Offer) -> Option<DateTime<Utc>> {
        self.question
            .cooling
            .iter()
            .filter(|c| c.until > self.question.now)
            .filter(|c| is_at(&c.location, offer) && c.purchase.is_none_or(|p| p == offer.key.purchase))
            .map(|c| c.until)
            .max()
    }

    /// Hours by which a gang interrupted so often a day would miss the deadline; `None` where it makes it.
    pub(super) fn hours_late(&self, passed: &Passed, per_day: f64) -> Option<f64> {
        let late = self.hours_needed(passed, per_day) - self.hours_left?;
        (late > 0.0).then_some(late)
    }

    /// Hours from now until a gang interrupted so often a day has finished. An open-ended job has no end to wait for:
    /// it only has to start in time.
    pub(super) fn hours_needed(&self, passed: &Passed, per_day: f64) -> f64 {
        let start = if passed.staying { 0.0 } else { passed.journey.seconds() / 3600.0 };
        start + self.spec.schedule.duration_hours.map_or(0.0, |_| self.horizon.hours_to_finish(per_day))
    }

    /// When a gang all at this offer would have finished (for an open-ended job: would start), up to a full second.
    /// `None` where that lies beyond the calendar.
    pub(super) fn earliest_end(&self, offer: &Offer) -> Option<DateTime<Utc>> {
        let staying = self.question.current.is_some_and(|current| is_at(current, offer));
        let mut region = RegionView::new(self.spec, &offer.key);
        let journey = if staying {
            Journey::default()
        } else {
            region.journey(self.spec, self.question.network, self.question.current)
        };
        let hazard = cost::hazard(offer);
        let passed = Passed { rate: HourlyRate::ZERO, hazard, room: self.nodes, journey, staying };
        let hours = self.hours_needed(&passed, hazard * f64::from(self.nodes));
        // A second more than needed, so that a deadline set to this is met whatever the rounding.
        let seconds = (hours * 3600.0).ceil() + 1.0;
        let wait = (seconds < 1e11).then_some(seconds as i64)?;
        let from = self.question.now.timestamp() + i64::from(self.question.now.timestamp_subsec_nanos() > 0);
        DateTime::from_timestamp(from.checked_add(wait)?, 0)
    }

    /// Whether the offer's facts are too old to plan with. A published price list has a date, not an age.
    fn is_expired(&self, offer: &Offer) -> bool {
        offer.stale && offer.price_is_live && self.question.now - offer.observed_at > self.question.rules.expired_after
    }
}

/// Whether the offer lies in a place.
fn is_at(place: &Location, offer: &Offer) -> bool {
    place.region == offer.key.region
        && place.provider == offer.key.provider
        && (place.zone.is_none() || place.zone == offer.key.zone)
}

/// What the constraints on the machine itself say of a shape.
pub(super) fn shape(spec: &JobSpec, shape: &Shape) -> Option<Refusal> {
    let need = &spec.resources;
    let chip = &shape.accelerator;
    if need.accelerators.is_empty() {
        if !chip.is_known() {
            return Some(Refusal::unknown(Reason::Accelerator));
        }
    } else if !need.accelerators.contains(chip) {
        let alike = need.accelerators.iter().map(|a| common_prefix(a.as_str(), chip.as_str())).max().unwrap_or(0);
        return Some(Refusal::at(Reason::Accelerator, 1e6 - alike as f64));
    }
    if let Some(min) = need.min_gpu_memory_gib
        && let Some(refusal) = at_least(Reason::Accelerator, shape.gpu_memory_gib, min)
    {
        return Some(refusal);
    }
    let gpus = shape.accelerators.floor();
    if gpus < need.count {
        return Some(Refusal::at(Reason::Count, f64::from(need.count) - shape.accelerators.to_f64()));
    }
    if let Some(min) = need.memory_gib
        && let Some(refusal) = at_least(Reason::Memory, shape.memory_gib, min)
    {
        return Some(refusal);
    }
    need.vcpus.and_then(|min| at_least(Reason::Vcpus, shape.vcpus.map(f64::from), f64::from(min)))
}

/// A minimum: refused where the figure is smaller, is not known, or is not a number.
fn at_least(reason: Reason, have: Option<f64>, min: f64) -> Option<Refusal> {
    match have {
        Some(have) if have >= min => None,
        Some(have) if !have.is_nan() => Some(Refusal::at(reason, min - have)),
        _ => Some(Refusal::unknown(reason)),
    }
}

/// How many leading bytes two names share. Only tells which refused chip is shown as the nearest, never what matches.
pub(super) fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// Remembers what was said of shapes by their address: many offers share one.
#[derive(Debug)]
pub(super) struct ShapeMemory {
    slots: Vec<(usize, Option<Refusal>)>,
}

impl ShapeMemory {
    /// A power of two, a few times the number of shapes on the market; collisions only cost time.
    const SLOTS: usize = 512;

    pub(super) fn new() -> Self {
        Self { slots: vec![(0, None); Self::SLOTS] }
    }

    /// What stands for a shape here. The snapshot is borrowed meanwhile, so an address is that of one shape.
    pub(super) fn address(of: &Arc<Shape>) -> usize {
        Arc::as_ptr(of).addr()
    }

    pub(super) fn verdict(&mut self, spec: &JobSpec, of: &Shape, address: usize) -> Option<Refusal> {
        let slot = (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize) >> (usize::BITS - 9);
        match self.slots.get_mut(slot) {
            Some(known) if known.0 == address => known.1,
            Some(known) => {
                let verdict = shape(spec, of);
                *known = (address, verdict);
                verdict
            }
            None => shape(spec, of),
        }
    }
}
