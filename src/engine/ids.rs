//! Ids and jitter, from one source that a test can set.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

/// Where ids and jitter come from.
pub(crate) struct Ids(Mutex<ChaCha12Rng>);

impl Ids {
    /// From the system, or from a seed for the same run again.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let source = match seed {
            Some(seed) => ChaCha12Rng::seed_from_u64(seed),
            None => rand::make_rng(),
        };
        Self(Mutex::new(source))
    }

    /// A `UUIDv7`: sorts by time, unique for ever.
    pub(crate) fn next(&self, now: DateTime<Utc>) -> String {
        let mut bytes = [0_u8; 10];
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill(&mut bytes);
        let millis = u64::try_from(now.timestamp_millis()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid().to_string()
    }

    /// A number from 0 up to 1.
    pub(crate) fn fraction(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random()
    }
}
