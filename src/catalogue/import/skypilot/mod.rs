//! `SkyPilot`'s tables: finding them, and checking every figure in them.

mod rows;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use self::rows::Builder;
use super::{FileReport, Import, ImportError};
use crate::catalogue::{Catalogue, Row, Source, table};
use crate::config::limits::{
    IMPORT_ACCELERATORS, IMPORT_DEAREST_USD, IMPORT_FIELD_BYTES, IMPORT_FINDINGS, IMPORT_MEMORY_GIB,
    IMPORT_TABLE_BYTES, IMPORT_VCPUS,
};
use crate::domain::{AcceleratorCount, HourlyRate, ProviderId};

/// Read every `DIR/CLOUD/vms.csv` and `DIR/CLOUD.csv`. All findings come at once, a hundred at most.
pub fn skypilot(dir: &Path) -> Result<Import, Vec<ImportError>> {
    let mut findings = Findings::default();
    let files = find_tables(dir, &mut findings);
    if files.is_empty() && findings.list.is_empty() {
        findings.add(dir, None, "there is no CLOUD/vms.csv and no CLOUD.csv in it");
    }
    let mut import = Import::default();
    let (mut sources, mut rows) = (Vec::new(), Vec::new());
    for (provider, path) in files {
        if sources.iter().any(|s: &Source| s.provider == *provider) {
            findings.add(&path, None, "this cloud has two tables; leave one");
            continue;
        }
        if let Some((report, source, table_rows)) = read_table(&provider, &path, &mut findings) {
            import.files.push(report);
            sources.push(source);
            rows.extend(table_rows);
        }
    }
    if findings.list.is_empty() {
        import.catalogue = Catalogue::new(sources, rows);
        Ok(import)
    } else {
        Err(findings.list)
    }
}

/// What is wrong, up to a limit.
#[derive(Default)]
struct Findings {
    list: Vec<ImportError>,
}

impl Findings {
    fn is_full(&self) -> bool {
        self.list.len() >= IMPORT_FINDINGS
    }
    fn add(&mut self, file: &Path, line: Option<u64>, reason: impl Into<String>) {
        if !self.is_full() {
            let reason = reason.into().chars().take(400).collect();
            self.list.push(ImportError { file: file.to_owned(), line, reason });
        }
    }
}

/// The tables of a directory with their clouds, in order of name.
fn find_tables(dir: &Path, findings: &mut Findings) -> Vec<(String, PathBuf)> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            findings.add(dir, None, format!("cannot be read: {error}"));
            return Vec::new();
        }
    };
    let mut tables = Vec::new();
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => {
                findings.add(dir, None, format!("cannot be read: {error}"));
                continue;
            }
        };
        let table = if path.is_dir() { path.join("vms.csv") } else { path.clone() };
        if table.extension().is_none_or(|e| e != "csv") || !table.is_file() {
            continue;
        }
        let cloud = if path.is_dir() { path.file_name() } else { path.file_stem() };
        match cloud.and_then(|c| c.to_str()).map(str::to_ascii_lowercase) {
            Some(cloud) if table::is_writable(&cloud) => tables.push((cloud, table)),
            _ => findings.add(&table, None, "its name is not that of a cloud"),
        }
    }
    tables.sort();
    tables
}

/// Where the columns stand in a table.
struct Columns {
    instance_type: usize,
    accelerator: usize,
    count: usize,
    price: usize,
    region: usize,
    vcpus: Option<usize>,
    memory: Option<usize>,
    gpu_info: Option<usize>,
    spot: Option<usize>,
    zone: Option<usize>,
}

impl Columns {
    fn find(header: &csv::StringRecord) -> Result<Self, String> {
        let place =
            |name: &str| header.iter().position(|h| h.trim_start_matches('\u{feff}').eq_ignore_ascii_case(name));
        let needed = ["InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region"];
        let missing: Vec<&str> = needed.into_iter().filter(|n| place(n).is_none()).collect();
        match needed.map(place) {
            [Some(instance_type), Some(accelerator), Some(count), Some(price), Some(region)] => Ok(Self {
                instance_type,
                accelerator,
                count,
                price,
                region,
                vcpus: place("vCPUs"),
                memory: place("MemoryGiB"),
                gpu_info: place("GpuInfo"),
                spot: place("SpotPrice"),
                zone: place("AvailabilityZone"),
            }),
            _ => Err(format!("not a price table: the column {} is missing", missing.join(", "))),
        }
    }
}

/// A row with its figures checked.
#[derive(Debug, Clone, Copy)]
struct Checked<'a> {
    instance_type: &'a str,
    accelerator: &'a str,
    count: AcceleratorCount,
    gpu_memory_gib: Option<f64>,
    vcpus: Option<u32>,
    memory_gib: Option<f64>,
    region: &'a str,
    zone: &'a str,
    price: Option<HourlyRate>,
    spot: Option<HourlyRate>,
}

/// A number in bounds; empty is none.
fn number(name: &str, text: &str, most: f64) -> Result<Option<f64>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let n: f64 = text.parse().map_err(|e| format!("{name} '{text}' is not a number: {e}"))?;
    if !n.is_finite() {
        return Err(format!("{name} '{text}' is not a finite number"));
    }
    if n < 0.0 {
        return Err(format!("{name} {text} is below zero"));
    }
    if n > most {
        return Err(format!("{name} {text} is above {most}, which no machine has"));
    }
    Ok(Some(n))
}

/// A price; empty and zero are unknown.
fn rate(name: &str, text: &str) -> Result<Option<HourlyRate>, String> {
    match number(name, text, IMPORT_DEAREST_USD)? {
        None => Ok(None),
        // The exact decimal where it is one; a form such as 1e-05 through the float.
        Some(usd) => HourlyRate::parse_usd(text)
            .or_else(|_| HourlyRate::from_usd(usd))
            .map(|rate| (rate > HourlyRate::ZERO).then_some(rate))
            .map_err(|e| format!("{name} '{text}': {e}")),
    }
}

/// Memory of one GPU in GiB from a description such as `{'Gpus': [{…, 'MemoryInfo': {'SizeInMiB': 40960}}], …}`. Some
/// tables write GB under that key; no GPU has less than a GiB, so a small number is one of those. Where only the total
/// is given it is taken: some tables mean that of one GPU by it, and who names the chip tells the two apart.
fn gpu_memory(info: &str) -> Option<f64> {
    let (_, rest) = info.split_once("SizeInMiB").or_else(|| info.split_once("TotalGpuMemoryInMiB"))?;
    let digits: String = rest
        .chars()
        .skip_while(|c| matches!(c, '\'' | '"' | ':' | ' ' | '\\'))
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let size: f64 = digits.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)?;
    Some(if size < 1_024.0 { size } else { size / 1_024.0 })
}

fn check<'r>(record: &'r csv::StringRecord, columns: &Columns) -> Result<Checked<'r>, Vec<String>> {
    let mut wrong = Vec::new();
    let field = |index: usize| record.get(index).unwrap_or_default().trim();
    let optional = |index: Option<usize>| index.map_or("", field);
    for text in record {
        if text.len() > IMPORT_FIELD_BYTES {
            return Err(vec![format!("a field has {} characters, more than {IMPORT_FIELD_BYTES}", text.len())]);
        }
    }
    let mut take = |result: Result<Option<f64>, String>| match result {
        Ok(n) => n.filter(|n| *n > 0.0),
        Err(reason) => {
            wrong.push(reason);
            None
        }
    };
    let accelerator = field(columns.accelerator);
    let vcpus = take(number("vCPUs", optional(columns.vcpus), IMPORT_VCPUS));
    let memory_gib = take(number("MemoryGiB", optional(columns.memory), IMPORT_MEMORY_GIB));
    let count = take(number("AcceleratorCount", field(columns.count), IMPORT_ACCELERATORS));
    let count = count.and_then(AcceleratorCount::from_f64).unwrap_or_default();
    if !accelerator.is_empty() && count.ten_thousandths() == 0 && wrong.is_empty() {
        wrong.push(format!("AcceleratorCount '{}' of {accelerator} is not above zero", field(columns.count)));
    }
    let mut price = |name: &str, text: &str| {
        rate(name, text).unwrap_or_else(|reason| {
            wrong.push(reason);
            None
        })
    };
    let (on_demand, spot) = (price("Price", field(columns.price)), price("SpotPrice", optional(columns.spot)));
    let (instance_type, region, zone) = (field(columns.instance_type), field(columns.region), optional(columns.zone));
    if instance_type.is_empty() && accelerator.is_empty() {
        wrong.push("neither InstanceType nor AcceleratorName is given".to_owned());
    }
    if region.is_empty() {
        wrong.push("Region is empty".to_owned());
    }
    for (name, text) in [
        ("InstanceType", instance_type),
        ("AcceleratorName", accelerator),
        ("Region", region),
        ("AvailabilityZone", zone),
    ] {
        if !text.is_empty() && !table::is_writable(text) {
            wrong.push(format!("{name} holds what is no name: '{text}'"));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(Checked {
        instance_type,
        accelerator,
        count,
        gpu_memory_gib: gpu_memory(optional(columns.gpu_info)),
        vcpus: vcpus.map(|n| n as u32).filter(|n| *n > 0),
        memory_gib,
        region,
        zone,
        price: on_demand,
        spot,
    })
}

/// Read one table; `None` where it was refused.
fn read_table(provider: &str, path: &Path, findings: &mut Findings) -> Option<(FileReport, Source, Vec<Row>)> {
    let before = findings.list.len();
    let (records, date) = match read_records(path) {
        Ok(read) => read,
        Err((line, reason)) => {
            findings.add(path, line, reason);
            return None;
        }
    };
    let mut records = records.into_iter();
    let header = records.next().map(|(_, header)| header).unwrap_or_default();
    let columns = match Columns::find(&header) {
        Ok(columns) => columns,
        Err(reason) => {
            findings.add(path, Some(1), reason);
            return None;
        }
    };
    let records: Vec<(u64, csv::StringRecord)> = records.collect();
    let mut checked = Vec::with_capacity(records.len());
    for (line, record) in &records {
        match check(record, &columns) {
            Ok(row) => checked.push(row),
            Err(reasons) => reasons.into_iter().for_each(|reason| findings.add(path, Some(*line), reason)),
        }
        if findings.is_full() {
            break;
        }
    }
    if findings.list.len() > before {
        return None;
    }
    let mut builder = Builder::new(provider, path, checked.len());
    builder.add_all(&checked);
    let origin = format!("SkyPilot table {}", path.file_name().and_then(|n| n.to_str()).unwrap_or("vms.csv"));
    let source = Source { provider: ProviderId::from(provider), date: date.map(|d| d.date_naive()), origin };
    let (report, rows) = builder.finish();
    Some((report, source, rows))
}

type Records = Vec<(u64, csv::StringRecord)>;
/// A line, where it is about one, and what is wrong.
type Finding = (Option<u64>, String);

/// All records of a file, the header first, and when the file was written.
fn read_records(path: &Path) -> Result<(Records, Option<DateTime<Utc>>), Finding> {
    let unreadable = |error: &dyn std::fmt::Display| (None, format!("cannot be read: {error}"));
    let file = File::open(path).map_err(|e| unreadable(&e))?;
    let facts = file.metadata().map_err(|e| unreadable(&e))?;
    if facts.len() > IMPORT_TABLE_BYTES {
        return Err((None, format!("it has {} bytes, more than any price table", facts.len())));
    }
    // The file may grow while it is read.
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(file.take(IMPORT_TABLE_BYTES));
    let mut records = Vec::new();
    let mut raw = csv::ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut raw) {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) => return Err((Some(reader.position().line()), format!("cannot be read: {error}"))),
        }
        let line = raw.position().map_or(0, csv::Position::line);
        match csv::StringRecord::from_byte_record(raw.clone()) {
            Ok(record) => records.push((line, record)),
            Err(_) => return Err((Some(line), "it is not UTF-8 text".to_owned())),
        }
    }
    Ok((records, facts.modified().ok().map(DateTime::from)))
}

#[cfg(test)]
mod tests;
