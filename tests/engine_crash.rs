//! A process that dies at every point of every operation, and another that goes on from the ledger alone.

#![expect(
    unreachable_pub,
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test crate: its parts are shared by two, and a test that cannot go on panics"
)]

mod engine;

use std::sync::Arc;
use std::time::Duration;

use engine::crash::Crash;
use engine::*;
use gpudeck::domain::{JobId, JobState, OperationId};
use gpudeck::engine::{Engine, Mode, Options};
use gpudeck::store::{CrashPoint, IntentState, OperationState};

/// What is being done when the process dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Story {
    Launch,
    Terminate,
    Migrate,
    Recover,
}

/// How the world behaves meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Weather {
    /// All goes well.
    Fair,
    /// The first zone gives one machine of two, lists lag, and the first answers are lost.
    Foul,
}

/// In half minutes: longer than a lease, a list's lag and every look together.
const A_WHILE: u32 = 120;

fn weather(bench: &Bench, weather: Weather) {
    use engine::fake_cloud::{Call, Fault};
    use gpudeck::domain::{ErrorClass, Purchase};
    if weather == Weather::Foul {
        bench.aws.lag(45);
        bench.aws.stock("us-east-1", "use1-az1", Purchase::Spot, "20", 1);
        bench.aws.rule(Call::Launch, 1, Fault::DoneBut(ErrorClass::Transient, "InternalError"));
        bench.aws.rule(Call::Terminate, 2, Fault::Refuse(ErrorClass::Transient, "InternalError"));
    }
}

async fn begin(engine: &Engine, story: Story, job: Option<&JobId>) -> Option<(JobId, OperationId)> {
    match story {
        Story::Launch => launch(engine, capped("crash", 2)).await.ok(),
        Story::Terminate => terminate(engine, job?).await.ok(),
        Story::Migrate => migrate(engine, job?, Some("aws/us-west-2")).await.ok(),
        Story::Recover => None,
    }
}

/// Seldom looks and polls: each is a point to die at like the one before it, and costs a run.
fn calm(mut options: Options) -> Options {
    options.limits.watch_every = Duration::from_secs(30);
    options.limits.feed_every = Duration::from_mins(10);
    options.limits.follow_every = Duration::from_secs(10);
    options
}

/// Die at point `k`; give where, or `None` where the story ended before.
async fn die_at(story: Story, sky: Weather, k: u64) -> Option<String> {
    let bench = Bench::new();
    let crash = Arc::new(Crash::at(k));
    let job = if story == Story::Launch {
        None
    } else {
        let engine = bench.open(Mode::OneShot, 1_000 + k).await;
        let view = running(&engine, capped("crash", 2)).await;
        engine.shutdown().await;
        Some(view.id)
    };
    if story == Story::Recover {
        let victim = bench.alive().into_iter().next().expect("it runs");
        bench.aws.force(&victim, &gpudeck::domain::InstanceState::Preempted, "Server.SpotInstanceTermination");
    }
    weather(&bench, sky);
    let mode = if story == Story::Recover { Mode::Live } else { Mode::OneShot };
    let engine = Engine::start(calm(bench.options(mode, 2_000 + k, &crash))).await.expect("the engine starts");
    if mode == Mode::OneShot {
        engine.refresh_feeds(None).await.expect("the ledger works");
    }
    crash.arm();
    let act = async {
        match begin(&engine, story, job.as_ref()).await {
            Some((_, operation)) => {
                let _ = engine.settle(&operation).await;
            }
            None if story == Story::Recover => {
                let job = job.as_ref().expect("it ran");
                while engine.job(job.as_str()).await.expect("the job is there").restarts == 0 {
                    after(10).await;
                }
            }
            None => {}
        }
    };
    let died = tokio::select! {
        () = act => crash.died(),
        () = crash.death() => true,
    };
    drop(engine);
    after(1).await;
    let place = crash.place();
    let context = format!(
        "{story:?} in {sky:?} weather, died at {place} (k = {k}, seeds {} {} {})",
        1_000 + k,
        2_000 + k,
        3_000 + k
    );
    // Another process; what the first one left is all it knows.
    let options = calm(bench.options(Mode::Live, 3_000 + k, &Arc::new(Crash::never())));
    let engine = Engine::start(options).await.expect("the engine starts");
    bench.check(&engine, &context).await;
    quiet(&bench, &engine, story, job.as_ref()).await;
    bench.check(&engine, &context).await;
    finish(&bench, &engine, story, &context).await;
    engine.shutdown().await;
    died.then_some(place)
}

/// Wait until nothing is under way.
async fn quiet(bench: &Bench, engine: &Engine, story: Story, job: Option<&JobId>) {
    let ledger = bench.ledger().await;
    for _ in 0..A_WHILE {
        after(30).await;
        let mut tx = ledger.read().await.expect("reads");
        let open = tx.open_operations().await.expect("reads");
        drop(tx);
        let recovered = match job {
            Some(job) if story == Story::Recover => engine.job(job.as_str()).await.expect("reads").restarts > 0,
            _ => true,
        };
        if open.is_empty() && recovered {
            return;
        }
    }
}

/// What every story must come to, wherever it was interrupted.
async fn finish(bench: &Bench, engine: &Engine, story: Story, context: &str) {
    let jobs = engine.jobs().await.expect("reads");
    let ledger = bench.ledger().await;
    let mut tx = ledger.read().await.expect("reads");
    let open = tx.open_operations().await.expect("reads");
    assert!(open.is_empty(), "I4: {open:#?}; {context}");
    let Some(job) = jobs.first() else {
        assert_eq!(story, Story::Launch, "{context}");
        assert!(bench.alive().is_empty(), "nothing was confirmed, and something runs; {context}");
        return;
    };
    assert_eq!(jobs.len(), 1, "{context}");
    let alive = bench.alive().len();
    match job.state {
        // The terminate may have died before its intent was written: then nothing was asked for.
        JobState::Terminated => assert_eq!((story, alive), (Story::Terminate, 0), "{context}"),
        JobState::Running => assert_eq!(alive, 2, "{context}: {job:#?}"),
        other => panic!("{other}: {:?}; {context}", job.note),
    }
    for intent in tx.intents_of(&job.id).await.expect("reads") {
        let closed = intent.state.is_closed() || intent.state == IntentState::Accepted;
        assert!(closed, "{intent:#?}; {context}");
    }
    for operation in tx.operations_of(&job.id).await.expect("reads") {
        assert_ne!(operation.state, OperationState::Failed, "{}; {context}", operation.reason);
    }
    // And it can be ended, whatever it went through.
    drop(tx);
    if job.state == JobState::Running {
        let (_, operation) = terminate(engine, &job.id).await.expect("a terminate");
        assert_eq!(settle(engine, &operation).await.state, JobState::Terminated, "{context}");
    }
    assert!(bench.alive().is_empty(), "{context}");
    bench.check(engine, context).await;
}

/// Points in turn, until the story ends without reaching one: each of them for a launch in fair weather or where
/// `GPUDECK_CRASH_POINTS=all` asks for it, else every fifth, which keeps an ordinary run short.
fn at_every_point(story: Story, sky: Weather) {
    let every = (story == Story::Launch && sky == Weather::Fair)
        || std::env::var_os("GPUDECK_CRASH_POINTS").is_some_and(|v| v == "all");
    let stride = if every { 1 } else { 5 };
    let mut points = 0;
    for k in (1..).step_by(stride) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        let place = runtime.block_on(die_at(story, sky, k));
        runtime.shutdown_timeout(Duration::from_secs(1));
        match place {
            Some(place) => {
                points += 1;
                if std::env::var_os("GPUDECK_TEST_TRACE").is_some() {
                    println!("{story:?} {place}");
                }
            }
            None => break,
        }
    }
    println!("{story:?} in {sky:?} weather: died at {points} points (stride {stride}), none lost or doubled a machine");
    assert!(points * stride > 10, "{story:?} has only {points} points");
}

#[test]
fn a12_a13_a_launch_survives_a_crash_at_every_point() {
    at_every_point(Story::Launch, Weather::Fair);
}

#[test]
fn a12_a13_a_launch_in_foul_weather_survives_a_crash_at_every_point() {
    at_every_point(Story::Launch, Weather::Foul);
}

#[test]
fn a12_a_terminate_survives_a_crash_at_every_point() {
    at_every_point(Story::Terminate, Weather::Foul);
}

#[test]
fn a12_a_migration_survives_a_crash_at_every_point() {
    at_every_point(Story::Migrate, Weather::Foul);
}

#[test]
fn e8_e9_a_recovery_survives_a_crash_at_every_point() {
    at_every_point(Story::Recover, Weather::Fair);
}
