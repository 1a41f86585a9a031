//! What the product is built from: one registry, allowed licences, nothing that is banned. The lists stand in `deny.toml`.
#![expect(clippy::expect_used, clippy::string_slice, reason = "a test that cannot go on fails here")]

use std::collections::BTreeSet;
use std::process::Command;

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .args(["--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo speaks UTF-8")
}

/// `name version` of every package that is really built: `cargo metadata` also names weak optional ones that are not.
fn built() -> BTreeSet<String> {
    cargo(&["tree", "--prefix", "none", "--format", "{p}", "--edges", "normal,build,dev"])
        .lines()
        .map(|l| l.split(' ').take(2).collect::<Vec<_>>().join(" ").replace(" v", " "))
        .collect()
}

/// The platform that we run on: packages of others are not on this machine, so they cannot be asked.
fn host() -> String {
    let output = Command::new(env!("CARGO")).arg("-vV").output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|l| l.strip_prefix("host: ")).expect("cargo names its host").to_owned()
}

fn rules() -> toml::Table {
    include_str!("../deny.toml").parse().expect("deny.toml is TOML")
}

/// Whether an SPDX expression can be met with the allowed licences. `OR` needs one side, `AND` both; brackets as usual.
fn allowed(expression: &str, allow: &BTreeSet<String>) -> bool {
    fn split<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
        let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
        for (i, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 && i >= start && text[i..].starts_with(word) {
                parts.push(&text[start..i]);
                start = i + word.len();
            }
        }
        parts.push(&text[start..]);
        parts
    }
    let text = expression.trim();
    let or: Vec<&str> = split(text, " OR ").into_iter().flat_map(|p| split(p, "/")).collect();
    if or.len() > 1 {
        return or.into_iter().any(|p| allowed(p, allow));
    }
    let and = split(text, " AND ");
    if and.len() > 1 {
        return and.into_iter().all(|p| allowed(p, allow));
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        return allowed(inner, allow);
    }
    allow.contains(text)
}

#[test]
fn every_package_comes_from_the_registry_under_an_allowed_licence_and_is_not_banned() {
    let rules = rules();
    let allow: BTreeSet<String> =
        rules["licenses"]["allow"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
    let banned: BTreeSet<&str> =
        rules["bans"]["deny"].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
    let metadata: serde_json::Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--filter-platform", &host()]))
            .expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().unwrap();
    let built = built();
    assert!(built.len() > 100, "the graph was read");
    let mut wrong = Vec::new();
    for package in packages {
        let (name, version) = (package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        if !built.contains(&format!("{name} {version}")) || name == "gpudeck" {
            continue;
        }
        if banned.contains(name) {
            wrong.push(format!("{name} is banned"));
        }
        if !package["source"].as_str().is_some_and(|s| s.starts_with("registry+")) {
            wrong.push(format!("{name} does not come from the registry"));
        }
        let licence = package["license"].as_str().unwrap_or_default();
        if !allowed(licence, &allow) && package["license_file"].is_null() {
            wrong.push(format!("{name}: licence '{licence}'"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn licence_expressions_are_read_as_written() {
    let allow = BTreeSet::from(["MIT".to_owned(), "Apache-2.0".to_owned()]);
    for good in ["MIT", "MIT OR GPL-3.0", "MIT/GPL-3.0", "MIT AND (Apache-2.0 OR GPL-3.0)", "(MIT)"] {
        assert!(allowed(good, &allow), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0"] {
        assert!(!allowed(bad, &allow), "{bad}");
    }
}
