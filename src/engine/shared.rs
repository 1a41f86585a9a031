//! What all parts of a running engine share.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::EngineError;
use super::ids::Ids;
use super::options::{Mode, PriceWatch};
use super::publish::Told;
use super::timer;
use super::view::State;
use crate::config::limits::EngineLimits;
use crate::domain::{Actor, Clock, InstanceId, JobId, OperationId, ProviderId};
use crate::network::Network;
use crate::provider::{Absent, Connected};
use crate::store::{Ledger, NewEvent, StoreError, Tx};

/// What all parts of a running engine share.
pub(crate) struct Shared {
    pub(crate) ledger: Ledger,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) providers: Vec<Connected>,
    pub(crate) absent: Vec<Absent>,
    pub(crate) network: Arc<Network>,
    pub(crate) limits: EngineLimits,
    /// Whose marks are ours.
    pub(crate) owner: String,
    /// Who we are among the processes on this ledger.
    pub(crate) holder: String,
    /// Offers to be told of.
    pub(crate) watches: Vec<PriceWatch>,
    /// Whether a process is known to have ended.
    pub(crate) has_ended: fn(&str) -> bool,
    /// In whose name we act where no operator asked.
    pub(crate) actor: Actor,
    pub(crate) mode: Mode,
    pub(crate) read_only: bool,
    pub(crate) ids: Ids,
    /// To the owner of market and state. Bounded; when it is full, whoever tells waits.
    pub(crate) told: mpsc::Sender<Told>,
    pub(crate) state: watch::Receiver<Arc<State>>,
    /// Jobs that changed since the state was last built. A set: it never overflows.
    pub(crate) touched: Mutex<BTreeSet<JobId>>,
    /// Something was written: the state is due, and whoever settles looks again.
    pub(crate) written: watch::Sender<u64>,
    /// Wakes the driver of an operation.
    pub(crate) wakes: Mutex<HashMap<OperationId, Arc<Notify>>>,
    /// Orphans whose end this process is seeing to.
    pub(crate) orphans_ending: Mutex<HashSet<(ProviderId, InstanceId)>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Shared {
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// So much of the world's time in real time.
    pub(crate) fn real(&self, world: Duration) -> Duration {
        timer::real(&*self.clock, world)
    }

    /// Until when a lease taken now lasts, by the world's clock.
    pub(crate) fn lease_until(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + world(self.limits.lease.mul_f64(self.clock.speed().clamp(0.001, 1e6)))
    }

    /// Whether the holder of a lease is a process that is known to have ended.
    pub(crate) fn is_dead(&self, holder: &str) -> bool {
        holder.split_once(' ').is_some_and(|(_, process)| (self.has_ended)(process))
    }

    /// Begin to write.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        self.ledger.begin().await
    }

    /// Make it durable and let everybody know who looks at this job.
    pub(crate) async fn commit(&self, tx: Tx, job: Option<&JobId>) -> Result<(), StoreError> {
        tx.commit().await?;
        if let Some(job) = job {
            self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(job.clone());
        }
        self.written.send_modify(|n| *n += 1);
        Ok(())
    }

    /// The ledger's error as the engine's.
    pub(crate) fn ledger_error(&self, error: StoreError) -> EngineError {
        match error {
            StoreError::Conflict(what) => EngineError::Conflict(what),
            StoreError::Illegal(what) => EngineError::Conflict(what.to_string()),
            other => EngineError::Ledger { path: self.ledger.path().display().to_string(), message: other.to_string() },
        }
    }

    pub(crate) fn wake_of(&self, operation: &OperationId) -> Arc<Notify> {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        wakes.entry(operation.clone()).or_default().clone()
    }

    pub(crate) fn wake(&self, operation: &OperationId) {
        self.wake_of(operation).notify_one();
    }

    pub(crate) fn forget_wake(&self, operation: &OperationId) {
        self.wakes.lock().unwrap_or_else(PoisonError::into_inner).remove(operation);
    }

    /// Tell the owner of the market; waits where it is busy, and does nothing once it has ended.
    pub(crate) async fn tell(&self, told: Told) {
        let _ = self.told.send(told).await;
    }

    /// Raise an alert in a transaction of its own.
    pub(crate) async fn alert(&self, key: &str, event: NewEvent<'_>) -> Result<(), StoreError> {
        let job = event.job.map(|(id, _)| id.clone());
        let mut tx = self.begin().await?;
        if tx.raise_alert(key, event).await? { self.commit(tx, job.as_ref()).await } else { Ok(()) }
    }

    /// Whether a provider acts for us in this session.
    pub(crate) fn acts(&self, provider: &ProviderId) -> bool {
        !self.read_only && self.providers.iter().any(|c| c.watch.id() == provider && c.act.is_some())
    }
}

/// A duration of the world for its clock's times.
pub(crate) fn world(duration: Duration) -> chrono::Duration {
    chrono::Duration::from_std(duration).unwrap_or(chrono::Duration::MAX)
}

/// An age or a wait for people: in the largest unit that leaves at least two of it, never negative.
pub(crate) fn words(time: chrono::Duration) -> String {
    let seconds = time.num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

impl Shared {
    /// A person knows of an alert.
    pub(crate) async fn acknowledge(&self, seq: i64, actor: &Actor, note: &str) -> Result<(), EngineError> {
        if self.read_only {
            return Err(EngineError::Refused { reason: "this session is read-only".to_owned() });
        }
        let now = self.now();
        let write = async {
            let mut tx = self.begin().await?;
            tx.acknowledge_alert(seq, &actor.to_string(), note, now).await?;
            let text = if note.is_empty() {
                format!("alert {seq} acknowledged")
            } else {
                format!("alert {seq} acknowledged: {note}")
            };
            let data = serde_json::json!({ "alert": seq });
            tx.append_event(NewEvent {
                at: now,
                actor,
                kind: crate::domain::EventKind::Acknowledged,
                job: None,
                plan: None,
                text,
                data,
            })
            .await?;
            self.commit(tx, None).await
        };
        write.await.map_err(|e| self.ledger_error(e))
    }
}
