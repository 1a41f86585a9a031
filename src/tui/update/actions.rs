//! What actions do in the panes. Nothing here changes anything outside the screen: what acts opens a dialog, with the
//! target pinned at this very moment.

use super::moves;
use crate::domain::{JobId, Purchase};
use crate::engine::Wish;
use crate::placement::Ranking;
use crate::tui::action::{Action, Context};
use crate::tui::dialogs::Layer;
use crate::tui::dialogs::command::{Command, CommandLine};
use crate::tui::dialogs::confirm::{Confirm, Question};
use crate::tui::dialogs::launch::{Form, Preset};
use crate::tui::dialogs::plan::{PlanDialog, Progress};
use crate::tui::dialogs::reader::{Reader, Subject};
use crate::tui::line_edit::LineEdit;
use crate::tui::panes::Pane;
use crate::tui::panes::jobs::why_stale;
use crate::tui::table::{RowId, Selected, age};
use crate::tui::view::{Effect, View};

pub(super) fn perform(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::FocusCapacity => moves::focus(view, Pane::Capacity),
        Action::FocusPrices => moves::focus(view, Pane::Prices),
        Action::FocusLatency => moves::focus(view, Pane::Latency),
        Action::FocusJobs => moves::focus(view, Pane::Jobs),
        Action::FocusEvents => moves::focus(view, Pane::Events),
        Action::NextPane => moves::next_pane(view, true),
        Action::PreviousPane => moves::next_pane(view, false),
        Action::Zoom => {
            view.zoom = !view.zoom;
            moves::settle(view);
        }
        Action::Up
        | Action::Down
        | Action::Left
        | Action::Right
        | Action::RightInMatrix
        | Action::PageUp
        | Action::PageDown
        | Action::Top
        | Action::Bottom => moves::go(view, action),
        Action::Details => details(view),
        Action::Filter => start_filter(view),
        Action::Sort => moves::next_sort(view),
        Action::ReverseSort => moves::reverse(view),
        Action::Pivot => {
            view.heat = !view.heat;
            moves::ask(view);
        }
        Action::Times => {
            view.times.next();
            let told = view.times.told();
            view.tell(told);
        }
        Action::Command => view.layers.push(Layer::Command(CommandLine::default())),
        Action::Help => help(view),
        Action::Launch => launch(view, false),
        Action::Migrate => on_selected_job(view, Action::Migrate, effects),
        Action::Terminate => on_selected_job(view, Action::Terminate, effects),
        Action::DryRun if view.focus == Pane::Jobs => on_selected_job(view, Action::DryRun, effects),
        Action::DryRun => launch(view, true),
        Action::Explain => explain(view, effects),
        Action::Logs => log(view),
        Action::Acknowledge => acknowledge(view),
        Action::Copy => copy(view, effects),
        Action::Refresh => refresh(view, effects),
        Action::Theme => next_theme(view, None),
        Action::Redraw => effects.push(Effect::Redraw),
        Action::Suspend => match operations(view) {
            0 => effects.push(Effect::Suspend),
            n => view.layers.push(Layer::Confirm(Box::new(Confirm::new(
                Question::Suspend(n),
                None,
                view.session.name_above,
                view.at,
            )))),
        },
        Action::Quit => match operations(view) {
            0 => effects.push(Effect::Quit),
            n => view.layers.push(Layer::Confirm(Box::new(Confirm::new(
                Question::Quit(n),
                None,
                view.session.name_above,
                view.at,
            )))),
        },
        Action::Back => back(view),
        _ => {}
    }
}

/// Operations under way in this process.
fn operations(view: &View) -> usize {
    view.state.jobs.iter().filter(|j| j.operation.is_some()).count()
}

/// One step back: the notice, the filter, the zoom, the events.
fn back(view: &mut View) {
    let filtered = view.table(view.focus).is_some_and(|t| !t.filter_text.is_empty());
    if view.notice.is_some() {
        view.notice = None;
    } else if filtered {
        moves::filter(view, "");
    } else if view.zoom {
        view.zoom = false;
        moves::settle(view);
    } else if view.heat && view.focus == Pane::Capacity {
        view.heat = false;
        moves::ask(view);
    } else if view.focus == Pane::Events {
        moves::focus(view, view.focus_before);
    }
}

fn start_filter(view: &mut View) {
    match view.table(view.focus) {
        Some(table) => {
            let before = table.filter_text.clone();
            view.layers.push(Layer::Filter { edit: LineEdit::with(&before), before, history: 0 });
        }
        None => view.refuse("the matrix is not filtered; it shows the regions in use and the candidates"),
    }
}

pub(super) fn help(view: &mut View) {
    let mut contexts = match view.layers.last() {
        Some(layer) => layer.contexts().to_vec(),
        None => super::keys::pane_contexts(view.focus),
    };
    if view.layers.is_empty() {
        contexts.extend([Context::Plan, Context::Confirm, Context::Text]);
    }
    view.layers.push(Layer::Reader(Reader::new(Subject::Help(contexts))));
}

/// The selected row of the focused pane; where there is none, says so.
fn selected(view: &mut View) -> Option<RowId> {
    let found = match view.focus {
        Pane::Latency => view.board.matrix.from.get(moves::matrix_position(view).0).cloned().map(RowId::Region),
        Pane::Capacity if view.heat => {
            let (gpu, _) = moves::heat_position(view);
            view.board.heat.gpus.get(gpu).cloned().map(RowId::Gpu)
        }
        pane => view.table(pane).and_then(|t| t.selected().cloned()),
    };
    if found.is_none() {
        let lost = view.table(view.focus).is_some_and(|t| t.selected == Selected::Lost);
        view.refuse(if lost { "the selected row is gone; select another one" } else { "nothing is selected here" });
    }
    found
}

fn details(view: &mut View) {
    if let Some(id) = selected(view) {
        view.layers.push(Layer::Reader(Reader::new(Subject::Details(id))));
    }
}

/// The job that is meant: the selected one, or in the events the one that the selected event is about.
fn selected_job(view: &mut View) -> Option<JobId> {
    match (view.focus, selected(view)?) {
        (Pane::Jobs, RowId::Job(id)) => Some(id),
        (Pane::Events, id @ RowId::Event(_)) => {
            let job = view.board.events.row(&id).and_then(|e| e.job.clone());
            if job.is_none() {
                view.refuse("this event is about no job");
            }
            job
        }
        _ => {
            let key = view.keymap.first_key(Action::FocusJobs);
            view.refuse(format!("select a job first ({key})"));
            None
        }
    }
}

fn log(view: &mut View) {
    if let Some(id) = selected_job(view) {
        open_log(view, id);
    }
}

fn open_log(view: &mut View, id: JobId) {
    let mut reader = Reader::new(Subject::Log(id));
    // The newest lines are at its end.
    reader.offset = reader.last(view);
    view.layers.push(Layer::Reader(reader));
}

fn on_selected_job(view: &mut View, action: Action, effects: &mut Vec<Effect>) {
    if action != Action::DryRun && view.focus != Pane::Jobs {
        let key = view.keymap.first_key(Action::FocusJobs);
        view.refuse(format!("select the job in the jobs pane first ({key})"));
        return;
    }
    if let Some(id) = selected_job(view) {
        on_job(view, action, &id, effects);
    }
}

/// Plan something for a job, its identity pinned now. Rows whose facts are too old are read again first.
fn on_job(view: &mut View, action: Action, id: &JobId, effects: &mut Vec<Effect>) {
    let Some(job) = view.job(id) else {
        view.refuse("that job is not there any more");
        return;
    };
    let name = job.name.clone();
    if job.state.is_final() {
        let state = job.state;
        view.refuse(format!("{name} is {state}; there is nothing to do for it"));
        return;
    }
    if action != Action::DryRun
        && let Some(why) = why_stale(&view.state, job)
    {
        let key = view.keymap.first_key(Action::Refresh);
        view.refuse(format!("{name} is not acted on before it is read again: {why}; {key} asks now, `gpudeck` on the command line goes ahead"));
        return;
    }
    let wish = if action == Action::Terminate {
        Wish::Terminate { job: id.clone() }
    } else {
        Wish::Migrate { job: id.clone(), to: None }
    };
    open_plan(view, wish, Some((id.clone(), name.clone())), name, action == Action::DryRun, effects);
}

pub(super) fn open_plan(
    view: &mut View,
    wish: Wish,
    target: Option<(JobId, String)>,
    subject: String,
    dry_run: bool,
    effects: &mut Vec<Effect>,
) {
    let request = view.next_request();
    effects.push(Effect::Propose(request, wish.clone()));
    view.layers.push(Layer::Plan(Box::new(PlanDialog {
        request,
        wish,
        target,
        subject,
        progress: Progress::Making(view.at),
        dry_run,
        cursor: 0,
        chosen: 0,
        button: 0,
        changed: false,
        at: view.at,
    })));
}

/// The launch form, filled from the selected row.
fn launch(view: &mut View, dry_run: bool) {
    let mut preset = Preset { count: 1, ..Preset::default() };
    let gpu = match view.focus {
        Pane::Capacity if view.heat => {
            let (g, r) = moves::heat_position(view);
            preset.place = view.board.heat.regions.get(r).cloned();
            view.board.heat.gpus.get(g).cloned()
        }
        Pane::Capacity => {
            let row = view.capacity.selected().and_then(|id| view.board.capacity.row(id)).cloned();
            if let Some(row) = &row {
                if row.offers().all(|o| o.stale) {
                    let key = view.keymap.first_key(Action::Refresh);
                    let since = age(view.now(), row.lead.observed_at);
                    let place = row.lead.key.location();
                    view.refuse(format!(
                        "{place} is not acted on before it is read again: last read {since} ago; {key} asks now"
                    ));
                    return;
                }
                preset.count = row.lead.shape.accelerators.floor().max(1);
                preset.place = Some(row.lead.key.location());
                preset.models = row
                    .offers()
                    .filter(|o| !o.stale)
                    .map(|o| o.key.purchase)
                    .filter(|p| *p != Purchase::Reserved)
                    .collect();
            }
            row.map(|r| r.lead.shape.accelerator.clone())
        }
        Pane::Prices => match view.prices.selected() {
            Some(RowId::Gpu(gpu)) => Some(gpu.clone()),
            _ => None,
        },
        _ => None,
    };
    if let Some(gpu) = gpu {
        gpu.as_str().clone_into(&mut preset.gpu);
    }
    let stem = preset.gpu.split('-').next().filter(|s| !s.is_empty()).unwrap_or("job").to_lowercase();
    preset.name = format!("{stem}-{}", view.now().format("%m%d-%H%M"));
    view.layers.push(Layer::Launch(Box::new(Form::new(&preset, dry_run))));
}

/// Why places were refused: of the newest plan for what is selected, made now without doing anything.
fn explain(view: &mut View, effects: &mut Vec<Effect>) {
    if view.focus == Pane::Jobs {
        on_selected_job(view, Action::DryRun, effects);
    } else {
        launch(view, true);
        view.tell("plan the job, then x shows every refusal");
    }
}

pub(super) fn open_explanation(view: &mut View, subject: &str, ranking: Ranking) {
    let title = format!("Why places were refused for {subject}");
    view.layers.push(Layer::Reader(Reader::new(Subject::Explain { title, ranking: Box::new(ranking) })));
}

/// Take note of the selected event's alert, or of the oldest that waits.
fn acknowledge(view: &mut View) {
    let chosen = match view.events.selected() {
        Some(RowId::Event(seq)) if view.focus == Pane::Events => Some(*seq),
        _ => None,
    };
    let open = |a: &&crate::engine::Alert| a.acknowledged_by.is_none();
    let alert = match chosen {
        Some(seq) => view.state.alerts.iter().filter(open).find(|a| a.seq == seq),
        None => view.state.alerts.iter().filter(open).min_by_key(|a| a.seq),
    };
    match alert {
        Some(alert) => {
            let question = Question::Acknowledge { seq: alert.seq, text: alert.text.clone() };
            view.layers.push(Layer::Confirm(Box::new(Confirm::new(question, None, view.session.name_above, view.at))));
        }
        None => view.refuse(if chosen.is_some() {
            "this event has no alert that waits for a note"
        } else {
            "no alert waits for a note"
        }),
    }
}

pub(super) fn copy(view: &mut View, effects: &mut Vec<Effect>) {
    let id = match view.layers.last() {
        Some(Layer::Reader(reader)) => match &reader.subject {
            Subject::Details(id) => Some(id.clone()),
            Subject::Log(job) => Some(RowId::Job(job.clone())),
            _ => None,
        },
        _ => selected(view),
    };
    let Some(id) = id else { return };
    if !view.session.clipboard {
        view.refuse("copying is switched off in the configuration");
        return;
    }
    let text = crate::domain::text::inert(&id.label()).into_owned();
    if text.len() > crate::config::limits::COPY_MAX {
        view.refuse("too long to copy");
        return;
    }
    view.tell(format!("copied: {text}"));
    effects.push(Effect::Copy(text));
}

fn refresh(view: &mut View, effects: &mut Vec<Effect>) {
    if view.session.replay {
        view.refuse("a recording is shown; there is nobody to ask");
    } else if view.refreshing.is_some() {
        view.tell("providers are being asked already");
    } else {
        let request = view.next_request();
        view.refreshing = Some((request, view.at));
        effects.push(Effect::Refresh(request));
    }
}

fn next_theme(view: &mut View, name: Option<&str>) {
    let name = name.map_or_else(|| view.themes.next(&view.theme.name).to_owned(), str::to_owned);
    match view.themes.get(&name, view.session.colors) {
        Ok(theme) => {
            view.tell(format!("theme: {}", theme.title));
            view.theme = theme;
        }
        Err(error) => view.refuse(error.to_string()),
    }
}

/// Do a command line.
pub(super) fn command(view: &mut View, text: &str, effects: &mut Vec<Effect>) {
    match crate::tui::dialogs::command::parse(text, view.session.read_only) {
        Err(error) => view.refuse(error),
        Ok(Command::Do(action)) => perform(view, action, effects),
        Ok(Command::Filter(text)) => {
            if view.focus == Pane::Latency {
                view.refuse("the matrix is not filtered");
            } else {
                moves::filter(view, &text);
                if let Some(error) = view.table(view.focus).and_then(|t| t.filter_error.clone()) {
                    view.refuse(error);
                }
            }
        }
        Ok(Command::Sort(column)) => moves::sort_by(view, &column),
        Ok(Command::Theme(name)) => next_theme(view, Some(&name)),
        Ok(Command::OnJob(action, name)) => {
            let found: Vec<JobId> = view
                .state
                .jobs
                .iter()
                .filter(|j| j.name == name || j.id.as_str() == name)
                .filter(|j| !j.state.is_final() || matches!(action, Action::Details | Action::Logs))
                .map(|j| j.id.clone())
                .collect();
            match found.as_slice() {
                [] => view.refuse(format!("there is no live job '{name}'")),
                [id] => {
                    let id = id.clone();
                    match action {
                        Action::Details => {
                            view.layers.push(Layer::Reader(Reader::new(Subject::Details(RowId::Job(id)))));
                        }
                        Action::Logs => open_log(view, id),
                        action => on_job(view, action, &id, effects),
                    }
                }
                several => {
                    let n = several.len();
                    view.refuse(format!("{n} jobs are called '{name}'; select one in the jobs pane"));
                }
            }
        }
    }
}
