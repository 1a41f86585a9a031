//! Intents: a row a machine that was wished for, written before the call that asks for it, and kept until the machine
//! is proved to be gone. It is the allocation and the line of the cost ledger, too.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::error::{Result, StoreError};
use super::jobs::recent;
use super::ledger::Tx;
use super::operations::words;
use super::row::{Columns, json, micros};
use crate::domain::{
    HourlyRate, Instance, InstanceId, InstanceState, JobId, Location, Mark, Money, OfferKey, OperationId,
    ProviderError, Shape,
};

words!(
    /// How far an intent is.
    IntentState {
        /// Written down, not sent.
        Intended = "intended",
        /// Sent; the outcome is not known (yet).
        Sent = "sent",
        /// The provider has given it an id.
        Accepted = "accepted",
        /// Looked for in vain at a cloud that cannot prove it: counts as billed until an operator decides.
        Unproven = "unproven",
        /// Refused with the promise that nothing was made.
        Refused = "refused",
        /// Proved never to have been made.
        Absent = "absent",
        /// Never sent, and it will not be.
        Cancelled = "cancelled",
        /// Proved to be gone.
        Gone = "gone",
    }
);

impl IntentState {
    /// Whether a machine of it may exist, and bill.
    pub const fn may_bill(self) -> bool {
        matches!(self, Self::Sent | Self::Accepted | Self::Unproven)
    }
    /// Whether nothing more will happen to it.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Refused | Self::Absent | Self::Cancelled | Self::Gone)
    }
}

/// An intent as the ledger has it.
#[derive(Debug, Clone, PartialEq)]
pub struct IntentRow {
    /// The idempotency token.
    pub token: String,
    /// The machine's name, for clouds that name machines.
    pub name: String,
    /// The operation that wished for it.
    pub operation: OperationId,
    /// Its job.
    pub job: JobId,
    /// The attempt of the operation.
    pub attempt: u32,
    /// The node's number in the gang.
    pub node: u32,
    /// Which offer.
    pub offer: OfferKey,
    /// Its shape.
    pub shape: Arc<Shape>,
    /// At most so much an hour.
    pub max_price: Option<HourlyRate>,
    /// Whose account it was first sent with; `None` before that, and in rows from before this was kept.
    pub account: Option<String>,
    /// How far it is.
    pub state: IntentState,
    /// When it was written down.
    pub intended_at: DateTime<Utc>,
    /// When it was (first) about to be sent.
    pub sent_at: Option<DateTime<Utc>>,
    /// How often it was sent.
    pub tries: u32,
    /// Since when its outcome is being looked for.
    pub unknown_since: Option<DateTime<Utc>>,
    /// The provider's id.
    pub instance: Option<InstanceId>,
    /// Where the machine really is.
    pub location: Option<Location>,
    /// What it costs an hour, as bound; the offer's price until the provider says otherwise.
    pub bound_price: Option<HourlyRate>,
    /// What it cost up to the last change of its price.
    pub accrued: Money,
    /// When that was.
    pub accrued_until: Option<DateTime<Utc>>,
    /// As last observed.
    pub seen: Option<Instance>,
    /// When that was.
    pub observed_at: Option<DateTime<Utc>>,
    /// The first of the reads that did not find it, if the last one did not.
    pub absent_since: Option<DateTime<Utc>>,
    /// When the provider announced to take it away.
    pub notice_at: Option<DateTime<Utc>>,
    /// Since when it is to be terminated.
    pub terminate_at: Option<DateTime<Utc>>,
    /// By which operation.
    pub terminate_by: Option<OperationId>,
    /// Alerts raised on its terminate so far.
    pub alerted: u32,
    /// When it was proved to be gone.
    pub gone_at: Option<DateTime<Utc>>,
    /// The provider's last refusal.
    pub error: Option<ProviderError>,
}

impl IntentRow {
    /// The mark that its machine carries.
    pub fn mark(&self, owner: &str) -> Mark {
        Mark {
            owner: owner.to_owned(),
            job: self.job.clone(),
            operation: self.operation.clone(),
            attempt: self.attempt,
            node: self.node,
        }
    }

    /// The machine's state as last observed; asked for, where it was never seen.
    pub fn machine(&self) -> InstanceState {
        match self.state {
            IntentState::Gone | IntentState::Absent => InstanceState::Gone,
            _ => self.seen.as_ref().map_or(InstanceState::Requested, |i| i.state.clone()),
        }
    }

    /// What it has cost until then: the bound price over the time since it was sent, rounded up; nothing for what was
    /// refused or proved never to have been made. Time that runs backwards costs nothing.
    pub fn cost(&self, now: DateTime<Utc>) -> Money {
        if matches!(
            self.state,
            IntentState::Intended | IntentState::Refused | IntentState::Absent | IntentState::Cancelled
        ) {
            return Money::ZERO;
        }
        let (Some(sent), Some(price)) = (self.sent_at, self.bound_price) else { return self.accrued };
        let from = self.accrued_until.unwrap_or(sent);
        self.accrued + cost_of(price, self.gone_at.unwrap_or(now) - from)
    }
}

/// The price over a time, rounded up to a micro-USD.
fn cost_of(price: HourlyRate, time: chrono::Duration) -> Money {
    let millis = i128::from(time.num_milliseconds().max(0));
    let micros = (i128::from(price.micros().max(0)) * millis + 3_599_999) / 3_600_000;
    Money::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

fn read(row: &SqliteRow) -> Result<IntentRow> {
    Ok(IntentRow {
        token: row.value("token")?,
        name: row.value("name")?,
        operation: row.value::<String>("operation")?.into(),
        job: row.value::<String>("job")?.into(),
        attempt: row.count("attempt")?,
        node: row.count("node")?,
        offer: row.json("offer")?,
        shape: Arc::new(row.json("shape")?),
        max_price: row.value::<Option<i64>>("max_price")?.map(HourlyRate::from_micros),
        account: row.value("account")?,
        state: IntentState::parse(row.value("state")?)?,
        intended_at: row.at("intended_at")?,
        sent_at: row.maybe_at("sent_at")?,
        tries: row.count("tries")?,
        unknown_since: row.maybe_at("unknown_since")?,
        instance: row.value::<Option<String>>("instance")?.map(InstanceId::from),
        location: row.maybe_json("location")?,
        bound_price: row.value::<Option<i64>>("bound_price")?.map(HourlyRate::from_micros),
        accrued: Money::from_micros(row.value("accrued")?),
        accrued_until: row.maybe_at("accrued_until")?,
        seen: row.maybe_json("last_seen")?,
        observed_at: row.maybe_at("observed_at")?,
        absent_since: row.maybe_at("absent_since")?,
        notice_at: row.maybe_at("notice_at")?,
        terminate_at: row.maybe_at("terminate_at")?,
        terminate_by: row.value::<Option<String>>("terminate_by")?.map(OperationId::from),
        alerted: row.count("alerted")?,
        gone_at: row.maybe_at("gone_at")?,
        error: row.maybe_json("error")?,
    })
}

impl Tx {
    /// Write an intent down.
    pub async fn insert_intent(&mut self, intent: &IntentRow) -> Result<()> {
        sqlx::query(
            "INSERT INTO intents (token, name, operation, job, attempt, node, provider, offer, shape, max_price, state, \
             intended_at, tries, bound_price, accrued, alerted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 0, 0)",
        )
        .bind(&intent.token)
        .bind(&intent.name)
        .bind(intent.operation.as_str())
        .bind(intent.job.as_str())
        .bind(intent.attempt)
        .bind(intent.node)
        .bind(intent.offer.provider.as_str())
        .bind(json(&intent.offer)?)
        .bind(json(&*intent.shape)?)
        .bind(intent.max_price.map(HourlyRate::micros))
        .bind(intent.state.as_str())
        .bind(micros(intent.intended_at))
        .bind(intent.bound_price.map(HourlyRate::micros))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Change an intent whose state is still the one that was read: nobody else has decided on it meanwhile.
    pub async fn update_intent(&mut self, intent: &IntentRow, was: IntentState) -> Result<()> {
        let changed = sqlx::query(
            "UPDATE intents SET state = ?, account = ?, sent_at = ?, tries = ?, unknown_since = ?, instance = ?, location = ?, \
             bound_price = ?, accrued = ?, accrued_until = ?, last_state = ?, last_seen = ?, observed_at = ?, \
             absent_since = ?, notice_at = ?, terminate_at = ?, terminate_by = ?, alerted = ?, gone_at = ?, error = ? \
             WHERE token = ? AND state = ?",
        )
        .bind(intent.state.as_str())
        .bind(intent.account.as_deref())
        .bind(intent.sent_at.map(micros))
        .bind(intent.tries)
        .bind(intent.unknown_since.map(micros))
        .bind(intent.instance.as_ref().map(InstanceId::as_str))
        .bind(intent.location.as_ref().map(json).transpose()?)
        .bind(intent.bound_price.map(HourlyRate::micros))
        .bind(intent.accrued.micros())
        .bind(intent.accrued_until.map(micros))
        .bind(intent.seen.as_ref().map(|i| i.state.label().into_owned()))
        .bind(intent.seen.as_ref().map(json).transpose()?)
        .bind(intent.observed_at.map(micros))
        .bind(intent.absent_since.map(micros))
        .bind(intent.notice_at.map(micros))
        .bind(intent.terminate_at.map(micros))
        .bind(intent.terminate_by.as_ref().map(OperationId::as_str))
        .bind(intent.alerted)
        .bind(intent.gone_at.map(micros))
        .bind(intent.error.as_ref().map(json).transpose()?)
        .bind(&intent.token)
        .bind(was.as_str())
        .execute(self.connection())
        .await?
        .rows_affected();
        if changed == 0 {
            return Err(StoreError::Conflict(format!(
                "the intent {} was decided on by somebody else meanwhile",
                intent.token
            )));
        }
        Ok(())
    }

    /// One intent.
    pub async fn intent(&mut self, token: &str) -> Result<Option<IntentRow>> {
        let row =
            sqlx::query("SELECT * FROM intents WHERE token = ?").bind(token).fetch_optional(self.connection()).await?;
        row.as_ref().map(read).transpose()
    }

    /// All intents of a job, in the order of their writing.
    pub async fn intents_of(&mut self, job: &JobId) -> Result<Vec<IntentRow>> {
        let rows = sqlx::query("SELECT * FROM intents WHERE job = ? ORDER BY intended_at, operation, attempt, node")
            .bind(job.as_str())
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// The intents of the jobs that [`Tx::recent_jobs`] gives, job by job in the order of their writing.
    pub async fn recent_intents(&mut self, ended: u32) -> Result<Vec<IntentRow>> {
        let rows = sqlx::query(concat!(
            "SELECT * FROM intents WHERE job IN (",
            recent!(),
            ") ORDER BY job, intended_at, operation, attempt, node"
        ))
        .bind(ended)
        .fetch_all(self.connection())
        .await?;
        rows.iter().map(read).collect()
    }

    /// All intents that a machine may exist of.
    pub async fn open_intents(&mut self) -> Result<Vec<IntentRow>> {
        let rows = sqlx::query(
            "SELECT * FROM intents WHERE state IN ('sent', 'accepted', 'unproven') ORDER BY intended_at, operation, attempt, node",
        )
        .fetch_all(self.connection())
        .await?;
        rows.iter().map(read).collect()
    }

    /// Whether an intent, open or closed, holds this machine.
    pub async fn intent_of_instance(&mut self, provider: &str, instance: &str) -> Result<Option<IntentRow>> {
        let row = sqlx::query("SELECT * FROM intents WHERE provider = ? AND instance = ?")
            .bind(provider)
            .bind(instance)
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The intent with this mark.
    pub async fn intent_of_mark(&mut self, mark: &Mark) -> Result<Option<IntentRow>> {
        let row = sqlx::query("SELECT * FROM intents WHERE operation = ? AND attempt = ? AND node = ?")
            .bind(mark.operation.as_str())
            .bind(mark.attempt)
            .bind(mark.node)
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// Jobs and how many machines of each may bill.
    pub async fn billed_machines(&mut self) -> Result<i64> {
        let row = sqlx::query("SELECT count(*) AS n FROM intents WHERE state IN ('sent', 'accepted', 'unproven')")
            .fetch_one(self.connection())
            .await?;
        Ok(row.try_get("n")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_cost_is_rounded_up_and_never_negative() {
        let price = HourlyRate::from_micros(3_600_000_000);
        assert_eq!(cost_of(price, chrono::Duration::milliseconds(1)).micros(), 1_000);
        assert_eq!(cost_of(HourlyRate::from_micros(1), chrono::Duration::milliseconds(1)).micros(), 1);
        assert_eq!(cost_of(price, chrono::Duration::seconds(-90)), Money::ZERO);
        assert_eq!(cost_of(HourlyRate::from_micros(i64::MAX), chrono::Duration::days(400)).micros(), i64::MAX);
    }
}
