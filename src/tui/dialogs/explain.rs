//! Why places were refused, and what would help: every refusal counted, with the one that came nearest.

use super::reader::{Line, heading};
use crate::placement::Ranking;
use crate::tui::paint::wrap;
use crate::tui::table::grouped;
use crate::tui::theme::Role;

pub(crate) fn lines(ranking: &Ranking, columns: u16) -> Vec<Line> {
    let refused: usize = ranking.rejected.iter().map(|r| r.offers).sum();
    let mut lines: Vec<Line> = vec![vec![
        (
            format!("{} can be taken", grouped(ranking.feasible)).into(),
            if ranking.feasible > 0 { Role::Available } else { Role::None },
        ),
        (
            format!(", {} offers refused; each is counted under the first reason that it fails.", grouped(refused))
                .into(),
            Role::Muted,
        ),
    ]];
    if !ranking.relax.is_empty() {
        lines.push(Vec::new());
        lines.push(heading("What would help, the smallest change first"));
        for relax in &ranking.relax {
            lines.push(vec![
                (format!("  {}", relax.constraint).into(), Role::Key),
                (format!("  {} → {}", relax.from, relax.to).into(), Role::Text),
                (format!("   then {} at {}", relax.usd_per_hour, relax.offer.key).into(), Role::Muted),
            ]);
        }
    }
    lines.push(Vec::new());
    lines.push(heading("Refused"));
    for rejection in &ranking.rejected {
        lines.push(vec![
            (format!("  {:>9} ", grouped(rejection.offers)).into(), Role::Text),
            (format!("{:<13} ", rejection.reason.as_str()).into(), Role::Title),
            (format!("nearest: {}", rejection.example.key).into(), Role::Text),
        ]);
        for text in wrap(&rejection.detail, columns.saturating_sub(26).max(12)) {
            lines.push(vec![(format!("{:26}", "").into(), Role::Muted), (text.into(), Role::Muted)]);
        }
    }
    if ranking.rejected.is_empty() {
        lines.push(vec![("  none".into(), Role::Muted)]);
    }
    lines
}
