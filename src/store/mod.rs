//! The ledger: the durable record of jobs, intents, instances, events and cost.
//!
//! One SQLite file, write-ahead log, `synchronous = FULL`: what is committed survives a pulled plug. Every write is a
//! transaction begun with `BEGIN IMMEDIATE`, so that two processes never both believe that they were first. Nothing in
//! here reads a clock; times are handed in.

mod alerts;
mod cooldowns;
mod crash;
mod error;
mod events;
mod intents;
mod jobs;
mod ledger;
mod operations;
mod orphans;
mod plans;
mod row;

pub use alerts::AlertRow;
pub use crash::CrashPoint;
pub use error::{Result, StoreError};
pub use events::{ChainCheck, EventQuery, NewEvent};
pub use intents::{IntentRow, IntentState};
pub use jobs::JobRow;
pub use ledger::{Ledger, OpenOptions, Tx};
pub use operations::{AttemptRow, Lease, OperationRow, OperationState, Phase};
pub use orphans::OrphanRow;
