//! Feeds: one task a provider asks for its offers, and the market's owner is told what came of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::options::Mode;
use super::publish::Told;
use super::shared::{Shared, world};
use super::timer;
use crate::config::limits::{EngineLimits, FIGURES_EXPIRE_AFTER, FIRST_ANSWER_DEADLINE};
use crate::domain::ProviderId;

impl Shared {
    /// Ask one provider for its offers; gives whether it answered.
    pub(crate) async fn ask(&self, provider: &ProviderId) -> bool {
        match self.call_offerings(provider).await {
            Ok(offerings) => {
                self.tell(Told::Answered(provider.clone(), offerings)).await;
                true
            }
            Err(error) => {
                self.tell(Told::Failed(provider.clone(), error)).await;
                false
            }
        }
    }

    /// Ask these providers (all, where `None`) at once; returns when each has answered or run out of time, and what they
    /// said is published.
    pub(crate) async fn ask_all(&self, only: Option<&[ProviderId]>) {
        let wanted = self.providers.iter().map(|c| c.watch.id()).filter(|id| only.is_none_or(|o| o.contains(id)));
        join_all(wanted.map(|id| self.ask(id))).await;
        self.publish_now().await;
    }

    /// Before a place is chosen: feeds that nobody keeps fresh (a single command has none) are asked again. In live mode
    /// each feed has its own pace, and a failing one is not pressed.
    pub(crate) async fn refresh_if_old(&self) {
        let now = self.now();
        let oldest = now - world(Pace::of(&self.limits, self.clock.speed()).every);
        let old: Vec<ProviderId> = {
            let state = self.state.borrow();
            let answered = |id: &ProviderId| {
                state.market.feeds().iter().any(|f| &f.provider == id && f.answered_at.is_some_and(|at| at >= oldest))
            };
            self.providers.iter().map(|c| c.watch.id()).filter(|id| !answered(id)).cloned().collect()
        };
        if self.mode == Mode::OneShot && !old.is_empty() {
            self.ask_all(Some(&old)).await;
        } else {
            self.publish_now().await;
        }
    }
}

/// Real: however fast the world's time runs, a provider is asked no more often than that.
const QUICKEST: Duration = Duration::from_secs(1);

/// How often providers can really be asked in a world that goes at some speed, and the ages that follow from it. All in
/// the world's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// Between two questions.
    pub(crate) every: Duration,
    /// By how much longer than wanted that is; 1 where it is as wanted. Facts become too old to act on so much later.
    pub(crate) stretch: f64,
    /// How long a first answer is awaited: people wait in real time.
    pub(crate) first_answer: Duration,
}

impl Pace {
    pub(crate) fn of(limits: &EngineLimits, speed: f64) -> Self {
        let speed = speed.clamp(1.0, 1e6);
        let every = limits.feed_every.max(QUICKEST.mul_f64(speed));
        let stretch = every.as_secs_f64() / limits.feed_every.max(Duration::from_millis(1)).as_secs_f64();
        Self { every, stretch, first_answer: FIRST_ANSWER_DEADLINE.mul_f64(speed) }
    }

    /// The age past which facts are not planned with.
    pub(crate) fn expired_after(self) -> Duration {
        FIGURES_EXPIRE_AFTER.mul_f64(self.stretch)
    }
}

/// Ask a provider again and again: at its interval with some jitter, less often while it fails.
pub(crate) async fn run(shared: Arc<Shared>, provider: ProviderId) {
    let mut failures = 0_u32;
    loop {
        let asked = shared.now();
        let answered = shared.ask(&provider).await;
        failures = if answered { 0 } else { failures.saturating_add(1) };
        let beat = shared.real(shared.limits.feed_every).max(QUICKEST);
        // A tenth of jitter keeps several processes from asking in step.
        let wait = pause(beat, failures, shared.real(shared.limits.feed_backoff_max));
        let wait = wait.mul_f64(0.95 + 0.1 * shared.ids.fraction());
        // From question to question: a slow answer does not make the next one late.
        let spent = shared.real((shared.now() - asked).to_std().unwrap_or_default());
        let rest = if failures == 1 { QUICKEST / 4 } else { beat / 4 };
        timer::wait(wait.saturating_sub(spent).max(rest)).await;
    }
}

/// Real: from one question to the next after so many failures in a row. One miss is a hiccup: the provider is asked again
/// soon, so that the next answer comes before what is known counts as stale. From the second on it is not pressed.
fn pause(beat: Duration, failures: u32, longest: Duration) -> Duration {
    match failures {
        0 => beat,
        1 => beat / 4,
        more => beat.saturating_mul(1 << (more - 1).min(10)).min(longest.max(beat)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_world_that_goes_faster_than_providers_can_be_asked_facts_keep_longer() {
        let limits = EngineLimits::default();
        let pace = |speed| {
            let pace = Pace::of(&limits, speed);
            (pace.every.as_secs(), pace.expired_after().as_secs(), pace.first_answer.as_secs())
        };
        assert_eq!(pace(0.5), (60, 600, 10));
        assert_eq!(pace(1.0), (60, 600, 10));
        assert_eq!(pace(60.0), (60, 600, 600));
        assert_eq!(pace(600.0), (600, 6_000, 6_000));
        assert_eq!(pace(100_000.0), (100_000, 1_000_000, 1_000_000));
    }

    #[test]
    fn op14_one_miss_is_asked_about_soon_and_more_are_backed_off() {
        let minute = Duration::from_mins(1);
        let seconds: Vec<u64> = (0..8).map(|n| pause(minute, n, minute * 10).as_secs()).collect();
        assert_eq!(seconds, [60, 15, 120, 240, 480, 600, 600, 600]);
        assert_eq!(pause(minute, u32::MAX, Duration::ZERO), minute, "never quicker than the interval");
    }
}
