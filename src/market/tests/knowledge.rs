//! What is known of one offer.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn what_an_observation_does_not_say_stays_as_it_is() {
    let mut market = market();
    market.apply_one(&seen(key("r", 0), t(0), 20.0), t(0));
    let silent =
        Observation { at: t(10), price: None, availability: None, capacity: Some(3), ..seen(key("r", 0), t(10), 1.0) };
    market.apply_one(&silent, t(10));
    let offer = offer(&mut market, &key("r", 0), t(10));
    assert_eq!((offer.price, offer.availability, offer.capacity), (Some(usd(20.0)), Availability::Available, Some(3)));
    assert_eq!(offer.observed_at, t(0), "as old as its oldest live fact");
}

#[test]
fn a_late_older_observation_changes_nothing() {
    let mut market = market();
    market.apply_one(&seen(key("r", 0), t(60), 20.0), t(60));
    market.apply_one(&seen(key("r", 0), t(0), 10.0), t(61));
    let snapshot = market.snapshot(t(61));
    assert_eq!(snapshot.get(&key("r", 0)).expect("offer").price, Some(usd(20.0)));
    assert_eq!(snapshot.history(&key("r", 0)).expect("history").len(), 1, "the past is not rewritten");
}

#[test]
fn a_published_price_does_not_replace_a_fresher_live_one() {
    let mut market = market();
    let published = |at, price| Observation {
        price: Some(PriceStatement::Published(usd(price))),
        availability: Some((Availability::Unknown, Evidence::Catalogue)),
        ..seen(key("r", 0), at, 0.0)
    };
    market.publish(&aws(), &[published(t(-86_400), 30.0)], t(0));
    let before = offer(&mut market, &key("r", 0), t(0));
    assert_eq!((before.price, before.price_is_live, before.observed_at), (Some(usd(30.0)), false, t(-86_400)));
    assert!(!before.stale, "a table of yesterday is good for a quarter");

    market.apply_one(&seen(key("r", 0), t(1), 20.0), t(1));
    market.publish(&aws(), &[published(t(-3600), 31.0)], t(2));
    let after = offer(&mut market, &key("r", 0), t(2));
    assert_eq!(
        (after.price, after.price_is_live, after.availability),
        (Some(usd(20.0)), true, Availability::Available)
    );
    let snapshot = market.snapshot(t(2));
    let history = snapshot.history(&key("r", 0)).expect("history");
    assert_eq!(history.points().map(|p| p.price).collect::<Vec<_>>(), [Some(usd(20.0))], "no step from another source");
}

/// A listing of now says nothing of the price, which stays of the table's date for everybody who looks.
#[test]
fn a_listing_of_now_does_not_make_a_table_s_price_look_fresh() {
    let mut market = market();
    let table = t(-14_000_000);
    let priced = Observation {
        price: Some(PriceStatement::Published(usd(30.0))),
        availability: None,
        ..seen(key("r", 0), table, 0.0)
    };
    let listed = Observation {
        price: None,
        availability: Some((Availability::Available, Evidence::Api)),
        ..seen(key("r", 0), t(0), 0.0)
    };
    market.apply(&aws(), complete(vec![priced, listed]), t(0));
    let offer = offer(&mut market, &key("r", 0), t(1));
    assert_eq!((offer.price, offer.price_is_live, offer.observed_at), (Some(usd(30.0)), false, table));
    assert_eq!((offer.availability, offer.stale), (Availability::Available, false));
}

#[test]
fn b6_a_price_of_zero_is_unknown() {
    let mut market = market();
    market.apply(&aws(), complete(vec![seen(key("r", 0), t(0), 0.0), seen(key("r", 1), t(0), -1.0)]), t(0));
    let snapshot = market.snapshot(t(0));
    assert!(snapshot.iter().all(|o| o.price.is_none() && !o.price_is_live));
    assert_eq!(snapshot.feed_counts(&aws()).expect("feed").not_a_price, 2);
    assert_eq!(snapshot.len(), 2, "and not hidden");
}

#[test]
fn b6_an_offer_that_loses_its_price_is_unpriced_until_it_has_one_again() {
    let mut market = market();
    market.apply_one(&seen(key("r", 0), t(0), 20.0), t(0));
    market.apply_one(&Observation { price: Some(PriceStatement::Unpriced), ..seen(key("r", 0), t(60), 1.0) }, t(60));
    assert_eq!(offer(&mut market, &key("r", 0), t(60)).price, None);
    market.apply_one(&seen(key("r", 0), t(120), 21.0), t(120));
    assert_eq!(offer(&mut market, &key("r", 0), t(120)).price, Some(usd(21.0)));
}

#[test]
fn c2_an_unknown_accelerator_is_shown_as_unknown() {
    let mut market = market();
    let mut odd = seen(key("r", 0), t(0), 50.0);
    odd.shape = Arc::new(Shape { accelerator: Accelerator::unknown("B300 SXM6 262GB"), ..(*odd.shape).clone() });
    market.apply(&aws(), complete(vec![odd, seen(key("r", 1), t(0), 20.0)]), t(0));
    let snapshot = market.snapshot(t(0));
    assert_eq!(snapshot.len(), 2);
    let names: Vec<String> = spreads(&snapshot, None).iter().map(|s| s.accelerator.to_string()).collect();
    assert_eq!(names, ["H100-80GB-SXM", "unknown:B300 SXM6 262GB"]);
}

#[test]
fn c3_what_is_only_listed_is_neither_available_nor_sold_out() {
    let mut market = market();
    let listed = Observation { availability: None, ..seen(key("r", 0), t(0), 20.0) };
    market.apply(&aws(), complete(vec![listed]), t(0));
    let offer = offer(&mut market, &key("r", 0), t(0));
    assert_eq!((offer.availability, offer.evidence), (Availability::Unknown, Evidence::Catalogue));
}

#[test]
fn a_refused_launch_is_remembered_and_fades() {
    let mut market = market();
    market.apply_one(&seen(key("r", 0), t(0), 20.0), t(0));
    market.attempt(&key("r", 0), false, t(10));
    let at = |market: &mut Market, s| {
        // The listing goes on saying "available" all the while, for the price to stay fresh.
        let listing = Observation { availability: None, ..seen(key("r", 0), t(s), 20.0) };
        market.apply_one(&listing, t(s));
        let o = offer(market, &key("r", 0), t(s));
        (o.availability, o.evidence)
    };
    assert_eq!(at(&mut market, 10), (Availability::None, Evidence::Attempt));
    assert_eq!(at(&mut market, 10 + 179), (Availability::None, Evidence::Attempt));
    assert_eq!(at(&mut market, 10 + 180), (Availability::Limited, Evidence::Attempt));
    assert_eq!(at(&mut market, 10 + 3599), (Availability::Limited, Evidence::Attempt));
    assert_eq!(at(&mut market, 10 + 3600), (Availability::Available, Evidence::Api));
}

#[test]
fn a_refusal_beats_a_listing_for_minutes_and_yields_to_the_providers_own_count_then() {
    let mut market = market();
    market.apply_one(&seen(key("r", 0), t(0), 20.0), t(0));
    market.attempt(&key("r", 0), false, t(10));
    market.apply_one(&seen(key("r", 0), t(60), 20.0), t(60));
    assert_eq!(offer(&mut market, &key("r", 0), t(60)).availability, Availability::None);
    assert_eq!(offer(&mut market, &key("r", 0), t(200)).availability, Availability::Available);
    // A grant afterwards ends the refusal at once.
    market.attempt(&key("r", 0), false, t(210));
    market.attempt(&key("r", 0), true, t(220));
    let o = offer(&mut market, &key("r", 0), t(221));
    assert_eq!((o.availability, o.evidence), (Availability::Available, Evidence::Attempt));
}

#[test]
fn a_count_from_before_the_news_that_there_is_none_is_no_count() {
    let mut market = market();
    market.apply_one(&Observation { capacity: Some(4), ..seen(key("r", 0), t(0), 20.0) }, t(0));
    market.attempt(&key("r", 0), false, t(10));
    assert_eq!(offer(&mut market, &key("r", 0), t(10)).capacity, None);
}

#[test]
fn an_observation_from_the_future_is_taken_as_of_now() {
    let mut market = market();
    market.apply_one(&seen(key("r", 0), t(86_400), 20.0), t(0));
    market.apply_one(&seen(key("r", 1), t(60), 20.0), t(0));
    let snapshot = market.snapshot(t(0));
    assert_eq!(snapshot.get(&key("r", 0)).expect("offer").observed_at, t(0));
    assert_eq!(age(snapshot.get(&key("r", 1)).expect("offer"), t(0)), std::time::Duration::ZERO);
    assert_eq!(snapshot.feed_counts(&aws()).expect("feed").clamped, 1, "a minute is forgiven, a day is not");
    market.apply_one(&seen(key("r", 0), t(30), 21.0), t(30));
    assert_eq!(offer(&mut market, &key("r", 0), t(30)).price, Some(usd(21.0)), "and it does not block what follows");
}

#[test]
fn a_complete_answer_retires_what_it_does_not_list() {
    let mut market = market();
    market.apply(&aws(), complete(many("r", 10, t(0), 20.0)), t(0));
    let applied = market.apply(&aws(), complete(many("r", 8, t(60), 20.0)), t(60));
    assert_eq!((applied.retired, market.len()), (2, 8));
    let snapshot = market.snapshot(t(60));
    assert_eq!((status(&snapshot).offers, snapshot.feed_counts(&aws()).expect("feed").retired), (8, 2));
    // An older answer that arrives late does not bring them back, nor does a late stream.
    market.apply(&aws(), complete(many("r", 10, t(30), 20.0)), t(61));
    market.apply_one(&seen(key("r", 9), t(59), 20.0), t(62));
    assert_eq!((market.len(), market.snapshot(t(62)).feed_counts(&aws()).expect("feed").outdated), (8, 3));
    // A newer one does.
    market.apply_one(&seen(key("r", 9), t(63), 20.0), t(63));
    assert_eq!(market.len(), 9);
}

#[test]
fn another_providers_offers_are_refused() {
    let mut market = market();
    market.apply(&"gcp".into(), complete(many("r", 3, t(0), 20.0)), t(0));
    assert_eq!(market.len(), 0);
    assert_eq!(market.snapshot(t(0)).feed_counts(&"gcp".into()).expect("feed").foreign, 3);
}

#[test]
fn c1_c8_rows_go_stale_and_expire_by_their_own_age() {
    let mut market = market();
    market.expect(&aws(), std::time::Duration::from_secs(30), t(0));
    market.apply(&aws(), complete(vec![seen(key("r", 0), t(0), 20.0)]), t(0));
    let at = |market: &mut Market, s| {
        let o = offer(market, &key("r", 0), t(s));
        (o.stale, freshness(&o, t(s)), o.price)
    };
    assert_eq!(at(&mut market, 60), (false, Freshness::Fresh, Some(usd(20.0))));
    assert_eq!(at(&mut market, 61), (true, Freshness::Stale, Some(usd(20.0))), "twice the poll interval");
    assert_eq!(at(&mut market, 600), (true, Freshness::Stale, Some(usd(20.0))));
    assert_eq!(at(&mut market, 601), (true, Freshness::Expired, Some(usd(20.0))), "kept, and shown as ?");
    // A clock that was set back makes it young again.
    assert_eq!(at(&mut market, 20), (false, Freshness::Fresh, Some(usd(20.0))));
    // A longer interval is a longer patience.
    market.expect(&aws(), std::time::Duration::from_mins(5), t(20));
    assert!(!at(&mut market, 600).0);
}

#[test]
fn c1_a_price_from_the_providers_own_list_holds_for_hours_and_no_longer() {
    let mut market = market();
    market.expect(&aws(), std::time::Duration::from_mins(1), t(0));
    let listed = Observation {
        price: Some(PriceStatement::Listed(usd(20.0))),
        availability: None,
        ..seen(key("r", 0), t(0), 0.0)
    };
    // The list is read once, the listing every minute.
    let listing = |s| Observation { price: None, ..seen(key("r", 0), t(s), 0.0) };
    let at = |market: &mut Market, s: i64| {
        market.apply(&aws(), complete(vec![listed.clone(), listing(s)]), t(s));
        let o = offer(market, &key("r", 0), t(s));
        (o.stale, freshness(&o, t(s)), o.price, o.price_is_live)
    };
    for s in [0, 3_000, 10_000] {
        assert_eq!(at(&mut market, s), (false, Freshness::Fresh, Some(usd(20.0)), true), "{s}");
    }
    let three_hours = 3 * 3_600;
    assert_eq!(at(&mut market, three_hours + 60), (true, Freshness::Expired, Some(usd(20.0)), true));
    // And without a listing it ages like everything else.
    let o = offer(&mut market, &key("r", 0), t(three_hours + 600));
    assert!(o.stale);
}

#[test]
fn on_demand_is_not_interrupted_and_spot_without_evidence_is_unknown() {
    let mut market = market();
    let on_demand = OfferKey { purchase: Purchase::OnDemand, ..key("r", 0) };
    market.apply(&aws(), complete(vec![seen(key("r", 0), t(0), 9.0), seen(on_demand.clone(), t(0), 20.0)]), t(0));
    assert_eq!(offer(&mut market, &key("r", 0), t(0)).interruptions_per_day, None);
    assert_eq!(offer(&mut market, &on_demand, t(0)).interruptions_per_day, Some(0.0));
    let nonsense = Observation { interruptions_per_day: Some(f64::NAN), ..seen(key("r", 0), t(1), 9.0) };
    market.apply_one(&nonsense, t(1));
    assert_eq!(offer(&mut market, &key("r", 0), t(1)).interruptions_per_day, None);
}

#[test]
fn a_place_has_its_law_from_the_catalogue() {
    fn law(provider: &str, region: &str) -> Option<&'static str> {
        (provider == "aws" && region == "eu-west-1").then_some("EU")
    }
    let mut market = Market::new(law);
    market.apply(&aws(), complete(vec![seen(key("eu-west-1", 0), t(0), 9.0), seen(key("mars-1", 0), t(0), 9.0)]), t(0));
    assert_eq!(offer(&mut market, &key("eu-west-1", 0), t(0)).jurisdiction.as_deref(), Some("EU"));
    assert_eq!(offer(&mut market, &key("mars-1", 0), t(0)).jurisdiction, None);
}
