//! How far apart prices are, by accelerator; worked out from the same rows that are shown one by one.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::history::History;
use super::order::{by_price, gpu_price};
use super::snapshot::Snapshot;
use crate::config::limits;
use crate::domain::{
    Accelerator, Availability, GpuHourlyRate, InstanceType, Location, Offer, ProviderId, Purchase, Region,
};

/// Prices of one accelerator, all per GPU-hour. Each figure says in its name which statistic it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Which chip.
    pub accelerator: Accelerator,
    /// Where; `None` where it is over all places.
    pub place: Option<Location>,
    /// Over all offers, whatever the purchase model.
    pub all: Figures,
    /// Over on-demand offers.
    pub on_demand: Figures,
    /// Over spot offers.
    pub spot: Figures,
    /// Over reserved offers.
    pub reserved: Figures,
    /// How much spot is below on-demand; `None` where no machine has both prices in one region.
    pub spot_discount: Option<SpotDiscount>,
    /// How prices moved; `None` where nothing has been watched for [`limits::TREND_MIN`].
    pub trend: Option<Trend>,
}

/// Figures over some offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// How many offers, priced or not.
    pub offers: usize,
    /// Those without a known price: counted, never the cheapest, in none of the figures below.
    pub unpriced: usize,
    /// Those that the evidence says cannot be had now.
    pub unavailable: usize,
    /// Those past their source's age limit.
    pub stale: usize,
    /// The cheapest with a known price, whether or not it can be had. Equal prices: the first by key.
    pub min: Option<Arc<Offer>>,
    /// The cheapest of which nothing says that it cannot be had.
    pub min_available: Option<Arc<Offer>>,
    /// The middle price, the mean of the two middle ones where their number is even; offers that cannot be had
    /// included.
    pub median: Option<GpuHourlyRate>,
    /// The dearest. Equal prices: the last by key.
    pub max: Option<Arc<Offer>>,
    /// (dearest − cheapest) / cheapest, in percent.
    pub spread_percent: Option<f64>,
}

/// How much spot is below on-demand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpotDiscount {
    /// The median over spot offers of (1 − spot / cheapest on-demand price of the same machine in the same region), in
    /// percent; negative where spot is dearer.
    pub median_percent: f64,
    /// Over so many spot offers.
    pub offers: usize,
}

/// How prices moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The median change of an offer's live price, in percent.
    pub median_percent: f64,
    /// Over how long: [`limits::TREND_WINDOW`], or less where offers have not been watched for so long (their median).
    pub over: Duration,
    /// Over so many offers.
    pub offers: usize,
}

/// The machine of an offer in its region, whatever its zone and purchase model.
type Machine<'a> = (&'a ProviderId, &'a Region, &'a InstanceType);

/// What offers are put together under besides their accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpreadBy {
    /// Nothing else.
    #[default]
    Accelerator,
    /// Their region.
    Region,
    /// Their zone; offers of a region that is not divided stand under the region.
    Zone,
}

/// Spreads of these accelerators, or of all, in the order of their names. An accelerator without offers has none.
pub fn spreads(snapshot: &Snapshot, only: Option<&[Accelerator]>) -> Vec<Spread> {
    spreads_by(snapshot, only, SpreadBy::Accelerator)
}

/// The same for each place by itself, in the order of accelerators, then of places.
pub fn spreads_by(snapshot: &Snapshot, only: Option<&[Accelerator]>, by: SpreadBy) -> Vec<Spread> {
    let mut groups: FxHashMap<(&Accelerator, Option<Location>), Group<'_>> = FxHashMap::default();
    for (offer, history) in snapshot.with_histories() {
        let accelerator = &offer.shape.accelerator;
        let place = match by {
            SpreadBy::Accelerator => None,
            SpreadBy::Region => Some(Location { zone: None, ..offer.key.location() }),
            SpreadBy::Zone => Some(offer.key.location()),
        };
        if only.is_none_or(|wanted| wanted.contains(accelerator)) {
            groups.entry((accelerator, place)).or_default().add(offer, history);
        }
    }
    let spread = |((accelerator, place), group): ((&Accelerator, Option<Location>), Group<'_>)| Spread {
        place,
        ..group.spread(accelerator.clone(), snapshot)
    };
    let mut spreads: Vec<Spread> = groups.into_iter().map(spread).collect();
    spreads.sort_by(|a, b| (&a.accelerator, &a.place).cmp(&(&b.accelerator, &b.place)));
    spreads
}

/// An offer of a group, with what every figure needs at hand.
struct Row<'a> {
    offer: &'a Arc<Offer>,
    history: Option<&'a History>,
    price: Option<GpuHourlyRate>,
    purchase: Purchase,
    unavailable: bool,
    stale: bool,
}

#[derive(Default)]
struct Group<'a> {
    rows: Vec<Row<'a>>,
}

impl<'a> Group<'a> {
    fn add(&mut self, offer: &'a Arc<Offer>, history: Option<&'a History>) {
        self.rows.push(Row {
            offer,
            history,
            price: gpu_price(offer),
            purchase: offer.key.purchase,
            unavailable: offer.availability == Availability::None,
            stale: offer.stale,
        });
    }

    /// Over all places.
    fn spread(&self, accelerator: Accelerator, snapshot: &Snapshot) -> Spread {
        let figures = |purchase| Figures::of(self.rows.iter().filter(move |r| r.purchase == purchase));
        Spread {
            accelerator,
            place: None,
            all: Figures::of(self.rows.iter()),
            on_demand: figures(Purchase::OnDemand),
            spot: figures(Purchase::Spot),
            reserved: figures(Purchase::Reserved),
            spot_discount: self.spot_discount(),
            trend: self.trend(snapshot),
        }
    }

    fn spot_discount(&self) -> Option<SpotDiscount> {
        let priced = |purchase| {
            let rows = self.rows.iter().filter(move |r| r.purchase == purchase);
            rows.filter_map(|r| r.price.map(|p| (machine(r.offer), p.to_usd())))
        };
        let mut on_demand: FxHashMap<Machine<'_>, f64> = FxHashMap::default();
        for (machine, price) in priced(Purchase::OnDemand) {
            on_demand.entry(machine).and_modify(|known| *known = known.min(price)).or_insert(price);
        }
        let mut discounts: Vec<f64> = priced(Purchase::Spot)
            .filter_map(|(machine, spot)| on_demand.get(&machine).map(|full| (1.0 - spot / full) * 100.0))
            .collect();
        let offers = discounts.len();
        median(&mut discounts).map(|median_percent| SpotDiscount { median_percent, offers })
    }

    fn trend(&self, snapshot: &Snapshot) -> Option<Trend> {
        let since = snapshot.at() - limits::TREND_WINDOW;
        let (mut changes, mut hours) = (Vec::new(), Vec::new());
        for row in self.rows.iter().filter(|r| r.offer.price_is_live) {
            let Some((percent, from)) = row.history.and_then(|h| h.change_percent(since)) else { continue };
            let over = (snapshot.at() - from).to_std().unwrap_or_default();
            if over >= limits::TREND_MIN {
                changes.push(percent);
                hours.push(over.as_secs_f64());
            }
        }
        let offers = changes.len();
        let median_percent = median(&mut changes)?;
        let over = Duration::try_from_secs_f64(median(&mut hours)?).ok()?;
        Some(Trend { median_percent, over, offers })
    }
}

fn machine(offer: &Offer) -> Machine<'_> {
    (&offer.key.provider, &offer.key.region, &offer.key.instance_type)
}

impl Figures {
    fn of<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Self {
        let mut figures = Self::default();
        let mut prices: Vec<i64> = Vec::new();
        let (mut min, mut min_available, mut max): (Option<&Row<'_>>, Option<&Row<'_>>, Option<&Row<'_>>) =
            (None, None, None);
        for row in rows {
            figures.offers += 1;
            figures.unavailable += usize::from(row.unavailable);
            figures.stale += usize::from(row.stale);
            let Some(price) = row.price else {
                figures.unpriced += 1;
                continue;
            };
            prices.push(price.micros());
            // One pass: cheaper than sorting, and the tie-breaks are those of the sorted list.
            if min.is_none_or(|known| row.is_cheaper_than(known)) {
                min = Some(row);
            }
            if !row.unavailable && min_available.is_none_or(|known| row.is_cheaper_than(known)) {
                min_available = Some(row);
            }
            if max.is_none_or(|known| known.is_cheaper_than(row)) {
                max = Some(row);
            }
        }
        if let (Some(low), Some(high)) = (min.and_then(|r| r.price), max.and_then(|r| r.price)) {
            figures.spread_percent = Some((high.to_usd() - low.to_usd()) / low.to_usd() * 100.0);
        }
        let shared = |row: Option<&Row<'_>>| row.map(|r| Arc::clone(r.offer));
        (figures.min, figures.min_available, figures.max) = (shared(min), shared(min_available), shared(max));
        figures.median = middle(&mut prices).map(GpuHourlyRate::from_micros);
        figures
    }
}

impl Row<'_> {
    /// By price, equal prices by key. Both have a price.
    fn is_cheaper_than(&self, other: &Row<'_>) -> bool {
        self.price.cmp(&other.price).then_with(|| by_price(self.offer, other.offer)).is_lt()
    }
}

/// The median of whole numbers, the mean of the two middle ones rounded half up.
fn middle(values: &mut [i64]) -> Option<i64> {
    let half = values.len() / 2;
    let odd = values.len() % 2 == 1;
    if values.is_empty() {
        return None;
    }
    let (below, upper, _) = values.select_nth_unstable(half);
    let upper = *upper;
    if odd {
        return Some(upper);
    }
    let lower = below.iter().max().copied()?;
    Some(lower + (upper - lower + 1) / 2)
}

/// The median of numbers.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    values.get(half.checked_sub(1)?).map(|lower| f64::midpoint(*lower, upper))
}
