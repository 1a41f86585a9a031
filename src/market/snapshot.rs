//! The market at one moment.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};

use super::feed::FeedCounts;
use super::history::History;
use super::spreads::{Spread, spreads};
use super::summary::Summary;
use crate::config::limits;
use crate::domain::{FeedStatus, Offer, OfferKey, ProviderId};

/// The market at one moment: immutable, shared by screen and placement core.
///
/// Offers stand in blocks that neighbouring snapshots share: making one costs the blocks in which something changed,
/// not the market's size.
#[derive(Debug, Default)]
pub struct Snapshot {
    at: DateTime<Utc>,
    version: u64,
    len: usize,
    blocks: Arc<[Arc<Block>]>,
    feeds: Vec<FeedStatus>,
    counts: Vec<FeedTally>,
    summary: OnceLock<Summary>,
    spreads: OnceLock<Vec<Spread>>,
}

/// What a source's answers did, and the reasons for which rows of its last one could not be used.
type FeedTally = (ProviderId, FeedCounts, Arc<BTreeMap<String, u32>>);

/// Some offers in the order of their keys; never empty.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) offers: Box<[Arc<Offer>]>,
    /// One an offer, or none at all where nothing is known of the past.
    pub(super) histories: Box<[History]>,
}

impl Snapshot {
    /// A snapshot of just these offers; they are put in the order of their keys. For files and tests.
    pub fn from_offers(at: DateTime<Utc>, offers: impl IntoIterator<Item = Offer>) -> Self {
        let mut offers: Vec<Arc<Offer>> = offers.into_iter().map(Arc::new).collect();
        offers.sort_by(|a, b| a.key.cmp(&b.key));
        let blocks = offers
            .chunks(limits::SNAPSHOT_BLOCK)
            .map(|block| Arc::new(Block { offers: block.into(), histories: Box::default() }))
            .collect();
        Self { at, version: 1, len: offers.len(), blocks, ..Self::default() }
    }

    /// From a market's blocks.
    pub(super) fn of_market(
        at: DateTime<Utc>,
        version: u64,
        blocks: Arc<[Arc<Block>]>,
        feeds: Vec<FeedStatus>,
        counts: Vec<FeedTally>,
    ) -> Self {
        let len = blocks.iter().map(|b| b.offers.len()).sum();
        Self { at, version, len, blocks, feeds, counts, summary: OnceLock::new(), spreads: OnceLock::new() }
    }

    /// The same with these feeds. For files and tests.
    #[must_use]
    pub fn with_feeds(mut self, feeds: Vec<FeedStatus>) -> Self {
        self.feeds = feeds;
        self
    }

    /// The moment.
    pub fn at(&self) -> DateTime<Utc> {
        self.at
    }
    /// Grows by one with each snapshot of a market.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// How many offers there are.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// All offers in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Offer>> {
        Offers { blocks: self.blocks.iter(), block: [].iter(), left: self.len }
    }
    /// The same, block after block, for passes over all of them that count nanoseconds.
    pub fn blocks(&self) -> impl Iterator<Item = &[Arc<Offer>]> {
        self.blocks.iter().map(|b| &*b.offers)
    }
    /// One offer.
    pub fn get(&self, key: &OfferKey) -> Option<&Arc<Offer>> {
        let (block, row) = self.find(key)?;
        block.offers.get(row)
    }
    /// How each source is doing, in the order of their names.
    pub fn feeds(&self) -> &[FeedStatus] {
        &self.feeds
    }
    /// What a source's answers did to the market since the start; `None` where there is no such source.
    pub fn feed_counts(&self, provider: &ProviderId) -> Option<&FeedCounts> {
        self.counts.iter().find(|t| t.0 == *provider).map(|t| &t.1)
    }
    /// The rows of a source's last answer that its adapter could not use, counted by reason.
    pub fn skipped(&self, provider: &ProviderId) -> Option<&BTreeMap<String, u32>> {
        self.counts.iter().find(|t| t.0 == *provider).map(|t| &*t.2)
    }
    /// Price and availability of one offer over time, oldest first.
    pub fn history(&self, key: &OfferKey) -> Option<&History> {
        let (block, row) = self.find(key)?;
        block.histories.get(row)
    }
    /// Every offer with its history, in the order of their keys.
    pub fn with_histories(&self) -> impl Iterator<Item = (&Arc<Offer>, Option<&History>)> {
        self.blocks.iter().flat_map(|b| b.offers.iter().enumerate().map(|(i, o)| (o, b.histories.get(i))))
    }
    /// Counts of the offers, worked out once a snapshot.
    pub fn summary(&self) -> &Summary {
        self.summary.get_or_init(|| Summary::of(self))
    }
    /// The spreads of all accelerators, worked out once a snapshot (some 50 ms for 100,000 offers: off the draw path).
    pub fn spreads(&self) -> &[Spread] {
        self.spreads.get_or_init(|| spreads(self, None))
    }

    fn find(&self, key: &OfferKey) -> Option<(&Block, usize)> {
        let after = self.blocks.partition_point(|b| b.offers.first().is_some_and(|o| o.key <= *key));
        let block = self.blocks.get(after.checked_sub(1)?)?;
        let row = block.offers.binary_search_by(|o| o.key.cmp(key)).ok()?;
        Some((block, row))
    }

    #[cfg(test)]
    pub(super) fn shared_blocks(&self, other: &Self) -> (usize, usize) {
        let shared = self.blocks.iter().filter(|b| other.blocks.iter().any(|o| Arc::ptr_eq(b, o))).count();
        (shared, self.blocks.len())
    }
}

/// The offers of all blocks one after the other.
struct Offers<'a> {
    blocks: std::slice::Iter<'a, Arc<Block>>,
    block: std::slice::Iter<'a, Arc<Offer>>,
    left: usize,
}

impl<'a> Iterator for Offers<'a> {
    type Item = &'a Arc<Offer>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(offer) = self.block.next() {
                self.left = self.left.saturating_sub(1);
                return Some(offer);
            }
            self.block = self.blocks.next()?.offers.iter();
        }
    }

    /// Steps over whole blocks.
    fn nth(&mut self, mut n: usize) -> Option<Self::Item> {
        loop {
            let here = self.block.len();
            if n < here {
                self.left = self.left.saturating_sub(n + 1);
                return self.block.nth(n);
            }
            n -= here;
            self.left = self.left.saturating_sub(here);
            self.block = self.blocks.next()?.offers.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
impl ExactSizeIterator for Offers<'_> {}
