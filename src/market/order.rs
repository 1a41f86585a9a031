//! The orders in which offers stand. Total, so that a sorted list is sorted whoever sorts it.

use std::cmp::Ordering;

use crate::domain::{GpuHourlyRate, Offer};

/// The price of one GPU as a figure to compare by. Zero and less are no prices: a free GPU is a hole in a price list.
pub fn gpu_price(offer: &Offer) -> Option<GpuHourlyRate> {
    offer.price_per_gpu().filter(|p| p.micros() > 0)
}

/// What [`by_price`] compares first, to be worked out once an offer (`sort_by_cached_key`): unpriced last.
pub fn price_key(offer: &Offer) -> i64 {
    gpu_price(offer).map_or(i64::MAX, GpuHourlyRate::micros)
}

/// Cheapest GPU first, equal prices by key, those without a price last.
pub fn by_price(a: &Offer, b: &Offer) -> Ordering {
    price_key(a).cmp(&price_key(b)).then_with(|| a.key.cmp(&b.key))
}
