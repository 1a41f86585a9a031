//! One simulated machine: written down once with all that will happen to it, so that its state at any moment is a
//! function of that moment, and the world goes on while nobody looks.

use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};

use super::profile::Profile;
use crate::domain::{AcceleratorCount, HourlyRate, Instance, InstanceId, InstanceState, Mark, OfferKey};

/// How long a machine that is gone stays in lists. EC2 keeps them "for a short interval", about an hour.
const LISTED_AFTER_GONE: Duration = Duration::hours(1);
/// How long its token is remembered: EC2 promises at least 24 hours.
pub(super) const TOKEN_KEPT: Duration = Duration::hours(24);

/// A machine as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) id: InstanceId,
    pub(super) offer: OfferKey,
    pub(super) gpus: AcceleratorCount,
    /// What it counts against which quota.
    pub(super) quota: Option<(String, f64)>,
    /// Bound at its launch.
    pub(super) price: HourlyRate,
    pub(super) token: String,
    pub(super) mark: Mark,
    pub(super) launched_at: DateTime<Utc>,
    /// Before this no read shows it.
    pub(super) visible_from: DateTime<Utc>,
    pub(super) running_at: DateTime<Utc>,
    /// When its making fails, if it does.
    pub(super) fails_at: Option<DateTime<Utc>>,
    /// When it is told that it will be taken away, and when that happens.
    pub(super) notice_at: Option<DateTime<Utc>>,
    pub(super) taken_at: Option<DateTime<Utc>>,
    /// When its deletion was accepted.
    pub(super) terminated_at: Option<DateTime<Utc>>,
    /// Who deleted it, where that was not us.
    pub(super) ended_by: Option<String>,
    /// How long it takes to go.
    pub(super) winding_ms: i64,
    /// A state that somebody put it in behind our back.
    pub(super) forced: Option<InstanceState>,
}

/// What ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Failed,
    Taken,
    Terminated,
}

impl Machine {
    /// What ended it first, by `at`.
    fn end(&self, at: DateTime<Utc>) -> Option<(DateTime<Utc>, End)> {
        [(self.fails_at, End::Failed), (self.taken_at, End::Taken), (self.terminated_at, End::Terminated)]
            .into_iter()
            .filter_map(|(when, what)| when.filter(|w| *w <= at).map(|w| (w, what)))
            .min_by_key(|(when, _)| *when)
    }

    fn profile(&self) -> Profile {
        Profile::of(self.offer.provider.as_str())
    }

    /// Since when it is gone, if it is by `at`.
    pub(super) fn gone_at(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let winding = Duration::milliseconds(self.winding_ms);
        let gone = match self.end(at)? {
            (when, End::Taken | End::Terminated) => when + winding,
            (_, End::Failed) if self.profile().failed_stays => self.terminated_at.filter(|t| *t <= at)? + winding,
            (when, End::Failed) => when,
        };
        (gone <= at).then_some(gone)
    }

    /// Its state, whoever may see it.
    pub(super) fn state(&self, at: DateTime<Utc>) -> InstanceState {
        if self.gone_at(at).is_some() {
            return InstanceState::Gone;
        }
        if let Some(forced) = &self.forced {
            return forced.clone();
        }
        match self.end(at) {
            None if at < self.running_at => InstanceState::Provisioning,
            None => InstanceState::Running,
            Some((_, End::Taken)) => InstanceState::Preempted,
            Some((_, End::Failed)) if self.terminated_at.is_none_or(|t| t > at) => InstanceState::Failed,
            Some(_) => InstanceState::Terminating,
        }
    }

    /// Whether it still takes up stock and quota: until it is taken or gone.
    pub(super) fn holds(&self, at: DateTime<Utc>) -> bool {
        self.launched_at <= at && !matches!(self.state(at), InstanceState::Preempted | InstanceState::Gone)
    }

    /// Whether nothing needs to be remembered of it any more.
    pub(super) fn forgotten(&self, at: DateTime<Utc>) -> bool {
        self.gone_at(at).is_some_and(|gone| gone + TOKEN_KEPT <= at)
    }

    /// As a read at `at` shows it; `None` before it is visible and an hour after it is gone.
    pub(super) fn seen(&self, at: DateTime<Utc>) -> Option<Instance> {
        let listed = at >= self.visible_from && self.gone_at(at).is_none_or(|gone| at < gone + LISTED_AFTER_GONE);
        listed.then(|| self.instance(at))
    }

    /// As it is.
    pub(super) fn instance(&self, at: DateTime<Utc>) -> Instance {
        let profile = self.profile();
        let end = self.end(at);
        let told = self.notice_at.is_some_and(|t| t <= at) && end.is_none();
        Instance {
            id: self.id.clone(),
            location: self.offer.location(),
            instance_type: self.offer.instance_type.clone(),
            purchase: self.offer.purchase,
            state: self.state(at),
            launched_at: Some(self.launched_at),
            ended_at: self.gone_at(at),
            price: Some(self.price),
            token: profile.no_token.is_none().then(|| self.token.clone()),
            mark: Some(self.mark.clone()),
            preemption_notice: self.taken_at.filter(|_| told),
            reason: end.map(|(_, what)| match what {
                End::Failed => format!("{}: no capacity while the machine was being made", profile.no_capacity),
                End::Taken => format!("{}: taken away by the cloud", profile.preempted),
                End::Terminated => self.ended_by.clone().unwrap_or_else(|| "deleted on request".to_owned()),
            }),
        }
    }
}
