//! What the bundled table knows of a provider's instance types, for adapters whose interface does not tell the chip, the
//! price or how often spot is interrupted. It stays published, of its date: never shown as the provider's own word.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;

use crate::catalogue::Catalogue;
use crate::domain::observation::PriceStatement;
use crate::domain::{HourlyRate, InstanceType, Observation, Purchase, Region, Shape};

/// Shapes, on-demand prices and interruption frequencies of one provider.
#[derive(Debug, Clone, Default)]
pub struct Published {
    date: DateTime<Utc>,
    shapes: FxHashMap<InstanceType, Arc<Shape>>,
    lines: FxHashMap<(Region, InstanceType), Line>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    on_demand: Option<HourlyRate>,
    spot: Option<HourlyRate>,
    interruptions_per_day: Option<f64>,
}

impl Published {
    /// Of this provider, from the catalogue that is part of the program.
    pub fn of(provider: &str) -> Self {
        let catalogue = Catalogue::bundled();
        let mut made = Self { date: catalogue.date_of(provider), ..Self::default() };
        for row in catalogue.rows_of(provider) {
            let kind = &row.shape.instance_type;
            made.shapes.entry(kind.clone()).or_insert_with(|| row.shape.clone());
            let line = made.lines.entry((row.region.clone(), kind.clone())).or_default();
            // Zones of a region have one on-demand price; a list that disagrees with itself is taken at its dearest.
            line.on_demand = line.on_demand.max(row.on_demand);
            line.spot = line.spot.max(row.spot);
            line.interruptions_per_day = line.interruptions_per_day.or(row.interruptions_per_day);
        }
        made
    }

    /// From prices of a date.
    pub fn new(date: DateTime<Utc>, prices: impl IntoIterator<Item = (Region, InstanceType, HourlyRate)>) -> Self {
        let lines = prices
            .into_iter()
            .map(|(region, kind, rate)| ((region, kind), Line { on_demand: Some(rate), ..Line::default() }))
            .collect();
        Self { date, lines, ..Self::default() }
    }

    /// When they were published.
    pub fn date(&self) -> DateTime<Utc> {
        self.date
    }

    /// The machine of this type; `None` where the table does not have it.
    pub fn shape(&self, kind: &InstanceType) -> Option<&Arc<Shape>> {
        self.shapes.get(kind)
    }

    /// The on-demand price of one instance; `None` where no list has one.
    pub fn on_demand(&self, region: &Region, kind: &InstanceType) -> Option<HourlyRate> {
        self.line(region, kind).on_demand
    }

    /// The price of one instance, on spot the dearest of the region's zones; `None` where no list has one.
    pub fn price(&self, purchase: Purchase, region: &Region, kind: &InstanceType) -> Option<HourlyRate> {
        match purchase {
            Purchase::OnDemand => self.line(region, kind).on_demand,
            Purchase::Spot => self.line(region, kind).spot,
            Purchase::Reserved => None,
        }
    }

    /// How often a spot instance is taken away a day.
    pub fn interruptions_per_day(&self, region: &Region, kind: &InstanceType) -> Option<f64> {
        self.line(region, kind).interruptions_per_day
    }

    /// An on-demand listing without a price, in two statements: the table's price, of the table's date; and the
    /// provider's listing, of now. One statement of now would make an old price look fresh.
    pub(super) fn state_on_demand(&self, listing: Observation, out: &mut Vec<Observation>) {
        let price = self.on_demand(&listing.key.region, &listing.shape.instance_type).map(PriceStatement::Published);
        if price.is_some() {
            out.push(Observation { at: self.date, price, availability: None, ..listing.clone() });
        }
        let unpriced = price.is_none().then_some(PriceStatement::Unpriced);
        out.push(Observation { price: unpriced, ..listing });
    }

    fn line(&self, region: &Region, kind: &InstanceType) -> Line {
        self.lines.get(&(region.clone(), kind.clone())).copied().unwrap_or_default()
    }
}
