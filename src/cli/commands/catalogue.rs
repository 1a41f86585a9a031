//! `gpudeck catalogue`: what can be rented at all, as published.

use serde::Serialize;

use super::offers::{accelerators, dollars};
use crate::catalogue::{Catalogue, import, table};
use crate::cli::app::App;
use crate::cli::args::CatalogueCommand;
use crate::cli::bootstrap::IMPORTED;
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::cli::output::{Cell, Column, Style, Table};
use crate::config::home::{create_private_dir, write_private};
use crate::domain::text::inert;
use crate::domain::{AcceleratorCount, HourlyRate};
use crate::market::Snapshot;

#[derive(Serialize)]
struct RowShape<'r> {
    provider: &'r str,
    region: &'r str,
    zone: Option<&'r str>,
    instance_type: &'r str,
    accelerator: &'r str,
    accelerators: AcceleratorCount,
    gpu_memory_gib: Option<f64>,
    vcpus: Option<u32>,
    memory_gib: Option<f64>,
    on_demand_usd_per_hour: Option<HourlyRate>,
    spot_usd_per_hour: Option<HourlyRate>,
    interruptions_per_day: Option<f64>,
    published: Option<chrono::NaiveDate>,
}

/// Run it.
pub async fn run(app: &App, command: &CatalogueCommand) -> Outcome {
    app.no_offers_file("catalogue")?;
    match command {
        CatalogueCommand::Show { gpu, provider } => show(app, gpu, provider),
        CatalogueCommand::Import { dir } => take_in(app, dir, None),
        CatalogueCommand::Update { provider } => super::update::run(app, provider).await,
    }
}

fn show(app: &App, gpu: &[String], providers: &[String]) -> Outcome {
    let catalogue = app.catalogue();
    let wanted = accelerators(gpu, &Snapshot::default())?;
    let rows: Vec<_> = catalogue
        .rows()
        .iter()
        .filter(|row| wanted.as_ref().is_none_or(|all| all.contains(&row.shape.accelerator)))
        .filter(|row| providers.is_empty() || providers.iter().any(|p| row.provider == p.as_str()))
        .collect();
    let date = |provider: &str| catalogue.sources().iter().find(|s| s.provider == *provider).and_then(|s| s.date);
    if app.out.json {
        let shapes: Vec<RowShape<'_>> = rows
            .iter()
            .map(|row| RowShape {
                provider: row.provider.as_str(),
                region: row.region.as_str(),
                zone: row.zone.as_ref().map(AsRef::as_ref),
                instance_type: row.shape.instance_type.as_str(),
                accelerator: row.shape.accelerator.as_str(),
                accelerators: row.shape.accelerators,
                gpu_memory_gib: row.shape.gpu_memory_gib,
                vcpus: row.shape.vcpus,
                memory_gib: row.shape.memory_gib,
                on_demand_usd_per_hour: row.on_demand,
                spot_usd_per_hour: row.spot,
                interruptions_per_day: row.interruptions_per_day,
                published: date(row.provider.as_str()),
            })
            .collect();
        app.out.document(&shapes)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(vec![
        Column::new("GPU"),
        Column::new("PLACE").cut_to(16),
        Column::new("TYPE").cut_to(14),
        Column::new("ON-DEMAND $/H").right(),
        Column::new("SPOT $/H").right(),
        Column::new("VCPU").right().leaves(2),
        Column::new("MEM GIB").right().leaves(1),
    ]);
    for row in &rows {
        let unknown = || Cell::new(app.out.unknown()).style(Style::Dim);
        let price = |p: Option<HourlyRate>| p.map_or_else(unknown, |p| Cell::new(dollars(p.micros())));
        table.row(vec![
            Cell::new(format!("{}x{}", row.shape.accelerators, row.shape.accelerator)),
            Cell::new(row.location().to_string()),
            Cell::new(row.shape.instance_type.as_str()),
            price(row.on_demand),
            price(row.spot),
            row.shape.vcpus.map_or_else(unknown, |n| Cell::new(n.to_string())),
            row.shape.memory_gib.map_or_else(unknown, |n| Cell::new(format!("{n:.0}"))),
        ]);
    }
    app.out.table(&table)?;
    app.out.note(&format!("{} rows, as published; what is listed is not thereby in stock", rows.len()));
    for source in catalogue.sources() {
        let date = source.date.map_or_else(|| "without a date".to_owned(), |d| format!("of {d}"));
        app.out.note(&format!("{}: {date}, {}", inert(source.provider.as_str()), inert(&source.origin)));
    }
    Ok(Exit::Done)
}

/// Take in the tables of a directory. `fetched` says which address they come from; what was taken in before then stays
/// for the providers that have no table there.
pub(super) fn take_in(app: &App, dir: &std::path::Path, fetched: Option<&str>) -> Outcome {
    let mut import = import::skypilot(dir).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::new(Exit::Usage, "invalid", lines.join("\n"))
            .hint("A directory with CLOUD/vms.csv or CLOUD.csv in SkyPilot's format; nothing was taken in.")
    })?;
    let home = app.home.catalogue();
    create_private_dir(&home).map_err(|e| Failure::io("the catalogue has no place", &e))?;
    let path = home.join(IMPORTED);
    if let Some(url) = fetched {
        let mut sources = import.catalogue.sources().to_vec();
        for source in &mut sources {
            source.origin = format!("{}/{}/vms.csv as served on that day", url.trim_end_matches('/'), source.provider);
        }
        import.catalogue = Catalogue::new(sources, import.catalogue.rows().to_vec());
        if let Some(before) = std::fs::read_to_string(&path).ok().and_then(|text| table::read(&text).ok()) {
            import.catalogue = before.overlaid(&import.catalogue);
        }
    }
    let text = table::write(&import.catalogue, "Taken in by `gpudeck catalogue import`.");
    // Written beside and put in place at once: a reader never sees half a table.
    let fresh = home.join(format!("{IMPORTED}.new"));
    write_private(&fresh, text.as_bytes(), true)
        .and_then(|()| std::fs::rename(&fresh, &path))
        .map_err(|e| Failure::io("the catalogue could not be written", &e))?;
    if app.out.json {
        let files: Vec<_> = import
            .files
            .iter()
            .map(|file| {
                serde_json::json!({
                    "file": file.path.display().to_string(),
                    "provider": file.provider,
                    "read": file.read,
                    "kept": file.kept,
                    "left_out": file.left_out.iter().map(|(k, v)| (k.to_string(), *v)).collect::<std::collections::BTreeMap<_, _>>(),
                    "noted": file.noted.iter().map(|(k, v)| (k.to_string(), *v)).collect::<std::collections::BTreeMap<_, _>>(),
                })
            })
            .collect();
        app.out.document(&serde_json::json!({ "path": path.display().to_string(), "read": import.read(), "kept": import.kept(), "files": files }))?;
        return Ok(Exit::Done);
    }
    for file in &import.files {
        app.out.text(&format!(
            "{}: {} of {} rows taken in for {}\n",
            inert(&file.path.display().to_string()),
            file.kept,
            file.read,
            inert(&file.provider)
        ))?;
        for (why, rows) in &file.left_out {
            app.out.text(&format!("  {rows:>6} left out: {why}\n"))?;
        }
        for (what, rows) in &file.noted {
            app.out.text(&format!("  {rows:>6} noted: {what}\n"))?;
        }
    }
    Ok(Exit::Done)
}
