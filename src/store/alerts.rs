//! Alerts: what a person should look at, until the trouble is over or they say that they know.

use chrono::{DateTime, Utc};

use super::error::{Result, StoreError};
use super::events::NewEvent;
use super::ledger::Tx;
use super::row::{Columns, micros};
use crate::domain::JobId;

/// An alert that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRow {
    /// The event that raised it.
    pub seq: i64,
    /// What it is about; the same trouble has one key.
    pub key: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Which job.
    pub job: Option<JobId>,
    /// What it is.
    pub text: String,
    /// Who knows of it.
    pub acknowledged_by: Option<String>,
}

impl Tx {
    /// Raise an alert, unless the same trouble already has one; gives whether it is new.
    pub async fn raise_alert(&mut self, key: &str, event: NewEvent<'_>) -> Result<bool> {
        let known: i64 = sqlx::query_scalar("SELECT count(*) FROM alerts WHERE key = ? AND cleared_at IS NULL")
            .bind(key)
            .fetch_one(self.connection())
            .await?;
        if known > 0 {
            return Ok(false);
        }
        let (at, job, text) = (event.at, event.job.map(|(id, _)| id.as_str().to_owned()), event.text.clone());
        let seq = self.append_event(event).await?;
        sqlx::query("INSERT INTO alerts (seq, key, since, job, text) VALUES (?, ?, ?, ?, ?)")
            .bind(seq)
            .bind(key)
            .bind(micros(at))
            .bind(job)
            .bind(text)
            .execute(self.connection())
            .await?;
        Ok(true)
    }

    /// The trouble with this key is over; whether there was any.
    pub async fn clear_alert(&mut self, key: &str, now: DateTime<Utc>) -> Result<bool> {
        let cleared = sqlx::query("UPDATE alerts SET cleared_at = ? WHERE key = ? AND cleared_at IS NULL")
            .bind(micros(now))
            .bind(key)
            .execute(self.connection())
            .await?;
        Ok(cleared.rows_affected() > 0)
    }

    /// All trouble with a job is over.
    pub async fn clear_alerts_of(&mut self, job: &JobId, now: DateTime<Utc>) -> Result<()> {
        sqlx::query("UPDATE alerts SET cleared_at = ? WHERE job = ? AND cleared_at IS NULL")
            .bind(micros(now))
            .bind(job.as_str())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Somebody knows of it.
    pub async fn acknowledge_alert(&mut self, seq: i64, by: &str, note: &str, now: DateTime<Utc>) -> Result<()> {
        let changed = sqlx::query(
            "UPDATE alerts SET acknowledged_by = ?, acknowledged_at = ?, note = ? WHERE seq = ? AND cleared_at IS NULL",
        )
        .bind(by)
        .bind(micros(now))
        .bind(note)
        .bind(seq)
        .execute(self.connection())
        .await?
        .rows_affected();
        if changed == 0 {
            return Err(StoreError::Conflict(format!("there is no open alert with number {seq} (any more)")));
        }
        Ok(())
    }

    /// Alerts that are not over, oldest first.
    pub async fn alerts(&mut self) -> Result<Vec<AlertRow>> {
        let rows = sqlx::query("SELECT * FROM alerts WHERE cleared_at IS NULL ORDER BY seq")
            .fetch_all(self.connection())
            .await?;
        rows.iter()
            .map(|row| {
                Ok(AlertRow {
                    seq: row.value("seq")?,
                    key: row.value("key")?,
                    since: row.at("since")?,
                    job: row.value::<Option<String>>("job")?.map(JobId::from),
                    text: row.value("text")?,
                    acknowledged_by: row.value("acknowledged_by")?,
                })
            })
            .collect()
    }
}
