//! A demo world in a directory: shared by processes, safe against kill -9, with a clock that never goes back.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Duration};
use gpudeck::catalogue::Row;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::{
    Accelerator, AcceleratorCount, HourlyRate, InstanceState, Interconnect, Mark, OfferKey, Purchase, Shape,
};
use gpudeck::provider::sim::{self, FaultPlan, Setup, SimCloud, SimError, World, WorldOptions};
use gpudeck::provider::{InstanceRef, LaunchRequest, Operator, Provider};

const ONLY_SEED: WorldOptions = WorldOptions { seed: Some(5), speed: None };
const AS_STORED: WorldOptions = WorldOptions { seed: None, speed: None };

fn rows() -> Vec<Row> {
    let shape = Arc::new(Shape {
        instance_type: "1x_L4_SECURE".into(),
        accelerator: Accelerator::from_canonical("L4-24GB"),
        accelerators: AcceleratorCount::whole(1),
        gpu_memory_gib: Some(24.0),
        vcpus: Some(4),
        memory_gib: Some(16.0),
        interconnect: Interconnect::Unknown,
    });
    let price = HourlyRate::from_usd(0.7).ok();
    vec![Row {
        provider: "runpod".into(),
        region: "US".into(),
        zone: None,
        shape,
        on_demand: price,
        spot: None,
        interruptions_per_day: None,
    }]
}

fn request(n: u32) -> LaunchRequest {
    LaunchRequest {
        offer: OfferKey {
            provider: "runpod".into(),
            region: "US".into(),
            zone: None,
            instance_type: "1x_L4_SECURE".into(),
            purchase: Purchase::OnDemand,
        },
        shape: rows().remove(0).shape,
        max_price: None,
        token: format!("t{n}"),
        name: format!("n{n}"),
        mark: Mark { owner: "me".into(), job: "j".into(), operation: "o".into(), attempt: 1, node: n },
        intended_at: DateTime::UNIX_EPOCH,
        user_data: Some("SECRET=1".into()),
    }
}

fn system() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(DateTime::UNIX_EPOCH + Duration::days(20_000)))
}

fn open(dir: &Path, options: WorldOptions, system: &Arc<ManualClock>) -> Result<World, SimError> {
    World::open(dir, &rows(), Setup::planned(FaultPlan::none()), options, system.clone())
}

fn runpod(world: &World) -> Arc<SimCloud> {
    world.cloud("runpod").expect("the only cloud of the table")
}

async fn stock(cloud: &SimCloud) -> u32 {
    cloud.offerings().await.expect("offers").observations[0].capacity.expect("counted")
}

#[tokio::test]
async fn two_sessions_of_one_directory_share_machines_and_stock() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("demo");
    let clock = system();
    let one = open(&dir, ONLY_SEED, &clock).expect("made");
    let two = open(&dir, AS_STORED, &clock).expect("opened");
    assert_eq!(two.seed(), 5);
    let (one, two) = (runpod(&one), runpod(&two));
    let before = stock(&two).await;
    let machine = one.launch(&request(0)).await.expect("launched");
    assert_eq!(two.instances("me").await.expect("list")[0].id, machine.id);
    assert_eq!(stock(&two).await, before - 1);
    let target = InstanceRef { id: machine.id.clone(), location: machine.location.clone() };
    two.terminate(&target).await.expect("accepted");
    // A second is a minute of the world.
    clock.advance(Duration::seconds(1));
    let seen = one.describe(&[target]).await.expect("describe");
    assert_eq!(seen[0].state, InstanceState::Gone);
    assert_eq!(stock(&one).await, before);
}

#[tokio::test]
async fn files_are_private_and_hold_no_user_data() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("demo");
    let world = open(&dir, ONLY_SEED, &system()).expect("made");
    runpod(&world).launch(&request(0)).await.expect("launched");
    let mode = |p: &Path| fs::metadata(p).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!((mode(&dir.join("world.json")), mode(&dir.join("world.lock"))), (0o600, 0o600));
    let text = fs::read_to_string(dir.join("world.json")).expect("text");
    assert!(text.contains("\"t0\"") && !text.contains("SECRET"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a2_sessions_at_once_lose_no_machine() {
    let home = tempfile::tempdir().expect("a directory");
    let clock = system();
    let mut tasks = Vec::new();
    for n in 0..4 {
        // A session of its own, as another process would have.
        let world = open(home.path(), ONLY_SEED, &clock).expect("opened");
        tasks.push(tokio::spawn(async move {
            let mut made = 0;
            for i in 0..6 {
                made += usize::from(runpod(&world).launch(&request(10 * n + i)).await.is_ok());
            }
            made
        }));
    }
    let mut made = 0;
    for task in tasks {
        made += task.await.expect("no panic");
    }
    assert_eq!(made, 24);
    let world = open(home.path(), ONLY_SEED, &clock).expect("opened");
    assert_eq!(world.billed().expect("read").len(), made);
}

#[tokio::test]
async fn e9_what_a_killed_process_left_half_written_does_no_harm() {
    let home = tempfile::tempdir().expect("a directory");
    let clock = system();
    let world = open(home.path(), ONLY_SEED, &clock).expect("made");
    let cloud = runpod(&world);
    cloud.launch(&request(0)).await.expect("launched");
    let whole = fs::read(home.path().join("world.json")).expect("read");
    for (n, cut) in [0, 1, whole.len() / 2, whole.len() - 1].into_iter().enumerate() {
        fs::write(home.path().join("world.json.new"), &whole[..cut]).expect("written");
        let again = open(home.path(), ONLY_SEED, &clock).expect("opened");
        assert_eq!(again.billed().expect("read").len(), n + 1);
        runpod(&again).launch(&request(n as u32 + 1)).await.expect("launched");
    }
    assert_eq!(world.billed().expect("read").len(), 5);
    assert!(!home.path().join("world.json.new").exists());
}

#[test]
fn a_damaged_world_names_itself_and_the_way_out() {
    let home = tempfile::tempdir().expect("a directory");
    open(home.path(), ONLY_SEED, &system()).expect("made");
    let path = home.path().join("world.json");
    let whole = fs::read_to_string(&path).expect("read");
    let other_format = whole.replace("\"format\":1", "\"format\":2");
    assert_ne!(whole, other_format);
    for broken in [whole.get(..whole.len() / 2).expect("ASCII"), "", "null", "{\"format\":99}", &other_format] {
        fs::write(&path, broken).expect("written");
        let error = open(home.path(), ONLY_SEED, &system()).err().expect("refused");
        assert!(matches!(error, SimError::Damaged { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("world.json") && text.contains("gpudeck --demo reset"), "{text}");
    }
    sim::reset(home.path()).expect("reset");
    sim::reset(home.path()).expect("again");
    sim::reset(&home.path().join("nowhere")).expect("none");
    assert!(open(home.path(), ONLY_SEED, &system()).expect("anew").machines().expect("read").is_empty());
}

#[test]
fn another_seed_is_refused_and_so_is_an_impossible_speed() {
    let home = tempfile::tempdir().expect("a directory");
    open(home.path(), ONLY_SEED, &system()).expect("made");
    let other = WorldOptions { seed: Some(6), speed: None };
    let error = open(home.path(), other, &system()).err().expect("refused").to_string();
    assert!(error.contains("seed 5, not 6") && error.contains("gpudeck --demo reset"), "{error}");
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        let options = WorldOptions { seed: None, speed: Some(speed) };
        assert!(matches!(open(home.path(), options, &system()), Err(SimError::Speed(_))), "{speed}");
    }
}

#[tokio::test]
async fn f1_the_clock_goes_on_between_sessions_and_a_new_speed_does_not_make_it_jump() {
    let home = tempfile::tempdir().expect("a directory");
    let clock = system();
    let start = open(home.path(), ONLY_SEED, &clock).expect("made");
    let t0 = start.clock().now();
    assert_eq!((t0.to_rfc3339(), start.clock().speed()), ("2026-12-01T00:00:00+00:00".into(), 60.0));
    clock.advance(Duration::seconds(10));
    let later = open(home.path(), AS_STORED, &clock).expect("opened");
    assert_eq!(later.clock().now() - t0, Duration::seconds(600));
    let faster = open(home.path(), WorldOptions { seed: None, speed: Some(600.0) }, &clock).expect("opened");
    assert_eq!(faster.clock().now() - t0, Duration::seconds(600));
    clock.advance(Duration::seconds(1));
    assert_eq!(faster.clock().now() - t0, Duration::seconds(1_200));
    assert_eq!(later.clock().now() - t0, Duration::seconds(660), "has not looked yet");
    runpod(&later).instances("me").await.expect("list");
    assert_eq!(later.clock().now() - t0, Duration::seconds(1_200), "follows once it has");

    // The system's clock is put back: the world stands still, and a new session starts no earlier than the last act.
    runpod(&faster).launch(&request(0)).await.expect("launched");
    clock.advance(Duration::seconds(-3_600));
    assert_eq!(faster.clock().now() - t0, Duration::seconds(1_200));
    let new = open(home.path(), AS_STORED, &clock).expect("opened");
    assert_eq!(new.clock().now() - t0, Duration::seconds(1_200));
}

#[tokio::test]
async fn a_session_notices_that_its_world_was_reset() {
    let home = tempfile::tempdir().expect("a directory");
    let clock = system();
    let cloud = runpod(&open(home.path(), ONLY_SEED, &clock).expect("made"));
    sim::reset(home.path()).expect("reset");
    assert!(cloud.launch(&request(0)).await.expect_err("gone").message.contains("reset"));
    clock.advance(Duration::seconds(1));
    let new = open(home.path(), ONLY_SEED, &clock).expect("a new one");
    assert!(cloud.launch(&request(0)).await.expect_err("another world").message.contains("reset"));
    assert!(new.machines().expect("read").is_empty());
}

/// The process that the next test kills. Launches and terminates for ever.
#[tokio::test]
#[ignore = "runs in a process of its own, until it is killed"]
async fn hammer() {
    // Set by the test that starts this; whoever runs all ignored tests is not to wait for ever.
    let Ok(dir) = std::env::var("SIM_FILE_HAMMER_DIR") else { return };
    let world = open(Path::new(&dir), ONLY_SEED, &system()).expect("opened");
    let cloud = runpod(&world);
    for n in 0.. {
        if let Ok(machine) = cloud.launch(&request(n)).await {
            cloud.terminate(&InstanceRef { id: machine.id, location: machine.location }).await.expect("accepted");
        }
    }
}

#[test]
fn e9_a_process_killed_at_any_moment_leaves_a_world_that_can_be_read() {
    let home = tempfile::tempdir().expect("a directory");
    let remembered = || open(home.path(), ONLY_SEED, &system()).expect("readable").machines().expect("read").len();
    for round in 0..12_u64 {
        let before = remembered();
        let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["hammer", "--exact", "--ignored"])
            .env("SIM_FILE_HAMMER_DIR", home.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("started");
        // Once it is at work, some moment: another one each round.
        while remembered() == before {
            assert!(child.try_wait().expect("a child").is_none(), "the process ended by itself");
        }
        for _ in 0..round * 150 {
            std::hint::black_box(fs::read(home.path().join("world.json")).expect("always whole"));
        }
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(remembered() > before, "round {round}");
    }
    println!("{} machines were written down by processes that were killed", remembered());
}
