//! Reads are sent again after a passing fault. A launch or a terminate never is: what became of it is looked up, by
//! token and mark, by whoever sent it.

use std::sync::Arc;
use std::time::Duration;

use super::layer::{Call, Layer, Layered, Sent};
use super::timer::Timer;
use crate::config::limits;
use crate::domain::{ErrorClass, ProviderError, ProviderId};
use crate::provider::Result;

/// A provider whose reads survive a hiccup.
pub type Retry<P> = Layered<Backoff, P>;

/// A source of random numbers from 0 to 1, so that many clients that failed together do not come back together.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// When a read is sent again.
pub struct Backoff {
    timer: Arc<dyn Timer>,
    jitter: Jitter,
}

impl Backoff {
    /// With pauses of this randomness.
    pub fn new(timer: Arc<dyn Timer>, jitter: Jitter) -> Self {
        Self { timer, jitter }
    }

    /// How long to wait after the attempt of this number (from 0) failed; `None` is: not again.
    fn pause(&self, call: Call, attempt: u32, error: &ProviderError) -> Option<Duration> {
        if !call.only_reads() || attempt + 1 >= limits::READ_ATTEMPTS {
            return None;
        }
        let share = (self.jitter)().clamp(0.0, 1.0);
        let full = limits::RETRY_BASE.saturating_mul(2_u32.saturating_pow(attempt)).min(limits::RETRY_CAP);
        match (error.class, error.retry_after) {
            // Never earlier than told (that restarts the wait at Azure), and a little later each time another way.
            (ErrorClass::Throttled | ErrorClass::Transient, Some(told)) => {
                (told <= limits::RETRY_AFTER_MAX).then(|| told + limits::RETRY_BASE.mul_f64(share))
            }
            (ErrorClass::Throttled | ErrorClass::Transient, None) => Some(full.mul_f64(share)),
            _ => None,
        }
    }
}

impl Layer for Backoff {
    async fn around<'a, T, F>(&'a self, provider: &'a ProviderId, call: Call, send: F) -> Result<T>
    where
        T: Send + 'a,
        F: Fn() -> Sent<'a, T> + Send + Sync + 'a,
    {
        let mut attempt = 0;
        loop {
            let error = match send().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(pause) = self.pause(call, attempt, &error) else { return Err(error) };
            attempt += 1;
            tracing::debug!(
                provider = provider.as_str(),
                call = call.as_str(),
                attempt,
                class = error.class.as_str(),
                pause_ms = pause.as_millis() as u64,
                "provider call is sent again"
            );
            self.timer.wait(pause).await;
        }
    }
}
