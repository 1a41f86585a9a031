//! On a terminal: what fits, what has to be typed, what Ctrl-C leaves.

use std::io::{Read as _, Write as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use unicode_width::UnicodeWidthStr as _;

use crate::home::Home;

/// Longest wait for a text or an end; reached only where something is broken.
const PATIENCE: Duration = Duration::from_mins(2);

/// The binary on a pseudo-terminal.
struct Terminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    writer: Box<dyn std::io::Write + Send>,
    output: mpsc::Receiver<Vec<u8>>,
    seen: String,
    _pair: Box<dyn portable_pty::MasterPty + Send>,
}

impl Terminal {
    fn start(home: &Home, columns: u16, arguments: &str) -> Self {
        let size = PtySize { rows: 24, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(assert_cmd::cargo::cargo_bin("gpudeck"));
        command.env_clear();
        for (name, value) in [("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "xterm-256color")] {
            command.env(name, value);
        }
        command.env("HOME", home.path());
        command.env("GPUDECK_HOME", home.path());
        command.args(arguments.split_whitespace());
        let child = pair.slave.spawn_command(command).expect("it runs");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (send, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0_u8; 4096];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                if send.send(bytes[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let writer = pair.master.take_writer().expect("a writer");
        Self { child, writer, output, seen: String::new(), _pair: pair.master }
    }

    /// Wait until a text has been shown.
    fn wait_for(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{error}: '{text}' was never shown in\n{}", self.seen),
            }
        }
    }

    fn type_in(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).expect("typed");
        self.writer.flush().expect("typed");
    }

    /// Wait for its end; gives the exit code and all that was shown.
    fn end(mut self) -> (u32, String) {
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (self.child.wait().expect("it ends").exit_code(), self.seen)
    }
}

/// Without colours.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split("\u{1b}[");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    out.replace('\r', "")
}

#[test]
fn h5_tables_fit_every_width_and_money_and_state_are_always_whole() {
    let home = Home::new();
    let all = home.json("--demo offers --gpu H100 --purchase on-demand --limit 3", 0);
    for columns in [60, 80, 100, 200] {
        let (code, text) =
            Terminal::start(&home, columns, "--demo offers --gpu H100 --purchase on-demand --limit 3").end();
        let text = plain(&text);
        assert_eq!(code, 0, "{text}");
        let table: Vec<&str> = text.lines().take_while(|l| !l.contains("not shown") && !l.contains("offers")).collect();
        assert_eq!(table.len(), 4, "{columns}:\n{text}");
        for line in &table {
            assert!(line.width() <= usize::from(columns), "{columns}: {} wide: {line}", line.width());
        }
        for (line, offer) in table.iter().skip(1).zip(all.as_array().unwrap()) {
            let price = format!("${:.4}", offer["usd_per_gpu_hour"].as_f64().unwrap());
            assert!(line.contains(&price), "{columns}: {price} in {line}");
            assert!(["available", "limited", "none", "unknown"].iter().any(|s| line.contains(s)), "{columns}: {line}");
        }
        if columns == 60 {
            assert!(text.contains("not shown for want of room"), "{text}");
        }
    }
}

#[test]
fn a_launch_is_asked_for_and_no_is_the_default() {
    let home = Home::fast();
    for answer in ["\n", "n\n", "launch\n"] {
        let mut terminal = Terminal::start(&home, 100, "--demo launch --name asked --gpu A100 --count 1");
        terminal.wait_for("[y/N]");
        assert!(plain(&terminal.seen).contains("launch"), "the plan stands before the question: {}", terminal.seen);
        terminal.type_in(answer);
        let (code, text) = terminal.end();
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("nothing was done"), "{text}");
    }
    assert_eq!(home.json("--demo jobs --all", 0), serde_json::json!([]));
}

#[test]
fn an_interrupt_at_the_question_ends_with_130_and_nothing_done() {
    let home = Home::fast();
    let mut terminal = Terminal::start(&home, 100, "--demo launch --name asked --gpu A100 --count 1");
    terminal.wait_for("[y/N]");
    terminal.type_in("\u{3}");
    let (code, text) = terminal.end();
    assert_eq!(code, 130, "{text}");
    assert_eq!(home.json("--demo jobs --all", 0), serde_json::json!([]));
}

#[test]
fn a_dear_launch_wants_the_name_typed() {
    let home = Home::fast();
    home.write("config.toml", "[demo]\nspeed = 240.0\n[limits]\ntype_name_above_usd_per_hour = 0.01\n");
    let mut terminal = Terminal::start(&home, 100, "--demo launch --name dear --gpu A100 --count 1");
    terminal.wait_for("Type dear to confirm");
    terminal.type_in("y\n");
    assert_eq!(terminal.end().0, 1);
    assert_eq!(home.json("--demo jobs --all", 0), serde_json::json!([]));
}

#[test]
fn op4_a_terminate_wants_the_name_typed() {
    let home = Home::fast();
    let launched = home.demo("launch --name typed --gpu A100 --count 1 --purchase on-demand --yes");
    assert_eq!(launched.status.code(), Some(0), "{}", crate::home::both(&launched));
    for wrong in ["y\n", "typ\n", "\n", "Typed\n"] {
        let mut terminal = Terminal::start(&home, 100, "--demo terminate typed");
        terminal.wait_for("Type typed to confirm");
        terminal.type_in(wrong);
        let (code, text) = terminal.end();
        assert_eq!(code, 1, "{wrong:?}: {text}");
    }
    assert_eq!(home.json("--demo job typed", 0)["state"], "running");
    let mut terminal = Terminal::start(&home, 100, "--demo terminate typed");
    terminal.wait_for("Type typed to confirm");
    terminal.type_in("typed\n");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert_eq!(home.json("--demo job typed", 0)["state"], "terminated");
}

#[test]
fn an_interrupted_launch_says_what_is_left_and_ends_with_130() {
    let home = Home::new();
    // In real time a machine takes minutes to boot, so the launch is under way when it is interrupted.
    home.write("config.toml", "[demo]\nspeed = 1.0\n");
    let mut terminal =
        Terminal::start(&home, 200, "--demo launch --name cut --gpu A100 --count 1 --purchase on-demand --yes");
    terminal.wait_for("asks for");
    terminal.type_in("\u{3}");
    let (code, text) = terminal.end();
    assert_eq!(code, 130, "{text}");
    assert!(text.contains("is in the ledger"), "{text}");
    let jobs = home.json("--demo jobs", 0);
    assert_eq!(jobs[0]["name"], "cut", "{jobs}");
}

#[test]
fn the_cockpit_opens_and_leaves_the_terminal_as_it_was() {
    let home = Home::fast();
    let mut terminal = Terminal::start(&home, 120, "--demo");
    terminal.wait_for("DEMO");
    terminal.type_in("q");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("\u{1b}[?1049h") && text.contains("\u{1b}[?1049l"),
        "the alternate screen is entered and left"
    );
}
