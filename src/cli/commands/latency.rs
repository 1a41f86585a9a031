//! `gpudeck latency`: round-trip times between places, with where each figure comes from.

use crate::cli::app::App;
use crate::cli::args::LatencyArgs;
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::cli::output::{Cell, Column, Style, Table};
use crate::cli::shapes::LatencyShape;
use crate::config::job_file::Facts as _;
use crate::config::reader::nearest_word;
use crate::domain::Location;
use crate::network::{Latency, LatencySource, Network};

/// Every region that figures are published for, but this one.
fn others<'n>(network: &'n Network, one: &Location) -> impl Iterator<Item = Location> + 'n {
    let all: std::collections::BTreeSet<Location> =
        network.pairs().flat_map(|l| [region(&l.from), region(&l.to)]).collect();
    let one = region(one);
    all.into_iter().filter(move |l| *l != one)
}

/// Run it.
pub fn run(app: &App, args: &LatencyArgs) -> Outcome {
    app.no_offers_file("latency")?;
    for place in [&args.from, &args.to].into_iter().flatten() {
        known(app, place)?;
    }
    let network = Network::published();
    let mut found: Vec<Latency> = match (&args.from, &args.to) {
        (Some(from), Some(to)) => network.latency(&region(from), &region(to)).into_iter().collect(),
        (Some(one), None) => others(&network, one).filter_map(|l| network.latency(&region(one), &l)).collect(),
        (None, Some(one)) => others(&network, one).filter_map(|l| network.latency(&l, &region(one))).collect(),
        (None, None) => network.pairs().collect(),
    };
    found.sort_by(|a, b| a.p50_ms.total_cmp(&b.p50_ms).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    if app.out.json {
        let shapes: Vec<LatencyShape> = found.iter().map(LatencyShape::from).collect();
        app.out.document(&shapes)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(vec![
        Column::new("FROM").cut_to(16),
        Column::new("TO").cut_to(16),
        Column::new("P50 MS").right(),
        Column::new("P99").right().leaves(2),
        Column::new("JITTER").right().leaves(4),
        Column::new("LOSS %").right().leaves(5),
        Column::new("N").right().leaves(3),
        Column::new("SOURCE"),
        Column::new("OF").leaves(1),
    ]);
    for latency in &found {
        let ms = |value: Option<f64>| {
            value.map_or_else(|| Cell::new(app.out.unknown()).style(Style::Dim), |n| Cell::new(format!("{n:.1}")))
        };
        let (source, style) = match latency.source {
            LatencySource::Measured => ("measured", Style::Good),
            LatencySource::Published => ("published", Style::Plain),
            LatencySource::Estimated => ("estimated", Style::Warn),
        };
        let guess = if latency.source == LatencySource::Estimated { "~" } else { "" };
        table.row(vec![
            Cell::new(region(&latency.from).to_string()),
            Cell::new(region(&latency.to).to_string()),
            Cell::new(format!("{guess}{:.1}", latency.p50_ms)),
            ms(latency.p99_ms),
            ms(latency.jitter_ms),
            ms(latency.loss_percent),
            latency.samples.map_or_else(|| Cell::new(app.out.unknown()), |n| Cell::new(n.to_string())),
            Cell::new(source).style(style),
            Cell::new(
                latency
                    .observed_at
                    .map_or_else(|| app.out.unknown().to_owned(), |at| at.format("%Y-%m-%d").to_string()),
            ),
        ]);
    }
    app.out.table(&table)?;
    if found.is_empty() {
        app.out.note("no figures: neither published nor to be estimated from known coordinates");
    }
    Ok(Exit::Done)
}

fn region(place: &Location) -> Location {
    Location { zone: None, ..place.clone() }
}

/// A place that no table knows is a typing error more often than a place without figures.
fn known(app: &App, place: &Location) -> Outcome<()> {
    let facts = crate::cli::facts::WorldFacts::new(app.catalogue(), None);
    let regions = facts.regions(place.provider.as_str());
    if regions.iter().any(|r| place.region == r.as_str()) {
        return Ok(());
    }
    let hint = match nearest_word(place.region.as_str(), regions.iter().map(String::as_str)) {
        Some(near) => format!("Did you mean {}/{near}?", place.provider),
        None => "`gpudeck catalogue show` lists places.".to_owned(),
    };
    Err(Failure::usage(format!("there is no place '{place}' that is known")).hint(hint))
}
