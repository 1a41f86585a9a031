//! Names as providers give them. Cheap to clone; compared as text. They are data, never markup: whoever puts one on a
//! terminal, in a log or in front of a shell passes it through [`super::text::inert`] first.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// From a text, as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self { Self(text.into()) }
            /// As the provider wrote it.
            pub fn as_str(&self) -> &str { &self.0 }
        }
        impl From<&str> for $name { fn from(text: &str) -> Self { Self(Arc::from(text)) } }
        impl From<String> for $name { fn from(text: String) -> Self { Self(Arc::from(text)) } }
        impl AsRef<str> for $name { fn as_ref(&self) -> &str { &self.0 } }
        impl Borrow<str> for $name { fn borrow(&self) -> &str { &self.0 } }
        impl fmt::Debug for $name { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Debug::fmt(&*self.0, f) } }
        impl fmt::Display for $name { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(&self.0) } }
        impl PartialEq<str> for $name { fn eq(&self, other: &str) -> bool { &*self.0 == other } }
        impl PartialEq<&str> for $name { fn eq(&self, other: &&str) -> bool { &*self.0 == *other } }
    };
}

name_type!(
    /// A cloud or a pool: `aws`, `azure`, `gcp`, `lambda`, …
    ProviderId
);
name_type!(
    /// A region as its provider names it.
    Region
);
name_type!(
    /// A zone as its provider names it; AWS zone ids (`use1-az1`), not the account's own letters.
    Zone
);
name_type!(
    /// The provider's own name of a shape of machine: `p5.48xlarge`.
    InstanceType
);
name_type!(
    /// The provider's own name of one machine: `i-0abc…`.
    InstanceId
);
name_type!(
    /// A job's id in the ledger: a UUIDv7 text, unique for ever.
    JobId
);
name_type!(
    /// An operation's id in the ledger: a UUIDv7 text.
    OperationId
);
name_type!(
    /// A plan's id in the ledger: a UUIDv7 text.
    PlanId
);

/// A place: a provider, one of its regions, perhaps a zone in it. Written `aws/us-east-1/use1-az4`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The cloud or pool.
    pub provider: ProviderId,
    /// The region in it.
    pub region: Region,
    /// The zone in that, where the provider has zones and one is meant.
    #[serde(default)]
    pub zone: Option<Zone>,
}

/// A text that is not `PROVIDER/REGION[/ZONE]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a place; write PROVIDER/REGION or PROVIDER/REGION/ZONE, such as aws/us-east-1")]
pub struct LocationError(pub String);

impl Location {
    /// A region without a zone.
    pub fn region(provider: impl Into<ProviderId>, region: impl Into<Region>) -> Self {
        Self { provider: provider.into(), region: region.into(), zone: None }
    }

    /// Whether `other` lies in here: same region, and the same zone where this one names one.
    pub fn contains(&self, other: &Self) -> bool {
        self.provider == other.provider
            && self.region == other.region
            && (self.zone.is_none() || self.zone == other.zone)
    }
}

impl std::str::FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [provider, region] if !provider.is_empty() && !region.is_empty() => {
                Ok(Self { provider: (*provider).into(), region: (*region).into(), zone: None })
            }
            [provider, region, zone] if !provider.is_empty() && !region.is_empty() && !zone.is_empty() => {
                Ok(Self { provider: (*provider).into(), region: (*region).into(), zone: Some((*zone).into()) })
            }
            _ => Err(LocationError(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.zone {
            Some(zone) => format!("{}/{}/{zone}", self.provider, self.region),
            None => format!("{}/{}", self.provider, self.region),
        };
        f.pad(&text)
    }
}
