//! Published interruption frequencies as a daily hazard.
//!
//! AWS' spot advisor publishes, per type and region, how often spot instances were interrupted during the last month, in
//! five ranges. The middle of a range is taken as the chance `p` of at least one interruption in 30 days; with a
//! constant hazard that is `1 - exp(-30 h)`, so `h = -ln(1 - p) / 30` interruptions a day.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

const TABLE: &str = include_str!("../../data/interruptions.tsv");

/// The middles of the ranges `<5 %`, `5–10 %`, `10–15 %`, `15–20 %` and `>20 %`. The last has no upper end: it is read
/// as 20–30 %, which is a guess at its lower part.
const MIDDLES: [f64; 5] = [0.025, 0.075, 0.125, 0.175, 0.25];

const DAYS: f64 = 30.0;

/// Digits of a hazard that are kept, which is more than the ranges tell.
const ROUNDING: f64 = 1e5;

/// Expected interruptions a day of one instance for the advisor's range 0 to 4, to the fifth decimal.
pub fn per_day(range: u8) -> Option<f64> {
    MIDDLES.get(usize::from(range)).map(|p| (-(1.0 - p).ln() / DAYS * ROUNDING).round() / ROUNDING)
}

/// Ranges by instance type and region.
type Table = FxHashMap<&'static str, FxHashMap<&'static str, u8>>;

fn parse(text: &'static str) -> Result<Table, String> {
    let mut table = Table::default();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (instance_type, cells) = line.split_once('\t').ok_or_else(|| format!("no tab: {line}"))?;
        let regions = table.entry(instance_type).or_default();
        for cell in cells.split(' ') {
            let known = cell.split_once('=').and_then(|(region, range)| Some((region, range.parse().ok()?)));
            let (region, range) = known.ok_or_else(|| format!("'{cell}' is no region and range"))?;
            if per_day(range).is_none() || regions.insert(region, range).is_some() {
                return Err(format!("{instance_type}: '{cell}'"));
            }
        }
    }
    Ok(table)
}

/// The published frequency of a type in a region as interruptions a day of one spot instance. Only AWS publishes one;
/// the bundled figures are of 2025-06-28 and hold for every zone of the region.
///
/// # Panics
/// Where the bundled table is broken, which a test rules out.
#[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
pub fn published(provider: &str, region: &str, instance_type: &str) -> Option<f64> {
    static PARSED: OnceLock<Table> = OnceLock::new();
    if provider != "aws" {
        return None;
    }
    let table = PARSED.get_or_init(|| parse(TABLE).unwrap_or_else(|e| panic!("data/interruptions.tsv: {e}")));
    per_day(*table.get(instance_type)?.get(region)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_frequency_can_be_asked_for() {
        let table = parse(TABLE).unwrap();
        assert_eq!(table.values().map(FxHashMap::len).sum::<usize>(), 603);
        assert_eq!(published("aws", "af-south-1", "g4dn.12xlarge"), per_day(0));
        assert_eq!(published("aws", "af-south-1", "g4dn.2xlarge"), per_day(4), "a type that the price list leaves out");
        assert_eq!(published("gcp", "af-south-1", "g4dn.12xlarge"), None);
        assert_eq!(published("aws", "af-south-1", "p6-b300.48xlarge"), None);
        for broken in ["a", "a\tb", "a\tb=x", "a\tb=5", "a\tb=1 b=2"] {
            assert!(parse(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn the_hazard_gives_back_the_monthly_frequency() {
        for (range, monthly) in [(0, 0.025), (1, 0.075), (2, 0.125), (3, 0.175), (4, 0.25)] {
            let hazard: f64 = per_day(range).unwrap();
            assert!((1.0 - (-30.0 * hazard).exp() - monthly).abs() < 2e-4);
        }
        assert_eq!(per_day(4), Some(0.009_59));
        assert_eq!(per_day(5), None);
    }
}
