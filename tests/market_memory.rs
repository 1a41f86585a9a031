//! A market of 100,000 offers under a stream of changes stays within its memory. Alone in its process, so that the
//! figure is its own.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test that cannot measure fails")]

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, Evidence, HourlyRate, Interconnect, Observation, OfferKey, Offerings,
    PriceStatement, ProviderId, Purchase, Shape,
};
use gpudeck::market::Market;

const OFFERS: usize = 100_000;
const CLOUDS: [&str; 4] = ["aws", "azure", "gcp", "lambda"];

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + Duration::days(20_423) + Duration::seconds(seconds)
}

/// Each with names and a shape of its own copy, as they come from a network.
fn observation(i: usize, at: DateTime<Utc>, price: i64) -> Observation {
    let instance_type = format!("type-{}.48xlarge", i / 400 % 250);
    Observation {
        key: OfferKey {
            provider: CLOUDS[i % 4].into(),
            region: format!("region-{}", i / 4 % 25).into(),
            zone: Some(format!("zone-{}", i / 100 % 2).into()),
            instance_type: instance_type.as_str().into(),
            purchase: if (i / 200).is_multiple_of(2) { Purchase::OnDemand } else { Purchase::Spot },
        },
        at,
        shape: Arc::new(Shape {
            instance_type: instance_type.into(),
            accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(192),
            memory_gib: Some(2048.0),
            interconnect: Interconnect::Efa,
        }),
        price: Some(PriceStatement::Live(HourlyRate::from_micros(price))),
        availability: Some((Availability::Available, Evidence::Api)),
        capacity: None,
        quota: None,
        interruptions_per_day: Some(0.5),
    }
}

/// Resident memory of this process in MiB.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("a line");
    let kib: f64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib / 1024.0
}

#[test]
fn g4_a_hundred_thousand_offers_under_a_stream_stay_below_120_mib() {
    let before = resident_mib();
    let mut market = Market::new(|_, _| Some("EU"));
    for (c, cloud) in CLOUDS.into_iter().enumerate() {
        // In small parts, so that the answers themselves do not count.
        for part in 0..25 {
            let numbers = (c..OFFERS).step_by(4).skip(part * 1000).take(1000);
            let observations = numbers.map(|i| observation(i, time(0), 10_000_000)).collect();
            market.apply(&ProviderId::from(cloud), Offerings { observations, ..Offerings::default() }, time(0));
        }
    }
    assert_eq!(market.len(), OFFERS);
    // Screen, placement and event log may each hold a snapshot for a while.
    let mut held = VecDeque::new();
    for second in 1..=300 {
        for i in 0..1000 {
            let number = (usize::try_from(second).unwrap_or(0) * 1000 + i) * 7919 % OFFERS;
            market.apply_one(&observation(number, time(second), 10_000_000 + second * 1000), time(second));
        }
        held.push_back(market.snapshot(time(second)));
        if held.len() > 3 {
            held.pop_front();
        }
    }
    let used = resident_mib() - before;
    println!("{used:.0} MiB for {} offers and {} snapshots", market.len(), held.len());
    assert!(used < 120.0, "{used:.0} MiB");
    assert!(used > 10.0, "the measurement works: {used:.0} MiB");
}
