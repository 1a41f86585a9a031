//! Moving about: rows, pages, panes, the cursors of the matrix and the map.

use crate::tui::action::Action;
use crate::tui::layout::Layout;
use crate::tui::panes::capacity::CapacityRow;
use crate::tui::panes::events::EventRow;
use crate::tui::panes::jobs::JobRow;
use crate::tui::panes::prices::PriceRow;
use crate::tui::panes::{Pane, heat, latency};
use crate::tui::table::Row;
use crate::tui::view::View;

/// Find every selection again after the tables changed.
pub(super) fn follow(view: &mut View) {
    let layout = Layout::of(view);
    let board = view.board.clone();
    view.capacity.follow(&board.capacity, board.queries.capacity.version, layout.rows(Pane::Capacity));
    view.prices.follow(&board.prices, board.queries.prices.version, layout.rows(Pane::Prices));
    view.jobs.follow(&board.jobs, board.queries.jobs.version, layout.rows(Pane::Jobs));
    view.events.follow(&board.events, board.queries.events.version, layout.rows(Pane::Events));
    let m = matrix_position(view);
    pin_matrix(view, m);
    let h = heat_position(view);
    pin_heat(view, h);
}

/// Keep every cursor on the screen after its size changed.
pub(super) fn settle(view: &mut View) {
    let layout = Layout::of(view);
    let board = view.board.clone();
    view.capacity.scroll(board.capacity.len(), layout.rows(Pane::Capacity));
    view.prices.scroll(board.prices.len(), layout.rows(Pane::Prices));
    view.jobs.scroll(board.jobs.len(), layout.rows(Pane::Jobs));
    view.events.scroll(board.events.len(), layout.rows(Pane::Events));
    let m = matrix_position(view);
    pin_matrix(view, m);
    let h = heat_position(view);
    pin_heat(view, h);
}

/// Where the matrix's cursor is now; its places are remembered, not its numbers.
pub(crate) fn matrix_position(view: &View) -> (usize, usize) {
    let matrix = &view.board.matrix;
    let Some((a, b)) = &view.matrix_at else { return (0, usize::from(matrix.to.len() > 1)) };
    let find = |list: &[crate::domain::Location], l| list.iter().position(|x| x == l).unwrap_or(0);
    (find(&matrix.from, a), find(&matrix.to, b))
}

/// Where the map's cursor is now.
pub(crate) fn heat_position(view: &View) -> (usize, usize) {
    let map = &view.board.heat;
    let Some((gpu, region)) = &view.heat_at else { return (0, 0) };
    (map.gpus.iter().position(|g| g == gpu).unwrap_or(0), map.regions.iter().position(|r| r == region).unwrap_or(0))
}

fn scrolled(from: usize, at: usize, room: usize) -> usize {
    let room = room.max(1);
    if at < from {
        at
    } else if at >= from + room {
        at + 1 - room
    } else {
        from
    }
}

fn pin_matrix(view: &mut View, at: (usize, usize)) {
    let matrix = view.board.matrix.clone();
    let at = (at.0.min(matrix.from.len().saturating_sub(1)), at.1.min(matrix.to.len().saturating_sub(1)));
    if let (Some(a), Some(b)) = (matrix.from.get(at.0), matrix.to.get(at.1)) {
        // Unmoved, it stays where it starts, whatever comes in.
        view.matrix_at = view.matrix_at.as_ref().map(|_| (a.clone(), b.clone()));
    }
    let layout = Layout::of(view);
    let columns = latency::columns_in(layout.width(Pane::Latency));
    let rows = usize::from(layout.rows(Pane::Latency).saturating_sub(2)).max(1);
    view.matrix_from = (scrolled(view.matrix_from.0, at.0, rows), scrolled(view.matrix_from.1, at.1, columns));
}

fn pin_heat(view: &mut View, at: (usize, usize)) {
    let map = view.board.heat.clone();
    let at = (at.0.min(map.gpus.len().saturating_sub(1)), at.1.min(map.regions.len().saturating_sub(1)));
    if let (Some(g), Some(r)) = (map.gpus.get(at.0), map.regions.get(at.1)) {
        view.heat_at = view.heat_at.as_ref().map(|_| (g.clone(), r.clone()));
    }
    let layout = Layout::of(view);
    let columns = heat::columns_in(layout.width(Pane::Capacity));
    let rows = usize::from(layout.rows(Pane::Capacity).saturating_sub(1)).max(1);
    view.heat_from = (scrolled(view.heat_from.0, at.0, rows), scrolled(view.heat_from.1, at.1, columns));
}

fn step(at: usize, action: Action, page: usize, last: usize) -> usize {
    match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => (at + 1).min(last),
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => (at + page).min(last),
        Action::Top => 0,
        Action::Bottom => last,
        _ => at.min(last),
    }
}

/// Move in the focused pane.
pub(super) fn go(view: &mut View, action: Action) {
    let layout = Layout::of(view);
    let height = layout.rows(view.focus);
    let page = usize::from(height.saturating_sub(1)).max(1);
    let board = view.board.clone();
    match view.focus {
        Pane::Capacity if view.heat => {
            let (g, r) = heat_position(view);
            let last = (board.heat.gpus.len().saturating_sub(1), board.heat.regions.len().saturating_sub(1));
            let to = match action {
                Action::Left => (g, r.saturating_sub(1)),
                Action::Right | Action::RightInMatrix => (g, (r + 1).min(last.1)),
                other => (step(g, other, page, last.0), r),
            };
            if let (Some(gpu), Some(region)) = (board.heat.gpus.get(to.0), board.heat.regions.get(to.1)) {
                view.heat_at = Some((gpu.clone(), region.clone()));
            }
            pin_heat(view, to);
        }
        Pane::Latency => {
            let (i, j) = matrix_position(view);
            let last = (board.matrix.from.len().saturating_sub(1), board.matrix.to.len().saturating_sub(1));
            let to = match action {
                Action::Left => (i, j.saturating_sub(1)),
                Action::Right | Action::RightInMatrix => (i, (j + 1).min(last.1)),
                other => (step(i, other, page, last.0), j),
            };
            if let (Some(a), Some(b)) = (board.matrix.from.get(to.0), board.matrix.to.get(to.1)) {
                view.matrix_at = Some((a.clone(), b.clone()));
            }
            pin_matrix(view, to);
        }
        Pane::Capacity => view.capacity.go(
            &board.capacity,
            step(view.capacity.cursor, action, page, board.capacity.len().saturating_sub(1)),
            height,
        ),
        Pane::Prices => view.prices.go(
            &board.prices,
            step(view.prices.cursor, action, page, board.prices.len().saturating_sub(1)),
            height,
        ),
        Pane::Jobs => {
            view.jobs.go(&board.jobs, step(view.jobs.cursor, action, page, board.jobs.len().saturating_sub(1)), height);
        }
        Pane::Events => view.events.go(
            &board.events,
            step(view.events.cursor, action, page, board.events.len().saturating_sub(1)),
            height,
        ),
    }
}

/// Go to a pane; the events are a step aside that Esc takes back.
pub(super) fn focus(view: &mut View, pane: Pane) {
    if pane == Pane::Events && view.focus != Pane::Events {
        view.focus_before = view.focus;
    }
    view.focus = pane;
    settle(view);
}

pub(super) fn next_pane(view: &mut View, forward: bool) {
    let all = Pane::ALL;
    let at = all.iter().position(|p| *p == view.focus).unwrap_or(0);
    let to = if forward { (at + 1) % all.len() } else { (at + all.len() - 1) % all.len() };
    if let Some(pane) = all.get(to) {
        focus(view, *pane);
    }
}

/// Names of the columns of the focused table.
pub(crate) fn sort_names(view: &View) -> Vec<String> {
    fn of<R: Row>() -> Vec<String> {
        R::columns().iter().filter(|c| c.key.is_some()).map(|c| c.name.to_owned()).collect()
    }
    match view.focus {
        Pane::Capacity => of::<CapacityRow>(),
        Pane::Prices => of::<PriceRow>(),
        Pane::Jobs => of::<JobRow>(),
        Pane::Events => of::<EventRow>(),
        Pane::Latency => Vec::new(),
    }
}

pub(super) fn next_sort(view: &mut View) {
    match view.focus {
        Pane::Capacity => view.capacity.next_sort::<CapacityRow>(),
        Pane::Prices => view.prices.next_sort::<PriceRow>(),
        Pane::Jobs => view.jobs.next_sort::<JobRow>(),
        Pane::Events => view.events.next_sort::<EventRow>(),
        Pane::Latency => return view.refuse("the matrix is not sorted"),
    }
    ask(view);
}

pub(super) fn sort_by(view: &mut View, name: &str) {
    fn find<R: Row>(name: &str) -> Option<usize> {
        R::columns().iter().position(|c| c.name == name && c.key.is_some())
    }
    let at = match view.focus {
        Pane::Capacity => find::<CapacityRow>(name),
        Pane::Prices => find::<PriceRow>(name),
        Pane::Jobs => find::<JobRow>(name),
        Pane::Events => find::<EventRow>(name),
        Pane::Latency => None,
    };
    let names = sort_names(view).join(", ");
    match (at, view.table_mut(view.focus)) {
        (Some(at), Some(table)) => {
            table.query.sort = at;
            table.query.version += 1;
            ask(view);
        }
        _ => view.refuse(format!("no column '{name}' here; there are {names}")),
    }
}

pub(super) fn reverse(view: &mut View) {
    if let Some(table) = view.table_mut(view.focus) {
        table.reverse_sort();
        ask(view);
    }
}

pub(super) fn filter(view: &mut View, text: &str) {
    match view.focus {
        Pane::Capacity => view.capacity.set_filter::<CapacityRow>(text),
        Pane::Prices => view.prices.set_filter::<PriceRow>(text),
        Pane::Jobs => view.jobs.set_filter::<JobRow>(text),
        Pane::Events => view.events.set_filter::<EventRow>(text),
        Pane::Latency => return,
    }
    ask(view);
}

/// The tables are wanted anew, at once.
pub(super) fn ask(view: &mut View) {
    view.board_wanted = true;
    view.board_urgent = true;
}
