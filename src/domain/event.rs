//! What happened: who, what, which plan, when.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::names::{JobId, PlanId};

/// Who acts: a person at a terminal, a script, or the recovery loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The operating system's user name.
    pub user: String,
    /// Where they act from: `cli`, `cockpit`, `controller`.
    pub via: String,
    /// The machine's name, and the SSH client where there is one.
    pub host: String,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} ({})", super::text::inert(&self.user), super::text::inert(&self.host), self.via)
    }
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A job was written down.
    JobCreated,
    /// A job changed its state.
    JobState,
    /// A launch was asked of a provider.
    LaunchRequested,
    /// A provider accepted a launch.
    Launched,
    /// An attempt failed, with its reason.
    AttemptFailed,
    /// The provider announced a preemption.
    PreemptionNotice,
    /// Instances were taken away.
    Preempted,
    /// The job runs again.
    Recovered,
    /// A migration began, went on or ended.
    Migration,
    /// A terminate was asked for.
    TerminateRequested,
    /// Proved to be gone.
    Terminated,
    /// The outcome of a call is not known.
    OutcomeUnknown,
    /// A machine with our mark that no job owns.
    Orphan,
    /// Something a person should look at.
    Alert,
    /// A person acknowledged an alert.
    Acknowledged,
    /// A feed changed its health.
    Feed,
    /// Anything else.
    Note,
}

impl EventKind {
    /// As written in JSON and the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobCreated => "job_created",
            Self::JobState => "job_state",
            Self::LaunchRequested => "launch_requested",
            Self::Launched => "launched",
            Self::AttemptFailed => "attempt_failed",
            Self::PreemptionNotice => "preemption_notice",
            Self::Preempted => "preempted",
            Self::Recovered => "recovered",
            Self::Migration => "migration",
            Self::TerminateRequested => "terminate_requested",
            Self::Terminated => "terminated",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Orphan => "orphan",
            Self::Alert => "alert",
            Self::Acknowledged => "acknowledged",
            Self::Feed => "feed",
            Self::Note => "note",
        }
    }
}

/// An entry of the append-only record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number, growing by one.
    pub seq: i64,
    /// When it happened.
    pub at: DateTime<Utc>,
    /// Who did it.
    pub actor: Actor,
    /// What it is.
    pub kind: EventKind,
    /// Which job it is about.
    pub job: Option<JobId>,
    /// The job's name at that time, so that a line can be read on its own.
    pub job_name: Option<String>,
    /// Under which plan.
    pub plan: Option<PlanId>,
    /// A sentence for people.
    pub text: String,
    /// Figures and provider codes for programs.
    pub data: serde_json::Value,
}
