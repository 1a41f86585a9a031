//! The last line: a filter being typed, else what must be read, else the newest event; and the keys that matter here.

use ratatui::layout::{Position, Rect};

use super::action::Action;
use super::dialogs::Layer;
use super::paint::{Canvas, Part, parts_width, width};
use super::panes::{Pane, events};
use super::theme::Role;
use super::view::View;

fn hints(view: &View) -> &'static [Action] {
    match view.focus {
        Pane::Jobs => &[Action::Terminate, Action::Migrate, Action::DryRun, Action::Logs, Action::Filter, Action::Help],
        Pane::Capacity => &[Action::Pivot, Action::Sort, Action::Launch, Action::Filter, Action::Help],
        Pane::Events => &[Action::Acknowledge, Action::Times, Action::Filter, Action::Help],
        Pane::Prices => &[Action::Launch, Action::Sort, Action::Filter, Action::Help],
        Pane::Latency => &[Action::Details, Action::Zoom, Action::Help],
    }
}

pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, view: &View) -> Option<Position> {
    if let Some(Layer::Filter { edit, .. }) = view.layers.last() {
        return filter_line(canvas, area, view, edit);
    }
    // Hints from the right, as many as leave the message half the line; help is always there.
    let mut shown: Vec<Part<'static>> = Vec::new();
    // What must be read has the line to itself but for the way to help.
    let room = if view.notice.is_some() { 8 } else { area.width / 2 };
    for action in hints(view).iter().rev() {
        let key = view.keymap.first_key(*action);
        if key.is_empty() || view.session.read_only && action.acts() {
            continue;
        }
        let mut hint: Vec<Part<'static>> =
            vec![(key.into(), Role::Key), (format!(" {}", action.spec().title.to_lowercase()).into(), Role::Muted)];
        let gap = if shown.is_empty() { 0 } else { 2 };
        if parts_width(&shown) + parts_width(&hint) + gap > room {
            break;
        }
        if gap > 0 {
            hint.push(("  ".into(), Role::Muted));
        }
        hint.append(&mut shown);
        shown = hint;
    }
    let right = parts_width(&shown);
    canvas.parts_right(area.x, area.y, area.width.saturating_sub(1), &shown);
    let left = area.width.saturating_sub(right + 4);
    let x = area.x + 1;
    if !view.keys.is_empty() {
        let keys: Vec<String> = view.keys.iter().map(ToString::to_string).collect();
        canvas.text(x, area.y, left, &format!("{} …", keys.join(" ")), Role::Key);
    } else if let Some(notice) = &view.notice {
        let role = if notice.bad { Role::Error } else { Role::Notice };
        let text = format!(" {} ", notice.text);
        canvas.text(x, area.y, left, &text, role);
    } else if let Some(event) = view.state.events.last() {
        let n = canvas.text(x, area.y, left, &view.times.short(view.now(), event.at), Role::Muted) + 1;
        canvas.text(x + n, area.y, left.saturating_sub(n), &event.text, events::role(event.kind));
    } else {
        canvas.text(x, area.y, left, "nothing has happened yet", Role::Muted);
    }
    None
}

fn filter_line(
    canvas: &mut Canvas<'_>,
    area: Rect,
    view: &View,
    edit: &super::line_edit::LineEdit,
) -> Option<Position> {
    canvas.fill(area, Role::Input);
    let n = canvas.text(area.x, area.y, 10, "/", Role::Key);
    let error = view.table(view.focus).and_then(|t| t.filter_error.clone());
    let note = error.clone().unwrap_or_else(|| {
        let count = super::draw::count(view, view.focus);
        format!("{count}  Enter keeps, Esc drops")
    });
    let note_wide = width(&note).min(area.width * 2 / 3);
    let room = area.width.saturating_sub(n + note_wide + 3);
    let (text, at) = edit.window(room);
    canvas.text(area.x + n, area.y, room, &text, Role::Input);
    let x = area.right().saturating_sub(note_wide + 1);
    canvas.text(x, area.y, note_wide, &note, if error.is_some() { Role::Error } else { Role::Input });
    Some(Position { x: area.x + n + at, y: area.y })
}
