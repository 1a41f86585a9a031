//! `gpudeck latency`: round-trip times between places, with where each figure comes from.

use crate::cli::app::App;
use crate::cli::args::LatencyArgs;
use crate::cli::facts::WorldFacts;
use crate::cli::failure::{Exit, Outcome};
use crate::cli::output::{Cell, Column, Style, Table};
use crate::cli::shapes::LatencyShape;
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
    let facts = WorldFacts::new(app.catalogue(), None);
    for place in [&args.from, &args.to].into_iter().flatten() {
        facts.place("latency", place)?;
    }
    let network = Network::published();
    let found: Vec<Latency> = match (&args.from, &args.to) {
        (Some(from), Some(to)) => network.latency(&region(from), &region(to)).into_iter().collect(),
        (Some(one), None) => others(&network, one).filter_map(|l| network.latency(&region(one), &l)).collect(),
        (None, Some(one)) => others(&network, one).filter_map(|l| network.latency(&l, &region(one))).collect(),
        (None, None) => network.pairs().collect(),
    };
    if found.is_empty() && !app.out.json {
        app.out.note("no figures: neither published nor to be estimated from known coordinates");
    }
    print(app, found)
}

/// Print figures, the nearest places first.
pub(super) fn print(app: &App, mut found: Vec<Latency>) -> Outcome {
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
    Ok(Exit::Done)
}

fn region(place: &Location) -> Location {
    Location { zone: None, ..place.clone() }
}
