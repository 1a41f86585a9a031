//! A job as shown, from what the ledger has of it. Every figure that a screen draws is worked out here.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::shared::words;
use super::view::{InstanceView, JobView, OperationView};
use crate::domain::{
    AcceleratorCount, HourlyRate, Instance, InstanceId, InstanceState, JobId, JobSpec, JobState, Money, Plan,
};
use crate::market::Snapshot;
use crate::placement::{Context, Rules, place_by, staying};
use crate::store::{IntentRow, IntentState, JobRow, OperationRow, StoreError, Tx};

/// All that the ledger has of a job.
pub(crate) struct JobRecord {
    pub(crate) job: JobRow,
    pub(crate) intents: Vec<IntentRow>,
    pub(crate) operation: Option<(OperationRow, Arc<Plan>)>,
}

impl JobRecord {
    pub(crate) async fn read(tx: &mut Tx, id: &JobId) -> Result<Option<Self>, StoreError> {
        let Some(job) = tx.job(id).await? else { return Ok(None) };
        let intents = tx.intents_of(id).await?;
        let operation = match tx.open_operation(id).await? {
            Some(operation) => match tx.plan(&operation.plan).await? {
                Some(plan) => Some((operation, Arc::new(plan))),
                None => return Err(StoreError::Corrupt { detail: format!("the plan {} is missing", operation.plan) }),
            },
            None => None,
        };
        Ok(Some(Self { job, intents, operation }))
    }

    /// Every job that has not ended and the latest so many that have, newest first; a few questions for all of them.
    pub(crate) async fn read_recent(tx: &mut Tx, ended: u32) -> Result<Vec<Self>, StoreError> {
        let jobs = tx.recent_jobs(ended).await?;
        let mut intents: HashMap<JobId, Vec<IntentRow>> = HashMap::new();
        for intent in tx.recent_intents(ended).await? {
            intents.entry(intent.job.clone()).or_default().push(intent);
        }
        let mut operations = HashMap::new();
        for operation in tx.open_operations().await? {
            if let Some(plan) = tx.plan(&operation.plan).await? {
                operations.insert(operation.job.clone(), (operation, Arc::new(plan)));
            }
        }
        let record = |job: JobRow| Self {
            intents: intents.remove(&job.id).unwrap_or_default(),
            operation: operations.remove(&job.id),
            job,
        };
        Ok(jobs.into_iter().map(record).collect())
    }

    /// Intents of which a machine may exist.
    pub(crate) fn billing(&self) -> impl Iterator<Item = &IntentRow> {
        self.intents.iter().filter(|i| i.state.may_bill())
    }

    /// The intents that say where the job is: those that run, else those that may exist, else the last that did.
    fn allocation(&self) -> Vec<&IntentRow> {
        let running: Vec<&IntentRow> =
            self.billing().filter(|i| i.terminate_at.is_none() && i.machine() == InstanceState::Running).collect();
        // While a migration is under way both sides may run; the job is where it was until the source goes.
        if let Some(first) = running.first() {
            return running.iter().copied().filter(|i| i.operation == first.operation).collect();
        }
        let open: Vec<&IntentRow> = self.billing().collect();
        if let Some(last) = open.last() {
            return open
                .iter()
                .copied()
                .filter(|i| i.operation == last.operation && i.attempt == last.attempt)
                .collect();
        }
        let Some(last) = self.intents.iter().rev().find(|i| i.instance.is_some()).or(self.intents.last()) else {
            return Vec::new();
        };
        self.intents.iter().filter(|i| i.operation == last.operation && i.attempt == last.attempt).collect()
    }
}

/// What all jobs cost an hour now, and the GPUs they hold. Whatever is not proved gone counts.
pub(crate) fn totals<'a>(records: impl Iterator<Item = &'a JobRecord>) -> (HourlyRate, u32) {
    let (mut rate, mut gpus) = (HourlyRate::ZERO, 0_u64);
    for intent in records.flat_map(JobRecord::billing) {
        rate += intent.bound_price.unwrap_or_default();
        gpus += u64::from(intent.shape.accelerators.ten_thousandths());
    }
    (rate, u32::try_from(gpus / 10_000).unwrap_or(u32::MAX))
}

/// What the market offers a job now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Best {
    /// What the best place costs an hour.
    pub(crate) usd_per_hour: Option<HourlyRate>,
    /// See [`JobView::move_saves`].
    pub(crate) move_saves: Option<Money>,
    /// When that was worked out.
    pub(crate) at: Option<DateTime<Utc>>,
}

impl Best {
    /// Rank every place for the job, once as if it started now and once as a move from where it runs.
    pub(crate) fn of(record: &JobRecord, context: &Context<'_>, rules: Rules<'_>) -> Self {
        let usd_per_hour = place_by(&record.job.spec, context, rules, 1).candidates.first().map(|c| c.usd_per_hour);
        Self { usd_per_hour, move_saves: Self::move_saves(record, context, rules), at: None }
    }

    fn move_saves(record: &JobRecord, context: &Context<'_>, rules: Rules<'_>) -> Option<Money> {
        let job = &record.job;
        let from = record.billing().next().filter(|_| job.state == JobState::Running)?;
        let location = from.location.clone().unwrap_or_else(|| from.offer.location());
        let rate = record.billing().try_fold(HourlyRate::ZERO, |sum, i| Some(sum + i.bound_price?))?;
        let mut spec = JobSpec::clone(&job.spec);
        if let (Some(hours), Some(start)) = (spec.schedule.duration_hours, job.started_at) {
            let ran = (context.now - start).as_seconds_f64() / 3600.0;
            spec.schedule.duration_hours = Some((hours - ran.max(0.0)).max(0.0));
        }
        let ranking = place_by(&spec, &Context { current: Some(&location), ..*context }, rules, 1);
        let Some(best) = ranking.candidates.first() else { return Some(Money::ZERO) };
        if best.nodes.iter().all(|g| record.billing().any(|i| i.offer == g.offer.key)) {
            return Some(Money::ZERO);
        }
        let stay = staying(&spec, rate, interruptions_per_day(record.billing(), context.snapshot));
        Some((stay - best.usd_total).max(Money::ZERO))
    }
}

/// Each node may be interrupted by itself, and any of them stops the gang; `None` where one has no evidence.
fn interruptions_per_day<'r>(held: impl Iterator<Item = &'r IntentRow>, snapshot: &Snapshot) -> Option<f64> {
    held.map(|i| snapshot.get(&i.offer).and_then(|offer| offer.interruptions_per_day))
        .try_fold(0.0, |sum: f64, one| one.map(|n| sum + n))
}

pub(crate) fn job_view(record: &JobRecord, snapshot: &Snapshot, best: Best, now: DateTime<Utc>) -> JobView {
    let job = &record.job;
    let allocation = record.allocation();
    let first = allocation.first();
    let location = first.map(|i| i.location.clone().unwrap_or_else(|| i.offer.location()));
    let parts: u64 = allocation.iter().map(|i| u64::from(i.shape.accelerators.ten_thousandths())).sum();
    let mut rate = Some(HourlyRate::ZERO);
    for intent in record.billing() {
        rate = rate.zip(intent.bound_price).map(|(sum, price)| sum + price);
    }
    let risk = interruptions_per_day(allocation.iter().copied(), snapshot)
        .filter(|_| !allocation.is_empty() && !job.state.is_final());
    let shown = |i: &&IntentRow| i.state.may_bill() || allocation.iter().any(|a| a.token == i.token);
    JobView {
        id: job.id.clone(),
        name: job.name.clone(),
        state: job.state,
        note: note(record, now),
        spec: job.spec.clone(),
        provider: location.as_ref().map(|l| l.provider.clone()),
        region: location.as_ref().map(|l| l.region.clone()),
        zone: location.as_ref().and_then(|l| l.zone.clone()),
        instance_type: first.map(|i| i.offer.instance_type.clone()),
        accelerator: first.map(|i| i.shape.accelerator.clone()),
        accelerators: AcceleratorCount::from_ten_thousandths(u32::try_from(parts).unwrap_or(u32::MAX)),
        nodes: job.spec.resources.nodes,
        purchase: first.map(|i| i.offer.purchase),
        usd_per_hour: rate,
        usd_spent: record.intents.iter().map(|i| i.cost(now)).sum(),
        best_usd_per_hour: best.usd_per_hour.filter(|_| !job.state.is_final()),
        move_saves: best.move_saves.filter(|_| job.state == JobState::Running),
        started_at: job.started_at,
        running_since: job.running_since,
        created_at: job.created_at,
        ended_at: job.ended_at,
        restarts: job.restarts,
        interruption_risk: risk,
        instances: record.intents.iter().filter(shown).map(instance_view).collect(),
        operation: record.operation.as_ref().map(|(operation, plan)| OperationView {
            kind: operation.kind,
            plan: plan.clone(),
            steps: operation.steps.clone(),
            since: operation.created_at,
            waiting_for: waiting_for(operation, now),
        }),
        plan: job.plan.clone(),
        version: job.version,
    }
}

/// The machines that a job runs on and that do not run; while it moves, those that it is to leave.
fn drifting(record: &JobRecord) -> impl Iterator<Item = &IntentRow> {
    let moving = record.operation.as_ref().filter(|_| record.job.state == JobState::Migrating).map(|(o, _)| o);
    let runs_on = move |i: &IntentRow| match (record.job.state, moving) {
        (JobState::Running, _) => i.state.may_bill(),
        // It is told as gone only where that happened during the move: what went before is another story.
        (_, Some(operation)) => {
            i.operation != operation.id
                && (i.state.may_bill() || i.gone_at.is_some_and(|at| at >= operation.created_at))
        }
        _ => false,
    };
    record
        .intents
        .iter()
        .filter(move |i| runs_on(i) && i.terminate_at.is_none() && i.machine() != InstanceState::Running)
}

/// Why the job is as it is: what was written down, or what its machines show that its state does not.
fn note(record: &JobRecord, now: DateTime<Utc>) -> Option<String> {
    let drift: Vec<String> = drifting(record)
        .map(|i| {
            let age = i.observed_at.map_or_else(String::new, |at| format!(", seen {} ago", words(now - at)));
            format!("node {} is {} at the provider{age}", i.node, i.machine())
        })
        .collect();
    if !drift.is_empty() {
        return Some(drift.join("; "));
    }
    record.job.note.clone()
}

fn waiting_for(operation: &OperationRow, now: DateTime<Utc>) -> String {
    match (&operation.lease_holder, operation.lease_until) {
        (Some(_), Some(until)) if until > now => operation.waiting_for.clone(),
        _ => "nobody drives it now; the cockpit or `gpudeck controller` goes on with it".to_owned(),
    }
}

fn instance_view(intent: &IntentRow) -> InstanceView {
    let mut instance = intent.seen.clone().unwrap_or_else(|| Instance {
        // No id is known: the name it was asked for under tells which one is meant.
        id: intent.instance.clone().unwrap_or_else(|| InstanceId::from(intent.name.as_str())),
        location: intent.location.clone().unwrap_or_else(|| intent.offer.location()),
        instance_type: intent.offer.instance_type.clone(),
        purchase: intent.offer.purchase,
        state: InstanceState::Requested,
        launched_at: None,
        ended_at: None,
        price: None,
        token: Some(intent.token.clone()),
        mark: None,
        preemption_notice: None,
        reason: intent.error.as_ref().map(ToString::to_string),
    });
    match intent.state {
        IntentState::Gone | IntentState::Absent | IntentState::Refused | IntentState::Cancelled => {
            instance.state = InstanceState::Gone;
        }
        IntentState::Unproven => instance.state = InstanceState::Unknown("not proved".to_owned()),
        IntentState::Intended | IntentState::Sent | IntentState::Accepted => {}
    }
    InstanceView {
        instance,
        observed_at: intent.observed_at.unwrap_or(intent.intended_at),
        bound_price: intent.bound_price,
        node: intent.node,
    }
}
