//! `gpudeck orphans`: machines that carry our mark but that no job owns.

use super::offers::dollars;
use crate::cli::actor;
use crate::cli::app::App;
use crate::cli::args::OrphansArgs;
use crate::cli::confirm::{Wanted, confirm, last_six};
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::cli::output::{Cell, Column, Style, Table, age};
use crate::cli::shapes::OrphanShape;
use crate::config::limits;
use crate::domain::Instance;
use crate::domain::text::inert;
use crate::engine::{Engine, Mode};

/// Run it.
pub async fn run(app: &App, args: &OrphansArgs) -> Outcome {
    app.no_offers_file("orphans")?;
    if args.terminate && app.global.read_only {
        return Err(Failure::new(Exit::Refused, "refused", "refused: this is a read-only session")
            .hint("Leave --read-only out to act."));
    }
    let engine = app.engine(Mode::OneShot, "cli").await?;
    let outcome = with(app, args, &engine).await;
    engine.shutdown().await;
    outcome
}

async fn with(app: &App, args: &OrphansArgs, engine: &Engine) -> Outcome {
    let found = tokio::time::timeout(limits::ONE_SHOT_REFRESH, engine.reconcile())
        .await
        .map_err(|_elapsed| Failure::new(Exit::Provider, "transient", "the providers did not answer in time"))??;
    for error in &found.failed {
        app.out.complain(&format!("warning: {error}: nothing is concluded about machines there"));
    }
    let mut exit = if found.failed.is_empty() { Exit::Done } else { Exit::Provider };
    let orphans = engine.orphans().await?;
    if !args.terminate || orphans.is_empty() {
        print(app, &orphans, &[]).await?;
        return Ok(exit);
    }
    show(app, &orphans).await?;
    let (question, wanted) = match orphans.as_slice() {
        [one] => ("Terminate it?".to_owned(), Wanted::Word(last_six(one.id.as_str()))),
        many => (format!("Terminate all {}?", many.len()), Wanted::Word(format!("terminate {}", many.len()))),
    };
    confirm(app, &question, &wanted).await?;
    let mut results = Vec::new();
    for orphan in &orphans {
        let result = engine.terminate_orphan(&orphan.location.provider, &orphan.id, actor::current("cli")).await;
        match &result {
            Ok(()) => app.out.note(&format!("{} is gone", inert(orphan.id.as_str()))),
            Err(error) => {
                app.out.complain(&format!("{}: {error}", inert(orphan.id.as_str())));
                exit = Exit::Failed;
            }
        }
        results.push(result.is_ok());
    }
    if app.out.json {
        print(app, &orphans, &results).await?;
    }
    Ok(exit)
}

async fn print(app: &App, orphans: &[Instance], terminated: &[bool]) -> Outcome<()> {
    if !app.out.json {
        show(app, orphans).await?;
        if orphans.is_empty() {
            app.out.note("no orphans");
        }
        return Ok(());
    }
    let shapes: Vec<OrphanShape<'_>> = orphans
        .iter()
        .enumerate()
        .map(|(i, orphan)| OrphanShape::from(orphan).terminated(terminated.get(i).copied()))
        .collect();
    app.out.document(&shapes)
}

async fn show(app: &App, orphans: &[Instance]) -> Outcome<()> {
    let now = app.world().await?.clock.now();
    let mut table = Table::new(vec![
        Column::new("ID"),
        Column::new("PLACE").cut_to(16),
        Column::new("TYPE").cut_to(12),
        Column::new("STATE"),
        Column::new("$/H").right(),
        Column::new("UP").right(),
        Column::new("JOB").leaves(1),
    ]);
    for orphan in orphans {
        let unknown = || Cell::new(app.out.unknown()).style(Style::Dim);
        table.row(vec![
            Cell::new(orphan.id.as_str()),
            Cell::new(orphan.location.to_string()),
            Cell::new(orphan.instance_type.as_str()),
            Cell::new(orphan.state.label()),
            orphan.price.map_or_else(unknown, |p| Cell::new(dollars(p.micros()))),
            orphan.launched_at.map_or_else(unknown, |at| Cell::new(age(now, at))),
            orphan.mark.as_ref().map_or_else(unknown, |m| Cell::new(m.job.as_str())),
        ]);
    }
    if app.out.json {
        app.out.table_for_people(&table);
        return Ok(());
    }
    app.out.table(&table)
}
