//! Calls to providers, each within its deadline. A call that does not answer is a passing fault with an unknown outcome.

use std::collections::HashMap;

use super::shared::Shared;
use super::timer;
use crate::domain::{ErrorClass, Instance, Mark, ProviderError, ProviderId, Region};
use crate::provider::{Connected, InstanceRef, LaunchRequest, Offerings, Operator, Result, Termination};

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

    /// Describe machines of several providers at once: what each answered.
    pub(crate) async fn describe_all(
        &self,
        wanted: HashMap<ProviderId, Vec<InstanceRef>>,
    ) -> HashMap<ProviderId, Result<Vec<Instance>>> {
        let asked = wanted.into_iter().map(|(provider, ids)| async move {
            let answer = self.call_describe(&provider, &ids).await;
            (provider, answer)
        });
        futures_util::future::join_all(asked).await.into_iter().collect()
    }
}
