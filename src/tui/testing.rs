//! A small world for tests, a large one for measurements, and a runner that does the loop's work without a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::keymap::Keymap;
use super::theme::{ColorChoice, Role, Themes};
use super::view::{Effect, Incoming, Input, Session, View};
use super::{draw::draw, update::update};
use crate::domain::job::{Buying, Constraints, Data, Recovery, Resources, Schedule};
use crate::domain::plan::PlanStep;
use crate::domain::{
    Accelerator, AcceleratorCount, Actor, Availability, ErrorClass, Event, EventKind, Evidence, FeedHealth, FeedStatus,
    HourlyRate, Instance, InstanceState, Interconnect, JobId, JobSpec, JobState, Location, Money, Offer, OfferKey,
    OperationKind, Plan, PlanKind, ProviderError, ProviderId, Purchase, QuotaRoom, Shape, StepAction, StepState,
};
use crate::engine::{Alert, InstanceView, JobView, OperationView, Proposal, State, Wish};
use crate::market::Snapshot;
use crate::network::Network;
use crate::placement::{Breakdown, Candidate, NodeGroup, Ranking, Reason, Rejection};
use crate::provider::Absent;

pub(crate) fn now() -> DateTime<Utc> {
    "2026-12-01T02:13:07Z".parse().unwrap()
}

pub(crate) fn minutes(n: i64) -> DateTime<Utc> {
    now() - chrono::Duration::minutes(n)
}

pub(crate) fn usd(text: &str) -> HourlyRate {
    HourlyRate::parse_usd(text).unwrap()
}

pub(crate) fn actor() -> Actor {
    Actor { user: "ada".into(), via: "cockpit".into(), host: "bastion".into() }
}

pub(crate) fn offer(
    place: &str,
    shape: &str,
    gpu: &str,
    count: u32,
    purchase: Purchase,
    price: Option<&str>,
    availability: Availability,
) -> Offer {
    let location: Location = place.parse().unwrap();
    Offer {
        key: OfferKey {
            provider: location.provider,
            region: location.region,
            zone: location.zone,
            instance_type: shape.into(),
            purchase,
        },
        shape: Arc::new(Shape {
            instance_type: shape.into(),
            accelerator: Accelerator::from_canonical(gpu),
            accelerators: AcceleratorCount::whole(count),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(192),
            memory_gib: Some(2048.0),
            interconnect: Interconnect::Efa,
        }),
        price: price.map(usd),
        price_is_live: true,
        availability,
        evidence: Evidence::Api,
        observed_at: now() - chrono::Duration::seconds(4),
        stale: false,
        capacity: None,
        quota: None,
        interruptions_per_day: (purchase == Purchase::Spot).then_some(0.42),
        jurisdiction: Some("US".into()),
    }
}

pub(crate) fn offers() -> Vec<Offer> {
    use Availability::{Available, Limited, None as NoneLeft, Unknown};
    use Purchase::{OnDemand, Spot};
    let h100 = "H100-80GB-SXM";
    let mut offers = vec![
        offer("aws/us-east-1/use1-az4", "p5.48xlarge", h100, 8, OnDemand, Some("55.04"), Available),
        offer("aws/us-east-1/use1-az4", "p5.48xlarge", h100, 8, Spot, Some("19.76"), Available),
        offer("aws/us-east-1/use1-az6", "p5.48xlarge", h100, 8, OnDemand, Some("55.04"), Limited),
        offer("aws/us-east-1/use1-az6", "p5.48xlarge", h100, 8, Spot, Some("23.11"), NoneLeft),
        offer("aws/eu-north-1/eun1-az1", "p5.48xlarge", h100, 8, OnDemand, Some("55.04"), Unknown),
        offer("gcp/us-central1/us-central1-a", "a3-highgpu-8g", h100, 8, OnDemand, Some("88.49"), Limited),
        offer("gcp/us-central1/us-central1-a", "a3-highgpu-8g", h100, 8, Spot, Some("33.60"), Limited),
        offer("gcp/europe-west4/europe-west4-b", "a3-highgpu-8g", h100, 8, Spot, Some("35.10"), Available),
        offer("azure/westeurope", "Standard_ND96isr_H100_v5", h100, 8, OnDemand, Some("98.32"), Unknown),
        offer("hyperbolic/us-1", "h100-sxm5-1x", h100, 1, OnDemand, Some("1.49"), Available),
        offer("lambda/us-west-3", "gpu_8x_h100_sxm5", h100, 8, OnDemand, Some("23.92"), NoneLeft),
        offer("aws/us-west-2/usw2-az2", "p4d.24xlarge", "A100-40GB-SXM", 8, OnDemand, Some("32.7726"), Available),
        offer("aws/us-west-2/usw2-az2", "p4d.24xlarge", "A100-40GB-SXM", 8, Spot, Some("11.20"), Available),
        offer("gcp/us-central1/us-central1-c", "g2-standard-4", "L4-24GB", 1, OnDemand, Some("0.7068"), Available),
        offer("gcp/us-central1/us-central1-c", "g2-standard-4", "L4-24GB", 1, Spot, Some("0.2829"), Available),
        offer("azure/eastus2", "Standard_NC4as_T4_v3", "T4-16GB", 1, Spot, Some("0.0612"), Limited),
        offer("aws/us-east-1/use1-az2", "p6-b200.48xlarge", "B200-180GB-SXM", 8, OnDemand, None, Unknown),
    ];
    for o in &mut offers {
        if o.key.provider == "azure" {
            o.price_is_live = false;
            o.evidence = Evidence::Catalogue;
            o.observed_at = "2026-01-12T00:00:00Z".parse().unwrap();
        }
        if o.key.provider == "lambda" {
            o.stale = true;
            o.observed_at = minutes(3);
        }
        if o.key.purchase == Purchase::Spot && o.key.provider == "aws" {
            o.quota = Some(QuotaRoom { code: "L-417A185B".into(), limit: 768.0, used: 384.0, per_instance: 192.0 });
        }
    }
    offers
}

pub(crate) fn feed(name: &str, health: FeedHealth) -> FeedStatus {
    let error = (health == FeedHealth::Down).then(|| {
        ProviderError::new(ErrorClass::Transient, &ProviderId::from(name), "ListOffers", "connection refused")
    });
    FeedStatus {
        provider: name.into(),
        health,
        offers: 3,
        answered_at: (health != FeedHealth::Loading).then(|| minutes(3)),
        failures: u32::from(error.is_some()),
        detail: if error.is_some() { "not reached; `gpudeck doctor` tells more".into() } else { String::new() },
        error,
    }
}

pub(crate) fn spec(name: &str) -> JobSpec {
    JobSpec {
        name: name.into(),
        run: Some("python train.py --resume".into()),
        image: None,
        env: BTreeMap::new(),
        resources: Resources {
            accelerators: vec![Accelerator::from_canonical("H100-80GB-SXM")],
            accelerators_as_written: vec!["H100".into()],
            min_gpu_memory_gib: None,
            count: 8,
            nodes: 1,
            vcpus: None,
            memory_gib: None,
        },
        buying: Buying { models: vec![Purchase::Spot, Purchase::OnDemand], max_usd_per_gpu_hour: None },
        constraints: Constraints::default(),
        data: Data { checkpoint_gib: 40.0, checkpoint_uri: Some("s3://acme-ckpt/llama-ft".into()), ..Data::default() },
        schedule: Schedule {
            duration_hours: Some(72.0),
            deadline: None,
            recovery: Recovery::Restart,
            restart_loss_hours: 0.25,
        },
    }
}

pub(crate) fn job(n: u32, name: &str, state: JobState, place: &str) -> JobView {
    let location: Location = place.parse().unwrap();
    let id = format!("0193f0a0-0000-7000-8000-0000000000{n:02}");
    let live = !state.is_final();
    JobView {
        id: JobId::from(id.clone()),
        name: name.into(),
        state,
        note: None,
        spec: Arc::new(spec(name)),
        provider: Some(location.provider.clone()),
        region: Some(location.region.clone()),
        zone: location.zone.clone(),
        instance_type: Some("p5.48xlarge".into()),
        accelerator: Some(Accelerator::from_canonical("H100-80GB-SXM")),
        accelerators: AcceleratorCount::whole(8),
        nodes: 1,
        purchase: Some(Purchase::Spot),
        usd_per_hour: if live { Some(usd("19.76")) } else { Some(HourlyRate::ZERO) },
        usd_spent: Money::parse_usd("1834.55").unwrap(),
        best_usd_per_hour: live.then(|| usd("17.20")),
        move_saves: (state == JobState::Running).then(|| Money::from_micros(52_250_000)),
        started_at: Some(minutes(60 * 52)),
        running_since: Some(minutes(60 * 52)),
        created_at: minutes(60 * 53),
        ended_at: (!live).then(|| minutes(30)),
        restarts: n % 3,
        interruption_risk: Some(0.42),
        instances: vec![InstanceView {
            instance: Instance {
                id: format!("i-0abc{n:04}").into(),
                location,
                instance_type: "p5.48xlarge".into(),
                purchase: Purchase::Spot,
                state: if live { InstanceState::Running } else { InstanceState::Gone },
                launched_at: Some(minutes(60 * 52)),
                ended_at: None,
                price: None,
                token: None,
                mark: None,
                preemption_notice: None,
                reason: None,
            },
            observed_at: now() - chrono::Duration::seconds(9),
            bound_price: Some(usd("19.76")),
            node: 0,
        }],
        operation: None,
        plan: Some("0193f0a0-0000-7000-8000-00000000a041".into()),
        version: 7,
    }
}

pub(crate) fn plan(kind: PlanKind, job: Option<&JobView>) -> Plan {
    let step = |action, provider: &str, region: &str, rate: Option<&str>, seconds| PlanStep {
        action,
        provider: provider.into(),
        region: region.into(),
        zone: None,
        instance_type: Some("a3-highgpu-8g".into()),
        purchase: Some(Purchase::Spot),
        count: 1,
        usd_per_hour: rate.map(usd),
        usd_once: (action == StepAction::Transfer).then(|| Money::parse_usd("3.60").unwrap()),
        seconds: Some(seconds),
    };
    let steps = match kind {
        PlanKind::Launch | PlanKind::Recover => vec![
            step(StepAction::Check, "gcp", "us-central1", None, 5),
            step(StepAction::Launch, "gcp", "us-central1", Some("33.60"), 180),
            step(StepAction::Verify, "gcp", "us-central1", None, 30),
        ],
        PlanKind::Migrate => vec![
            step(StepAction::Check, "gcp", "us-central1", None, 5),
            step(StepAction::Launch, "gcp", "us-central1", Some("17.20"), 180),
            step(StepAction::Checkpoint, "aws", "us-east-1", None, 240),
            step(StepAction::Transfer, "gcp", "us-central1", None, 320),
            step(StepAction::Resume, "gcp", "us-central1", None, 60),
            step(StepAction::Verify, "gcp", "us-central1", None, 30),
            step(StepAction::Terminate, "aws", "us-east-1", None, 60),
        ],
        PlanKind::Terminate => vec![step(StepAction::Terminate, "aws", "us-east-1", None, 60)],
    };
    Plan {
        id: "0193f0a0-0000-7000-8000-00000000b042".into(),
        kind,
        job: job.map(|j| j.id.clone()),
        steps,
        usd_per_hour_before: job.and_then(|j| j.usd_per_hour),
        usd_per_hour_after: match kind {
            PlanKind::Terminate => Some(HourlyRate::ZERO),
            PlanKind::Migrate => Some(usd("17.20")),
            _ => Some(usd("33.60")),
        },
        usd_once: Some(Money::parse_usd(if kind == PlanKind::Migrate { "3.60" } else { "0" }).unwrap()),
        made_at: now(),
        warnings: match kind {
            PlanKind::Migrate => vec!["Both places are paid while it moves: $36.96/h for about 12 min.".into()],
            _ => Vec::new(),
        },
    }
}

pub(crate) fn ranking() -> Ranking {
    let all: Vec<Arc<Offer>> = offers().into_iter().map(Arc::new).collect();
    let candidate = |i: usize| Candidate {
        nodes: vec![NodeGroup { offer: all[i].clone(), count: 1 }],
        usd_per_hour: all[i].price.unwrap_or(HourlyRate::ZERO),
        usd_total: all[i].price.unwrap_or(HourlyRate::ZERO).for_hours(72.0),
        breakdown: Breakdown::default(),
        latency_ms: Some(12.0 * i as f64),
        interruptions_per_day: all[i].interruptions_per_day,
        caveats: Vec::new(),
    };
    Ranking {
        candidates: vec![candidate(1), candidate(6), candidate(7), candidate(0)],
        feasible: 4,
        considered: 17,
        usable: 12,
        rejected: vec![
            Rejection {
                reason: Reason::Accelerator,
                offers: 5,
                example: all[11].clone(),
                detail: "is an A100-40GB-SXM; the job wants H100-80GB-SXM".into(),
            },
            Rejection {
                reason: Reason::Count,
                offers: 1,
                example: all[9].clone(),
                detail: "has 1 GPU; the job needs 8 on a node".into(),
            },
            Rejection {
                reason: Reason::Availability,
                offers: 2,
                example: all[3].clone(),
                detail: "the provider says that there are none".into(),
            },
        ],
        relax: Vec::new(),
    }
}

pub(crate) fn jobs() -> Vec<JobView> {
    let mut ft = job(1, "llama-ft", JobState::Running, "aws/us-east-1/use1-az4");
    ft.best_usd_per_hour = Some(usd("17.20"));
    let mut moving = job(2, "mixtral-pretrain", JobState::Migrating, "gcp/us-central1/us-central1-a");
    moving.operation = Some(OperationView {
        kind: OperationKind::Migrate,
        plan: Arc::new(plan(PlanKind::Migrate, Some(&moving))),
        steps: vec![
            StepState::Done,
            StepState::Done,
            StepState::Intended,
            StepState::Planned,
            StepState::Planned,
            StepState::Planned,
            StepState::Planned,
        ],
        since: minutes(4),
        waiting_for: "checkpoint at the source".into(),
    });
    moving.interruption_risk = Some(2.1);
    let mut down = job(3, "eval-nightly", JobState::Preempted, "gcp/europe-west4/europe-west4-b");
    down.note = Some("taken away by the provider; looking for another place".into());
    down.usd_per_hour = None;
    down.interruption_risk = None;
    let done = job(4, "tokenize-c4", JobState::Succeeded, "hyperbolic/us-1");
    let failed = job(5, "probe-b200", JobState::Failed, "aws/us-east-1/use1-az2");
    vec![ft, moving, down, done, failed]
}

pub(crate) fn event(seq: i64, ago: i64, kind: EventKind, job: Option<&str>, text: &str) -> Event {
    Event {
        seq,
        at: minutes(ago),
        actor: Actor {
            user: if job.is_some() { "ada".into() } else { "gpudeck".into() },
            via: "controller".into(),
            host: "bastion".into(),
        },
        kind,
        job: job.map(|n| JobId::from(format!("0193f0a0-0000-7000-8000-0000000000{n}"))),
        job_name: job.map(|n| match n {
            "01" => "llama-ft".to_owned(),
            "02" => "mixtral-pretrain".to_owned(),
            _ => "eval-nightly".to_owned(),
        }),
        plan: job.map(|_| "0193f0a0-0000-7000-8000-00000000a041".into()),
        text: text.into(),
        data: serde_json::Value::Null,
    }
}

pub(crate) fn events() -> Vec<Event> {
    vec![
        event(37, 60 * 30, EventKind::JobCreated, Some("01"), "llama-ft written down"),
        event(
            38,
            240,
            EventKind::Launched,
            Some("01"),
            "llama-ft launched in aws/us-east-1/use1-az4 (p5.48xlarge, spot, $19.76/h)",
        ),
        event(
            39,
            14,
            EventKind::AttemptFailed,
            Some("03"),
            "aws us-east-1: no_capacity [InsufficientInstanceCapacity]",
        ),
        event(40, 9, EventKind::Preempted, Some("03"), "eval-nightly preempted in gcp/europe-west4-b after 6 h 12 min"),
        event(
            41,
            4,
            EventKind::Migration,
            Some("02"),
            "mixtral-pretrain moves from aws/us-east-1 to gcp/us-central1-a (saves $3.10/h)",
        ),
        event(42, 0, EventKind::Alert, None, "H100 below $1.50 at hyperbolic/us-1: $1.49"),
    ]
}

pub(crate) fn state() -> State {
    let feeds = vec![
        feed("aws", FeedHealth::Live),
        feed("azure", FeedHealth::Published),
        feed("gcp", FeedHealth::Partial),
        feed("hyperbolic", FeedHealth::Live),
        feed("lambda", FeedHealth::Stale),
    ];
    State {
        at: now(),
        market: Arc::new(Snapshot::from_offers(now(), offers()).with_feeds(feeds)),
        network: Network::published(),
        jobs: jobs().into(),
        events: events().into(),
        alerts: vec![
            Alert {
                seq: 40,
                since: minutes(9),
                job: None,
                text: "eval-nightly is down since 9 min".into(),
                acknowledged_by: Some("bob".into()),
            },
            Alert {
                seq: 42,
                since: minutes(0),
                job: None,
                text: "H100 below $1.50 at hyperbolic/us-1: $1.49".into(),
                acknowledged_by: None,
            },
        ]
        .into(),
        absent: vec![Absent {
            provider: "runpod".into(),
            reason: "no credentials".into(),
            remedy: "Set RUNPOD_API_KEY.".into(),
        }]
        .into(),
        usd_per_hour: usd("611.40"),
        gpus: 212,
        speed: 1.0,
    }
}

pub(crate) fn empty_state() -> State {
    State {
        at: now(),
        market: Arc::new(
            Snapshot::from_offers(now(), Vec::new())
                .with_feeds(vec![feed("aws", FeedHealth::Loading), feed("gcp", FeedHealth::Down)]),
        ),
        network: Arc::new(Network::default()),
        jobs: Vec::new().into(),
        events: Vec::new().into(),
        alerts: Vec::new().into(),
        absent: vec![Absent {
            provider: "runpod".into(),
            reason: "no credentials".into(),
            remedy: "Set RUNPOD_API_KEY.".into(),
        }]
        .into(),
        usd_per_hour: HourlyRate::ZERO,
        gpus: 0,
        speed: 1.0,
    }
}

pub(crate) fn session() -> Session {
    Session {
        demo: false,
        replay: false,
        read_only: false,
        actor: actor(),
        colors: ColorChoice::TrueColor,
        ascii: false,
        clipboard: true,
        name_above: HourlyRate::from_micros(100_000_000),
        times: crate::config::settings::TimeDisplay::Utc,
        zone: super::times::utc,
    }
}

/// The loop without a terminal: keys in, tables computed at once, effects kept.
pub(crate) struct Runner {
    pub(crate) view: View,
    pub(crate) effects: Vec<Effect>,
    pub(crate) at: Duration,
}

impl Runner {
    pub(crate) fn new(state: State, width: u16, height: u16) -> Self {
        Self::with(session(), state, width, height)
    }

    pub(crate) fn with(session: Session, state: State, width: u16, height: u16) -> Self {
        static THEMES: std::sync::OnceLock<Themes> = std::sync::OnceLock::new();
        let themes = THEMES.get_or_init(|| Themes::load([]).unwrap()).clone();
        let theme = themes.get("dark", session.colors).unwrap();
        let view = View::new(session, Arc::new(state), Keymap::default(), themes, theme);
        let mut runner = Self { view, effects: Vec::new(), at: Duration::ZERO };
        runner.take(Incoming::Resize(width, height));
        runner
    }

    /// Take an input a moment after the one before.
    pub(crate) fn take(&mut self, what: Incoming) {
        self.at += Duration::from_millis(40);
        let effects = update(&mut self.view, Input { at: self.at, what });
        for effect in effects {
            match effect {
                Effect::Board(request) => self.take(Incoming::Board(Box::new(request.build()))),
                other => self.effects.push(other),
            }
        }
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.at += time;
        self.take(Incoming::Deadline);
    }

    pub(crate) fn state(&mut self, state: State) {
        self.at += Duration::from_millis(300);
        self.take(Incoming::State(Arc::new(state)));
    }

    pub(crate) fn press(&mut self, key: KeyEvent) {
        self.take(Incoming::Key(key));
    }

    /// Keys by name, a blank between them; a single character is itself.
    pub(crate) fn keys(&mut self, text: &str) -> &mut Self {
        for name in text.split(' ') {
            self.press(key(name));
        }
        self
    }

    /// Characters as typed.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.press(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
        self
    }

    /// Answer the newest request for a plan.
    pub(crate) fn propose(&mut self) -> &mut Self {
        let (request, wish) = self
            .effects
            .iter()
            .rev()
            .find_map(|e| match e {
                Effect::Propose(request, wish) => Some((*request, wish.clone())),
                _ => None,
            })
            .unwrap();
        let proposal = proposal(&self.view.state, wish);
        self.take(Incoming::Proposed(request, Ok(Box::new(proposal))));
        self
    }

    pub(crate) fn acting(&self) -> usize {
        self.effects.iter().filter(|e| e.acts()).count()
    }

    pub(crate) fn buffer(&self) -> Buffer {
        self.drawn().0
    }

    pub(crate) fn drawn(&self) -> (Buffer, Option<Position>) {
        let (width, height) = self.view.size();
        let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width, height });
        let cursor = draw(&mut buffer, &self.view);
        (buffer, cursor)
    }

    pub(crate) fn screen(&self) -> String {
        text_of(&self.buffer())
    }

    pub(crate) fn notice(&self) -> &str {
        self.view.notice.as_ref().map_or("", |n| n.text.as_str())
    }
}

pub(crate) fn proposal(state: &State, wish: Wish) -> Proposal {
    let (kind, id) = match &wish {
        Wish::Launch { .. } => (PlanKind::Launch, None),
        Wish::Migrate { job, .. } => (PlanKind::Migrate, Some(job)),
        Wish::Terminate { job } => (PlanKind::Terminate, Some(job)),
    };
    let job = id.and_then(|id| state.jobs.iter().find(|j| j.id == *id));
    let ranking = if kind == PlanKind::Terminate { Ranking::default() } else { ranking() };
    Proposal { wish, plan: plan(kind, job), ranking, job_version: job.map(|j| j.version) }
}

pub(crate) fn key(name: &str) -> KeyEvent {
    let (name, modifiers) = match name.strip_prefix("ctrl-") {
        Some(rest) => (rest, KeyModifiers::CONTROL),
        None => (name, KeyModifiers::NONE),
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backtab" => KeyCode::BackTab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        other => KeyCode::Char(other.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

/// The buffer as lines of text.
pub(crate) fn text_of(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut skip = 0;
        for x in area.left()..area.right() {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Which role each cell has, a letter a role, for snapshots of colour that do not depend on the colours themselves.
pub(crate) fn roles_of(buffer: &Buffer, view: &View) -> String {
    let area = *buffer.area();
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        for x in area.left()..area.right() {
            let style = buffer[(x, y)].style();
            let role = Role::ALL.iter().position(|r| {
                let s = view.theme.style(Role::Text).patch(view.theme.style(*r));
                s.fg == style.fg && s.bg == style.bg && s.add_modifier == style.add_modifier
            });
            line.push(role.and_then(|r| letters.get(r)).copied().unwrap_or('.'));
        }
        let _ = writeln!(out, "{line}");
    }
    out
}
