//! Drives one operation to its end. Each step reads the operation from the ledger, does the one next thing and writes
//! what came of it; nothing is remembered between steps but when to try again. So a driver can stop at any point, and
//! another process goes on from the ledger alone.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use super::shared::Shared;
use super::timer;
use crate::domain::{
    Actor, ErrorClass, EventKind, JobId, OfferKey, OperationKind, Plan, PlanId, ProviderError, StepAction, StepState,
};
use crate::store::{
    AttemptRow, IntentRow, JobRow, Lease, NewEvent, OperationRow, OperationState, Phase, StoreError, Tx,
};

/// What comes after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next step, now.
    Again,
    /// The next step after so long in real time, or when woken.
    Wait(Duration),
    /// It has ended, or another drives it.
    Done,
}

/// All that the ledger knows of an operation, at one moment.
pub(crate) struct Case {
    pub(crate) operation: OperationRow,
    pub(crate) job: JobRow,
    pub(crate) plan: Plan,
    /// Every intent of the job.
    pub(crate) intents: Vec<IntentRow>,
}

impl Case {
    /// Intents of the attempt that the operation is at.
    pub(crate) fn attempt(&self) -> impl Iterator<Item = &IntentRow> {
        self.intents.iter().filter(|i| i.operation == self.operation.id && i.attempt == self.operation.attempt)
    }

    /// What other operations left that is not closed: the source of a migration, the rest of a preempted gang.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = &IntentRow> {
        self.intents.iter().filter(|i| i.operation != self.operation.id && !i.state.is_closed())
    }

    /// Whether an attempt was refused for want of stock or quota before anything was made of it.
    pub(crate) fn was_sold_out(&self, attempt: &AttemptRow) -> bool {
        let refused = |e: &ProviderError| matches!(e.class, ErrorClass::NoCapacity | ErrorClass::Quota);
        attempt.error.as_ref().is_some_and(refused)
            && !self
                .intents
                .iter()
                .any(|i| i.operation == self.operation.id && i.attempt == attempt.attempt && i.instance.is_some())
    }

    /// Where an attempt asked.
    pub(crate) fn offers_of(&self, attempt: &AttemptRow) -> BTreeSet<&OfferKey> {
        self.intents
            .iter()
            .filter(|i| i.operation == self.operation.id && i.attempt == attempt.attempt)
            .map(|i| &i.offer)
            .collect()
    }

    /// What this operation made and that is not closed.
    pub(crate) fn own_open(&self) -> impl Iterator<Item = &IntentRow> {
        self.intents.iter().filter(|i| i.operation == self.operation.id && !i.state.is_closed())
    }
}

/// When to call again, by token; forgotten with the process, which only means calling once more.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Recall {
    pub(crate) tries: u32,
    pub(crate) not_before: Option<DateTime<Utc>>,
}

/// The driver of one operation.
pub(crate) struct Driver {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lease: Lease,
    wake: Arc<Notify>,
    recalls: Mutex<HashMap<String, Recall>>,
    pub(crate) dry_tries: Mutex<u32>,
    pub(crate) soaking: Mutex<Option<DateTime<Utc>>>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, lease: Lease) -> Self {
        let wake = shared.wake_of(&lease.operation);
        Self { shared, lease, wake, recalls: Mutex::default(), dry_tries: Mutex::default(), soaking: Mutex::default() }
    }

    /// Start it as a task of its own.
    pub(crate) fn spawn(shared: &Arc<Shared>, lease: Lease) {
        let driver = Self::new(shared.clone(), lease);
        let stop = shared.stop.clone();
        shared.tasks.spawn(async move {
            let operation = driver.lease.operation.clone();
            let shared = driver.shared.clone();
            tokio::select! {
                () = driver.run() => {}
                () = stop.cancelled() => {}
            }
            shared.forget_wake(&operation);
        });
    }

    async fn run(&self) {
        let mut faults = 0_u32;
        loop {
            let next = match self.step().await {
                Ok(next) => {
                    faults = 0;
                    next
                }
                // Somebody else decided on the same thing: read again, then go on from there.
                Err(StoreError::Conflict(what)) => {
                    tracing::debug!(operation = %self.lease.operation, what, "read again after a conflict");
                    faults += 1;
                    if faults > 20 { Next::Wait(self.shared.limits.follow_every) } else { Next::Again }
                }
                Err(error) => {
                    tracing::error!(operation = %self.lease.operation, %error, "the ledger cannot be used; trying again");
                    faults += 1;
                    Next::Wait(Duration::from_secs(1).saturating_mul(faults.min(30)))
                }
            };
            match next {
                Next::Again => {}
                Next::Wait(real) => {
                    if !self.pause(real).await {
                        return;
                    }
                }
                Next::Done => return,
            }
        }
    }

    /// Wait so long, or until woken, holding the lease; `false` where it is lost.
    async fn pause(&self, real: Duration) -> bool {
        let piece = self.shared.limits.lease / 3;
        let mut left = real;
        loop {
            let now = left.min(piece);
            let woken = tokio::select! {
                () = self.wake.notified() => true,
                () = timer::wait(now) => false,
            };
            left = left.saturating_sub(now);
            if woken || left.is_zero() {
                return true;
            }
            if !self.renew().await {
                return false;
            }
        }
    }

    async fn renew(&self) -> bool {
        let until = self.shared.lease_until(self.shared.now());
        let renewed = async {
            let mut tx = self.shared.begin().await?;
            let held = tx.renew_lease(&self.lease, until).await?;
            tx.commit().await?;
            Ok::<_, StoreError>(held)
        };
        // A ledger that cannot be written just now does not end the lease; the next step looks again.
        renewed.await.unwrap_or(true)
    }

    async fn step(&self) -> Result<Next, StoreError> {
        let Some(case) = self.load().await? else { return Ok(Next::Done) };
        match case.operation.phase {
            Phase::Releasing => self.release(&case).await,
            Phase::Choosing => self.choose(&case).await,
            Phase::Launching => self.launch(&case).await,
            Phase::Booting | Phase::Verifying => self.boot(&case).await,
            Phase::Source => self.release_source(&case).await,
            Phase::Cleaning | Phase::Quitting => self.clean(&case).await,
            Phase::Removing => self.remove_all(&case).await,
        }
    }

    /// The case as it is now; `None` where it has ended or another drives it. Renews the lease when a third is used.
    async fn load(&self) -> Result<Option<Case>, StoreError> {
        let now = self.shared.now();
        let mut tx = self.shared.ledger.read().await?;
        if !tx.holds(&self.lease).await? {
            return Ok(None);
        }
        let Some(operation) = tx.operation(&self.lease.operation).await? else { return Ok(None) };
        let Some(job) = tx.job(&operation.job).await? else { return Ok(None) };
        let Some(plan) = tx.plan(&operation.plan).await? else {
            return Err(StoreError::Corrupt { detail: format!("the plan {} is missing", operation.plan) });
        };
        let intents = tx.intents_of(&operation.job).await?;
        drop(tx);
        let full = self.shared.lease_until(now) - now;
        if operation.lease_until.is_none_or(|until| until - now < full * 2 / 3) && !self.renew().await {
            return Ok(None);
        }
        Ok(Some(Case { operation, job, plan, intents }))
    }

    /// Begin to write under the lease: what follows is written only while nobody else drives this.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        let mut tx = self.shared.begin().await?;
        if tx.holds(&self.lease).await? {
            Ok(tx)
        } else {
            Err(StoreError::Conflict("the lease on the operation is lost".into()))
        }
    }

    pub(crate) fn recall(&self, token: &str) -> Recall {
        let recalls = self.recalls.lock().unwrap_or_else(PoisonError::into_inner);
        recalls.get(token).copied().unwrap_or_default()
    }

    pub(crate) fn set_recall(&self, token: &str, recall: Recall) {
        self.recalls.lock().unwrap_or_else(PoisonError::into_inner).insert(token.to_owned(), recall);
    }

    /// Say what the operation waits for; writes only where that is new.
    pub(crate) async fn waits_for(&self, case: &Case, what: &str) -> Result<(), StoreError> {
        if case.operation.waiting_for == what {
            return Ok(());
        }
        let mut operation = case.operation.clone();
        what.clone_into(&mut operation.waiting_for);
        let mut tx = self.begin().await?;
        tx.update_operation(&operation, &self.lease).await?;
        self.shared.commit(tx, Some(&case.job.id)).await
    }

    /// Say on the job why it is as it is; writes only where that is new.
    pub(crate) async fn note(&self, case: &Case, note: &str) -> Result<(), StoreError> {
        if case.job.note.as_deref() == Some(note) {
            return Ok(());
        }
        let mut tx = self.begin().await?;
        if let Some(mut job) = tx.job(&case.job.id).await? {
            tx.note_job(&mut job, Some(note.to_owned())).await?;
        }
        self.shared.commit(tx, Some(&case.job.id)).await
    }

    /// The operation ends.
    pub(crate) async fn end(
        &self,
        tx: &mut Tx,
        operation: &mut OperationRow,
        state: OperationState,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        operation.state = state;
        operation.ended_at = Some(now);
        operation.waiting_for.clear();
        tx.update_operation(operation, &self.lease).await
    }
}

/// The steps of a plan as far as a phase shows them: what is before it is done, what it is at is intended.
pub(crate) fn steps(plan: &Plan, kind: OperationKind, phase: Option<Phase>) -> Vec<StepState> {
    let rank = |action: StepAction| match action {
        StepAction::Check => 0,
        StepAction::Launch => 1,
        // Without an agent on the machine these are the job's own: its command goes on from its checkpoint.
        StepAction::Checkpoint | StepAction::Transfer | StepAction::Resume => 2,
        StepAction::Verify => 3,
        StepAction::Terminate => 4,
    };
    let reached = match (kind, phase) {
        (_, None) => 5,
        (OperationKind::Terminate, Some(_)) | (_, Some(Phase::Source | Phase::Removing)) => 4,
        (_, Some(Phase::Releasing | Phase::Choosing)) => 0,
        (_, Some(Phase::Launching | Phase::Cleaning | Phase::Quitting)) => 1,
        (_, Some(Phase::Booting)) => 2,
        (_, Some(Phase::Verifying)) => 3,
    };
    plan.steps
        .iter()
        .map(|step| match rank(step.action).cmp(&reached) {
            // Whether the job's own command has done its part is not seen from here.
            std::cmp::Ordering::Less if rank(step.action) == 2 => StepState::Unknown,
            std::cmp::Ordering::Less => StepState::Done,
            std::cmp::Ordering::Equal => StepState::Intended,
            std::cmp::Ordering::Greater => StepState::Planned,
        })
        .collect()
}

/// An event on a job.
pub(crate) fn event<'a>(
    at: DateTime<Utc>,
    actor: &'a Actor,
    kind: EventKind,
    job: (&'a JobId, &'a str),
    plan: Option<&'a PlanId>,
    text: impl Into<String>,
    data: serde_json::Value,
) -> NewEvent<'a> {
    NewEvent { at, actor, kind, job: Some(job), plan, text: text.into(), data }
}
