//! The command line: every action by its name, with arguments where they help; Tab completes.

use ratatui::layout::{Position, Rect};

use crate::tui::action::{Action, Context, available};
use crate::tui::line_edit::LineEdit;
use crate::tui::paint::Canvas;
use crate::tui::theme::Role;
use crate::tui::view::View;

/// What is being typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandLine {
    pub(crate) edit: LineEdit,
    /// Where in the list of what was typed before one is; 0 is the new line.
    pub(crate) history: usize,
    /// The text that Tab completes, and which completion is shown.
    pub(crate) completing: Option<(String, usize)>,
}

/// A command as meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// As if its key were pressed.
    Do(Action),
    /// For the job of this name (or id's beginning).
    OnJob(Action, String),
    Filter(String),
    Sort(String),
    Theme(String),
}

/// Actions that make sense by name: those of the panes.
fn commands(read_only: bool) -> impl Iterator<Item = (&'static str, Action)> {
    available(read_only)
        .filter(|s| s.contexts.iter().any(|c| matches!(c, Context::Main | Context::Capacity)))
        .filter(|s| !matches!(s.action, Action::Command))
        .map(|s| (s.name, s.action))
}

/// Short names that hands know.
const ALIASES: [(&str, &str); 7] = [
    ("q", "quit"),
    ("exit", "quit"),
    ("h", "help"),
    ("offers", "capacity"),
    ("stop", "terminate"),
    ("move", "migrate"),
    ("ack", "acknowledge"),
];

pub(crate) fn parse(text: &str, read_only: bool) -> Result<Command, String> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let name = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
    let Some((_, action)) = commands(read_only).find(|(n, _)| *n == name) else {
        if Action::by_name(name).is_some_and(Action::acts) && read_only {
            return Err(format!("'{name}' is not there in a read-only session"));
        }
        let near =
            commands(read_only).map(|(n, _)| (strsim::damerau_levenshtein(n, name), n)).min().filter(|(d, _)| *d <= 3);
        return Err(match near {
            Some((_, n)) => format!("no command '{word}'; did you mean '{n}'?"),
            None => format!("no command '{word}'; Tab shows what there is"),
        });
    };
    Ok(match (action, rest) {
        (Action::Filter, rest) => Command::Filter(rest.to_owned()),
        (_, "") => Command::Do(action),
        (Action::Sort, column) => Command::Sort(column.to_owned()),
        (Action::Theme, theme) => Command::Theme(theme.to_owned()),
        (Action::Migrate | Action::Terminate | Action::Details | Action::Logs | Action::DryRun, job) => {
            Command::OnJob(action, job.to_owned())
        }
        _ => return Err(format!("'{name}' takes nothing after it")),
    })
}

/// What the text could become, the nearest first.
pub(crate) fn completions(text: &str, view: &View) -> Vec<String> {
    let read_only = view.session.read_only;
    if let Some((word, rest)) = text.split_once(' ') {
        let name = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
        let names: Vec<String> = match Action::by_name(name) {
            Some(Action::Theme) => view.themes.names().map(str::to_owned).collect(),
            Some(Action::Migrate | Action::Terminate | Action::Details | Action::Logs | Action::DryRun) => {
                view.state.jobs.iter().filter(|j| !j.state.is_final()).map(|j| j.name.clone()).collect()
            }
            Some(Action::Sort) => crate::tui::update::sort_names(view),
            _ => Vec::new(),
        };
        return names.into_iter().filter(|n| n.starts_with(rest.trim_start())).map(|n| format!("{word} {n}")).collect();
    }
    let mut found: Vec<String> =
        commands(read_only).filter(|(n, _)| n.starts_with(text)).map(|(n, _)| n.to_owned()).collect();
    found.extend(
        commands(read_only).filter(|(n, _)| !n.starts_with(text) && n.contains(text)).map(|(n, _)| n.to_owned()),
    );
    found.dedup();
    found
}

impl CommandLine {
    pub(crate) fn draw(&self, canvas: &mut Canvas<'_>, screen: Rect, view: &View) -> Option<Position> {
        let y = screen.bottom().saturating_sub(1);
        let base = self.completing.as_ref().map_or(self.edit.text(), |(base, _)| base.as_str());
        let found = completions(base, view);
        let shown = found.len().min(8);
        let wide = 60.min(screen.width);
        for (i, name) in found.iter().take(shown).enumerate() {
            let row = Rect { x: screen.x, y: y.saturating_sub((shown - i) as u16), width: wide, height: 1 };
            canvas.fill(row, Role::Dialog);
            let current = self.completing.as_ref().is_some_and(|(_, at)| *at == i);
            canvas.text(row.x + 2, row.y, 20, name, if current { Role::Match } else { Role::Title });
            let title = Action::by_name(name).map_or("", |a| a.spec().help);
            canvas.text(row.x + 23, row.y, wide.saturating_sub(24), title, Role::Muted);
            if current {
                canvas.tint(row, Role::Selection);
            }
        }
        canvas.fill(Rect { x: screen.x, y, width: screen.width, height: 1 }, Role::Input);
        canvas.text(screen.x, y, 1, ":", Role::Key);
        let (text, at) = self.edit.window(screen.width.saturating_sub(2));
        canvas.text(screen.x + 1, y, screen.width.saturating_sub(1), &text, Role::Input);
        Some(Position { x: screen.x + 1 + at, y })
    }
}
