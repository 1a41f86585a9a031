//! Placing one job over a market of 100,000 offers. The aim is 2 ms of core time on one core.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::DateTime;
use divan::{Bencher, black_box};
use gpudeck::domain::job::{Buying, Constraints, Data, LatencyLimit, Recovery, Resources, Schedule};
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, Evidence, GpuHourlyRate, HourlyRate, InstanceType, Interconnect,
    JobSpec, Location, Offer, OfferKey, ProviderId, Purchase, Region, Shape, Zone,
};
use gpudeck::market::Snapshot;
use gpudeck::network::Network;
use gpudeck::placement::{Context, place};

const OFFERS: usize = 100_000;
const CHIPS: [&str; 10] = [
    "H100-80GB-SXM",
    "H200-141GB-SXM",
    "A100-80GB-SXM",
    "A100-40GB-SXM",
    "L4-24GB",
    "L40S-48GB",
    "A10G-24GB",
    "T4-16GB",
    "B200-180GB-SXM",
    "V100-16GB",
];

fn main() {
    divan::main();
}

/// A number that looks random and is the same every time.
fn mix(n: usize) -> usize {
    let mut x = (n as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31)) as usize
}

/// 5 clouds x 40 regions x 4 zones x 63 shapes x 2 purchase models, cut to 100,000.
fn market() -> Snapshot {
    let shapes: Vec<Arc<Shape>> = (0..63)
        .map(|i| {
            Arc::new(Shape {
                instance_type: InstanceType::from(format!("type-{i:02}")),
                accelerator: Accelerator::from_canonical(CHIPS[i % CHIPS.len()]),
                accelerators: AcceleratorCount::whole([8, 8, 4, 2, 1][i % 5]),
                gpu_memory_gib: Some(80.0),
                vcpus: Some([192, 96, 48, 24, 12][i % 5]),
                memory_gib: Some([2048.0, 1024.0, 512.0, 256.0, 128.0][i % 5]),
                interconnect: Interconnect::Unknown,
            })
        })
        .collect();
    let mut offers = Vec::with_capacity(OFFERS);
    'all: for provider in 0..5 {
        let provider = ProviderId::from(format!("cloud-{provider}"));
        for region in 0..40 {
            let region = Region::from(format!("region-{region:02}"));
            for zone in 0..4 {
                let zone = Zone::from(format!("zone-{zone}"));
                for shape in &shapes {
                    for purchase in [Purchase::OnDemand, Purchase::Spot] {
                        let dice = mix(offers.len());
                        offers.push(Offer {
                            key: OfferKey {
                                provider: provider.clone(),
                                region: region.clone(),
                                zone: Some(zone.clone()),
                                instance_type: shape.instance_type.clone(),
                                purchase,
                            },
                            shape: Arc::clone(shape),
                            price: (!dice.is_multiple_of(50))
                                .then(|| HourlyRate::from_micros(1_000_000 + i64::from((dice % 90_000_000) as u32))),
                            price_is_live: true,
                            availability: match dice % 7 {
                                0 => Availability::None,
                                1 => Availability::Limited,
                                2 => Availability::Unknown,
                                _ => Availability::Available,
                            },
                            evidence: Evidence::Api,
                            observed_at: DateTime::UNIX_EPOCH,
                            stale: false,
                            capacity: dice.is_multiple_of(3).then_some((dice % 11) as u32),
                            quota: None,
                            interruptions_per_day: (purchase == Purchase::Spot).then_some((dice % 5) as f64 / 4.0),
                            jurisdiction: Some(if dice.is_multiple_of(2) { "EU".into() } else { "US".into() }),
                        });
                        if offers.len() == OFFERS {
                            break 'all;
                        }
                    }
                }
            }
        }
    }
    Snapshot::from_offers(DateTime::UNIX_EPOCH, offers)
}

fn job() -> JobSpec {
    JobSpec {
        name: "bench".into(),
        run: None,
        image: None,
        env: BTreeMap::new(),
        resources: Resources {
            accelerators: vec![
                Accelerator::from_canonical("H100-80GB-SXM"),
                Accelerator::from_canonical("H200-141GB-SXM"),
            ],
            accelerators_as_written: vec![],
            min_gpu_memory_gib: None,
            count: 8,
            nodes: 1,
            vcpus: Some(96),
            memory_gib: Some(512.0),
        },
        buying: Buying {
            models: vec![Purchase::OnDemand, Purchase::Spot],
            max_usd_per_gpu_hour: Some(GpuHourlyRate::from_micros(9_000_000)),
        },
        constraints: Constraints::default(),
        data: Data {
            location: Some(Location::region("cloud-0", "region-07")),
            input_gib: 500.0,
            checkpoint_gib: 40.0,
            checkpoint_uri: None,
        },
        schedule: Schedule {
            duration_hours: Some(72.0),
            deadline: DateTime::from_timestamp(864_000, 0),
            recovery: Recovery::Restart,
            restart_loss_hours: 0.5,
        },
    }
}

fn run(bencher: Bencher<'_, '_>, change: impl FnOnce(&mut JobSpec)) {
    let (snapshot, network) = (market(), Network::published());
    assert_eq!(snapshot.len(), OFFERS);
    let mut spec = job();
    change(&mut spec);
    let context =
        Context { snapshot: &snapshot, network: &network, now: DateTime::UNIX_EPOCH, cooling: &[], current: None };
    bencher.bench_local(|| place(black_box(&spec), &context, 10));
}

/// What everything else is to be compared with: looking at every offer once, and keeping the cheapest of a GPU type.
#[divan::bench]
fn reference_scan(bencher: Bencher<'_, '_>) {
    let snapshot = market();
    let wanted = Accelerator::from_canonical("H100-80GB-SXM");
    bencher.bench_local(|| {
        black_box(&snapshot)
            .iter()
            .filter(|o| o.shape.accelerator == wanted && o.availability != Availability::None)
            .filter_map(|o| o.price)
            .min()
    });
}

#[divan::bench]
fn one_node(bencher: Bencher<'_, '_>) {
    run(bencher, |_| ());
}

#[divan::bench]
fn gang_in_one_zone(bencher: Bencher<'_, '_>) {
    run(bencher, |spec| spec.resources.nodes = 4);
}

#[divan::bench]
fn gang_over_zones(bencher: Bencher<'_, '_>) {
    run(bencher, |spec| {
        spec.resources.nodes = 4;
        spec.constraints.combine_zones = true;
    });
}

/// Nothing is filtered away by the shape: every offer is priced.
#[divan::bench]
fn any_accelerator(bencher: Bencher<'_, '_>) {
    run(bencher, |spec| {
        spec.resources.accelerators.clear();
        spec.resources.count = 1;
        spec.resources.vcpus = None;
        spec.resources.memory_gib = None;
        spec.buying.max_usd_per_gpu_hour = None;
    });
}

/// Nothing fits, and every single relaxation is looked for and proved.
#[divan::bench]
fn nothing_fits(bencher: Bencher<'_, '_>) {
    run(bencher, |spec| {
        spec.buying.max_usd_per_gpu_hour = Some(GpuHourlyRate::from_micros(1));
        spec.constraints.latency = vec![LatencyLimit { to: Location::region("cloud-0", "region-07"), max_ms: 5.0 }];
    });
}
