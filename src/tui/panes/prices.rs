//! Prices: a row per GPU type. Each figure says which statistic it is.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::capacity::{figure, rank, too_old};
use crate::domain::{Accelerator, GpuHourlyRate, Money, Offer, Purchase};
use crate::engine::State;
use crate::market;
use crate::tui::filter::Filterable;
use crate::tui::paint::Part;
use crate::tui::table::{Column, Row, RowId, SortKey, grouped};
use crate::tui::theme::Role;

/// Prices of one GPU type.
#[derive(Debug, Clone)]
pub(crate) struct PriceRow {
    pub(crate) gpu: Accelerator,
    /// Memory of the GPU in GiB: the large ones come first.
    rank: i64,
    pub(crate) offers: usize,
    /// The cheapest of which nothing says that it cannot be had; where there is none, the cheapest listed.
    pub(crate) cheapest: Option<Arc<Offer>>,
    /// Whether `cheapest` can be had as far as is known.
    pub(crate) obtainable: bool,
    pub(crate) cheapest_on_demand: Option<Arc<Offer>>,
    pub(crate) median: Option<GpuHourlyRate>,
    pub(crate) dearest: Option<Arc<Offer>>,
    pub(crate) spread_percent: Option<f64>,
    /// How much spot is below on-demand, in percent.
    pub(crate) spot_discount: Option<f64>,
    /// Median change over the hours watched, in percent and hours.
    pub(crate) trend: Option<(f64, f64)>,
    /// What moving running jobs on this GPU would save in all, after what the moves cost, and how many of them.
    pub(crate) arbitrage: Option<(Money, usize)>,
}

/// Rows in the order of their names: the market's own figures, so that screen and command line say the same.
pub(crate) fn rows(state: &State) -> Vec<PriceRow> {
    market::spreads(&state.market, None)
        .into_iter()
        .map(|spread| PriceRow {
            arbitrage: arbitrage_of(state, &spread.accelerator),
            obtainable: spread.all.min_available.is_some(),
            cheapest: spread.all.min_available.or(spread.all.min),
            cheapest_on_demand: spread.on_demand.min,
            offers: spread.all.offers,
            median: spread.all.median,
            dearest: spread.all.max,
            spread_percent: spread.all.spread_percent,
            spot_discount: spread.spot_discount.map(|d| d.median_percent),
            trend: spread.trend.map(|t| (t.median_percent, t.over.as_secs_f64() / 3600.0)),
            rank: rank(&spread.accelerator),
            gpu: spread.accelerator,
        })
        .collect()
}

/// What moving running jobs on this GPU saves, after all that the moves cost, and how many of them would gain.
fn arbitrage_of(state: &State, gpu: &Accelerator) -> Option<(Money, usize)> {
    let mut known = state.jobs.iter().filter(|j| j.accelerator.as_ref() == Some(gpu)).filter_map(|j| j.move_saves);
    let first = known.next()?;
    Some(known.chain([first]).filter(|m| *m > Money::ZERO).fold((Money::ZERO, 0), |(sum, n), m| (sum + m, n + 1)))
}

fn offer_price(offer: Option<&Arc<Offer>>, obtainable: bool, now: DateTime<Utc>) -> Vec<Part<'static>> {
    if offer.is_some_and(|o| too_old(o, now)) {
        return vec![("? ".into(), Role::Stale)];
    }
    match offer.and_then(|o| o.price_per_gpu().map(|p| (p, o.price_is_live))) {
        Some((price, live)) => {
            let role = if !obtainable {
                Role::None
            } else if live {
                Role::Money
            } else {
                Role::Published
            };
            vec![(figure(price).into(), role), (if live { " " } else { "p" }.into(), Role::Published)]
        }
        None => vec![("– ".into(), Role::Muted)],
    }
}

fn key(offer: Option<&Arc<Offer>>) -> SortKey<'static> {
    offer.and_then(|o| o.price_per_gpu()).map_or(SortKey::Missing, |p| SortKey::Integer(p.micros()))
}

fn percent(value: Option<f64>) -> String {
    match value {
        Some(v) if v.abs() >= 10_000.0 => format!("{:.0}k%", v / 1_000.0),
        Some(v) => format!("{v:.0}%"),
        None => "–".to_owned(),
    }
}

static COLUMNS: &[Column<PriceRow>] = &[
    Column {
        name: "gpu",
        title: "GPU",
        min: 10,
        max: 16,
        drop: 0,
        right: false,
        whole: true,
        cell: |r, _| vec![(r.gpu.as_str().into(), Role::Title)],
        key: Some(|r| SortKey::Ranked(r.rank, r.gpu.as_str())),
    },
    Column {
        name: "cheapest-place",
        title: "CHEAPEST",
        min: 14,
        max: 34,
        drop: 1,
        right: false,
        whole: false,
        cell: |r, _| cheapest_place(r),
        key: Some(|r| r.cheapest.as_ref().map_or(SortKey::Missing, |o| SortKey::Text(o.key.provider.as_str()))),
    },
    Column {
        name: "paid",
        title: "PAID",
        min: 4,
        max: 4,
        drop: 4,
        right: false,
        whole: true,
        cell: |r, _| cheapest_paid(r),
        key: None,
    },
    Column {
        name: "cheapest",
        title: "$/GPU-h",
        min: 8,
        max: 10,
        drop: 0,
        right: true,
        whole: true,
        cell: |r, c| offer_price(r.cheapest.as_ref(), r.obtainable, c.now),
        key: Some(|r| key(r.cheapest.as_ref())),
    },
    Column {
        name: "on-demand",
        title: "MIN OD",
        min: 8,
        max: 10,
        drop: 5,
        right: true,
        whole: true,
        cell: |r, c| offer_price(r.cheapest_on_demand.as_ref(), true, c.now),
        key: Some(|r| key(r.cheapest_on_demand.as_ref())),
    },
    Column {
        name: "median",
        title: "MEDIAN",
        min: 7,
        max: 9,
        drop: 0,
        right: true,
        whole: true,
        cell: |r, _| vec![r.median.map_or(("–".into(), Role::Muted), |p| (figure(p).into(), Role::Text))],
        key: Some(|r| r.median.map_or(SortKey::Missing, |p| SortKey::Integer(p.micros()))),
    },
    Column {
        name: "dearest",
        title: "MAX",
        min: 7,
        max: 9,
        drop: 3,
        right: true,
        whole: true,
        cell: |r, c| offer_price(r.dearest.as_ref(), true, c.now),
        key: Some(|r| key(r.dearest.as_ref())),
    },
    Column {
        name: "spread",
        title: "SPREAD",
        min: 7,
        max: 8,
        drop: 2,
        right: true,
        whole: true,
        cell: |r, _| vec![(percent(r.spread_percent).into(), Role::Text)],
        key: Some(|r| r.spread_percent.map_or(SortKey::Missing, SortKey::Float)),
    },
    Column {
        name: "discount",
        title: "SPOT−",
        min: 6,
        max: 7,
        drop: 4,
        right: true,
        whole: true,
        cell: |r, _| {
            vec![(percent(r.spot_discount).into(), if r.spot_discount.is_some() { Role::Cheaper } else { Role::Muted })]
        },
        key: Some(|r| r.spot_discount.map_or(SortKey::Missing, SortKey::Float)),
    },
    Column {
        name: "trend",
        title: "24 H",
        min: 7,
        max: 12,
        drop: 6,
        right: true,
        whole: true,
        cell: |r, _| vec![trend(r)],
        key: Some(|r| r.trend.map_or(SortKey::Missing, |(p, _)| SortKey::Float(p))),
    },
    Column {
        name: "arbitrage",
        title: "MOVES SAVE",
        min: 10,
        max: 16,
        drop: 7,
        right: true,
        whole: true,
        cell: |r, _| vec![arbitrage(r)],
        key: Some(|r| r.arbitrage.map_or(SortKey::Missing, |(saves, _)| SortKey::Integer(saves.micros()))),
    },
    Column {
        name: "offers",
        title: "OFFERS",
        min: 6,
        max: 8,
        drop: 8,
        right: true,
        whole: true,
        cell: |r, _| vec![(grouped(r.offers).into(), Role::Muted)],
        key: Some(|r| SortKey::Integer(i64::try_from(r.offers).unwrap_or(i64::MAX))),
    },
];

fn cheapest_place(row: &PriceRow) -> Vec<Part<'_>> {
    let Some(offer) = &row.cheapest else { return vec![("no price".into(), Role::Muted)] };
    let place = format!("{}/{}", offer.key.provider, offer.key.region);
    if row.obtainable {
        vec![(place.into(), Role::Text)]
    } else {
        vec![(format!("(sold out) {place}").into(), Role::None)]
    }
}

/// How the cheapest is paid for.
fn cheapest_paid(row: &PriceRow) -> Vec<Part<'_>> {
    let paid = row.cheapest.as_ref().map_or("–", |o| match o.key.purchase {
        Purchase::OnDemand => "od",
        Purchase::Spot => "spot",
        Purchase::Reserved => "resv",
    });
    vec![(paid.into(), Role::Muted)]
}

/// The change with its direction; where it was watched for less than a day, over how long.
fn trend(row: &PriceRow) -> Part<'static> {
    match row.trend {
        None => ("–".into(), Role::Muted),
        Some((percent, hours)) => {
            let mark = if percent > 0.05 {
                "▲"
            } else if percent < -0.05 {
                "▼"
            } else {
                "="
            };
            let over = if hours < 23.0 { format!(" {hours:.0}h") } else { String::new() };
            let role = if percent > 0.05 {
                Role::Dearer
            } else if percent < -0.05 {
                Role::Cheaper
            } else {
                Role::Muted
            };
            (format!("{mark}{:.1}%{over}", percent.abs()).into(), role)
        }
    }
}

fn arbitrage(row: &PriceRow) -> Part<'static> {
    match row.arbitrage {
        Some((saves, jobs)) if saves > Money::ZERO => (format!("{saves} ({jobs})").into(), Role::Cheaper),
        Some(_) => ("none".into(), Role::Muted),
        None => ("–".into(), Role::Muted),
    }
}

impl Row for PriceRow {
    fn id(&self) -> RowId {
        RowId::Gpu(self.gpu.clone())
    }
    fn is(&self, id: &RowId) -> bool {
        matches!(id, RowId::Gpu(gpu) if *gpu == self.gpu)
    }
    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }
    /// What the first place rests on is old.
    fn stale(&self) -> bool {
        self.cheapest.as_ref().is_some_and(|o| o.stale)
    }
}

impl Filterable for PriceRow {
    const TEXTS: &'static [&'static str] = &["gpu", "cloud", "region"];
    const NUMBERS: &'static [&'static str] = &["price", "median", "spread", "discount", "offers"];
    const FLAGS: &'static [&'static str] = &["available", "spot", "on-demand"];

    fn texts(&self, field: Option<&str>, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let of = |name: &str| field.is_none_or(|f| f == name);
        of("gpu") && visit(self.gpu.as_str())
            || of("cloud") && self.cheapest.as_ref().is_some_and(|o| visit(o.key.provider.as_str()))
            || of("region") && self.cheapest.as_ref().is_some_and(|o| visit(o.key.region.as_str()))
    }
    fn number(&self, field: &str) -> Option<f64> {
        match field {
            "price" => self.cheapest.as_ref().and_then(|o| o.price_per_gpu()).map(GpuHourlyRate::to_usd),
            "median" => self.median.map(GpuHourlyRate::to_usd),
            "spread" => self.spread_percent,
            "discount" => self.spot_discount,
            "offers" => Some(self.offers as f64),
            _ => None,
        }
    }
    fn flag(&self, word: &str) -> bool {
        match word {
            "available" => self.obtainable,
            "spot" => self.cheapest.as_ref().is_some_and(|o| o.key.purchase == Purchase::Spot),
            "on-demand" => self.cheapest.as_ref().is_some_and(|o| o.key.purchase == Purchase::OnDemand),
            _ => false,
        }
    }
}
