//! How old a row may be.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::config::limits;
use crate::domain::{Evidence, Offer};

/// How far a row's figures can be trusted by their age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Freshness {
    /// Within its source's age limit.
    Fresh,
    /// Past it: shown dimmed with its age, and not acted on before it is read again.
    Stale,
    /// So old that the figure is shown as `?`; the value itself is kept for the details.
    Expired,
}

/// How fresh an offer is at `now`. Whether it is stale was decided when its snapshot was made, from its feed's poll
/// interval; how long ago it was observed decides the rest.
pub fn freshness(offer: &Offer, now: DateTime<Utc>) -> Freshness {
    if !offer.stale {
        return Freshness::Fresh;
    }
    let published = !offer.price_is_live && offer.evidence == Evidence::Catalogue;
    let bound = if published { limits::PUBLISHED_EXPIRES_AFTER } else { limits::FIGURES_EXPIRE_AFTER };
    if age(offer, now) > bound { Freshness::Expired } else { Freshness::Stale }
}

/// How long ago an offer was observed; never negative, whatever the source's clock says.
pub fn age(offer: &Offer, now: DateTime<Utc>) -> Duration {
    (now - offer.observed_at).to_std().unwrap_or_default()
}
