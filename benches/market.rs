//! How long the market takes with 100,000 offers: a second's worth of observations, snapshots, spreads, sorting.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use divan::{Bencher, black_box};
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, Evidence, HourlyRate, Interconnect, Observation, OfferKey, Offerings,
    PriceStatement, ProviderId, Purchase, Shape,
};
use gpudeck::market::{Market, Snapshot, order, spreads};

const OFFERS: usize = 100_000;
const CLOUDS: [&str; 5] = ["aws", "azure", "gcp", "lambda", "runpod"];
const CHIPS: usize = 40;

fn main() {
    divan::main();
}

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + chrono::Duration::days(20_423) + chrono::Duration::seconds(seconds)
}

/// Observation number `i` of 100,000: 5 clouds, 25 regions of 4 zones, 100 types of 40 chips, on-demand and spot.
fn observation(i: usize, at: DateTime<Utc>) -> Observation {
    let kind = i / 1000 % 100;
    let instance_type = format!("type-{kind}.48xlarge");
    Observation {
        key: OfferKey {
            provider: CLOUDS[i % 5].into(),
            region: format!("region-{}", i / 5 % 25).into(),
            zone: Some(format!("zone-{}", i / 125 % 4).into()),
            instance_type: instance_type.as_str().into(),
            purchase: if (i / 500).is_multiple_of(2) { Purchase::OnDemand } else { Purchase::Spot },
        },
        at,
        shape: Arc::new(Shape {
            instance_type: instance_type.into(),
            accelerator: Accelerator::from_canonical(format!("CHIP-{}", kind % CHIPS)),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(192),
            memory_gib: Some(2048.0),
            interconnect: Interconnect::Efa,
        }),
        // Moves with the time, so that a second look is a change.
        price: Some(PriceStatement::Live(HourlyRate::from_micros(
            10_000_000 + i64::try_from(i).unwrap_or(0) * 211 % 90_000_000 + at.timestamp() % 977,
        ))),
        availability: Some((Availability::Available, Evidence::Api)),
        capacity: Some(4),
        quota: None,
        interruptions_per_day: Some(0.2),
    }
}

fn answer(cloud: &str, at: DateTime<Utc>) -> Offerings {
    let observations = (0..OFFERS).filter(|i| CLOUDS[i % 5] == cloud).map(|i| observation(i, at)).collect();
    Offerings { observations, complete: true, ..Offerings::default() }
}

fn full_market() -> Market {
    let mut market = Market::new(|_, _| None);
    for cloud in CLOUDS {
        let provider = ProviderId::from(cloud);
        market.expect(&provider, Duration::from_mins(1), time(0));
        market.apply(&provider, answer(cloud, time(0)), time(0));
    }
    assert_eq!(market.len(), OFFERS);
    market.snapshot(time(0));
    market
}

fn full_snapshot() -> Arc<Snapshot> {
    full_market().snapshot(time(0))
}

/// A thousand observations scattered over the whole market.
fn second(at: DateTime<Utc>) -> Vec<Observation> {
    (0..1000).map(|i| observation(i * 7919 % OFFERS, at)).collect()
}

#[divan::bench(sample_count = 60, sample_size = 1)]
fn apply_1000_observations_and_snapshot(bencher: Bencher<'_, '_>) {
    let mut market = full_market();
    let mut held = market.snapshot(time(0));
    let mut now = 0;
    bencher
        .with_inputs(|| {
            now += 1;
            (second(time(now)), time(now))
        })
        .bench_local_values(|(observations, at)| {
            for observation in &observations {
                market.apply_one(observation, at);
            }
            // The screen holds the last one while the next is made.
            held = market.snapshot(at);
            held.version()
        });
}

#[divan::bench]
fn snapshot_where_nothing_changed(bencher: Bencher<'_, '_>) {
    let mut market = full_market();
    bencher.bench_local(|| market.snapshot(time(1)));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn a_whole_answer_of_20000_offers(bencher: Bencher<'_, '_>) {
    let mut market = full_market();
    let provider = ProviderId::from("aws");
    let mut now = 0;
    bencher
        .with_inputs(|| {
            now += 60;
            (answer("aws", time(now)), time(now))
        })
        .bench_local_values(|(answer, at)| {
            market.apply(&provider, answer, at);
            market.snapshot(at)
        });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn a_snapshot_in_which_everything_went_stale(bencher: Bencher<'_, '_>) {
    // By reference: dropping the market is not what is measured.
    bencher.with_inputs(full_market).bench_local_refs(|market| market.snapshot(time(121)).version());
}

#[divan::bench]
fn spreads_of_all(bencher: Bencher<'_, '_>) {
    let snapshot = full_snapshot();
    bencher.bench_local(|| spreads(black_box(&snapshot), None));
}

#[divan::bench]
fn summary(bencher: Bencher<'_, '_>) {
    let mut market = full_market();
    bencher.with_inputs(|| market.snapshot(time(1))).bench_local_values(|snapshot| snapshot.summary().total.offers);
}

#[divan::bench]
fn sort_all_by_price(bencher: Bencher<'_, '_>) {
    let snapshot = full_snapshot();
    bencher.with_inputs(|| snapshot.iter().collect::<Vec<_>>()).bench_local_values(|mut offers| {
        offers.sort_by(|a, b| order::by_price(a, b));
        offers.len()
    });
}

#[divan::bench]
fn find_one(bencher: Bencher<'_, '_>) {
    let snapshot = full_snapshot();
    let key = observation(31_337, time(0)).key;
    bencher.bench_local(|| snapshot.get(black_box(&key)).is_some());
}
