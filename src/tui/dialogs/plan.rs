//! A plan: what would be done, with money and time; what else could be done; what was refused. Nothing acts from here.

use std::time::Duration;

use ratatui::layout::Rect;

use super::reader::{Line, heading};
use super::{buttons, centred};
use crate::config::limits;
use crate::domain::{HourlyRate, JobId, Plan, PlanKind, Purchase};
use crate::engine::{Proposal, Wish};
use crate::placement::Candidate;
use crate::tui::paint::{Canvas, Part, wrap};
use crate::tui::table::grouped;
use crate::tui::theme::Role;
use crate::tui::view::{Refusal, View};

/// How far a plan is.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Asked for since.
    Making(Duration),
    /// Refused.
    Refused(Refusal),
    /// Made, at this moment.
    Made(Box<Proposal>, Duration),
}

/// A plan being made or looked at.
#[derive(Debug)]
pub(crate) struct PlanDialog {
    pub(crate) request: u64,
    pub(crate) wish: Wish,
    /// The job that is to be moved or stopped: pinned when the key was pressed.
    pub(crate) target: Option<(JobId, String)>,
    /// What it is about, for people.
    pub(crate) subject: String,
    pub(crate) progress: Progress,
    /// Only to be looked at.
    pub(crate) dry_run: bool,
    /// The alternative under the cursor.
    pub(crate) cursor: usize,
    /// The alternative that the plan is for.
    pub(crate) chosen: usize,
    /// Close, or go on to the confirmation.
    pub(crate) button: usize,
    /// The job changed since the plan was made.
    pub(crate) changed: bool,
    /// The moment, for what is overdue.
    pub(crate) at: Duration,
}

impl PlanDialog {
    pub(crate) fn kind(&self) -> PlanKind {
        match self.wish {
            Wish::Launch { .. } => PlanKind::Launch,
            Wish::Migrate { .. } => PlanKind::Migrate,
            Wish::Terminate { .. } => PlanKind::Terminate,
        }
    }

    pub(crate) fn proposal(&self) -> Option<&Proposal> {
        match &self.progress {
            Progress::Made(p, _) => Some(p),
            _ => None,
        }
    }

    /// Whether it may be gone on with: made, fresh, for the job as it is.
    pub(crate) fn current(&self) -> bool {
        matches!(&self.progress, Progress::Made(_, at) if self.at < *at + limits::PLAN_VALID) && !self.changed
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        match &self.progress {
            Progress::Making(since) => Some(*since + limits::LOADING_DEADLINE),
            Progress::Made(_, at) => Some(*at + limits::PLAN_VALID),
            Progress::Refused(_) => None,
        }
    }

    pub(crate) fn alternatives(&self) -> &[Candidate] {
        self.proposal().map_or(&[], |p| {
            p.ranking.candidates.get(..limits::ALTERNATIVES.min(p.ranking.candidates.len())).unwrap_or(&[])
        })
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas<'_>, screen: Rect, view: &View) {
        let area = centred(screen, 128, screen.height.saturating_sub(4).max(12));
        let columns = area.width.saturating_sub(4);
        let mut lines = self.lines(view, columns);
        let alternatives = self.alternative_lines(columns);
        let tall = (lines.len() + alternatives.len() + 5) as u16;
        let area = if tall < area.height { centred(screen, area.width, tall) } else { area };
        canvas.fill(area, Role::Dialog);
        let dry = if self.dry_run { " (nothing is done)" } else { "" };
        let title = format!(" Plan: {} {}{dry} ", self.kind().as_str(), self.subject);
        let inner = canvas.boxed(area, Role::DialogBorder, &[(title.into(), Role::Title)], &[]);
        let bottom = inner.bottom().saturating_sub(2);
        let room = usize::from(bottom.saturating_sub(inner.y));
        // The plan comes first; alternatives take what is left, scrolled to the cursor.
        let plan_room = lines.len().min(room.saturating_sub(alternatives.len().min(5)));
        let cut = lines.len() > plan_room;
        lines.truncate(plan_room);
        let mut y = inner.y;
        for line in &lines {
            canvas.parts(inner.x + 1, y, columns, line);
            y += 1;
        }
        if cut && let Some(last) = y.checked_sub(1) {
            canvas.parts_right(
                inner.x + 1,
                last,
                columns,
                &[(" … more in the plan's details after it is started".into(), Role::Muted)],
            );
        }
        let left = usize::from(bottom.saturating_sub(y));
        let head = 2.min(alternatives.len());
        let list_room = left.saturating_sub(head);
        let offset = (self.cursor + 1).saturating_sub(list_room);
        for (i, line) in alternatives.iter().enumerate() {
            if i < head {
                canvas.parts(inner.x + 1, y, columns, line);
                y += 1;
            } else if i - head >= offset && i - head < offset + list_room {
                canvas.parts(inner.x + 1, y, columns, line);
                if i - head == self.cursor {
                    canvas.tint(Rect { x: inner.x + 1, y, width: columns, height: 1 }, Role::SelectionIdle);
                }
                y += 1;
            }
        }
        let y = inner.bottom().saturating_sub(1);
        let hint = match (&self.progress, self.current()) {
            (Progress::Made(..), false) => "r plan again: the job or the prices may have changed".to_owned(),
            (Progress::Made(..), true) if alternatives.is_empty() => "x refusals  r again  Esc close".to_owned(),
            (Progress::Made(..), true) => "↑↓ alternatives, Enter takes one  x refusals  r again  Esc close".to_owned(),
            _ => "x refusals  r again  Esc close".to_owned(),
        };
        canvas.text(inner.x + 1, y, columns.saturating_sub(30), &hint, Role::Muted);
        let go = if self.dry_run { &[("Close", false)][..] } else { &[("Close", false), ("Continue…", false)][..] };
        buttons(canvas, Rect { y, height: 1, ..inner }, go, Some(self.button), |i| i == 0 || self.current());
    }

    fn lines(&self, view: &View, columns: u16) -> Vec<Line> {
        match &self.progress {
            Progress::Making(since) => {
                let waited = self.at.saturating_sub(*since);
                if waited >= limits::LOADING_DEADLINE {
                    vec![vec![(
                        format!(
                            "No plan after {} s; it is still being waited for. r asks again, Esc gives up.",
                            waited.as_secs()
                        )
                        .into(),
                        Role::Failed,
                    )]]
                } else {
                    vec![vec![("Looking for places …".into(), Role::Muted)]]
                }
            }
            Progress::Refused(refusal) => {
                let mut lines: Vec<Line> =
                    wrap(&refusal.text, columns).into_iter().map(|t| vec![(t.into(), Role::Failed)]).collect();
                lines.extend(wrap(&refusal.next, columns).into_iter().map(|t| vec![(t.into(), Role::Text)]));
                if let Some(ranking) = &refusal.ranking {
                    lines.push(Vec::new());
                    lines.extend(super::explain::lines(ranking, columns));
                }
                lines
            }
            Progress::Made(proposal, _) => {
                let mut lines = money_lines(&proposal.plan, columns);
                lines.extend(step_lines(&proposal.plan));
                let refused: usize = proposal.ranking.rejected.iter().map(|r| r.offers).sum();
                if self.kind() != PlanKind::Terminate {
                    lines.push(vec![
                        (format!("{} places fit", grouped(proposal.ranking.feasible)).into(), Role::Text),
                        (format!(", {} offers were refused (x)", grouped(refused)).into(), Role::Muted),
                    ]);
                }
                if self.changed {
                    lines.push(vec![("The job changed since this plan was made: r plans again.".into(), Role::Failed)]);
                }
                if view.session.demo {
                    lines.push(vec![("Simulated: no real machine and no real money.".into(), Role::Waiting)]);
                }
                lines
            }
        }
    }

    fn alternative_lines(&self, columns: u16) -> Vec<Line> {
        let candidates = self.alternatives();
        if candidates.len() < 2 {
            return Vec::new();
        }
        let wide = columns >= 100;
        let mut lines = vec![
            Vec::new(),
            vec![(
                if wide {
                    format!(
                        "   {:>2} {:<34} {:<20} {:<9} {:>10} {:>12} {:>7} {:>8}",
                        "#", "PLACE", "TYPE", "PAID", "$/h", "$ TOTAL", "RISK/d", "MS"
                    )
                } else {
                    format!(
                        "   {:>2} {:<27} {:<9} {:>10} {:>11} {:>6}",
                        "#", "PLACE", "PAID", "$/h", "$ TOTAL", "RISK/d"
                    )
                }
                .into(),
                Role::Column,
            )],
        ];
        for (i, candidate) in candidates.iter().enumerate() {
            lines.push(alternative(candidate, i, i == self.chosen, wide));
        }
        lines
    }
}

fn alternative(candidate: &Candidate, index: usize, chosen: bool, wide: bool) -> Line {
    let Some(group) = candidate.nodes.first() else { return Vec::new() };
    let key = &group.offer.key;
    let count: u32 = candidate.nodes.iter().map(|n| n.count).sum();
    let place = if candidate.nodes.len() > 1 {
        format!("{}/{} +{} zones", key.provider, key.region, candidate.nodes.len() - 1)
    } else {
        key.location().to_string()
    };
    let risk = candidate.interruptions_per_day.map_or_else(|| "–".to_owned(), |r| format!("{r:.2}"));
    let latency = candidate.latency_ms.map_or_else(|| "–".to_owned(), |l| format!("{l:.0}"));
    let mark = if chosen { " ◆ " } else { "   " };
    let mut line: Line = vec![(mark.into(), Role::Key), (format!("{:>2} ", index + 1).into(), Role::Muted)];
    let pad = |text: String, columns: u16| -> String {
        let shown = crate::tui::paint::fit(&text, columns).into_owned();
        let fill = columns.saturating_sub(crate::tui::paint::width(&shown));
        shown + &" ".repeat(usize::from(fill))
    };
    if wide {
        line.push((pad(place, 34).into(), Role::Text));
        line.push((" ".into(), Role::Text));
        line.push((pad(format!("{count}×{}", key.instance_type), 20).into(), Role::Muted));
        line.push((" ".into(), Role::Text));
    } else {
        line.push((pad(place, 27).into(), Role::Text));
        line.push((" ".into(), Role::Text));
    }
    line.push((format!("{:<9} ", key.purchase.to_string()).into(), Role::Text));
    line.push((format!("{:>10} ", candidate.usd_per_hour.to_string()).into(), Role::Money));
    let (total, odds) = if wide { (12, 7) } else { (11, 6) };
    line.push((format!("{:>total$} ", candidate.usd_total.to_string()).into(), Role::Text));
    line.push((format!("{risk:>odds$} ").into(), Role::Text));
    if wide {
        line.push((format!("{latency:>8}").into(), Role::Muted));
    }
    line
}

/// The difference of two rates, with its direction in words.
pub(crate) fn change(before: Option<HourlyRate>, after: Option<HourlyRate>) -> Part<'static> {
    match (before, after) {
        (Some(b), Some(a)) if a < b => (format!("{} less", b - a).into(), Role::Cheaper),
        (Some(b), Some(a)) if a > b => (format!("{} more", a - b).into(), Role::Dearer),
        (Some(_), Some(_)) => ("no change".into(), Role::Muted),
        _ => ("the difference is not known".into(), Role::Muted),
    }
}

/// Steps, money and warnings of a plan.
pub(crate) fn step_lines(plan: &Plan) -> Vec<Line> {
    let mut lines: Vec<Line> = vec![heading("Steps")];
    for (i, step) in plan.steps.iter().enumerate() {
        let zone = step.zone.as_ref().map_or_else(String::new, |z| {
            let short = z
                .as_str()
                .strip_prefix(step.region.as_str())
                .map(|z| z.trim_start_matches('-'))
                .filter(|z| !z.is_empty());
            format!("/{}", short.unwrap_or(z.as_str()))
        });
        let mut line: Line = vec![
            (format!("  {} ", i + 1).into(), Role::Muted),
            (format!("{:<11}", step.action.as_str()).into(), Role::Title),
            (format!("{}/{}{zone} ", step.provider, step.region).into(), Role::Text),
        ];
        if let Some(machine) = &step.instance_type {
            line.push((format!("{}×{machine} ", step.count).into(), Role::Text));
        }
        if let Some(p) = step.purchase {
            line.push((format!("{p} ").into(), if p == Purchase::Spot { Role::Waiting } else { Role::Muted }));
        }
        if let Some(p) = step.usd_per_hour {
            line.push((format!("{p} ").into(), Role::Money));
        }
        if let Some(once) = step.usd_once {
            line.push((format!("{once} once ").into(), Role::Money));
        }
        if let Some(seconds) = step.seconds {
            let text =
                if seconds < 120 { format!("≈{seconds} s") } else { format!("≈{} min", seconds.div_ceil(60)) };
            line.push((text.into(), Role::Muted));
        }
        lines.push(line);
    }
    lines.push(Vec::new());
    lines
}

/// What it costs and saves, how long it takes, and what is to be known before; first of all on a low screen.
pub(crate) fn money_lines(plan: &Plan, columns: u16) -> Vec<Line> {
    let rate = |r: Option<HourlyRate>| r.map_or_else(|| "not known".to_owned(), |r| r.to_string());
    let mut lines = Vec::new();
    lines.push(heading("Money"));
    let after = plan.usd_per_hour_after;
    let before = plan.usd_per_hour_before;
    let mut line: Line = match plan.kind {
        PlanKind::Launch => vec![
            ("  costs ".into(), Role::Muted),
            (rate(after).into(), Role::Money),
            (after.map_or_else(String::new, |a| format!(", {} a day", a.for_hours(24.0))).into(), Role::Text),
        ],
        PlanKind::Terminate => vec![("  saves ".into(), Role::Muted), (rate(before).into(), Role::Money)],
        PlanKind::Migrate | PlanKind::Recover => vec![
            ("  now ".into(), Role::Muted),
            (rate(before).into(), Role::Money),
            ("  after ".into(), Role::Muted),
            (rate(after).into(), Role::Money),
            ("  ".into(), Role::Muted),
            change(before, after),
        ],
    };
    line.push(match plan.usd_once {
        Some(once) => (format!("  once {once}").into(), Role::Text),
        None => ("  once: not known".into(), Role::Muted),
    });
    lines.push(line);
    let seconds: u64 = plan.steps.iter().filter_map(|s| s.seconds).sum();
    if seconds > 0 {
        let unknown = plan.steps.iter().any(|s| s.seconds.is_none());
        let text = format!(
            "  takes about {} min{}",
            seconds.div_ceil(60),
            if unknown { ", steps of unknown length not counted" } else { "" }
        );
        lines.push(vec![(text.into(), Role::Muted)]);
    }
    for warning in &plan.warnings {
        for (i, text) in wrap(warning, columns.saturating_sub(4)).into_iter().enumerate() {
            lines.push(vec![(if i == 0 { "  ! " } else { "    " }.into(), Role::Failed), (text.into(), Role::Waiting)]);
        }
    }
    lines.push(Vec::new());
    lines
}
