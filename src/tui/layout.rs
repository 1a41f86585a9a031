//! Where everything stands, from the size and what is looked at. The same for drawing and for paging.

use ratatui::layout::Rect;

use super::panes::Pane;
use super::view::View;

/// The smallest screen that is drawn on.
pub(crate) const LEAST: (u16, u16) = (60, 15);

/// Where things are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) too_small: bool,
    pub(crate) header: Rect,
    /// The line with the panes' names, where only one is shown.
    pub(crate) tabs: Option<Rect>,
    pub(crate) panes: Vec<(Pane, Rect)>,
    pub(crate) footer: Rect,
}

impl Layout {
    pub(crate) fn of(view: &View) -> Self {
        let (width, height) = view.size;
        if width < LEAST.0 || height < LEAST.1 {
            return Self { too_small: true, ..Self::default() };
        }
        let footer = Rect { x: 0, y: height - 1, width, height: 1 };
        let grid = width >= 100 && height >= 28 && !view.zoom && view.focus != Pane::Events;
        // Beside a line of tabs there is room for the feeds; without one a narrow header takes a second line for them.
        let header = Rect { x: 0, y: 0, width, height: if grid && width < 160 { 2 } else { 1 } };
        let mut layout = Self { too_small: false, header, tabs: None, panes: Vec::new(), footer };
        if grid {
            let top = header.height;
            let room = height - top - 1;
            let upper = room * 54 / 100;
            // The left column has the wider rows.
            let left = width * if width < 160 { 56 } else { 53 } / 100;
            let at = |x, y, w, h| Rect { x, y, width: w, height: h };
            layout.panes = vec![
                (Pane::Capacity, at(0, top, left, upper)),
                (Pane::Prices, at(left, top, width - left, upper)),
                (Pane::Latency, at(0, top + upper, left, room - upper)),
                (Pane::Jobs, at(left, top + upper, width - left, room - upper)),
            ];
        } else {
            let tabs = Rect { x: 0, y: header.height, width, height: 1 };
            let y = header.height + 1;
            layout.tabs = Some(tabs);
            layout.panes = vec![(view.focus, Rect { x: 0, y, width, height: height - y - 1 })];
        }
        layout
    }

    /// Rows of a pane's table: without its border and heading.
    pub(crate) fn rows(&self, pane: Pane) -> u16 {
        let height = self.panes.iter().find(|(p, _)| *p == pane).map_or(0, |(_, r)| r.height);
        height.saturating_sub(3).max(1)
    }

    pub(crate) fn width(&self, pane: Pane) -> u16 {
        self.panes.iter().find(|(p, _)| *p == pane).map_or(0, |(_, r)| r.width.saturating_sub(2))
    }
}
