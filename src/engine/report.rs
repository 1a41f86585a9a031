//! What the engine tells on request: outcomes, costs, the state of the record.

use chrono::{DateTime, Utc};

use crate::domain::{
    EventKind, HourlyRate, InstanceId, InstanceType, JobId, Location, Money, OperationKind, ProviderError, Purchase,
};

/// Which events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventFilter {
    /// Only of this job.
    pub job: Option<JobId>,
    /// Only from then on.
    pub since: Option<DateTime<Utc>>,
    /// Only after this number.
    pub after: Option<i64>,
    /// Only of this kind.
    pub kind: Option<EventKind>,
    /// At most so many, the latest ones; `None` is all.
    pub limit: Option<u32>,
}

/// How an operation ended, or stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What it does.
    pub kind: OperationKind,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether it ended well.
    pub done: bool,
    /// Why it failed, or what it waits for; empty where neither applies.
    pub reason: String,
    /// The provider's last refusal, for the exit code.
    pub error: Option<ProviderError>,
    /// Every attempt and what became of it.
    pub attempts: Vec<Attempt>,
}

/// One attempt of an operation at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// Where.
    pub location: Location,
    /// With which machine.
    pub instance_type: InstanceType,
    /// How it was to be paid for.
    pub purchase: Purchase,
    /// When.
    pub at: DateTime<Utc>,
    /// What became of it, in a sentence; the provider's words are inert by now.
    pub result: String,
    /// The provider's error, where there was one.
    pub error: Option<ProviderError>,
}

/// What one machine has cost.
#[derive(Debug, Clone, PartialEq)]
pub struct CostLine {
    /// Its provider's id; `None` where none was ever learnt.
    pub instance: Option<InstanceId>,
    /// Where.
    pub location: Location,
    /// The machine.
    pub instance_type: InstanceType,
    /// How it is paid for.
    pub purchase: Purchase,
    /// What was bound; `None` where the price is not known.
    pub bound_price: Option<HourlyRate>,
    /// From when on it is counted: when its request was sent.
    pub from: DateTime<Utc>,
    /// Until it was proved gone; `None` while it may still bill.
    pub until: Option<DateTime<Utc>>,
    /// The cost so far, rounded up.
    pub usd: Money,
    /// Whether it is sure that the machine exists (or existed).
    pub proved: bool,
}

/// What a check of the record's hash chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// Events checked.
    pub events: u64,
    /// The hash of the last one: note it down elsewhere, and a cut tail or a rewritten record shows.
    pub head: String,
    /// The first event that does not fit, and why; `None` where all fit.
    pub broken: Option<(i64, String)>,
}

/// What a comparison of clouds and ledger found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Machines listed under our mark.
    pub listed: usize,
    /// Of those, taken into the ledger for an intent whose outcome was not known.
    pub adopted: usize,
    /// Of those, owned by no job.
    pub orphans: usize,
    /// Providers that did not answer; nothing is concluded about their machines.
    pub failed: Vec<ProviderError>,
}
