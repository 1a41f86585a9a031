//! The whole screen from a view. Pure: computes no figure, reads no clock.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::action::Action;
use super::layout::{LEAST, Layout};
use super::paint::{Canvas, Part, to_ascii, wrap};
use super::panes::{Pane, heat, latency};
use super::table::{self, Context, Listing, Row, TableState, age, grouped};
use super::theme::Role;
use super::view::View;
use super::{dialogs, footer, header};
use crate::config::limits;
use crate::domain::FeedHealth;
use crate::network::LatencySource;

/// Draw everything; gives where the cursor stands, if anywhere.
pub fn draw(buffer: &mut Buffer, view: &View) -> Option<Position> {
    let screen = *buffer.area();
    let mut canvas = Canvas { buffer, theme: &view.theme };
    canvas.fill(screen, Role::Text);
    let layout = Layout::of(view);
    let mut cursor = None;
    if layout.too_small {
        too_small(&mut canvas, screen, view);
    } else {
        header::draw(&mut canvas, &layout, view);
        for (pane, area) in &layout.panes {
            draw_pane(&mut canvas, *area, *pane, view);
        }
        cursor = footer::draw(&mut canvas, layout.footer, view);
        if !view.layers.is_empty() {
            cursor = dialogs::draw(&mut canvas, screen, view).or(cursor);
        }
    }
    if view.session.ascii {
        to_ascii(buffer);
    }
    cursor
}

fn too_small(canvas: &mut Canvas<'_>, screen: Rect, view: &View) {
    let (w, h) = (screen.width, screen.height);
    let text = format!(
        "The terminal has {w}x{h}; gpudeck needs {}x{}. {} quits, and all else waits until there is more room.",
        LEAST.0,
        LEAST.1,
        view.keymap.first_key(Action::Quit)
    );
    for (i, line) in wrap(&text, w).into_iter().take(usize::from(h)).enumerate() {
        canvas.text(screen.x, screen.y + i as u16, w, &line, Role::Text);
    }
}

/// The key that leads to a pane.
pub(crate) fn pane_key(view: &View, pane: Pane) -> String {
    view.keymap.first_key(match pane {
        Pane::Capacity => Action::FocusCapacity,
        Pane::Prices => Action::FocusPrices,
        Pane::Latency => Action::FocusLatency,
        Pane::Jobs => Action::FocusJobs,
        Pane::Events => Action::FocusEvents,
    })
}

/// How many rows are shown, of how many.
pub(crate) fn count(view: &View, pane: Pane) -> String {
    let of = |shown: usize, all: usize| {
        if shown == all { grouped(all) } else { format!("{} of {}", grouped(shown), grouped(all)) }
    };
    let board = &view.board;
    match pane {
        Pane::Capacity => of(board.capacity.len(), board.capacity.rows.len()),
        Pane::Prices => of(board.prices.len(), board.prices.rows.len()),
        Pane::Jobs => of(board.jobs.len(), board.jobs.rows.len()),
        Pane::Events => of(board.events.len(), board.events.rows.len()),
        Pane::Latency => format!("{}×{}", board.matrix.from.len(), board.matrix.to.len()),
    }
}

fn status(view: &View, pane: Pane) -> Vec<Part<'static>> {
    let mut parts: Vec<Part<'static>> = vec![(" ".into(), Role::Muted), (count(view, pane).into(), Role::Text)];
    if let Some(state) = view.table(pane) {
        if !state.filter_text.is_empty() {
            let role = if state.filter_error.is_some() { Role::Failed } else { Role::Match };
            parts.push((format!("  /{}", super::paint::fit(&state.filter_text, 24)).into(), role));
        }
        if state.selected == table::Selected::Lost {
            parts.push(("  selection gone".into(), Role::Waiting));
        }
    }
    match pane {
        Pane::Capacity => {
            let feeds = view.state.market.feeds();
            let stale = feeds
                .iter()
                .filter(|f| {
                    matches!(
                        f.health,
                        FeedHealth::Stale | FeedHealth::Down | FeedHealth::AuthNeeded | FeedHealth::Quarantined
                    )
                })
                .count();
            if stale > 0 {
                parts.push((
                    format!("  {stale} {} stale", if stale == 1 { "source" } else { "sources" }).into(),
                    Role::Limited,
                ));
            }
            if !view.board.capacity.rows.is_empty() {
                parts.push((format!("  {} ago", age(view.now(), view.board.state.market.at())).into(), Role::Muted));
            }
        }
        Pane::Latency => {
            let sources = |source| view.board.matrix.cells.values().any(|l| l.source == source);
            for source in [LatencySource::Measured, LatencySource::Published, LatencySource::Estimated] {
                if sources(source) {
                    let (mark, word, role) = latency::source_mark(source);
                    let word = word.split(' ').next().unwrap_or(word);
                    parts.push((format!("  {mark}").into(), role));
                    let when = latency::newest(&view.board.matrix).filter(|_| source == LatencySource::Measured);
                    let when = when.map_or_else(String::new, |at| format!(" {} ago", age(view.now(), at)));
                    parts.push((format!(" {word}{when}").into(), Role::Muted));
                }
            }
        }
        Pane::Jobs => {
            let rate = view.state.usd_per_hour;
            parts.push((format!("  {rate}").into(), Role::Money));
        }
        _ => {}
    }
    parts.push((" ".into(), Role::Muted));
    parts
}

fn draw_pane(canvas: &mut Canvas<'_>, area: Rect, pane: Pane, view: &View) {
    let focused = pane == view.focus;
    let border = if focused { Role::BorderFocus } else { Role::Border };
    let mut title: Vec<Part<'static>> = vec![
        (" ".into(), border),
        (pane_key(view, pane).into(), Role::Key),
        (format!(" {}", pane.title()).into(), if focused { Role::Title } else { Role::Text }),
    ];
    match pane {
        Pane::Capacity if view.heat => title.push((" map: cheapest $/GPU-h".into(), Role::Muted)),
        Pane::Latency => title.push((" p50 ms".into(), Role::Muted)),
        Pane::Prices => title.push((" $/GPU-h".into(), Role::Muted)),
        _ => {}
    }
    title.push((" ".into(), border));
    let inner = canvas.boxed(area, border, &title, &status(view, pane));
    let context = Context { now: view.now(), times: view.times, state: &view.board.state };
    let board = &view.board;
    match pane {
        Pane::Capacity if view.heat => {
            if board.heat.gpus.is_empty() {
                empty(canvas, inner, view, pane);
            } else {
                heat::draw(
                    canvas,
                    inner,
                    &board.heat,
                    super::update::heat_position(view),
                    view.heat_from,
                    view.now(),
                    focused,
                );
            }
        }
        Pane::Capacity => table_pane(canvas, inner, &board.capacity, &view.capacity, &context, focused, view, pane),
        Pane::Prices => table_pane(canvas, inner, &board.prices, &view.prices, &context, focused, view, pane),
        Pane::Jobs => table_pane(canvas, inner, &board.jobs, &view.jobs, &context, focused, view, pane),
        Pane::Events => table_pane(canvas, inner, &board.events, &view.events, &context, focused, view, pane),
        Pane::Latency => {
            if board.matrix.to.is_empty() {
                empty(canvas, inner, view, pane);
            } else {
                latency::draw(
                    canvas,
                    inner,
                    &board.matrix,
                    super::update::matrix_position(view),
                    view.matrix_from,
                    view.now(),
                    focused,
                );
            }
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "one call site a pane; a struct would only rename the arguments")]
fn table_pane<R: Row>(
    canvas: &mut Canvas<'_>,
    area: Rect,
    listing: &Listing<R>,
    state: &TableState,
    context: &Context<'_>,
    focused: bool,
    view: &View,
    pane: Pane,
) {
    if listing.len() == 0 {
        empty(canvas, area, view, pane);
    } else {
        table::draw(canvas, area, listing, state, context, focused);
    }
}

/// Why there is nothing to see, and what to do.
fn empty(canvas: &mut Canvas<'_>, area: Rect, view: &View, pane: Pane) {
    let mut lines: Vec<(String, Role)> = Vec::new();
    let filtered = view.table(pane).is_some_and(|t| !t.filter_text.is_empty());
    let rows = match pane {
        Pane::Capacity => view.board.capacity.rows.len(),
        Pane::Prices => view.board.prices.rows.len(),
        Pane::Jobs => view.board.jobs.rows.len(),
        Pane::Events => view.board.events.rows.len(),
        Pane::Latency => 0,
    };
    if filtered && rows > 0 {
        let text = view.table(pane).map_or("", |t| t.filter_text.as_str());
        lines.push((
            format!("Nothing matches '{text}'; {} clears the filter.", view.keymap.first_key(Action::Back)),
            Role::Text,
        ));
    } else if !view.board.made {
        lines.push(("One moment …".to_owned(), Role::Muted));
    } else if pane == Pane::Jobs {
        lines.push(("No jobs.".to_owned(), Role::Text));
        if !view.session.read_only {
            lines.push((format!("{} launches one.", view.keymap.first_key(Action::Launch)), Role::Muted));
        }
    } else if pane == Pane::Events {
        lines.push(("Nothing has happened yet.".to_owned(), Role::Text));
    } else {
        let feeds = view.state.market.feeds();
        let loading: Vec<&str> =
            feeds.iter().filter(|f| f.health == FeedHealth::Loading).map(|f| f.provider.as_str()).collect();
        if !loading.is_empty() {
            let waited = view.at;
            if waited >= limits::LOADING_DEADLINE {
                lines
                    .push((format!("No answer from {} for {} s.", loading.join(", "), waited.as_secs()), Role::Failed));
                lines.push((
                    format!(
                        "It is still being asked; {} asks again, `gpudeck doctor` tells more.",
                        view.keymap.first_key(Action::Refresh)
                    ),
                    Role::Muted,
                ));
            } else {
                lines.push((format!("Asking {} …", loading.join(", ")), Role::Muted));
            }
        }
        for feed in feeds.iter().filter(|f| !matches!(f.health, FeedHealth::Loading | FeedHealth::Live)) {
            let detail = if feed.detail.is_empty() { feed.health.label() } else { &feed.detail };
            lines.push((format!("{}: {detail}", feed.provider), Role::Failed));
        }
        for absent in view.state.absent.iter() {
            lines.push((format!("{}: {}. {}", absent.provider, absent.reason, absent.remedy), Role::Muted));
        }
        if lines.is_empty() {
            lines.push(("No offers.".to_owned(), Role::Text));
        }
    }
    let mut y = area.y + area.height.saturating_sub(lines.len() as u16 + 1) / 3;
    for (text, role) in lines {
        for line in wrap(&text, area.width.saturating_sub(4)) {
            if y >= area.bottom() {
                return;
            }
            canvas.text(area.x + 2, y, area.width.saturating_sub(4), &line, role);
            y += 1;
        }
    }
}
