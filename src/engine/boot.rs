//! From accepted to running, and the end of an operation that went well.

use serde_json::json;

use super::calls::Look;
use super::driver::{Case, Driver, Next, event, steps};
use super::launch::Failure;
use super::observe;
use super::shared::world;
use crate::domain::text::inert;
use crate::domain::{EventKind, InstanceState, JobState, OperationKind, ProviderError};
use crate::provider::InstanceRef;
use crate::store::{IntentRow, IntentState, OperationState, Phase, StoreError};

impl Driver {
    /// Look at the machines of the attempt until all of them run, one fails, or the time for it is over. A migration
    /// wants to see them all run for a while.
    pub(crate) async fn boot(&self, case: &Case) -> Result<Next, StoreError> {
        let shared = &self.shared;
        let wanted: Vec<&IntentRow> = case.attempt().collect();
        let trouble = self.look_at(case, &wanted).await?;
        let now = shared.now();
        let Some(fresh) = self.reload_attempt(case).await? else { return Ok(Next::Again) };
        if let Some(lost) = fresh
            .iter()
            .find(|i| i.state != IntentState::Accepted || observe::is_lost(i) || i.machine() == InstanceState::Stopped)
        {
            let failure = self.ended_early(lost);
            return self.fail_attempt(case, failure).await;
        }
        let up = fresh
            .iter()
            .filter(|i| {
                i.machine() == InstanceState::Running
                    && i.observed_at.is_some_and(|at| {
                        at >= now - world(shared.limits.call_deadline.mul_f64(shared.clock.speed().max(1.0)))
                    })
            })
            .count();
        if trouble.is_none() && up == fresh.len() && !fresh.is_empty() {
            if case.operation.kind == OperationKind::Migrate && case.operation.phase == Phase::Booting {
                return self.verify_again(case).await;
            }
            if case.operation.kind == OperationKind::Migrate {
                let left = world(shared.limits.soak) - (now - self.soaking_since(now));
                if left > chrono::TimeDelta::zero() {
                    let step = left.to_std().unwrap_or_default().min(shared.limits.poll_every);
                    return Ok(Next::Wait(shared.real(step)));
                }
            }
            return self.running(case, &fresh).await;
        }
        // All of them, all the time: one that does not run now begins it anew.
        self.soak_again();
        let oldest = fresh.iter().filter_map(|i| i.sent_at).min().unwrap_or(now);
        if now - oldest >= world(shared.limits.boot_deadline) {
            let minutes = shared.limits.boot_deadline.as_secs() / 60;
            let states: Vec<String> = fresh.iter().map(|i| format!("node {} {}", i.node, i.machine())).collect();
            let reason = format!("not up within {minutes} min ({}); given back", states.join(", "));
            let late = fresh.iter().find(|i| i.machine() != InstanceState::Running).or(fresh.first());
            let Some(offer) = late.map(|i| i.offer.clone()) else { return Ok(Next::Again) };
            let failure = Failure { reason, error: None, cool: Some(shared.limits.cool_fault), stop: false, offer };
            return self.fail_attempt(case, failure).await;
        }
        let what = match &trouble {
            Some(error) => format!("the provider to answer ({error})"),
            None => format!("{} of {} machines to come up", fresh.len() - up, fresh.len()),
        };
        self.waits_for(case, &what).await?;
        let wait = trouble.and_then(|e| e.retry_after).unwrap_or_default().max(shared.limits.poll_every);
        Ok(Next::Wait(shared.real(wait.min(shared.limits.backoff_max))))
    }

    /// Describe machines and take in what is seen; gives the error of a provider that did not answer.
    async fn look_at(&self, case: &Case, intents: &[&IntentRow]) -> Result<Option<ProviderError>, StoreError> {
        let shared = &self.shared;
        let looks = shared.describe_all(intents.iter().copied()).await;
        let now = shared.now();
        let mut trouble = None;
        let mut tx = shared.begin().await?;
        for intent in intents {
            let look = looks.of(intent);
            if let Look::Failed(error) = look {
                trouble = Some(error.clone());
                continue;
            }
            let Some(mut row) = tx.intent(&intent.token).await? else { continue };
            if row.state != IntentState::Accepted {
                continue;
            }
            match look {
                Look::Seen(seen) => observe::observe(&mut row, seen.clone(), now),
                Look::Absent => {
                    observe::absent(&mut row, now, &shared.limits);
                }
                Look::NotAsked | Look::Failed(_) | Look::AbsentSomewhere => continue,
            }
            tx.update_intent(&row, IntentState::Accepted).await?;
        }
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(trouble)
    }

    async fn reload_attempt(&self, case: &Case) -> Result<Option<Vec<IntentRow>>, StoreError> {
        let mut tx = self.shared.ledger.read().await?;
        if !tx.holds(&self.lease).await? {
            return Ok(None);
        }
        let mut rows = tx.intents_of(&case.job.id).await?;
        rows.retain(|i| i.operation == case.operation.id && i.attempt == case.operation.attempt);
        Ok(Some(rows))
    }

    /// Since when all machines of a target are seen running; now, if they were not before. Forgotten with the process,
    /// which only means waiting once more.
    fn soaking_since(&self, now: chrono::DateTime<chrono::Utc>) -> chrono::DateTime<chrono::Utc> {
        *self.soaking.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(now)
    }

    fn soak_again(&self) {
        *self.soaking.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    /// All run at one look. Only if they still do after a while may the source go.
    async fn verify_again(&self, case: &Case) -> Result<Next, StoreError> {
        let mut operation = case.operation.clone();
        operation.phase = Phase::Verifying;
        operation.steps = steps(&case.plan, operation.kind, Some(operation.phase));
        format!("the target to have run for {} s", self.shared.limits.soak.as_secs())
            .clone_into(&mut operation.waiting_for);
        let mut tx = self.begin().await?;
        tx.update_operation(&operation, &self.lease).await?;
        self.shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Wait(self.shared.real(self.shared.limits.poll_every)))
    }

    /// Every node runs.
    async fn running(&self, case: &Case, fresh: &[IntentRow]) -> Result<Next, StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut operation = case.operation.clone();
        let who = (&case.job.id, case.job.name.as_str());
        let place = fresh.first().map_or_else(String::new, |i| inert(&i.offer.location().to_string()).into_owned());
        let mut tx = self.begin().await?;
        tx.end_attempt(&operation.id, operation.attempt, "runs", None, now).await?;
        let data = json!({ "operation": operation.id, "attempt": operation.attempt, "nodes": fresh.len() });
        if operation.kind == OperationKind::Migrate {
            operation.phase = Phase::Source;
            operation.steps = steps(&case.plan, operation.kind, Some(operation.phase));
            "the source to be gone".clone_into(&mut operation.waiting_for);
            tx.update_operation(&operation, &self.lease).await?;
            let text = format!(
                "the target in {place} has run for {} s; checkpoint, transfer and resume are done by the job's own command \
                 there, gpudeck has not seen into it. The source is released now",
                shared.limits.soak.as_secs()
            );
            tx.append_event(event(now, &operation.actor, EventKind::Migration, who, Some(&operation.plan), text, data))
                .await?;
            shared.commit(tx, Some(&case.job.id)).await?;
            return Ok(Next::Again);
        }
        operation.steps = steps(&case.plan, operation.kind, None);
        operation.reason.clear();
        operation.error = None;
        self.end(&mut tx, &mut operation, OperationState::Done, now).await?;
        let recovered = operation.kind == OperationKind::Recover;
        if let Some(mut job) = tx.job(&case.job.id).await? {
            if recovered {
                job.restarts += 1;
            }
            job.running_since = Some(now);
            tx.move_job(&mut job, JobState::Running, None, now).await?;
        }
        let (kind, text) = if recovered {
            (EventKind::Recovered, format!("runs again, in {place}"))
        } else {
            (EventKind::JobState, format!("runs in {place}"))
        };
        tx.append_event(event(now, &operation.actor, kind, who, Some(&operation.plan), text, data)).await?;
        tx.clear_alerts_of(&case.job.id, now).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Done)
    }
}

/// What names a machine to its provider.
pub(crate) fn reference(intent: &IntentRow) -> Option<InstanceRef> {
    let location = intent.location.clone().unwrap_or_else(|| intent.offer.location());
    intent.instance.clone().map(|id| InstanceRef { id, location })
}
