//! `gpudeck events`: what happened, and who did it.

use super::next_change;
use crate::cli::app::App;
use crate::cli::args::EventsArgs;
use crate::cli::failure::{Exit, Outcome};
use crate::cli::shapes::EventShape;
use crate::domain::Event;
use crate::domain::text::inert;
use crate::engine::{EventFilter, Mode};

/// Run it.
pub async fn run(app: &App, args: &EventsArgs) -> Outcome {
    app.no_offers_file("events")?;
    let now = app.world().await?.clock.now();
    let engine = app.engine(Mode::OneShot, "cli").await?;
    let job = match &args.job {
        Some(name) => Some(engine.job(name).await?.id),
        None => None,
    };
    let mut filter = EventFilter { job, since: args.since.map(|s| s.moment(now)), ..EventFilter::default() };
    let events = engine.events(&filter).await?;
    if !args.follow {
        if app.out.json {
            let shapes: Vec<EventShape<'_>> = events.iter().map(EventShape::from).collect();
            app.out.document(&shapes)?;
        } else {
            print(app, &events).await?;
            if events.is_empty() {
                app.out.note("no events");
            }
        }
        return Ok(Exit::Done);
    }
    let mut events = events;
    loop {
        if app.out.json {
            for event in &events {
                app.out.document(&EventShape::from(event))?;
            }
        } else {
            print(app, &events).await?;
        }
        if let Some(last) = events.last() {
            filter.after = Some(last.seq);
        }
        next_change(&engine).await;
        if app.out.reader_is_gone() {
            return Ok(Exit::Done);
        }
        events = engine.events(&filter).await?;
    }
}

async fn print(app: &App, events: &[Event]) -> Outcome<()> {
    let now = app.world().await?.clock.now();
    let mut text = String::new();
    for event in events {
        let about = event.job_name.as_deref().map(|name| format!("{}  ", inert(name))).unwrap_or_default();
        let line = format!(
            "{:>5}  {}  {about}{}  [{}]\n",
            event.seq,
            app.out.moment(event.at, now),
            inert(&event.text),
            event.actor
        );
        text.push_str(&line);
    }
    app.out.text(&text)
}
