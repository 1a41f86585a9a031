//! Changed cells as bytes for a terminal. Written here and not by a backend, which says even the 16 colours in the form
//! that only terminals with 256 know, and the underline's colour to terminals that read it as blinking.

use std::fmt::Write as _;

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

/// The changed cells of a frame, each with its column and row.
pub(crate) fn write<'c>(out: &mut String, cells: impl Iterator<Item = (u16, u16, &'c Cell)>) {
    let mut next: Option<(u16, u16)> = None;
    let mut last: Option<Look> = None;
    for (x, y, cell) in cells {
        if next != Some((x, y)) {
            let _ = write!(out, "\u{1b}[{};{}H", y.saturating_add(1), x.saturating_add(1));
        }
        let look = Look::of(cell);
        if last != Some(look) {
            look.write(out);
            last = Some(look);
        }
        out.push_str(cell.symbol());
        // After a wide character the cursor stands two further on; the cell in between never changes by itself.
        next = Some((x.saturating_add(super::paint::width(cell.symbol()).max(1)), y));
    }
    if last.is_some() {
        out.push_str("\u{1b}[0m");
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Look {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        Self { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
    }

    /// Whole, from nothing: a terminal that missed something is right again with the next look.
    fn write(self, out: &mut String) {
        out.push_str("\u{1b}[0");
        for (flag, code) in [
            (Modifier::BOLD, 1),
            (Modifier::DIM, 2),
            (Modifier::ITALIC, 3),
            (Modifier::UNDERLINED, 4),
            (Modifier::REVERSED, 7),
            (Modifier::CROSSED_OUT, 9),
        ] {
            if self.modifier.contains(flag) {
                let _ = write!(out, ";{code}");
            }
        }
        colour(out, self.fg, 30);
        colour(out, self.bg, 40);
        out.push('m');
    }
}

/// A colour after `base`: 30 for text, 40 for its ground.
fn colour(out: &mut String, colour: Color, base: u8) {
    let plain = match colour {
        Color::Reset => return,
        Color::Rgb(r, g, b) => {
            let _ = write!(out, ";{};2;{r};{g};{b}", base + 8);
            return;
        }
        Color::Indexed(n) => {
            let _ = write!(out, ";{};5;{n}", base + 8);
            return;
        }
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 60,
        Color::LightRed => 61,
        Color::LightGreen => 62,
        Color::LightYellow => 63,
        Color::LightBlue => 64,
        Color::LightMagenta => 65,
        Color::LightCyan => 66,
        Color::White => 67,
    };
    let _ = write!(out, ";{}", base + plain);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    fn written(buffer: &Buffer) -> String {
        let mut out = String::new();
        let empty = Buffer::empty(buffer.area);
        write(&mut out, empty.diff(buffer).into_iter());
        out
    }

    #[test]
    fn op32_sixteen_colours_are_said_as_every_terminal_knows_them() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        buffer.set_string(0, 0, "ab", Style::new().fg(Color::Red).bg(Color::Blue).add_modifier(Modifier::BOLD));
        buffer.set_string(2, 0, "c", Style::new().fg(Color::White));
        buffer.set_string(3, 0, "d", Style::new());
        buffer.set_string(4, 0, "e", Style::new().fg(Color::DarkGray).bg(Color::Indexed(200)));
        buffer.set_string(5, 0, "f", Style::new().fg(Color::Rgb(1, 2, 3)));
        assert_eq!(
            written(&buffer),
            "\u{1b}[1;1H\u{1b}[0;1;31;44mab\u{1b}[0;97mc\u{1b}[0md\u{1b}[0;90;48;5;200me\u{1b}[0;38;2;1;2;3mf\u{1b}[0m"
        );
        assert_eq!(written(&Buffer::empty(Rect::new(0, 0, 6, 1))), "");
    }

    proptest! {
        /// What a terminal shows of the bytes is what stands in the buffer.
        #[test]
        fn a_terminal_shows_what_was_drawn(cells in prop::collection::vec((0_u16..20, 0_u16..5, "[ -~]|日|●|é", 0_u8..16, any::<bool>()), 0..60)) {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 5));
            for (x, y, text, colour, bold) in &cells {
                let style = Style::new().fg(Color::Indexed(*colour)).add_modifier(if *bold { Modifier::BOLD } else { Modifier::empty() });
                buffer.set_string(*x, *y, text, style);
            }
            let mut terminal = vt100::Parser::new(std::num::NonZeroU16::new(5).unwrap(), std::num::NonZeroU16::new(20).unwrap(), 0);
            terminal.process(written(&buffer).as_bytes());
            for y in 0..5 {
                let mut x = 0;
                while x < 20 {
                    let drawn = &buffer[(x, y)];
                    let shown = terminal.screen().cell(y, x).unwrap();
                    let text = if shown.contents().is_empty() { " " } else { shown.contents() };
                    prop_assert_eq!(text, drawn.symbol(), "at {} {}", x, y);
                    if drawn.symbol() != " " {
                        prop_assert_eq!(shown.bold(), drawn.modifier.contains(Modifier::BOLD));
                    }
                    x += super::super::paint::width(drawn.symbol()).max(1);
                }
            }
        }
    }
}
