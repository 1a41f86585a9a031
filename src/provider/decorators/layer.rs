//! What all decorators share: the calls there are, and the way they are passed on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::{Instance, Mark, Offerings, ProviderError, ProviderId, Region};
use crate::provider::{
    Capabilities, Finding, FindingStatus, InstanceRef, LaunchRequest, Operator, Provider, Result, Termination,
};

/// The calls of a provider that go to the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`Provider::check`].
    Check,
    /// [`Provider::account`].
    Account,
    /// [`Provider::offerings`].
    Offerings,
    /// [`Provider::instances`].
    Instances,
    /// [`Provider::describe`].
    Describe,
    /// [`Provider::find_by_token`].
    FindByToken,
    /// [`Operator::launch`].
    Launch,
    /// [`Operator::terminate`].
    Terminate,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Check,
        Self::Account,
        Self::Offerings,
        Self::Instances,
        Self::Describe,
        Self::FindByToken,
        Self::Launch,
        Self::Terminate,
    ];

    /// As written in logs and errors.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Account => "account",
            Self::Offerings => "offerings",
            Self::Instances => "instances",
            Self::Describe => "describe",
            Self::FindByToken => "find_by_token",
            Self::Launch => "launch",
            Self::Terminate => "terminate",
        }
    }

    /// Whether it only looks, so that sending it again cannot do harm.
    pub const fn only_reads(self) -> bool {
        !matches!(self, Self::Launch | Self::Terminate)
    }
}

/// A call on its way.
pub type Sent<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What a decorator does around each call. `send` sends it on, as often as it is called.
pub trait Layer: Send + Sync {
    /// Do one call.
    fn around<'a, T, F>(
        &'a self,
        provider: &'a ProviderId,
        call: Call,
        send: F,
    ) -> impl Future<Output = Result<T>> + Send + 'a
    where
        T: Send + 'a,
        F: Fn() -> Sent<'a, T> + Send + Sync + 'a;
}

/// A provider with a layer around it.
#[derive(Debug)]
pub struct Layered<L, P: ?Sized> {
    layer: L,
    inner: Arc<P>,
}

impl<L: Layer, P: Provider + ?Sized> Layered<L, P> {
    /// Put a layer around a provider.
    pub fn around(layer: L, inner: Arc<P>) -> Arc<Self> {
        Arc::new(Self { layer, inner })
    }
}

#[async_trait]
impl<L: Layer, P: Provider + ?Sized> Provider for Layered<L, P> {
    fn id(&self) -> &ProviderId {
        self.inner.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn endpoint(&self) -> Option<String> {
        self.inner.endpoint()
    }

    fn regional_address(&self, region: &Region) -> Option<String> {
        self.inner.regional_address(region)
    }

    async fn check(&self) -> Vec<Finding> {
        let send = || -> Sent<'_, Vec<Finding>> { Box::pin(async { Ok(self.inner.check().await) }) };
        self.layer.around(self.id(), Call::Check, send).await.unwrap_or_else(|error| vec![failed_check(&error)])
    }

    async fn account(&self) -> Result<String> {
        self.layer.around(self.id(), Call::Account, || self.inner.account()).await
    }

    async fn offerings(&self) -> Result<Offerings> {
        self.layer.around(self.id(), Call::Offerings, || self.inner.offerings()).await
    }

    async fn instances(&self, owner: &str) -> Result<Vec<Instance>> {
        self.layer.around(self.id(), Call::Instances, || self.inner.instances(owner)).await
    }

    async fn describe(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        self.layer.around(self.id(), Call::Describe, || self.inner.describe(ids)).await
    }

    async fn find_by_token(&self, region: &Region, token: &str, mark: &Mark) -> Result<Vec<Instance>> {
        self.layer.around(self.id(), Call::FindByToken, || self.inner.find_by_token(region, token, mark)).await
    }
}

#[async_trait]
impl<L: Layer, P: Operator + ?Sized> Operator for Layered<L, P> {
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance> {
        self.layer.around(self.id(), Call::Launch, || self.inner.launch(request)).await
    }

    async fn terminate(&self, target: &InstanceRef) -> Result<Termination> {
        self.layer.around(self.id(), Call::Terminate, || self.inner.terminate(target)).await
    }
}

/// A check that did not come to an end is a finding too.
fn failed_check(error: &ProviderError) -> Finding {
    Finding {
        check: "answer".to_owned(),
        status: FindingStatus::Fail,
        detail: error.to_string(),
        remedy: "See whether the provider's address can be reached from here, then try again.".to_owned(),
    }
}
