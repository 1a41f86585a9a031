//! `gpudeck` without a command: what the cockpit needs before it can draw. The screen itself is started by `main`: it
//! stands on the same floor as the command line, and neither uses the other.

use std::io::{self, IsTerminal as _};

use super::config::wrong_ui;
use crate::cli::UiCheck;
use crate::cli::actor;
use crate::cli::app::{App, config_file};
use crate::cli::args::Cli;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::output::Output;
use crate::config::settings::read_themes;
use crate::domain::Actor;
use crate::engine::{Engine, Mode, State};

/// What the cockpit starts with.
pub struct Cockpit {
    /// The running engine.
    pub engine: Engine,
    /// Who sits before it.
    pub actor: Actor,
    /// What was asked for and configured.
    pub app: App,
}

/// What stands between us and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplexer {
    /// Nothing.
    None,
    /// tmux.
    Tmux,
    /// GNU screen.
    Screen,
}

/// As the environment says.
pub fn multiplexer() -> Multiplexer {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if set("TMUX") {
        Multiplexer::Tmux
    } else if set("STY") {
        Multiplexer::Screen
    } else {
        Multiplexer::None
    }
}

/// What the operator should know on leaving: jobs that run on, cost money, and are not looked after from here any more.
pub fn left_alone(state: &State) -> Option<String> {
    let jobs = state.jobs.iter().filter(|job| !job.state.is_final()).count();
    let what = match jobs {
        0 => return None,
        1 => "1 job goes on".to_owned(),
        n => format!("{n} jobs go on"),
    };
    Some(format!(
        "{what} at {}. Unless a controller runs, nobody recovers them from now on: `gpudeck controller`, or the cockpit again.",
        state.usd_per_hour
    ))
}

/// Open everything; tells what is wrong before the screen is taken.
pub async fn prepare(cli: Cli, ui_check: UiCheck) -> Outcome<Cockpit> {
    let mut app = App::open(cli.global.clone(), Output::new(&cli.global), false)?;
    app.settings.ui.themes = read_themes(&app.home.themes())?;
    app.no_offers_file("the cockpit")?;
    if app.global.json {
        return Err(
            Failure::usage("the cockpit prints no JSON").hint("`gpudeck offers --json`, `gpudeck jobs --json`, …")
        );
    }
    if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        return Err(Failure::usage("the cockpit needs a terminal")
            .hint("For scripts there are commands, such as `gpudeck offers --json`; `gpudeck --help` lists them."));
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(Failure::usage("the cockpit needs a terminal that can be drawn on, and TERM is dumb")
            .hint("`gpudeck jobs --watch`, `gpudeck events -f` and `gpudeck controller` print lines."));
    }
    let (file, _) = config_file(&app.global, &app.home);
    wrong_ui(&file.display().to_string(), &app.settings, ui_check)?;
    let engine = app.engine(Mode::Live, "cockpit").await?;
    Ok(Cockpit { engine, actor: actor::current("cockpit"), app })
}
