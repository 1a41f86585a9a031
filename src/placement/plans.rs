//! Plans: a chosen candidate, a move or an end written out as ordered steps with money and time.
//!
//! Seconds are expectations with a basis: starting an instance takes
//! [`crate::config::limits::PLACEMENT_START_UP_SECONDS`], moving data what the published throughput of the pair says.
//! What has no basis (how long a checkpoint takes to write, a provider to let go of an instance) is `None`.

use chrono::{DateTime, Utc};

use crate::config::limits::{MIGRATION_SOAK, PLACEMENT_START_UP_SECONDS};
use crate::domain::text::inert;
use crate::domain::{
    HourlyRate, InstanceType, JobId, JobSpec, Location, Money, Offer, Plan, PlanId, PlanKind, PlanStep, StepAction,
};

use super::facts::{NetworkFacts, same_region};
use super::region::Leg;
use super::{Candidate, NodeGroup};

/// Instances that a job holds in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Holding {
    /// Where.
    pub location: Location,
    /// Which machine.
    pub instance_type: InstanceType,
    /// How they are paid for, where it is known.
    pub purchase: Option<crate::domain::Purchase>,
    /// What one of them costs an hour; `None` where the price is not known.
    pub rate: Option<HourlyRate>,
    /// How many of them.
    pub count: u32,
}

impl Holding {
    /// What they cost together an hour.
    fn usd_per_hour(&self) -> Option<HourlyRate> {
        self.rate.map(|r| r.times(self.count))
    }

    fn step(&self, action: StepAction, usd_per_hour: Option<HourlyRate>) -> PlanStep {
        PlanStep {
            action,
            provider: self.location.provider.clone(),
            region: self.location.region.clone(),
            zone: self.location.zone.clone(),
            instance_type: Some(self.instance_type.clone()),
            purchase: self.purchase,
            count: self.count,
            usd_per_hour,
            usd_once: None,
            seconds: None,
        }
    }
}

/// How far a job has come, as far as is known; decides what an end of it loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// When it (last) began to run.
    pub running_since: Option<DateTime<Utc>>,
    /// When its last checkpoint was written; `None` where nobody has seen one.
    pub last_checkpoint: Option<DateTime<Utc>>,
}

/// Start a job at a candidate: check every offer, launch, fetch the input, verify. All nodes or none.
pub fn launch(spec: &JobSpec, candidate: &Candidate, id: PlanId, now: DateTime<Utc>) -> Plan {
    let mut steps: Vec<PlanStep> = candidate.nodes.iter().map(|g| of_group(g, StepAction::Check, None)).collect();
    steps.extend(candidate.nodes.iter().map(launch_step));
    if candidate.breakdown.egress > Money::ZERO {
        steps.extend(candidate.nodes.first().map(|g| PlanStep {
            count: candidate.nodes.iter().map(|g| g.count).sum(),
            usd_once: Some(candidate.breakdown.egress),
            ..of_group(g, StepAction::Transfer, None)
        }));
    }
    steps.extend(candidate.nodes.iter().map(|g| of_group(g, StepAction::Verify, None)));
    let mut warnings = candidate.caveats.clone();
    if spec.run.is_none() {
        warnings.push("the job names no command: the instances are only held".to_owned());
    }
    Plan {
        id,
        kind: PlanKind::Launch,
        job: None,
        steps,
        usd_per_hour_before: None,
        usd_per_hour_after: Some(candidate.usd_per_hour),
        usd_once: Some(candidate.breakdown.egress),
        made_at: now,
        warnings,
    }
}

/// Move a running job: check and launch the target, write a checkpoint, move it and the input, resume, verify; only
/// then let go of the source (what it holds, and how far it has come). Until then both are paid for; the plan's `usd_once` holds that and the egress.
pub fn migrate<N: NetworkFacts>(
    spec: &JobSpec,
    job: &JobId,
    source: (&[Holding], Progress),
    to: &Candidate,
    network: &N,
    id: PlanId,
    now: DateTime<Utc>,
) -> Plan {
    let (from, progress) = source;
    let mut warnings = to.caveats.clone();
    let mut steps: Vec<PlanStep> = to.nodes.iter().map(|g| of_group(g, StepAction::Check, None)).collect();
    steps.extend(to.nodes.iter().map(launch_step));
    steps.extend(from.iter().map(|h| h.step(StepAction::Checkpoint, h.usd_per_hour())));
    let mut egress = Money::ZERO;
    if let Some(group) = to.nodes.first() {
        let target = group.offer.key.location();
        let legs = [
            (from.first().map(|h| &h.location), spec.data.checkpoint_gib, "the checkpoint"),
            (spec.data.location.as_ref(), spec.data.input_gib, "the input"),
        ];
        let mut seconds = Some(0.0);
        for (origin, gib, what) in legs {
            let Some(origin) = origin.filter(|o| !same_region(o, &target) && gib > 0.0) else { continue };
            let leg = Leg::between(network, origin, &target, gib);
            egress += leg.cost;
            seconds = seconds.filter(|_| !leg.seconds_assumed).map(|s: f64| s + leg.seconds);
            if leg.seconds_assumed {
                warnings.push(format!("how long moving {what} ({gib} GiB) takes is not known"));
            }
        }
        steps.push(PlanStep {
            count: to.nodes.iter().map(|g| g.count).sum(),
            usd_once: Some(egress),
            seconds: seconds.map(|s| s.ceil() as u64),
            ..of_group(group, StepAction::Transfer, None)
        });
    }
    // What is paid twice until the work goes on stands in the step that ends it, so that the steps add up to the plan.
    let mut switching = Some(to.breakdown.switching);
    steps.extend(
        to.nodes.iter().map(|g| PlanStep { usd_once: switching.take(), ..of_group(g, StepAction::Resume, Some(g)) }),
    );
    steps.extend(to.nodes.iter().map(|g| of_group(g, StepAction::Verify, Some(g))));
    steps.extend(from.iter().map(|h| h.step(StepAction::Terminate, Some(HourlyRate::ZERO))));
    if spec.data.checkpoint_gib <= 0.0 && spec.data.checkpoint_uri.is_none() {
        warnings.push("the job names no checkpoint: at the target it starts from the beginning".to_owned());
    }
    warnings.push(loss(spec, from, progress, now));
    warnings.extend(together(from).and_then(|before| no_payback(spec, before, to, egress + to.breakdown.switching)));
    if spec.run.is_some() {
        warnings.push(format!(
            "the source goes once every machine of the target has run for {} s: whether the job's command has gone on \
             from its checkpoint by then is not seen",
            MIGRATION_SOAK.as_secs()
        ));
    }
    if from.iter().any(|h| h.rate.is_none()) {
        warnings.push("what the source costs is not known, so neither is what the move saves".to_owned());
    }
    Plan {
        id,
        kind: PlanKind::Migrate,
        job: Some(job.clone()),
        steps,
        usd_per_hour_before: together(from),
        usd_per_hour_after: Some(to.usd_per_hour),
        usd_once: Some(egress + to.breakdown.switching),
        made_at: now,
        warnings,
    }
}

/// Why a move does not pay, if so: it is dearer, or what it costs once is not won back while the job runs (a day, where
/// its length is not known).
fn no_payback(spec: &JobSpec, before: HourlyRate, to: &Candidate, once: Money) -> Option<String> {
    if to.usd_per_hour > before {
        return Some(format!("does not pay: the new place costs {} more", to.usd_per_hour - before));
    }
    let saved = (before - to.usd_per_hour).to_usd();
    let runs = spec.schedule.duration_hours.unwrap_or(24.0);
    // Nothing saved wins nothing back.
    let hours = once.to_usd() / saved.max(f64::MIN_POSITIVE);
    (once > Money::ZERO && hours > runs).then(|| {
        if saved <= 0.0 {
            format!("does not pay: it costs {once} once and saves nothing")
        } else {
            format!(
                "does not pay: the {once} that it costs once are won back after {hours:.0} h, and it runs {runs:.0} h"
            )
        }
    })
}

/// Stop and release all that a job holds; the warnings say what stops and what is lost.
pub fn terminate(
    spec: &JobSpec,
    job: &JobId,
    holdings: &[Holding],
    progress: Progress,
    id: PlanId,
    now: DateTime<Utc>,
) -> Plan {
    let mut warnings: Vec<String> = holdings
        .iter()
        .map(|h| {
            format!("stops {} x {} in {}", h.count, inert(h.instance_type.as_str()), inert(&h.location.to_string()))
        })
        .collect();
    warnings.push(loss(spec, holdings, progress, now));
    if holdings.iter().any(|h| h.rate.is_none()) {
        warnings.push("what some of the instances cost is not known".to_owned());
    }
    Plan {
        id,
        kind: PlanKind::Terminate,
        job: Some(job.clone()),
        steps: holdings.iter().map(|h| h.step(StepAction::Terminate, Some(HourlyRate::ZERO))).collect(),
        usd_per_hour_before: together(holdings),
        usd_per_hour_after: Some(HourlyRate::ZERO),
        usd_once: Some(Money::ZERO),
        made_at: now,
        warnings,
    }
}

/// What ends with the instances, in a sentence: the work since the last checkpoint, or since the start.
fn loss(spec: &JobSpec, holdings: &[Holding], progress: Progress, now: DateTime<Utc>) -> String {
    if holdings.is_empty() {
        return "the job holds no instances; nothing is lost".to_owned();
    }
    let kept = spec.data.checkpoint_uri.is_some();
    let (since, what) = match (progress.last_checkpoint.filter(|_| kept), progress.running_since) {
        (Some(at), Some(start)) if at < start => (start, "since it was last started"),
        (Some(at), _) => (at, "since the last checkpoint"),
        (None, Some(start)) if kept => {
            (start, "at most since it was started: when the last checkpoint was is not known")
        }
        (None, Some(start)) => (start, "since it was started: the job names no place for checkpoints"),
        (None, None) => return "how much work is lost is not known".to_owned(),
    };
    // Clocks of providers differ from ours; time lost is never negative.
    let lost = (now - since).max(chrono::TimeDelta::zero());
    let minutes = (lost.num_seconds() + 59) / 60;
    let money = together(holdings).map_or_else(String::new, |rate| format!(" ({})", rate.for_duration(lost)));
    format!("loses {} h {:02} min of work{money}, {what}", minutes / 60, minutes % 60)
}

/// What several holdings cost an hour; not known as soon as one of them is not.
fn together(holdings: &[Holding]) -> Option<HourlyRate> {
    holdings.iter().map(Holding::usd_per_hour).try_fold(HourlyRate::ZERO, |sum, rate| Some(sum + rate?))
}

fn launch_step(group: &NodeGroup) -> PlanStep {
    PlanStep { seconds: Some(PLACEMENT_START_UP_SECONDS), ..of_group(group, StepAction::Launch, Some(group)) }
}

/// A step at a group's place; with its price where the step is of instances that are paid for.
fn of_group(group: &NodeGroup, action: StepAction, paid: Option<&NodeGroup>) -> PlanStep {
    let Offer { key, price, .. } = &*group.offer;
    PlanStep {
        action,
        provider: key.provider.clone(),
        region: key.region.clone(),
        zone: key.zone.clone(),
        instance_type: Some(key.instance_type.clone()),
        purchase: Some(key.purchase),
        count: group.count,
        usd_per_hour: paid.and_then(|g| price.map(|p| p.times(g.count))),
        usd_once: None,
        seconds: None,
    }
}
