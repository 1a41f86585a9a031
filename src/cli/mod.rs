//! The command line: arguments in, one document or texts out, an exit code at the end. Thin: it asks the engine and
//! prints what it says; nothing here decides where a job runs, and nothing here acts but through the engine.
//!
//! - [`args`]: every command and flag.
//! - [`app`]: what every command has at hand; [`bootstrap`]: clouds and engine for it.
//! - [`commands`]: one file a command. [`shapes`]: the documents of `--json`.
//! - [`output`]: tables, documents, colours. [`failure`]: exit codes and errors.

pub mod actor;
pub mod app;
pub mod args;
pub mod bootstrap;
pub mod commands;
pub mod confirm;
pub mod facts;
pub mod failure;
pub mod logging;
pub mod offers_file;
pub mod output;
pub mod shapes;

use std::ffi::OsString;
use std::future::Future;

use clap::Parser as _;
use clap::error::ErrorKind;
use tokio::signal::unix::{Signal, SignalKind, signal};

use app::App;
use args::{Cli, Command};
use failure::{Exit, Failure, Outcome};
use output::Output;

use crate::config::settings::Ui;

/// Parse the arguments. What is wrong with them is told here, as a document where `--json` stands among them.
///
/// # Errors
/// The exit code, after everything has been told: help and version end well, too.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    Cli::try_parse_from(&arguments).map_err(|error| {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            let _ = error.print();
            return Exit::Done;
        }
        if arguments.iter().any(|a| a == "--json") {
            let text = error.render().to_string();
            let mut parts = text.trim().splitn(2, "\n\n");
            let message = parts.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let failure = Failure::usage(message).hint("`gpudeck --help` lists commands and flags.");
            let _ = Output::plain(true).document(&failure.document());
        } else {
            let _ = error.print();
        }
        Exit::Usage
    })
}

/// What the cockpit has to say against its keys and theme, in sentences. Handed in by `main`: the cockpit stands on the
/// same floor as the command line, and neither uses the other.
pub type UiCheck = fn(&Ui) -> Vec<String>;

/// Run what was asked for, and tell what went wrong.
pub async fn run(cli: Cli, ui_check: UiCheck) -> Exit {
    let output = Output::new(&cli.global);
    match Box::pin(dispatch(cli, output.clone(), ui_check)).await {
        Ok(exit) => exit,
        Err(failure) => {
            output.failure(&failure);
            failure.exit
        }
    }
}

async fn dispatch(cli: Cli, output: Output, ui_check: UiCheck) -> Outcome {
    // These need neither a home nor a configuration, and must work where both are broken.
    match &cli.command {
        Some(Command::Completions { shell }) => return commands::generate::completions(&output, *shell),
        Some(Command::Man) => return commands::generate::man(&output),
        Some(Command::Config(command)) => return commands::config::run(&cli.global, &output, command, ui_check),
        _ => {}
    }
    let app = App::open(cli.global, output, true)?;
    match cli.command {
        None => Err(Failure::usage("the cockpit is not a command")),
        Some(Command::Launch(args)) => commands::act::launch(&app, &args).await,
        Some(Command::Migrate(args)) => commands::act::migrate(&app, &args).await,
        Some(Command::Terminate(args)) => commands::act::terminate(&app, &args).await,
        Some(Command::Controller) => commands::controller::run(&app).await,
        Some(other) => interruptible(Box::pin(watch(&app, other))).await,
    }
}

/// Commands that change nothing that a Ctrl-C could leave half done.
async fn watch(app: &App, command: Command) -> Outcome {
    match command {
        Command::Offers(args) => commands::offers::run(app, &args).await,
        Command::Spreads(args) => commands::spreads::run(app, &args).await,
        Command::Place(args) => commands::place::run(app, &args).await,
        Command::Jobs(args) => commands::jobs::list(app, &args).await,
        Command::Job(args) => commands::jobs::one(app, &args.job).await,
        Command::Events(args) => commands::events::run(app, &args).await,
        Command::Latency(args) if args.probe => commands::probe::run(app, args.to.as_ref()).await,
        Command::Latency(args) => commands::latency::run(app, &args),
        Command::Orphans(args) => commands::orphans::run(app, &args).await,
        Command::Doctor(args) if !args.print_policy.is_empty() => commands::policy::run(app, &args.print_policy),
        Command::Doctor(_) => commands::doctor::run(app).await,
        Command::Catalogue(command) => commands::catalogue::run(app, &command).await,
        Command::Reset => commands::reset::run(app),
        Command::Launch(_)
        | Command::Migrate(_)
        | Command::Terminate(_)
        | Command::Controller
        | Command::Config(_)
        | Command::Completions { .. }
        | Command::Man => Err(Failure::failed("this command is run elsewhere")),
    }
}

/// Run until it is done or somebody interrupts it.
pub(crate) async fn interruptible<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let mut stop = Stop::listen()?;
    tokio::select! {
        outcome = work => outcome,
        () = stop.asked() => Err(Failure::interrupted()),
    }
}

/// Ctrl-C, or a request to end. Listens from the moment it is made: a signal between that and the first wait counts.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where it was ignored when we were started (`nohup`): then it stays so.
    hangup: Option<Signal>,
}

impl Stop {
    /// Listen from now on.
    pub(crate) fn listen() -> Outcome<Self> {
        let listen = |kind| signal(kind).map_err(|e| Failure::io("signals cannot be listened to", &e));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: if ignored(SignalKind::hangup()) { None } else { Some(listen(SignalKind::hangup())?) },
        })
    }

    /// Wait for one of them.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = async {
                match &mut self.hangup {
                    Some(signal) => drop(signal.recv().await),
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

/// Whether a signal is ignored by this process, as it was by whoever started it. Linux tells; elsewhere nobody is asked.
fn ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix("SigIgn:")?.trim(), 16).ok());
    u32::try_from(signal.as_raw_value() - 1).is_ok_and(|bit| mask.unwrap_or(0) >> bit.min(63) & 1 == 1)
}
