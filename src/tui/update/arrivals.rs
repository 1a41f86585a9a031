//! What comes back: states, boards, answers to requests.

use std::sync::Arc;

use crate::config::limits;
use crate::domain::PlanKind;
use crate::tui::dialogs::Layer;
use crate::tui::dialogs::confirm::{Confirm, Question};
use crate::tui::dialogs::plan::Progress;
use crate::tui::view::{Incoming, Refusal, View};

pub(super) fn arrive(view: &mut View, what: Incoming) {
    match what {
        Incoming::State(state) => {
            view.state = state;
            view.state_at = view.at;
            view.board_wanted = true;
            check_targets(view);
        }
        Incoming::Board(board) => {
            view.board_asked = false;
            // A question that changed meanwhile is asked again.
            view.board = Arc::new(*board);
            super::moves::follow(view);
        }
        Incoming::Proposed(request, result) => proposed(view, request, result),
        Incoming::Executed(request, result) => executed(view, request, result),
        Incoming::Settled(result) => match result {
            Ok(text) => view.tell(text),
            Err(refusal) => tell_refusal(view, &refusal),
        },
        Incoming::Refreshed(request, result) => {
            if view.refreshing.is_some_and(|(r, _)| r == request) {
                view.refreshing = None;
            }
            match result {
                Ok(()) => view.tell("every provider was asked"),
                Err(refusal) => tell_refusal(view, &refusal),
            }
        }
        Incoming::Acknowledged(request, result) => {
            close_sent(view, request);
            match result {
                Ok(()) => view.tell("noted"),
                Err(refusal) => tell_refusal(view, &refusal),
            }
        }
        _ => {}
    }
}

pub(super) fn tell_refusal(view: &mut View, refusal: &Refusal) {
    let next = if refusal.next.is_empty() { String::new() } else { format!(" {}", refusal.next) };
    view.refuse(format!("{}.{next}", refusal.text.trim_end_matches('.')));
}

/// What is about to be done is for the job as it was shown. A job that is gone or ended closes the dialog; it never
/// slides to a neighbour. A job that changed makes the plan void.
fn check_targets(view: &mut View) {
    let mut gone = None;
    let state = view.state.clone();
    view.layers.retain_mut(|layer| {
        let Some((id, name)) = layer.target().map(|(id, name)| (id.clone(), name.to_owned())) else { return true };
        let Some(job) = state.jobs.iter().find(|j| j.id == id) else {
            gone = Some(format!("target gone: {name} is not there any more; nothing was done"));
            return false;
        };
        let sent = matches!(layer, Layer::Confirm(c) if c.sent.is_some());
        if job.state.is_final() && !sent {
            gone = Some(format!("target gone: {name} is {} now; nothing was done", job.state));
            return false;
        }
        match layer {
            Layer::Plan(plan) => {
                plan.changed |= plan.proposal().is_some_and(|p| p.job_version.is_some_and(|v| v != job.version));
            }
            Layer::Confirm(confirm) if !sent => {
                if let Question::Do(proposal) = &confirm.question {
                    confirm.changed |= proposal.job_version.is_some_and(|v| v != job.version);
                }
            }
            _ => {}
        }
        true
    });
    if let Some(text) = gone {
        // Keys on their way were meant for what was there.
        view.deaf_until = Some(view.at + limits::CONFIRM_GUARD);
        view.refuse(text);
    }
}

fn proposed(view: &mut View, request: u64, result: Result<Box<crate::engine::Proposal>, Refusal>) {
    let (at, name_above) = (view.at, view.session.name_above);
    let mut open = None;
    for (i, layer) in view.layers.iter_mut().enumerate() {
        let Layer::Plan(plan) = layer else { continue };
        if plan.request != request {
            continue;
        }
        match result {
            Ok(proposal) => {
                // A terminate has nothing to choose: its plan is shown in the confirmation.
                if plan.kind() == PlanKind::Terminate && !plan.dry_run {
                    open = Some((i, Confirm::new(Question::Do(proposal), plan.target.clone(), name_above, at)));
                } else {
                    plan.cursor = plan.cursor.min(proposal.ranking.candidates.len().saturating_sub(1));
                    plan.changed = false;
                    plan.progress = Progress::Made(proposal, at);
                }
            }
            Err(refusal) => {
                plan.button = 0;
                plan.progress = Progress::Refused(refusal);
            }
        }
        break;
    }
    if let Some((i, confirm)) = open
        && let Some(layer) = view.layers.get_mut(i)
    {
        *layer = Layer::Confirm(Box::new(confirm));
    }
    check_targets(view);
}

/// Close the confirmation that this request came from.
fn close_sent(view: &mut View, request: u64) {
    view.layers.retain(|l| !matches!(l, Layer::Confirm(c) if c.sent.is_some_and(|(r, _)| r == request)));
}

fn executed(view: &mut View, request: u64, result: Result<String, Refusal>) {
    close_sent(view, request);
    match result {
        Ok(text) => {
            // The form and the plan that led here have done their work.
            view.layers.retain(|l| !matches!(l, Layer::Plan(_) | Layer::Launch(_)));
            view.tell(text);
        }
        Err(refusal) => tell_refusal(view, &refusal),
    }
}
