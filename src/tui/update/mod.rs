//! What happens to the view when something happens. Synchronous and pure: no clock, no IO; what must be done outside
//! is given back as effects.

mod actions;
mod arrivals;
mod dialogs;
mod keys;
mod moves;

pub(crate) use moves::{heat_position, matrix_position, sort_names};

use super::view::{Effect, Incoming, Input, View};
use crate::config::limits;

/// Take one input.
pub fn update(view: &mut View, input: Input) -> Vec<Effect> {
    let before = view.at;
    view.at = view.at.max(input.at);
    let mut effects = Vec::new();
    for layer in &mut view.layers {
        match layer {
            super::dialogs::Layer::Plan(p) => p.at = view.at,
            super::dialogs::Layer::Confirm(c) => c.at = view.at,
            _ => {}
        }
    }
    match input.what {
        Incoming::Key(key) => {
            keys::key(view, &key, &mut effects);
            view.dirty = true;
        }
        Incoming::Paste(text) => {
            keys::paste(view, &text);
            view.dirty = true;
        }
        Incoming::Resize(width, height) => {
            view.size = (width, height);
            moves::settle(view);
            view.dirty = true;
        }
        Incoming::Resumed => {
            effects.push(Effect::Redraw);
            view.dirty = true;
        }
        Incoming::Deadline => view.dirty |= before.as_secs() != view.at.as_secs() || !view.layers.is_empty(),
        other => {
            arrivals::arrive(view, other);
            view.dirty = true;
        }
    }
    ask_for_board(view, &mut effects);
    effects
}

/// Tables are computed one at a time; for new data no more often than the limit says, for a new question at once.
fn ask_for_board(view: &mut View, effects: &mut Vec<Effect>) {
    if view.board_asked || !view.board_wanted {
        return;
    }
    let due = view.board_urgent || view.board_at.is_none_or(|at| view.at >= at + limits::BOARD_EVERY);
    if !due {
        return;
    }
    view.board_asked = true;
    view.board_wanted = false;
    view.board_for_key = view.board_urgent;
    view.board_urgent = false;
    view.board_at = Some(view.at);
    effects.push(Effect::Board(Box::new(super::board::BoardRequest {
        state: view.state.clone(),
        previous: view.board.clone(),
        queries: view.queries(),
    })));
}
