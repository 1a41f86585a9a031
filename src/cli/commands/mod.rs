//! One file a command (or a family of them).

pub mod act;
pub mod catalogue;
pub mod cockpit;
pub mod config;
pub mod controller;
pub mod doctor;
pub mod events;
pub mod generate;
pub mod jobs;
pub mod latency;
pub mod offers;
pub mod orphans;
pub mod place;
pub mod policy;
pub mod probe;
pub mod reset;
pub mod spreads;
pub mod update;

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::app::App;
use super::failure::{Exit, Outcome};
use super::offers_file;
use super::output::{Cell, Style};
use crate::config::limits;
use crate::domain::text::inert;
use crate::domain::{Availability, FeedHealth, FeedStatus, Offer};
use crate::engine::{Engine, Mode};
use crate::market::Snapshot;

/// Wait until the engine's state changes, at most as long as a following command waits between two looks.
async fn next_change(engine: &Engine) {
    let mut state = engine.state();
    let _ = tokio::time::timeout(limits::FOLLOW, async {
        state.borrow_and_update();
        // An engine that has ended changes no more; the time-out still paces the loop.
        if state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
    .await;
}

/// The market a command looks at.
pub(crate) struct Market {
    /// The offers.
    pub snapshot: Arc<Snapshot>,
    /// The moment, in the market's own time.
    pub now: DateTime<Utc>,
    /// How the command ends if all else goes well: some provider may not have been reached.
    pub exit: Exit,
    /// The engine it came from; `None` for a market from a file.
    pub engine: Option<Engine>,
}

/// The market from `--offers`, else from every provider now.
pub(crate) async fn market(app: &App) -> Outcome<Market> {
    if let Some(path) = &app.global.offers {
        let now = system_now();
        let snapshot = Arc::new(offers_file::load(path, now)?);
        return Ok(Market { snapshot, now, exit: Exit::Done, engine: None });
    }
    let engine = app.engine(Mode::OneShot, "cli").await?;
    let asked = tokio::time::timeout(limits::ONE_SHOT_REFRESH, engine.refresh_feeds(None)).await;
    let exit = if let Ok(statuses) = asked {
        tell_feeds(app, &statuses?)
    } else {
        app.out.complain("warning: not every provider answered in time; what is known is shown");
        tell_feeds(app, engine.state().borrow().market.feeds());
        Exit::Provider
    };
    let state = engine.state().borrow().clone();
    tell_absent(app, &state.absent);
    Ok(Market { snapshot: state.market.clone(), now: app.world().await?.clock.now(), exit, engine: Some(engine) })
}

/// The system's time, for what belongs to no world.
pub(crate) fn system_now() -> DateTime<Utc> {
    use crate::domain::Clock as _;
    crate::config::system_clock::SystemClock.now()
}

/// Tell which feeds are not well; gives 5 where one was not reached or refused.
pub(crate) fn tell_feeds(app: &App, statuses: &[FeedStatus]) -> Exit {
    let mut exit = Exit::Done;
    for status in statuses {
        // Age alone is no failure: in a simulated world minutes pass while a slow machine prints.
        let unheard = status.health == FeedHealth::Loading && status.error.is_some();
        let failed = unheard
            || status.health == FeedHealth::AuthNeeded
            || (matches!(status.health, FeedHealth::Down | FeedHealth::Stale) && status.error.is_some());
        if failed {
            exit = Exit::Provider;
        }
        if failed || matches!(status.health, FeedHealth::Partial | FeedHealth::Quarantined) {
            let why = match &status.error {
                Some(error) => error.to_string(),
                None => inert(&status.detail).into_owned(),
            };
            // The one poll of a command has failed: for it that is an end, not a beginning.
            let label = if unheard { FeedHealth::Down.label() } else { status.health.label() };
            app.out.complain(&format!("warning: {} is {label}: {why}", inert(status.provider.as_str())));
            if let Some(error) = &status.error {
                app.out.note(&format!("         {}", error.remedy()));
            }
        }
    }
    exit
}

/// Tell which providers cannot be used: in one line, for it is no failure.
pub(crate) fn tell_absent(app: &App, absent: &[crate::provider::Absent]) {
    if absent.is_empty() {
        return;
    }
    let each: Vec<String> =
        absent.iter().map(|a| format!("{} ({})", inert(a.provider.as_str()), inert(&a.reason))).collect();
    app.out.note(&format!("note: published figures only from {}; `gpudeck doctor` says more", each.join(", ")));
}

/// `8xH100`, without a needless factor.
pub(crate) fn chips(offer: &Offer) -> String {
    format!("{}x{}", offer.shape.accelerators, crate::catalogue::accelerators::short(&offer.shape.accelerator))
}

/// `aws/us-east-1/use1-az4`
pub(crate) fn place_of(offer: &Offer) -> String {
    offer.key.location().to_string()
}

/// Availability with its evidence, told apart without colour.
pub(crate) fn availability(offer: &Offer) -> Cell {
    let (word, style) = match offer.availability {
        Availability::Available => ("available", Style::Good),
        Availability::Limited => ("limited", Style::Warn),
        Availability::None => ("none", Style::Bad),
        Availability::Unknown => ("unknown", Style::Dim),
    };
    Cell::new(word).style(if offer.stale { Style::Dim } else { style })
}

/// In a word for tables: what the statement on availability rests on.
pub(crate) const fn evidence(offer: &Offer) -> &'static str {
    use crate::domain::Evidence;
    match offer.evidence {
        Evidence::Api => "api",
        Evidence::SpotScore => "spot score",
        Evidence::Quota => "quota",
        Evidence::Attempt => "attempt",
        Evidence::Catalogue => "catalogue",
        Evidence::Simulated => "simulated",
    }
}

/// A price, or a dash where none is known. A published one is marked: it is not what the provider says now.
pub(crate) fn price<T: std::fmt::Display>(app: &App, price: Option<T>, live: bool) -> Cell {
    match price {
        Some(price) if live => Cell::new(price.to_string()),
        Some(price) => Cell::new(format!("{price}*")).style(Style::Dim),
        None => Cell::new(app.out.unknown()).style(Style::Dim),
    }
}
