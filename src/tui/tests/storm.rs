//! Whatever keys, pastes, sizes and states come, nothing panics, and nothing is done without a confirmation.

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;

use crate::tui::testing::*;
use crate::tui::view::Incoming;

#[derive(Debug, Clone)]
enum Happening {
    Key(KeyEvent),
    Size(u16, u16),
    Paste(String),
    Wait(u64),
    Jobs(usize),
    Empty,
    Propose,
}

fn happening() -> impl Strategy<Value = Happening> {
    let code = prop_oneof![
        8 => proptest::char::range(' ', '~').prop_map(KeyCode::Char),
        3 => prop::sample::select(vec![KeyCode::Enter, KeyCode::Tab, KeyCode::BackTab, KeyCode::Esc]),
        3 => prop::sample::select(vec![KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End, KeyCode::PageUp, KeyCode::PageDown]),
        1 => prop::sample::select(vec![KeyCode::Backspace, KeyCode::Delete, KeyCode::F(1), KeyCode::Char('é'), KeyCode::Char('東')]),
    ];
    let modifiers = prop_oneof![
        9 => Just(KeyModifiers::NONE),
        1 => Just(KeyModifiers::CONTROL),
        1 => Just(KeyModifiers::ALT),
    ];
    prop_oneof![
        30 => (code, modifiers).prop_map(|(c, m)| Happening::Key(KeyEvent::new(c, m))),
        3 => (1_u16..300, 1_u16..100).prop_map(|(w, h)| Happening::Size(w, h)),
        1 => "\\PC{0,20}".prop_map(Happening::Paste),
        2 => (0_u64..70_000).prop_map(Happening::Wait),
        2 => (0_usize..6).prop_map(Happening::Jobs),
        1 => Just(Happening::Empty),
        4 => Just(Happening::Propose),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_storm_is_survived(storm in prop::collection::vec(happening(), 1..60)) {
        let mut runner = Runner::new(state(), 120, 40);
        for happening in storm {
            match happening {
                Happening::Key(key) => runner.press(key),
                Happening::Size(w, h) => runner.take(Incoming::Resize(w, h)),
                Happening::Paste(text) => runner.take(Incoming::Paste(text)),
                Happening::Wait(ms) => runner.wait(Duration::from_millis(ms)),
                Happening::Jobs(n) => {
                    let mut next = state();
                    next.jobs = next.jobs.iter().take(n).cloned().collect::<Vec<_>>().into();
                    runner.take(Incoming::State(Arc::new(next)));
                }
                Happening::Empty => runner.take(Incoming::State(Arc::new(empty_state()))),
                Happening::Propose => {
                    if runner.effects.iter().any(|e| matches!(e, crate::tui::view::Effect::Propose(..))) {
                        runner.propose();
                    }
                }
            }
            let (buffer, cursor) = runner.drawn();
            if let Some(at) = cursor {
                prop_assert!(at.x < buffer.area().width && at.y < buffer.area().height, "the cursor is off the screen");
            }
        }
        for effect in runner.effects.iter().filter(|e| e.acts()) {
            // Only a confirmation leads here, and a terminate or migrate needs a name that random keys do not type.
            prop_assert!(!matches!(effect, crate::tui::view::Effect::Execute(_, p) if p.plan.kind != crate::domain::PlanKind::Launch));
        }
    }
}
