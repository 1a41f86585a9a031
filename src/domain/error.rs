//! What a provider's refusal means. Each adapter classes its own codes once; the engine reacts to the class alone.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::names::{ProviderId, Region, Zone};
use super::text::inert;

/// The class of a provider's error; one reaction each, in `engine::reaction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Sold out (in the zone, region or at that price): go elsewhere.
    NoCapacity,
    /// A quota refuses: go elsewhere, show limit, usage and need.
    Quota,
    /// Credentials or permissions: stop that cloud, never fail over silently.
    Auth,
    /// Too many calls: wait as told.
    Throttled,
    /// The request itself is wrong: stop.
    Invalid,
    /// No such thing.
    NotFound,
    /// Somebody was faster, or the same token was used with other parameters: read back, adopt if ours.
    Conflict,
    /// A passing fault. After a call that changes something the outcome is unknown: look, never repeat blindly.
    Transient,
    /// A code that no table knows: reported, tried elsewhere.
    Unknown,
}

impl ErrorClass {
    /// As written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoCapacity => "no_capacity",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Throttled => "throttled",
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Transient => "transient",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A provider said no, or did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderError {
    /// What it means.
    pub class: ErrorClass,
    /// Who said it.
    pub provider: ProviderId,
    /// Where, if it concerns one region.
    pub region: Option<Region>,
    /// Where, if it concerns one zone.
    pub zone: Option<Zone>,
    /// Which call failed: `RunInstances`.
    pub operation: String,
    /// The provider's own code: `InsufficientInstanceCapacity`. Empty where there was none.
    pub code: String,
    /// The provider's own text. Hostile: make it inert before showing it. Never holds a secret.
    pub message: String,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
    /// How long it asked us to wait.
    #[serde(default, with = "seconds")]
    pub retry_after: Option<Duration>,
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde's `with` hands over a reference to the field")]
    pub(super) fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        match d {
            Some(d) => s.serialize_some(&d.as_secs_f64()),
            None => s.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<f64>::deserialize(d)?.and_then(|s| Duration::try_from_secs_f64(s).ok()))
    }
}

impl ProviderError {
    /// An error with nothing but its class, call and text.
    pub fn new(class: ErrorClass, provider: &ProviderId, operation: &str, message: impl Into<String>) -> Self {
        Self {
            class,
            provider: provider.clone(),
            region: None,
            zone: None,
            operation: operation.to_owned(),
            code: String::new(),
            message: message.into(),
            request_id: None,
            retry_after: None,
        }
    }

    /// With the provider's own code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// What to do about it, in one sentence.
    pub fn remedy(&self) -> &'static str {
        match self.class {
            ErrorClass::NoCapacity => {
                "Another zone, region or purchase model may have some; `gpudeck place` ranks them."
            }
            ErrorClass::Quota => "Ask the provider for more of this quota, or choose another region.",
            ErrorClass::Auth => "Renew the credentials or add the permission; `gpudeck doctor` shows which.",
            ErrorClass::Throttled => "The provider asks for fewer calls; it is retried as it says.",
            ErrorClass::Invalid => "The request will never be accepted as it is; change the job.",
            ErrorClass::NotFound => "It is not there (any more).",
            ErrorClass::Conflict => "Somebody changed it meanwhile; look again, then decide.",
            ErrorClass::Transient => "A passing fault; it is looked into and tried again.",
            ErrorClass::Unknown => "This code is not known to gpudeck; the provider's own text tells more.",
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.provider, self.operation)?;
        if let Some(region) = &self.region {
            write!(f, " in {}", inert(region.as_str()))?;
            if let Some(zone) = &self.zone {
                write!(f, "/{}", inert(zone.as_str()))?;
            }
        }
        write!(f, ": {}", self.class)?;
        if !self.code.is_empty() {
            write!(f, " [{}]", super::text::inert(&self.code))?;
        }
        write!(f, ": {}", super::text::inert(&self.message))
    }
}

impl std::error::Error for ProviderError {}
