//! Calls to providers, each within its deadline. A call that does not answer is a passing fault with an unknown outcome.

use std::collections::BTreeMap;

use super::account::Standing;
use super::boot::reference;
use super::shared::Shared;
use super::timer;
use crate::domain::{ErrorClass, Instance, Mark, ProviderError, ProviderId, Region};
use crate::provider::{Connected, InstanceRef, LaunchRequest, Offerings, Operator, Result, Termination};
use crate::store::{IntentRow, IntentState};

impl Shared {
    /// A cloud by its name.
    pub(crate) fn connected(&self, provider: &ProviderId, call: &str) -> Result<&Connected> {
        self.providers.iter().find(|c| c.watch.id() == provider).ok_or_else(|| {
            let why = self.absent.iter().find(|a| &a.provider == provider);
            let text = why.map_or_else(
                || "this session has no connection to it; add its credentials".to_owned(),
                |a| format!("{}; {}", a.reason, a.remedy),
            );
            ProviderError::new(ErrorClass::Auth, provider, call, text).code("NotConnected")
        })
    }

    fn acting(&self, provider: &ProviderId, call: &str) -> Result<&dyn Operator> {
        self.connected(provider, call)?.act.as_deref().ok_or_else(|| {
            ProviderError::new(ErrorClass::Auth, provider, call, "this session is read-only").code("ReadOnly")
        })
    }

    fn unanswered(&self, provider: &ProviderId, call: &str) -> ProviderError {
        let text = format!("no answer within {} s", self.limits.call_deadline.as_secs());
        ProviderError::new(ErrorClass::Transient, provider, call, text).code("NoAnswer")
    }

    pub(crate) async fn call_launch(&self, request: &LaunchRequest) -> Result<Instance> {
        let provider = &request.offer.provider;
        let acting = self.acting(provider, "launch")?;
        timer::within(self.limits.call_deadline, acting.launch(request))
            .await
            .unwrap_or_else(|| Err(self.unanswered(provider, "launch")))
    }

    pub(crate) async fn call_terminate(&self, provider: &ProviderId, target: &InstanceRef) -> Result<Termination> {
        let acting = self.acting(provider, "terminate")?;
        timer::within(self.limits.call_deadline, acting.terminate(target))
            .await
            .unwrap_or_else(|| Err(self.unanswered(provider, "terminate")))
    }

    pub(crate) async fn call_account(&self, provider: &ProviderId) -> Result<String> {
        let watch = &self.connected(provider, "account")?.watch;
        timer::within(self.limits.call_deadline, watch.account())
            .await
            .unwrap_or_else(|| Err(self.unanswered(provider, "account")))
    }

    pub(crate) async fn call_describe(&self, provider: &ProviderId, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        let watch = &self.connected(provider, "describe")?.watch;
        timer::within(self.limits.call_deadline, watch.describe(ids))
            .await
            .unwrap_or_else(|| Err(self.unanswered(provider, "describe")))
    }

    pub(crate) async fn call_find(
        &self,
        provider: &ProviderId,
        region: &Region,
        token: &str,
        mark: &Mark,
    ) -> Result<Vec<Instance>> {
        let watch = &self.connected(provider, "find_by_token")?.watch;
        timer::within(self.limits.call_deadline, watch.find_by_token(region, token, mark))
            .await
            .unwrap_or_else(|| Err(self.unanswered(provider, "find_by_token")))
    }

    pub(crate) async fn call_instances(&self, provider: &ProviderId) -> Result<Vec<Instance>> {
        let watch = &self.connected(provider, "instances")?.watch;
        timer::within(self.limits.feed_deadline, watch.instances(&self.owner))
            .await
            .unwrap_or_else(|| Err(self.unanswered(provider, "instances")))
    }

    pub(crate) async fn call_offerings(&self, provider: &ProviderId) -> Result<Offerings> {
        let watch = &self.connected(provider, "offerings")?.watch;
        timer::within(self.limits.feed_deadline, watch.offerings())
            .await
            .unwrap_or_else(|| Err(self.unanswered(provider, "offerings")))
    }

    /// Describe the machines of these intents, each region for itself: one that does not answer hides no other's machines.
    pub(crate) async fn describe_all<'a>(&self, intents: impl Iterator<Item = &'a IntentRow>) -> Looks {
        let mut wanted: BTreeMap<Place, Vec<InstanceRef>> = BTreeMap::new();
        for intent in intents.filter(|i| i.state == IntentState::Accepted) {
            if let Some(target) = reference(intent) {
                wanted.entry(place(intent, &target)).or_default().push(target);
            }
        }
        let asked = wanted.into_iter().map(|(at, ids)| async move {
            let standing = self.standing(&at.0, at.1.as_deref(), "describe").await;
            let answer = match &standing {
                Standing::Other(error) => Err(error.clone()),
                Standing::Same | Standing::Unknown(_) => self.call_describe(&at.0, &ids).await,
            };
            (at, (answer, matches!(standing, Standing::Same)))
        });
        Looks(futures_util::future::join_all(asked).await.into_iter().collect())
    }
}

/// Where machines are looked at in one call: provider, the account that they were made in, region.
type Place = (ProviderId, Option<String>, Region);

fn place(intent: &IntentRow, target: &InstanceRef) -> Place {
    (intent.offer.provider.clone(), intent.account.clone(), target.location.region.clone())
}

/// What the providers said of the machines of several intents, and whether each was asked with the right account.
pub(crate) struct Looks(BTreeMap<Place, (Result<Vec<Instance>>, bool)>);

/// What was seen of one machine.
pub(crate) enum Look<'a> {
    /// It was not asked for: it has no id yet.
    NotAsked,
    /// The provider did not answer.
    Failed(&'a ProviderError),
    /// It is there.
    Seen(&'a Instance),
    /// It is not there.
    Absent,
    /// It is not there; but whose account was asked is not known, so that says nothing.
    AbsentSomewhere,
}

impl Looks {
    /// What was seen of this intent's machine.
    pub(crate) fn of(&self, intent: &IntentRow) -> Look<'_> {
        let answer = reference(intent).and_then(|target| Some((self.0.get(&place(intent, &target))?, target)));
        match answer {
            None => Look::NotAsked,
            Some(((Err(error), _), _)) => Look::Failed(error),
            Some(((Ok(list), same), target)) => match list.iter().find(|seen| seen.id == target.id) {
                Some(seen) => Look::Seen(seen),
                None if *same => Look::Absent,
                None => Look::AbsentSomewhere,
            },
        }
    }
}
