//! Questions to the ledger: jobs by name, events, outcomes, costs.

use super::EngineError;
use super::jobview::{Best, JobRecord, job_view};
use super::report::{Attempt, ChainReport, CostLine, EventFilter, Outcome};
use super::shared::Shared;
use super::timer;
use super::view::JobView;
use crate::domain::text::inert;
use crate::domain::{Event, JobId, JobState, OperationId, Plan, PlanId};
use crate::store::{EventQuery, OperationState, StoreError};

impl Shared {
    /// Which job is meant: an id, the beginning of one, or a name. Of several jobs of one name the live one is.
    pub(crate) async fn find_job(&self, text: &str) -> Result<JobId, EngineError> {
        let names = async {
            let mut tx = self.ledger.read().await?;
            tx.job_names().await
        };
        let names = names.await.map_err(|e| self.ledger_error(e))?;
        if let Some((id, ..)) = names.iter().find(|(id, ..)| id.as_str() == text) {
            return Ok(id.clone());
        }
        let named: Vec<&(JobId, String, JobState)> = names.iter().filter(|(_, name, _)| name == text).collect();
        let live: Vec<&&(JobId, String, JobState)> = named.iter().filter(|(_, _, state)| !state.is_final()).collect();
        match (live.as_slice(), named.as_slice()) {
            ([one], _) => return Ok(one.0.clone()),
            // All have ended: the newest, which comes first.
            ([], [newest, ..]) => return Ok(newest.0.clone()),
            ([_, _, ..], _) => return Err(ambiguous(text, live.iter().map(|j| **j))),
            ([], []) => {}
        }
        let begun: Vec<&(JobId, String, JobState)> =
            names.iter().filter(|(id, ..)| text.len() >= 4 && id.as_str().starts_with(text)).collect();
        match begun.as_slice() {
            [one] => Ok(one.0.clone()),
            [] => Err(EngineError::NotFound(unknown(text, &names))),
            several => Err(ambiguous(text, several.iter().copied())),
        }
    }

    pub(crate) async fn job_by(&self, text: &str) -> Result<JobView, EngineError> {
        let id = self.find_job(text).await?;
        Ok(self.view(&self.record(&id).await?))
    }

    pub(crate) fn view(&self, record: &JobRecord) -> JobView {
        let now = self.now();
        let state = self.state.borrow().clone();
        let known = state.jobs.iter().find(|j| j.id == record.job.id);
        let best = known
            .map(|j| Best { usd_per_hour: j.best_usd_per_hour, move_saves: j.move_saves, at: None })
            .unwrap_or_default();
        job_view(record, &state.market, best, now)
    }

    pub(crate) async fn all_jobs(&self) -> Result<Vec<JobView>, EngineError> {
        let read = async {
            let mut tx = self.ledger.read().await?;
            JobRecord::read_recent(&mut tx, u32::MAX).await
        };
        let records = read.await.map_err(|e| self.ledger_error(e))?;
        let mut jobs: Vec<JobView> = records.iter().map(|r| self.view(r)).collect();
        // Stable: newest first within each.
        jobs.sort_by_key(|j| j.state.is_final());
        Ok(jobs)
    }

    pub(crate) async fn events_by(&self, filter: &EventFilter) -> Result<Vec<Event>, EngineError> {
        let query = EventQuery {
            job: filter.job.clone(),
            since: filter.since,
            after: filter.after,
            kind: filter.kind,
            limit: filter.limit,
        };
        let read = async { self.ledger.read().await?.events(&query).await };
        read.await.map_err(|e| self.ledger_error(e))
    }

    pub(crate) async fn plan_by(&self, id: &PlanId) -> Result<Option<Plan>, EngineError> {
        let read = async { self.ledger.read().await?.plan(id).await };
        read.await.map_err(|e| self.ledger_error(e))
    }

    pub(crate) async fn outcome_of(&self, id: &OperationId) -> Result<Outcome, EngineError> {
        let read = async {
            let mut tx = self.ledger.read().await?;
            let operation = tx.operation(id).await?;
            let attempts = tx.attempts(id).await?;
            Ok::<_, StoreError>((operation, attempts))
        };
        let (operation, attempts) = read.await.map_err(|e| self.ledger_error(e))?;
        let Some(operation) = operation else {
            return Err(EngineError::NotFound(format!("there is no operation '{}'", inert(id.as_str()))));
        };
        let ended = operation.state != OperationState::Open;
        Ok(Outcome {
            kind: operation.kind,
            ended,
            done: operation.state == OperationState::Done,
            reason: match operation.state {
                OperationState::Open => operation.waiting_for,
                OperationState::Cancelled => "set aside by a terminate".to_owned(),
                OperationState::Done | OperationState::Failed => operation.reason,
            },
            error: operation.error,
            attempts: attempts
                .into_iter()
                .map(|a| Attempt {
                    number: a.attempt,
                    location: a.offer.location(),
                    instance_type: a.offer.instance_type.clone(),
                    purchase: a.offer.purchase,
                    at: a.started_at,
                    result: if a.ended_at.is_none() { "under way".to_owned() } else { a.result },
                    error: a.error,
                })
                .collect(),
        })
    }

    pub(crate) async fn costs_of(&self, job: &JobId) -> Result<Vec<CostLine>, EngineError> {
        let record = self.record(job).await?;
        let now = self.now();
        Ok(record
            .intents
            .iter()
            .filter(|i| i.state.may_bill() || i.gone_at.is_some())
            .map(|i| CostLine {
                instance: i.instance.clone(),
                location: i.location.clone().unwrap_or_else(|| i.offer.location()),
                instance_type: i.offer.instance_type.clone(),
                purchase: i.offer.purchase,
                bound_price: i.bound_price,
                from: i.sent_at.unwrap_or(i.intended_at),
                until: i.gone_at,
                usd: i.cost(now),
                proved: i.instance.is_some(),
            })
            .collect())
    }

    pub(crate) async fn chain(&self) -> Result<ChainReport, EngineError> {
        let read = async { self.ledger.read().await?.verify_chain().await };
        let check = read.await.map_err(|e| self.ledger_error(e))?;
        Ok(ChainReport { events: check.events, head: check.head, broken: check.broken })
    }

    /// Wait for the end of an operation, whoever drives it.
    pub(crate) async fn settle_on(&self, id: &OperationId) -> Result<JobView, EngineError> {
        let mut written = self.written.subscribe();
        loop {
            written.mark_unchanged();
            let read = async { self.ledger.read().await?.operation(id).await };
            let Some(operation) = read.await.map_err(|e| self.ledger_error(e))? else {
                return Err(EngineError::NotFound(format!("there is no operation '{}'", inert(id.as_str()))));
            };
            if operation.state != OperationState::Open {
                return Ok(self.view(&self.record(&operation.job).await?));
            }
            // Another process writes without our hearing of it.
            let ours = operation.lease_holder.as_deref() == Some(self.holder.as_str());
            let pace = if ours { self.limits.lease / 3 } else { self.limits.follow_every };
            let _ = timer::within(pace, written.changed()).await;
        }
    }
}

fn ambiguous<'a>(text: &str, jobs: impl Iterator<Item = &'a (JobId, String, JobState)>) -> EngineError {
    let list: Vec<String> = jobs.map(|(id, name, state)| format!("{} {id} ({state})", inert(name))).collect();
    EngineError::NotFound(format!("'{}' fits several jobs; say which id: {}", inert(text), list.join(", ")))
}

fn unknown(text: &str, names: &[(JobId, String, JobState)]) -> String {
    let near = names
        .iter()
        .map(|(_, name, _)| (strsim::damerau_levenshtein(text, name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(3) / 3))
        .min();
    match near {
        Some((_, name)) => format!("there is no job '{}'; did you mean '{}'?", inert(text), inert(name)),
        None => format!("there is no job '{}'; `gpudeck jobs --all` lists them", inert(text)),
    }
}
