//! One wrong key must not cost money. Each test is a complaint about another tool.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::domain::{FeedHealth, JobId, JobState};
use crate::engine::Wish;
use crate::tui::dialogs::Layer;
use crate::tui::dialogs::confirm::{Question, expected};
use crate::tui::panes::Pane;
use crate::tui::table::Selected;
use crate::tui::testing::*;
use crate::tui::view::{Effect, Incoming, Refusal};

/// Every key that a keyboard has, plain, with Control and with Alt.
fn all_keys() -> Vec<KeyEvent> {
    let mut keys = Vec::new();
    for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT, KeyModifiers::CONTROL, KeyModifiers::ALT] {
        for c in (0x20_u8..0x7F).map(char::from) {
            keys.push(KeyEvent::new(KeyCode::Char(c), modifiers));
        }
        for code in [
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::Insert,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::PageUp,
            KeyCode::PageDown,
        ] {
            keys.push(KeyEvent::new(code, modifiers));
        }
        keys.extend((1..=12).map(|n| KeyEvent::new(KeyCode::F(n), modifiers)));
    }
    keys
}

fn executed(runner: &Runner) -> Vec<JobId> {
    runner
        .effects
        .iter()
        .filter_map(|e| match e {
            Effect::Execute(_, p) => match &p.wish {
                Wish::Terminate { job } | Wish::Migrate { job, .. } => Some(job.clone()),
                Wish::Launch { .. } => None,
            },
            _ => None,
        })
        .collect()
}

/// Up to the confirmation of a terminate of the selected job.
fn confirming(runner: &mut Runner) {
    runner.keys("4 t").propose();
    assert!(matches!(runner.view.layers.last(), Some(Layer::Confirm(_))), "{}", runner.screen());
}

#[test]
fn op1_h2_the_target_is_the_one_shown_whatever_is_sorted_between_key_and_confirmation() {
    for seed in 0..1000_u64 {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut runner = Runner::new(state(), 120, 40);
        runner.keys("4");
        for _ in 0..rng.random_range(0..3) {
            runner.keys("j");
        }
        let meant = match runner.view.jobs.selected() {
            Some(crate::tui::table::RowId::Job(id)) => id.clone(),
            other => panic!("seed {seed}: {other:?}"),
        };
        let name = runner.view.job(&meant).unwrap().name.clone();
        let shuffled = |rng: &mut rand_chacha::ChaCha8Rng, but: Option<&JobId>| {
            let mut next = state();
            let mut jobs: Vec<_> = next.jobs.iter().filter(|j| Some(&j.id) != but).cloned().collect();
            jobs.shuffle(rng);
            next.jobs = jobs.into();
            next
        };
        // Rows move before the key, between key and plan, and between plan and confirmation.
        let next = shuffled(&mut rng, None);
        runner.state(next);
        runner.keys(if rng.random_bool(0.5) { "S t" } else { "s t" });
        let next = shuffled(&mut rng, None);
        runner.state(next);
        runner.propose();
        let gone = rng.random_bool(0.3);
        let next = shuffled(&mut rng, gone.then_some(&meant));
        runner.state(next);
        if gone {
            assert!(runner.view.layers.is_empty(), "seed {seed}: the dialog slid to a neighbour");
            assert!(runner.notice().starts_with(&format!("target gone: {name}")), "seed {seed}: {}", runner.notice());
        }
        assert!(gone || runner.screen().contains(&format!("Terminate {name}?")), "seed {seed}: {}", runner.screen());
        runner.wait(Duration::from_millis(600));
        runner.text(&name).keys("tab enter");
        let done = executed(&runner);
        assert_eq!(done, if gone { vec![] } else { vec![meant.clone()] }, "seed {seed}");
    }
}

#[test]
fn op1_a_row_that_goes_away_takes_the_selection_with_it() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4 j");
    let mut next = state();
    next.jobs = next.jobs.iter().filter(|j| j.name != "mixtral-pretrain").cloned().collect::<Vec<_>>().into();
    runner.state(next);
    assert_eq!(runner.view.jobs.selected, Selected::Lost);
    runner.keys("t");
    assert!(runner.view.layers.is_empty() && runner.effects.is_empty());
    assert_eq!(runner.notice(), "the selected row is gone; select another one");
    runner.keys("j t");
    assert_eq!(runner.effects.len(), 1, "after a move there is a selection again");
}

#[test]
fn op2_h1_no_single_key_in_any_view_acts() {
    let views: [&[&str]; 10] =
        [&["1"], &["1", "v"], &["2"], &["3"], &["4"], &["4", "z"], &["e"], &["4", "d"], &["4", "?"], &["4", "L"]];
    for view in views {
        for key in all_keys() {
            let mut runner = Runner::new(state(), 120, 40);
            for k in view {
                runner.keys(k);
            }
            runner.press(key);
            assert_eq!(runner.acting(), 0, "{view:?} {key:?}");
        }
    }
}

#[test]
fn op2_no_key_acts_while_a_confirmation_is_open_but_enter_on_its_button() {
    for key in all_keys() {
        let mut runner = Runner::new(state(), 120, 40);
        confirming(&mut runner);
        runner.wait(Duration::from_secs(1));
        runner.press(key);
        assert_eq!(runner.acting(), 0, "{key:?}");
    }
}

#[test]
fn op2_backspace_and_delete_in_a_filter_only_edit_it() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4 /").text("zzt").keys("backspace backspace backspace backspace delete ctrl-d ctrl-k enter");
    assert_eq!(runner.acting(), 0);
    assert!(runner.view.layers.is_empty());
}

#[test]
fn h1_what_is_typed_into_a_filter_never_acts() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4 /").text("tmladqxTt");
    assert!(runner.effects.is_empty(), "{:?}", runner.effects);
    assert_eq!(runner.view.jobs.filter_text, "tmladqxTt");
    assert_eq!(runner.view.layers.len(), 1);
}

#[test]
fn op3_type_ahead_into_a_confirmation_is_dropped() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    // Keys that were on their way, as quickly as a key repeats.
    runner.text("llama-ft").keys("tab enter");
    runner.take(Incoming::Paste("llama-ft".into()));
    assert_eq!(runner.acting(), 0);
    assert!(
        matches!(runner.view.layers.last(), Some(Layer::Confirm(c)) if c.typed.as_ref().unwrap().edit.text().is_empty())
    );
    runner.wait(Duration::from_millis(600));
    runner.text("llama-ft").keys("tab enter");
    assert_eq!(runner.acting(), 1);
}

#[test]
fn op3_the_key_that_asked_is_not_the_key_that_confirms() {
    for start in ["t", "m", "l"] {
        let mut runner = Runner::new(state(), 120, 40);
        runner.keys("4");
        for _ in 0..60 {
            runner.keys(start);
            if runner.effects.iter().any(|e| matches!(e, Effect::Propose(..)))
                && runner.view.layers.iter().any(|l| matches!(l, Layer::Plan(p) if p.proposal().is_none()))
            {
                runner.propose();
            }
            runner.wait(Duration::from_millis(200));
        }
        assert_eq!(runner.acting(), 0, "{start}");
    }
}

#[test]
fn op4_the_focus_is_on_cancel_and_the_name_must_be_typed_exactly() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(1));
    runner.keys("enter");
    assert!(runner.view.layers.is_empty(), "Enter alone cancels");
    assert_eq!(runner.acting(), 0);
    for wrong in ["", "llama", "llama-ft ", "LLAMA-FT", "llama-ftt"] {
        let mut runner = Runner::new(state(), 120, 40);
        confirming(&mut runner);
        runner.wait(Duration::from_secs(1));
        runner.text(wrong).keys("tab enter");
        assert_eq!(runner.acting(), 0, "{wrong}");
    }
    // The destructive button is the last one, and never the first focus.
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    let screen = runner.screen();
    assert!(
        screen.contains("[▸Cancel ]") && screen.find("Cancel").unwrap() < screen.find("[ Terminate ]").unwrap(),
        "{screen}"
    );
}

/// Who has typed the name and presses Enter meant the act, which is one Tab away; nothing is thrown away, nothing done.
#[test]
fn op4_enter_after_the_name_neither_acts_nor_cancels() {
    for typed in ["llama", "llama-ft"] {
        let mut runner = Runner::new(state(), 120, 40);
        confirming(&mut runner);
        runner.wait(Duration::from_secs(1));
        runner.text(typed).keys("enter enter");
        assert_eq!((runner.acting(), runner.view.layers.len()), (0, 1), "{typed}");
        assert!(runner.screen().contains("Tab, then Enter: Terminate"), "{}", runner.screen());
    }
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(1));
    runner.text("llama-ft").keys("enter tab enter");
    assert_eq!(runner.acting(), 1);
}

/// The job of a dialog ends while its name is being typed: the letters that are on their way press nothing.
#[test]
fn op1_letters_for_a_dialog_that_closed_by_itself_press_nothing() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(1));
    runner.text("lla");
    let mut ended = runner.view.state.as_ref().clone();
    let mut jobs = ended.jobs.to_vec();
    jobs.iter_mut().filter(|j| j.name == "llama-ft").for_each(|j| j.state = crate::domain::JobState::Terminated);
    ended.jobs = jobs.into();
    runner.take(Incoming::State(std::sync::Arc::new(ended)));
    assert!(runner.view.layers.is_empty(), "it closed by itself");
    runner.keys("m t l");
    assert!(runner.view.layers.is_empty() && runner.acting() == 0);
    runner.wait(Duration::from_secs(1));
    runner.keys("l");
    assert_eq!(runner.view.layers.len(), 1, "later keys are keys");
}

#[test]
fn op4_a_name_that_is_not_ascii_is_confirmed_by_the_end_of_the_id() {
    let id = JobId::from("0193f0a0-0000-7000-8000-00000000abcd");
    assert_eq!(expected("llama-ft", &id).0, "llama-ft");
    // A Cyrillic а looks like the Latin one.
    assert_eq!(expected("ll\u{430}ma-ft", &id), ("00abcd".to_owned(), "the last six of the id"));
    assert_eq!(expected("two words", &id).0, "00abcd");
    assert_eq!(expected("", &id).0, "00abcd");
}

#[test]
fn op7_a_paste_outside_a_text_field_is_ignored_and_told() {
    for view in ["1", "2", "3", "4", "e"] {
        let mut runner = Runner::new(state(), 120, 40);
        runner.keys(view);
        runner.take(Incoming::Paste("t\nllama-ft\n\n".into()));
        assert!(runner.notice().starts_with("paste ignored"), "{}", runner.notice());
        assert!(runner.effects.is_empty() && runner.view.layers.is_empty());
    }
}

#[test]
fn op7_a_line_break_in_a_paste_never_confirms() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(1));
    runner.keys("tab");
    runner.take(Incoming::Paste("llama-ft\n\n\ny\n".into()));
    assert_eq!(runner.acting(), 0);
    assert!(
        matches!(runner.view.layers.last(), Some(Layer::Confirm(c)) if c.typed.as_ref().unwrap().edit.text() == "llama-ft")
    );
}

#[test]
fn op8_a_terminals_replies_never_become_text_or_keys() {
    let alt = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::ALT);
    let plain = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
    let bell = KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL);
    let mut replies: Vec<Vec<KeyEvent>> = Vec::new();
    for body in ["11;rgb:1212/1616/1e1e", "10;rgb:ffff/ffff/ffff", "52;c;dGVybWluYXRl", "tqlm"] {
        let mut osc = vec![alt(']')];
        osc.extend(body.chars().map(plain));
        let mut with_bell = osc.clone();
        with_bell.push(bell);
        osc.push(alt('\\'));
        replies.extend([osc, with_bell]);
        let mut dcs = vec![alt('P')];
        dcs.extend(body.chars().map(plain));
        dcs.push(alt('\\'));
        replies.push(dcs);
    }
    for reply in &replies {
        let mut runner = Runner::new(state(), 120, 40);
        confirming(&mut runner);
        runner.wait(Duration::from_secs(1));
        runner.text("llama");
        for k in reply {
            // A reply arrives at once.
            let effects = crate::tui::update(
                &mut runner.view,
                crate::tui::view::Input { at: runner.at, what: Incoming::Key(*k) },
            );
            assert!(effects.is_empty());
        }
        let Some(Layer::Confirm(c)) = runner.view.layers.last() else { panic!("closed by {reply:?}") };
        assert_eq!(c.typed.as_ref().unwrap().edit.text(), "llama", "{reply:?}");
        // And in the panes nothing happens either.
        let mut runner = Runner::new(state(), 120, 40);
        runner.keys("4");
        for k in reply {
            let effects = crate::tui::update(
                &mut runner.view,
                crate::tui::view::Input { at: runner.at, what: Incoming::Key(*k) },
            );
            assert!(effects.is_empty(), "{reply:?}");
        }
        assert!(runner.view.layers.is_empty(), "{reply:?}");
    }
}

proptest::proptest! {
    /// However a slow link cuts a reply into pieces, the field keeps its text; and what is typed afterwards gets there.
    #[test]
    fn op8_a_reply_in_pieces_never_becomes_text(
        kind in proptest::prelude::prop::sample::select(vec![']', 'P']),
        body in "[0-9]{1,3};[a-zA-Z0-9:/;?=]{0,30}",
        gaps in proptest::collection::vec(0_u64..800, 40),
        bell in proptest::bool::ANY,
    ) {
        let plain = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        let alt = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::ALT);
        for named in [false, true] {
            let mut runner = Runner::new(state(), 120, 40);
            if named {
                confirming(&mut runner);
                runner.wait(Duration::from_secs(1));
                runner.text("llama");
            } else {
                runner.keys("1 /").text("spot");
            }
            let mut reply = vec![alt(kind)];
            reply.extend(body.chars().map(plain));
            reply.push(if bell { KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL) } else { alt('\\') });
            for (key, gap) in reply.into_iter().zip(gaps.iter().cycle()) {
                runner.take(Incoming::Key(key));
                runner.wait(Duration::from_millis(*gap));
            }
            runner.text("x");
            let text = if named {
                let Some(Layer::Confirm(c)) = runner.view.layers.last() else { panic!("closed") };
                c.typed.as_ref().unwrap().edit.text().to_owned()
            } else {
                runner.view.capacity.filter_text.clone()
            };
            proptest::prop_assert_eq!(text, if named { "llamax" } else { "spotx" });
        }
    }
}

#[test]
fn op8_alt_and_a_bracket_by_mistake_swallows_nothing_that_is_typed() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 /");
    runner.press(KeyEvent::new(KeyCode::Char(']'), KeyModifiers::ALT));
    runner.wait(Duration::from_millis(300));
    runner.text("spot");
    assert_eq!(runner.view.capacity.filter_text, "spot");
}

#[test]
fn op8_a_reply_whose_body_comes_as_a_burst_is_no_paste() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 /").text("spot");
    for what in [
        Incoming::Key(KeyEvent::new(KeyCode::Char(']'), KeyModifiers::ALT)),
        Incoming::Paste("11;rgb:1212/1616/1e1e".into()),
        Incoming::Key(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL)),
    ] {
        runner.take(what);
    }
    runner.text("x");
    assert_eq!(runner.view.capacity.filter_text, "spotx");
}

#[test]
fn op8_only_characters_that_can_be_seen_get_into_a_field() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys(":");
    for c in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{0}'] {
        runner.press(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    }
    runner.take(Incoming::Paste("a\u{1b}[31m\u{202e}b".into()));
    let Some(Layer::Command(line)) = runner.view.layers.last() else { panic!() };
    assert_eq!(line.edit.text(), "a[31mb");
}

#[test]
fn op9_h3_a_read_only_session_acts_on_nothing_in_any_view() {
    for view in ["1", "2", "3", "4", "e"] {
        for key in all_keys() {
            let mut session = session();
            session.read_only = true;
            let mut runner = Runner::with(session, state(), 120, 40);
            runner.keys(view);
            runner.press(key);
            let opened = runner.view.layers.iter().any(|l| matches!(l, Layer::Confirm(c) if matches!(c.question, Question::Do(_) | Question::Acknowledge { .. })));
            assert!(!opened && runner.acting() == 0, "{view} {key:?}");
        }
    }
    let mut session = session();
    session.read_only = true;
    let mut runner = Runner::with(session, state(), 120, 40);
    for key in ["l", "m", "t", "a"] {
        runner.keys("4").keys(key);
        assert!(runner.notice().contains("read-only"), "{key}: {}", runner.notice());
        runner.keys("esc");
    }
    for command in ["terminate llama-ft", "launch", "migrate llama-ft", "ack"] {
        runner.keys(":").text(command).keys("enter");
        assert!(runner.notice().contains("read-only"), "{command}: {}", runner.notice());
    }
    assert!(runner.screen().contains("READ-ONLY"));
    runner.keys("?");
    let help = runner.screen();
    assert!(!help.contains("Plan a move of the job"), "{help}");
}

#[test]
fn op11_a_refusal_stays_on_the_screen_with_code_request_and_what_to_do() {
    let mut runner = Runner::new(state(), 200, 60);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(1));
    runner.text("llama-ft").keys("tab enter");
    let request = match runner.effects.last() {
        Some(Effect::Execute(request, _)) => *request,
        other => panic!("{other:?}"),
    };
    let refusal = Refusal {
        text: "aws TerminateInstances in us-east-1: auth [UnauthorizedOperation]: not allowed (request 4f3a)".into(),
        next: "Renew the credentials.".into(),
        ranking: None,
    };
    runner.take(Incoming::Executed(request, Err(refusal)));
    runner.wait(Duration::from_mins(5));
    runner.state(state());
    runner.keys("1 j j");
    let screen = runner.screen();
    for part in ["UnauthorizedOperation", "request 4f3a", "Renew the credentials."] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    runner.keys("esc");
    assert!(!runner.screen().contains("UnauthorizedOperation"), "Esc takes note of it");
}

#[test]
fn op13_nothing_is_done_to_a_job_whose_machines_were_not_seen_until_they_are_read_again() {
    let unseen = |minutes| {
        let mut old = state();
        let mut jobs = old.jobs.to_vec();
        for instance in jobs.iter_mut().flat_map(|j| &mut j.instances) {
            instance.observed_at = old.at - chrono::TimeDelta::minutes(minutes);
        }
        old.jobs = jobs.into();
        old
    };
    let mut runner = Runner::new(unseen(3), 120, 40);
    for key in ["t", "m"] {
        runner.keys("4").keys(key);
        assert!(runner.effects.is_empty() && runner.view.layers.is_empty(), "{key}");
        let notice = runner.notice();
        assert!(notice.contains("its machines were last seen 3m ago"), "{notice}");
    }
    runner.state(state());
    runner.keys("t");
    assert_eq!(runner.effects.len(), 1, "read again, it can be acted on");
    // Half an hour of a world that goes a thousand times faster is two seconds.
    let mut fast = unseen(30);
    fast.speed = 1_000.0;
    let mut runner = Runner::new(fast, 120, 40);
    runner.keys("4 t");
    assert_eq!(runner.effects.len(), 1);
}

/// Old prices are no reason to let a machine go on billing.
#[test]
fn op13_old_prices_do_not_keep_a_job_whose_machines_are_seen_from_being_ended() {
    for health in [FeedHealth::Stale, FeedHealth::Down, FeedHealth::AuthNeeded, FeedHealth::Quarantined] {
        let mut old = state();
        let feeds = old.market.feeds().iter().cloned().map(|mut f| {
            if f.provider == "aws" {
                f.health = health;
            }
            f
        });
        let feeds = feeds.collect();
        old.market = std::sync::Arc::new(crate::market::Snapshot::from_offers(now(), offers()).with_feeds(feeds));
        let mut runner = Runner::new(old, 120, 40);
        runner.keys("4 t");
        assert_eq!(runner.effects.len(), 1, "{health:?}: {}", runner.notice());
    }
}

/// What the command line wants the name for, the cockpit does too.
#[test]
fn op12_a_launch_dearer_than_the_limit_wants_the_name_typed() {
    for (limit, wants) in [("33.59", true), ("33.60", false), ("100", false)] {
        let mut session = session();
        session.name_above = crate::domain::HourlyRate::parse_usd(limit).unwrap();
        let mut runner = Runner::with(session, state(), 120, 40);
        runner.keys("1 j l enter").propose().keys("tab enter");
        let Some(Layer::Confirm(c)) = runner.view.layers.last() else { panic!("{}", runner.screen()) };
        assert_eq!(c.typed.is_some(), wants, "$33.60/h against {limit}");
        let name = c.typed.as_ref().and_then(|t| t.expected.clone()).unwrap_or_default();
        runner.wait(Duration::from_secs(1));
        if wants {
            runner.keys("tab enter");
            assert_eq!(runner.acting(), 0, "nothing typed");
            assert!(name.starts_with("h100-"), "{name}");
        }
    }
}

#[test]
fn op13_no_launch_from_a_stale_row() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 /").text("cloud:lambda").keys("enter l");
    assert!(runner.view.layers.is_empty());
    assert!(
        runner.notice().contains("lambda/us-west-3 is not acted on before it is read again"),
        "{}",
        runner.notice()
    );
}

#[test]
fn f7_pressing_twice_sends_once() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(1));
    runner.text("llama-ft").keys("tab enter enter enter");
    assert_eq!(runner.acting(), 1);
}

#[test]
fn f29_a_plan_that_was_looked_at_for_a_minute_is_not_done() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(61));
    runner.text("llama-ft").keys("tab enter");
    assert_eq!(runner.acting(), 0);
    assert!(runner.screen().contains("too old"), "{}", runner.screen());
}

#[test]
fn f15_a_job_that_somebody_else_changed_meanwhile_voids_the_confirmation() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    runner.wait(Duration::from_secs(1));
    let mut next = state();
    next.jobs = next
        .jobs
        .iter()
        .cloned()
        .map(|mut j| {
            j.version += 1;
            j
        })
        .collect::<Vec<_>>()
        .into();
    runner.state(next);
    runner.text("llama-ft").keys("tab enter");
    assert_eq!(runner.acting(), 0);
    assert!(runner.screen().contains("the job changed"), "{}", runner.screen());
}

#[test]
fn op1_a_job_that_ends_meanwhile_closes_the_dialog() {
    let mut runner = Runner::new(state(), 120, 40);
    confirming(&mut runner);
    let mut next = state();
    next.jobs = next
        .jobs
        .iter()
        .cloned()
        .map(|mut j| {
            if j.name == "llama-ft" {
                j.state = JobState::Succeeded;
            }
            j
        })
        .collect::<Vec<_>>()
        .into();
    runner.state(next);
    assert!(runner.view.layers.is_empty());
    assert_eq!(runner.notice(), "target gone: llama-ft is succeeded now; nothing was done");
}

#[test]
fn op22_suspending_or_leaving_with_an_operation_under_way_asks() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("ctrl-z");
    assert!(!runner.effects.iter().any(|e| matches!(e, Effect::Suspend)));
    assert!(runner.screen().contains("operations are under way"), "{}", runner.screen());
    runner.wait(Duration::from_secs(1));
    runner.keys("tab enter");
    assert!(matches!(runner.effects.last(), Some(Effect::Suspend)));
    runner.keys("q");
    runner.wait(Duration::from_secs(1));
    runner.keys("enter");
    assert!(!runner.effects.iter().any(|e| matches!(e, Effect::Quit)), "the focus is on Cancel");
    runner.keys("ctrl-c");
    assert!(matches!(runner.effects.last(), Some(Effect::Quit)), "Ctrl-C leaves at once");
    let mut quiet = state();
    quiet.jobs = Vec::new().into();
    let mut runner = Runner::new(quiet, 120, 40);
    runner.keys("ctrl-z q");
    assert!(matches!(runner.effects.as_slice(), [Effect::Suspend, Effect::Quit]), "{:?}", runner.effects);
}

#[test]
fn a_launch_is_planned_shown_and_confirmed_before_anything_is_sent() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 /").text("gpu:h100 cloud:gcp region:us*").keys("enter l");
    let form = runner.screen();
    assert!(form.contains("gcp/us-central1/us-central1-a") && form.contains("H100-80GB-SXM"), "{form}");
    runner.keys("enter");
    let Some(Effect::Propose(_, Wish::Launch { spec, candidate: 0 })) = runner.effects.last() else {
        panic!("{:?}", runner.effects)
    };
    assert_eq!((spec.resources.count, spec.resources.nodes), (8, 1));
    assert_eq!(spec.constraints.providers, ["gcp"]);
    runner.propose();
    let plan = runner.screen();
    for part in ["costs $33.60/h", "4 places fit", "8 offers were refused", "Continue…"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert_eq!(runner.acting(), 0);
    // Another candidate is planned anew before it can be gone on with.
    runner.keys("down enter");
    assert!(
        matches!(runner.effects.last(), Some(Effect::Propose(_, Wish::Launch { candidate: 1, .. }))),
        "{:?}",
        runner.effects.last()
    );
    runner.propose();
    runner.keys("tab enter");
    assert!(matches!(runner.view.layers.last(), Some(Layer::Confirm(_))));
    runner.wait(Duration::from_secs(1));
    runner.keys("enter");
    assert_eq!(runner.acting(), 0, "Enter alone cancels");
    runner.keys("enter");
    runner.wait(Duration::from_secs(1));
    runner.keys("tab enter");
    assert_eq!(runner.acting(), 1);
}

#[test]
fn a_dry_run_has_no_way_on() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4 p").propose();
    assert!(
        runner.screen().contains("nothing is done") && !runner.screen().contains("Continue"),
        "{}",
        runner.screen()
    );
    runner.wait(Duration::from_secs(1));
    runner.keys("tab enter enter tab enter");
    assert_eq!(runner.acting(), 0);
}

#[test]
fn an_alert_is_noted_with_a_remark() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("e a");
    runner.wait(Duration::from_secs(1));
    runner.text("seen, cheap H100s").keys("tab enter");
    assert!(
        matches!(runner.effects.last(), Some(Effect::Acknowledge(_, 42, note)) if note == "seen, cheap H100s"),
        "{:?}",
        runner.effects
    );
    assert_eq!(runner.view.focus, Pane::Events);
}
