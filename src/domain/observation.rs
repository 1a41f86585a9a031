//! What a source said about an offer at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::error::ProviderError;
use super::money::HourlyRate;
use super::offer::{Availability, Evidence, OfferKey, QuotaRoom, Shape};

/// One statement of one source. A field that is `None` says nothing on that matter and leaves what is known as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Which offer it is about.
    pub key: OfferKey,
    /// When the source saw it (the source's own time where it gives one).
    pub at: DateTime<Utc>,
    /// The machine.
    pub shape: Arc<Shape>,
    /// What is said of the price.
    pub price: Option<PriceStatement>,
    /// What is said of stock, and by which evidence.
    pub availability: Option<(Availability, Evidence)>,
    /// Instances in stock, where the source counts them.
    pub capacity: Option<u32>,
    /// Room under the quota.
    pub quota: Option<QuotaRoom>,
    /// Expected interruptions of one instance a day.
    pub interruptions_per_day: Option<f64>,
}

/// What a source says of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceStatement {
    /// The provider itself says so now.
    Live(HourlyRate),
    /// The provider's own price list says so, as read at the observation's time. It is asked seldom, for it changes
    /// seldom: it is the provider's word for hours, not for minutes.
    Listed(HourlyRate),
    /// A published table of the observation's date says so.
    Published(HourlyRate),
    /// The source lists the offer, and has no price for it.
    Unpriced,
}

/// One answer to "what do you offer?".
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offerings {
    /// What is offered.
    pub observations: Vec<Observation>,
    /// Regions that did not answer, and why.
    pub failed: Vec<ProviderError>,
    /// Rows that could not be used, counted by reason.
    pub skipped: BTreeMap<String, u32>,
    /// This answer covers the provider's whole offer, so that an offer missing from it is no longer offered.
    pub complete: bool,
}
