//! `gpudeck spreads`: how far apart the prices of an accelerator are.

use std::sync::Arc;

use super::market;
use super::offers::{accelerators, dollars};
use crate::cli::app::App;
use crate::cli::args::{SpreadsArgs, SpreadsBy};
use crate::cli::failure::Outcome;
use crate::cli::output::{Cell, Column, Style, Table};
use crate::cli::shapes::SpreadShape;
use crate::domain::Offer;
use crate::market::{SpreadBy, spreads_by};

/// Run it.
pub async fn run(app: &App, args: &SpreadsArgs) -> Outcome {
    let market = market(app).await?;
    let wanted = accelerators(&args.gpu, &market.snapshot)?;
    let by = match args.by {
        SpreadsBy::Gpu => SpreadBy::Accelerator,
        SpreadsBy::Region => SpreadBy::Region,
        SpreadsBy::Zone => SpreadBy::Zone,
    };
    let spreads = spreads_by(&market.snapshot, wanted.as_deref(), by);
    if app.out.json {
        let shapes: Vec<SpreadShape<'_>> = spreads.iter().map(SpreadShape::from).collect();
        app.out.document(&shapes)?;
        return Ok(market.exit);
    }
    // Each figure says which statistic it is, over what: a minimum and a median under one head once misled people.
    let mut table = Table::new(vec![
        Column::new("GPU"),
        Column::new("PLACE"),
        Column::new("OFFERS").right().leaves(3),
        Column::new("MIN $/GPU-H").right(),
        Column::new("AT").cut_to(16).leaves(1),
        Column::new("MEDIAN").right(),
        Column::new("MAX").right(),
        Column::new("AT").cut_to(16).leaves(2),
        Column::new("SPREAD").right(),
    ]);
    for spread in &spreads {
        let all = &spread.all;
        let unknown = || Cell::new(app.out.unknown()).style(Style::Dim);
        let rate = |offer: Option<&Arc<Offer>>| {
            offer.and_then(|o| o.price_per_gpu()).map_or_else(unknown, |p| Cell::new(dollars(p.micros())))
        };
        let at = |offer: Option<&Arc<Offer>>| {
            offer.map_or_else(unknown, |o| Cell::new(format!("{} {}", o.key.location(), o.key.purchase)))
        };
        table.row(vec![
            Cell::new(spread.accelerator.as_str()),
            spread.place.as_ref().map_or_else(|| Cell::new("all"), |p| Cell::new(p.to_string())),
            Cell::new(all.offers.to_string()),
            rate(all.min.as_ref()),
            at(all.min.as_ref()),
            all.median.map_or_else(unknown, |p| Cell::new(dollars(p.micros()))),
            rate(all.max.as_ref()),
            at(all.max.as_ref()),
            all.spread_percent.map_or_else(unknown, |p| Cell::new(format!("{p:.0} %"))),
        ]);
    }
    app.out.table(&table)?;
    app.out.note("over all offers with a known price, whatever their purchase model and availability");
    Ok(market.exit)
}
