//! The keys of where one is, from the registry and the bindings in force.

use super::reader::{Line, heading};
use crate::tui::action::{Action, Context, available};
use crate::tui::theme::Role;
use crate::tui::view::View;

pub(crate) fn lines(view: &View, contexts: &[Context], columns: u16) -> Vec<Line> {
    let mut lines = Vec::new();
    for context in contexts {
        let mut any = false;
        for spec in available(view.session.read_only).filter(|s| s.contexts.contains(context)) {
            if !any {
                if !lines.is_empty() {
                    lines.push(Vec::new());
                }
                lines.push(heading(context.title()));
                any = true;
            }
            let keys = view.keymap.keys_of(spec.action).join(" ");
            let keys = if keys.is_empty() { "(no key)".to_owned() } else { keys };
            let room = columns.saturating_sub(34);
            for (i, part) in crate::tui::paint::wrap(spec.help, room.max(10)).into_iter().enumerate() {
                let (k, t) = if i == 0 { (keys.as_str(), spec.title) } else { ("", "") };
                lines.push(vec![
                    (format!("  {k:<14} ").into(), Role::Key),
                    (format!("{t:<16} ").into(), Role::Text),
                    (part.into(), Role::Muted),
                ]);
            }
        }
    }
    lines.push(Vec::new());
    lines.push(heading("Marks"));
    for (marks, meaning) in [
        ("● ◐ ○ ?", "available, limited, none, not known; with the evidence for it in its own column"),
        ("1.49p", "a published price, not the provider's own word of now; its date is its age"),
        ("12m 86p 79~", "latency measured, published, estimated from the distance"),
        ("– ?", "not known: neither free nor zero; ? where a figure was known and is too old to show"),
        ("▲ ✓", "an alert that waits for a note; one that has it"),
    ] {
        lines.push(vec![(format!("  {marks:<14} ").into(), Role::Title), (meaning.into(), Role::Muted)]);
    }
    if view.session.read_only {
        lines.push(Vec::new());
        lines.push(vec![(
            "This session is read-only: launch, migrate, terminate and acknowledge are not there.".into(),
            Role::ModeReadOnly,
        )]);
    }
    let command = view.keymap.first_key(Action::Command);
    lines.push(Vec::new());
    lines.push(vec![(
        format!("Each of these can be typed by name after {command}, and bound to other keys in the configuration.")
            .into(),
        Role::Muted,
    )]);
    lines
}
