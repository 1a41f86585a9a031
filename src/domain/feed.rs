//! How a source of observations is doing.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::ProviderError;
use super::names::ProviderId;

/// The health of a feed in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedHealth {
    /// The first answer is awaited.
    Loading,
    /// Answered in time.
    Live,
    /// Some regions failed; the others are live.
    Partial,
    /// Answers stayed out for longer than the age limit; the last values are shown, marked.
    Stale,
    /// It answered, but lost most of its rows at once: not believed, the last values are kept.
    Quarantined,
    /// Credentials expired or were refused.
    AuthNeeded,
    /// There are no credentials for it.
    NoCredentials,
    /// Not reached.
    Down,
    /// Answers are kept from a published table only.
    Published,
}

impl FeedHealth {
    /// In words for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Live => "live",
            Self::Partial => "partial",
            Self::Stale => "stale",
            Self::Quarantined => "quarantined",
            Self::AuthNeeded => "login needed",
            Self::NoCredentials => "no credentials",
            Self::Down => "down",
            Self::Published => "published",
        }
    }

    /// Told apart without colour.
    pub const fn glyph(self) -> char {
        match self {
            Self::Live => '●',
            Self::Partial | Self::Stale => '◐',
            Self::Quarantined => '◌',
            Self::Loading => '…',
            Self::AuthNeeded | Self::NoCredentials => '-',
            Self::Down => '✕',
            Self::Published => '○',
        }
    }
}

/// One feed as the screen and `doctor` show it.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedStatus {
    /// Whose feed.
    pub provider: ProviderId,
    /// How it is doing.
    pub health: FeedHealth,
    /// Offers known from it.
    pub offers: usize,
    /// When it last answered.
    pub answered_at: Option<DateTime<Utc>>,
    /// Failures in a row since then.
    pub failures: u32,
    /// What went wrong last.
    pub error: Option<ProviderError>,
    /// A sentence for people: what is wrong and what to do, empty where all is well.
    pub detail: String,
}
