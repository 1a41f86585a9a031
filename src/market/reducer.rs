//! The market: the one place where observations become knowledge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustc_hash::{FxHashMap, FxHashSet};

use super::book::Book;
use super::feed::{Feed, Quarantine};
use super::history::History;
use super::intern::Names;
use super::quarantine;
use super::record::{Attempt, Facts, Micros, NEVER, Record, is_published, micros, span};
use super::snapshot::Snapshot;
use crate::config::limits;
use crate::domain::{
    FeedStatus, HourlyRate, Observation, OfferKey, Offerings, PriceStatement, ProviderError, ProviderId, Region,
};

/// Whose law a place lies under, by provider and region; the catalogue knows.
pub type Jurisdictions = fn(provider: &str, region: &str) -> Option<&'static str>;

/// Everything that is known of what can be rented. It has one owner, who applies what sources say and publishes
/// [`Snapshot`]s.
///
/// Applying is a join: an observation that says nothing on a matter leaves it as it is, newer beats older whatever the
/// order of arrival, and applying twice is applying once. Time is handed in.
pub struct Market {
    jurisdictions: Jurisdictions,
    names: Names,
    book: Book,
    feeds: BTreeMap<ProviderId, Feed>,
    attempts: FxHashMap<OfferKey, Attempt>,
    version: u64,
    /// The moment of the last snapshot.
    shown_at: Micros,
    /// Age limits have changed: work out every offer anew.
    all_due: bool,
    history_limit: usize,
    first_answer_deadline: Duration,
    stretch: f64,
}

/// What an answer did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Applied {
    /// Observations that told something new.
    pub changed: usize,
    /// Offers that were not known before.
    pub added: usize,
    /// Offers that are no longer offered.
    pub retired: usize,
    /// The answer was held back; the last values are kept.
    pub quarantined: bool,
}

/// How an observation is taken in.
#[derive(Debug, Clone, Copy)]
struct Intake {
    now: Micros,
    /// From a published table by whoever hands it in, not by its own marks.
    published: bool,
    /// A row that a newer complete answer left out may not come back by this.
    may_add: bool,
    /// The complete answer that it is part of.
    answer: Option<u32>,
}

impl Market {
    /// An empty market.
    pub fn new(jurisdictions: Jurisdictions) -> Self {
        Self {
            jurisdictions,
            names: Names::default(),
            book: Book::default(),
            feeds: BTreeMap::new(),
            attempts: FxHashMap::default(),
            version: 0,
            shown_at: Micros::MIN,
            all_due: false,
            history_limit: limits::HISTORY_POINTS_PER_OFFER,
            first_answer_deadline: limits::FIRST_ANSWER_DEADLINE,
            stretch: 1.0,
        }
    }

    /// With another patience for first answers than [`limits::FIRST_ANSWER_DEADLINE`]: people wait in real time, so
    /// that a world that goes faster needs more of its own.
    #[must_use]
    pub fn with_first_answer_deadline(mut self, deadline: Duration) -> Self {
        self.first_answer_deadline = deadline;
        self
    }

    /// Sources are asked so many times less often than anybody would want, because the world goes faster than that: what
    /// is known turns too old so much later. 1 or less is the usual age.
    pub fn stretch(&mut self, factor: f64) {
        self.stretch = factor.max(1.0);
        for feed in self.feeds.values_mut() {
            feed.stretch = self.stretch;
        }
    }

    /// How many offers it holds.
    pub fn len(&self) -> usize {
        self.book.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.book.len() == 0
    }

    /// This provider is about to be asked, every so often. Its feed shows as loading until it answers, and as an error
    /// with its cause when it has not in time.
    pub fn expect(&mut self, provider: &ProviderId, interval: Duration, now: DateTime<Utc>) {
        let feed = self.feed(provider, now);
        feed.set_expected(now);
        if feed.interval != interval {
            feed.interval = interval;
            self.all_due = true;
        }
    }

    /// This provider cannot be asked: no credentials, not built in, switched off. What to do is the remedy.
    pub fn absent(&mut self, provider: &ProviderId, reason: &str, remedy: &str, now: DateTime<Utc>) {
        self.feed(provider, now).set_absent(reason, remedy);
    }

    /// A provider answered. An answer that lost most of its rows or whose prices all jumped is held back until it was
    /// repeated for long enough.
    pub fn apply(&mut self, provider: &ProviderId, mut answer: Offerings, now: DateTime<Utc>) -> Applied {
        if answer.observations.is_empty() && !answer.failed.is_empty() {
            // Every region failed: that is no answer.
            let worst = answer.failed.iter().find(|e| e.class == crate::domain::ErrorClass::Auth);
            if let Some(error) = worst.or(answer.failed.first()) {
                self.failed(provider, error.clone(), now);
            }
            return Applied::default();
        }
        let oddity = quarantine::examine(&self.book, provider, &answer);
        let feed = self.feed(provider, now);
        feed.counts.skipped += answer.skipped.values().map(|n| u64::from(*n)).sum::<u64>();
        feed.skipped = Arc::new(std::mem::take(&mut answer.skipped));
        if let Some(oddity) = oddity {
            let whole = u32::from(feed.is_whole(&answer.failed));
            let held = match &feed.quarantine {
                Some(held) if held.gist.is_like(oddity.gist) => {
                    Quarantine { gist: oddity.gist, answers: held.answers + whole, ..held.clone() }
                }
                _ => Quarantine { reason: oddity.reason, gist: oddity.gist, answers: whole, since: now },
            };
            if !held.is_over(feed.interval, now) {
                feed.held_back(held);
                return Applied { quarantined: true, ..Applied::default() };
            }
            feed.believe(&held);
        }
        self.take_in(provider, answer, now)
    }

    /// Take in an answer that is believed.
    fn take_in(&mut self, provider: &ProviderId, answer: Offerings, now: DateTime<Utc>) -> Applied {
        let now_micros = micros(now);
        let published_only = !answer.observations.is_empty() && answer.observations.iter().all(is_published);
        // What counts is when the answer saw the world, not when it arrived: a late one is not news.
        let seen_at = answer.observations.iter().map(|o| micros(o.at)).max().unwrap_or(now_micros).min(now_micros);
        let feed = self.feed(provider, now);
        let complete_at = feed.complete_at;
        let newest = seen_at >= complete_at;
        let answer_number = (answer.complete && newest).then(|| {
            feed.answer = feed.answer.wrapping_add(1);
            feed.answer
        });
        let current: FxHashSet<OfferKey> = if answer_number.is_some() || complete_at == Micros::MIN {
            FxHashSet::default()
        } else {
            answer.observations.iter().filter(|o| micros(o.at) > complete_at).map(|o| o.key.clone()).collect()
        };
        let mut applied = Applied::default();
        for observation in &answer.observations {
            let may_add = answer_number.is_some() || complete_at == Micros::MIN || current.contains(&observation.key);
            let published = is_published(observation);
            let intake = Intake { now: now_micros, published, may_add, answer: answer_number };
            self.merge(provider, observation, intake, &mut applied);
        }
        if let Some(number) = answer_number {
            applied.retired = self.retire(provider, number, &answer.failed, seen_at);
        }
        let offers = self.book.of(provider).count();
        if let Some(feed) = self.feeds.get_mut(provider) {
            feed.offers = offers;
            if answer_number.is_some() && answer.failed.is_empty() {
                feed.complete_at = seen_at;
            }
            feed.counts.retired += applied.retired as u64;
            feed.answered(now, answer.failed, published_only);
        }
        self.bound_histories();
        applied
    }

    /// One observation from a stream. Streams keep a feed alive; they neither retire offers nor heal failed polls.
    pub fn apply_one(&mut self, observation: &Observation, now: DateTime<Utc>) -> Applied {
        let provider = observation.key.provider.clone();
        let feed = self.feed(&provider, now);
        feed.streamed(now);
        let may_add = feed.complete_at == Micros::MIN || micros(observation.at) > feed.complete_at;
        let published = is_published(observation);
        let mut applied = Applied::default();
        let intake = Intake { now: micros(now), published, may_add, answer: None };
        self.merge(&provider, observation, intake, &mut applied);
        if let Some(feed) = self.feeds.get_mut(&provider) {
            feed.offers += applied.added;
        }
        self.bound_histories();
        applied
    }

    /// What a published table says of a provider: shown until the provider itself answers, marked as published, and
    /// never in place of anything newer. It is not an answer: the feed's health does not change by it.
    pub fn publish(&mut self, provider: &ProviderId, table: &[Observation], now: DateTime<Utc>) -> Applied {
        let may_add = self.feed(provider, now).complete_at == Micros::MIN;
        let mut applied = Applied::default();
        for observation in table {
            let intake = Intake { now: micros(now), published: true, may_add, answer: None };
            self.merge(provider, observation, intake, &mut applied);
        }
        if let Some(feed) = self.feeds.get_mut(provider) {
            feed.offers += applied.added;
        }
        self.bound_histories();
        applied
    }

    /// A poll failed. What is known stays, and ages.
    pub fn failed(&mut self, provider: &ProviderId, error: ProviderError, now: DateTime<Utc>) {
        self.feed(provider, now).failed(error);
    }

    /// A launch there was granted or refused. A refusal says "none" for [`limits::REFUSAL_HOLDS`], then "limited"
    /// until [`limits::REFUSAL_FADES`] unless the provider itself says otherwise later; then what was known before
    /// counts again. A grant says "available" for [`limits::GRANT_HOLDS`].
    pub fn attempt(&mut self, key: &OfferKey, granted: bool, now: DateTime<Utc>) {
        let attempt = Attempt { at: micros(now), granted };
        let newer = self
            .attempts
            .get(key)
            // At the same moment a refusal beats a grant.
            .is_none_or(|known| (attempt.at, !attempt.granted) > (known.at, !known.granted));
        if !newer {
            return;
        }
        if self.attempts.len() >= limits::ATTEMPTS_REMEMBERED && !self.attempts.contains_key(key) {
            let oldest = self.attempts.iter().min_by_key(|(_, a)| a.at).map(|(k, _)| k.clone());
            if let Some(oldest) = oldest {
                self.attempts.remove(&oldest);
            }
        }
        self.attempts.insert(key.clone(), attempt);
        if let Ok(place) = self.book.find(key) {
            self.book.touch(place);
        }
    }

    /// The feeds whose health is another than at the last call, as they are now; for events and alerts.
    pub fn transitions(&mut self, now: DateTime<Utc>) -> Vec<FeedStatus> {
        let mut changed = Vec::new();
        for feed in self.feeds.values_mut() {
            let mut status = feed.status(now);
            let believed = feed.believed.take();
            if feed.told != Some(status.health) {
                feed.told = Some(status.health);
                if let Some(believed) = believed {
                    let detail = format!("{believed} {}", status.detail);
                    detail.trim_end().clone_into(&mut status.detail);
                }
                changed.push(status);
            }
        }
        changed
    }

    /// The market as it is at `now`. Costs what changed since the last snapshot.
    pub fn snapshot(&mut self, now: DateTime<Utc>) -> Arc<Snapshot> {
        let now_micros = micros(now);
        // A clock that went back makes old rows young again.
        let all = std::mem::take(&mut self.all_due) || now_micros < self.shown_at;
        self.shown_at = now_micros;
        let Self { feeds, attempts, jurisdictions, names, history_limit, .. } = self;
        let limit = *history_limit;
        let mut last: Option<(ProviderId, Micros)> = None;
        let blocks = self.book.show(now_micros, all, |record| {
            let provider = &record.offer.key.provider;
            let stale_after = match &last {
                Some((p, after)) if p == provider => *after,
                _ => {
                    let after = feeds.get(provider).map_or(limits::POLL_INTERVAL * 2, Feed::stale_after);
                    last = Some((provider.clone(), span(after)));
                    span(after)
                }
            };
            let attempt = if attempts.is_empty() { None } else { attempts.get(&record.offer.key).copied() };
            let law = record.offer.jurisdiction.clone().or_else(|| {
                jurisdictions(provider.as_str(), record.offer.key.region.as_str()).map(|name| names.law(name))
            });
            let (offer, next_at) =
                record.facts.offer(&record.offer.key, law.as_ref(), attempt, stale_after, now_micros);
            record.next_at = next_at;
            let mut different = record.note(now_micros, offer.price, offer.price_is_live, offer.availability, limit);
            if *record.offer != offer {
                record.offer = Arc::new(offer);
                different = true;
            }
            different
        });
        self.attempts.retain(|_, a| !a.is_over(now_micros));
        self.version += 1;
        let statuses = self.feeds.values().map(|f| f.status(now)).collect();
        let counts = self.feeds.values().map(|f| (f.provider.clone(), f.counts, Arc::clone(&f.skipped))).collect();
        Arc::new(Snapshot::of_market(now, self.version, blocks, statuses, counts))
    }

    fn feed(&mut self, provider: &ProviderId, now: DateTime<Utc>) -> &mut Feed {
        let (deadline, stretch) = (self.first_answer_deadline, self.stretch);
        self.feeds.entry(provider.clone()).or_insert_with(|| {
            let mut feed = Feed::new(provider.clone(), deadline, now);
            feed.stretch = stretch;
            feed
        })
    }

    /// Join one observation.
    fn merge(&mut self, provider: &ProviderId, observation: &Observation, intake: Intake, applied: &mut Applied) {
        let Some(feed) = self.feeds.get_mut(provider) else { return };
        let counts = &mut feed.counts;
        if observation.key.provider != *provider {
            counts.foreign += 1;
            return;
        }
        let mut at = micros(observation.at);
        if at > intake.now.saturating_add(span(limits::FUTURE_SKEW)) {
            at = intake.now;
            counts.clamped += 1;
        }
        let sane = without_free_lunch(observation);
        counts.not_a_price += u64::from(sane.is_some());
        let observation = sane.as_ref().unwrap_or(observation);
        let place = match self.book.find(&observation.key) {
            Ok(place) => place,
            Err(_) if !intake.may_add => {
                counts.outdated += 1;
                return;
            }
            Err(_) if self.book.len() >= limits::OFFERS_MAX => {
                counts.overflow += 1;
                return;
            }
            Err(place) => {
                counts.observations += 1;
                applied.added += 1;
                applied.changed += 1;
                let mut record = self.record(observation, at, intake);
                record.answer = intake.answer.unwrap_or(feed_answer(&self.feeds, provider));
                self.book.insert(place, record);
                return;
            }
        };
        counts.observations += 1;
        let Some(record) = self.book.get_mut(place) else { return };
        if let Some(answer) = intake.answer {
            record.answer = answer;
        }
        if !record.facts.merge(observation, at, intake.published) {
            return;
        }
        applied.changed += 1;
        // What was said between two snapshots belongs to the history too.
        let (price, price_is_live) = record.facts.price();
        let attempt = if self.attempts.is_empty() { None } else { self.attempts.get(&observation.key).copied() };
        let availability = record.facts.availability(attempt, intake.now);
        let points = record.history.len();
        record.note(at, price, price_is_live, availability, self.history_limit);
        let now_points = record.history.len();
        self.book.points = self.book.points + now_points - points;
        self.book.touch(place);
    }

    /// A new record of an offer that was not known.
    fn record(&mut self, observation: &Observation, at: Micros, intake: Intake) -> Record {
        let key = self.names.key(&observation.key);
        let shape = self.names.shape(&observation.shape);
        let mut facts = Facts::new(at, shape);
        facts.merge(observation, at, intake.published);
        let law = (self.jurisdictions)(key.provider.as_str(), key.region.as_str()).map(|name| self.names.law(name));
        let attempt = self.attempts.get(&key).copied();
        let (offer, _) = facts.offer(&key, law.as_ref(), attempt, NEVER, intake.now);
        let mut record = Record {
            history: History::default(),
            history_is_live: None,
            facts,
            answer: 0,
            dirty: true,
            next_at: NEVER,
            offer: Arc::new(offer),
        };
        let (price, price_is_live) = record.facts.price();
        let availability = record.offer.availability;
        record.note(at, price, price_is_live, availability, self.history_limit);
        record
    }

    /// Remove what a complete answer does not list, except in regions that did not answer and except what is newer.
    fn retire(&mut self, provider: &ProviderId, answer: u32, failed: &[ProviderError], seen_at: Micros) -> usize {
        if failed.iter().any(|e| e.region.is_none()) {
            return 0;
        }
        let silent: FxHashSet<&Region> = failed.iter().filter_map(|e| e.region.as_ref()).collect();
        self.book.retain(provider, |record| {
            record.answer == answer || record.facts.newest() > seen_at || silent.contains(&record.offer.key.region)
        })
    }

    /// Keep all histories together within bounds: the more offers there are, the fewer points each has.
    fn bound_histories(&mut self) {
        let mut limit = limits::HISTORY_POINTS_PER_OFFER;
        while limit > limits::HISTORY_POINTS_FLOOR && limit * self.book.len() > limits::HISTORY_POINTS_TOTAL {
            limit /= 2;
        }
        if limit < self.history_limit && self.book.points > limits::HISTORY_POINTS_TOTAL {
            self.book.trim_histories(limit);
        }
        self.history_limit = limit;
    }

    #[cfg(test)]
    pub(super) fn history_points(&self) -> usize {
        self.book.points
    }
}

impl std::fmt::Debug for Market {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Market").field("offers", &self.len()).field("version", &self.version).finish_non_exhaustive()
    }
}

fn feed_answer(feeds: &BTreeMap<ProviderId, Feed>, provider: &ProviderId) -> u32 {
    feeds.get(provider).map_or(0, |f| f.answer)
}

/// The observation with a price of zero or less taken as unknown: `None` where it has none such.
fn without_free_lunch(observation: &Observation) -> Option<Observation> {
    match observation.price {
        Some(PriceStatement::Live(rate) | PriceStatement::Listed(rate) | PriceStatement::Published(rate))
            if rate <= HourlyRate::ZERO =>
        {
            Some(Observation { price: Some(PriceStatement::Unpriced), ..observation.clone() })
        }
        _ => None,
    }
}
