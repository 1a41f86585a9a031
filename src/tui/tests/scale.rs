//! A hundred thousand offers.

use std::time::{Duration, Instant};

use crate::domain::{Availability, Purchase};
use crate::market::Snapshot;
use crate::tui::testing::*;

fn market(offers: u32) -> Snapshot {
    let template = offer(
        "aws/us-east-1/use1-az4",
        "p5.48xlarge",
        "H100-80GB-SXM",
        8,
        Purchase::OnDemand,
        Some("55.04"),
        Availability::Available,
    );
    Snapshot::from_offers(
        now(),
        (0..offers).map(|n| {
            let mut o = template.clone();
            o.key.region = format!("region-{}", n / 500).into();
            o.key.instance_type = format!("type-{}", n % 500).into();
            o
        }),
    )
}

/// The fastest of some frames: what the machine can do when nobody else uses it.
fn frame(runner: &Runner) -> Duration {
    (0..15)
        .map(|_| {
            let start = Instant::now();
            let _ = runner.buffer();
            start.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn g4_a_frame_costs_the_same_with_a_hundred_thousand_offers_as_with_a_hundred() {
    let with = |n: u32| {
        let mut world = state();
        world.market = std::sync::Arc::new(market(n));
        Runner::new(world, 200, 60)
    };
    let (few, many) = (with(100), with(100_000));
    assert_eq!(many.view.board.capacity.len(), 100_000);
    let (a, b) = (frame(&few), frame(&many));
    assert!(b < a * 2 + Duration::from_millis(5), "{a:?} with 100 offers, {b:?} with 100,000");
}

#[test]
fn g4_an_unchanged_market_is_not_arranged_again() {
    let mut runner = Runner::new(state(), 200, 60);
    let before = runner.view.board.clone();
    let mut next = (*runner.view.state).clone();
    next.at += chrono::Duration::seconds(5);
    runner.state(next);
    let after = runner.view.board.clone();
    assert!(std::sync::Arc::ptr_eq(&before.capacity.rows, &after.capacity.rows));
    assert!(std::sync::Arc::ptr_eq(&before.capacity.order, &after.capacity.order));
    runner.keys("1 s");
    assert!(
        std::sync::Arc::ptr_eq(&before.capacity.rows, &runner.view.board.capacity.rows),
        "a new order keeps the rows"
    );
    assert!(!std::sync::Arc::ptr_eq(&before.capacity.order, &runner.view.board.capacity.order));
}
