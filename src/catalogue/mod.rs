//! Bundled facts and importers: what is published of machines, prices, places and chips.
//!
//! - [`accelerators`]: canonical names, families, aliases.
//! - [`instance_types`]: what a machine's name tells beyond its price list.
//! - [`regions`]: where regions lie and under whose law.
//! - [`table`]: the catalogue's file format.
//! - [`import`]: price tables of others, checked line by line.
//! - [`interruptions`]: published interruption frequencies as a daily hazard.
//!
//! The tables stand in `data/`; `examples/make_catalogue.rs` makes them from collected price lists. What stands in a
//! price list says nothing on stock: an offer made from here has unknown availability, and its price is "published",
//! with the list's date.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use crate::domain::observation::PriceStatement;
use crate::domain::{
    Availability, Evidence, HourlyRate, Location, Observation, OfferKey, ProviderId, Purchase, Region, Shape, Zone,
};

pub mod accelerators;
pub mod import;
pub mod instance_types;
pub mod interruptions;
pub mod regions;
pub mod table;

/// One line of a price list: a shape in a place, with its published prices.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The cloud.
    pub provider: ProviderId,
    /// The region in it.
    pub region: Region,
    /// The zone, where the list tells zones apart; for AWS the zone id (`use1-az1`).
    pub zone: Option<Zone>,
    /// The machine.
    pub shape: Arc<Shape>,
    /// On-demand price of one instance; `None` is unknown or "by reservation only", never free.
    pub on_demand: Option<HourlyRate>,
    /// Spot price of one instance; `None` where the list has none.
    pub spot: Option<HourlyRate>,
    /// Expected interruptions of one spot instance a day, from the provider's published frequency.
    pub interruptions_per_day: Option<f64>,
}

impl Row {
    /// Whether the spot price stands at its cap, the on-demand price, to the last printed digit: there is little or no
    /// spare capacity behind such a price, and nothing is saved. The price itself is what the list says.
    pub fn spot_is_capped(&self) -> bool {
        /// Lists print spot prices to four decimals, on-demand prices to five and six.
        const LAST_DIGIT_MICROS: i64 = 100;
        match (self.on_demand, self.spot) {
            (Some(on_demand), Some(spot)) => spot.micros() >= on_demand.micros() - LAST_DIGIT_MICROS,
            _ => false,
        }
    }

    /// The key of this row's offer under a purchase model.
    pub fn key(&self, purchase: Purchase) -> OfferKey {
        OfferKey {
            provider: self.provider.clone(),
            region: self.region.clone(),
            zone: self.zone.clone(),
            instance_type: self.shape.instance_type.clone(),
            purchase,
        }
    }

    /// The place.
    pub fn location(&self) -> Location {
        Location { provider: self.provider.clone(), region: self.region.clone(), zone: self.zone.clone() }
    }

    /// What the row says, as observations of the list's date: always one for on-demand (without a price where the list
    /// has none, so that the offer is not hidden), and one for spot where the list has a spot price.
    pub fn observations(&self, at: DateTime<Utc>) -> impl Iterator<Item = Observation> + '_ {
        let on_demand = self.on_demand.map_or(PriceStatement::Unpriced, PriceStatement::Published);
        let spot = self.spot.map(|rate| (Purchase::Spot, PriceStatement::Published(rate), self.interruptions_per_day));
        std::iter::once((Purchase::OnDemand, on_demand, None)).chain(spot).map(move |(purchase, price, hazard)| {
            Observation {
                key: self.key(purchase),
                at,
                shape: Arc::clone(&self.shape),
                price: Some(price),
                availability: Some((Availability::Unknown, Evidence::Catalogue)),
                capacity: None,
                quota: None,
                interruptions_per_day: hazard,
            }
        })
    }
}

/// Where a provider's rows come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The cloud.
    pub provider: ProviderId,
    /// The date that the source gives its figures; `None` where it gives none.
    pub date: Option<NaiveDate>,
    /// What the source is, and in which version.
    pub origin: String,
}

/// Price lists of several clouds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    sources: Vec<Source>,
    rows: Vec<Row>,
}

impl Catalogue {
    /// From sources and rows. The rows are put in order of provider; within one they stay as they are.
    pub fn new(sources: Vec<Source>, mut rows: Vec<Row>) -> Self {
        rows.sort_by(|a, b| a.provider.cmp(&b.provider));
        Self { sources, rows }
    }

    /// The catalogue that is part of the program, parsed at its first use.
    ///
    /// # Panics
    /// Where the bundled table is broken, which a test rules out.
    #[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
    pub fn bundled() -> &'static Self {
        static BUNDLED: OnceLock<Catalogue> = OnceLock::new();
        BUNDLED.get_or_init(|| table::read(table::BUNDLED).unwrap_or_else(|e| panic!("data/catalogue.tsv: {e}")))
    }

    /// All rows, by provider.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of one provider.
    pub fn rows_of(&self, provider: &str) -> &[Row] {
        let start = self.rows.partition_point(|r| r.provider.as_str() < provider);
        let end = self.rows.partition_point(|r| r.provider.as_str() <= provider);
        self.rows.get(start..end).unwrap_or_default()
    }

    /// Where the rows come from, a line for each provider.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The date of the whole: that of its oldest dated source. `None` where no source has a date.
    pub fn dated(&self) -> Option<DateTime<Utc>> {
        self.sources.iter().filter_map(|s| s.date).min().map(midnight)
    }

    /// The date of the whole: that of its oldest dated source; the epoch, which is stale by any measure, where no
    /// source has a date.
    pub fn date(&self) -> DateTime<Utc> {
        self.dated().unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// The date of one provider's rows. A source that gives no date is taken to be as old as the oldest that gives one,
    /// so that its prices never look fresher than is known.
    pub fn date_of(&self, provider: &str) -> DateTime<Utc> {
        self.sources.iter().find(|s| s.provider == *provider).and_then(|s| s.date).map_or_else(|| self.date(), midnight)
    }

    /// What the lists say of one provider, as observations at a time (usually [`Self::date_of`] it).
    pub fn published_observations(&self, provider: &str, at: DateTime<Utc>) -> Vec<Observation> {
        self.rows_of(provider).iter().flat_map(|row| row.observations(at)).collect()
    }

    /// This catalogue with the providers of another in place of its own rows for them.
    #[must_use]
    pub fn overlaid(&self, newer: &Self) -> Self {
        let replaced: HashSet<&ProviderId> = newer.sources.iter().map(|s| &s.provider).collect();
        let mut sources: Vec<Source> =
            self.sources.iter().filter(|s| !replaced.contains(&s.provider)).chain(&newer.sources).cloned().collect();
        sources.sort_by(|a, b| a.provider.cmp(&b.provider));
        let rows = self.rows.iter().filter(|r| !replaced.contains(&r.provider)).chain(&newer.rows).cloned().collect();
        Self::new(sources, rows)
    }
}

/// [`Catalogue::published_observations`] of the bundled catalogue.
pub fn published_observations(provider: &str, at: DateTime<Utc>) -> Vec<Observation> {
    Catalogue::bundled().published_observations(provider, at)
}

fn midnight(date: NaiveDate) -> DateTime<Utc> {
    date.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests;
