//! Capacity: a row per machine and place, with both ways to pay for it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;

use crate::config::limits;
use crate::domain::{Accelerator, Availability, Evidence, GpuHourlyRate, Offer, OfferKey, Purchase};
use crate::market::Snapshot;
use crate::tui::filter::Filterable;
use crate::tui::paint::Part;
use crate::tui::spark;
use crate::tui::table::{Column, Context, Row, RowId, SortKey, age};
use crate::tui::theme::Role;

/// A machine in a place. At least one of the offers is there.
#[derive(Debug, Clone)]
pub(crate) struct CapacityRow {
    /// The offer that stands for the row (its place, its shape).
    pub(crate) lead: Arc<Offer>,
    pub(crate) on_demand: Option<Arc<Offer>>,
    pub(crate) spot: Option<Arc<Offer>>,
    pub(crate) reserved: Option<Arc<Offer>>,
    /// Memory of its GPU in GiB: the large ones come first.
    rank: i64,
}

/// The rows of a snapshot, in the order of their keys. The snapshot is in that order, so offers of one row are neighbours.
pub(crate) fn rows(snapshot: &Snapshot) -> Vec<CapacityRow> {
    let mut rows: Vec<CapacityRow> = Vec::with_capacity(snapshot.len() / 2 + 1);
    let mut ranks: FxHashMap<&Accelerator, i64> = FxHashMap::default();
    for offer in snapshot.iter() {
        let same = rows.last().is_some_and(|row| same_place(&row.lead.key, &offer.key));
        if !same {
            let rank = *ranks.entry(&offer.shape.accelerator).or_insert_with_key(|a| rank(a));
            rows.push(CapacityRow { lead: offer.clone(), on_demand: None, spot: None, reserved: None, rank });
        }
        if let Some(row) = rows.last_mut() {
            match offer.key.purchase {
                Purchase::OnDemand => row.on_demand = Some(offer.clone()),
                Purchase::Spot => row.spot = Some(offer.clone()),
                Purchase::Reserved => row.reserved = Some(offer.clone()),
            }
        }
    }
    rows
}

/// What GPUs are ordered by: their memory in GiB; those that the table does not know come last.
pub(crate) fn rank(accelerator: &Accelerator) -> i64 {
    crate::catalogue::accelerators::memory_gib(accelerator).map_or(-1, |gib| gib.round() as i64)
}

fn same_place(a: &OfferKey, b: &OfferKey) -> bool {
    a.instance_type == b.instance_type && a.zone == b.zone && a.region == b.region && a.provider == b.provider
}

impl CapacityRow {
    pub(crate) fn offers(&self) -> impl Iterator<Item = &Arc<Offer>> {
        [&self.on_demand, &self.spot, &self.reserved].into_iter().flatten()
    }

    /// The better of what can be had; unknown only where nothing is known at all.
    pub(crate) fn availability(&self) -> Availability {
        self.offers().map(|o| o.availability).min().unwrap_or(Availability::Unknown)
    }

    /// The cheapest known price of a GPU, whichever way it is paid; what cannot be had only where nothing else can.
    pub(crate) fn cheapest(&self) -> Option<GpuHourlyRate> {
        let priced = self.offers().filter_map(|o| Some((o.availability == Availability::None, o.price_per_gpu()?)));
        priced.min().map(|(_, price)| price)
    }

    fn observed_at(&self) -> DateTime<Utc> {
        self.offers().map(|o| o.observed_at).max().unwrap_or(self.lead.observed_at)
    }
}

/// An availability's mark and meaning.
pub(crate) const fn availability_mark(availability: Availability) -> (&'static str, &'static str, Role) {
    match availability {
        Availability::Available => ("●", "available", Role::Available),
        Availability::Limited => ("◐", "limited", Role::Limited),
        Availability::None => ("○", "none", Role::None),
        Availability::Unknown => ("?", "unknown", Role::Unknown),
    }
}

/// Where a statement on availability comes from, in a word.
pub(crate) const fn evidence_word(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Api => "api",
        Evidence::SpotScore => "score",
        Evidence::Quota => "quota",
        Evidence::Attempt => "tried",
        Evidence::Catalogue => "list",
        Evidence::Simulated => "sim",
    }
}

/// A price of a GPU as a figure alone; the column's heading has the unit. Below ten cents the cents do not suffice.
pub(crate) fn figure(rate: GpuHourlyRate) -> String {
    let decimals = if rate.micros() < 100_000 { 4 } else { 2 };
    let text = format!("{rate:.decimals$}");
    text.trim_start_matches('$').trim_end_matches("/GPU-h").to_owned()
}

/// Whether an offer's live figure is too old to be shown as one.
pub(crate) fn too_old(offer: &Offer, now: DateTime<Utc>) -> bool {
    offer.stale && offer.price_is_live && now - offer.observed_at > limits::FIGURE_AGE
}

fn price(offer: Option<&Arc<Offer>>, now: DateTime<Utc>) -> Vec<Part<'static>> {
    let Some(offer) = offer else { return vec![("   ".into(), Role::Muted)] };
    let (mark, _, role) = availability_mark(offer.availability);
    let figure: Part<'static> = match offer.price_per_gpu() {
        _ if too_old(offer, now) => ("?".into(), Role::Stale),
        Some(rate) => (figure(rate).into(), if offer.price_is_live { Role::Money } else { Role::Published }),
        None => ("–".into(), Role::Muted),
    };
    let source = if offer.price.is_some() && !offer.price_is_live { "p" } else { " " };
    vec![figure, (source.into(), Role::Published), (mark.into(), role)]
}

fn price_key(offer: Option<&Arc<Offer>>) -> SortKey<'static> {
    offer.and_then(|o| o.price_per_gpu()).map_or(SortKey::Missing, |p| SortKey::Integer(p.micros()))
}

static COLUMNS: &[Column<CapacityRow>] = &[
    Column {
        name: "gpu",
        title: "GPU",
        min: 13,
        max: 16,
        drop: 0,
        right: false,
        whole: true,
        cell: |r, _| vec![(r.lead.shape.accelerator.as_str().into(), Role::Title)],
        key: Some(|r| SortKey::Ranked(r.rank, r.lead.shape.accelerator.as_str())),
    },
    Column {
        name: "count",
        title: "N",
        min: 2,
        max: 4,
        drop: 4,
        right: true,
        whole: true,
        cell: |r, _| vec![(r.lead.shape.accelerators.to_string().into(), Role::Text)],
        key: Some(|r| SortKey::Integer(i64::from(r.lead.shape.accelerators.ten_thousandths()))),
    },
    Column {
        name: "cloud",
        title: "CLOUD",
        min: 6,
        max: 10,
        drop: 0,
        right: false,
        whole: false,
        cell: |r, _| vec![(r.lead.key.provider.as_str().into(), Role::Text)],
        key: Some(|r| SortKey::Text(r.lead.key.provider.as_str())),
    },
    Column {
        name: "region",
        title: "REGION",
        min: 11,
        max: 18,
        drop: 1,
        right: false,
        whole: false,
        cell: |r, _| vec![(r.lead.key.region.as_str().into(), Role::Text)],
        key: Some(|r| SortKey::Text(r.lead.key.region.as_str())),
    },
    Column {
        name: "zone",
        title: "ZONE",
        min: 4,
        max: 14,
        drop: 5,
        right: false,
        whole: false,
        cell: |r, _| vec![zone(r)],
        key: Some(|r| r.lead.key.zone.as_ref().map_or(SortKey::Missing, |z| SortKey::Text(z.as_str()))),
    },
    Column {
        name: "type",
        title: "TYPE",
        min: 14,
        max: 28,
        drop: 6,
        right: false,
        whole: false,
        cell: |r, _| vec![(r.lead.key.instance_type.as_str().into(), Role::Muted)],
        key: Some(|r| SortKey::Text(r.lead.key.instance_type.as_str())),
    },
    Column {
        name: "on-demand",
        title: "OD $/GPU",
        min: 8,
        max: 11,
        drop: 0,
        right: true,
        whole: true,
        cell: |r, c| price(r.on_demand.as_ref(), c.now),
        key: Some(|r| price_key(r.on_demand.as_ref())),
    },
    Column {
        name: "spot",
        title: "SPOT",
        min: 8,
        max: 10,
        drop: 0,
        right: true,
        whole: true,
        cell: |r, c| price(r.spot.as_ref(), c.now),
        key: Some(|r| price_key(r.spot.as_ref())),
    },
    Column {
        name: "trend",
        title: "TREND",
        min: 8,
        max: 16,
        drop: 8,
        right: false,
        whole: false,
        cell: |r, c| trend(r, c),
        key: None,
    },
    Column {
        name: "quota",
        title: "QUOTA",
        min: 5,
        max: 6,
        drop: 9,
        right: true,
        whole: true,
        cell: |r, _| vec![quota(r)],
        key: Some(|r| quota_left(r).map_or(SortKey::Missing, |q| SortKey::Integer(i64::from(q)))),
    },
    Column {
        name: "evidence",
        title: "BY",
        min: 5,
        max: 6,
        drop: 7,
        right: false,
        whole: false,
        cell: |r, _| vec![(evidence_word(best(r).evidence).into(), Role::Muted)],
        key: Some(|r| SortKey::Text(evidence_word(best(r).evidence))),
    },
    Column {
        name: "age",
        title: "AGE",
        min: 4,
        max: 9,
        drop: 2,
        right: true,
        whole: true,
        cell: |r, c| vec![age_part(r, c.now)],
        key: Some(|r| SortKey::Integer(-r.observed_at().timestamp())),
    },
];

/// The offer that the row's availability comes from.
fn best(row: &CapacityRow) -> &Arc<Offer> {
    row.offers().min_by_key(|o| o.availability).unwrap_or(&row.lead)
}

fn zone(row: &CapacityRow) -> Part<'_> {
    let key = &row.lead.key;
    match &key.zone {
        Some(zone) => (short_zone(key.region.as_str(), zone.as_str()).into(), Role::Text),
        None => ("–".into(), Role::Muted),
    }
}

/// What a zone's name says beyond its region's: `a` of `us-central1-a`, `az4` of `use1-az4`, `atl2-az1` of the local
/// zone `use1-atl2-az1`, `AD-1` of `AF-CASABLANCA-1-AD-1`.
pub(crate) fn short_zone<'z>(region: &str, zone: &'z str) -> &'z str {
    let (head, tail) = zone.split_at_checked(region.len()).unwrap_or((zone, ""));
    let rest = Some(tail.trim_start_matches('-')).filter(|z| head.eq_ignore_ascii_case(region) && !z.is_empty());
    let last = zone.rsplit_once('-').map(|(_, id)| id);
    let id =
        last.filter(|id| id.starts_with("az") && id.len() > 2).and_then(|_| zone.split_once('-')).map(|(_, id)| id);
    rest.or(id).unwrap_or(zone)
}

fn trend<'r>(row: &'r CapacityRow, context: &Context<'_>) -> Vec<Part<'r>> {
    let offer = row.spot.as_ref().or(row.on_demand.as_ref()).unwrap_or(&row.lead);
    spark::trend(context.state.market.history(&offer.key), 12)
}

fn quota_left(row: &CapacityRow) -> Option<u32> {
    row.offers()
        .filter_map(|o| o.quota.as_ref())
        .map(crate::domain::QuotaRoom::instances_left)
        .filter(|n| *n < u32::MAX)
        .max()
}

fn quota(row: &CapacityRow) -> Part<'static> {
    match quota_left(row) {
        Some(0) => ("0".into(), Role::None),
        Some(n) => (n.to_string().into(), Role::Text),
        None => ("–".into(), Role::Muted),
    }
}

fn age_part(row: &CapacityRow, now: DateTime<Utc>) -> Part<'static> {
    let text = age(now, row.observed_at());
    if row.stale() { (format!("stale {text}").into(), Role::Stale) } else { (text.into(), Role::Muted) }
}

impl Row for CapacityRow {
    fn id(&self) -> RowId {
        RowId::Place(self.lead.key.location(), self.lead.key.instance_type.clone())
    }
    fn is(&self, id: &RowId) -> bool {
        let key = &self.lead.key;
        matches!(id, RowId::Place(place, shape) if *shape == key.instance_type && place.zone == key.zone
            && place.region == key.region && place.provider == key.provider)
    }
    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }
    fn stale(&self) -> bool {
        self.offers().all(|o| o.stale)
    }
}

impl Filterable for CapacityRow {
    const TEXTS: &'static [&'static str] = &["gpu", "cloud", "region", "zone", "type", "law"];
    const NUMBERS: &'static [&'static str] = &["price", "spot", "od", "count", "memory", "quota"];
    const FLAGS: &'static [&'static str] =
        &["spot", "on-demand", "reserved", "available", "limited", "none", "unknown", "stale", "priced", "live"];

    fn texts(&self, field: Option<&str>, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let key = &self.lead.key;
        let of = |name: &str| field.is_none_or(|f| f == name);
        of("gpu") && visit(self.lead.shape.accelerator.as_str())
            || of("cloud") && visit(key.provider.as_str())
            || of("region") && visit(key.region.as_str())
            || of("zone") && key.zone.as_ref().is_some_and(|z| visit(z.as_str()))
            || of("type") && visit(key.instance_type.as_str())
            || field == Some("law") && self.lead.jurisdiction.as_deref().is_some_and(visit)
    }

    fn number(&self, field: &str) -> Option<f64> {
        let per_gpu = |o: &Option<Arc<Offer>>| o.as_ref().and_then(|o| o.price_per_gpu()).map(GpuHourlyRate::to_usd);
        match field {
            "price" => self.cheapest().map(GpuHourlyRate::to_usd),
            "spot" => per_gpu(&self.spot),
            "od" => per_gpu(&self.on_demand),
            "count" => Some(self.lead.shape.accelerators.to_f64()),
            "memory" => self.lead.shape.gpu_memory_gib,
            "quota" => quota_left(self).map(f64::from),
            _ => None,
        }
    }

    fn flag(&self, word: &str) -> bool {
        match word {
            "spot" => self.spot.is_some(),
            "on-demand" => self.on_demand.is_some(),
            "reserved" => self.reserved.is_some(),
            "available" => self.availability() == Availability::Available,
            "limited" => self.availability() == Availability::Limited,
            "none" => self.availability() == Availability::None,
            "unknown" => self.availability() == Availability::Unknown,
            "stale" => self.stale(),
            "priced" => self.offers().any(|o| o.price.is_some()),
            "live" => self.offers().any(|o| o.price_is_live && !o.stale),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::short_zone;

    #[rstest]
    #[case("us-central1", "us-central1-a", "a")]
    #[case("us-east-1", "use1-az4", "az4")]
    #[case("us-east-1", "use1-atl2-az1", "atl2-az1")]
    #[case("af-casablanca-1", "AF-CASABLANCA-1-AD-1", "AD-1")]
    #[case("AU", "OC-AU-1", "OC-AU-1")]
    #[case("eastus", "1", "1")]
    #[case("x", "x", "x")]
    #[case("é", "éa", "a")]
    #[case("ab", "éa", "éa")]
    fn a_zone_is_told_without_what_its_region_says(#[case] region: &str, #[case] zone: &str, #[case] short: &str) {
        assert_eq!(short_zone(region, zone), short);
    }
}
