//! A question before something is done. The focus is on Cancel; keys that arrive in the first half second were meant
//! for what was there before and are dropped; what destroys or moves wants the job's name typed.

use std::time::Duration;

use ratatui::layout::{Position, Rect};

use super::reader::{Line, field, heading};
use super::{buttons, centred};
use crate::config::limits;
use crate::domain::{HourlyRate, JobId, JobState, Money, PlanKind};
use crate::engine::{JobView, Proposal, Wish};
use crate::tui::line_edit::LineEdit;
use crate::tui::paint::{Canvas, wrap};
use crate::tui::panes::jobs::{place, state_mark};
use crate::tui::table::age;
use crate::tui::theme::Role;
use crate::tui::view::View;

/// What is asked.
#[derive(Debug)]
pub(crate) enum Question {
    /// Shall this plan be done?
    Do(Box<Proposal>),
    /// Take note of this alert?
    Acknowledge { seq: i64, text: String },
    /// Stop the process while operations are under way?
    Suspend(usize),
    /// Leave while operations are under way?
    Quit(usize),
}

/// A text that must be typed before the dangerous button works.
#[derive(Debug)]
pub(crate) struct Typed {
    /// What is expected; `None` takes any text (a note).
    pub(crate) expected: Option<String>,
    /// What to call it.
    pub(crate) what: &'static str,
    pub(crate) edit: LineEdit,
}

/// A question and how far its answer is.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) question: Question,
    pub(crate) target: Option<(JobId, String)>,
    pub(crate) opened: Duration,
    /// The moment of the last input.
    pub(crate) at: Duration,
    pub(crate) typed: Option<Typed>,
    /// 0 is Cancel, 1 does it.
    pub(crate) button: usize,
    /// Sent, and the answer is awaited: the request and since when.
    pub(crate) sent: Option<(u64, Duration)>,
    /// The job changed since the plan was made.
    pub(crate) changed: bool,
}

/// What is typed to confirm for a job: its name where that is plain ASCII, else the last six characters of its id, so
/// that look-alike letters decide nothing.
pub(crate) fn expected(name: &str, id: &JobId) -> (String, &'static str) {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()) {
        (name.to_owned(), "the job's name")
    } else {
        let count = id.as_str().chars().count();
        (id.as_str().chars().skip(count.saturating_sub(6)).collect(), "the last six of the id")
    }
}

impl Confirm {
    /// A launch dearer than `name_above`, or of unknown price, wants the name typed too.
    pub(crate) fn new(
        question: Question,
        target: Option<(JobId, String)>,
        name_above: HourlyRate,
        at: Duration,
    ) -> Self {
        let dear = |p: &Proposal| p.plan.usd_per_hour_after.is_none_or(|rate| rate > name_above);
        let typed = match &question {
            Question::Do(p) if p.plan.kind == PlanKind::Launch && dear(p) => match &p.wish {
                // It has no id yet: the plan's stands for it where the name cannot be typed.
                Wish::Launch { spec, .. } => {
                    let (expected, what) = expected(&spec.name, &JobId::from(p.plan.id.as_str()));
                    Some(Typed { expected: Some(expected), what, edit: LineEdit::default() })
                }
                Wish::Migrate { .. } | Wish::Terminate { .. } => None,
            },
            Question::Do(proposal) if proposal.plan.kind != PlanKind::Launch => target.as_ref().map(|(id, name)| {
                let (expected, what) = expected(name, id);
                Typed { expected: Some(expected), what, edit: LineEdit::default() }
            }),
            Question::Acknowledge { .. } => Some(Typed { expected: None, what: "a note", edit: LineEdit::default() }),
            _ => None,
        };
        Self { question, target, opened: at, at, typed, button: 0, sent: None, changed: false }
    }

    /// Whether keys are still dropped.
    pub(crate) fn guarded(&self) -> bool {
        self.at < self.opened + limits::CONFIRM_GUARD
    }

    /// Whether the plan may still be done.
    fn valid(&self) -> bool {
        let fresh = !matches!(self.question, Question::Do(_)) || self.at < self.opened + limits::PLAN_VALID;
        fresh && !self.changed && self.sent.is_none()
    }

    /// Whether the second button works now.
    pub(crate) fn ready(&self) -> bool {
        let typed = self.typed.as_ref().is_none_or(|t| t.expected.as_deref().is_none_or(|e| t.edit.text() == e));
        self.valid() && typed && !self.guarded()
    }

    /// Whether a name that must be typed is there or begun.
    pub(crate) fn half_typed(&self) -> bool {
        self.sent.is_none() && self.typed.as_ref().is_some_and(|t| t.expected.is_some() && !t.edit.text().is_empty())
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        let guard = self.opened + limits::CONFIRM_GUARD;
        if self.at < guard {
            return Some(guard);
        }
        match (&self.question, self.sent) {
            (_, Some((_, since))) => Some(since + limits::LOADING_DEADLINE),
            (Question::Do(_), None) => Some(self.opened + limits::PLAN_VALID),
            _ => None,
        }
    }

    pub(crate) fn verb(&self) -> &'static str {
        match &self.question {
            Question::Do(p) => match p.plan.kind {
                PlanKind::Launch | PlanKind::Recover => "Launch",
                PlanKind::Migrate => "Migrate",
                PlanKind::Terminate => "Terminate",
            },
            Question::Acknowledge { .. } => "Acknowledge",
            Question::Suspend(_) => "Suspend",
            Question::Quit(_) => "Quit",
        }
    }

    fn destroys(&self) -> bool {
        matches!(&self.question, Question::Do(p) if p.plan.kind != PlanKind::Launch)
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas<'_>, screen: Rect, view: &View) -> Option<Position> {
        let width = 100.min(screen.width.saturating_sub(2));
        let mut lines = self.lines(view, width.saturating_sub(4));
        let foot: u16 = if self.typed.is_some() { 5 } else { 3 };
        // On a low screen blank lines go first: nothing that is said may be hidden before they are.
        if lines.len() + usize::from(foot) + 4 > usize::from(screen.height) {
            lines.retain(|l| !l.is_empty());
        }
        let area = centred(screen, width, lines.len() as u16 + foot + 2);
        canvas.fill(area, Role::Dialog);
        let border = if self.destroys() { Role::DangerBorder } else { Role::DialogBorder };
        let title = match &self.target {
            Some((_, name)) => format!(" {} {name}? ", self.verb()),
            None => match &self.question {
                Question::Do(p) => match &p.wish {
                    crate::engine::Wish::Launch { spec, .. } => format!(" Launch {}? ", spec.name),
                    _ => format!(" {}? ", self.verb()),
                },
                _ => format!(" {}? ", self.verb()),
            },
        };
        let inner = canvas.boxed(area, border, &[(title.into(), Role::Title)], &[]);
        let room = usize::from(inner.height.saturating_sub(foot));
        for (i, line) in lines.iter().take(room).enumerate() {
            canvas.parts(inner.x + 1, inner.y + i as u16, inner.width.saturating_sub(2), line);
        }
        if lines.len() > room {
            let y = (inner.y + room as u16).saturating_sub(1);
            canvas.parts_right(
                inner.x + 1,
                y,
                inner.width.saturating_sub(2),
                &[(format!(" … {} lines more on a higher screen", lines.len() - room + 1).into(), Role::Failed)],
            );
        }
        let mut cursor = None;
        let y = inner.bottom().saturating_sub(1);
        if let Some(typed) = &self.typed {
            let prompt = match &typed.expected {
                Some(expected) => format!("To confirm, type {}: {expected}", typed.what),
                None => "A note for those who read this later (may be empty):".to_owned(),
            };
            canvas.text(inner.x + 1, y.saturating_sub(3), inner.width.saturating_sub(2), &prompt, Role::Text);
            let wide = 60.min(inner.width.saturating_sub(6));
            let (shown, at) = typed.edit.window(wide);
            let role = Role::Input;
            canvas.text(inner.x + 1, y.saturating_sub(2), 2, "> ", Role::Key);
            canvas.text(inner.x + 3, y.saturating_sub(2), wide, &format!("{shown:<w$}", w = usize::from(wide)), role);
            if typed.expected.as_deref().is_some_and(|e| e == typed.edit.text()) {
                canvas.text(inner.x + 4 + wide, y.saturating_sub(2), 2, "✓", Role::Available);
            }
            cursor = Some(Position { x: inner.x + 3 + at, y: y.saturating_sub(2) });
        }
        let hint = if let Some((_, since)) = self.sent {
            let waited = self.at.saturating_sub(since);
            if waited >= limits::LOADING_DEADLINE {
                "no answer yet; it may still be done: look at jobs and events".to_owned()
            } else {
                "being written down …".to_owned()
            }
        } else if self.guarded() {
            "one moment …".to_owned()
        } else if self.changed {
            "the job changed: Esc, then look again".to_owned()
        } else if !self.valid() {
            "too old: Esc, then plan again".to_owned()
        } else if self.typed.as_ref().is_some_and(|t| t.expected.is_some()) && self.ready() && self.button == 0 {
            format!("Tab, then Enter: {}; Esc cancels", self.verb())
        } else {
            "Tab moves, Enter presses, Esc cancels".to_owned()
        };
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(34), &hint, Role::Muted);
        let labels = [("Cancel", false), (self.verb(), self.destroys())];
        buttons(canvas, Rect { y, height: 1, ..inner }, &labels, Some(self.button), |i| i == 0 || self.ready());
        cursor
    }

    fn lines(&self, view: &View, columns: u16) -> Vec<Line> {
        let plain = |text: &str, role: Role| -> Vec<Line> {
            wrap(text, columns).into_iter().map(|t| vec![(t.into(), role)]).collect()
        };
        match &self.question {
            Question::Acknowledge { text, .. } => plain(text, Role::Waiting),
            Question::Suspend(n) => plain(
                &format!(
                    "{n} operations are under way in this process. They stand still until `fg`; machines that run go on costing money."
                ),
                Role::Text,
            ),
            Question::Quit(n) => plain(
                &format!(
                    "{n} operations are under way in this process. They are written down: the next gpudeck, or a running controller, goes on with them. Until then nobody does."
                ),
                Role::Text,
            ),
            Question::Do(proposal) => {
                let mut lines = super::plan::money_lines(&proposal.plan, columns);
                if let Some(job) = self.target.as_ref().and_then(|(id, _)| view.job(id)) {
                    lines.extend(of_job(view, job, proposal.plan.kind, columns));
                }
                lines.extend(super::plan::step_lines(&proposal.plan));
                if view.session.demo {
                    lines.push(vec![("Simulated: no real machine and no real money.".into(), Role::Waiting)]);
                }
                lines
            }
        }
    }
}

/// What will stop, what is lost, what was spent.
fn of_job(view: &View, job: &JobView, kind: PlanKind, columns: u16) -> Vec<Line> {
    let now = view.now();
    let mut lines = Vec::new();
    let (mark, role) = state_mark(job.state);
    let (verb, stops) = if kind == PlanKind::Terminate { ("What stops", true) } else { ("What moves", false) };
    lines.push(heading(verb));
    lines.push(vec![
        (format!("  {} ", job.name).into(), Role::Title),
        (format!("{mark} {}", job.state).into(), role),
        (format!("  {}  {}", place(job), job.purchase.map_or_else(String::new, |p| p.to_string())).into(), Role::Text),
    ]);
    lines.extend(field("  id", job.id.as_str(), Role::Muted, columns));
    for i in job.instances.iter().filter(|i| i.instance.state.may_bill()).take(8) {
        lines.push(vec![
            (format!("  {} ", i.instance.id).into(), Role::Text),
            (
                format!(
                    "{} {} {}, seen {} ago",
                    i.instance.instance_type,
                    i.instance.location,
                    i.instance.state,
                    age(now, i.observed_at)
                )
                .into(),
                Role::Muted,
            ),
        ]);
    }
    let more = job.instances.iter().filter(|i| i.instance.state.may_bill()).count().saturating_sub(8);
    if more > 0 {
        lines.push(vec![(format!("  and {more} more").into(), Role::Muted)]);
    }
    lines.push(Vec::new());
    lines.push(heading("What is lost"));
    let lost = match (&job.spec.data.checkpoint_uri, job.state) {
        (_, JobState::Pending | JobState::Placing) => "  Nothing: it does not run yet.".to_owned(),
        (Some(uri), _) if stops => format!("  All since the last checkpoint at {uri} (when that was is not known here), and the disks of the machines."),
        (None, _) if stops => "  Everything that it did not write elsewhere: no place for checkpoints is stated, and the disks go with the machines.".to_owned(),
        (Some(uri), _) => format!("  What runs after the checkpoint that the move writes to {uri}, until it goes on there."),
        (None, _) => "  No place for checkpoints is stated: it starts from the beginning at the new place unless it keeps its state elsewhere.".to_owned(),
    };
    for text in wrap(&lost, columns) {
        lines.push(vec![(text.into(), Role::Waiting)]);
    }
    if let Some(started) = job.running_since {
        let spent =
            if job.usd_spent > Money::ZERO { format!(", {} spent so far", job.usd_spent) } else { String::new() };
        lines.push(vec![(format!("  Started {} ago{spent}.", age(now, started)).into(), Role::Text)]);
    }
    lines.push(Vec::new());
    lines
}
