//! The real binary in a pseudo-terminal, seen through a VT100 screen. Tests wait for named things, never for a time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// Longer than the slowest machine needs; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_mins(1);

struct Seen {
    parser: vt100::Parser,
    /// Everything that was written, as it was.
    bytes: Vec<u8>,
    closed: bool,
    /// Stop reading: the terminal is about to go away.
    hung_up: bool,
}

/// A cockpit in a terminal of its own.
pub(crate) struct Terminal {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

impl Terminal {
    /// Start `gpudeck ARGS` with its home in `home`, and nothing of our environment but what it needs.
    pub(crate) fn start(home: &Path, args: &[&str], columns: u16, rows: u16, env: &[(&str, &str)]) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_gpudeck"));
        command.env_clear();
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("HOME", home);
        command.env("USER", "ada");
        for (key, value) in env {
            command.env(key, value);
        }
        command.arg("--home");
        command.arg(home);
        command.args(args);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let writer = pair.master.take_writer().unwrap();
        let (columns, rows) = (NonZeroU16::new(columns).unwrap(), NonZeroU16::new(rows).unwrap());
        let parser = vt100::Parser::new(rows, columns, 0);
        let seen =
            Arc::new((Mutex::new(Seen { parser, bytes: Vec::new(), closed: false, hung_up: false }), Condvar::new()));
        let shared = seen.clone();
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            loop {
                let n = reader.read(&mut buffer).unwrap_or(0);
                let mut seen = shared.0.lock().unwrap();
                if n == 0 {
                    seen.closed = true;
                    shared.1.notify_all();
                    return;
                }
                seen.parser.process(&buffer[..n]);
                seen.bytes.extend_from_slice(&buffer[..n]);
                shared.1.notify_all();
                if seen.hung_up {
                    return;
                }
            }
        });
        Self { master: Some(pair.master), writer: Some(writer), child, seen, thread: Some(thread) }
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let mut seen = self.seen.0.lock().unwrap();
        seen.parser.screen_mut().set_size(NonZeroU16::new(rows).unwrap(), NonZeroU16::new(columns).unwrap());
        drop(seen);
        self.master.as_ref().unwrap().resize(size(columns, rows)).unwrap();
    }

    /// Wait until the screen is so; fails with the screen as it is.
    pub(crate) fn wait(&self, what: &str, until: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        while !until(seen.parser.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !seen.closed,
                "waited in vain for {what}; on the screen:\n{}",
                seen.parser.screen().contents()
            );
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Wait until what was written is so.
    pub(crate) fn wait_bytes(&self, what: &str, until: impl Fn(&[u8]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        while !until(&seen.bytes) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.closed, "waited in vain for {what}");
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    pub(crate) fn wait_text(&self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text));
    }

    /// Wait until the cockpit has drawn and knows offers.
    pub(crate) fn wait_ready(&self) {
        self.wait("offers", |screen| {
            screen.alternate_screen() && screen.contents().contains("OD $/GPU") && screen.contents().contains('●')
        });
    }

    pub(crate) fn contents(&self) -> String {
        self.seen.0.lock().unwrap().parser.screen().contents()
    }

    pub(crate) fn screen<T>(&self, look: impl Fn(&vt100::Screen) -> T) -> T {
        look(self.seen.0.lock().unwrap().parser.screen())
    }

    /// All that was written so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap().bytes.clone()
    }

    /// What is written within this time.
    pub(crate) fn written_within(&self, time: Duration) -> Vec<u8> {
        let deadline = Instant::now() + time;
        let mut seen = self.seen.0.lock().unwrap();
        let from = seen.bytes.len();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || seen.closed {
                return seen.bytes[from..].to_vec();
            }
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// From now on the terminal takes nothing that is written to it, as after Ctrl-S.
    pub(crate) fn stop_output(&self) {
        let name = self.master.as_ref().unwrap().tty_name().unwrap();
        let slave = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
        nix::sys::termios::tcflow(&slave, nix::sys::termios::FlowArg::TCOOFF).unwrap();
    }

    /// Whether the terminal echoes what is typed and gives lines: as a shell wants it.
    pub(crate) fn is_cooked(&self) -> bool {
        let flags = self.master.as_ref().unwrap().get_termios().unwrap().local_flags.bits();
        // ECHO and ICANON of Linux.
        flags & 0o10 != 0 && flags & 0o2 != 0
    }

    /// The process's state letter: `T` is stopped.
    pub(crate) fn wait_stopped(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
            if stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T')) {
                return;
            }
            assert!(Instant::now() < deadline, "it did not stop: {stat}");
            std::thread::yield_now();
        }
    }

    /// Processor time used so far, in hundredths of a second.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let rest: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        rest[11].parse::<u64>().unwrap() + rest[12].parse::<u64>().unwrap()
    }

    /// Hang up: the terminal goes away.
    pub(crate) fn hang_up(&mut self) {
        // Every handle of ours has to go; the reader's goes after the next thing that is written.
        self.seen.0.lock().unwrap().hung_up = true;
        self.thread.take().unwrap().join().unwrap();
        self.writer = None;
        self.master = None;
    }

    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Everything that was switched on is off again.
    pub(crate) fn assert_given_back(&self) {
        // What was written last may still be on its way here.
        self.wait_closed();
        self.screen(|screen| {
            assert!(!screen.alternate_screen(), "the alternate screen was left on");
            assert!(!screen.bracketed_paste(), "bracketed paste was left on");
            assert!(!screen.hide_cursor(), "the cursor was left hidden");
            assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        });
        assert!(self.is_cooked(), "the terminal was left raw");
    }

    fn wait_closed(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        while !seen.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the terminal stayed open");
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
