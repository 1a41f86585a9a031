//! `launch`, `migrate`, `terminate` and what shows them, from end to end on the demo through the real binary.

use crate::home::{Home, JOB, both, document, has_fields, stderr, stdout};
use serde_json::Value;

/// Launch a job; retried, for the simulated clouds refuse some launches, as real ones do.
fn launch(home: &Home, name: &str) -> Value {
    let output = home.demo(&format!("launch --name {name} --gpu A100 --count 1 --purchase on-demand --yes --json"));
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    has_fields(
        &stdout(&output),
        &[
            "job",
            "plan",
            "steps",
            "action",
            "provider",
            "region",
            "zone",
            "instance_type",
            "count",
            "usd_per_hour",
            "usd_once",
            "seconds",
            "usd_per_hour_before",
            "usd_per_hour_after",
            "usd_once",
            "executed",
        ],
    );
    document(&output)
}

#[test]
fn launch_jobs_job_events_migrate_terminate() {
    let home = Home::fast();
    let done = launch(&home, "end-to-end");
    assert_eq!(done["executed"], true);
    assert_eq!(done["job"]["state"], "running", "{done}");
    let id = done["job"]["id"].as_str().unwrap().to_owned();

    let output = home.demo("jobs --json");
    has_fields(&stdout(&output), &JOB);
    let jobs = document(&output);
    assert_eq!(jobs.as_array().unwrap().len(), 1);
    assert_eq!((&jobs[0]["id"], &jobs[0]["name"]), (&Value::from(id.clone()), &Value::from("end-to-end")));
    assert_eq!(jobs[0]["instances"].as_array().unwrap().len(), 1);

    let job = home.json("--demo job end-to-end", 0);
    for field in ["spec", "plan", "events", "cost"] {
        assert!(!job[field].is_null(), "{field} in {job}");
    }
    assert!(job["events"].as_array().unwrap().len() >= 2);

    let output = home.demo("events --json");
    has_fields(&stdout(&output), &["seq", "at", "actor", "kind", "job", "plan", "text", "data"]);
    let events = document(&output);
    let seqs: Vec<i64> = events.as_array().unwrap().iter().map(|e| e["seq"].as_i64().unwrap()).collect();
    assert!(seqs.windows(2).all(|w| w[0] < w[1]), "{seqs:?}");

    migrates(&home, &done["job"]);

    let ended = home.json("--demo terminate end-to-end --yes", 0);
    assert_eq!(
        (&ended["executed"], &ended["job"]["state"]),
        (&Value::from(true), &Value::from("terminated")),
        "{ended}"
    );
    assert_eq!(home.json("--demo jobs", 0), serde_json::json!([]));
    let all = home.json("--demo jobs --all", 0);
    assert_eq!(all[0]["state"], "terminated");
    assert!(all[0]["usd_spent"].as_f64().unwrap() > 0.0);
    assert!(all[0]["instances"].as_array().unwrap().iter().all(|i| i["state"] == "gone"), "{all}");
}

/// Move the job to a place that `place` names in another region, and see that it is there.
fn migrates(home: &Home, job: &Value) {
    let ranked = home.json("--demo place --gpu A100 --count 1 --purchase on-demand --top 100", 0);
    let region = |of: &Value| {
        let name = |field| of[field].as_str().expect("a name").to_owned();
        format!("{}/{}", name("provider"), name("region"))
    };
    let here = region(job);
    let mut targets: Vec<String> = Vec::new();
    for candidate in ranked["candidates"].as_array().expect("a list") {
        let node = &candidate["nodes"][0];
        let target = region(node);
        if target != here && node["availability"] == "available" && !targets.contains(&target) {
            targets.push(target);
        }
    }
    // A simulated cloud may refuse for want of stock, which its listing did not show; it says so with 3, and the next
    // place is named then. Anything else is a fault.
    let mut refusals = Vec::new();
    for target in targets.iter().take(5) {
        let output = home.demo(&format!("migrate end-to-end --to {target} --yes --json"));
        if output.status.code() == Some(3) {
            refusals.push(both(&output));
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "to {target}: {}", both(&output));
        let moved = document(&output);
        assert_eq!((&moved["executed"], &moved["job"]["state"]), (&Value::from(true), &Value::from("running")));
        for document in [moved["job"].clone(), home.json("--demo job end-to-end", 0)] {
            assert_eq!((&region(&document), &document["state"]), (target, &Value::from("running")), "{document}");
            assert_eq!(document["restarts"], 0, "a move is no recovery: {document}");
        }
        return;
    }
    panic!("none of {targets:?} had room: {refusals:#?}");
}

#[test]
fn a_dry_run_does_nothing() {
    let home = Home::fast();
    let plan = home.json("--demo launch --gpu A100 --count 1 --dry-run", 0);
    assert_eq!((&plan["job"], &plan["executed"]), (&Value::Null, &Value::from(false)));
    assert_eq!(plan["plan"]["steps"][0]["count"], 1, "{plan}");
    assert_eq!(home.json("--demo jobs --all", 0), serde_json::json!([]));
}

#[test]
fn a_launch_without_a_place_ends_with_3_and_says_why() {
    let home = Home::fast();
    for dry in ["", "--dry-run"] {
        let error = home.json(&format!("--demo launch --gpu H100 --count 8 --max-price 0.01 --yes {dry}"), 3);
        assert_eq!(error["error"]["class"], "no_placement", "{error}");
        assert!(error["place"]["rejected"].as_array().is_some_and(|r| !r.is_empty()), "{error}");
        assert!(error["place"]["relax"].as_array().is_some_and(|r| !r.is_empty()), "{error}");
    }
    assert_eq!(home.json("--demo jobs --all", 0), serde_json::json!([]));
}

#[test]
fn names_that_are_made_up_never_collide() {
    let home = Home::fast();
    let names: Vec<String> = (0..2)
        .map(|_| {
            let done = home.json("--demo launch --gpu A100 --count 1 --purchase on-demand --yes", 0);
            done["job"]["name"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(names, ["a100-1x", "a100-1x-2"]);
    let ended = home.json("--demo terminate a100-1x a100-1x-2 --yes", 0);
    assert_eq!(ended.as_array().map(Vec::len), Some(2), "a list for several: {ended}");
}

#[test]
fn nothing_acts_without_a_terminal_or_yes() {
    let home = Home::fast();
    let output = home.demo("launch --gpu A100 --count 1");
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    let text = stderr(&output);
    assert!(text.contains("--yes") && text.contains("launch"), "shows the plan and the remedy: {text}");
    assert_eq!(home.json("--demo jobs --all", 0), serde_json::json!([]));
    launch(&home, "stays");
    for command in ["terminate stays", "migrate stays"] {
        let code = home.demo(command).status.code();
        assert!(matches!(code, Some(1..=3)), "{command}: {code:?}");
    }
    assert_eq!(home.json("--demo job stays", 0)["state"], "running");
}

#[test]
fn op9_a_read_only_session_acts_on_nothing() {
    let home = Home::fast();
    launch(&home, "kept");
    for command in
        ["launch --gpu A100 --count 1 --yes", "terminate kept --yes", "migrate kept --yes", "orphans --terminate --yes"]
    {
        let output = home.demo(&format!("{command} --read-only --json"));
        assert_eq!(output.status.code(), Some(4), "{command}: {}", both(&output));
        assert_eq!(document(&output)["error"]["class"], "refused");
    }
    assert_eq!(home.demo("jobs --read-only").status.code(), Some(0));
    assert_eq!(home.json("--demo job kept", 0)["state"], "running");
}

#[test]
fn a_job_that_is_not_there_ends_with_2() {
    let home = Home::fast();
    for command in ["job nobody", "terminate nobody --yes", "migrate nobody --yes", "events --job nobody"] {
        let output = home.demo(&format!("{command} --json"));
        assert_eq!(output.status.code(), Some(2), "{command}: {}", both(&output));
    }
}

#[test]
fn values_of_variables_are_hidden_everywhere() {
    let home = Home::fast();
    let output = home.demo("launch --name secretive --gpu A100 --count 1 --env TOKEN=canary-77aa --yes --json");
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let mut seen = both(&output);
    for command in [
        "job secretive --json",
        "job secretive",
        "jobs --json",
        "events --json",
        "place --gpu A100 --env TOKEN=canary-77aa --json",
    ] {
        seen.push_str(&both(&home.demo(command)));
    }
    assert!(seen.contains("\"TOKEN\":\"***\""), "the name is shown");
    assert!(!seen.contains("canary-77aa"), "a value was shown");
    for entry in std::fs::read_dir(home.path().join("logs")).unwrap() {
        let log = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!log.contains("canary-77aa"), "a value was logged");
    }
}

#[test]
fn commands_at_once_on_one_home_all_count() {
    let home = std::sync::Arc::new(Home::fast());
    launch(&home, "first");
    let started: Vec<_> = (0..4)
        .map(|n| {
            let home = std::sync::Arc::clone(&home);
            std::thread::spawn(move || {
                let output = home
                    .demo(&format!("launch --name at-once-{n} --gpu A100 --count 1 --purchase on-demand --yes --json"));
                (output.status.code(), both(&output))
            })
        })
        .collect();
    let mut done = 1;
    for thread in started {
        let (code, text) = thread.join().unwrap();
        // A simulated cloud may be out of stock; what must not happen is a lost write or a crash.
        assert!(matches!(code, Some(0 | 1 | 3)), "{text}");
        done += usize::from(code == Some(0));
    }
    let jobs = home.json("--demo jobs --all", 0);
    let running =
        jobs.as_array().unwrap().iter().filter(|j| j["state"] != "failed" && j["name"] != Value::Null).count();
    assert!(running >= done, "{done} launched, {jobs}");
}

#[test]
fn doctor_checks_everything_and_finds_the_demo_well() {
    let home = Home::fast();
    let output = home.demo("doctor --json");
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    has_fields(&stdout(&output), &["check", "provider", "status", "detail", "remedy"]);
    let checks = document(&output);
    let names: Vec<&str> = checks.as_array().unwrap().iter().map(|c| c["check"].as_str().unwrap()).collect();
    for wanted in ["directory of ledger", "configuration", "terminal", "ledger", "clock", "catalogue"] {
        assert!(names.contains(&wanted), "{wanted} in {names:?}");
    }
    assert!(checks.as_array().unwrap().iter().any(|c| c["provider"] == "aws"));
    let live = home.json("doctor", 0);
    let aws = live.as_array().unwrap().iter().find(|c| c["provider"] == "aws").unwrap().clone();
    assert_eq!(aws["status"], "skip");
    assert!(aws["remedy"].as_str().is_some_and(|r| !r.is_empty()), "{aws}");
}

#[cfg(feature = "aws")]
#[test]
fn d14_doctor_tells_a_dead_endpoint_once_and_in_people_s_words() {
    let home = Home::unreachable();
    let output = home.with_credentials("doctor --json");
    assert_eq!(output.status.code(), Some(5), "{}", both(&output));
    let checks = document(&output);
    let of_aws: Vec<&Value> = checks.as_array().unwrap().iter().filter(|c| c["provider"] == "aws").collect();
    let endpoint: Vec<&&Value> = of_aws.iter().filter(|c| c["check"] == "endpoint").collect();
    assert_eq!(endpoint.len(), 1, "{endpoint:?}");
    assert_eq!(endpoint[0]["status"], "warn");
    let failed: Vec<&str> =
        of_aws.iter().filter(|c| c["status"] == "fail").map(|c| c["detail"].as_str().unwrap()).collect();
    assert!(!failed.is_empty());
    for detail in failed {
        assert!(detail.contains("not reached") && detail.contains("onnection refused"), "{detail}");
        assert_eq!(detail.matches("refused").count(), 1, "{detail}");
        assert!(!detail.contains(['{', '}', '"']) && detail.len() < 200, "no debugging output: {detail}");
    }
}

#[test]
fn orphans_of_a_clean_world_are_none() {
    let home = Home::fast();
    assert_eq!(home.json("--demo orphans", 0), serde_json::json!([]));
}

#[test]
fn an_interrupted_follow_ends_with_130_and_a_controller_with_0() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    let home = Home::fast();
    launch(&home, "followed");
    for (arguments, code, stream) in [("events -f", 130, "out"), ("controller", 0, "err")] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("gpudeck"))
            .env_clear()
            .env("HOME", home.path())
            .args(["--demo", "--home", home.path().to_str().unwrap()])
            .args(arguments.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its first line says that it runs.
        let mut first = String::new();
        if stream == "out" {
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        } else {
            BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut first).unwrap();
        }
        assert!(!first.is_empty());
        let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{arguments}");
    }
}

#[test]
fn a_move_to_a_place_that_nobody_knows_is_a_typing_error() {
    let home = Home::fast();
    launch(&home, "mover");
    let output = home.run("--demo migrate mover --to aws/us-esat-1 --yes");
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("Did you mean aws/us-east-1?"), "{}", both(&output));
}

/// `events -f | head -1`: nothing more is written, so only a look at the pipe tells that nobody reads.
#[test]
fn a_follower_ends_when_its_reader_does() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    let home = Home::fast();
    launch(&home, "followed");
    assert_eq!(home.run("--demo terminate followed --yes").status.code(), Some(0));
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("gpudeck"))
        .env_clear()
        .env("HOME", home.path())
        .args(["--demo", "--home", home.path().to_str().unwrap(), "events", "-f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    assert!(!first.is_empty());
    drop(out);
    assert!(child.wait().unwrap().code().is_some());
}
