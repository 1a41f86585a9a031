//! What egress costs.
//!
//! Between regions of one cloud it is never free because the cloud is the same; to another cloud it goes over the
//! internet, whose price falls with the month's volume. A step's price holds for the GB within that step only, so the
//! sum grows without a jump.
//!
//! The published list holds 71 regions of three clouds. For a region that it leaves out the price is inferred where the
//! list agrees with itself: regions of the same cloud in the same country pay the same, destinations in the same country
//! cost the same. Where the list's prices differ among those, the price is unknown. Leaving each listed region out in
//! turn, 57 % of its pairs can be inferred so, and 998 of 1,000 inferred prices are the list's.

use rustc_hash::FxHashMap;

use crate::catalogue::regions;
use crate::domain::{Location, Money};

/// How a tariff is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TariffBasis {
    /// Nothing leaves the region.
    WithinRegion,
    /// The published list has this pair.
    Published,
    /// The list has no such pair; all it has for the same clouds and countries cost this.
    Inferred,
}

/// One step of a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    /// It ends here, in GB; infinite for the last.
    up_to_gb: f64,
    /// Micro-USD per GB within it.
    micros_per_gb: u32,
}

/// What egress between two places costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tariff {
    first_micros_per_gb: u32,
    /// The steps; empty where the first price holds for any volume.
    steps: &'static [Step],
    basis: TariffBasis,
}

impl Tariff {
    /// Within a region.
    pub const WITHIN_REGION: Self = Self { first_micros_per_gb: 0, steps: &[], basis: TariffBasis::WithinRegion };

    /// The price of the first GB of a month in USD.
    pub fn first_usd_per_gb(&self) -> f64 {
        f64::from(self.first_micros_per_gb) / 1e6
    }

    /// How it is known.
    pub const fn basis(&self) -> TariffBasis {
        self.basis
    }

    /// What a month's first so many GB (10^9 bytes) cost.
    pub fn cost(&self, gb: f64) -> Money {
        let gb = gb.max(0.0);
        let mut micros = 0.0;
        let mut from = 0.0;
        for step in self.steps {
            micros += (gb.min(step.up_to_gb) - from).max(0.0) * f64::from(step.micros_per_gb);
            from = step.up_to_gb;
        }
        if self.steps.is_empty() {
            micros = gb * f64::from(self.first_micros_per_gb);
        }
        Money::from_micros(micros.round() as i64)
    }
}

/// How internet prices fall with volume, by cloud and first price.
#[derive(Debug)]
pub(super) struct Schedules(Vec<(&'static str, u32, &'static [Step])>);

impl Schedules {
    pub(super) fn parse(table: &'static str) -> Result<Self, String> {
        let mut schedules: Vec<(&'static str, u32, Vec<Step>)> = Vec::new();
        for line in table.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).skip(1) {
            let bad = || format!("egress tiers: {line}");
            let fields: Vec<&'static str> = line.split(',').collect();
            let [provider, first, up_to, price] = fields.as_slice() else { return Err(bad()) };
            let micros = |usd: &str| usd.parse::<f64>().ok().map(|usd| (usd * 1e6).round() as u32).ok_or_else(bad);
            let up_to_gb = if up_to.is_empty() { f64::INFINITY } else { up_to.parse().ok().ok_or_else(bad)? };
            let (first, step) = (micros(first)?, Step { up_to_gb, micros_per_gb: micros(price)? });
            match schedules.last_mut().filter(|(p, f, _)| p == provider && *f == first) {
                Some((.., steps)) if steps.last().is_some_and(|last| last.up_to_gb < up_to_gb) => steps.push(step),
                None if step.micros_per_gb == first => schedules.push((provider, first, vec![step])),
                _ => return Err(bad()),
            }
        }
        if schedules.iter().any(|(.., steps)| steps.last().is_none_or(|last| last.up_to_gb.is_finite())) {
            return Err("egress tiers: a schedule has no last step".to_owned());
        }
        // Parsed once in the life of the program, like the table itself.
        Ok(Self(schedules.into_iter().map(|(p, f, steps)| (p, f, &*steps.leak())).collect()))
    }

    fn tariff(&self, from: &Location, to: &Location, price: u32, basis: TariffBasis) -> Tariff {
        let steps = if from.provider == to.provider {
            &[][..]
        } else {
            self.0.iter().find(|(p, first, _)| from.provider == **p && *first == price).map_or(&[][..], |(.., s)| *s)
        };
        Tariff { first_micros_per_gb: price, steps, basis }
    }

    pub(super) fn listed(&self, from: &Location, to: &Location, price: u32) -> Tariff {
        self.tariff(from, to, price, TariffBasis::Published)
    }

    pub(super) fn inferred(&self, from: &Location, to: &Location, price: u32) -> Tariff {
        self.tariff(from, to, price, TariffBasis::Inferred)
    }
}

/// A number for each group of regions: a region itself, a cloud's regions in a country, and so on.
type Group = u32;

/// The regions that have a place, numbered; and the groups that each belongs to.
#[derive(Debug, Default)]
struct Places {
    index: FxHashMap<&'static str, FxHashMap<&'static str, usize>>,
    /// Cloud and country of each, as numbers.
    facts: Vec<(Group, Group)>,
    clouds: Group,
    countries: Group,
}

impl Places {
    fn all() -> Self {
        let mut places = Self::default();
        let mut countries: FxHashMap<&'static str, Group> = FxHashMap::default();
        let mut cloud = None;
        for (provider, region, facts) in regions::all() {
            if cloud != Some(provider) {
                cloud = Some(provider);
                places.clouds += 1;
            }
            let next = countries.len() as Group;
            let country = *countries.entry(facts.country).or_insert(next);
            places.index.entry(provider).or_default().insert(region, places.facts.len());
            places.facts.push((places.clouds - 1, country));
        }
        places.countries = countries.len() as Group;
        places
    }

    fn find(&self, at: &Location) -> Option<usize> {
        self.index.get(at.provider.as_str())?.get(at.region.as_str()).copied()
    }

    /// A cloud's regions in a country. Numbers below are the regions themselves, numbers above the vaguer groups.
    fn in_country(&self, (cloud, country): (Group, Group)) -> Group {
        self.facts.len() as Group + cloud * self.countries + country
    }

    /// The groups that a source belongs to, the most exact first.
    fn of_source(&self, from: usize) -> impl Iterator<Item = Group> {
        [Some(from as Group), self.facts.get(from).map(|facts| self.in_country(*facts))].into_iter().flatten()
    }

    /// The groups that a destination belongs to, the most exact first: the region; its cloud and country; for the same
    /// cloud, anywhere abroad; for another cloud, anyone in that country, then [`Self::anywhere`].
    fn of_destination(&self, to: usize, from: usize) -> impl Iterator<Item = Group> {
        let vaguer = self.in_country((self.clouds, 0));
        let groups = match (self.facts.get(from), self.facts.get(to)) {
            (Some(from), Some(here)) if from.0 == here.0 => {
                let abroad = (from.1 != here.1).then_some(vaguer + here.0);
                [Some(to as Group), Some(self.in_country(*here)), abroad, None]
            }
            (_, Some(here)) => {
                let elsewhere = vaguer + self.clouds + here.1;
                [Some(to as Group), Some(self.in_country(*here)), Some(elsewhere), Some(self.anywhere())]
            }
            _ => [None; 4],
        };
        groups.into_iter().flatten()
    }

    /// Any region of any other cloud.
    fn anywhere(&self) -> Group {
        self.in_country((self.clouds, 0)) + self.clouds + self.countries
    }
}

/// What the list agrees on, for every pair of regions that have a place.
#[derive(Debug)]
pub(super) struct Prices {
    places: Places,
    /// Micro-USD per GB from each place to each.
    matrix: Vec<Option<u32>>,
    /// The same from each place to another cloud's region of unknown place.
    anywhere: Vec<Option<u32>>,
}

impl Prices {
    pub(super) fn new<'p>(list: impl Iterator<Item = (&'p Location, &'p Location, u32)>) -> Self {
        let places = Places::all();
        // `None` where two prices of a group differ.
        let mut agreed: FxHashMap<(Group, Group), Option<u32>> = FxHashMap::default();
        for (from, to, price) in list {
            let (Some(from), Some(to)) = (places.find(from), places.find(to)) else { continue };
            for source in places.of_source(from) {
                for destination in places.of_destination(to, from) {
                    agreed
                        .entry((source, destination))
                        .and_modify(|agreed| *agreed = agreed.filter(|p| *p == price))
                        .or_insert(Some(price));
                }
            }
        }
        // The most exact groups that the list knows decide; where they do not agree, no vaguer group is asked.
        let n = places.facts.len();
        let look_up = |source, destination| agreed.get(&(source, destination)).copied();
        let price = |from: usize, to: usize| {
            places.of_source(from).find_map(|s| places.of_destination(to, from).find_map(|d| look_up(s, d))).flatten()
        };
        let matrix = (0..n * n).map(|i| price(i / n, i % n)).collect();
        let anywhere =
            (0..n).map(|from| places.of_source(from).find_map(|s| look_up(s, places.anywhere())).flatten()).collect();
        Self { places, matrix, anywhere }
    }

    /// The price of a pair that the list leaves out.
    pub(super) fn infer(&self, from: &Location, to: &Location) -> Option<u32> {
        let source = self.places.find(from)?;
        match self.places.find(to) {
            Some(destination) => self.matrix.get(source * self.places.facts.len() + destination).copied().flatten(),
            None if from.provider != to.provider => self.anywhere.get(source).copied().flatten(),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_without_order_or_end_is_refused() {
        let parse = |body: &str| Schedules::parse(format!("h\n{body}").leak());
        assert!(parse("a,0.1,10,0.1\na,0.1,,0.05").is_ok());
        for broken in ["a,0.1,10,0.1", "a,0.1,10,0.1\na,0.1,5,0.05\na,0.1,,0.01", "a,0.1,,0.2", "a,0.1,x,0.1", "a,0.1"]
        {
            assert!(parse(broken).is_err(), "{broken}");
        }
    }
}
