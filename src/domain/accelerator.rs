//! Accelerators by canonical name. The table of names and aliases is [`crate::catalogue::accelerators`].

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A canonical accelerator name, such as `H100-80GB-SXM`. A chip that the table does not know keeps the provider's
/// own text behind `unknown:`, so that it is shown and never mistaken for another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accelerator(Arc<str>);

impl Accelerator {
    /// From a canonical name. Only the catalogue's table and stored data should call this; texts from outside go
    /// through [`crate::catalogue::accelerators::canonical`].
    pub fn from_canonical(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// For a chip that no alias knows.
    pub fn unknown(raw: &str) -> Self {
        Self(format!("unknown:{raw}").into())
    }

    /// The canonical name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the table knows this chip.
    pub fn is_known(&self) -> bool {
        !self.0.starts_with("unknown:")
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// How many accelerators an instance has. Some clouds rent a sixth of one, so it counts ten-thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AcceleratorCount(u32);

impl AcceleratorCount {
    /// So many whole ones.
    pub const fn whole(n: u32) -> Self {
        Self(n.saturating_mul(10_000))
    }
    /// From ten-thousandths.
    pub const fn from_ten_thousandths(n: u32) -> Self {
        Self(n)
    }
    /// In ten-thousandths.
    pub const fn ten_thousandths(self) -> u32 {
        self.0
    }
    /// Whole accelerators in it, rounded down.
    pub const fn floor(self) -> u32 {
        self.0 / 10_000
    }
    /// From a number; `None` where it is negative, not finite or above 400,000.
    pub fn from_f64(n: f64) -> Option<Self> {
        (n.is_finite() && (0.0..=400_000.0).contains(&n)).then(|| Self((n * 10_000.0).round() as u32))
    }
    /// As a number.
    pub fn to_f64(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }
}

impl fmt::Display for AcceleratorCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(10_000) {
            f.pad(&self.floor().to_string())
        } else {
            f.pad(&format!("{:.2}", self.to_f64()))
        }
    }
}

impl Serialize for AcceleratorCount {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(10_000) { s.serialize_u32(self.floor()) } else { s.serialize_f64(self.to_f64()) }
    }
}
impl<'de> Deserialize<'de> for AcceleratorCount {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let n = f64::deserialize(d)?;
        Self::from_f64(n).ok_or_else(|| serde::de::Error::custom("an accelerator count lies between 0 and 400000"))
    }
}
