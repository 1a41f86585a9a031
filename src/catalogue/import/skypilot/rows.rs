//! Checked lines → rows: prices in parts are summed, repeats and what carries no accelerator are counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::super::{FileReport, LeftOut, Noted};
use super::Checked;
use crate::catalogue::instance_types::{self, Told, accelerator_named};
use crate::catalogue::{Row, accelerators, interruptions};
use crate::config::limits::IMPORT_REPEATED_SPOT_ROWS;
use crate::domain::{AcceleratorCount, HourlyRate, ProviderId, Region, Shape, Zone};

const HOSTS: &str = include_str!("../../../../data/gcp_hosts.csv");

/// A machine type that carries accelerators, from `data/gcp_hosts.csv`.
fn carried_by(provider: &str, instance_type: &str) -> Option<(&'static str, AcceleratorCount)> {
    if provider != "gcp" {
        return None;
    }
    HOSTS.lines().filter(|l| !l.starts_with('#')).find_map(|line| {
        let mut fields = line.split(',');
        let (host, chip, count) = (fields.next()?, fields.next()?, fields.next()?);
        (host == instance_type).then_some(())?;
        Some((chip, AcceleratorCount::whole(count.parse().ok()?)))
    })
}

/// The chip's name without regard to spelling, its count, the region and the zone.
type PartKey<'a> = (String, AcceleratorCount, &'a str, &'a str);

/// Rows of one table in the making.
pub(super) struct Builder {
    report: FileReport,
    rows: Vec<Row>,
    shapes: HashMap<String, Arc<Shape>>,
    seen: HashSet<(String, String, String)>,
    regions: HashMap<String, Region>,
}

impl Builder {
    pub(super) fn new(provider: &str, path: &Path, read: usize) -> Self {
        let report = FileReport {
            path: path.to_owned(),
            provider: provider.to_owned(),
            read,
            kept: 0,
            left_out: BTreeMap::new(),
            noted: BTreeMap::new(),
        };
        Self { report, rows: Vec::new(), shapes: HashMap::new(), seen: HashSet::new(), regions: HashMap::new() }
    }

    fn leave_out(&mut self, reason: LeftOut) {
        *self.report.left_out.entry(reason).or_default() += 1;
    }
    fn note(&mut self, what: Noted) {
        *self.report.noted.entry(what).or_default() += 1;
    }

    pub(super) fn add_all(&mut self, checked: &[Checked<'_>]) {
        let spelling = |name: &str| accelerators::canonical(name).to_string();
        let parts: HashMap<PartKey<'_>, &Checked<'_>> = checked
            .iter()
            .filter(|r| r.instance_type.is_empty())
            .map(|r| ((spelling(r.accelerator), r.count, r.region, r.zone), r))
            .collect();
        let mut used: HashSet<PartKey<'_>> = HashSet::new();
        for row in checked.iter().filter(|r| !r.instance_type.is_empty()) {
            if !row.accelerator.is_empty() {
                self.add(row);
                continue;
            }
            let Some((chip, count)) = carried_by(&self.report.provider, row.instance_type) else {
                self.leave_out(LeftOut::NoAccelerator);
                continue;
            };
            let key = (spelling(chip), count, row.region, row.zone);
            let part = parts.get(&key).copied();
            if part.is_some() {
                used.insert(key);
            }
            self.add_sum(row, chip, count, part);
        }
        for row in checked.iter().filter(|r| r.instance_type.is_empty()) {
            let is_used = used.contains(&(spelling(row.accelerator), row.count, row.region, row.zone));
            self.leave_out(if is_used { LeftOut::AddedToMachine } else { LeftOut::NoMachine });
        }
    }

    /// A machine and its accelerators that are priced apart: only the sum is a price, and only where both are known.
    fn add_sum(&mut self, host: &Checked<'_>, chip: &str, count: AcceleratorCount, part: Option<&Checked<'_>>) {
        let sum = |a: Option<HourlyRate>, b: Option<HourlyRate>| Some(a? + b?);
        let mut price = sum(host.price, part.and_then(|p| p.price));
        let spot = sum(host.spot, part.and_then(|p| p.spot));
        let is_placeholder = |part: &Checked<'_>| part.price.zip(part.spot).is_some_and(|(price, spot)| price < spot);
        if price.is_some() && (is_placeholder(host) || part.is_some_and(is_placeholder)) {
            self.note(Noted::PartBelowSpot);
            price = None;
        }
        let gpu_memory_gib = part.and_then(|p| p.gpu_memory_gib);
        self.add(&Checked { accelerator: chip, count, gpu_memory_gib, price, spot, ..*host });
    }

    fn add(&mut self, row: &Checked<'_>) {
        let place = (row.instance_type.to_owned(), row.region.to_owned(), row.zone.to_owned());
        if !self.seen.insert(place) {
            self.leave_out(LeftOut::Repeated);
            return;
        }
        let shape = self.shape(row);
        if !shape.accelerator.is_known() {
            self.note(Noted::UnknownAccelerator);
        }
        if row.price.is_none() {
            self.note(Noted::NoOnDemandPrice);
        }
        if row.spot.is_none() {
            self.note(Noted::NoSpotPrice);
        }
        let region = self.regions.entry(row.region.to_owned()).or_insert_with(|| Region::from(row.region)).clone();
        self.rows.push(Row {
            provider: ProviderId::from(self.report.provider.as_str()),
            region,
            zone: (!row.zone.is_empty()).then(|| Zone::from(row.zone)),
            shape,
            on_demand: row.price,
            spot: row.spot,
            interruptions_per_day: row
                .spot
                .and_then(|_| interruptions::published(&self.report.provider, row.region, row.instance_type)),
        });
    }

    fn shape(&mut self, row: &Checked<'_>) -> Arc<Shape> {
        let told = Told {
            instance_type: row.instance_type,
            accelerator: row.accelerator,
            accelerators: row.count,
            gpu_memory_gib: row.gpu_memory_gib,
            vcpus: row.vcpus,
            memory_gib: row.memory_gib,
        };
        let key = format!("{told:?}");
        if let Some(shape) = self.shapes.get(&key) {
            return Arc::clone(shape);
        }
        let (mut shape, agrees) = instance_types::shape(&self.report.provider, &told);
        // These tables call the smaller variant by the bare name where nothing else tells.
        if row.gpu_memory_gib.is_none()
            && accelerators::memory_gib(&shape.accelerator).is_none()
            && let Some(named) = accelerator_named("skypilot", row.accelerator)
        {
            shape.gpu_memory_gib = accelerators::memory_gib(&named);
            shape.accelerator = named;
        }
        if !agrees {
            self.note(Noted::MemoryDisagrees);
        }
        let shape = Arc::new(shape);
        self.shapes.insert(key, Arc::clone(&shape));
        shape
    }

    pub(super) fn finish(mut self) -> (FileReport, Vec<Row>) {
        let repeats = self.rows.iter().filter(|r| r.spot.is_some() && r.spot == r.on_demand).count();
        let spots = self.rows.iter().filter(|r| r.spot.is_some()).count();
        if repeats == spots && repeats >= IMPORT_REPEATED_SPOT_ROWS {
            self.rows.iter_mut().for_each(|r| r.spot = None);
            self.report.noted.insert(Noted::SpotRepeatsOnDemand, repeats);
        }
        self.rows.sort_by(|a, b| {
            let key = |r: &Row| (r.shape.instance_type.clone(), r.region.clone(), r.zone.clone());
            key(a).cmp(&key(b))
        });
        self.report.kept = self.rows.len();
        (self.report, self.rows)
    }
}
