//! What keys do in what is open. The only place from which something is executed is [`press_confirm`].

use super::{actions, moves};
use crate::domain::Accelerator;
use crate::engine::Wish;
use crate::tui::action::Action;
use crate::tui::dialogs::Layer;
use crate::tui::dialogs::command::{CommandLine, completions};
use crate::tui::dialogs::confirm::{Confirm, Question};
use crate::tui::dialogs::plan::{PlanDialog, Progress};
use crate::tui::dialogs::reader::Reader;
use crate::tui::line_edit::LineEdit;
use crate::tui::view::{Effect, View};

/// A character where characters are text.
pub(super) fn typed(view: &mut View, c: char) {
    edit(view, |line| line.put(c));
}

/// A pasted line; says whether something took it.
pub(super) fn pasted(view: &mut View, text: &str) -> bool {
    edit(view, |line| line.paste(text))
}

/// Change the text that has the focus, and let what depends on it follow.
fn edit(view: &mut View, change: impl FnOnce(&mut LineEdit)) -> bool {
    match view.layers.last_mut() {
        Some(Layer::Filter { edit, history, .. }) => {
            change(edit);
            *history = 0;
            let text = edit.text().to_owned();
            moves::filter(view, &text);
            true
        }
        Some(Layer::Command(line)) => {
            change(&mut line.edit);
            line.completing = None;
            true
        }
        Some(Layer::Launch(form)) => form.edit().map(change).is_some(),
        Some(Layer::Confirm(confirm)) if confirm.sent.is_none() => {
            confirm.typed.as_mut().map(|t| change(&mut t.edit)).is_some()
        }
        _ => false,
    }
}

pub(super) fn perform(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    match view.layers.last() {
        Some(Layer::Filter { .. }) => in_filter(view, action),
        Some(Layer::Command(_)) => in_command(view, action, effects),
        Some(Layer::Reader(_)) => in_reader(view, action, effects),
        Some(Layer::Launch(_)) => in_form(view, action, effects),
        Some(Layer::Plan(_)) => in_plan(view, action, effects),
        Some(Layer::Confirm(_)) => in_confirm(view, action, effects),
        None => {}
    }
}

fn in_filter(view: &mut View, action: Action) {
    let Some(Layer::Filter { edit: line, before, history }) = view.layers.last_mut() else { return };
    match action {
        Action::Submit => {
            let text = line.text().trim().to_owned();
            view.layers.pop();
            remember(&mut view.filters, &text);
            if let Some(error) = view.table(view.focus).and_then(|t| t.filter_error.clone()) {
                view.refuse(error);
            }
        }
        Action::Back => {
            let before = before.clone();
            view.layers.pop();
            moves::filter(view, &before);
        }
        Action::Earlier | Action::Later => {
            let text = recall(&view.filters, history, action);
            *line = LineEdit::with(&text);
            moves::filter(view, &text);
        }
        action => {
            if line.edit(action) {
                let text = line.text().to_owned();
                moves::filter(view, &text);
            }
        }
    }
}

/// Keep what was typed, the newest last, without repeating it.
fn remember(list: &mut Vec<String>, text: &str) {
    if !text.is_empty() {
        list.retain(|t| t != text);
        list.push(text.to_owned());
        // More than anyone pages back through.
        if list.len() > 50 {
            list.remove(0);
        }
    }
}

fn recall(list: &[String], at: &mut usize, action: Action) -> String {
    *at = if action == Action::Earlier { (*at + 1).min(list.len()) } else { at.saturating_sub(1) };
    list.len().checked_sub(*at).and_then(|i| list.get(i)).cloned().unwrap_or_default()
}

fn in_command(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    let Some(Layer::Command(line)) = view.layers.last_mut() else { return };
    match action {
        Action::Submit => {
            let text = line.edit.text().trim().to_owned();
            view.layers.pop();
            remember(&mut view.commands, &text);
            if !text.is_empty() {
                actions::command(view, &text, effects);
            }
        }
        Action::Back => {
            view.layers.pop();
        }
        Action::Earlier | Action::Later => {
            let text = recall(&view.commands, &mut line.history, action);
            line.edit = LineEdit::with(&text);
            line.completing = None;
        }
        Action::Complete => complete(view),
        action => {
            if line.edit.edit(action) {
                line.completing = None;
            }
        }
    }
}

fn complete(view: &mut View) {
    let Some(Layer::Command(line)) = view.layers.last() else { return };
    let (base, at) = match &line.completing {
        Some((base, at)) => (base.clone(), at + 1),
        None => (line.edit.text().to_owned(), 0),
    };
    let history = line.history;
    let found = completions(&base, view);
    if found.is_empty() {
        return;
    }
    let at = at % found.len();
    if let (Some(text), Some(Layer::Command(line))) = (found.get(at), view.layers.last_mut()) {
        *line = CommandLine { edit: LineEdit::with(text), history, completing: Some((base, at)) };
    }
}

fn in_reader(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    let screen = ratatui::layout::Rect { x: 0, y: 0, width: view.size.0, height: view.size.1 };
    let page = Reader::page(screen);
    let Some(Layer::Reader(reader)) = view.layers.last() else { return };
    let last = reader.last(view);
    let at = reader.offset.min(last);
    let to = match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => (at + 1).min(last),
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => (at + page).min(last),
        Action::Top => 0,
        Action::Bottom => last,
        Action::Copy => {
            actions::copy(view, effects);
            return;
        }
        Action::Back | Action::Close => {
            view.layers.pop();
            return;
        }
        _ => return,
    };
    if let Some(Layer::Reader(reader)) = view.layers.last_mut() {
        reader.offset = to;
    }
}

/// Accelerators that a text means.
fn accelerators(text: &str) -> Result<Vec<Accelerator>, String> {
    crate::catalogue::accelerators::select(text).map_err(|e| match e.nearest.as_slice() {
        [] => format!("'{}' is no GPU that is known", e.text),
        near => format!("'{}' is not known; did you mean {}?", e.text, near.join(" or ")),
    })
}

fn in_form(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    let Some(Layer::Launch(form)) = view.layers.last_mut() else { return };
    match action {
        Action::Back => {
            view.layers.pop();
        }
        Action::Next | Action::Down => form.step(true),
        Action::Previous | Action::Up => form.step(false),
        Action::Press if form.focus == form.cancel() => {
            view.layers.pop();
        }
        Action::Press => {
            let Some(Layer::Launch(mut form)) = view.layers.pop() else { return };
            let spec = form.spec(accelerators);
            let dry_run = form.dry_run;
            view.layers.push(Layer::Launch(form));
            if let Some(spec) = spec {
                let subject = spec.name.clone();
                let wish = Wish::Launch { spec: Box::new(spec), candidate: 0 };
                actions::open_plan(view, wish, None, subject, dry_run, effects);
            }
        }
        action => {
            if let Some(line) = form.edit() {
                line.edit(action);
            }
        }
    }
}

/// Make the plan again, for this alternative.
fn replan(plan: &mut PlanDialog, wish: Wish, request: u64, effects: &mut Vec<Effect>) {
    plan.request = request;
    plan.wish = wish.clone();
    plan.progress = Progress::Making(plan.at);
    plan.button = 0;
    plan.changed = false;
    effects.push(Effect::Propose(request, wish));
}

/// The same wish, at another of the ranked places.
fn wish_for(plan: &PlanDialog, candidate: usize) -> Option<Wish> {
    match &plan.wish {
        Wish::Launch { spec, .. } => Some(Wish::Launch { spec: spec.clone(), candidate }),
        Wish::Migrate { job, .. } => {
            let place = plan.alternatives().get(candidate)?.nodes.first()?.offer.key.location();
            Some(Wish::Migrate { job: job.clone(), to: Some(place) })
        }
        Wish::Terminate { .. } => None,
    }
}

fn in_plan(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    let next = view.requests + 1;
    let (at, name_above) = (view.at, view.session.name_above);
    let Some(Layer::Plan(plan)) = view.layers.last_mut() else { return };
    let count = plan.alternatives().len();
    match action {
        Action::Back | Action::Close => {
            view.layers.pop();
        }
        Action::Up => plan.cursor = plan.cursor.saturating_sub(1),
        Action::Down => plan.cursor = (plan.cursor + 1).min(count.saturating_sub(1)),
        Action::PageUp => plan.cursor = plan.cursor.saturating_sub(10),
        Action::PageDown => plan.cursor = (plan.cursor + 10).min(count.saturating_sub(1)),
        Action::Next | Action::Previous | Action::NextButton | Action::PreviousButton => {
            if !plan.dry_run {
                plan.button = 1 - plan.button.min(1);
            }
        }
        Action::Help => actions::help(view),
        Action::Explain => {
            let ranking = match &plan.progress {
                Progress::Made(p, _) => Some(p.ranking.clone()),
                Progress::Refused(r) => r.ranking.as_deref().cloned(),
                Progress::Making(_) => None,
            };
            let subject = plan.subject.clone();
            match ranking {
                Some(ranking) => actions::open_explanation(view, &subject, ranking),
                None => view.refuse("there is nothing to explain yet"),
            }
        }
        Action::Replan => {
            let wish = plan.wish.clone();
            replan(plan, wish, next, effects);
            view.requests = next;
        }
        Action::Press if plan.cursor != plan.chosen && count > 1 => {
            let chosen = plan.cursor;
            if let Some(wish) = wish_for(plan, chosen) {
                plan.chosen = chosen;
                replan(plan, wish, next, effects);
                view.requests = next;
            }
        }
        Action::Press if plan.button == 0 || plan.dry_run => {
            view.layers.pop();
        }
        Action::Press => {
            if !plan.current() {
                view.refuse("this plan is too old to be done; r plans again");
            } else if let Some(proposal) = plan.proposal().cloned() {
                let target = plan.target.clone();
                view.layers.push(Layer::Confirm(Box::new(Confirm::new(
                    Question::Do(Box::new(proposal)),
                    target,
                    name_above,
                    at,
                ))));
            }
        }
        _ => {}
    }
}

fn in_confirm(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    let Some(Layer::Confirm(confirm)) = view.layers.last_mut() else { return };
    match action {
        Action::Back => {
            view.layers.pop();
        }
        Action::Next | Action::Previous => confirm.button = 1 - confirm.button.min(1),
        Action::EditLeft | Action::EditRight if confirm.typed.is_none() => confirm.button = 1 - confirm.button.min(1),
        // Who has typed the name did not mean Cancel, and an Enter that came with a paste must not do it either.
        Action::Press if confirm.button == 0 && confirm.half_typed() => {
            let text = format!("Tab, then Enter: {}; Esc cancels", confirm.verb());
            view.refuse(&text);
        }
        Action::Press if confirm.button == 0 => {
            view.layers.pop();
        }
        Action::Press => press_confirm(view, effects),
        action => {
            if let Some(typed) = confirm.typed.as_mut().filter(|_| confirm.sent.is_none()) {
                typed.edit.edit(action);
            }
        }
    }
}

/// The one place where a key leads to something being done.
fn press_confirm(view: &mut View, effects: &mut Vec<Effect>) {
    let request = view.requests + 1;
    let at = view.at;
    let read_only = view.session.read_only;
    let Some(Layer::Confirm(confirm)) = view.layers.last_mut() else { return };
    if !confirm.ready() {
        if confirm.sent.is_none() && confirm.typed.is_some() {
            view.refuse("not yet: type what is asked for, exactly");
        }
        return;
    }
    match &confirm.question {
        Question::Do(proposal) if !read_only => {
            effects.push(Effect::Execute(request, proposal.clone()));
            confirm.sent = Some((request, at));
            view.requests = request;
        }
        Question::Acknowledge { seq, .. } if !read_only => {
            let note = confirm.typed.as_ref().map_or_else(String::new, |t| t.edit.text().trim().to_owned());
            effects.push(Effect::Acknowledge(request, *seq, note));
            confirm.sent = Some((request, at));
            view.requests = request;
        }
        Question::Do(_) | Question::Acknowledge { .. } => view.refuse("this session is read-only"),
        Question::Suspend(_) => {
            view.layers.pop();
            effects.push(Effect::Suspend);
        }
        Question::Quit(_) => {
            view.layers.pop();
            effects.push(Effect::Quit);
        }
    }
}
