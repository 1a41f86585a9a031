//! Provider strings are hostile: an instance's name may carry escape sequences, bidi overrides or invisible marks.
//! [`inert`] turns them into visible, harmless text; it is applied where a string leaves for a terminal or a log.

use std::borrow::Cow;

/// Longest text let through; beyond it an ellipsis says that something was cut.
const MAX_CHARS: usize = 512;
/// Combining marks allowed on one character, so that stacked marks cannot paint over other lines.
const MAX_COMBINING: usize = 3;

/// Whether a character must not reach a terminal as it is.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F
            | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F
            | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0xE0000..=0xE0FFF)
}

/// Whether a character sits on the one before it.
fn is_combining(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036F | 0x0483..=0x0489 | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF | 0xFE20..=0xFE2F)
}

/// The text with every control, bidi, zero-width and tag character shown as `\u{…}`, at most 512 characters long and
/// with at most three combining marks a character. Text that is already harmless is borrowed, not copied.
pub fn inert(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_CHARS && text.bytes().all(|b| (0x20..0x7F).contains(&b)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(2 * MAX_CHARS));
    let mut combining = 0;
    for (shown, c) in text.chars().enumerate() {
        if shown >= MAX_CHARS {
            out.push('…');
            break;
        }
        if is_combining(c) {
            combining += 1;
            if combining > MAX_COMBINING {
                continue;
            }
        } else {
            combining = 0;
        }
        if is_hostile(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::inert;

    #[test]
    fn op38_escape_bytes_in_remote_text_are_made_visible() {
        assert_eq!(inert("a\u{1b}]52;c;AAAA\u{7}b"), "a\\u{1b}]52;c;AAAA\\u{7}b");
        assert_eq!(inert("x\u{9b}31m"), "x\\u{9b}31m");
        assert_eq!(inert("abc\u{202e}cba"), "abc\\u{202e}cba");
        assert_eq!(inert("llama-ft"), "llama-ft");
        assert_eq!(inert("Zürich 東京"), "Zürich 東京");
    }

    proptest! {
        #[test]
        fn op38_nothing_hostile_survives(text in "\\PC*|[\\x00-\\u{ff}]*") {
            let shown = inert(&text);
            prop_assert!(!shown.chars().any(super::is_hostile));
        }
    }
}
