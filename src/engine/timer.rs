//! The one place that waits. World time is scaled by the clock; real time is not.

use std::future::Future;
use std::time::Duration;

use crate::domain::Clock;

/// Longest single wait: a clock may say that a world's hour is a year of ours.
const LONGEST: Duration = Duration::from_hours(24);

/// How long so much of the world's time takes in real time, bounded.
pub(crate) fn real(clock: &dyn Clock, world: Duration) -> Duration {
    clock.real(world).min(LONGEST)
}

/// Wait so long in real time.
pub(crate) async fn wait(real: Duration) {
    tokio::time::sleep(real.min(LONGEST)).await;
}

/// The answer, unless it takes longer than that.
pub(crate) async fn within<T>(real: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(real, work).await.ok()
}
