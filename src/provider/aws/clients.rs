//! Credentials, and one EC2 client a region, made when it is first needed.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::imds;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::profile::ProfileFileCredentialsProvider;
#[expect(deprecated, reason = "aws-config's own alias; the crate it points to is not one to depend on")]
use aws_config::profile::profile_file::{ProfileFileKind, ProfileFiles};
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_sdk_ec2::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeDeserializationInterceptorContextMut,
};
use aws_sdk_ec2::config::{
    BehaviorVersion, ConfigBag, IdentityCache, Intercept, Region as SdkRegion, RuntimeComponents,
    SharedCredentialsProvider,
};
use aws_sdk_ec2::error::BoxError;
use aws_smithy_types::body::SdkBody;
use http_body_util::Limited;

use crate::config::aws::{AwsSettings, is_region_name};
use crate::config::limits::{AWS_BODY_BYTES, AWS_CALL, AWS_CONNECT, AWS_INSTANCE_METADATA, AWS_REGION};
use crate::domain::Region;

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For a connection.
    pub connect: Duration,
    /// For one answer.
    pub call: Duration,
    /// For all that one region is asked for its offers.
    pub region: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { connect: AWS_CONNECT, call: AWS_CALL, region: AWS_REGION }
    }
}

/// The clients of all regions; they share credentials, and nothing else.
pub(super) struct Clients {
    /// All that the clients have in common.
    common: aws_sdk_ec2::config::Builder,
    by_region: RwLock<HashMap<Region, aws_sdk_ec2::Client>>,
    quotas: aws_sdk_servicequotas::config::Builder,
    quotas_by_region: RwLock<HashMap<Region, aws_sdk_servicequotas::Client>>,
    /// The security token service at the home region.
    pub(super) sts: aws_sdk_sts::Client,
}

impl Clients {
    pub(super) fn new(settings: &AwsSettings, deadlines: Deadlines) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(deadlines.connect)
            .operation_attempt_timeout(deadlines.call)
            .operation_timeout(deadlines.call)
            .build();
        let home = SdkRegion::new(settings.home_region.clone());
        let credentials = SharedCredentialsProvider::new(credentials(settings, &home));
        // Built by hand, not from the shared configuration: that one would also take an endpoint from the
        // environment or a profile, and send everything there.
        let mut common = aws_sdk_ec2::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(credentials.clone())
            .identity_cache(IdentityCache::lazy().build())
            .retry_config(RetryConfig::disabled())
            .interceptor(BodyLimit)
            .interceptor(WholeXml)
            .timeout_config(timeouts.clone());
        let mut quotas = aws_sdk_servicequotas::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(credentials.clone())
            .identity_cache(IdentityCache::lazy().build())
            .retry_config(RetryConfig::disabled())
            .interceptor(BodyLimit)
            .timeout_config(timeouts.clone());
        let mut sts = aws_sdk_sts::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(credentials)
            .region(home)
            .retry_config(RetryConfig::disabled())
            .interceptor(BodyLimit)
            .interceptor(WholeXml)
            .timeout_config(timeouts);
        if let Some(url) = &settings.endpoint_url {
            common = common.endpoint_url(url);
            sts = sts.endpoint_url(url);
            quotas = quotas.endpoint_url(url);
        }
        let (by_region, quotas_by_region) = (RwLock::default(), RwLock::default());
        Self { common, by_region, quotas, quotas_by_region, sts: aws_sdk_sts::Client::from_conf(sts.build()) }
    }

    /// The client of a region's service of quotas; `None` as for [`Self::ec2`].
    pub(super) fn quotas(&self, region: &Region) -> Option<aws_sdk_servicequotas::Client> {
        if let Some(client) = self.quotas_by_region.read().unwrap_or_else(PoisonError::into_inner).get(region) {
            return Some(client.clone());
        }
        if !is_region_name(region.as_str()) {
            return None;
        }
        let config = self.quotas.clone().region(SdkRegion::new(region.as_str().to_owned())).build();
        let client = aws_sdk_servicequotas::Client::from_conf(config);
        let mut clients = self.quotas_by_region.write().unwrap_or_else(PoisonError::into_inner);
        Some(clients.entry(region.clone()).or_insert(client).clone())
    }

    /// The client of a region; `None` for a text that is not a region's name, and so must not become part of a host's.
    pub(super) fn ec2(&self, region: &Region) -> Option<aws_sdk_ec2::Client> {
        if let Some(client) = self.by_region.read().unwrap_or_else(PoisonError::into_inner).get(region) {
            return Some(client.clone());
        }
        if !is_region_name(region.as_str()) {
            return None;
        }
        let config = self.common.clone().region(SdkRegion::new(region.as_str().to_owned())).build();
        let mut clients = self.by_region.write().unwrap_or_else(PoisonError::into_inner);
        Some(clients.entry(region.clone()).or_insert_with(|| aws_sdk_ec2::Client::from_conf(config)).clone())
    }
}

/// Cuts off an answer that does not end: the SDK reads a body into memory whole.
#[derive(Debug)]
struct BodyLimit;

impl Intercept for BodyLimit {
    fn name(&self) -> &'static str {
        "BodyLimit"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = std::mem::replace(context.response_mut().body_mut(), SdkBody::taken());
        *context.response_mut().body_mut() = SdkBody::from_body_1_x(Limited::new(body, AWS_BODY_BYTES));
        Ok(())
    }
}

/// Refuses an answer that breaks off: the SDK's reader of XML takes what there is up to the break for the whole, and a
/// list that lacks its end would make machines look gone.
#[derive(Debug)]
struct WholeXml;

impl Intercept for WholeXml {
    fn name(&self) -> &'static str {
        "WholeXml"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        match response.body().bytes() {
            Some(body) if response.status().is_success() && !is_whole(body) => {
                Err("the answer breaks off before its end".into())
            }
            _ => Ok(()),
        }
    }
}

/// Whether an XML document ends with the end of its root.
fn is_whole(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let mut rest = text.trim();
    if let Some(declared) = rest.strip_prefix("<?") {
        let Some((_, after)) = declared.split_once("?>") else { return false };
        rest = after.trim_start();
    }
    let Some(root) = rest.strip_prefix('<') else { return false };
    let name: &str = root.split(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).next().unwrap_or_default();
    !name.is_empty() && (rest.ends_with(&format!("</{name}>")) || (rest.ends_with("/>") && !root.contains('<')))
}

/// Where credentials come from, in the order that every AWS tool has: environment, profile, web identity, container,
/// and the machine's metadata where that is allowed. A profile that the configuration names is the only source.
fn credentials(settings: &AwsSettings, home: &SdkRegion) -> CredentialsProviderChain {
    let config = ProviderConfig::without_region()
        .with_behavior_version(Some(BehaviorVersion::latest()))
        .with_region(Some(home.clone()));
    let mut profile = ProfileFileCredentialsProvider::builder().configure(&config);
    if let Some(name) = &settings.profile {
        profile = profile.profile_name(name);
    }
    if let Some(path) = &settings.credentials_file {
        profile = profile.profile_files(only(path));
    }
    let profile = profile.build();
    let mut chain = if settings.profile.is_some() || settings.credentials_file.is_some() {
        CredentialsProviderChain::first_try("Profile", profile)
    } else {
        CredentialsProviderChain::first_try("Environment", EnvironmentVariableCredentialsProvider::new())
            .or_else("Profile", profile)
            .or_else("WebIdentityToken", WebIdentityTokenCredentialsProvider::builder().configure(&config).build())
            .or_else("Container", EcsCredentialsProvider::builder().configure(&config).build())
    };
    if settings.instance_metadata {
        let client = imds::Client::builder()
            .configure(&config)
            .max_attempts(1)
            .connect_timeout(AWS_INSTANCE_METADATA)
            .read_timeout(AWS_INSTANCE_METADATA)
            .build();
        chain = chain.or_else("InstanceMetadata", ImdsCredentialsProvider::builder().imds_client(client).build());
    }
    chain
}

#[expect(deprecated, reason = "aws-config's own alias; the crate it points to is not one to depend on")]
fn only(path: &std::path::Path) -> ProfileFiles {
    ProfileFiles::builder().with_file(ProfileFileKind::Credentials, path).build()
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn d7_an_answer_is_whole_where_its_root_ends() {
        let whole =
            "<?xml version=\"1.0\"?>\n<DescribeRegionsResponse xmlns=\"x\"><a><b>c</b></a></DescribeRegionsResponse>\n";
        assert!(is_whole(whole.as_bytes()));
        assert!(is_whole(b"<R/>"));
        for cut in 0..whole.trim_end().len() {
            assert!(!is_whole(&whole.as_bytes()[..cut]), "{cut}");
        }
        assert!(!is_whole(b"") && !is_whole(b"{}") && !is_whole(b"<R><a/>") && !is_whole(b"\xff\xfe"));
    }
}
