//! Simulated time: the world's clock is tokio's paused one, so that waiting costs nothing and every run is the same.

use chrono::{DateTime, TimeDelta, Utc};
use gpudeck::domain::Clock;
use tokio::time::Instant;

pub struct SimulatedClock {
    start: Instant,
    base: DateTime<Utc>,
    speed: f64,
}

impl SimulatedClock {
    /// Going so many times as fast as tokio's.
    pub fn at(speed: f64) -> Self {
        let base = DateTime::from_timestamp(1_796_083_200, 0).expect("a time");
        Self { start: Instant::now(), base, speed }
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> DateTime<Utc> {
        self.base + TimeDelta::from_std(self.start.elapsed().mul_f64(self.speed)).expect("a short run")
    }

    fn speed(&self) -> f64 {
        self.speed
    }
}
