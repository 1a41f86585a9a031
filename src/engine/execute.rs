//! From a confirmed plan to a durable intent. One transaction writes job, plan, operation and every intent with its
//! token; only then is anything sent.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;

use super::choose::{intents, write_attempt};
use super::driver::{Driver, event, steps};
use super::shared::Shared;
use super::{EngineError, Proposal, Wish};
use crate::domain::text::inert;
use crate::domain::{
    Actor, EventKind, HourlyRate, JobId, JobSpec, JobState, Location, OperationId, OperationKind, Plan,
};
use crate::placement::Candidate;
use crate::store::{JobRow, Lease, OperationRow, OperationState, Phase, StoreError, Tx};

impl Shared {
    pub(crate) async fn execute(
        self: &Arc<Self>,
        proposal: Proposal,
        actor: Actor,
    ) -> Result<(JobId, OperationId), EngineError> {
        self.execute_with(proposal, actor, true).await
    }

    /// With `emergency` a terminate is carried out even where it cannot be written down.
    pub(crate) async fn execute_with(
        self: &Arc<Self>,
        proposal: Proposal,
        actor: Actor,
        emergency: bool,
    ) -> Result<(JobId, OperationId), EngineError> {
        if self.read_only {
            return Err(EngineError::Refused {
                reason: "this session is read-only; start gpudeck without --read-only".to_owned(),
            });
        }
        // The same confirmed plan twice (a key pressed twice, a client that repeats itself) is one operation.
        match self.already(&proposal.plan).await {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {}
            Err(error) => return Err(self.ledger_error(error)),
        }
        let (job, lease) = match &proposal.wish {
            Wish::Launch { spec, candidate } => {
                let chosen = self.confirmed(spec, &proposal, *candidate)?;
                self.execute_launch(spec, &proposal.plan, &chosen, &actor).await
            }
            Wish::Migrate { job, to } => {
                let spec = self.record(job).await?.job.spec;
                let chosen = self.confirmed(&spec, &proposal, 0)?;
                self.execute_migrate(job, &proposal, &chosen, to.as_ref(), &actor).await
            }
            Wish::Terminate { job } => match self.execute_terminate(job, &proposal, &actor).await {
                // An end is the one thing that is not refused for want of the ledger.
                Err(cause) if emergency && cause.is_outage() => {
                    return Err(self.end_unwritten(job, &actor, &cause).await);
                }
                done => done,
            },
        }
        .map_err(|e| self.ledger_error(e))?;
        let operation = lease.operation.clone();
        if lease.fence > 0 {
            Driver::spawn(self, lease);
        }
        Ok((job, operation))
    }

    /// The operation that this very plan has started already.
    async fn already(&self, plan: &Plan) -> Result<Option<(JobId, OperationId)>, StoreError> {
        let mut tx = self.ledger.read().await?;
        tx.operation_of_plan(&plan.id).await
    }

    /// The candidate that was confirmed, if it still holds: its facts fresh, its price within what was agreed to, its
    /// cloud one that acts for us.
    fn confirmed(&self, spec: &JobSpec, proposal: &Proposal, index: usize) -> Result<Candidate, EngineError> {
        let Some(candidate) = proposal.ranking.candidates.get(index) else {
            return Err(EngineError::Failed("the plan names no place; make it again".to_owned()));
        };
        for group in &candidate.nodes {
            let key = &group.offer.key;
            if !self.acts(&key.provider) {
                return Err(EngineError::Refused { reason: format!("this session may only watch {}", key.provider) });
            }
        }
        self.check_fresh(candidate)?;
        let market = self.state.borrow().market.clone();
        let mut now = Some(HourlyRate::ZERO);
        for group in &candidate.nodes {
            let price = market.get(&group.offer.key).and_then(|o| o.price);
            now = now.zip(price).map(|(sum, p)| sum + p.times(group.count));
            let limit = super::choose::node_limit(spec, &group.offer, &self.limits);
            if let (Some(price), Some(limit)) = (price, limit)
                && price > limit
            {
                return Err(EngineError::Conflict(format!(
                    "{} costs {price:.4} by now, above the {limit:.4} that was agreed to; look at the new plan",
                    inert(&group.offer.key.to_string())
                )));
            }
        }
        let ceiling = self.ceiling(spec, candidate);
        if let Some(now) = now.filter(|now| *now > ceiling) {
            return Err(EngineError::Conflict(format!(
                "it costs {now} by now, above the {ceiling} that was agreed to; look at the new plan"
            )));
        }
        Ok(candidate.clone())
    }

    async fn execute_launch(
        &self,
        spec: &JobSpec,
        plan: &Plan,
        candidate: &Candidate,
        actor: &Actor,
    ) -> Result<(JobId, Lease), StoreError> {
        let now = self.now();
        let id = JobId::from(self.ids.next(now));
        let mut plan = plan.clone();
        plan.job = Some(id.clone());
        let mut tx = self.begin().await?;
        if let Some(other) =
            tx.job_names().await?.into_iter().find(|(_, name, state)| name == &spec.name && !state.is_final())
        {
            return Err(StoreError::Conflict(format!(
                "a job named '{}' is {} already; terminate it or choose another name",
                inert(&spec.name),
                other.2
            )));
        }
        let mut job = JobRow {
            id: id.clone(),
            name: spec.name.clone(),
            spec: Arc::new(spec.clone()),
            state: JobState::Pending,
            version: 1,
            note: None,
            plan: None,
            restarts: 0,
            created_at: now,
            started_at: None,
            running_since: None,
            ended_at: None,
        };
        tx.insert_job(&job).await?;
        tx.insert_plan(&plan, &id).await?;
        job.plan = Some(plan.id.clone());
        let mut operation = self.operation(&id, &plan, actor, Phase::Launching, now);
        operation.ceiling = Some(self.ceiling(spec, candidate));
        self.first_attempt(&mut tx, &mut operation, spec, candidate, now).await?;
        tx.move_job(&mut job, JobState::Placing, None, now).await?;
        tx.move_job(&mut job, JobState::Starting, None, now).await?;
        let text = format!("launch: {}", summary(candidate));
        let data = json!({ "operation": operation.id, "usd_per_hour": candidate.usd_per_hour, "gpus": spec.gpus() });
        let who = (&id, spec.name.as_str());
        tx.append_event(event(now, actor, EventKind::JobCreated, who, Some(&plan.id), text, data)).await?;
        self.commit(tx, Some(&id)).await?;
        Ok((id, self.lease_on(&operation)))
    }

    async fn execute_migrate(
        &self,
        id: &JobId,
        proposal: &Proposal,
        candidate: &Candidate,
        to: Option<&Location>,
        actor: &Actor,
    ) -> Result<(JobId, Lease), StoreError> {
        let now = self.now();
        let mut tx = self.begin().await?;
        let mut job = unchanged(&mut tx, id, proposal).await?;
        tx.insert_plan(&proposal.plan, id).await?;
        let mut operation = self.operation(id, &proposal.plan, actor, Phase::Launching, now);
        operation.ceiling = Some(self.ceiling(&job.spec, candidate));
        operation.target = to.cloned();
        let spec = job.spec.clone();
        self.first_attempt(&mut tx, &mut operation, &spec, candidate, now).await?;
        job.plan = Some(proposal.plan.id.clone());
        tx.move_job(&mut job, JobState::Migrating, None, now).await?;
        let text = format!("migration: {}", summary(candidate));
        let data = json!({ "operation": operation.id, "usd_per_hour": candidate.usd_per_hour });
        let who = (id, job.name.as_str());
        tx.append_event(event(now, actor, EventKind::Migration, who, Some(&proposal.plan.id), text, data)).await?;
        self.commit(tx, Some(id)).await?;
        Ok((id.clone(), self.lease_on(&operation)))
    }

    async fn execute_terminate(
        &self,
        id: &JobId,
        proposal: &Proposal,
        actor: &Actor,
    ) -> Result<(JobId, Lease), StoreError> {
        let now = self.now();
        let mut tx = self.begin().await?;
        let open = tx.open_operation(id).await?;
        if let Some(open) = &open
            && open.kind == OperationKind::Terminate
        {
            // Whoever did it may have been stopped meanwhile: then it goes on here.
            let dead = open.lease_holder.as_deref().filter(|holder| self.is_dead(holder));
            let until = self.lease_until(now);
            if let Some(lease) = tx.take_lease(&open.id, &self.holder, dead, now, until).await? {
                self.commit(tx, Some(id)).await?;
                return Ok((id.clone(), lease));
            }
            // Two operators want the same: one does it, both are answered.
            return Ok((id.clone(), Lease { operation: open.id.clone(), holder: String::new(), fence: 0 }));
        }
        let mut job = unchanged(&mut tx, id, proposal).await?;
        if job.state.is_final() {
            return Err(StoreError::Conflict(format!("'{}' is {} already", inert(&job.name), job.state)));
        }
        tx.insert_plan(&proposal.plan, id).await?;
        let operation = self.operation(id, &proposal.plan, actor, Phase::Removing, now);
        if let Some(open) = &open {
            tx.cancel_operation(&open.id, &operation.id, now).await?;
            tx.end_attempt(&open.id, open.attempt, "set aside by a terminate", None, now).await?;
        }
        tx.insert_operation(&operation).await?;
        job.plan = Some(proposal.plan.id.clone());
        tx.move_job(&mut job, JobState::Stopping, None, now).await?;
        let text = match &open {
            Some(open) => format!("terminate; the {} under way is set aside", open.kind.as_str()),
            None => "terminate".to_owned(),
        };
        let who = (id, job.name.as_str());
        let data = json!({ "operation": operation.id, "usd_per_hour_before": proposal.plan.usd_per_hour_before });
        tx.append_event(event(now, actor, EventKind::TerminateRequested, who, Some(&proposal.plan.id), text, data))
            .await?;
        self.commit(tx, Some(id)).await?;
        if let Some(open) = open {
            self.wake(&open.id);
        }
        Ok((id.clone(), self.lease_on(&operation)))
    }

    async fn first_attempt(
        &self,
        tx: &mut Tx,
        operation: &mut OperationRow,
        spec: &JobSpec,
        candidate: &Candidate,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        operation.attempt = 1;
        "the provider to accept".clone_into(&mut operation.waiting_for);
        tx.insert_operation(operation).await?;
        let rows = intents(spec, candidate, operation, now, &self.limits);
        write_attempt(tx, &operation.id, 1, &rows, now).await
    }

    pub(crate) fn operation(
        &self,
        job: &JobId,
        plan: &Plan,
        actor: &Actor,
        phase: Phase,
        now: DateTime<Utc>,
    ) -> OperationRow {
        OperationRow {
            id: OperationId::from(self.ids.next(now)),
            job: job.clone(),
            kind: plan.kind,
            plan: plan.id.clone(),
            state: OperationState::Open,
            phase,
            steps: steps(plan, plan.kind, Some(phase)),
            actor: actor.clone(),
            attempt: 0,
            ceiling: None,
            target: None,
            waiting_for: "its machines to be gone".to_owned(),
            reason: String::new(),
            error: None,
            cancelled_by: None,
            lease_holder: Some(self.holder.clone()),
            lease_until: Some(self.lease_until(now)),
            fence: 1,
            created_at: now,
            ended_at: None,
        }
    }

    fn lease_on(&self, operation: &OperationRow) -> Lease {
        Lease { operation: operation.id.clone(), holder: self.holder.clone(), fence: operation.fence }
    }
}

/// The job, if it is still what the plan was made for.
async fn unchanged(tx: &mut Tx, id: &JobId, proposal: &Proposal) -> Result<JobRow, StoreError> {
    let Some(job) = tx.job(id).await? else {
        return Err(StoreError::Conflict(format!("the job {} is not in the ledger any more", inert(id.as_str()))));
    };
    if proposal.job_version.is_some_and(|version| version != job.version) {
        return Err(StoreError::Conflict(format!(
            "'{}' was changed meanwhile (it is {} now); look at it again, then decide",
            inert(&job.name),
            job.state
        )));
    }
    Ok(job)
}

fn summary(candidate: &Candidate) -> String {
    let parts: Vec<String> =
        candidate.nodes.iter().map(|g| format!("{} x {}", g.count, inert(&g.offer.key.to_string()))).collect();
    format!("{} at {}", parts.join(" + "), candidate.usd_per_hour)
}
