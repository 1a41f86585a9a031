//! Moving about, looking things up, typing.

use crate::tui::dialogs::Layer;
use crate::tui::dialogs::command::{Command, completions, parse};
use crate::tui::panes::Pane;
use crate::tui::table::RowId;
use crate::tui::testing::*;
use crate::tui::view::{Effect, Incoming};

fn selected_job(runner: &Runner) -> String {
    match runner.view.jobs.selected() {
        Some(RowId::Job(id)) => runner.view.job(id).unwrap().name.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn panes_are_reached_by_number_tab_and_e_and_esc_leads_back() {
    let mut runner = Runner::new(state(), 80, 24);
    for (keys, pane) in [
        ("2", Pane::Prices),
        ("tab", Pane::Latency),
        ("4", Pane::Jobs),
        ("e", Pane::Events),
        ("esc", Pane::Jobs),
        ("backtab", Pane::Latency),
        ("1", Pane::Capacity),
    ] {
        runner.keys(keys);
        assert_eq!(runner.view.focus, pane, "{keys}");
    }
    runner.keys("z");
    assert!(runner.view.zoom);
    runner.keys("esc");
    assert!(!runner.view.zoom);
}

#[test]
fn rows_are_moved_over_by_arrows_letters_pages_and_ends() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4");
    for (keys, name) in [
        ("g", "llama-ft"),
        ("j", "mixtral-pretrain"),
        ("down", "eval-nightly"),
        ("k", "mixtral-pretrain"),
        ("up", "llama-ft"),
        ("G", "probe-b200"),
        ("g", "llama-ft"),
        ("end", "probe-b200"),
        ("home", "llama-ft"),
        ("pgdn", "probe-b200"),
        ("pgup", "llama-ft"),
    ] {
        runner.keys(keys);
        assert_eq!(selected_job(&runner), name, "{keys}");
    }
}

#[test]
fn the_selection_stays_on_its_row_when_the_order_changes() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4 j");
    assert_eq!(selected_job(&runner), "mixtral-pretrain");
    for _ in 0..12 {
        runner.keys("s");
        assert_eq!(selected_job(&runner), "mixtral-pretrain");
        runner.keys("S");
        assert_eq!(selected_job(&runner), "mixtral-pretrain");
    }
}

#[test]
fn what_is_missing_is_sorted_last_both_ways() {
    let mut runner = Runner::new(state(), 200, 60);
    runner.keys("1");
    for reverse in [false, true] {
        runner.keys(":").text("sort on-demand").keys("enter");
        if reverse {
            runner.keys("S");
        }
        let board = &runner.view.board.capacity;
        let prices: Vec<Option<i64>> = (0..board.len())
            .map(|i| {
                board
                    .at(i)
                    .unwrap()
                    .on_demand
                    .as_ref()
                    .and_then(|o| o.price_per_gpu())
                    .map(crate::domain::GpuHourlyRate::micros)
            })
            .collect();
        let known: Vec<i64> = prices.iter().flatten().copied().collect();
        let first_missing = prices.iter().position(Option::is_none).unwrap();
        assert!(prices[first_missing..].iter().all(Option::is_none), "{prices:?}");
        assert!(known.windows(2).all(|w| if reverse { w[0] >= w[1] } else { w[0] <= w[1] }), "{prices:?}");
    }
}

#[test]
fn a_filter_narrows_as_it_is_typed_and_esc_takes_it_back() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1");
    let all = runner.view.board.capacity.len();
    runner.keys("/").text("gpu:h100 price<4 spot");
    let some = runner.view.board.capacity.len();
    assert!(some > 0 && some < all);
    runner.keys("esc");
    assert_eq!(runner.view.board.capacity.len(), all, "Esc while typing drops it");
    runner.keys("/").text("h100").keys("enter");
    assert!(runner.view.board.capacity.len() < all && runner.view.layers.is_empty());
    runner.keys("esc");
    assert_eq!(runner.view.board.capacity.len(), all, "Esc steps back");
    runner.keys("/").text("nosuch:x");
    assert!(runner.screen().contains("no field 'nosuch' here"), "{}", runner.screen());
    assert_eq!(runner.view.board.capacity.len(), all, "the last good filter stays in force");
    runner.keys("ctrl-u").text("zzzzzz").keys("enter");
    assert!(runner.screen().contains("Nothing matches 'zzzzzz'; Esc clears the filter."), "{}", runner.screen());
}

#[test]
fn filters_typed_before_come_back() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 /").text("h100").keys("enter / ctrl-u").text("a100").keys("enter / ctrl-u up up");
    assert_eq!(runner.view.capacity.filter_text, "h100");
    runner.keys("down");
    assert_eq!(runner.view.capacity.filter_text, "a100");
}

#[test]
fn a_new_filter_selects_its_first_row() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 G /").text("cloud:hyperbolic").keys("enter");
    assert!(matches!(runner.view.capacity.selected(), Some(RowId::Place(l, _)) if l.provider == "hyperbolic"));
}

#[test]
fn commands_are_completed_and_misspelt_ones_explained() {
    let runner = Runner::new(state(), 120, 40);
    assert_eq!(
        completions("terminate ", &runner.view),
        ["terminate llama-ft", "terminate mixtral-pretrain", "terminate eval-nightly"]
    );
    assert_eq!(completions("theme d", &runner.view), ["theme dark"]);
    assert!(completions("mig", &runner.view).contains(&"migrate".to_owned()));
    assert_eq!(parse("q", false), Ok(Command::Do(crate::tui::action::Action::Quit)));
    assert_eq!(parse("filter gpu:h100 spot", false), Ok(Command::Filter("gpu:h100 spot".into())));
    assert_eq!(parse("qiut", false).unwrap_err(), "no command 'qiut'; did you mean 'quit'?");
    assert_eq!(parse("zoom now", false).unwrap_err(), "'zoom' takes nothing after it");
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys(":").text("them").keys("tab").text(" light").keys("enter");
    assert_eq!(runner.view.theme.name, "light");
    runner.keys(":").text("theme nosuch").keys("enter");
    assert!(runner.notice().contains("there is no theme 'nosuch'"), "{}", runner.notice());
}

#[test]
fn a_command_for_a_job_opens_the_same_dialog_as_its_key() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("1 :").text("terminate eval-nightly").keys("enter");
    assert!(matches!(runner.view.layers.last(), Some(Layer::Plan(p)) if p.subject == "eval-nightly"));
    assert_eq!(runner.acting(), 0);
    runner.keys("esc :").text("terminate nosuch").keys("enter");
    assert_eq!(runner.notice(), "there is no live job 'nosuch'");
}

#[test]
fn every_theme_can_be_switched_to_and_draws() {
    let mut runner = Runner::new(state(), 120, 40);
    let mut seen = Vec::new();
    for _ in 0..6 {
        runner.keys("T");
        seen.push(runner.view.theme.name.clone());
        let _ = runner.buffer();
    }
    seen.sort();
    assert_eq!(seen, ["colour-blind", "dark", "high-contrast", "light", "mono", "terminal"]);
}

#[test]
fn copying_takes_the_id_and_can_be_switched_off() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("4 y");
    assert!(
        matches!(runner.effects.last(), Some(Effect::Copy(t)) if t == "0193f0a0-0000-7000-8000-000000000001"),
        "{:?}",
        runner.effects
    );
    let mut session = session();
    session.clipboard = false;
    let mut runner = Runner::with(session, state(), 120, 40);
    runner.keys("4 y");
    assert!(runner.effects.is_empty());
}

#[test]
fn refresh_is_asked_once_at_a_time() {
    let mut runner = Runner::new(state(), 120, 40);
    runner.keys("r r r");
    let asked: Vec<_> = runner
        .effects
        .iter()
        .filter_map(|e| match e {
            Effect::Refresh(n) => Some(*n),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 1);
    assert!(runner.screen().contains("asking …"), "{}", runner.screen());
    runner.take(Incoming::Refreshed(asked[0], Ok(())));
    runner.keys("r");
    assert_eq!(runner.effects.iter().filter(|e| matches!(e, Effect::Refresh(_))).count(), 2);
}

#[test]
fn in_the_matrix_h_and_l_move_and_nothing_is_launched() {
    let mut runner = Runner::new(state(), 200, 60);
    runner.keys("3 l l j h");
    assert!(runner.effects.is_empty() && runner.view.layers.is_empty());
    let at = crate::tui::update::matrix_position(&runner.view);
    assert_eq!(at, (1, 2));
    let place = runner.view.matrix_at.clone();
    runner.state(state());
    assert_eq!(runner.view.matrix_at, place, "the cursor stays on its places");
}

#[test]
fn the_heat_map_has_a_cell_for_each_gpu_and_region() {
    let mut runner = Runner::new(state(), 200, 60);
    runner.keys("1 v");
    let map = runner.view.board.heat.clone();
    assert_eq!(map.gpus.len(), 5);
    let screen = runner.screen();
    assert!(screen.contains("map: cheapest $/GPU-h"), "{screen}");
    runner.keys("j l");
    assert!(matches!(runner.view.layers.last(), Some(Layer::Launch(_))), "a place of the map can be launched at");
}
