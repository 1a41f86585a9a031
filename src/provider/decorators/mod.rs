//! Cross-cutting work around a provider, each piece itself a provider around another. From outside in:
//!
//! 1. [`Telemetry`]: one log line a call and counters, over all that the caller waited for.
//! 2. [`Circuit`]: a kind of call that keeps failing is left alone for a while.
//! 3. [`Timeout`]: no call takes longer than its deadline, retries and waiting included.
//! 4. [`Retry`]: reads are sent again; a launch or a terminate never is, its outcome is looked up instead.
//! 5. [`RateLimit`]: an account's calls keep below its quota; terminates have a budget of their own.
//! 6. The adapter.
//!
//! What stands between the caller and the adapter keeps the adapter's promises: an error that is made here is
//! `Throttled` where it is certain that nothing was sent, and `Transient` where it is not.

mod circuit;
mod layer;
mod rate_limit;
mod retry;
mod telemetry;
mod timeout;
mod timer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use circuit::{Breakers, Circuit};
pub use layer::{Call, Layer, Layered, Sent};
pub use rate_limit::{Budget, Limiter, RateLimit};
pub use retry::{Backoff, Jitter, Retry};
pub use telemetry::{CallStats, Counters, Recorder, Telemetry};
pub use timeout::{Deadlines, Timeout};
pub use timer::{RuntimeTimer, Timer};

use super::{Connected, Operator, Provider};

/// All decorators around a provider, in their order.
pub type Decorated<P> = Telemetry<Circuit<Timeout<Retry<RateLimit<P>>>>>;

/// What the decorators need from outside.
#[derive(Clone)]
pub struct Options {
    /// How time passes.
    pub timer: Arc<dyn Timer>,
    /// Random numbers from 0 to 1 for the pauses between retries.
    pub jitter: Jitter,
    /// The account's budget of calls; the same one for everything that uses the same account.
    pub limiter: Arc<Limiter>,
    /// Where calls are counted.
    pub counters: Arc<Counters>,
}

impl Options {
    /// With the usual budget of an account of its own, and counters of its own.
    pub fn new(timer: Arc<dyn Timer>, jitter: Jitter) -> Self {
        Self { timer, jitter, limiter: Arc::new(Limiter::default()), counters: Arc::default() }
    }
}

/// Put all decorators around both halves of a cloud, which go on sharing one budget and one memory of failures.
pub fn decorate(connected: Connected, options: &Options) -> Connected {
    match connected.act {
        Some(operator) => Connected::full(around::<dyn Operator>(operator, options)),
        None => Connected::read_only(around::<dyn Provider>(connected.watch, options)),
    }
}

/// Put all decorators around one adapter.
pub fn around<P: Provider + ?Sized>(adapter: Arc<P>, options: &Options) -> Arc<Decorated<P>> {
    let timer = || Arc::clone(&options.timer);
    let limited = Layered::around(Budget::new(timer(), Arc::clone(&options.limiter)), adapter);
    let retried = Layered::around(Backoff::new(timer(), Arc::clone(&options.jitter)), limited);
    let timed = Layered::around(Deadlines::new(timer()), retried);
    let broken = Layered::around(Breakers::new(timer()), timed);
    Layered::around(Recorder::new(timer(), Arc::clone(&options.counters)), broken)
}
