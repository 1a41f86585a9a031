//! The gpudeck binary: arguments, process, runtime; then the command line or the cockpit.

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use chrono::Offset as _;
use gpudeck::cli;
use gpudeck::cli::args::{Cli, Command};
use gpudeck::cli::commands::cockpit::{self, Cockpit};
use gpudeck::cli::failure::{Exit, Failure};
use gpudeck::cli::output::{Depth, Output};
use gpudeck::config::limits;
use gpudeck::config::settings::Ui;
use gpudeck::domain::text::inert;
use gpudeck::tui;
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    harden();
    let exit = match cli::parse(std::env::args_os()) {
        Ok(cli) => panic::catch_unwind(AssertUnwindSafe(|| start(cli))).unwrap_or(Exit::Failed),
        Err(exit) => exit,
    };
    ExitCode::from(exit.code())
}

/// What holds for the whole process: no core dumps (they would hold credentials), files are private from the moment
/// they are made, and a fault of ours is told without what a hostile text in it could do to a terminal.
fn harden() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    panic::set_hook(Box::new(|fault| {
        let text = inert(&fault.to_string()).into_owned();
        tracing::error!(fault = text, "a fault in gpudeck");
        Output::plain(false).complain(&format!(
            "error: a fault in gpudeck, please report it: {text}\n hint: what was started is in the ledger; `gpudeck jobs` shows it."
        ));
    }));
}

fn start(cli: Cli) -> Exit {
    // One thread does for a command that asks and prints; what runs for hours has a second one.
    let lasting = matches!(cli.command, None | Some(Command::Controller));
    let built = if lasting {
        Builder::new_multi_thread().worker_threads(2).enable_all().build()
    } else {
        Builder::new_current_thread().enable_all().build()
    };
    let runtime: Runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            Output::plain(false).complain(&format!("error: the system gives no threads or files: {error}"));
            return Exit::Failed;
        }
    };
    let exit = if cli.command.is_some() {
        runtime.block_on(cli::run(cli, wrong_ui))
    } else {
        runtime.block_on(open_cockpit(cli))
    };
    runtime.shutdown_timeout(limits::SHUTDOWN);
    exit
}

/// What the cockpit has to say against the configured keys and theme.
fn wrong_ui(ui: &Ui) -> Vec<String> {
    let mut found: Vec<String> = match tui::keymap::Keymap::with(&ui.keys) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    };
    let load = |texts: &[(String, String)]| tui::theme::Themes::load(texts.iter().map(|(_, text)| text.as_str()));
    let theme = load(&ui.themes).and_then(|themes| match &ui.theme {
        Some(name) => themes.get(name, tui::ColorChoice::TrueColor).map(|_| ()),
        None => Ok(()),
    });
    if let Err(error) = theme {
        // The file that is wrong by itself is named; else it is how the files or the choice go together.
        let alone =
            |file: &(String, String)| load(std::slice::from_ref(file)).err().map(|e| format!("{}: {e}", file.0));
        let wrong: Vec<String> = ui.themes.iter().filter_map(alone).collect();
        found.extend(if wrong.is_empty() { vec![error.to_string()] } else { wrong });
    }
    found
}

async fn open_cockpit(cli: Cli) -> Exit {
    let output = Output::new(&cli.global);
    let told = |failure: Failure| {
        output.failure(&failure);
        failure.exit
    };
    let Cockpit { engine, actor, app } = match cockpit::prepare(cli, wrong_ui).await {
        Ok(cockpit) => cockpit,
        Err(failure) => return told(failure),
    };
    let options = tui::Options {
        demo: app.global.demo,
        replay: false,
        read_only: app.global.read_only,
        theme: app.settings.ui.theme.clone(),
        themes: app.settings.ui.themes.iter().map(|(_, text)| text.clone()).collect(),
        keys: app.settings.ui.keys.clone(),
        color: match app.out.depth() {
            Depth::None => tui::ColorChoice::Never,
            Depth::Ansi16 => tui::ColorChoice::Ansi16,
            Depth::Ansi256 => tui::ColorChoice::Ansi256,
            Depth::TrueColor => tui::ColorChoice::TrueColor,
        },
        ascii: app.out.ascii,
        clipboard: app.settings.ui.clipboard,
        name_above: app.settings.limits.type_name_above_usd_per_hour,
        times: app.settings.ui.time,
        zone: |at| at.with_timezone(&chrono::Local).offset().fix(),
        multiplexer: match cockpit::multiplexer() {
            cockpit::Multiplexer::None => tui::Multiplexer::None,
            cockpit::Multiplexer::Tmux => tui::Multiplexer::Tmux,
            cockpit::Multiplexer::Screen => tui::Multiplexer::Screen,
        },
        actor,
    };
    let ended = tui::run(engine.clone(), options).await;
    let left = cockpit::left_alone(&engine.state().borrow());
    // A call under way is not waited for: it is in the ledger, and the next start looks how it ended.
    let _ = tokio::time::timeout(limits::SHUTDOWN, engine.shutdown()).await;
    match ended {
        Ok(()) => {
            if let Some(text) = left {
                output.note(&text);
            }
            Exit::Done
        }
        Err(error) => told(Failure::failed(format!("{error:#}"))),
    }
}
