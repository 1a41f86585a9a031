//! The first line: what session this is, how the sources are doing, what is held, what it costs, what waits, what time it is.

use ratatui::layout::Rect;

use super::layout::Layout;
use super::paint::{Canvas, Part, parts_width};
use super::panes::Pane;
use super::table::grouped;
use super::theme::Role;
use super::view::View;
use crate::domain::FeedHealth;

const fn feed_role(health: FeedHealth) -> Role {
    match health {
        FeedHealth::Live => Role::Available,
        FeedHealth::Loading | FeedHealth::Published | FeedHealth::NoCredentials => Role::Muted,
        FeedHealth::Partial | FeedHealth::Stale | FeedHealth::Quarantined => Role::Limited,
        FeedHealth::AuthNeeded | FeedHealth::Down => Role::None,
    }
}

/// Each source with its mark; where that does not fit, the well ones counted and the others named; at last only counted.
pub(crate) fn feeds(view: &View, room: u16) -> Vec<Part<'static>> {
    let mut all: Vec<(String, FeedHealth)> =
        view.state.market.feeds().iter().map(|f| (f.provider.to_string(), f.health)).collect();
    for absent in view.state.absent.iter() {
        if !all.iter().any(|(name, _)| *name == absent.provider.as_str()) {
            all.push((absent.provider.to_string(), FeedHealth::NoCredentials));
        }
    }
    if all.is_empty() {
        return vec![("no sources".into(), Role::Muted)];
    }
    let named = |which: &dyn Fn(FeedHealth) -> bool| -> Vec<Part<'static>> {
        let mut parts: Vec<Part<'static>> = Vec::new();
        for (name, health) in all.iter().filter(|(_, h)| which(*h)) {
            if !parts.is_empty() {
                parts.push((" ".into(), Role::Text));
            }
            parts.push((name.clone().into(), if *health == FeedHealth::Live { Role::Text } else { Role::Muted }));
            parts.push((health.glyph().to_string().into(), feed_role(*health)));
        }
        parts
    };
    let full = named(&|_| true);
    if parts_width(&full) <= room {
        return full;
    }
    // Then what needs a look by name, and the rest counted by its mark.
    let needs_look = |h: FeedHealth| !matches!(h, FeedHealth::Live | FeedHealth::Published | FeedHealth::NoCredentials);
    let mut some: Vec<Part<'static>> = Vec::new();
    for health in [FeedHealth::Live, FeedHealth::Published, FeedHealth::NoCredentials] {
        let n = all.iter().filter(|(_, h)| *h == health).count();
        if n > 0 {
            some.push((n.to_string().into(), Role::Text));
            some.push((format!("{} ", health.glyph()).into(), feed_role(health)));
        }
    }
    some.extend(named(&needs_look));
    if parts_width(&some) <= room {
        return some;
    }
    let mut counts: Vec<Part<'static>> = Vec::new();
    for health in [
        FeedHealth::Live,
        FeedHealth::Partial,
        FeedHealth::Stale,
        FeedHealth::Quarantined,
        FeedHealth::Loading,
        FeedHealth::AuthNeeded,
        FeedHealth::Down,
        FeedHealth::NoCredentials,
        FeedHealth::Published,
    ] {
        let n = all.iter().filter(|(_, h)| *h == health).count();
        if n > 0 {
            counts.push((format!("{n}").into(), Role::Text));
            counts.push((format!("{} ", health.glyph()).into(), feed_role(health)));
        }
    }
    counts
}

/// What session this is; never dropped.
fn mode(view: &View) -> Vec<Part<'static>> {
    let session = &view.session;
    let mut parts: Vec<Part<'static>> = Vec::new();
    if session.demo {
        let speed =
            if (view.state.speed - 1.0).abs() > 1e-9 { format!(" ×{}", view.state.speed) } else { String::new() };
        parts.push((format!(" DEMO{speed} ").into(), Role::ModeDemo));
    } else if session.replay {
        parts.push((" REPLAY ".into(), Role::ModeDemo));
    } else {
        parts.push((" LIVE ".into(), Role::ModeLive));
    }
    if session.read_only || session.replay {
        parts.push((" READ-ONLY ".into(), Role::ModeReadOnly));
    }
    parts
}

/// Blanks between what stands in the header.
const GAP: u16 = 2;

/// Whether something still fits; what must stay always does.
fn keep(spare: &mut u16, parts: &[Part<'_>], must: bool) -> bool {
    let wide = parts_width(parts) + GAP;
    if parts.is_empty() {
        return false;
    }
    if !must {
        if wide > *spare {
            return false;
        }
        *spare -= wide;
    }
    true
}

pub(crate) fn draw(canvas: &mut Canvas<'_>, layout: &Layout, view: &View) {
    let area = layout.header;
    let clock: Vec<Part<'static>> = vec![(view.times.clock(view.now(), area.width >= 120).into(), Role::Title)];
    let open = view.state.alerts.iter().filter(|a| a.acknowledged_by.is_none()).count();
    let alerts: Vec<Part<'static>> = match open {
        0 => vec![("no alerts".into(), Role::Muted)],
        1 => vec![(" ▲ 1 alert ".into(), Role::Alert)],
        n => vec![(format!(" ▲ {n} alerts ").into(), Role::Alert)],
    };
    let refreshing: Vec<Part<'static>> =
        if view.refreshing.is_some() { vec![("asking …".into(), Role::Moving)] } else { Vec::new() };
    // From the left: what must stay comes first, and each goes in only where all that must stay still fits.
    let brand: Vec<Part<'static>> = vec![("gpudeck".into(), Role::Brand)];
    let actor: Vec<Part<'static>> =
        vec![(format!("{}@{}", view.session.actor.user, view.session.actor.host).into(), Role::Muted)];
    let gpus: Vec<Part<'static>> =
        vec![(grouped(view.state.gpus as usize).into(), Role::Title), (" GPU".into(), Role::Muted)];
    let money: Vec<Part<'static>> = vec![(view.state.usd_per_hour.to_string().into(), Role::Title)];
    let second_line = area.height > 1;
    let beside_tabs = layout.tabs.is_some();
    let mut left: Vec<(Vec<Part<'static>>, bool)> = vec![(brand, false), (mode(view), true), (actor, false)];
    let right = [(gpus, false), (money, true), (alerts, open > 0), (refreshing, false), (clock, true)];
    let gap = GAP;
    let must: u16 = left.iter().chain(&right).filter(|(_, must)| *must).map(|(p, _)| parts_width(p) + gap).sum();
    let mut spare = area.width.saturating_sub(must + 1);
    let right: Vec<Vec<Part<'static>>> =
        right.into_iter().filter(|(p, m)| keep(&mut spare, p, *m)).map(|(p, _)| p).collect();
    left.retain(|(p, m)| keep(&mut spare, p, *m));
    let feeds_here = !second_line && !beside_tabs || area.width >= 160;
    if feeds_here {
        let mut shown: Vec<Part<'static>> = vec![("feeds ".into(), Role::Muted)];
        shown.extend(feeds(view, spare.saturating_sub(8 + GAP)));
        if keep(&mut spare, &shown, false) {
            left.push((shown, false));
        }
    }
    let mut x = area.x + 1;
    for (parts, _) in &left {
        x += canvas.parts(x, area.y, area.right().saturating_sub(x), parts) + gap;
    }
    let wide: u16 = right.iter().map(|p| parts_width(p) + gap).sum::<u16>().saturating_sub(gap);
    let mut x = area.right().saturating_sub(wide + 1).max(x.saturating_sub(gap));
    for parts in &right {
        x += canvas.parts(x, area.y, area.right().saturating_sub(x), parts) + gap;
    }
    if second_line {
        let y = area.y + 1;
        let n = canvas.text(area.x + 1, y, 6, "feeds ", Role::Muted);
        let parts = feeds(view, area.width.saturating_sub(n + 2));
        canvas.parts(area.x + 1 + n, y, area.width.saturating_sub(n + 2), &parts);
    }
    if let Some(tabs) = layout.tabs {
        draw_tabs(canvas, tabs, view, !feeds_here);
    }
}

/// The panes' names, the shown one marked; the sources beside them.
fn draw_tabs(canvas: &mut Canvas<'_>, area: Rect, view: &View, with_feeds: bool) {
    let mut x = area.x + 1;
    for pane in Pane::ALL {
        let key = super::draw::pane_key(view, pane);
        let here = pane == view.focus;
        let role = if here { Role::Selection } else { Role::Muted };
        let text = if here { format!("▸{key} {} ", pane.title()) } else { format!(" {key} {} ", pane.title()) };
        x += canvas.text(x, area.y, area.right().saturating_sub(x), &text, role);
    }
    let room = area.right().saturating_sub(x + 2);
    if with_feeds && room > 4 {
        let parts = feeds(view, room);
        canvas.parts_right(x + 1, area.y, room, &parts);
    }
}
