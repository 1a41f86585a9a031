//! How a source of observations is doing, and the sentence that says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::quarantine::Gist;
use crate::config::limits;
use crate::domain::{ErrorClass, FeedHealth, FeedStatus, ProviderError, ProviderId};

/// What a source's answers did to the market since the start. Nothing is dropped without being counted here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeedCounts {
    /// Observations that were taken in.
    pub observations: u64,
    /// Offers removed because a complete answer did not list them any more.
    pub retired: u64,
    /// Rows that the adapter could not use; [`super::Snapshot::skipped`] has the last answer's reasons.
    pub skipped: u64,
    /// Observations from the future, taken as of their arrival.
    pub clamped: u64,
    /// Prices of zero or less, taken as unknown.
    pub not_a_price: u64,
    /// Observations about another provider's offers, refused.
    pub foreign: u64,
    /// Observations of offers that a newer complete answer had already left out.
    pub outdated: u64,
    /// New offers that found the market full.
    pub overflow: u64,
}

/// An answer is held back, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quarantine {
    /// What is odd about it, as the start of a sentence.
    pub(super) reason: String,
    /// What the last held-back answer said in all.
    pub(super) gist: Gist,
    /// How many whole answers in a row said the same.
    pub(super) answers: u32,
    /// When the first of them came.
    pub(super) since: DateTime<Utc>,
}

impl Quarantine {
    /// From when on it may be believed.
    fn until(&self, interval: Duration) -> DateTime<Utc> {
        let holds = interval.saturating_mul(limits::QUARANTINE_ACCEPT_POLLS);
        self.since + chrono::Duration::from_std(holds).unwrap_or(chrono::Duration::MAX)
    }

    /// Whether it was said so often and for so long that it is a change, not a glitch.
    pub(super) fn is_over(&self, interval: Duration, now: DateTime<Utc>) -> bool {
        self.answers >= limits::QUARANTINE_ACCEPT_AFTER && now >= self.until(interval)
    }

    /// What has to happen for it to be believed.
    fn condition(&self, interval: Duration) -> String {
        let left = limits::QUARANTINE_ACCEPT_AFTER.saturating_sub(self.answers).max(1);
        let answers = if left == 1 { "answer agrees" } else { "answers agree" };
        format!("believed when {left} more {answers}, from {} on", self.until(interval).format("%H:%M:%SZ"))
    }
}

/// One source.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) provider: ProviderId,
    expected_at: DateTime<Utc>,
    pub(super) interval: Duration,
    /// How long its first answer is awaited.
    pub(super) deadline: Duration,
    /// By how much longer than usual what it said counts before it is down.
    pub(super) stretch: f64,
    absent: Option<(String, String)>,
    answered_at: Option<DateTime<Utc>>,
    streamed_at: Option<DateTime<Utc>>,
    failures: u32,
    error: Option<ProviderError>,
    failed_regions: Vec<ProviderError>,
    published_only: bool,
    pub(super) quarantine: Option<Quarantine>,
    /// An answer that had been held back is believed since the last look at changes: what was odd about it.
    pub(super) believed: Option<String>,
    /// The number of the last complete answer; rows carry it too.
    pub(super) answer: u32,
    /// When the newest complete answer was seen, in micro-seconds.
    pub(super) complete_at: i64,
    pub(super) offers: usize,
    pub(super) counts: FeedCounts,
    /// Rows that the adapter could not use in its last answer, by reason.
    pub(super) skipped: Arc<BTreeMap<String, u32>>,
    pub(super) told: Option<FeedHealth>,
}

impl Feed {
    pub(super) fn new(provider: ProviderId, deadline: Duration, now: DateTime<Utc>) -> Self {
        Self {
            provider,
            expected_at: now,
            interval: limits::POLL_INTERVAL,
            deadline,
            stretch: 1.0,
            absent: None,
            answered_at: None,
            streamed_at: None,
            failures: 0,
            error: None,
            failed_regions: Vec::new(),
            published_only: false,
            quarantine: None,
            believed: None,
            answer: 0,
            complete_at: i64::MIN,
            offers: 0,
            counts: FeedCounts::default(),
            skipped: Arc::default(),
            told: None,
        }
    }

    /// The age limit of what it says.
    pub(super) fn stale_after(&self) -> Duration {
        self.interval.saturating_mul(limits::STALE_AFTER_POLLS)
    }

    /// Past this age it is not merely stale but down.
    fn down_after(&self) -> Duration {
        self.stale_after().max(limits::FIGURES_EXPIRE_AFTER.mul_f64(self.stretch))
    }

    /// It cannot be asked at all.
    pub(super) fn set_absent(&mut self, reason: &str, remedy: &str) {
        self.absent = Some((reason.to_owned(), remedy.to_owned()));
    }

    /// It is going to be asked from now on.
    pub(super) fn set_expected(&mut self, now: DateTime<Utc>) {
        if self.absent.take().is_some() || self.answered_at.is_none() {
            self.expected_at = now;
        }
    }

    /// It answered and was believed.
    pub(super) fn answered(&mut self, now: DateTime<Utc>, failed_regions: Vec<ProviderError>, published_only: bool) {
        self.absent = None;
        self.answered_at = Some(self.answered_at.map_or(now, |a| a.max(now)));
        self.failures = 0;
        self.error = failed_regions.first().cloned();
        self.failed_regions = failed_regions;
        self.published_only = published_only;
        self.quarantine = None;
    }

    /// A stream brought something.
    pub(super) fn streamed(&mut self, now: DateTime<Utc>) {
        self.absent = None;
        self.streamed_at = Some(self.streamed_at.map_or(now, |a| a.max(now)));
    }

    /// It was asked and failed.
    pub(super) fn failed(&mut self, error: ProviderError) {
        let refused = self.failures > 0 && self.error.as_ref().is_some_and(|e| e.class == ErrorClass::Auth);
        self.failures = self.failures.saturating_add(1);
        // Credentials that were refused stay refused until an answer proves otherwise, whatever fails meanwhile.
        if !refused || error.class == ErrorClass::Auth {
            self.error = Some(error);
        }
    }

    /// It answered and was not believed.
    pub(super) fn held_back(&mut self, quarantine: Quarantine) {
        self.quarantine = Some(quarantine);
    }

    /// It answered like this again, and is believed now.
    pub(super) fn believe(&mut self, quarantine: &Quarantine) {
        self.believed = Some(format!(
            "{}; {} answers alike since {}: believed now.",
            quarantine.reason,
            quarantine.answers,
            quarantine.since.format("%H:%M:%SZ")
        ));
    }

    /// Whether an answer is whole enough to count against what is known: no more regions failed than in the last one
    /// that was believed.
    pub(super) fn is_whole(&self, failed: &[ProviderError]) -> bool {
        failed.len() <= self.failed_regions.len()
    }

    /// As shown at `now`.
    pub(super) fn status(&self, now: DateTime<Utc>) -> FeedStatus {
        let (health, detail) = self.diagnose(now);
        FeedStatus {
            provider: self.provider.clone(),
            health,
            offers: self.offers,
            answered_at: self.last_heard(),
            failures: self.failures,
            error: self.error.clone(),
            detail,
        }
    }

    fn last_heard(&self) -> Option<DateTime<Utc>> {
        self.answered_at.max(self.streamed_at)
    }

    fn diagnose(&self, now: DateTime<Utc>) -> (FeedHealth, String) {
        if let Some((reason, remedy)) = &self.absent {
            return (FeedHealth::NoCredentials, join_sentences(reason, remedy));
        }
        let cause = self.error.as_ref().map_or_else(String::new, sentence);
        if self.failures > 0 && self.error.as_ref().is_some_and(|e| e.class == ErrorClass::Auth) {
            // At once, and however young the last values are: nothing newer comes until somebody logs in.
            return (FeedHealth::AuthNeeded, cause);
        }
        let Some(heard) = self.last_heard() else {
            return self.diagnose_silent(now, &cause);
        };
        let age = (now - heard).to_std().unwrap_or_default();
        let since = heard.format("%H:%M:%SZ");
        if age > self.down_after() {
            let what = if self.failures > 0 {
                format!("{} polls in a row failed; the last values are of {since}. {cause}", self.failures)
            } else {
                format!("Has not answered since {since}.")
            };
            return (FeedHealth::Down, what);
        }
        if let Some(q) = &self.quarantine {
            let condition = q.condition(self.interval);
            let what = format!("{}; not believed yet, the values of {since} are kept: {condition}.", q.reason);
            return (FeedHealth::Quarantined, what);
        }
        if self.failures >= limits::FAILURES_BEFORE_STALE {
            let what = format!("{} polls in a row failed; the values of {since} are shown. {cause}", self.failures);
            return (FeedHealth::Stale, what);
        }
        if age > self.stale_after() {
            let what = format!("No answer since {since}, though one is due every {}. {cause}", words(self.interval));
            return (FeedHealth::Stale, what.trim_end().to_owned());
        }
        if self.failures > 0 {
            // One miss is told, and changes nothing yet.
            let polls = if self.failures == 1 { "poll" } else { "polls" };
            let what =
                format!("The last {} {polls} failed; the values of {since} are still in time. {cause}", self.failures);
            let health = if self.failed_regions.is_empty() { self.well() } else { FeedHealth::Partial };
            return (health, what);
        }
        if !self.failed_regions.is_empty() {
            return (FeedHealth::Partial, self.partial_detail());
        }
        (self.well(), String::new())
    }

    fn well(&self) -> FeedHealth {
        if self.published_only { FeedHealth::Published } else { FeedHealth::Live }
    }

    /// Before anything was ever heard of it.
    fn diagnose_silent(&self, now: DateTime<Utc>, cause: &str) -> (FeedHealth, String) {
        if let Some(q) = &self.quarantine {
            return (FeedHealth::Quarantined, format!("{}; {}.", q.reason, q.condition(self.interval)));
        }
        let waited = (now - self.expected_at).to_std().unwrap_or_default();
        if waited <= self.deadline {
            let what = if self.failures > 0 { format!("The first poll failed. {cause}") } else { String::new() };
            return (FeedHealth::Loading, what);
        }
        let what = if self.failures > 0 {
            format!("Never answered; {} polls failed. {cause}", self.failures)
        } else {
            format!("No answer within {}; it is still being asked.", words(self.deadline))
        };
        (FeedHealth::Down, what)
    }

    fn partial_detail(&self) -> String {
        let mut places: Vec<String> = self
            .failed_regions
            .iter()
            .map(|e| {
                let place = e.region.as_ref().map_or("some region", |r| r.as_str());
                format!("{} ({})", crate::domain::text::inert(place), e.class)
            })
            .collect();
        places.sort();
        places.dedup();
        let count = places.len();
        let more = if count > 5 { format!(" and {} more", count - 5) } else { String::new() };
        places.truncate(5);
        let regions = if count == 1 { "region" } else { "regions" };
        format!(
            "{count} {regions} did not answer: {}{more}; their last values are shown with their age.",
            places.join(", ")
        )
    }
}

/// An error as a sentence with what to do about it.
fn sentence(error: &ProviderError) -> String {
    join_sentences(&error.to_string(), error.remedy())
}

fn join_sentences(first: &str, second: &str) -> String {
    let first = first.trim_end_matches(['.', ' ']);
    if second.is_empty() { format!("{first}.") } else { format!("{first}. {second}") }
}

/// `90 s`, `5 min`, `6 h`.
fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        7_200.. => format!("{} h", (seconds + 1_800) / 3_600),
        600.. => format!("{} min", (seconds + 30) / 60),
        120.. if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}
