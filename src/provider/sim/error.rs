//! What can be wrong with a demo world.

use std::path::PathBuf;

/// Why a demo world cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The file is there, but is not a world that this version can read.
    #[error("the demo world {} is damaged ({why}); `gpudeck --demo reset` starts it anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another seed than the one that the world was made with.
    #[error(
        "the demo world {} was made with seed {stored}, not {asked}; leave --seed out, or start it anew with \
         `gpudeck --demo reset`",
        path.display()
    )]
    SeedDiffers {
        /// The file.
        path: PathBuf,
        /// The world's seed.
        stored: u64,
        /// The seed that was asked for.
        asked: u64,
    },
    /// A speed at which no clock can go.
    #[error("--speed {0} is out of range: virtual seconds in a real one, above 0 and at most 100000")]
    Speed(f64),
    /// The file is gone while a session uses it.
    #[error("the demo world {} is gone: it was reset meanwhile; leave and start again", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
