//! How feeds are doing.

use pretty_assertions::assert_eq;

use super::*;

const MINUTE: std::time::Duration = std::time::Duration::from_mins(1);

#[test]
fn op15_a_first_load_has_a_deadline_and_then_a_cause() {
    let mut market = market();
    market.expect(&aws(), MINUTE, t(0));
    assert_eq!(health(&mut market, t(10)), FeedHealth::Loading);
    let silent = status(&market.snapshot(t(11)));
    assert_eq!(
        (silent.health, silent.detail.as_str()),
        (FeedHealth::Down, "No answer within 10 s; it is still being asked.")
    );
    market.failed(&aws(), error(ErrorClass::Transient), t(12));
    let failed = status(&market.snapshot(t(12)));
    assert_eq!(failed.health, FeedHealth::Down);
    assert!(failed.detail.contains("[Broken]: it broke"), "{}", failed.detail);
    market.apply(&aws(), complete(many("r", 3, t(20), 20.0)), t(20));
    let live = status(&market.snapshot(t(20)));
    assert_eq!((live.health, live.detail.as_str(), live.failures, live.error), (FeedHealth::Live, "", 0, None));
}

#[test]
fn op15_a_first_poll_that_fails_says_so_while_it_is_loading() {
    let mut market = market();
    market.expect(&aws(), MINUTE, t(0));
    market.failed(&aws(), error(ErrorClass::Transient), t(1));
    let status = status(&market.snapshot(t(2)));
    assert_eq!(status.health, FeedHealth::Loading);
    assert!(
        status.detail.starts_with("The first poll failed. aws DescribeSpotPriceHistory: transient [Broken]: it broke.")
    );
}

#[test]
fn op14_one_failed_poll_turns_nothing_stale() {
    let mut market = market();
    market.expect(&aws(), MINUTE, t(0));
    market.apply(&aws(), complete(many("r", 30, t(0), 20.0)), t(0));
    market.failed(&aws(), error(ErrorClass::Transient), t(60));
    let snapshot = market.snapshot(t(60));
    assert_eq!(status(&snapshot).health, FeedHealth::Live);
    assert_eq!(status(&snapshot).failures, 1, "though it is told");
    assert!(status(&snapshot).detail.starts_with("The last 1 poll failed; the values of "));
    assert!(snapshot.iter().all(|o| !o.stale && o.price == Some(usd(20.0))));
    market.failed(&aws(), error(ErrorClass::Transient), t(65));
    assert_eq!(health(&mut market, t(65)), FeedHealth::Live);
    market.failed(&aws(), error(ErrorClass::Transient), t(70));
    assert_eq!(health(&mut market, t(70)), FeedHealth::Stale, "three in a row are a fact");
    assert_eq!(health(&mut market, t(601)), FeedHealth::Down);
    assert_eq!(market.snapshot(t(601)).len(), 30, "and the last values are still there");
}

#[test]
fn op13_refused_credentials_show_at_once_and_stay_until_an_answer() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 3, t(0), 20.0)), t(0));
    market.failed(&aws(), error(ErrorClass::Auth), t(1));
    let refused = status(&market.snapshot(t(1)));
    assert_eq!(refused.health, FeedHealth::AuthNeeded);
    assert!(refused.detail.contains("gpudeck doctor"), "{}", refused.detail);
    market.failed(&aws(), error(ErrorClass::Transient), t(2));
    assert_eq!(health(&mut market, t(2)), FeedHealth::AuthNeeded);
    market.apply(&aws(), complete(many("r", 3, t(3), 20.0)), t(3));
    assert_eq!(health(&mut market, t(3)), FeedHealth::Live);
}

#[test]
fn op13_no_answer_for_two_intervals_is_stale_even_without_an_error() {
    let mut market = market();
    market.expect(&aws(), MINUTE, t(0));
    market.apply(&aws(), complete(many("r", 3, t(0), 20.0)), t(0));
    assert_eq!(health(&mut market, t(120)), FeedHealth::Live);
    let stale = status(&market.snapshot(t(121)));
    assert_eq!(stale.health, FeedHealth::Stale);
    assert_eq!(stale.detail, "No answer since 00:00:00Z, though one is due every 60 s.");
    assert!(market.snapshot(t(121)).iter().all(|o| o.stale));
}

#[test]
fn c5_one_dead_feed_of_nine_leaves_the_others_alone() {
    let mut market = market();
    let clouds: Vec<ProviderId> = (0..9).map(|i| format!("cloud{i}").into()).collect();
    for (i, cloud) in clouds.iter().enumerate() {
        market.expect(cloud, MINUTE, t(0));
        if i == 4 {
            market.failed(cloud, ProviderError::new(ErrorClass::Transient, cloud, "List", "500"), t(20));
        } else {
            let row = seen(OfferKey { provider: cloud.clone(), ..key("r", 0) }, t(20), 20.0);
            market.apply(cloud, complete(vec![row]), t(20));
        }
    }
    let snapshot = market.snapshot(t(20));
    let live = snapshot.feeds().iter().filter(|f| f.health == FeedHealth::Live).count();
    assert_eq!((snapshot.len(), live), (8, 8));
    assert_eq!(snapshot.feeds()[4].health, FeedHealth::Down);
    assert!(snapshot.feeds()[4].detail.contains("500"), "c7: the cause, not 'no capacity'");
}

#[test]
fn c7_an_answer_in_which_every_region_failed_is_a_failure() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 30, t(0), 20.0)), t(0));
    let failed = vec![error_in("r", ErrorClass::Transient), error_in("s", ErrorClass::Auth)];
    market.apply(&aws(), Offerings { failed, complete: true, ..Offerings::default() }, t(60));
    let snapshot = market.snapshot(t(60));
    assert_eq!((status(&snapshot).health, snapshot.len()), (FeedHealth::AuthNeeded, 30));
}

#[test]
fn c5_failed_regions_keep_their_rows_and_their_age() {
    let mut market = market();
    let both = |at| [many("r", 5, at, 20.0), many("s", 5, at, 20.0)].concat();
    market.apply(&aws(), complete(both(t(0))), t(0));
    let half = Offerings { failed: vec![error_in("s", ErrorClass::Throttled)], ..complete(many("r", 4, t(121), 21.0)) };
    let applied = market.apply(&aws(), half, t(121));
    let snapshot = market.snapshot(t(121));
    let partial = status(&snapshot);
    assert_eq!(partial.health, FeedHealth::Partial);
    assert_eq!(partial.detail, "1 region did not answer: s (throttled); their last values are shown with their age.");
    assert_eq!(applied.retired, 1, "only in the region that answered");
    assert_eq!(snapshot.iter().filter(|o| o.key.region == "s" && o.stale && o.observed_at == t(0)).count(), 5);
    assert_eq!(snapshot.iter().filter(|o| o.key.region == "r" && !o.stale).count(), 4);
}

#[test]
fn a_retired_offer_is_gone_from_the_next_snapshot_though_its_neighbours_did_not_change() {
    let mut market = market();
    let regions = [("a", 100), ("p", 60), ("r", 10), ("s", 60)].map(|(region, rows)| many(region, rows, t(0), 20.0));
    market.apply(&aws(), complete(regions.concat()), t(0));
    assert_eq!(market.snapshot(t(0)).len(), 230);
    // Region r is gone, the regions around it are silent: nothing else in its block is touched.
    let failed = vec![error_in("p", ErrorClass::Transient), error_in("s", ErrorClass::Transient)];
    market.apply(&aws(), Offerings { failed, ..complete(many("a", 100, t(60), 20.0)) }, t(60));
    let snapshot = market.snapshot(t(60));
    assert_eq!((snapshot.len(), snapshot.iter().filter(|o| o.key.region == "r").count()), (220, 0));
    assert!(snapshot.iter().all(|o| snapshot.get(&o.key).is_some()));
}

#[test]
fn an_answer_without_most_rows_is_held_back_until_it_is_repeated() {
    let mut market = market();
    let told = |market: &mut Market, s| market.transitions(t(s)).into_iter().map(|f| f.detail).collect::<Vec<_>>();
    market.apply(&aws(), complete(many("r", 60, t(0), 20.0)), t(0));
    told(&mut market, 0);
    for (at, condition) in [
        (60, "believed when 2 more answers agree, from 00:04:00Z on."),
        (120, "believed when 1 more answer agrees, from 00:04:00Z on."),
        // A few percent of prices and rows may come and go.
        (180, "believed when 1 more answer agrees, from 00:04:00Z on."),
        (239, "believed when 1 more answer agrees, from 00:04:00Z on."),
    ] {
        let price = 21.0 + f64::from(i32::try_from(at).expect("small")) / 1_000.0;
        let applied = market.apply(&aws(), complete(many("r", 10, t(at), price)), t(at));
        assert!(applied.quarantined);
        let snapshot = market.snapshot(t(at));
        let held = status(&snapshot);
        assert_eq!((held.health, snapshot.len()), (FeedHealth::Quarantined, 60));
        assert!(held.detail.starts_with("It answered without 50 of the 60 offers that it had; not believed yet, "));
        assert!(held.detail.ends_with(condition), "{}", held.detail);
        assert!(snapshot.iter().all(|o| o.price == Some(usd(20.0)) && o.observed_at == t(0)));
    }
    assert_eq!(told(&mut market, 239).len(), 1, "quarantined, once");
    assert!(!market.apply(&aws(), complete(many("r", 10, t(240), 21.0)), t(240)).quarantined);
    assert_eq!((health(&mut market, t(240)), market.len()), (FeedHealth::Live, 10));
    let believed =
        "It answered without 50 of the 60 offers that it had; 5 answers alike since 00:01:00Z: believed now.";
    assert_eq!(told(&mut market, 240), [believed]);
    assert_eq!(status(&market.snapshot(t(241))).detail, "", "told once");
    // And the next loss is held back like the first.
    market.apply(&aws(), complete(many("r", 60, t(300), 21.0)), t(300));
    assert!(market.apply(&aws(), complete(many("r", 10, t(360), 21.0)), t(360)).quarantined);
}

#[test]
fn answers_in_a_hurry_are_not_believed_sooner() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 60, t(0), 20.0)), t(0));
    for at in 60..240 {
        assert!(market.apply(&aws(), complete(many("r", 10, t(at), 20.0)), t(at)).quarantined, "at {at}");
    }
    assert!(!market.apply(&aws(), complete(many("r", 10, t(240), 20.0)), t(240)).quarantined);
}

#[test]
fn answers_that_do_not_agree_or_are_not_whole_do_not_count() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 60, t(0), 20.0)), t(0));
    // As many rows, and prices that jump about: nobody knows what is true.
    for (n, price) in [400.0, 300.0, 500.0, 400.0, 600.0, 400.0].into_iter().enumerate() {
        let at = 60 * (i64::try_from(n).expect("small") + 1);
        assert!(market.apply(&aws(), complete(many("r", 60, t(at), price)), t(at)).quarantined, "{price}");
    }
    // A region is silent meanwhile: half an answer is no witness.
    for n in 7..12 {
        let failed = vec![error_in("s", ErrorClass::Transient)];
        let half = Offerings { failed, ..complete(many("r", 60, t(60 * n), 400.0)) };
        assert!(market.apply(&aws(), half, t(60 * n)).quarantined);
    }
    let held = status(&market.snapshot(t(420)));
    assert!(held.detail.contains("believed when 2 more answers agree"), "{}", held.detail);
    for n in 12..14 {
        let quarantined = market.apply(&aws(), complete(many("r", 60, t(60 * n), 400.0)), t(60 * n)).quarantined;
        assert_eq!(quarantined, n == 12);
    }
    assert!(market.snapshot(t(780)).iter().all(|o| o.price == Some(usd(400.0))));
}

#[test]
fn a_held_back_answer_is_forgotten_when_the_next_is_whole() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 60, t(0), 20.0)), t(0));
    assert!(market.apply(&aws(), complete(vec![]), t(60)).quarantined);
    market.apply(&aws(), complete(many("r", 59, t(120), 20.0)), t(120));
    assert_eq!((health(&mut market, t(120)), market.len()), (FeedHealth::Live, 59));
    // The count of answers alike begins anew.
    assert!(market.apply(&aws(), complete(many("r", 5, t(180), 20.0)), t(180)).quarantined);
    assert!(market.apply(&aws(), complete(many("r", 25, t(240), 20.0)), t(240)).quarantined);
    assert!(market.apply(&aws(), complete(many("r", 5, t(300), 20.0)), t(300)).quarantined, "they did not agree");
}

#[test]
fn b9_prices_that_all_jump_or_vanish_are_held_back_and_a_real_rise_is_not() {
    for (price, held) in [(201.0, true), (1.9, true), (0.0, true), (110.0, false), (4.0, false)] {
        let mut market = market();
        market.apply(&aws(), complete(many("r", 6, t(0), 20.0)), t(0));
        let applied = market.apply(&aws(), complete(many("r", 6, t(60), price)), t(60));
        assert_eq!(applied.quarantined, held, "{price}");
        let shown = if held { 20.0 } else { price };
        assert!(market.snapshot(t(60)).iter().all(|o| o.price == Some(usd(shown))), "{price}");
    }
}

#[test]
fn a_small_pool_may_be_sold_out_in_a_minute() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 20, t(0), 20.0)), t(0));
    assert_eq!(market.apply(&aws(), complete(vec![]), t(60)).retired, 20);
}

#[test]
fn a_provider_without_credentials_says_how_to_add_them() {
    let mut market = market();
    market.absent(&aws(), "No AWS credentials were found.", "Run `aws configure sso`.", t(0));
    let absent = status(&market.snapshot(t(99)));
    assert_eq!(absent.health, FeedHealth::NoCredentials);
    assert_eq!(absent.detail, "No AWS credentials were found. Run `aws configure sso`.");
    market.expect(&aws(), MINUTE, t(100));
    assert_eq!(health(&mut market, t(105)), FeedHealth::Loading, "the deadline counts from when it is asked");
}

#[test]
fn a_feed_of_published_prices_says_so() {
    let mut market = market();
    let row = Observation {
        price: Some(PriceStatement::Published(usd(20.0))),
        availability: Some((Availability::Unknown, Evidence::Catalogue)),
        ..seen(key("r", 0), t(-86_400), 0.0)
    };
    market.publish(&aws(), std::slice::from_ref(&row), t(0));
    assert_eq!(health(&mut market, t(1)), FeedHealth::Loading, "a table is not an answer");
    market.apply(&aws(), complete(vec![row]), t(2));
    assert_eq!(health(&mut market, t(3)), FeedHealth::Published);
}

#[test]
fn rows_that_could_not_be_used_are_counted_with_their_reasons() {
    let mut market = market();
    let skipped = [("no memory size".to_owned(), 3), ("not a number".to_owned(), 1)].into();
    market.apply(&aws(), Offerings { skipped, ..complete(many("r", 3, t(0), 20.0)) }, t(0));
    market.apply(
        &aws(),
        Offerings { skipped: [("x".to_owned(), 2)].into(), ..complete(many("r", 3, t(1), 20.0)) },
        t(1),
    );
    let snapshot = market.snapshot(t(1));
    assert_eq!(snapshot.feed_counts(&aws()).expect("feed").skipped, 6);
    assert_eq!(snapshot.skipped(&aws()), Some(&[("x".to_owned(), 2)].into()), "of the last answer");
}

#[test]
fn a_faster_world_has_more_patience_of_its_own() {
    let mut market = market().with_first_answer_deadline(std::time::Duration::from_mins(10));
    market.expect(&aws(), MINUTE, t(0));
    assert_eq!(health(&mut market, t(600)), FeedHealth::Loading);
    assert!(status(&market.snapshot(t(601))).detail.starts_with("No answer within 10 min;"));
}

#[test]
fn transitions_are_told_once() {
    let mut market = market();
    market.expect(&aws(), MINUTE, t(0));
    let told = |market: &mut Market, s| market.transitions(t(s)).into_iter().map(|f| f.health).collect::<Vec<_>>();
    assert_eq!(told(&mut market, 0), [FeedHealth::Loading]);
    market.apply(&aws(), complete(many("r", 3, t(1), 20.0)), t(1));
    assert_eq!(told(&mut market, 1), [FeedHealth::Live]);
    assert_eq!(told(&mut market, 60), []);
    assert_eq!(told(&mut market, 122), [FeedHealth::Stale]);
}

#[test]
fn a_stream_keeps_a_feed_alive_but_does_not_heal_failed_polls() {
    let mut market = market();
    market.expect(&aws(), MINUTE, t(0));
    market.apply_one(&seen(key("r", 0), t(5), 20.0), t(5));
    assert_eq!(health(&mut market, t(20)), FeedHealth::Live);
    for i in 0..3 {
        market.failed(&aws(), error(ErrorClass::Transient), t(30 + i));
    }
    market.apply_one(&seen(key("r", 0), t(40), 20.0), t(40));
    assert_eq!(health(&mut market, t(40)), FeedHealth::Stale);
}
