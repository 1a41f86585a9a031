//! Engine and ledger under simulated time, against clouds that do what a script says. Each test is named after the
//! complaint that it answers.

#![expect(
    unreachable_pub,
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "a test crate: its parts are shared by two, and a test that cannot go on panics"
)]

mod engine;

use std::sync::Arc;
use std::time::Duration;

use engine::crash::Crash;
use engine::fake_cloud::{Call, Fault, usd};
use engine::*;
use gpudeck::domain::job::Recovery;
use gpudeck::domain::{
    ErrorClass, EventKind, FeedHealth, GpuHourlyRate, InstanceState, JobState, Money, OperationKind, Purchase,
};
use gpudeck::engine::{Engine, EngineError, EventFilter, Mode, Options, Wish};
use gpudeck::provider::Connected;
use gpudeck::store::{Ledger, OpenOptions};

fn zone(view: &gpudeck::engine::JobView) -> &str {
    view.zone.as_ref().map_or("", |z| z.as_str())
}

#[tokio::test(start_paused = true)]
async fn a_job_is_launched_runs_and_is_terminated_to_proof() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("llama", 2)).await;
    assert_eq!(bench.alive().len(), 2);
    assert_eq!(job.usd_per_hour, Some(usd("40")));
    bench.check(&engine, "while it runs").await;
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    let ended = settle(&engine, &operation).await;
    assert_eq!(ended.state, JobState::Terminated);
    assert!(bench.alive().is_empty());
    bench.check(&engine, "at the end").await;
}

/// Create answers 504, the machine appears 3 s later, terminate answers 500 twice: no second machine, and no other
/// place before the first attempt is proved gone.
#[tokio::test(start_paused = true)]
async fn a1_no_other_place_before_the_last_attempt_is_proved_gone() {
    let bench = Bench::new();
    bench.aws.lag(3);
    // Two nodes; the first is made and not answered, the second finds the zone sold out.
    bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "20", 1);
    bench.aws.rule(Call::Launch, 1, Fault::DoneBut(ErrorClass::Transient, "504"));
    bench.aws.rule(Call::Terminate, 2, Fault::Refuse(ErrorClass::Transient, "500"));
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("a1", 2)).await;
    assert_eq!(zone(&job), "use1-az2");
    let first_gone = bench.aws.machines().first().and_then(|m| m.ends_at).expect("the first was given back");
    let second_zone = bench.aws.machines().iter().skip(1).map(|m| m.made_at).min().expect("others were made");
    assert!(second_zone >= first_gone, "went on at {second_zone}, gone only at {first_gone}");
    assert_eq!(bench.alive().len(), 2);
    bench.check(&engine, "a1").await;
}

/// The first zone's machine cannot be given back: nothing is started in the second, the job says why, and a person is
/// told; as soon as it is proved gone, the launch goes on.
#[tokio::test(start_paused = true)]
async fn a1_a_terminate_that_is_refused_for_ever_holds_up_the_next_place() {
    for refusal in [(ErrorClass::Transient, "InternalError"), (ErrorClass::Auth, "UnauthorizedOperation")] {
        let bench = Bench::new();
        // Two nodes; the first is made, the second finds the zone sold out.
        bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "20", 1);
        bench.aws.rule(Call::Terminate, 1_000_000, Fault::Refuse(refusal.0, refusal.1));
        let engine = bench.open(Mode::OneShot, 1).await;
        let (job, operation) = launch(&engine, on(capped("a1", 2), "aws")).await.unwrap();
        after(7_200).await;
        let made = bench.aws.machines();
        assert_eq!(made.len(), 1, "nothing beside the one that is to go: {} were made", made.len());
        let id = made.first().map(|m| m.instance.id.clone()).expect("one");
        assert_eq!(bench.aws.count(Call::Launch), 2, "both in the first zone");
        let view = engine.job(job.as_str()).await.unwrap();
        assert_eq!(view.state, JobState::Placing);
        let note = view.note.clone().unwrap_or_default();
        assert!(note.contains("still billing") && note.contains(refusal.1), "{note}");
        assert_eq!(view.usd_per_hour, Some(usd("20")), "and is counted");
        let alerts = engine.state().borrow().alerts.clone();
        let ours = alerts.iter().find(|a| a.text.contains(id.as_str()) && a.text.contains(refusal.1));
        assert!(ours.is_some_and(|a| a.job.as_ref() == Some(&job)), "{alerts:?}");
        bench.aws.heal();
        let view = settle(&engine, &operation).await;
        assert_eq!((view.state, zone(&view)), (JobState::Running, "use1-az2"));
        bench.check(&engine, "a1").await;
    }
}

/// A hundred launches at once with a third of the calls refused: never more machines than were wanted.
#[tokio::test(start_paused = true)]
async fn a2_a_hundred_launches_never_hold_more_machines_than_wanted() {
    let bench = Bench::new();
    for (region, name) in [("us-east-1", "use1-az1"), ("us-east-1", "use1-az2"), ("us-west-2", "usw2-az1")] {
        bench.aws.stock(region, name, Purchase::Spot, "20", 200);
    }
    for name in ["use1-az1", "use1-az2"] {
        bench.aws.rule_in(
            name,
            Call::Launch,
            15,
            Fault::Refuse(ErrorClass::NoCapacity, "InsufficientInstanceCapacity"),
        );
    }
    bench.aws.rule_in("usw2-az1", Call::Launch, 15, Fault::DoneBut(ErrorClass::Transient, "500"));
    bench.aws.rule_in("usw2-az1", Call::Launch, 5, Fault::DoneAndHang);
    let engine = bench.open(Mode::OneShot, 1).await;
    let mut operations = Vec::new();
    for n in 0..100 {
        operations.push(launch(&engine, on(capped(&format!("job-{n}"), 1), "aws")).await.unwrap().1);
    }
    for operation in &operations {
        assert_eq!(settle(&engine, operation).await.state, JobState::Running);
    }
    assert_eq!(bench.alive().len(), 100);
    assert!(bench.aws.most_alive() <= 100, "{} at once", bench.aws.most_alive());
    assert!(bench.aws.doubles().is_empty());
}

/// Launches (`GPUDECK_LAUNCHES`, or 200) while three calls in ten go wrong, in every way that a call can; then all are
/// ended in the same weather. What is alive at the cloud is what the ledger says, to the machine, at both ends.
#[tokio::test(start_paused = true)]
async fn a2_launches_in_foul_weather_are_those_of_the_ledger() {
    let number = |name, default| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default);
    let (seed, launches) = (number("GPUDECK_SEED", 20_261_201), number("GPUDECK_LAUNCHES", 200));
    println!("GPUDECK_SEED={seed} GPUDECK_LAUNCHES={launches}");
    let bench = Bench::new();
    for (region, name) in [("us-east-1", "use1-az1"), ("us-east-1", "use1-az2"), ("us-west-2", "usw2-az1")] {
        bench.aws.stock(region, name, Purchase::Spot, "20", 2_000);
    }
    let engine = bench.open(Mode::OneShot, 1).await;
    bench.aws.foul_weather(0.3, seed);
    let mut operations = Vec::new();
    for n in 0..launches {
        let proposal = loop {
            let wish = Wish::Launch { spec: Box::new(on(capped(&format!("job-{n}"), 1), "aws")), candidate: 0 };
            // The price list goes wrong, too, and every place is left alone at times; an operator tries again later.
            match engine.propose(wish).await {
                Ok(proposal) => break proposal,
                Err(EngineError::Provider(_) | EngineError::NoPlace { .. } | EngineError::Refused { .. }) => {
                    after(30).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        operations.push(engine.execute(proposal, actor("ann")).await.unwrap().1);
    }
    let mut running = 0;
    for operation in &operations {
        running += usize::from(settle(&engine, operation).await.state == JobState::Running);
    }
    let struck = bench.aws.struck();
    println!("{launches} launches, {running} run, {struck} calls went wrong");
    assert!(running as u64 > launches * 9 / 10 && u64::from(struck) > launches, "{running} run, {struck} faults");
    let held = |ledger: &[gpudeck::store::IntentRow]| {
        let mut ids: Vec<_> = ledger.iter().filter_map(|i| i.instance.clone()).collect();
        ids.sort();
        ids
    };
    let ledger = bench.ledger().await;
    let open = ledger.read().await.unwrap().open_intents().await.unwrap();
    let mut alive = bench.alive();
    alive.sort();
    assert_eq!(held(&open), alive, "the ledger's machines are the cloud's");
    assert_eq!(alive.len(), running);
    assert_eq!(bench.aws.doubles(), []);
    for job in engine.jobs().await.unwrap().iter().filter(|j| !j.state.is_final()) {
        terminate(&engine, &job.id).await.unwrap();
    }
    for job in engine.jobs().await.unwrap() {
        until(&engine, &job.id, |j| j.state.is_final()).await;
    }
    assert_eq!((bench.alive().len(), bench.aws.doubles().len()), (0, 0));
    bench.aws.fair_weather();
    bench.check(&engine, "a thousand").await;
}

/// Two engines on one ledger: one drives, and when it stops in the middle the other goes on; nothing is made twice.
#[tokio::test(start_paused = true)]
async fn a3_only_one_process_drives_an_operation() {
    let bench = Bench::new();
    bench.aws.boot(300);
    let first = bench.open(Mode::OneShot, 1).await;
    let (job, operation) = launch(&first, spec("a3", 2)).await.unwrap();
    after(5).await;
    let second = bench.open(Mode::Live, 2).await;
    after(60).await;
    assert_eq!(second.resume().await.unwrap(), 0, "the first holds the lease");
    drop(first);
    let view = until(&second, &job, |j| j.state == JobState::Running).await;
    assert_eq!(second.settle(&operation).await.unwrap().state, JobState::Running);
    assert_eq!(view.instances.len(), 2);
    assert_eq!(bench.aws.count(Call::Launch), 2);
    bench.check(&second, "a3").await;
}

/// A process that was stopped for ten minutes and comes back has lost its lease: it writes and sends nothing more.
#[tokio::test(start_paused = true)]
async fn a3_a_holder_that_comes_back_late_changes_nothing() {
    let bench = Bench::new();
    bench.aws.boot(300);
    let engine = bench.open(Mode::OneShot, 1).await;
    let (job, id) = launch(&engine, spec("late", 1)).await.unwrap();
    after(30).await;
    let ledger = bench.ledger().await;
    let now = bench.clock.now();
    let hour = chrono::Duration::hours(1);
    let mut tx = ledger.begin().await.unwrap();
    assert_eq!(tx.take_lease(&id, "another", None, now, now + hour).await.unwrap(), None, "it is held");
    // As seen ten minutes later, by somebody to whom the holder has not renewed it.
    let later = now + chrono::Duration::minutes(10);
    let taken = tx.take_lease(&id, "another", None, later, later + hour).await.unwrap().expect("it has run out");
    assert!(tx.holds(&taken).await.unwrap());
    let before = tx.operation(&id).await.unwrap().unwrap();
    let old = gpudeck::store::Lease { operation: id.clone(), holder: before.lease_holder.clone().unwrap(), fence: 1 };
    assert!(!tx.holds(&old).await.unwrap());
    tx.commit().await.unwrap();
    after(600).await;
    let mut tx = ledger.begin().await.unwrap();
    assert_eq!(tx.operation(&id).await.unwrap().unwrap(), before, "the old holder has stopped");
    let conflict = tx.update_operation(&before, &old).await;
    assert!(matches!(conflict, Err(gpudeck::store::StoreError::Conflict(_))), "{conflict:?}");
    assert!(!tx.renew_lease(&old, later + hour).await.unwrap());
    drop(tx);
    assert_eq!(engine.job(job.as_str()).await.unwrap().state, JobState::Starting);
}

/// Four machines, the provider deletes three: not terminated until the last is gone.
#[tokio::test(start_paused = true)]
async fn a4_terminated_means_every_machine_is_gone() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("a4", 4)).await;
    let stuck = bench.alive().remove(2);
    bench.aws.stick(&stuck, true);
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    after(4_000).await;
    let view = engine.job("a4").await.unwrap();
    assert_eq!(view.state, JobState::Stopping);
    assert_eq!(bench.alive(), vec![stuck.clone()]);
    assert_eq!(view.usd_per_hour, Some(usd("20")), "what is not gone is counted");
    let alerts = engine.state().borrow().alerts.clone();
    assert!(alerts.iter().any(|a| a.text.contains(stuck.as_str()) && a.text.contains("still billing")), "{alerts:?}");
    assert_eq!(told(&engine, EventKind::Alert).await.len(), 3, "after 5, 15 and 60 minutes");
    bench.aws.stick(&stuck, false);
    assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated);
    assert!(bench.alive().is_empty());
}

/// A 403 on terminate is seen at once, with the provider's code, and is tried again until it succeeds.
#[tokio::test(start_paused = true)]
async fn a6_a_refused_terminate_is_an_alert_with_the_providers_code() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("a6", 1)).await;
    bench.aws.rule(Call::Terminate, 1_000, Fault::Refuse(ErrorClass::Auth, "UnauthorizedOperation"));
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    after(30).await;
    let view = engine.job("a6").await.unwrap();
    assert_eq!(view.state, JobState::Stopping);
    assert!(view.note.as_deref().unwrap_or_default().contains("UnauthorizedOperation"), "{:?}", view.note);
    let alerts = told(&engine, EventKind::Alert).await;
    assert!(alerts.iter().any(|a| a.contains("UnauthorizedOperation")), "{alerts:?}");
    bench.aws.heal();
    assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated);
}

/// 429 on everything after the create: the machine is in the ledger before any further call, and the launch goes on.
#[tokio::test(start_paused = true)]
async fn a7_a_throttled_follow_up_call_loses_nothing() {
    let bench = Bench::new();
    let wait = Duration::from_secs(90);
    bench.aws.rule(Call::Launch, 2, Fault::Throttle(wait));
    bench.aws.rule(Call::Describe, 5, Fault::Throttle(Duration::from_secs(20)));
    let engine = bench.open(Mode::OneShot, 1).await;
    let (job, operation) = launch(&engine, spec("a7", 1)).await.unwrap();
    let view = until(&engine, &job, |j| j.instances.iter().any(|i| i.instance.id.as_str().starts_with("i-aws"))).await;
    assert_eq!(view.state, JobState::Starting);
    assert_eq!(settle(&engine, &operation).await.state, JobState::Running);
    let calls = bench.aws.calls(Call::Launch);
    assert_eq!(calls.len(), 3);
    for pair in calls.windows(2) {
        let (Some(a), Some(b)) = (pair.first(), pair.last()) else { continue };
        assert!(b.0 - a.0 >= chrono::Duration::from_std(wait).unwrap(), "earlier than asked for");
        assert_eq!(a.1, b.1, "under the same token");
    }
}

/// A partition of a minute: nothing is marked as ended, nothing is started elsewhere.
#[tokio::test(start_paused = true)]
async fn a9_a_partition_proves_nothing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let job = running(&engine, spec("a9", 1)).await;
    for call in [Call::Describe, Call::List, Call::Offerings, Call::Find] {
        bench.aws.rule(call, 1_000, Fault::Refuse(ErrorClass::Transient, "ConnectionReset"));
    }
    after(600).await;
    let view = engine.job("a9").await.unwrap();
    assert_eq!((view.state, view.restarts), (JobState::Running, 0));
    let observed = view.instances.first().map(|i| i.observed_at).expect("one");
    assert!(bench.clock.now() - observed >= chrono::Duration::seconds(590), "its age shows");
    bench.aws.heal();
    after(120).await;
    assert_eq!(engine.job("a9").await.unwrap().restarts, 0);
    assert_eq!(bench.alive().len(), 1);
    let _ = job;
}

/// An empty list and an absent read, once: not gone. Twice, a minute apart: gone.
#[tokio::test(start_paused = true)]
async fn a9_one_absent_read_proves_nothing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("a9", 1)).await;
    after(300).await;
    bench.aws.lag(100_000);
    engine.reconcile().await.unwrap();
    after(30).await;
    engine.reconcile().await.unwrap();
    assert_eq!(engine.job("a9").await.unwrap().state, JobState::Running);
    bench.aws.lag(0);
    engine.reconcile().await.unwrap();
    after(90).await;
    bench.aws.lag(100_000);
    engine.reconcile().await.unwrap();
    assert_eq!(engine.job("a9").await.unwrap().state, JobState::Running, "the count begins anew");
    let _ = job;
}

/// Terminate at every second of a launch: it ends with nothing.
#[tokio::test(start_paused = true)]
async fn a11_cancelling_a_launch_at_any_moment_leaves_nothing() {
    for delay_ms in (0..20).map(|n| n * 500).chain([15_000, 59_000, 61_000, 64_000]) {
        let bench = Bench::new();
        bench.aws.lag(10);
        bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "20", 1);
        bench.aws.rule(Call::Launch, 1, Fault::DoneBut(ErrorClass::Transient, "500"));
        let engine = bench.open(Mode::OneShot, 1).await;
        let (job, launching) = launch(&engine, capped("a11", 2)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        let operation = loop {
            match terminate(&engine, &job).await {
                Ok((_, operation)) => break operation,
                Err(EngineError::Conflict(_)) => {}
                Err(other) => panic!("{other}"),
            }
        };
        let view = settle(&engine, &operation).await;
        assert_eq!(view.state, JobState::Terminated, "after {delay_ms} ms");
        assert!(bench.alive().is_empty(), "after {delay_ms} ms");
        assert!(engine.outcome(&launching).await.unwrap().ended);
        after(600).await;
        assert!(bench.alive().is_empty(), "nothing comes late; after {delay_ms} ms");
        bench.check(&engine, &format!("after {delay_ms} ms")).await;
    }
}

/// The token reaches the cloud, is the same on a repeat, and another on another attempt.
#[tokio::test(start_paused = true)]
async fn a13_a_repeat_carries_the_same_token_and_a_new_attempt_another() {
    let bench = Bench::new();
    // The answers are lost and the list lags: only the token tells that there is one already.
    bench.aws.lag(100);
    bench.aws.rule(Call::Launch, 2, Fault::DoneBut(ErrorClass::Transient, "500"));
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("a13", 1)).await;
    let tokens: Vec<String> = bench.aws.calls(Call::Launch).into_iter().map(|(_, token)| token).collect();
    assert_eq!(tokens.len(), 3);
    assert!(tokens.windows(2).all(|w| w.first() == w.last()), "{tokens:?}");
    assert_eq!(bench.aws.machines().len(), 1, "one machine for one wish");
    let ledger = bench.ledger().await;
    let intents = ledger.read().await.unwrap().intents_of(&job.id).await.unwrap();
    assert_eq!(intents.first().map(|i| i.token.as_str()), tokens.first().map(String::as_str));
}

/// `IdempotentParameterMismatch`, and a token of a machine that has ended: looked for, then another attempt with a token
/// of its own.
#[tokio::test(start_paused = true)]
async fn a13_a_conflict_on_the_token_is_looked_into() {
    for code in ["IdempotentParameterMismatch", "IdempotentInstanceTerminated", "alreadyExists"] {
        let bench = Bench::new();
        bench.aws.rule(Call::Launch, 1, Fault::Refuse(ErrorClass::Conflict, code));
        let engine = bench.open(Mode::OneShot, 1).await;
        let job = running(&engine, capped("a13", 1)).await;
        assert_eq!(zone(&job), "use1-az2", "{code}");
        let tokens = bench.aws.calls(Call::Launch);
        assert_eq!(tokens.len(), 2, "{code}: not sent again under the same token");
        assert_ne!(tokens.first().map(|t| &t.1), tokens.last().map(|t| &t.1), "{code}");
    }
}

/// The machine never becomes healthy: its id was written down before the wait, it is given back, the next place is tried.
#[tokio::test(start_paused = true)]
async fn a16_the_id_is_written_down_before_anything_is_waited_for() {
    let bench = Bench::new();
    bench.aws.boot(1_000_000);
    let engine = bench.open(Mode::OneShot, 1).await;
    let (job, operation) = launch(&engine, capped("a16", 1)).await.unwrap();
    let view = until(&engine, &job, |j| {
        !j.instances.is_empty() && j.instances.iter().all(|i| i.instance.state == InstanceState::Provisioning)
    })
    .await;
    assert!(view.instances.iter().all(|i| i.instance.id.as_str().starts_with("i-aws-")));
    after(901).await;
    bench.aws.boot(60);
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Running);
    let outcome = engine.outcome(&operation).await.unwrap();
    assert!(outcome.attempts.first().is_some_and(|a| a.result.contains("not up within 15 min")), "{outcome:#?}");
    assert_eq!(bench.alive().len(), 1);
}

/// The offer says 0.98, 1.52 is bound, 1 was the limit: given back, and never counted at the offer's price.
#[tokio::test(start_paused = true)]
async fn b2_a_price_bound_above_the_limit_is_given_back() {
    let bench = Bench::new();
    bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "7.84", 16);
    bench.aws.binds_at("use1-az1", "12.16");
    for (region, name) in [("us-east-1", "use1-az2"), ("us-west-2", "usw2-az1")] {
        bench.aws.stock(region, name, Purchase::Spot, "80", 16);
    }
    let engine = bench.open(Mode::OneShot, 1).await;
    let mut job = on(spec("b2", 1), "aws");
    job.buying.max_usd_per_gpu_hour = Some(GpuHourlyRate::parse_usd("1").unwrap());
    let (_, operation) = launch(&engine, job).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Failed);
    assert!(bench.alive().is_empty());
    assert!(view.note.as_deref().unwrap_or_default().contains("12.16"), "{:?}", view.note);
    assert!(view.usd_spent >= bench.aws.billed() && view.usd_spent > Money::ZERO);
}

/// Cost comes from what was bound and when: nothing for what never launched, nothing after the end, whatever the
/// catalogue says later.
#[tokio::test(start_paused = true)]
async fn b19_cost_is_what_was_bound_from_request_to_proof() {
    let bench = Bench::new();
    bench.aws.rule_in(
        "use1-az1",
        Call::Launch,
        1,
        Fault::Refuse(ErrorClass::NoCapacity, "InsufficientInstanceCapacity"),
    );
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("b19", 1)).await;
    after(3_600).await;
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    let ended = settle(&engine, &operation).await;
    bench.aws.stock("us-east-1", "use1-az2", Purchase::Spot, "999", 16);
    after(100_000).await;
    let later = engine.job(job.id.as_str()).await.unwrap();
    assert_eq!(later.usd_spent, ended.usd_spent);
    let lines = engine.costs(&job.id).await.unwrap();
    assert_eq!(lines.len(), 1, "the refused one cost nothing: {lines:?}");
    assert!(later.usd_spent >= bench.aws.billed());
    assert!(later.usd_spent < usd("22").for_hours(1.2), "{}", later.usd_spent);
}

/// Fifteen zones are sold out, the sixteenth has some: it is taken. None has: the launch ends, with the reasons counted,
/// and no zone was asked twice, however slowly they refuse.
#[tokio::test(start_paused = true)]
async fn c3_places_that_are_sold_out_are_passed_over_until_one_is_not_or_all_are_asked() {
    let sold_out = Fault::Refuse(ErrorClass::NoCapacity, "InsufficientInstanceCapacity");
    let zones: Vec<String> = (1..=15).map(|n| format!("use1-az{n}")).collect();
    let bench_of_sixteen = || {
        let bench = Bench::new();
        for (n, zone) in zones.iter().enumerate() {
            bench.aws.stock("us-east-1", zone, Purchase::Spot, &format!("{}", 20 + n), 16);
            bench.aws.rule_in(zone, Call::Launch, 1, Fault::Throttle(Duration::from_mins(1)));
            bench.aws.rule_in(zone, Call::Launch, 1_000, sold_out.clone());
        }
        bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "40", 16);
        bench
    };
    let bench = bench_of_sixteen();
    let engine = bench.open(Mode::OneShot, 1).await;
    let (_, operation) = launch(&engine, on(capped("c3", 1), "aws")).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!((view.state, zone(&view)), (JobState::Running, "usw2-az1"), "{:?}", view.note);
    assert_eq!(engine.outcome(&operation).await.unwrap().attempts.len(), 16);

    let bench = bench_of_sixteen();
    bench.aws.rule_in(
        "usw2-az1",
        Call::Launch,
        1_000,
        Fault::Refuse(ErrorClass::Quota, "MaxSpotInstanceCountExceeded"),
    );
    let engine = bench.open(Mode::OneShot, 1).await;
    let (_, operation) = launch(&engine, on(capped("c3", 1), "aws")).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Failed);
    let note = view.note.unwrap_or_default();
    assert!(note.contains("not started after 16 attempts: 15 sold out, 1 out of quota; the last: "), "{note}");
    let outcome = engine.outcome(&operation).await.unwrap();
    assert_eq!((outcome.attempts.len(), outcome.error.map(|e| e.class)), (16, Some(ErrorClass::Quota)));
    assert_eq!(bench.aws.count(Call::Launch), 31, "each zone once, and the throttled once more");
    assert!(bench.aws.machines().is_empty());
}

/// What is no refusal for want of stock is bounded: machines that are made and do not come up cost money.
#[tokio::test(start_paused = true)]
async fn c3_attempts_that_made_something_are_bounded() {
    let bench = Bench::new();
    for n in 1..=15 {
        bench.aws.stock("us-east-1", &format!("use1-az{n}"), Purchase::Spot, &format!("{}", 20 + n), 1);
    }
    bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "40", 1);
    let engine = bench.open(Mode::OneShot, 1).await;
    // A gang of two where each zone has one: one is made each time, and given back.
    let (_, operation) = launch(&engine, on(capped("c3", 2), "aws")).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Failed);
    assert_eq!(engine.outcome(&operation).await.unwrap().attempts.len(), 8);
    assert!(bench.alive().is_empty());
}

/// Codes that no table knows lead elsewhere, and are told.
#[tokio::test(start_paused = true)]
async fn d1_an_unknown_code_is_looked_into_then_tried_elsewhere() {
    let bench = Bench::new();
    bench.aws.rule_in(
        "use1-az1",
        Call::Launch,
        100,
        Fault::Refuse(ErrorClass::Unknown, "ZONE_RESOURCE_POOL_EXHAUSTED_NEW"),
    );
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("d1", 1)).await;
    assert_eq!(zone(&job), "use1-az2");
    let failed = told(&engine, EventKind::AttemptFailed).await;
    assert!(failed.iter().any(|t| t.contains("ZONE_RESOURCE_POOL_EXHAUSTED_NEW")), "{failed:?}");
}

/// Quota, stock, price and time-out are told apart, and every attempt is in the table.
#[tokio::test(start_paused = true)]
async fn d3_every_failed_attempt_keeps_its_own_reason() {
    let bench = Bench::new();
    bench.aws.rule_in(
        "use1-az1",
        Call::Launch,
        1,
        Fault::Refuse(ErrorClass::NoCapacity, "InsufficientInstanceCapacity"),
    );
    bench.aws.rule_in("use1-az2", Call::Launch, 1, Fault::Refuse(ErrorClass::Quota, "MaxSpotInstanceCountExceeded"));
    bench.aws.rule_in("usw2-az1", Call::Launch, 1, Fault::Refuse(ErrorClass::Invalid, "InvalidAMIID.NotFound"));
    let engine = bench.open(Mode::OneShot, 1).await;
    let (_, operation) = launch(&engine, on(capped("d3", 1), "aws")).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Failed);
    let outcome = engine.outcome(&operation).await.unwrap();
    let classes: Vec<Option<ErrorClass>> = outcome.attempts.iter().map(|a| a.error.as_ref().map(|e| e.class)).collect();
    assert_eq!(classes, [Some(ErrorClass::NoCapacity), Some(ErrorClass::Quota), Some(ErrorClass::Invalid)]);
    assert_eq!(outcome.error.map(|e| e.class), Some(ErrorClass::Invalid));
    assert!(!outcome.done && outcome.ended);
}

/// Refused credentials stop the launch with the remedy; no other cloud is taken silently.
#[tokio::test(start_paused = true)]
async fn d3_refused_credentials_stop_and_say_so() {
    let bench = Bench::new();
    bench.aws.rule(Call::Launch, 1, Fault::Refuse(ErrorClass::Auth, "ExpiredToken"));
    let engine = bench.open(Mode::OneShot, 1).await;
    let (_, operation) = launch(&engine, capped("auth", 1)).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Failed);
    assert_eq!(bench.lambda.count(Call::Launch), 0);
    assert_eq!(engine.outcome(&operation).await.unwrap().error.map(|e| e.code), Some("ExpiredToken".into()));
}

/// An adapter that never answers: the attempt has a deadline, what it may have made is looked for, the next is tried.
/// Whoever comes after does not wait again: the zone is left alone for a while.
#[tokio::test(start_paused = true)]
async fn d7_a_call_that_never_answers_has_a_deadline() {
    let bench = Bench::new();
    bench.aws.rule_in("use1-az1", Call::Launch, 100, Fault::Hang);
    bench.lambda.rule(Call::Offerings, 100, Fault::Hang);
    let engine = bench.open(Mode::OneShot, 1).await;
    let began = bench.clock.now();
    let job = running(&engine, capped("d7", 1)).await;
    assert_eq!(zone(&job), "use1-az2");
    let calls = bench.aws.calls(Call::Launch);
    // Six times the longest call, and two looks a minute apart after the last of them.
    let gone_on = calls.last().map(|(at, _)| *at - began).expect("calls");
    assert!(gone_on < chrono::Duration::seconds(400), "went on only after {gone_on}");
    assert!(bench.clock.now() - began < chrono::Duration::minutes(8));
    bench.check(&engine, "d7").await;
    let began = bench.clock.now();
    let next = running(&engine, capped("d7-next", 1)).await;
    assert_eq!(zone(&next), "use1-az2");
    assert_eq!(bench.aws.count(Call::Launch), calls.len() + 1, "straight to the other zone");
    assert!(bench.clock.now() - began < chrono::Duration::minutes(2), "no longer than it takes to boot");
    bench.check(&engine, "d7").await;
}

/// What somebody does to a machine behind our back.
const BEHIND_OUR_BACK: [InstanceState; 3] = [InstanceState::Gone, InstanceState::Stopped, InstanceState::Running];

/// How a machine is shown, and how long ago it was seen.
fn shown(bench: &Bench, view: &gpudeck::engine::JobView, id: &gpudeck::domain::InstanceId) -> (InstanceState, i64) {
    let machine = view.instances.iter().find(|i| &i.instance.id == id).expect("the machine is shown");
    (machine.instance.state.clone(), (bench.clock.now() - machine.observed_at).num_seconds())
}

/// Stopped, killed or restarted behind our back: the job shows what the provider shows, and since when.
#[tokio::test(start_paused = true)]
async fn e1_the_state_shown_is_the_providers() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    running(&engine, spec("e1", 1)).await;
    let id = bench.alive().remove(0);
    for (state, word) in [
        (InstanceState::Stopped, "stopped"),
        (InstanceState::Unknown("FROZEN".into()), "FROZEN"),
        (InstanceState::Stopping, "stopping"),
    ] {
        bench.aws.force(&id, &state, "by hand");
        after(10).await;
        engine.reconcile().await.unwrap();
        let view = engine.job("e1").await.unwrap();
        let told = view.note.clone().unwrap_or_default();
        assert!(told.starts_with("node 0 is ") && told.contains(word) && told.ends_with("seen 0 s ago"), "{told}");
        assert_eq!(shown(&bench, &view, &id), (state.clone(), 0));
        after(400).await;
        let later = engine.job("e1").await.unwrap();
        assert!(
            later.note.as_deref().is_some_and(|n| n.ends_with("seen 6 min ago")),
            "its age shows: {:?}",
            later.note
        );
        assert_eq!(later.usd_per_hour, Some(usd("20")), "counts as billed");
    }
    bench.aws.force(&id, &InstanceState::Running, "by hand");
    engine.reconcile().await.unwrap();
    assert_eq!(engine.job("e1").await.unwrap().note, None);
}

#[tokio::test(start_paused = true)]
async fn e1_behind_our_back_while_it_starts() {
    for state in BEHIND_OUR_BACK {
        let bench = Bench::new();
        bench.aws.boot(300);
        let engine = bench.open(Mode::OneShot, 1).await;
        let (job, operation) = launch(&engine, on(capped("e1", 1), "aws")).await.unwrap();
        after(20).await;
        assert_eq!(engine.job(job.as_str()).await.unwrap().state, JobState::Starting);
        let id = bench.alive().remove(0);
        bench.aws.force(&id, &state, "by hand");
        after(6).await;
        if state == InstanceState::Running {
            let view = engine.job(job.as_str()).await.unwrap();
            assert_eq!((view.state, view.note.as_deref()), (JobState::Running, None));
            assert!(shown(&bench, &view, &id).1 <= 6);
        }
        if state == InstanceState::Stopped {
            let view = engine.job(job.as_str()).await.unwrap();
            let told = view.note.clone().unwrap_or_default();
            assert!(told.ends_with("accepted, then stopped: by hand"), "{told}");
            assert!(shown(&bench, &view, &id).1 <= 6, "{view:?}");
        }
        let view = settle(&engine, &operation).await;
        assert_eq!(view.state, JobState::Running, "{state}");
        let attempts = engine.outcome(&operation).await.unwrap().attempts;
        let first = attempts.first().map(|a| a.result.clone()).unwrap_or_default();
        match state {
            InstanceState::Gone => assert!(first.ends_with("accepted, then gone"), "{first}"),
            InstanceState::Stopped => assert!(first.ends_with("accepted, then stopped: by hand"), "{first}"),
            _ => assert_eq!(first, "runs"),
        }
        let expected = if state == InstanceState::Running { "use1-az1" } else { "use1-az2" };
        assert_eq!(zone(&view), expected, "{state}");
        assert_eq!(bench.alive().len(), 1, "{state}: what failed was given back");
        bench.check(&engine, &format!("e1 starting, {state}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn e1_behind_our_back_while_it_runs() {
    for state in BEHIND_OUR_BACK {
        let bench = Bench::new();
        let engine = bench.open(Mode::OneShot, 1).await;
        running(&engine, spec("e1", 1)).await;
        let id = bench.alive().remove(0);
        bench.aws.force(&id, &state, "by hand");
        after(30).await;
        engine.reconcile().await.unwrap();
        let view = engine.job("e1").await.unwrap();
        assert_eq!(view.state, JobState::Running, "{state}");
        match state {
            InstanceState::Stopped => {
                assert_eq!(view.note.as_deref(), Some("node 0 is stopped at the provider, seen 0 s ago"));
                assert_eq!(shown(&bench, &view, &id), (state.clone(), 0));
            }
            InstanceState::Running => {
                assert_eq!(view.note, None);
                assert_eq!(shown(&bench, &view, &id), (state.clone(), 0));
            }
            _ => {
                // Once missed is not gone; it was last seen when it was last seen.
                assert_eq!(view.note, None);
                let (seen, age) = shown(&bench, &view, &id);
                assert!(seen == InstanceState::Running && age >= 30, "{seen} {age}");
                after(61).await;
                engine.reconcile().await.unwrap();
                let view = engine.job("e1").await.unwrap();
                assert_eq!(view.state, JobState::Preempted);
                assert!(view.note.as_deref().is_some_and(|n| n.ends_with("is gone, and not by us")), "{:?}", view.note);
                assert_eq!(shown(&bench, &view, &id).0, InstanceState::Gone);
            }
        }
        bench.check(&engine, &format!("e1 running, {state}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn e1_behind_our_back_while_it_moves() {
    for state in BEHIND_OUR_BACK {
        let bench = Bench::new();
        let engine = bench.open(Mode::OneShot, 1).await;
        let job = running(&engine, capped("e1", 1)).await;
        let id = bench.alive().remove(0);
        bench.aws.boot(600);
        let (_, operation) = migrate(&engine, &job.id, Some("aws/us-west-2")).await.unwrap();
        after(20).await;
        bench.aws.force(&id, &state, "by hand");
        engine.reconcile().await.unwrap();
        if state == InstanceState::Gone {
            after(61).await;
            engine.reconcile().await.unwrap();
        }
        let view = engine.job("e1").await.unwrap();
        assert_eq!(view.state, JobState::Migrating, "{state}");
        match state {
            InstanceState::Stopped => {
                assert_eq!(view.note.as_deref(), Some("node 0 is stopped at the provider, seen 0 s ago"));
                assert_eq!(shown(&bench, &view, &id), (state.clone(), 0));
            }
            InstanceState::Running => assert_eq!((view.note.as_deref(), shown(&bench, &view, &id).1), (None, 0)),
            _ => {
                let told = view.note.clone().unwrap_or_default();
                assert!(told.starts_with("node 0 is gone at the provider, seen "), "{told}");
            }
        }
        let view = settle(&engine, &operation).await;
        assert_eq!((view.state, view.note.as_deref()), (JobState::Running, None), "{state}");
        assert_eq!(view.region.as_ref().map(gpudeck::domain::Region::as_str), Some("us-west-2"), "{state}");
        assert!(!bench.alive().contains(&id) && bench.alive().len() == 1, "{state}");
        bench.check(&engine, &format!("e1 migrating, {state}")).await;
    }
}

/// The target of a move is taken away by itself, and there is no other place: the job runs on where it was, and nothing
/// that is done afterwards takes the dead target for what the job ran on.
#[tokio::test(start_paused = true)]
async fn e1_a_target_that_goes_by_itself_leaves_the_source() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("e1", 1)).await;
    let source = bench.alive().remove(0);
    bench.aws.boot(600);
    let (_, operation) = migrate(&engine, &job.id, Some("aws/us-west-2")).await.unwrap();
    after(20).await;
    let target = bench.alive().into_iter().find(|id| *id != source).expect("the target");
    for cloud in [&bench.aws, &bench.lambda] {
        cloud.rule(Call::Launch, 100, Fault::Refuse(ErrorClass::NoCapacity, "sold out"));
    }
    bench.aws.force(&target, &InstanceState::Gone, "evicted");
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Running);
    for _ in 0..4 {
        after(61).await;
        engine.reconcile().await.unwrap();
    }
    let view = engine.job("e1").await.unwrap();
    assert_eq!((view.state, view.restarts), (JobState::Running, 0));
    assert_eq!(bench.alive(), [source]);
    bench.check(&engine, "e1 target").await;
}

#[tokio::test(start_paused = true)]
async fn e1_behind_our_back_while_it_stops() {
    for state in BEHIND_OUR_BACK {
        let bench = Bench::new();
        let engine = bench.open(Mode::OneShot, 1).await;
        let job = running(&engine, spec("e1", 1)).await;
        let id = bench.alive().remove(0);
        bench.aws.stick(&id, true);
        let (_, operation) = terminate(&engine, &job.id).await.unwrap();
        after(20).await;
        bench.aws.force(&id, &state, "by hand");
        after(20).await;
        let view = engine.job("e1").await.unwrap();
        assert_eq!(view.state, JobState::Stopping, "{state}: one read proves nothing");
        assert_eq!(view.usd_per_hour, Some(usd("20")), "{state}: counts as billed");
        let waits = view.operation.as_ref().map(|o| o.waiting_for.clone()).unwrap_or_default();
        assert_eq!(waits, "1 machines to be gone", "{state}");
        let (seen, age) = shown(&bench, &view, &id);
        if state == InstanceState::Gone {
            assert!(age >= 20, "it was not seen since: {age}");
        } else {
            assert_eq!(seen, state);
            assert!(age <= 5, "{state}: {age} s");
            after(360).await;
            let view = engine.job("e1").await.unwrap();
            assert_eq!(view.state, JobState::Stopping, "{state}");
            let alerts = engine.state().borrow().alerts.clone();
            assert!(alerts.iter().any(|a| a.text.contains(id.as_str())), "{state}: {alerts:?}");
            bench.aws.stick(&id, false);
        }
        assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated, "{state}");
        assert!(bench.alive().is_empty(), "{state}");
        bench.check(&engine, &format!("e1 stopping, {state}")).await;
    }
}

/// One node of a gang is preempted: the whole gang is released and started again, elsewhere, within the poll.
#[tokio::test(start_paused = true)]
async fn e2_e5_a_preempted_node_restarts_the_gang_elsewhere() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let job = running(&engine, spec("e5", 4)).await;
    let old = bench.alive();
    let victim = old.first().cloned().expect("one");
    bench.aws.force(&victim, &InstanceState::Preempted, "Server.SpotInstanceTermination");
    after(11).await;
    let view = engine.job("e5").await.unwrap();
    assert_eq!(view.state, JobState::Preempted, "seen within one poll");
    assert!(view.note.as_deref().unwrap_or_default().contains("Server.SpotInstanceTermination"), "{:?}", view.note);
    let view = until(&engine, &job.id, |j| j.state == JobState::Running).await;
    assert_eq!(view.restarts, 1);
    assert_eq!(zone(&view), "use1-az2", "the zone that failed is left alone");
    let alive = bench.alive();
    assert_eq!(alive.len(), 4);
    assert!(alive.iter().all(|id| !old.contains(id)), "the old gang is gone");
    assert_eq!(told(&engine, EventKind::Recovered).await.len(), 1);
    bench.check(&engine, "e5").await;
}

/// Nothing fits for an hour: the recovery goes on, says why, and succeeds when there is room; never failed.
#[tokio::test(start_paused = true)]
async fn e3_a_recovery_never_ends_without_a_place() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let job = running(&engine, on(spec("e3", 1), "aws")).await;
    for (region, name) in [("us-east-1", "use1-az1"), ("us-east-1", "use1-az2"), ("us-west-2", "usw2-az1")] {
        bench.aws.stock(region, name, Purchase::Spot, "20", 0);
    }
    bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
    after(3_600).await;
    let view = engine.job("e3").await.unwrap();
    assert!(!view.state.is_final(), "{view:?}");
    assert!(view.note.is_some() && view.operation.is_some());
    assert!(bench.alive().is_empty());
    let tries = bench.aws.count(Call::Launch);
    assert!((3..60).contains(&tries), "tries on, and not madly: {tries}");
    bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "20", 4);
    let view = until(&engine, &job.id, |j| j.state == JobState::Running).await;
    assert_eq!(view.restarts, 1);
}

/// The feed is down: the note says that, not "no capacity".
#[tokio::test(start_paused = true)]
async fn c7_a_feed_that_fails_is_not_no_capacity() {
    let bench = Bench::new();
    bench.aws.rule(Call::Offerings, 1_000, Fault::Refuse(ErrorClass::Auth, "ExpiredToken"));
    bench.lambda.rule(Call::Offerings, 1_000, Fault::Refuse(ErrorClass::Transient, "502"));
    let engine = bench.open(Mode::OneShot, 1).await;
    let refused = engine.propose(Wish::Launch { spec: Box::new(spec("c7", 1)), candidate: 0 }).await;
    assert!(matches!(refused, Err(EngineError::NoPlace { .. })), "{refused:?}");
    let state = engine.state().borrow().clone();
    let aws = state.market.feeds().iter().find(|f| f.provider == "aws").expect("a feed");
    assert_eq!(aws.error.as_ref().map(|e| e.class), Some(ErrorClass::Auth));
}

/// Two live engines on one ledger: both see the preemption, one recovers it, nothing is made twice.
#[tokio::test(start_paused = true)]
async fn a14_two_live_engines_recover_a_job_once() {
    let bench = Bench::new();
    let one = bench.open(Mode::Live, 1).await;
    let two = bench.open(Mode::Live, 2).await;
    after(130).await;
    let job = running(&one, spec("a14", 2)).await;
    for round in 1..=2 {
        bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
        let view = until(&two, &job.id, |j| j.state == JobState::Running && j.restarts == round).await;
        assert_eq!(view.restarts, round);
        assert_eq!(bench.alive().len(), 2);
        after(300).await;
    }
    assert_eq!(bench.aws.count(Call::Launch), 6, "two machines at first, two after each preemption");
    assert!(bench.aws.most_alive() <= 2, "{} at once", bench.aws.most_alive());
    assert_eq!(told(&one, EventKind::Recovered).await.len(), 2);
    assert_eq!(told(&one, EventKind::Preempted).await.len(), 2);
    bench.check(&one, "a14").await;
}

/// A job that is to stay down stays down; what it held is released, and a person is told.
#[tokio::test(start_paused = true)]
async fn e3_a_job_that_stays_down_stays_down_and_holds_nothing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let mut wanted = spec("down", 2);
    wanted.schedule.recovery = Recovery::StayDown;
    let job = running(&engine, wanted).await;
    bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
    after(600).await;
    let view = engine.job("down").await.unwrap();
    assert_eq!((view.state, view.restarts), (JobState::Preempted, 0));
    assert!(bench.alive().is_empty());
    assert!(engine.state().borrow().alerts.iter().any(|a| a.job.as_ref() == Some(&job.id)));
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated);
}

/// A restart with many live jobs and a provider that does not answer: none is touched before it is seen.
#[tokio::test(start_paused = true)]
async fn e8_a_restart_marks_nothing_as_failed() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let mut jobs = Vec::new();
    for n in 0..10 {
        jobs.push(running(&engine, capped(&format!("e8-{n}"), 1)).await.id);
    }
    engine.shutdown().await;
    for call in [Call::Describe, Call::List, Call::Offerings] {
        bench.aws.rule(call, 1_000, Fault::Hang);
    }
    let engine = bench.open(Mode::Live, 2).await;
    after(900).await;
    for job in &jobs {
        assert_eq!(engine.job(job.as_str()).await.unwrap().state, JobState::Running);
    }
    assert_eq!(bench.alive().len(), 10);
    bench.aws.heal();
    after(300).await;
    assert!(engine.jobs().await.unwrap().iter().all(|j| j.state == JobState::Running && j.restarts == 0));
}

/// Times are one clock's and UTC; cost and age never run backwards.
#[tokio::test(start_paused = true)]
async fn f1_cost_never_runs_backwards() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("f1", 1)).await;
    // The provider's clock is an hour ahead.
    let ahead = bench.clock.now() + chrono::Duration::hours(1);
    bench.aws.remark(&bench.alive().remove(0), |i| i.launched_at = Some(ahead));
    let mut last = Money::ZERO;
    for _ in 0..5 {
        engine.reconcile().await.unwrap();
        let spent = engine.job("f1").await.unwrap().usd_spent;
        assert!(spent >= last && spent >= bench.aws.billed());
        last = spent;
        after(60).await;
    }
    let events = engine.events(&EventFilter { job: Some(job.id.clone()), ..EventFilter::default() }).await.unwrap();
    assert!(events.windows(2).all(|w| w.first().map(|e| e.seq) < w.last().map(|e| e.seq)));
}

/// How the feed of `aws` was seen to do, second by second.
async fn health_of_aws(engine: &Engine, seconds: u64) -> Vec<FeedHealth> {
    let mut seen = Vec::new();
    for _ in 0..seconds {
        after(1).await;
        let state = engine.state().borrow().clone();
        seen.extend(state.market.feeds().iter().filter(|f| f.provider == "aws").map(|f| f.health));
    }
    seen
}

/// One answer that stays out turns nothing stale, whatever the moment; two in a row do, and the next one heals it.
#[tokio::test(start_paused = true)]
async fn op14_one_missed_poll_never_turns_a_feed_stale() {
    for seed in 1..=3 {
        let bench = Bench::new();
        let engine = bench.open(Mode::Live, seed).await;
        after(70).await;
        for _ in 0..6 {
            bench.aws.rule(Call::Offerings, 1, Fault::Refuse(ErrorClass::Transient, "502"));
            let seen = health_of_aws(&engine, 500).await;
            assert!(seen.iter().all(|h| *h == FeedHealth::Live), "seed {seed}: {seen:?}");
        }
        assert!(told(&engine, EventKind::Feed).await.iter().all(|t| !t.contains("aws: stale")));
        bench.aws.rule(Call::Offerings, 2, Fault::Refuse(ErrorClass::Transient, "502"));
        let seen = health_of_aws(&engine, 700).await;
        assert!(seen.contains(&FeedHealth::Stale), "seed {seed}: two are a fact");
        assert_eq!(seen.last(), Some(&FeedHealth::Live), "seed {seed}");
    }
}

/// A world that goes faster than providers may be asked: what they said counts for as long as it takes to ask again.
#[tokio::test(start_paused = true)]
async fn op13_op14_a_fast_world_turns_nothing_stale_and_launches() {
    for speed in [121.0, 600.0, 20_000.0] {
        let bench = Bench::at_speed(speed);
        let mut options = bench.options(Mode::Live, 1, &Arc::new(Crash::never()));
        options.limits.feed_every = Duration::from_mins(1);
        let engine = Engine::start(options).await.expect("the engine starts");
        let began = bench.clock.now();
        let seen = health_of_aws(&engine, 40).await;
        assert!(bench.clock.now() - began > chrono::Duration::hours(1));
        assert!(seen.iter().all(|h| matches!(h, FeedHealth::Loading | FeedHealth::Live)), "at {speed}: {seen:?}");
        let feeds = told(&engine, EventKind::Feed).await;
        assert_eq!(feeds.len(), 2, "at {speed}, each feed says once that it is live: {feeds:?}");
        // Old by the clock alone, and as new as can be.
        tokio::time::sleep(Duration::from_millis(900)).await;
        let job = running(&engine, spec("fast", 1)).await;
        let (_, operation) = terminate(&engine, &job.id).await.unwrap();
        assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated, "at {speed}");
        // A provider that does not answer at all is told all the same.
        bench.aws.rule(Call::Offerings, 1_000, Fault::Refuse(ErrorClass::Transient, "502"));
        let seen = health_of_aws(&engine, 60).await;
        assert!(seen.contains(&FeedHealth::Stale) && seen.last() == Some(&FeedHealth::Down), "at {speed}: {seen:?}");
    }
}

/// A cloud that lost most of its rows is not believed, nothing is started there, and a person is told; that ends by
/// itself, and is told, when it goes on saying so.
#[tokio::test(start_paused = true)]
async fn c7_a_quarantine_ends_by_itself_and_says_so() {
    let bench = Bench::new();
    for n in 0..60 {
        bench.aws.stock("eu-west-1", &format!("euw1-az{n}"), Purchase::Spot, "18", 16);
    }
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    bench.aws.withdraw("eu-west-1");
    let seen = health_of_aws(&engine, 240).await;
    assert_eq!(seen.last(), Some(&FeedHealth::Quarantined));
    let refused = engine.propose(Wish::Launch { spec: Box::new(on(spec("q", 1), "aws")), candidate: 0 }).await;
    assert!(matches!(refused, Err(EngineError::Refused { .. })), "{refused:?}");
    let alerts = engine.state().borrow().alerts.clone();
    assert!(alerts.iter().any(|a| a.text.contains("believed when 2 more answers agree")), "{alerts:?}");
    health_of_aws(&engine, 700).await;
    let events = told(&engine, EventKind::Feed).await;
    assert!(
        events.iter().any(|t| t.starts_with("feed aws: live It answered without 60 of the 63 offers")),
        "{events:?}"
    );
    assert!(engine.state().borrow().alerts.iter().all(|a| !a.text.contains("feed aws")));
    let job = running(&engine, on(spec("q", 1), "aws")).await;
    assert_eq!(zone(&job), "use1-az1");
}

/// Auth has expired and the figures are old: nothing is started on them until they are read again.
#[tokio::test(start_paused = true)]
async fn op13_nothing_is_started_on_old_figures() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let proposal =
        engine.propose(Wish::Launch { spec: Box::new(on(spec("op13", 1), "aws")), candidate: 0 }).await.unwrap();
    bench.aws.rule(Call::Offerings, 1_000, Fault::Refuse(ErrorClass::Auth, "ExpiredToken"));
    after(1_800).await;
    engine.refresh_feeds(None).await.unwrap();
    let refused = engine.execute(proposal, actor("ann")).await;
    let Err(EngineError::Provider(error)) = &refused else { panic!("{refused:?}") };
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Auth, "ExpiredToken"), "its own word");
    let refused = engine.propose(Wish::Launch { spec: Box::new(on(spec("op13", 1), "aws")), candidate: 0 }).await;
    assert!(matches!(refused, Err(EngineError::Provider(_) | EngineError::NoPlace { .. })), "{refused:?}");
    assert_eq!(bench.aws.count(Call::Launch), 0);
    bench.aws.heal();
    // Once read again, at the operator's wish, it goes.
    running(&engine, on(spec("op13", 1), "aws")).await;
}

/// The ledger's file is taken away under a running engine: the screen says so and nothing is started; put back, it goes on.
#[tokio::test(start_paused = true)]
async fn f23_a_ledger_that_is_taken_away_is_told_where_jobs_are_seen() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    running(&engine, spec("f23", 1)).await;
    let aside = bench.ledger_path().with_extension("aside");
    std::fs::rename(bench.ledger_path(), &aside).unwrap();
    after(130).await;
    let told = |engine: &Engine| {
        let state = engine.state().borrow().clone();
        (state.alerts.iter().any(|a| a.text.contains("the ledger cannot be used")), state.jobs.len())
    };
    assert_eq!(told(&engine), (true, 1), "said, and what is known stays on the screen");
    let launches = bench.aws.count(Call::Launch);
    let wish = Wish::Launch { spec: Box::new(spec("f23-b", 1)), candidate: 0 };
    assert!(engine.propose(wish).await.is_err());
    assert_eq!(bench.aws.count(Call::Launch), launches);
    std::fs::rename(&aside, bench.ledger_path()).unwrap();
    after(130).await;
    assert_eq!(told(&engine), (false, 1), "over, and no longer said");
}

/// The machine that ran the tool died: on another, with the owner's id, everything that carries our mark is listed.
#[tokio::test(start_paused = true)]
async fn op41_a_bare_machine_finds_everything_by_its_mark() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let owner = engine.owner().to_owned();
    running(&engine, spec("op41", 3)).await;
    engine.shutdown().await;
    let lost: Vec<_> = bench.alive();
    let elsewhere = tempfile::TempDir::new().unwrap();
    let mut options = Options::new(bench.clock.clone(), elsewhere.path().join("ledger.db"), actor("eve"));
    options.providers = vec![Connected::full(bench.aws.clone()), Connected::full(bench.lambda.clone())];
    options.owner = Some(owner);
    options.seed = Some(77);
    options.crash = Some(Arc::new(Crash::never()));
    let bare = Engine::start(options).await.unwrap();
    let orphans = bare.orphans().await.unwrap();
    assert_eq!(orphans.len(), 3);
    assert!(orphans.iter().all(|o| o.mark.is_some() && lost.contains(&o.id)));
    assert_eq!(bench.alive().len(), 3, "listed, and not touched");
    for orphan in &orphans {
        bare.terminate_orphan(&"aws".into(), &orphan.id, actor("eve")).await.unwrap();
    }
    assert!(bench.alive().is_empty());
    assert!(bare.orphans().await.unwrap().is_empty());
}

/// Cancelled during a recovery: "terminated" only when the provider shows that everything is gone.
#[tokio::test(start_paused = true)]
async fn op42_cancelling_a_recovery_leaks_nothing() {
    for delay in [1, 11, 13, 20, 45, 80, 100, 130, 170, 200] {
        let bench = Bench::new();
        let engine = bench.open(Mode::Live, 1).await;
        after(70).await;
        let job = running(&engine, spec("op42", 2)).await;
        bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
        after(delay).await;
        let operation = loop {
            match terminate(&engine, &job.id).await {
                Ok((_, operation)) => break operation,
                Err(EngineError::Conflict(_)) => {}
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated, "after {delay} s");
        assert!(bench.alive().is_empty(), "after {delay} s");
        after(600).await;
        assert!(bench.alive().is_empty(), "after {delay} s");
        bench.check(&engine, "op42").await;
    }
}

/// Whatever is past "request sent" counts as billed until proved absent.
#[tokio::test(start_paused = true)]
async fn op43_what_may_exist_is_counted() {
    let bench = Bench::new();
    bench.lambda.rule(Call::Launch, 1, Fault::DoneBut(ErrorClass::Transient, "502"));
    bench.lambda.lag(1_000_000);
    let engine = bench.open(Mode::OneShot, 1).await;
    let (job, operation) = launch(&engine, on(spec("op43", 1), "lambda")).await.unwrap();
    after(600).await;
    let view = engine.job("op43").await.unwrap();
    assert_eq!(view.state, JobState::Starting);
    assert_eq!(view.usd_per_hour, Some(usd("30")), "not proved: counted");
    assert_eq!(engine.state().borrow().usd_per_hour, usd("30"));
    assert!(view.usd_spent >= bench.lambda.billed());
    assert!(told(&engine, EventKind::Alert).await.iter().any(|a| a.contains("not answered")));
    assert_eq!(bench.lambda.count(Call::Launch), 1, "op46: never sent again blindly");
    // It shows up at last, is taken in, and the launch goes on.
    bench.lambda.lag(0);
    engine.reconcile().await.unwrap();
    assert_eq!(settle(&engine, &operation).await.state, JobState::Running);
    assert_eq!(bench.alive().len(), 1);
    let _ = job;
}

/// Logged in as somebody else while a job runs: its machine is not seen, so nothing is concluded, nothing is started
/// elsewhere, nothing is ended; and it is said. Back in the right account it all goes on.
#[tokio::test(start_paused = true)]
async fn f18_another_account_proves_and_ends_nothing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let job = running(&engine, spec("f18", 2)).await;
    after(60).await;
    bench.aws.log_in(Some("second"));
    after(1_800).await;
    let view = engine.job("f18").await.unwrap();
    assert_eq!((view.state, view.restarts), (JobState::Running, 0), "{:?}", view.note);
    let alerts = told(&engine, EventKind::Alert).await;
    assert!(alerts.iter().any(|a| a.contains("2 machines") && a.contains("second")), "{alerts:?}");
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    after(1_800).await;
    let view = engine.job("f18").await.unwrap();
    assert_eq!(view.state, JobState::Stopping);
    assert!(view.note.as_deref().unwrap_or_default().contains("log in"), "{:?}", view.note);
    assert_eq!(bench.aws.count(Call::Terminate), 0, "nothing is sent to the wrong account");
    assert_eq!(bench.alive().len(), 2);
    bench.aws.log_in(Some("first"));
    assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated);
    assert!(bench.alive().is_empty());
    assert!(engine.state().borrow().alerts.iter().all(|a| !a.text.contains("second")), "it is taken back");
    bench.check(&engine, "f18").await;
}

/// A launch was not answered, and the session is another account's by the time it is looked for: neither found nor
/// proved absent there, and not sent again.
#[tokio::test(start_paused = true)]
async fn f18_an_unanswered_launch_is_not_looked_for_elsewhere() {
    let bench = Bench::new();
    bench.aws.rule(Call::Launch, 1, Fault::DoneAndHang);
    let engine = bench.open(Mode::OneShot, 1).await;
    let (job, operation) = launch(&engine, on(spec("f18", 1), "aws")).await.unwrap();
    after(5).await;
    bench.aws.log_in(Some("second"));
    after(1_800).await;
    assert_eq!(bench.aws.count(Call::Launch), 1, "the same wish in another account would be a second machine");
    let view = engine.job(job.as_str()).await.unwrap();
    assert_eq!(view.state, JobState::Starting);
    assert!(view.note.as_deref().unwrap_or_default().contains("logged in to second"), "{:?}", view.note);
    bench.aws.log_in(Some("first"));
    assert_eq!(settle(&engine, &operation).await.state, JobState::Running);
    assert_eq!(bench.aws.machines().len(), 1);
    bench.check(&engine, "f18").await;
}

/// Whose account it is cannot be had: a terminate is sent all the same, but what is not seen then is no proof.
#[tokio::test(start_paused = true)]
async fn f18_an_unknown_account_ends_machines_and_proves_nothing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("f18", 1)).await;
    bench.aws.log_in(None);
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    after(1_800).await;
    assert!(bench.alive().is_empty(), "it was asked to go");
    assert_eq!(engine.job("f18").await.unwrap().state, JobState::Stopping, "and is not proved to be gone");
    bench.aws.log_in(Some("first"));
    assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated);
    let refused = running(&engine, spec("again", 1)).await;
    assert_eq!(refused.state, JobState::Running);
}

/// Without knowing whose account it goes to nothing is launched.
#[tokio::test(start_paused = true)]
async fn f18_nothing_is_launched_into_an_unknown_account() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    bench.aws.log_in(None);
    let (_, operation) = launch(&engine, on(spec("f18", 1), "aws")).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!((view.state, bench.aws.count(Call::Launch)), (JobState::Failed, 0));
    assert!(view.note.as_deref().unwrap_or_default().contains("NoIdentity"), "{:?}", view.note);
}

/// Looks fail on and on, for want of a permission or of calls: what was seen with its mark before goes all the same.
#[tokio::test(start_paused = true)]
async fn a6_reads_that_fail_do_not_keep_a_machine_billing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("a6", 1)).await;
    bench.aws.rule(Call::Describe, 1_000, Fault::Refuse(ErrorClass::Throttled, "RequestLimitExceeded"));
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    after(60).await;
    assert!(bench.alive().is_empty(), "asked to go at once");
    assert_eq!(engine.job("a6").await.unwrap().state, JobState::Stopping, "a machine that nobody has seen go counts");
    bench.aws.heal();
    assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated);
}

/// Nobody else can write the ledger until what this gives is called.
fn hold(path: std::path::PathBuf) -> impl FnOnce() {
    let (held, is_held) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let ledger =
                Ledger::open(OpenOptions { path, new_owner: "none".into(), crash: None }).await.expect("opens");
            let tx = ledger.begin().await.expect("nobody else writes");
            held.send(()).expect("somebody waits");
            let _ = released.recv();
            drop(tx);
            ledger.close().await;
        });
    });
    is_held.recv().expect("it is held");
    move || {
        drop(release);
        thread.join().expect("no panic");
    }
}

/// The ledger cannot be written when an operator wants a job gone: its machines are asked to end all the same, the wish
/// is kept beside the ledger, and goes on to proof by itself once it can be written.
#[tokio::test(start_paused = true)]
async fn f20_f21_a_terminate_does_not_wait_for_the_ledger() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("f20", 2)).await;
    let proposal = engine.propose(Wish::Terminate { job: job.id.clone() }).await.unwrap();
    let launch = engine.propose(Wish::Launch { spec: Box::new(spec("other", 1)), candidate: 0 }).await.unwrap();
    let held = hold(bench.ledger_path());
    let refused = engine.execute(launch, actor("ann")).await.unwrap_err();
    assert!(matches!(refused, EngineError::Ledger { .. }), "a launch is refused before anything is sent: {refused}");
    let told = engine.execute(proposal, actor("bob")).await.unwrap_err().to_string();
    assert!(told.contains("2 of 2 machines were asked to end") && told.contains(".emergency"), "{told}");
    after(60).await;
    assert!(bench.alive().is_empty(), "{told}");
    let note = bench.home.path().join("state").join("ledger.db.emergency");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&note).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    held();
    assert_eq!(engine.job("f20").await.unwrap().state, JobState::Running, "nothing of it is written yet");
    engine.resume().await.unwrap();
    let view = until(&engine, &job.id, |j| j.state.is_final()).await;
    assert_eq!(view.state, JobState::Terminated);
    assert!(!note.exists());
    let asked =
        engine.events(&EventFilter { kind: Some(EventKind::TerminateRequested), ..EventFilter::default() }).await;
    assert!(asked.unwrap().iter().all(|e| e.actor.user == "bob"), "in the name of who asked");
    bench.check(&engine, "f20").await;
}

/// A line of the emergency file that was cut short, or that names a job of another ledger, holds up nothing.
#[tokio::test(start_paused = true)]
async fn f20_a_torn_emergency_file_holds_up_nothing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("f20", 1)).await;
    let note = bench.home.path().join("state").join("ledger.db.emergency");
    let line = |id: &str| {
        format!(
            r#"{{"at":"2026-12-01T00:00:00Z","actor":{{"user":"bob","via":"cli","host":"h"}},"job":"{id}","machines":[]}}"#
        )
    };
    let text = format!("\n{}\n\n{}\n\n{{\"at\":\"2026-12-0", line("0193aaaa-none"), line(job.id.as_str()));
    std::fs::write(&note, text).unwrap();
    engine.resume().await.unwrap();
    assert_eq!(until(&engine, &job.id, |j| j.state.is_final()).await.state, JobState::Terminated);
    assert!(!note.exists() && bench.alive().is_empty());
}

/// The process that ends an orphan dies half-way: a live engine goes on with it.
#[tokio::test(start_paused = true)]
async fn op41_an_orphans_end_is_gone_on_with() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let owner = engine.owner().to_owned();
    let mark = gpudeck::domain::Mark { owner, job: "j".into(), operation: "o".into(), attempt: 1, node: 0 };
    let id = bench.aws.plant(Some(mark), None);
    assert_eq!(engine.orphans().await.unwrap().len(), 1);
    bench.aws.rule(Call::Terminate, 1, Fault::Hang);
    let aws = "aws".into();
    let dies = engine.terminate_orphan(&aws, &id, actor("bob"));
    assert!(tokio::time::timeout(Duration::from_secs(10), dies).await.is_err());
    drop(engine);
    assert_eq!(bench.alive().len(), 1);
    let engine = bench.open(Mode::Live, 2).await;
    after(300).await;
    assert!(bench.alive().is_empty(), "asked again");
    assert_eq!(engine.orphans().await.unwrap(), [], "and proved gone");
    assert!(engine.state().borrow().alerts.is_empty(), "{:?}", engine.state().borrow().alerts);
}

/// A region that does not answer hides no machine of another.
#[tokio::test(start_paused = true)]
async fn d7_a_region_that_does_not_answer_hides_no_other_regions_machines() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let mut west = on(spec("west", 1), "aws");
    west.constraints.regions = vec!["aws/us-west-2".parse().expect("a place")];
    let west = running(&engine, west).await;
    let east = running(&engine, on(spec("east", 1), "aws")).await;
    let id = |j: &gpudeck::engine::JobView| j.instances.first().map(|i| i.instance.id.clone()).expect("one");
    let (west, east) = (id(&west), id(&east));
    bench.aws.rule_in(west.as_str(), Call::Describe, 1_000, Fault::Refuse(ErrorClass::Transient, "503"));
    after(30).await;
    bench.aws.force(&east, &InstanceState::Preempted, "Server.SpotInstanceTermination");
    after(11).await;
    assert_eq!(engine.job("east").await.unwrap().state, JobState::Preempted, "seen within one poll");
    assert_eq!(engine.job("west").await.unwrap().state, JobState::Running);
}

/// Preempted, and what fits by now costs more than was ever agreed to: it stays down and says so, and goes on by itself
/// once it is within that again. A recovery agrees to nothing.
#[tokio::test(start_paused = true)]
async fn b10_a_recovery_keeps_to_the_price_that_was_agreed_to() {
    let bench = Bench::new();
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let job = running(&engine, on(spec("b10", 1), "aws")).await;
    let dear = || {
        bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "40", 16);
        bench.aws.stock("us-east-1", "use1-az2", Purchase::Spot, "26", 16);
        bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "41", 16);
    };
    dear();
    bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
    after(3_600).await;
    let view = engine.job("b10").await.unwrap();
    assert!(!view.state.is_final() && view.state != JobState::Running, "{view:?}");
    assert!(bench.alive().is_empty(), "agreed to were 20 and a quarter");
    let alerts = told(&engine, EventKind::Alert).await;
    assert!(alerts.iter().any(|a| a.contains("or more by now, and $25.00/h was agreed to")), "{alerts:?}");
    bench.aws.stock("us-east-1", "use1-az2", Purchase::Spot, "24", 16);
    let view = until(&engine, &job.id, |j| j.state == JobState::Running).await;
    assert_eq!(view.usd_per_hour, Some(usd("24")));
    // And the next one: what the recovery took is no new agreement.
    dear();
    bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
    after(3_600).await;
    assert!(bench.alive().is_empty(), "24 and a quarter would be 30");
    bench.check(&engine, "b10").await;
}

/// At clouds that bill spot by the market the cost moves with it, from the moment that the market is seen to have moved.
#[tokio::test(start_paused = true)]
async fn b19_a_spot_bill_follows_the_market_where_the_cloud_bills_so() {
    let mut bench = Bench::new();
    bench.aws = engine::fake_cloud::FakeCloud::floating("aws", bench.clock.clone());
    bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "20", 4);
    let engine = bench.open(Mode::Live, 1).await;
    after(70).await;
    let job = running(&engine, on(spec("b19", 1), "aws")).await;
    assert_eq!(job.usd_per_hour, Some(usd("20")));
    after(3_600).await;
    let before = engine.job("b19").await.unwrap().usd_spent;
    bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "60", 4);
    after(3_600).await;
    let view = engine.job("b19").await.unwrap();
    assert_eq!(view.usd_per_hour, Some(usd("60")));
    let hour = (view.usd_spent - before).to_usd();
    assert!((57.0..=60.0).contains(&hour), "an hour at 60, but for the minutes until it was seen: {hour}");
}

/// What a provider will not take is found out before the operator is asked.
#[tokio::test(start_paused = true)]
async fn a_start_script_that_is_too_long_is_no_place_there() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let mut long = spec("long", 1);
    long.env.insert("BLOB".to_owned(), "x".repeat(5_000));
    let refused = engine.propose(Wish::Launch { spec: Box::new(on(long.clone(), "aws")), candidate: 0 }).await;
    let Err(EngineError::NoPlace { ranking, .. }) = refused else { panic!("{refused:?}") };
    assert!(ranking.rejected.iter().any(|r| r.detail.contains("aws takes 4096")), "{:?}", ranking.rejected);
    let proposal = engine.propose(Wish::Launch { spec: Box::new(long), candidate: 0 }).await.unwrap();
    assert!(proposal.plan.steps.iter().all(|s| s.provider == "lambda"), "another one takes it");
}

/// Of a gang over several zones only the zone that was sold out is left alone; the next attempt keeps the others.
#[tokio::test(start_paused = true)]
async fn c3_of_a_gang_over_zones_only_the_one_that_refused_is_left_alone() {
    let bench = Bench::new();
    bench.aws.tell_stock(1);
    bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "20", 1);
    bench.aws.stock("us-east-1", "use1-az2", Purchase::Spot, "22", 0);
    bench.aws.stock("us-east-1", "use1-az3", Purchase::Spot, "23", 1);
    bench.aws.withdraw("us-west-2");
    let engine = bench.open(Mode::OneShot, 1).await;
    let mut gang = on(capped("gang", 2), "aws");
    gang.constraints.combine_zones = true;
    let view = running(&engine, gang).await;
    let zones: std::collections::BTreeSet<String> =
        bench.aws.alive().iter().filter_map(|m| m.instance.location.zone.as_ref().map(ToString::to_string)).collect();
    assert_eq!(zones.into_iter().collect::<Vec<_>>(), ["use1-az1", "use1-az3"], "{view:?}");
}

/// A recovery that goes on for weeks keeps the record of its latest attempts, not of every one.
#[tokio::test(start_paused = true)]
async fn e3_a_long_recovery_does_not_fill_the_ledger() {
    let bench = Bench::new();
    let mut options = bench.options(Mode::Live, 1, &Arc::new(Crash::never()));
    options.limits.attempts_kept = 5;
    let engine = Engine::start(options).await.unwrap();
    after(70).await;
    let job = running(&engine, on(spec("e3", 1), "aws")).await;
    for (region, name) in [("us-east-1", "use1-az1"), ("us-east-1", "use1-az2"), ("us-west-2", "usw2-az1")] {
        bench.aws.stock(region, name, Purchase::Spot, "20", 0);
    }
    bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
    after(6 * 3_600).await;
    let ledger = bench.ledger().await;
    let mut tx = ledger.read().await.unwrap();
    let operation = tx.open_operation(&job.id).await.unwrap().expect("under way");
    assert!(operation.attempt > 20, "{}", operation.attempt);
    assert!(tx.attempts(&operation.id).await.unwrap().len() <= 6);
    assert!(tx.intents_of(&job.id).await.unwrap().len() <= 8);
    drop(tx);
    bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "20", 4);
    assert_eq!(until(&engine, &job.id, |j| j.state == JobState::Running).await.restarts, 1);
    bench.check(&engine, "e3").await;
}

/// A limit a GPU is not leave to take a machine with eight times the GPUs.
#[tokio::test(start_paused = true)]
async fn b10_a_limit_a_gpu_does_not_allow_a_bigger_machine() {
    let bench = Bench::new();
    bench.aws.machine("us-east-1", "use1-az3", ("p5.4xlarge", 1), "5", 0);
    let engine = bench.open(Mode::OneShot, 1).await;
    let mut spec = on(spec("b10", 1), "aws");
    spec.resources.count = 1;
    spec.buying.max_usd_per_gpu_hour = Some(GpuHourlyRate::parse_usd("10").expect("an amount"));
    let proposal = engine.propose(Wish::Launch { spec: Box::new(spec), candidate: 0 }).await.unwrap();
    assert_eq!(proposal.plan.usd_per_hour_after, Some(usd("5")));
    assert!(proposal.plan.warnings.iter().any(|w| w.contains("$10.00/h in all")), "{:?}", proposal.plan.warnings);
    let (_, operation) = engine.execute(proposal, actor("ann")).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!((view.state, bench.alive().len()), (JobState::Failed, 0), "the eight-fold machines cost 20 and more");
    assert!(view.note.as_deref().unwrap_or_default().contains("above what was confirmed"), "{:?}", view.note);
}

/// The target falls over a minute after it came up: the source is still there.
#[tokio::test(start_paused = true)]
async fn a_target_that_falls_over_soon_leaves_the_source() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("soak", 1)).await;
    let source = bench.alive();
    let (_, operation) = migrate(&engine, &job.id, Some("aws/us-west-2")).await.unwrap();
    // Up after 60 s; seen to run more than once.
    after(120).await;
    let view = engine.job("soak").await.unwrap();
    assert_eq!(view.state, JobState::Migrating);
    let steps = view.operation.expect("under way").steps;
    assert!(steps.contains(&gpudeck::domain::StepState::Unknown), "what was not seen is not shown as done: {steps:?}");
    let target = bench.alive().into_iter().find(|id| !source.contains(id)).expect("the target");
    bench.aws.force(&target, &InstanceState::Failed, "Client.InstanceInitiatedShutdown");
    bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "24", 0);
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Running);
    assert_eq!(bench.alive(), source, "it was never touched");
    bench.check(&engine, "soak").await;
}

/// An unknown outcome without tokens: looked up every ten seconds for three minutes, adopted, never sent twice.
#[tokio::test(start_paused = true)]
async fn op46_an_unknown_outcome_is_looked_up_not_repeated() {
    let bench = Bench::new();
    bench.lambda.rule(Call::Launch, 1, Fault::DoneAndHang);
    bench.lambda.lag(60);
    let engine = bench.open(Mode::OneShot, 1).await;
    running(&engine, on(spec("op46", 1), "lambda")).await;
    assert_eq!(bench.lambda.count(Call::Launch), 1);
    assert!(bench.lambda.count(Call::Find) >= 2);
    assert_eq!(bench.lambda.machines().len(), 1);
    bench.check(&engine, "op46").await;
}

/// A process that was killed held an operation: another goes on with it at once, not when the lease has run out. One that
/// lives, or of which nobody knows, is waited for.
#[tokio::test(start_paused = true)]
async fn e8_what_a_dead_process_held_is_gone_on_with_at_once() {
    for (ended, at_once) in [(true, true), (false, false)] {
        let bench = Bench::new();
        let mut options = bench.options(Mode::OneShot, 1, &Arc::new(Crash::never()));
        options.process = Some("boot/space/1/2".to_owned());
        let engine = Engine::start(options).await.unwrap();
        engine.refresh_feeds(None).await.unwrap();
        bench.aws.rule(Call::Launch, 1, Fault::DoneAndHang);
        let (job, _) = launch(&engine, on(spec("e8", 1), "aws")).await.unwrap();
        after(5).await;
        drop(engine);
        let mut options = bench.options(Mode::Live, 2, &Arc::new(Crash::never()));
        options.process = Some("boot/space/3/4".to_owned());
        options.has_ended = if ended { |process| process == "boot/space/1/2" } else { |_| false };
        let engine = Engine::start(options).await.unwrap();
        // It boots within a minute; the lease lasts two.
        after(90).await;
        let view = engine.job(job.as_str()).await.unwrap();
        assert_eq!(view.state == JobState::Running, at_once, "{view:?}");
        until(&engine, &job, |j| j.state == JobState::Running).await;
        assert_eq!(bench.aws.machines().len(), 1);
    }
}

/// Somebody wants to be told when H100s fall below a price: one alert when they do, taken back when they rise again; what
/// is sold out, too small or elsewhere is not told.
#[tokio::test(start_paused = true)]
async fn op34_a_price_watch_tells_once_and_takes_it_back() {
    let bench = Bench::new();
    let mut options = bench.options(Mode::Live, 1, &Arc::new(Crash::never()));
    let watch = |name: &str, providers: &[&str]| gpudeck::engine::PriceWatch {
        name: name.to_owned(),
        accelerators: vec![gpudeck::domain::Accelerator::from_canonical("H100-80GB-SXM")],
        below: GpuHourlyRate::parse_usd("2").expect("an amount"),
        count: 8,
        purchases: vec![Purchase::Spot],
        providers: providers.iter().map(|p| (*p).into()).collect(),
        jurisdictions: Vec::new(),
    };
    options.watches = vec![watch("cheap", &[]), watch("elsewhere", &["lambda"])];
    let engine = Engine::start(options).await.unwrap();
    let told = || {
        let state = engine.state().borrow().clone();
        state.alerts.iter().map(|a| a.text.clone()).collect::<Vec<_>>()
    };
    after(300).await;
    assert_eq!(told(), Vec::<String>::new(), "twenty dollars for eight are two and a half each");
    bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "14", 4);
    bench.aws.machine("us-west-2", "usw2-az2", ("p5.4xlarge", 1), "1", 4);
    after(300).await;
    let alerts = told();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(alerts[0].contains("watch cheap: H100-80GB-SXM for $1.7500/GPU-h in aws/us-west-2/usw2-az1"), "{alerts:?}");
    after(1_800).await;
    assert_eq!(told(), alerts, "once");
    bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "30", 4);
    after(300).await;
    assert_eq!(told(), Vec::<String>::new(), "taken back");
}

/// The same confirmed plan twice is one operation.
#[tokio::test(start_paused = true)]
async fn op46_the_same_plan_twice_is_one_operation() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let proposal = engine.propose(Wish::Launch { spec: Box::new(spec("twice", 1)), candidate: 0 }).await.unwrap();
    let first = engine.execute(proposal.clone(), actor("ann")).await.unwrap();
    let second = engine.execute(proposal, actor("ann")).await.unwrap();
    assert_eq!(first, second);
    settle(&engine, &first.1).await;
    assert_eq!(bench.alive().len(), 1);
    // And another plan for the same name while it lives is refused.
    let again = launch(&engine, spec("twice", 1)).await;
    assert!(matches!(again, Err(EngineError::Conflict(_))), "{again:?}");
}

/// Two machines answer to one wish: the older is kept, the other is told and left to an operator.
#[tokio::test(start_paused = true)]
async fn two_machines_for_one_wish_are_told_and_not_touched() {
    let bench = Bench::new();
    bench.lambda.rule(Call::Launch, 1, Fault::DoneBut(ErrorClass::Transient, "502"));
    bench.lambda.lag(30);
    let engine = bench.open(Mode::OneShot, 1).await;
    let (_, operation) = launch(&engine, on(spec("two", 1), "lambda")).await.unwrap();
    after(2).await;
    let mark = bench.lambda.machines().first().and_then(|m| m.instance.mark.clone());
    let twin = bench.lambda.plant(mark, None);
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Running);
    assert!(view.instances.iter().all(|i| i.instance.id != twin));
    let orphans = engine.orphans().await.unwrap();
    assert_eq!(orphans.iter().map(|o| o.id.clone()).collect::<Vec<_>>(), vec![twin.clone()]);
    let (_, operation) = terminate(&engine, &view.id).await.unwrap();
    settle(&engine, &operation).await;
    assert_eq!(bench.alive(), vec![twin], "I3: only what was confirmed");
}

/// The id carries another mark by now: nothing is terminated, a person is told.
#[tokio::test(start_paused = true)]
async fn a_machine_with_another_mark_is_never_terminated() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("f28", 1)).await;
    let id = bench.alive().remove(0);
    bench.aws.remark(&id, |i| {
        if let Some(mark) = &mut i.mark {
            mark.operation = "somebody else's".into();
        }
    });
    let (_, _operation) = terminate(&engine, &job.id).await.unwrap();
    after(1_200).await;
    assert_eq!(bench.aws.count(Call::Terminate), 0);
    assert_eq!(engine.job("f28").await.unwrap().state, JobState::Stopping);
    assert!(told(&engine, EventKind::Alert).await.iter().any(|a| a.contains("does not carry the mark")));
}

/// Moved: both are paid for meanwhile, the source goes only after the target was seen to run twice.
#[tokio::test(start_paused = true)]
async fn a_migration_keeps_the_source_until_the_target_runs() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("move", 2)).await;
    let source = bench.alive();
    let (_, operation) = migrate(&engine, &job.id, Some("aws/us-west-2")).await.unwrap();
    after(40).await;
    let view = engine.job("move").await.unwrap();
    assert_eq!(view.state, JobState::Migrating);
    assert_eq!(view.usd_per_hour, Some(usd("88")), "both are counted");
    assert_eq!(bench.aws.count(Call::Terminate), 0);
    assert_eq!(view.operation.as_ref().map(|o| o.kind), Some(OperationKind::Migrate));
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Running);
    assert_eq!(view.region.as_ref().map(gpudeck::domain::Region::as_str), Some("us-west-2"));
    assert!(source.iter().all(|id| !bench.alive().contains(id)));
    assert_eq!(bench.alive().len(), 2);
    assert_eq!(view.restarts, 0, "a move is no recovery");
    bench.check(&engine, "move").await;
}

/// The target cannot be had: it is cleaned up to proof and the source was never touched.
#[tokio::test(start_paused = true)]
async fn a_failed_migration_leaves_the_source_alone() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("stay", 2)).await;
    let source = bench.alive();
    bench.aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "24", 1);
    let (_, operation) = migrate(&engine, &job.id, Some("aws/us-west-2")).await.unwrap();
    let view = settle(&engine, &operation).await;
    assert_eq!(view.state, JobState::Running);
    assert!(view.note.as_deref().unwrap_or_default().contains("runs on where it was"), "{:?}", view.note);
    assert_eq!(bench.alive(), source);
    assert!(!engine.outcome(&operation).await.unwrap().done);
    bench.check(&engine, "stay").await;
}

/// A terminate in the middle of a move ends both sides.
#[tokio::test(start_paused = true)]
async fn a_terminate_during_a_migration_ends_both_sides() {
    for delay in [0, 1, 10, 59, 66, 70, 90] {
        let bench = Bench::new();
        let engine = bench.open(Mode::OneShot, 1).await;
        let job = running(&engine, capped("both", 2)).await;
        migrate(&engine, &job.id, Some("aws/us-west-2")).await.unwrap();
        after(delay).await;
        let operation = loop {
            match terminate(&engine, &job.id).await {
                Ok((_, operation)) => break operation,
                Err(EngineError::Conflict(_)) => {}
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(settle(&engine, &operation).await.state, JobState::Terminated, "after {delay} s");
        assert!(bench.alive().is_empty(), "after {delay} s");
    }
}

/// A price that rose between the look and the press is asked about again.
#[tokio::test(start_paused = true)]
async fn a_price_that_rose_before_the_press_is_asked_about_again() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let proposal = engine.propose(Wish::Launch { spec: Box::new(spec("f29", 1)), candidate: 0 }).await.unwrap();
    assert!(proposal.plan.warnings.iter().any(|w| w.contains("$25.00/h")), "{:?}", proposal.plan.warnings);
    bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "26", 16);
    engine.refresh_feeds(None).await.unwrap();
    let refused = engine.execute(proposal, actor("ann")).await;
    assert!(matches!(refused, Err(EngineError::Conflict(_))), "{refused:?}");
    assert_eq!(bench.aws.count(Call::Launch), 0);
}

/// Two operators, one job: the second is told that it changed; two terminates are one.
#[tokio::test(start_paused = true)]
async fn two_operators_are_told_of_each_other() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, capped("shared", 1)).await;
    let move_it = engine.propose(Wish::Migrate { job: job.id.clone(), to: None }).await.unwrap();
    let end_it = engine.propose(Wish::Terminate { job: job.id.clone() }).await.unwrap();
    let end_it_too = engine.propose(Wish::Terminate { job: job.id.clone() }).await.unwrap();
    let (_, first) = engine.execute(end_it, actor("ann")).await.unwrap();
    let (_, second) = engine.execute(end_it_too, actor("bob")).await.unwrap();
    assert_eq!(first, second);
    let refused = engine.execute(move_it, actor("bob")).await;
    assert!(matches!(refused, Err(EngineError::Conflict(_))), "{refused:?}");
    settle(&engine, &first).await;
}

#[tokio::test(start_paused = true)]
async fn a_read_only_session_does_nothing() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("ro", 1)).await;
    engine.shutdown().await;
    let mut options = bench.options(Mode::Live, 2, &Arc::new(Crash::never()));
    options.read_only = true;
    let engine = Engine::start(options).await.unwrap();
    assert!(engine.providers().iter().all(|c| c.act.is_none()));
    let before = (bench.aws.count(Call::Launch), bench.aws.count(Call::Terminate));
    let proposal = engine.propose(Wish::Terminate { job: job.id.clone() }).await.unwrap();
    assert!(matches!(engine.execute(proposal, actor("ann")).await, Err(EngineError::Refused { .. })));
    assert!(matches!(engine.acknowledge(1, actor("ann"), String::new()).await, Err(EngineError::Refused { .. })));
    bench.aws.force(&bench.alive().remove(0), &InstanceState::Preempted, "reclaimed");
    after(600).await;
    assert_eq!((bench.aws.count(Call::Launch), bench.aws.count(Call::Terminate)), before);
}

#[tokio::test(start_paused = true)]
async fn a_job_is_found_by_id_beginning_and_name() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("llama-ft", 1)).await;
    assert_eq!(engine.job(job.id.as_str()).await.unwrap().id, job.id);
    assert_eq!(engine.job(job.id.as_str().get(..13).unwrap()).await.unwrap().id, job.id);
    assert_eq!(engine.job("llama-ft").await.unwrap().id, job.id);
    let Err(EngineError::NotFound(text)) = engine.job("lama-ft").await else { panic!("found") };
    assert!(text.contains("did you mean 'llama-ft'"), "{text}");
}

/// The user's variables may be secret: they are in the start script and the job's row only.
#[tokio::test(start_paused = true)]
async fn secrets_stay_out_of_events() {
    let bench = Bench::new();
    let engine = bench.open(Mode::OneShot, 1).await;
    let job = running(&engine, spec("quiet", 1)).await;
    let (_, operation) = terminate(&engine, &job.id).await.unwrap();
    settle(&engine, &operation).await;
    for event in engine.events(&EventFilter::default()).await.unwrap() {
        assert!(!format!("{event:?}").contains("canary-secret"), "{event:?}");
    }
}
