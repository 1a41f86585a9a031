//! Tables for people. On a narrow terminal whole columns leave, the least needed first, and only texts that can bear it
//! are cut, with a visible ellipsis. Money, ids and states are never cut: half a figure is a wrong figure.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::domain::text::inert;

/// Between two columns.
const GAP: usize = 2;

/// How a cell looks; it never carries what its text does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Old, or of less weight.
    Dim,
    /// Good.
    Good,
    /// With a catch.
    Warn,
    /// Bad.
    Bad,
    /// A head.
    Bold,
}

impl Style {
    const fn on(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\u{1b}[2m",
            Self::Good => "\u{1b}[32m",
            Self::Warn => "\u{1b}[33m",
            Self::Bad => "\u{1b}[31m",
            Self::Bold => "\u{1b}[1m",
        }
    }
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A text from anywhere: it is made inert here.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self { text: inert(text.as_ref()).into_owned(), style: Style::Plain }
    }
    /// With a look.
    #[must_use]
    pub const fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    head: &'static str,
    right: bool,
    /// 0 stays always; the highest leaves first.
    leaves: u8,
    /// May be cut to so many columns.
    cut_to: Option<usize>,
}

impl Column {
    /// A column that is always there and never cut.
    pub const fn new(head: &'static str) -> Self {
        Self { head, right: false, leaves: 0, cut_to: None }
    }
    /// Set right: numbers.
    #[must_use]
    pub const fn right(mut self) -> Self {
        self.right = true;
        self
    }
    /// Leaves a narrow terminal; the highest number leaves first.
    #[must_use]
    pub const fn leaves(mut self, order: u8) -> Self {
        self.leaves = order;
        self
    }
    /// May be cut down to so many columns.
    #[must_use]
    pub const fn cut_to(mut self, width: usize) -> Self {
        self.cut_to = Some(width);
        self
    }
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// With these columns and no rows.
    pub const fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Add a row; its cells in the order of the columns.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// How many rows there are.
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As text in at most `width` columns where that can be, and the heads of the columns that had to leave.
    pub fn render(&self, width: Option<usize>, color: bool, ascii: bool) -> (String, Vec<&'static str>) {
        let natural: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let cells = self.rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.text.width());
                cells.chain([column.head.width()]).max().unwrap_or(0)
            })
            .collect();
        let (widths, hidden) = self.fit(&natural, width.unwrap_or(usize::MAX));
        let mut out = String::new();
        let heads: Vec<Cell> = self.columns.iter().map(|c| Cell::new(c.head).style(Style::Bold)).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            self.line(&mut out, row, &widths, color, ascii);
        }
        (out, hidden)
    }

    /// The width of each column that stays.
    fn fit(&self, natural: &[usize], room: usize) -> (Vec<Option<usize>>, Vec<&'static str>) {
        let least = |i: usize| match self.columns.get(i).and_then(|c| c.cut_to) {
            Some(cut) => natural.get(i).copied().unwrap_or(0).min(cut),
            None => natural.get(i).copied().unwrap_or(0),
        };
        let mut stay: Vec<usize> = (0..self.columns.len()).collect();
        let mut hidden = Vec::new();
        let needed =
            |stay: &[usize]| stay.iter().map(|i| least(*i)).sum::<usize>() + GAP * stay.len().saturating_sub(1);
        while needed(&stay) > room {
            let leaving = stay
                .iter()
                .copied()
                .filter_map(|i| self.columns.get(i).filter(|c| c.leaves > 0).map(|c| (c.leaves, i)))
                .max();
            let Some((_, leaving)) = leaving else { break };
            stay.retain(|i| *i != leaving);
            hidden.extend(self.columns.get(leaving).map(|c| c.head));
        }
        let mut spare = room.saturating_sub(needed(&stay));
        let mut widths = vec![None; self.columns.len()];
        for i in stay {
            let wish = natural.get(i).copied().unwrap_or(0);
            let given = wish.min(least(i).saturating_add(spare));
            spare = spare.saturating_sub(given - least(i).min(given));
            if let Some(width) = widths.get_mut(i) {
                *width = Some(given);
            }
        }
        (widths, hidden)
    }

    fn line(&self, out: &mut String, row: &[Cell], widths: &[Option<usize>], color: bool, ascii: bool) {
        let mut line = String::new();
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            let Some(width) = *width else { continue };
            if !line.is_empty() {
                line.push_str("  ");
            }
            let text = cut(&cell.text, width, ascii);
            let padding = " ".repeat(width.saturating_sub(text.width()));
            if column.right {
                line.push_str(&padding);
            }
            if color && cell.style != Style::Plain {
                line.push_str(cell.style.on());
                line.push_str(&text);
                line.push_str("\u{1b}[0m");
            } else {
                line.push_str(&text);
            }
            if !column.right {
                line.push_str(&padding);
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// The text in at most so many columns, the cut shown.
fn cut(text: &str, width: usize, ascii: bool) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let ellipsis = if ascii { "~" } else { "…" };
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used + 1 > width {
            break;
        }
        kept.push_str(grapheme);
    }
    kept.push_str(ellipsis);
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Table {
        let mut table = Table::new(vec![
            Column::new("PLACE").cut_to(12),
            Column::new("TYPE").leaves(1),
            Column::new("AGE").leaves(2),
            Column::new("$/H").right(),
        ]);
        table.row(vec![
            "gcp/northamerica-northeast1/northamerica-northeast1-b".into(),
            "a3-highgpu-8g".into(),
            "4 s".into(),
            "$1,234.56".into(),
        ]);
        table.row(vec!["aws/us-east-1".into(), "p5.48xlarge".into(), "12 min".into(), "$98.32".into()]);
        table
    }

    #[test]
    fn h5_money_is_never_cut_and_columns_leave_by_priority() {
        for width in [24, 40, 60, 80, 100, 200] {
            let (text, hidden) = prices().render(Some(width), false, false);
            assert!(text.contains("$1,234.56") && text.contains("$98.32"), "{width}:\n{text}");
            assert!(text.lines().all(|l| l.width() <= width), "{width}:\n{text}");
            if hidden.contains(&"TYPE") {
                assert!(hidden.contains(&"AGE"), "{width}: {hidden:?}");
            }
            if !text.contains("northamerica-northeast1-b") {
                assert!(text.contains('…'), "{width}:\n{text}");
            }
        }
        assert_eq!(prices().render(Some(24), false, false).1, ["AGE", "TYPE"]);
        assert!(prices().render(Some(200), false, false).1.is_empty());
    }

    #[test]
    fn h7_a_pipe_gets_everything_plain() {
        let (text, hidden) = prices().render(None, false, true);
        assert!(hidden.is_empty() && text.is_ascii(), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\0') && text.contains("northamerica-northeast1-b"));
    }

    #[test]
    fn op38_a_cell_is_inert() {
        let mut table = Table::new(vec![Column::new("NAME")]);
        table.row(vec!["x\u{1b}[31my\u{202e}".into()]);
        let (text, _) = table.render(None, false, false);
        assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}[31m") && text.contains("\\u{202e}"), "{text}");
    }

    #[test]
    fn wide_characters_are_counted_as_they_are_shown() {
        let mut table = Table::new(vec![Column::new("NAME").cut_to(5), Column::new("N").right()]);
        table.row(vec!["東京リージョン".into(), "1".into()]);
        let (text, _) = table.render(Some(8), false, false);
        assert!(text.lines().all(|l| l.width() <= 8), "{text}");
    }
}
