//! `offers` and `spreads`.

use serde::Serialize;

use crate::cli::output::Stamp;
use crate::domain::{AcceleratorCount, Availability, Evidence, GpuHourlyRate, HourlyRate, Offer, Purchase};
use crate::market::{Figures, Spread};

/// An offer.
#[derive(Debug, Clone, Serialize)]
pub struct OfferShape<'o> {
    provider: &'o str,
    region: &'o str,
    zone: Option<&'o str>,
    instance_type: &'o str,
    accelerator: &'o str,
    accelerators: AcceleratorCount,
    gpu_memory_gib: Option<f64>,
    vcpus: Option<u32>,
    memory_gib: Option<f64>,
    purchase: Purchase,
    usd_per_hour: Option<HourlyRate>,
    usd_per_gpu_hour: Option<GpuHourlyRate>,
    availability: Availability,
    evidence: Evidence,
    observed_at: Stamp,
    stale: bool,
    jurisdiction: Option<&'o str>,
    capacity: Option<u32>,
    interruptions_per_day: Option<f64>,
    price_is_live: bool,
}

impl<'o> From<&'o Offer> for OfferShape<'o> {
    fn from(offer: &'o Offer) -> Self {
        Self {
            provider: offer.key.provider.as_str(),
            region: offer.key.region.as_str(),
            zone: offer.key.zone.as_ref().map(AsRef::as_ref),
            instance_type: offer.key.instance_type.as_str(),
            accelerator: offer.shape.accelerator.as_str(),
            accelerators: offer.shape.accelerators,
            gpu_memory_gib: offer.shape.gpu_memory_gib,
            vcpus: offer.shape.vcpus,
            memory_gib: offer.shape.memory_gib,
            purchase: offer.key.purchase,
            usd_per_hour: offer.price,
            usd_per_gpu_hour: offer.price_per_gpu(),
            availability: offer.availability,
            evidence: offer.evidence,
            observed_at: Stamp(offer.observed_at),
            stale: offer.stale,
            jurisdiction: offer.jurisdiction.as_deref(),
            capacity: offer.capacity,
            interruptions_per_day: offer.interruptions_per_day,
            price_is_live: offer.price_is_live,
        }
    }
}

/// How far apart the prices of an accelerator are: over all its offers, and over each purchase model's.
#[derive(Debug, Serialize)]
pub struct SpreadShape<'s> {
    accelerator: &'s str,
    provider: Option<&'s str>,
    region: Option<&'s str>,
    zone: Option<&'s str>,
    #[serde(flatten)]
    all: FiguresShape<'s>,
    on_demand: FiguresShape<'s>,
    spot: FiguresShape<'s>,
    spot_discount_percent: Option<f64>,
}

#[derive(Debug, Serialize)]
struct FiguresShape<'s> {
    offers: usize,
    min: Option<OfferShape<'s>>,
    median_usd_per_gpu_hour: Option<GpuHourlyRate>,
    max: Option<OfferShape<'s>>,
    spread_percent: Option<f64>,
    unpriced: usize,
    unavailable: usize,
    min_available: Option<OfferShape<'s>>,
}

impl<'s> From<&'s Spread> for SpreadShape<'s> {
    fn from(spread: &'s Spread) -> Self {
        Self {
            accelerator: spread.accelerator.as_str(),
            provider: spread.place.as_ref().map(|p| p.provider.as_str()),
            region: spread.place.as_ref().map(|p| p.region.as_str()),
            zone: spread.place.as_ref().and_then(|p| p.zone.as_ref()).map(AsRef::as_ref),
            all: FiguresShape::from(&spread.all),
            on_demand: FiguresShape::from(&spread.on_demand),
            spot: FiguresShape::from(&spread.spot),
            spot_discount_percent: spread.spot_discount.map(|d| d.median_percent),
        }
    }
}

impl<'s> From<&'s Figures> for FiguresShape<'s> {
    fn from(figures: &'s Figures) -> Self {
        Self {
            offers: figures.offers,
            min: figures.min.as_deref().map(OfferShape::from),
            median_usd_per_gpu_hour: figures.median,
            max: figures.max.as_deref().map(OfferShape::from),
            spread_percent: figures.spread_percent,
            unpriced: figures.unpriced,
            unavailable: figures.unavailable,
            min_available: figures.min_available.as_deref().map(OfferShape::from),
        }
    }
}
