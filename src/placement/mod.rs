//! Where a job should run. Pure: the same snapshot, network and job give the same ranking, for ever.
//!
//! One pass over the snapshot ([`survey`]) holds every offer against all constraints of the job ([`constraints`], in
//! the order of [`Reason`]); each offer is either usable or counted under the first reason that refuses it. A usable
//! offer that holds the whole gang is a candidate with its expected cost ([`cost`]); candidates are put in one total
//! order ([`order`]). What is the same for a shape of machine or a region is worked out once ([`region`]).
//!
//! - A gang lies in one zone, all or nothing. Only `combine_zones` lets it be spread over zones of one region, on one
//!   instance type under one purchase model; the cheapest spread ([`gang`]) is then a candidate beside the single
//!   zones where it is cheaper than each of them. A quota counts over a region, so it has to hold the whole gang.
//! - Availability that is not known is allowed, said so in a caveat, and comes after equal cost that is known.
//! - Where nothing fits, [`relax`] finds the smallest single change of the job for each constraint, and proves it.
//! - [`plans`] writes a candidate out as ordered steps; [`explain`] puts a ranking into words.

mod candidates;
mod constraints;
mod cost;
mod detail;
pub mod explain;
pub mod facts;
mod gang;
mod order;
pub mod plans;
mod region;
mod relax;
mod survey;

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::config::limits::FIGURES_EXPIRE_AFTER;
use crate::domain::{HourlyRate, JobSpec, Location, Money, Offer};
use crate::market::Snapshot;
use crate::network::Network;

use constraints::Check;
pub use cost::staying;
pub use facts::NetworkFacts;

/// All that a decision depends on besides the job.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The market.
    pub snapshot: &'a Snapshot,
    /// Latency and tariffs.
    pub network: &'a Network,
    /// The moment of the decision.
    pub now: DateTime<Utc>,
    /// Places that failed lately and are left alone for now.
    pub cooling: &'a [Cooling],
    /// Where the job runs now, if it does: moving from there costs egress of its checkpoint and a restart.
    pub current: Option<&'a Location>,
}

/// A place that is left alone until a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cooling {
    /// The place.
    pub location: Location,
    /// Only this purchase model, or every one.
    pub purchase: Option<crate::domain::Purchase>,
    /// Until then.
    pub until: DateTime<Utc>,
    /// Why.
    pub reason: String,
}

/// The answer: what could be taken, best first; what was refused and why; what would help.
#[derive(Debug, Clone, Default)]
pub struct Ranking {
    /// Best first; at most as many as were asked for.
    pub candidates: Vec<Candidate>,
    /// How many candidates there are in all.
    pub feasible: usize,
    /// How many offers were looked at: `usable`, and those refused.
    pub considered: usize,
    /// How many offers were not refused. As many as `feasible`, except where zones may be combined: there a usable
    /// offer may only be part of a spread, and a spread is a candidate of several offers.
    pub usable: usize,
    /// Every refused offer counted under its first reason, most first.
    pub rejected: Vec<Rejection>,
    /// The smallest single changes that would give a place, best first; only where there is none.
    pub relax: Vec<Relaxation>,
}

/// One way to run the job.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Which offers, how many of each; one entry unless zones are combined.
    pub nodes: Vec<NodeGroup>,
    /// Of all nodes together.
    pub usd_per_hour: HourlyRate,
    /// Expected over the costing hours: `breakdown` summed.
    pub usd_total: Money,
    /// What it consists of.
    pub breakdown: Breakdown,
    /// The longest round trip to the places that the job names.
    pub latency_ms: Option<f64>,
    /// Expected interruptions of the whole gang a day; `None` where there is no evidence.
    pub interruptions_per_day: Option<f64>,
    /// What is assumed, stale or unknown about this candidate, in sentences.
    pub caveats: Vec<String>,
}

/// So many instances of one offer.
#[derive(Debug, Clone)]
pub struct NodeGroup {
    /// The offer.
    pub offer: Arc<Offer>,
    /// How many instances.
    pub count: u32,
}

/// The parts of a candidate's expected cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Breakdown {
    /// Instances over the costing hours.
    pub compute: Money,
    /// Moving input and checkpoint.
    pub egress: Money,
    /// Paid twice while moving from where the job runs now.
    pub switching: Money,
    /// Expected interruptions times what each loses.
    pub risk: Money,
    /// Commitments already paid (negative).
    pub commitment: Money,
}

impl Breakdown {
    /// All parts together.
    pub fn total(&self) -> Money {
        self.compute + self.egress + self.switching + self.risk + self.commitment
    }
}

/// Why an offer was refused; the order is the order in which reasons are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Another chip, or too little memory on it.
    Accelerator,
    /// Too few GPUs on an instance.
    Count,
    /// Too little main memory, or not known.
    Memory,
    /// Too few virtual CPUs, or not known.
    Vcpus,
    /// A provider that the job does not allow.
    Provider,
    /// A region that the job does not allow.
    Region,
    /// Under a law that the job does not allow, or not known.
    Jurisdiction,
    /// A purchase model that the job does not allow.
    Purchase,
    /// Too dear, or no price is known.
    Price,
    /// Too far, or the latency is not known.
    Latency,
    /// The quota leaves no room.
    Quota,
    /// None to be had, or fewer than the gang needs.
    Availability,
    /// The place failed lately.
    CoolDown,
    /// It cannot finish before the deadline.
    Deadline,
    /// The offer's facts are too old to act on.
    Stale,
    /// A policy forbids it.
    Policy,
}

impl Reason {
    /// Every reason, in the order in which they are tried.
    pub const ALL: [Self; 16] = [
        Self::Accelerator,
        Self::Count,
        Self::Memory,
        Self::Vcpus,
        Self::Provider,
        Self::Region,
        Self::Jurisdiction,
        Self::Purchase,
        Self::Price,
        Self::Latency,
        Self::Quota,
        Self::Availability,
        Self::CoolDown,
        Self::Deadline,
        Self::Stale,
        Self::Policy,
    ];

    /// As written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accelerator => "accelerator",
            Self::Count => "count",
            Self::Memory => "memory",
            Self::Vcpus => "vcpus",
            Self::Provider => "provider",
            Self::Region => "region",
            Self::Jurisdiction => "jurisdiction",
            Self::Purchase => "purchase",
            Self::Price => "price",
            Self::Latency => "latency",
            Self::Quota => "quota",
            Self::Availability => "availability",
            Self::CoolDown => "cool_down",
            Self::Deadline => "deadline",
            Self::Stale => "stale",
            Self::Policy => "policy",
        }
    }
}

/// So many offers were refused for this.
#[derive(Debug, Clone)]
pub struct Rejection {
    /// Why.
    pub reason: Reason,
    /// How many offers.
    pub offers: usize,
    /// The one that came nearest: for `price` the cheapest, for `quota` the one with most room.
    pub example: Arc<Offer>,
    /// A sentence with figures: what it has, what is needed.
    pub detail: String,
}

/// One change of the job that would give it a place.
#[derive(Debug, Clone)]
pub struct Relaxation {
    /// The job file's key: `purchase.max_usd_per_gpu_hour`.
    pub constraint: String,
    /// As it is.
    pub from: String,
    /// As it would have to be.
    pub to: String,
    /// What the place found then costs an hour.
    pub usd_per_hour: HourlyRate,
    /// That place.
    pub offer: Arc<Offer>,
}

/// A policy as the core asks it: the sentence that forbids an offer, or `None`.
pub type Forbid<'a> = dyn Fn(&Offer) -> Option<String> + 'a;

/// What the core may assume and must keep to, besides job and market.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// Facts that are marked stale are refused once they are older than this: the age past which the screen shows
    /// them as figures no more. Up to then they are planned with and say so; every launch looks again before it acts.
    /// A published price list has a date, not an age, and is not refused for it.
    pub expired_after: chrono::TimeDelta,
    /// A policy, asked last.
    pub forbid: Option<&'a Forbid<'a>>,
}

impl Default for Rules<'_> {
    fn default() -> Self {
        Self {
            expired_after: chrono::TimeDelta::from_std(FIGURES_EXPIRE_AFTER).unwrap_or(chrono::TimeDelta::MAX),
            forbid: None,
        }
    }
}

impl fmt::Debug for Rules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("expired_after", &self.expired_after)
            .field("forbid", &self.forbid.map(|_| "a policy"))
            .finish()
    }
}

/// A [`Context`] with the network behind a trait and the rules spelt out.
#[derive(Debug)]
pub struct Question<'a, N> {
    /// The market.
    pub snapshot: &'a Snapshot,
    /// Latency and tariffs.
    pub network: &'a N,
    /// The moment of the decision.
    pub now: DateTime<Utc>,
    /// Places that failed lately and are left alone for now.
    pub cooling: &'a [Cooling],
    /// Where the job runs now, if it does.
    pub current: Option<&'a Location>,
    /// What may be assumed.
    pub rules: Rules<'a>,
}

impl<'a, N> Question<'a, N> {
    /// The offer at a place in the snapshot's order.
    fn offer(&self, index: usize) -> Option<&'a Arc<Offer>> {
        self.snapshot.iter().nth(index)
    }
}

/// Rank every way to run the job; `top` limits how many are returned, not how many are considered.
pub fn place(spec: &JobSpec, context: &Context<'_>, top: usize) -> Ranking {
    place_by(spec, context, Rules::default(), top)
}

/// Like [`place`], with other rules than the usual ones, such as a policy.
pub fn place_by(spec: &JobSpec, context: &Context<'_>, rules: Rules<'_>, top: usize) -> Ranking {
    let Context { snapshot, network, now, cooling, current } = *context;
    answer(spec, &Question { snapshot, network, now, cooling, current, rules }, top)
}

/// The core itself, over any network.
pub fn answer<N: NetworkFacts>(spec: &JobSpec, question: &Question<'_, N>, top: usize) -> Ranking {
    let check = Check::new(spec, question);
    let survey = survey::survey(&check, top);
    let rejected = survey
        .tally
        .counts()
        .into_iter()
        .filter_map(|count| {
            let example = question.offer(count.example)?;
            Some(Rejection {
                reason: count.reason,
                offers: count.offers,
                example: Arc::clone(example),
                detail: detail::sentence(&check, &count, example),
            })
        })
        .collect();
    Ranking {
        candidates: candidates::write(&check, &survey.found),
        feasible: survey.feasible,
        considered: question.snapshot.len(),
        usable: survey.usable,
        rejected,
        relax: if survey.feasible == 0 { relax::relax(&check, &survey.tally) } else { Vec::new() },
    }
}
