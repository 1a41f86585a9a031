//! JSON that is safe to be printed by a terminal, too: what could steer it is escaped, beyond what JSON asks for.

use std::io;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

use crate::domain::text::is_hostile;

/// A time as RFC 3339 in UTC, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(pub DateTime<Utc>);

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}

/// Compact, with C1 controls, bidi overrides, zero-width and tag characters as `\uXXXX` inside texts.
struct Inert;

impl Formatter for Inert {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() && !fragment.contains('\u{7f}') {
            return writer.write_all(fragment.as_bytes());
        }
        let mut units = [0_u16; 2];
        let mut bytes = [0_u8; 4];
        for c in fragment.chars() {
            if is_hostile(c) {
                for unit in c.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            } else {
                writer.write_all(c.encode_utf8(&mut bytes).as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Write a document.
pub(super) fn write<W: io::Write, T: Serialize + ?Sized>(writer: W, document: &T) -> io::Result<()> {
    document.serialize(&mut serde_json::Serializer::with_formatter(writer, Inert)).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed<T: Serialize>(value: &T) -> String {
        let mut out = Vec::new();
        write(&mut out, value).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn op38_what_steers_a_terminal_is_escaped_and_reads_back_the_same() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}\u{7f}\u{e0041}é";
        let text = printed(&hostile);
        assert_eq!(text, "\"a\\u001b[2J\\u009b31m\\u202e\\u007f\\udb40\\udc41é\"");
        assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), hostile);
    }

    #[test]
    fn op16_times_are_utc_without_fractions() {
        let at = DateTime::from_timestamp(1_796_083_200, 123_456_789).expect("a time");
        assert_eq!(printed(&Stamp(at)), "\"2026-12-01T00:00:00Z\"");
    }

    proptest! {
        #[test]
        fn op39_every_text_reads_back_and_nothing_hostile_is_printed(text in "\\PC*|[\\x00-\\u{ff}]*") {
            let printed = printed(&text);
            prop_assert!(!printed.chars().any(is_hostile));
            prop_assert_eq!(serde_json::from_str::<String>(&printed).expect("JSON"), text);
        }
    }
}
