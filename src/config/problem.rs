//! What is wrong with a file or with flags: where, which key, what, and what would be right. All findings at once.

use std::fmt;

use crate::config::limits::PROBLEMS_TOLD;
use crate::domain::text::inert;

/// Where a value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// On this line of the file, counted from 1.
    Line(usize),
    /// After this flag of the command line.
    Flag(&'static str),
    /// Nowhere: it is missing.
    Missing,
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub at: Origin,
}

impl<T> Written<T> {
    /// A value from a flag.
    pub const fn flag(flag: &'static str, value: T) -> Self {
        Self { value, at: Origin::Flag(flag) }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Origin,
    /// Which key, in full: `resources.count`. Empty where it is about the whole file.
    pub key: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// All findings on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file's name as the user gave it; empty for flags alone.
    pub file: String,
    /// The findings, in the order of the file.
    pub found: Vec<Problem>,
}

impl Problems {
    /// A finding on the whole file.
    pub fn whole(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            found: vec![Problem { at: Origin::Missing, key: String::new(), message: message.into() }],
        }
    }

    /// These findings, put in the order of the file and each told once.
    pub fn new(file: &str, mut found: Vec<Problem>) -> Self {
        found.sort_by_key(|p| p.at);
        found.dedup();
        Self { file: file.to_owned(), found }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.found.iter().take(PROBLEMS_TOLD).enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            match problem.at {
                Origin::Line(line) => write!(f, "{}:{line}: ", inert(&self.file))?,
                Origin::Flag(flag) => write!(f, "{flag}: ")?,
                Origin::Missing if self.file.is_empty() => {}
                Origin::Missing => write!(f, "{}: ", inert(&self.file))?,
            }
            if !problem.key.is_empty() && !matches!(problem.at, Origin::Flag(_)) {
                write!(f, "{}: ", inert(&problem.key))?;
            }
            write!(f, "{}", inert(&problem.message))?;
        }
        match self.found.len().saturating_sub(PROBLEMS_TOLD) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Problems {}
