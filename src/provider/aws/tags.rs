//! Our mark as EC2 tags.

use aws_sdk_ec2::types::Tag;
use chrono::{DateTime, SecondsFormat, Utc};

use crate::domain::Mark;
use crate::provider::mark;

/// When the intent was written.
pub(super) const CREATED: &str = "gpudeck-created";

/// The tags of a launch. All of it stands in the durable intent, so that a request sent again has the same body.
pub(super) fn of(mark: &Mark, name: &str, intended_at: DateTime<Utc>) -> Vec<Tag> {
    let created = intended_at.to_rfc3339_opts(SecondsFormat::Secs, true);
    std::iter::once(("Name", name.to_owned()))
        .chain(mark::to_tags(mark))
        .chain(std::iter::once((CREATED, created)))
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

/// The value of a tag.
pub(super) fn value<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter().find(|t| t.key() == Some(key)).and_then(Tag::value)
}

/// Our mark, where all of it is there and well formed. Anybody who may tag can write anything here, so a text that we
/// would not have written makes no mark.
pub(super) fn mark(tags: &[Tag]) -> Option<Mark> {
    mark::from_tags(|key| value(tags, key).filter(|text| is_plain(text)).map(str::to_owned))
}

fn is_plain(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'@'))
}

/// A text as a value of a filter, where `*`, `?` and `\` mean something else.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::provider::mark::{ATTEMPT, JOB, NODE, OPERATION, OWNER};

    fn a_mark() -> Mark {
        Mark { owner: "deck-1".into(), job: "0190-a".into(), operation: "0190-b".into(), attempt: 2, node: 7 }
    }

    #[test]
    fn a_mark_comes_back_as_it_was_written() {
        let tags = of(&a_mark(), "gd-x", DateTime::UNIX_EPOCH);
        assert_eq!(mark(&tags), Some(a_mark()));
        assert_eq!(value(&tags, CREATED), Some("1970-01-01T00:00:00Z"));
        assert_eq!(value(&tags, "Name"), Some("gd-x"));
    }

    #[test]
    fn a_mark_with_a_part_missing_or_forged_is_no_mark() {
        for (key, forged) in [
            (OWNER, ""),
            (JOB, "x\u{1b}[31m"),
            (OPERATION, "a b"),
            (ATTEMPT, "-1"),
            (ATTEMPT, "+1"),
            (NODE, "4294967296"),
            (NODE, "1e3"),
        ] {
            let tags: Vec<Tag> = of(&a_mark(), "n", DateTime::UNIX_EPOCH)
                .into_iter()
                .map(|t| if t.key() == Some(key) { Tag::builder().key(key).value(forged).build() } else { t })
                .collect();
            assert_eq!(mark(&tags), None, "{key}={forged:?}");
        }
        assert_eq!(mark(&[]), None);
    }

    #[test]
    fn wildcards_of_filters_are_taken_literally() {
        assert_eq!(literal(r"a*b?c\d"), r"a\*b\?c\\d");
        assert_eq!(literal("deck-1"), "deck-1");
    }

    proptest! {
        #[test]
        fn no_tags_make_a_mark_that_we_would_not_write(values in proptest::collection::vec("\\PC{0,8}|[a-z0-9]{1,8}|[0-9]{1,3}", 5)) {
            let tags: Vec<Tag> = [OWNER, JOB, OPERATION, ATTEMPT, NODE]
                .iter()
                .zip(&values)
                .map(|(k, v)| Tag::builder().key(*k).value(v).build())
                .collect();
            if let Some(m) = mark(&tags) {
                prop_assert!(is_plain(&m.owner) && is_plain(m.job.as_str()) && is_plain(m.operation.as_str()));
                prop_assert_eq!(Some(m.attempt), values.get(3).and_then(|v| v.parse().ok()));
            }
        }
    }
}
