//! How time passes for calls. The one place below the engine that waits.

use std::time::Duration;

use async_trait::async_trait;

/// A steady clock and a way to wait, both in real time.
#[async_trait]
pub trait Timer: Send + Sync {
    /// Time since some fixed moment; never goes back.
    fn now(&self) -> Duration;

    /// Return after so much time.
    async fn wait(&self, duration: Duration);
}

/// The asynchronous runtime's own timer.
#[derive(Debug)]
pub struct RuntimeTimer {
    start: tokio::time::Instant,
}

impl RuntimeTimer {
    /// Starting now. To be made within a runtime where its clock can be paused.
    pub fn start() -> Self {
        Self { start: tokio::time::Instant::now() }
    }
}

#[async_trait]
impl Timer for RuntimeTimer {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    async fn wait(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
