//! The demo world: simulated clouds over the bundled catalogue, behind the same seam as the real ones. Nothing else in
//! the program knows that they are simulated.
//!
//! - **Seeded.** Prices, stock, quotas, preemptions and ordinary faults are hashed out of the world's seed: two worlds of
//!   one seed show the same market at the same age. Prices on demand are the catalogue's; spot prices wander around the
//!   catalogue's and never above on-demand; an offer without a price keeps having none, and cannot be launched.
//! - **One world a directory.** Machines, tokens and the clock are in `world.json`; commands and a cockpit that run at
//!   once share it. The virtual clock runs on between commands, and so does all that happens to machines.
//! - **Honest risk.** The interruptions a day that a spot offer states are the rate of the very process that will take
//!   the machine, not an estimate (see `shortage`).
//!
//! Simplified, and known to be: the price of a machine is bound at its launch for its life; every cloud lists a machine
//! for an hour after it is gone; a machine that is taken away is deleted, never stopped; where the catalogue does not
//! say how many virtual CPUs a machine has, it counts against no quota; disks, addresses and traffic cost nothing.
//! Machine ids begin with `sim-`, so that one can never be taken for a real machine.

mod clock;
mod cloud;
mod error;
mod faults;
mod latency;
mod launch;
mod machine;
mod market;
mod noise;
mod profile;
mod scarcity;
mod shortage;
mod state;
mod world;

use std::path::Path;
use std::sync::Arc;

pub use cloud::SimCloud;
pub use error::SimError;
pub use faults::{Call, Fault, FaultPlan, Rates, Rule};
pub use market::Weather;
pub use world::{Latency, Setup, World};

use crate::catalogue::Catalogue;
use crate::domain::Clock;

/// The world that `--demo` shows where no seed is given.
pub const DEFAULT_SEED: u64 = 7;
/// Seconds of the world in a real one where no speed is given: a minute a second, so that a machine boots in two
/// seconds, and a spot machine in a hot zone is preempted within some minutes of watching.
pub const DEFAULT_SPEED: f64 = 60.0;

/// What a user may choose about a world.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WorldOptions {
    /// Its seed; another than the stored one is refused.
    pub seed: Option<u64>,
    /// Seconds of the world in a real second; holds from now on, also for other commands.
    pub speed: Option<f64>,
}

/// A demo world as the rest of the program uses it: a clock and some clouds.
#[derive(Clone)]
pub struct Demo {
    /// The world's clock.
    pub clock: Arc<dyn Clock>,
    /// Its clouds, in the order of their names.
    pub clouds: Vec<Arc<SimCloud>>,
}

/// The demo world of a directory over the bundled catalogue; made, with `dir`, if it is not there. Reads and perhaps
/// writes a small file, so it is to be called before the runtime is busy.
///
/// # Errors
/// A damaged file, another seed than the stored one, a speed out of range, or a file system that refuses.
pub fn open(dir: &Path, options: WorldOptions, system: Arc<dyn Clock>) -> Result<Demo, SimError> {
    Ok(World::open(dir, Catalogue::bundled().rows(), Setup::demo(), options, system)?.demo())
}

/// Remove the world of a directory; the next command makes a new one. Removing none is not an error.
pub fn reset(dir: &Path) -> Result<(), SimError> {
    state::FileStore::new(dir).remove()
}
