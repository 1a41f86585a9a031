//! The loop: wait for one thing, take what else is there, draw once if something changed and the limiter allows.
//! There is no ticker; one deadline is armed for what changes by itself.

use std::io;
use std::time::Duration;

use crossterm::event::{Event as TermEvent, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::effects::{self, Multiplexer};
use super::limiter::Limiter;
use super::term::{self, Screen};
use super::update::update;
use super::view::{Effect, Incoming, Input, View};
use super::{draw::draw, view::Effect as E};
use crate::config::limits;
use crate::engine::Engine;

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The operator left.
    Quit,
    /// A signal asked us to: the terminal is given back and the signal raised again.
    Signal(i32),
    /// The terminal is gone.
    HungUp,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
    stop: Signal,
    go_on: Signal,
}

enum Signalled {
    End(i32),
    HangUp,
    Stop,
    GoOn,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            stop: signal(SignalKind::from_raw(signal_hook::consts::SIGTSTP))?,
            go_on: signal(SignalKind::from_raw(signal_hook::consts::SIGCONT))?,
        })
    }

    async fn next(&mut self) -> Signalled {
        tokio::select! {
            biased;
            _ = self.hangup.recv() => Signalled::HangUp,
            _ = self.terminate.recv() => Signalled::End(signal_hook::consts::SIGTERM),
            _ = self.interrupt.recv() => Signalled::End(signal_hook::consts::SIGINT),
            _ = self.quit.recv() => Signalled::End(signal_hook::consts::SIGQUIT),
            _ = self.stop.recv() => Signalled::Stop,
            _ = self.go_on.recv() => Signalled::GoOn,
        }
    }
}

enum Woken {
    Signal(Signalled),
    Terminal(Option<io::Result<TermEvent>>),
    State(bool),
    Back(Option<Incoming>),
    Deadline,
}

/// Keys that arrived at once, as inputs. A long run of different characters was pasted, also where the terminal does not
/// mark pastes: it becomes a paste, so that it is not taken for keys.
fn inputs(batch: Vec<TermEvent>) -> Vec<Incoming> {
    fn character(event: &TermEvent) -> Option<char> {
        let TermEvent::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) = event
        else {
            return None;
        };
        // A line feed in a paste arrives as Ctrl-J.
        if *modifiers == KeyModifiers::CONTROL && matches!(code, KeyCode::Char('j' | 'J')) {
            return Some('\n');
        }
        if modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        match code {
            KeyCode::Char(c) => Some(*c),
            KeyCode::Enter => Some('\n'),
            KeyCode::Tab => Some('\t'),
            _ => None,
        }
    }
    let plain = |event: TermEvent| match event {
        TermEvent::Key(key) => Some(Incoming::Key(key)),
        TermEvent::Paste(text) => Some(Incoming::Paste(text)),
        TermEvent::Resize(width, height) => Some(Incoming::Resize(width, height)),
        _ => None,
    };
    let mut out = Vec::new();
    let mut run: Vec<TermEvent> = Vec::new();
    let mut text = String::new();
    let end_run = |run: &mut Vec<TermEvent>, text: &mut String, out: &mut Vec<Incoming>| {
        let mut different: Vec<char> = text.chars().collect();
        different.sort_unstable();
        different.dedup();
        if is_end_of_reply(text) {
            run.clear();
            text.clear();
            return;
        }
        // A key held down repeats one character; people do not hold four.
        if run.len() >= limits::BURST && different.len() >= 4 {
            run.clear();
            out.push(Incoming::Paste(std::mem::take(text)));
        } else {
            text.clear();
            out.extend(run.drain(..).filter_map(plain));
        }
    };
    for event in batch {
        if let Some(c) = character(&event) {
            text.push(c);
            run.push(event);
        } else {
            end_run(&mut run, &mut text, &mut out);
            out.extend(plain(event));
        }
    }
    end_run(&mut run, &mut text, &mut out);
    out
}

/// Whether characters that came at once are what is left of a terminal's reply, such as `41;390;0c`: the event library
/// drops a beginning that it does not know (`ESC [ >`) and gives the rest as keys. Nobody types that in one read.
fn is_end_of_reply(text: &str) -> bool {
    let numbers = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '~');
    let last = text.len() - numbers.len();
    let number = |c: char| c.is_ascii_digit() || matches!(c, ';' | ':' | '$');
    numbers.len() >= 3 && last <= 1 && numbers.contains(';') && numbers.chars().all(number)
}

/// Run until somebody leaves or the terminal is gone.
pub(crate) async fn run(
    view: &mut View,
    engine: &Engine,
    screen: &mut Screen,
    multiplexer: Multiplexer,
) -> io::Result<Ended> {
    let start = Instant::now();
    let mut signals = Signals::new()?;
    let mut events = EventStream::new();
    let mut states = engine.state();
    let (back, mut returns) = mpsc::channel(effects::RETURNS);
    let mut limiter = Limiter::default();
    let mut for_key = true;
    let (width, height) = Screen::size()?;
    let first = states.borrow_and_update().clone();
    let mut pending: Vec<Incoming> = vec![Incoming::Resize(width, height), Incoming::State(first)];
    let mut dirty = true;
    let mut gone = false;
    loop {
        for what in pending.drain(..) {
            for_key |= matches!(what, Incoming::Key(_) | Incoming::Paste(_) | Incoming::Resize(..) | Incoming::Resumed);
            // A new order of rows is the answer to a key as often as not.
            for_key |= matches!(what, Incoming::Board(_)) && view.board_urgent_shown();
            let wanted = update(view, Input { at: start.elapsed(), what });
            for effect in wanted {
                match effect {
                    E::Quit => return Ok(Ended::Quit),
                    E::Suspend => {
                        suspend(screen)?;
                        let (width, height) = Screen::size()?;
                        let at = start.elapsed();
                        update(view, Input { at, what: Incoming::Resize(width, height) });
                    }
                    E::Redraw => screen.invalidate(),
                    E::Copy(text) => screen.pass(&effects::clipboard(&text, multiplexer))?,
                    effect @ (Effect::Board(_)
                    | Effect::Propose(..)
                    | Effect::Execute(..)
                    | Effect::Refresh(_)
                    | Effect::Acknowledge(..)) => {
                        effects::begin(effect, engine, &view.session.actor.clone(), &back);
                    }
                }
            }
        }
        dirty |= view.take_dirty();
        let now = start.elapsed();
        let due = limiter.due(for_key);
        if dirty && now >= due {
            let (width, height) = view.size();
            let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width, height });
            let cursor = draw(&mut buffer, view);
            screen.show(buffer, cursor)?;
            limiter.shown(start.elapsed(), screen.last_write);
            dirty = false;
            for_key = false;
        }
        let mut deadline = view.next_deadline();
        if dirty {
            deadline = Some(deadline.map_or(due, |d| d.min(due)));
        }
        // A day where nothing is awaited: long, and finite.
        let deadline = start + deadline.unwrap_or(Duration::from_hours(24)).max(now);
        let wait = async {
            tokio::select! {
                biased;
                signal = signals.next() => Woken::Signal(signal),
                event = events.next() => Woken::Terminal(event),
                back = returns.recv() => Woken::Back(back),
                changed = states.changed(), if !gone => Woken::State(changed.is_ok()),
            }
        };
        match tokio::time::timeout_at(deadline, wait).await.unwrap_or(Woken::Deadline) {
            Woken::Deadline => pending.push(Incoming::Deadline),
            Woken::State(true) => pending.push(Incoming::State(states.borrow_and_update().clone())),
            // The engine is gone; what is known stays on the screen until the operator leaves.
            Woken::State(false) => {
                gone = true;
                view.refuse("the engine has ended: what is shown gets old; leave and start gpudeck anew");
            }
            Woken::Back(Some(what)) => {
                pending.push(what);
                while let Ok(more) = returns.try_recv() {
                    pending.push(more);
                }
            }
            Woken::Back(None) => {}
            Woken::Terminal(None | Some(Err(_))) => return Ok(Ended::HungUp),
            Woken::Terminal(Some(Ok(event))) => {
                let mut batch = vec![event];
                while batch.len() < 4_096 {
                    // With the loop's own waker: the stream hands it to its thread once for each wait, and with another
                    // one (`now_or_never` has none) the next key would be noticed when something else woke the loop.
                    match poll_immediate(events.next()).await {
                        Some(Some(Ok(event))) => batch.push(event),
                        Some(None | Some(Err(_))) => return Ok(Ended::HungUp),
                        None => break,
                    }
                }
                pending.extend(inputs(batch));
            }
            Woken::Signal(Signalled::HangUp) => return Ok(Ended::HungUp),
            Woken::Signal(Signalled::End(number)) => return Ok(Ended::Signal(number)),
            Woken::Signal(Signalled::Stop) => {
                suspend(screen)?;
                let (width, height) = Screen::size()?;
                pending.push(Incoming::Resize(width, height));
                pending.push(Incoming::Resumed);
            }
            Woken::Signal(Signalled::GoOn) => {
                let (width, height) = Screen::size()?;
                pending.push(Incoming::Resize(width, height));
                pending.push(Incoming::Resumed);
            }
        }
    }
}

/// Give the terminal back, stop, and take it again when continued.
fn suspend(screen: &mut Screen) -> io::Result<()> {
    term::give_back();
    signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
    screen.enter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<TermEvent> {
        text.chars()
            .map(|c| {
                TermEvent::Key(KeyEvent::new(
                    if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) },
                    KeyModifiers::NONE,
                ))
            })
            .collect()
    }

    #[test]
    fn op7_a_burst_of_characters_is_a_paste_also_where_the_terminal_does_not_say_so() {
        let pasted = inputs(keys("terminate llama-ft\nyes\n"));
        assert!(matches!(pasted.as_slice(), [Incoming::Paste(t)] if t == "terminate llama-ft\nyes\n"), "{pasted:?}");
        assert_eq!(inputs(keys("jjjjjjjjjjjjjjjjjjjjjjjjj")).len(), 25, "a key held down is keys");
        assert_eq!(inputs(keys("/h100\n")).len(), 6, "a few quick keys are keys");
        for reply in ["41;390;0c", "1;2;3R", "2026;2$y", "41;390;"] {
            assert!(inputs(keys(reply)).is_empty(), "op8: {reply} is what is left of a reply");
        }
        assert_eq!(inputs(keys("price<4")).len(), 7);
        assert_eq!(inputs(keys("1;")).len(), 2);
        let mut mixed = vec![TermEvent::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT))];
        mixed.extend(keys("terminate llama-ft\nyes\n"));
        mixed.push(TermEvent::Resize(80, 24));
        let kinds = inputs(mixed);
        assert!(
            matches!(kinds.as_slice(), [Incoming::Key(_), Incoming::Paste(_), Incoming::Resize(80, 24)]),
            "what stands around a burst does not hide it: {kinds:?}"
        );
    }
}
