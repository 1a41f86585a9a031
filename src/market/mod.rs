//! Observations in, immutable snapshots out. Pure: reads no clock, draws no random number.
//!
//! [`Market`] has one owner. It joins what sources say, fact by fact, newer over older; keeps the last values when a
//! source fails, marked by their age; holds back answers that cannot be true; and publishes [`Snapshot`]s that share
//! all blocks in which nothing changed. [`spreads()`] and [`Summary`] are worked out from the very rows that the screen
//! shows.
//!
//! Memory: an offer takes about 500 bytes (facts, shown row, first history point), histories together at most 16 MB;
//! names and shapes are kept once. 100,000 offers under a stream of changes, with full histories and three snapshots
//! alive, were measured at 75 MiB; `tests/market_memory.rs` holds them below 120.

mod book;
mod feed;
mod freshness;
mod history;
mod intern;
pub mod order;
mod quarantine;
mod record;
mod reducer;
mod snapshot;
mod spreads;
mod summary;

#[cfg(test)]
mod tests;

pub use feed::FeedCounts;
pub use freshness::{Freshness, age, freshness};
pub use history::{History, HistoryPoint};
pub use reducer::{Applied, Jurisdictions, Market};
pub use snapshot::Snapshot;
pub use spreads::{Figures, SpotDiscount, Spread, SpreadBy, Trend, spreads, spreads_by};
pub use summary::{Counts, Summary};
