//! Putting text into a buffer. Every text passes through [`inert`] here, at the border to the terminal, so that no
//! provider's string can carry a control sequence to it; what does not fit ends in a visible ellipsis.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::theme::{Role, Theme};
use crate::domain::text::inert;

/// A buffer with the theme that it is painted in.
pub(crate) struct Canvas<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) theme: &'a Theme,
}

/// A piece of text and what it means.
pub(crate) type Part<'a> = (Cow<'a, str>, Role);

/// Columns that a text takes on the screen once it is inert.
pub(crate) fn width(text: &str) -> u16 {
    if text.is_ascii() {
        let shown = inert(text);
        return u16::try_from(shown.len()).unwrap_or(u16::MAX);
    }
    u16::try_from(inert(text).width()).unwrap_or(u16::MAX)
}

/// Columns that these parts take together.
pub(crate) fn parts_width(parts: &[Part<'_>]) -> u16 {
    parts.iter().fold(0, |sum, (text, _)| sum.saturating_add(width(text)))
}

/// The text cut to so many columns; where something is cut the last column is an ellipsis.
pub(crate) fn fit(text: &str, columns: u16) -> Cow<'_, str> {
    let shown = inert(text);
    let columns = usize::from(columns);
    if shown.is_ascii() && shown.len() <= columns || shown.width() <= columns {
        return shown;
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in shown.graphemes(true) {
        let w = grapheme.width();
        if used + w > columns - 1 {
            break;
        }
        used += w;
        out.push_str(grapheme);
    }
    out.push('…');
    Cow::Owned(out)
}

/// The text cut in its middle, so that both ends can be read: for names and ids that differ at the end.
pub(crate) fn fit_middle(text: &str, columns: u16) -> Cow<'_, str> {
    let shown = inert(text);
    let columns = usize::from(columns);
    if shown.width() <= columns {
        return shown;
    }
    if columns < 5 {
        return Cow::Owned(fit(text, columns as u16).into_owned());
    }
    let tail_room = (columns - 1) / 2;
    let head_room = columns - 1 - tail_room;
    let graphemes: Vec<&str> = shown.graphemes(true).collect();
    let mut head = String::new();
    let mut used = 0;
    for g in &graphemes {
        if used + g.width() > head_room {
            break;
        }
        used += g.width();
        head.push_str(g);
    }
    let mut tail: Vec<&str> = Vec::new();
    let mut used = 0;
    for g in graphemes.iter().rev() {
        if used + g.width() > tail_room {
            break;
        }
        used += g.width();
        tail.push(g);
    }
    head.push('…');
    head.extend(tail.into_iter().rev());
    Cow::Owned(head)
}

/// Lines of at most so many columns, broken at blanks where there are any.
pub(crate) fn wrap(text: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns.max(1));
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let shown = inert(paragraph);
        let mut line = String::new();
        for word in shown.split_word_bounds() {
            if line.width() + word.width() <= columns {
                if !(line.is_empty() && !lines.is_empty() && word.trim().is_empty()) {
                    line.push_str(word);
                }
                continue;
            }
            if word.trim().is_empty() {
                lines.push(std::mem::take(&mut line));
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            for g in word.graphemes(true) {
                if line.width() + g.width() > columns {
                    lines.push(std::mem::take(&mut line));
                }
                line.push_str(g);
            }
        }
        lines.push(line);
    }
    lines
}

impl Canvas<'_> {
    /// The style of a role.
    pub(crate) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// Text at a place, in at most so many columns; gives the columns that it took.
    pub(crate) fn text(&mut self, x: u16, y: u16, columns: u16, text: &str, role: Role) -> u16 {
        let mut style = self.style(role);
        // Plain text stands on whatever lies below it: the screen's ground or a dialog's.
        if role == Role::Text {
            style.bg = None;
        }
        self.styled(x, y, columns, text, style)
    }

    /// The same in a style of one's own.
    pub(crate) fn styled(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
        let area = *self.buffer.area();
        if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() || columns == 0 {
            return 0;
        }
        let columns = columns.min(area.right() - x);
        let shown = fit(text, columns);
        let (end, _) = self.buffer.set_stringn(x, y, &shown, usize::from(columns), style);
        end - x
    }

    /// Parts one after the other; gives the columns that they took.
    pub(crate) fn parts(&mut self, x: u16, y: u16, columns: u16, parts: &[Part<'_>]) -> u16 {
        let mut used = 0;
        for (text, role) in parts {
            if used >= columns {
                break;
            }
            used += self.text(x + used, y, columns - used, text, *role);
        }
        used
    }

    /// Parts that end at the right edge of these columns.
    pub(crate) fn parts_right(&mut self, x: u16, y: u16, columns: u16, parts: &[Part<'_>]) {
        let wide = parts_width(parts).min(columns);
        self.parts(x + (columns - wide), y, wide, parts);
    }

    /// Blanks in a role's style.
    pub(crate) fn fill(&mut self, area: Rect, role: Role) {
        let area = area.intersection(*self.buffer.area());
        let style = self.style(role);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                    cell.set_style(style);
                }
            }
        }
    }

    /// A role's style laid over what is there.
    pub(crate) fn tint(&mut self, area: Rect, role: Role) {
        let style = self.style(role);
        self.buffer.set_style(area.intersection(*self.buffer.area()), style);
    }

    /// A box with a title at its upper left and a status at its upper right; gives the area within.
    pub(crate) fn boxed(&mut self, area: Rect, border: Role, title: &[Part<'_>], status: &[Part<'_>]) -> Rect {
        let area = area.intersection(*self.buffer.area());
        if area.width < 2 || area.height < 2 {
            return Rect { width: 0, height: 0, ..area };
        }
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        for x in area.left()..=right {
            for y in [area.top(), bottom] {
                let mark = match (x == area.left(), x == right, y == bottom) {
                    (true, _, false) => "┌",
                    (_, true, false) => "┐",
                    (true, _, true) => "└",
                    (_, true, true) => "┘",
                    _ => "─",
                };
                self.text(x, y, 1, mark, border);
            }
        }
        for y in area.top() + 1..bottom {
            self.text(area.left(), y, 1, "│", border);
            self.text(right, y, 1, "│", border);
        }
        let room = area.width.saturating_sub(4);
        let used = self.parts(area.left() + 1, area.top(), room, title);
        let status_wide = parts_width(status);
        // The status yields to the title, whole: half a status would say something else.
        if status_wide > 0 && used + 2 + status_wide <= room + 1 {
            self.parts(right.saturating_sub(status_wide + 1), area.top(), status_wide + 1, status);
        }
        Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
    }
}

/// What stands for a character where only ASCII can be shown.
fn ascii_of(c: char) -> Option<char> {
    Some(match c {
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┼' | '┬' | '┴' => '+',
        '─' => '-',
        '│' => '|',
        '●' => 'Y',
        '◐' => '~',
        '○' => 'N',
        '◌' => 'o',
        '✕' => 'X',
        '▲' => '^',
        '▼' => 'v',
        '▸' | '→' => '>',
        '◆' => '*',
        '…' => '>',
        '–' | '—' => '-',
        '×' => 'x',
        '·' => '.',
        '≈' => '~',
        '▁' => '_',
        '▂' => '.',
        '▃' => ':',
        '▄' => '-',
        '▅' => '=',
        '▆' => '+',
        '▇' => '*',
        '█' => '#',
        'Δ' => 'd',
        '✓' => 'v',
        _ => return None,
    })
}

/// Turn all that is not ASCII into ASCII, for terminals that cannot show more. Widths stay as they are.
pub(crate) fn to_ascii(buffer: &mut Buffer) {
    let area = *buffer.area();
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            let Some(cell) = buffer.cell_mut((x, y)) else { continue };
            if cell.symbol().is_ascii() {
                continue;
            }
            let wide = cell.symbol().width() > 1;
            let mark = cell.symbol().chars().next().and_then(ascii_of).unwrap_or('?');
            cell.set_char(mark);
            if wide && let Some(next) = buffer.cell_mut((x + 1, y)) {
                next.set_char('?');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn h5_what_is_cut_ends_in_an_ellipsis() {
        assert_eq!(fit("llama-finetune", 8), "llama-f…");
        assert_eq!(fit("llama", 5), "llama");
        assert_eq!(fit("llama", 0), "");
        assert_eq!(fit("東京東京", 5), "東京…");
        assert_eq!(fit("東京東京", 4), "東…");
        assert_eq!(fit_middle("llama-finetune-000017", 11), "llama…00017");
    }

    #[test]
    fn wrapped_lines_keep_every_word() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
    }

    proptest! {
        #[test]
        fn op38_nothing_but_inert_text_reaches_the_buffer(text in "\\PC*|[\\x00-\\u{ff}]*", columns in 0_u16..30) {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 2));
            let theme = super::super::theme::Themes::load([]).unwrap().get("dark", super::super::theme::ColorChoice::default()).unwrap();
            Canvas { buffer: &mut buffer, theme: &theme }.text(3, 1, columns, &text, Role::Text);
            for cell in buffer.content() {
                prop_assert_eq!(inert(cell.symbol()), cell.symbol());
            }
            prop_assert!(fit(&text, columns).width() <= usize::from(columns));
            prop_assert!(fit_middle(&text, columns).width() <= usize::from(columns));
            for line in wrap(&text, columns) {
                // A single character with its marks cannot be cut; it may be three columns wide.
                let whole = unicode_segmentation::UnicodeSegmentation::graphemes(line.as_str(), true).count() <= 1;
                prop_assert!(whole || line.width() <= usize::from(columns.max(2)), "{line:?}");
            }
        }
    }
}
