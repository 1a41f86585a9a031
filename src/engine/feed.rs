//! Feeds: one task a provider asks for its offers, and the market's owner is told what came of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::options::Mode;
use super::publish::Told;
use super::shared::{Shared, world};
use super::timer;
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
        let oldest = now - world(self.limits.feed_every);
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

/// Ask a provider again and again: at its interval with some jitter, less often while it fails.
pub(crate) async fn run(shared: Arc<Shared>, provider: ProviderId) {
    let mut failures = 0_u32;
    loop {
        let answered = shared.ask(&provider).await;
        failures = if answered { 0 } else { failures.saturating_add(1) };
        let every = shared.limits.feed_every;
        let pace = every.saturating_mul(1 << failures.min(10)).min(shared.limits.feed_backoff_max.max(every));
        // A tenth of jitter keeps several processes from asking in step.
        let wait = pace.mul_f64(0.95 + 0.1 * shared.ids.fraction());
        timer::wait(shared.real(wait).max(QUICKEST)).await;
    }
}
