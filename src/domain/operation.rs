//! Operations: sagas of steps over durable intents.

use serde::{Deserialize, Serialize};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// Start a job's instances.
    Launch,
    /// Start them elsewhere after they were taken away.
    Recover,
    /// Move a running job.
    Migrate,
    /// Stop and release all that a job holds.
    Terminate,
}

impl OperationKind {
    /// As written in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Recover => "recover",
            Self::Migrate => "migrate",
            Self::Terminate => "terminate",
        }
    }
}

/// How far a step is. `Unknown` (time-out, crash) is resolved by asking the provider, never by guessing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// In the plan.
    Planned,
    /// Written down, about to be done or being done.
    Intended,
    /// Done, with proof.
    Done,
    /// Refused, with a reason; nothing is left of it.
    Failed,
    /// Sent, outcome not known.
    Unknown,
}

impl StepState {
    /// As written in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Intended => "intended",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}
