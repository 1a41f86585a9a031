//! Events: what happened, who did it, under which plan; newest first. What waits for a person's note is marked.

use std::ops::Deref;
use std::sync::Arc;

use crate::domain::{Event, EventKind};
use crate::engine::State;
use crate::tui::filter::Filterable;
use crate::tui::table::{Column, Row, RowId, SortKey};
use crate::tui::theme::Role;

/// An event of a state.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    events: Arc<[Event]>,
    index: usize,
    /// Raised an alert; `Some(true)` where somebody has taken note of it.
    pub(crate) alert: Option<bool>,
}

impl Deref for EventRow {
    type Target = Event;
    fn deref(&self) -> &Event {
        &self.events[self.index]
    }
}

/// Newest first.
pub(crate) fn rows(state: &State) -> Vec<EventRow> {
    (0..state.events.len())
        .rev()
        .map(|index| {
            let seq = state.events[index].seq;
            let alert = state.alerts.iter().find(|a| a.seq == seq).map(|a| a.acknowledged_by.is_some());
            EventRow { events: state.events.clone(), index, alert }
        })
        .collect()
}

/// How an event looks.
pub(crate) const fn role(kind: EventKind) -> Role {
    match kind {
        EventKind::AttemptFailed | EventKind::Preempted | EventKind::OutcomeUnknown | EventKind::Orphan => Role::Failed,
        EventKind::PreemptionNotice | EventKind::Alert => Role::Waiting,
        EventKind::Launched | EventKind::Recovered => Role::Running,
        EventKind::Migration => Role::Moving,
        EventKind::Terminated | EventKind::TerminateRequested => Role::Dearer,
        _ => Role::Muted,
    }
}

static COLUMNS: &[Column<EventRow>] = &[
    Column {
        name: "time",
        title: "TIME",
        min: 9,
        max: 12,
        drop: 0,
        right: false,
        whole: true,
        cell: |r, c| vec![(c.times.short(c.now, r.at).into(), Role::Muted)],
        key: Some(|r| SortKey::Integer(r.seq)),
    },
    Column {
        name: "alert",
        title: "!",
        min: 1,
        max: 1,
        drop: 0,
        right: false,
        whole: true,
        cell: |r, _| {
            vec![match r.alert {
                Some(false) => ("▲".into(), Role::Alert),
                Some(true) => ("✓".into(), Role::Muted),
                None => (" ".into(), Role::Muted),
            }]
        },
        key: None,
    },
    Column {
        name: "kind",
        title: "WHAT",
        min: 14,
        max: 20,
        drop: 2,
        right: false,
        whole: false,
        cell: |r, _| vec![(r.kind.as_str().into(), role(r.kind))],
        key: Some(|r| SortKey::Text(r.kind.as_str())),
    },
    Column {
        name: "job",
        title: "JOB",
        min: 10,
        max: 24,
        drop: 1,
        right: false,
        whole: false,
        cell: |r, _| vec![r.job_name.as_deref().map_or(("–".into(), Role::Muted), |n| (n.into(), Role::Title))],
        key: Some(|r| r.job_name.as_deref().map_or(SortKey::Missing, SortKey::Text)),
    },
    Column {
        name: "text",
        title: "TEXT",
        min: 20,
        max: 200,
        drop: 0,
        right: false,
        whole: false,
        cell: |r, _| vec![(r.text.as_str().into(), Role::Text)],
        key: None,
    },
    Column {
        name: "actor",
        title: "WHO",
        min: 12,
        max: 30,
        drop: 3,
        right: false,
        whole: false,
        cell: |r, _| vec![(format!("{} ({})", r.actor.user, r.actor.via).into(), Role::Muted)],
        key: Some(|r| SortKey::Text(&r.actor.user)),
    },
    Column {
        name: "plan",
        title: "PLAN",
        min: 8,
        max: 8,
        drop: 4,
        right: false,
        whole: true,
        cell: |r, _| {
            vec![r.plan.as_ref().map_or(("–".into(), Role::Muted), |p| (tail(p.as_str()).into(), Role::Muted))]
        },
        key: Some(|r| r.plan.as_ref().map_or(SortKey::Missing, |p| SortKey::Text(p.as_str()))),
    },
];

/// The last eight characters of an id: those that differ between ids of the same minute.
pub(crate) fn tail(id: &str) -> String {
    let count = id.chars().count();
    id.chars().skip(count.saturating_sub(8)).collect()
}

impl Row for EventRow {
    fn id(&self) -> RowId {
        RowId::Event(self.seq)
    }
    fn is(&self, id: &RowId) -> bool {
        matches!(id, RowId::Event(seq) if *seq == self.seq)
    }
    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }
}

impl Filterable for EventRow {
    const TEXTS: &'static [&'static str] = &["text", "job", "kind", "who", "plan"];
    const NUMBERS: &'static [&'static str] = &["seq"];
    const FLAGS: &'static [&'static str] = &["alert", "open"];

    fn texts(&self, field: Option<&str>, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let of = |name: &str| field.is_none_or(|f| f == name);
        of("text") && visit(&self.text)
            || of("job") && self.job_name.as_deref().is_some_and(&mut *visit)
            || of("kind") && visit(self.kind.as_str())
            || of("who") && visit(&self.actor.user)
            || field == Some("plan") && self.plan.as_ref().is_some_and(|p| visit(p.as_str()))
    }
    fn number(&self, field: &str) -> Option<f64> {
        (field == "seq").then_some(self.seq as f64)
    }
    fn flag(&self, word: &str) -> bool {
        match word {
            "alert" => self.alert.is_some(),
            "open" => self.alert == Some(false),
            _ => false,
        }
    }
}
