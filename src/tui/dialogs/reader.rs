//! Something to read, line by line: help, details, refusals, a job's log. Its lines are made from the newest state.

use ratatui::layout::Rect;

use super::{centred, details, explain, help, log};
use crate::domain::JobId;
use crate::placement::Ranking;
use crate::tui::action::Context;
use crate::tui::paint::{Canvas, Part};
use crate::tui::table::{RowId, scrollbar};
use crate::tui::theme::Role;
use crate::tui::view::View;

/// A line to read.
pub(crate) type Line = Vec<Part<'static>>;

/// What is read.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    Help(Vec<Context>),
    Details(RowId),
    Explain { title: String, ranking: Box<Ranking> },
    Log(JobId),
}

/// Something to read and how far one is.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) subject: Subject,
    pub(crate) offset: usize,
}

impl Reader {
    pub(crate) fn new(subject: Subject) -> Self {
        Self { subject, offset: 0 }
    }

    fn title(&self, view: &View) -> String {
        match &self.subject {
            Subject::Help(_) => "Keys".to_owned(),
            Subject::Details(id) => details::title(view, id),
            Subject::Explain { title, .. } => title.clone(),
            Subject::Log(id) => view.job(id).map_or_else(|| "Log".to_owned(), |j| format!("Log of {}", j.name)),
        }
    }

    /// Where it stands on this screen.
    fn area(screen: Rect) -> Rect {
        centred(screen, 116, screen.height.saturating_sub(4).max(10))
    }

    /// Rows that are seen at once.
    pub(crate) fn page(screen: Rect) -> usize {
        usize::from(Self::area(screen).height.saturating_sub(3)).max(1)
    }

    pub(crate) fn lines(&self, view: &View, columns: u16) -> Vec<Line> {
        match &self.subject {
            Subject::Help(contexts) => help::lines(view, contexts, columns),
            Subject::Details(id) => details::lines(view, id, columns),
            Subject::Explain { ranking, .. } => explain::lines(ranking, columns),
            Subject::Log(id) => log::lines(view, id, columns),
        }
    }

    /// The last offset that still fills the page.
    pub(crate) fn last(&self, view: &View) -> usize {
        let screen = Rect { x: 0, y: 0, width: view.size.0, height: view.size.1 };
        let columns = Self::area(screen).width.saturating_sub(4);
        self.lines(view, columns).len().saturating_sub(Self::page(screen))
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas<'_>, screen: Rect, view: &View) {
        let area = Self::area(screen);
        let lines = self.lines(view, area.width.saturating_sub(4));
        let page = Self::page(screen);
        let tall = (lines.len() as u16).saturating_add(3);
        let area = if tall < area.height { centred(screen, area.width, tall) } else { area };
        canvas.fill(area, Role::Dialog);
        let title = format!(" {} ", self.title(view));
        let inner = canvas.boxed(area, Role::DialogBorder, &[(title.into(), Role::Title)], &[]);
        let offset = self.offset.min(lines.len().saturating_sub(page));
        for (i, line) in lines.iter().skip(offset).take(page).enumerate() {
            canvas.parts(inner.x + 1, inner.y + i as u16, inner.width.saturating_sub(2), line);
        }
        let more = lines.len() > page;
        let hint = if more {
            format!(" {}–{} of {}  {} close ", offset + 1, (offset + page).min(lines.len()), lines.len(), "Esc")
        } else {
            " Esc close ".to_owned()
        };
        let y = area.bottom().saturating_sub(1);
        let wide = crate::tui::paint::width(&hint);
        canvas.text(area.right().saturating_sub(wide + 2), y, wide, &hint, Role::Muted);
        scrollbar(canvas, Rect { y: inner.y.saturating_sub(1), ..inner }, offset, page, lines.len());
    }
}

/// `label  value`, the value broken where it is too long.
pub(crate) fn field(label: &str, value: &str, role: Role, columns: u16) -> Vec<Line> {
    const LABEL: u16 = 18;
    crate::tui::paint::wrap(value, columns.saturating_sub(LABEL).max(8))
        .into_iter()
        .enumerate()
        .map(|(i, text)| {
            let label = if i == 0 { label } else { "" };
            vec![(format!("{label:<18}").into(), Role::Muted), (text.into(), role)]
        })
        .collect()
}

/// A heading within what is read.
pub(crate) fn heading(text: &str) -> Line {
    vec![(text.to_owned().into(), Role::Title)]
}
