//! The catalogue's file format: lines of text, tabs between fields, a machine's facts once and its prices below them.
//!
//! ```text
//! #gpudeck catalogue 1
//! @provider<TAB>date or -<TAB>origin
//! =instance type<TAB>accelerator<TAB>count<TAB>GiB of one<TAB>vCPUs<TAB>GiB of memory<TAB>interconnect
//! region<TAB>zone<TAB>on-demand USD/h<TAB>spot USD/h<TAB>interruptions a day
//! ```
//!
//! An empty field is unknown; empty fields at the end of a line are left out. Other lines that begin with `#` are
//! comments. The format is read by hand: it is small, and loads in well under a millisecond for the bundled rows.

use std::fmt::Write as _;
use std::sync::Arc;

use chrono::NaiveDate;
use rustc_hash::FxHashMap;

use super::instance_types::{interconnect_from, interconnect_name};
use super::{Catalogue, Row, Source};
use crate::domain::{
    Accelerator, AcceleratorCount, HourlyRate, InstanceType, ProviderId, Region, Shape, Zone, text::inert,
};

/// The bundled catalogue.
pub const BUNDLED: &str = include_str!("../../data/catalogue.tsv");

/// The first line of every catalogue file.
const HEADER: &str = "#gpudeck catalogue 1";

/// Why a text is not a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TableError {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Names that occur many times, once in memory.
#[derive(Default)]
struct Interned<'t> {
    regions: FxHashMap<&'t str, Region>,
    zones: FxHashMap<&'t str, Zone>,
}

/// Read a catalogue.
pub fn read(text: &str) -> Result<Catalogue, TableError> {
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, first)| first.trim_end() != HEADER) {
        return Err(TableError { line: 1, reason: format!("the first line of a catalogue is '{HEADER}'") });
    }
    let mut sources: Vec<Source> = Vec::new();
    let mut rows: Vec<Row> = Vec::with_capacity(text.len() / 32);
    let mut interned = Interned::default();
    let mut shape: Option<Arc<Shape>> = None;
    for (index, line) in lines {
        let line = line.trim_end_matches(['\r', '\t']);
        let failed = |reason: String| TableError { line: index + 1, reason };
        if line.is_empty() || line.starts_with('#') {
        } else if let Some(fields) = line.strip_prefix('@') {
            shape = None;
            sources.push(read_source(fields).map_err(failed)?);
        } else if let Some(fields) = line.strip_prefix('=') {
            shape = Some(Arc::new(read_shape(fields).map_err(failed)?));
        } else {
            let (Some(source), Some(shape)) = (sources.last(), &shape) else {
                return Err(failed("a price stands below its provider and its shape".to_owned()));
            };
            rows.push(read_row(line, &source.provider, shape, &mut interned).map_err(failed)?);
        }
    }
    Ok(Catalogue::new(sources, rows))
}

fn read_source(line: &str) -> Result<Source, String> {
    let mut fields = line.split('\t');
    let provider = fields.next().filter(|p| !p.is_empty()).ok_or("the provider's name is missing")?;
    let date = match fields.next().unwrap_or_default() {
        "" | "-" => None,
        date => Some(date.parse::<NaiveDate>().map_err(|e| format!("'{}' is not a date: {e}", inert(date)))?),
    };
    Ok(Source { provider: ProviderId::from(provider), date, origin: fields.next().unwrap_or_default().to_owned() })
}

fn read_shape(line: &str) -> Result<Shape, String> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (name, accelerator, count) = (next(), next(), next());
    if name.is_empty() || accelerator.is_empty() {
        return Err("a shape has a name and an accelerator".to_owned());
    }
    let accelerators = count
        .parse()
        .ok()
        .and_then(AcceleratorCount::from_f64)
        .ok_or_else(|| wrong("a count of accelerators", count))?;
    let (gpu_memory, vcpus, memory, interconnect) = (next(), next(), next(), next());
    Ok(Shape {
        instance_type: InstanceType::from(name),
        accelerator: Accelerator::from_canonical(accelerator),
        accelerators,
        gpu_memory_gib: read_gib(gpu_memory)?,
        vcpus: match vcpus {
            "" => None,
            n => Some(n.parse().ok().ok_or_else(|| wrong("a count of vCPUs", n))?),
        },
        memory_gib: read_gib(memory)?,
        interconnect: interconnect_from(if interconnect.is_empty() { "unknown" } else { interconnect })
            .ok_or_else(|| wrong("an interconnect", interconnect))?,
    })
}

fn read_row<'t>(
    line: &'t str,
    provider: &ProviderId,
    shape: &Arc<Shape>,
    interned: &mut Interned<'t>,
) -> Result<Row, String> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (region, zone, on_demand, spot, interruptions) = (next(), next(), next(), next(), next());
    if region.is_empty() {
        return Err("the region is missing".to_owned());
    }
    Ok(Row {
        provider: provider.clone(),
        region: interned.regions.entry(region).or_insert_with(|| Region::from(region)).clone(),
        zone: (!zone.is_empty()).then(|| interned.zones.entry(zone).or_insert_with(|| Zone::from(zone)).clone()),
        shape: Arc::clone(shape),
        on_demand: read_rate(on_demand)?,
        spot: read_rate(spot)?,
        interruptions_per_day: match interruptions {
            "" => None,
            n => Some(
                n.parse()
                    .ok()
                    .filter(|n: &f64| n.is_finite() && *n >= 0.0)
                    .ok_or_else(|| wrong("interruptions a day", n))?,
            ),
        },
    })
}

fn wrong(what: &str, text: &str) -> String {
    format!("'{}' is not {what}", inert(text))
}

fn read_gib(text: &str) -> Result<Option<f64>, String> {
    match text {
        "" => Ok(None),
        n => {
            let gib = n.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
            gib.map(Some).ok_or_else(|| wrong("an amount of memory in GiB", n))
        }
    }
}

/// A price; zero is a price that nobody gives, so it is refused here and made unknown by whoever writes.
fn read_rate(text: &str) -> Result<Option<HourlyRate>, String> {
    match text {
        "" => Ok(None),
        n => match HourlyRate::parse_usd(n) {
            Ok(rate) if rate > HourlyRate::ZERO => Ok(Some(rate)),
            _ => Err(wrong("a price above zero", n)),
        },
    }
}

/// Whether a name can stand in a catalogue file: no tab, no line end, nothing hostile, no mark at its beginning.
pub fn is_writable(name: &str) -> bool {
    !name.is_empty() && name.len() <= 200 && !name.starts_with(['#', '@', '=', ' ']) && inert(name) == name
}

/// A catalogue as text: [`read`] gives it back. `comment` lines stand below the first.
pub fn write(catalogue: &Catalogue, comment: &str) -> String {
    let mut out = format!("{HEADER}\n");
    for line in comment.lines() {
        let _ = writeln!(out, "# {line}");
    }
    for source in catalogue.sources() {
        let date = source.date.map_or_else(|| "-".to_owned(), |d| d.to_string());
        let _ = writeln!(out, "@{}\t{date}\t{}", source.provider, inert(&source.origin));
        let mut shape: Option<&Shape> = None;
        for row in catalogue.rows_of(source.provider.as_str()) {
            if shape != Some(&*row.shape) {
                shape = Some(&row.shape);
                write_line(&mut out, "=", &shape_fields(&row.shape));
            }
            let rate = |rate: Option<HourlyRate>| rate.map(usd).unwrap_or_default();
            let zone = row.zone.as_ref().map(|z| z.as_str().to_owned()).unwrap_or_default();
            let hazard = row.interruptions_per_day.map(|n| n.to_string()).unwrap_or_default();
            write_line(
                &mut out,
                "",
                &[row.region.as_str().to_owned(), zone, rate(row.on_demand), rate(row.spot), hazard],
            );
        }
    }
    out
}

fn shape_fields(shape: &Shape) -> [String; 7] {
    let number = |n: Option<f64>| n.map(|n| n.to_string()).unwrap_or_default();
    [
        shape.instance_type.as_str().to_owned(),
        shape.accelerator.as_str().to_owned(),
        shape.accelerators.to_f64().to_string(),
        number(shape.gpu_memory_gib),
        shape.vcpus.map(|n| n.to_string()).unwrap_or_default(),
        number(shape.memory_gib),
        interconnect_name(shape.interconnect).to_owned(),
    ]
}

fn write_line(out: &mut String, mark: &str, fields: &[String]) {
    let used = fields.iter().rposition(|f| !f.is_empty()).map_or(0, |last| last + 1);
    out.push_str(mark);
    for (i, field) in fields.iter().take(used).enumerate() {
        if i > 0 {
            out.push('\t');
        }
        out.push_str(&inert(field));
    }
    out.push('\n');
}

/// USD to the micro-USD, without zeros at the end.
fn usd(rate: HourlyRate) -> String {
    let micros = rate.micros();
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let bundled = Catalogue::bundled();
        assert_eq!(&read(&write(bundled, "a comment\nof two lines")).unwrap(), bundled);
        assert_eq!(usd(HourlyRate::from_micros(4_049_591)), "4.049591");
        assert_eq!(usd(HourlyRate::from_micros(8_000_000)), "8");
        assert_eq!(usd(HourlyRate::from_micros(10)), "0.00001");
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        let head = format!("{HEADER}\n@x\t-\tme\n");
        for (text, line) in [
            (String::new(), 1),
            ("something else".to_owned(), 1),
            (format!("{HEADER}\nr1\t\t1"), 2),
            (format!("{head}r1\t\t1"), 3),
            (format!("{head}=t\tT4\t1\nr1\t\t0"), 4),
            (format!("{head}=t\tT4\t1\nr1\t\t-1"), 4),
            (format!("{head}=t\tT4\t1\nr1\t\tNaN"), 4),
            (format!("{head}=t\tT4\t1\nr1\t\t1\t1\tinf"), 4),
            (format!("{head}=t\tT4\t-1\n"), 3),
            (format!("{head}=t\tT4\t1\tNaN\n"), 3),
            (format!("{head}=t\tT4\t1\t16\t4\t16\tstring\n"), 3),
            (format!("{head}=t\t\t1\n"), 3),
            (format!("{HEADER}\n@x\t2026-13-01\tme"), 2),
            (format!("{HEADER}\n@\t-\tme"), 2),
        ] {
            assert_eq!(read(&text).unwrap_err().line, line, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", body in "[@=#a-z0-9.\t\n-]{0,200}") {
            let _ = read(&text);
            let _ = read(&format!("{HEADER}\n{body}"));
        }
    }
}
