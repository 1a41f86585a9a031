//! The command line as scripts rely on it: help, usage errors, configuration, files that are made, plain output.

use std::os::unix::fs::PermissionsExt as _;

use crate::home::{Home, both, document, stderr, stdout};

const COMMANDS: [&str; 18] = [
    "offers",
    "spreads",
    "place",
    "launch",
    "migrate",
    "terminate",
    "jobs",
    "job",
    "events",
    "latency",
    "orphans",
    "doctor",
    "catalogue",
    "config",
    "controller",
    "reset",
    "completions",
    "man",
];

#[test]
fn every_command_has_help() {
    let home = Home::new();
    let top = stdout(&home.run("--help"));
    for command in COMMANDS {
        assert!(top.contains(&format!("  {command}")), "{command} in\n{top}");
        let output = home.run(&format!("{command} --help"));
        assert_eq!(output.status.code(), Some(0));
        let help = stdout(&output);
        assert!(help.contains("Usage:") && help.contains("--json") && help.contains("--home"), "{command}:\n{help}");
    }
}

#[test]
fn wrong_use_ends_with_2_and_is_a_document_with_json() {
    let home = Home::new();
    for wrong in [
        "frobnicate",
        "offers --frob",
        "place --top x",
        "doctor --print-policy",
        "doctor --print-policy ibm",
        "doctor --print-policy aws everything",
        "place --top 0 --gpu H100",
        "offers --limit 0",
        "--demo offers --provider awz",
        "--demo offers --region us-esat-1",
        "--demo offers --region aws/us-esat-1",
        "--demo offers --jurisdiction Mars",
        "--demo place --offers /dev/zero --gpu H100",
        "jobs extra",
        "offers --max-price -3",
        "offers --purchase rent",
        "events --since yesterday",
        "migrate j --to nowhere",
        "offers --demo --sort colour",
        "--seed 3 offers",
        "--speed 60 offers",
        "--demo --speed 0 offers",
        "--demo --speed -1 offers",
        "--demo --speed NaN offers",
        "--demo --speed 1000000 offers",
        "reset",
        "jobs --offers x.json",
        "fleet -f x.toml",
        "simulate",
    ] {
        let output = home.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {}", both(&output));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{wrong}: {}", both(&output));
        let output = home.run(&format!("{wrong} --json"));
        assert_eq!(output.status.code(), Some(2), "{wrong}: {}", both(&output));
        let text = stdout(&output);
        crate::home::has_fields(&text, &["error", "class", "message", "provider", "hint"]);
        assert!(document(&output)["error"]["message"].as_str().is_some_and(|m| !m.is_empty()), "{text}");
    }
}

#[test]
fn the_cockpit_needs_a_terminal() {
    let output = Home::new().run("--demo");
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(stderr(&output).contains("terminal"));
}

#[test]
fn config_init_check_show_path() {
    let home = Home::new();
    let path = home.path().join("config.toml");
    assert_eq!(stdout(&home.run("config path")).trim(), path.display().to_string());
    assert_eq!(home.run("config check").status.code(), Some(0));
    assert_eq!(home.run("config init").status.code(), Some(0));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.run("config check").status.code(), Some(0));
    assert_eq!(home.run("config init").status.code(), Some(2), "a file is not replaced unasked");
    assert_eq!(home.run("config init --force").status.code(), Some(0));
    assert!(stdout(&home.run("config show")).contains("type_name_above_usd_per_hour"));
    assert_eq!(home.json("config show", 0)["ui"]["time"], "utc");
}

#[test]
fn a_broken_configuration_ends_with_2_and_every_finding() {
    let home = Home::new();
    home.write("config.toml", "[ui]\ntheem = \"x\"\nascii = \"maybe\"\n");
    for command in ["config check", "--demo offers", "doctor"] {
        let output = home.run(command);
        assert_eq!(output.status.code(), Some(2), "{command}: {}", both(&output));
        let text = stderr(&output);
        for part in ["config.toml:2", "'theem'", "'theme'", "config.toml:3"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
    home.write("config.toml", "[ui]\ntheme = \"darkk\"\n[ui.keys]\nrefesh = \"r\"\n");
    let output = home.run("config check");
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    for part in ["darkk", "'refesh'", "'refresh'"] {
        assert!(stderr(&output).contains(part), "{part}: {}", both(&output));
    }
    assert_eq!(home.run("config path").status.code(), Some(0), "works where the configuration is broken");
    assert_eq!(home.run("--config /nowhere/config.toml offers").status.code(), Some(2));
}

#[test]
fn own_themes_lie_beside_the_configuration_and_a_wrong_one_is_told_with_its_file() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("themes")).unwrap();
    home.write("config.toml", "[ui]\ntheme = 'night'\n");
    assert_eq!(home.run("config check").status.code(), Some(2), "there is no such theme yet");
    home.write("themes/night.toml", "name = 'night'\ntitle = 'Night'\ninherits = 'dark'\n[roles]\nbrand = '#ff0000'\n");
    let output = home.run("config check");
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    home.write("themes/wrong.toml", "name = 'wrong'\ntitle = 'Wrong'\n[roles]\nbrnd = '#ff0000'\n");
    let output = home.run("config check");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("wrong.toml") && stderr(&output).contains("'brnd'"), "{}", both(&output));
}

#[test]
fn op41_a_new_ledger_takes_the_owner_of_a_lost_one_and_never_another_one_later() {
    let home = Home::new();
    home.write("config.toml", "[ledger]\nowner = 'acme-1'\n[providers.aws]\nenabled = false\n");
    assert_eq!(home.json("jobs", 0), serde_json::json!([]));
    let ledger = |home: &Home| {
        let output = home.run("doctor --json");
        let checks = document(&output);
        let found = checks.as_array().unwrap().iter().find(|c| c["check"] == "ledger").unwrap().clone();
        (found["status"].clone(), found["detail"].as_str().unwrap().to_owned())
    };
    let (status, detail) = ledger(&home);
    assert!(status == "ok" && detail.contains("owner acme-1"), "{detail}");
    home.write("config.toml", "[ledger]\nowner = 'acme-2'\n[providers.aws]\nenabled = false\n");
    let error = home.json("jobs", 1);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("'acme-1'") && message.contains("'acme-2'"), "{message}");
    assert_eq!(ledger(&home).0, "fail");
}

#[test]
fn a_read_only_session_does_not_reset_the_simulated_world() {
    let home = Home::new();
    assert_eq!(home.demo("jobs").status.code(), Some(0));
    assert_eq!(home.demo("--read-only reset").status.code(), Some(4));
    assert!(home.path().join("demo/ledger.sqlite").exists());
}

#[test]
fn latency_from_one_place_tells_every_other_in_both_directions() {
    let home = Home::new();
    for one in ["--from", "--to"] {
        let found = home.json(&format!("latency {one} gcp/us-central1"), 0);
        let found = found.as_array().unwrap();
        assert!(found.iter().any(|l| l["from"] == "aws/us-east-1" || l["to"] == "aws/us-east-1"), "{one}");
        assert!(found.iter().all(|l| l[&one[2..]] == "gcp/us-central1"), "{one}");
    }
}

/// A file in the middle of being edited must keep nobody from ending a machine.
#[test]
fn a_theme_that_cannot_be_read_stops_no_command() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("themes")).unwrap();
    std::os::unix::fs::symlink("nowhere", home.path().join("themes/.#dark.toml")).unwrap();
    assert_eq!(home.demo("jobs").status.code(), Some(0));
    assert_eq!(home.run("config check").status.code(), Some(0), "and an editor's lock is no theme");
}

#[test]
fn nobody_listening_does_not_end_a_controller() {
    use nix::sys::signal::{Signal, kill};
    let home = Home::fast();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("gpudeck"))
        .args(["--demo", "controller"])
        .env("GPUDECK_HOME", home.path())
        .env("HOME", home.path())
        .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Something to tell, and the end of it seen in the ledger.
    assert_eq!(home.demo("launch --gpu L4 --name heard --yes").status.code(), Some(0));
    assert_eq!(home.demo("terminate heard --yes").status.code(), Some(0));
    assert_eq!(child.try_wait().unwrap(), None, "it ended with its reader");
    kill(nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn nothing_is_read_from_the_current_directory() {
    let home = Home::new();
    let elsewhere = Home::new();
    elsewhere.write("config.toml", "[ui]\nbroken = 1\n");
    elsewhere.write("gpudeck.toml", "broken");
    let output = home.command().current_dir(elsewhere.path()).args(["config", "check"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
}

#[test]
fn a_configuration_that_others_can_write_is_told() {
    let home = Home::new();
    let path = home.write("config.toml", "");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let output = home.run("config check");
    assert!(stderr(&output).contains("chmod 600"), "{}", both(&output));
}

#[test]
fn everything_that_is_made_is_private() {
    let home = Home::new();
    let inside = home.path().join("deep/er");
    let output = home.command().args(["--home", inside.to_str().unwrap(), "--demo", "jobs"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let mut stack = vec![inside];
    let mut files = 0;
    while let Some(path) = stack.pop() {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            stack.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else {
            files += 1;
            assert_eq!(mode & 0o077, 0, "{} is {mode:o}", path.display());
        }
    }
    assert!(files > 0);
}

#[test]
fn completions_and_man_come_from_the_binary() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = stdout(&home.run(&format!("completions {shell}")));
        for command in COMMANDS {
            assert!(text.contains(command), "{command} in {shell}");
        }
    }
    let man = stdout(&home.run("man"));
    for part in [".TH", "terminate", "\\-\\-max\\-price", "\\-\\-read\\-only"] {
        assert!(man.contains(part), "{part}");
    }
}

#[test]
fn h7_piped_output_is_plain() {
    let home = Home::new();
    for command in [
        "--demo offers --gpu H100",
        "--demo spreads",
        "--demo place --gpu H100",
        "latency --from aws/us-east-1",
        "--demo jobs",
        "--demo doctor",
        "catalogue show --gpu H100",
        "--help",
        "config show",
    ] {
        let output = home.run(command);
        for bytes in [&output.stdout, &output.stderr] {
            assert!(!bytes.contains(&0x1b) && !bytes.contains(&0), "{command}: {}", both(&output));
        }
        assert!(!output.stdout.is_empty(), "{command}");
    }
    let coloured = home.run("--demo offers --gpu H100 --color always");
    assert!(coloured.stdout.contains(&0x1b), "--color always colours");
    let output = home.command().env("NO_COLOR", "1").args(["--demo", "offers"]).output().unwrap();
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    let home = Home::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("gpudeck"))
        .env_clear()
        .env("HOME", home.path())
        .args(["--demo", "offers", "--json", "--home", home.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0_u8; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// A client in another zone, through a change to summer time and a leap day: the same moments, always with their zone.
#[test]
fn f1_where_the_operator_sits_changes_no_moment() {
    let home = Home::fast();
    assert_eq!(home.demo("launch --gpu L4 --name f1 --yes").status.code(), Some(0));
    assert_eq!(home.demo("terminate f1 --yes").status.code(), Some(0));
    let under = |zone: &str, arguments: &str| {
        let output = home.command().env("TZ", zone).args(arguments.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", both(&output));
        stdout(&output)
    };
    for arguments in ["--demo events --json", "--demo events"] {
        let utc = under("UTC", arguments);
        assert!(utc.contains('Z'), "{utc}");
        for zone in ["Asia/Kolkata", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati"] {
            assert_eq!(under(zone, arguments), utc, "{zone}");
        }
    }
    home.write("config.toml", "[demo]\nspeed = 240.0\n[ui]\ntime = 'local'\n");
    let local = under("Asia/Kolkata", "--demo events");
    assert!(local.contains("+05:30"), "{local}");
    assert!(!local.contains("+00:00"), "{local}");
}

#[test]
fn op33_without_utf_8_only_ascii_is_drawn() {
    let home = Home::new();
    for (lang, term) in [("C", "xterm"), ("", "xterm"), ("de_DE.ISO-8859-1", "xterm"), ("C.UTF-8", "linux")] {
        let output = home
            .command()
            .env("LANG", lang)
            .env("TERM", term)
            .args(["--demo", "offers", "--limit", "50"])
            .output()
            .unwrap();
        assert!(output.stdout.is_ascii() && !output.stdout.is_empty(), "{lang} {term}: {}", both(&output));
    }
}

#[test]
fn every_policy_is_a_document_and_operating_includes_what_watching_needs() {
    let home = Home::new();
    let rights = |cloud: &str, which: &str| {
        let text = home.json(&format!("doctor --print-policy {cloud} {which}"), 0).to_string();
        let plain = stdout(&home.run(&format!("doctor --print-policy {cloud} {which}")));
        assert!(serde_json::from_str::<serde_json::Value>(&plain).is_ok(), "{plain}");
        assert!(!text.contains(":*\"") && !text.contains("\"*:"), "no wildcards: {text}");
        let words = text.split('"').filter(|w| w.contains([':', '/', '.']) && !w.contains([' ', '*']));
        words.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    for cloud in ["aws", "gcp"] {
        let (read, operate) = (rights(cloud, "read"), rights(cloud, "operate"));
        assert!(read.is_subset(&operate) && read != operate, "{cloud}: {read:?}, {operate:?}");
    }
    assert!(rights("azure", "operate").contains("Microsoft.Compute/virtualMachines/delete"));
    assert!(!rights("azure", "read").iter().any(|r| r.ends_with("/write") || r.ends_with("/delete")));
    assert_eq!(home.json("doctor --print-policy aws", 0), home.json("doctor --print-policy aws read", 0));
}

#[test]
fn a_watch_that_is_wrong_is_told_with_its_key() {
    let home = Home::new();
    for (text, told) in [
        ("gpu = \"H100\"", "watches.x.below_usd_per_gpu_hour"),
        ("gpu = \"H1OO\"\nbelow_usd_per_gpu_hour = 2.0", "watches.x.gpu"),
        ("gpu = \"H100\"\nbelow_usd_per_gpu_hour = 2.0\npurchase = [\"rent\"]", "watches.x.purchase"),
        ("gpu = \"H100\"\nbelow_usd_per_gpu_hour = 2.0\ncolour = 1", "colour"),
    ] {
        home.write("config.toml", &format!("[watches.x]\n{text}\n"));
        let output = home.run("config check");
        assert_eq!(output.status.code(), Some(2), "{text}: {}", both(&output));
        assert!(both(&output).contains(told), "'{told}' in {}", both(&output));
    }
    home.write("config.toml", "[watches.x]\ngpu = \"H100\"\nbelow_usd_per_gpu_hour = 2.0\njurisdictions = [\"EU\"]\n");
    assert_eq!(home.run("config check").status.code(), Some(0));
}
