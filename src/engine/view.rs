//! What the engine shows to screen and command line: computed once, off the draw path.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::domain::{
    Accelerator, AcceleratorCount, Event, HourlyRate, Instance, InstanceType, JobId, JobSpec, JobState, Money,
    OperationKind, Plan, PlanId, ProviderId, Purchase, Region, StepState, Zone,
};
use crate::market::Snapshot;
use crate::network::Network;
use crate::provider::Absent;

/// Everything that a screen draws, at one moment.
#[derive(Debug, Clone)]
pub struct State {
    /// Now, in the world's time.
    pub at: DateTime<Utc>,
    /// The market.
    pub market: Arc<Snapshot>,
    /// Latency and tariffs.
    pub network: Arc<Network>,
    /// Live jobs first, then ended ones, each newest first.
    pub jobs: Arc<[JobView]>,
    /// The latest events, oldest first; bounded.
    pub events: Arc<[Event]>,
    /// What a person should look at.
    pub alerts: Arc<[Alert]>,
    /// Providers that cannot be used, and why.
    pub absent: Arc<[Absent]>,
    /// What all jobs cost an hour now, everything that may bill counted.
    pub usd_per_hour: HourlyRate,
    /// GPUs that are held.
    pub gpus: u32,
    /// Seconds of the world in a real second; 1 for the real world.
    pub speed: f64,
}

/// A job as shown.
#[derive(Debug, Clone)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: JobState,
    /// Why it is in that state, where that needs saying; the provider's words are inert by now.
    pub note: Option<String>,
    /// What was asked for.
    pub spec: Arc<JobSpec>,
    /// Where it runs (or ran last).
    pub provider: Option<ProviderId>,
    /// The region.
    pub region: Option<Region>,
    /// The zone.
    pub zone: Option<Zone>,
    /// The machine.
    pub instance_type: Option<InstanceType>,
    /// The chip.
    pub accelerator: Option<Accelerator>,
    /// GPUs of all its instances together.
    pub accelerators: AcceleratorCount,
    /// Nodes asked for.
    pub nodes: u32,
    /// How it is paid for.
    pub purchase: Option<Purchase>,
    /// What all its instances that may bill cost an hour; `None` where a price is not known.
    pub usd_per_hour: Option<HourlyRate>,
    /// What it has cost so far, from bound prices and real intervals; never below what was billed.
    pub usd_spent: Money,
    /// What the best place would cost an hour now.
    pub best_usd_per_hour: Option<HourlyRate>,
    /// What moving a running job to the best place saves over the hours it still has (24 where its length is not
    /// known), after egress, the start-up paid twice, the work done again and expected interruptions; zero where no
    /// move pays. `None` where it does not run or a price is not known.
    pub move_saves: Option<Money>,
    /// When it first ran.
    pub started_at: Option<DateTime<Utc>>,
    /// When what it runs on (or ran on last) began to run: a recovery and a move begin anew.
    pub running_since: Option<DateTime<Utc>>,
    /// When it was written down.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// How often it was started again after a preemption; a move does not count.
    pub restarts: u32,
    /// Expected interruptions a day of what it holds; `None` where there is no evidence.
    pub interruption_risk: Option<f64>,
    /// Its instances that are not proved gone, and those of its last allocation.
    pub instances: Vec<InstanceView>,
    /// The operation under way.
    pub operation: Option<OperationView>,
    /// The plan it was last acted on under.
    pub plan: Option<PlanId>,
    /// Its version in the ledger, for compare-and-set.
    pub version: i64,
}

/// An instance of a job as shown.
#[derive(Debug, Clone)]
pub struct InstanceView {
    /// As last observed.
    pub instance: Instance,
    /// When that was.
    pub observed_at: DateTime<Utc>,
    /// The price that was bound at its launch.
    pub bound_price: Option<HourlyRate>,
    /// Its node's number in the gang.
    pub node: u32,
}

/// An operation under way as shown.
#[derive(Debug, Clone)]
pub struct OperationView {
    /// What it does.
    pub kind: OperationKind,
    /// Its plan.
    pub plan: Arc<Plan>,
    /// How far each step of the plan is, in its order.
    pub steps: Vec<StepState>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// What it waits for.
    pub waiting_for: String,
}

/// Something a person should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The event that raised it.
    pub seq: i64,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Which job it is about.
    pub job: Option<JobId>,
    /// What it is.
    pub text: String,
    /// Who has acknowledged it.
    pub acknowledged_by: Option<String>,
}
