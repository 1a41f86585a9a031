//! A gang spread over the zones of one region, on one instance type under one purchase model, where the job allows
//! it: the cheapest assignment of nodes to zones, exactly.
//!
//! With `R = Σ nᵢ rᵢ` the price and `Λ = Σ nᵢ hᵢ` the hazard of an assignment, its expected cost is `R × (a + b Λ)`
//! plus what is the same for all. That is a product of two positive linear functions, so quasi-concave: its minimum
//! over all assignments lies at a corner, and on the lower-left hull of the points `(R, Λ)`. Each corner of that hull
//! is the cheapest under some weighing of price against hazard, and under one weighing filling the zones in order of
//! weighed cost is optimal. The order changes only where two zones weigh the same, so trying one weighing between
//! each two such points finds the minimum: `m²` fillings of `m` zones.
//!
//! A deadline adds a limit on `Λ`. If the unlimited minimum keeps it, that is the answer; else all undominated
//! `(R, Λ)` are built up zone by zone and the cheapest within the limit is taken.

use std::cmp::Ordering;

/// A zone that could hold nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// Place of its offer in the snapshot.
    pub(super) index: usize,
    /// Micro-USD an hour for one node.
    pub(super) rate: i64,
    /// Interruptions of one node a day.
    pub(super) hazard: f64,
    /// Nodes it can hold; at least one.
    pub(super) room: u32,
    /// Better first where all else is equal.
    pub(super) availability: u8,
}

/// How the cost of an assignment follows from its price and hazard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    /// Hours paid.
    pub(super) hours: f64,
    /// Hours paid more for each interruption a day.
    pub(super) hours_per_daily_interruption: f64,
}

impl Weights {
    fn cost(self, point: &Point) -> f64 {
        point.rate as f64 * self.hours_per_daily_interruption.mul_add(point.hazard, self.hours)
    }
}

/// An assignment: nodes of each member, and what they come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub(super) rate: i64,
    pub(super) hazard: f64,
    pub(super) counts: Vec<u32>,
}

impl Point {
    fn of(members: &[Member], counts: Vec<u32>) -> Self {
        let (mut rate, mut hazard) = (0_i64, 0.0);
        for (member, n) in members.iter().zip(&counts) {
            rate = rate.saturating_add(member.rate.saturating_mul(i64::from(*n)));
            hazard += member.hazard * f64::from(*n);
        }
        Self { rate, hazard, counts }
    }
    fn zones(&self) -> usize {
        self.counts.iter().filter(|n| **n > 0).count()
    }
}

/// Whether the zones can hold so many nodes together.
pub(super) fn holds(members: &[Member], nodes: u32) -> bool {
    members.iter().fold(0_u32, |sum, m| sum.saturating_add(m.room)) >= nodes
}

/// The smallest hazard of an assignment with at least one node of this member.
pub(super) fn least_hazard_with(members: &[Member], member: usize, nodes: u32) -> f64 {
    let mut left: Vec<(f64, u32)> = members.iter().map(|m| (m.hazard, m.room)).collect();
    let mut sum = 0.0;
    if let Some(own) = left.get_mut(member) {
        sum += own.0;
        own.1 = own.1.saturating_sub(1);
    }
    left.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut missing = nodes.saturating_sub(1);
    for (hazard, room) in left {
        let take = room.min(missing);
        sum += hazard * f64::from(take);
        missing -= take;
    }
    sum
}

/// Nodes squared times zones up to which the cheapest assignment under a limit of hazard is searched exactly: 64 nodes in
/// 24 zones. Time and memory grow faster than that.
const EXACT_WORK: u64 = 100_000;

/// The cheapest assignment of all nodes whose hazard `fits`; of equally cheap ones that with fewer zones, then that
/// which fills earlier zones. `fits` must hold for every smaller hazard than one for which it holds.
pub(super) fn cheapest(members: &[Member], nodes: u32, weights: Weights, fits: impl Fn(f64) -> bool) -> Option<Point> {
    if !holds(members, nodes) {
        return None;
    }
    let free = sweep(members, nodes).into_iter().min_by(|a, b| prefer(a, b, weights))?;
    if fits(free.hazard) {
        return Some(free);
    }
    // Exact as far as it can be held; beyond that the sweep's own points, every one of them a real assignment.
    let work = u64::from(nodes).saturating_mul(u64::from(nodes)).saturating_mul(members.len() as u64);
    let points = if work <= EXACT_WORK { undominated(members, nodes) } else { sweep(members, nodes) };
    points.into_iter().filter(|p| fits(p.hazard)).min_by(|a, b| prefer(a, b, weights))
}

fn prefer(a: &Point, b: &Point, weights: Weights) -> Ordering {
    weights
        .cost(a)
        .total_cmp(&weights.cost(b))
        .then_with(|| a.rate.cmp(&b.rate))
        .then_with(|| a.zones().cmp(&b.zones()))
        .then_with(|| b.counts.cmp(&a.counts))
}

/// One filling between each two weighings at which the order of zones changes.
fn sweep(members: &[Member], nodes: u32) -> Vec<Point> {
    let dearest = members.iter().map(|m| m.rate).max().unwrap_or(0).max(1) as f64;
    let riskiest = members.iter().map(|m| m.hazard).fold(0.0, f64::max);
    // Both to 0..1, so that weighings spread evenly.
    let rate = |m: &Member| m.rate as f64 / dearest;
    let hazard = |m: &Member| if riskiest > 0.0 { m.hazard / riskiest } else { 0.0 };
    let mut turns = vec![0.0, 1.0];
    for a in members {
        for b in members {
            let (dearer, safer) = (rate(b) - rate(a), hazard(a) - hazard(b));
            if dearer > 0.0 && safer > 0.0 {
                turns.push(dearer / (dearer + safer));
            }
        }
    }
    turns.sort_by(f64::total_cmp);
    turns.dedup();
    turns
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => Some(f64::midpoint(*from, *to)),
            _ => None,
        })
        .map(|weight| {
            let weighed = |m: &Member| weight.mul_add(hazard(m) - rate(m), rate(m));
            fill(members, nodes, |a, b| weighed(a).total_cmp(&weighed(b)))
        })
        .collect()
}

/// Fill the zones in this order; zones that weigh the same by availability, then the larger first.
fn fill(members: &[Member], nodes: u32, order: impl Fn(&Member, &Member) -> Ordering) -> Point {
    let mut by_order: Vec<(usize, &Member)> = members.iter().enumerate().collect();
    by_order.sort_by(|(i, a), (j, b)| {
        order(a, b)
            .then_with(|| a.availability.cmp(&b.availability))
            .then_with(|| b.room.cmp(&a.room))
            .then_with(|| i.cmp(j))
    });
    let mut counts = vec![0; members.len()];
    let mut missing = nodes;
    for (i, member) in by_order {
        let take = member.room.min(missing);
        if let Some(count) = counts.get_mut(i) {
            *count = take;
        }
        missing -= take;
    }
    Point::of(members, counts)
}

/// All assignments of all nodes that no other beats in both price and hazard.
fn undominated(members: &[Member], nodes: u32) -> Vec<Point> {
    let size = nodes as usize + 1;
    let mut fronts: Vec<Vec<Point>> = vec![Vec::new(); size];
    if let Some(none) = fronts.first_mut() {
        none.push(Point { rate: 0, hazard: 0.0, counts: Vec::new() });
    }
    for member in members {
        let mut next: Vec<Vec<Point>> = vec![Vec::new(); size];
        for (held, front) in fronts.iter().enumerate() {
            for take in 0..=member.room {
                let Some(target) = next.get_mut(held + take as usize) else { break };
                for point in front {
                    let mut counts = point.counts.clone();
                    counts.push(take);
                    target.push(Point {
                        rate: point.rate.saturating_add(member.rate.saturating_mul(i64::from(take))),
                        hazard: point.hazard + member.hazard * f64::from(take),
                        counts,
                    });
                }
            }
        }
        for front in &mut next {
            prune(front);
        }
        fronts = next;
    }
    fronts.pop().unwrap_or_default()
}

/// Keep what nothing else beats in both price and hazard.
fn prune(front: &mut Vec<Point>) {
    front.sort_by(|a, b| {
        a.rate
            .cmp(&b.rate)
            .then_with(|| a.hazard.total_cmp(&b.hazard))
            .then_with(|| a.zones().cmp(&b.zones()))
            .then_with(|| b.counts.cmp(&a.counts))
    });
    let mut least = f64::INFINITY;
    front.retain(|p| {
        let keep = p.hazard < least;
        if keep {
            least = p.hazard;
        }
        keep
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_members() -> impl Strategy<Value = Vec<Member>> {
        proptest::collection::vec((1_i64..60, 0_u8..12, 1_u32..5), 1..5).prop_map(|zones| {
            zones
                .into_iter()
                .enumerate()
                .map(|(index, (rate, hazard, room))| Member {
                    index,
                    rate: rate * 100_000,
                    hazard: f64::from(hazard) / 4.0,
                    room,
                    availability: 0,
                })
                .collect()
        })
    }

    #[test]
    fn a_gang_of_thousands_over_zones_without_a_stated_capacity_is_answered() {
        let members: Vec<Member> = (0..24)
            .map(|index| Member {
                index,
                rate: 1_000_000 + index as i64 * 10_000,
                hazard: 2.4 - index as f64 / 10.0,
                room: u32::MAX,
                availability: 0,
            })
            .collect();
        let weights = Weights { hours: 24.0, hours_per_daily_interruption: 1.0 };
        for nodes in [64, 65, 400, 16_384] {
            let limit = f64::from(nodes) * 0.5;
            let found = cheapest(&members, nodes, weights, |hazard| hazard <= limit).expect("an assignment");
            assert_eq!(found.counts.iter().sum::<u32>(), nodes);
            assert!(found.hazard <= limit);
        }
    }

    /// Every assignment there is.
    fn every(members: &[Member], nodes: u32) -> Vec<Vec<u32>> {
        match members.split_first() {
            None => {
                if nodes == 0 {
                    vec![vec![]]
                } else {
                    vec![]
                }
            }
            Some((first, rest)) => (0..=first.room.min(nodes))
                .flat_map(|n| {
                    every(rest, nodes - n).into_iter().map(move |mut counts| {
                        counts.insert(0, n);
                        counts
                    })
                })
                .collect(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn the_cheapest_spread_is_the_cheapest_of_all(
            members in any_members(),
            nodes in 1_u32..9,
            hours in 0_u8..100,
            loss in 0_u8..40,
            most in proptest::option::of(0_u8..60),
        ) {
            let weights = Weights { hours: f64::from(hours), hours_per_daily_interruption: f64::from(loss) / 4.0 };
            let fits = |hazard: f64| most.is_none_or(|most| hazard <= f64::from(most) / 4.0);
            let best = every(&members, nodes)
                .into_iter()
                .map(|counts| Point::of(&members, counts))
                .filter(|p| fits(p.hazard))
                .map(|p| weights.cost(&p))
                .min_by(f64::total_cmp);
            let found = cheapest(&members, nodes, weights, fits);
            prop_assert_eq!(found.is_some(), best.is_some());
            if let (Some(found), Some(best)) = (found, best) {
                prop_assert_eq!(found.counts.iter().sum::<u32>(), nodes);
                prop_assert!(found.counts.iter().zip(&members).all(|(n, m)| *n <= m.room));
                prop_assert!(weights.cost(&found) <= best * (1.0 + 1e-12), "{} is not {best}", weights.cost(&found));
            }
        }

        #[test]
        fn the_least_hazard_with_a_zone_is_the_least_of_all(members in any_members(), nodes in 1_u32..6) {
            for i in 0..members.len() {
                let least = every(&members, nodes)
                    .into_iter()
                    .filter(|counts| counts.get(i).is_some_and(|n| *n > 0))
                    .map(|counts| Point::of(&members, counts).hazard)
                    .min_by(f64::total_cmp);
                if let Some(least) = least {
                    prop_assert!((least_hazard_with(&members, i, nodes) - least).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn a_risky_cheap_zone_loses_when_its_interruptions_cost_more_than_it_saves() {
        let zone = |rate, hazard| Member { index: 0, rate, hazard, room: 4, availability: 0 };
        let members = [zone(1_000_000, 4.0), zone(1_200_000, 0.0)];
        let at = |loss| cheapest(&members, 4, Weights { hours: 24.0, hours_per_daily_interruption: loss }, |_| true);
        assert_eq!(at(0.1).map(|p| p.counts), Some(vec![4, 0]));
        assert_eq!(at(10.0).map(|p| p.counts), Some(vec![0, 4]));
    }
}
