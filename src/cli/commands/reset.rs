//! `gpudeck --demo reset`: the simulated world anew.

use std::fs;
use std::io;

use crate::cli::app::App;
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::provider::sim;

/// Run it. Only what belongs to the simulation is removed; the ledger of the real world is another file.
pub fn run(app: &App) -> Outcome {
    if !app.global.demo {
        return Err(Failure::usage("only the simulated world can be started anew").hint("gpudeck --demo reset"));
    }
    if app.global.read_only {
        return Err(Failure::new(Exit::Refused, "read_only", "a read-only session resets nothing")
            .hint("Leave --read-only out."));
    }
    sim::reset(&app.home.demo()).map_err(|e| Failure::failed(e.to_string()))?;
    let ledger = app.home.demo_ledger();
    // SQLite keeps two more files beside a ledger that is open or was left by a crash.
    for suffix in ["", "-wal", "-shm"] {
        let mut name = ledger.clone().into_os_string();
        name.push(suffix);
        match fs::remove_file(&name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::io("the simulated world's ledger could not be removed", &e));
            }
            _ => {}
        }
    }
    if app.out.json {
        app.out.document(&serde_json::json!({ "reset": true }))?;
    } else {
        app.out.note("the simulated world starts anew with the next command");
    }
    Ok(Exit::Done)
}
