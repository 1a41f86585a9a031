//! Plans and explanations of real rankings.

use chrono::TimeDelta;
use gpudeck::domain::{
    Availability, HourlyRate, JobId, JobSpec, Location, Money, Plan, PlanId, PlanKind, Purchase, StepAction,
};
use gpudeck::placement::explain::{compare, explain};
use gpudeck::placement::plans::{Holding, Progress, launch, migrate, terminate};
use gpudeck::placement::{Reason, Rules};

use gpudeck::market::Snapshot;
use gpudeck::network::Network;
use gpudeck::placement::{Context, place as place_job, staying};

use super::world::{Link, Net, World, job, noon, offer, place};

fn actions(plan: &Plan) -> Vec<&'static str> {
    plan.steps.iter().map(|s| s.action.as_str()).collect()
}

fn step(plan: &Plan, action: StepAction) -> &gpudeck::domain::PlanStep {
    plan.steps.iter().find(|s| s.action == action).expect("the step")
}

fn usd(amount: f64) -> Money {
    Money::from_usd(amount).expect("an amount")
}

fn rate(amount: f64) -> HourlyRate {
    HourlyRate::from_usd(amount).expect("a rate")
}

/// A gang of two H100 machines with data in aws/eu-west-1, and a market of two clouds.
fn two_clouds() -> (JobSpec, World) {
    let mut spec = job("H100-80GB-SXM", 8);
    spec.resources.nodes = 2;
    spec.data.location = Some(place("aws/eu-west-1"));
    spec.data.input_gib = 100.0;
    spec.data.checkpoint_gib = 40.0;
    spec.data.checkpoint_uri = Some("s3://bucket/ckpt".into());
    let mut world = World::of([
        offer("aws/eu-west-1/euw1-az1", "p5.48xlarge", Purchase::OnDemand, 60.0),
        offer("gcp/europe-west4/europe-west4-a", "a3-highgpu-8g", Purchase::OnDemand, 40.0),
    ]);
    let link = Link { ms: Some(15.0), usd_per_gib: Some(0.1), gbit_per_second: Some(5.0), estimated: false };
    world.net = Net::default().with("aws/eu-west-1", "gcp/europe-west4", link);
    (spec, world)
}

fn source() -> Holding {
    Holding {
        location: place("aws/eu-west-1/euw1-az1"),
        instance_type: "p5.48xlarge".into(),
        purchase: Some(Purchase::OnDemand),
        rate: Some(rate(60.0)),
        count: 2,
    }
}

#[test]
fn a_launch_checks_before_it_starts_and_verifies_after() {
    let (spec, world) = two_clouds();
    let ranking = world.place(&spec, 2);
    let plan = launch(&spec, &ranking.candidates[0], PlanId::from("p"), noon());
    assert_eq!(actions(&plan), ["check", "launch", "transfer", "verify"]);
    assert_eq!((plan.kind, plan.job.clone(), plan.made_at), (PlanKind::Launch, None, noon()));
    let start = step(&plan, StepAction::Launch);
    assert_eq!((start.count, start.usd_per_hour, start.seconds), (2, Some(rate(80.0)), Some(360)));
    assert_eq!((plan.usd_per_hour_before, plan.usd_per_hour_after), (None, Some(rate(80.0))));
    assert_eq!(plan.usd_once, Some(usd(10.0)), "100 GiB at $0.10");
    assert_eq!(step(&plan, StepAction::Transfer).usd_once, Some(usd(10.0)));
    // Where the data is, nothing moves.
    let near = launch(&spec, &ranking.candidates[1], PlanId::from("p"), noon());
    assert_eq!(actions(&near), ["check", "launch", "verify"]);
    assert_eq!(near.usd_once, Some(Money::ZERO));
}

#[test]
fn a_spread_gang_is_launched_in_every_zone() {
    let mut spec = job("H100-80GB-SXM", 8);
    spec.resources.nodes = 4;
    spec.constraints.combine_zones = true;
    let mut world = World::of([
        offer("aws/us/a", "p5", Purchase::OnDemand, 10.0),
        offer("aws/us/b", "p5", Purchase::OnDemand, 20.0),
    ]);
    world.offers[0].capacity = Some(3);
    let ranking = world.place(&spec, 1);
    let plan = launch(&spec, &ranking.candidates[0], PlanId::from("p"), noon());
    assert_eq!(actions(&plan), ["check", "check", "launch", "launch", "verify", "verify"]);
    let launched: Vec<(u32, Option<HourlyRate>)> =
        plan.steps.iter().filter(|s| s.action == StepAction::Launch).map(|s| (s.count, s.usd_per_hour)).collect();
    assert_eq!(launched, [(3, Some(rate(30.0))), (1, Some(rate(20.0)))]);
    assert_eq!(plan.usd_per_hour_after, Some(rate(50.0)));
}

#[test]
fn a_move_lets_go_of_the_source_last() {
    let (spec, mut world) = two_clouds();
    world.current = Some(place("aws/eu-west-1/euw1-az1"));
    let ranking = world.place(&spec, 2);
    let target = ranking.candidates.iter().find(|c| c.nodes[0].offer.key.provider == "gcp").expect("the move");
    let plan = migrate(
        &spec,
        &JobId::from("j"),
        (&[source()], Progress::default()),
        target,
        &world.net,
        PlanId::from("p"),
        noon(),
    );
    assert_eq!(actions(&plan), ["check", "launch", "checkpoint", "transfer", "resume", "verify", "terminate"]);
    assert_eq!(plan.job, Some(JobId::from("j")));
    assert_eq!((plan.usd_per_hour_before, plan.usd_per_hour_after), (Some(rate(120.0)), Some(rate(80.0))));
    let transfer = step(&plan, StepAction::Transfer);
    assert_eq!(transfer.usd_once, Some(usd(14.0)), "40 GiB of checkpoint and 100 GiB of input at $0.10");
    // 140 GiB are 1,202.6 Gbit, at 5 Gbit/s 240.5 s.
    assert_eq!(transfer.seconds, Some(241));
    assert_eq!(step(&plan, StepAction::Checkpoint).seconds, None, "nothing says how long that takes");
    let last = plan.steps.last().expect("a step");
    assert_eq!((&*last.provider.to_string(), last.count, last.usd_per_hour), ("aws", 2, Some(HourlyRate::ZERO)));
    assert_eq!(target.breakdown.egress, usd(14.0), "ranking and plan agree");
    assert_eq!(plan.usd_once, Some(target.breakdown.egress + target.breakdown.switching));
    assert!(target.breakdown.switching > Money::ZERO);
    let steps = plan.steps.iter().filter_map(|s| s.usd_once).fold(Money::ZERO, |sum, m| sum + m);
    assert_eq!(plan.usd_once, Some(steps), "the steps add up to the plan");
}

#[test]
fn staying_costs_what_the_ranking_says_of_the_place_where_the_job_is() {
    let (spec, mut world) = two_clouds();
    world.offers[0].key.purchase = Purchase::Spot;
    world.offers[0].interruptions_per_day = Some(0.7);
    world.current = Some(place("aws/eu-west-1/euw1-az1"));
    let ranking = world.place(&spec, 2);
    let here = ranking.candidates.iter().find(|c| c.nodes[0].offer.key.provider == "aws").expect("where it is");
    assert_eq!((here.breakdown.egress, here.breakdown.switching), (Money::ZERO, Money::ZERO));
    assert!(here.breakdown.risk > Money::ZERO);
    let stays = staying(&spec, here.usd_per_hour, here.interruptions_per_day);
    assert!((stays.micros() - here.usd_total.micros()).abs() <= 1, "{stays} and {}", here.usd_total);
    assert_eq!(staying(&spec, here.usd_per_hour, None), here.breakdown.compute, "an unknown hazard costs nothing");
    assert_eq!(staying(&spec, here.usd_per_hour, Some(f64::NAN)), here.breakdown.compute);
}

#[test]
fn a_move_says_what_it_does_not_know() {
    let (mut spec, mut world) = two_clouds();
    spec.data.checkpoint_uri = None;
    world.net = Net::default();
    let ranking = world.place(&spec, 2);
    let target = ranking.candidates.iter().find(|c| c.nodes[0].offer.key.provider == "gcp").expect("the move");
    let from = Holding { rate: None, ..source() };
    let plan = migrate(
        &spec,
        &JobId::from("j"),
        (&[from], Progress::default()),
        target,
        &world.net,
        PlanId::from("p"),
        noon(),
    );
    assert_eq!(step(&plan, StepAction::Transfer).seconds, None);
    assert_eq!(plan.usd_per_hour_before, None);
    for words in [
        "how long moving the checkpoint (40 GiB) takes is not known",
        "what the source costs is not known",
        "no tariff",
    ] {
        assert!(plan.warnings.iter().any(|w| w.contains(words)), "'{words}' not in {:?}", plan.warnings);
    }
    spec.data.checkpoint_gib = 0.0;
    let plan = migrate(
        &spec,
        &JobId::from("j"),
        (&[source()], Progress::default()),
        target,
        &world.net,
        PlanId::from("p"),
        noon(),
    );
    assert!(plan.warnings.iter().any(|w| w.contains("starts from the beginning")), "{:?}", plan.warnings);
}

#[test]
fn a_move_that_does_not_pay_and_the_work_it_loses_are_said() {
    let (mut spec, world) = two_clouds();
    spec.run = Some("python train.py".into());
    let ranking = world.place(&spec, 2);
    let target = ranking.candidates.iter().find(|c| c.nodes[0].offer.key.provider == "gcp").expect("the move");
    // Saves a dollar an hour, and costs more once than ten hours of that.
    spec.schedule.duration_hours = Some(10.0);
    let near = Holding { rate: Some(rate(40.5)), ..source() };
    let plan = migrate(
        &spec,
        &JobId::from("j"),
        (&[near], Progress::default()),
        target,
        &world.net,
        PlanId::from("p"),
        noon(),
    );
    let once = plan.usd_once.expect("known");
    let told = plan.warnings.iter().find(|w| w.starts_with("does not pay")).expect("it is told");
    assert!(told.contains(&once.to_string()) && told.contains("are won back after"), "{told}");
    let cheap = Holding { rate: Some(rate(10.0)), ..source() };
    let progress = Progress { running_since: Some(noon() - TimeDelta::hours(5)), last_checkpoint: None };
    let plan = migrate(&spec, &JobId::from("j"), (&[cheap], progress), target, &world.net, PlanId::from("p"), noon());
    for words in
        ["does not pay: the new place costs $60.00/h more", "loses 5 h 00 min of work ($100.00)", "has run for 120 s"]
    {
        assert!(plan.warnings.iter().any(|w| w.contains(words)), "'{words}' not in {:?}", plan.warnings);
    }
}

#[test]
fn an_end_says_what_is_lost() {
    let (spec, _) = two_clouds();
    let end =
        |spec: &JobSpec, progress| terminate(spec, &JobId::from("j"), &[source()], progress, PlanId::from("p"), noon());
    let ago = |minutes: i64| Some(noon() - TimeDelta::minutes(minutes));
    let plan = end(&spec, Progress { running_since: ago(600), last_checkpoint: ago(90) });
    assert_eq!(actions(&plan), ["terminate"]);
    assert_eq!((plan.usd_per_hour_before, plan.usd_per_hour_after), (Some(rate(120.0)), Some(HourlyRate::ZERO)));
    assert_eq!(
        plan.warnings,
        [
            "stops 2 x p5.48xlarge in aws/eu-west-1/euw1-az1",
            "loses 1 h 30 min of work ($180.00), since the last checkpoint"
        ]
    );
    let lost = |spec: &JobSpec, progress| end(spec, progress).warnings[1].clone();
    assert!(lost(&spec, Progress { running_since: ago(60), last_checkpoint: None }).starts_with("loses 1 h 00 min"));
    assert_eq!(lost(&spec, Progress::default()), "how much work is lost is not known");
    let mut bare = spec;
    bare.data.checkpoint_uri = None;
    let all = lost(&bare, Progress { running_since: ago(120), last_checkpoint: ago(1) });
    assert_eq!(all, "loses 2 h 00 min of work ($240.00), since it was started: the job names no place for checkpoints");
}

#[test]
fn f1_a_provider_ahead_of_our_clock_loses_no_negative_time() {
    let (spec, _) = two_clouds();
    let ahead = Progress { running_since: Some(noon() + TimeDelta::seconds(90)), last_checkpoint: None };
    let plan = terminate(&spec, &JobId::from("j"), &[source()], ahead, PlanId::from("p"), noon());
    assert!(plan.warnings[1].starts_with("loses 0 h 00 min of work ($0.00)"), "{:?}", plan.warnings);
}

#[test]
fn e11_an_explanation_names_every_reason_with_figures() {
    let (spec, mut world) = two_clouds();
    world.offers.push(offer("aws/us-east-1/use1-az1", "p5.48xlarge", Purchase::Reserved, 30.0));
    world.offers.push(offer("hostile/\u{1b}[31mred", "\u{1b}]0;x\u{7}", Purchase::OnDemand, 1.0));
    world.offers[3].availability = Availability::None;
    let ranking = world.place(&spec, 5);
    let text = explain(&spec, &ranking).join("\n");
    for words in [
        "test: 2 x 8 GPUs (H100-80GB-SXM); 4 offers looked at, 2 refused, 2 usable, 2 candidates",
        "2 x a3-highgpu-8g on-demand in gcp/europe-west4/europe-west4-a: $80.0000/h",
        "expected 24 h: $1,930.00 = compute $1,920.00 + egress $10.00 + switching $0.00 + risk $0.00",
        "instead 2 x p5.48xlarge on-demand in aws/eu-west-1/euw1-az1: $120.0000/h, +$950.00 in all (compute +$960.00, egress -$10.00)",
        "purchase     reserved is not among on-demand, spot",
    ] {
        assert!(text.contains(words), "'{words}' not in\n{text}");
    }
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "provider's control characters reach the terminal");
    assert!(compare(&ranking.candidates[0], &ranking.candidates[0]).contains("the same cost"));
}

#[test]
fn e11_an_explanation_of_nothing_says_what_would_help() {
    let (mut spec, world) = two_clouds();
    spec.buying.max_usd_per_gpu_hour = Some(gpudeck::domain::GpuHourlyRate::from_micros(1_000_000));
    let text = explain(&spec, &world.place(&spec, 5)).join("\n");
    assert!(text.contains("purchase.max_usd_per_gpu_hour: 1.0 -> 5.0 gives gcp/europe-west4"), "{text}");
    assert!(text.contains("2 price"), "{text}");
}

#[test]
fn a_policy_is_asked_last_and_its_words_are_shown() {
    let (spec, world) = two_clouds();
    let forbid = |o: &gpudeck::domain::Offer| (o.key.provider == "gcp").then(|| "no gcp on Tuesdays".to_owned());
    let ranking = world.place_by(&spec, 5, Rules { forbid: Some(&forbid), ..Rules::default() });
    assert_eq!(ranking.feasible, 1);
    assert_eq!(ranking.rejected[0].reason, Reason::Policy);
    assert_eq!(ranking.rejected[0].detail, "no gcp on Tuesdays");
}

#[test]
fn figures_that_are_not_numbers_place_nothing_and_break_nothing() {
    let (spec, mut world) = two_clouds();
    world.current = Some(Location::region("aws", "eu-west-1"));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, f64::MAX] {
        let mut odd = spec.clone();
        odd.schedule.duration_hours = Some(bad);
        odd.schedule.restart_loss_hours = bad;
        odd.schedule.deadline = Some(noon() + TimeDelta::hours(1));
        odd.data.input_gib = bad;
        odd.data.checkpoint_gib = bad;
        let ranking = world.place(&odd, 5);
        assert_eq!(ranking.usable + ranking.rejected.iter().map(|r| r.offers).sum::<usize>(), ranking.considered);
        let mut odd = spec.clone();
        odd.resources.memory_gib = Some(bad);
        odd.resources.min_gpu_memory_gib = Some(bad);
        let ranking = world.place(&odd, 5);
        assert_eq!(ranking.feasible > 0, bad < 81.0, "a minimum of {bad} GiB");
    }
}

#[test]
fn b22_published_tariffs_keep_a_job_beside_two_terabytes() {
    let mut spec = job("A10G-24GB", 1);
    spec.data.location = Some(place("aws/eu-west-1"));
    spec.data.input_gib = 2048.0;
    spec.schedule.duration_hours = Some(6.0);
    let one = |at: &str, usd: f64| {
        super::world::shaped(offer(at, "g5.xlarge", Purchase::OnDemand, usd), |s| {
            s.accelerator = gpudeck::domain::Accelerator::from_canonical("A10G-24GB");
            s.accelerators = gpudeck::domain::AcceleratorCount::whole(1);
        })
    };
    let snapshot =
        Snapshot::from_offers(noon(), [one("aws/eu-west-1/euw1-az1", 1.4), one("aws/us-east-1/use1-az1", 1.0)]);
    let network = Network::published();
    let context = Context { snapshot: &snapshot, network: &network, now: noon(), cooling: &[], current: None };
    let ranking = place_job(&spec, &context, 2);
    let at: Vec<&str> = ranking.candidates.iter().map(|c| c.nodes[0].offer.key.region.as_str()).collect();
    assert_eq!(at, ["eu-west-1", "us-east-1"]);
    // 2,048 GiB are 2,199 GB, at $0.02 a GB.
    let egress = ranking.candidates[1].breakdown.egress;
    assert!((egress.to_usd() - 43.98).abs() < 0.01, "{egress}");
}
