//! One log line a call, and counters. No argument of a call is ever logged: they may hold secrets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::layer::{Call, Layer, Layered, Sent};
use super::timer::Timer;
use crate::domain::text::inert;
use crate::domain::{ProviderError, ProviderId};
use crate::provider::Result;

/// A provider whose calls are logged and counted.
pub type Telemetry<P> = Layered<Recorder, P>;

/// What a kind of call has been like since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Calls that came to an end.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// What callers waited in all.
    pub total: Duration,
    /// What the slowest took.
    pub slowest: Duration,
}

/// Counters of a provider's calls, to be read at any time.
#[derive(Debug, Default)]
pub struct Counters {
    kinds: [Counter; Call::ALL.len()],
}

#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    failed: AtomicU64,
    total_micros: AtomicU64,
    slowest_micros: AtomicU64,
}

impl Counters {
    /// What this kind of call has been like.
    pub fn read(&self, call: Call) -> CallStats {
        let Some(c) = self.kinds.get(call as usize) else { return CallStats::default() };
        CallStats {
            calls: c.calls.load(Ordering::Relaxed),
            failed: c.failed.load(Ordering::Relaxed),
            total: Duration::from_micros(c.total_micros.load(Ordering::Relaxed)),
            slowest: Duration::from_micros(c.slowest_micros.load(Ordering::Relaxed)),
        }
    }

    fn record(&self, call: Call, took: Duration, failed: bool) {
        let Some(c) = self.kinds.get(call as usize) else { return };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        c.calls.fetch_add(1, Ordering::Relaxed);
        c.failed.fetch_add(u64::from(failed), Ordering::Relaxed);
        c.total_micros.fetch_add(micros, Ordering::Relaxed);
        c.slowest_micros.fetch_max(micros, Ordering::Relaxed);
    }
}

/// Logs and counts.
pub struct Recorder {
    timer: Arc<dyn Timer>,
    counters: Arc<Counters>,
}

impl Recorder {
    /// Into these counters.
    pub fn new(timer: Arc<dyn Timer>, counters: Arc<Counters>) -> Self {
        Self { timer, counters }
    }
}

impl Layer for Recorder {
    async fn around<'a, T, F>(&'a self, provider: &'a ProviderId, call: Call, send: F) -> Result<T>
    where
        T: Send + 'a,
        F: Fn() -> Sent<'a, T> + Send + Sync + 'a,
    {
        let start = self.timer.now();
        let answer = send().await;
        let took = self.timer.now().saturating_sub(start);
        self.counters.record(call, took, answer.is_err());
        log(provider, call, took, answer.as_ref().err());
        answer
    }
}

fn log(provider: &ProviderId, call: Call, took: Duration, error: Option<&ProviderError>) {
    let (provider, call, millis) = (provider.as_str(), call.as_str(), took.as_millis() as u64);
    match error {
        None => tracing::debug!(provider, call, millis, "provider call was answered"),
        Some(error) => tracing::warn!(
            provider,
            call,
            millis,
            operation = %inert(&error.operation),
            class = error.class.as_str(),
            code = %inert(&error.code),
            region = error.region.as_ref().map(|r| inert(r.as_str()).into_owned()),
            request_id = error.request_id.as_deref().map(|r| inert(r).into_owned()),
            message = %inert(&error.message),
            "provider call failed"
        ),
    }
}
