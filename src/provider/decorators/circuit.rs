//! A kind of call that keeps failing is left alone for a while, then tried with one call. Each kind for itself: an
//! outage of the price list must not keep us from looking at our machines. A terminate and a check are always sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::layer::{Call, Layer, Layered, Sent};
use super::timer::Timer;
use crate::config::limits;
use crate::domain::{ErrorClass, ProviderError, ProviderId};
use crate::provider::Result;

/// A provider that is left alone when it keeps failing.
pub type Circuit<P> = Layered<Breakers, P>;

/// A breaker a kind of call.
pub struct Breakers {
    timer: Arc<dyn Timer>,
    kinds: Mutex<[Breaker; 3]>,
}

#[derive(Debug, Default)]
struct Breaker {
    /// Failures in a row.
    failures: u32,
    /// How often in a row it has opened.
    opened: u32,
    open_until: Option<Duration>,
    /// The one call that may try is on its way.
    trying: bool,
    last_failure: String,
}

/// Which breaker a call goes through, if any.
const fn kind(call: Call) -> Option<usize> {
    match call {
        Call::Offerings => Some(0),
        Call::Instances | Call::Describe | Call::FindByToken => Some(1),
        Call::Launch => Some(2),
        Call::Check | Call::Account | Call::Terminate => None,
    }
}

impl Breakers {
    /// All closed.
    pub fn new(timer: Arc<dyn Timer>) -> Self {
        Self { timer, kinds: Mutex::default() }
    }

    fn with<R>(&self, kind: usize, act: impl FnOnce(&mut Breaker) -> R) -> Option<R> {
        let mut kinds: MutexGuard<'_, [Breaker; 3]> = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.get_mut(kind).map(act)
    }
}

impl Breaker {
    /// Whether a call may pass: `Ok(true)` as the one that tries; `Err` for how long it may not.
    fn admit(&mut self, now: Duration) -> std::result::Result<bool, Duration> {
        match self.open_until {
            None => Ok(false),
            Some(until) if now < until => Err(until.saturating_sub(now)),
            // The outcome of the trial is a second or so away.
            Some(_) if self.trying => Err(Duration::from_secs(1)),
            Some(_) => {
                self.trying = true;
                Ok(true)
            }
        }
    }

    fn learn<T>(&mut self, answer: &Result<T>, tried: bool, now: Duration) {
        match answer {
            Err(error) if error.class == ErrorClass::Transient => {
                self.failures = self.failures.saturating_add(1);
                self.last_failure = error.to_string();
                // Calls that were under way when it opened do not prolong it.
                let may_open = tried || self.open_until.is_none();
                if may_open && (tried || self.failures >= limits::CIRCUIT_FAILURES) {
                    let open = limits::CIRCUIT_OPEN
                        .saturating_mul(2_u32.saturating_pow(self.opened))
                        .min(limits::CIRCUIT_OPEN_MAX);
                    self.open_until = Some(now + open);
                    self.opened = self.opened.saturating_add(1);
                }
            }
            // Perhaps never sent: it tells neither that the provider is well nor that it is not.
            Err(error) if error.class == ErrorClass::Throttled => {}
            // Any other answer is an answer.
            Ok(_) | Err(_) => *self = Self { trying: self.trying, ..Self::default() },
        }
    }
}

/// Frees the place of the one call that may try, also when the caller gives up on it.
struct Trial<'a> {
    breakers: &'a Breakers,
    kind: usize,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.breakers.with(self.kind, |b| b.trying = false);
    }
}

impl Layer for Breakers {
    async fn around<'a, T, F>(&'a self, provider: &'a ProviderId, call: Call, send: F) -> Result<T>
    where
        T: Send + 'a,
        F: Fn() -> Sent<'a, T> + Send + Sync + 'a,
    {
        let Some(kind) = kind(call) else { return send().await };
        let (admitted, failures, last) = self
            .with(kind, |b| (b.admit(self.timer.now()), b.failures, b.last_failure.clone()))
            .unwrap_or((Ok(false), 0, String::new()));
        let tries = admitted.map_err(|wait| refusal(provider, call, wait, failures, &last))?;
        let _trial = tries.then_some(Trial { breakers: self, kind });
        let answer = send().await;
        self.with(kind, |b| b.learn(&answer, tries, self.timer.now()));
        answer
    }
}

/// It is certain that nothing was sent, so it is `Throttled`: the caller waits as told, and looks nothing up.
fn refusal(provider: &ProviderId, call: Call, wait: Duration, failures: u32, last: &str) -> ProviderError {
    let text = format!(
        "not sent: {failures} such calls in a row failed, the next is tried in {} s; the last one: {last}",
        wait.as_secs().max(1)
    );
    let mut error = ProviderError::new(ErrorClass::Throttled, provider, call.as_str(), text).code("CircuitOpen");
    error.retry_after = Some(wait);
    error
}
