//! When a pool of machines runs short, and how badly.
//!
//! Shortages begin as a Poisson process, last a log-logistic time, and take away a share of the stock; the stock at a
//! moment is what the worst one under way leaves. That has three properties that the rest leans on:
//! - it is a pure function of seed and time (events are hashed out of hourly cells), so nothing has to be stored;
//! - arrivals have no memory, so the rate at which a machine is reclaimed is known *exactly*: it is the rate of those
//!   shortages that cut deeper than the machine's place in the pool ([`Stream::per_hour_above`]), and the interruptions
//!   a day that an offer states are that figure and not an estimate;
//! - availability has a closed form, exp(−rate × mean duration), which the tests hold the simulation against.
//!
//! The shape follows the published 2023 availability traces of one V100 in nine AWS zones ("Can't Be Late", NSDI 2024):
//! zones up 16–49 % of the time where they are hot and 66–88 % elsewhere, median outage half an hour to an hour, a mean
//! several times that; zones of one region correlated 0.3–0.6, zones of different regions 0.1–0.3.

use super::noise::{between, mix, numbered, unit};

/// Events are drawn an hour at a time.
const CELL_MS: i64 = 3_600_000;
/// The longest shortage; the traces have longer ones, but a demo's zone should come back within a virtual day.
const LONGEST_CELLS: i64 = 12;
/// Exponent of the log-logistic duration (1/β with β = 1.6): heavy-tailed, mean about twice the median.
const TAIL: f64 = 0.625;
/// Share of shortages that leave nothing at all.
const TOTAL: f64 = 0.65;
/// The others take between these shares of the stock.
const PARTIAL: (f64, f64) = (0.25, 0.95);
/// More than eight shortages begun in one cell of one stream do not happen at rates below one an hour.
const MOST_IN_A_CELL: u32 = 8;

/// One source of shortages: a cloud's, a region's or a zone's, for one accelerator.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    seed: u64,
    /// Shortages begun an hour.
    per_hour: f64,
    /// Their median duration in milliseconds.
    median_ms: f64,
    /// Probability of none in a cell.
    none: f64,
}

/// One shortage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shortage {
    /// Milliseconds since 1970.
    pub(super) from_ms: i64,
    /// The first millisecond after it.
    pub(super) until_ms: i64,
    /// Share of the stock that it takes, up to 1.
    pub(super) severity: f64,
}

impl Stream {
    pub(super) fn new(seed: u64, per_hour: f64, median_hours: f64) -> Self {
        Self { seed, per_hour, median_ms: median_hours * CELL_MS as f64, none: (-per_hour).exp() }
    }

    /// The shortages that begin in a cell, in no order.
    fn begun_in(&self, cell: i64) -> impl Iterator<Item = Shortage> + '_ {
        let hash = numbered(self.seed, cell);
        let draw = unit(hash);
        let (mut count, mut probability, mut cumulated) = (0_u32, self.none, self.none);
        while draw > cumulated && count < MOST_IN_A_CELL {
            count += 1;
            probability *= self.per_hour / f64::from(count);
            cumulated += probability;
        }
        (0..count).map(move |i| {
            let own = numbered(hash, i64::from(i) + 1);
            let from_ms = cell * CELL_MS + (unit(own) * CELL_MS as f64) as i64;
            let u = unit(mix(own ^ 1));
            let lasts = (self.median_ms * (u / (1.0 - u)).powf(TAIL)).min((LONGEST_CELLS * CELL_MS) as f64);
            let s = unit(mix(own ^ 2));
            let severity = if s < TOTAL { 1.0 } else { between(mix(own ^ 3), PARTIAL.0, PARTIAL.1) };
            Shortage { from_ms, until_ms: from_ms + (lasts as i64).max(1), severity }
        })
    }

    /// The worst shortage under way: the share of the stock that is missing.
    pub(super) fn severity(&self, at_ms: i64) -> f64 {
        if self.per_hour <= 0.0 {
            return 0.0;
        }
        let cell = at_ms.div_euclid(CELL_MS);
        let mut worst = 0.0_f64;
        for cell in cell - LONGEST_CELLS..=cell {
            // Nearly all cells are empty: one draw tells.
            if unit(numbered(self.seed, cell)) <= self.none {
                continue;
            }
            for event in self.begun_in(cell) {
                if event.from_ms <= at_ms && at_ms < event.until_ms {
                    worst = worst.max(event.severity);
                }
            }
        }
        worst
    }

    /// When the first shortage deeper than `severity` begins after `after_ms` and before `until_ms`.
    pub(super) fn next_above(&self, severity: f64, after_ms: i64, until_ms: i64) -> Option<i64> {
        if self.per_hour <= 0.0 {
            return None;
        }
        (after_ms.div_euclid(CELL_MS)..=until_ms.div_euclid(CELL_MS)).find_map(|cell| {
            self.begun_in(cell)
                .filter(|e| e.severity > severity && e.from_ms > after_ms && e.from_ms < until_ms)
                .map(|e| e.from_ms)
                .min()
        })
    }

    /// Shortages an hour that cut deeper than `severity`.
    pub(super) fn per_hour_above(&self, severity: f64) -> f64 {
        let partial = ((PARTIAL.1 - severity) / (PARTIAL.1 - PARTIAL.0)).clamp(0.0, 1.0);
        self.per_hour * (TOTAL + (1.0 - TOTAL) * partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortages_begin_at_the_stated_rate_and_the_stock_is_up_as_long_as_theory_says() {
        let stream = Stream::new(11, 0.2, 0.7);
        let cells = 60_000;
        let mut begun = 0_u32;
        let mut hours = 0.0;
        let mut total = 0_u32;
        for event in (0..cells).flat_map(|c| stream.begun_in(c).collect::<Vec<_>>()) {
            begun += 1;
            if event.severity >= 1.0 {
                total += 1;
                hours += (event.until_ms - event.from_ms) as f64 / CELL_MS as f64;
            }
        }
        let rate = f64::from(begun) / cells as f64;
        assert!((rate - 0.2).abs() < 0.006, "begun an hour: {rate}");
        assert!((f64::from(total) / cells as f64 / stream.per_hour_above(0.97) - 1.0).abs() < 0.04);
        let expected = (-f64::from(total) / cells as f64 * (hours / f64::from(total))).exp();
        let samples = 40_000;
        let up = (0..samples).filter(|i| stream.severity(i * 5_040_001 + 17) < 1.0).count() as f64 / samples as f64;
        println!("up {up:.3}, in theory {expected:.3}, mean outage {:.2} h", hours / f64::from(total));
        assert!((up - expected).abs() < 0.015, "up {up}, in theory {expected}");
    }

    #[test]
    fn the_next_shortage_is_the_first_moment_at_which_the_stock_is_that_low() {
        let stream = Stream::new(5, 0.3, 0.5);
        for start in (0..200).map(|i| i * 7_777_777) {
            if stream.severity(start) > 0.5 {
                continue;
            }
            let next = stream.next_above(0.5, start, start + 400 * CELL_MS);
            let next = next.expect("0.3 an hour gives one in 400 hours");
            assert!(stream.severity(next) > 0.5);
            for t in (start..next).step_by(30_000) {
                assert!(stream.severity(t) <= 0.5, "already short at {t}, told {next}");
            }
        }
    }
}
