//! The world's clock: a straight line over the system's clock, which a change of speed bends but never breaks.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::SimError;
use crate::domain::Clock;

/// The moment at which every demo world begins, in milliseconds since 1970: 2026-12-01 00:00 UTC. Fixed, so that two
/// worlds of one seed show the same market at the same age.
pub(super) const BEGINNING_MS: i64 = 1_796_083_200_000;
/// Fastest clock; an hour of the world then takes 36 ms.
const FASTEST: f64 = 100_000.0;
/// No world lives longer than a thousand years; keeps dates within what the calendar can add to.
const LAST_MS: i64 = BEGINNING_MS + 1_000 * 365 * 86_400_000;

/// A point that the clock's line goes through, and its slope. Part of the stored world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Base {
    /// The world's time at this point, in milliseconds since 1970.
    pub(super) world_ms: i64,
    /// The system's.
    pub(super) system_ms: i64,
    /// Seconds of the world in a real second.
    pub(super) speed: f64,
}

/// A speed that a clock can go at.
pub(super) fn checked_speed(speed: f64) -> Result<f64, SimError> {
    if speed.is_finite() && speed > 0.0 && speed <= FASTEST { Ok(speed) } else { Err(SimError::Speed(speed)) }
}

impl Base {
    /// The world's time at a time of the system; a system clock that was put back stops the world, but does not turn it.
    pub(super) fn at(&self, system_ms: i64) -> i64 {
        let passed = (system_ms - self.system_ms).max(0) as f64 * self.speed;
        self.world_ms.saturating_add(passed as i64).min(LAST_MS)
    }
}

/// The world's clock. Never goes back within a process, and starts no earlier than what the world has already seen.
pub(super) struct VirtualClock {
    system: Arc<dyn Clock>,
    base: RwLock<Base>,
    latest_ms: AtomicI64,
}

impl VirtualClock {
    pub(super) fn new(system: Arc<dyn Clock>, base: Base, seen_ms: i64) -> Self {
        Self { system, base: RwLock::new(base), latest_ms: AtomicI64::new(seen_ms) }
    }

    fn base(&self) -> Base {
        *self.base.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follow the stored world: another process may have changed the speed.
    pub(super) fn follow(&self, base: Base) {
        if self.base() != base {
            *self.base.write().unwrap_or_else(PoisonError::into_inner) = base;
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        let ms = self.base().at(self.system.now().timestamp_millis());
        let ms = self.latest_ms.fetch_max(ms, Ordering::SeqCst).max(ms);
        DateTime::from_timestamp_millis(ms).unwrap_or(DateTime::UNIX_EPOCH)
    }

    fn speed(&self) -> f64 {
        self.base().speed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::clock::ManualClock;

    #[test]
    fn the_beginning_is_the_stated_day() {
        let day = DateTime::from_timestamp_millis(BEGINNING_MS).map(|t| t.to_rfc3339());
        assert_eq!(day.as_deref(), Some("2026-12-01T00:00:00+00:00"));
    }

    proptest! {
        /// Whatever speeds it is given, and however the system's clock jumps, the world's time never goes back, and a
        /// change of speed does not move it.
        #[test]
        fn time_never_goes_back(steps in proptest::collection::vec((-5_000_i64..60_000, 0.01_f64..2_000.0), 1..40)) {
            let system = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH));
            let base = Base { world_ms: BEGINNING_MS, system_ms: 0, speed: 60.0 };
            let clock = VirtualClock::new(system.clone(), base, BEGINNING_MS);
            let mut last = clock.now();
            for (jump, speed) in steps {
                system.advance(chrono::Duration::milliseconds(jump));
                let before = clock.now();
                prop_assert!(before >= last);
                let system_ms = system.now().timestamp_millis();
                clock.follow(Base { world_ms: before.timestamp_millis(), system_ms, speed });
                prop_assert_eq!(clock.now(), before);
                last = before;
            }
        }
    }
}
