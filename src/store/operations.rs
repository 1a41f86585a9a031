//! Operations and their leases, and the table of their attempts.

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;

use super::error::{Result, StoreError};
use super::ledger::Tx;
use super::row::{Columns, json, micros};
use crate::domain::{
    Actor, HourlyRate, JobId, Location, OfferKey, OperationId, OperationKind, PlanId, ProviderError, StepState,
};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// As written in the ledger.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text,)* } }
            pub(super) fn parse(text: &str) -> $crate::store::Result<Self> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err($crate::store::StoreError::unreadable(stringify!($name), text)),
                }
            }
        }
    };
}
pub(super) use words;

words!(
    /// Whether an operation goes on.
    OperationState {
        /// It goes on.
        Open = "open",
        /// It ended well.
        Done = "done",
        /// It ended without success; nothing of it is left.
        Failed = "failed",
        /// A terminate set it aside; that one sees to what it left.
        Cancelled = "cancelled",
    }
);

words!(
    /// What an operation is at. Everything else follows from its intents, so that it can be taken up at any point.
    Phase {
        /// What is left of the last allocation is released to proof.
        Releasing = "releasing",
        /// A place is chosen.
        Choosing = "choosing",
        /// Machines are asked for.
        Launching = "launching",
        /// They boot.
        Booting = "booting",
        /// They all ran at one look; a second is due.
        Verifying = "verifying",
        /// The target is verified; the source is released. No way back.
        Source = "source",
        /// The attempt failed: what it made is released to proof, then comes the next one.
        Cleaning = "cleaning",
        /// It gives up: what it made is released to proof, then it has failed.
        Quitting = "quitting",
        /// Everything that the job holds is released to proof.
        Removing = "removing",
    }
);

/// An operation as the ledger has it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationRow {
    /// Its id.
    pub id: OperationId,
    /// Whose.
    pub job: JobId,
    /// What it does.
    pub kind: OperationKind,
    /// Under which plan.
    pub plan: PlanId,
    /// Whether it goes on.
    pub state: OperationState,
    /// What it is at.
    pub phase: Phase,
    /// How far each step of the plan is.
    pub steps: Vec<StepState>,
    /// Who asked for it.
    pub actor: Actor,
    /// The attempt it is at, from 1; 0 before the first.
    pub attempt: u32,
    /// The most that all its machines together may cost an hour; `None`: only the job's own limit holds.
    pub ceiling: Option<HourlyRate>,
    /// Where it must go, as the operator said.
    pub target: Option<Location>,
    /// What it waits for, in words.
    pub waiting_for: String,
    /// Why it failed (or will, once it has cleaned up).
    pub reason: String,
    /// The provider's last refusal.
    pub error: Option<ProviderError>,
    /// The terminate that set it aside.
    pub cancelled_by: Option<OperationId>,
    /// Who drives it.
    pub lease_holder: Option<String>,
    /// Until when that is believed.
    pub lease_until: Option<DateTime<Utc>>,
    /// Grows with every change of the holder.
    pub fence: i64,
    /// Since when.
    pub created_at: DateTime<Utc>,
    /// Until when.
    pub ended_at: Option<DateTime<Utc>>,
}

/// The right to drive an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which.
    pub operation: OperationId,
    /// Who.
    pub holder: String,
    /// With this fence; once another holds it, nothing under this one is written.
    pub fence: i64,
}

/// An attempt at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRow {
    /// Its number.
    pub attempt: u32,
    /// The offer of its first node.
    pub offer: OfferKey,
    /// What became of it; empty while it goes on.
    pub result: String,
    /// The provider's error, where there was one.
    pub error: Option<ProviderError>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

fn read(row: &SqliteRow) -> Result<OperationRow> {
    let kind: &str = row.value("kind")?;
    let kind = [OperationKind::Launch, OperationKind::Recover, OperationKind::Migrate, OperationKind::Terminate]
        .into_iter()
        .find(|k| k.as_str() == kind)
        .ok_or_else(|| StoreError::unreadable("an operation's kind", kind))?;
    Ok(OperationRow {
        id: row.value::<String>("id")?.into(),
        job: row.value::<String>("job")?.into(),
        kind,
        plan: row.value::<String>("plan")?.into(),
        state: OperationState::parse(row.value("state")?)?,
        phase: Phase::parse(row.value("phase")?)?,
        steps: row.json("steps")?,
        actor: row.json("actor")?,
        attempt: row.count("attempt")?,
        ceiling: row.value::<Option<i64>>("ceiling")?.map(HourlyRate::from_micros),
        target: row.maybe_json("target")?,
        waiting_for: row.value("waiting_for")?,
        reason: row.value("reason")?,
        error: row.maybe_json("error")?,
        cancelled_by: row.value::<Option<String>>("cancelled_by")?.map(OperationId::from),
        lease_holder: row.value("lease_holder")?,
        lease_until: row.maybe_at("lease_until")?,
        fence: row.value("fence")?,
        created_at: row.at("created_at")?,
        ended_at: row.maybe_at("ended_at")?,
    })
}

impl Tx {
    /// Write an operation down. Refused where the job already has an open one.
    pub async fn insert_operation(&mut self, operation: &OperationRow) -> Result<()> {
        if let Some(open) = self.open_operation(&operation.job).await? {
            return Err(StoreError::Conflict(format!(
                "a {} by {} is under way since {}",
                open.kind.as_str(),
                open.actor,
                open.created_at.format("%Y-%m-%dT%H:%M:%SZ")
            )));
        }
        sqlx::query(
            "INSERT INTO operations (id, job, kind, plan, confirmed, state, phase, steps, actor, attempt, ceiling, target, \
             waiting_for, reason, error, cancelled_by, lease_holder, lease_until, fence, created_at, ended_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(operation.id.as_str())
        .bind(operation.job.as_str())
        .bind(operation.kind.as_str())
        .bind(operation.plan.as_str())
        .bind(operation.plan.as_str())
        .bind(operation.state.as_str())
        .bind(operation.phase.as_str())
        .bind(json(&operation.steps)?)
        .bind(json(&operation.actor)?)
        .bind(operation.attempt)
        .bind(operation.ceiling.map(HourlyRate::micros))
        .bind(operation.target.as_ref().map(json).transpose()?)
        .bind(&operation.waiting_for)
        .bind(&operation.reason)
        .bind(operation.error.as_ref().map(json).transpose()?)
        .bind(operation.cancelled_by.as_ref().map(OperationId::as_str))
        .bind(operation.lease_holder.as_deref())
        .bind(operation.lease_until.map(micros))
        .bind(operation.fence)
        .bind(micros(operation.created_at))
        .bind(operation.ended_at.map(micros))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// One operation.
    pub async fn operation(&mut self, id: &OperationId) -> Result<Option<OperationRow>> {
        let row = sqlx::query("SELECT * FROM operations WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The operation that was begun under this plan, and its job.
    pub async fn operation_of_plan(&mut self, plan: &PlanId) -> Result<Option<(JobId, OperationId)>> {
        let row = sqlx::query("SELECT id, job FROM operations WHERE confirmed = ?")
            .bind(plan.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.map(|r| Ok((r.value::<String>("job")?.into(), r.value::<String>("id")?.into()))).transpose()
    }

    /// The open operation of a job.
    pub async fn open_operation(&mut self, job: &JobId) -> Result<Option<OperationRow>> {
        let row = sqlx::query("SELECT * FROM operations WHERE job = ? AND state = 'open'")
            .bind(job.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// Every open operation, oldest first.
    pub async fn open_operations(&mut self) -> Result<Vec<OperationRow>> {
        let rows = sqlx::query("SELECT * FROM operations WHERE state = 'open' ORDER BY created_at, id")
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Operations of a job, oldest first.
    pub async fn operations_of(&mut self, job: &JobId) -> Result<Vec<OperationRow>> {
        let rows = sqlx::query("SELECT * FROM operations WHERE job = ? ORDER BY created_at, id")
            .bind(job.as_str())
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Change an operation under a lease that still holds.
    pub async fn update_operation(&mut self, operation: &OperationRow, lease: &Lease) -> Result<()> {
        let changed = sqlx::query(
            "UPDATE operations SET plan = ?, state = ?, phase = ?, steps = ?, attempt = ?, waiting_for = ?, reason = ?, \
             error = ?, ended_at = ? WHERE id = ? AND fence = ? AND lease_holder = ? AND state = 'open'",
        )
        .bind(operation.plan.as_str())
        .bind(operation.state.as_str())
        .bind(operation.phase.as_str())
        .bind(json(&operation.steps)?)
        .bind(operation.attempt)
        .bind(&operation.waiting_for)
        .bind(&operation.reason)
        .bind(operation.error.as_ref().map(json).transpose()?)
        .bind(operation.ended_at.map(micros))
        .bind(operation.id.as_str())
        .bind(lease.fence)
        .bind(&lease.holder)
        .execute(self.connection())
        .await?
        .rows_affected();
        if changed == 0 {
            return Err(StoreError::Conflict("the lease on the operation is lost".into()));
        }
        Ok(())
    }

    /// Set a job's open operation aside for a terminate. Whoever drives it stops at its next write.
    pub async fn cancel_operation(&mut self, id: &OperationId, by: &OperationId, now: DateTime<Utc>) -> Result<()> {
        sqlx::query(
            "UPDATE operations SET state = 'cancelled', cancelled_by = ?, ended_at = ?, fence = fence + 1, lease_holder = NULL, \
             lease_until = NULL, waiting_for = '' WHERE id = ? AND state = 'open'",
        )
        .bind(by.as_str())
        .bind(micros(now))
        .bind(id.as_str())
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Take the right to drive an operation, where nobody else holds it now, or `dead` does.
    pub async fn take_lease(
        &mut self,
        id: &OperationId,
        holder: &str,
        dead: Option<&str>,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<Lease>> {
        let row = sqlx::query(
            "UPDATE operations SET lease_holder = ?, lease_until = ?, fence = fence + 1 WHERE id = ? AND state = 'open' \
             AND (lease_holder IS NULL OR lease_until <= ? OR lease_holder = ?) RETURNING fence",
        )
        .bind(holder)
        .bind(micros(until))
        .bind(id.as_str())
        .bind(micros(now))
        .bind(dead)
        .fetch_optional(self.connection())
        .await?;
        row.map(|r| Ok(Lease { operation: id.clone(), holder: holder.to_owned(), fence: r.value("fence")? }))
            .transpose()
    }

    /// Hold it longer; `false` where another has it, or it has ended.
    pub async fn renew_lease(&mut self, lease: &Lease, until: DateTime<Utc>) -> Result<bool> {
        let changed = sqlx::query(
            "UPDATE operations SET lease_until = ? WHERE id = ? AND fence = ? AND lease_holder = ? AND state = 'open'",
        )
        .bind(micros(until))
        .bind(lease.operation.as_str())
        .bind(lease.fence)
        .bind(&lease.holder)
        .execute(self.connection())
        .await?
        .rows_affected();
        Ok(changed > 0)
    }

    /// Whether a lease still holds. In a write transaction the answer stays true until its end.
    pub async fn holds(&mut self, lease: &Lease) -> Result<bool> {
        let n: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM operations WHERE id = ? AND fence = ? AND lease_holder = ? AND state = 'open'",
        )
        .bind(lease.operation.as_str())
        .bind(lease.fence)
        .bind(&lease.holder)
        .fetch_one(self.connection())
        .await?;
        Ok(n > 0)
    }

    /// Give every lease of a holder back.
    pub async fn release_leases(&mut self, holder: &str) -> Result<()> {
        sqlx::query("UPDATE operations SET lease_holder = NULL, lease_until = NULL, fence = fence + 1 WHERE lease_holder = ? AND state = 'open'")
            .bind(holder)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// An attempt begins.
    pub async fn insert_attempt(&mut self, operation: &OperationId, attempt: &AttemptRow) -> Result<()> {
        sqlx::query("INSERT INTO attempts (operation, attempt, offer, result, error, started_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?)")
            .bind(operation.as_str())
            .bind(attempt.attempt)
            .bind(json(&attempt.offer)?)
            .bind(&attempt.result)
            .bind(attempt.error.as_ref().map(json).transpose()?)
            .bind(micros(attempt.started_at))
            .bind(attempt.ended_at.map(micros))
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// An attempt has ended, with this.
    pub async fn end_attempt(
        &mut self,
        operation: &OperationId,
        attempt: u32,
        result: &str,
        error: Option<&ProviderError>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        sqlx::query("UPDATE attempts SET result = ?, error = ?, ended_at = ? WHERE operation = ? AND attempt = ? AND ended_at IS NULL")
            .bind(result)
            .bind(error.map(json).transpose()?)
            .bind(micros(now))
            .bind(operation.as_str())
            .bind(attempt)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Forget attempts before this one that made nothing: their wishes were refused or never sent. What was made stays.
    pub async fn prune_attempts(&mut self, operation: &OperationId, before: u32) -> Result<()> {
        sqlx::query(
            "DELETE FROM intents WHERE operation = ? AND attempt < ? AND state IN ('refused', 'absent', 'cancelled')",
        )
        .bind(operation.as_str())
        .bind(before)
        .execute(self.connection())
        .await?;
        sqlx::query(
            "DELETE FROM attempts WHERE operation = ? AND attempt < ? AND ended_at IS NOT NULL AND NOT EXISTS \
             (SELECT 1 FROM intents i WHERE i.operation = attempts.operation AND i.attempt = attempts.attempt)",
        )
        .bind(operation.as_str())
        .bind(before)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The attempts of an operation in order.
    pub async fn attempts(&mut self, operation: &OperationId) -> Result<Vec<AttemptRow>> {
        let rows = sqlx::query("SELECT * FROM attempts WHERE operation = ? ORDER BY attempt")
            .bind(operation.as_str())
            .fetch_all(self.connection())
            .await?;
        rows.iter()
            .map(|row| {
                Ok(AttemptRow {
                    attempt: row.count("attempt")?,
                    offer: row.json("offer")?,
                    result: row.value("result")?,
                    error: row.maybe_json("error")?,
                    started_at: row.at("started_at")?,
                    ended_at: row.maybe_at("ended_at")?,
                })
            })
            .collect()
    }
}
