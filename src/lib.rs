//! gpudeck: a terminal cockpit, command line and headless controller on one core, that keeps GPU workloads running over
//! many clouds.
//!
//! The floors, from the ground up; a module may use those below it, never those above (`tests/architecture.rs`):
//!
//! 1. [`domain`]: the nouns. [`config`]: files, directories, validation, and the one place that reads the system's clock.
//! 2. [`catalogue`]: bundled facts and importers.
//! 3. [`market`]: observations → snapshot; history, spreads.
//! 4. [`network`]: latency matrix, egress tariffs. [`placement`]: where a job should run, and why.
//! 5. [`provider`]: one trait, an adapter a cloud. [`store`]: the ledger.
//! 6. [`engine`]: the only module that acts.
//! 7. [`cli`] and [`tui`]: they draw snapshots and send requests.
//!
//! A fact goes in as an [`domain::Observation`], through [`market`], to an immutable snapshot that screen and placement
//! both read. A key goes out as an [`engine::Wish`], becomes a plan that is shown and confirmed, an intent that is
//! durable, and only then a call to a cloud.

pub mod catalogue;
pub mod cli;
pub mod config;
pub mod domain;
pub mod engine;
pub mod market;
pub mod network;
pub mod placement;
pub mod provider;
pub mod store;
pub mod tui;
