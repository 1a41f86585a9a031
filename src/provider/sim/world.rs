//! A world: one market, one set of machines, one clock; each of its clouds is a [`SimCloud`].

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as StdDuration;

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;

use super::clock::{BEGINNING_MS, Base, VirtualClock, checked_speed};
use super::cloud::SimCloud;
use super::error::SimError;
use super::faults::{Call, FaultPlan, Rates, Rule};
use super::launch::world as world_time;
use super::machine::Machine;
use super::market::{Market, Weather};
use super::state::{FileStore, State, Store};
use super::{DEFAULT_SEED, DEFAULT_SPEED, Demo, WorldOptions};
use crate::catalogue::{Catalogue, Row};
use crate::domain::{Clock, Instance, InstanceId, InstanceState, ProviderId};

/// How long calls take, in real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latency {
    /// A call that reads takes at most so long, and at least a quarter of it.
    pub read: StdDuration,
    /// A call that acts.
    pub act: StdDuration,
}

impl Latency {
    /// The demo's. Real calls take 20 to 300 ms; these are shorter, so that a command answers at once.
    pub const DEMO: Self = Self { read: StdDuration::from_millis(6), act: StdDuration::from_millis(40) };
    /// None, and no timer is armed.
    pub const NONE: Self = Self { read: StdDuration::ZERO, act: StdDuration::ZERO };
}

/// What a world is made of besides its rows and its seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// What goes wrong with calls.
    pub faults: FaultPlan,
    /// Whether the market has bad days.
    pub weather: Weather,
    /// How long calls take.
    pub latency: Latency,
}

impl Setup {
    /// As in the demo: ordinary faults, the seed's weather, short latencies.
    pub const fn demo() -> Self {
        Self { faults: FaultPlan::ordinary(), weather: Weather::Seeded, latency: Latency::DEMO }
    }
    /// For tests: nothing goes wrong but what is planned, calm weather, no latency.
    pub const fn planned(faults: FaultPlan) -> Self {
        Self { faults, weather: Weather::Calm, latency: Latency::NONE }
    }
    /// With or without bad days.
    #[must_use]
    pub fn weather(mut self, weather: Weather) -> Self {
        self.weather = weather;
        self
    }
}

/// A simulated world. Cheap to clone; all clones are the same world.
#[derive(Clone)]
pub struct World(Arc<Inner>);

/// What the clouds of one world share.
pub(super) struct Inner {
    pub(super) seed: u64,
    made_ms: i64,
    pub(super) market: Market,
    pub(super) clock: Arc<dyn Clock>,
    follows: Option<Arc<VirtualClock>>,
    store: Store,
    pub(super) faults: Mutex<FaultPlan>,
    pub(super) weather: Weather,
    pub(super) latency: Latency,
    counts: FxHashMap<ProviderId, [AtomicU64; Call::KINDS]>,
}

impl World {
    fn new(
        rows: &[Row],
        setup: Setup,
        (seed, made_ms): (u64, i64),
        clock: Arc<dyn Clock>,
        follows: Option<Arc<VirtualClock>>,
        store: Store,
    ) -> Self {
        let market = Market::build(rows, seed, setup.weather);
        let counts = market.providers().map(|p| (p.clone(), Default::default())).collect();
        Self(Arc::new(Inner {
            seed,
            made_ms,
            market,
            clock,
            follows,
            store,
            faults: Mutex::new(setup.faults),
            weather: setup.weather,
            latency: setup.latency,
            counts,
        }))
    }

    /// A world of these rows that lives in memory and goes by a clock that is given. For tests and replays.
    pub fn of(rows: &[Row], setup: Setup, seed: u64, clock: Arc<dyn Clock>) -> Self {
        let ms = clock.now().timestamp_millis();
        let base = Base { world_ms: ms, system_ms: ms, speed: clock.speed() };
        Self::new(rows, setup, (seed, ms), clock, None, Store::Memory(Mutex::new(State::new(seed, base))))
    }

    /// The demo's clouds in memory, with calm weather and no latency: only what is planned goes wrong. For tests.
    pub fn in_memory(seed: u64, clock: Arc<dyn Clock>, faults: FaultPlan) -> Self {
        Self::of(Catalogue::bundled().rows(), Setup::planned(faults), seed, clock)
    }

    /// A world of these rows in a directory, made if it is not there; its clock goes over the system's.
    pub fn open(
        dir: &Path,
        rows: &[Row],
        setup: Setup,
        options: WorldOptions,
        system: Arc<dyn Clock>,
    ) -> Result<Self, SimError> {
        let asked = options.speed.map(checked_speed).transpose()?;
        let file = FileStore::new(dir);
        let system_ms = system.now().timestamp_millis();
        let make = || {
            let speed = asked.unwrap_or(DEFAULT_SPEED);
            State::new(options.seed.unwrap_or(DEFAULT_SEED), Base { world_ms: BEGINNING_MS, system_ms, speed })
        };
        let state = file.open(make, |state| {
            if let Some(asked) = options.seed.filter(|seed| *seed != state.seed) {
                return Err(SimError::SeedDiffers { path: file.path(), stored: state.seed, asked });
            }
            let Some(speed) = asked.filter(|speed| speed.to_bits() != state.clock.speed.to_bits()) else {
                return Ok(false);
            };
            // From this moment on at the new speed; up to it at the old one.
            let world_ms = state.clock.at(system_ms).max(state.seen_ms);
            state.clock = Base { world_ms, system_ms, speed };
            state.seen_ms = world_ms;
            Ok(true)
        })?;
        let clock = Arc::new(VirtualClock::new(system, state.clock, state.seen_ms));
        Ok(Self::new(rows, setup, (state.seed, state.made_ms), clock.clone(), Some(clock), Store::File(file)))
    }

    /// Its clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock.clone()
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Its clouds, in the order of their names.
    pub fn clouds(&self) -> Vec<Arc<SimCloud>> {
        self.0.market.providers().map(|id| Arc::new(SimCloud::new(self.0.clone(), id))).collect()
    }

    /// One of its clouds.
    pub fn cloud(&self, provider: &str) -> Option<Arc<SimCloud>> {
        self.clouds().into_iter().find(|c| *crate::provider::Provider::id(&**c) == *provider)
    }

    /// Clock and clouds.
    pub fn demo(&self) -> Demo {
        Demo { clock: self.clock(), clouds: self.clouds() }
    }

    /// One more planned fault.
    pub fn inject(&self, rule: Rule) {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner).add(rule);
    }

    /// No planned faults any more; what they did stays done.
    pub fn heal(&self) {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many calls of a kind this process has made at a cloud.
    pub fn calls(&self, provider: &str, call: Call) -> u64 {
        let counts = self.0.counts.get(provider);
        counts.and_then(|c| c.get(call.index())).map_or(0, |c| c.load(Ordering::SeqCst))
    }

    /// The truth: every machine that is remembered, as it is, whatever reads show.
    pub fn machines(&self) -> Result<Vec<Instance>, SimError> {
        let now = self.0.clock.now();
        self.0.store.read(|s| s.machines.iter().map(|m| m.instance(now)).collect())
    }

    /// The truth: machines that cost money now.
    pub fn billed(&self) -> Result<Vec<Instance>, SimError> {
        self.machines().map(|all| all.into_iter().filter(|m| m.state.may_bill()).collect())
    }

    fn alter(&self, id: &InstanceId, change: impl FnOnce(&mut Machine, DateTime<Utc>)) -> Result<bool, SimError> {
        let now = self.0.clock.now();
        self.0.store.update(|state| {
            let machine = state.machines.iter_mut().find(|m| m.id == *id && m.gone_at(now).is_none());
            machine.map(|m| change(m, now)).is_some()
        })
    }

    /// Delete a machine behind our back, as from the cloud's own console. False where there is none.
    pub fn kill(&self, id: &InstanceId, reason: &str) -> Result<bool, SimError> {
        self.alter(id, |m, now| {
            m.terminated_at.get_or_insert(now);
            m.ended_by = Some(reason.to_owned());
        })
    }

    /// Give notice now, and take the machine so long after (world time). False where there is none.
    pub fn preempt(&self, id: &InstanceId, notice: StdDuration) -> Result<bool, SimError> {
        self.alter(id, |m, now| {
            m.notice_at = Some(now);
            m.taken_at = Some(now + world_time(notice));
        })
    }

    /// Put a machine in a state behind our back (stopped from a console), or with `None` let it go its way again.
    pub fn force_state(&self, id: &InstanceId, state: Option<InstanceState>) -> Result<bool, SimError> {
        self.alter(id, |m, _| m.forced = state)
    }
}

impl Inner {
    pub(super) fn rates(&self) -> Rates {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).ordinary_rates()
    }

    pub(super) fn count(&self, provider: &ProviderId, call: Call) -> u64 {
        let counts = self.counts.get(provider);
        counts.and_then(|c| c.get(call.index())).map_or(0, |c| c.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Run on the state; off the runtime where that means a file.
    async fn off_runtime<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<R, SimError> + Send + 'static,
    ) -> Result<R, SimError> {
        match &self.store {
            Store::Memory(_) => work(self),
            Store::File(file) => {
                let path = file.path();
                let inner = self.clone();
                let done = tokio::task::spawn_blocking(move || work(&inner)).await;
                done.unwrap_or_else(|e| {
                    Err(SimError::Io { action: "reach", path, source: std::io::Error::other(e.to_string()) })
                })
            }
        }
    }

    /// Look at the state.
    pub(super) async fn read<R: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Self, &State) -> R + Send + 'static,
    ) -> Result<R, SimError> {
        self.off_runtime(move |inner| {
            inner.store.read(|state| {
                inner.follow(state)?;
                Ok(look(inner, state))
            })?
        })
        .await
    }

    /// Change the state. Goes through to the end even if the caller stops waiting, as a real call would.
    pub(super) async fn update<R: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&Self, &mut State) -> R + Send + 'static,
    ) -> Result<R, SimError> {
        self.off_runtime(move |inner| {
            inner.store.update(|state| {
                inner.follow(state)?;
                Ok(change(inner, state))
            })?
        })
        .await
    }

    /// Keep to the stored clock, whose speed another process may have changed; refuse a world that is not ours any more.
    fn follow(&self, state: &State) -> Result<(), SimError> {
        if let (Some(clock), Store::File(file)) = (&self.follows, &self.store) {
            if (state.seed, state.made_ms) != (self.seed, self.made_ms) {
                return Err(SimError::Gone { path: file.path() });
            }
            clock.follow(state.clock);
        }
        Ok(())
    }
}
