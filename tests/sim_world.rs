//! The demo world as the engine sees it: through `Provider` and `Operator`, by a clock that a test moves.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use chrono::{DateTime, Duration, Utc};
use gpudeck::catalogue::Row;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, Clock, ErrorClass, HourlyRate, Instance, InstanceState, Interconnect,
    Mark, OfferKey, Purchase, Shape,
};
use gpudeck::provider::sim::{Call, Fault, FaultPlan, Rule, Setup, SimCloud, Weather, World};
use gpudeck::provider::{InstanceRef, LaunchRequest, Operator, Provider, Termination};

const SEED: u64 = 7;

fn shape(name: &str, chip: &str, gpus: u32, vcpus: u32) -> Arc<Shape> {
    Arc::new(Shape {
        instance_type: name.into(),
        accelerator: Accelerator::from_canonical(chip),
        accelerators: AcceleratorCount::whole(gpus),
        gpu_memory_gib: Some(16.0),
        vcpus: Some(vcpus),
        memory_gib: Some(64.0),
        interconnect: Interconnect::Unknown,
    })
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |provider: &str, region: &str, zone: Option<&str>, shape: Arc<Shape>, usd: f64, spot: Option<f64>| {
        rows.push(Row {
            provider: provider.into(),
            region: region.into(),
            zone: zone.map(Into::into),
            shape,
            on_demand: HourlyRate::from_usd(usd).ok(),
            spot: spot.and_then(|s| HourlyRate::from_usd(s).ok()),
            interruptions_per_day: None,
        });
    };
    for zone in ["use1-az1", "use1-az2", "use1-az4"] {
        add("aws", "us-east-1", Some(zone), shape("g4dn.xlarge", "T4-16GB", 1, 4), 0.526, Some(0.21));
        add("aws", "us-east-1", Some(zone), shape("p5.48xlarge", "H100-80GB-SXM", 8, 192), 55.04, Some(22.0));
    }
    for zone in ["usw2-az1", "usw2-az2"] {
        add("aws", "us-west-2", Some(zone), shape("g4dn.xlarge", "T4-16GB", 1, 4), 0.526, Some(0.2));
        add("aws", "us-west-2", Some(zone), shape("p5.48xlarge", "H100-80GB-SXM", 8, 192), 55.04, Some(24.0));
    }
    add("azure", "eastus", None, shape("Standard_NC4as_T4_v3", "T4-16GB", 1, 4), 0.526, None);
    add("gcp", "us-central1", Some("us-central1-a"), shape("g2-standard-4", "L4-24GB", 1, 4), 0.71, Some(0.28));
    for cloud in ["hyperbolic", "lambda", "runpod"] {
        add(cloud, "us-1", None, shape("gpu_1x_a10", "A10-24GB", 1, 30), 0.75, None);
    }
    rows
}

struct Fixture {
    world: World,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new(faults: FaultPlan) -> Self {
        Self::with(Setup::planned(faults))
    }
    fn with(setup: Setup) -> Self {
        let clock = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH + Duration::days(20_000)));
        Self { world: World::of(&rows(), setup, SEED, clock.clone()), clock }
    }
    fn cloud(&self, name: &str) -> Arc<SimCloud> {
        self.world.cloud(name).expect("a cloud of the table")
    }
    fn pass(&self, seconds: i64) {
        self.clock.advance(Duration::seconds(seconds));
    }
    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
    fn billed(&self) -> usize {
        self.world.billed().expect("in memory").len()
    }
    fn made(&self) -> usize {
        self.world.machines().expect("in memory").len()
    }
}

fn request(provider: &str, region: &str, zone: Option<&str>, kind: &str, purchase: Purchase, n: u32) -> LaunchRequest {
    let shape = rows().into_iter().find(|r| r.shape.instance_type == *kind).expect("a shape of the table").shape;
    LaunchRequest {
        offer: OfferKey {
            provider: provider.into(),
            region: region.into(),
            zone: zone.map(Into::into),
            instance_type: kind.into(),
            purchase,
        },
        shape,
        max_price: None,
        token: format!("op-{n}"),
        name: format!("gpudeck-op-{n}"),
        mark: Mark { owner: "me".into(), job: "job".into(), operation: "op".into(), attempt: 1, node: n },
        intended_at: DateTime::UNIX_EPOCH,
        user_data: None,
    }
}

fn t4(n: u32) -> LaunchRequest {
    request("aws", "us-east-1", Some("use1-az1"), "g4dn.xlarge", Purchase::OnDemand, n)
}

fn of(machine: &Instance) -> InstanceRef {
    InstanceRef { id: machine.id.clone(), location: machine.location.clone() }
}

async fn seen(cloud: &SimCloud, machine: &Instance) -> Option<Instance> {
    cloud.describe(&[of(machine)]).await.expect("describe").pop()
}

async fn state(cloud: &SimCloud, machine: &Instance) -> Option<InstanceState> {
    seen(cloud, machine).await.map(|m| m.state)
}

#[tokio::test]
async fn a_machine_boots_runs_is_deleted_and_is_forgotten() {
    let f = Fixture::new(FaultPlan::none());
    let aws = f.cloud("aws");
    let machine = aws.launch(&t4(0)).await.expect("launched");
    assert_eq!(machine.state, InstanceState::Provisioning);
    assert_eq!(machine.price, HourlyRate::from_usd(0.526).ok());
    f.pass(121);
    assert_eq!(state(&aws, &machine).await, Some(InstanceState::Running));
    assert_eq!(aws.instances("me").await.expect("list").len(), 1);
    assert_eq!(aws.instances("somebody-else").await.expect("list").len(), 0);

    let answer = aws.terminate(&of(&machine)).await.expect("terminate");
    assert_eq!(answer, Termination::Accepted(InstanceState::Terminating));
    f.pass(10);
    let again = aws.terminate(&of(&machine)).await.expect("terminate again");
    assert_eq!(again, Termination::Accepted(InstanceState::Terminating));
    f.pass(51);
    let gone = seen(&aws, &machine).await.expect("still listed");
    assert_eq!(gone.state, InstanceState::Gone);
    assert!(gone.ended_at.is_some_and(|t| t <= f.now()));
    assert_eq!(aws.terminate(&of(&machine)).await.expect("terminate"), Termination::AlreadyGone);
    f.pass(3_601);
    assert_eq!(state(&aws, &machine).await, None);
    assert_eq!(aws.terminate(&of(&machine)).await.expect("terminate"), Termination::AlreadyGone);
}

#[tokio::test]
async fn a_machine_that_is_not_known_there_is_gone_already() {
    let f = Fixture::new(FaultPlan::none());
    let aws = f.cloud("aws");
    let machine = aws.launch(&t4(0)).await.expect("launched");
    let nobody = InstanceRef { id: "i-0".into(), location: machine.location.clone() };
    assert_eq!(aws.terminate(&nobody).await.expect("terminate"), Termination::AlreadyGone);
    let elsewhere = f.cloud("gcp").terminate(&of(&machine)).await.expect("terminate");
    assert_eq!(elsewhere, Termination::AlreadyGone);
    assert_eq!(f.billed(), 1);
}

#[tokio::test]
async fn a12_one_token_makes_one_machine_where_the_cloud_has_tokens() {
    for (cloud, region, zone, kind) in [
        ("aws", "us-east-1", Some("use1-az1"), "g4dn.xlarge"),
        ("azure", "eastus", None, "Standard_NC4as_T4_v3"),
        ("gcp", "us-central1", Some("us-central1-a"), "g2-standard-4"),
    ] {
        let f = Fixture::new(FaultPlan::none());
        let cloud = f.cloud(cloud);
        assert!(cloud.capabilities().launch_token.is_yes());
        let request = request(cloud.id().as_str(), region, zone, kind, Purchase::OnDemand, 0);
        let first = cloud.launch(&request).await.expect("launched");
        f.pass(300);
        let second = cloud.launch(&request).await.expect("the same");
        assert_eq!((first.id, second.state), (second.id, InstanceState::Running));
        assert_eq!(f.made(), 1);
    }
}

#[tokio::test]
async fn a12_without_tokens_a_repeated_launch_makes_a_second_machine() {
    for name in ["hyperbolic", "lambda", "runpod"] {
        let f = Fixture::new(FaultPlan::none());
        let cloud = f.cloud(name);
        assert!(!cloud.capabilities().launch_token.is_yes(), "{name}");
        let request = request(name, "us-1", None, "gpu_1x_a10", Purchase::OnDemand, 0);
        let first = cloud.launch(&request).await.expect("launched");
        let second = cloud.launch(&request).await.expect("launched again");
        assert_ne!(first.id, second.id);
        assert_eq!(first.token, None, "what it has no field for, it cannot give back");
        let found = cloud.find_by_token(&"us-1".into(), "ignored", &request.mark).await.expect("found by mark");
        assert_eq!(found.len(), 2);
    }
}

#[tokio::test]
async fn a13_a_token_with_other_parameters_or_of_an_ended_machine_is_a_conflict() {
    let f = Fixture::new(FaultPlan::none());
    let aws = f.cloud("aws");
    let machine = aws.launch(&t4(0)).await.expect("launched");
    let mut other = t4(0);
    other.offer.zone = Some("use1-az2".into());
    let error = aws.launch(&other).await.expect_err("another zone, same token");
    assert_eq!((error.class, &*error.code), (ErrorClass::Conflict, "IdempotentParameterMismatch"));
    aws.terminate(&of(&machine)).await.expect("terminate");
    f.pass(120);
    let error = aws.launch(&t4(0)).await.expect_err("ended");
    assert_eq!((error.class, &*error.code), (ErrorClass::Conflict, "IdempotentInstanceTerminated"));
    f.pass(25 * 3_600);
    let again = aws.launch(&t4(0)).await.expect("the cloud has forgotten the token");
    assert_ne!(again.id, machine.id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a2_launches_at_once_never_exceed_the_stock_nor_the_quota() {
    let f = Fixture::new(FaultPlan::none());
    let aws = f.cloud("aws");
    let offer = t4(0).offer;
    let lists = aws.offerings().await.expect("offers").observations;
    let before = lists.iter().find(|o| o.key == offer).expect("listed");
    let stock = before.capacity.expect("counted");
    let room = before.quota.as_ref().expect("a vCPU quota").instances_left();
    let tasks: Vec<_> = (0..300)
        .map(|n| {
            let aws = aws.clone();
            tokio::spawn(async move { aws.launch(&t4(n)).await })
        })
        .collect();
    let mut granted = HashSet::new();
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(machine) => assert!(granted.insert(machine.id)),
            Err(e) => assert!(matches!(e.class, ErrorClass::NoCapacity | ErrorClass::Quota), "{e}"),
        }
    }
    println!("stock {stock}, room under the quota {room}, granted {}", granted.len());
    let expected = stock.min(room);
    assert!(expected > 0 && expected < 300);
    assert_eq!((granted.len(), f.billed()), (expected as usize, expected as usize));
    let after = aws.offerings().await.expect("offers").observations;
    let after = after.iter().find(|o| o.key == offer).expect("listed");
    assert_eq!(after.capacity, Some(stock - expected));
    assert_eq!(after.quota.as_ref().map(|q| q.used), Some(f64::from(4 * expected)));
}

#[tokio::test]
async fn d2_a_full_quota_refuses_with_its_figures() {
    let f = Fixture::new(FaultPlan::none());
    let aws = f.cloud("aws");
    let listed = aws.offerings().await.expect("offers").observations;
    // Where the quota, and not the stock, is what ends it.
    let offer = listed
        .iter()
        .find(|o| o.quota.as_ref().is_some_and(|q| Some(q.instances_left()) < o.capacity))
        .expect("some offer has more stock than quota");
    let quota = offer.quota.as_ref().expect("chosen by it");
    let ask = |n| {
        let zone = offer.key.zone.as_ref().map(AsRef::as_ref);
        let kind = offer.key.instance_type.as_str();
        request("aws", offer.key.region.as_str(), zone, kind, offer.key.purchase, n)
    };
    for n in 0..quota.instances_left() {
        aws.launch(&ask(n)).await.expect("within the quota");
    }
    let error = aws.launch(&ask(quota.instances_left())).await.expect_err("one too many");
    assert_eq!((error.class, &*error.code), (ErrorClass::Quota, "VcpuLimitExceeded"));
    let used = quota.per_instance * f64::from(quota.instances_left());
    for figure in [
        quota.code.clone(),
        format!("limit {}", quota.limit),
        format!("used {used}"),
        format!("needed {}", quota.per_instance),
    ] {
        assert!(error.message.contains(&figure), "{figure}: {error}");
    }
}

#[tokio::test]
async fn b2_a_price_above_the_limit_is_no_capacity_and_nothing_is_made() {
    let f = Fixture::new(FaultPlan::none());
    let mut request = request("aws", "us-east-1", Some("use1-az1"), "g4dn.xlarge", Purchase::Spot, 0);
    request.max_price = HourlyRate::from_usd(0.01).ok();
    let error = f.cloud("aws").launch(&request).await.expect_err("too dear");
    assert_eq!((error.class, &*error.code), (ErrorClass::NoCapacity, "SpotMaxPriceTooLow"));
    assert_eq!(f.made(), 0);
}

#[tokio::test]
async fn a_spot_machine_is_told_before_it_is_taken_and_its_price_stays_bound() {
    let f = Fixture::with(Setup::planned(FaultPlan::none()).weather(Weather::Seeded));
    let aws = f.cloud("aws");
    let (mut taken, mut n) = (0, 0);
    while taken < 5 {
        n += 1;
        let ask = request("aws", "us-east-1", Some("use1-az1"), "g4dn.xlarge", Purchase::Spot, n);
        let Ok(machine) = aws.launch(&ask).await else {
            f.pass(600);
            continue;
        };
        let mut told = None;
        let reason = loop {
            // Shorter than the 20 s that a machine takes to go, so that no state is missed.
            f.pass(19);
            let now = seen(&aws, &machine).await.expect("listed");
            assert_eq!(now.price, machine.price);
            match now.state {
                InstanceState::Provisioning | InstanceState::Running => {
                    if let Some(at) = now.preemption_notice {
                        assert!(at > f.now() && at <= f.now() + Duration::seconds(120));
                        told = Some(at);
                    }
                }
                InstanceState::Preempted => break now.reason,
                other => panic!("{other}"),
            }
        };
        assert!(told.is_some_and(|t| t <= f.now()), "taken without notice");
        assert!(reason.is_some_and(|r| r.contains("SpotInstanceTermination")));
        taken += 1;
        f.pass(60);
        assert_eq!(state(&aws, &machine).await, Some(InstanceState::Gone));
    }
}

#[tokio::test]
async fn on_demand_machines_are_never_taken() {
    let f = Fixture::with(Setup::planned(FaultPlan::none()).weather(Weather::Seeded));
    let aws = f.cloud("aws");
    let machine = aws.launch(&t4(0)).await.expect("launched");
    f.pass(200 * 86_400);
    assert_eq!(state(&aws, &machine).await, Some(InstanceState::Running));
}

#[tokio::test]
async fn a1_a_machine_whose_answer_was_lost_appears_late() {
    let late = Rule::on(Call::Launch, Fault::Late(StdDuration::from_secs(3))).at("aws").nth(1);
    let f = Fixture::new(FaultPlan::none().with(late));
    let aws = f.cloud("aws");
    let error = aws.launch(&t4(0)).await.expect_err("the answer is lost");
    assert_eq!(error.class, ErrorClass::Transient);
    let find = || async { aws.find_by_token(&"us-east-1".into(), "op-0", &t4(0).mark).await.expect("find").len() };
    assert_eq!((find().await, f.billed()), (0, 1));
    f.pass(3);
    assert_eq!(find().await, 1);
    let same = aws.launch(&t4(0)).await.expect("the token finds it");
    assert_eq!((same.token.as_deref(), f.made()), (Some("op-0"), 1));
}

#[tokio::test]
async fn a4_a_terminate_that_is_forgotten_leaves_the_machine() {
    let f = Fixture::new(FaultPlan::none().with(Rule::on(Call::Terminate, Fault::Ignore).nth(4)));
    let aws = f.cloud("aws");
    let mut gang = Vec::new();
    for n in 0..4 {
        gang.push(aws.launch(&t4(n)).await.expect("launched"));
    }
    for node in &gang {
        let answer = aws.terminate(&of(node)).await.expect("accepted");
        assert_eq!(answer, Termination::Accepted(InstanceState::Terminating));
    }
    f.pass(120);
    let left: Vec<_> = f.world.billed().expect("in memory").into_iter().map(|m| m.id).collect();
    assert_eq!(left, [gang[3].id.clone()]);
}

#[tokio::test]
async fn a16_a_machine_that_fails_while_it_is_made_says_why() {
    for (name, region, zone, kind, stays) in [
        ("aws", "us-east-1", Some("use1-az1"), "g4dn.xlarge", false),
        ("azure", "eastus", None, "Standard_NC4as_T4_v3", true),
    ] {
        let f = Fixture::new(FaultPlan::none().with(Rule::on(Call::Launch, Fault::FailLater).nth(1)));
        let cloud = f.cloud(name);
        let machine = cloud.launch(&request(name, region, zone, kind, Purchase::OnDemand, 0)).await.expect("accepted");
        f.pass(240);
        let failed = seen(&cloud, &machine).await.expect("listed");
        assert!(failed.reason.expect("a reason").contains("no capacity"));
        assert_eq!(failed.state, if stays { InstanceState::Failed } else { InstanceState::Gone }, "{name}");
        cloud.terminate(&of(&machine)).await.expect("terminate");
        f.pass(61);
        assert_eq!(f.billed(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn d7_a_cloud_that_never_answers_does_so_before_or_after_the_effect() {
    let plan = FaultPlan::none()
        .with(Rule::on(Call::Launch, Fault::Hang).nth(1))
        .with(Rule::on(Call::Launch, Fault::HangAfter).nth(2));
    let f = Fixture::new(plan);
    let aws = f.cloud("aws");
    for (n, made) in [(0, 0), (1, 1)] {
        let answer = tokio::time::timeout(StdDuration::from_hours(1), aws.launch(&t4(n))).await;
        assert!(answer.is_err());
        assert_eq!(f.made(), made);
    }
}

#[tokio::test]
async fn d7_one_region_down_leaves_the_others() {
    let down = Rule::on(Call::Offerings, Fault::refuse(ErrorClass::Transient, "503")).region("us-west-2").times(1);
    let f = Fixture::new(FaultPlan::none().with(down));
    let aws = f.cloud("aws");
    let part = aws.offerings().await.expect("the others");
    assert!(!part.complete && part.failed.len() == 1);
    assert_eq!(part.failed[0].region.as_ref().map(AsRef::as_ref), Some("us-west-2"));
    assert!(!part.observations.is_empty() && part.observations.iter().all(|o| o.key.region == "us-east-1"));
    let whole = aws.offerings().await.expect("all");
    assert!(whole.complete && whole.observations.len() > part.observations.len());
}

#[tokio::test]
async fn e1_what_happens_behind_our_back_is_what_reads_show() {
    let f = Fixture::new(FaultPlan::none());
    let aws = f.cloud("aws");
    let machine = aws.launch(&t4(0)).await.expect("launched");
    f.pass(120);
    assert!(f.world.force_state(&machine.id, Some(InstanceState::Stopped)).expect("in memory"));
    assert_eq!(state(&aws, &machine).await, Some(InstanceState::Stopped));
    f.world.force_state(&machine.id, None).expect("in memory");
    assert_eq!(state(&aws, &machine).await, Some(InstanceState::Running));
    assert!(f.world.kill(&machine.id, "Client.UserInitiatedShutdown").expect("in memory"));
    assert_eq!(state(&aws, &machine).await, Some(InstanceState::Terminating));
    f.pass(61);
    let gone = seen(&aws, &machine).await.expect("listed");
    assert_eq!(gone.state, InstanceState::Gone);
    assert_eq!(gone.reason.as_deref(), Some("Client.UserInitiatedShutdown"));
    assert!(!f.world.kill(&machine.id, "again").expect("in memory"));
}

#[tokio::test]
async fn reads_lag_miss_and_speak_unknown_words_as_planned() {
    let plan = FaultPlan::none()
        .with(Rule::on(Call::Instances, Fault::Lag(StdDuration::from_mins(1))).nth(1))
        .with(Rule::on(Call::Describe, Fault::Miss).nth(1))
        .with(Rule::on(Call::Describe, Fault::Say("hibernating\u{1b}[2J".into())).nth(2));
    let f = Fixture::new(plan);
    let aws = f.cloud("aws");
    let machine = aws.launch(&t4(0)).await.expect("launched");
    f.pass(59);
    assert_eq!(aws.instances("me").await.expect("list").len(), 0);
    assert_eq!(aws.instances("me").await.expect("list").len(), 1);
    assert_eq!(state(&aws, &machine).await, None);
    assert_eq!(state(&aws, &machine).await, Some(InstanceState::Unknown("hibernating\u{1b}[2J".into())));
    assert_eq!(f.world.calls("aws", Call::Describe), 2);
}

#[tokio::test]
async fn every_offer_says_what_it_is_and_unknown_ones_cannot_be_launched() {
    let f = Fixture::with(Setup::planned(FaultPlan::none()).weather(Weather::Seeded));
    for cloud in f.world.clouds() {
        let all = cloud.offerings().await.expect("offers");
        assert!(all.complete && all.skipped.is_empty() && !all.observations.is_empty());
        for o in &all.observations {
            let (availability, _) = o.availability.expect("stated");
            assert_eq!(availability == Availability::None, o.capacity == Some(0), "{}", o.key);
            let risk = o.interruptions_per_day.expect("stated");
            assert_eq!(o.key.purchase == Purchase::Spot, risk > 0.0, "{}", o.key);
        }
    }
    let mut unknown = t4(0);
    unknown.offer.region = "mars-1".into();
    let error = f.cloud("aws").launch(&unknown).await.expect_err("no such offer");
    assert_eq!(error.class, ErrorClass::Invalid);
}
