//! Offers that somebody wants to be told of: an alert for as long as one is to be had.

use serde_json::json;

use super::options::PriceWatch;
use super::shared::Shared;
use crate::catalogue::regions;
use crate::domain::text::inert;
use crate::domain::{Availability, EventKind, Offer};
use crate::market::Snapshot;
use crate::store::{NewEvent, StoreError};

impl PriceWatch {
    /// The cheapest offer that fits: the provider's own price, not old, and not known to be sold out.
    pub(crate) fn best<'s>(&self, market: &'s Snapshot) -> Option<&'s Offer> {
        let fits = |offer: &&Offer| {
            let law = offer.jurisdiction.as_deref();
            self.accelerators.contains(&offer.shape.accelerator)
                && offer.shape.accelerators.floor() >= self.count
                && (self.purchases.is_empty() || self.purchases.contains(&offer.key.purchase))
                && (self.providers.is_empty() || self.providers.contains(&offer.key.provider))
                && (self.jurisdictions.is_empty()
                    || law.is_some_and(|law| self.jurisdictions.iter().any(|wanted| regions::is_within(law, wanted))))
                && offer.price_is_live
                && !offer.stale
                && offer.availability != Availability::None
                && offer.price_per_gpu().is_some_and(|price| price <= self.below)
        };
        let offers = market.iter().map(AsRef::as_ref);
        offers.filter(fits).min_by(|a, b| a.price_per_gpu().cmp(&b.price_per_gpu()).then_with(|| a.key.cmp(&b.key)))
    }
}

impl Shared {
    /// Raise and take back what the watches say of the market as it is now.
    pub(crate) async fn watch_prices(&self) -> Result<(), StoreError> {
        if self.read_only || self.watches.is_empty() {
            return Ok(());
        }
        let market = self.state.borrow().market.clone();
        let now = self.now();
        for watch in &self.watches {
            let key = format!("watch:{}", watch.name);
            let found = watch.best(&market).and_then(|offer| Some((offer, offer.price_per_gpu()?)));
            let mut tx = self.begin().await?;
            let changed = match found {
                Some((offer, price)) => {
                    let text = format!(
                        "watch {}: {} for {price:.4} in {} ({}, {}), at most {:.4} was asked for",
                        inert(&watch.name),
                        offer.shape.accelerator,
                        inert(&offer.key.location().to_string()),
                        offer.key.purchase,
                        match offer.availability {
                            Availability::Available => "available",
                            Availability::Limited => "limited",
                            Availability::None | Availability::Unknown => "stock not known",
                        },
                        watch.below,
                    );
                    let data = json!({ "watch": watch.name, "offer": offer.key, "usd_per_gpu_hour": price });
                    let alert = NewEvent {
                        at: now,
                        actor: &self.actor,
                        kind: EventKind::Alert,
                        job: None,
                        plan: None,
                        text,
                        data,
                    };
                    tx.raise_alert(&key, alert).await?
                }
                None => tx.clear_alert(&key, now).await?,
            };
            if changed {
                self.commit(tx, None).await?;
            }
        }
        Ok(())
    }
}
