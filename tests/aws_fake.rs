//! The AWS adapter against a fake EC2 with EC2's own semantics: tokens, lost answers, capacity, throttling, lag.
#![cfg(feature = "aws")]
#![expect(clippy::expect_used, reason = "a test that cannot go on must stop")]

#[path = "support/ec2_fake.rs"]
mod ec2_fake;
#[path = "support/ec2_fake_client.rs"]
mod ec2_fake_client;
#[path = "support/ec2_fake_wire.rs"]
mod ec2_fake_wire;

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use ec2_fake::{Fake, Fault, Offered, zone_id, zone_name};
use ec2_fake_client::{SECRET, mark, now, reference, settings, wish};
use gpudeck::config::aws::AwsSettings;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::observation::PriceStatement;
use gpudeck::domain::{Availability, ErrorClass, Evidence, HourlyRate, InstanceState, Observation, Purchase, Region};
use gpudeck::provider::aws::{Deadlines, Ec2, Options, Published, connect_with};
use gpudeck::provider::{FindingStatus, InstanceRef, Operator, Provider, Termination};
use pretty_assertions::assert_eq;

const EAST: &str = "us-east-1";
const WEST: &str = "us-west-2";
const IRELAND: &str = "eu-west-1";

/// The adapter with these settings and deadlines; p5.48xlarge is published at $55.04 an hour in us-east-1.
fn adapter_with(settings: &AwsSettings, deadlines: Deadlines) -> Arc<Ec2> {
    let published = Published::new(
        DateTime::from_timestamp(1_790_000_000, 0).expect("a time"),
        [("us-east-1".into(), "p5.48xlarge".into(), HourlyRate::from_micros(55_040_000))],
    );
    let options = Options { clock: Arc::new(ManualClock::at(now())), published: Some(published), deadlines };
    connect_with(settings, options).expect("it connects without asking anybody")
}

/// The adapter for an endpoint with these regions.
fn adapter(url: &str, regions: &[&str]) -> (Arc<Ec2>, tempfile::TempDir) {
    let (settings, dir) = settings(url, regions);
    (adapter_with(&settings, Deadlines::default()), dir)
}

async fn one_region() -> (Fake, Arc<Ec2>, tempfile::TempDir) {
    let fake = Fake::start(&[EAST]).await;
    fake.offer_p5();
    let (ec2, dir) = adapter(&fake.url, &[EAST]);
    (fake, ec2, dir)
}

fn on_demand(token: &str) -> gpudeck::provider::LaunchRequest {
    wish(EAST, Some(&zone_id(EAST, 0)), Purchase::OnDemand, token)
}

fn spot(token: &str) -> gpudeck::provider::LaunchRequest {
    wish(EAST, Some(&zone_id(EAST, 0)), Purchase::Spot, token)
}

// ── Launching: one token, one machine ──────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn a12_the_same_token_makes_one_machine_and_the_same_body() {
    let (fake, ec2, _dir) = one_region().await;
    let first = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    let again = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    assert_eq!(first.id, again.id);
    assert_eq!(fake.world().machines.len(), 1);
    let sent = fake.calls("RunInstances");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].params, sent[1].params, "a request that is sent again must be the same to the last tag");
    assert_eq!(sent[0].params.get("ClientToken").map(String::as_str), Some("op1-a1-n0"));
}

#[tokio::test]
async fn a12_token_and_all_tags_arrive_on_everything_that_the_call_makes() {
    let (fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    assert_eq!((made.token.as_deref(), made.mark), (Some("op1-a1-n0"), Some(mark(0))));
    let sent = fake.calls("RunInstances").remove(0).params;
    for resource in ["instance", "volume", "network-interface"] {
        let tags = ec2_fake_wire::tags_of(&sent, resource);
        let expected = [
            ("Name", "gd-op1-a1-n0"),
            ("gpudeck-owner", "deck-1"),
            ("gpudeck-job", "0193aaaa-0000-7000-8000-000000000001"),
            ("gpudeck-operation", "0193aaaa-0000-7000-8000-000000000002"),
            ("gpudeck-attempt", "1"),
            ("gpudeck-node", "0"),
            ("gpudeck-created", "2026-12-01T02:00:00Z"),
        ];
        assert_eq!(tags, expected.map(|(k, v)| (k.to_owned(), v.to_owned())), "{resource}");
    }
    assert!(ec2_fake_wire::tags_of(&sent, "spot-instances-request").is_empty());
}

#[tokio::test]
async fn a12_an_answer_lost_after_the_effect_is_an_unknown_outcome_and_the_machine_is_found() {
    for fault in [
        Fault::LostAfterEffect { status: 500 },
        Fault::LostAfterEffect { status: 504 },
        Fault::Truncated(0),
        Fault::Truncated(50),
        Fault::Truncated(75),
        Fault::Truncated(99),
        Fault::Garbage,
    ] {
        let (fake, ec2, _dir) = one_region().await;
        fake.fail("RunInstances", None, 1, fault.clone());
        let answer = ec2.launch(&on_demand("op1-a1-n0")).await;
        let Err(lost) = answer else { panic!("{fault:?}: {answer:?}") };
        assert_eq!(lost.class, ErrorClass::Transient, "{fault:?} promises nothing");
        assert_eq!(fake.calls("RunInstances").len(), 1, "no retries inside");
        let found = ec2.find_by_token(&EAST.into(), "op1-a1-n0", &mark(0)).await.unwrap();
        assert_eq!(found.len(), 1, "{fault:?}");
        assert_eq!(found[0].mark, Some(mark(0)));
        let again = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
        assert_eq!(again.id, found[0].id);
        assert_eq!(fake.world().machines.len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a12_a_refused_token_filter_falls_back_to_the_tags() {
    let (fake, ec2, _dir) = one_region().await;
    fake.world().no_token_filter = true;
    let mut other = on_demand("op1-a1-n1");
    other.mark = mark(1);
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    ec2.launch(&other).await.unwrap();
    let found = ec2.find_by_token(&EAST.into(), "op1-a1-n0", &mark(0)).await.unwrap();
    assert_eq!(found.iter().map(|m| m.id.clone()).collect::<Vec<_>>(), [made.id]);
}

#[tokio::test]
async fn a12_a_listing_that_lags_cannot_make_a_second_machine() {
    let (fake, ec2, _dir) = one_region().await;
    fake.world().lag = 2;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    assert_eq!(ec2.find_by_token(&EAST.into(), "op1-a1-n0", &mark(0)).await.unwrap(), []);
    assert_eq!(ec2.launch(&on_demand("op1-a1-n0")).await.unwrap().id, made.id);
    assert_eq!(ec2.instances("deck-1").await.unwrap(), []);
    assert_eq!(ec2.instances("deck-1").await.unwrap().len(), 1);
    assert_eq!(fake.world().machines.len(), 1);
}

#[tokio::test]
async fn a13_the_token_with_other_parameters_is_a_conflict_and_makes_nothing() {
    let (fake, ec2, _dir) = one_region().await;
    ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    let refused = ec2.launch(&spot("op1-a1-n0")).await.unwrap_err();
    assert_eq!((refused.class, refused.code.as_str()), (ErrorClass::Conflict, "IdempotentParameterMismatch"));
    assert_eq!(refused.request_id.as_deref(), Some(ec2_fake_wire::REQUEST_ID));
    assert_eq!(refused.region, Some(Region::from(EAST)));
    assert_eq!(fake.world().machines.len(), 1);
}

#[tokio::test]
async fn a13_the_token_of_a_machine_that_ended_gives_that_machine_and_never_a_new_one() {
    let (fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    fake.set_state(made.id.as_str(), "terminated", "Client.UserInitiatedShutdown", "");
    let replayed = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    assert_eq!((replayed.id, replayed.state), (made.id, InstanceState::Gone));
    assert_eq!(fake.world().machines.len(), 1);

    // An hour later EC2 has forgotten the machine, and still knows the token.
    fake.world().machines.clear();
    let told = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap_err();
    assert_eq!((told.class, told.code.as_str()), (ErrorClass::Conflict, "IdempotentInstanceTerminated"));
    assert_eq!(fake.world().machines.len(), 0);

    // The next attempt has a token of its own.
    assert!(ec2.launch(&on_demand("op1-a2-n0")).await.is_ok());
    assert_eq!(fake.world().machines.len(), 1);
}

#[tokio::test]
async fn a13_tokens_are_a_regions_own() {
    let fake = Fake::start(&[EAST, WEST]).await;
    fake.offer_p5();
    let (ec2, _dir) = adapter(&fake.url, &[EAST, WEST]);
    let east = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    let west = ec2.launch(&wish(WEST, None, Purchase::OnDemand, "op1-a1-n0")).await.unwrap();
    assert_ne!(east.id, west.id);
    let signed: Vec<String> = fake.calls("RunInstances").into_iter().map(|s| s.region).collect();
    assert_eq!(signed, [EAST, WEST]);
    assert_eq!(fake.world().machines.len(), 2);
}

#[tokio::test]
async fn a_launch_asks_for_a_machine_that_ends_with_all_that_it_has() {
    let (fake, ec2, _dir) = one_region().await;
    let mut request = on_demand("op1-a1-n0");
    request.user_data = Some("#!/bin/sh\necho hé".into());
    let made = ec2.launch(&request).await.unwrap();
    assert_eq!(made.state, InstanceState::Provisioning);
    assert_eq!((made.instance_type.as_str(), made.purchase), ("p5.48xlarge", Purchase::OnDemand));
    assert_eq!(made.launched_at.map(|t| t.to_rfc3339()), Some("2026-12-01T01:00:00+00:00".into()));
    let sent = fake.calls("RunInstances").remove(0).params;
    for (key, value) in [
        ("MinCount", "1"),
        ("MaxCount", "1"),
        ("InstanceType", "p5.48xlarge"),
        ("ImageId", "ami-0123456789abcdef0"),
        ("InstanceInitiatedShutdownBehavior", "terminate"),
        ("MetadataOptions.HttpTokens", "required"),
        ("BlockDeviceMapping.1.DeviceName", "/dev/sda1"),
        ("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"),
        ("UserData", "IyEvYmluL3NoCmVjaG8gaMOp"),
    ] {
        assert_eq!(sent.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert!(!sent.keys().any(|k| k.starts_with("InstanceMarketOptions")));
}

#[tokio::test]
async fn a_spot_launch_is_asked_for_once_and_ends_when_taken_away() {
    let (fake, ec2, _dir) = one_region().await;
    let mut request = spot("op1-a1-n0");
    request.max_price = Some(HourlyRate::from_micros(30_125_000));
    let made = ec2.launch(&request).await.unwrap();
    assert_eq!(made.purchase, Purchase::Spot);
    let sent = fake.calls("RunInstances").remove(0).params;
    for (key, value) in [
        ("InstanceMarketOptions.MarketType", "spot"),
        ("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time"),
        ("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate"),
        ("InstanceMarketOptions.SpotOptions.MaxPrice", "30.125000"),
    ] {
        assert_eq!(sent.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(ec2_fake_wire::tags_of(&sent, "spot-instances-request").len(), 7);
}

#[tokio::test]
async fn what_is_wrong_before_asking_is_refused_before_asking() {
    let (fake, ec2, _dir) = one_region().await;
    let mut long_token = on_demand(&"x".repeat(65));
    long_token.name = "n".into();
    let mut long_script = on_demand("t");
    long_script.user_data = Some("x".repeat(16 * 1024 + 1));
    let mut elsewhere = on_demand("t");
    elsewhere.offer.region = "evil.example/#".into();
    let mut block = on_demand("t");
    block.offer.purchase = Purchase::Reserved;
    for request in [long_token, long_script, elsewhere, block] {
        let refused = ec2.launch(&request).await.unwrap_err();
        assert_eq!(refused.class, ErrorClass::Invalid, "{refused}");
    }
    assert_eq!(fake.world().seen.len(), 0);
}

#[tokio::test]
async fn an_image_is_found_by_name_newest_first_or_asked_for_with_the_remedy() {
    let fake = Fake::start(&[EAST]).await;
    let (mut settings, _dir) = settings(&fake.url, &[EAST]);
    settings.region.clear();
    let name = |date: &str| format!("Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) {date}");
    let ec2 = adapter_with(&settings, Deadlines::default());
    let none = ec2.launch(&on_demand("t")).await.unwrap_err();
    assert_eq!(none.class, ErrorClass::Invalid);
    assert!(none.message.contains("providers.aws.region.us-east-1"), "{none}");
    fake.world().images = vec![
        ("ami-00000000000000001".into(), name("20260101"), "2026-01-01T00:00:00.000Z".into()),
        ("ami-00000000000000003".into(), name("20260301"), "2026-03-01T00:00:00.000Z".into()),
        ("ami-00000000000000002".into(), name("20260201"), "2026-02-01T00:00:00.000Z".into()),
        ("ami-00000000000000009".into(), "somebody's".into(), "2026-09-01T00:00:00.000Z".into()),
    ];
    ec2.launch(&on_demand("t")).await.unwrap();
    // A newer one meanwhile must not change a request that may be sent again.
    fake.world().images.push(("ami-00000000000000004".into(), name("20260401"), "2026-04-01T00:00:00.000Z".into()));
    ec2.launch(&on_demand("t")).await.unwrap();
    let sent = fake.calls("RunInstances");
    assert_eq!(sent.iter().map(|s| s.params["ImageId"].as_str()).collect::<Vec<_>>(), ["ami-00000000000000003"; 2]);
}

// ── Prices, capacity, quota ────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn b10_a_spot_price_above_the_limit_is_no_capacity_of_this_offer_alone() {
    let (fake, ec2, _dir) = one_region().await;
    let mut request = spot("op1-a1-n0");
    request.offer.zone = Some(zone_id(EAST, 1).as_str().into());
    request.max_price = Some(HourlyRate::from_micros(25_000_000));
    let refused = ec2.launch(&request).await.unwrap_err();
    assert_eq!((refused.class, refused.code.as_str()), (ErrorClass::NoCapacity, "SpotMaxPriceTooLow"));
    assert_eq!(refused.zone, request.offer.zone);
    assert!(refused.message.contains("31.2"), "EC2's own text is kept: {refused}");
    // The cheaper zone of the same region is not touched by it.
    let mut next = spot("op1-a2-n0");
    next.max_price = request.max_price;
    assert!(ec2.launch(&next).await.is_ok());
    assert_eq!(fake.world().machines.len(), 1);
}

#[tokio::test]
async fn b2_an_on_demand_price_above_the_limit_is_refused_without_asking() {
    let (fake, ec2, _dir) = one_region().await;
    let mut request = on_demand("t");
    request.max_price = Some(HourlyRate::from_micros(55_039_999));
    let refused = ec2.launch(&request).await.unwrap_err();
    assert_eq!((refused.class, refused.code.as_str()), (ErrorClass::NoCapacity, "PriceAboveLimit"));
    let mut unknown = wish(WEST, None, Purchase::OnDemand, "t");
    unknown.max_price = Some(HourlyRate::from_micros(900_000_000));
    assert_eq!(ec2.launch(&unknown).await.unwrap_err().code, "PriceAboveLimit");
    assert_eq!(fake.calls("RunInstances").len(), 0);
    request.max_price = Some(HourlyRate::from_micros(55_040_000));
    assert!(ec2.launch(&request).await.is_ok());
}

#[tokio::test]
async fn d5_zones_travel_by_id_and_the_accounts_own_letter_stays_inside() {
    let (fake, ec2, _dir) = one_region().await;
    fake.world().sold_out.push(("p5.48xlarge".into(), zone_name(EAST, 0)));
    let refused = ec2.launch(&on_demand("a1")).await.unwrap_err();
    assert_eq!((refused.class, refused.code.as_str()), (ErrorClass::NoCapacity, "InsufficientInstanceCapacity"));
    let mut next = on_demand("a2");
    next.offer.zone = Some(zone_id(EAST, 1).as_str().into());
    let made = ec2.launch(&next).await.unwrap();
    assert_eq!(made.location.zone, next.offer.zone);
    let sent = fake.calls("RunInstances");
    let zones: Vec<&str> = sent.iter().map(|s| s.params["Placement.AvailabilityZone"].as_str()).collect();
    assert_eq!(zones, ["us-east-1b", "us-east-1c"]);

    let mut nowhere = on_demand("a3");
    nowhere.offer.zone = Some("use1-az9".into());
    let refused = ec2.launch(&nowhere).await.unwrap_err();
    assert_eq!(refused.class, ErrorClass::Invalid);
    assert!(refused.message.contains("use1-az1"), "{refused}");
}

#[tokio::test]
async fn d7_a_zone_without_a_subnet_is_refused_before_asking_where_subnets_are_named() {
    let fake = Fake::start(&[EAST]).await;
    let (mut settings, _dir) = settings(&fake.url, &[EAST]);
    let here = settings.region.get_mut(EAST).unwrap();
    here.subnets.insert(zone_id(EAST, 0), "subnet-0123456789abcdef0".into());
    here.security_groups.push("sg-0123456789abcdef0".into());
    here.key_name = Some("deck".into());
    let ec2 = adapter_with(&settings, Deadlines::default());
    ec2.launch(&on_demand("a1")).await.unwrap();
    let sent = fake.calls("RunInstances").remove(0).params;
    assert_eq!(sent.get("SubnetId").map(String::as_str), Some("subnet-0123456789abcdef0"));
    assert_eq!(sent.get("SecurityGroupId.1").map(String::as_str), Some("sg-0123456789abcdef0"));
    assert_eq!(sent.get("KeyName").map(String::as_str), Some("deck"));
    assert!(!sent.contains_key("Placement.AvailabilityZone"));
    let mut next = on_demand("a2");
    next.offer.zone = Some(zone_id(EAST, 1).as_str().into());
    let refused = ec2.launch(&next).await.unwrap_err();
    assert!(refused.class == ErrorClass::Invalid && refused.message.contains("subnets"), "{refused}");
    assert_eq!(fake.calls("RunInstances").len(), 1);
}

#[tokio::test]
async fn d1_each_code_has_its_class_over_the_wire_and_an_unknown_one_is_reported_as_it_is() {
    let (fake, ec2, _dir) = one_region().await;
    for (status, code, class) in [
        (500, "InsufficientInstanceCapacity", ErrorClass::NoCapacity),
        (400, "UnfulfillableCapacity", ErrorClass::NoCapacity),
        (400, "Unsupported", ErrorClass::NoCapacity),
        (400, "VcpuLimitExceeded", ErrorClass::Quota),
        (400, "MaxSpotInstanceCountExceeded", ErrorClass::Quota),
        (403, "UnauthorizedOperation", ErrorClass::Auth),
        (400, "RequestExpired", ErrorClass::Auth),
        (403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", ErrorClass::Auth),
        (400, "PendingVerification", ErrorClass::Auth),
        (503, "RequestLimitExceeded", ErrorClass::Throttled),
        (400, "InvalidAMIID.NotFound", ErrorClass::Invalid),
        (400, "InvalidParameterValue", ErrorClass::Invalid),
        (500, "InternalError", ErrorClass::Transient),
        (503, "Unavailable", ErrorClass::Transient),
        (500, "InsufficientInstanceCapacity_WITH_DETAILS", ErrorClass::Unknown),
        (400, "SomethingNew", ErrorClass::Unknown),
    ] {
        fake.fail("RunInstances", None, 1, Fault::refuse(status, code, "EC2's own words"));
        let refused = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap_err();
        assert_eq!((refused.class, refused.code.as_str()), (class, code));
        assert!(refused.message.starts_with("EC2's own words"), "d14: {refused}");
        assert_eq!(refused.request_id.as_deref(), Some(ec2_fake_wire::REQUEST_ID));
    }
    assert_eq!(fake.world().machines.len(), 0);
}

#[tokio::test]
async fn d4_a_quota_refusal_names_quota_code_region_purchase_and_need() {
    let (fake, ec2, _dir) = one_region().await;
    fake.fail(
        "RunInstances",
        None,
        2,
        Fault::refuse(400, "VcpuLimitExceeded", "more than your current vCPU limit of 96"),
    );
    let refused = ec2.launch(&on_demand("a1")).await.unwrap_err();
    assert_eq!(refused.region, Some(Region::from(EAST)));
    for part in ["limit of 96", "Running On-Demand P instances", "L-417A185B", "192 vCPUs"] {
        assert!(refused.message.contains(part), "{refused}");
    }
    let refused = ec2.launch(&spot("a2")).await.unwrap_err();
    assert!(refused.message.contains("L-C4BD4855"), "{refused}");
}

#[tokio::test]
async fn throttling_says_how_long_to_wait_and_nonsense_says_nothing() {
    let (fake, ec2, _dir) = one_region().await;
    for (header, expected) in [
        (Some("7"), Some(Duration::from_secs(7))),
        (None, None),
        (Some("-5"), None),
        (Some("soon"), None),
        (Some("999999999999"), Some(Duration::from_mins(15))),
        (Some("99999999999999999999999"), None),
    ] {
        let fault = Fault::Refuse {
            status: 503,
            code: "RequestLimitExceeded".into(),
            message: "Request limit exceeded.".into(),
            retry_after: header.map(str::to_owned),
        };
        fake.fail("DescribeInstances", None, 1, fault);
        let told = ec2.instances("deck-1").await.unwrap_err();
        assert_eq!((told.class, told.retry_after), (ErrorClass::Throttled, expected), "{header:?}");
    }
    assert_eq!(fake.calls("DescribeInstances").len(), 6, "no retries inside");
}

// ── Offers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

fn of<'a>(all: &'a [Observation], region: &str, zone: usize, purchase: Purchase) -> Vec<&'a Observation> {
    let zone = zone_id(region, zone);
    all.iter()
        .filter(|o| o.key.region == *region && o.key.purchase == purchase)
        .filter(|o| o.key.zone.as_ref().is_some_and(|z| *z == *zone))
        .collect()
}

#[tokio::test]
async fn offers_carry_live_spot_prices_published_on_demand_prices_and_no_made_up_stock() {
    let (_fake, ec2, _dir) = one_region().await;
    let all = ec2.offerings().await.unwrap();
    assert!(all.complete);
    assert_eq!(all.failed, []);
    let spot = of(&all.observations, EAST, 0, Purchase::Spot);
    assert_eq!(spot.len(), 1);
    assert_eq!(spot[0].price, Some(PriceStatement::Live(HourlyRate::from_micros(24_500_000))));
    assert_eq!(spot[0].at, now(), "the price holds now, whenever it changed");
    assert_eq!(spot[0].availability, Some((Availability::Unknown, Evidence::Catalogue)));
    assert_eq!(spot[0].shape.accelerator.as_str(), "H100-80GB-SXM");
    let listed = of(&all.observations, EAST, 0, Purchase::OnDemand);
    assert_eq!(listed.len(), 2, "one of the list's date, one of now");
    assert_eq!(listed[0].price, Some(PriceStatement::Published(HourlyRate::from_micros(55_040_000))));
    assert!(listed[0].at < now() && listed[0].availability.is_none());
    assert_eq!((listed[1].price, listed[1].at), (None, now()));
    // EC2 itself calls the second zone constrained: that is evidence.
    let second = of(&all.observations, EAST, 1, Purchase::Spot);
    assert_eq!(second[0].availability, Some((Availability::Limited, Evidence::Api)));
    assert!(of(&all.observations, EAST, 2, Purchase::Spot).is_empty());
}

#[tokio::test]
async fn c5_one_region_that_fails_is_told_and_the_others_count() {
    let fake = Fake::start(&[EAST, WEST, IRELAND]).await;
    fake.offer_p5();
    let (ec2, _dir) = adapter(&fake.url, &[EAST, WEST, IRELAND]);
    fake.fail("DescribeInstanceTypeOfferings", Some(WEST), 9, Fault::LostAfterEffect { status: 500 });
    let all = ec2.offerings().await.unwrap();
    assert!(!all.complete, "an offer of the failed region must not count as withdrawn");
    assert_eq!(all.failed.len(), 1);
    assert_eq!((all.failed[0].region.clone(), all.failed[0].class), (Some(WEST.into()), ErrorClass::Transient));
    assert_eq!(of(&all.observations, EAST, 0, Purchase::Spot).len(), 1);
    assert_eq!(of(&all.observations, IRELAND, 0, Purchase::Spot).len(), 1);
    assert!(all.observations.iter().all(|o| o.key.region != *WEST));
}

#[tokio::test]
async fn c5_rows_that_cannot_be_used_are_counted_by_reason() {
    let (fake, ec2, _dir) = one_region().await;
    {
        let mut world = fake.world();
        let zones = |price: &str| vec![(zone_id(EAST, 0), Some(price.to_owned()))];
        let offered = |kind: &str, gpus: Vec<(String, i32, i32)>, zones, class: &str| Offered {
            kind: kind.into(),
            gpus,
            vcpus: 8,
            zones,
            classes: vec![class.into()],
        };
        world.offered.extend([
            offered("p9.large", vec![("R400".into(), 1, 1024)], zones("a lot"), "spot"),
            offered("p9.free", vec![("R400".into(), 1, 1024)], zones("0.000000"), "spot"),
            offered("p9.two", vec![("R400".into(), 1, 1024), ("R500".into(), 1, 1024)], zones("1"), "spot"),
            offered("p9.odd", vec![("R400".into(), 1, 1024)], zones("1"), "timeshare"),
            offered("m7i.large", vec![], zones("0.05"), "spot"),
        ]);
        world.offered[0].zones.push(("use1-bos1-az1".into(), Some("1".into())));
    }
    let all = ec2.offerings().await.unwrap();
    assert!(all.complete);
    let skipped: Vec<(&str, u32)> = all.skipped.iter().map(|(reason, n)| (reason.as_str(), *n)).collect();
    assert_eq!(
        skipped,
        [
            ("a spot price of a zone that is not enabled for the account", 1),
            ("a spot price that is not an amount", 2),
            ("a type that cannot be bought in any way that is known", 1),
            ("a type with different accelerators in one machine", 1),
            ("a zone that is not enabled for the account", 1),
        ]
    );
    // b6, c2: an unknown chip without a price is shown, neither free nor hidden.
    let unpriced: Vec<&Observation> = all.observations.iter().filter(|o| o.key.instance_type == *"p9.free").collect();
    assert_eq!(unpriced.len(), 1);
    assert_eq!(unpriced[0].price, Some(PriceStatement::Unpriced));
    assert_eq!(unpriced[0].shape.accelerator.as_str(), "unknown:R400");
    assert!(all.observations.iter().all(|o| o.key.instance_type != *"m7i.large"));
}

#[tokio::test]
async fn c5_offers_stay_when_only_the_spot_prices_fail() {
    let (fake, ec2, _dir) = one_region().await;
    fake.fail(
        "DescribeSpotPriceHistory",
        None,
        1,
        Fault::refuse(403, "UnauthorizedOperation", "You are not authorized."),
    );
    let all = ec2.offerings().await.unwrap();
    assert!(!all.complete);
    assert_eq!(all.failed[0].class, ErrorClass::Auth);
    assert_eq!(of(&all.observations, EAST, 0, Purchase::Spot)[0].price, None, "nothing is said on the price");
}

#[tokio::test]
async fn c7_an_adapter_that_fails_is_an_error_not_an_empty_offer() {
    let fake = Fake::start(&[EAST]).await;
    let (ec2, _dir) = adapter(&fake.url, &[EAST]);
    fake.fail(
        "DescribeRegions",
        None,
        1,
        Fault::refuse(401, "AuthFailure", "AWS was not able to validate the credentials"),
    );
    let told = ec2.offerings().await.unwrap_err();
    assert_eq!((told.class, told.code.as_str()), (ErrorClass::Auth, "AuthFailure"));
}

#[tokio::test]
async fn d5_types_listed_by_the_accounts_letters_come_out_by_zone_id() {
    let (fake, ec2, _dir) = one_region().await;
    fake.world().no_zone_ids = true;
    let all = ec2.offerings().await.unwrap();
    assert_eq!(of(&all.observations, EAST, 0, Purchase::Spot).len(), 1);
    assert_eq!(of(&all.observations, EAST, 1, Purchase::Spot).len(), 1);
    assert_eq!(fake.calls("DescribeInstanceTypeOfferings").len(), 2);
}

#[tokio::test]
async fn d7_a_region_that_never_answers_costs_its_deadline_and_nothing_else() {
    let fake = Fake::start(&[EAST, WEST]).await;
    fake.offer_p5();
    let (settings, _dir) = settings(&fake.url, &[EAST, WEST]);
    let short = Deadlines { call: Duration::from_millis(400), ..Deadlines::default() };
    let ec2 = adapter_with(&settings, short);
    fake.fail("DescribeAvailabilityZones", Some(WEST), 9, Fault::Hang);
    let all = ec2.offerings().await.unwrap();
    assert_eq!((all.failed.len(), all.failed[0].class), (1, ErrorClass::Transient));
    assert_eq!(all.failed[0].region, Some(WEST.into()));
    assert_eq!(of(&all.observations, EAST, 0, Purchase::Spot).len(), 1);

    // One that answers each call in time and never comes to an end is cut off as a whole.
    let by_drops = Deadlines { region: Duration::from_millis(400), ..Deadlines::default() };
    let ec2 = adapter_with(&settings, by_drops);
    fake.fail("DescribeSpotPriceHistory", Some(EAST), 9, Fault::Hang);
    let all = ec2.offerings().await.unwrap();
    let failed: Vec<&str> = all.failed.iter().filter_map(|e| e.region.as_ref()).map(Region::as_str).collect();
    assert_eq!(failed, [EAST, WEST]);
}

#[tokio::test]
async fn regions_of_the_settings_that_the_account_does_not_have_are_told() {
    let fake = Fake::start(&[EAST]).await;
    fake.offer_p5();
    let (mut settings, _dir) = settings(&fake.url, &[EAST]);
    settings.regions = vec![EAST.into(), "me-south-1".into()];
    let ec2 = adapter_with(&settings, Deadlines::default());
    let all = ec2.offerings().await.unwrap();
    assert_eq!(
        all.failed.iter().map(|e| (e.class, e.region.clone())).collect::<Vec<_>>(),
        [(ErrorClass::Invalid, Some("me-south-1".into()))]
    );
    assert!(!all.observations.is_empty());
    assert_eq!(ec2.instances("deck-1").await.unwrap_err().region, Some("me-south-1".into()));
}

// ── Machines as they are ───────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn e1_a_machine_is_told_as_ec2_tells_it_whatever_happened_behind_our_back() {
    let (fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    let at = [reference(&made)];
    assert_eq!(ec2.describe(&at).await.unwrap()[0].state, InstanceState::Running);
    for (word, code, message, expected) in [
        ("stopped", "Client.UserInitiatedShutdown", "stopped in the console", InstanceState::Stopped),
        ("running", "", "", InstanceState::Running),
        ("quiescing", "", "", InstanceState::Unknown("quiescing".into())),
        ("shutting-down", "Server.SpotInstanceTermination", "Spot instance termination", InstanceState::Preempted),
        ("terminated", "Server.SpotInstanceTermination", "Spot instance termination", InstanceState::Gone),
        ("terminated", "Client.UserInitiatedShutdown", "by somebody", InstanceState::Gone),
    ] {
        fake.set_state(made.id.as_str(), word, code, message);
        let seen = ec2.describe(&at).await.unwrap().remove(0);
        assert_eq!(seen.state, expected, "{word} {code}");
        assert_eq!(seen.reason.is_some(), !code.is_empty());
        assert!(seen.reason.is_none_or(|r| r.contains(message)), "d14: the provider's words are kept");
    }
}

#[tokio::test]
async fn e1_capacity_that_fails_after_acceptance_is_a_failure_with_its_reason() {
    let (fake, ec2, _dir) = one_region().await;
    fake.world().dies = Some(("Server.InsufficientInstanceCapacity".into(), "There is not enough capacity".into()));
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    assert_eq!(made.state, InstanceState::Provisioning);
    let seen = ec2.describe(&[reference(&made)]).await.unwrap().remove(0);
    assert_eq!(seen.state, InstanceState::Gone);
    assert_eq!(seen.reason.as_deref(), Some("Server.InsufficientInstanceCapacity: There is not enough capacity"));
}

#[tokio::test]
async fn e1_unknown_machines_are_left_out_and_known_ones_do_not_suffer() {
    let (_fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    let ghost = InstanceRef { id: "i-00000000000000bad".into(), ..reference(&made) };
    let seen = ec2.describe(&[ghost, reference(&made)]).await.unwrap();
    assert_eq!(seen.iter().map(|m| m.id.clone()).collect::<Vec<_>>(), [made.id]);
    assert_eq!(ec2.describe(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn c5_a_list_of_machines_that_would_lack_a_region_is_an_error_that_names_it() {
    let fake = Fake::start(&[EAST, WEST, IRELAND]).await;
    let (ec2, _dir) = adapter(&fake.url, &[EAST, WEST, IRELAND]);
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    fake.fail("DescribeInstances", Some(WEST), 2, Fault::LostAfterEffect { status: 500 });
    fake.fail("DescribeInstances", Some(IRELAND), 1, Fault::LostAfterEffect { status: 502 });
    let told = ec2.instances("deck-1").await.unwrap_err();
    assert_eq!(told.class, ErrorClass::Transient);
    assert!(told.message.contains(WEST) && told.message.contains(IRELAND), "{told}");
    let told = ec2.instances("deck-1").await.unwrap_err();
    assert_eq!(told.region, Some(WEST.into()));
    assert_eq!(ec2.instances("deck-1").await.unwrap().iter().map(|m| m.id.clone()).collect::<Vec<_>>(), [made.id]);
}

#[tokio::test]
async fn listings_are_read_to_their_last_page_and_an_endless_one_is_an_error() {
    let (fake, ec2, _dir) = one_region().await;
    for n in 0..5 {
        let mut request = on_demand(&format!("op1-a1-n{n}"));
        request.mark = mark(n);
        ec2.launch(&request).await.unwrap();
    }
    fake.world().page = 2;
    let mut nodes: Vec<u32> =
        ec2.instances("deck-1").await.unwrap().into_iter().filter_map(|m| m.mark).map(|m| m.node).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, [0, 1, 2, 3, 4]);
    assert_eq!(fake.calls("DescribeInstances").len(), 3);
    fake.world().endless = true;
    assert_eq!(ec2.instances("deck-1").await.unwrap_err().class, ErrorClass::Transient);
}

#[tokio::test]
async fn only_the_owners_machines_are_listed_and_wildcards_are_no_owners() {
    let (_fake, ec2, _dir) = one_region().await;
    ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    assert_eq!(ec2.instances("deck-1").await.unwrap().len(), 1);
    for owner in ["deck-2", "deck-*", "*", "deck-?"] {
        assert_eq!(ec2.instances(owner).await.unwrap(), [], "{owner}");
    }
}

#[tokio::test]
async fn op38_hostile_words_of_the_provider_stay_data_and_a_forged_mark_is_no_mark() {
    let (fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    let hostile = "\u{202e}\u{9b}31m]52;c;AAAA";
    {
        let mut world = fake.world();
        let machine = &mut world.machines[0];
        machine.tags.iter_mut().filter(|(k, _)| k == "gpudeck-job").for_each(|(_, v)| hostile.clone_into(v));
        machine.reason = ("Client.X".into(), hostile.into());
        machine.state = hostile.into();
        machine.next = None;
    }
    let seen = ec2.instances("deck-1").await.unwrap().remove(0);
    assert_eq!((seen.id, seen.mark), (made.id.clone(), None));
    assert_eq!(seen.state, InstanceState::Unknown(hostile.into()));
    assert!(!seen.state.label().contains('\u{9b}'));
    assert_eq!(seen.reason.as_deref(), Some(&*format!("Client.X: {hostile}")));
    fake.fail("TerminateInstances", None, 1, Fault::refuse(400, "OperationNotPermitted", hostile));
    let refused = ec2.terminate(&InstanceRef { id: made.id, location: made.location }).await.unwrap_err();
    assert_eq!(refused.message, hostile);
    assert!(!refused.to_string().contains('\u{202e}'));
}

// ── Ending ─────────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn ending_is_accepted_then_proved_and_absent_is_gone() {
    let (fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    let target = reference(&made);
    assert_eq!(ec2.terminate(&target).await.unwrap(), Termination::Accepted(InstanceState::Terminating));
    let seen = ec2.describe(std::slice::from_ref(&target)).await.unwrap().remove(0);
    assert_eq!(seen.state, InstanceState::Gone);
    assert_eq!(seen.ended_at.map(|t| t.to_rfc3339()), Some("2026-12-01T01:55:02+00:00".into()));
    assert_eq!(ec2.terminate(&target).await.unwrap(), Termination::AlreadyGone);
    fake.world().machines.clear();
    assert_eq!(ec2.terminate(&target).await.unwrap(), Termination::AlreadyGone);
    assert!(fake.calls("TerminateInstances").iter().all(|s| !s.params.contains_key("InstanceId.2")), "one id a call");
}

#[tokio::test]
async fn a6_a_machine_that_may_not_be_ended_is_an_error_with_ec2s_code() {
    let (fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    fake.fail("TerminateInstances", None, 1, Fault::refuse(403, "UnauthorizedOperation", "You are not authorized."));
    let refused = ec2.terminate(&reference(&made)).await.unwrap_err();
    assert_eq!((refused.class, refused.code.as_str()), (ErrorClass::Auth, "UnauthorizedOperation"));
}

// ── Who we are, and what is never told ─────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn op9_watching_never_asks_for_a_change() {
    let (fake, ec2, _dir) = one_region().await;
    let made = ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    fake.world().seen.clear();
    let watch: Arc<dyn Provider> = ec2;
    watch.check().await;
    watch.offerings().await.unwrap();
    watch.instances("deck-1").await.unwrap();
    watch.describe(&[reference(&made)]).await.unwrap();
    watch.find_by_token(&EAST.into(), "op1-a1-n0", &mark(0)).await.unwrap();
    let world = fake.world();
    assert!(world.seen.len() >= 8);
    let policy = include_str!("../data/policies/aws-read.json");
    for call in &world.seen {
        let service = if call.action == "GetCallerIdentity" { "sts" } else { "ec2" };
        assert!(policy.contains(&format!("\"{service}:{}\"", call.action)), "{} is not in the policy", call.action);
        assert!(call.action.starts_with("Describe") || call.action == "GetCallerIdentity", "{}", call.action);
    }
}

#[tokio::test]
async fn f18_the_account_is_remembered_for_minutes_and_outlives_a_hiccup() {
    let fake = Fake::start(&[EAST]).await;
    let (settings, _dir) = settings(&fake.url, &[EAST]);
    let clock = Arc::new(ManualClock::at(now()));
    let options = Options { clock: clock.clone(), ..Options::default() };
    let ec2 = connect_with(&settings, options).expect("it connects");
    let told = format!("123456789012 at {}", fake.url);
    for _ in 0..3 {
        assert_eq!(ec2.account().await.unwrap(), told);
    }
    assert_eq!(fake.calls("GetCallerIdentity").len(), 1);
    let refuse = |status, code| Fault::refuse(status, code, "no");
    clock.advance(chrono::TimeDelta::minutes(6));
    fake.fail("GetCallerIdentity", None, 1, refuse(503, "ServiceUnavailable"));
    assert_eq!(ec2.account().await.unwrap(), told, "the last word holds for a while");
    clock.advance(chrono::TimeDelta::minutes(10));
    fake.fail("GetCallerIdentity", None, 1, refuse(503, "ServiceUnavailable"));
    assert_eq!(ec2.account().await.unwrap_err().class, ErrorClass::Transient, "not for ever");
    fake.fail("GetCallerIdentity", None, 1, refuse(403, "ExpiredToken"));
    assert_eq!(ec2.account().await.unwrap_err().class, ErrorClass::Auth);
    assert_eq!(ec2.account().await.unwrap(), told);
}

#[tokio::test]
async fn f18_an_endpoint_without_identities_is_one_account() {
    let (fake, ec2, _dir) = one_region().await;
    fake.fail("GetCallerIdentity", None, 1, Fault::refuse(400, "InvalidAction", "not valid here"));
    assert_eq!(ec2.account().await.unwrap(), format!("the only account at {}", fake.url));
}

/// AWS announces two minutes before that it takes a spot machine away; where it does not say, the machine is shown all
/// the same.
#[tokio::test]
async fn e2_a_spot_notice_is_seen_before_the_machine_goes() {
    let (fake, ec2, _dir) = one_region().await;
    let kept = ec2.launch(&spot("op1-a1-n0")).await.unwrap();
    let taken = ec2.launch(&spot("op1-a1-n1")).await.unwrap();
    for machine in [&kept, &taken] {
        fake.set_state(machine.id.as_str(), "running", "", "");
    }
    let both = [reference(&kept), reference(&taken)];
    let notices = |found: Vec<gpudeck::domain::Instance>| {
        let mut all: Vec<_> = found.iter().map(|i| (i.id.clone(), i.preemption_notice)).collect();
        all.sort();
        all
    };
    assert!(notices(ec2.describe(&both).await.unwrap()).iter().all(|(_, notice)| notice.is_none()));
    let at = |id| move |m: &&mut ec2_fake::Machine| m.id == id;
    fake.world().machines.iter_mut().find(at(taken.id.as_str())).unwrap().request = "marked-for-termination".into();
    let announced: DateTime<chrono::Utc> = "2026-12-01T02:02:00Z".parse().unwrap();
    let found = notices(ec2.describe(&both).await.unwrap());
    assert_eq!(found.iter().filter(|(_, n)| n.is_some()).cloned().collect::<Vec<_>>(), [(taken.id, Some(announced))]);
    fake.fail("DescribeSpotInstanceRequests", None, 1, Fault::refuse(403, "UnauthorizedOperation", "no"));
    assert_eq!(ec2.describe(&both).await.unwrap().len(), 2);
}

/// What the account may still run: limits from the service of quotas, less what runs, whoever started it; asked once in
/// some minutes, and told for on-demand and spot apart.
#[tokio::test]
async fn d2_quotas_say_what_is_left_before_anything_is_launched() {
    let (fake, ec2, _dir) = one_region().await;
    let quota = |code: &str, name: &str, value: f64| {
        format!(r#"{{"ServiceCode":"ec2","QuotaCode":"{code}","QuotaName":"{name}","Value":{value}}}"#)
    };
    let list = [
        quota("L-417A185B", "Running On-Demand P instances", 400.0),
        quota("L-C4BD4855", "All P5 Spot Instance Requests", 192.0),
        quota("L-0000AAAA", "Something else", 1.0),
    ];
    fake.world().quotas = Some(format!(r#"{{"Quotas":[{}]}}"#, list.join(",")));
    ec2.launch(&on_demand("op1-a1-n0")).await.unwrap();
    fake.world().seen.clear();
    for _ in 0..2 {
        let offerings = ec2.offerings().await.unwrap();
        assert_eq!(offerings.failed, []);
        let room = |purchase| {
            let of = offerings.observations.iter().filter(|o| o.key.purchase == purchase);
            of.filter_map(|o| o.quota.clone()).map(|q| (q.code.clone(), q.used, q.instances_left())).next()
        };
        assert_eq!(room(Purchase::OnDemand), Some(("L-417A185B".to_owned(), 192.0, 1)));
        assert_eq!(room(Purchase::Spot), Some(("L-C4BD4855".to_owned(), 0.0, 1)));
    }
    assert_eq!(fake.calls("DescribeInstances").len(), 1, "remembered");
}

/// An endpoint, or who sits in front of it, sends and sends: the answer is cut off, memory is not filled.
#[tokio::test]
async fn an_answer_without_an_end_is_cut_off() {
    let (fake, ec2, _dir) = one_region().await;
    fake.fail("DescribeInstances", None, 1, Fault::Endless);
    let began = std::time::Instant::now();
    let refused = ec2.describe(&[InstanceRef { id: "i-1".into(), location: on_demand("t").offer.location() }]).await;
    assert_eq!(refused.unwrap_err().class, ErrorClass::Transient);
    assert!(began.elapsed() < Duration::from_secs(15), "by its size, not by the deadline");
}

#[tokio::test]
async fn the_check_tells_account_endpoint_and_regions_and_a_wrong_clock() {
    let (fake, ec2, _dir) = one_region().await;
    let found = ec2.check().await;
    let of = |check: &str| found.iter().find(|f| f.check == check).map(|f| (f.status, f.detail.clone()));
    assert_eq!(
        of("credentials"),
        Some((FindingStatus::Ok, "account 123456789012 as arn:aws:iam::123456789012:user/deck".into()))
    );
    assert_eq!(of("endpoint").map(|(s, _)| s), Some(FindingStatus::Warn));
    assert_eq!(ec2.endpoint(), Some(fake.url.clone()));
    assert_eq!(of("regions"), Some((FindingStatus::Ok, EAST.into())));
    assert_eq!(of("permissions").map(|(s, _)| s), Some(FindingStatus::Ok));

    fake.fail("DescribeAvailabilityZones", None, 1, Fault::refuse(400, "RequestExpired", "Request has expired."));
    let clock = ec2.check().await.into_iter().find(|f| f.check == "clock").expect("a finding on the clock");
    assert_eq!(clock.status, FindingStatus::Fail);
    assert!(clock.detail.contains("clock"), "{}", clock.detail);
}

#[tokio::test]
async fn secrets_and_start_up_scripts_are_in_no_error_and_no_debug_text() {
    let (fake, ec2, _dir) = one_region().await;
    let mut request = on_demand("op1-a1-n0");
    request.user_data = Some("canary-start-up-script".into());
    let mut told = vec![format!("{ec2:?}")];
    for fault in [Fault::Garbage, Fault::Truncated(50), Fault::refuse(400, "InvalidParameterValue", "no"), Fault::Hang]
    {
        let (settings, _dir) = settings(&fake.url, &[EAST]);
        let ec2 = adapter_with(&settings, Deadlines { call: Duration::from_millis(300), ..Deadlines::default() });
        fake.fail("RunInstances", None, 1, fault);
        request.token.push('x');
        let error = ec2.launch(&request).await.unwrap_err();
        told.push(format!("{error} {error:?}"));
    }
    for text in told {
        assert!(!text.contains(SECRET) && !text.contains("canary-start-up") && !text.contains("Y2FuYXJ5"), "{text}");
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_had_are_an_auth_error_and_nobody_not_there_is_transient() {
    let fake = Fake::start(&[EAST]).await;
    let (settings, dir) = settings(&fake.url, &[EAST]);
    let ec2 = adapter_with(&settings, Deadlines::default());
    std::fs::remove_file(dir.path().join("credentials")).unwrap();
    let told = ec2.instances("deck-1").await.unwrap_err();
    assert_eq!(told.class, ErrorClass::Auth, "{told}");
    assert_eq!(fake.world().seen.len(), 0);

    let (settings, _dir) = ec2_fake_client::settings("http://127.0.0.1:9", &[EAST]);
    let nobody = adapter_with(&settings, Deadlines::default());
    assert_eq!(nobody.instances("deck-1").await.unwrap_err().class, ErrorClass::Transient);
}
