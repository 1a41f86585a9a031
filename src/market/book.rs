//! The records in the order of their keys, in blocks: finding is two binary searches, inserting moves one block, and a
//! block that did not change is handed to the next snapshot as it is.

use std::sync::Arc;

use super::record::{Micros, NEVER, Record};
use super::snapshot;
use crate::config::limits;
use crate::domain::{OfferKey, ProviderId};

/// All records.
#[derive(Debug, Default)]
pub(super) struct Book {
    blocks: Vec<Block>,
    len: usize,
    /// History points of all records.
    pub(super) points: usize,
}

/// Some records; never empty.
#[derive(Debug)]
struct Block {
    /// The first record's key, kept here so that finding a block reads one array only.
    first: OfferKey,
    records: Vec<Record>,
    /// As in the last snapshot; `None` when a record has changed since.
    shown: Option<Arc<snapshot::Block>>,
    /// When the first of its records changes by the passing of time alone.
    next_at: Micros,
}

impl Block {
    /// `None` where there are no records.
    fn new(records: Vec<Record>, next_at: Micros) -> Option<Self> {
        let first = records.first()?.offer.key.clone();
        Some(Self { first, records, shown: None, next_at })
    }

    /// After records went: the first may be another.
    fn find_first(&mut self) {
        if let Some(record) = self.records.first() {
            self.first = record.offer.key.clone();
        }
    }
}

/// Where a record is, or would be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    block: usize,
    row: usize,
}

impl Book {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where the record of this key is (`Ok`) or belongs (`Err`).
    pub(super) fn find(&self, key: &OfferKey) -> Result<Place, Place> {
        let block = self.blocks.partition_point(|b| b.first <= *key).saturating_sub(1);
        let Some(found) = self.blocks.get(block) else { return Err(Place { block: 0, row: 0 }) };
        match found.records.binary_search_by(|r| r.offer.key.cmp(key)) {
            Ok(row) => Ok(Place { block, row }),
            Err(row) => Err(Place { block, row }),
        }
    }

    pub(super) fn get(&self, place: Place) -> Option<&Record> {
        self.blocks.get(place.block).and_then(|b| b.records.get(place.row))
    }

    /// To look at and to note in; whoever changes what is shown also calls [`Self::touch`].
    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Record> {
        self.blocks.get_mut(place.block).and_then(|b| b.records.get_mut(place.row))
    }

    /// The record there has to be shown anew.
    pub(super) fn touch(&mut self, place: Place) {
        if let Some(block) = self.blocks.get_mut(place.block) {
            block.shown = None;
            if let Some(record) = block.records.get_mut(place.row) {
                record.dirty = true;
            }
        }
    }

    /// Put a new record where [`Self::find`] said it belongs.
    pub(super) fn insert(&mut self, place: Place, record: Record) {
        self.len += 1;
        self.points += record.history.len();
        let Some(block) = self.blocks.get_mut(place.block) else {
            self.blocks.extend(Block::new(vec![record], NEVER));
            return;
        };
        block.records.insert(place.row.min(block.records.len()), record);
        block.shown = None;
        if place.row == 0 {
            block.find_first();
        }
        if block.records.len() > limits::SNAPSHOT_BLOCK {
            // Records mostly arrive in order: leave the front full enough, so that blocks end up three quarters full.
            let records = block.records.split_off(limits::SNAPSHOT_BLOCK * 3 / 4);
            if let Some(rest) = Block::new(records, block.next_at) {
                self.blocks.insert(place.block + 1, rest);
            }
        }
    }

    /// All records of a provider.
    pub(super) fn of<'a>(&'a self, provider: &'a ProviderId) -> impl Iterator<Item = &'a Record> {
        let first = self.blocks.partition_point(|b| b.records.last().is_some_and(|r| r.offer.key.provider < *provider));
        self.blocks
            .iter()
            .skip(first)
            .flat_map(|b| &b.records)
            .skip_while(move |r| r.offer.key.provider < *provider)
            .take_while(move |r| r.offer.key.provider == *provider)
    }

    /// Remove the records of a provider that do not pass; returns how many went.
    pub(super) fn retain(&mut self, provider: &ProviderId, keep: impl Fn(&Record) -> bool) -> usize {
        let mut gone = 0;
        let mut points = 0;
        for block in &mut self.blocks {
            let outside = block.records.last().is_some_and(|r| r.offer.key.provider < *provider)
                || block.records.first().is_some_and(|r| r.offer.key.provider > *provider);
            if outside {
                continue;
            }
            let before = block.records.len();
            block.records.retain(|r| {
                let stays = r.offer.key.provider != *provider || keep(r);
                if !stays {
                    points += r.history.len();
                }
                stays
            });
            if block.records.len() != before {
                gone += before - block.records.len();
                block.shown = None;
                block.find_first();
            }
        }
        if gone > 0 {
            self.blocks.retain(|b| !b.records.is_empty());
            self.join_small_blocks();
            self.len -= gone;
            self.points -= points;
        }
        gone
    }

    /// Join neighbours that together fill less than half a block, so that a market that shrank is not all crumbs.
    fn join_small_blocks(&mut self) {
        let mut joined: Vec<Block> = Vec::with_capacity(self.blocks.len());
        for block in self.blocks.drain(..) {
            match joined.last_mut() {
                Some(last) if last.records.len() + block.records.len() <= limits::SNAPSHOT_BLOCK / 2 => {
                    last.records.extend(block.records);
                    last.next_at = last.next_at.min(block.next_at);
                    last.shown = None;
                }
                _ => joined.push(block),
            }
        }
        self.blocks = joined;
    }

    /// Show what changed: `show` works out one record anew and returns whether it looks different. Everything is
    /// worked out anew where `all`.
    pub(super) fn show(
        &mut self,
        now: Micros,
        all: bool,
        mut show: impl FnMut(&mut Record) -> bool,
    ) -> Arc<[Arc<snapshot::Block>]> {
        for block in &mut self.blocks {
            if !all && block.shown.is_some() && block.next_at > now {
                continue;
            }
            let mut changed = block.shown.is_none();
            let mut next_at = NEVER;
            for record in &mut block.records {
                if all || record.dirty || record.next_at <= now {
                    let points = record.history.len();
                    changed |= show(record);
                    self.points = self.points + record.history.len() - points;
                    record.dirty = false;
                }
                next_at = next_at.min(record.next_at);
            }
            block.next_at = next_at;
            if changed {
                block.shown = Some(Arc::new(snapshot::Block {
                    offers: block.records.iter().map(|r| Arc::clone(&r.offer)).collect(),
                    histories: block.records.iter().map(|r| r.history.clone()).collect(),
                }));
            }
        }
        self.blocks.iter().filter_map(|b| b.shown.clone()).collect()
    }

    /// Cut every history to so many points.
    pub(super) fn trim_histories(&mut self, limit: usize) {
        let mut points = 0;
        for block in &mut self.blocks {
            for record in &mut block.records {
                if record.history.len() > limit {
                    record.history.trim(limit);
                    block.shown = None;
                }
                points += record.history.len();
            }
        }
        self.points = points;
    }
}
