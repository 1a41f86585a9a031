//! What price lists say where EC2's own interface says nothing: on-demand prices and interruption frequencies.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::ID;
use crate::catalogue::Catalogue;
use crate::domain::{HourlyRate, InstanceType, Region};

/// Published on-demand prices and interruption frequencies, by region and type.
#[derive(Debug, Clone, Default)]
pub struct Published {
    date: DateTime<Utc>,
    lines: HashMap<(Region, InstanceType), Line>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    on_demand: Option<HourlyRate>,
    interruptions_per_day: Option<f64>,
}

impl Published {
    /// From the catalogue that is part of the program.
    pub fn bundled() -> Self {
        let catalogue = Catalogue::bundled();
        let mut made = Self { date: catalogue.date_of(ID), lines: HashMap::new() };
        for row in catalogue.rows_of(ID) {
            let line = made.lines.entry((row.region.clone(), row.shape.instance_type.clone())).or_default();
            // Zones of a region have one on-demand price; a list that disagrees with itself is taken at its dearest.
            line.on_demand = line.on_demand.max(row.on_demand);
            line.interruptions_per_day = line.interruptions_per_day.or(row.interruptions_per_day);
        }
        made
    }

    /// From prices of a date.
    pub fn new(date: DateTime<Utc>, prices: impl IntoIterator<Item = (Region, InstanceType, HourlyRate)>) -> Self {
        let lines = prices
            .into_iter()
            .map(|(region, kind, rate)| ((region, kind), Line { on_demand: Some(rate), interruptions_per_day: None }))
            .collect();
        Self { date, lines }
    }

    /// When they were published.
    pub fn date(&self) -> DateTime<Utc> {
        self.date
    }

    /// The on-demand price of one instance; `None` where no list has one.
    pub fn on_demand(&self, region: &Region, kind: &InstanceType) -> Option<HourlyRate> {
        self.line(region, kind).on_demand
    }

    /// How often a spot instance is taken away a day.
    pub fn interruptions_per_day(&self, region: &Region, kind: &InstanceType) -> Option<f64> {
        self.line(region, kind).interruptions_per_day
    }

    fn line(&self, region: &Region, kind: &InstanceType) -> Line {
        self.lines.get(&(region.clone(), kind.clone())).copied().unwrap_or_default()
    }
}
