//! Jobs. Their state changes only along the table in [`crate::domain::job`], and only for the version that was read.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;

use super::error::{Result, StoreError};
use super::ledger::Tx;
use super::row::{Columns, json, micros};
use crate::domain::{JobId, JobSpec, JobState, PlanId};

/// A job as the ledger has it.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// What was asked for.
    pub spec: Arc<JobSpec>,
    /// Its state.
    pub state: JobState,
    /// Grows with every change.
    pub version: i64,
    /// Why it is in that state.
    pub note: Option<String>,
    /// The plan it was last acted on under.
    pub plan: Option<PlanId>,
    /// How often it was started again.
    pub restarts: u32,
    /// When it was written down.
    pub created_at: DateTime<Utc>,
    /// When it first ran.
    pub started_at: Option<DateTime<Utc>>,
    /// When what it runs on (or ran on last) began to run.
    pub running_since: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

/// Ids of jobs that have not ended, and of the latest so many that have.
macro_rules! recent {
    () => {
        "SELECT id FROM jobs WHERE state NOT IN ('succeeded', 'failed', 'terminated') UNION ALL \
         SELECT id FROM (SELECT id FROM jobs WHERE state IN ('succeeded', 'failed', 'terminated') \
         ORDER BY created_at DESC, id DESC LIMIT ?)"
    };
}
pub(super) use recent;

fn read(row: &SqliteRow) -> Result<JobRow> {
    let state: &str = row.value("state")?;
    Ok(JobRow {
        id: row.value::<String>("id")?.into(),
        name: row.value("name")?,
        spec: Arc::new(row.json("spec")?),
        state: JobState::parse(state).ok_or_else(|| StoreError::unreadable("a job's state", state))?,
        version: row.value("version")?,
        note: row.value("note")?,
        plan: row.value::<Option<String>>("plan")?.map(PlanId::from),
        restarts: row.count("restarts")?,
        created_at: row.at("created_at")?,
        started_at: row.maybe_at("started_at")?,
        running_since: row.maybe_at("running_since")?,
        ended_at: row.maybe_at("ended_at")?,
    })
}

impl Tx {
    /// Write a job down.
    pub async fn insert_job(&mut self, job: &JobRow) -> Result<()> {
        sqlx::query(
            "INSERT INTO jobs (id, name, spec, state, version, note, plan, restarts, created_at, started_at, ended_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(job.id.as_str())
        .bind(&job.name)
        .bind(json(&*job.spec)?)
        .bind(job.state.as_str())
        .bind(job.version)
        .bind(job.note.as_deref())
        .bind(job.plan.as_ref().map(PlanId::as_str))
        .bind(job.restarts)
        .bind(micros(job.created_at))
        .bind(job.started_at.map(micros))
        .bind(job.ended_at.map(micros))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// One job.
    pub async fn job(&mut self, id: &JobId) -> Result<Option<JobRow>> {
        let row =
            sqlx::query("SELECT * FROM jobs WHERE id = ?").bind(id.as_str()).fetch_optional(self.connection()).await?;
        row.as_ref().map(read).transpose()
    }

    /// Every job, newest first.
    pub async fn jobs(&mut self) -> Result<Vec<JobRow>> {
        let rows =
            sqlx::query("SELECT * FROM jobs ORDER BY created_at DESC, id DESC").fetch_all(self.connection()).await?;
        rows.iter().map(read).collect()
    }

    /// Jobs that have not ended, and the latest so many that have; newest first.
    pub async fn recent_jobs(&mut self, ended: u32) -> Result<Vec<JobRow>> {
        let rows =
            sqlx::query(concat!("SELECT * FROM jobs WHERE id IN (", recent!(), ") ORDER BY created_at DESC, id DESC"))
                .bind(ended)
                .fetch_all(self.connection())
                .await?;
        rows.iter().map(read).collect()
    }

    /// Jobs in this state, oldest first.
    pub async fn jobs_in(&mut self, state: JobState) -> Result<Vec<JobRow>> {
        let rows = sqlx::query("SELECT * FROM jobs WHERE state = ? ORDER BY created_at, id")
            .bind(state.as_str())
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Ids and names, for look-ups.
    pub async fn job_names(&mut self) -> Result<Vec<(JobId, String, JobState)>> {
        let rows = sqlx::query("SELECT id, name, state FROM jobs ORDER BY created_at DESC, id DESC")
            .fetch_all(self.connection())
            .await?;
        rows.iter()
            .map(|row| {
                let state: &str = row.value("state")?;
                let state = JobState::parse(state).ok_or_else(|| StoreError::unreadable("a job's state", state))?;
                Ok((row.value::<String>("id")?.into(), row.value("name")?, state))
            })
            .collect()
    }

    /// Change a job that is still at the version that was read; `job` then holds the new one.
    pub async fn update_job(&mut self, job: &mut JobRow) -> Result<()> {
        let changed = sqlx::query(
            "UPDATE jobs SET state = ?, version = version + 1, note = ?, plan = ?, restarts = ?, started_at = ?, \
             running_since = ?, ended_at = ? WHERE id = ? AND version = ?",
        )
        .bind(job.state.as_str())
        .bind(job.note.as_deref())
        .bind(job.plan.as_ref().map(PlanId::as_str))
        .bind(job.restarts)
        .bind(job.started_at.map(micros))
        .bind(job.running_since.map(micros))
        .bind(job.ended_at.map(micros))
        .bind(job.id.as_str())
        .bind(job.version)
        .execute(self.connection())
        .await?
        .rows_affected();
        if changed == 0 {
            return Err(StoreError::Conflict(format!("the job '{}' was changed by somebody else meanwhile", job.name)));
        }
        job.version += 1;
        Ok(())
    }

    /// Move a job along the table of states, at the version that was read.
    pub async fn move_job(
        &mut self,
        job: &mut JobRow,
        next: JobState,
        note: Option<String>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        job.state = job.state.to(next)?;
        job.note = note;
        if next == JobState::Running && job.started_at.is_none() {
            job.started_at = Some(now);
        }
        if next.is_final() {
            job.ended_at = Some(now);
        }
        self.update_job(job).await
    }

    /// Say why a job is as it is. Not a change of the job: its version stays, so that a plan shown meanwhile holds.
    pub async fn note_job(&mut self, job: &mut JobRow, note: Option<String>) -> Result<()> {
        if job.note == note {
            return Ok(());
        }
        job.note = note;
        sqlx::query("UPDATE jobs SET note = ? WHERE id = ?")
            .bind(job.note.as_deref())
            .bind(job.id.as_str())
            .execute(self.connection())
            .await?;
        Ok(())
    }
}
