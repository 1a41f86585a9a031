//! `gpudeck controller`: keeps jobs alive without a screen, and says what happens, a line (or a document) an event.

use crate::cli::Stop;
use crate::cli::app::App;
use crate::cli::failure::{Exit, Outcome};
use crate::cli::shapes::EventShape;
use crate::domain::Event;
use crate::domain::text::inert;
use crate::engine::{EventFilter, Mode};

/// Run it until SIGTERM or Ctrl-C; that is how it ends well.
pub async fn run(app: &App) -> Outcome {
    app.no_offers_file("controller")?;
    let mut stop = Stop::listen()?;
    let engine = app.engine(Mode::Live, "controller").await?;
    let mut state = engine.state();
    // From here on; what was before is in `gpudeck events`.
    let mut after = engine
        .events(&EventFilter { limit: Some(1), ..EventFilter::default() })
        .await?
        .last()
        .map_or(0, |event| event.seq);
    // Whoever listened may go; jobs are kept alive for others than readers.
    let mut heard = true;
    app.out.note("controller started; Ctrl-C or SIGTERM ends it");
    loop {
        tokio::select! {
            () = stop.asked() => break,
            changed = state.changed() => {
                if changed.is_err() {
                    break;
                }
                let latest = state.borrow_and_update().events.last().map_or(0, |event| event.seq);
                if latest > after {
                    // From the ledger, not from the state: its list is bounded, and none may be left out.
                    match engine.events(&EventFilter { after: Some(after), ..EventFilter::default() }).await {
                        Ok(events) => {
                            after = events.last().map_or(latest, |event| event.seq);
                            for event in &events {
                                heard = heard && tell(app, event).is_ok();
                            }
                        }
                        // They are told with the next ones; jobs are looked after all the same.
                        Err(error) => app.out.complain(&format!("warning: {error}")),
                    }
                }
            }
        }
    }
    engine.shutdown().await;
    app.out.note("controller ended; operations under way are in the ledger and go on at the next start");
    Ok(Exit::Done)
}

fn tell(app: &App, event: &Event) -> Outcome<()> {
    if app.out.json {
        return app.out.document(&EventShape::from(event));
    }
    let about = event.job_name.as_deref().map(|name| format!(" {}:", inert(name))).unwrap_or_default();
    app.out.text(&format!("{}{about} {}\n", app.out.moment(event.at, event.at), inert(&event.text)))
}
