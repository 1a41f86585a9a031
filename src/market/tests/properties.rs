//! What holds for every sequence of observations.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::config::limits;
use crate::domain::QuotaRoom;

fn observation() -> impl Strategy<Value = Observation> {
    let price = prop_oneof![
        1 => Just(None),
        1 => Just(Some(PriceStatement::Unpriced)),
        4 => (0_i64..5).prop_map(|n| Some(PriceStatement::Live(HourlyRate::from_micros(n * 8_000_000)))),
        2 => (1_i64..5).prop_map(|n| Some(PriceStatement::Published(HourlyRate::from_micros(n * 8_000_000)))),
    ];
    let stock = prop::sample::select(vec![
        None,
        Some((Availability::Available, Evidence::Api)),
        Some((Availability::Limited, Evidence::SpotScore)),
        Some((Availability::None, Evidence::Quota)),
        Some((Availability::Unknown, Evidence::Catalogue)),
    ]);
    let quota = prop::option::of((0_u32..3).prop_map(|n| QuotaRoom {
        code: "Q".into(),
        limit: 96.0,
        used: f64::from(n) * 48.0,
        per_instance: 48.0,
    }));
    (0_usize..6, 0_i64..8, price, stock, prop::option::of(0_u32..4), quota, prop::option::of(0.0_f64..2.0), 1_u32..3)
        .prop_map(|(place, at, price, availability, capacity, quota, interruptions_per_day, count)| Observation {
            key: key("r", place),
            at: t(at * 20),
            shape: shape("p5.48xlarge", "H100-80GB-SXM", count * 4),
            price,
            availability,
            capacity,
            quota,
            interruptions_per_day,
        })
}

/// What a screen would show, without what depends on the number of snapshots.
fn shown(market: &mut Market, now: i64) -> Vec<Offer> {
    market.snapshot(t(now)).iter().map(|o| (**o).clone()).collect()
}

/// Another way to say what a market should know: the greatest statement on each matter, looked for by hand.
fn oracle_price(observations: &[Observation], key: &OfferKey) -> Option<HourlyRate> {
    let mut best: Option<(DateTime<Utc>, u8, i64)> = None;
    for o in observations.iter().filter(|o| o.key == *key) {
        let said = match o.price {
            None => continue,
            Some(PriceStatement::Live(p)) if p.micros() > 0 => (o.at, 2, p.micros()),
            Some(PriceStatement::Published(p)) if p.micros() > 0 => (o.at, 1, p.micros()),
            Some(_) => (o.at, 0, 0),
        };
        best = best.max(Some(said));
    }
    best.filter(|b| b.1 > 0).map(|b| HourlyRate::from_micros(b.2))
}

proptest! {
    #[test]
    fn the_order_of_arrival_does_not_matter(
        observations in prop::collection::vec(observation(), 1..40),
        seed in any::<u64>(),
        refused in prop::option::of((0_usize..6, 0_i64..160)),
    ) {
        let mut shuffled = observations.clone();
        // A cheap, reproducible shuffle.
        let mut state = seed | 1;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            shuffled.swap(i, (state >> 33) as usize % (i + 1));
        }
        let (mut one, mut other) = (market(), market());
        for o in &observations {
            one.apply_one(o, t(160));
        }
        if let Some((place, at)) = refused {
            one.attempt(&key("r", place), false, t(at));
            other.attempt(&key("r", place), false, t(at));
        }
        for o in &shuffled {
            other.apply_one(o, t(160));
        }
        for now in [160, 200, 5000] {
            prop_assert_eq!(shown(&mut one, now), shown(&mut other, now));
        }
    }

    #[test]
    fn applying_twice_is_applying_once(observations in prop::collection::vec(observation(), 1..30)) {
        let (mut once, mut twice) = (market(), market());
        for o in &observations {
            once.apply_one(o, t(160));
            twice.apply_one(o, t(160));
        }
        let before = shown(&mut twice, 160);
        for o in &observations {
            prop_assert_eq!(twice.apply_one(o, t(161)).changed, 0);
        }
        prop_assert_eq!(&before, &shown(&mut twice, 160));
        prop_assert_eq!(before, shown(&mut once, 160));
    }

    #[test]
    fn prices_are_those_of_an_independent_oracle(observations in prop::collection::vec(observation(), 1..40)) {
        let mut market = market();
        // Half at once as an answer, half as a stream.
        let (answer, stream) = observations.split_at(observations.len() / 2);
        market.apply(&aws(), Offerings { observations: answer.to_vec(), ..Offerings::default() }, t(160));
        for o in stream {
            market.apply_one(o, t(160));
        }
        for offer in shown(&mut market, 160) {
            prop_assert_eq!(offer.price, oracle_price(&observations, &offer.key), "{}", offer.key);
        }
    }

    #[test]
    fn snapshots_never_change_and_totals_are_sums(
        steps in prop::collection::vec(prop::collection::vec(observation(), 1..12), 1..8),
    ) {
        let mut market = market();
        let mut taken: Vec<(Arc<Snapshot>, String)> = Vec::new();
        let picture = |s: &Snapshot| {
            let rows: Vec<_> = s.with_histories().collect();
            format!("{} {} {rows:?} {:?}", s.at(), s.version(), s.feeds())
        };
        for (i, observations) in (0_i64..).zip(steps) {
            for o in &observations {
                market.apply_one(o, t(160));
            }
            if i % 3 == 2 {
                market.attempt(&key("r", 2), false, t(160));
            }
            let snapshot = market.snapshot(t(160 + i));
            let summary = snapshot.summary();
            prop_assert_eq!(summary.total.offers, snapshot.len());
            prop_assert_eq!(snapshot.iter().len(), snapshot.iter().count());
            let c = summary.total;
            prop_assert_eq!(c.available + c.limited + c.none + c.unknown, c.offers);
            let by_chip: usize = summary.by_accelerator.values().map(|c| c.offers).sum();
            prop_assert_eq!(by_chip, c.offers);
            for spread in spreads(&snapshot, None) {
                let parts = [&spread.on_demand, &spread.spot, &spread.reserved];
                prop_assert_eq!(parts.iter().map(|p| p.offers).sum::<usize>(), spread.all.offers);
                prop_assert_eq!(parts.iter().map(|p| p.unpriced).sum::<usize>(), spread.all.unpriced);
                let mut prices: Vec<_> = snapshot
                    .iter()
                    .filter(|o| o.shape.accelerator == spread.accelerator)
                    .filter_map(|o| o.price_per_gpu())
                    .collect();
                prices.sort_unstable();
                prop_assert_eq!(spread.all.min.as_ref().and_then(|o| o.price_per_gpu()), prices.first().copied());
                prop_assert_eq!(spread.all.max.as_ref().and_then(|o| o.price_per_gpu()), prices.last().copied());
            }
            prop_assert!(snapshot.iter().zip(snapshot.iter().skip(1)).all(|(a, b)| a.key < b.key));
            prop_assert!(snapshot.iter().all(|o| snapshot.get(&o.key).is_some_and(|g| Arc::ptr_eq(g, o))));
            taken.push((Arc::clone(&snapshot), picture(&snapshot)));
        }
        for (snapshot, before) in &taken {
            prop_assert_eq!(&picture(snapshot), before);
        }
        prop_assert!(taken.windows(2).all(|w| w[1].0.version() == w[0].0.version() + 1));
    }

    #[test]
    fn the_book_is_a_sorted_map_whatever_comes_and_goes(
        answers in prop::collection::vec((prop::collection::btree_set(0_usize..700, 0..400), any::<bool>()), 1..6),
    ) {
        let mut market = market();
        let mut expected: BTreeMap<OfferKey, f64> = BTreeMap::new();
        for (i, (numbers, whole)) in (0_i64..).zip(answers) {
            let (at, price) = (t(600 * i), 10.0 + i as f64);
            let rows: Vec<Observation> = numbers.iter().map(|n| seen(key("r", *n), at, price)).collect();
            if whole {
                expected.clear();
            }
            expected.extend(rows.iter().map(|o| (o.key.clone(), price)));
            insist(&mut market, &Offerings { observations: rows, complete: whole, ..Offerings::default() }, 600 * i);
            let snapshot = market.snapshot(t(600 * i + 180));
            let have: Vec<(OfferKey, Option<HourlyRate>)> = snapshot.iter().map(|o| (o.key.clone(), o.price)).collect();
            let want: Vec<_> = expected.iter().map(|(k, p)| (k.clone(), Some(usd(*p)))).collect();
            prop_assert_eq!(have, want);
            prop_assert_eq!(status(&snapshot).offers, expected.len());
            let points: usize = snapshot.with_histories().filter_map(|(_, h)| h).map(History::len).sum();
            prop_assert_eq!(market.history_points(), points);
        }
    }
}

#[test]
fn histories_together_stay_within_bounds() {
    let mut market = market();
    // A hundred offers fill their rings, then so many more come that everybody has to make room.
    for round in 0..100 {
        for i in 0..100 {
            market.apply_one(&seen(key("r", i), t(round), 10.0 + (round % 2) as f64), t(round));
        }
    }
    assert_eq!(market.history_points(), 100 * limits::HISTORY_POINTS_PER_OFFER);
    for round in 0..20 {
        for i in 0..10_000 {
            market.apply_one(&seen(key("s", i), t(200 + round), 10.0 + (round % 2) as f64), t(200 + round));
        }
    }
    let snapshot = market.snapshot(t(300));
    let points: usize = snapshot.with_histories().filter_map(|(_, h)| h).map(History::len).sum();
    assert_eq!(points, market.history_points());
    assert!(points <= limits::HISTORY_POINTS_TOTAL, "{points}");
    assert!(points >= 10_000 * limits::HISTORY_POINTS_FLOOR, "{points}");
}

#[test]
fn g4_only_touched_blocks_are_made_anew() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 5_000, t(0), 20.0)), t(0));
    let before = market.snapshot(t(0));
    market.apply_one(&seen(key("r", 77), t(1), 21.0), t(1));
    let after = market.snapshot(t(1));
    let (shared, all) = after.shared_blocks(&before);
    assert_eq!(all - shared, 1, "{shared} of {all}");
    let untouched = market.snapshot(t(2));
    assert_eq!(untouched.shared_blocks(&after), (all, all));
}

#[test]
fn a_feed_gone_mad_is_bounded() {
    // Names that never repeat must not pile up either.
    let mut market = market();
    for round in 0..3 {
        let rows = (0..2_000).map(|i| {
            let mut o = seen(key("r", 0), t(600 * round), 20.0);
            o.key.instance_type = format!("made-up-{round}-{i}").into();
            o
        });
        insist(&mut market, &complete(rows.collect()), 600 * round);
    }
    assert_eq!(market.len(), 2_000);
}
