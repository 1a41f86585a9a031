//! Tests of the market as a whole.

mod feeds;
mod knowledge;
mod prices;
mod properties;

use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};

use super::*;
use crate::domain::{
    Accelerator, AcceleratorCount, Availability, ErrorClass, Evidence, FeedHealth, FeedStatus, HourlyRate,
    Interconnect, Observation, Offer, OfferKey, Offerings, PriceStatement, ProviderError, ProviderId, Purchase, Shape,
};

pub(super) fn t(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + Duration::days(20_423) + Duration::seconds(seconds)
}
pub(super) fn aws() -> ProviderId {
    "aws".into()
}
pub(super) fn usd(price: f64) -> HourlyRate {
    HourlyRate::from_usd(price).expect("a price")
}
pub(super) fn nowhere(_: &str, _: &str) -> Option<&'static str> {
    None
}
pub(super) fn market() -> Market {
    Market::new(nowhere)
}
pub(super) fn shape(instance_type: &str, accelerator: &str, count: u32) -> Arc<Shape> {
    Arc::new(Shape {
        instance_type: instance_type.into(),
        accelerator: Accelerator::from_canonical(accelerator),
        accelerators: AcceleratorCount::whole(count),
        gpu_memory_gib: Some(80.0),
        vcpus: Some(96),
        memory_gib: Some(512.0),
        interconnect: Interconnect::Unknown,
    })
}
pub(super) fn key(region: &str, number: usize) -> OfferKey {
    OfferKey {
        provider: aws(),
        region: region.into(),
        zone: Some(format!("z{number}").into()),
        instance_type: "p5.48xlarge".into(),
        purchase: Purchase::Spot,
    }
}
/// A live observation of an offer at this price, in stock by the provider's word.
pub(super) fn seen(key: OfferKey, at: DateTime<Utc>, price: f64) -> Observation {
    Observation {
        shape: shape(key.instance_type.as_str(), "H100-80GB-SXM", 8),
        key,
        at,
        price: Some(PriceStatement::Live(usd(price))),
        availability: Some((Availability::Available, Evidence::Api)),
        capacity: None,
        quota: None,
        interruptions_per_day: None,
    }
}
pub(super) fn complete(observations: Vec<Observation>) -> Offerings {
    Offerings { observations, complete: true, ..Offerings::default() }
}
pub(super) fn error(class: ErrorClass) -> ProviderError {
    ProviderError::new(class, &aws(), "DescribeSpotPriceHistory", "it broke").code("Broken")
}
pub(super) fn error_in(region: &str, class: ErrorClass) -> ProviderError {
    ProviderError { region: Some(region.into()), ..error(class) }
}
pub(super) fn status(snapshot: &Snapshot) -> FeedStatus {
    snapshot.feeds().iter().find(|f| f.provider == "aws").expect("a feed").clone()
}
pub(super) fn health(market: &mut Market, now: DateTime<Utc>) -> FeedHealth {
    status(&market.snapshot(now)).health
}
pub(super) fn offer(market: &mut Market, key: &OfferKey, now: DateTime<Utc>) -> Arc<Offer> {
    market.snapshot(now).get(key).expect("an offer").clone()
}
/// So many offers of one region, all at this price.
pub(super) fn many(region: &str, count: usize, at: DateTime<Utc>, price: f64) -> Vec<Observation> {
    (0..count).map(|i| seen(key(region, i), at, price)).collect()
}
/// An answer that is repeated, an interval apart from `at` on, until it is believed; after three at the latest.
pub(super) fn insist(market: &mut Market, answer: &Offerings, at: i64) {
    let mut later = (0..4).map(|n| t(at + 60 * n));
    assert!(later.any(|now| !market.apply(&aws(), answer.clone(), now).quarantined), "not believed for ever");
}
