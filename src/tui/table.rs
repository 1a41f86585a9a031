//! The one table of the cockpit: sortable, filterable, rows and selection by identity, only visible rows formatted.
//! What is shown in which order is computed by [`arrange`] off the draw path.

use std::cmp::Ordering;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ratatui::layout::Rect;

use super::filter::{Filter, Filterable, Scratch};
use super::paint::{Canvas, Part, parts_width, width};
use super::theme::Role;
use super::times::Times;
use crate::domain::{Accelerator, InstanceType, JobId, Location};
use crate::engine::State;

/// What makes a row the same row, wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RowId {
    /// A machine in a place, under all its purchase models.
    Place(Location, InstanceType),
    /// A GPU type.
    Gpu(Accelerator),
    /// A region of the matrix.
    Region(Location),
    Job(JobId),
    Event(i64),
}

impl RowId {
    /// As copied to the clipboard and named in messages.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Place(location, shape) => format!("{location} {shape}"),
            Self::Gpu(gpu) => gpu.to_string(),
            Self::Region(location) => location.to_string(),
            Self::Job(id) => id.to_string(),
            Self::Event(seq) => format!("event {seq}"),
        }
    }
}

/// What rows are sorted by. What is missing comes last, whichever way round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SortKey<'a> {
    Integer(i64),
    Float(f64),
    Text(&'a str),
    /// First by the number, largest first, then by the text.
    Ranked(i64, &'a str),
    Missing,
}

impl SortKey<'_> {
    fn compare(self, other: SortKey<'_>, reverse: bool) -> Ordering {
        let ordering = match (self, other) {
            (SortKey::Missing, SortKey::Missing) => return Ordering::Equal,
            (SortKey::Missing, _) => return Ordering::Greater,
            (_, SortKey::Missing) => return Ordering::Less,
            (SortKey::Integer(a), SortKey::Integer(b)) => a.cmp(&b),
            (SortKey::Float(a), SortKey::Float(b)) => a.total_cmp(&b),
            (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
            (SortKey::Ranked(m, a), SortKey::Ranked(n, b)) => n.cmp(&m).then(a.cmp(b)),
            _ => Ordering::Equal,
        };
        if reverse { ordering.reverse() } else { ordering }
    }
}

/// What a cell may need besides its row.
pub(crate) struct Context<'a> {
    /// Now, in the world's time.
    pub(crate) now: DateTime<Utc>,
    /// In whose time moments are shown.
    pub(crate) times: Times,
    /// The state that the rows come from.
    pub(crate) state: &'a State,
}

/// A column: how it is called, how wide it is, what stands in it, what it is sorted by.
pub(crate) struct Column<R: 'static> {
    /// In the configuration and messages.
    pub(crate) name: &'static str,
    /// Its heading.
    pub(crate) title: &'static str,
    /// Fewest columns that it is shown in.
    pub(crate) min: u16,
    /// Most columns that it is given.
    pub(crate) max: u16,
    /// 0 is never dropped; of the others the highest goes first.
    pub(crate) drop: u8,
    /// Figures stand right.
    pub(crate) right: bool,
    /// Money, ids, states and GPU types are never cut: the column grows with them, text up to its most.
    pub(crate) whole: bool,
    pub(crate) cell: for<'r> fn(&'r R, &Context<'_>) -> Vec<Part<'r>>,
    pub(crate) key: Option<for<'r> fn(&'r R) -> SortKey<'r>>,
}

/// A row of a table.
pub(crate) trait Row: Filterable + Send + Sync + Sized + 'static {
    fn id(&self) -> RowId;
    /// The same without making an id.
    fn is(&self, id: &RowId) -> bool;
    fn columns() -> &'static [Column<Self>];
    /// Too old to act on: shown dimmed.
    fn stale(&self) -> bool {
        false
    }
}

/// Rows and the order in which those that pass the filter are shown.
pub(crate) struct Listing<R> {
    pub(crate) rows: Arc<[R]>,
    pub(crate) order: Arc<[u32]>,
}

impl<R> Clone for Listing<R> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), order: self.order.clone() }
    }
}
impl<R> Default for Listing<R> {
    fn default() -> Self {
        Self { rows: Arc::from(Vec::new()), order: Arc::from(Vec::new()) }
    }
}
impl<R: Row> Listing<R> {
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
    pub(crate) fn at(&self, position: usize) -> Option<&R> {
        self.order.get(position).and_then(|i| self.rows.get(*i as usize))
    }
    pub(crate) fn find(&self, id: &RowId) -> Option<usize> {
        self.order.iter().position(|i| self.rows.get(*i as usize).is_some_and(|r| r.is(id)))
    }
    pub(crate) fn row(&self, id: &RowId) -> Option<&R> {
        self.rows.iter().find(|r| r.is(id))
    }
}

/// How a table is asked to be shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) sort: usize,
    pub(crate) reverse: bool,
    pub(crate) filter: Filter,
    /// Grows with every change, so that an unchanged one is not computed again.
    pub(crate) version: u64,
}

/// Filter and sort. Stable: rows that compare equal keep the order of their identity.
pub(crate) fn arrange<R: Row>(rows: Arc<[R]>, query: &Query) -> Listing<R> {
    let mut scratch = Scratch::default();
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    if !query.filter.is_empty() {
        order.retain(|i| rows.get(*i as usize).is_some_and(|r| query.filter.admits(r, &mut scratch)));
    }
    if let Some(key) = R::columns().get(query.sort).and_then(|c| c.key) {
        let mut keyed: Vec<(SortKey<'_>, u32)> =
            order.iter().map(|i| (rows.get(*i as usize).map_or(SortKey::Missing, key), *i)).collect();
        keyed.sort_unstable_by(|a, b| a.0.compare(b.0, query.reverse).then(a.1.cmp(&b.1)));
        order = keyed.into_iter().map(|(_, i)| i).collect();
    }
    Listing { rows, order: order.into() }
}

/// Which row is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Selected {
    /// None yet: the first one that appears is taken.
    #[default]
    Unset,
    /// This one, wherever it moves.
    Row(RowId),
    /// The one that was selected is gone; none is until the cursor is moved, so that no key hits its neighbour.
    Lost,
}

/// How a table is being looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableState {
    pub(crate) selected: Selected,
    /// Where the selected row stands (or stood).
    pub(crate) cursor: usize,
    /// The first row shown.
    pub(crate) offset: usize,
    pub(crate) query: Query,
    /// The filter as typed.
    pub(crate) filter_text: String,
    pub(crate) filter_error: Option<String>,
    /// The question that the selection was last found under.
    followed: u64,
}

impl TableState {
    pub(crate) fn sorted_by(sort: usize, reverse: bool) -> Self {
        Self { query: Query { sort, reverse, ..Query::default() }, ..Self::default() }
    }

    /// The selected row's id.
    pub(crate) fn selected(&self) -> Option<&RowId> {
        match &self.selected {
            Selected::Row(id) => Some(id),
            _ => None,
        }
    }

    /// Find the selected row again after the rows changed; `asked` is the version of the question that they answer.
    pub(crate) fn follow<R: Row>(&mut self, listing: &Listing<R>, asked: u64, height: u16) {
        match &self.selected {
            Selected::Unset => {
                if let Some(row) = listing.at(0) {
                    self.selected = Selected::Row(row.id());
                    self.cursor = 0;
                }
            }
            Selected::Row(id) => match listing.find(id) {
                Some(at) => self.cursor = at,
                // Filtered out by the operator's own new filter: begin at the top. Gone by itself: nothing is selected,
                // so that the next key does not hit a neighbour.
                None if self.followed != asked && listing.len() > 0 => {
                    self.cursor = 0;
                    if let Some(row) = listing.at(0) {
                        self.selected = Selected::Row(row.id());
                    }
                }
                None if self.followed != asked => {}
                None => self.selected = Selected::Lost,
            },
            Selected::Lost => {}
        }
        if !matches!(self.selected, Selected::Row(_)) || listing.len() > 0 {
            self.followed = asked;
        }
        self.cursor = self.cursor.min(listing.len().saturating_sub(1));
        self.scroll(listing.len(), height);
    }

    /// Keep the cursor on the screen.
    pub(crate) fn scroll(&mut self, rows: usize, height: u16) {
        let height = usize::from(height.max(1));
        if self.cursor < self.offset {
            self.offset = self.cursor;
        } else if self.cursor >= self.offset + height {
            self.offset = self.cursor + 1 - height;
        }
        self.offset = self.offset.min(rows.saturating_sub(height));
    }

    /// Move the cursor and select what it stands on.
    pub(crate) fn go<R: Row>(&mut self, listing: &Listing<R>, to: usize, height: u16) {
        // After the selected row went away a step selects what stands where it stood, not the one after.
        let to = if self.selected == Selected::Lost { to.min(self.cursor) } else { to };
        self.cursor = to.min(listing.len().saturating_sub(1));
        if let Some(row) = listing.at(self.cursor) {
            self.selected = Selected::Row(row.id());
        }
        self.scroll(listing.len(), height);
    }

    /// Sort by the next column that can be sorted by.
    pub(crate) fn next_sort<R: Row>(&mut self) {
        let columns = R::columns();
        let base = self.query.sort.min(columns.len().saturating_sub(1));
        for step in 1..=columns.len() {
            let at = (base + step) % columns.len();
            if columns.get(at).is_some_and(|c| c.key.is_some()) {
                self.query.sort = at;
                self.query.version += 1;
                return;
            }
        }
    }

    pub(crate) fn reverse_sort(&mut self) {
        self.query.reverse = !self.query.reverse;
        self.query.version += 1;
    }

    /// Take a filter text. Of a wrong one the terms that are right hold, and what is wrong is kept to be shown.
    pub(crate) fn set_filter<R: Filterable>(&mut self, text: &str) {
        text.clone_into(&mut self.filter_text);
        let (filter, wrong) = Filter::parse::<R>(text);
        self.query.filter = filter;
        self.query.version += 1;
        self.filter_error = wrong.map(|w| w.to_string());
    }
}

/// Which columns are shown and how wide: the ones that may be dropped yield from the highest number down.
fn lay_out<R: Row>(columns: &'static [Column<R>], natural: &[u16], room: u16) -> Vec<(usize, u16)> {
    let need = |i: usize| -> u16 {
        let (c, n) = (&columns[i], natural.get(i).copied().unwrap_or(0));
        // Text may come from outside and be of any length; figures are ours.
        let n = if c.right { n } else { n.min(c.max) };
        if c.whole { c.min.max(n) } else { c.min }
    };
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let total = |shown: &[usize]| -> u32 {
        shown.iter().map(|i| u32::from(need(*i))).sum::<u32>() + shown.len().saturating_sub(1) as u32
    };
    while total(&shown) > u32::from(room) && shown.len() > 1 {
        let Some(victim) =
            shown.iter().copied().filter(|i| columns[*i].drop > 0).max_by_key(|i| (columns[*i].drop, *i))
        else {
            break;
        };
        shown.retain(|i| *i != victim);
    }
    let mut widths: Vec<(usize, u16)> = shown.iter().map(|i| (*i, need(*i))).collect();
    let mut spare = u32::from(room).saturating_sub(total(&shown)) as u16;
    // First to what the visible rows need, then evenly up to the most.
    for pass in 0..2 {
        loop {
            let mut gave = false;
            for (i, wide) in &mut widths {
                let limit = if pass == 0 {
                    columns[*i].max.min(natural.get(*i).copied().unwrap_or(0))
                } else {
                    columns[*i].max
                };
                if spare > 0 && *wide < limit {
                    *wide += 1;
                    spare -= 1;
                    gave = true;
                }
            }
            if !gave {
                break;
            }
        }
    }
    widths
}

/// Draw the heading and the visible rows.
pub(crate) fn draw<R: Row>(
    canvas: &mut Canvas<'_>,
    area: Rect,
    listing: &Listing<R>,
    state: &TableState,
    context: &Context<'_>,
    focused: bool,
) {
    if area.height == 0 || area.width < 3 {
        return;
    }
    let columns = R::columns();
    let height = usize::from(area.height - 1);
    let last = (state.offset + height).min(listing.len());
    // A column beside the rows carries the cursor mark, so that the selection is seen without colour.
    let room = area.width - 1;
    let cells: Vec<Vec<Vec<Part<'_>>>> = (state.offset..last)
        .filter_map(|i| listing.at(i))
        .map(|row| columns.iter().map(|c| (c.cell)(row, context)).collect())
        .collect();
    let natural: Vec<u16> = (0..columns.len())
        .map(|c| {
            let widest = cells.iter().filter_map(|row| row.get(c)).map(|cell| parts_width(cell)).max().unwrap_or(0);
            widest.max(width(columns[c].title))
        })
        .collect();
    let widths = lay_out(columns, &natural, room);
    let mut x = area.x + 1;
    for (i, wide) in &widths {
        let column = &columns[*i];
        let sorted = *i == state.query.sort && column.key.is_some();
        let role = if sorted { Role::Title } else { Role::Column };
        let wide = (*wide).min(area.right().saturating_sub(x));
        let mark = if state.query.reverse { "▼" } else { "▲" };
        let mut parts: Vec<Part<'_>> = vec![(column.title.into(), role)];
        if sorted && width(column.title) < wide {
            parts.push((mark.into(), Role::Key));
        }
        if column.right {
            canvas.parts_right(x, area.y, wide, &parts);
        } else {
            canvas.parts(x, area.y, wide, &parts);
        }
        x = x.saturating_add(wide + 1);
    }
    for (line, cell_row) in cells.iter().enumerate() {
        let y = area.y + 1 + line as u16;
        let position = state.offset + line;
        let Some(row) = listing.at(position) else { continue };
        let mut x = area.x + 1;
        for (i, wide) in &widths {
            let wide = (*wide).min(area.right().saturating_sub(x));
            if let Some(parts) = cell_row.get(*i) {
                if columns[*i].right {
                    canvas.parts_right(x, y, wide, parts);
                } else {
                    canvas.parts(x, y, wide, parts);
                }
            }
            x = x.saturating_add(wide + 1);
        }
        let whole_line = Rect { x: area.x, y, width: area.width, height: 1 };
        if row.stale() {
            canvas.tint(whole_line, Role::Stale);
        }
        if state.selected().is_some_and(|id| row.is(id)) {
            canvas.tint(whole_line, if focused { Role::Selection } else { Role::SelectionIdle });
            canvas.text(area.x, y, 1, "▸", if focused { Role::Selection } else { Role::SelectionIdle });
        } else if state.selected == Selected::Lost && position == state.cursor && focused {
            canvas.text(area.x, y, 1, "·", Role::Muted);
        }
    }
    scrollbar(canvas, area, state.offset, height, listing.len());
}

/// Where in the whole one is, on the right border.
pub(crate) fn scrollbar(canvas: &mut Canvas<'_>, area: Rect, offset: usize, height: usize, rows: usize) {
    if rows <= height || height < 3 {
        return;
    }
    let size = (height * height / rows).clamp(1, height);
    let start = offset * (height - size) / (rows - height).max(1);
    for line in start..(start + size).min(height) {
        canvas.text(area.right(), area.y + 1 + line as u16, 1, "█", Role::Border);
    }
}

/// How long ago, in a word: `4s`, `3m`, `2h`, `5d`.
pub(crate) fn age(now: DateTime<Utc>, at: DateTime<Utc>) -> String {
    let seconds = (now - at).num_seconds().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A whole number with its thousands set apart.
pub(crate) fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + 4);
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}
