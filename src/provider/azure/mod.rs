//! Microsoft Azure: what is offered where and under which restrictions, what runs under our mark, and, where a resource
//! group and a key are configured, launch and terminate.
//!
//! The management crate is the last of its line and speaks `azure_core` 0.21; credentials come from the maintained
//! `azure_identity` through [`credentials`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use azure_mgmt_compute::package_2024_07_01::Client;
use futures_util::{StreamExt as _, TryStreamExt as _};

use chrono::{DateTime, TimeDelta, Utc};
use pages::{List, Pages};
use prices::{PriceList, Prices};
use quota::Quotas;
use rustc_hash::FxHashMap;
use skus::Listing;

use super::published::Published;
use super::{
    Absent, Capabilities, Connected, Finding, InstanceRef, LaunchRequest, Offerings, Operator, Provider, Result,
    Support, Termination, account_at,
};
use crate::config::azure::AzureSettings;
use crate::config::limits::{AZURE_PRICES_TTL, AZURE_PRICES_URL, AZURE_USER_DATA_BYTES, LOOKS_AT_ONCE};
use crate::domain::observation::PriceStatement;
use crate::domain::{
    Clock, ErrorClass, Instance, InstanceType, Mark, Observation, ProviderError, ProviderId, Purchase, Region,
};

mod credentials;
mod errors;
mod launch;
mod machines;
mod pages;
mod prices;
mod quota;
mod rows;
mod skus;
mod transport;

/// One subscription.
pub struct Azure {
    id: ProviderId,
    capabilities: Capabilities,
    subscription: String,
    settings: AzureSettings,
    client: Client,
    pages: Pages,
    published: Published,
    /// `None` behind an address of one's own, unless a list is named, too.
    price_list: Option<PriceList>,
    prices: std::sync::Mutex<Option<Arc<Prices>>>,
    quotas: std::sync::Mutex<FxHashMap<Region, Quotas>>,
    clock: Arc<dyn Clock>,
}

/// Why prices are those of the table.
const NO_LIST: &str =
    "an endpoint of one's own is configured and no prices_url: prices are those of the published table";
/// Why nothing can be launched.
const NOT_SET_UP: &str = "launching needs resource_group and ssh_public_key under [providers.azure]";

fn absent(reason: &str, remedy: &str) -> Absent {
    Absent { provider: "azure".into(), reason: reason.to_owned(), remedy: remedy.to_owned() }
}

/// The adapter for these settings. Touches no network; a token is fetched at the first call.
/// It has an acting half where all that a machine needs is configured.
pub fn connect(settings: &AzureSettings, clock: Arc<dyn Clock>) -> std::result::Result<Connected, Absent> {
    let credential = credentials::from_settings(settings)?;
    let azure = Arc::new(Azure::with_credential(settings, credential, clock)?);
    Ok(if azure.capabilities.launch_token == Support::Yes {
        Connected::full(azure)
    } else {
        Connected::read_only(azure)
    })
}

impl Azure {
    /// With a credential made elsewhere.
    pub fn with_credential(
        settings: &AzureSettings,
        credential: Arc<dyn azure_core::auth::TokenCredential>,
        clock: Arc<dyn Clock>,
    ) -> std::result::Result<Self, Absent> {
        let subscription = settings.subscription_id.clone().ok_or_else(|| {
            absent(
                "no subscription is named",
                "Set subscription_id in [providers.azure] of the configuration, or AZURE_SUBSCRIPTION_ID.",
            )
        })?;
        let endpoint = match &settings.endpoint_url {
            Some(url) => azure_core::Url::parse(url).map_err(|e| {
                absent(&format!("endpoint_url is not an address: {e}"), "Correct endpoint_url in [providers.azure].")
            })?,
            None => azure_core::resource_manager_endpoint::AZURE_PUBLIC_CLOUD.clone(),
        };
        let list = match (&settings.prices_url, &settings.endpoint_url) {
            (Some(url), _) => Some(url.as_str()),
            (None, Some(_)) => None,
            (None, None) => Some(AZURE_PRICES_URL),
        };
        let unread = |e: String| absent(&format!("prices_url: {e}"), "Correct prices_url in [providers.azure].");
        let price_list = list
            .map(|url| {
                let url = url::Url::parse(url).map_err(|e| unread(e.to_string()))?;
                PriceList::at(url).map_err(|e| unread(e.to_string()))
            })
            .transpose()?;
        let unmade =
            |e: azure_core::Error| absent(&format!("the client could not be made: {e}"), "Check [providers.azure].");
        let transport = Arc::new(transport::Transport::to(&endpoint).map_err(unmade)?);
        let pages = Pages {
            id: "azure".into(),
            endpoint: endpoint.clone(),
            credential: credential.clone(),
            transport: transport.clone(),
        };
        let client = Client::builder(credential)
            .endpoint(endpoint)
            // Decorators repeat and pace calls; the crate's own retries would do it a second time.
            .retry(azure_core::RetryOptions::none())
            .transport(azure_core::TransportOptions::new(transport))
            .build()
            .map_err(unmade)?;
        let acts = settings.resource_group.is_some() && settings.ssh_public_key.is_some();
        Ok(Self {
            id: "azure".into(),
            capabilities: Capabilities {
                launch_token: if acts { Support::Yes } else { Support::No(NOT_SET_UP.into()) },
                spot: if price_list.is_some() { Support::Yes } else { Support::No(NO_LIST.into()) },
                zones: Support::Yes,
                live_prices: if price_list.is_some() { Support::Yes } else { Support::No(NO_LIST.into()) },
                stock: Support::No("Azure states restrictions, not stock".into()),
                max_instances_per_request: u32::from(acts),
                start_script_bytes: Some(AZURE_USER_DATA_BYTES),
                // It does; but no live price is read yet, and a published one is no bill.
                spot_follows_market: false,
            },
            subscription,
            settings: settings.clone(),
            client,
            pages,
            published: Published::of("azure"),
            price_list,
            prices: std::sync::Mutex::default(),
            quotas: std::sync::Mutex::default(),
            clock,
        })
    }

    /// Retail prices of these types, as remembered for an hour; those of before where they cannot be had now, with why.
    async fn prices(
        &self,
        types: BTreeSet<InstanceType>,
        now: DateTime<Utc>,
    ) -> (Option<Arc<Prices>>, Option<ProviderError>) {
        let Some(list) = &self.price_list else { return (None, None) };
        // Not held while the list is read: a launch looks at what is remembered and must not wait for it.
        let known = self.remembered_prices();
        let young = |p: &Arc<Prices>| {
            let age = now - p.at;
            age >= TimeDelta::zero() && age < TimeDelta::from_std(AZURE_PRICES_TTL).unwrap_or_default()
        };
        if types.is_empty() || known.as_ref().is_some_and(|p| young(p) && p.covers(&types)) {
            return (known, None);
        }
        match list.fetch(types, now).await {
            Ok(prices) => {
                let prices = Some(Arc::new(prices));
                self.prices.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone_from(&prices);
                (prices, None)
            }
            Err(error) => (known, Some(error)),
        }
    }

    fn remembered_prices(&self) -> Option<Arc<Prices>> {
        self.prices.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// What is said of one size in one place: on demand, and on spot where it is sold so. Prices are of the time when they
    /// were read, quotas and restrictions of now.
    fn state(
        &self,
        listing: &Listing,
        prices: Option<&Prices>,
        quotas: Option<&Quotas>,
        now: DateTime<Utc>,
        out: &mut Vec<Observation>,
    ) {
        let kind = &listing.shape.instance_type;
        let mut models = vec![Purchase::OnDemand];
        // Without a live list spot is neither priced nor shown: the table has no spot prices of Azure.
        if listing.spot && prices.is_some() {
            models.push(Purchase::Spot);
        }
        for purchase in models {
            let mut seen = listing.observe(&self.id, purchase, now);
            seen.quota = quotas.and_then(|q| q.room(listing.family.as_deref(), listing.vcpus, purchase));
            match prices.and_then(|p| Some((p.at, p.of(&listing.region, kind, purchase)?))) {
                Some((at, rate)) => {
                    let price = Some(PriceStatement::Listed(rate));
                    out.push(Observation { at, price, availability: None, quota: None, ..seen.clone() });
                    out.push(seen);
                }
                None if purchase == Purchase::OnDemand => self.published.state_on_demand(seen, out),
                None => out.push(Observation { price: Some(PriceStatement::Unpriced), ..seen }),
            }
        }
    }

    /// Machines under such a mark, each with its state: the list has marks, and only a look at one has its power state.
    async fn seen(&self, ours: impl Fn(&Mark) -> bool) -> Result<Vec<Instance>> {
        let listed = self.machines().await?.into_iter().filter(|i| i.mark.as_ref().is_some_and(&ours));
        let looks = futures_util::stream::iter(listed.map(|machine| async move {
            let target = InstanceRef { id: machine.id.clone(), location: machine.location.clone() };
            let (group, name) = machines::named(&target, "VirtualMachines_Get")?;
            // Gone between list and look: it is told as listed, and the next list decides.
            Ok::<_, ProviderError>(self.machine(group, name).await?.unwrap_or(machine))
        }));
        looks.buffered(LOOKS_AT_ONCE).try_collect().await
    }

    async fn machines(&self) -> Result<Vec<Instance>> {
        let mut found = Vec::new();
        let mut skipped = BTreeMap::new();
        let list = List {
            operation: "VirtualMachines_ListAll",
            path: format!("/subscriptions/{}/providers/Microsoft.Compute/virtualMachines", self.subscription),
            version: "2024-07-01",
            // With `statusOnly` Azure leaves the tags out, and our mark with them.
            query: Vec::new(),
        };
        let take = |row: rows::Machine, skipped: &mut BTreeMap<String, u32>| match machines::read(&row) {
            Some(machine) => found.push(machine),
            None => skip(skipped, "a machine without an id"),
        };
        self.pages.rows(&list, &mut skipped, take).await?;
        if let Some((reason, count)) = skipped.first_key_value() {
            // It may bill, and nothing could be done with it: never passed over in silence.
            return Err(error(ErrorClass::Unknown, list.operation, format!("{count} times {reason}")));
        }
        Ok(found)
    }
}

#[async_trait]
impl Provider for Azure {
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
        // The list of machines needs exactly the right to read them, and is the smallest call that proves the token.
        let answer = self.machines().await.map(|machines| {
            format!("subscription {}: {} virtual machines can be read", self.subscription, machines.len())
        });
        let credentials = Finding::credentials(
            answer,
            "Log in (`az login`) or renew the service principal; it needs Reader on the subscription.",
        );
        let setup = format!("in the resource group {}", self.settings.resource_group.as_deref().unwrap_or_default());
        vec![credentials, Finding::launching(&self.capabilities, setup)]
    }

    async fn account(&self) -> Result<String> {
        Ok(account_at(&self.subscription.to_ascii_lowercase(), self.settings.endpoint_url.as_deref()))
    }

    async fn offerings(&self) -> Result<Offerings> {
        let now = self.clock.now();
        let mut offerings = Offerings { complete: self.settings.regions.is_empty(), ..Offerings::default() };
        // One region a call where regions are named: the filter cuts megabytes. Else one paged call for all.
        let scopes: Vec<Option<&String>> = if self.settings.regions.is_empty() {
            vec![None]
        } else {
            self.settings.regions.iter().map(Some).collect()
        };
        let mut answered = false;
        let mut listings = Vec::new();
        for scope in scopes {
            let list = List {
                operation: "ResourceSkus_List",
                path: format!("/subscriptions/{}/providers/Microsoft.Compute/skus", self.subscription),
                version: "2021-07-01",
                query: scope
                    .map(|region| ("$filter", format!("location eq '{}'", region.replace('\'', "''"))))
                    .into_iter()
                    .collect(),
            };
            let take = |row: rows::Sku, skipped: &mut BTreeMap<String, u32>| {
                skus::read(&row, &self.published, &mut listings, skipped);
            };
            match self.pages.rows(&list, &mut offerings.skipped, take).await {
                Ok(()) => answered = true,
                Err(mut error) => {
                    error.region = scope.map(|r| Region::from(r.as_str()));
                    offerings.failed.push(error);
                    offerings.complete = false;
                }
            }
        }
        answered |= !listings.is_empty();
        let regions: BTreeSet<Region> = listings.iter().map(|l| l.region.clone()).collect();
        let types: BTreeSet<InstanceType> = listings.iter().map(|l| l.shape.instance_type.clone()).collect();
        let ((prices, unpriced), (quotas, unknown)) = tokio::join!(self.prices(types, now), self.quotas(regions, now));
        // Both are beside the point where nothing is listed at all.
        offerings.failed.extend(unpriced.into_iter().chain(unknown).filter(|_| answered));
        for listing in &listings {
            self.state(listing, prices.as_deref(), quotas.get(&listing.region), now, &mut offerings.observations);
        }
        match offerings.failed.first() {
            Some(error) if !answered => Err(error.clone()),
            _ => Ok(offerings),
        }
    }

    async fn instances(&self, owner: &str) -> Result<Vec<Instance>> {
        self.seen(|mark| mark.owner == owner).await
    }

    async fn describe(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        let looks = futures_util::stream::iter(ids.iter().cloned().map(|target| async move {
            let (group, name) = machines::named(&target, "VirtualMachines_Get")?;
            self.machine(group, name).await
        }));
        let found: Vec<Option<Instance>> = looks.buffered(LOOKS_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn find_by_token(&self, _region: &Region, _token: &str, mark: &Mark) -> Result<Vec<Instance>> {
        self.seen(|theirs| theirs == mark).await
    }
}

#[async_trait]
impl Operator for Azure {
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance> {
        self.create(request).await
    }

    async fn terminate(&self, target: &InstanceRef) -> Result<Termination> {
        self.delete(target).await
    }
}

/// Count one row under the reason why it was not used.
fn skip(skipped: &mut BTreeMap<String, u32>, reason: &str) {
    *skipped.entry(reason.to_owned()).or_default() += 1;
}

/// An error with Azure's name on it.
fn error(class: ErrorClass, operation: &str, message: String) -> ProviderError {
    ProviderError::new(class, &"azure".into(), operation, message)
}
