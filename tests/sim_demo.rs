//! The demo as shipped: the bundled catalogue's clouds, the default seed.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Duration};
use gpudeck::catalogue::Catalogue;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::observation::PriceStatement;
use gpudeck::domain::{Availability, Evidence, InstanceState, Mark, Observation, OfferKey, Purchase};
use gpudeck::provider::sim::{self, DEFAULT_SEED, FaultPlan, Setup, Weather, World, WorldOptions};
use gpudeck::provider::{LaunchRequest, Operator, Provider};

/// The demo's market of a seed at an age of its world, without the demo's faults.
async fn market(seed: u64, age: Duration) -> Vec<Observation> {
    let start = DateTime::from_timestamp_millis(1_796_083_200_000).expect("the demo's first day");
    let setup = Setup::planned(FaultPlan::none()).weather(Weather::Seeded);
    let clock = Arc::new(ManualClock::at(start + age));
    let world = World::of(Catalogue::bundled().rows(), setup, seed, clock);
    let mut all = Vec::new();
    for cloud in world.clouds() {
        all.extend(cloud.offerings().await.expect("offers").observations);
    }
    all
}

#[tokio::test]
async fn the_demo_has_every_cloud_and_every_offer_of_the_catalogue() {
    let home = tempfile::tempdir().expect("a directory");
    let system = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH + Duration::days(20_000)));
    let started = Instant::now();
    let demo = sim::open(home.path(), WorldOptions::default(), system).expect("made");
    let opened = started.elapsed();
    let rows = Catalogue::bundled().rows();
    let clouds: BTreeSet<&str> = demo.clouds.iter().map(|c| c.id().as_str()).collect();
    assert_eq!(clouds, rows.iter().map(|r| r.provider.as_str()).collect());

    let listed: BTreeSet<OfferKey> =
        rows.iter().flat_map(|r| r.observations(DateTime::UNIX_EPOCH)).map(|o| o.key).collect();
    let started = Instant::now();
    let answers = futures_util::future::join_all(demo.clouds.iter().map(|c| c.offerings())).await;
    let answered = started.elapsed();
    let mut seen = BTreeSet::new();
    // The default seed begins with every cloud and region answering: the first screen is whole.
    for answer in answers {
        let answer = answer.expect("answered");
        assert!(answer.complete, "{:?}", answer.failed);
        seen.extend(answer.observations.into_iter().map(|o| o.key));
    }
    println!("{} clouds, {} offers; opened in {opened:?}, answered in {answered:?}", clouds.len(), seen.len());
    assert_eq!(seen, listed);

    // The market itself, without the demo's latencies: machine-made work, in one thread.
    let clock = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH + Duration::days(20_000)));
    let started = Instant::now();
    let world = World::of(rows, Setup::planned(FaultPlan::none()).weather(Weather::Seeded), DEFAULT_SEED, clock);
    let (clouds, built) = (world.clouds(), started.elapsed());
    let started = Instant::now();
    for cloud in &clouds {
        cloud.offerings().await.expect("offers");
    }
    println!("the world was built in {built:?}, all its offers computed in {:?}", started.elapsed());
    // A cold command has 50 ms in all when optimised; this is a debug build on a shared machine.
    assert!(answered.as_millis() < 2_000);
}

#[tokio::test]
async fn one_seed_is_one_market_and_another_seed_another() {
    let age = Duration::hours(31);
    assert_eq!(market(1, age).await, market(1, age).await);
    assert_ne!(market(1, age).await, market(2, age).await);
    assert_ne!(market(1, age).await, market(1, age + Duration::hours(1)).await);
}

#[tokio::test]
async fn prices_are_the_catalogues_on_demand_and_bounded_by_it_on_spot() {
    let rows = Catalogue::bundled().rows();
    let on_demand: BTreeMap<OfferKey, _> = rows.iter().map(|r| (r.key(Purchase::OnDemand), r.on_demand)).collect();
    let mut unpriced = 0;
    for o in market(DEFAULT_SEED, Duration::hours(5)).await {
        let key = OfferKey { purchase: Purchase::OnDemand, ..o.key.clone() };
        let list = on_demand.get(&key).copied().flatten();
        assert_eq!(o.availability.map(|(_, e)| e), Some(Evidence::Simulated));
        match (o.price.expect("stated"), list) {
            (PriceStatement::Live(price), Some(list)) if o.key.purchase == Purchase::OnDemand => {
                assert_eq!(price, list);
            }
            (PriceStatement::Live(price), Some(list)) => assert!(price <= list, "{}: {price} > {list}", o.key),
            (PriceStatement::Live(_), None) => assert_eq!(o.key.purchase, Purchase::Spot),
            (PriceStatement::Unpriced, None) => {
                unpriced += 1;
                assert_eq!(o.capacity, Some(0), "{}", o.key);
            }
            other => panic!("{}: {other:?}", o.key),
        }
    }
    assert!(unpriced > 0, "the catalogue lists some types without a price");
}

/// The first screen of the demo shows what there is to show: H100s to be had on both purchase models, some sold out,
/// quotas that leave room and quotas that do not.
#[tokio::test]
async fn the_first_screen_of_the_demo_is_worth_looking_at() {
    let all = market(DEFAULT_SEED, Duration::zero()).await;
    let is_h100 = |o: &&Observation| o.shape.accelerator.as_str().starts_with("H100");
    for purchase in [Purchase::OnDemand, Purchase::Spot] {
        let h100: Vec<&Observation> = all.iter().filter(is_h100).filter(|o| o.key.purchase == purchase).collect();
        let count = |a: Availability| h100.iter().filter(|o| o.availability.is_some_and(|(x, _)| x == a)).count();
        let (there, few, none) =
            (count(Availability::Available), count(Availability::Limited), count(Availability::None));
        println!("H100 {purchase}: {there} available, {few} limited, {none} none");
        assert!(there > 5 && few > 5 && none > 5);
        let room = h100.iter().filter(|o| o.quota.as_ref().is_none_or(|q| q.instances_left() > 0)).count();
        assert!(room > h100.len() / 2 && room < h100.len());
    }
    let mut hours: Vec<f64> = all
        .iter()
        .filter(is_h100)
        .filter(|o| o.key.purchase == Purchase::Spot)
        .filter_map(|o| o.interruptions_per_day.map(|n| 24.0 / n))
        .collect();
    hours.sort_by(f64::total_cmp);
    println!(
        "hours between interruptions of H100 spot offers: {:.1} / {:.1} / {:.1}",
        hours[0],
        hours[hours.len() / 2],
        hours[hours.len() - 1]
    );
    assert!(hours[0] > 2.5 && hours[hours.len() / 2] < 12.0);
}

/// The ordinary faults of the default seed leave the first commands of a session alone: what somebody tries first
/// works, and what scripts do in a new world does so each time.
#[tokio::test]
async fn the_first_launches_of_the_default_seed_meet_no_accident() {
    let home = tempfile::tempdir().expect("a directory");
    let system = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH + Duration::days(20_000)));
    let demo = sim::open(home.path(), WorldOptions::default(), system.clone()).expect("made");
    let cloud = demo.clouds.iter().find(|c| *c.id() == *"lambda").expect("in the catalogue");
    let offers = cloud.offerings().await.expect("offers").observations;
    let offer = offers.iter().find(|o| o.capacity.is_some_and(|n| n >= 12)).expect("plenty of something");
    let mut machines = Vec::new();
    for n in 0..12 {
        let mark = Mark { owner: "me".into(), job: "j".into(), operation: "o".into(), attempt: 1, node: n };
        let request = LaunchRequest {
            offer: offer.key.clone(),
            shape: offer.shape.clone(),
            max_price: None,
            token: format!("t{n}"),
            name: format!("n{n}"),
            mark,
            intended_at: DateTime::UNIX_EPOCH,
            user_data: None,
        };
        machines.push(cloud.launch(&request).await.expect("no accident"));
    }
    // Six minutes of the world.
    system.advance(Duration::seconds(6));
    let seen = cloud.instances("me").await.expect("list");
    assert_eq!(seen.iter().filter(|m| m.state == InstanceState::Running).count(), 12);
}
