//! What an engine is started with.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::limits::EngineLimits;
use crate::domain::{Accelerator, Actor, Clock, GpuHourlyRate, Observation, ProviderId, Purchase};
use crate::market::Jurisdictions;
use crate::network::Network;
use crate::provider::{Absent, Connected};
use crate::store::CrashPoint;

/// Whether the engine does anything by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// For one command: asks providers only when told, resumes and recovers nothing by itself.
    OneShot,
    /// For cockpit and controller: feeds, reconciler, recovery and unfinished operations run by themselves.
    Live,
}

/// An offer that somebody wants to be told of.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceWatch {
    /// Its name in the configuration.
    pub name: String,
    /// Any of these.
    pub accelerators: Vec<Accelerator>,
    /// At most so much a GPU-hour.
    pub below: GpuHourlyRate,
    /// At least so many GPUs an instance.
    pub count: u32,
    /// Only these purchase models; empty means any.
    pub purchases: Vec<Purchase>,
    /// Only these providers; empty means any.
    pub providers: Vec<ProviderId>,
    /// Only places under these laws; empty means any.
    pub jurisdictions: Vec<String>,
}

/// What an engine is started with. Make one with [`Options::new`] and set what differs.
pub struct Options {
    /// The world's clock.
    pub clock: Arc<dyn Clock>,
    /// The clouds that can be used.
    pub providers: Vec<Connected>,
    /// Those that cannot, and why.
    pub absent: Vec<Absent>,
    /// What published tables say of the offers of all these providers; the feeds' answers go on top. Of a provider that
    /// is absent nothing else is known, and nothing is started there.
    pub published: Vec<Observation>,
    /// Latency and tariffs.
    pub network: Arc<Network>,
    /// Whose law a place lies under; the catalogue knows.
    pub jurisdictions: Jurisdictions,
    /// The ledger's file; its directory is made, 0700, where it is missing.
    pub ledger: PathBuf,
    /// In whose name the engine acts where no operator asked: recovery, reconciliation.
    pub actor: Actor,
    /// Whether it does anything by itself.
    pub mode: Mode,
    /// Nothing that acts is allowed, whatever the providers could do.
    pub read_only: bool,
    /// Whose marks are ours. `None`: the ledger's own id, made at random when the ledger is made. Set it to find the
    /// machines of an installation whose ledger is lost; a ledger of another owner is refused.
    pub owner: Option<String>,
    /// Who we are among the processes on the ledger, as one that can be asked about later; `None` takes a name at random.
    pub process: Option<String>,
    /// Whether a process of such a name is known to have ended: what it held is taken over at once then.
    pub has_ended: fn(&str) -> bool,
    /// Offers to be told of; a live engine looks for them.
    pub watches: Vec<PriceWatch>,
    /// Intervals and limits.
    pub limits: EngineLimits,
    /// Where jitter and ids come from: `None` from the system; a number in tests, for the same run again.
    pub seed: Option<u64>,
    /// For tests: stops the process at a chosen point. Also holds simulated time while the ledger works.
    pub crash: Option<Arc<dyn CrashPoint>>,
}

impl Options {
    /// With nothing but a clock, a ledger and a name: one-shot, no providers.
    pub fn new(clock: Arc<dyn Clock>, ledger: impl Into<PathBuf>, actor: Actor) -> Self {
        Self {
            clock,
            providers: Vec::new(),
            absent: Vec::new(),
            published: Vec::new(),
            network: Network::published(),
            jurisdictions: crate::catalogue::regions::jurisdiction,
            ledger: ledger.into(),
            actor,
            mode: Mode::OneShot,
            read_only: false,
            owner: None,
            process: None,
            has_ended: |_| false,
            watches: Vec::new(),
            limits: EngineLimits::default(),
            seed: None,
            crash: None,
        }
    }
}
