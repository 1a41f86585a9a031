//! `gpudeck jobs`, `gpudeck job`.

use std::time::Instant;

use super::offers::dollars;
use super::{next_change, tell_feeds};
use crate::catalogue::accelerators;
use crate::cli::app::App;
use crate::cli::args::JobsArgs;
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::cli::output::{Cell, Column, Style, Table, age};
use crate::cli::shapes::{JobDetail, JobShape};
use crate::config::limits;
use crate::domain::text::inert;
use crate::domain::{AcceleratorCount, JobState};
use crate::engine::{Engine, EventFilter, JobView, Mode};

/// `jobs`
pub async fn list(app: &App, args: &JobsArgs) -> Outcome {
    app.no_offers_file("jobs")?;
    let engine = app.engine(Mode::OneShot, "cli").await?;
    let exit = look(app, &engine).await?;
    if !args.watch {
        print(app, &shown(&engine, args.all).await?).await?;
        return Ok(exit);
    }
    let mut last = String::new();
    let mut refreshed = Instant::now();
    loop {
        let jobs = shown(&engine, args.all).await?;
        // Compared as a script would see it: a mere passing of time is no change.
        let shapes: Vec<JobShape<'_>> = jobs.iter().map(JobShape::from).collect();
        let now = serde_json::to_string(&shapes).unwrap_or_default();
        if now != last {
            if !app.out.json && !last.is_empty() {
                app.out.text("\n")?;
            }
            print(app, &jobs).await?;
            last = now;
        }
        next_change(&engine).await;
        if refreshed.elapsed() >= limits::WATCH_REFRESH {
            look(app, &engine).await?;
            refreshed = Instant::now();
        }
    }
}

/// Ask the providers how the machines are and what the market is; some may not answer, and the rest is shown.
async fn look(app: &App, engine: &Engine) -> Outcome {
    if engine.jobs().await?.iter().all(|job| job.state.is_final()) {
        return Ok(Exit::Done);
    }
    let refreshed = tokio::time::timeout(limits::ONE_SHOT_REFRESH, engine.refresh()).await;
    let feeds = engine.state().borrow().market.feeds().to_vec();
    let exit = tell_feeds(app, &feeds);
    if let Ok(refreshed) = refreshed {
        refreshed?;
        return Ok(exit);
    }
    app.out.complain("warning: not every provider answered in time; what is known is shown");
    Ok(Exit::Provider)
}

async fn shown(engine: &Engine, all: bool) -> Outcome<Vec<JobView>> {
    let mut jobs = engine.jobs().await?;
    jobs.retain(|job| all || !job.state.is_final());
    Ok(jobs)
}

async fn print(app: &App, jobs: &[JobView]) -> Outcome<()> {
    if app.out.json {
        let shapes: Vec<JobShape<'_>> = jobs.iter().map(JobShape::from).collect();
        return app.out.document(&shapes);
    }
    let now = app.world().await?.clock.now();
    let mut table = Table::new(vec![
        Column::new("NAME").cut_to(12),
        Column::new("STATE"),
        Column::new("WHERE").cut_to(14),
        Column::new("GPU").leaves(2),
        Column::new("BUY").leaves(7),
        Column::new("$/H").right(),
        Column::new("SPENT $").right().leaves(1),
        Column::new("BEST $/H").right().leaves(4),
        Column::new("UP").right().leaves(3),
        Column::new("RST").right().leaves(6),
        Column::new("INTR/DAY").right().leaves(8),
        Column::new("ID").leaves(5),
    ]);
    for job in jobs {
        let unknown = || Cell::new(app.out.unknown()).style(Style::Dim);
        table.row(vec![
            Cell::new(&job.name),
            Cell::new(job.state.as_str()).style(look_of(job.state)),
            where_of(job).map_or_else(unknown, Cell::new),
            job.accelerator.as_ref().map_or_else(unknown, |a| {
                // A job between two places holds none, and still says what it is about.
                let held = if job.accelerators == AcceleratorCount::default() {
                    "0".to_owned()
                } else {
                    job.accelerators.to_string()
                };
                Cell::new(format!("{held}x{}", accelerators::short(a)))
            }),
            job.purchase.map_or_else(unknown, |p| Cell::new(p.to_string())),
            job.usd_per_hour.map_or_else(unknown, |p| Cell::new(dollars(p.micros()))),
            Cell::new(job.usd_spent.to_string()),
            job.best_usd_per_hour.map_or_else(unknown, |p| Cell::new(dollars(p.micros()))),
            job.running_since.map_or_else(unknown, |at| Cell::new(age(job.ended_at.unwrap_or(now), at))),
            Cell::new(job.restarts.to_string()),
            job.interruption_risk.map_or_else(unknown, |n| Cell::new(format!("{n:.3}"))),
            Cell::new(job.id.as_str()),
        ]);
    }
    app.out.table(&table)?;
    app.out.note(&match jobs.len() {
        0 => "no jobs".to_owned(),
        n => format!("{n} jobs at {}", app.out.moment(now, now)),
    });
    for (name, note) in jobs.iter().filter_map(|j| j.note.as_deref().map(|note| (&j.name, note))) {
        app.out.note(&format!("{}: {}", inert(name), inert(note)));
    }
    Ok(())
}

const fn look_of(state: JobState) -> Style {
    match state {
        JobState::Running | JobState::Succeeded => Style::Good,
        JobState::Preempted | JobState::Migrating | JobState::Stopping | JobState::Placing | JobState::Starting => {
            Style::Warn
        }
        JobState::Failed => Style::Bad,
        JobState::Pending | JobState::Terminated => Style::Dim,
    }
}

fn where_of(job: &JobView) -> Option<String> {
    let (provider, region) = (job.provider.as_ref()?, job.region.as_ref()?);
    Some(match &job.zone {
        Some(zone) => format!("{provider}/{region}/{zone}"),
        None => format!("{provider}/{region}"),
    })
}

/// `job`
pub async fn one(app: &App, name: &str) -> Outcome {
    app.no_offers_file("job")?;
    let engine = app.engine(Mode::OneShot, "cli").await?;
    let exit = if engine.job(name).await?.state.is_final() { Exit::Done } else { look(app, &engine).await? };
    let job = engine.job(name).await?;
    let plan = match &job.plan {
        Some(id) => engine.plan(id).await?,
        None => None,
    };
    let events = engine.events(&EventFilter { job: Some(job.id.clone()), ..EventFilter::default() }).await?;
    let cost = engine.costs(&job.id).await?;
    if app.out.json {
        app.out.document(&JobDetail::new(&job, plan.as_ref(), &events, &cost))?;
        return Ok(exit);
    }
    let now = app.world().await?.clock.now();
    print(app, std::slice::from_ref(&job)).await?;
    let mut text = String::from("\n");
    let spec = serde_json::to_value(crate::cli::shapes::SpecShape::from(&*job.spec))
        .map_err(|e| Failure::failed(format!("the specification cannot be shown: {e}")))?;
    let toml = toml_of(spec)?;
    for line in toml.lines() {
        text.push_str(&inert(line));
        text.push('\n');
    }
    app.out.text(&text)?;
    if !cost.is_empty() {
        app.out.text("\n")?;
        let mut table = Table::new(vec![
            Column::new("INSTANCE"),
            Column::new("PLACE").cut_to(16),
            Column::new("TYPE").cut_to(12).leaves(2),
            Column::new("STATE"),
            Column::new("$/H").right(),
            Column::new("SPENT $").right(),
            Column::new("FOR").right().leaves(1),
        ]);
        for line in &cost {
            let unknown = || Cell::new(app.out.unknown()).style(Style::Dim);
            let view = job.instances.iter().find(|v| line.instance.as_ref() == Some(&v.instance.id));
            let state = match (view, line.until) {
                (Some(view), _) => Cell::new(view.instance.state.label()),
                (None, Some(_)) => Cell::new("gone"),
                (None, None) => Cell::new(if line.proved { "unknown" } else { "not proved" }),
            };
            table.row(vec![
                line.instance.as_ref().map_or_else(unknown, |id| Cell::new(id.as_str())),
                Cell::new(line.location.to_string()),
                Cell::new(line.instance_type.as_str()),
                state,
                line.bound_price.map_or_else(unknown, |p| Cell::new(dollars(p.micros()))),
                Cell::new(line.usd.to_string()),
                Cell::new(age(line.until.unwrap_or(now), line.from)),
            ]);
        }
        app.out.table(&table)?;
    }
    app.out.text("\n")?;
    for event in &events {
        app.out.text(&format!("{}  {}  {}\n", app.out.moment(event.at, now), event.actor, inert(&event.text)))?;
    }
    Ok(exit)
}

/// A job's specification as a job file would say it; what is absent or empty is left out.
fn toml_of(value: serde_json::Value) -> Outcome<String> {
    fn cleaned(value: serde_json::Value) -> Option<serde_json::Value> {
        use serde_json::Value;
        match value {
            Value::Null => None,
            Value::Array(items) if items.is_empty() => None,
            Value::Object(fields) => {
                let kept: serde_json::Map<String, Value> =
                    fields.into_iter().filter_map(|(k, v)| cleaned(v).map(|v| (k, v))).collect();
                (!kept.is_empty()).then_some(Value::Object(kept))
            }
            other => Some(other),
        }
    }
    toml::to_string(&cleaned(value).unwrap_or_default())
        .map_err(|e| Failure::failed(format!("the specification cannot be shown: {e}")))
}
