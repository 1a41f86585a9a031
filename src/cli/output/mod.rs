//! What leaves for standard output and standard error: one JSON document, or tables and texts for people.

mod json;
mod moment;
mod table;

use std::io::{self, BufWriter, IsTerminal as _, Write as _};

use chrono::{DateTime, Utc};
use serde::Serialize;

pub use json::Stamp;
pub use moment::{age, moment, utc};
pub use table::{Cell, Column, Style, Table};

use super::args::{ColorChoice, Global};
use super::failure::Failure;
use crate::config::settings::{Ascii, TimeDisplay, Ui};
use crate::domain::text::inert;

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// None at all.
    None,
    /// The 16 of its own palette.
    Ansi16,
    /// 256.
    Ansi256,
    /// Any.
    TrueColor,
}

impl Depth {
    /// From what `TERM` and `COLORTERM` say: no more than they promise (op32).
    pub fn of(term: &str, colorterm: &str) -> Self {
        if matches!(colorterm, "truecolor" | "24bit") || term.ends_with("-direct") {
            Self::TrueColor
        } else if term.contains("256color") {
            Self::Ansi256
        } else {
            Self::Ansi16
        }
    }
}

/// How to print.
#[derive(Debug, Clone)]
pub struct Output {
    /// Scripts read standard output.
    pub json: bool,
    /// No notes on standard error.
    pub quiet: bool,
    /// Columns of the terminal that standard output is; `None` where it is none, and nothing needs to be cut.
    pub width: Option<usize>,
    /// Colour standard output.
    pub color: bool,
    /// Colour standard error.
    pub color_err: bool,
    /// Only ASCII.
    pub ascii: bool,
    /// In whose time moments are shown.
    pub time: TimeDisplay,
}

impl Output {
    /// From flags, environment and terminal.
    pub fn new(global: &Global) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let colored = |terminal: bool| match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !no_color && !dumb,
        };
        let terminal = io::stdout().is_terminal();
        Self {
            json: global.json,
            quiet: global.quiet,
            width: terminal
                .then(|| crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns.max(20)))),
            color: colored(terminal),
            color_err: colored(io::stderr().is_terminal()),
            ascii: global.ascii || !speaks_utf8(),
            time: TimeDisplay::default(),
        }
    }

    /// Plain, whatever the terminal: for what happens before the flags are understood, and for tests.
    pub fn plain(json: bool) -> Self {
        Self { json, quiet: false, width: None, color: false, color_err: false, ascii: true, time: TimeDisplay::Utc }
    }

    /// With what the configuration says.
    pub fn configure(&mut self, global: &Global, ui: &Ui) {
        self.time = ui.time;
        self.ascii = global.ascii
            || match ui.ascii {
                Ascii::Auto => self.ascii,
                Ascii::Always => true,
                Ascii::Never => false,
            };
    }

    /// How many colours standard output has.
    pub fn depth(&self) -> Depth {
        if !self.color {
            return Depth::None;
        }
        let read = |name| std::env::var(name).unwrap_or_default();
        Depth::of(&read("TERM"), &read("COLORTERM"))
    }

    /// One document on standard output.
    pub fn document<T: Serialize + ?Sized>(&self, document: &T) -> Result<(), Failure> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        json::write(&mut out, document)?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(())
    }

    /// A table on standard output; says on standard error which columns the terminal has no room for.
    pub fn table(&self, table: &Table) -> Result<(), Failure> {
        let (text, hidden) = table.render(self.width, self.color, self.ascii);
        self.text(&text)?;
        if !hidden.is_empty() {
            self.note(&format!(
                "not shown for want of room: {} (a wider terminal or --json has them)",
                hidden.join(", ")
            ));
        }
        Ok(())
    }

    /// A text on standard output; what came from outside has been made inert by whoever composed it.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// A remark for people on standard error, unless they want it quiet. A terminal that has gone is no failure.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.complain(text);
        }
    }

    /// Whether whoever read standard output through a pipe has gone: a follower with nothing new to write would never
    /// find out otherwise.
    pub fn reader_is_gone(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd as _;
        let stdout = io::stdout();
        let mut out = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
        let gone = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
        poll(&mut out, PollTimeout::ZERO).is_ok_and(|n| n > 0)
            && out.iter().any(|fd| fd.revents().is_some_and(|events| events.intersects(gone)))
    }

    /// What people must see on standard error, quiet or not.
    pub fn complain(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// A question on standard error; the answer follows on the same line.
    pub fn prompt(&self, text: &str) {
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// A table on standard error: a plan that is to be confirmed is shown there, whatever standard output is for.
    pub fn table_for_people(&self, table: &Table) {
        let width = io::stderr()
            .is_terminal()
            .then(|| crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns.max(20))));
        let (text, _) = table.render(width, self.color_err, self.ascii);
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// A failure, for people on standard error or for scripts on standard output.
    pub fn failure(&self, failure: &Failure) {
        if failure.silent {
            return;
        }
        if self.json {
            let _ = self.document(&failure.document());
            return;
        }
        let (on, off) = if self.color_err { ("\u{1b}[1;31m", "\u{1b}[0m") } else { ("", "") };
        for (i, line) in failure.message.lines().enumerate() {
            let head = if i == 0 { format!("{on}error:{off} ") } else { "       ".to_owned() };
            self.complain(&format!("{head}{}", inert(line)));
        }
        if let Some(hint) = &failure.hint {
            self.complain(&format!(" hint: {}", inert(hint)));
        }
    }

    /// A moment as people want it; the zone is always said.
    pub fn moment(&self, at: DateTime<Utc>, now: DateTime<Utc>) -> String {
        moment(at, now, self.time)
    }

    /// A dash for what is not known.
    pub const fn unknown(&self) -> &'static str {
        if self.ascii { "-" } else { "–" }
    }
}

/// Whether the locale says UTF-8 (`LC_ALL` before `LC_CTYPE` before `LANG`) and the terminal can show it.
fn speaks_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty())
        .unwrap_or_default()
        .to_lowercase();
    let linux_console = std::env::var_os("TERM").is_some_and(|term| term == "linux");
    (locale.contains("utf-8") || locale.contains("utf8")) && !linux_console
}

#[cfg(test)]
mod tests {
    use super::Depth;

    #[test]
    fn op32_no_more_colours_than_the_terminal_promises() {
        for (term, colorterm, depth) in [
            ("xterm", "", Depth::Ansi16),
            ("linux", "", Depth::Ansi16),
            ("screen-256color", "", Depth::Ansi256),
            ("xterm-256color", "yes", Depth::Ansi256),
            ("xterm-256color", "truecolor", Depth::TrueColor),
            ("xterm-direct", "", Depth::TrueColor),
        ] {
            assert_eq!(Depth::of(term, colorterm), depth, "{term} {colorterm}");
        }
    }
}
