//! What is shown is what is known: old, guessed and unknown figures look so, at every width and without colour.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::{Availability, FeedHealth, HourlyRate, JobState, Purchase};
use crate::market::Snapshot;
use crate::tui::dialogs::Layer;
use crate::tui::testing::*;
use crate::tui::theme::ColorChoice;
use crate::tui::view::{Incoming, Refusal};

#[test]
fn h5_op29_money_and_states_are_never_cut_at_any_width() {
    for width in [60, 80, 100, 120, 200] {
        let mut runner = Runner::new(state(), width, 24);
        runner.keys("4");
        let screen = runner.screen();
        for whole in ["19.76", "running", "migrating", "preempted", "$611.40/h", "02:13:0"] {
            assert!(screen.contains(whole), "{width}: {whole} is cut\n{screen}");
        }
        runner.keys("1");
        let screen = runner.screen();
        for whole in ["6.88", "2.47", "11.06", "1.49", "12.29p"] {
            assert!(screen.contains(whole), "{width}: {whole} is cut\n{screen}");
        }
    }
}

#[test]
fn h5_long_names_end_in_an_ellipsis_and_large_money_stays_whole() {
    let mut big = state();
    let mut jobs = big.jobs.to_vec();
    jobs[0].name = "a-very-long-name-that-nobody-should-give-to-a-job-but-somebody-does-000017".into();
    jobs[0].usd_per_hour = Some(HourlyRate::parse_usd("1234567.89").unwrap());
    big.jobs = jobs.into();
    for width in [60, 80, 100, 200] {
        let mut runner = Runner::new(big.clone(), width, 24);
        runner.keys("4");
        let screen = runner.screen();
        assert!(screen.contains("1,234,567.89"), "{width}\n{screen}");
        assert!(screen.contains('…'), "{width}\n{screen}");
    }
}

#[test]
fn op13_stale_rows_say_so_and_their_old_figures_are_question_marks() {
    let mut old = state();
    let mut all = offers();
    for o in &mut all {
        if o.key.provider == "lambda" {
            o.observed_at = minutes(14);
        }
    }
    old.market = Arc::new(Snapshot::from_offers(now(), all).with_feeds(vec![feed("lambda", FeedHealth::Stale)]));
    let mut runner = Runner::new(old, 120, 24);
    runner.keys("1 /").text("cloud:lambda").keys("enter");
    let screen = runner.screen();
    assert!(screen.contains("stale 14m"), "{screen}");
    assert!(!screen.contains("2.99"), "a figure of 14 min ago is not shown as one\n{screen}");
    assert!(screen.contains("lambda◐"), "{screen}");
}

#[test]
fn unknown_prices_are_dashes_and_published_ones_are_marked() {
    let mut runner = Runner::new(state(), 120, 24);
    runner.keys("1 /").text("gpu:b200").keys("enter");
    let row = runner.screen().lines().find(|l| l.contains("B200")).unwrap().to_owned();
    assert!(row.contains("– ?"), "{row}");
    assert!(!row.contains("0.00"), "{row}");
    runner.keys("/ ctrl-u").text("cloud:azure gpu:h100").keys("enter");
    let row = runner.screen().lines().find(|l| l.contains("azure") && l.contains("H100")).unwrap().to_owned();
    assert!(row.contains("12.29p?"), "{row}");
}

#[test]
fn c8_b12_every_price_has_its_age_and_the_name_of_its_statistic() {
    let mut runner = Runner::new(state(), 200, 60);
    let screen = runner.screen();
    for heading in ["OD $/GPU", "SPOT", "AGE", "$/GPU-h", "MEDIAN", "MAX", "SPREAD"] {
        assert!(screen.contains(heading), "{heading}");
    }
    runner.keys("2 d");
    assert!(runner.screen().contains("Median") && runner.screen().contains("Dearest"), "{}", runner.screen());
}

#[test]
fn op31_states_are_told_apart_without_colour() {
    let mut session = session();
    session.colors = ColorChoice::Never;
    let runner = Runner::with(session, state(), 200, 60);
    let screen = runner.screen();
    for state in ["● running", "→ migrating", "▼ preempted", "✓ succeeded", "✕ failed"] {
        assert!(screen.contains(state), "{state}\n{screen}");
    }
    for cell in runner.buffer().content() {
        let style = cell.style();
        assert!(
            matches!(style.fg, None | Some(ratatui::style::Color::Reset))
                && matches!(style.bg, None | Some(ratatui::style::Color::Reset))
        );
    }
    let marks: std::collections::BTreeSet<_> =
        [Availability::Available, Availability::Limited, Availability::None, Availability::Unknown]
            .into_iter()
            .map(|a| crate::tui::panes::capacity::availability_mark(a).0)
            .collect();
    assert_eq!(marks.len(), 4);
    let marks: std::collections::BTreeSet<_> =
        JobState::ALL.into_iter().map(|s| format!("{}{s}", crate::tui::panes::jobs::state_mark(s).0)).collect();
    assert_eq!(marks.len(), JobState::ALL.len());
}

#[test]
fn op33_an_ascii_terminal_gets_ascii_only_and_still_tells_marks_apart() {
    let mut session = session();
    session.ascii = true;
    let mut hostile = state();
    let mut jobs = hostile.jobs.to_vec();
    jobs[0].name = "東京-ft-é".into();
    hostile.jobs = jobs.into();
    let mut runner = Runner::with(session, hostile, 120, 40);
    for view in ["1", "v", "2", "3", "4", "d", "esc", "e", "?"] {
        runner.keys(view);
        let screen = runner.screen();
        assert!(screen.is_ascii(), "{view}: {:?}", screen.chars().find(|c| !c.is_ascii()));
    }
}

#[test]
fn op38_hostile_names_are_shown_as_what_they_are() {
    let mut hostile = state();
    let mut jobs = hostile.jobs.to_vec();
    jobs[0].name = "a\u{1b}]52;c;AAAA\u{7}b\u{202e}c".into();
    jobs[0].note = Some("x\u{9b}31m".into());
    hostile.jobs = jobs.into();
    let mut runner = Runner::new(hostile, 200, 60);
    for keys in ["4", "d", "esc t"] {
        runner.keys(keys);
        for c in runner.screen().chars() {
            assert!(c == '\n' || !c.is_control() && c != '\u{202e}', "{keys}: {c:?}");
        }
    }
    runner.keys("esc d");
    assert!(runner.screen().contains("\\u{1b}"), "{}", runner.screen());
}

#[test]
fn op15_what_loads_has_a_deadline_and_then_a_cause() {
    let mut runner = Runner::new(empty_state(), 120, 24);
    assert!(runner.screen().contains("Asking aws …"), "{}", runner.screen());
    runner.wait(Duration::from_secs(11));
    let screen = runner.screen();
    for part in ["No answer from aws for 11 s", "gcp: not reached", "runpod: no credentials. Set RUNPOD_API_KEY."] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    let mut runner = Runner::new(state(), 120, 24);
    runner.keys("4 m");
    assert!(runner.screen().contains("Looking for places"));
    runner.wait(Duration::from_secs(11));
    assert!(runner.screen().contains("No plan after 11 s"), "{}", runner.screen());
    runner.keys("esc");
    assert!(runner.view.layers.is_empty(), "waiting can be given up");
}

#[test]
fn e11_a_refused_plan_tells_every_reason() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 l enter");
    let request = runner.view.requests;
    let refusal = Refusal {
        text: "no feasible placement for 'x'".into(),
        next: String::new(),
        ranking: Some(Box::new(ranking())),
    };
    runner.take(Incoming::Proposed(request, Err(refusal)));
    let screen = runner.screen();
    for part in ["no feasible placement", "accelerator", "has 1 GPU; the job needs 8 on a node", "availability"] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    runner.keys("x");
    assert!(matches!(runner.view.layers.last(), Some(Layer::Reader(_))));
    assert!(runner.screen().contains("Why places were refused"), "{}", runner.screen());
}

#[test]
fn h9_keys_work_while_tables_are_being_computed() {
    let mut runner = Runner::new(state(), 120, 40);
    // A board is asked for and never comes.
    runner.view.board_asked = true;
    runner.keys("2 j 4 z ?");
    assert!(runner.screen().contains("Everywhere"), "{}", runner.screen());
    runner.keys("esc");
    assert_eq!(runner.view.focus, crate::tui::panes::Pane::Jobs);
}

#[test]
fn the_confirmation_says_what_stops_what_is_lost_and_the_money() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4 t").propose();
    let screen = runner.screen();
    for part in [
        "What stops",
        "i-0abc0001",
        "aws/us-east-1/use1-az4",
        "What is lost",
        "s3://acme-ckpt/llama-ft",
        "$1,834.55 spent so far",
        "saves $19.76/h",
        "type the job's name: llama-ft",
    ] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
}

#[test]
fn demo_and_read_only_stay_on_the_screen_at_every_size_and_in_every_dialog() {
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 60)] {
        let mut session = session();
        session.demo = true;
        let mut fast = state();
        fast.speed = 60.0;
        let mut runner = Runner::with(session, fast, width, height);
        for keys in ["1", "2", "3", "4", "e", "?", "esc 4 t"] {
            runner.keys(keys);
            assert!(runner.screen().contains("DEMO ×60"), "{width}x{height} {keys}\n{}", runner.screen());
        }
    }
}

#[test]
fn op29_on_a_screen_that_is_too_small_there_is_a_message_and_a_way_out() {
    for (width, height) in [(1, 1), (20, 5), (59, 40), (200, 14)] {
        let mut runner = Runner::new(state(), width, height);
        if width >= 20 {
            assert!(runner.screen().contains("The terminal"), "{}", runner.screen());
        }
        runner.keys("4 t l m enter");
        assert!(runner.effects.is_empty(), "nothing is pressed blindly");
        runner.keys("q");
        assert!(matches!(runner.effects.as_slice(), [crate::tui::view::Effect::Quit]));
    }
    let runner = Runner::new(state(), 60, 15);
    assert!(runner.screen().contains("1 Capacity"), "{}", runner.screen());
}

#[test]
fn the_clock_goes_on_at_the_worlds_speed_between_states() {
    let mut fast = state();
    fast.speed = 60.0;
    let mut runner = Runner::new(fast, 120, 40);
    runner.state({
        let mut s = state();
        s.speed = 60.0;
        s
    });
    let before = runner.view.now();
    runner.wait(Duration::from_secs(2));
    let passed = (runner.view.now() - before).num_seconds();
    assert!((120..=126).contains(&passed), "{passed}");
}

#[test]
fn op27_without_news_nothing_is_dirty_within_a_second() {
    let mut runner = Runner::new(state(), 120, 40);
    let _ = runner.view.take_dirty();
    let second = Duration::from_secs(runner.view.at.as_secs() + 1);
    assert!(runner.view.next_deadline().unwrap() >= second.min(runner.view.at + Duration::from_millis(1)));
    runner.take(Incoming::Deadline);
    assert!(!runner.view.take_dirty() || runner.view.at >= second);
}

#[test]
fn spot_and_on_demand_stand_side_by_side() {
    let runner = Runner::new(state(), 200, 60);
    let row = runner.screen().lines().find(|l| l.contains("az4") && l.contains("p5.48xlarge")).unwrap().to_owned();
    assert!(row.contains("6.88 ●") && row.contains("2.47 ●"), "{row}");
    assert_eq!(
        offers()
            .iter()
            .filter(|o| o.key.purchase == Purchase::Spot && o.key.zone.as_ref().is_some_and(|z| *z == "use1-az4"))
            .count(),
        1
    );
}

/// UTC, the operator's own zone, or ages: in header, events and details, always with the zone.
#[test]
fn op16_times_are_in_utc_in_the_zone_of_the_operator_or_ages() {
    let mut session = session();
    session.zone = |_| chrono::FixedOffset::east_opt(19_800).unwrap();
    session.times = crate::config::settings::TimeDisplay::Local;
    let mut runner = Runner::with(session, state(), 200, 60);
    for screen in [runner.screen(), {
        runner.keys("e");
        runner.screen()
    }] {
        assert!(screen.contains("2026-12-01 07:43:07+05:30"), "the header's clock\n{screen}");
        assert!(screen.contains(" 07:43:07+05:30 "), "an event\n{screen}");
        assert!(!screen.contains("02:13:07"), "{screen}");
    }
    runner.keys("4 d");
    assert!(runner.screen().contains("+05:30 ("), "details\n{}", runner.screen());
    runner.keys("esc u");
    assert!(runner.notice().contains("ages"), "{}", runner.notice());
    runner.keys("e");
    assert!(runner.screen().contains("s ago"), "{}", runner.screen());
    runner.keys("esc u");
    assert!(runner.notice().contains("UTC"));
    assert!(runner.screen().contains("2026-12-01 02:13:07Z"));
}
