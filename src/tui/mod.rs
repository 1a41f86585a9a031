//! The cockpit: draws snapshots, sends requests. Events come in, [`update()`] decides, effects go out; [`draw()`] is pure.
//!
//! - [`action`]: the one registry of what a key can do; [`keymap`] binds keys to it.
//! - `view`, `update`, `board`: what is looked at, what changes it, what tables show (computed off the draw path).
//! - `layout`, `draw`, `header`, `footer`, `panes`, `dialogs`: from a view to a buffer.
//! - `table`, `filter`, `spark`, `paint`, [`theme`]: what panes are made of.
//! - `term`, `event_loop`, `limiter`, `effects`: the edge: terminal, signals, timers, engine.

pub mod action;
mod board;
mod dialogs;
mod draw;
mod effects;
mod event_loop;
mod filter;
mod footer;
mod header;
pub mod keymap;
mod layout;
mod limiter;
mod line_edit;
mod paint;
mod panes;
mod sgr;
mod spark;
mod table;
mod term;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod theme;
pub mod times;
mod update;
mod view;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

pub use board::{Board, BoardRequest};
pub use draw::draw;
pub use effects::Multiplexer;
pub use theme::ColorChoice;
pub use update::update;
pub use view::{Effect, Incoming, Input, Refusal, Session, View};

use crate::config::settings::TimeDisplay;
use crate::domain::{Actor, HourlyRate};
use crate::engine::Engine;
use event_loop::Ended;
use keymap::Keymap;
use theme::Themes;

/// How the cockpit is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// A simulated world.
    pub demo: bool,
    /// A recording is watched.
    pub replay: bool,
    /// Nothing can be acted on.
    pub read_only: bool,
    /// The theme's name; `None` takes what suits the terminal.
    pub theme: Option<String>,
    /// Texts of theme files from the configuration.
    pub themes: Vec<String>,
    /// Keys by action name, as configured; they replace the action's own.
    pub keys: BTreeMap<String, Vec<String>>,
    /// How many colours the terminal has.
    pub color: ColorChoice,
    /// Only ASCII can be shown.
    pub ascii: bool,
    /// The clipboard may be written (OSC 52).
    pub clipboard: bool,
    /// A launch dearer than this wants the job's name typed.
    pub name_above: HourlyRate,
    /// In whose time moments are shown at first.
    pub times: TimeDisplay,
    /// How far the operator's clock is from UTC.
    pub zone: times::Zone,
    /// What stands between us and the terminal.
    pub multiplexer: Multiplexer,
    /// Who acts.
    pub actor: Actor,
}

/// Run the cockpit until the operator leaves. The engine goes on or ends as its owner decides.
///
/// # Errors
/// Where standard output is no terminal, the configured keys or theme are wrong, or the terminal cannot be set up.
pub async fn run(engine: Engine, options: Options) -> anyhow::Result<()> {
    anyhow::ensure!(
        std::io::stdout().is_terminal() && std::io::stdin().is_terminal(),
        "the cockpit needs a terminal; `gpudeck offers`, `jobs` and `events` print lines instead"
    );
    let mut view = prepare(&engine, options.clone())?;
    term::install_panic_hook(std::thread::current().id());
    let mut screen = term::Screen::take()?;
    term::watch_signals()?;
    let ended = event_loop::run(&mut view, &engine, &mut screen, options.multiplexer).await;
    match ended {
        Ok(Ended::Quit) => {
            drop(screen);
            Ok(())
        }
        Ok(Ended::Signal(number)) => {
            drop(screen);
            stop_engine(&engine).await;
            // Whoever waits for us sees the real signal.
            signal_hook::low_level::emulate_default_handler(number)?;
            Ok(())
        }
        Ok(Ended::HungUp) => {
            term::give_back_if_it_listens();
            stop_engine(&engine).await;
            signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGHUP)?;
            Ok(())
        }
        // The terminal went away while it was written to.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc_eio) if libc_eio == nix::errno::Errno::EIO as i32)
                || error.kind() == std::io::ErrorKind::BrokenPipe =>
        {
            term::abandon();
            stop_engine(&engine).await;
            signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGHUP)?;
            Ok(())
        }
        Err(error) => {
            drop(screen);
            Err(error.into())
        }
    }
}

/// Half a second for giving leases back: the process has to be gone within one.
async fn stop_engine(engine: &Engine) {
    let _ = tokio::time::timeout(Duration::from_millis(500), engine.shutdown()).await;
}

/// A view from the options, before the terminal is touched: what is wrong with keys and themes is told on a sane screen.
fn prepare(engine: &Engine, options: Options) -> anyhow::Result<View> {
    let keymap = Keymap::with(&options.keys).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", texts.join("\n"))
    })?;
    let themes = Themes::load(options.themes.iter().map(String::as_str))?;
    let name = options.theme.as_deref().unwrap_or_else(|| Themes::default_name(options.color));
    let theme = themes.get(name, options.color)?;
    let session = Session {
        demo: options.demo,
        replay: options.replay,
        read_only: options.read_only,
        actor: options.actor,
        colors: options.color,
        ascii: options.ascii,
        clipboard: options.clipboard,
        name_above: options.name_above,
        times: options.times,
        zone: options.zone,
    };
    let state = engine.state().borrow().clone();
    Ok(View::new(session, state, keymap, themes, theme))
}
