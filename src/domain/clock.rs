//! Time is handed in, never read. The system's clock is read in one place, [`crate::config::system_clock`].

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

/// What time it is, and how fast it goes.
pub trait Clock: Send + Sync {
    /// Now, in the world that the engine looks after (virtual in the demo).
    fn now(&self) -> DateTime<Utc>;

    /// How many seconds of that world pass in a real second.
    fn speed(&self) -> f64 {
        1.0
    }

    /// How long to wait in real time for so much time of that world to pass.
    fn real(&self, world: Duration) -> Duration {
        let speed = self.speed();
        if speed > 0.0 { world.div_f64(speed) } else { world }
    }
}

/// A clock that stands until it is told to go on. For tests and replays.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Standing at this time, to the millisecond.
    pub fn at(time: DateTime<Utc>) -> Self {
        Self(AtomicI64::new(time.timestamp_millis()))
    }
    /// Go on by so much; negative goes back.
    pub fn advance(&self, by: chrono::Duration) {
        self.0.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::SeqCst)).unwrap_or(DateTime::UNIX_EPOCH)
    }
}
