//! Google Compute Engine: accelerator machine types by zone, what runs under our mark, and, where an image is configured,
//! launch and terminate.
//!
//! N1 machines with attached GPUs are not listed: their GPU is not part of the type. Nothing here says what is in stock;
//! a type that is listed in a zone may well be sold out there.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _};
use google_cloud_auth::credentials::Credentials;
use google_cloud_compute_v1::client::{Instances, MachineTypes, Regions, ZoneOperations};
use google_cloud_gax::paginator::ItemPaginator as _;
use google_cloud_gax::retry_policy::{Aip194Strict, RetryPolicyExt as _};
use tokio::sync::OnceCell;

use super::published::Published;
use super::{
    Absent, Capabilities, Connected, Finding, InstanceRef, LaunchRequest, Offerings, Operator, Provider, Result,
    Support, Termination, account_at,
};
use crate::config::gcp::GcpSettings;
use crate::config::limits::{GCP_USER_DATA_BYTES, LOOKS_AT_ONCE};
use crate::domain::{Clock, ErrorClass, Instance, Mark, ProviderError, ProviderId, Region};

mod errors;
mod launch;
mod machine_types;
mod machines;
mod quotas;

/// Types of the accelerator-optimised families; a filter, since a project has tens of thousands of other rows.
const ACCELERATOR_FAMILIES: &str = r#"name eq "(a2|a3|a4|a4x|g2|g4)-.*""#;

/// One project.
pub struct Gcp {
    id: ProviderId,
    capabilities: Capabilities,
    project: String,
    settings: GcpSettings,
    credentials: Option<Credentials>,
    machine_types: OnceCell<MachineTypes>,
    instances: OnceCell<Instances>,
    operations: OnceCell<ZoneOperations>,
    regions_client: OnceCell<Regions>,
    quotas: tokio::sync::Mutex<Option<Arc<quotas::Quotas>>>,
    published: Published,
    clock: Arc<dyn Clock>,
}

/// Why nothing can be launched.
const NOT_SET_UP: &str = "launching needs image under [providers.gcp]";

fn absent(reason: &str, remedy: &str) -> Absent {
    Absent { provider: "gcp".into(), reason: reason.to_owned(), remedy: remedy.to_owned() }
}

/// The adapter for these settings. Touches no network; clients are made at the first call. It has an acting half where
/// all that a machine needs is configured.
pub fn connect(settings: &GcpSettings, clock: Arc<dyn Clock>) -> std::result::Result<Connected, Absent> {
    // Without the file the library would ask the metadata server, and a laptop would wait for an answer that never comes.
    if !settings.credentials_file.as_ref().is_some_and(|f| f.is_file()) {
        return Err(absent(
            "no application default credentials",
            "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS.",
        ));
    }
    let gcp = Arc::new(Gcp::new(settings, None, clock)?);
    Ok(if gcp.capabilities.launch_token == Support::Yes { Connected::full(gcp) } else { Connected::read_only(gcp) })
}

impl Gcp {
    /// With credentials made elsewhere; `None` takes the application default ones.
    pub fn new(
        settings: &GcpSettings,
        credentials: Option<Credentials>,
        clock: Arc<dyn Clock>,
    ) -> std::result::Result<Self, Absent> {
        let project = settings.project.clone().ok_or_else(|| {
            absent(
                "no project is named",
                "Set project in [providers.gcp] of the configuration, or GOOGLE_CLOUD_PROJECT.",
            )
        })?;
        let acts = settings.image.is_some();
        Ok(Self {
            id: "gcp".into(),
            capabilities: Capabilities {
                launch_token: if acts { Support::Yes } else { Support::No(NOT_SET_UP.into()) },
                spot: Support::No("spot prices are not read from Google Cloud yet".into()),
                zones: Support::Yes,
                live_prices: Support::No("prices are those of the published table".into()),
                stock: Support::No("a type that is listed may be sold out".into()),
                max_instances_per_request: u32::from(acts),
                start_script_bytes: Some(GCP_USER_DATA_BYTES),
                // Changed once a month at most, and no live price is read: what was bound stands.
                spot_follows_market: false,
            },
            project,
            settings: settings.clone(),
            credentials,
            machine_types: OnceCell::new(),
            instances: OnceCell::new(),
            operations: OnceCell::new(),
            regions_client: OnceCell::new(),
            quotas: tokio::sync::Mutex::default(),
            published: Published::of("gcp"),
            clock,
        })
    }

    async fn machine_types(&self) -> Result<&MachineTypes> {
        self.machine_types
            .get_or_try_init(|| async {
                // One attempt: decorators repeat; the client's own policy goes on for most of a minute.
                let mut builder = MachineTypes::builder().with_retry_policy(Aip194Strict.with_attempt_limit(1));
                if let Some(url) = &self.settings.endpoint_url {
                    builder = builder.with_endpoint(url);
                }
                if let Some(credentials) = &self.credentials {
                    builder = builder.with_credentials(credentials.clone());
                }
                builder.build().await.map_err(|e| errors::build(&self.id, &e.to_string()))
            })
            .await
    }

    async fn client(&self) -> Result<&Instances> {
        self.instances
            .get_or_try_init(|| async {
                let mut builder = Instances::builder().with_retry_policy(Aip194Strict.with_attempt_limit(1));
                if let Some(url) = &self.settings.endpoint_url {
                    builder = builder.with_endpoint(url);
                }
                if let Some(credentials) = &self.credentials {
                    builder = builder.with_credentials(credentials.clone());
                }
                builder.build().await.map_err(|e| errors::build(&self.id, &e.to_string()))
            })
            .await
    }

    async fn operations(&self) -> Result<&ZoneOperations> {
        self.operations
            .get_or_try_init(|| async {
                let mut builder = ZoneOperations::builder().with_retry_policy(Aip194Strict.with_attempt_limit(1));
                if let Some(url) = &self.settings.endpoint_url {
                    builder = builder.with_endpoint(url);
                }
                if let Some(credentials) = &self.credentials {
                    builder = builder.with_credentials(credentials.clone());
                }
                builder.build().await.map_err(|e| errors::build(&self.id, &e.to_string()))
            })
            .await
    }

    async fn machines(&self) -> Result<Vec<Instance>> {
        let client = self.client().await?;
        let mut found = Vec::new();
        // No partial success here: a list that lacks a zone would make its machines look gone.
        let mut items = client.aggregated_list().set_project(&self.project).by_item();
        while let Some(item) = items.next().await {
            let (scope_name, scope) = item.map_err(|e| errors::classify(&self.id, "instances.aggregatedList", &e))?;
            // A zone that could not be reached is a warning beside an empty list there.
            let code = scope.warning.as_ref().and_then(|w| w.code.as_ref()).and_then(|c| c.name());
            if code == Some("UNREACHABLE") {
                let text = format!("{} was not reached; its machines are not in the list", last(&scope_name));
                return Err(ProviderError::new(ErrorClass::Transient, &self.id, "instances.aggregatedList", text)
                    .code("UNREACHABLE"));
            }
            let read: Vec<Instance> = scope.instances.iter().filter_map(machines::read).collect();
            if read.len() < scope.instances.len() {
                // It may bill, and nothing could be done with it: never passed over in silence.
                let text =
                    format!("{} machines in {scope_name} have no name or zone", scope.instances.len() - read.len());
                return Err(ProviderError::new(ErrorClass::Unknown, &self.id, "instances.aggregatedList", text));
            }
            found.extend(read);
        }
        Ok(found)
    }
}

#[async_trait]
impl Provider for Gcp {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn endpoint(&self) -> Option<String> {
        self.settings.endpoint_url.clone()
    }

    async fn check(&self) -> Vec<Finding> {
        let answer = self
            .machines()
            .await
            .map(|machines| format!("project {}: {} instances can be read", self.project, machines.len()));
        let credentials = Finding::credentials(
            answer,
            "Run `gcloud auth application-default login`; the account needs compute.instances.list.",
        );
        let setup = format!("from {}", self.settings.image.as_deref().unwrap_or_default());
        vec![credentials, Finding::launching(&self.capabilities, setup)]
    }

    async fn account(&self) -> Result<String> {
        Ok(account_at(&self.project, self.settings.endpoint_url.as_deref()))
    }

    async fn offerings(&self) -> Result<Offerings> {
        let now = self.clock.now();
        let mut offerings = Offerings { complete: self.settings.regions.is_empty(), ..Offerings::default() };
        // Types are of use without quotas.
        let quotas = match self.quotas(now).await {
            Ok(quotas) => Some(quotas),
            Err(mut error) => {
                error.message = format!("quotas are not known: {}", error.message);
                offerings.failed.push(error);
                None
            }
        };
        let client = self.machine_types().await?;
        let mut items = client.aggregated_list().set_project(&self.project).set_filter(ACCELERATOR_FAMILIES).by_item();
        while let Some(item) = items.next().await {
            let (scope_name, scope) =
                item.map_err(|e| errors::classify(&self.id, "machineTypes.aggregatedList", &e))?;
            machine_types::read(&scope_name, &scope, self, quotas.as_deref(), now, &mut offerings);
        }
        Ok(offerings)
    }

    async fn instances(&self, owner: &str) -> Result<Vec<Instance>> {
        let machines = self.machines().await?;
        Ok(machines.into_iter().filter(|i| i.mark.as_ref().is_some_and(|m| m.owner == owner)).collect())
    }

    async fn describe(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        let looks = futures_util::stream::iter(ids.iter().cloned().map(|target| async move {
            let (zone, name) = self.named(&target, "instances.get")?;
            self.machine(zone, name).await
        }));
        let found: Vec<Option<Instance>> = looks.buffered(LOOKS_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn find_by_token(&self, _region: &Region, _token: &str, mark: &Mark) -> Result<Vec<Instance>> {
        Ok(self.machines().await?.into_iter().filter(|i| i.mark.as_ref() == Some(mark)).collect())
    }
}

#[async_trait]
impl Operator for Gcp {
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance> {
        self.insert(request).await
    }

    async fn terminate(&self, target: &InstanceRef) -> Result<Termination> {
        self.delete(target).await
    }
}

/// The region of a zone: `us-central1-a` lies in `us-central1`.
fn region_of(zone: &str) -> Option<Region> {
    zone.rsplit_once('-').filter(|(region, _)| !region.is_empty()).map(|(region, _)| Region::from(region))
}

/// The last part of a resource's address.
fn last(address: &str) -> &str {
    address.rsplit('/').next().unwrap_or(address)
}
