use chrono::TimeZone;
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Location {
    text.parse().unwrap()
}

/// Every provider and region of the list of egress prices.
fn listed() -> Vec<Location> {
    let mut places: Vec<Location> = Published::bundled().egress_prices().map(|(from, ..)| from.clone()).collect();
    places.dedup();
    places
}

fn ms(from: &str, to: &str) -> (f64, LatencySource) {
    let latency = Network::published().latency(&at(from), &at(to)).unwrap();
    (latency.p50_ms, latency.source)
}

fn usd(from: &str, to: &str, gb: f64) -> f64 {
    Network::published().egress(&at(from), &at(to), gb / GB_PER_GIB).unwrap().to_usd()
}

fn measurement(from: &str, to: &str, p50_ms: f64, day: u32) -> Latency {
    Latency {
        from: at(from),
        to: at(to),
        p50_ms,
        p99_ms: Some(p50_ms * 2.0),
        jitter_ms: None,
        loss_percent: Some(0.0),
        samples: Some(20),
        source: LatencySource::Measured,
        observed_at: Utc.with_ymd_and_hms(2026, 11, day, 0, 0, 0).single(),
    }
}

#[test]
fn published_round_trips_are_the_means_and_have_a_date() {
    let latency = Network::published().latency(&at("aws/us-east-1"), &at("aws/us-west-2/usw2-az1")).unwrap();
    assert!((latency.p50_ms - 68.3).abs() < 0.05);
    assert_eq!(latency.source, LatencySource::Published);
    assert_eq!(latency.observed_at.unwrap().to_rfc3339(), "2022-01-01T00:00:00+00:00");
    assert_eq!((latency.p99_ms, latency.samples), (None, None));
    assert!(latency.jitter_ms.is_some());
    assert_eq!(latency.to, at("aws/us-west-2/usw2-az1"), "the zone is kept");
    for (from, to, published) in [
        ("aws/us-east-1", "aws/eu-central-1", 89.8),
        ("aws/us-east-1", "aws/ap-northeast-1", 167.8),
        ("aws/eu-west-1", "azure/northeurope", 1.54),
        ("aws/us-east-1", "azure/eastus", 1.87),
        ("aws/us-east-1", "gcp/us-east4", 2.76),
    ] {
        assert!((ms(from, to).0 - published).abs() < 0.06, "{from} {to}: {}", ms(from, to).0);
    }
    // Its minimum is 0.9 ms, which is faster than light.
    assert!(ms("aws/ap-southeast-2", "aws/us-west-2").0 > 130.0);
}

#[test]
fn a_round_trip_goes_both_ways_and_zones_do_not_matter() {
    // From GCP nothing was measured, to it everything.
    assert_eq!(ms("gcp/us-east4", "aws/us-east-1"), ms("aws/us-east-1", "gcp/us-east4"));
    assert_eq!(ms("aws/us-east-1/use1-az1", "aws/us-east-1/use1-az4"), (SAME_REGION_MS, LatencySource::Estimated));
}

#[test]
fn what_nobody_measured_is_estimated_from_the_distance_and_marked() {
    let (near, source) = ms("gcp/us-east4", "gcp/us-central1");
    assert_eq!(source, LatencySource::Estimated);
    assert!((15.0..45.0).contains(&near), "{near}");
    let latency = Network::published().latency(&at("verda/FIN-01"), &at("aws/eu-north-1")).unwrap();
    assert_eq!((latency.source, latency.observed_at, latency.jitter_ms), (LatencySource::Estimated, None, None));
    for nowhere in ["hyperbolic/default", "runpod/US", "aws/nowhere-1", "nobody/x"] {
        assert_eq!(Network::published().latency(&at("aws/us-east-1"), &at(nowhere)), None, "{nowhere}");
    }
}

#[test]
fn the_estimate_is_as_good_as_its_description_says() {
    let mut off: Vec<f64> = Network::published()
        .pairs()
        .map(|l| {
            let place = |at: &Location| regions::facts(at.provider.as_str(), at.region.as_str()).unwrap();
            (l.p50_ms / estimate::round_trip_ms(place(&l.from), place(&l.to)).unwrap() - 1.0).abs()
        })
        .collect();
    off.sort_by(f64::total_cmp);
    assert!((0.14..0.16).contains(&off[off.len() / 2]), "{}", off[off.len() / 2]);
    assert!((0.45..0.50).contains(&off[off.len() * 9 / 10]), "{}", off[off.len() * 9 / 10]);
}

#[test]
fn no_figure_is_faster_than_light() {
    for l in Network::published().pairs() {
        let place = |at: &Location| regions::facts(at.provider.as_str(), at.region.as_str()).unwrap();
        let light_ms = 2.0 * estimate::distance_km(place(&l.from), place(&l.to)) / 299.792;
        assert!(l.p50_ms > light_ms, "{} {}", l.from, l.to);
    }
}

#[test]
fn measured_comes_before_published_and_the_newest_measurement_counts() {
    let network = Network::published().with_measurements(vec![
        measurement("aws/us-east-1/use1-az1", "aws/us-west-2", 61.0, 5),
        measurement("aws/us-east-1", "aws/us-west-2", 62.0, 6),
        measurement("aws/us-east-1", "aws/us-west-2", 63.0, 4),
        measurement("hyperbolic/default", "aws/us-east-1", 12.0, 4),
        measurement("hyperbolic/default", "aws/eu-west-1", f64::NAN, 4),
        measurement("aws/us-east-1/use1-az1", "aws/us-east-1/use1-az2", 0.4, 4),
    ]);
    let latency = |from, to| network.latency(&at(from), &at(to)).unwrap();
    let there = latency("aws/us-east-1", "aws/us-west-2");
    assert_eq!((there.p50_ms, there.source, there.samples), (62.0, LatencySource::Measured, Some(20)));
    let back = latency("aws/us-west-2", "aws/us-east-1/use1-az3");
    assert_eq!((back.p50_ms, back.from, back.to), (62.0, at("aws/us-west-2"), at("aws/us-east-1/use1-az3")));
    assert!((latency("aws/us-east-1", "hyperbolic/default").p50_ms - 12.0).abs() < 1e-9);
    assert!((latency("aws/us-east-1/x", "aws/us-east-1/y").p50_ms - 0.4).abs() < 1e-9);
    assert_eq!(network.latency(&at("hyperbolic/default"), &at("aws/eu-west-1")), None);
    assert_eq!(latency("aws/us-east-1", "aws/eu-central-1").source, LatencySource::Published);
    let pairs: Vec<Latency> = network.pairs().collect();
    // Two of the published are covered by the measured pair, one in each direction.
    assert_eq!(pairs.len(), 2_856 - 2 + 3);
    assert_eq!(pairs.iter().filter(|l| l.source == LatencySource::Measured).count(), 3);
    let again = network.with_measurements(vec![measurement("aws/us-east-1", "aws/us-west-2", 60.0, 7)]);
    assert!((again.latency(&at("aws/us-east-1"), &at("aws/us-west-2")).unwrap().p50_ms - 60.0).abs() < 1e-9);
    assert_eq!(Network::default().pairs().count(), 0);
}

#[test]
fn b21_no_step_of_a_tariff_jumps() {
    // The figures at which a peer's sum fell to zero, or below the one before.
    for from in ["aws/us-east-2", "azure/eastus", "gcp/us-central1"] {
        let to = if from.starts_with("aws") { "gcp/us-west1" } else { "aws/us-west-2" };
        for edge in [1_024.0, 10_240.0, 51_200.0, 153_600.0] {
            let (before, on, after) = (usd(from, to, edge - 1.0), usd(from, to, edge), usd(from, to, edge + 1.0));
            assert!(before < on && on < after, "{from} at {edge}: {before} {on} {after}");
            assert!(after - before < 0.25, "{from} jumps at {edge}");
        }
    }
    assert!((usd("aws/us-east-2", "gcp/us-west1", 10_240.0) - 921.60).abs() < 0.005);
    assert!((usd("aws/us-east-2", "gcp/us-west1", 51_200.0) - (921.60 + 40_960.0 * 0.085)).abs() < 0.005);
    assert!((usd("gcp/us-central1", "aws/us-west-2", 1_024.0) - 122.88).abs() < 0.005);
    assert!((usd("gcp/us-central1", "aws/us-west-2", 1_025.0) - 122.99).abs() < 0.005);
}

proptest! {
    #[test]
    fn b21_egress_grows_without_a_jump_for_every_pair(
        from in 0..listed().len(), to in 0..listed().len(), gb in 1.0..200_000.0_f64, more in 0.001..100.0_f64,
    ) {
        let places = listed();
        let network = Network::published();
        let cost = |gb: f64| network.egress(&places[from], &places[to], gb / GB_PER_GIB).unwrap().to_usd();
        let (less, more_cost) = (cost(gb), cost(gb + more));
        prop_assert!(less <= more_cost);
        let dearest = network.tariff(&places[from], &places[to]).unwrap().first_usd_per_gb();
        prop_assert!(more_cost - less <= more * dearest + 2e-6, "{less} {more_cost}");
        prop_assert!(less <= gb * dearest + 1e-6, "a step is dearer than the first");
        prop_assert_eq!(from == to, more_cost == 0.0);
    }
}

#[test]
fn b22_egress_between_regions_of_one_cloud_is_not_free() {
    let network = Network::published();
    for (from, to, price) in Published::bundled().egress_prices() {
        assert!(price > 0, "{from} {to}");
    }
    assert!((usd("aws/us-east-1", "aws/us-west-2", 50.0) - 1.00).abs() < 1e-9);
    assert!((usd("aws/eu-west-1", "aws/us-east-1", 2_000.0) - 40.00).abs() < 1e-9);
    assert_eq!(network.egress(&at("aws/us-east-1/use1-az1"), &at("aws/us-east-1/use1-az2"), 1e6), Some(Money::ZERO));
    assert_eq!(network.egress(&at("lambda/us-east-1"), &at("lambda/us-east-1"), 1e6), Some(Money::ZERO));
    // Nobody's list at hand says what these take; that is not "nothing".
    for from in ["lambda/us-east-1", "runpod/US", "nebius/eu-north1", "hyperbolic/default", "nobody/x"] {
        assert_eq!(network.egress(&at(from), &at("aws/us-east-1"), 1.0), None, "{from}");
    }
    assert_eq!(network.egress(&at("aws/us-east-1"), &at("aws/us-west-2"), f64::NAN), None);
    assert_eq!(network.egress(&at("aws/us-east-1"), &at("aws/us-west-2"), -1.0), Some(Money::ZERO));
    assert_eq!(Network::default().egress(&at("aws/us-east-1"), &at("aws/us-west-2"), 1.0), None);
}

#[test]
fn costs_and_times_are_the_published_ones_to_the_cent() {
    let terabyte = 1_000.0;
    for (from, to, price, gbit) in [
        ("aws/us-east-1", "aws/us-west-2", 0.02, 4.352),
        ("aws/us-east-1", "azure/eastus", 0.09, 4.782),
        ("azure/eastus", "aws/us-east-1", 0.0875, 9.556),
        ("aws/us-east-1", "gcp/us-east4", 0.09, 4.779),
        ("gcp/us-central1", "aws/us-east-2", 0.12, 6.248),
    ] {
        assert!((usd(from, to, terabyte) - terabyte * price).abs() < 0.005, "{from} {to}");
        let seconds = Network::published().transfer_seconds(&at(from), &at(to), terabyte / GB_PER_GIB).unwrap();
        assert!((8_000.0 / seconds - gbit).abs() < 0.0005, "{from} {to}: {}", 8_000.0 / seconds);
    }
    // Whole lists at once: what the first terabyte costs is what the list says of a GB, a thousand times.
    for (from, to, price) in Published::bundled().egress_prices() {
        let cost = Network::published().egress(from, to, terabyte / GB_PER_GIB).unwrap();
        assert_eq!((cost.micros() + 500) / 1_000, i64::from(price), "{from} {to}");
    }
    assert_eq!(Network::published().egress_date().unwrap().to_rfc3339(), "2022-01-01T00:00:00+00:00");
}

#[test]
fn sizes_are_gib_and_tariffs_gb() {
    let network = Network::published();
    let (from, to) = (at("aws/us-east-1"), at("gcp/us-west1"));
    assert_eq!(network.egress(&from, &to, 1.0).unwrap().micros(), 96_637, "1 GiB is 1.073741824 GB at $0.09");
    let seconds = network.transfer_seconds(&from, &to, 1.0).unwrap();
    let rate = network.throughput_gbit_per_s(&from, &to).unwrap();
    assert!((seconds * rate - 8.589_934_592).abs() < 1e-9);
    assert!((network.transfer_seconds(&from, &to, -1.0).unwrap()).abs() < 1e-12);
    assert_eq!(network.transfer_seconds(&from, &to, f64::INFINITY), None);
    assert_eq!(network.transfer_seconds(&from, &at("azure/norwayeast"), 1.0), None, "nobody measured it");
    let within = network.throughput_gbit_per_s(&from, &from).unwrap();
    assert!(within >= rate && within < 30.0);
}

#[test]
fn a_region_that_the_list_leaves_out_pays_what_its_country_pays() {
    let network = Network::published();
    let tariff = |from: &str, to: &str| network.tariff(&at(from), &at(to)).map(|t| (t.first_usd_per_gb(), t.basis()));
    let inferred = |usd: f64| Some((usd, TariffBasis::Inferred));
    assert_eq!(tariff("aws/us-east-1", "aws/us-west-2"), Some((0.02, TariffBasis::Published)));
    assert_eq!(tariff("aws/us-east-1", "lambda/us-south-1"), inferred(0.09));
    assert_eq!(tariff("aws/us-east-1", "hyperbolic/default"), inferred(0.09), "AWS does not ask where to");
    assert_eq!(tariff("azure/westus3", "aws/us-east-1"), inferred(0.0875));
    assert_eq!(tariff("azure/westus3", "gcp/us-central1"), inferred(0.0875));
    assert_eq!(tariff("aws/ap-southeast-4", "gcp/us-west1"), inferred(0.114), "as Sydney");
    assert_eq!(tariff("aws/us-west-1", "aws/ca-west-1"), inferred(0.02));
    assert_eq!(tariff("aws/us-west-2", "aws/mx-central-1"), inferred(0.02));
    assert_eq!(tariff("gcp/us-central1", "lambda/us-south-1"), inferred(0.12));
    assert_eq!(tariff("gcp/us-central1", "hyperbolic/default"), None, "GCP asks where to");
    assert_eq!(tariff("aws/us-east-1", "aws/us-east-1"), Some((0.0, TariffBasis::WithinRegion)));
    assert_eq!(tariff("lambda/us-east-1", "lambda/us-south-1"), None);
}

#[test]
fn inferred_prices_are_the_published_ones_where_these_are_known() {
    // As if the list left a region out: what would be inferred for it, against what the list says.
    let list: Vec<_> = Published::bundled().egress_prices().collect();
    let (mut same, mut other, mut unknown) = (0, 0, 0);
    for left_out in listed().iter().step_by(6) {
        let rest = list.iter().copied().filter(|(from, to, _)| *from != left_out && *to != left_out);
        let prices = tariff::Prices::new(rest);
        for (from, to, price) in list.iter().filter(|(from, to, _)| *from == left_out || *to == left_out) {
            match prices.infer(from, to) {
                Some(found) if found == *price => same += 1,
                Some(_) => other += 1,
                None => unknown += 1,
            }
        }
    }
    // Over all regions it is 5,696, 10 and 4,234.
    assert!(same > 500 && other * 100 <= same, "{same} the same, {other} other, {unknown} unknown");
}
