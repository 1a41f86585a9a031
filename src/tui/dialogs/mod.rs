//! What lies over the panes. The top one gets the keys.

pub(crate) mod command;
pub(crate) mod confirm;
pub(crate) mod details;
pub(crate) mod explain;
pub(crate) mod help;
pub(crate) mod launch;
pub(crate) mod log;
pub(crate) mod plan;
pub(crate) mod reader;

use std::time::Duration;

use ratatui::layout::{Position, Rect};

use super::action::Context;
use super::line_edit::LineEdit;
use super::paint::Canvas;
use super::theme::Role;
use super::view::View;
use crate::domain::JobId;

/// Something open over the panes.
#[derive(Debug)]
pub(crate) enum Layer {
    /// The filter of the focused pane being typed; what it was before, for Esc.
    Filter { edit: LineEdit, before: String, history: usize },
    /// The command line.
    Command(command::CommandLine),
    /// Something to read.
    Reader(reader::Reader),
    /// The launch form.
    Launch(Box<launch::Form>),
    /// A plan being made or looked at.
    Plan(Box<plan::PlanDialog>),
    /// A question before something is done.
    Confirm(Box<confirm::Confirm>),
}

impl Layer {
    /// Where keys are looked up, the nearest first.
    pub(crate) fn contexts(&self) -> &'static [Context] {
        match self {
            Self::Filter { .. } | Self::Command(_) => &[Context::Text],
            Self::Reader(_) => &[Context::Reader],
            Self::Launch(_) => &[Context::Form, Context::Text],
            Self::Plan(_) => &[Context::Plan],
            Self::Confirm(_) => &[Context::Confirm, Context::Text],
        }
    }

    /// Whether characters are text here.
    pub(crate) fn takes_text(&self) -> bool {
        match self {
            Self::Filter { .. } | Self::Command(_) | Self::Launch(_) => true,
            Self::Confirm(c) => c.typed.is_some(),
            Self::Reader(_) | Self::Plan(_) => false,
        }
    }

    /// When something in it changes by itself.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Plan(p) => p.deadline(),
            Self::Confirm(c) => c.deadline(),
            _ => None,
        }
    }

    /// The job that it is about to act on: pinned when it was opened.
    pub(crate) fn target(&self) -> Option<(&JobId, &str)> {
        match self {
            Self::Plan(p) => p.target.as_ref().map(|(id, name)| (id, name.as_str())),
            Self::Confirm(c) => c.target.as_ref().map(|(id, name)| (id, name.as_str())),
            _ => None,
        }
    }
}

/// An area in the middle of the screen, at most so large.
pub(crate) fn centred(screen: Rect, width: u16, height: u16) -> Rect {
    let width = width.min(screen.width.saturating_sub(2));
    let height = height.min(screen.height.saturating_sub(2));
    Rect { x: screen.x + (screen.width - width) / 2, y: screen.y + (screen.height - height) / 2, width, height }
}

/// Draw what is open; gives where the cursor stands.
pub(crate) fn draw(canvas: &mut Canvas<'_>, screen: Rect, view: &View) -> Option<Position> {
    let mut cursor = None;
    for layer in &view.layers {
        cursor = match layer {
            // Drawn in the footer, by the footer.
            Layer::Filter { .. } => cursor,
            Layer::Command(line) => line.draw(canvas, screen, view),
            Layer::Reader(reader) => {
                reader.draw(canvas, screen, view);
                None
            }
            Layer::Launch(form) => form.draw(canvas, screen),
            Layer::Plan(plan) => {
                plan.draw(canvas, screen, view);
                None
            }
            Layer::Confirm(confirm) => confirm.draw(canvas, screen, view),
        };
    }
    cursor
}

/// Buttons in a row, the one with the focus marked with more than colour.
pub(crate) fn buttons(
    canvas: &mut Canvas<'_>,
    area: Rect,
    labels: &[(&str, bool)],
    focus: Option<usize>,
    enabled: impl Fn(usize) -> bool,
) {
    let wide: u16 = labels.iter().map(|(l, _)| super::paint::width(l) + 6).sum();
    let mut x = area.right().saturating_sub(wide + 1).max(area.x);
    for (i, (label, danger)) in labels.iter().enumerate() {
        let focused = focus == Some(i);
        let role = match (enabled(i), focused, danger) {
            (false, ..) => Role::Muted,
            (true, true, true) => Role::ButtonDanger,
            (true, true, false) => Role::ButtonFocus,
            (true, false, _) => Role::Button,
        };
        let text = if focused { format!("[▸{label} ]") } else { format!("[ {label} ]") };
        x += canvas.text(x, area.y, area.right().saturating_sub(x), &text, role) + 2;
    }
}
