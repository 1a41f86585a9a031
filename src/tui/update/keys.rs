//! From a key to what it means where one is.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{actions, dialogs};
use crate::config::limits;
use crate::tui::action::{Action, Context};
use crate::tui::dialogs::Layer;
use crate::tui::keymap::{Key, Lookup};
use crate::tui::layout::Layout;
use crate::tui::panes::Pane;
use crate::tui::view::{Effect, ReplyGuard, View};

/// A terminal answers questions (colours, attributes, cursor) by typing. Whatever begins like such an answer is
/// swallowed to its end, so that it never becomes keys or text.
fn is_reply(view: &mut View, key: &KeyEvent) -> bool {
    let at = view.at;
    let plain = |c: char| key.code == KeyCode::Char(c);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let opens = |c: &KeyCode| matches!(c, KeyCode::Char(']' | 'P' | '_' | '^' | 'X'));
    let begin =
        |c: &KeyCode| ReplyGuard::Swallowing { last: at, keys: 0, numbered: matches!(c, KeyCode::Char(']' | '[')) };
    match view.reply {
        ReplyGuard::Swallowing { last, keys, numbered }
            if at.saturating_sub(last) <= limits::REPLY_GAP && keys < limits::REPLY_KEYS =>
        {
            // Ends with BEL (Ctrl-G) or ESC \.
            let bell = key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('g' | 'G'));
            if bell || alt && plain('\\') {
                view.reply = ReplyGuard::Open;
                return true;
            }
            // Its number comes first; a person who pressed Alt-] by mistake goes on with something else.
            let digit = matches!(key.code, KeyCode::Char(c) if c.is_ascii_digit() || matches!(c, '?' | '>' | '='));
            if keys == 0 && numbered && !digit && at.saturating_sub(last) > limits::REPLY_BEGIN {
                view.reply = ReplyGuard::Open;
            } else {
                view.reply = ReplyGuard::Swallowing { last: at, keys: keys + 1, numbered };
                return true;
            }
        }
        ReplyGuard::Escape(since)
            if at.saturating_sub(since) <= Duration::from_millis(20) && (opens(&key.code) || plain('[')) && !alt =>
        {
            view.reply = begin(&key.code);
            return true;
        }
        _ => view.reply = ReplyGuard::Open,
    }
    if alt && opens(&key.code) {
        view.reply = begin(&key.code);
        return true;
    }
    if key.code == KeyCode::Esc {
        view.reply = ReplyGuard::Escape(at);
    }
    false
}

/// Where keys are looked up, the nearest first.
fn contexts(view: &View) -> Vec<Context> {
    match view.layers.last() {
        Some(layer) => layer.contexts().to_vec(),
        None => pane_contexts(view.focus),
    }
}

pub(super) fn pane_contexts(pane: Pane) -> Vec<Context> {
    let own = match pane {
        Pane::Capacity => Context::Capacity,
        Pane::Prices => Context::Prices,
        Pane::Latency => Context::Latency,
        Pane::Jobs => Context::Jobs,
        Pane::Events => Context::Events,
    };
    vec![own, Context::Main]
}

pub(super) fn key(view: &mut View, event: &KeyEvent, effects: &mut Vec<Effect>) {
    if event.kind == KeyEventKind::Release || is_reply(view, event) {
        return;
    }
    let key = Key::from_event(event);
    // Leaving at once works everywhere, also where nothing else can be seen.
    let found = view.keymap.look_up(&contexts(view), &[key]);
    if found == Lookup::Action(Action::Interrupt) {
        effects.push(Effect::Quit);
        return;
    }
    if Layout::of(view).too_small {
        if view.keymap.look_up(&[Context::Main], &[key]) == Lookup::Action(Action::Quit) {
            effects.push(Effect::Quit);
        }
        return;
    }
    if view.deaf_until.is_some_and(|until| view.at < until) {
        return;
    }
    let guarded = matches!(view.layers.last(), Some(Layer::Confirm(c)) if c.guarded());
    if guarded && found != Lookup::Action(Action::Back) {
        return;
    }
    if view.layers.last().is_some_and(Layer::takes_text)
        && let Some(c) = key.typed()
    {
        dialogs::typed(view, c);
        return;
    }
    view.keys.push(key);
    let keys = view.keys.clone();
    match view.keymap.look_up(&contexts(view), &keys) {
        Lookup::Prefix => (),
        Lookup::Action(action) => {
            view.keys.clear();
            act(view, action, effects);
        }
        Lookup::Nothing => {
            view.keys.clear();
            // A sequence that leads nowhere: its last key may mean something by itself.
            if keys.len() > 1 {
                if let Lookup::Action(action) = view.keymap.look_up(&contexts(view), &[key]) {
                    act(view, action, effects);
                }
            } else if view.session.read_only && would_act(view, key) {
                view.refuse("this session is read-only: nothing can be launched, moved, stopped or noted");
            }
        }
    }
}

fn would_act(view: &View, key: Key) -> bool {
    view.layers.is_empty()
        && matches!(view.keymap.look_up(&pane_contexts(view.focus), &[key]), Lookup::Action(a) if a.acts())
}

fn act(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    if action.acts() && view.session.read_only {
        view.refuse("this session is read-only: nothing can be launched, moved, stopped or noted");
        return;
    }
    if view.layers.is_empty() {
        actions::perform(view, action, effects);
    } else {
        dialogs::perform(view, action, effects);
    }
}

/// A pasted text is text where text is typed, and nothing elsewhere: never keys. A line break in it presses nothing.
pub(super) fn paste(view: &mut View, text: &str) {
    // The body of a terminal's reply comes as a burst of characters, and is no paste.
    if matches!(view.reply, ReplyGuard::Swallowing { last, .. } if view.at.saturating_sub(last) <= limits::REPLY_GAP) {
        return;
    }
    if let Some(Layer::Confirm(c)) = view.layers.last()
        && c.guarded()
    {
        view.refuse("paste ignored: the dialog has just opened");
        return;
    }
    let first = text.lines().next().unwrap_or_default();
    if view.layers.last().is_some_and(Layer::takes_text) {
        if !dialogs::pasted(view, first) {
            view.refuse("paste ignored: no text field has the focus");
        }
    } else {
        view.refuse("paste ignored: keys are not taken from a paste");
    }
}
