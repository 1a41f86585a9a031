//! What was done for a job and what was seen of it, oldest first, from the events.

use super::reader::Line;
use crate::config::limits;
use crate::domain::JobId;
use crate::tui::paint::wrap;
use crate::tui::panes::events::role;
use crate::tui::theme::Role;
use crate::tui::view::View;

pub(crate) fn lines(view: &View, id: &JobId, columns: u16) -> Vec<Line> {
    let now = view.now();
    let mut lines = Vec::new();
    let events: Vec<_> = view.state.events.iter().filter(|e| e.job.as_ref() == Some(id)).collect();
    for event in events.iter().skip(events.len().saturating_sub(limits::LOG_LINES)) {
        let room = columns.saturating_sub(36).max(12);
        for (i, text) in wrap(&event.text, room).into_iter().enumerate() {
            let (at, kind) =
                if i == 0 { (view.times.short(now, event.at), event.kind.as_str()) } else { (String::new(), "") };
            lines.push(vec![
                (format!("{at:<13} ").into(), Role::Muted),
                (format!("{kind:<20}  ").into(), role(event.kind)),
                (text.into(), Role::Text),
            ]);
        }
    }
    if lines.is_empty() {
        lines.push(vec![("Nothing of this job is in the latest events.".into(), Role::Muted)]);
    }
    lines.push(Vec::new());
    let name = view.job(id).map_or_else(|| id.to_string(), |j| j.name.clone());
    for text in wrap(
        &format!(
            "Older lines: gpudeck events --job {name}. What the job itself writes stays on its machines: it is not read from here."
        ),
        columns,
    ) {
        lines.push(vec![(text.into(), Role::Muted)]);
    }
    lines
}
