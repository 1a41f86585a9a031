//! What the user wants run, and the states of it.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::accelerator::Accelerator;
use super::money::GpuHourlyRate;
use super::names::{Location, ProviderId};
use super::offer::Purchase;

/// A job as meant: validated, names resolved. `config::job_file` makes it from a file or from flags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The name people use for it.
    pub name: String,
    /// A shell command on every node; `None` holds the instances only.
    pub run: Option<String>,
    /// A container to run it in.
    pub image: Option<String>,
    /// Variables for it. Values may be secret: they never reach events, logs or JSON output.
    pub env: BTreeMap<String, String>,
    /// What each node needs.
    pub resources: Resources,
    /// How it may be paid for.
    pub buying: Buying,
    /// Where it may run.
    pub constraints: Constraints,
    /// What it reads and writes.
    pub data: Data,
    /// How long, until when, and what after a preemption.
    pub schedule: Schedule,
}

/// What each node needs. All of it at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// Any of these, by canonical name; empty means any accelerator (with `min_gpu_memory_gib`).
    pub accelerators: Vec<Accelerator>,
    /// As the user wrote them, for messages.
    pub accelerators_as_written: Vec<String>,
    /// At least so much memory on each GPU.
    pub min_gpu_memory_gib: Option<f64>,
    /// GPUs on a node; an instance with more than that is a candidate too, at its full price.
    pub count: u32,
    /// Nodes of the gang.
    pub nodes: u32,
    /// At least so many virtual CPUs on a node.
    pub vcpus: Option<u32>,
    /// At least so much main memory on a node.
    pub memory_gib: Option<f64>,
}

/// How it may be paid for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buying {
    /// Purchase models allowed.
    pub models: Vec<Purchase>,
    /// At most so much for a GPU-hour.
    pub max_usd_per_gpu_hour: Option<GpuHourlyRate>,
}

/// Where it may run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Constraints {
    /// Only these clouds; empty means any.
    pub providers: Vec<ProviderId>,
    /// Only in these regions or zones; empty means any.
    pub regions: Vec<Location>,
    /// Never in these.
    pub exclude_regions: Vec<Location>,
    /// Only under these jurisdictions; empty means any.
    pub jurisdictions: Vec<String>,
    /// Round trip to these places at most so long.
    pub latency: Vec<LatencyLimit>,
    /// The nodes of a gang may lie in different zones of one region.
    pub combine_zones: bool,
}

/// A place and the longest round trip to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyLimit {
    /// The place.
    pub to: Location,
    /// Milliseconds, median round trip.
    pub max_ms: f64,
}

/// What it reads and writes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Data {
    /// Where the input lies.
    pub location: Option<Location>,
    /// GiB read once at each start in another region.
    pub input_gib: f64,
    /// GiB of a checkpoint, moved when the job moves.
    pub checkpoint_gib: f64,
    /// Where checkpoints are kept.
    pub checkpoint_uri: Option<String>,
}

/// How long, until when, and what after a preemption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Expected run time in hours; `None` is open-ended, and costs are then compared over 24 h.
    pub duration_hours: Option<f64>,
    /// To be finished by then.
    pub deadline: Option<DateTime<Utc>>,
    /// What happens after a preemption.
    pub recovery: Recovery,
    /// Work lost at each interruption, in hours: start-up plus what ran since the last checkpoint.
    pub restart_loss_hours: f64,
}

/// What happens after a preemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Start again wherever it is best.
    Restart,
    /// Leave it down and say so.
    StayDown,
}

impl JobSpec {
    /// The hours over which costs are compared: the expected duration, or a day.
    pub fn costing_hours(&self) -> f64 {
        self.schedule.duration_hours.unwrap_or(24.0)
    }
    /// GPUs asked for in all.
    pub fn gpus(&self) -> u32 {
        self.resources.count.saturating_mul(self.resources.nodes)
    }
}

/// A job's states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Written down.
    Pending,
    /// A place is being looked for.
    Placing,
    /// Instances are asked for or boot.
    Starting,
    /// All nodes are up.
    Running,
    /// Instances were taken away.
    Preempted,
    /// A move is under way; the source still runs.
    Migrating,
    /// Being stopped.
    Stopping,
    /// Ended by itself, well.
    Succeeded,
    /// Ended without success, with a reason.
    Failed,
    /// Stopped by an operator, and proved to be gone.
    Terminated,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Placing,
        Self::Starting,
        Self::Running,
        Self::Preempted,
        Self::Migrating,
        Self::Stopping,
        Self::Succeeded,
        Self::Failed,
        Self::Terminated,
    ];

    /// As written in JSON and the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Placing => "placing",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Preempted => "preempted",
            Self::Migrating => "migrating",
            Self::Stopping => "stopping",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Terminated => "terminated",
        }
    }

    /// From its text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    /// Nothing more will happen to it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Terminated)
    }

    /// The states that may follow: the one table of transitions.
    pub const fn successors(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Placing, Self::Stopping, Self::Failed],
            Self::Placing => &[Self::Starting, Self::Preempted, Self::Stopping, Self::Failed],
            Self::Starting => &[Self::Running, Self::Placing, Self::Preempted, Self::Stopping, Self::Failed],
            Self::Running => &[Self::Preempted, Self::Migrating, Self::Stopping, Self::Succeeded, Self::Failed],
            Self::Preempted => &[Self::Placing, Self::Stopping, Self::Failed],
            Self::Migrating => &[Self::Running, Self::Preempted, Self::Stopping, Self::Failed],
            Self::Stopping => &[Self::Terminated, Self::Succeeded, Self::Failed],
            Self::Succeeded | Self::Failed | Self::Terminated => &[],
        }
    }

    /// The next state, if the table allows it.
    pub fn to(self, next: Self) -> Result<Self, IllegalTransition> {
        if self.successors().contains(&next) { Ok(next) } else { Err(IllegalTransition { from: self, to: next }) }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A change of state that the table forbids: a bug, never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job cannot go from {from} to {to}")]
pub struct IllegalTransition {
    /// From here.
    pub from: JobState,
    /// To there.
    pub to: JobState,
}

#[cfg(test)]
mod tests {
    use super::JobState;

    #[test]
    fn every_live_state_reaches_an_end_and_no_end_is_left() {
        for state in JobState::ALL {
            assert_eq!(state.is_final(), state.successors().is_empty(), "{state}");
            assert_eq!(JobState::parse(state.as_str()), Some(state));
            let mut seen = vec![state];
            let mut next = vec![state];
            while let Some(s) = next.pop() {
                for n in s.successors() {
                    if !seen.contains(n) {
                        seen.push(*n);
                        next.push(*n);
                    }
                }
            }
            assert!(seen.contains(&JobState::Terminated) || state.is_final(), "{state} cannot be terminated");
        }
    }

    #[test]
    fn a_finished_job_never_runs_again() {
        for end in [JobState::Succeeded, JobState::Failed, JobState::Terminated] {
            for next in JobState::ALL {
                assert!(end.to(next).is_err());
            }
        }
    }
}
