//! Whether an answer is to be believed. A filter that broke or a page that was cut off looks like a sold-out cloud; a
//! slipped decimal looks like a bargain.

use rustc_hash::FxHashSet;

use super::book::Book;
use crate::config::limits;
use crate::domain::{HourlyRate, Observation, OfferKey, Offerings, PriceStatement, ProviderId, Region};

/// What is odd about an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Oddity {
    /// As the start of a sentence.
    pub(super) reason: String,
    /// What it says in all, to compare the next one with.
    pub(super) gist: Gist,
}

/// What an answer says in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gist {
    /// Distinct offers in it.
    pub(super) rows: usize,
    /// The sum of its prices, in micro-USD.
    pub(super) prices: i128,
}

impl Gist {
    fn of(observations: &[Observation], rows: usize) -> Self {
        let micros = observations.iter().map(|o| match o.price {
            Some(PriceStatement::Live(rate) | PriceStatement::Listed(rate) | PriceStatement::Published(rate)) => {
                i128::from(rate.micros())
            }
            Some(PriceStatement::Unpriced) | None => 0,
        });
        Self { rows, prices: micros.sum() }
    }

    /// Whether two answers say the same, but for what may move between two polls.
    pub(super) fn is_like(self, other: Self) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= a.max(b) * limits::QUARANTINE_SAME_SHARE;
        near(self.rows as f64, other.rows as f64) && near(self.prices as f64, other.prices as f64)
    }
}

/// Compare an answer with what is known of its provider; `None` is nothing odd.
pub(super) fn examine(book: &Book, provider: &ProviderId, answer: &Offerings) -> Option<Oddity> {
    let listed: FxHashSet<&OfferKey> = answer.observations.iter().map(|o| &o.key).collect();
    lost_rows(book, provider, answer, &listed)
        .or_else(|| jumped_prices(book, &answer.observations))
        .map(|reason| Oddity { reason, gist: Gist::of(&answer.observations, listed.len()) })
}

fn lost_rows(book: &Book, provider: &ProviderId, answer: &Offerings, listed: &FxHashSet<&OfferKey>) -> Option<String> {
    if !answer.complete || answer.failed.iter().any(|e| e.region.is_none()) {
        return None;
    }
    let failed: FxHashSet<&Region> = answer.failed.iter().filter_map(|e| e.region.as_ref()).collect();
    let (mut known, mut lost) = (0_usize, 0_usize);
    for record in book.of(provider) {
        if record.facts.is_live() && !failed.contains(&record.offer.key.region) {
            known += 1;
            lost += usize::from(!listed.contains(&record.offer.key));
        }
    }
    let suspicious = lost > limits::QUARANTINE_LOST_ROWS && lost as f64 > known as f64 * limits::QUARANTINE_LOST_SHARE;
    suspicious.then(|| format!("It answered without {lost} of the {known} offers that it had"))
}

fn jumped_prices(book: &Book, observations: &[Observation]) -> Option<String> {
    let (mut compared, mut jumped) = (0_usize, 0_usize);
    for observation in observations {
        let said = match observation.price {
            Some(PriceStatement::Live(rate) | PriceStatement::Listed(rate)) => rate,
            Some(PriceStatement::Unpriced) => HourlyRate::ZERO,
            Some(PriceStatement::Published(_)) | None => continue,
        };
        let known = book.find(&observation.key).ok().and_then(|p| book.get(p)).and_then(|r| r.facts.live_price());
        let Some(known) = known else { continue };
        compared += 1;
        let ratio = said.to_usd() / known.to_usd();
        let usual = (1.0 / limits::QUARANTINE_PRICE_FACTOR..=limits::QUARANTINE_PRICE_FACTOR).contains(&ratio);
        jumped += usize::from(!usual);
    }
    let suspicious =
        compared >= limits::QUARANTINE_MIN_PRICES && jumped as f64 >= compared as f64 * limits::QUARANTINE_JUMPED_SHARE;
    suspicious.then(|| {
        format!(
            "It answered with {jumped} of {compared} prices gone or changed by more than {:.0} times",
            limits::QUARANTINE_PRICE_FACTOR
        )
    })
}
