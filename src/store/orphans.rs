//! Machines under our mark that no job owns, as last seen.

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;

use super::error::Result;
use super::ledger::Tx;
use super::row::{Columns, json, micros};
use crate::domain::{Instance, InstanceId, ProviderId};

/// A machine under our mark that no job owns.
#[derive(Debug, Clone, PartialEq)]
pub struct OrphanRow {
    /// Its provider.
    pub provider: ProviderId,
    /// Whose account it was seen in; `None` where that could not be told.
    pub account: Option<String>,
    /// As last seen.
    pub seen: Instance,
    /// When it was first seen.
    pub first_seen_at: DateTime<Utc>,
    /// When it was last seen.
    pub last_seen_at: DateTime<Utc>,
    /// The first of the reads that did not find it, if the last one did not.
    pub absent_since: Option<DateTime<Utc>>,
    /// Since when it is to be terminated, by an operator's word.
    pub terminate_at: Option<DateTime<Utc>>,
    /// By whose.
    pub terminate_by: Option<String>,
    /// When it was proved gone, or was found to have an owner.
    pub gone_at: Option<DateTime<Utc>>,
}

fn read(row: &SqliteRow) -> Result<OrphanRow> {
    Ok(OrphanRow {
        provider: row.value::<String>("provider")?.into(),
        account: row.value("account")?,
        seen: row.json("seen")?,
        first_seen_at: row.at("first_seen_at")?,
        last_seen_at: row.at("last_seen_at")?,
        absent_since: row.maybe_at("absent_since")?,
        terminate_at: row.maybe_at("terminate_at")?,
        terminate_by: row.value("terminate_by")?,
        gone_at: row.maybe_at("gone_at")?,
    })
}

impl Tx {
    /// Write an orphan down, or what is known of it now.
    pub async fn put_orphan(&mut self, orphan: &OrphanRow) -> Result<()> {
        sqlx::query(
            "INSERT INTO orphans (provider, instance, seen, first_seen_at, last_seen_at, absent_since, terminate_at, terminate_by, gone_at, account) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (provider, instance) DO UPDATE SET seen = excluded.seen, \
             last_seen_at = excluded.last_seen_at, absent_since = excluded.absent_since, terminate_at = excluded.terminate_at, \
             terminate_by = excluded.terminate_by, gone_at = excluded.gone_at, account = excluded.account",
        )
        .bind(orphan.provider.as_str())
        .bind(orphan.seen.id.as_str())
        .bind(json(&orphan.seen)?)
        .bind(micros(orphan.first_seen_at))
        .bind(micros(orphan.last_seen_at))
        .bind(orphan.absent_since.map(micros))
        .bind(orphan.terminate_at.map(micros))
        .bind(orphan.terminate_by.as_deref())
        .bind(orphan.gone_at.map(micros))
        .bind(orphan.account.as_deref())
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Orphans that are not proved gone.
    pub async fn orphans(&mut self) -> Result<Vec<OrphanRow>> {
        let rows =
            sqlx::query("SELECT * FROM orphans WHERE gone_at IS NULL ORDER BY first_seen_at, provider, instance")
                .fetch_all(self.connection())
                .await?;
        rows.iter().map(read).collect()
    }

    /// One orphan, gone or not.
    pub async fn orphan(&mut self, provider: &ProviderId, instance: &InstanceId) -> Result<Option<OrphanRow>> {
        let row = sqlx::query("SELECT * FROM orphans WHERE provider = ? AND instance = ?")
            .bind(provider.as_str())
            .bind(instance.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }
}
