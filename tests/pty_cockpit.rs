//! The cockpit in a real terminal: it comes up, obeys, and gives the terminal back whatever happens.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

#[path = "support/pty.rs"]
mod pty;

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pty::Terminal;

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn it_comes_up_in_the_demo_and_leaves_a_clean_terminal() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 120, 40, &[]);
    t.wait_ready();
    for text in ["gpudeck", "DEMO", "1 Capacity", "2 Prices", "3 Latency", "4 Jobs"] {
        t.wait_text(text);
    }
    t.type_text("?");
    t.wait_text("Everywhere");
    t.type_text("\x1b");
    t.wait("the help to close", |s| !s.contents().contains("Everywhere"));
    t.type_text("q");
    let status = t.wait_exit();
    assert!(status.success(), "{status:?}");
    t.assert_given_back();
}

#[test]
fn it_follows_the_terminals_size() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 200, 60, &[]);
    t.wait_ready();
    t.resize(80, 24);
    t.wait("one pane with tabs", |s| s.contents().contains("e Events") && !s.contents().contains("┌ 2 Prices"));
    t.resize(50, 10);
    t.wait_text("The terminal has 50x10");
    t.resize(60, 15);
    t.wait_text("1 Capacity");
    t.resize(120, 40);
    t.wait("four panes", |s| s.contents().contains("┌ 2 Prices") && s.contents().contains("┌ 4 Jobs"));
    t.type_text("q");
    assert!(t.wait_exit().success());
}

#[test]
fn op29_q_works_where_nothing_else_can_be_shown() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 20, 5, &[]);
    t.wait_text("The terminal");
    t.type_text("q");
    assert!(t.wait_exit().success());
    t.assert_given_back();
}

#[test]
fn op20_ctrl_z_gives_a_sane_shell_and_fg_paints_everything_again() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 120, 40, &[]);
    t.wait_ready();
    t.type_text("\x1a");
    t.wait_stopped();
    t.wait("the alternate screen to be left", |s| !s.alternate_screen() && !s.hide_cursor() && !s.bracketed_paste());
    assert!(t.is_cooked(), "the shell would not echo");
    // The window changed while it was stopped.
    t.resize(80, 24);
    t.signal(Signal::SIGCONT);
    t.wait("the cockpit in its new size", |s| s.alternate_screen() && s.contents().contains("e Events"));
    assert!(!t.is_cooked());
    t.type_text("2");
    t.wait_text("CHEAPEST");
    t.type_text("q");
    assert!(t.wait_exit().success());
    t.assert_given_back();
}

#[test]
fn op21_sigterm_sigint_and_sigquit_give_the_terminal_back_and_are_seen_by_the_parent() {
    for (signal, name) in [(Signal::SIGTERM, "Terminated"), (Signal::SIGINT, "Interrupt"), (Signal::SIGQUIT, "Quit")] {
        let home = home();
        let mut t = Terminal::start(home.path(), &["--demo"], 100, 30, &[]);
        t.wait_ready();
        t.signal(signal);
        let status = t.wait_exit();
        assert_eq!(status.signal(), Some(name), "{status:?}");
        t.assert_given_back();
    }
}

#[test]
fn op18_when_the_terminal_hangs_up_it_is_gone_within_a_second() {
    for by_signal in [true, false] {
        let home = home();
        let mut t = Terminal::start(home.path(), &["--demo"], 100, 30, &[]);
        t.wait_ready();
        let start = if by_signal {
            t.signal(Signal::SIGHUP);
            Instant::now()
        } else {
            t.hang_up();
            Instant::now()
        };
        t.wait_exit();
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}

/// The drawing is held up for ever in a write to a terminal that takes nothing: a signal ends it all the same.
#[test]
fn op18_a_terminal_that_takes_nothing_does_not_hold_up_a_signal() {
    for (signal, name) in [(Signal::SIGTERM, "Terminated"), (Signal::SIGHUP, "Hangup")] {
        let home = home();
        let mut t = Terminal::start(home.path(), &["--demo"], 100, 30, &[]);
        t.wait_ready();
        t.stop_output();
        // Everything is painted anew, or the terminal is given back: whichever comes first is held up.
        t.resize(101, 30);
        let start = Instant::now();
        t.signal(signal);
        let status = t.wait_exit();
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        assert_eq!(status.signal(), Some(name), "{status:?}");
    }
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_is_told() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 100, 30, &[("TERM", "dumb")]);
    t.wait_text("TERM is dumb");
    assert_eq!(t.wait_exit().exit_code(), 2);
}

#[test]
fn op7_a_paste_is_not_taken_for_keys() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 120, 40, &[]);
    t.wait_ready();
    t.type_text("\x1b[200~q\nt\nq\n\x1b[201~");
    t.wait_text("paste ignored");
    // Where the terminal does not mark pastes, a burst of characters is one.
    t.type_text("\x1b");
    t.wait("the notice to go", |s| !s.contents().contains("paste ignored"));
    t.type_text("quit everything now\nq\n");
    t.wait_text("paste ignored");
    t.type_text("/");
    t.wait_text("Enter keeps");
    t.type_text("\x1b[200~gpu:h100\nq\x1b[201~");
    t.wait_text("gpu:h100");
    assert!(t.contents().contains("Enter keeps"), "the line break in the paste did not submit");
    t.type_text("\x03");
    assert!(t.wait_exit().success());
}

#[test]
fn op8_a_terminals_replies_do_not_leak_into_a_field() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 120, 40, &[]);
    t.wait_ready();
    t.type_text("/");
    t.wait_text("Enter keeps");
    t.type_text("spot");
    t.wait_text("/spot");
    for reply in [
        "\x1b]11;rgb:1212/1616/1e1e\x07",
        "\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
        "\x1bP>|xterm(390)\x1b\\",
        "\x1b[12;40R",
        "\x1b[?62;4c",
    ] {
        t.type_text(reply);
    }
    // Later keys are text again: what comes after the replies stands right after what came before.
    let before = Instant::now();
    while before.elapsed() < Duration::from_millis(200) {
        std::thread::yield_now();
    }
    t.type_text("x");
    t.wait("the text with nothing in between", |s| s.contents().contains("/spotx "));
    t.type_text("\x03");
    assert!(t.wait_exit().success());
}

#[test]
fn op32_no_color_writes_no_colour() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 120, 40, &[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]);
    t.wait_ready();
    t.type_text("4");
    t.type_text("q");
    assert!(t.wait_exit().success());
    let text = String::from_utf8_lossy(&t.bytes()).into_owned();
    for sequence in text.split('\x1b').filter_map(|s| s.strip_prefix('[')) {
        let Some((numbers, _)) = sequence.split_once('m') else { continue };
        if !numbers.bytes().all(|b| b.is_ascii_digit() || b == b';' || b == b':') {
            continue;
        }
        for n in numbers.split([';', ':']).filter_map(|n| n.parse::<u32>().ok()) {
            let colour =
                (30..=38).contains(&n) || (40..=48).contains(&n) || (90..=97).contains(&n) || (100..=107).contains(&n);
            assert!(!colour, "SGR {numbers}");
        }
    }
}

#[test]
fn op32_colours_are_what_the_environment_states() {
    let cases: [(&str, &str, &str, &[&str]); 3] = [
        ("truecolor", "xterm-256color", "38;2;", &["59"]),
        ("", "xterm-256color", "38;5;", &["8;2;", "59"]),
        // The 16 colours in the form that a terminal knows which has no more.
        ("", "xterm", "\x1b[0;1;36m", &["8;2;", "8;5;", "59"]),
    ];
    for (colorterm, term, wanted, forbidden) in cases {
        let home = home();
        let mut t = Terminal::start(home.path(), &["--demo"], 120, 40, &[("COLORTERM", colorterm), ("TERM", term)]);
        t.wait_ready();
        t.type_text("q");
        assert!(t.wait_exit().success());
        let text = String::from_utf8_lossy(&t.bytes()).into_owned();
        assert!(text.contains(wanted), "{colorterm} {term}: no {wanted:?}");
        let looks = text.split('\x1b').filter_map(|s| s.strip_prefix('[')?.split_once('m')).map(|(numbers, _)| numbers);
        for look in looks.filter(|l| l.bytes().all(|b| b.is_ascii_digit() || b == b';')) {
            for part in forbidden {
                assert!(!look.contains(part), "{colorterm} {term}: SGR {look}");
            }
        }
    }
}

#[test]
fn op27_idle_it_writes_nothing_but_the_clock_and_uses_no_processor() {
    let home = home();
    // Live without any credentials: nothing happens but that time passes.
    let mut t = Terminal::start(home.path(), &[], 120, 40, &[]);
    t.wait_text("LIVE");
    // Until what comes up has come up.
    let _ = t.written_within(Duration::from_secs(3));
    let ticks = t.ticks();
    let written = t.written_within(Duration::from_secs(5));
    let used = t.ticks() - ticks;
    let frames = written.windows(8).filter(|w| w == b"\x1b[?2026h").count();
    assert!(frames <= 6, "{frames} frames in five seconds");
    assert!(written.len() <= 6 * 300, "{} bytes in five seconds", written.len());
    assert!(used <= 15, "{used} hundredths of a second of processor time in five seconds, in a debug build");
    t.type_text("q");
    assert!(t.wait_exit().success());
}

/// Over a slow link only what changes is sent: a moved selection is a few hundred bytes, and the screen is cleared only
/// when it was asked for or has another size.
#[test]
fn op23_only_what_changed_is_sent() {
    let home = home();
    let mut t = Terminal::start(home.path(), &[], 120, 40, &[]);
    t.wait("published offers", |s| s.contents().contains("OD $/GPU") && s.contents().contains('?'));
    let clears = |t: &Terminal| t.bytes().windows(4).filter(|w| *w == b"\x1b[2J").count();
    let mark = |s: &vt100::Screen| s.rows(0, 3).position(|row| row.contains('▸'));
    let (at_first, from, keys) = (clears(&t), t.bytes().len(), 40);
    for n in 0..keys {
        let before = t.screen(mark);
        t.type_text(if n % 20 < 10 { "j" } else { "k" });
        t.wait("the mark to move", |s| mark(s) != before);
    }
    assert_eq!(clears(&t), at_first, "cleared while the selection moved");
    let sent = (t.bytes().len() - from) / keys;
    assert!(sent < 2_000, "{sent} bytes for a moved selection");
    t.type_text("\x0c");
    t.wait_bytes("a clear", |bytes| bytes.windows(4).filter(|w| *w == b"\x1b[2J").count() == at_first + 1);
    t.resize(100, 30);
    t.wait_bytes("another", |bytes| bytes.windows(4).filter(|w| *w == b"\x1b[2J").count() == at_first + 2);
    t.type_text("q");
    assert!(t.wait_exit().success());
    assert_eq!(clears(&t), at_first + 2, "once for Ctrl-L and once for the new size");
}

/// Nothing else wakes this screen but its clock, once a second: were keys answered only then, each would see another
/// second.
#[test]
fn a_key_is_answered_at_once_and_not_when_the_clock_ticks() {
    let home = home();
    let mut t = Terminal::start(home.path(), &[], 120, 40, &[]);
    t.wait("published offers", |s| s.contents().contains("OD $/GPU") && s.contents().contains('?'));
    let mark = |s: &vt100::Screen| s.rows(0, 3).position(|row| row.contains('▸'));
    let mut seconds = std::collections::BTreeSet::new();
    let keys = 40;
    for n in 0..keys {
        let before = t.screen(mark);
        t.type_text(if n % 20 < 10 { "j" } else { "k" });
        t.wait("the mark to move", |s| mark(s) != before);
        seconds.insert(t.screen(|s| s.rows(100, 20).next()));
    }
    assert!(seconds.len() < keys / 2, "{keys} keys took {} ticks of the clock", seconds.len());
    t.type_text("q");
    assert!(t.wait_exit().success());
}

#[test]
fn op36_copying_writes_osc_52() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo"], 120, 40, &[]);
    t.wait_ready();
    t.type_text("y");
    t.wait("an answer", |s| s.contents().contains("copied:") || s.contents().contains("copying is switched off"));
    let on = t.contents().contains("copied:");
    t.type_text("q");
    assert!(t.wait_exit().success());
    assert_eq!(on, t.bytes().windows(7).any(|w| w == b"\x1b]52;c;"));
}

/// Launch `pty-job` through form, plan and confirmation; returns when the dialogs have closed.
fn launch_through_the_dialogs(t: &mut Terminal) {
    t.type_text("/");
    t.wait_text("Enter keeps");
    t.type_text("gpu:h100");
    t.wait_text("/gpu:h100");
    t.type_text(" available");
    t.wait_text("h100 available");
    t.type_text("\r");
    t.wait("the filter to be taken", |s| !s.contents().contains("Enter keeps"));
    t.type_text("l");
    t.wait_text("Tab next field");
    // Anywhere, under a name that can be typed again.
    t.type_text("\x15");
    t.type_text("pty-job");
    for _ in 0..6 {
        t.type_text("\t");
    }
    t.type_text("\x15");
    t.type_text("\t");
    t.type_text("\x15");
    t.type_text("\r");
    t.wait_text("Continue…");
    t.type_text("\t");
    t.wait_text("[▸Continue");
    t.type_text("\r");
    t.wait_text("Launch pty-job?");
    t.wait("the guard to pass", |s| s.contents().contains("Tab moves"));
    t.type_text("\t");
    t.wait_text("[▸Launch");
    t.type_text("\r");
    t.wait("the dialogs to close", |s| {
        !s.contents().contains("Launch pty-job?") && !s.contents().contains("Continue…")
    });
}

#[test]
fn a_job_is_launched_seen_and_terminated_through_the_dialogs() {
    let home = home();
    let mut t = Terminal::start(home.path(), &["--demo", "--seed", "7"], 120, 40, &[]);
    t.wait_ready();
    launch_through_the_dialogs(&mut t);
    t.type_text("4");
    t.wait("the job to run", |s| s.contents().contains("pty-job") && s.contents().contains("● running"));
    t.type_text("t");
    t.wait_text("Terminate pty-job?");
    t.wait("the guard to pass", |s| s.contents().contains("Tab moves"));
    t.type_text("pty-job");
    t.wait_text("> pty-job");
    t.type_text("\t");
    t.wait_text("[▸Terminate");
    t.type_text("\r");
    t.wait("the job to be gone", |s| s.contents().contains("○ terminated"));
    t.type_text("q");
    assert!(t.wait_exit().success());
    t.assert_given_back();
}

/// The connection drops while a machine boots: the process goes, what it had begun stays written down, and a controller
/// goes on with it at once.
#[test]
fn op18_what_is_under_way_when_the_terminal_hangs_up_is_gone_on_with() {
    let home = home();
    // So slow that the machine is not up for a minute.
    let mut t = Terminal::start(home.path(), &["--demo", "--seed", "7", "--speed", "1"], 120, 40, &[]);
    t.wait_ready();
    launch_through_the_dialogs(&mut t);
    t.signal(Signal::SIGHUP);
    t.wait_exit();
    let gpudeck = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gpudeck"));
        command.env_clear().env("HOME", home.path()).args(["--demo", "--home"]).arg(home.path()).args(arguments);
        command
    };
    let jobs = || {
        let output = gpudeck(&["jobs", "--json"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let left = jobs();
    assert!(left.contains("\"pty-job\"") && left.contains("\"starting\""), "{left}");
    // The same world, faster.
    let mut controller = gpudeck(&["--speed", "600", "controller"]);
    let mut controller =
        controller.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while !jobs().contains("\"running\"") {
        assert!(Instant::now() < deadline, "{}", jobs());
    }
    controller.kill().unwrap();
    controller.wait().unwrap();
}

#[test]
fn without_a_terminal_it_says_so() {
    let home = home();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gpudeck"))
        .arg("--demo")
        .arg("--home")
        .arg(home.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(!output.stdout.contains(&0x1b), "h7: no escape sequence is written to a pipe");
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs a terminal"), "{output:?}");
}
