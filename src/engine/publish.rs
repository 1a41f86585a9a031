//! The one owner of the market and of what the screen shows: takes what feeds and drivers tell, publishes a new state.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};

use chrono::{DateTime, Utc};
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};

use super::feed::Pace;
use super::jobview::{Best, JobRecord, job_view, totals};
use super::options::Mode;
use super::shared::{Shared, world};
use super::timer;
use super::view::{Alert, JobView, State};
use crate::domain::{Event, EventKind, FeedHealth, JobId, Offer, OfferKey, ProviderError, ProviderId};
use crate::market::{Market, Snapshot};
use crate::placement::{Context, Rules};
use crate::provider::Offerings;
use crate::store::{EventQuery, NewEvent, StoreError};

/// Messages that may wait for the owner. Feeds answer once a minute each; when it is full, they wait.
pub(crate) const TOLD: usize = 256;
/// Ended jobs that stay in the published state; the ledger keeps all.
const ENDED_SHOWN: u32 = 200;

/// What the owner of the market is told.
pub(crate) enum Told {
    /// A provider answered.
    Answered(ProviderId, Offerings),
    /// A provider did not.
    Failed(ProviderId, ProviderError),
    /// A launch there was granted or refused.
    Attempt(OfferKey, bool),
    /// Publish now what is known, and say when that is done.
    Publish(oneshot::Sender<()>),
}

/// The owner.
pub(crate) struct Publisher {
    shared: Weak<Shared>,
    market: Market,
    pace: Pace,
    snapshot: Arc<Snapshot>,
    out: watch::Sender<Arc<State>>,
    records: HashMap<JobId, JobRecord>,
    events: VecDeque<Event>,
    last_event: i64,
    alerts: Arc<[Alert]>,
    best: BTreeMap<JobId, Best>,
    best_at: Option<DateTime<Utc>>,
    loaded: bool,
    foreign: i64,
}

impl Publisher {
    pub(crate) fn new(shared: &Arc<Shared>, market: Market, out: watch::Sender<Arc<State>>) -> Self {
        let state = out.borrow().clone();
        Self {
            shared: Arc::downgrade(shared),
            market,
            pace: Pace::of(&shared.limits, shared.clock.speed()),
            snapshot: state.market.clone(),
            out,
            records: HashMap::new(),
            events: VecDeque::new(),
            last_event: 0,
            alerts: Arc::new([]),
            best: BTreeMap::new(),
            best_at: None,
            loaded: false,
            foreign: 0,
        }
    }

    /// Runs until the engine is dropped. In live mode it also looks for what other processes wrote.
    pub(crate) async fn run(mut self, mut told: mpsc::Receiver<Told>, mut written: watch::Receiver<u64>) {
        loop {
            let Some(shared) = self.shared.upgrade() else { return };
            let (stop, live, follow) = (shared.stop.clone(), shared.mode == Mode::Live, shared.limits.follow_every);
            drop(shared);
            let mut asked = Vec::new();
            let mut idle = false;
            tokio::select! {
                () = stop.cancelled() => return,
                message = told.recv() => match message {
                    Some(message) => self.take(message, &mut asked),
                    None => return,
                },
                changed = written.changed() => if changed.is_err() { return },
                () = timer::wait(follow * 2), if live => idle = true,
            }
            while let Ok(message) = told.try_recv() {
                self.take(message, &mut asked);
            }
            written.mark_unchanged();
            let Some(shared) = self.shared.upgrade() else { return };
            if idle && !self.foreign_change(&shared).await {
                continue;
            }
            if let Err(error) = self.publish(&shared).await {
                tracing::error!(%error, "the state cannot be read from the ledger; the last one stays");
            }
            for done in asked {
                let _ = done.send(());
            }
        }
    }

    /// Whether another process has written to the ledger since the last look.
    async fn foreign_change(&mut self, shared: &Arc<Shared>) -> bool {
        if let Ok(version) = shared.ledger.foreign_version().await {
            return std::mem::replace(&mut self.foreign, version) != version;
        }
        // What is wrong is to be seen, and to be gone from the screen when it is over.
        self.foreign = 0;
        true
    }

    fn take(&mut self, message: Told, asked: &mut Vec<oneshot::Sender<()>>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let now = shared.now();
        match message {
            Told::Answered(provider, offerings) => {
                self.market.apply(&provider, offerings, now);
            }
            Told::Failed(provider, error) => self.market.failed(&provider, error, now),
            Told::Attempt(offer, granted) => self.market.attempt(&offer, granted, now),
            Told::Publish(done) => asked.push(done),
        }
    }

    /// Build and publish the state of now.
    pub(crate) async fn publish(&mut self, shared: &Arc<Shared>) -> Result<(), StoreError> {
        let now = shared.now();
        let pace = Pace::of(&shared.limits, shared.clock.speed());
        if std::mem::replace(&mut self.pace, pace) != pace {
            // The world goes at another speed now.
            self.market.stretch(pace.stretch);
            for connected in &shared.providers {
                self.market.expect(connected.watch.id(), pace.every, now);
            }
        }
        self.snapshot = self.market.snapshot(now);
        let ledger = async {
            if shared.mode == Mode::Live && !shared.read_only {
                self.tell_feeds(shared, now).await?;
            }
            self.read_ledger(shared).await
        };
        let ledger = ledger.await;
        self.rank_best(shared, now);
        let mut jobs: Vec<JobView> = self
            .records
            .values()
            .map(|record| {
                job_view(record, &self.snapshot, self.best.get(&record.job.id).copied().unwrap_or_default(), now)
            })
            .collect();
        jobs.sort_by(|a, b| (a.state.is_final(), b.created_at, &b.id).cmp(&(b.state.is_final(), a.created_at, &a.id)));
        let (usd_per_hour, gpus) = totals(self.records.values());
        let state = State {
            at: now,
            market: self.snapshot.clone(),
            network: shared.network.clone(),
            jobs: jobs.into(),
            events: self.events.iter().cloned().collect(),
            alerts: match &ledger {
                Ok(()) => self.alerts.clone(),
                Err(error) => self.with_ledger_alert(error, now),
            },
            absent: shared.absent.clone().into(),
            usd_per_hour,
            gpus,
            speed: shared.clock.speed(),
        };
        self.out.send_replace(Arc::new(state));
        ledger
    }

    /// A ledger that cannot be used is told where it is seen: the market goes on, and jobs stand still on the screen.
    fn with_ledger_alert(&self, error: &StoreError, now: DateTime<Utc>) -> Arc<[Alert]> {
        let text =
            format!("the ledger cannot be used, jobs are shown as they were and nothing can be started: {error}");
        let alert = Alert { seq: 0, since: now, job: None, text, acknowledged_by: None };
        std::iter::once(alert).chain(self.alerts.iter().cloned()).collect()
    }

    /// Feeds that changed their health become events.
    async fn tell_feeds(&mut self, shared: &Arc<Shared>, now: DateTime<Utc>) -> Result<(), StoreError> {
        let changed = self.market.transitions(now);
        if changed.is_empty() {
            return Ok(());
        }
        let mut tx = shared.begin().await?;
        for feed in changed {
            let quiet = match feed.health {
                FeedHealth::Loading | FeedHealth::NoCredentials => true,
                FeedHealth::Published => feed.detail.is_empty(),
                _ => false,
            };
            if quiet {
                continue;
            }
            let key = format!("feed:{}", feed.provider);
            let text = format!("feed {}: {} {}", feed.provider, feed.health.label(), feed.detail);
            let data = json!({ "provider": feed.provider, "health": feed.health, "code": feed.error.as_ref().map(|e| &e.code) });
            let event = NewEvent {
                at: now,
                actor: &shared.actor,
                kind: EventKind::Feed,
                job: None,
                plan: None,
                text: text.trim_end().to_owned(),
                data,
            };
            if matches!(feed.health, FeedHealth::AuthNeeded | FeedHealth::Quarantined | FeedHealth::Down) {
                tx.raise_alert(&key, event).await?;
            } else {
                tx.append_event(event).await?;
                tx.clear_alert(&key, now).await?;
            }
        }
        tx.commit().await
    }

    /// Read what changed: jobs that we touched, and those that new events are about, whoever wrote them.
    async fn read_ledger(&mut self, shared: &Arc<Shared>) -> Result<(), StoreError> {
        let mut touched: BTreeSet<JobId> =
            std::mem::take(&mut *shared.touched.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let mut tx = shared.ledger.read().await?;
        let query = EventQuery {
            after: Some(self.last_event),
            limit: Some(shared.limits.events_shown),
            ..EventQuery::default()
        };
        let fresh = tx.events(&query).await?;
        if self.loaded {
            touched.extend(fresh.iter().filter_map(|e| e.job.clone()));
        } else {
            for record in JobRecord::read_recent(&mut tx, ENDED_SHOWN).await? {
                self.records.insert(record.job.id.clone(), record);
            }
            touched.clear();
        }
        for id in &touched {
            match JobRecord::read(&mut tx, id).await? {
                Some(record) => self.records.insert(id.clone(), record),
                None => self.records.remove(id),
            };
        }
        self.forget_ended();
        self.alerts = tx
            .alerts()
            .await?
            .into_iter()
            .map(|a| Alert { seq: a.seq, since: a.since, job: a.job, text: a.text, acknowledged_by: a.acknowledged_by })
            .collect();
        drop(tx);
        self.loaded = true;
        if let Some(last) = fresh.last() {
            self.last_event = last.seq;
        }
        self.events.extend(fresh);
        while self.events.len() > shared.limits.events_shown as usize {
            self.events.pop_front();
        }
        Ok(())
    }

    /// Of ended jobs only the latest stay; the ledger has all. Else weeks of short jobs would fill the memory.
    fn forget_ended(&mut self) {
        let mut ended: Vec<(Option<DateTime<Utc>>, JobId)> = self
            .records
            .values()
            .filter(|r| r.job.state.is_final() && r.operation.is_none() && r.billing().next().is_none())
            .map(|r| (r.job.ended_at, r.job.id.clone()))
            .collect();
        let many = ended.len().saturating_sub(ENDED_SHOWN as usize);
        if many > 0 {
            ended.sort();
            for (_, id) in ended.into_iter().take(many) {
                self.records.remove(&id);
            }
        }
    }

    /// What the best place would cost each live job now; not more often than the limit says, and for a few jobs at once.
    fn rank_best(&mut self, shared: &Arc<Shared>, now: DateTime<Utc>) {
        self.best.retain(|id, _| self.records.get(id).is_some_and(|r| !r.job.state.is_final()));
        let missing = |id: &JobId, best: &BTreeMap<JobId, Best>| !best.contains_key(id);
        let due = self.best_at.is_none_or(|at| now - at >= world(shared.limits.best_every) || now < at);
        let mut live: Vec<&JobRecord> = self
            .records
            .values()
            .filter(|r| !r.job.state.is_final() && (due || missing(&r.job.id, &self.best)))
            .collect();
        // Before every cloud has answered or failed, the best place of those that have is not the best place.
        let waiting = |f: &crate::domain::FeedStatus| f.health == FeedHealth::Loading && f.error.is_none();
        if live.is_empty() || self.snapshot.is_empty() || self.snapshot.feeds().iter().any(waiting) {
            return;
        }
        // Those whose turn is longest ago come first, so that each has one.
        live.sort_by_key(|r| (self.best.get(&r.job.id).and_then(|b| b.at), r.job.id.clone()));
        let forbid = |offer: &Offer| shared.cannot_launch(&offer.key.provider);
        for record in live.into_iter().take(shared.limits.best_batch) {
            let context =
                Context { snapshot: &self.snapshot, network: &shared.network, now, cooling: &[], current: None };
            let best = Best::of(record, &context, Rules { forbid: Some(&forbid), ..shared.rules() });
            self.best.insert(record.job.id.clone(), Best { at: Some(now), ..best });
        }
        if due {
            self.best_at = Some(now);
        }
    }
}

impl Shared {
    /// Publish what is known now, and wait until it is.
    pub(crate) async fn publish_now(&self) {
        let (done, wait) = oneshot::channel();
        self.tell(Told::Publish(done)).await;
        let _ = wait.await;
    }
}
