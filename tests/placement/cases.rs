//! Complaints about other schedulers as data: a market and a job in, a decision out. A file is a case, named by its
//! id; what it says of a file it says of the whole core.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use gpudeck::domain::job::{LatencyLimit, Recovery};
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, GpuHourlyRate, HourlyRate, JobSpec, Location, Offer, Purchase,
};
use gpudeck::placement::{Candidate, Cooling, Ranking};
use serde::Deserialize;

use super::world::{Link, Net, World, job, noon, offer, place, quota, shaped};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What went wrong elsewhere.
    complaint: String,
    job: Job,
    #[serde(default)]
    offers: Vec<Row>,
    #[serde(default)]
    network: Vec<Pair>,
    #[serde(default)]
    cooling: Vec<Cool>,
    current: Option<String>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    accelerators: Vec<String>,
    min_gpu_memory_gib: Option<f64>,
    count: u32,
    #[serde(default = "one")]
    nodes: u32,
    vcpus: Option<u32>,
    memory_gib: Option<f64>,
    models: Option<Vec<String>>,
    max_usd_per_gpu_hour: Option<f64>,
    #[serde(default)]
    providers: Vec<String>,
    #[serde(default)]
    regions: Vec<String>,
    #[serde(default)]
    exclude_regions: Vec<String>,
    #[serde(default)]
    jurisdictions: Vec<String>,
    #[serde(default)]
    latency: Vec<Limit>,
    #[serde(default)]
    combine_zones: bool,
    data_location: Option<String>,
    #[serde(default)]
    input_gib: f64,
    #[serde(default)]
    checkpoint_gib: f64,
    duration_hours: Option<f64>,
    deadline_hours: Option<i64>,
    restart_loss_hours: Option<f64>,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    to: String,
    max_ms: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    at: String,
    instance_type: String,
    purchase: String,
    usd_per_hour: Option<f64>,
    accelerator: Option<String>,
    accelerators: Option<f64>,
    gpu_memory_gib: Option<f64>,
    vcpus: Option<u32>,
    memory_gib: Option<f64>,
    /// Facts that are not known in this case: `memory_gib`, `vcpus`, `gpu_memory_gib`.
    #[serde(default)]
    unknown: Vec<String>,
    availability: Option<Availability>,
    capacity: Option<u32>,
    quota: Option<Quota>,
    interruptions_per_day: Option<f64>,
    jurisdiction: Option<String>,
    #[serde(default)]
    published: bool,
    /// Minutes since it was seen, beyond its source's age limit.
    stale_minutes: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quota {
    code: String,
    limit: f64,
    used: f64,
    per_instance: f64,
}

#[derive(Deserialize)]
struct Pair {
    from: String,
    to: String,
    #[serde(flatten)]
    link: Link,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cool {
    at: String,
    hours: i64,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    /// All candidates in order: `2 p5 spot aws/us/a + 1 p5 spot aws/us/b`.
    candidates: Vec<String>,
    usd_per_hour: Option<f64>,
    usd_total: Option<f64>,
    egress: Option<f64>,
    #[serde(default)]
    rejected: BTreeMap<String, usize>,
    /// Words that the detail of a reason must have.
    #[serde(default)]
    detail: BTreeMap<String, Vec<String>>,
    /// Words that the best candidate's caveats must have, one entry a caveat.
    #[serde(default)]
    caveats: Vec<String>,
    #[serde(default)]
    relax: Vec<(String, String)>,
}

fn market(rows: Vec<Row>) -> Vec<Offer> {
    rows.into_iter()
        .map(|row| {
            let purchase = Purchase::parse(&row.purchase).expect("a purchase model");
            let mut o = shaped(offer(&row.at, &row.instance_type, purchase, 1.0), |s| {
                if let Some(chip) = &row.accelerator {
                    s.accelerator = Accelerator::from_canonical(chip.as_str());
                }
                if let Some(n) = row.accelerators {
                    s.accelerators = AcceleratorCount::from_f64(n).expect("a count");
                }
                s.gpu_memory_gib = row.gpu_memory_gib.or(s.gpu_memory_gib);
                s.vcpus = row.vcpus.or(s.vcpus);
                s.memory_gib = row.memory_gib.or(s.memory_gib);
                for fact in &row.unknown {
                    match fact.as_str() {
                        "memory_gib" => s.memory_gib = None,
                        "vcpus" => s.vcpus = None,
                        "gpu_memory_gib" => s.gpu_memory_gib = None,
                        other => panic!("{other}"),
                    }
                }
            });
            o.price = row.usd_per_hour.map(|p| HourlyRate::from_usd(p).expect("a price"));
            o.availability = row.availability.unwrap_or(Availability::Available);
            o.capacity = row.capacity;
            o.quota = row.quota.map(|q| quota(&q.code, q.limit, q.used, q.per_instance));
            o.interruptions_per_day = row.interruptions_per_day.or(o.interruptions_per_day);
            o.jurisdiction = row.jurisdiction.map(Into::into);
            o.price_is_live = !row.published;
            if let Some(minutes) = row.stale_minutes {
                o.stale = true;
                o.observed_at = noon() - chrono::TimeDelta::minutes(minutes);
            }
            o
        })
        .collect()
}

fn spec(of: Job) -> JobSpec {
    let mut spec = job("", of.count);
    let hours = |h: i64| -> DateTime<Utc> { noon() + chrono::TimeDelta::hours(h) };
    spec.resources.accelerators = of.accelerators.iter().map(|a| Accelerator::from_canonical(a.as_str())).collect();
    spec.resources.accelerators_as_written = of.accelerators;
    spec.resources.min_gpu_memory_gib = of.min_gpu_memory_gib;
    spec.resources.nodes = of.nodes;
    spec.resources.vcpus = of.vcpus;
    spec.resources.memory_gib = of.memory_gib;
    if let Some(models) = of.models {
        spec.buying.models = models.iter().map(|m| Purchase::parse(m).expect("a purchase model")).collect();
    }
    spec.buying.max_usd_per_gpu_hour = of.max_usd_per_gpu_hour.map(|p| GpuHourlyRate::from_usd(p).expect("a price"));
    spec.constraints.providers = of.providers.into_iter().map(Into::into).collect();
    spec.constraints.regions = of.regions.iter().map(|r| place(r)).collect();
    spec.constraints.exclude_regions = of.exclude_regions.iter().map(|r| place(r)).collect();
    spec.constraints.jurisdictions = of.jurisdictions;
    spec.constraints.latency = of.latency.iter().map(|l| LatencyLimit { to: place(&l.to), max_ms: l.max_ms }).collect();
    spec.constraints.combine_zones = of.combine_zones;
    spec.data.location = of.data_location.map(|l| place(&l));
    spec.data.input_gib = of.input_gib;
    spec.data.checkpoint_gib = of.checkpoint_gib;
    spec.schedule.duration_hours = of.duration_hours;
    spec.schedule.deadline = of.deadline_hours.map(hours);
    spec.schedule.recovery = Recovery::Restart;
    spec.schedule.restart_loss_hours = of.restart_loss_hours.unwrap_or(0.5);
    spec
}

fn shown(candidate: &Candidate) -> String {
    let group = |g: &gpudeck::placement::NodeGroup| {
        let Location { provider, region, zone } = g.offer.key.location();
        let zone = zone.map_or_else(String::new, |z| format!("/{z}"));
        format!("{} {} {} {provider}/{region}{zone}", g.count, g.offer.key.instance_type, g.offer.key.purchase)
    };
    candidate.nodes.iter().map(group).collect::<Vec<_>>().join(" + ")
}

/// Play a case; gives the ranking for what a file cannot say.
fn play(file: &str) -> (JobSpec, World, Ranking) {
    let case: Case = toml::from_str(file).expect("a case file");
    let complaint = case.complaint;
    let mut world = World::of(market(case.offers));
    for pair in case.network {
        world.net = std::mem::take(&mut world.net).with(&pair.from, &pair.to, pair.link);
    }
    let _: &Net = &world.net;
    world.cooling = case
        .cooling
        .into_iter()
        .map(|c| Cooling {
            location: place(&c.at),
            purchase: None,
            until: noon() + chrono::TimeDelta::hours(c.hours),
            reason: c.reason,
        })
        .collect();
    world.current = case.current.map(|c| place(&c));
    let spec = spec(case.job);
    let ranking = world.place(&spec, usize::MAX);
    let expect = case.expect;
    assert_eq!(ranking.candidates.iter().map(shown).collect::<Vec<_>>(), expect.candidates, "{complaint}");
    let rejected: BTreeMap<String, usize> =
        ranking.rejected.iter().map(|r| (r.reason.as_str().to_owned(), r.offers)).collect();
    assert_eq!(rejected, expect.rejected, "{complaint}");
    if let Some(best) = ranking.candidates.first() {
        let same = |name: &str, have: f64, want: Option<f64>| {
            assert!(want.is_none_or(|want| (want - have).abs() < 0.005), "{complaint}: {name} is {have}, not {want:?}");
        };
        same("usd_per_hour", best.usd_per_hour.to_usd(), expect.usd_per_hour);
        same("usd_total", best.usd_total.to_usd(), expect.usd_total);
        same("egress", best.breakdown.egress.to_usd(), expect.egress);
        for words in &expect.caveats {
            assert!(best.caveats.iter().any(|c| c.contains(words)), "{complaint}: '{words}' not in {:?}", best.caveats);
        }
    }
    for (reason, words) in &expect.detail {
        let detail = ranking.rejected.iter().find(|r| r.reason.as_str() == reason).map_or("", |r| r.detail.as_str());
        for word in words {
            assert!(detail.contains(word), "{complaint}: '{word}' not in '{detail}'");
        }
    }
    for (constraint, to) in &expect.relax {
        assert!(
            ranking.relax.iter().any(|r| r.constraint == *constraint && r.to == *to),
            "{complaint}: {constraint} to {to} not in {:?}",
            ranking.relax
        );
    }
    (spec, world, ranking)
}

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { play(include_str!(concat!(stringify!($name), ".toml"))); })*

        #[test]
        fn every_case_file_is_played() {
            let listed = [$(concat!(stringify!($name), ".toml")),*];
            let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/placement");
            for entry in std::fs::read_dir(here).expect("the folder of cases") {
                let name = entry.expect("an entry").file_name();
                let name = name.to_string_lossy();
                assert!(!name.ends_with(".toml") || listed.contains(&&*name), "{name} is not played");
            }
        }
    };
}

cases! {
    b1_a_cap_is_per_gpu_not_per_instance,
    b6_no_price_is_never_cheapest_and_never_hidden,
    b11_spot_of_every_zone_is_ranked,
    b14_a_longer_name_is_another_chip,
    b15_constraints_hold_together,
    b15_more_gpus_than_asked_are_paid_for,
    b17_equal_price_takes_the_stronger_host,
    b22_a_large_data_set_keeps_the_job_near,
    b22_an_unknown_tariff_is_not_free,
    b24_hints_name_the_place_they_are_about,
    c1_expired_facts_are_refused_and_stale_ones_say_so,
    c3_listed_is_not_available,
    d2_a_quota_that_is_too_small_refuses_before_any_call,
    d4_spot_quota_is_not_on_demand_quota,
    d7_a_place_that_failed_lately_is_left_alone,
    d10_a_gang_larger_than_the_stock_is_refused_whole,
    d12_regions_allowed_and_excluded,
    e12_a_gang_lies_in_one_zone,
    e12_a_gang_may_be_spread_where_the_job_says_so,
    latency_not_known_is_refused,
    deadline_counts_interruptions,
    moving_must_pay_for_itself,
}
