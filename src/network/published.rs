//! The bundled matrices. One line a region, a cell for each region in the same order; `-` where there is no figure.

use std::sync::OnceLock;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use rustc_hash::FxHashMap;

use super::tariff::{Prices, Schedules, Tariff};
use crate::domain::Location;

const LATENCY: &str = include_str!("../../data/latency.tsv");
const THROUGHPUT: &str = include_str!("../../data/throughput.tsv");
const EGRESS: &str = include_str!("../../data/egress.tsv");
const TIERS: &str = include_str!("../../data/egress_tiers.csv");

/// A published round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrip {
    /// Mean in ms.
    pub mean_ms: f64,
    /// Mean deviation in ms.
    pub deviation_ms: f64,
}

/// Figures between regions.
#[derive(Debug)]
struct Matrix<T> {
    places: Vec<Location>,
    index: FxHashMap<&'static str, FxHashMap<&'static str, usize>>,
    cells: Vec<Option<T>>,
}

impl<T: Copy> Matrix<T> {
    fn parse(
        table: &'static str,
        split: fn(&'static str) -> Vec<&'static str>,
        cell: impl Fn(&'static str) -> Option<T>,
    ) -> Result<Self, String> {
        let rows: Vec<(&'static str, &'static str)> =
            table.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once('\t')).collect();
        let mut matrix =
            Self { places: Vec::new(), index: FxHashMap::default(), cells: Vec::with_capacity(rows.len().pow(2)) };
        for (number, (name, cells)) in rows.iter().enumerate() {
            let (provider, region) = name.split_once('/').ok_or_else(|| format!("'{name}' is no region"))?;
            matrix.places.push(Location::region(provider, region));
            matrix.index.entry(provider).or_default().insert(region, number);
            for text in split(cells) {
                matrix.cells.push(match text {
                    "-" => None,
                    text => Some(cell(text).ok_or_else(|| format!("{name}: '{text}' is no figure"))?),
                });
            }
            if matrix.cells.len() != (number + 1) * rows.len() {
                return Err(format!("{name}: {} cells are needed", rows.len()));
            }
        }
        Ok(matrix)
    }

    fn place(&self, at: &Location) -> Option<usize> {
        self.index.get(at.provider.as_str())?.get(at.region.as_str()).copied()
    }

    fn at(&self, from: usize, to: usize) -> Option<T> {
        self.cells.get(from * self.places.len() + to).copied().flatten()
    }

    fn pairs(&self) -> impl Iterator<Item = (&Location, &Location, T)> {
        let n = self.places.len();
        self.cells
            .iter()
            .enumerate()
            .filter_map(move |(i, cell)| Some((self.places.get(i / n)?, self.places.get(i % n)?, (*cell)?)))
    }
}

/// Everything that was published.
#[derive(Debug)]
pub struct Published {
    /// When the round trips were published.
    pub latency_date: DateTime<Utc>,
    /// When the egress prices were published.
    pub egress_date: DateTime<Utc>,
    latency: Matrix<RoundTrip>,
    throughput: Matrix<f64>,
    /// Micro-USD per GB.
    egress: Matrix<u32>,
    schedules: Schedules,
    /// Prices by country, made when a region is asked for that the list leaves out.
    inferred: OnceLock<Prices>,
}

fn words(text: &'static str) -> Vec<&'static str> {
    text.split(' ').collect()
}

fn letters(text: &'static str) -> Vec<&'static str> {
    (0..text.len()).filter_map(|i| text.get(i..=i)).collect()
}

/// From the line `# date YYYY-MM-DD` of a table's head.
fn date(table: &str) -> Option<DateTime<Utc>> {
    let line = table.lines().find_map(|l| l.strip_prefix("# date "))?;
    Some(line.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN).and_utc())
}

/// The price of each letter in micro-USD per GB, from the line `# prices a=0.01 …`.
fn prices(table: &'static str) -> Option<FxHashMap<&'static str, u32>> {
    let line = table.lines().find_map(|l| l.strip_prefix("# prices "))?;
    line.split(' ')
        .map(|pair| {
            let (letter, usd) = pair.split_once('=')?;
            Some((letter, (usd.parse::<f64>().ok()? * 1e6).round() as u32))
        })
        .collect()
}

impl Published {
    fn parse() -> Result<Self, String> {
        let positive = |text: &str| text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
        let latency = Matrix::parse(LATENCY, words, |text| {
            let (mean, deviation) = text.split_once('~')?;
            Some(RoundTrip { mean_ms: positive(mean)?, deviation_ms: deviation.parse().ok()? })
        })?;
        let throughput = Matrix::parse(THROUGHPUT, words, positive)?;
        let letters_to_prices = prices(EGRESS).ok_or("egress: the line of prices is missing")?;
        let egress = Matrix::parse(EGRESS, letters, |text| letters_to_prices.get(text).copied())?;
        Ok(Self {
            latency_date: date(LATENCY).ok_or("latency: the date is missing")?,
            egress_date: date(EGRESS).ok_or("egress: the date is missing")?,
            latency,
            throughput,
            egress,
            schedules: Schedules::parse(TIERS)?,
            inferred: OnceLock::new(),
        })
    }

    /// The bundled figures.
    ///
    /// # Panics
    /// Where a bundled table is broken, which a test rules out.
    #[expect(clippy::panic, reason = "the tables are part of the program, and a test reads them")]
    pub fn bundled() -> &'static Self {
        static BUNDLED: OnceLock<Published> = OnceLock::new();
        BUNDLED.get_or_init(|| Self::parse().unwrap_or_else(|e| panic!("data/*.tsv: {e}")))
    }

    /// In this direction, or else in the other: a round trip goes both ways. Where both were measured, nineteen in
    /// twenty differ by less than 4 %.
    pub fn round_trip(&self, from: &Location, to: &Location) -> Option<RoundTrip> {
        let (from, to) = (self.latency.place(from)?, self.latency.place(to)?);
        self.latency.at(from, to).or_else(|| self.latency.at(to, from))
    }

    /// Every round trip as it was measured.
    pub fn round_trips(&self) -> impl Iterator<Item = (&Location, &Location, RoundTrip)> {
        self.latency.pairs()
    }

    /// Gbit/s in this direction; the other is bounded by another cloud's cap and says nothing.
    pub fn throughput(&self, from: &Location, to: &Location) -> Option<f64> {
        self.throughput.at(self.throughput.place(from)?, self.throughput.place(to)?)
    }

    /// The best Gbit/s from there to anywhere.
    pub fn best_throughput(&self, from: &Location) -> Option<f64> {
        let from = self.throughput.place(from)?;
        (0..self.throughput.places.len()).filter_map(|to| self.throughput.at(from, to)).reduce(f64::max)
    }

    /// Every listed egress price in micro-USD per GB.
    pub fn egress_prices(&'static self) -> impl Iterator<Item = (&'static Location, &'static Location, u32)> {
        self.egress.pairs()
    }

    /// The egress tariff between two different regions.
    pub fn tariff(&'static self, from: &Location, to: &Location) -> Option<Tariff> {
        let listed = match (self.egress.place(from), self.egress.place(to)) {
            (Some(from), Some(to)) => self.egress.at(from, to),
            _ => None,
        };
        match listed {
            Some(price) => Some(self.schedules.listed(from, to, price)),
            None => self
                .inferred
                .get_or_init(|| Prices::new(self.egress_prices()))
                .infer(from, to)
                .map(|price| self.schedules.inferred(from, to, price)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sound() {
        let published: &'static Published = Box::leak(Box::new(Published::parse().unwrap()));
        assert_eq!(published.round_trips().count(), 2_856);
        assert_eq!(published.throughput.pairs().count(), 3_907);
        assert_eq!(published.egress_prices().count(), 4_970);
        assert_eq!(published.latency_date.to_rfc3339(), "2022-01-01T00:00:00+00:00");
        let bytes = LATENCY.len() + THROUGHPUT.len() + EGRESS.len() + crate::catalogue::table::BUNDLED.len();
        assert!(bytes < 200_000, "{bytes}");
    }

    #[test]
    fn a_broken_matrix_is_refused() {
        let parse = |text| Matrix::parse(text, words, |t| t.parse::<f64>().ok());
        assert!(parse("a/b\t- 1\nc/d\t2 -").is_ok());
        for broken in ["a/b\t-\nc/d\t2 -", "ab\t-", "a/b\tx"] {
            assert!(parse(broken).is_err(), "{broken}");
        }
    }
}
