//! Makes the bundled tables from collected price lists and network measurements:
//!
//! ```text
//! cargo run --example make_catalogue -- LISTS [data]
//! ```
//!
//! `LISTS` holds `catalogue/*.csv` (one list a cloud, columns by name) and `network/{latency,throughput,egress_cost}.csv`.
//! The same lists give the same bytes. Every row read is either in a table or counted under a reason that is printed;
//! the counts also stand in the table's head, where a test pins them.
//!
//! What the lists' traps are, and what is done about each:
//! - a price that is empty or zero is unknown, never free;
//! - the lists' names of chips mean different things at different clouds (`H100` is an SXM at one, a plain card at
//!   another), and a bare `V100` or `A100` is told from its larger sister by memory: see `data/instance_types.csv`;
//! - drivers report less memory than a chip is sold with (22.35 of 24 GiB): the chip's nominal memory is taken;
//! - one list gives 512 GiB a chip for a machine whose 16 chips have 96 each: counted as "memory is not the chip's";
//! - `RunPod`'s list repeats the on-demand price in the spot column: no spot price;
//! - a list may give one price per region and repeat it for each zone: the rows are kept, they are different offers;
//! - sums of machine and accelerator prices that were made when collecting are checked against their parts.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that reports on the terminal")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gpudeck::catalogue::instance_types::{self, Told};
use gpudeck::catalogue::{Catalogue, Row, Source, interruptions, regions, table};
use gpudeck::domain::{AcceleratorCount, HourlyRate};

type Failure = Box<dyn Error>;
type Record = HashMap<String, String>;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(lists) = arguments.next() else {
        eprintln!("usage: make_catalogue LISTS [data]");
        return ExitCode::from(2);
    };
    let data = arguments.next().unwrap_or_else(|| PathBuf::from("data"));
    match make(&lists, &data) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("make_catalogue: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(lists: &Path, data: &Path) -> Result<(), Failure> {
    let report = make_prices(lists, data)?;
    print!("{report}");
    make_network(lists, data)
}

/// The rows of a CSV file by column name, with their line.
fn read_csv(path: &Path) -> Result<Vec<(u64, Record)>, Failure> {
    let mut reader = csv::Reader::from_path(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let header = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| format!("{}: {e}", path.display()))?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push((line, header.iter().zip(&record).map(|(h, v)| (h.to_owned(), v.trim().to_owned())).collect()));
    }
    Ok(rows)
}

fn field<'r>(record: &'r Record, name: &str) -> Result<&'r str, Failure> {
    record.get(name).map(String::as_str).ok_or_else(|| format!("the column {name} is missing").into())
}

fn number(record: &Record, name: &str) -> Result<Option<f64>, Failure> {
    match field(record, name)? {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(n) if n.is_finite() && n >= 0.0 => Ok(Some(n)),
            _ => Err(format!("{name} '{text}' is not a number of zero or more").into()),
        },
    }
}

fn rate(record: &Record, name: &str) -> Result<Option<HourlyRate>, Failure> {
    Ok(match field(record, name)? {
        "" => None,
        text => Some(HourlyRate::parse_usd(text)?).filter(|r| *r > HourlyRate::ZERO),
    })
}

/// What was counted while reading, for a provider or a file.
#[derive(Default)]
struct Counts(BTreeMap<(String, &'static str), usize>);

impl Counts {
    fn add(&mut self, of: &str, what: &'static str) {
        *self.0.entry((of.to_owned(), what)).or_default() += 1;
    }
    fn lines(&self) -> String {
        let mut out = String::new();
        for ((of, what), n) in &self.0 {
            let _ = writeln!(out, "count {of}: {n} {what}");
        }
        out
    }
}

fn make_prices(lists: &Path, data: &Path) -> Result<String, Failure> {
    let lists = lists.join("catalogue");
    let mut counts = Counts::default();
    let ranges = read_ranges(&lists.join("aws_spot_advisor.csv"), &mut counts)?;
    let mut by_type: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut hazards = BTreeMap::new();
    for ((region, kind), range) in &ranges {
        by_type.entry(kind).or_default().push(format!("{region}={range}"));
        let hazard = interruptions::per_day(*range).ok_or_else(|| format!("{region} {kind}: no range {range}"))?;
        hazards.insert((region.clone(), kind.clone()), hazard);
    }
    let mut out = String::from(
        "# How often AWS interrupted spot instances during a month, by type and region: 0 below 5 %, 1 to 10 %, 2 to 15 %,\n\
         # 3 to 20 %, 4 more. AWS spot advisor, Linux, of 2025-06-28, through spotinfo; made by examples/make_catalogue.rs.\n",
    );
    for (kind, cells) in by_type {
        let _ = writeln!(out, "{kind}\t{}", cells.join(" "));
    }
    fs::write(data.join("interruptions.tsv"), out)?;
    let mut used_hazards = BTreeSet::new();
    let (mut sources, mut rows) = (Vec::new(), Vec::new());
    let text = fs::read_to_string(data.join("sources.tsv"))?;
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [provider, file, date, origin] = fields.as_slice() else {
            return Err(format!("sources.tsv: four fields are needed: {line}").into());
        };
        let date = if *date == "-" { None } else { Some(date.parse()?) };
        sources.push(Source { provider: (*provider).into(), date, origin: (*origin).to_owned() });
        let mut of_provider = Vec::new();
        for (line, record) in read_csv(&lists.join(file))? {
            let at = |e: Failure| format!("{file} line {line}: {e}");
            let mut row = read_row(provider, &record, &mut counts).map_err(at)?;
            if *provider == "aws" {
                let key = (row.region.to_string(), row.shape.instance_type.to_string());
                row.interruptions_per_day = hazards.get(&key).copied().filter(|_| row.spot.is_some());
                if row.interruptions_per_day.is_some() {
                    used_hazards.insert(key);
                }
            }
            of_provider.push(row);
        }
        finish_provider(provider, &mut of_provider, &mut counts);
        rows.append(&mut of_provider);
    }
    for key in hazards.keys() {
        let used = used_hazards.contains(key);
        counts.add("spot advisor", if used { "in the price table too" } else { "of types without a spot price there" });
    }
    check_sums(&lists.join("gcp_skypilot_raw.csv"), &rows, &mut counts)?;
    let catalogue = Catalogue::new(sources, rows);
    let mut head = String::from(
        "Published prices of machines with accelerators, made by examples/make_catalogue.rs; do not edit.\n\
         USD an hour for the whole instance. They are the lists' figures of the lists' dates ('-': the list gives none),\n\
         not today's; that a machine is listed says nothing on whether one can be had.\n",
    );
    head.push_str(&counts.lines());
    fs::write(data.join("catalogue.tsv"), table::write(&catalogue, head.trim_end()))?;
    Ok(counts.lines())
}

fn read_row(provider: &str, record: &Record, counts: &mut Counts) -> Result<Row, Failure> {
    let count = number(record, "accelerator_count")?.filter(|n| *n > 0.0).ok_or("no accelerators")?;
    let told = Told {
        instance_type: field(record, "instance_type")?,
        accelerator: field(record, "accelerator")?,
        accelerators: AcceleratorCount::from_f64(count).ok_or("more accelerators than can be")?,
        gpu_memory_gib: number(record, "gpu_memory_gib_each")?,
        vcpus: number(record, "vcpus")?.map(|n| n as u32),
        memory_gib: number(record, "memory_gib")?,
    };
    let (shape, agrees) = instance_types::shape(provider, &told);
    counts.add(provider, "rows");
    if !agrees {
        counts.add(provider, "rows whose GPU memory is not the chip's: the chip's is used");
    }
    if !shape.accelerator.is_known() {
        counts.add(provider, "rows with an unknown accelerator");
    }
    let (region, zone) = (field(record, "region")?, field(record, "zone")?);
    if regions::facts(provider, region).is_none() {
        counts.add(provider, "rows in a region of unknown place");
    }
    for name in [told.instance_type, region, zone].into_iter().filter(|n| !n.is_empty()) {
        if !table::is_writable(name) {
            return Err(format!("'{name}' cannot be a name").into());
        }
    }
    Ok(Row {
        provider: provider.into(),
        region: region.into(),
        zone: (!zone.is_empty()).then(|| zone.into()),
        shape: Arc::new(shape),
        on_demand: rate(record, "on_demand_usd_h")?,
        spot: rate(record, "spot_usd_h")?,
        interruptions_per_day: None,
    })
}

/// Order, duplicates, spot prices that are none, and the counts of what is left.
fn finish_provider(provider: &str, rows: &mut Vec<Row>, counts: &mut Counts) {
    let key = |r: &Row| (r.shape.instance_type.clone(), r.region.clone(), r.zone.clone());
    rows.sort_by_key(key);
    let before = rows.len();
    rows.dedup_by_key(|r| key(r));
    for _ in rows.len()..before {
        counts.add(provider, "rows left out: listed before");
    }
    let spots = rows.iter().filter(|r| r.spot.is_some()).count();
    let repeats = rows.iter().filter(|r| r.spot.is_some() && r.spot == r.on_demand).count();
    if spots > 0 && repeats == spots {
        for row in rows.iter_mut().filter(|r| r.spot.is_some()) {
            row.spot = None;
            counts.add(provider, "spot figures left out: the column repeats the on-demand price");
        }
    }
    for row in rows.iter() {
        match (row.on_demand, row.spot) {
            (None, None) => counts.add(provider, "rows without any price"),
            (None, Some(_)) => counts.add(provider, "rows with a spot price only"),
            _ => {}
        }
        if row.spot_is_capped() {
            counts.add(provider, "spot prices at their cap, the on-demand price");
        }
    }
}

/// The advisor's range by region and type.
fn read_ranges(path: &Path, counts: &mut Counts) -> Result<BTreeMap<(String, String), u8>, Failure> {
    let mut ranges = BTreeMap::new();
    for (line, record) in read_csv(path)? {
        counts.add("spot advisor", "rows");
        let range: u8 = field(&record, "interruption_range")?.parse()?;
        let key = (field(&record, "region")?.to_owned(), field(&record, "instance_type")?.to_owned());
        if ranges.insert(key, range).is_some() {
            return Err(format!("line {line}: listed before").into());
        }
    }
    Ok(ranges)
}

/// Whether the prices that were summed when collecting are the sums of their parts (to a tenth of a cent), or empty
/// where a part was not believed.
fn check_sums(path: &Path, rows: &[Row], counts: &mut Counts) -> Result<(), Failure> {
    for (line, record) in read_csv(path)? {
        let (kind, zone) = (field(&record, "instance_type")?, field(&record, "zone")?);
        let row = rows
            .iter()
            .find(|r| {
                r.provider == *"gcp" && r.shape.instance_type == *kind && r.zone.as_ref().is_some_and(|z| *z == *zone)
            })
            .ok_or_else(|| format!("gcp parts line {line}: no sum for {kind} in {zone}"))?;
        let parts = |a: &str, b: &str| -> Result<Option<f64>, Failure> {
            Ok(number(&record, a)?.zip(number(&record, b)?).map(|(a, b)| a + b))
        };
        let is_sum = |sum: Option<f64>, rate: Option<HourlyRate>| match (sum, rate) {
            (Some(sum), Some(rate)) => (sum - rate.to_usd()).abs() < 0.001,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        if !is_sum(parts("host_on_demand_usd_h", "accelerators_on_demand_usd_h")?, row.on_demand)
            || !is_sum(parts("host_spot_usd_h", "accelerators_spot_usd_h")?, row.spot)
        {
            return Err(format!("gcp parts line {line}: {kind} in {zone} is not the sum of its parts").into());
        }
        counts.add("gcp parts", "rows, already summed in the list");
    }
    Ok(())
}

/// The matrices of the network: one line a region, a cell for each region in the same order.
fn make_network(lists: &Path, data: &Path) -> Result<(), Failure> {
    let lists = lists.join("network");
    let origin = "Skyplane (NSDI 2023, github.com/skyplane-project/skyplane, Apache-2.0), January 2022";
    let pairs = |file: &str| -> Result<Vec<(String, String, Record)>, Failure> {
        read_csv(&lists.join(file))?
            .into_iter()
            .map(|(_, r)| Ok((field(&r, "from")?.to_owned(), field(&r, "to")?.to_owned(), r)))
            .collect()
    };
    // Minima are left out on purpose: some are faster than light.
    let latency = pairs("latency.csv")?;
    let cells = latency.iter().map(|(from, to, r)| {
        let (mean, deviation) = (number(r, "avg_rtt_ms")?.ok_or("no mean")?, number(r, "mdev_rtt_ms")?.ok_or("none")?);
        let mean = if mean < 10.0 { format!("{mean:.2}") } else { format!("{mean:.1}") };
        Ok((from, to, format!("{mean}~{deviation:.1}")))
    });
    let head = format!(
        "Round trips between regions in ms, mean~mean deviation, between ordinary machines over the premium tiers.\n\
         {origin}; made by examples/make_catalogue.rs. '-': not measured.\ndate 2022-01-01"
    );
    write_matrix(&data.join("latency.tsv"), &head, " ", cells.collect::<Result<_, Failure>>()?)?;
    let throughput = pairs("throughput.csv")?;
    let cells = throughput.iter().map(|(from, to, r)| Ok((from, to, field(r, "gbit_per_s")?.to_owned())));
    let head = format!(
        "Gbit/s from one machine to one machine with 64 connections; bounded by a machine's own egress cap of the time\n\
         (AWS 5, GCP 7 Gbit/s). {origin}; made by examples/make_catalogue.rs. '-': not measured.\ndate 2022-01-01"
    );
    write_matrix(&data.join("throughput.tsv"), &head, " ", cells.collect::<Result<_, Failure>>()?)?;
    let costs = pairs("egress_cost.csv")?;
    let mut prices: Vec<f64> = Vec::new();
    for (_, _, record) in &costs {
        prices.push(number(record, "usd_per_gb")?.ok_or("no price")?);
    }
    prices.sort_by(f64::total_cmp);
    prices.dedup();
    let letter = |price: f64| {
        let index = prices.iter().position(|p| p.to_bits() == price.to_bits()).and_then(|i| u8::try_from(i).ok());
        index.filter(|i| *i < 26).map(|i| char::from(b'a' + i).to_string())
    };
    let cells = costs.iter().map(|(from, to, r)| {
        let price = number(r, "usd_per_gb")?.ok_or("no price")?;
        Ok((from, to, letter(price).ok_or("more than 26 prices")?))
    });
    let key: Vec<String> = prices.iter().map(|p| format!("{}={p}", letter(*p).unwrap_or_default())).collect();
    let head = format!(
        "List price of egress in USD per GB, first tier, a letter a price. {origin};\n\
         made by examples/make_catalogue.rs. '-': no price.\ndate 2022-01-01\nprices {}",
        key.join(" ")
    );
    write_matrix(&data.join("egress.tsv"), &head, "", cells.collect::<Result<_, Failure>>()?)?;
    println!("latency: {} pairs; throughput: {}; egress: {}", latency.len(), throughput.len(), costs.len());
    Ok(())
}

fn write_matrix(path: &Path, head: &str, gap: &str, cells: Vec<(&String, &String, String)>) -> Result<(), Failure> {
    let places: BTreeSet<&String> = cells.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    let mut matrix: HashMap<(&String, &String), String> = HashMap::new();
    for (from, to, cell) in cells {
        if matrix.insert((from, to), cell).is_some() {
            return Err(format!("{from} to {to} stands twice").into());
        }
    }
    let mut out = String::new();
    for line in head.lines() {
        let _ = writeln!(out, "# {line}");
    }
    for from in &places {
        let row: Vec<&str> = places.iter().map(|to| matrix.get(&(*from, *to)).map_or("-", String::as_str)).collect();
        let _ = writeln!(out, "{from}\t{}", row.join(gap));
    }
    fs::write(path, out)?;
    Ok(())
}
