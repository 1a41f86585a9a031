//! What the tables show, computed off the draw path from a state and the way that each table is asked to be shown.
//! Parts whose sources and questions did not change are shared with the board before.

use std::sync::Arc;

use super::panes::capacity::{self, CapacityRow};
use super::panes::events::{self, EventRow};
use super::panes::heat::{self, HeatMap};
use super::panes::jobs::{self, JobRow};
use super::panes::latency::{self, Matrix};
use super::panes::prices::{self, PriceRow};
use super::table::{Listing, Query, Row, arrange};
use crate::engine::State;

/// How each table is asked to be shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queries {
    pub(crate) capacity: Query,
    pub(crate) prices: Query,
    pub(crate) jobs: Query,
    pub(crate) events: Query,
    /// Whether the heat map is looked at.
    pub(crate) heat: bool,
}

/// Everything that tables draw.
pub struct Board {
    pub(crate) state: Arc<State>,
    pub(crate) capacity: Listing<CapacityRow>,
    pub(crate) prices: Listing<PriceRow>,
    pub(crate) jobs: Listing<JobRow>,
    pub(crate) events: Listing<EventRow>,
    pub(crate) heat: Arc<HeatMap>,
    pub(crate) matrix: Arc<Matrix>,
    pub(crate) queries: Queries,
    /// Whether it was made from a state at all.
    pub(crate) made: bool,
}

/// A wish for a board.
pub struct BoardRequest {
    pub(crate) state: Arc<State>,
    pub(crate) previous: Arc<Board>,
    pub(crate) queries: Queries,
}

impl Board {
    /// Before anything is computed.
    pub(crate) fn empty(state: Arc<State>) -> Self {
        Self {
            state,
            capacity: Listing::default(),
            prices: Listing::default(),
            jobs: Listing::default(),
            events: Listing::default(),
            heat: Arc::default(),
            matrix: Arc::default(),
            queries: Queries::default(),
            made: false,
        }
    }
}

/// Rows again only where `fresh` says so; order again only where rows or question changed.
fn relist<R: Row>(
    before: &Listing<R>,
    fresh: bool,
    asked_before: &Query,
    asked: &Query,
    rows: impl FnOnce() -> Vec<R>,
) -> Listing<R> {
    if fresh {
        arrange(rows().into(), asked)
    } else if asked_before.version != asked.version {
        arrange(before.rows.clone(), asked)
    } else {
        before.clone()
    }
}

impl BoardRequest {
    /// Compute it. Takes milliseconds to tens of milliseconds with 100,000 offers: not for the drawing thread.
    pub fn build(self) -> Board {
        let Self { state, previous: old, queries } = self;
        let market = !old.made || !Arc::ptr_eq(&old.state.market, &state.market);
        let jobs = !old.made || !Arc::ptr_eq(&old.state.jobs, &state.jobs);
        let events = !old.made
            || !Arc::ptr_eq(&old.state.events, &state.events)
            || !Arc::ptr_eq(&old.state.alerts, &state.alerts);
        let network = !old.made || !Arc::ptr_eq(&old.state.network, &state.network);
        let capacity =
            relist(&old.capacity, market, &old.queries.capacity, &queries.capacity, || capacity::rows(&state.market));
        let heat = if !queries.heat {
            old.heat.clone()
        } else if market || !old.queries.heat || old.queries.capacity.version != queries.capacity.version {
            Arc::new(heat::build(&capacity))
        } else {
            old.heat.clone()
        };
        Board {
            prices: relist(&old.prices, market || jobs, &old.queries.prices, &queries.prices, || prices::rows(&state)),
            jobs: relist(&old.jobs, jobs || market, &old.queries.jobs, &queries.jobs, || jobs::rows(&state)),
            events: relist(&old.events, events, &old.queries.events, &queries.events, || events::rows(&state)),
            matrix: if market || jobs || network { Arc::new(latency::build(&state)) } else { old.matrix.clone() },
            capacity,
            heat,
            queries,
            state,
            made: true,
        }
    }
}
