//! Latency: a matrix from the regions in use to the regions that are candidates. Each figure carries its source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ratatui::layout::Rect;

use super::heat::short_region;
use crate::config::limits;
use crate::domain::{Availability, Location};
use crate::engine::State;
use crate::network::{Latency, LatencySource};
use crate::tui::paint::{Canvas, Part, width};
use crate::tui::table::{age, scrollbar};
use crate::tui::theme::Role;

/// The matrix: the regions in use first, then the candidates, both ways.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matrix {
    pub(crate) from: Vec<Location>,
    pub(crate) to: Vec<Location>,
    pub(crate) cells: BTreeMap<(usize, usize), Latency>,
    /// How many of the rows are in use.
    pub(crate) in_use: usize,
}

const CELL: u16 = 8;
const LABEL: u16 = 20;

/// The regions in use, and the candidates with most that can be had.
pub(crate) fn build(state: &State) -> Matrix {
    let mut used: BTreeSet<Location> = BTreeSet::new();
    for job in state.jobs.iter().filter(|j| !j.state.is_final()) {
        if let (Some(p), Some(r)) = (&job.provider, &job.region) {
            used.insert(Location::region(p.clone(), r.clone()));
        }
        if let Some(data) = &job.spec.data.location {
            used.insert(Location { zone: None, ..data.clone() });
        }
        used.extend(job.spec.constraints.latency.iter().map(|l| Location { zone: None, ..l.to.clone() }));
    }
    let mut candidates: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for offer in state.market.iter() {
        let entry = candidates.entry((offer.key.provider.as_str(), offer.key.region.as_str())).or_default();
        entry.0 += usize::from(matches!(offer.availability, Availability::Available | Availability::Limited));
        entry.1 += 1;
    }
    let mut ranked: Vec<((&str, &str), (usize, usize))> = candidates.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut to: Vec<Location> = used.iter().cloned().collect();
    let in_use = to.len();
    for ((provider, region), _) in ranked {
        let location = Location::region(provider, region);
        if to.contains(&location) {
            continue;
        }
        if to.len() >= limits::MATRIX {
            break;
        }
        to.push(location);
    }
    // A candidate of which nothing is known to any place would be a column of dashes.
    let known = |place: &Location, others: &[Location]| {
        others.iter().any(|o| o != place && state.network.latency(o, place).is_some())
    };
    let others = to.clone();
    let mut index = 0;
    to.retain(|place| {
        index += 1;
        index <= in_use || known(place, &others)
    });
    let from = to.clone();
    let mut cells = BTreeMap::new();
    for (i, a) in from.iter().enumerate() {
        for (j, b) in to.iter().enumerate() {
            if a != b
                && let Some(latency) = state.network.latency(a, b)
            {
                cells.insert((i, j), latency);
            }
        }
    }
    Matrix { from, to, cells, in_use }
}

/// A source's mark and role.
pub(crate) const fn source_mark(source: LatencySource) -> (&'static str, &'static str, Role) {
    match source {
        LatencySource::Measured => ("m", "measured", Role::Measured),
        LatencySource::Published => ("p", "published", Role::Published),
        LatencySource::Estimated => ("~", "estimated from the distance", Role::Estimated),
    }
}

fn milliseconds(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// How many columns fit.
pub(crate) fn columns_in(width: u16) -> usize {
    usize::from(width.saturating_sub(LABEL + 1) / CELL)
}

/// All of one figure in a sentence.
pub(crate) fn sentence(latency: &Latency, now: DateTime<Utc>) -> Vec<Part<'static>> {
    let (_, word, role) = source_mark(latency.source);
    let known =
        |name: &str, v: Option<f64>, unit: &str| v.map_or_else(String::new, |v| format!("{name} {v:.1}{unit}  "));
    let figures = [
        known("p99", latency.p99_ms, ""),
        known("jitter", latency.jitter_ms, ""),
        known("loss", latency.loss_percent, " %"),
    ];
    let when = match latency.observed_at {
        Some(at) if now - at < chrono::Duration::days(2) => format!(" {} ago", age(now, at)),
        Some(at) => format!(" {}", at.format("%Y-%m-%d")),
        None => String::new(),
    };
    vec![
        (format!("p50 {:.1} ms", latency.p50_ms).into(), Role::Title),
        (format!("  {}", figures.concat()).into(), Role::Muted),
        (format!("{word}{when}").into(), role),
    ]
}

/// Draw from a row and a column on, with the cursor on one cell and a line about it below.
pub(crate) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    matrix: &Arc<Matrix>,
    at: (usize, usize),
    from: (usize, usize),
    now: DateTime<Utc>,
    focused: bool,
) {
    if area.height < 4 || area.width < LABEL + CELL {
        return;
    }
    let columns = columns_in(area.width);
    let lines = usize::from(area.height - 3);
    for (j, to) in matrix.to.iter().enumerate().skip(from.1).take(columns) {
        let x = area.x + LABEL + 1 + (j - from.1) as u16 * CELL;
        let role = if j == at.1 { Role::Title } else { Role::Column };
        canvas.parts_right(x, area.y, CELL - 1, &[(to.provider.as_str().into(), Role::Muted)]);
        canvas.parts_right(x, area.y + 1, CELL - 1, &[(short_region(to.region.as_str()).into(), role)]);
    }
    for (i, place) in matrix.from.iter().enumerate().skip(from.0).take(lines) {
        let y = area.y + 2 + (i - from.0) as u16;
        let here = i == at.0;
        canvas.text(area.x, y, 1, if here { "▸" } else { " " }, Role::Key);
        let used = i < matrix.in_use;
        let role = if here {
            Role::Title
        } else if used {
            Role::Text
        } else {
            Role::Muted
        };
        let n = canvas.text(area.x + 1, y, 7, place.provider.as_str(), Role::Muted);
        canvas.text(area.x + 2 + n, y, LABEL - 2 - n, place.region.as_str(), role);
        for j in from.1..(from.1 + columns).min(matrix.to.len()) {
            let x = area.x + LABEL + 1 + (j - from.1) as u16 * CELL;
            match matrix.cells.get(&(i, j)) {
                Some(latency) => {
                    let (mark, _, source) = source_mark(latency.source);
                    let near = if latency.p50_ms < 20.0 {
                        Role::Cheaper
                    } else if latency.p50_ms < 100.0 {
                        Role::Text
                    } else {
                        Role::Muted
                    };
                    canvas.parts_right(
                        x,
                        y,
                        CELL - 1,
                        &[(milliseconds(latency.p50_ms).into(), near), (mark.into(), source)],
                    );
                }
                None if matrix.to.get(j) == Some(place) => {
                    canvas.parts_right(x, y, CELL - 1, &[("·".into(), Role::Border)]);
                }
                None => canvas.parts_right(x, y, CELL - 1, &[("–".into(), Role::Muted)]),
            }
            if (i, j) == at {
                let cell = Rect { x, y, width: CELL - 1, height: 1 };
                canvas.tint(cell, if focused { Role::Selection } else { Role::SelectionIdle });
            }
        }
    }
    let y = area.bottom() - 1;
    if let (Some(a), Some(b)) = (matrix.from.get(at.0), matrix.to.get(at.1)) {
        let mut parts: Vec<Part<'_>> = vec![(format!("{a} → {b}  ").into(), Role::Text)];
        match matrix.cells.get(&at) {
            Some(latency) => parts.extend(sentence(latency, now)),
            None if a == b => parts.push(("the same region".into(), Role::Muted)),
            None => parts.push(("not known: no figure and no coordinates".into(), Role::Muted)),
        }
        let wide: u16 = parts.iter().map(|(t, _)| width(t)).sum();
        if wide > area.width
            && let Some(first) = parts.first_mut()
        {
            *first = (
                format!("{}→{}  ", short_region(a.region.as_str()), short_region(b.region.as_str())).into(),
                Role::Text,
            );
        }
        canvas.parts(area.x + 1, y, area.width.saturating_sub(1), &parts);
    }
    let rows = Rect { height: area.height.saturating_sub(1), ..area };
    scrollbar(
        canvas,
        Rect { y: rows.y + 1, height: rows.height.saturating_sub(1), ..rows },
        from.0,
        lines,
        matrix.from.len(),
    );
}

/// What the newest measurement of the matrix is, for the pane's heading.
pub(crate) fn newest(matrix: &Matrix) -> Option<DateTime<Utc>> {
    matrix.cells.values().filter(|l| l.source == LatencySource::Measured).filter_map(|l| l.observed_at).max()
}
