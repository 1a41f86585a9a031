//! Simulated time: the world's clock is tokio's paused one, so that waiting costs nothing and every run is the same.

use chrono::{DateTime, TimeDelta, Utc};
use gpudeck::domain::Clock;
use tokio::time::Instant;

pub struct SimulatedClock {
    start: Instant,
    base: DateTime<Utc>,
}

impl SimulatedClock {
    pub fn new() -> Self {
        let base = DateTime::from_timestamp(1_796_083_200, 0).expect("a time");
        Self { start: Instant::now(), base }
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> DateTime<Utc> {
        self.base + TimeDelta::from_std(self.start.elapsed()).expect("a short run")
    }
}
