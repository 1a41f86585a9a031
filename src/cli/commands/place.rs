//! `gpudeck place`: rank the places for a job; acts on nothing.

use chrono::{DateTime, Utc};

use super::offers::dollars;
use super::{market, price};
use crate::cli::app::App;
use crate::cli::args::{JobArgs, PlaceArgs};
use crate::cli::facts::WorldFacts;
use crate::cli::failure::{Exit, Outcome};
use crate::cli::output::{Cell, Column, Style, Table};
use crate::cli::shapes::PlaceShape;
use crate::config::job_file;
use crate::domain::JobSpec;
use crate::market::Snapshot;
use crate::network::Network;
use crate::placement::{Context, Ranking, explain, place};

/// Run it.
pub async fn run(app: &App, args: &PlaceArgs) -> Outcome {
    // What is wrong with the job is told before any provider is asked; the market's own names can only be known after.
    let mut early = None;
    if app.global.offers.is_none() {
        let now = app.world().await?.clock.now();
        early = Some(job(app, &args.job, None, now)?);
    }
    let market = market(app).await?;
    let spec = match early {
        Some(spec) => spec,
        None => job(app, &args.job, Some(&market.snapshot), market.now)?,
    };
    let ranking = if let Some(engine) = &market.engine {
        engine.rank(&spec, args.top)
    } else {
        let network = Network::published();
        let (snapshot, now) = (&*market.snapshot, market.now);
        place(&spec, &Context { snapshot, network: &network, now, cooling: &[], current: None }, args.top)
    };
    let exit = if ranking.feasible == 0 { Exit::NoPlace } else { market.exit };
    if app.out.json {
        app.out.document(&PlaceShape::new(&spec, &market.snapshot, &ranking))?;
        return Ok(exit);
    }
    if args.explain || ranking.candidates.is_empty() {
        let lines = explain::explain(&spec, &ranking);
        app.out.text(&format!("{}\n", lines.join("\n")))?;
        return Ok(exit);
    }
    table(app, &ranking)?;
    app.out.note(&explain::summary(&spec, &ranking));
    Ok(exit)
}

/// The job that file and flags describe.
pub(super) fn job(app: &App, args: &JobArgs, market: Option<&Snapshot>, now: DateTime<Utc>) -> Outcome<JobSpec> {
    let facts = WorldFacts::new(app.catalogue(), market);
    let spec = match args.file() {
        Some(path) if path.as_os_str() == "-" => {
            job_file::load(std::path::Path::new("/dev/stdin"), args.draft(), &facts, now)
        }
        Some(path) => job_file::load(path, args.draft(), &facts, now),
        None => job_file::from_flags(args.draft(), &facts, now),
    };
    Ok(spec?)
}

fn table(app: &App, ranking: &Ranking) -> Outcome<()> {
    let mut table = Table::new(vec![
        Column::new("#").right(),
        Column::new("PLACE").cut_to(16),
        Column::new("INSTANCES").cut_to(16),
        Column::new("BUY").leaves(2),
        Column::new("$/H").right(),
        Column::new("TOTAL $").right(),
        Column::new("EGRESS").right().leaves(4),
        Column::new("RISK").right().leaves(3),
        Column::new("MS").right().leaves(5),
        Column::new("INTR/DAY").right().leaves(6),
        Column::new("NOTES").cut_to(12).leaves(1),
    ]);
    for (i, candidate) in ranking.candidates.iter().enumerate() {
        let unknown = || app.out.unknown().to_owned();
        let join = |each: &dyn Fn(&crate::placement::NodeGroup) -> String| {
            candidate.nodes.iter().map(each).collect::<Vec<_>>().join(" + ")
        };
        let live = candidate.nodes.iter().all(|n| n.offer.price_is_live);
        table.row(vec![
            Cell::new((i + 1).to_string()),
            Cell::new(join(&|n| n.offer.key.location().to_string())),
            Cell::new(join(&|n| format!("{}x {}", n.count, n.offer.key.instance_type))),
            Cell::new(candidate.nodes.first().map_or_else(unknown, |n| n.offer.key.purchase.to_string())),
            price(app, Some(dollars(candidate.usd_per_hour.micros())), live),
            Cell::new(candidate.usd_total.to_string()),
            Cell::new(candidate.breakdown.egress.to_string()),
            Cell::new(candidate.breakdown.risk.to_string()),
            Cell::new(candidate.latency_ms.map_or_else(unknown, |ms| format!("{ms:.0}"))),
            Cell::new(candidate.interruptions_per_day.map_or_else(unknown, |n| format!("{n:.3}"))),
            Cell::new(candidate.caveats.join("; ")).style(Style::Dim),
        ]);
    }
    app.out.table(&table)
}
