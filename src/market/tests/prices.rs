//! Spreads, orders and counts.

use pretty_assertions::assert_eq;

use super::*;
use crate::domain::GpuHourlyRate;

fn row(provider: &str, region: &str, zone: usize, purchase: Purchase, price: Option<f64>) -> Offer {
    Offer {
        key: OfferKey { provider: provider.into(), purchase, ..key(region, zone) },
        shape: shape("p4d.24xlarge", "A100-40GB-SXM", 8),
        price: price.map(usd),
        price_is_live: true,
        availability: Availability::Available,
        evidence: Evidence::Api,
        observed_at: t(0),
        stale: false,
        capacity: None,
        quota: None,
        interruptions_per_day: None,
        jurisdiction: None,
    }
}
fn per_gpu(price: f64) -> GpuHourlyRate {
    GpuHourlyRate::from_usd(price).expect("a price")
}
fn price(offer: Option<&Arc<Offer>>) -> Option<GpuHourlyRate> {
    offer.and_then(|o| o.price_per_gpu())
}
fn close(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| (a - b).abs() < 1e-6)
}

/// Spot prices of one machine as they really were, zone by zone: the cheapest and the dearest are in other regions.
fn p4d() -> Vec<Offer> {
    let spot = Purchase::Spot;
    let mut rows = vec![
        row("aws", "us-east-1", 1, spot, Some(2.47)),
        row("aws", "us-east-1", 2, spot, Some(5.12)),
        row("aws", "us-east-1", 4, spot, Some(8.19)),
        row("aws", "us-east-2", 1, spot, Some(6.04)),
        row("aws", "us-east-2", 2, spot, Some(21.85)),
        row("aws", "us-east-1", 1, Purchase::OnDemand, Some(21.9576)),
        row("aws", "us-east-2", 1, Purchase::OnDemand, Some(21.9576)),
        row("aws", "us-west-2", 1, Purchase::Reserved, None),
    ];
    rows[0].availability = Availability::None;
    rows[4].stale = true;
    rows
}

#[test]
fn b11_the_whole_spread_is_told_by_purchase_and_not_only_the_cheapest() {
    let spread = spreads(&Snapshot::from_offers(t(0), p4d()), None).remove(0);
    assert_eq!((spread.all.offers, spread.spot.offers, spread.on_demand.offers, spread.reserved.offers), (8, 5, 2, 1));
    assert_eq!(price(spread.spot.min.as_ref()), Some(per_gpu(0.30875)));
    assert_eq!(price(spread.spot.min_available.as_ref()), Some(per_gpu(0.64)));
    assert_eq!(spread.spot.median, Some(per_gpu(6.04 / 8.0)));
    assert_eq!(price(spread.spot.max.as_ref()), Some(per_gpu(21.85 / 8.0)));
    assert!(close(spread.spot.spread_percent, (21.85 - 2.47) / 2.47 * 100.0), "{:?}", spread.spot.spread_percent);
    assert_eq!(spread.spot.max.expect("dearest").key.region, "us-east-2");
    assert!(close(spread.on_demand.spread_percent, 0.0));
}

#[test]
fn b11_the_spread_is_told_for_each_region_and_zone_too() {
    let snapshot = Snapshot::from_offers(t(0), p4d());
    let told = |by| -> Vec<(String, usize, Option<GpuHourlyRate>, Option<GpuHourlyRate>)> {
        let one = |s: Spread| {
            let (min, max) = (price(s.spot.min.as_ref()), price(s.spot.max.as_ref()));
            (s.place.expect("a place").to_string(), s.all.offers, min, max)
        };
        spreads_by(&snapshot, None, by).into_iter().map(one).collect()
    };
    let dollars = |usd: f64| Some(per_gpu(usd / 8.0));
    let regions = told(SpreadBy::Region);
    assert_eq!(regions.len(), 3);
    assert_eq!(regions[0], ("aws/us-east-1".into(), 4, dollars(2.47), dollars(8.19)));
    assert_eq!(regions[1], ("aws/us-east-2".into(), 3, dollars(6.04), dollars(21.85)));
    assert_eq!(regions[2], ("aws/us-west-2".into(), 1, None, None));
    let zones = told(SpreadBy::Zone);
    assert_eq!(zones.iter().map(|z| z.1).sum::<usize>(), 8, "no offer is lost or told twice");
    assert_eq!(zones.len(), 6);
    assert!(zones.iter().all(|z| z.2 == z.3), "one spot price in a zone");
}

#[test]
fn b12_each_figure_is_what_its_name_says() {
    let all = spreads(&Snapshot::from_offers(t(0), p4d()), None).remove(0).all;
    assert_eq!((all.unpriced, all.unavailable, all.stale), (1, 1, 1));
    assert_eq!(all.min.as_ref().expect("cheapest").availability, Availability::None, "the cheapest cannot be had");
    assert_eq!(price(all.min_available.as_ref()), Some(per_gpu(0.64)), "so the cheapest that can is told beside it");
    // Of 7 prices the fourth.
    assert_eq!(all.median, Some(per_gpu(8.19 / 8.0)));
}

#[test]
fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
    let rows = [1.0, 2.0, 4.0, 8.0].map(|p| row("aws", "r", p as usize, Purchase::Spot, Some(p * 8.0)));
    assert_eq!(spreads(&Snapshot::from_offers(t(0), rows), None).remove(0).all.median, Some(per_gpu(3.0)));
}

#[test]
fn b6_the_unpriced_are_counted_and_never_the_cheapest() {
    let rows = [None, Some(0.0), Some(80.0)].into_iter().enumerate();
    let rows = rows.map(|(i, p)| row("aws", "r", i, Purchase::Spot, p));
    let all = spreads(&Snapshot::from_offers(t(0), rows), None).remove(0).all;
    assert_eq!((all.offers, all.unpriced, price(all.min.as_ref())), (3, 2, Some(per_gpu(10.0))));
    let none = spreads(&Snapshot::from_offers(t(0), [row("aws", "r", 0, Purchase::Spot, None)]), None).remove(0).all;
    assert_eq!((none.offers, none.min, none.median, none.spread_percent), (1, None, None, None));
}

#[test]
fn the_spot_discount_compares_the_same_machine_in_the_same_region() {
    let spread = spreads(&Snapshot::from_offers(t(0), p4d()), None).remove(0);
    let discount = spread.spot_discount.expect("there are pairs");
    assert_eq!(discount.offers, 5);
    assert!(close(Some(discount.median_percent), (1.0 - 6.04 / 21.9576) * 100.0), "{discount:?}");
    // b10: a spot price above on-demand is a negative discount.
    let rows = [
        row("aws", "ca-central-1", 1, Purchase::Spot, Some(103.4)),
        row("aws", "ca-central-1", 1, Purchase::OnDemand, Some(63.8)),
        row("gcp", "ca-central-1", 1, Purchase::OnDemand, Some(200.0)),
    ];
    let discount = spreads(&Snapshot::from_offers(t(0), rows), None).remove(0).spot_discount.expect("a pair");
    assert!(close(Some(discount.median_percent), (1.0 - 103.4 / 63.8) * 100.0), "{discount:?}");
}

#[test]
fn only_the_chips_asked_for() {
    let mut rows = p4d();
    rows.push(Offer { shape: shape("p5", "H100-80GB-SXM", 8), ..row("aws", "r", 9, Purchase::Spot, Some(20.0)) });
    let snapshot = Snapshot::from_offers(t(0), rows);
    let only = [Accelerator::from_canonical("H100-80GB-SXM"), Accelerator::from_canonical("T4")];
    let names: Vec<String> = spreads(&snapshot, Some(&only)).iter().map(|s| s.accelerator.to_string()).collect();
    assert_eq!(names, ["H100-80GB-SXM"]);
}

#[test]
fn the_trend_is_the_median_change_and_says_over_how_long() {
    let mut market = market();
    let minute = |m: i64| t(m * 60);
    let prices =
        |at, price: [f64; 3]| complete(price.into_iter().enumerate().map(|(i, p)| seen(key("r", i), at, p)).collect());
    market.apply(&aws(), prices(minute(0), [10.0, 20.0, 40.0]), minute(0));
    assert_eq!(
        spreads(&market.snapshot(minute(30)), None).remove(0).trend,
        None,
        "half an hour tells nothing of a day"
    );
    market.apply(&aws(), prices(minute(120), [11.0, 21.0, 60.0]), minute(120));
    let trend = spreads(&market.snapshot(minute(120)), None).remove(0).trend.expect("two hours");
    assert!(close(Some(trend.median_percent), 10.0), "{trend:?}");
    assert_eq!((trend.offers, trend.over), (3, std::time::Duration::from_hours(2)));
    market.apply(&aws(), prices(minute(2000), [22.0, 21.0, 30.0]), minute(2000));
    let trend = spreads(&market.snapshot(minute(2000)), None).remove(0).trend.expect("more than a day");
    assert!(close(Some(trend.median_percent), 0.0), "against the price of a day ago: {trend:?}");
    assert_eq!(trend.over, std::time::Duration::from_hours(24));
}

#[test]
fn b23_sorting_by_price_is_total() {
    let mut rows = p4d();
    rows.push(row("aws", "a", 9, Purchase::Spot, Some(6.04)));
    rows.push(row("aws", "b", 9, Purchase::Spot, Some(0.0)));
    rows.sort_by(order::by_price);
    let shown: Vec<(Option<GpuHourlyRate>, &str)> =
        rows.iter().map(|o| (order::gpu_price(o), o.key.region.as_str())).collect();
    assert_eq!(shown.first(), Some(&(Some(per_gpu(0.30875)), "us-east-1")));
    assert_eq!(shown.last(), Some(&(None, "us-west-2")), "the unpriced last, by key");
    assert_eq!(shown.get(8), Some(&(None, "b")));
    let tie: Vec<&str> = shown.iter().filter(|s| s.0 == Some(per_gpu(0.755))).map(|s| s.1).collect();
    assert_eq!(tie, ["a", "us-east-2"]);
    assert!(rows.windows(2).all(|w| order::by_price(&w[0], &w[1]) == std::cmp::Ordering::Less));
}

#[test]
fn counts_are_of_the_rows_themselves() {
    let snapshot = Snapshot::from_offers(t(0), p4d());
    assert_eq!(snapshot.spreads(), spreads(&snapshot, None), "the kept ones are the same");
    let summary = snapshot.summary();
    let expected = Counts { offers: 8, unpriced: 1, available: 7, none: 1, stale: 1, ..Counts::default() };
    assert_eq!(summary.total, expected);
    assert_eq!(summary.by_accelerator.get(&Accelerator::from_canonical("A100-40GB-SXM")), Some(&expected));
}
