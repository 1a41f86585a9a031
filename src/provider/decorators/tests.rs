//! The decorators, under a clock that only moves when everybody waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::DateTime;
use pretty_assertions::assert_eq;

use super::*;
use crate::config::limits;
use crate::domain::{
    Accelerator, AcceleratorCount, ErrorClass, Instance, InstanceId, InstanceState, Interconnect, Location, Mark,
    OfferKey, Offerings, ProviderError, ProviderId, Purchase, Region, Shape,
};
use crate::provider::{Capabilities, Finding, FindingStatus, InstanceRef, LaunchRequest, Result, Support, Termination};

/// What a scripted cloud does next.
#[derive(Debug, Clone)]
enum Next {
    Answer,
    Fail(ErrorClass),
    ThrottledFor(u64),
    After(u64),
    Never,
}

/// A cloud that does what its script says, and answers at once when the script has ended.
struct Scripted {
    id: ProviderId,
    capabilities: Capabilities,
    script: Mutex<VecDeque<Next>>,
    calls: AtomicUsize,
}

impl Scripted {
    fn new(script: impl IntoIterator<Item = Next>) -> Arc<Self> {
        Arc::new(Self {
            id: "cloud".into(),
            capabilities: Capabilities {
                launch_token: Support::Yes,
                spot: Support::Yes,
                zones: Support::Yes,
                live_prices: Support::Yes,
                stock: Support::Yes,
                max_instances_per_request: 1,
                start_script_bytes: None,
                spot_follows_market: false,
            },
            script: Mutex::new(script.into_iter().collect()),
            calls: AtomicUsize::new(0),
        })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn act(&self) -> Result<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let next = self.script.lock().expect("script").pop_front().unwrap_or(Next::Answer);
        let error = |class| ProviderError::new(class, &self.id, "Scripted", "as the script says");
        match next {
            Next::Answer => Ok(()),
            Next::Fail(class) => Err(error(class)),
            Next::ThrottledFor(seconds) => {
                Err(ProviderError { retry_after: Some(Duration::from_secs(seconds)), ..error(ErrorClass::Throttled) })
            }
            Next::After(seconds) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(())
            }
            Next::Never => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Provider for Scripted {
    fn id(&self) -> &ProviderId {
        &self.id
    }
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn endpoint(&self) -> Option<String> {
        Some("http://127.0.0.1:9".to_owned())
    }
    async fn check(&self) -> Vec<Finding> {
        let _ = self.act().await;
        Vec::new()
    }
    async fn account(&self) -> Result<String> {
        self.act().await.map(|()| "one".to_owned())
    }
    async fn offerings(&self) -> Result<Offerings> {
        self.act().await.map(|()| Offerings { complete: true, ..Offerings::default() })
    }
    async fn instances(&self, _owner: &str) -> Result<Vec<Instance>> {
        self.act().await.map(|()| Vec::new())
    }
    async fn describe(&self, _ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        self.act().await.map(|()| Vec::new())
    }
    async fn find_by_token(&self, _region: &Region, _token: &str, _mark: &Mark) -> Result<Vec<Instance>> {
        self.act().await.map(|()| Vec::new())
    }
}

#[async_trait]
impl Operator for Scripted {
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance> {
        self.act().await.map(|()| Instance {
            id: "i-1".into(),
            location: request.offer.location(),
            instance_type: request.offer.instance_type.clone(),
            purchase: request.offer.purchase,
            state: InstanceState::Requested,
            launched_at: None,
            ended_at: None,
            price: None,
            token: Some(request.token.clone()),
            mark: Some(request.mark.clone()),
            preemption_notice: None,
            reason: None,
        })
    }
    async fn terminate(&self, _target: &InstanceRef) -> Result<Termination> {
        self.act().await.map(|()| Termination::Accepted(InstanceState::Terminating))
    }
}

fn request() -> LaunchRequest {
    LaunchRequest {
        offer: OfferKey {
            provider: "cloud".into(),
            region: "r".into(),
            zone: None,
            instance_type: "gpu.8".into(),
            purchase: Purchase::Spot,
        },
        shape: Arc::new(Shape {
            instance_type: "gpu.8".into(),
            accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: None,
            vcpus: None,
            memory_gib: None,
            interconnect: Interconnect::Unknown,
        }),
        max_price: None,
        token: "the-token".to_owned(),
        name: "gpudeck-1".to_owned(),
        mark: Mark { owner: "o".into(), job: "j".into(), operation: "op".into(), attempt: 1, node: 0 },
        intended_at: DateTime::UNIX_EPOCH,
        user_data: Some("export KEY=very-secret".to_owned()),
    }
}
fn target() -> InstanceRef {
    InstanceRef { id: InstanceId::from("i-1"), location: Location::region("cloud", "r") }
}
/// Pauses are as long as they can be, so that times are exact.
fn options() -> Options {
    Options::new(Arc::new(RuntimeTimer::start()), Arc::new(|| 1.0))
}
fn decorated(cloud: &Arc<Scripted>, options: &Options) -> Arc<dyn Operator> {
    decorate(Connected::full(Arc::clone(cloud)), options).act.expect("it may act")
}
async fn seconds<T>(call: impl Future<Output = T>) -> (T, f64) {
    let start = tokio::time::Instant::now();
    let answer = call.await;
    (answer, start.elapsed().as_secs_f64())
}
fn class<T>(answer: &Result<T>) -> Option<ErrorClass> {
    answer.as_ref().err().map(|e| e.class)
}
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.05
}

#[tokio::test(start_paused = true)]
async fn d7_a_cloud_that_never_answers_is_an_error_in_time() {
    let cloud = Scripted::new(std::iter::repeat_n(Next::Never, 6));
    let cloud_ = decorated(&cloud, &options());
    let (answer, took) = seconds(cloud_.offerings()).await;
    assert!(near(took, limits::OFFERINGS_DEADLINE.as_secs_f64()), "{took}");
    let error = answer.expect_err("no answer");
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Transient, "Timeout"));
    assert_eq!(error.to_string(), "cloud offerings: transient [Timeout]: no answer within 45 s");

    let (answer, took) = seconds(cloud_.launch(&request())).await;
    assert!(near(took, limits::LAUNCH_DEADLINE.as_secs_f64()), "{took}");
    let error = answer.expect_err("no answer");
    assert_eq!(error.class, ErrorClass::Transient, "which promises nothing");
    assert!(error.message.ends_with("whether it was carried out is not known"));

    assert_eq!(class(&seconds(cloud_.terminate(&target())).await.0), Some(ErrorClass::Transient));
    let (findings, took) = seconds(cloud_.check()).await;
    assert!(near(took, limits::CHECK_DEADLINE.as_secs_f64()), "{took}");
    assert_eq!(findings.iter().map(|f| f.status).collect::<Vec<_>>(), [FindingStatus::Fail]);
    assert_eq!(cloud.calls(), 4, "a deadline ends the retries too");
}

#[tokio::test(start_paused = true)]
async fn reads_are_sent_again_after_a_passing_fault() {
    let cloud = Scripted::new([Next::Fail(ErrorClass::Transient), Next::Fail(ErrorClass::Transient)]);
    let (answer, took) = seconds(decorated(&cloud, &options()).instances("o")).await;
    assert!(answer.is_ok());
    assert!(near(took, 0.5 + 1.0), "{took}");
    assert_eq!(cloud.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn reads_give_up_after_three_attempts_and_at_once_where_it_is_no_use() {
    let cloud = Scripted::new(std::iter::repeat_n(Next::Fail(ErrorClass::Transient), 9));
    assert_eq!(class(&decorated(&cloud, &options()).describe(&[target()]).await), Some(ErrorClass::Transient));
    assert_eq!(cloud.calls(), 3);
    for kind in [ErrorClass::Auth, ErrorClass::Invalid, ErrorClass::NotFound, ErrorClass::Unknown, ErrorClass::Quota] {
        let cloud = Scripted::new([Next::Fail(kind)]);
        assert_eq!(class(&decorated(&cloud, &options()).offerings().await), Some(kind));
        assert_eq!(cloud.calls(), 1, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a12_a_launch_or_terminate_is_never_sent_again() {
    for kind in [ErrorClass::Transient, ErrorClass::Throttled, ErrorClass::Unknown, ErrorClass::Conflict] {
        let cloud = Scripted::new([Next::Fail(kind), Next::Answer, Next::Fail(kind)]);
        let cloud_ = decorated(&cloud, &options());
        assert_eq!(class(&cloud_.launch(&request()).await), Some(kind));
        assert_eq!(cloud.calls(), 1, "{kind}");
        assert!(cloud_.terminate(&target()).await.is_ok());
        assert_eq!(class(&cloud_.terminate(&target()).await), Some(kind));
        assert_eq!(cloud.calls(), 3, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a7_throttled_waits_as_told_and_not_a_moment_less() {
    let cloud = Scripted::new([Next::ThrottledFor(7)]);
    let (answer, took) = seconds(decorated(&cloud, &options()).offerings()).await;
    assert!(answer.is_ok());
    assert!(near(took, 7.5), "{took}");
    // Longer than a call may last: told to the caller, with the wait.
    let cloud = Scripted::new([Next::ThrottledFor(3600)]);
    let (answer, took) = seconds(decorated(&cloud, &options()).offerings()).await;
    assert!(near(took, 0.0), "{took}");
    assert_eq!(answer.expect_err("throttled").retry_after, Some(Duration::from_hours(1)));
    assert_eq!(cloud.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn jitter_is_full_and_hostile_jitter_is_harmless() {
    for (share, waited) in [(0.0, 0.0), (0.5, 0.25), (9.0, 0.5), (-1.0, 0.0)] {
        let cloud = Scripted::new([Next::Fail(ErrorClass::Transient)]);
        let options = Options { jitter: Arc::new(move || share), ..options() };
        let (_, took) = seconds(decorated(&cloud, &options).offerings()).await;
        assert!(near(took, waited), "{share}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_spread_out_and_terminates_do_not_queue_behind_them() {
    let options = Options { limiter: Arc::new(Limiter::new(1.0, 3, 1.0, 2)), ..options() };
    let cloud = Scripted::new([]);
    let cloud_ = decorated(&cloud, &options);
    let reads = futures_util::future::join_all((0..8).map(|_| cloud_.describe(&[])));
    let (answers, took) = seconds(reads).await;
    assert!(answers.iter().all(Result::is_ok));
    assert!(near(took, 5.0), "three at once, then one a second: {took}");
    // The general budget is used up now.
    let (answer, took) = seconds(cloud_.describe(&[])).await;
    assert!(answer.is_ok() && near(took, 1.0), "{took}");
    let (_, took) = seconds(async { (cloud_.terminate(&target()).await, cloud_.terminate(&target()).await) }).await;
    assert!(near(took, 0.0), "{took}");
    let (_, took) = seconds(cloud_.terminate(&target())).await;
    assert!(near(took, 1.0), "a budget, not a hole: {took}");
}

#[tokio::test(start_paused = true)]
async fn terminates_use_the_general_budget_when_it_is_idle() {
    let options = Options { limiter: Arc::new(Limiter::new(1.0, 3, 1.0, 2)), ..options() };
    let cloud_ = decorated(&Scripted::new([]), &options);
    let terminates = async {
        for _ in 0..5 {
            cloud_.terminate(&target()).await.expect("accepted");
        }
    };
    assert!(near(seconds(terminates).await.1, 0.0));
    assert!(near(seconds(cloud_.terminate(&target())).await.1, 1.0));
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_shared_by_all_that_use_the_account() {
    let options = Options { limiter: Arc::new(Limiter::new(1.0, 1, 1.0, 1)), ..options() };
    let (one, other) = (decorated(&Scripted::new([]), &options), decorated(&Scripted::new([]), &options));
    one.describe(&[]).await.expect("answered");
    assert!(near(seconds(other.describe(&[])).await.1, 1.0));
}

#[tokio::test(start_paused = true)]
async fn a_call_too_far_back_in_the_queue_is_refused_unsent() {
    let options = Options { limiter: Arc::new(Limiter::new(0.01, 1, 1.0, 1)), ..options() };
    let cloud = Scripted::new([]);
    let cloud_ = decorated(&cloud, &options);
    cloud_.launch(&request()).await.expect("accepted");
    let (answer, took) = seconds(cloud_.launch(&request())).await;
    let error = answer.expect_err("refused");
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Throttled, "RateLimited"),
        "which promises that nothing was made"
    );
    assert!(near(took, 0.0) && cloud.calls() == 1);
}

#[tokio::test(start_paused = true)]
async fn throttling_pauses_the_whole_account_but_not_its_terminates() {
    let options = options();
    let throttled = Scripted::new([Next::ThrottledFor(9)]);
    let other = Scripted::new([]);
    let (one, two) = (decorated(&throttled, &options), decorated(&other, &options));
    assert_eq!(class(&one.launch(&request()).await), Some(ErrorClass::Throttled));
    assert!(near(seconds(two.terminate(&target())).await.1, 0.0));
    let (answer, took) = seconds(two.describe(&[])).await;
    assert!(answer.is_ok() && near(took, 9.0), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_call_that_keeps_failing_is_left_alone_and_then_tried_once() {
    let cloud = Scripted::new(std::iter::repeat_n(Next::Fail(ErrorClass::Transient), 5));
    let cloud_ = decorated(&cloud, &options());
    for _ in 0..5 {
        assert_eq!(class(&cloud_.launch(&request()).await), Some(ErrorClass::Transient));
    }
    let refused = cloud_.launch(&request()).await.expect_err("left alone");
    assert_eq!((refused.class, refused.code.as_str()), (ErrorClass::Throttled, "CircuitOpen"));
    assert_eq!(refused.retry_after, Some(limits::CIRCUIT_OPEN));
    assert!(refused.message.contains("5 such calls in a row failed, the next is tried in 30 s; the last one: cloud Scripted: transient: as the script says"), "{}", refused.message);
    assert_eq!(cloud.calls(), 5, "nothing was sent");
    // Other kinds, and above all terminates, are not concerned.
    assert!(cloud_.offerings().await.is_ok() && cloud_.describe(&[]).await.is_ok());
    assert!(cloud_.terminate(&target()).await.is_ok());
    tokio::time::advance(limits::CIRCUIT_OPEN).await;
    assert!(cloud_.launch(&request()).await.is_ok());
    assert!(cloud_.launch(&request()).await.is_ok(), "closed again");
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_fails_doubles_the_wait_up_to_a_limit() {
    let cloud = Scripted::new(std::iter::repeat_n(Next::Fail(ErrorClass::Transient), 5 + 6));
    let cloud_ = decorated(&cloud, &options());
    for _ in 0..5 {
        let _ = cloud_.launch(&request()).await;
    }
    for expected in [30, 60, 120, 240, 300, 300] {
        let refused = cloud_.launch(&request()).await.expect_err("left alone");
        assert_eq!(refused.retry_after, Some(Duration::from_secs(expected)));
        tokio::time::advance(Duration::from_secs(expected)).await;
        assert_eq!(class(&cloud_.launch(&request()).await), Some(ErrorClass::Transient), "the trial");
    }
    assert_eq!(cloud.calls(), 11);
}

#[tokio::test(start_paused = true)]
async fn only_one_call_tries_and_a_trial_given_up_frees_its_place() {
    let failures = std::iter::repeat_n(Next::Fail(ErrorClass::Transient), 5);
    let cloud = Scripted::new(failures.chain([Next::After(10)]));
    let cloud_ = decorated(&cloud, &options());
    for _ in 0..5 {
        let _ = cloud_.launch(&request()).await;
    }
    tokio::time::advance(limits::CIRCUIT_OPEN).await;
    {
        let request = request();
        let mut trial = std::pin::pin!(cloud_.launch(&request));
        assert!(futures_util::poll!(&mut trial).is_pending());
        assert_eq!(cloud_.launch(&request).await.expect_err("one at a time").code, "CircuitOpen");
    }
    assert_eq!(cloud.calls(), 6);
    assert!(cloud_.launch(&request()).await.is_ok(), "the caller gave up, the next may try");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_a_refusal_is_no_outage() {
    let cloud = Scripted::new(
        (0..40).map(|i| Next::Fail(if i % 5 == 4 { ErrorClass::NoCapacity } else { ErrorClass::Transient })),
    );
    let cloud_ = decorated(&cloud, &options());
    for _ in 0..40 {
        let _ = cloud_.launch(&request()).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(cloud.calls(), 40, "never five passing faults in a row");
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_with_all_that_their_callers_waited() {
    let options = options();
    let cloud = Scripted::new([Next::After(2), Next::After(1), Next::Fail(ErrorClass::Auth)]);
    let cloud_ = decorated(&cloud, &options);
    let _ = cloud_.offerings().await;
    let _ = cloud_.offerings().await;
    let _ = cloud_.offerings().await;
    let stats = options.counters.read(Call::Offerings);
    assert_eq!((stats.calls, stats.failed), (3, 1));
    assert!(near(stats.total.as_secs_f64(), 3.0) && near(stats.slowest.as_secs_f64(), 2.0), "{stats:?}");
    assert_eq!(options.counters.read(Call::Launch), CallStats::default());
}

#[tokio::test(start_paused = true)]
async fn a_read_only_cloud_stays_read_only() {
    let cloud = Scripted::new([]);
    let connected = decorate(Connected::read_only(Arc::clone(&cloud)), &options());
    assert!(connected.act.is_none());
    assert!(connected.watch.offerings().await.is_ok());
    assert_eq!(connected.watch.id(), "cloud");
    assert_eq!(connected.watch.endpoint().as_deref(), Some("http://127.0.0.1:9"));
    assert_eq!(connected.watch.capabilities(), cloud.capabilities());
}

/// Lines of a log, to be looked through.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lines").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn op38_a_log_line_is_inert_and_holds_no_argument() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let provider = ProviderId::from("cloud");
    let recorder = Recorder::new(Arc::new(RuntimeTimer::start()), Arc::default());
    let hostile = || -> Sent<'_, ()> {
        Box::pin(async {
            Err(ProviderError::new(ErrorClass::Unknown, &"cloud".into(), "Op", "a\u{1b}]52;c;AAAA\u{7}b")
                .code("\u{9b}31m"))
        })
    };
    let _ = recorder.around(&provider, Call::Launch, hostile).await;
    let cloud_ = decorated(&Scripted::new([Next::Answer, Next::Fail(ErrorClass::Transient)]), &options());
    let _ = cloud_.launch(&request()).await;
    let _ = cloud_.launch(&request()).await;
    let text = String::from_utf8(lines.0.lock().expect("lines").clone()).expect("text");
    assert_eq!(text.matches("provider call failed").count(), 2, "{text}");
    assert_eq!(text.matches("provider call was answered").count(), 1, "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    for secret in ["very-secret", "the-token"] {
        assert!(!text.contains(secret), "{text}");
    }
}
