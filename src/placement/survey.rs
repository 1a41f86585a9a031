//! One pass over the market: what could be taken, and every refused offer counted under its first reason.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::domain::{HourlyRate, InstanceType, Offer, Purchase};

use super::constraints::{Check, Passed, Refusal, ShapeMemory};
use super::facts::NetworkFacts;
use super::gang::{self, Member, Weights};
use super::order::{Rank, best, memory_for_order};
use super::region::RegionView;
use super::{Reason, cost};

/// What a pass found.
#[derive(Debug)]
pub(super) struct Survey {
    /// The best, in order.
    pub(super) found: Vec<Found>,
    /// How many candidates there are in all.
    pub(super) feasible: usize,
    /// Offers that were not refused.
    pub(super) usable: usize,
    /// What was refused.
    pub(super) tally: Tally,
}

/// One candidate, before it is written out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) rank: Rank,
    /// Places in the snapshot and nodes of each, where the gang is spread; else all nodes are at `rank.index`.
    pub(super) spread: Option<Box<[(usize, u32)]>>,
}

/// Refusals by reason.
#[derive(Debug, Default)]
pub(super) struct Tally {
    rows: [Row; Reason::ALL.len()],
}

#[derive(Debug, Clone, Copy)]
struct Row {
    offers: usize,
    unknown: usize,
    nearest: f64,
    example: usize,
}

impl Default for Row {
    fn default() -> Self {
        Self { offers: 0, unknown: 0, nearest: f64::INFINITY, example: usize::MAX }
    }
}

/// One line of the tally.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub(super) reason: Reason,
    pub(super) offers: usize,
    /// Of which the fact itself is not known.
    pub(super) unknown: usize,
    /// Place in the snapshot of the one that came nearest.
    pub(super) example: usize,
}

impl Tally {
    fn add(&mut self, refusal: Refusal, index: usize) {
        if let Some(row) = self.rows.get_mut(refusal.reason as usize) {
            row.offers += 1;
            row.unknown += usize::from(refusal.unknown);
            // The nearest; of equally near ones the first, in whatever order they come.
            if refusal.distance < row.nearest || (refusal.distance <= row.nearest && index < row.example) {
                row.nearest = refusal.distance;
                row.example = index;
            }
        }
    }

    /// How many were refused for this.
    pub(super) fn of(&self, reason: Reason) -> usize {
        self.rows.get(reason as usize).map_or(0, |row| row.offers)
    }

    /// Most first; equal ones in the order of reasons.
    pub(super) fn counts(&self) -> Vec<Count> {
        let mut counts: Vec<Count> = Reason::ALL
            .into_iter()
            .zip(&self.rows)
            .filter(|(_, row)| row.offers > 0)
            .map(|(reason, row)| Count { reason, offers: row.offers, unknown: row.unknown, example: row.example })
            .collect();
        counts.sort_by_key(|c| (std::cmp::Reverse(c.offers), c.reason));
        counts
    }
}

/// The best so far, in bounded room.
struct Shortlist {
    top: usize,
    kept: Vec<Found>,
    /// What is no better than this is not among the best.
    bar: Option<Rank>,
    seen: usize,
}

impl Shortlist {
    /// Room for so many beyond `top` before the worst are thrown out, so that each throwing out is paid for by many.
    const SLACK: usize = 512;

    fn add(&mut self, rank: Rank, spread: Option<Box<[(usize, u32)]>>) {
        self.seen += 1;
        if self.top == 0 || self.bar.as_ref().is_some_and(|bar| rank.compare(bar).is_ge()) {
            return;
        }
        self.kept.push(Found { rank, spread });
        if self.kept.len() >= self.top.saturating_add(Self::SLACK) {
            self.kept = best(std::mem::take(&mut self.kept), self.top, |f| &f.rank);
            self.bar = self.kept.last().map(|f| f.rank);
        }
    }
}

/// An offer whose gang may be spread, until its region has been seen whole.
struct Waiting<'a> {
    offer: &'a Arc<Offer>,
    index: usize,
    passed: Passed,
    /// Of instance type and purchase model: sorts faster than they do.
    hash: u64,
}

impl<'a> Waiting<'a> {
    fn new(offer: &'a Arc<Offer>, index: usize, passed: Passed) -> Self {
        let mut hasher = FxHasher::default();
        (offer.key.instance_type.as_str(), offer.key.purchase).hash(&mut hasher);
        Self { offer, index, passed, hash: hasher.finish() }
    }
    /// What may hold one gang together, in an order.
    fn kind(&self) -> (u64, &InstanceType, Purchase) {
        (self.hash, &self.offer.key.instance_type, self.offer.key.purchase)
    }
}

/// Offers whose shapes are read ahead together.
const CHUNK: usize = 64;

/// Look at every offer once.
pub(super) fn survey<N: NetworkFacts>(check: &Check<'_, N>, top: usize) -> Survey {
    let mut tally = Tally::default();
    let mut shapes = ShapeMemory::new();
    let mut region: Option<RegionView> = None;
    let mut waiting: Vec<Waiting<'_>> = Vec::new();
    let mut list = Shortlist { top, kept: Vec::new(), bar: None, seen: 0 };
    let mut usable = 0;
    // A hundred thousand offers do not fit in the processor's caches. Reading the shapes of a chunk ahead lets it wait
    // for many of them at once, instead of for one after the other; then the same for the offers that are left.
    let mut addresses = [0_usize; CHUNK];
    let mut left: Vec<(usize, &Arc<Offer>, usize)> = Vec::with_capacity(CHUNK);
    let mut start = 0;
    for chunk in check.question.snapshot.blocks().flat_map(|block| block.chunks(CHUNK)) {
        for (address, offer) in addresses.iter_mut().zip(chunk) {
            *address = ShapeMemory::address(&offer.shape);
        }
        left.clear();
        for (i, (offer, address)) in chunk.iter().zip(addresses).enumerate() {
            match shapes.verdict(check.spec, &offer.shape, address) {
                Some(refusal) => tally.add(refusal, start + i),
                None => left.push((start + i, offer, offer.key.region.as_str().as_ptr().addr())),
            }
        }
        start += chunk.len();
        for &(index, offer, text) in &left {
            if !region.as_ref().is_some_and(|r| r.is_of(&offer.key, text)) {
                usable += spread(check, &mut waiting, &mut tally, &mut list);
                region = None;
            }
            let view = region.get_or_insert_with(|| RegionView::new(check.spec, &offer.key));
            match check.offer(offer, view) {
                Err(refusal) => tally.add(refusal, index),
                Ok(passed) if check.may_spread(offer) => waiting.push(Waiting::new(offer, index, passed)),
                Ok(passed) => {
                    usable += 1;
                    list.add(single(check, offer, index, &passed), None);
                }
            }
        }
    }
    usable += spread(check, &mut waiting, &mut tally, &mut list);
    Survey { found: best(list.kept, top, |f| &f.rank), feasible: list.seen, usable, tally }
}

/// All nodes at one offer.
fn single<N: NetworkFacts>(check: &Check<'_, N>, offer: &Offer, index: usize, passed: &Passed) -> Rank {
    let rate = passed.rate.times(check.nodes);
    Rank {
        total: total(check, rate, passed.hazard * f64::from(check.nodes), passed),
        rate,
        availability: offer.availability,
        memory_gib: memory_for_order(offer),
        zones: 1,
        index,
    }
}

fn total<N: NetworkFacts>(
    check: &Check<'_, N>,
    rate: HourlyRate,
    per_day: f64,
    passed: &Passed,
) -> crate::domain::Money {
    let moving = check.question.current.is_some() && !passed.staying;
    cost::breakdown(rate, per_day, check.horizon, &passed.journey, moving).total()
}

/// What a region's waiting offers come to: each zone that holds the whole gang in time is a candidate, and the
/// cheapest spread is one where it beats every such zone. Returns how many offers were not refused.
fn spread<N: NetworkFacts>(
    check: &Check<'_, N>,
    waiting: &mut Vec<Waiting<'_>>,
    tally: &mut Tally,
    list: &mut Shortlist,
) -> usize {
    if waiting.is_empty() {
        return 0;
    }
    let mut usable = 0;
    waiting.sort_unstable_by(|a, b| a.kind().cmp(&b.kind()).then_with(|| a.index.cmp(&b.index)));
    for group in waiting.chunk_by(|a, b| a.kind() == b.kind()) {
        usable += spread_group(check, group, tally, list);
    }
    waiting.clear();
    usable
}

fn spread_group<N: NetworkFacts>(
    check: &Check<'_, N>,
    group: &[Waiting<'_>],
    tally: &mut Tally,
    list: &mut Shortlist,
) -> usize {
    let nodes = check.nodes;
    let members: Vec<Member> = group
        .iter()
        .map(|w| Member {
            index: w.index,
            rate: w.passed.rate.micros(),
            hazard: w.passed.hazard,
            room: w.passed.room,
            availability: w.offer.availability as u8,
        })
        .collect();
    if !gang::holds(&members, nodes) {
        let room: u32 = members.iter().fold(0, |sum, m| sum.saturating_add(m.room));
        for w in group {
            tally.add(Refusal::at(Reason::Availability, f64::from(nodes - room)), w.index);
        }
        return 0;
    }
    // A gang with a node where the job runs still has to move the others: it is costed as a move from there.
    let Some(first) = group.first() else { return 0 };
    let moving = group.iter().find(|w| !w.passed.staying).map_or(first.passed, |w| w.passed);
    let mut usable = 0;
    let mut best_single = None;
    for (i, w) in group.iter().enumerate() {
        let alone = w.passed.hazard * f64::from(nodes);
        if w.passed.room >= nodes && check.hours_late(&w.passed, alone).is_none() {
            let rank = single(check, w.offer, w.index, &w.passed);
            best_single = Some(best_single.map_or(rank.total, |b: crate::domain::Money| b.min(rank.total)));
            list.add(rank, None);
            usable += 1;
        } else if let Some(late) = check.hours_late(&moving, gang::least_hazard_with(&members, i, nodes)) {
            tally.add(Refusal::at(Reason::Deadline, late), w.index);
        } else {
            usable += 1;
        }
    }
    // A zone that holds all and is both the cheapest and the safest cannot be beaten by a spread.
    let (least_rate, least_hazard) =
        members.iter().fold((i64::MAX, f64::INFINITY), |least, m| (least.0.min(m.rate), least.1.min(m.hazard)));
    let unbeaten = |m: &Member| m.room >= nodes && m.rate == least_rate && m.hazard <= least_hazard;
    if best_single.is_some() && members.iter().any(unbeaten) {
        return usable;
    }
    let hours = check.horizon.hours
        + if check.question.current.is_some() && !moving.staying {
            cost::switching_hours(check.horizon, &moving.journey)
        } else {
            0.0
        };
    let weights =
        Weights { hours, hours_per_daily_interruption: check.horizon.loss_hours * check.horizon.interruptions(1.0) };
    let Some(point) = gang::cheapest(&members, nodes, weights, |per_day| check.hours_late(&moving, per_day).is_none())
    else {
        return usable;
    };
    let taken: Vec<(usize, u32)> =
        members.iter().zip(&point.counts).filter(|(_, n)| **n > 0).map(|(m, n)| (m.index, *n)).collect();
    let rate = HourlyRate::from_micros(point.rate);
    let total = total(check, rate, point.hazard, &moving);
    if taken.len() < 2 || best_single.is_some_and(|single| single <= total) {
        return usable;
    }
    let of = |index: &usize| group.iter().find(|w| w.index == *index);
    let worst = taken.iter().filter_map(|(i, _)| of(i)).map(|w| w.offer.availability).max();
    let memory =
        taken.iter().filter_map(|(i, _)| of(i)).map(|w| memory_for_order(w.offer)).fold(f64::INFINITY, f64::min);
    let rank = Rank {
        total,
        rate,
        availability: worst.unwrap_or(first.offer.availability),
        memory_gib: memory,
        zones: taken.len(),
        index: taken.first().map_or(first.index, |t| t.0),
    };
    list.add(rank, Some(taken.into_boxed_slice()));
    usable
}
