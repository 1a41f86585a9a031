//! Laws that hold for every market and job, tried on small random ones.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use gpudeck::domain::job::{LatencyLimit, Resources};
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, GpuHourlyRate, HourlyRate, JobSpec, Location, Offer, ProviderId,
    Purchase,
};
use gpudeck::placement::{Cooling, Ranking, Reason, Relaxation};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::oracle::judge;
use super::world::{Link, Net, World, job, noon, offer, place, quota, shaped};

const REGIONS: [&str; 3] = ["aws/eu", "aws/us", "gcp/eu"];
const CHIPS: [&str; 4] = ["H100-80GB-SXM", "A100-80GB-SXM", "A100-40GB-SXM", "unknown:H100 80GB"];

fn any_offer() -> impl Strategy<Value = Offer> {
    let key = (
        select(REGIONS.to_vec()),
        select(vec![Some("a"), Some("b"), Some("c"), None]),
        select(vec!["t1", "t1", "t2"]),
        select(vec![Purchase::OnDemand, Purchase::Spot, Purchase::Spot]),
    );
    let facts = (
        prop_oneof![8 => (1_i64..40).prop_map(|n| Some(n * 250_000)), 1 => Just(None), 1 => Just(Some(0))],
        prop_oneof![
            6 => Just(Availability::Available),
            1 => Just(Availability::Limited),
            1 => Just(Availability::Unknown),
            1 => Just(Availability::None)
        ],
        option::weighted(0.6, 0_u32..4),
        option::weighted(0.3, (0_u32..6, 1_u32..3)),
        option::weighted(0.7, select(vec![0.0, 0.25, 0.5, 1.0, 4.0])),
        option::weighted(0.8, select(vec!["EU", "US"])),
        prop_oneof![8 => Just(None), 1 => Just(Some(5_i64)), 1 => Just(Some(60))],
        proptest::bool::weighted(0.8),
    );
    let shape = (
        prop_oneof![5 => Just(0_usize), 1 => 0_usize..4],
        prop_oneof![4 => Just(80_000_u32), 1 => select(vec![10_000_u32, 1_667, 40_000])],
        option::weighted(0.9, select(vec![512.0, 1024.0])),
        option::weighted(0.9, select(vec![96_u32, 192])),
        option::weighted(0.9, select(vec![40.0, 80.0])),
    );
    (key, facts, shape).prop_map(|((region, zone, kind, purchase), facts, shape)| {
        let (price, availability, capacity, room, hazard, law, stale, live) = facts;
        let (chip, gpus, memory, vcpus, gpu_memory) = shape;
        let at = zone.map_or_else(|| region.to_owned(), |z| format!("{region}/{z}"));
        let mut o = shaped(offer(&at, kind, purchase, 1.0), |s| {
            s.accelerator = Accelerator::from_canonical(CHIPS[chip]);
            s.accelerators = AcceleratorCount::from_ten_thousandths(gpus);
            s.memory_gib = memory;
            s.vcpus = vcpus;
            s.gpu_memory_gib = gpu_memory;
        });
        o.price = price.map(HourlyRate::from_micros);
        o.price_is_live = live;
        o.availability = availability;
        o.capacity = capacity;
        o.quota = room.map(|(left, each)| quota("Q", f64::from(left * each) + 7.0, 7.0, f64::from(each)));
        o.interruptions_per_day = hazard.filter(|_| purchase == Purchase::Spot);
        o.jurisdiction = law.map(Into::into);
        if let Some(minutes) = stale {
            o.stale = true;
            o.observed_at = noon() - TimeDelta::minutes(minutes);
        }
        o
    })
}

fn any_world() -> impl Strategy<Value = World> {
    let link = (
        option::weighted(0.8, select(vec![5.0, 20.0, 80.0])),
        option::weighted(0.8, select(vec![0.02, 0.09])),
        option::weighted(0.8, select(vec![2.0, 5.0])),
    );
    (
        vec(any_offer(), 0..=8),
        vec(link, 9),
        option::weighted(0.2, (select(REGIONS.to_vec()), select(vec![1_i64, -1]))),
        option::weighted(0.3, (select(REGIONS.to_vec()), select(vec![None, Some("a")]))),
    )
        .prop_map(|(offers, links, cooling, current)| {
            // One offer a key, as in a market.
            let offers: BTreeMap<_, _> = offers.into_iter().map(|o| (o.key.clone(), o)).collect();
            let mut world = World::of(offers.into_values());
            for (i, (ms, usd_per_gib, gbit_per_second)) in links.into_iter().enumerate() {
                let (from, to) = (REGIONS[i / 3], REGIONS[i % 3]);
                world.net = world.net.with(from, to, Link { ms, usd_per_gib, gbit_per_second, estimated: false });
            }
            world.cooling.extend(cooling.map(|(at, hours)| Cooling {
                location: place(at),
                purchase: Some(Purchase::Spot),
                until: noon() + TimeDelta::hours(hours),
                reason: "refused".into(),
            }));
            world.current = current.map(|(region, zone)| Location { zone: zone.map(Into::into), ..place(region) });
            world
        })
}

fn any_job() -> impl Strategy<Value = JobSpec> {
    let resources = (
        prop_oneof![
            4 => Just(vec![0_usize]),
            1 => subsequence(vec![0_usize, 1, 2, 3], 0..=2)
        ],
        option::weighted(0.15, select(vec![40.0, 80.0, 96.0])),
        prop_oneof![4 => Just(8_u32), 1 => 1_u32..9],
        1_u32..5,
        option::weighted(0.15, select(vec![96_u32, 128, 400])),
        option::weighted(0.15, select(vec![512.0, 768.0, 4096.0])),
    );
    let places = (
        option::weighted(0.15, select(vec!["aws", "gcp"])),
        option::weighted(0.2, select(vec!["aws/eu", "aws/eu/a", "gcp/eu"])),
        option::weighted(0.2, select(vec!["aws/us", "aws/eu/b"])),
        option::weighted(0.2, select(vec!["EU", "GB"])),
        option::weighted(0.3, (select(REGIONS.to_vec()), select(vec![0.5, 20.0, 50.0]))),
        any::<bool>(),
    );
    let money = (
        subsequence(vec![Purchase::OnDemand, Purchase::Spot], 1..=2),
        option::weighted(0.25, (1_i64..20).prop_map(|n| n * 62_500)),
        option::weighted(0.5, (select(REGIONS.to_vec()), select(vec![0.0, 500.0]), select(vec![0.0, 40.0]))),
        option::weighted(0.9, select(vec![1.0, 6.0, 24.0, 72.0])),
        option::weighted(0.35, select(vec![-1_i64, 1, 7, 8, 25, 30, 36, 80, 100])),
        select(vec![0.0, 0.5, 2.0]),
    );
    (resources, places, money).prop_map(|(resources, places, money)| {
        let (chips, gpu_memory, count, nodes, vcpus, memory) = resources;
        let (provider, region, exclude, law, latency, combine) = places;
        let (models, cap, data, hours, deadline, loss) = money;
        let mut spec = job("", count);
        spec.resources.accelerators = chips.iter().map(|c| Accelerator::from_canonical(CHIPS[*c])).collect();
        spec.resources.min_gpu_memory_gib = gpu_memory;
        spec.resources.nodes = nodes;
        spec.resources.vcpus = vcpus;
        spec.resources.memory_gib = memory;
        spec.constraints.providers.extend(provider.map(ProviderId::from));
        spec.constraints.regions.extend(region.map(place));
        spec.constraints.exclude_regions.extend(exclude.map(place));
        spec.constraints.jurisdictions.extend(law.map(str::to_owned));
        spec.constraints.latency.extend(latency.map(|(to, max_ms)| LatencyLimit { to: place(to), max_ms }));
        spec.constraints.combine_zones = combine;
        spec.buying.models = models;
        spec.buying.max_usd_per_gpu_hour = cap.map(GpuHourlyRate::from_micros);
        if let Some((at, input, checkpoint)) = data {
            spec.data.location = Some(place(at));
            spec.data.input_gib = input;
            spec.data.checkpoint_gib = checkpoint;
        }
        spec.schedule.duration_hours = hours;
        spec.schedule.deadline = deadline.map(|h| noon() + TimeDelta::hours(h));
        spec.schedule.restart_loss_hours = loss;
        spec
    })
}

/// A market and a job; two times in five such that gangs have zones to be spread over.
fn any_case() -> impl Strategy<Value = (World, JobSpec)> {
    prop_oneof![3 => (any_world(), any_job()), 2 => (any_world(), any_job()).prop_map(gang_case)]
}

/// The case with all offers on one machine and purchase model in one region, and a gang that little else constrains.
fn gang_case((mut world, mut spec): (World, JobSpec)) -> (World, JobSpec) {
    let zones = ["a", "b", "c", "d", "e", "a", "b", "c"];
    let mut offers = BTreeMap::new();
    for (mut o, zone) in std::mem::take(&mut world.offers).into_iter().zip(zones) {
        let purchase = if o.key.purchase == Purchase::OnDemand { Purchase::OnDemand } else { Purchase::Spot };
        let plain = offer(&format!("aws/eu/{zone}"), "t1", Purchase::Spot, 4.0);
        o.price = o.price.filter(|p| p.micros() > 0).or(plain.price);
        o.interruptions_per_day = o.interruptions_per_day.or((purchase == Purchase::OnDemand).then_some(2.0));
        o.quota = o.quota.filter(|q| q.instances_left() > 3);
        o.shape = plain.shape;
        o.key = plain.key;
        offers.insert(o.key.clone(), o);
    }
    world.offers = offers.into_values().collect();
    spec.resources = Resources { nodes: spec.resources.nodes.max(2), ..job(CHIPS[0], 8).resources };
    spec.constraints.providers.clear();
    spec.constraints.regions.clear();
    spec.constraints.jurisdictions.clear();
    spec.buying.models = vec![Purchase::OnDemand, Purchase::Spot];
    (world, spec)
}

fn refused(ranking: &Ranking) -> BTreeMap<&'static str, usize> {
    ranking.rejected.iter().map(|r| (r.reason.as_str(), r.offers)).collect()
}

fn best(ranking: &Ranking) -> Option<i128> {
    ranking.candidates.first().map(|c| i128::from(c.usd_total.micros()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn the_core_agrees_with_brute_force((world, spec) in any_case()) {
        let (ranking, truth) = (world.place(&spec, usize::MAX), judge(&world, &spec));
        prop_assert_eq!(refused(&ranking), truth.refused);
        prop_assert_eq!(ranking.feasible, truth.feasible);
        // Each of five parts may be rounded the other way.
        match (best(&ranking), truth.best) {
            (Some(a), Some(b)) => prop_assert!((a - b).abs() <= 5, "{a} is not {b}"),
            (a, b) => prop_assert_eq!(a, b),
        }
    }

    #[test]
    fn every_offer_is_accounted_for_and_every_refusal_says_why((world, spec) in any_case()) {
        let ranking = world.place(&spec, usize::MAX);
        let refused: usize = ranking.rejected.iter().map(|r| r.offers).sum();
        prop_assert_eq!(ranking.considered, world.offers.len());
        prop_assert_eq!(ranking.usable + refused, world.offers.len());
        if !spec.constraints.combine_zones {
            prop_assert_eq!(ranking.feasible, ranking.usable);
        }
        prop_assert_eq!(ranking.candidates.len(), ranking.feasible);
        for rejection in &ranking.rejected {
            prop_assert!(!rejection.detail.is_empty());
            prop_assert!(world.offers.iter().any(|o| *o == *rejection.example));
        }
        prop_assert!(ranking.rejected.windows(2).all(|w| w[0].offers >= w[1].offers), "most first");
        for c in &ranking.candidates {
            prop_assert_eq!(c.nodes.iter().map(|g| g.count).sum::<u32>(), spec.resources.nodes, "all or nothing");
            prop_assert_eq!(c.usd_total, c.breakdown.total());
            for group in &c.nodes {
                prop_assert!(group.offer.capacity.is_none_or(|n| n >= group.count));
                prop_assert!(group.offer.quota.as_ref().is_none_or(|q| q.instances_left() >= spec.resources.nodes));
            }
        }
        prop_assert!(
            ranking.candidates.windows(2).all(|w| (w[0].usd_total, w[0].usd_per_hour) <= (w[1].usd_total, w[1].usd_per_hour)),
            "the order is total"
        );
    }

    #[test]
    fn one_offer_more_never_makes_the_best_worse((world, spec) in any_case()) {
        let whole = best(&world.place(&spec, 1));
        for i in 0..world.offers.len() {
            let mut less = world.clone();
            less.offers.remove(i);
            if let Some(cost) = best(&less.place(&spec, 1)) {
                prop_assert!(whole.is_some_and(|w| w <= cost + 5));
            }
        }
    }

    #[test]
    fn the_order_of_offers_does_not_matter_and_top_is_a_prefix((world, spec) in any_case()) {
        let all = world.place(&spec, usize::MAX);
        let mut turned = world.clone();
        turned.offers.reverse();
        prop_assert_eq!(format!("{all:?}"), format!("{:?}", turned.place(&spec, usize::MAX)));
        for top in 0..3 {
            let some = world.place(&spec, top);
            prop_assert_eq!(some.feasible, all.feasible);
            prop_assert_eq!(format!("{:?}", some.candidates), format!("{:?}", &all.candidates[..top.min(all.feasible)]));
        }
    }

    #[test]
    fn a_relaxation_is_one_change_that_holds_and_no_smaller_does((world, spec) in any_case()) {
        let ranking = world.place(&spec, 1);
        prop_assert!(ranking.feasible == 0 || ranking.relax.is_empty());
        if ranking.feasible > 0 {
            return Ok(());
        }
        for relaxation in &ranking.relax {
            let changed = apply(&spec, relaxation);
            prop_assert!(judge(&world, &changed).best.is_some(), "{relaxation:?} does not hold");
            prop_assert!(entries(&changed).abs_diff(entries(&spec)) <= 1, "{relaxation:?} changes more than one entry");
            for smaller in smaller_changes(&spec, relaxation) {
                prop_assert!(judge(&world, &smaller).best.is_none(), "{relaxation:?} is not the smallest");
            }
        }
        // What helps when it is dropped altogether has a smallest change, and it is found.
        for (name, dropped) in dropped(&spec) {
            if judge(&world, &dropped).best.is_some() {
                prop_assert!(
                    ranking.relax.iter().any(|r| r.constraint.starts_with(name)),
                    "{name} would help and is not suggested: {:?}", ranking.relax
                );
            }
        }
        prop_assert!(ranking.relax.windows(2).all(|w| w[0].usd_per_hour <= w[1].usd_per_hour), "best first");
    }
}

/// The job with what a relaxation says, from its words alone.
fn apply(spec: &JobSpec, relaxation: &Relaxation) -> JobSpec {
    let mut spec = spec.clone();
    let to = relaxation.to.as_str();
    let number = || (to != "not set").then(|| to.parse::<f64>().expect("a number"));
    let names = || -> Vec<String> {
        if to == "none" || to == "not set" { vec![] } else { to.split(", ").map(str::to_owned).collect() }
    };
    match relaxation.constraint.as_str() {
        "resources.accelerators" => {
            spec.resources.accelerators = names().into_iter().map(Accelerator::from_canonical).collect();
        }
        "resources.min_gpu_memory_gib" => spec.resources.min_gpu_memory_gib = number(),
        "resources.count" => spec.resources.count = to.parse().expect("a count"),
        "resources.nodes" => spec.resources.nodes = to.parse().expect("nodes"),
        "resources.memory_gib" => spec.resources.memory_gib = number(),
        "resources.vcpus" => spec.resources.vcpus = number().map(|n| n as u32),
        "constraints.providers" => spec.constraints.providers = names().into_iter().map(ProviderId::from).collect(),
        "constraints.regions" => spec.constraints.regions = names().iter().map(|n| place(n)).collect(),
        "constraints.exclude_regions" => spec.constraints.exclude_regions = names().iter().map(|n| place(n)).collect(),
        "constraints.jurisdictions" => spec.constraints.jurisdictions = names(),
        "constraints.combine_zones" => spec.constraints.combine_zones = to.parse().expect("a flag"),
        "purchase.models" => {
            spec.buying.models = names().iter().map(|n| Purchase::parse(n).expect("a model")).collect();
        }
        "purchase.max_usd_per_gpu_hour" => {
            spec.buying.max_usd_per_gpu_hour = Some(GpuHourlyRate::parse_usd(to).expect("a rate"));
        }
        "schedule.deadline" => spec.schedule.deadline = Some(to.parse().expect("a time")),
        latency if latency.starts_with("constraints.latency[") => match number() {
            Some(ms) => spec.constraints.latency[0].max_ms = ms,
            None => spec.constraints.latency.clear(),
        },
        other => panic!("{other} is no key of a job file"),
    }
    spec
}

/// Jobs whose change is of the same kind and smaller, down to a step that no offer lies within.
fn smaller_changes(spec: &JobSpec, relaxation: &Relaxation) -> Vec<JobSpec> {
    let changed = apply(spec, relaxation);
    let with = |to: String| apply(spec, &Relaxation { to, ..relaxation.clone() });
    let set = relaxation.to != "not set";
    match relaxation.constraint.as_str() {
        "resources.count" => (changed.resources.count + 1..spec.resources.count).map(|n| with(n.to_string())).collect(),
        "resources.nodes" => (changed.resources.nodes + 1..spec.resources.nodes).map(|n| with(n.to_string())).collect(),
        "resources.memory_gib" if set => {
            vec![with((changed.resources.memory_gib.unwrap() + 0.01).to_string())]
        }
        "resources.min_gpu_memory_gib" if set => {
            vec![with((changed.resources.min_gpu_memory_gib.unwrap() + 0.01).to_string())]
        }
        "resources.vcpus" if set => vec![with((changed.resources.vcpus.unwrap() + 1).to_string())],
        "resources.memory_gib" | "resources.min_gpu_memory_gib" | "resources.vcpus" => vec![with("1".to_owned())],
        "purchase.max_usd_per_gpu_hour" => {
            let mut less = changed;
            less.buying.max_usd_per_gpu_hour =
                less.buying.max_usd_per_gpu_hour.map(|c| c - GpuHourlyRate::from_micros(1));
            vec![less]
        }
        "schedule.deadline" => {
            let mut sooner = changed;
            // Suggested to the second, with one more for rounding.
            sooner.schedule.deadline = sooner.schedule.deadline.map(|d| d - TimeDelta::seconds(3));
            vec![sooner]
        }
        name if name.starts_with("constraints.latency[") => {
            let mut nearer = spec.clone();
            nearer.constraints.latency[0].max_ms =
                if set { changed.constraints.latency[0].max_ms - 0.001 } else { 1e9 };
            vec![nearer]
        }
        // Lists and flags change by one step: that is checked by their length.
        _ => vec![],
    }
}

/// Entries in all lists together.
fn entries(spec: &JobSpec) -> usize {
    let c = &spec.constraints;
    spec.resources.accelerators.len()
        + spec.buying.models.len()
        + [c.providers.len(), c.regions.len(), c.exclude_regions.len(), c.jurisdictions.len(), c.latency.len()]
            .iter()
            .sum::<usize>()
}

/// The job without each of its constraints in turn, by the key under which a change of it is suggested.
fn dropped(spec: &JobSpec) -> Vec<(&'static str, JobSpec)> {
    let without = |name: &'static str, change: fn(&mut JobSpec)| {
        let mut spec = spec.clone();
        change(&mut spec);
        (name, spec)
    };
    vec![
        without("resources.accelerators", |s| s.resources.accelerators.clear()),
        without("resources.min_gpu_memory_gib", |s| s.resources.min_gpu_memory_gib = None),
        without("resources.count", |s| s.resources.count = 1),
        without("resources.nodes", |s| s.resources.nodes = 1),
        without("resources.memory_gib", |s| s.resources.memory_gib = None),
        without("resources.vcpus", |s| s.resources.vcpus = None),
        without("constraints.providers", |s| s.constraints.providers.clear()),
        without("constraints.regions", |s| s.constraints.regions.clear()),
        without("constraints.exclude_regions", |s| s.constraints.exclude_regions.clear()),
        without("constraints.jurisdictions", |s| s.constraints.jurisdictions.clear()),
        without("constraints.latency", |s| s.constraints.latency.clear()),
        without("constraints.combine_zones", |s| s.constraints.combine_zones = true),
        without("purchase.models", |s| s.buying.models = vec![Purchase::OnDemand, Purchase::Spot, Purchase::Reserved]),
        without("purchase.max_usd_per_gpu_hour", |s| s.buying.max_usd_per_gpu_hour = None),
        without("schedule.deadline", |s| s.schedule.deadline = None),
    ]
}

#[test]
fn reasons_are_tried_in_their_own_order() {
    assert!(Reason::ALL.windows(2).all(|w| w[0] < w[1]));
    assert!(Reason::ALL.iter().enumerate().all(|(i, r)| *r as usize == i));
}

#[test]
fn an_empty_market_has_no_place_and_nothing_to_relax() {
    let mut world = World::of([]);
    world.net = Net::default();
    let ranking = world.place(&job("H100-80GB-SXM", 8), 3);
    assert_eq!((ranking.feasible, ranking.considered, ranking.rejected.len(), ranking.relax.len()), (0, 0, 0, 0));
}

/// The laws above prove nothing of what the random markets never contain.
#[test]
fn random_markets_reach_every_reason_every_relaxation_and_spreads() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..4_000 {
        let (world, spec) = any_case().new_tree(&mut runner).expect("a value").current();
        let ranking = world.place(&spec, 1);
        let mut note = |what: &str| *seen.entry(what.to_owned()).or_insert(0) += 1;
        note(if ranking.feasible > 0 { "feasible" } else { "infeasible" });
        ranking.rejected.iter().for_each(|r| note(r.reason.as_str()));
        ranking.relax.iter().for_each(|r| note(r.constraint.split('[').next().unwrap_or_default()));
        if let Some(best) = ranking.candidates.first() {
            let parts = best.breakdown;
            for (name, part) in [("egress", parts.egress), ("switching", parts.switching), ("risk", parts.risk)] {
                if part.micros() > 0 {
                    note(name);
                }
            }
            if best.nodes.len() > 1 {
                note("spread");
            }
        }
    }
    let reasons = Reason::ALL.into_iter().filter(|r| *r != Reason::Policy).map(Reason::as_str);
    let changes = [
        "resources.accelerators",
        "resources.min_gpu_memory_gib",
        "resources.count",
        "resources.nodes",
        "resources.memory_gib",
        "resources.vcpus",
        "constraints.providers",
        "constraints.regions",
        "constraints.exclude_regions",
        "constraints.jurisdictions",
        "constraints.latency",
        "constraints.combine_zones",
        "purchase.models",
        "purchase.max_usd_per_gpu_hour",
        "schedule.deadline",
    ];
    for what in reasons.chain(changes).chain(["feasible", "infeasible", "spread", "egress", "switching", "risk"]) {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times >= 10, "{what} came up {times} times: {seen:?}");
    }
}
