//! `gpudeck config`: works where the configuration is broken, for that is when it is needed.

use std::io;

use crate::cli::UiCheck;
use crate::cli::app::config_file;
use crate::cli::args::{ConfigCommand, Global};
use crate::cli::bootstrap::watches;
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::cli::output::Output;
use crate::config::home::{create_private_dir, writable_by_others, write_private};
use crate::config::settings::{EXAMPLE, read_themes};
use crate::config::{Home, Settings};

/// What the cockpit has to say against its keys and theme.
pub(super) fn wrong_ui(path: &str, settings: &Settings, ui_check: UiCheck) -> Outcome<()> {
    let found = ui_check(&settings.ui);
    if found.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = found.iter().map(|what| format!("{path}: ui: {what}")).collect();
    Err(Failure::new(Exit::Usage, "invalid", lines.join("\n")).hint("`?` in the cockpit shows the names of actions."))
}

/// Run it.
pub fn run(global: &Global, out: &Output, command: &ConfigCommand, ui_check: UiCheck) -> Outcome {
    let home = Home::choose(global.home.as_deref()).map_err(|e| Failure::usage(e.to_string()))?;
    let (file, named) = config_file(global, &home);
    let path = file.display().to_string();
    match command {
        ConfigCommand::Path => {
            if out.json {
                out.document(&serde_json::json!({ "path": path, "exists": file.exists() }))?;
            } else {
                out.text(&format!("{path}\n"))?;
            }
        }
        ConfigCommand::Init { force } => {
            if let Some(dir) = file.parent() {
                create_private_dir(dir).map_err(|e| Failure::io("the configuration has no place", &e))?;
            }
            write_private(&file, EXAMPLE.as_bytes(), *force).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => {
                    Failure::usage(format!("{path} exists already; nothing was changed")).hint("--force replaces it.")
                }
                _ => Failure::io(&path, &e),
            })?;
            if out.json {
                out.document(&serde_json::json!({ "path": path, "written": true }))?;
            } else {
                out.note(&format!("wrote {path}"));
            }
        }
        ConfigCommand::Check => {
            let mut settings = Settings::load(&file, named)?;
            settings.ui.themes = read_themes(&home.themes())?;
            wrong_ui(&path, &settings, ui_check)?;
            watches(&settings)?;
            let warning = writable_by_others(&file);
            if let Some(warning) = &warning {
                out.complain(&format!("warning: {warning}"));
            }
            if out.json {
                out.document(&serde_json::json!({
                    "path": path, "exists": file.exists(), "valid": true, "warning": warning,
                }))?;
            } else if file.exists() {
                out.text(&format!("{path} is valid\n"))?;
            } else {
                out.text(&format!("{path} does not exist: the defaults are in force\n"))?;
            }
        }
        ConfigCommand::Show => {
            Settings::load(&file, named)?;
            let effective = Settings::effective(&file)?;
            if out.json {
                out.document(&effective)?;
            } else {
                let text = toml::to_string(&effective)
                    .map_err(|e| Failure::failed(format!("the configuration cannot be shown: {e}")))?;
                out.text(&text)?;
            }
        }
    }
    Ok(Exit::Done)
}
