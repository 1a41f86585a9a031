//! What can go wrong with the ledger, and what to do about it.

use std::path::Path;

/// The ledger could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not a ledger, or damaged.
    #[error(
        "it is damaged or not a ledger ({detail}). Move it and its -wal and -shm files aside, put back a copy, or start \
         anew with the same `owner` in the configuration: `gpudeck orphans` then finds every machine by its mark"
    )]
    Corrupt {
        /// What was found.
        detail: String,
    },
    /// Written by a newer gpudeck.
    #[error("it was written by a newer gpudeck (version {found}, this one knows {known}); use that one")]
    Newer {
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// It cannot be written.
    #[error(
        "it cannot be written ({detail}); check the rights of the file and its directory, and that the disk is mounted read-write"
    )]
    ReadOnly {
        /// What the system said.
        detail: String,
    },
    /// The disk is full.
    #[error("the disk is full; make room, and what was under way goes on by itself")]
    Full,
    /// Another process held it for too long.
    #[error("another process holds it; try again, or see with `fuser` who does")]
    Busy,
    /// Somebody else changed the row meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// The table of states forbids it.
    #[error(transparent)]
    Illegal(#[from] crate::domain::job::IllegalTransition),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl StoreError {
    /// Whether nothing can be written just now, whatever it would be; not a decision of somebody else's.
    pub const fn is_outage(&self) -> bool {
        !matches!(self, Self::Conflict(_) | Self::Illegal(_) | Self::Newer { .. })
    }

    /// Classed by SQLite's primary result code.
    pub(crate) fn from_sqlx(error: &sqlx::Error) -> Self {
        let text = error.to_string();
        if let sqlx::Error::Database(database) = error {
            let code = database.code().and_then(|c| c.parse::<i32>().ok()).unwrap_or(0);
            // The low byte is the primary code: https://sqlite.org/rescode.html
            return match code & 0xff {
                5 | 6 => Self::Busy,
                8 | 14 | 3 | 23 => Self::ReadOnly { detail: text },
                11 | 26 => Self::Corrupt { detail: text },
                13 => Self::Full,
                _ => Self::Other(text),
            };
        }
        match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Corrupt { detail: text },
            _ => Self::Other(text),
        }
    }

    /// A stored text that cannot be read back.
    pub(crate) fn unreadable(what: &str, detail: impl std::fmt::Display) -> Self {
        Self::Corrupt { detail: format!("{what}: {detail}") }
    }

    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull => Self::Full,
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { detail: format!("{}: {error}", path.display()) }
            }
            _ => Self::Other(format!("{}: {error}", path.display())),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::from_sqlx(&error)
    }
}

/// What the ledger's calls give.
pub type Result<T> = std::result::Result<T, StoreError>;
