//! The one place that reads the system's clock.

use chrono::{DateTime, Utc};

use crate::domain::Clock;

/// The system's clock, in UTC.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}
