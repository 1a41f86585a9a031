//! One line of text being typed.

use tui_input::{Input, InputRequest};

use super::action::Action;
use crate::config::limits;

/// A line and its cursor. Only characters that can be seen get in.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineEdit {
    input: Input,
}

impl LineEdit {
    pub(crate) fn with(text: &str) -> Self {
        Self { input: Input::new(text.to_owned()) }
    }

    pub(crate) fn text(&self) -> &str {
        self.input.value()
    }

    /// Put a character at the cursor. What a terminal cannot show as itself is refused.
    pub(crate) fn put(&mut self, c: char) {
        let mut bytes = [0; 4];
        let shown = crate::domain::text::inert(c.encode_utf8(&mut bytes));
        if shown.chars().eq([c]) && self.text().chars().count() < limits::LINE_MAX {
            self.input.handle(InputRequest::InsertChar(c));
        }
    }

    /// Put a pasted text: its first line's worth, without anything that a person could not have typed.
    pub(crate) fn paste(&mut self, text: &str) {
        for c in text.chars() {
            self.put(if c == '\t' { ' ' } else { c });
        }
    }

    /// Do an editing action; says whether it was one.
    pub(crate) fn edit(&mut self, action: Action) -> bool {
        let request = match action {
            Action::EditLeft => InputRequest::GoToPrevChar,
            Action::EditRight => InputRequest::GoToNextChar,
            Action::EditStart => InputRequest::GoToStart,
            Action::EditEnd => InputRequest::GoToEnd,
            Action::EditBackspace => InputRequest::DeletePrevChar,
            Action::EditDelete => InputRequest::DeleteNextChar,
            Action::EditWord => InputRequest::DeletePrevWord,
            Action::EditClear => InputRequest::DeleteFromStart,
            _ => return false,
        };
        self.input.handle(request);
        true
    }

    /// The part of the text that fits so many columns, and the cursor's column in it.
    pub(crate) fn window(&self, columns: u16) -> (String, u16) {
        let columns = usize::from(columns.max(1));
        let scroll = self.input.visual_scroll(columns);
        let mut skipped = 0;
        let mut out = String::new();
        let mut used = 0;
        for c in self.text().chars() {
            let wide = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
            if skipped < scroll {
                skipped += wide;
                continue;
            }
            if used + wide > columns {
                break;
            }
            used += wide;
            out.push(c);
        }
        (out, self.input.visual_cursor().saturating_sub(skipped).min(columns) as u16)
    }
}
