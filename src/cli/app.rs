//! What every command has at hand: flags, directories, settings, output.

use std::path::PathBuf;

use tokio::sync::OnceCell;

use super::args::Global;
use super::bootstrap::{self, World};
use super::failure::{Failure, Outcome};
use super::logging;
use super::output::Output;
use crate::catalogue::Catalogue;
use crate::config::home::writable_by_others;
use crate::config::{Home, Settings};
use crate::engine::{Engine, Mode};

/// What every command has at hand.
pub struct App {
    /// The flags of every command.
    pub global: Global,
    /// The directories.
    pub home: Home,
    /// The configuration as meant.
    pub settings: Settings,
    /// How to print.
    pub out: Output,
    world: OnceCell<World>,
    catalogue: std::sync::OnceLock<Catalogue>,
}

/// Where the configuration file is, and whether the user named it.
pub fn config_file(global: &Global, home: &Home) -> (PathBuf, bool) {
    match &global.config {
        Some(file) => (file.clone(), true),
        None => (home.config_file(), false),
    }
}

impl App {
    /// Find the directories, make those that are missing, read the configuration.
    /// With `log_to_stderr` false what `-v` asks for goes to the log file only: a cockpit draws on the same terminal.
    pub fn open(global: Global, mut out: Output, log_to_stderr: bool) -> Outcome<Self> {
        for (flag, given) in [("--seed", global.seed.is_some()), ("--speed", global.speed.is_some())] {
            if given && !global.demo {
                return Err(Failure::usage(format!("{flag} is for the simulated market")).hint("Add --demo."));
            }
        }
        let home = Home::choose(global.home.as_deref()).map_err(|e| Failure::usage(e.to_string()))?;
        let (file, named) = config_file(&global, &home);
        let settings = Settings::load(&file, named)?;
        if let Some(warning) = writable_by_others(&file) {
            out.note(&format!("warning: {warning}"));
        }
        home.create().map_err(|e| {
            Failure::io("the directories could not be made", &e).hint("Say where to keep things with --home DIR.")
        })?;
        if let Err(why) = logging::start(&home.logs(), global.verbose, log_to_stderr) {
            out.note(&format!("warning: {why}"));
        }
        out.configure(&global, &settings.ui);
        Ok(Self { global, home, settings, out, world: OnceCell::new(), catalogue: std::sync::OnceLock::new() })
    }

    /// The clock and the clouds: the simulated ones with `--demo`, else those that can be used.
    pub async fn world(&self) -> Outcome<&World> {
        self.world.get_or_try_init(|| async { bootstrap::world(self) }).await
    }

    /// An engine over them.
    pub async fn engine(&self, mode: Mode, via: &str) -> Outcome<Engine> {
        bootstrap::engine(self, mode, via).await
    }

    /// The catalogue in force: the bundled one, with the user's own tables before it. A table that cannot be read is
    /// told and left out.
    pub fn catalogue(&self) -> &Catalogue {
        self.catalogue.get_or_init(|| bootstrap::catalogue(self))
    }

    /// `--offers` where a command has no use for it.
    pub fn no_offers_file(&self, command: &str) -> Outcome<()> {
        if self.global.offers.is_some() {
            return Err(Failure::usage(format!("`{command}` does not work on a market from a file"))
                .hint("--offers is for offers, spreads and place."));
        }
        Ok(())
    }
}
