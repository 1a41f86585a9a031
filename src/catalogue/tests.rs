use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::domain::Interconnect;

fn bundled() -> &'static Catalogue {
    Catalogue::bundled()
}

fn rows<'a>(provider: &'a str, instance_type: &'a str) -> Vec<&'static Row> {
    bundled().rows_of(provider).iter().filter(|r| r.shape.instance_type == *instance_type).collect()
}

fn usd(rate: Option<HourlyRate>) -> f64 {
    rate.unwrap().to_usd()
}

#[test]
fn no_row_of_the_lists_is_lost() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in bundled().rows() {
        *counts.entry(row.provider.as_str()).or_default() += 1;
    }
    let expected = [
        ("aws", 601),
        ("azure", 809),
        ("gcp", 533),
        ("hyperbolic", 3),
        ("lambda", 374),
        ("nebius", 21),
        ("oci", 35),
        ("runpod", 488),
        ("verda", 22),
    ];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    // What the generator counted stands in the table's head, and is the same again when counted here.
    for (provider, n) in expected {
        assert!(table::BUNDLED.contains(&format!("\n# count {provider}: {n} rows\n")), "{provider}");
        assert_eq!(bundled().rows_of(provider).len(), n);
    }
    assert!(!table::BUNDLED.contains("rows left out"), "the bundled lists hold no row twice");
    assert!(bundled().rows_of("nobody").is_empty() && bundled().rows_of("").is_empty());
    let keys: HashSet<_> = bundled().rows().iter().map(|r| r.key(Purchase::OnDemand)).collect();
    assert_eq!(keys.len(), bundled().rows().len(), "two rows are one offer");
}

#[test]
fn the_bundled_table_is_as_the_generator_writes_it() {
    let comments: Vec<&str> = table::BUNDLED.lines().skip(1).map_while(|l| l.strip_prefix("# ")).collect();
    assert_eq!(table::write(bundled(), &comments.join("\n")), table::BUNDLED);
    for row in bundled().rows().iter().filter(|r| r.spot.is_some()) {
        let published =
            interruptions::published(row.provider.as_str(), row.region.as_str(), row.shape.instance_type.as_str());
        assert_eq!(row.interruptions_per_day, published);
    }
}

#[test]
fn c2_every_chip_of_the_lists_is_known_by_name() {
    for row in bundled().rows() {
        let shape = &row.shape;
        assert!(shape.accelerator.is_known(), "{}", shape.accelerator);
        assert_eq!(accelerators::canonical(shape.accelerator.as_str()), shape.accelerator);
        assert!(shape.gpu_memory_gib.is_some() && shape.vcpus.is_some() && shape.memory_gib.is_some());
    }
}

#[test]
fn b6_a_missing_price_is_unknown_and_the_offer_is_listed() {
    let reserved = rows("aws", "p5e.48xlarge");
    assert_eq!(reserved.len(), 9);
    assert!(reserved.iter().all(|r| r.on_demand.is_none()));
    assert_eq!(bundled().rows().iter().filter(|r| r.on_demand.is_none() && r.spot.is_none()).count(), 13);
    let zero = HourlyRate::ZERO;
    assert!(bundled().rows().iter().all(|r| r.on_demand.is_none_or(|p| p > zero) && r.spot.is_none_or(|p| p > zero)));
    let at = bundled().date_of("aws");
    let observed = published_observations("aws", at);
    let unpriced: Vec<_> = observed.iter().filter(|o| o.price == Some(PriceStatement::Unpriced)).collect();
    assert_eq!(unpriced.len(), 16);
    assert!(unpriced.iter().all(|o| o.key.purchase == Purchase::OnDemand));
}

#[test]
fn b7_parts_of_a_price_are_summed() {
    let a2 = rows("gcp", "a2-highgpu-1g");
    let tokyo = a2.iter().find(|r| r.region == *"asia-northeast1").unwrap();
    assert!((usd(tokyo.on_demand) - 4.049_591).abs() < 1e-6, "not the host's 0.948");
    let a3 = rows("gcp", "a3-highgpu-8g");
    let iowa = a3.iter().find(|r| r.region == *"us-central1").unwrap();
    assert!((usd(iowa.on_demand) - 88.49).abs() < 0.01 && (usd(iowa.spot) - 50.61).abs() < 0.01);
}

#[test]
fn b9_prices_are_for_the_whole_instance() {
    let p5 = rows("aws", "p5.48xlarge");
    let virginia = p5.iter().find(|r| r.region == *"us-east-1").unwrap();
    assert!((usd(virginia.on_demand) - 55.04).abs() < 1e-9);
    let per_gpu = virginia.on_demand.unwrap().per_gpu(virginia.shape.accelerators).unwrap();
    assert_eq!(per_gpu.micros(), 6_880_000);
    let hyperbolic = rows("hyperbolic", "3x-H100-224-2165");
    assert_eq!(hyperbolic[0].on_demand.unwrap().per_gpu(hyperbolic[0].shape.accelerators).unwrap().micros(), 1_290_000);
    let sixth = rows("azure", "Standard_NV6ads_A10_v5");
    assert_eq!(sixth[0].shape.accelerators.ten_thousandths(), 1_667);
    assert_eq!(sixth[0].shape.gpu_memory_gib, Some(4.0));
}

#[test]
fn b11_every_zone_keeps_its_own_spot_price() {
    let p4d = rows("aws", "p4d.24xlarge");
    let spread = |region: &str| {
        let prices: Vec<f64> =
            p4d.iter().filter(|r| r.region == *region).filter_map(|r| r.spot).map(HourlyRate::to_usd).collect();
        (prices.iter().copied().fold(f64::INFINITY, f64::min), prices.iter().copied().fold(0.0, f64::max))
    };
    let (least, most) = spread("us-east-1");
    assert!((least - 2.47).abs() < 0.01 && (most - 8.19).abs() < 0.01, "{least} {most}");
    let (least, most) = spread("us-east-2");
    assert!((least - 6.04).abs() < 0.01 && (most - 21.85).abs() < 0.01, "{least} {most}");
}

#[test]
fn b14_memory_is_nominal_and_of_one_chip() {
    let memory = |provider, kind| rows(provider, kind)[0].shape.gpu_memory_gib.unwrap();
    let exactly = |found: f64, wanted: f64| (found - wanted).abs() < 1e-9;
    assert!(exactly(memory("aws", "g6.48xlarge"), 24.0));
    assert!(exactly(memory("aws", "g5.xlarge"), 24.0));
    assert!(exactly(memory("aws", "g6e.xlarge"), 48.0));
    assert!(exactly(memory("aws", "p4de.24xlarge"), 80.0));
    assert!(exactly(memory("aws", "trn2.48xlarge"), 96.0), "512 is that of more than one chip");
    assert!(exactly(memory("gcp", "g4-standard-6"), 12.0), "an eighth of a card");
    for row in bundled().rows().iter().filter(|r| r.shape.accelerators.to_f64() >= 1.0) {
        assert_eq!(row.shape.gpu_memory_gib, accelerators::memory_gib(&row.shape.accelerator), "{:?}", row.shape);
    }
}

#[test]
fn b14_one_chip_has_one_name_at_every_cloud() {
    let chip = |provider, kind| rows(provider, kind)[0].shape.accelerator.to_string();
    assert_eq!(chip("azure", "Standard_ND40rs_v2"), "V100-32GB");
    assert_eq!(chip("azure", "Standard_NC6s_v3"), "V100-16GB");
    assert_eq!(chip("azure", "Standard_NC40ads_H100_v5"), "H100-94GB-NVL");
    assert_eq!(chip("gcp", "a3-megagpu-8g"), "H100-80GB-SXM");
    assert_eq!(chip("lambda", "gpu_1x_h100_pcie"), "H100-80GB-PCIe");
    assert_eq!(chip("lambda", "gpu_8x_h100_sxm5"), "H100-80GB-SXM");
    assert_eq!(chip("runpod", "6x_H100_SECURE"), "H100-80GB-PCIe");
    assert_eq!(chip("runpod", "6x_H100-SXM_SECURE"), "H100-80GB-SXM");
    assert_eq!(chip("hyperbolic", "1x-H100-75-722"), "H100-80GB");
    assert_eq!(chip("verda", "1RTXPRO6000.30V"), chip("oci", "BM.GPU.RTXPRO.8"));
    assert_eq!(rows("gcp", "a3-megagpu-8g")[0].shape.interconnect, Interconnect::Gpudirect);
    assert_eq!(rows("azure", "Standard_ND96isr_H100_v5")[0].shape.interconnect, Interconnect::Infiniband);
    assert_eq!(rows("azure", "Standard_ND96is_H100_v5")[0].shape.interconnect, Interconnect::Ethernet);
}

#[test]
fn b15_a_whole_machine_counts_all_its_chips_and_memory() {
    let shape = &rows("aws", "g4dn.12xlarge")[0].shape;
    assert_eq!((shape.accelerators.floor(), shape.vcpus, shape.memory_gib), (4, Some(48), Some(192.0)));
    let shape = &rows("aws", "g6e.xlarge")[0].shape;
    assert_eq!((shape.accelerators.floor(), shape.memory_gib), (1, Some(32.0)));
}

#[test]
fn c3_a_price_list_says_nothing_on_stock() {
    for source in bundled().sources() {
        let at = bundled().date_of(source.provider.as_str());
        let observed = published_observations(source.provider.as_str(), at);
        assert!(observed.len() >= bundled().rows_of(source.provider.as_str()).len());
        for o in observed {
            assert_eq!(o.availability, Some((Availability::Unknown, Evidence::Catalogue)));
            assert!(!matches!(o.price, None | Some(PriceStatement::Live(_))));
            assert_eq!((o.at, o.capacity), (at, None));
        }
    }
}

#[test]
fn a_spot_column_that_repeats_the_list_price_is_no_spot_price() {
    assert!(bundled().rows_of("runpod").iter().all(|r| r.spot.is_none() && r.on_demand.is_some()));
    let capped = bundled().rows().iter().filter(|r| r.spot_is_capped()).count();
    assert_eq!(capped, 47);
    assert!(bundled().rows().iter().filter(|r| r.spot_is_capped()).all(|r| r.provider == *"aws"));
}

#[test]
fn only_aws_publishes_interruptions() {
    let with: Vec<_> = bundled().rows().iter().filter(|r| r.interruptions_per_day.is_some()).collect();
    assert!(with.iter().all(|r| r.provider == *"aws" && r.spot.is_some()));
    assert!(with.len() > 400, "{}", with.len());
    let g4 = rows("aws", "g4dn.12xlarge").into_iter().find(|r| r.region == *"af-south-1").unwrap();
    assert!((g4.interruptions_per_day.unwrap() - 0.000_84).abs() < 1e-9);
    let observed: Vec<_> = g4.observations(bundled().date()).collect();
    assert_eq!(observed.len(), 2);
    assert_eq!(
        (observed[0].interruptions_per_day, observed[1].interruptions_per_day),
        (None, g4.interruptions_per_day)
    );
}

#[test]
fn an_undated_list_never_looks_fresher_than_a_dated_one() {
    let catalogue = bundled();
    assert_eq!(catalogue.date().to_rfc3339(), "2026-06-18T00:00:00+00:00");
    assert_eq!(catalogue.date_of("gcp").to_rfc3339(), "2026-08-03T00:00:00+00:00");
    assert_eq!(catalogue.date_of("aws"), catalogue.date());
    assert_eq!(Catalogue::default().dated(), None);
    assert_eq!(Catalogue::default().date(), DateTime::UNIX_EPOCH);
}

#[test]
fn an_imported_cloud_takes_the_place_of_the_bundled_one() {
    let source = |provider: &str, day: u32| Source {
        provider: provider.into(),
        date: NaiveDate::from_ymd_opt(2026, 11, day),
        origin: "test".to_owned(),
    };
    let row = |provider: &str| Row { provider: provider.into(), ..rows("aws", "p5.48xlarge")[0].clone() };
    let newer = Catalogue::new(vec![source("aws", 2), source("vast", 3)], vec![row("vast"), row("aws")]);
    let both = bundled().overlaid(&newer);
    assert_eq!((both.rows_of("aws").len(), both.rows_of("vast").len()), (1, 1));
    assert_eq!(both.rows_of("azure").len(), 809);
    assert_eq!(both.sources().len(), 10);
    assert_eq!(both.date_of("vast").to_rfc3339(), "2026-11-03T00:00:00+00:00");
    assert_eq!(table::read(&table::write(&both, "")).unwrap(), both);
}
