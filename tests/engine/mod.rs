//! What the engine's tests are built of.

pub mod crash;
pub mod fake_cloud;
pub mod time;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gpudeck::domain::job::{Buying, Constraints, Data, Recovery, Resources, Schedule};
use gpudeck::domain::{
    Accelerator, Actor, Clock, EventKind, GpuHourlyRate, InstanceId, JobId, JobSpec, JobState, OperationId, Purchase,
};
use gpudeck::engine::{Engine, EngineError, EventFilter, JobView, Mode, Options, Wish};
use gpudeck::provider::Connected;
use gpudeck::store::{CrashPoint, Ledger, OpenOptions};
use tempfile::TempDir;

use crash::Crash;
use fake_cloud::FakeCloud;
use time::SimulatedClock;

/// A ledger's directory, a clock and two clouds: `aws` knows tokens, `lambda` does not.
pub struct Bench {
    pub home: TempDir,
    pub clock: Arc<dyn Clock>,
    pub aws: Arc<FakeCloud>,
    pub lambda: Arc<FakeCloud>,
}

pub fn actor(user: &str) -> Actor {
    Actor { user: user.into(), via: "cli".into(), host: "test".into() }
}

pub fn spec(name: &str, nodes: u32) -> JobSpec {
    JobSpec {
        name: name.into(),
        run: Some("python train.py --resume".into()),
        image: None,
        env: BTreeMap::from([("TOKEN".to_owned(), "canary-secret".to_owned())]),
        resources: Resources {
            accelerators: vec![Accelerator::from_canonical("H100-80GB-SXM")],
            accelerators_as_written: vec!["H100".into()],
            min_gpu_memory_gib: None,
            count: 8,
            nodes,
            vcpus: None,
            memory_gib: None,
        },
        buying: Buying { models: vec![Purchase::Spot], max_usd_per_gpu_hour: None },
        constraints: Constraints::default(),
        data: Data::default(),
        schedule: Schedule {
            duration_hours: Some(24.0),
            deadline: None,
            recovery: Recovery::Restart,
            restart_loss_hours: 0.2,
        },
    }
}

/// The same, with a limit that both clouds' zones keep.
pub fn capped(name: &str, nodes: u32) -> JobSpec {
    let mut spec = spec(name, nodes);
    spec.buying.max_usd_per_gpu_hour = Some(GpuHourlyRate::parse_usd("10").expect("an amount"));
    spec
}

pub fn on(mut spec: JobSpec, provider: &str) -> JobSpec {
    spec.constraints.providers = vec![provider.into()];
    spec
}

impl Bench {
    pub fn new() -> Self {
        Self::at_speed(1.0)
    }

    /// In a world that goes so many times as fast.
    pub fn at_speed(speed: f64) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::at(speed));
        let aws = FakeCloud::new("aws", true, clock.clone());
        aws.stock("us-east-1", "use1-az1", Purchase::Spot, "20", 16);
        aws.stock("us-east-1", "use1-az2", Purchase::Spot, "22", 16);
        aws.stock("us-west-2", "usw2-az1", Purchase::Spot, "24", 16);
        let lambda = FakeCloud::new("lambda", false, clock.clone());
        lambda.stock("us-east-1", "a", Purchase::Spot, "30", 16);
        // In memory where there is such a place: these tests are about what is written when, not about a disk.
        let home = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a directory");
        Self { home, clock, aws, lambda }
    }

    pub fn ledger_path(&self) -> PathBuf {
        self.home.path().join("state").join("ledger.db")
    }

    pub fn options(&self, mode: Mode, seed: u64, crash: &Arc<Crash>) -> Options {
        self.aws.crash(crash.clone());
        self.lambda.crash(crash.clone());
        let mut options = Options::new(self.clock.clone(), self.ledger_path(), actor("gpudeck"));
        options.providers = vec![Connected::full(self.aws.clone()), Connected::full(self.lambda.clone())];
        options.mode = mode;
        options.seed = Some(seed);
        options.crash = Some(crash.clone());
        // Half as often as outside: a test's hours are many.
        options.limits.feed_every = Duration::from_mins(2);
        options
    }

    pub async fn open(&self, mode: Mode, seed: u64) -> Engine {
        self.open_with(mode, seed, &Arc::new(Crash::never())).await
    }

    pub async fn open_with(&self, mode: Mode, seed: u64, crash: &Arc<Crash>) -> Engine {
        let engine = Engine::start(self.options(mode, seed, crash)).await.expect("the engine starts");
        if mode == Mode::OneShot && !crash.died() {
            engine.refresh_feeds(None).await.expect("the ledger works");
        }
        engine
    }

    pub async fn ledger(&self) -> Ledger {
        let options =
            OpenOptions { path: self.ledger_path(), new_owner: "none".into(), crash: Some(Arc::new(Crash::never())) };
        Ledger::open(options).await.expect("the ledger opens")
    }

    /// Machines that bill anywhere now.
    pub fn alive(&self) -> Vec<InstanceId> {
        let all = self.aws.alive().into_iter().chain(self.lambda.alive());
        all.map(|m| m.instance.id).collect()
    }

    /// What must hold at any time: no machine twice for one wish, every live machine in the ledger or told as an orphan,
    /// and no less shown as spent than was billed.
    pub async fn check(&self, engine: &Engine, context: &str) {
        assert_eq!(self.aws.doubles(), [], "I1: two machines for one wish; {context}");
        assert_eq!(self.lambda.doubles(), [], "I1: two machines for one wish; {context}");
        let orphans = engine.orphans().await.expect("the ledger works");
        let ledger = self.ledger().await;
        let mut tx = ledger.read().await.expect("reads");
        let open = tx.open_intents().await.expect("reads");
        for machine in self.aws.alive().into_iter().chain(self.lambda.alive()) {
            let instance = &machine.instance;
            let mark = instance.mark.as_ref();
            let known = open.iter().any(|i| {
                i.instance.as_ref() == Some(&instance.id)
                    || mark.is_some_and(|m| (&m.operation, m.attempt, m.node) == (&i.operation, i.attempt, i.node))
            });
            let told = orphans.iter().any(|o| o.id == instance.id);
            assert!(known || told, "I2: {} is billed and nobody knows; {context}; known: {open:#?}", instance.id);
        }
        drop(tx);
        let jobs = engine.jobs().await.expect("reads");
        let shown: gpudeck::domain::Money = jobs.iter().map(|j| j.usd_spent).sum();
        let billed = self.aws.billed() + self.lambda.billed();
        assert!(orphans.iter().any(|_| true) || shown >= billed, "I5: {shown} shown, {billed} billed; {context}");
        let chain = engine.verify_events().await.expect("reads");
        assert_eq!(chain.broken, None, "the record holds; {context}");
    }
}

pub async fn launch(engine: &Engine, spec: JobSpec) -> Result<(JobId, OperationId), EngineError> {
    let proposal = engine.propose(Wish::Launch { spec: Box::new(spec), candidate: 0 }).await?;
    engine.execute(proposal, actor("ann")).await
}

pub async fn terminate(engine: &Engine, job: &JobId) -> Result<(JobId, OperationId), EngineError> {
    let proposal = engine.propose(Wish::Terminate { job: job.clone() }).await?;
    engine.execute(proposal, actor("bob")).await
}

pub async fn migrate(engine: &Engine, job: &JobId, to: Option<&str>) -> Result<(JobId, OperationId), EngineError> {
    let to = to.map(|t| t.parse().expect("a place"));
    let proposal = engine.propose(Wish::Migrate { job: job.clone(), to }).await?;
    engine.execute(proposal, actor("ann")).await
}

/// Launch and wait until it runs.
pub async fn running(engine: &Engine, spec: JobSpec) -> JobView {
    let (_, operation) = launch(engine, spec).await.expect("a launch");
    let view = settle(engine, &operation).await;
    assert_eq!(view.state, JobState::Running, "{:?}", view.note);
    view
}

/// Wait for an operation's end, at most two simulated hours.
pub async fn settle(engine: &Engine, operation: &OperationId) -> JobView {
    if let Ok(view) = tokio::time::timeout(Duration::from_hours(24), engine.settle(operation)).await {
        return view.expect("the ledger works");
    }
    let outcome = engine.outcome(operation).await;
    panic!("the operation did not end within a day: {outcome:#?}");
}

/// Wait until a job is as wanted, at most two simulated hours.
pub async fn until(engine: &Engine, job: &JobId, wanted: impl Fn(&JobView) -> bool) -> JobView {
    let mut waited = 0;
    loop {
        let view = engine.job(job.as_str()).await.expect("the job is there");
        if wanted(&view) {
            return view;
        }
        waited += 1;
        assert!(waited < 7_200, "not within two hours; the job is {view:#?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

pub async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Texts of the events of a kind.
pub async fn told(engine: &Engine, kind: EventKind) -> Vec<String> {
    let filter = EventFilter { kind: Some(kind), ..EventFilter::default() };
    engine.events(&filter).await.expect("reads").into_iter().map(|e| e.text).collect()
}
