//! A machine at a provider, as last observed.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::money::HourlyRate;
use super::names::{InstanceId, InstanceType, JobId, Location, OperationId};
use super::offer::Purchase;

/// The one state machine that every provider's states are mapped to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "raw")]
pub enum InstanceState {
    /// Asked for, not seen yet.
    Requested,
    /// Being made.
    Provisioning,
    /// Up.
    Running,
    /// Going down, may come back.
    Stopping,
    /// Down, and something of it is still paid for.
    Stopped,
    /// Being deleted.
    Terminating,
    /// Taken away by the provider; what is left may still be billed until it is gone.
    Preempted,
    /// The provider gave up on it.
    Failed,
    /// Proved to be gone.
    Gone,
    /// A word that we do not know: shown as it is, and counted as billed.
    Unknown(String),
}

impl InstanceState {
    /// Whether money may be running. Whatever is not proved to be gone counts.
    pub const fn may_bill(&self) -> bool {
        !matches!(self, Self::Gone)
    }
    /// In a word for people.
    pub fn label(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Requested => "requested".into(),
            Self::Provisioning => "provisioning".into(),
            Self::Running => "running".into(),
            Self::Stopping => "stopping".into(),
            Self::Stopped => "stopped".into(),
            Self::Terminating => "terminating".into(),
            Self::Preempted => "preempted".into(),
            Self::Failed => "failed".into(),
            Self::Gone => "gone".into(),
            Self::Unknown(raw) => format!("unknown({})", super::text::inert(raw)).into(),
        }
    }
}
impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.label())
    }
}

/// Our mark on a machine: who started it, for what. Written as tags, labels or a name, as the provider can.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// Which installation's ledger it belongs to.
    pub owner: String,
    /// The job it runs.
    pub job: JobId,
    /// The operation that started it.
    pub operation: OperationId,
    /// Which attempt of that operation.
    pub attempt: u32,
    /// The node's number in the gang, from 0.
    pub node: u32,
}

/// A machine at a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// The provider's id.
    pub id: InstanceId,
    /// Where it is.
    pub location: Location,
    /// Its shape's name.
    pub instance_type: InstanceType,
    /// How it is paid for.
    pub purchase: Purchase,
    /// As last observed.
    pub state: InstanceState,
    /// When it was made, by the provider's clock.
    pub launched_at: Option<DateTime<Utc>>,
    /// Until it was gone, by the provider's clock.
    pub ended_at: Option<DateTime<Utc>>,
    /// What it really costs, where the provider says so.
    pub price: Option<HourlyRate>,
    /// The idempotency token that it was launched with, where the provider gives it back.
    pub token: Option<String>,
    /// Our mark, where it carries one that can be read.
    pub mark: Option<Mark>,
    /// The provider has announced that it will take it away then.
    pub preemption_notice: Option<DateTime<Utc>>,
    /// The provider's own words on why it is in this state.
    pub reason: Option<String>,
}
