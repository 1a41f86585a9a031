//! Our mark as tags: one tag a field, the same names at every cloud that has tags.

use crate::domain::Mark;

/// Who started it: the installation's id.
pub const OWNER: &str = "gpudeck-owner";
/// For which job.
pub const JOB: &str = "gpudeck-job";
/// By which operation.
pub const OPERATION: &str = "gpudeck-operation";
/// Which attempt of it.
pub const ATTEMPT: &str = "gpudeck-attempt";
/// Which node of the gang.
pub const NODE: &str = "gpudeck-node";

/// The mark that these tags tell; `None` unless all of it is there and can be read.
pub fn from_tags(tag: impl Fn(&str) -> Option<String>) -> Option<Mark> {
    Some(Mark {
        owner: tag(OWNER).filter(|o| !o.is_empty())?,
        job: tag(JOB).filter(|j| !j.is_empty())?.into(),
        operation: tag(OPERATION).filter(|o| !o.is_empty())?.into(),
        attempt: tag(ATTEMPT)?.parse().ok()?,
        node: tag(NODE)?.parse().ok()?,
    })
}

/// The tags that tell this mark.
pub fn to_tags(mark: &Mark) -> [(&'static str, String); 5] {
    [
        (OWNER, mark.owner.clone()),
        (JOB, mark.job.to_string()),
        (OPERATION, mark.operation.to_string()),
        (ATTEMPT, mark.attempt.to_string()),
        (NODE, mark.node.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_half_a_mark_is_none() {
        let mark = Mark { owner: "o".into(), job: "j".into(), operation: "p".into(), attempt: 2, node: 3 };
        let mut tags: BTreeMap<_, _> = to_tags(&mark).into_iter().collect();
        assert_eq!(from_tags(|k| tags.get(k).cloned()), Some(mark));
        tags.insert(ATTEMPT, "two".into());
        assert_eq!(from_tags(|k| tags.get(k).cloned()), None);
    }
}
