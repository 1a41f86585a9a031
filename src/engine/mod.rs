//! The only module that acts: feeds, operations, recovery, alerts.
//!
//! - What is wished becomes a plan ([`Engine::propose`]); what is confirmed becomes an intent on the disk
//!   ([`Engine::execute`]); only then is a provider called. An operation's driver does one step at a time and writes what
//!   came of it; any process can go on from the ledger alone.
//! - A launch that was not answered is looked for by its token and mark, never repeated blindly. A machine counts as
//!   billed from the moment its request is sent until the provider shows that it is gone.
//! - A terminate never gives up, and never touches a machine whose mark is not the one that was launched.
//! - A machine belongs to the account that it was made in: another account's session proves, repeats and ends nothing.
//! - An end is never refused for want of the ledger: it is noted beside it, asked for, and made up for later.
//! - Nothing costs more than an operator agreed to: a recovery keeps to the ceiling of the last confirmed plan.
//! - Two processes on one ledger: an operation has one driver at a time, by a lease; a driver that lost it writes nothing
//!   more, and the token it may still send is the same token.

use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::{
    Actor, Event, FeedStatus, Instance, InstanceId, JobId, JobSpec, Location, OperationId, Plan, PlanId, ProviderError,
    ProviderId,
};
use crate::market::Market;
use crate::placement::Ranking;
use crate::provider::Connected;
use crate::store::{Ledger, OpenOptions};

mod account;
mod boot;
mod calls;
mod choose;
mod driver;
mod emergency;
mod execute;
mod feed;
mod ids;
mod jobview;
mod launch;
mod lookup;
mod observe;
pub mod options;
mod orphans;
mod prices;
mod propose;
mod publish;
mod reaction;
mod reconcile;
mod recover;
mod removal;
pub mod report;
mod shared;
mod start_script;
mod timer;
pub mod token;
pub mod view;

use ids::Ids;
pub use options::{Mode, Options, PriceWatch};
pub use report::{Attempt, ChainReport, CostLine, EventFilter, Outcome, Reconciliation};
use shared::Shared;
pub use view::{Alert, InstanceView, JobView, OperationView, State};

/// Why the engine did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Nothing fits. Exit code 3.
    #[error("no feasible placement for '{name}'")]
    NoPlace {
        /// The job.
        name: String,
        /// With every refusal and what would help.
        ranking: Box<Ranking>,
    },
    /// Policy, budget or read-only. Exit code 4.
    #[error("refused: {reason}")]
    Refused {
        /// Why, and what to do.
        reason: String,
    },
    /// A provider could not be reached or refused. Exit code 5.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// Somebody else changed it. Exit code 6.
    #[error("conflict: {0}")]
    Conflict(String),
    /// No such job, or its name fits several. Exit code 2.
    #[error("{0}")]
    NotFound(String),
    /// A job, price or state that does not allow it. Exit code 1.
    #[error("{0}")]
    Failed(String),
    /// The ledger could not be read or written. Exit code 1.
    #[error("the ledger {path}: {message}")]
    Ledger {
        /// The file.
        path: String,
        /// What happened and what to do.
        message: String,
    },
}

/// A wish, before it is confirmed.
#[derive(Debug, Clone)]
pub enum Wish {
    /// Run this.
    Launch {
        /// The job.
        spec: Box<JobSpec>,
        /// Which of the ranked candidates, from 0.
        candidate: usize,
    },
    /// Move this job.
    Migrate {
        /// Which.
        job: JobId,
        /// Where to; `None` is wherever it is best.
        to: Option<Location>,
    },
    /// Stop and release all that this job holds.
    Terminate {
        /// Which.
        job: JobId,
    },
}

/// A plan as shown for confirmation. What is executed is this and nothing else.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// What was wished.
    pub wish: Wish,
    /// What will be done.
    pub plan: Plan,
    /// What else was considered, and what was refused.
    pub ranking: Ranking,
    /// The job's version that it was made for; a changed job makes it void.
    pub job_version: Option<i64>,
}

/// The handle to a running engine. Cheap to clone; when the last one is dropped, everything stops where it is, which is
/// safe: the ledger knows the rest.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    _alive: Arc<Alive>,
}

/// Stops the engine's tasks when the last handle is dropped.
struct Alive(CancellationToken);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Engine {
    /// Open the ledger and, in live mode, start feeds, reconciler and recovery. In one-shot mode nothing runs by itself.
    pub async fn start(options: Options) -> Result<Self, EngineError> {
        let now = options.clock.now();
        let ids = Ids::new(options.seed);
        let path = options.ledger.clone();
        let new_owner = options.owner.clone().unwrap_or_else(|| ids.next(now));
        let wrong = |message| EngineError::Ledger { path: path.display().to_string(), message };
        let ledger = Ledger::open(OpenOptions { path: path.clone(), new_owner, crash: options.crash })
            .await
            .map_err(|e| wrong(e.to_string()))?;
        let owner = ledger.owner().to_owned();
        // Another owner's marks on this ledger's machines would hide them: nothing is done then.
        if let Some(other) = options.owner.filter(|o| *o != owner) {
            return Err(wrong(format!(
                "it belongs to the owner '{owner}', but the configuration says '{other}' (`owner` under [ledger])"
            )));
        }
        let (told, messages) = mpsc::channel(publish::TOLD);
        let pace = feed::Pace::of(&options.limits, options.clock.speed());
        let mut market = Market::new(options.jurisdictions).with_first_answer_deadline(pace.first_answer);
        market.stretch(pace.stretch);
        for connected in &options.providers {
            let id = connected.watch.id();
            market.expect(id, pace.every, now);
            let table: Vec<_> = options.published.iter().filter(|o| &o.key.provider == id).cloned().collect();
            market.publish(id, &table, now);
        }
        for absent in &options.absent {
            let id = &absent.provider;
            let table: Vec<_> = options.published.iter().filter(|o| &o.key.provider == id).cloned().collect();
            if !table.is_empty() {
                market.publish(id, &table, now);
            }
            market.absent(&absent.provider, &absent.reason, &absent.remedy, now);
        }
        let first = State {
            at: now,
            market: market.snapshot(now),
            network: options.network.clone(),
            jobs: Arc::new([]),
            events: Arc::new([]),
            alerts: Arc::new([]),
            absent: options.absent.clone().into(),
            usd_per_hour: crate::domain::HourlyRate::ZERO,
            gpus: 0,
            speed: options.clock.speed(),
        };
        let (out, state) = watch::channel(Arc::new(first));
        let (written, changes) = watch::channel(0);
        let read_only = options.read_only;
        let connect = |c: Connected| if read_only { c.into_read_only() } else { c };
        let shared = Arc::new(Shared {
            // Several engines of one process are told apart by what is random.
            holder: match options.process {
                Some(process) => format!("{} {process}", ids.next(now)),
                None => ids.next(now),
            },
            has_ended: options.has_ended,
            watches: options.watches,
            ledger,
            clock: options.clock,
            providers: options.providers.into_iter().map(connect).collect(),
            absent: options.absent,
            network: options.network,
            limits: options.limits,
            owner,
            actor: options.actor,
            mode: options.mode,
            read_only,
            ids,
            told,
            state,
            touched: Mutex::default(),
            written,
            wakes: Mutex::default(),
            orphans_ending: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        let mut publisher = publish::Publisher::new(&shared, market, out);
        publisher.publish(&shared).await.map_err(|e| shared.ledger_error(e))?;
        shared.tasks.spawn(publisher.run(messages, changes));
        if shared.mode == Mode::Live {
            for connected in &shared.providers {
                Self::run(&shared, feed::run(shared.clone(), connected.watch.id().clone()));
            }
            Self::run(&shared, recover::run(shared.clone()));
        }
        let alive = Arc::new(Alive(shared.stop.clone()));
        Ok(Self { shared, _alive: alive })
    }

    /// A task that ends when the engine stops.
    fn run(shared: &Arc<Shared>, work: impl Future<Output = ()> + Send + 'static) {
        let stop = shared.stop.clone();
        shared.tasks.spawn(async move {
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Ask these providers (all, where `None`) for their offers now, in parallel, each within its deadline.
    pub async fn refresh_feeds(&self, providers: Option<&[ProviderId]>) -> Result<Vec<FeedStatus>, EngineError> {
        self.shared.ask_all(providers).await;
        let state = self.shared.state.borrow();
        let wanted = |f: &&FeedStatus| providers.is_none_or(|p| p.contains(&f.provider));
        Ok(state.market.feeds().iter().filter(wanted).cloned().collect())
    }

    /// Ask every provider for its offers and instances now; returns when all have answered or run out of time. A provider
    /// that does not answer is no error of this call: its feed says so.
    pub async fn refresh(&self) -> Result<(), EngineError> {
        let ((), compared) = tokio::join!(self.shared.ask_all(None), self.shared.reconcile());
        compared.map_err(|e| self.shared.ledger_error(e))?;
        self.shared.publish_now().await;
        Ok(())
    }

    /// Compare what the clouds hold under our mark with the ledger now: cloud first, then ledger.
    pub async fn reconcile(&self) -> Result<Reconciliation, EngineError> {
        let report = self.shared.reconcile().await.map_err(|e| self.shared.ledger_error(e))?;
        self.shared.publish_now().await;
        Ok(report)
    }

    /// Go on with operations that nobody drives any more; gives how many. A live engine does so by itself.
    pub async fn resume(&self) -> Result<usize, EngineError> {
        self.shared.resume().await.map_err(|e| self.shared.ledger_error(e))
    }

    /// Start the recovery of every preempted job that asks for it; gives how many. A live engine does so by itself.
    pub async fn recover(&self) -> Result<usize, EngineError> {
        self.shared.recover().await.map_err(|e| self.shared.ledger_error(e))
    }

    /// The newest state, and a way to wait for the next.
    pub fn state(&self) -> watch::Receiver<Arc<State>> {
        self.shared.state.clone()
    }

    /// Rank the places for a job without planning anything.
    pub fn rank(&self, spec: &JobSpec, top: usize) -> Ranking {
        self.shared.rank_all(spec, self.shared.now(), top)
    }

    /// Make the plan for a wish. Acts on nothing. Reads a provider again where the place that would be taken rests on old
    /// facts, and refuses where they stay old.
    pub async fn propose(&self, wish: Wish) -> Result<Proposal, EngineError> {
        self.shared.propose(wish).await
    }

    /// Write down a confirmed proposal and start it; returns when its intent is durable. The same proposal again gives
    /// the same operation.
    pub async fn execute(&self, proposal: Proposal, actor: Actor) -> Result<(JobId, OperationId), EngineError> {
        self.shared.execute(proposal, actor).await
    }

    /// Wait until an operation has ended, well or not, and give the job as it is then; [`Engine::outcome`] tells which.
    /// Follows an operation that another process drives, too.
    pub async fn settle(&self, operation: &OperationId) -> Result<JobView, EngineError> {
        self.shared.settle_on(operation).await
    }

    /// A job by its id, the beginning of its id, or its name; of several by one name the live one.
    pub async fn job(&self, id_or_name: &str) -> Result<JobView, EngineError> {
        self.shared.job_by(id_or_name).await
    }

    /// All jobs, live ones first, each newest first.
    pub async fn jobs(&self) -> Result<Vec<JobView>, EngineError> {
        self.shared.all_jobs().await
    }

    /// Events, oldest first.
    pub async fn events(&self, filter: &EventFilter) -> Result<Vec<Event>, EngineError> {
        self.shared.events_by(filter).await
    }

    /// A plan by its id.
    pub async fn plan(&self, id: &PlanId) -> Result<Option<Plan>, EngineError> {
        self.shared.plan_by(id).await
    }

    /// How an operation ended (or stands), with the table of its attempts.
    pub async fn outcome(&self, operation: &OperationId) -> Result<Outcome, EngineError> {
        self.shared.outcome_of(operation).await
    }

    /// What a job has cost, a line a machine that was or may have been billed.
    pub async fn costs(&self, job: &JobId) -> Result<Vec<CostLine>, EngineError> {
        self.shared.costs_of(job).await
    }

    /// Check the hash chain of the events.
    pub async fn verify_events(&self) -> Result<ChainReport, EngineError> {
        self.shared.chain().await
    }

    /// Check every page of the ledger's file, for `doctor`.
    pub async fn verify_ledger(&self) -> Result<(), EngineError> {
        self.shared.ledger.verify().await.map_err(|e| self.shared.ledger_error(e))
    }

    /// Machines that carry our mark but that no job owns, after a look at every cloud.
    pub async fn orphans(&self) -> Result<Vec<Instance>, EngineError> {
        self.shared.list_orphans().await
    }

    /// Terminate one orphan, by an operator's word, and wait for the proof.
    pub async fn terminate_orphan(
        &self,
        provider: &ProviderId,
        id: &InstanceId,
        actor: Actor,
    ) -> Result<(), EngineError> {
        self.shared.end_orphan(provider, id, actor).await
    }

    /// Acknowledge an alert.
    pub async fn acknowledge(&self, seq: i64, actor: Actor, note: String) -> Result<(), EngineError> {
        self.shared.acknowledge(seq, &actor, &note).await
    }

    /// The clouds that this engine holds.
    pub fn providers(&self) -> &[Connected] {
        &self.shared.providers
    }

    /// Whose marks are ours: the installation's id.
    pub fn owner(&self) -> &str {
        &self.shared.owner
    }

    /// Stop cleanly: no further call is begun, leases are given back, so that another process can go on at once.
    pub async fn shutdown(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        let released = async {
            let mut tx = self.shared.begin().await?;
            tx.release_leases(&self.shared.holder).await?;
            tx.commit().await
        };
        if let Err(error) = released.await {
            tracing::warn!(%error, "leases could not be given back; they run out by themselves");
        }
        self.shared.ledger.close().await;
    }
}
