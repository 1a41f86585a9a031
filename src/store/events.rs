//! The append-only record. Each entry carries the hash of the one before it, so that a changed or missing entry shows.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Sqlite};

use super::error::Result;
use super::ledger::Tx;
use super::row::{Columns, json, micros, parse};
use crate::domain::{Actor, Event, EventKind, JobId, PlanId};

/// The hash before the first entry.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// An event before it has a number.
#[derive(Debug, Clone)]
pub struct NewEvent<'a> {
    /// When.
    pub at: DateTime<Utc>,
    /// Who.
    pub actor: &'a Actor,
    /// What.
    pub kind: EventKind,
    /// Which job: its id and its name at that time.
    pub job: Option<(&'a JobId, &'a str)>,
    /// Under which plan.
    pub plan: Option<&'a PlanId>,
    /// A sentence for people.
    pub text: String,
    /// Figures and codes for programs.
    pub data: serde_json::Value,
}

/// Which events.
#[derive(Debug, Clone, Default)]
pub struct EventQuery {
    /// Only of this job.
    pub job: Option<JobId>,
    /// Only from then on.
    pub since: Option<DateTime<Utc>>,
    /// Only after this number.
    pub after: Option<i64>,
    /// Only of this kind.
    pub kind: Option<EventKind>,
    /// The latest so many.
    pub limit: Option<u32>,
}

/// What a check of the chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCheck {
    /// Entries checked.
    pub events: u64,
    /// The hash of the last.
    pub head: String,
    /// The first that does not fit, and why.
    pub broken: Option<(i64, String)>,
}

struct Entry<'a> {
    seq: i64,
    at: i64,
    actor: &'a str,
    kind: &'a str,
    job: Option<&'a str>,
    job_name: Option<&'a str>,
    plan: Option<&'a str>,
    text: &'a str,
    data: &'a str,
}

impl Entry<'_> {
    /// SHA-256 over the previous hash and every column, each with its length, so that no two entries run together.
    fn hash(&self, previous: &str) -> String {
        let mut hasher = Sha256::new();
        let mut part = |text: Option<&str>| match text {
            Some(text) => {
                hasher.update((text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
            None => hasher.update(u64::MAX.to_le_bytes()),
        };
        part(Some(previous));
        part(Some(&self.seq.to_string()));
        part(Some(&self.at.to_string()));
        part(Some(self.actor));
        part(Some(self.kind));
        part(self.job);
        part(self.job_name);
        part(self.plan);
        part(Some(self.text));
        part(Some(self.data));
        let mut out = String::with_capacity(64);
        for byte in hasher.finalize() {
            let _ = write!(out, "{byte:02x}");
        }
        out
    }
}

fn read(row: &SqliteRow) -> Result<Event> {
    let kind: &str = row.value("kind")?;
    Ok(Event {
        seq: row.value("seq")?,
        at: row.at("at")?,
        actor: row.json("actor")?,
        kind: parse("an event's kind", &format!("\"{kind}\""))?,
        job: row.value::<Option<String>>("job")?.map(JobId::from),
        job_name: row.value("job_name")?,
        plan: row.value::<Option<String>>("plan")?.map(PlanId::from),
        text: row.value("text")?,
        data: row.json("data")?,
    })
}

impl Tx {
    /// Append an event; gives its number.
    pub async fn append_event(&mut self, event: NewEvent<'_>) -> Result<i64> {
        let last = sqlx::query("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")
            .fetch_optional(self.connection())
            .await?;
        let (seq, previous) = match &last {
            Some(row) => (row.value::<i64>("seq")? + 1, row.value::<String>("hash")?),
            None => (1, GENESIS.to_owned()),
        };
        let actor = json(event.actor)?;
        let data = json(&event.data)?;
        let columns = Entry {
            seq,
            at: micros(event.at),
            actor: &actor,
            kind: event.kind.as_str(),
            job: event.job.map(|(id, _)| id.as_str()),
            job_name: event.job.map(|(_, name)| name),
            plan: event.plan.map(PlanId::as_str),
            text: &event.text,
            data: &data,
        };
        let hash = columns.hash(&previous);
        sqlx::query(
            "INSERT INTO events (seq, at, actor, kind, job, job_name, plan, text, data, prev_hash, hash) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(seq)
        .bind(columns.at)
        .bind(columns.actor)
        .bind(columns.kind)
        .bind(columns.job)
        .bind(columns.job_name)
        .bind(columns.plan)
        .bind(columns.text)
        .bind(columns.data)
        .bind(&previous)
        .bind(&hash)
        .execute(self.connection())
        .await?;
        Ok(seq)
    }

    /// Events, oldest first.
    pub async fn events(&mut self, query: &EventQuery) -> Result<Vec<Event>> {
        let mut sql = QueryBuilder::<Sqlite>::new("SELECT * FROM events WHERE TRUE");
        if let Some(job) = &query.job {
            sql.push(" AND job = ").push_bind(job.as_str().to_owned());
        }
        if let Some(since) = query.since {
            sql.push(" AND at >= ").push_bind(micros(since));
        }
        if let Some(after) = query.after {
            sql.push(" AND seq > ").push_bind(after);
        }
        if let Some(kind) = query.kind {
            sql.push(" AND kind = ").push_bind(kind.as_str());
        }
        sql.push(" ORDER BY seq DESC");
        if let Some(limit) = query.limit {
            sql.push(" LIMIT ").push_bind(i64::from(limit));
        }
        let rows = sql.build().fetch_all(self.connection()).await?;
        rows.iter().rev().map(read).collect()
    }

    /// Check the whole chain.
    pub async fn verify_chain(&mut self) -> Result<ChainCheck> {
        let mut check = ChainCheck { events: 0, head: GENESIS.to_owned(), broken: None };
        loop {
            let rows = sqlx::query("SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT 1000")
                .bind(i64::try_from(check.events).unwrap_or(i64::MAX))
                .fetch_all(self.connection())
                .await?;
            if rows.is_empty() {
                return Ok(check);
            }
            for row in &rows {
                let columns = Entry {
                    seq: row.value("seq")?,
                    at: row.value("at")?,
                    actor: row.value("actor")?,
                    kind: row.value("kind")?,
                    job: row.value("job")?,
                    job_name: row.value("job_name")?,
                    plan: row.value("plan")?,
                    text: row.value("text")?,
                    data: row.value("data")?,
                };
                let expected = i64::try_from(check.events).unwrap_or(i64::MAX).saturating_add(1);
                let fault = if columns.seq != expected {
                    Some(format!("number {expected} is missing"))
                } else if row.value::<&str>("prev_hash")? != check.head {
                    Some("it does not follow the one before it".to_owned())
                } else if row.value::<&str>("hash")? != columns.hash(&check.head) {
                    Some("it was changed after it was written".to_owned())
                } else {
                    None
                };
                if let Some(fault) = fault {
                    check.broken = Some((columns.seq, fault));
                    return Ok(check);
                }
                check.head = row.value("hash")?;
                check.events += 1;
            }
        }
    }

    /// The number of the last event, 0 where there is none.
    pub async fn last_event(&mut self) -> Result<i64> {
        let seq: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM events").fetch_one(self.connection()).await?;
        Ok(seq.unwrap_or(0))
    }
}
