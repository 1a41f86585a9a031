//! A plan: ordered steps with money and time, made by the placement core, shown before anything is done.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::money::{HourlyRate, Money};
use super::names::{InstanceType, JobId, PlanId, ProviderId, Region, Zone};
use super::offer::Purchase;
pub use super::operation::OperationKind as PlanKind;

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAction {
    /// Look whether the target can still be had, at no more than the confirmed price.
    Check,
    /// Start instances.
    Launch,
    /// Write a checkpoint at the source.
    Checkpoint,
    /// Move data to the target.
    Transfer,
    /// Go on from the checkpoint at the target.
    Resume,
    /// See that the target runs.
    Verify,
    /// Stop and release instances.
    Terminate,
}

impl StepAction {
    /// As written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Launch => "launch",
            Self::Checkpoint => "checkpoint",
            Self::Transfer => "transfer",
            Self::Resume => "resume",
            Self::Verify => "verify",
            Self::Terminate => "terminate",
        }
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is done.
    pub action: StepAction,
    /// At which cloud.
    pub provider: ProviderId,
    /// In which region.
    pub region: Region,
    /// In which zone.
    pub zone: Option<Zone>,
    /// With which machine.
    pub instance_type: Option<InstanceType>,
    /// How it is paid for.
    pub purchase: Option<Purchase>,
    /// How many of them.
    pub count: u32,
    /// What they cost together an hour from then on; `None` where the price is not known.
    pub usd_per_hour: Option<HourlyRate>,
    /// What the step costs once (egress).
    pub usd_once: Option<Money>,
    /// How long it is expected to take.
    pub seconds: Option<u64>,
}

/// What will be done, in order, with money and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Its id in the ledger.
    pub id: PlanId,
    /// Launch, migrate or terminate.
    pub kind: PlanKind,
    /// Whose plan; `None` for a job that is not written down yet.
    pub job: Option<JobId>,
    /// The steps in order.
    pub steps: Vec<PlanStep>,
    /// What the job costs an hour before.
    pub usd_per_hour_before: Option<HourlyRate>,
    /// What it will cost an hour after.
    pub usd_per_hour_after: Option<HourlyRate>,
    /// What it costs once.
    pub usd_once: Option<Money>,
    /// When it was made.
    pub made_at: DateTime<Utc>,
    /// Things the operator should know before confirming: what is lost, what is stale, what is unknown.
    pub warnings: Vec<String>,
}
