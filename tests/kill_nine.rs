//! The real binary, killed with SIGKILL at random moments, against an EC2 of our own over HTTP: what is alive there is what
//! the ledger shows, to the machine. Rounds and seed: `GPUDECK_KILLS`, `GPUDECK_SEED`.
#![cfg(feature = "aws")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails here")]
#![allow(dead_code, reason = "the fake is shared with other tests, which use the rest of it")]

#[path = "support/ec2_fake.rs"]
mod ec2_fake;
#[path = "support/ec2_fake_wire.rs"]
mod ec2_fake_wire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ec2_fake::Fake;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

/// Longer than the slowest machine needs; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_mins(3);

fn gpudeck(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpudeck"));
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .env("GPUDECK_HOME", home)
        .env("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "canary-secret-key")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn jobs(home: &Path) -> Vec<Value> {
    let output = gpudeck(home, &["jobs", "--all", "--json"]).stdout(Stdio::piped()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    match serde_json::from_str(&text) {
        Ok(Value::Array(jobs)) => jobs,
        other => panic!("{other:?}: {text}"),
    }
}

/// Ids of machines that bill at the cloud.
fn alive(fake: &Fake) -> BTreeSet<String> {
    fake.world().machines.iter().filter(|m| m.state != "terminated").map(|m| m.id.clone()).collect()
}

/// Ids of machines that jobs hold by the ledger.
fn held(jobs: &[Value]) -> BTreeSet<String> {
    let live = jobs.iter().filter(|job| !matches!(job["state"].as_str(), Some("terminated" | "failed" | "succeeded")));
    live.flat_map(|job| job["instances"].as_array().cloned().unwrap_or_default())
        .filter(|i| !matches!(i["state"].as_str(), Some("gone")))
        .filter_map(|i| i["id"].as_str().map(str::to_owned))
        .collect()
}

fn end(mut child: Child) {
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a2_f2_f5_a_process_killed_at_any_moment_loses_and_doubles_nothing() {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default);
    let (seed, rounds) = (number("GPUDECK_SEED", 9), number("GPUDECK_KILLS", 16));
    println!("GPUDECK_SEED={seed} GPUDECK_KILLS={rounds}");
    let mut draws = StdRng::seed_from_u64(seed);
    let fake = Fake::start(&["us-east-1"]).await;
    fake.offer_p5();
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "[providers.aws]\nendpoint_url = \"{}\"\nregions = [\"us-east-1\"]\n\n[providers.aws.region.us-east-1]\n\
         image = \"ami-0123456789abcdef0\"\n",
        fake.url
    );
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let mut killed = 0;
    let mut names: Vec<String> = Vec::new();
    for round in 0..rounds {
        let end_one = !names.is_empty() && draws.random_bool(0.4);
        let name = if end_one { names[draws.random_range(0..names.len())].clone() } else { format!("job-{round}") };
        let mut child = if end_one {
            gpudeck(home.path(), &["terminate", &name, "--yes"]).spawn().unwrap()
        } else {
            names.push(name.clone());
            let wish = ["launch", "--name", &name, "--gpu", "H100", "--count", "8", "--purchase", "spot", "--yes"];
            gpudeck(home.path(), &wish).spawn().unwrap()
        };
        // Start-up, market, intent, call and answer lie within some tenths of a second.
        let moment = Instant::now() + Duration::from_millis(draws.random_range(0..350));
        while Instant::now() < moment && child.try_wait().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        killed += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
    }
    println!("{rounds} rounds, {killed} killed, {} machines made", fake.world().machines.len());
    assert!(killed > 0, "nobody was killed: draw shorter moments");
    // Whatever was left half-way is gone on with, and comes to an end.
    let controller = gpudeck(home.path(), &["controller"]).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let settled = loop {
        let jobs = jobs(home.path());
        let under_way = jobs
            .iter()
            .filter(|j| !matches!(j["state"].as_str(), Some("running" | "terminated" | "failed" | "succeeded")));
        if under_way.count() == 0 {
            break jobs;
        }
        assert!(Instant::now() < deadline, "{jobs:#?}");
        // Each look is a process of its own; the controller needs the processor, too.
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    assert_eq!(held(&settled), alive(&fake), "the ledger's machines are the cloud's");
    let mut wishes: BTreeMap<String, u32> = BTreeMap::new();
    for machine in &fake.world().machines {
        *wishes.entry(machine.token.clone()).or_default() += 1;
    }
    assert!(wishes.values().all(|n| *n == 1), "two machines for one wish: {wishes:?}");
    let orphans = gpudeck(home.path(), &["orphans", "--json"]).stdout(Stdio::piped()).output().unwrap();
    assert_eq!(String::from_utf8(orphans.stdout).unwrap().trim(), "[]");
    // And all of them can be ended.
    for job in settled.iter().filter(|j| j["state"] == "running") {
        let id = job["id"].as_str().unwrap();
        assert!(gpudeck(home.path(), &["terminate", id, "--yes"]).status().unwrap().success());
    }
    assert_eq!(alive(&fake), BTreeSet::new());
    end(controller);
}
