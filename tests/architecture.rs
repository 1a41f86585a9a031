//! The floors hold: a module uses only those below it, and what touches the world stands in its one place.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::string_slice,
    reason = "a test that cannot go on fails here"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Height of each floor; a module may use modules of its own name and of lower floors.
const FLOORS: &[(&str, u8)] = &[
    ("domain", 0),
    ("config", 1),
    ("catalogue", 2),
    ("market", 3),
    ("network", 4),
    ("policy", 4),
    ("placement", 5),
    ("provider", 6),
    ("store", 6),
    ("engine", 7),
    ("cli", 8),
    ("tui", 8),
];

/// A call that is forbidden but in the files that begin with one of these paths, and why.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    ("Utc::now", &["config/system_clock.rs"], "time is handed in"),
    ("SystemTime::now", &[], "time is handed in"),
    ("Local::now", &["config/system_clock.rs"], "time is handed in"),
    ("env::var", &["main.rs", "cli/", "config/"], "the environment is read at the edge"),
    ("process::exit", &["main.rs"], "only main ends the program"),
    // The probe paces real connections; the ledger waits while another process makes it.
    (
        "time::sleep",
        &[
            "engine/timer.rs",
            "provider/sim/latency.rs",
            "provider/decorators/",
            "cli/commands/probe.rs",
            "store/ledger.rs",
        ],
        "waiting has one place",
    ),
    // The watch over signals has a thread of its own, because no other can be relied on then.
    ("thread::sleep", &["tui/term.rs"], "waiting has one place"),
    ("rand::rng", &["config/", "main.rs", "cli/"], "randomness is handed in"),
    ("rand::random", &[], "randomness is handed in"),
];

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("src is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The source without comments and without its inline tests (which by habit end a file).
fn code(text: &str) -> String {
    let body = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    body.lines().map(|l| if l.trim_start().starts_with("//") { "" } else { l }).collect::<Vec<_>>().join("\n")
}

fn each(mut f: impl FnMut(&str, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 20, "the sources were found");
    files.sort();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        // Test support inside src is not part of the product.
        if name.ends_with("/testing.rs") || name.ends_with("/tests.rs") || name.contains("/tests/") {
            continue;
        }
        f(&name, &code(&fs::read_to_string(&file).unwrap()));
    }
}

fn floor(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

#[test]
fn no_floor_reaches_up() {
    let mut wrong = Vec::new();
    each(|name, text| {
        let own = name.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some(own_floor) = floor(own) else { return };
        for (at, _) in text.match_indices("crate::") {
            let rest = &text[at + "crate::".len()..];
            let used: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let Some(used_floor) = floor(&used) else { continue };
            if used != own && used_floor >= own_floor {
                let line = text[..at].lines().count();
                wrong.push(format!("src/{name}:{line}: {own} uses {used}"));
            }
        }
    });
    assert!(wrong.is_empty(), "a module uses one on its own floor or above:\n{}", wrong.join("\n"));
}

#[test]
fn what_touches_the_world_stands_in_its_one_place() {
    let mut wrong = Vec::new();
    each(|name, text| {
        for (call, places, why) in FORBIDDEN {
            if places.iter().any(|p| name.starts_with(p)) {
                continue;
            }
            for (at, _) in text.match_indices(call) {
                wrong.push(format!("src/{name}:{}: {call}: {why}", text[..at].lines().count()));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_has_grown_beyond_reading() {
    let mut wrong = Vec::new();
    each(|name, text| {
        let lines = text.lines().count();
        if lines > 800 {
            wrong.push(format!("src/{name}: {lines} lines"));
        }
    });
    assert!(wrong.is_empty(), "split these by noun:\n{}", wrong.join("\n"));
}
