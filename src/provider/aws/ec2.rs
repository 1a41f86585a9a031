//! The adapter itself: what it holds, and the seam's two traits over it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use aws_sdk_ec2::types::{AvailabilityZoneState, Filter};
use chrono::{DateTime, TimeDelta, Utc};

use super::ID;
use super::clients::{Clients, Deadlines};
use super::errors::Site;
use super::images::{Image, ImageKind};
use super::zones::{Zone as ZoneFacts, Zones};
use crate::config::aws::AwsSettings;
use crate::config::limits::{AWS_REGION_LIST, AWS_USER_DATA_BYTES};
use crate::config::system_clock::SystemClock;
use crate::domain::{Availability, Clock, ErrorClass, Instance, Mark, ProviderError, ProviderId, Region, Zone};
use crate::provider::published::Published;
use crate::provider::{
    Capabilities, Finding, InstanceRef, LaunchRequest, Offerings, Operator, Provider, Result, Support, Termination,
};

/// What a caller may bring along; by default the system's clock, the bundled catalogue and the usual deadlines.
pub struct Options {
    /// The clock that observations are dated by.
    pub clock: Arc<dyn Clock>,
    /// Published prices; `None`: the bundled catalogue's.
    pub published: Option<Published>,
    /// How long to wait for what.
    pub deadlines: Deadlines,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), published: None, deadlines: Deadlines::default() }
    }
}

/// Amazon EC2 under one account.
pub struct Ec2 {
    pub(super) id: ProviderId,
    pub(super) settings: AwsSettings,
    pub(super) clients: Clients,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) deadlines: Deadlines,
    capabilities: Capabilities,
    published: OnceLock<Published>,
    /// The account's regions, and when they were asked for.
    enabled: Mutex<Option<(DateTime<Utc>, Vec<Region>)>>,
    zones: Mutex<HashMap<Region, Arc<Zones>>>,
    /// Images that were looked up, so that a launch that is sent again has the same body.
    pub(super) images: Mutex<HashMap<(Region, ImageKind), Arc<Image>>>,
    /// Types that have no accelerator. A type never gets one later, so this is never asked twice.
    pub(super) plain: Mutex<HashSet<String>>,
    /// What the account may still run, by region.
    pub(super) quotas: Mutex<HashMap<Region, Arc<super::quotas::Quotas>>>,
    /// The account that the credentials belong to, and when it was asked for.
    pub(super) caller: Mutex<Option<(DateTime<Utc>, String)>>,
    /// Held by the region that finds out about the plain types, so that the others need not.
    pub(super) first_listing: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Ec2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ec2").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Ec2 {
    pub(super) fn new(settings: AwsSettings, options: Options) -> Self {
        let clients = Clients::new(&settings, options.deadlines);
        let published = OnceLock::new();
        if let Some(given) = options.published {
            published.get_or_init(|| given);
        }
        Self {
            id: ProviderId::from(ID),
            settings,
            clients,
            clock: options.clock,
            deadlines: options.deadlines,
            capabilities: Capabilities {
                launch_token: Support::Yes,
                spot: Support::Yes,
                zones: Support::Yes,
                live_prices: Support::No(
                    "EC2 tells spot prices; on-demand prices come from the published list, with its date".to_owned(),
                ),
                stock: Support::No("EC2 does not say what is in stock; only a launch shows it".to_owned()),
                max_instances_per_request: 1,
                start_script_bytes: Some(AWS_USER_DATA_BYTES),
                spot_follows_market: true,
            },
            published,
            enabled: Mutex::default(),
            zones: Mutex::default(),
            images: Mutex::default(),
            plain: Mutex::default(),
            quotas: Mutex::default(),
            caller: Mutex::default(),
            first_listing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn published(&self) -> &Published {
        self.published.get_or_init(|| Published::of(super::ID))
    }

    pub(super) fn site<'a>(&'a self, operation: &'static str, region: &'a Region) -> Site<'a> {
        Site { provider: &self.id, operation, region: Some(region), zone: None }
    }

    /// The region's client.
    pub(super) fn client(&self, site: &Site<'_>) -> Result<aws_sdk_ec2::Client> {
        site.region
            .and_then(|region| self.clients.ec2(region))
            .ok_or_else(|| site.error(ErrorClass::Invalid, "this is not the name of an AWS region"))
    }

    pub(super) fn home(&self) -> Region {
        Region::from(self.settings.home_region.as_str())
    }

    /// The regions that are looked at, and those of the settings that cannot be, with the reason.
    pub(super) async fn regions(&self) -> Result<(Vec<Region>, Vec<ProviderError>)> {
        let named: Vec<Region> = self.settings.regions.iter().map(|r| Region::from(r.as_str())).collect();
        let enabled = match self.enabled_regions().await {
            Ok(enabled) => enabled,
            Err(error) if named.is_empty() => return Err(error),
            // The home region does not answer, or the account may not list regions: the settings name them.
            Err(_) => return Ok((named, Vec::new())),
        };
        if named.is_empty() {
            return Ok((enabled, Vec::new()));
        }
        let (there, not_there) = named.into_iter().partition(|r| enabled.contains(r));
        let not_there: Vec<Region> = not_there;
        let failed = not_there
            .iter()
            .map(|region| {
                self.site("DescribeRegions", region).error(
                    ErrorClass::Invalid,
                    "the account has no such region, or it is not enabled; correct `regions` in `[providers.aws]`, or \
                     enable it in the account's settings",
                )
            })
            .collect();
        Ok((there, failed))
    }

    /// The regions that are enabled for the account, sorted.
    pub(super) async fn enabled_regions(&self) -> Result<Vec<Region>> {
        let now = self.clock.now();
        let known = self.enabled.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, regions)) = known
            && now.signed_duration_since(at).abs() < TimeDelta::from_std(AWS_REGION_LIST).unwrap_or(TimeDelta::zero())
        {
            return Ok(regions);
        }
        let home = self.home();
        let site = self.site("DescribeRegions", &home);
        let answer = self.client(&site)?.describe_regions().send().await.map_err(|e| site.sdk(&e))?;
        let mut regions: Vec<Region> = answer
            .regions()
            .iter()
            .filter(|r| r.opt_in_status() != Some("not-opted-in"))
            .filter_map(|r| r.region_name())
            .map(Region::from)
            .collect();
        regions.sort();
        if regions.is_empty() {
            return Err(site.error(ErrorClass::Transient, "the answer names no region"));
        }
        *self.enabled.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, regions.clone()));
        Ok(regions)
    }

    /// The region's zones as known.
    pub(super) fn known_zones(&self, region: &Region) -> Option<Arc<Zones>> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner).get(region).cloned()
    }

    /// The region's zones, asked for now.
    pub(super) async fn fresh_zones(&self, region: &Region) -> Result<Arc<Zones>> {
        let site = self.site("DescribeAvailabilityZones", region);
        let answer = self.client(&site)?.describe_availability_zones().send().await.map_err(|e| site.sdk(&e))?;
        let zones = Arc::new(Zones::new(answer.availability_zones().iter().filter_map(|zone| {
            let stock = match zone.state() {
                Some(AvailabilityZoneState::Unavailable) => Some(Availability::None),
                Some(AvailabilityZoneState::Constrained | AvailabilityZoneState::Impaired) => {
                    Some(Availability::Limited)
                }
                _ => None,
            };
            Some(ZoneFacts { name: zone.zone_name()?.to_owned(), id: Zone::from(zone.zone_id()?), stock })
        })));
        self.zones.lock().unwrap_or_else(PoisonError::into_inner).insert(region.clone(), Arc::clone(&zones));
        Ok(zones)
    }
}

/// A filter of one value, or of several.
pub(super) fn filter(name: &str, values: impl IntoIterator<Item = String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values.into_iter().collect())).build()
}

#[async_trait]
impl Provider for Ec2 {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn endpoint(&self) -> Option<String> {
        self.settings.endpoint_url.clone()
    }

    fn regional_address(&self, region: &Region) -> Option<String> {
        if !crate::config::aws::is_region_name(region.as_str()) {
            return None;
        }
        let Some(url) = &self.settings.endpoint_url else {
            let suffix = if region.as_str().starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
            return Some(format!("ec2.{region}.{suffix}:443"));
        };
        // All regions stand behind the one address.
        let (clear, rest) = match url.strip_prefix("http://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("https://")?),
        };
        let host = rest.split('/').next().filter(|host| !host.is_empty())?;
        let named = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Some(if named { host.to_owned() } else { format!("{host}:{}", if clear { 80 } else { 443 }) })
    }

    async fn check(&self) -> Vec<Finding> {
        self.findings().await
    }

    async fn account(&self) -> Result<String> {
        self.caller().await
    }

    async fn offerings(&self) -> Result<Offerings> {
        self.all_offerings().await
    }

    async fn instances(&self, owner: &str) -> Result<Vec<Instance>> {
        self.owned(owner).await
    }

    async fn describe(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        self.described(ids).await
    }

    async fn find_by_token(&self, region: &Region, token: &str, mark: &Mark) -> Result<Vec<Instance>> {
        self.launched_with(region, token, mark).await
    }
}

#[async_trait]
impl Operator for Ec2 {
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance> {
        self.run_instance(request).await
    }

    async fn terminate(&self, target: &InstanceRef) -> Result<Termination> {
        self.terminate_instance(target).await
    }
}
