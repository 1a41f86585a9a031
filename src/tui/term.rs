//! The terminal: taken at start, given back whatever happens. A frame is one write.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::style::{Attribute, ResetColor, SetAttribute};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{QueueableCommand, queue};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::sgr;
use crate::config::limits;

/// Whether the terminal is ours at the moment, so that giving it back twice does nothing the second time.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Where a frame is gathered before it is written at once.
#[derive(Clone, Default)]
struct Gather(Arc<Mutex<Vec<u8>>>);

impl Write for Gather {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Write all of it, also to a terminal that does not block.
fn write_all(out: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The screen as last written, and the way to write the next.
pub(crate) struct Screen {
    out: File,
    gather: Gather,
    shown: Buffer,
    cursor: Option<Position>,
    /// The next frame begins on an empty screen.
    clear: bool,
    /// How long the last write took.
    pub(crate) last_write: Duration,
}

impl Screen {
    /// Take the terminal: raw, the other screen, pastes marked, no cursor.
    pub(crate) fn take() -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let gather = Gather::default();
        let (width, height) = crossterm::terminal::size()?;
        let mut screen = Self {
            out,
            gather,
            shown: Buffer::empty(Rect { x: 0, y: 0, width, height }),
            cursor: None,
            clear: true,
            last_write: Duration::ZERO,
        };
        screen.enter()?;
        Ok(screen)
    }

    /// Take it again after it was given back.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        crossterm::terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        queue!(self.gather, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        self.cursor = None;
        self.clear = true;
        self.send()
    }

    /// What the terminal says of its size.
    pub(crate) fn size() -> io::Result<(u16, u16)> {
        crossterm::terminal::size()
    }

    /// The next frame is painted whole.
    pub(crate) fn invalidate(&mut self) {
        self.clear = true;
    }

    /// Show this frame; writes nothing where nothing changed. Says whether anything was written.
    pub(crate) fn show(&mut self, next: Buffer, cursor: Option<Position>) -> io::Result<bool> {
        if self.shown.area() != next.area() {
            self.clear = true;
        }
        if self.clear {
            self.shown = Buffer::empty(*next.area());
        }
        let changes = self.shown.diff(&next);
        if changes.is_empty() && cursor == self.cursor && !self.clear {
            return Ok(false);
        }
        self.gather.queue(BeginSynchronizedUpdate)?;
        if self.cursor.is_some() {
            self.gather.queue(Hide)?;
        }
        if self.clear {
            queue!(self.gather, ResetColor, SetAttribute(Attribute::Reset), Clear(ClearType::All))?;
        }
        let mut cells = String::new();
        sgr::write(&mut cells, changes.into_iter());
        self.gather.write_all(cells.as_bytes())?;
        if let Some(at) = cursor {
            queue!(self.gather, MoveTo(at.x, at.y), Show)?;
        }
        self.gather.queue(EndSynchronizedUpdate)?;
        self.clear = false;
        self.cursor = cursor;
        self.shown = next;
        self.send()?;
        Ok(true)
    }

    /// Text for the terminal itself, outside the picture (clipboard).
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        write_all(&mut self.out, bytes)
    }

    fn send(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut *self.gather.0.lock().unwrap_or_else(PoisonError::into_inner));
        let start = Instant::now();
        let result = write_all(&mut self.out, &bytes);
        self.last_write = start.elapsed();
        result
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Give the terminal back as it was found. Does nothing where it is not ours.
pub(crate) fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut bytes = Vec::new();
    // Into memory it cannot fail.
    let _ = queue!(
        bytes,
        EndSynchronizedUpdate,
        ResetColor,
        SetAttribute(Attribute::Reset),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    if let Ok(fd) = io::stdout().as_fd().try_clone_to_owned() {
        let _ = write_all(&mut File::from(fd), &bytes);
    }
    let _ = crossterm::terminal::disable_raw_mode();
}

/// Give the terminal back if it still takes what is written to it: a hang-up may be a signal alone. Never waits for one
/// that is gone.
pub(crate) fn give_back_if_it_listens() {
    let (told, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        give_back();
        let _ = told.send(());
    });
    let _ = done.recv_timeout(Duration::from_millis(200));
    abandon();
}

/// The terminal has hung up: nothing more is written to it.
pub(crate) fn abandon() {
    TAKEN.store(false, Ordering::SeqCst);
}

/// A signal that asks us to end is obeyed even where the drawing thread cannot: it may be held up in a write to a
/// terminal that takes nothing (flow control, a dead link). What is under way is in the ledger.
pub(crate) fn watch_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            std::thread::sleep(limits::SIGNAL_PATIENCE);
            // Changes the terminal's mode without writing to it.
            let _ = crossterm::terminal::disable_raw_mode();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// Give the terminal back before a panic of the drawing thread is told. A panic elsewhere is a task's, which ends alone:
/// its words would tear the picture, so they go to the log.
pub(crate) fn install_panic_hook(ui: ThreadId) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let taken = TAKEN.load(Ordering::SeqCst);
        if taken && std::thread::current().id() != ui {
            tracing::error!(panic = %info, "a task panicked");
            return;
        }
        give_back();
        before(info);
    }));
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    use super::*;

    /// Run by the test below, in a process and a terminal of its own.
    #[test]
    #[ignore = "panics on purpose"]
    fn a_cockpit_that_panics() {
        install_panic_hook(std::thread::current().id());
        let _screen = Screen::take().expect("a terminal");
        let elsewhere = std::thread::spawn(|| panic!("in a task")).join();
        assert!(elsewhere.is_err());
        print!("still there");
        io::stdout().flush().expect("written");
        panic!("in the drawing thread");
    }

    #[test]
    fn op21_a_panic_gives_the_terminal_back_before_it_is_told() {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(std::env::current_exe().expect("this program"));
        command.args(["--ignored", "--exact", "--nocapture", "tui::term::tests::a_cockpit_that_panics"]);
        command.env("TERM", "xterm-256color");
        command.env_remove("RUST_BACKTRACE");
        let mut child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("readable");
        let mut bytes = Vec::new();
        // The end of a terminal is an error on Linux.
        let _ = reader.read_to_end(&mut bytes);
        assert!(!child.wait().expect("it ends").success());
        let text = String::from_utf8_lossy(&bytes);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text:?}"));
        let left = at("\u{1b}[?1049l");
        assert!(at("\u{1b}[?1049h") < at("still there") && at("still there") < left, "{text:?}");
        assert!(!text.contains("in a task"), "a task's panic tore the picture: {text:?}");
        assert!(left < at("in the drawing thread"), "told before the terminal was given back: {text:?}");
        assert!(text.contains("\u{1b}[?25h") && text.contains("\u{1b}[?2004l"), "{text:?}");
        let flags = pair.master.get_termios().expect("a terminal").local_flags.bits();
        // ECHO and ICANON of Linux.
        assert!(flags & 0o10 != 0 && flags & 0o2 != 0, "the terminal was left raw");
    }
}
