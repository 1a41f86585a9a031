//! What EC2 offers: types with accelerators by zone, spot prices, published on-demand prices.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use aws_sdk_ec2::types::{InstanceType as SdkType, LocationType};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, stream};

use super::ec2::{Ec2, filter};
use super::quotas::Quotas;
use super::shapes::{Described, Reading, read};
use super::states::time;
use super::zones::Zones;
use crate::config::limits::{AWS_FIRST_LISTING_WAIT, AWS_PAGES, AWS_REGIONS_AT_ONCE, AWS_TYPES_A_CALL};
use crate::domain::observation::PriceStatement;
use crate::domain::{
    Availability, ErrorClass, Evidence, HourlyRate, InstanceType, Observation, OfferKey, ProviderError, Purchase,
    Region, Shape, Zone,
};
use crate::provider::{Offerings, Result};

/// The product whose spot prices count, and its name in accounts of before 2013.
const PRODUCTS: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

type Skipped = BTreeMap<String, u32>;

/// Current spot prices by type and zone.
type SpotPrices = HashMap<(InstanceType, Zone), HourlyRate>;

fn skip(skipped: &mut Skipped, reason: &str, rows: usize) {
    let count = skipped.entry(reason.to_owned()).or_default();
    *count = count.saturating_add(u32::try_from(rows).unwrap_or(u32::MAX));
}

impl Ec2 {
    /// Everything, region by region; one that fails is told and does not touch the others.
    pub(super) async fn all_offerings(&self) -> Result<Offerings> {
        let (regions, failed) = self.regions().await?;
        let mut all = Offerings { failed, ..Offerings::default() };
        let asked: Vec<_> = regions.iter().map(|region| self.region_in_time(region)).collect();
        let mut answers = stream::iter(asked).buffer_unordered(AWS_REGIONS_AT_ONCE);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(region) => {
                    all.observations.extend(region.observations);
                    all.failed.extend(region.failed);
                    for (reason, rows) in region.skipped {
                        *all.skipped.entry(reason).or_default() += rows;
                    }
                }
                Err(error) => all.failed.push(error),
            }
        }
        drop(answers);
        // Regions answer in any order; what is said must not depend on it.
        all.observations.sort_by(|a, b| a.key.cmp(&b.key).then(a.at.cmp(&b.at)));
        all.failed.sort_by(|a, b| (&a.region, &a.operation).cmp(&(&b.region, &b.operation)));
        all.complete = all.failed.is_empty();
        Ok(all)
    }

    async fn region_in_time(&self, region: &Region) -> Result<Offerings> {
        let limit = self.deadlines.region;
        tokio::time::timeout(limit, self.region_offerings(region)).await.unwrap_or_else(|_| {
            let told = format!("the region did not finish its answers in {} s", limit.as_secs_f64());
            Err(self.site("offerings", region).error(ErrorClass::Transient, told))
        })
    }

    async fn region_offerings(&self, region: &Region) -> Result<Offerings> {
        let mut answer = Offerings::default();
        let zones = self.fresh_zones(region).await?;
        let offered = self.offered(region, &zones, &mut answer.skipped).await?;
        let types = self.types(region, &offered, &mut answer.skipped).await?;
        let spot: Vec<&InstanceType> = types.iter().filter(|(_, t)| t.spot).map(|(kind, _)| kind).collect();
        let (prices, quotas) = tokio::join!(
            self.spot_prices(region, &zones, &spot, &mut answer.skipped),
            self.quotas(region, self.clock.now())
        );
        let quotas = quotas.unwrap_or_else(|mut error| {
            error.message = format!("quotas are not known: {}", error.message);
            answer.failed.push(error);
            None
        });
        let prices = match prices {
            Ok(prices) => Some(prices),
            Err(error) => {
                // Offers stay, without a statement on their spot price.
                answer.failed.push(error);
                None
            }
        };
        let now = self.clock.now();
        for (kind, in_zones) in &offered {
            let Some(described) = types.get(kind) else { continue };
            for zone in in_zones {
                let stock = zones.with_id(zone.as_str()).and_then(|z| z.stock);
                let quotas = quotas.as_deref();
                let offer = Offer { ec2: self, region, zone, now, shape: &described.shape, stock, quotas };
                offer.observe(described, prices.as_ref(), &mut answer.observations);
            }
            if !(described.on_demand || described.spot || described.capacity_block) {
                skip(&mut answer.skipped, "a type that cannot be bought in any way that is known", in_zones.len());
            }
        }
        Ok(answer)
    }

    /// Which types are offered in which of the account's zones.
    async fn offered(
        &self,
        region: &Region,
        zones: &Zones,
        skipped: &mut Skipped,
    ) -> Result<BTreeMap<InstanceType, Vec<Zone>>> {
        match self.offered_by(LocationType::AvailabilityZoneId, region, zones, skipped).await {
            // An endpoint that cannot list by zone id: then by the account's names.
            Err(error) if matches!(error.class, ErrorClass::Invalid | ErrorClass::Unknown) => {
                self.offered_by(LocationType::AvailabilityZone, region, zones, skipped).await
            }
            other => other,
        }
    }

    async fn offered_by(
        &self,
        by: LocationType,
        region: &Region,
        zones: &Zones,
        skipped: &mut Skipped,
    ) -> Result<BTreeMap<InstanceType, Vec<Zone>>> {
        let site = self.site("DescribeInstanceTypeOfferings", region);
        let mut pages = self
            .client(&site)?
            .describe_instance_type_offerings()
            .location_type(by)
            .into_paginator()
            .stop_on_duplicate_token(false)
            .send();
        let mut offered: BTreeMap<InstanceType, Vec<Zone>> = BTreeMap::new();
        let mut page = 0;
        while let Some(answer) = pages.next().await {
            let answer = answer.map_err(|e| site.sdk(&e))?;
            for row in answer.instance_type_offerings() {
                let (Some(kind), Some(place)) = (row.instance_type(), row.location()) else {
                    skip(skipped, "an offering without type or zone", 1);
                    continue;
                };
                let zone = match row.location_type() {
                    Some(LocationType::AvailabilityZone) => zones.id(place).cloned(),
                    _ => zones.with_id(place).map(|z| z.id.clone()),
                };
                match zone {
                    Some(zone) => {
                        let list = offered.entry(kind.as_str().into()).or_default();
                        if !list.contains(&zone) {
                            list.push(zone);
                        }
                    }
                    None => skip(skipped, "a zone that is not enabled for the account", 1),
                }
            }
            page += 1;
            if page >= AWS_PAGES {
                return Err(site.error(ErrorClass::Transient, "the listing does not end"));
            }
        }
        Ok(offered)
    }

    /// What the offered types are; those without accelerators are left out.
    async fn types(
        &self,
        region: &Region,
        offered: &BTreeMap<InstanceType, Vec<Zone>>,
        skipped: &mut Skipped,
    ) -> Result<BTreeMap<InstanceType, Described>> {
        let ask = || -> Vec<InstanceType> {
            let plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
            offered.keys().filter(|kind| !plain.contains(kind.as_str())).cloned().collect()
        };
        let mut wanted = ask();
        let mut first = None;
        if wanted.len() > 2 * AWS_TYPES_A_CALL {
            // The first to come finds out which types are plain, and spares the others the same megabytes.
            first = tokio::time::timeout(AWS_FIRST_LISTING_WAIT, self.first_listing.lock()).await.ok();
            wanted = ask();
        }
        let mut found = BTreeMap::new();
        let mut described = 0_usize;
        let site = self.site("DescribeInstanceTypes", region);
        for names in wanted.chunks(AWS_TYPES_A_CALL) {
            // By filter, not by name: one name that the two listings disagree on would fail the whole call.
            let mut pages = self
                .client(&site)?
                .describe_instance_types()
                .filters(filter("instance-type", names.iter().map(|n| n.as_str().to_owned())))
                .into_paginator()
                .stop_on_duplicate_token(false)
                .send();
            let mut page = 0;
            while let Some(answer) = pages.next().await {
                let answer = answer.map_err(|e| site.sdk(&e))?;
                for info in answer.instance_types() {
                    described += 1;
                    match read(info) {
                        Reading::Accelerated(one) => {
                            found.insert(one.shape.instance_type.clone(), one);
                        }
                        Reading::Plain => {
                            if let Some(kind) = info.instance_type() {
                                let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
                                plain.insert(kind.as_str().to_owned());
                            }
                        }
                        Reading::Unreadable(reason) => skip(skipped, reason, 1),
                    }
                }
                page += 1;
                if page >= AWS_PAGES {
                    return Err(site.error(ErrorClass::Transient, "the listing does not end"));
                }
            }
        }
        drop(first);
        if let Some(missing) = wanted.len().checked_sub(described).filter(|n| *n > 0) {
            skip(skipped, "a type that is offered but not described", missing);
        }
        Ok(found)
    }

    /// What a spot instance costs now, by type and zone. Each row's own time is that of the last change; asked with
    /// "from now on", it is the price that holds now, so it is dated now.
    async fn spot_prices(
        &self,
        region: &Region,
        zones: &Zones,
        types: &[&InstanceType],
        skipped: &mut Skipped,
    ) -> Result<SpotPrices> {
        if types.is_empty() {
            return Ok(SpotPrices::new());
        }
        let mut prices = SpotPrices::new();
        let mut changed_at: HashMap<(InstanceType, Zone), Option<DateTime<Utc>>> = HashMap::new();
        let site = self.site("DescribeSpotPriceHistory", region);
        let now = aws_sdk_ec2::primitives::DateTime::from_secs(self.clock.now().timestamp());
        let mut pages = self
            .client(&site)?
            .describe_spot_price_history()
            .start_time(now)
            .product_descriptions(PRODUCTS[0])
            .set_instance_types(Some(types.iter().map(|t| SdkType::from(t.as_str())).collect()))
            .into_paginator()
            .stop_on_duplicate_token(false)
            .send();
        let mut page = 0;
        while let Some(answer) = pages.next().await {
            let answer = answer.map_err(|e| site.sdk(&e))?;
            for row in answer.spot_price_history() {
                if row.product_description().is_some_and(|p| !PRODUCTS.contains(&p.as_str())) {
                    continue;
                }
                let zone = row
                    .availability_zone_id()
                    .and_then(|id| zones.with_id(id).map(|z| z.id.clone()))
                    .or_else(|| zones.id(row.availability_zone()?).cloned());
                let (Some(kind), Some(zone)) = (row.instance_type(), zone) else {
                    skip(skipped, "a spot price of a zone that is not enabled for the account", 1);
                    continue;
                };
                let price = row.spot_price().and_then(|text| HourlyRate::parse_usd(text).ok());
                let Some(price) = price.filter(|p| *p > HourlyRate::ZERO) else {
                    skip(skipped, "a spot price that is not an amount", 1);
                    continue;
                };
                let changed = row.timestamp().and_then(time);
                let key = (InstanceType::from(kind.as_str()), zone);
                if changed_at.get(&key).is_none_or(|before| changed > *before) {
                    changed_at.insert(key.clone(), changed);
                    prices.insert(key, price);
                }
            }
            page += 1;
            if page >= AWS_PAGES {
                return Err(site.error(ErrorClass::Transient, "the listing does not end"));
            }
        }
        Ok(prices)
    }
}

/// A type in a zone, on its way to observations.
struct Offer<'a> {
    ec2: &'a Ec2,
    region: &'a Region,
    zone: &'a Zone,
    now: DateTime<Utc>,
    shape: &'a Arc<Shape>,
    stock: Option<Availability>,
    quotas: Option<&'a Quotas>,
}

impl Offer<'_> {
    fn observe(&self, described: &Described, prices: Option<&SpotPrices>, out: &mut Vec<Observation>) {
        let kind = &self.shape.instance_type;
        let published = self.ec2.published();
        if described.on_demand {
            published.state_on_demand(self.says(Purchase::OnDemand, self.now, None), out);
        }
        if described.spot {
            let hazard = published.interruptions_per_day(self.region, kind);
            if hazard.is_some() {
                out.push(Observation {
                    availability: None,
                    interruptions_per_day: hazard,
                    ..self.says(Purchase::Spot, published.date(), None)
                });
            }
            let price = prices.map(|known| {
                known
                    .get(&(kind.clone(), self.zone.clone()))
                    .map_or(PriceStatement::Unpriced, |rate| PriceStatement::Live(*rate))
            });
            out.push(self.says(Purchase::Spot, self.now, price));
        }
        if described.capacity_block {
            // Sold by the block at prices of its own, which EC2 tells only for a wanted time.
            out.push(self.says(Purchase::Reserved, self.now, Some(PriceStatement::Unpriced)));
        }
    }

    fn says(&self, purchase: Purchase, at: DateTime<Utc>, price: Option<PriceStatement>) -> Observation {
        Observation {
            key: OfferKey {
                provider: self.ec2.id.clone(),
                region: self.region.clone(),
                zone: Some(self.zone.clone()),
                instance_type: self.shape.instance_type.clone(),
                purchase,
            },
            at,
            shape: Arc::clone(self.shape),
            price,
            availability: Some(
                self.stock.map_or((Availability::Unknown, Evidence::Catalogue), |stock| (stock, Evidence::Api)),
            ),
            capacity: None,
            // A statement of the past says nothing on what is left now.
            quota: self.quotas.filter(|_| at == self.now).and_then(|q| q.room(self.shape, purchase)),
            interruptions_per_day: None,
        }
    }
}

/// The regions of errors, for a message.
pub(super) fn regions_of(errors: &[ProviderError]) -> String {
    errors.iter().filter_map(|e| e.region.as_ref()).map(Region::as_str).collect::<Vec<_>>().join(", ")
}
