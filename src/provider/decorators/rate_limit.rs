//! An account's calls keep below its quota. Terminates have a budget of their own: stopping what costs money never
//! queues behind looking at it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::layer::{Call, Layer, Layered, Sent};
use super::timer::Timer;
use crate::config::limits;
use crate::domain::{ErrorClass, ProviderError, ProviderId};
use crate::provider::Result;

/// A provider whose calls are spread out.
pub type RateLimit<P> = Layered<Budget, P>;

/// The budget of one account, shared by everything that uses it.
#[derive(Debug)]
pub struct Limiter {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    general: Bucket,
    terminates: Bucket,
}

/// A token bucket, kept as the time at which it would be full again (the generic cell rate algorithm): exact, and
/// callers queue in the order in which they ask.
#[derive(Debug)]
struct Bucket {
    /// Time for one token to come back.
    refill: Duration,
    /// How many tokens it holds.
    burst: u32,
    full_at: Duration,
    /// The provider has asked to be left alone until then.
    paused_until: Duration,
}

impl Bucket {
    fn new(per_second: f64, burst: u32) -> Self {
        let refill = Duration::try_from_secs_f64(1.0 / per_second).unwrap_or(Duration::ZERO);
        Self { refill, burst: burst.max(1), full_at: Duration::ZERO, paused_until: Duration::ZERO }
    }

    /// How long until a token could be had.
    fn wait(&self, now: Duration) -> Duration {
        let tolerance = self.refill.saturating_mul(self.burst - 1);
        let in_turn = self.full_at.max(now).saturating_sub(tolerance).saturating_sub(now);
        in_turn.max(self.paused_until.saturating_sub(now))
    }

    fn take(&mut self, now: Duration) {
        self.full_at = self.full_at.max(now) + self.refill;
    }
}

impl Default for Limiter {
    fn default() -> Self {
        Self::new(
            limits::CALLS_PER_SECOND,
            limits::CALLS_BURST,
            limits::TERMINATES_PER_SECOND,
            limits::TERMINATES_BURST,
        )
    }
}

impl Limiter {
    /// A budget of so many calls a second and at once, and beside it one of so many terminates.
    pub fn new(per_second: f64, burst: u32, terminates_per_second: f64, terminates_burst: u32) -> Self {
        Self {
            state: Mutex::new(State {
                general: Bucket::new(per_second, burst),
                terminates: Bucket::new(terminates_per_second, terminates_burst),
            }),
        }
    }

    /// Take a place in the queue: how long until it is this call's turn. `Err` is a wait too long to take the place.
    fn queue(&self, call: Call, now: Duration) -> std::result::Result<Duration, Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let bucket = if call == Call::Terminate {
            // Its own budget first: what is left of the general one is for looking whether it worked.
            if state.terminates.wait(now) > Duration::ZERO && state.general.wait(now) == Duration::ZERO {
                &mut state.general
            } else {
                &mut state.terminates
            }
        } else {
            &mut state.general
        };
        let wait = bucket.wait(now);
        if wait > limits::RATE_WAIT_MAX {
            return Err(wait);
        }
        bucket.take(now);
        Ok(wait)
    }

    /// The provider has asked for a pause. Reads do not hold up terminates by it, nor the other way round.
    fn pause(&self, call: Call, until: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = if call == Call::Terminate { &mut state.terminates } else { &mut state.general };
        bucket.paused_until = bucket.paused_until.max(until);
    }

    /// How long a pause has still to go.
    fn paused_for(&self, call: Call, now: Duration) -> Duration {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = if call == Call::Terminate { &state.terminates } else { &state.general };
        bucket.paused_until.saturating_sub(now)
    }
}

/// Lets calls pass as a [`Limiter`] allows.
pub struct Budget {
    limiter: Arc<Limiter>,
    timer: Arc<dyn Timer>,
}

impl Budget {
    /// Of the account that this limiter belongs to.
    pub fn new(timer: Arc<dyn Timer>, limiter: Arc<Limiter>) -> Self {
        Self { limiter, timer }
    }
}

impl Layer for Budget {
    async fn around<'a, T, F>(&'a self, provider: &'a ProviderId, call: Call, send: F) -> Result<T>
    where
        T: Send + 'a,
        F: Fn() -> Sent<'a, T> + Send + Sync + 'a,
    {
        let too_long = |wait: Duration| {
            let mut error = ProviderError::new(
                ErrorClass::Throttled,
                provider,
                call.as_str(),
                format!("not sent: this account's budget of calls is used up for {} s", wait.as_secs()),
            )
            .code("RateLimited");
            error.retry_after = Some(wait);
            error
        };
        let asked_at = self.timer.now();
        let mut wait = self.limiter.queue(call, asked_at).map_err(too_long)?;
        while wait > Duration::ZERO {
            self.timer.wait(wait).await;
            // Somebody else may have been told to pause meanwhile.
            wait = self.limiter.paused_for(call, self.timer.now());
            if wait > Duration::ZERO && self.timer.now() + wait > asked_at + limits::RATE_WAIT_MAX {
                return Err(too_long(wait));
            }
        }
        let answer = send().await;
        if let Err(error) = &answer
            && error.class == ErrorClass::Throttled
        {
            // However long it asks for: an end of billing must not wait for a day because of one header.
            let pause = error.retry_after.unwrap_or(limits::THROTTLED_PAUSE).min(limits::THROTTLED_PAUSE_MAX);
            self.limiter.pause(call, self.timer.now().saturating_add(pause));
        }
        answer
    }
}
