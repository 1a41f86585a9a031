//! The cockpit's state: what is known, what is looked at, what is open. Changed by [`super::update()`] alone.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use crossterm::event::KeyEvent;

use super::board::{Board, BoardRequest, Queries};
use super::dialogs::Layer;
use super::keymap::{Key, Keymap};
use super::panes::Pane;
use super::table::TableState;
use super::theme::{ColorChoice, Theme, Themes};
use super::times::{Times, Zone};
use crate::config::settings::TimeDisplay;
use crate::domain::{Accelerator, Actor, HourlyRate, Location};
use crate::engine::{Proposal, State, Wish};
use crate::placement::Ranking;

/// What the session is: fixed at its start.
#[derive(Debug, Clone)]
pub struct Session {
    /// A simulated world.
    pub demo: bool,
    /// Recorded events are watched; nothing can be asked of a provider.
    pub replay: bool,
    /// Nothing can be acted on.
    pub read_only: bool,
    /// Who acts.
    pub actor: Actor,
    /// How many colours there are.
    pub colors: ColorChoice,
    /// Only ASCII can be shown.
    pub ascii: bool,
    /// The clipboard may be written (OSC 52).
    pub clipboard: bool,
    /// A launch dearer than this wants the job's name typed.
    pub name_above: HourlyRate,
    /// In whose time moments are shown at first.
    pub times: TimeDisplay,
    /// How far the operator's clock is from UTC.
    pub zone: Zone,
}

/// What a request that failed leaves behind: what happened and what to do.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What was refused, by whom, with code and request id.
    pub text: String,
    /// What to do.
    pub next: String,
    /// Where no place was found: every refusal.
    pub ranking: Option<Box<Ranking>>,
}

/// Something that happened, with the moment: monotonic time since the cockpit's start.
#[derive(Debug)]
pub struct Input {
    /// When.
    pub at: Duration,
    /// What.
    pub what: Incoming,
}

/// What can happen to a cockpit.
#[derive(Debug)]
pub enum Incoming {
    /// A key.
    Key(KeyEvent),
    /// A text pasted at once.
    Paste(String),
    /// The terminal has this size now.
    Resize(u16, u16),
    /// The engine's newest state.
    State(Arc<State>),
    /// Tables were computed.
    Board(Box<Board>),
    /// A plan was made, or not.
    Proposed(u64, Result<Box<Proposal>, Refusal>),
    /// A confirmed plan was written down and started (the job's id), or not.
    Executed(u64, Result<String, Refusal>),
    /// An operation ended: well (what to say of it), or not.
    Settled(Result<String, Refusal>),
    /// Every provider was asked, or not.
    Refreshed(u64, Result<(), Refusal>),
    /// An alert was acknowledged, or not.
    Acknowledged(u64, Result<(), Refusal>),
    /// A deadline that [`View::next_deadline`] named has come.
    Deadline,
    /// The process was stopped and goes on.
    Resumed,
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").finish_non_exhaustive()
    }
}
impl std::fmt::Debug for BoardRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoardRequest").finish_non_exhaustive()
    }
}

/// What the loop is asked to do.
#[derive(Debug)]
pub enum Effect {
    /// Compute the tables.
    Board(Box<BoardRequest>),
    /// Make a plan. Acts on nothing.
    Propose(u64, Wish),
    /// Write down a confirmed plan and start it.
    Execute(u64, Box<Proposal>),
    /// Ask every provider now.
    Refresh(u64),
    /// Acknowledge an alert with a note.
    Acknowledge(u64, i64, String),
    /// Write to the clipboard.
    Copy(String),
    /// Paint everything anew.
    Redraw,
    /// Give the terminal back and stop the process until it is continued.
    Suspend,
    /// Leave.
    Quit,
}

impl Effect {
    /// Whether it changes anything outside the screen.
    pub const fn acts(&self) -> bool {
        matches!(self, Self::Execute(..) | Self::Acknowledge(..))
    }
}

/// The line at the bottom that stays until it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) bad: bool,
}

/// Whether keys are being swallowed as a terminal's reply to a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ReplyGuard {
    #[default]
    Open,
    /// An escape came alone; if its rest follows within a moment it was a reply.
    Escape(Duration),
    /// In a reply: when its last key came, how many have come, and whether it must begin with a number.
    Swallowing { last: Duration, keys: u32, numbered: bool },
}

/// Everything that the cockpit draws and decides from.
pub struct View {
    pub(crate) session: Session,
    pub(crate) size: (u16, u16),
    /// The moment of the last input.
    pub(crate) at: Duration,
    pub(crate) state: Arc<State>,
    /// When that state arrived.
    pub(crate) state_at: Duration,
    pub(crate) board: Arc<Board>,
    /// A board is being computed.
    pub(crate) board_asked: bool,
    /// Another one is wanted after that.
    pub(crate) board_wanted: bool,
    /// A question changed, so that it is wanted at once.
    pub(crate) board_urgent: bool,
    /// The one being computed answers a key.
    pub(crate) board_for_key: bool,
    pub(crate) board_at: Option<Duration>,
    pub(crate) focus: Pane,
    /// Where Esc leads back to from the events.
    pub(crate) focus_before: Pane,
    pub(crate) zoom: bool,
    pub(crate) heat: bool,
    pub(crate) heat_at: Option<(Accelerator, Location)>,
    pub(crate) heat_from: (usize, usize),
    pub(crate) matrix_at: Option<(Location, Location)>,
    pub(crate) matrix_from: (usize, usize),
    pub(crate) capacity: TableState,
    pub(crate) prices: TableState,
    pub(crate) jobs: TableState,
    pub(crate) events: TableState,
    pub(crate) layers: Vec<Layer>,
    pub(crate) notice: Option<Notice>,
    pub(crate) keys: Vec<Key>,
    pub(crate) keymap: Keymap,
    pub(crate) themes: Themes,
    pub(crate) theme: Theme,
    /// In whose time moments are shown.
    pub(crate) times: Times,
    pub(crate) requests: u64,
    /// A refresh is under way since.
    pub(crate) refreshing: Option<(u64, Duration)>,
    pub(crate) reply: ReplyGuard,
    /// Until then keys are dropped: a dialog has just closed by itself, and they were meant for it.
    pub(crate) deaf_until: Option<Duration>,
    /// Lines typed before: filters, commands.
    pub(crate) filters: Vec<String>,
    pub(crate) commands: Vec<String>,
    /// Something visible changed since the last frame.
    pub(crate) dirty: bool,
}

impl View {
    /// Before anything has happened.
    pub fn new(session: Session, state: Arc<State>, keymap: Keymap, themes: Themes, theme: Theme) -> Self {
        Self {
            times: Times { display: session.times, zone: session.zone },
            session,
            size: (80, 24),
            at: Duration::ZERO,
            state_at: Duration::ZERO,
            board: Arc::new(Board::empty(state.clone())),
            state,
            board_asked: false,
            board_wanted: true,
            board_urgent: true,
            board_for_key: false,
            board_at: None,
            focus: Pane::Capacity,
            focus_before: Pane::Capacity,
            zoom: false,
            heat: false,
            heat_at: None,
            heat_from: (0, 0),
            matrix_at: None,
            matrix_from: (0, 0),
            capacity: TableState::sorted_by(0, false),
            prices: TableState::sorted_by(0, false),
            jobs: TableState::sorted_by(usize::MAX, false),
            events: TableState::sorted_by(0, true),
            layers: Vec::new(),
            notice: None,
            keys: Vec::new(),
            keymap,
            themes,
            theme,
            requests: 0,
            refreshing: None,
            reply: ReplyGuard::Open,
            deaf_until: None,
            filters: Vec::new(),
            commands: Vec::new(),
            dirty: true,
        }
    }

    /// Now, in the world's time: the state's, and what has passed since it arrived at the world's speed.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        let passed = self.at.saturating_sub(self.state_at).as_secs_f64() * self.state.speed.clamp(0.0, 1e6);
        self.state.at + chrono::Duration::milliseconds((passed * 1000.0) as i64)
    }

    /// When something will change on the screen without any input; the loop arms one timer for it.
    pub fn next_deadline(&self) -> Option<Duration> {
        use crate::config::limits;
        // The clock in the header, a second of real time at most.
        let second = Duration::from_secs(self.at.as_secs() + 1);
        let mut soonest = second;
        for layer in &self.layers {
            if let Some(at) = layer.deadline().filter(|at| *at > self.at) {
                soonest = soonest.min(at);
            }
        }
        if self.board_wanted && !self.board_asked {
            let due = self.board_at.map_or(self.at, |at| at + limits::BOARD_EVERY);
            soonest = soonest.min(due.max(self.at));
        }
        Some(soonest)
    }

    /// Whether something visible changed; asking takes it back.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// Whether the tables that come next answer a key.
    pub(crate) fn board_urgent_shown(&self) -> bool {
        self.board_for_key
    }

    /// The terminal's size as known.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    pub(crate) fn queries(&self) -> Queries {
        Queries {
            capacity: self.capacity.query.clone(),
            prices: self.prices.query.clone(),
            jobs: self.jobs.query.clone(),
            events: self.events.query.clone(),
            heat: self.heat,
        }
    }

    pub(crate) fn table(&self, pane: Pane) -> Option<&TableState> {
        match pane {
            Pane::Capacity => Some(&self.capacity),
            Pane::Prices => Some(&self.prices),
            Pane::Jobs => Some(&self.jobs),
            Pane::Events => Some(&self.events),
            Pane::Latency => None,
        }
    }

    pub(crate) fn table_mut(&mut self, pane: Pane) -> Option<&mut TableState> {
        match pane {
            Pane::Capacity => Some(&mut self.capacity),
            Pane::Prices => Some(&mut self.prices),
            Pane::Jobs => Some(&mut self.jobs),
            Pane::Events => Some(&mut self.events),
            Pane::Latency => None,
        }
    }

    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    pub(crate) fn tell(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), bad: false });
    }

    pub(crate) fn refuse(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), bad: true });
    }

    pub(crate) fn job(&self, id: &crate::domain::JobId) -> Option<&crate::engine::JobView> {
        self.state.jobs.iter().find(|j| j.id == *id)
    }
}
