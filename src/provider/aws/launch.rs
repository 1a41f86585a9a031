//! Starting one machine: everything in one call, under one token.

use aws_sdk_ec2::error::ProvideErrorMetadata as _;
use aws_sdk_ec2::types::{
    HttpTokensState, IamInstanceProfileSpecification, InstanceInterruptionBehavior, InstanceMarketOptionsRequest,
    InstanceMetadataEndpointState, InstanceMetadataOptionsRequest, InstanceType as SdkType, MarketType, Placement,
    ResourceType, ShutdownBehavior, SpotInstanceType, SpotMarketOptions, TagSpecification,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::ec2::Ec2;
use super::errors::Site;
use super::{quotas, states, tags};
use crate::config::limits::AWS_USER_DATA_BYTES;
use crate::domain::{ErrorClass, HourlyRate, Instance, Purchase};
use crate::provider::{LaunchRequest, Result};

/// Where a machine goes: into a subnet, which stands in one zone, or into a zone's default subnet.
#[derive(Debug, Default)]
struct Place {
    subnet: Option<String>,
    /// The account's own name of the zone.
    zone: Option<String>,
}

impl Ec2 {
    pub(super) async fn run_instance(&self, request: &LaunchRequest) -> Result<Instance> {
        let offer = &request.offer;
        let site = Site { zone: offer.zone.as_ref(), ..self.site("RunInstances", &offer.region) };
        check(&site, request)?;
        self.within_limit(&site, request)?;
        let client = self.client(&site)?;
        let place = self.place(&site, request).await?;
        let image = self.image(&offer.region, &request.shape).await?;
        let here = self.settings.region.get(offer.region.as_str());

        let mut call = client
            .run_instances()
            .min_count(1)
            .max_count(1)
            .client_token(&request.token)
            .image_id(&image.id)
            .instance_type(SdkType::from(offer.instance_type.as_str()))
            // The machine ends itself by shutting down, even when nobody can reach EC2 any more.
            .instance_initiated_shutdown_behavior(ShutdownBehavior::Terminate)
            .metadata_options(
                InstanceMetadataOptionsRequest::builder()
                    .http_endpoint(InstanceMetadataEndpointState::Enabled)
                    .http_tokens(HttpTokensState::Required)
                    // One hop more than the machine itself, for containers on it.
                    .http_put_response_hop_limit(2)
                    .build(),
            )
            .set_block_device_mappings(Some(image.disks.clone()).filter(|d| !d.is_empty()))
            .set_tag_specifications(Some(tag_specifications(request)))
            .set_subnet_id(place.subnet)
            .set_placement(place.zone.map(|name| Placement::builder().availability_zone(name).build()))
            .set_key_name(here.and_then(|r| r.key_name.clone()))
            .set_security_group_ids(here.map(|r| r.security_groups.clone()).filter(|g| !g.is_empty()))
            .set_iam_instance_profile(
                self.settings
                    .instance_profile
                    .as_ref()
                    .map(|name| IamInstanceProfileSpecification::builder().name(name).build()),
            )
            .set_user_data(request.user_data.as_ref().map(|text| BASE64.encode(text)));
        if offer.purchase == Purchase::Spot {
            let spot = SpotMarketOptions::builder()
                // One time: a persistent request would start the next machine behind our back.
                .spot_instance_type(SpotInstanceType::OneTime)
                .instance_interruption_behavior(InstanceInterruptionBehavior::Terminate)
                .set_max_price(request.max_price.map(decimal))
                .build();
            call = call.instance_market_options(
                InstanceMarketOptionsRequest::builder().market_type(MarketType::Spot).spot_options(spot).build(),
            );
        }

        match call.send().await {
            Ok(answer) => {
                let zones = self.known_zones(&offer.region);
                let made = answer
                    .instances()
                    .first()
                    .and_then(|i| states::instance(&self.id, &offer.region, zones.as_deref(), i));
                let Some(mut made) = made else {
                    return Err(site.error(ErrorClass::Transient, "the answer names no machine"));
                };
                // Token and tags are part of the accepted request, whether the answer repeats them or not.
                made.token.get_or_insert_with(|| request.token.clone());
                made.mark.get_or_insert_with(|| request.mark.clone());
                Ok(made)
            }
            Err(error) => {
                let ended = error.code() == Some("IdempotentInstanceTerminated");
                let mut told = site.sdk(&error);
                if told.class == ErrorClass::Quota {
                    told.message = format!("{} ({})", told.message, quotas::told(&request.shape, offer.purchase));
                }
                if ended {
                    // The same token gives the same machine, and that one is gone. EC2 knows it for about an hour.
                    let found = self.launched_with(&offer.region, &request.token, &request.mark).await;
                    if let Some(machine) = found.ok().and_then(|all| all.into_iter().next()) {
                        return Ok(machine);
                    }
                }
                Err(told)
            }
        }
    }

    /// Whether an on-demand machine keeps to the limit. EC2 has no limit of its own for those, so the published price
    /// decides; one that is not known cannot keep any. Spot has its limit in the request.
    fn within_limit(&self, site: &Site<'_>, request: &LaunchRequest) -> Result<()> {
        let (Purchase::OnDemand, Some(limit)) = (request.offer.purchase, request.max_price) else { return Ok(()) };
        let refuse = |why: String| Err(site.error(ErrorClass::NoCapacity, why).code("PriceAboveLimit"));
        match self.published().on_demand(&request.offer.region, &request.offer.instance_type) {
            Some(price) if price <= limit => Ok(()),
            Some(price) => refuse(format!(
                "the published on-demand price {price:.4} is above the limit {limit:.4}; nothing was asked for"
            )),
            None => refuse(format!(
                "no on-demand price is published for {} here, so the limit {limit:.4} could not be kept; nothing was \
                 asked for",
                request.offer.instance_type
            )),
        }
    }

    async fn place(&self, site: &Site<'_>, request: &LaunchRequest) -> Result<Place> {
        let region = &request.offer.region;
        let subnets = self.settings.region.get(region.as_str()).map(|r| &r.subnets).filter(|s| !s.is_empty());
        let Some(zone) = &request.offer.zone else {
            return Ok(Place { subnet: subnets.and_then(|s| s.values().next().cloned()), zone: None });
        };
        if let Some(subnets) = subnets {
            let Some(subnet) = subnets.get(zone.as_str()) else {
                return Err(site.error(
                    ErrorClass::Invalid,
                    format!("no subnet is named for this zone; add `{zone}` to providers.aws.region.{region}.subnets"),
                ));
            };
            return Ok(Place { subnet: Some(subnet.clone()), zone: None });
        }
        let zones = match self.known_zones(region) {
            Some(known) if known.with_id(zone.as_str()).is_some() => known,
            _ => self.fresh_zones(region).await?,
        };
        match zones.with_id(zone.as_str()) {
            Some(found) => Ok(Place { subnet: None, zone: Some(found.name.clone()) }),
            None => Err(site.error(
                ErrorClass::Invalid,
                format!("the account has no zone {zone} in {region}; it has {}", zones.ids()),
            )),
        }
    }
}

/// What can be seen to be wrong without asking.
fn check(site: &Site<'_>, request: &LaunchRequest) -> Result<()> {
    let token = &request.token;
    if token.is_empty() || token.len() > 64 || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(site.error(ErrorClass::Invalid, "the token is not 1 to 64 ASCII characters"));
    }
    if request.offer.purchase == Purchase::Reserved {
        return Err(site.error(
            ErrorClass::Invalid,
            "capacity blocks are bought ahead in the AWS console; gpudeck launches on-demand and spot",
        ));
    }
    if request.user_data.as_ref().is_some_and(|text| text.len() > AWS_USER_DATA_BYTES) {
        return Err(site.error(ErrorClass::Invalid, "the start-up script is longer than EC2's 16 KiB"));
    }
    Ok(())
}

/// The tags, on everything that the call makes and that is billed or stays by itself.
fn tag_specifications(request: &LaunchRequest) -> Vec<TagSpecification> {
    let tags = tags::of(&request.mark, &request.name, request.intended_at);
    let mut on = vec![ResourceType::Instance, ResourceType::Volume, ResourceType::NetworkInterface];
    if request.offer.purchase == Purchase::Spot {
        on.push(ResourceType::SpotInstancesRequest);
    }
    on.into_iter()
        .map(|kind| TagSpecification::builder().resource_type(kind).set_tags(Some(tags.clone())).build())
        .collect()
}

/// Dollars an instance-hour as EC2 reads them, exactly.
fn decimal(rate: HourlyRate) -> String {
    let micros = rate.micros().max(0);
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b1_the_price_limit_is_of_an_instance_hour_and_exact() {
        assert_eq!(decimal(HourlyRate::from_micros(12_345_678)), "12.345678");
        assert_eq!(decimal(HourlyRate::from_micros(10)), "0.000010");
        assert_eq!(decimal(HourlyRate::from_micros(-1)), "0.000000");
    }

    proptest! {
        #[test]
        fn a_price_limit_reads_back_as_it_was(micros in 0_i64..i64::MAX) {
            let rate = HourlyRate::from_micros(micros);
            prop_assert_eq!(HourlyRate::parse_usd(&decimal(rate)), Ok(rate));
        }
    }
}
