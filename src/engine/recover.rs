//! Going on after an interruption: operations that nobody drives, jobs that were preempted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::driver::{Driver, event};
use super::shared::Shared;
use super::timer;
use crate::domain::job::Recovery;
use crate::domain::{EventKind, HourlyRate, JobState, Money, OperationKind, Plan, PlanId};
use crate::store::{Lease, OperationRow, OperationState, Phase, StoreError};

impl Shared {
    /// Take up every operation whose driver is gone; gives how many.
    pub(crate) async fn resume(self: &Arc<Self>) -> Result<usize, StoreError> {
        if self.read_only {
            return Ok(0);
        }
        self.make_up().await;
        let mut tx = self.ledger.read().await?;
        let now = self.now();
        let open = tx.open_operations().await?;
        let orphans = tx.orphans().await?;
        drop(tx);
        for orphan in orphans.into_iter().filter(|o| o.terminate_at.is_some()) {
            self.resume_orphan(orphan);
        }
        let mut resumed = 0;
        for operation in open {
            let dead = operation.lease_holder.as_deref().filter(|holder| self.is_dead(holder));
            let held = operation.lease_holder.is_some() && operation.lease_until.is_some_and(|until| until > now);
            if held && dead.is_none() {
                continue;
            }
            let mut tx = self.begin().await?;
            let until = self.lease_until(now);
            let Some(lease) = tx.take_lease(&operation.id, &self.holder, dead, now, until).await? else { continue };
            self.commit(tx, Some(&operation.job)).await?;
            tracing::info!(operation = %operation.id, kind = operation.kind.as_str(), "goes on with an operation that nobody drives");
            Driver::spawn(self, lease);
            resumed += 1;
        }
        Ok(resumed)
    }

    /// Start the recovery of preempted jobs; gives how many. What a job that stays down still holds is released.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<usize, StoreError> {
        if self.read_only {
            return Ok(0);
        }
        let mut tx = self.ledger.read().await?;
        let preempted = tx.jobs_in(JobState::Preempted).await?;
        drop(tx);
        let mut started = 0;
        for job in preempted {
            let now = self.now();
            let mut tx = self.begin().await?;
            // Read again under the lock: another process may have been faster.
            let Some(mut job) = tx.job(&job.id).await? else { continue };
            if job.state != JobState::Preempted || tx.open_operation(&job.id).await?.is_some() {
                continue;
            }
            let holds = tx.intents_of(&job.id).await?.iter().any(|i| !i.state.is_closed());
            if job.spec.schedule.recovery == Recovery::StayDown && !holds {
                continue;
            }
            let plan = Plan {
                id: PlanId::from(self.ids.next(now)),
                kind: OperationKind::Recover,
                job: Some(job.id.clone()),
                steps: Vec::new(),
                usd_per_hour_before: None,
                usd_per_hour_after: (job.spec.schedule.recovery == Recovery::StayDown).then_some(HourlyRate::ZERO),
                usd_once: Some(Money::ZERO),
                made_at: now,
                warnings: vec!["the place is chosen once everything that the job held is proved gone".to_owned()],
            };
            // What an operator agreed to last holds until one agrees to more.
            let agreed = tx.operations_of(&job.id).await?.into_iter().filter(|o| o.state == OperationState::Done);
            let operation = OperationRow {
                ceiling: agreed.filter_map(|o| Some((o.created_at, o.ceiling?))).max().map(|(_, ceiling)| ceiling),
                steps: Vec::new(),
                waiting_for: "what is left of it to be gone".to_owned(),
                ..self.operation(&job.id, &plan, &self.actor, Phase::Releasing, now)
            };
            tx.insert_plan(&plan, &job.id).await?;
            tx.insert_operation(&operation).await?;
            // A change of the job: whoever looked at it before must look again.
            tx.update_job(&mut job).await?;
            let who = (&job.id, job.name.as_str());
            let data = json!({ "operation": operation.id });
            let text = "recovery begins";
            tx.append_event(event(now, &self.actor, EventKind::Note, who, Some(&plan.id), text, data)).await?;
            self.commit(tx, Some(&job.id)).await?;
            Driver::spawn(self, Lease { operation: operation.id, holder: self.holder.clone(), fence: 1 });
            started += 1;
        }
        Ok(started)
    }
}

/// Real: however fast the world's time runs, machines are looked at no more often than that.
const QUICKEST: Duration = Duration::from_secs(1);

/// What a live engine does by itself: first compare clouds and ledger, then go on with what was left, then keep watch.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut reconciled = shared.now();
    if let Err(error) = shared.reconcile().await {
        tracing::error!(%error, "the first comparison of clouds and ledger failed");
    }
    loop {
        if let Err(error) = turn(&shared).await {
            tracing::error!(%error, "the ledger cannot be used; trying again");
        }
        timer::wait(shared.real(shared.limits.watch_every).max(QUICKEST)).await;
        // Ages and cost go on even where nothing else happens.
        shared.written.send_modify(|n| *n += 1);
        let now = shared.now();
        let due = now - reconciled >= super::shared::world(shared.limits.reconcile_every) || now < reconciled;
        let looked = if due {
            reconciled = now;
            shared.reconcile().await.map(|_| ())
        } else {
            shared.watch().await
        };
        if let Err(error) = looked {
            tracing::error!(%error, "the machines could not be looked at; trying again");
        }
    }
}

async fn turn(shared: &Arc<Shared>) -> Result<(), StoreError> {
    shared.resume().await?;
    shared.recover().await?;
    shared.watch_prices().await
}
