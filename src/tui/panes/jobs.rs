//! Jobs: what runs where, what it costs, what the best place would cost now.

use std::ops::Deref;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::config::limits;
use crate::domain::{FeedHealth, HourlyRate, JobState, Purchase, StepState};
use crate::engine::{JobView, State};
use crate::tui::filter::Filterable;
use crate::tui::paint::Part;
use crate::tui::panes::capacity::short_zone;
use crate::tui::table::{Column, Context, Row, RowId, SortKey, age};
use crate::tui::theme::Role;

/// A job of a state.
#[derive(Debug, Clone)]
pub(crate) struct JobRow {
    jobs: Arc<[JobView]>,
    index: usize,
    /// Its provider's facts are too old to act on.
    stale: bool,
}

impl Deref for JobRow {
    type Target = JobView;
    fn deref(&self) -> &JobView {
        &self.jobs[self.index]
    }
}

pub(crate) fn rows(state: &State) -> Vec<JobRow> {
    (0..state.jobs.len())
        .map(|index| JobRow { jobs: state.jobs.clone(), index, stale: why_stale(state, &state.jobs[index]).is_some() })
        .collect()
}

/// Why a job's row is not to be acted on before it is read again: its machines have not been seen for a while. That the
/// provider's prices are old says nothing of them.
pub(crate) fn why_stale(state: &State, job: &JobView) -> Option<String> {
    if job.state.is_final() {
        return None;
    }
    let seen = job.instances.iter().filter(|i| i.instance.state.may_bill()).map(|i| i.observed_at).min()?;
    // In a world that goes fast, machines cannot be looked at more often than every few real seconds.
    let limit = limits::JOB_UNSEEN.max(limits::JOB_UNSEEN_REAL.mul_f64(state.speed.clamp(0.0, 1e6)));
    if (state.at - seen).to_std().unwrap_or_default() <= limit {
        return None;
    }
    let feed = job.provider.as_ref().and_then(|p| state.market.feeds().iter().find(|f| f.provider == *p));
    let health =
        feed.filter(|f| f.health != FeedHealth::Live).map(|f| format!("; {} is {}", f.provider, f.health.label()));
    Some(format!("its machines were last seen {} ago{}", age(state.at, seen), health.unwrap_or_default()))
}

/// A job state's mark and role.
pub(crate) const fn state_mark(state: JobState) -> (&'static str, Role) {
    match state {
        JobState::Running => ("●", Role::Running),
        JobState::Pending | JobState::Placing | JobState::Starting => ("◐", Role::Waiting),
        JobState::Migrating => ("→", Role::Moving),
        JobState::Preempted => ("▼", Role::Failed),
        JobState::Stopping => ("◌", Role::Waiting),
        JobState::Succeeded => ("✓", Role::Ended),
        JobState::Failed => ("✕", Role::Failed),
        JobState::Terminated => ("○", Role::Ended),
    }
}

/// A rate without its unit; the column's heading has it.
pub(crate) fn rate(rate: HourlyRate) -> String {
    rate.to_string().trim_start_matches('$').trim_end_matches("/h").to_owned()
}

/// Where it runs, in one text.
pub(crate) fn place(job: &JobView) -> String {
    match (&job.provider, &job.region, &job.zone) {
        (Some(p), Some(r), Some(z)) => format!("{p}/{r}/{}", short_zone(r.as_str(), z.as_str())),
        (Some(p), Some(r), None) => format!("{p}/{r}"),
        (Some(p), None, _) => p.to_string(),
        _ => "–".to_owned(),
    }
}

static COLUMNS: &[Column<JobRow>] = &[
    Column {
        name: "name",
        title: "NAME",
        min: 12,
        max: 32,
        drop: 0,
        right: false,
        whole: false,
        cell: |r, _| vec![(crate::tui::paint::fit_middle(&r.name, 32), Role::Title)],
        key: Some(|r| SortKey::Text(&r.name)),
    },
    Column {
        name: "state",
        title: "STATE",
        min: 12,
        max: 12,
        drop: 0,
        right: false,
        whole: true,
        cell: |r, _| {
            let (mark, role) = state_mark(r.state);
            vec![(mark.into(), role), (format!(" {}", r.state).into(), role)]
        },
        key: Some(|r| SortKey::Text(r.state.as_str())),
    },
    Column {
        name: "where",
        title: "WHERE",
        min: 14,
        max: 36,
        drop: 1,
        right: false,
        whole: false,
        cell: |r, _| vec![(place(r).into(), Role::Text)],
        key: Some(|r| r.provider.as_ref().map_or(SortKey::Missing, |p| SortKey::Text(p.as_str()))),
    },
    Column {
        name: "gpu",
        title: "GPU",
        min: 8,
        max: 20,
        drop: 2,
        right: false,
        whole: false,
        cell: |r, _| vec![gpus(r)],
        key: Some(|r| SortKey::Integer(i64::from(r.accelerators.ten_thousandths()))),
    },
    Column {
        name: "paid",
        title: "PAID",
        min: 4,
        max: 8,
        drop: 7,
        right: false,
        whole: true,
        cell: |r, _| vec![paid(r)],
        key: Some(|r| r.purchase.map_or(SortKey::Missing, |p| SortKey::Text(p.as_str()))),
    },
    Column {
        name: "price",
        title: "$/h",
        min: 7,
        max: 9,
        drop: 0,
        right: true,
        whole: true,
        cell: |r, _| vec![r.usd_per_hour.map_or(("?".into(), Role::Unknown), |p| (rate(p).into(), Role::Money))],
        key: Some(|r| r.usd_per_hour.map_or(SortKey::Missing, |p| SortKey::Integer(p.micros()))),
    },
    Column {
        name: "best",
        title: "BEST $/h",
        min: 8,
        max: 10,
        drop: 4,
        right: true,
        whole: true,
        cell: |r, _| vec![best(r)],
        key: Some(|r| r.best_usd_per_hour.map_or(SortKey::Missing, |p| SortKey::Integer(p.micros()))),
    },
    Column {
        name: "spent",
        title: "SPENT $",
        min: 8,
        max: 11,
        drop: 3,
        right: true,
        whole: true,
        cell: |r, _| vec![(r.usd_spent.to_string().trim_start_matches('$').to_owned().into(), Role::Text)],
        key: Some(|r| SortKey::Integer(r.usd_spent.micros())),
    },
    Column {
        name: "risk",
        title: "RISK/d",
        min: 6,
        max: 7,
        drop: 5,
        right: true,
        whole: true,
        cell: |r, _| vec![risk(r)],
        key: Some(|r| r.interruption_risk.map_or(SortKey::Missing, SortKey::Float)),
    },
    Column {
        name: "restarts",
        title: "RST",
        min: 3,
        max: 4,
        drop: 8,
        right: true,
        whole: true,
        cell: |r, _| vec![(r.restarts.to_string().into(), if r.restarts > 0 { Role::Text } else { Role::Muted })],
        key: Some(|r| SortKey::Integer(i64::from(r.restarts))),
    },
    Column {
        name: "up",
        title: "UP",
        min: 4,
        max: 5,
        drop: 9,
        right: true,
        whole: true,
        cell: |r, c| vec![up(r, c.now)],
        key: Some(|r| r.running_since.map_or(SortKey::Missing, |t| SortKey::Integer(-t.timestamp()))),
    },
    Column {
        name: "now",
        title: "NOW",
        min: 16,
        max: 40,
        drop: 6,
        right: false,
        whole: false,
        cell: |r, c| doing(r, c),
        key: None,
    },
];

fn gpus(job: &JobView) -> Part<'_> {
    match &job.accelerator {
        Some(gpu) => (
            format!("{}×{}", job.accelerators, gpu.as_str().split('-').next().unwrap_or(gpu.as_str())).into(),
            Role::Text,
        ),
        None => (
            format!("{}×{}", job.spec.gpus(), job.spec.resources.accelerators.first().map_or("any", |a| a.as_str()))
                .into(),
            Role::Muted,
        ),
    }
}

fn paid(job: &JobView) -> Part<'static> {
    match job.purchase {
        Some(Purchase::Spot) => ("spot".into(), Role::Text),
        Some(Purchase::OnDemand) => ("od".into(), Role::Text),
        Some(Purchase::Reserved) => ("resv".into(), Role::Text),
        None => ("–".into(), Role::Muted),
    }
}

fn best(job: &JobView) -> Part<'static> {
    match (job.best_usd_per_hour, job.usd_per_hour) {
        (None, _) => ("–".into(), Role::Muted),
        (Some(b), Some(now)) if b < now => (rate(b).into(), Role::Cheaper),
        (Some(b), _) => (rate(b).into(), Role::Muted),
    }
}

/// Expected interruptions a day, as a figure and in colour; `–` is not zero: there is no evidence.
pub(crate) fn risk(job: &JobView) -> Part<'static> {
    match job.interruption_risk {
        None => ("–".into(), Role::Muted),
        Some(r) => {
            let role = if r < 0.1 {
                Role::Available
            } else if r < 1.0 {
                Role::Limited
            } else {
                Role::None
            };
            (format!("{r:.2}").into(), role)
        }
    }
}

fn up(job: &JobView, now: DateTime<Utc>) -> Part<'static> {
    // One that is down is not up, however long ago it first ran.
    let down = matches!(job.state, JobState::Preempted | JobState::Placing | JobState::Starting);
    match job.running_since.filter(|_| !down) {
        Some(at) => (age(job.ended_at.unwrap_or(now), at).into(), Role::Muted),
        None => ("–".into(), Role::Muted),
    }
}

/// What is being done for it, or why it is as it is.
fn doing<'r>(job: &'r JobView, context: &Context<'_>) -> Vec<Part<'r>> {
    if let Some(operation) = &job.operation {
        let done = operation.steps.iter().filter(|s| **s == StepState::Done).count();
        let unclear = operation.steps.contains(&StepState::Unknown);
        let text = format!(
            "{} {done}/{} {} ",
            operation.kind.as_str(),
            operation.steps.len(),
            age(context.now, operation.since)
        );
        return vec![
            (text.into(), if unclear { Role::Failed } else { Role::Moving }),
            (operation.waiting_for.as_str().into(), Role::Muted),
        ];
    }
    match &job.note {
        Some(note) => vec![(note.as_str().into(), Role::Muted)],
        None => Vec::new(),
    }
}

impl Row for JobRow {
    fn id(&self) -> RowId {
        RowId::Job(self.deref().id.clone())
    }
    fn is(&self, id: &RowId) -> bool {
        matches!(id, RowId::Job(job) if *job == self.deref().id)
    }
    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }
    fn stale(&self) -> bool {
        self.stale
    }
}

impl Filterable for JobRow {
    const TEXTS: &'static [&'static str] = &["name", "state", "cloud", "region", "gpu", "type", "id"];
    const NUMBERS: &'static [&'static str] = &["price", "spent", "best", "risk", "restarts", "count"];
    const FLAGS: &'static [&'static str] = &["spot", "on-demand", "stale", "running", "ended", "busy"];

    fn texts(&self, field: Option<&str>, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let of = |name: &str| field.is_none_or(|f| f == name);
        of("name") && visit(&self.name)
            || of("state") && visit(self.state.as_str())
            || of("cloud") && self.provider.as_ref().is_some_and(|p| visit(p.as_str()))
            || of("region") && self.region.as_ref().is_some_and(|r| visit(r.as_str()))
            || of("gpu") && self.accelerator.as_ref().is_some_and(|a| visit(a.as_str()))
            || of("type") && self.instance_type.as_ref().is_some_and(|t| visit(t.as_str()))
            || field == Some("id") && visit(self.deref().id.as_str())
    }
    fn number(&self, field: &str) -> Option<f64> {
        match field {
            "price" => self.usd_per_hour.map(HourlyRate::to_usd),
            "spent" => Some(self.usd_spent.to_usd()),
            "best" => self.best_usd_per_hour.map(HourlyRate::to_usd),
            "risk" => self.interruption_risk,
            "restarts" => Some(f64::from(self.restarts)),
            "count" => Some(self.accelerators.to_f64()),
            _ => None,
        }
    }
    fn flag(&self, word: &str) -> bool {
        match word {
            "spot" => self.purchase == Some(Purchase::Spot),
            "on-demand" => self.purchase == Some(Purchase::OnDemand),
            "stale" => self.stale,
            "running" => self.state == JobState::Running,
            "ended" => self.state.is_final(),
            "busy" => self.operation.is_some(),
            _ => false,
        }
    }
}
