//! Brute force, written from the job file's meaning and the cost formula alone: every way to put the nodes on the
//! offers is tried, each is judged on its own. Shares no code with the core.

use std::collections::BTreeMap;

use gpudeck::domain::{Availability, JobSpec, Location, Offer, Purchase};

use super::world::World;

/// Interruptions a day of a spot instance without evidence, as documented.
const PRIOR: f64 = 0.004_451;
/// Hours to start, as documented.
const START: f64 = 0.1;
/// Micro-USD a GiB without tariff, and Gbit/s without throughput, as documented.
const DEAREST: f64 = 204_011.0;
const SLOW: f64 = 2.689;

/// What brute force says.
#[derive(Debug)]
pub(crate) struct Truth {
    /// Micro-USD of the cheapest way.
    pub(crate) best: Option<i128>,
    /// Candidates as documented: single offers, and a spread where it beats every single of its kind.
    pub(crate) feasible: usize,
    /// Offers by first reason.
    pub(crate) refused: BTreeMap<&'static str, usize>,
}

fn hazard(o: &Offer) -> f64 {
    match (o.interruptions_per_day, o.key.purchase) {
        (Some(h), _) => h,
        (None, Purchase::Spot) => PRIOR,
        (None, _) => 0.0,
    }
}

fn inside(place: &Location, o: &Offer) -> bool {
    place.provider == o.key.provider
        && place.region == o.key.region
        && match (&place.zone, &o.key.zone) {
            (None, _) => true,
            (Some(a), Some(b)) => a == b,
            (Some(_), None) => false,
        }
}

fn duration(spec: &JobSpec) -> f64 {
    spec.schedule.duration_hours.unwrap_or(24.0)
}

/// Egress in micro-USD and hours of moving so much to an offer's region.
fn haul(world: &World, from: Option<&Location>, o: &Offer, gib: f64) -> (f64, f64) {
    let Some(from) = from else { return (0.0, 0.0) };
    if gib == 0.0 || (from.provider == o.key.provider && from.region == o.key.region) {
        return (0.0, 0.0);
    }
    let link = world.net.link(from, &o.key.location()).unwrap_or_default();
    let micros = link.usd_per_gib.map_or(DEAREST, |usd| usd * 1e6) * gib;
    let gbit = gib * 8.0 * 1.073_741_824;
    (micros, gbit / link.gbit_per_second.unwrap_or(SLOW) / 3600.0)
}

fn staying(world: &World, used: &[(&Offer, u32)]) -> bool {
    world.current.as_ref().is_some_and(|c| used.iter().all(|(o, _)| inside(c, o)))
}

/// Micro-USD over the costing hours.
fn cost(world: &World, spec: &JobSpec, used: &[(&Offer, u32)]) -> i128 {
    let rate: f64 = used.iter().map(|(o, n)| o.price.unwrap().micros() as f64 * f64::from(*n)).sum();
    let daily: f64 = used.iter().map(|(o, n)| hazard(o) * f64::from(*n)).sum();
    let (hours, loss) = (duration(spec), spec.schedule.restart_loss_hours);
    let compute = (rate * hours).round();
    let risk = (rate * loss * daily * hours / 24.0).round();
    let (mut egress, mut switching) = (0.0, 0.0);
    if !staying(world, used) {
        let (input, input_hours) = haul(world, spec.data.location.as_ref(), used[0].0, spec.data.input_gib);
        let (state, state_hours) = haul(world, world.current.as_ref(), used[0].0, spec.data.checkpoint_gib);
        egress = input.round() + state.round();
        if world.current.is_some() {
            switching = (rate * (START + input_hours + state_hours + loss)).round();
        }
    }
    (compute + risk + egress + switching) as i128
}

fn in_time(world: &World, spec: &JobSpec, used: &[(&Offer, u32)]) -> bool {
    let Some(deadline) = spec.schedule.deadline else { return true };
    let daily: f64 = used.iter().map(|(o, n)| hazard(o) * f64::from(*n)).sum();
    let mut need = 0.0;
    if !staying(world, used) {
        need += START;
        need += haul(world, spec.data.location.as_ref(), used[0].0, spec.data.input_gib).1;
        need += haul(world, world.current.as_ref(), used[0].0, spec.data.checkpoint_gib).1;
    }
    if let Some(hours) = spec.schedule.duration_hours {
        need += hours + daily * hours / 24.0 * spec.schedule.restart_loss_hours;
    }
    need <= (deadline - world.now).num_seconds() as f64 / 3600.0
}

fn spreads(spec: &JobSpec, o: &Offer) -> bool {
    spec.constraints.combine_zones && spec.resources.nodes > 1 && o.key.zone.is_some()
}

/// Whether the offer alone breaks a constraint; each judged by itself, named in the documented order.
fn broken(world: &World, spec: &JobSpec, o: &Offer) -> Vec<&'static str> {
    let (need, limits, nodes) = (&spec.resources, &spec.constraints, spec.resources.nodes);
    let chip_ok = if need.accelerators.is_empty() {
        !o.shape.accelerator.as_str().starts_with("unknown:")
    } else {
        need.accelerators.iter().any(|a| a.as_str() == o.shape.accelerator.as_str())
    };
    let enough = |have: Option<f64>, min: Option<f64>| min.is_none_or(|min| have.is_some_and(|have| have >= min));
    let listed = limits.regions.is_empty() || limits.regions.iter().any(|l| inside(l, o));
    let excluded = limits
        .exclude_regions
        .iter()
        .any(|l| inside(l, o) || (o.key.zone.is_none() && l.provider == o.key.provider && l.region == o.key.region));
    let near = limits.latency.iter().all(|l| {
        let own = l.to.provider == o.key.provider && l.to.region == o.key.region;
        match world.net.link(&o.key.location(), &l.to).and_then(|link| link.ms) {
            Some(ms) => ms <= l.max_ms,
            None => own && 0.0 <= l.max_ms,
        }
    });
    let priced = o.price.is_some_and(|p| p.micros() > 0)
        && spec.buying.max_usd_per_gpu_hour.is_none_or(|cap| o.price_per_gpu().is_some_and(|p| p <= cap));
    let quota = o.quota.as_ref().is_none_or(|q| f64::from(nodes) * q.per_instance <= q.limit - q.used + 1e-9);
    let room = o.capacity.unwrap_or(u32::MAX) >= if spreads(spec, o) { 1 } else { nodes };
    let cool = world
        .cooling
        .iter()
        .any(|c| inside(&c.location, o) && c.until > world.now && c.purchase.is_none_or(|p| p == o.key.purchase));
    let old = o.stale && o.price_is_live && world.now - o.observed_at > chrono::TimeDelta::minutes(10);
    let alone = spreads(spec, o) || !priced || in_time(world, spec, &[(o, nodes)]);
    [
        ("accelerator", chip_ok && enough(o.shape.gpu_memory_gib, need.min_gpu_memory_gib)),
        ("count", o.shape.accelerators.to_f64().floor() >= f64::from(need.count)),
        ("memory", enough(o.shape.memory_gib, need.memory_gib)),
        ("vcpus", enough(o.shape.vcpus.map(f64::from), need.vcpus.map(f64::from))),
        ("provider", limits.providers.is_empty() || limits.providers.contains(&o.key.provider)),
        ("region", listed && !excluded),
        (
            "jurisdiction",
            limits.jurisdictions.is_empty()
                || o.jurisdiction.as_ref().is_some_and(|j| limits.jurisdictions.iter().any(|l| **l == **j)),
        ),
        ("purchase", spec.buying.models.contains(&o.key.purchase)),
        ("price", priced),
        ("latency", near),
        ("quota", quota),
        ("availability", o.availability != Availability::None && room),
        ("cool_down", !cool),
        ("deadline", alone),
        ("stale", !old),
    ]
    .into_iter()
    .filter(|(_, holds)| !holds)
    .map(|(name, _)| name)
    .collect()
}

/// Every way to write `nodes` as a sum of one number an offer.
fn assignments(nodes: u32, offers: usize) -> Vec<Vec<u32>> {
    if offers == 0 {
        return if nodes == 0 { vec![vec![]] } else { vec![] };
    }
    (0..=nodes)
        .flat_map(|n| {
            assignments(nodes - n, offers - 1).into_iter().map(move |mut rest| {
                rest.insert(0, n);
                rest
            })
        })
        .collect()
}

/// Whether offers may hold one gang together.
fn together(spec: &JobSpec, used: &[(&Offer, u32)]) -> bool {
    used.len() == 1 || used.iter().all(|(o, _)| spreads(spec, o) && kind(o) == kind(used[0].0))
}

fn kind(o: &Offer) -> (String, String, String, Purchase) {
    let k = &o.key;
    (k.provider.to_string(), k.region.to_string(), k.instance_type.to_string(), k.purchase)
}

pub(crate) fn judge(world: &World, spec: &JobSpec) -> Truth {
    let nodes = spec.resources.nodes;
    let fine: Vec<&Offer> = world.offers.iter().filter(|o| broken(world, spec, o).is_empty()).collect();
    // Without regard to the deadline, and with it.
    let held: Vec<Vec<(&Offer, u32)>> = assignments(nodes, fine.len())
        .into_iter()
        .map(|counts| fine.iter().copied().zip(counts).filter(|(_, n)| *n > 0).collect::<Vec<_>>())
        .filter(|used| together(spec, used) && used.iter().all(|(o, n)| o.capacity.is_none_or(|c| c >= *n)))
        .collect();
    let valid: Vec<&Vec<(&Offer, u32)>> = held.iter().filter(|used| in_time(world, spec, used)).collect();
    let uses = |set: &[(&Offer, u32)], o: &Offer| set.iter().any(|(u, _)| std::ptr::eq(*u, o));
    let mut refused = BTreeMap::new();
    for o in &world.offers {
        let reason = match broken(world, spec, o).first() {
            Some(reason) => reason,
            None if !held.iter().any(|set| uses(set, o)) => "availability",
            None if !valid.iter().any(|set| uses(set, o)) => "deadline",
            None => continue,
        };
        *refused.entry(reason).or_insert(0) += 1;
    }
    let singles = valid.iter().filter(|set| set.len() == 1).count();
    let mut cheapest: BTreeMap<_, (Option<i128>, Option<i128>)> = BTreeMap::new();
    for set in &valid {
        let of_kind = cheapest.entry(kind(set[0].0)).or_default();
        let slot = if set.len() == 1 { &mut of_kind.0 } else { &mut of_kind.1 };
        let c = cost(world, spec, set);
        *slot = Some(slot.map_or(c, |s| s.min(c)));
    }
    let spread = cheapest.values().filter(|(one, many)| many.is_some_and(|m| one.is_none_or(|o| m < o))).count();
    Truth { best: valid.iter().map(|set| cost(world, spec, set)).min(), feasible: singles + spread, refused }
}
