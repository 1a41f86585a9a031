//! The simulated market: prices and stock of every offer at any moment, as a pure function of seed, time and offer.
//! Built once from the rows of a catalogue; nothing in it changes afterwards.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::noise::{between, keyed, mix, numbered, smooth, unit};
use super::profile::Profile;
use super::scarcity::Scarcity;
use super::shortage::Stream;
use crate::catalogue::Row;
use crate::domain::{Accelerator, HourlyRate, OfferKey, ProviderId, Purchase, Region, Shape, Zone};

const HOUR_MS: i64 = 3_600_000;
/// Spot prices change at most this often; a place's zones do it at moments of their own.
const REPRICE_MS: i64 = 10 * 60_000;
/// How much dearer a zone is on spot while nothing is left in it.
const SHORTAGE_PREMIUM: f64 = 0.15;
/// Prices are quoted to a hundredth of a cent.
const PRICE_STEP_MICROS: i64 = 100;
/// How far ahead a machine's end is looked for; beyond it, it is not reclaimed.
const HORIZON_MS: i64 = 400 * 24 * HOUR_MS;
/// How shortages are shared out over a cloud, its regions and their zones. With these shares zones of one region are
/// correlated about as in the traces that `shortage` names.
const CLOUD_SHARE: f64 = 0.08;
const REGION_SHARE: f64 = 0.45;
const ZONE_SHARE: f64 = 0.47;
/// Heat of regions and zones: a hot one runs short so many times as often as an ordinary one, and for longer.
const HEAT: (f64, f64) = (0.35, 2.1);

/// Whether the market has bad days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weather {
    /// Shortages and reclaims as the seed has them.
    #[default]
    Seeded,
    /// Neither shortages nor reclaims; prices still move. For tests that bring their own misfortune.
    Calm,
}

/// How an offer is priced.
#[derive(Debug, Clone)]
enum Pricing {
    Unpriced,
    Fixed(HourlyRate),
    /// Around a mean, never above the on-demand price.
    Spot {
        mean: HourlyRate,
        cap: Option<HourlyRate>,
        region_seed: u64,
        zone_seed: u64,
        swing: f64,
    },
}

/// Machines of one accelerator in one place under one purchase model: offers of different sizes draw on the same GPUs.
#[derive(Debug)]
struct Pool {
    /// In ten-thousandths of a GPU, when nothing is short.
    stock: u64,
    /// What makes it short. Spot also suffers from what on-demand suffers from.
    streams: Vec<Arc<Stream>>,
    /// Reclaims an hour of one machine that have nothing to do with stock.
    reclaims_per_hour: f64,
}

/// A quota that an offer counts against.
#[derive(Debug)]
pub(super) struct Quota {
    /// Its code, one a region.
    pub(super) code: String,
    /// How much the account may use, in the unit that the cloud counts.
    pub(super) limit: f64,
    /// How much one machine uses.
    pub(super) needed: f64,
}

/// One offer.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) key: OfferKey,
    pub(super) shape: Arc<Shape>,
    /// Which quota one machine counts against.
    pub(super) quota: Option<Quota>,
    pricing: Pricing,
    pub(super) pool: usize,
    /// Interruptions a day while we hold nothing in the pool.
    idle_interruptions: f64,
}

/// All simulated clouds' offers.
#[derive(Debug)]
pub(super) struct Market {
    offers: Vec<Listed>,
    pools: Vec<Pool>,
    by_key: FxHashMap<OfferKey, usize>,
    providers: Vec<(ProviderId, Vec<usize>)>,
}

/// Stock of one offer at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stock {
    /// Machines that can still be had.
    pub(super) machines: u32,
    /// Share of the pool's stock that is missing, from 0 to 1.
    pub(super) missing: f64,
}

/// Builds pools and the streams that they share.
struct Builder {
    seed: u64,
    weather: Weather,
    streams: FxHashMap<u64, Arc<Stream>>,
    pools: Vec<Pool>,
    pool_of: FxHashMap<(ProviderId, Region, Option<Zone>, Accelerator, Purchase), usize>,
}

impl Builder {
    fn stream(&mut self, parts: &[&str], per_hour: f64, median_hours: f64) -> Arc<Stream> {
        let seed = keyed(self.seed, parts);
        let per_hour = if self.weather == Weather::Calm { 0.0 } else { per_hour };
        self.streams.entry(seed).or_insert_with(|| Arc::new(Stream::new(seed, per_hour, median_hours))).clone()
    }

    fn heat(&self, parts: &[&str]) -> f64 {
        between(mix(keyed(self.seed, parts) ^ 0x4EA7), HEAT.0, HEAT.1)
    }

    fn pool(&mut self, row: &Row, purchase: Purchase) -> usize {
        let accelerator = &row.shape.accelerator;
        let id = (row.provider.clone(), row.region.clone(), row.zone.clone(), accelerator.clone(), purchase);
        if let Some(known) = self.pool_of.get(&id) {
            return *known;
        }
        let class = Scarcity::of(accelerator);
        let (cloud, region, chip) = (row.provider.as_str(), row.region.as_str(), accelerator.as_str());
        let zone = row.zone.as_ref().map_or("", Zone::as_str);
        let region_heat = self.heat(&["heat", cloud, region]);
        let zone_heat = self.heat(&["heat", cloud, region, zone, chip]);
        let mut streams = Vec::new();
        let mut add = |this: &mut Self, name: &str, per_hour: f64, hours: f64| {
            streams.push(this.stream(&[name, "cloud", cloud, chip], per_hour * CLOUD_SHARE, hours));
            streams.push(this.stream(
                &[name, "region", cloud, region, chip],
                per_hour * REGION_SHARE * region_heat,
                hours * region_heat,
            ));
            streams.push(this.stream(
                &[name, "zone", cloud, region, zone, chip],
                per_hour * ZONE_SHARE * zone_heat,
                hours * zone_heat,
            ));
        };
        add(self, "on-demand", class.on_demand_shortages_per_hour, class.on_demand_median_hours);
        let spot = purchase == Purchase::Spot;
        if spot {
            add(self, "spot", class.spot_shortages_per_hour, class.spot_median_hours);
        }
        let (least, most) = if spot { class.spot_gpus } else { class.on_demand_gpus };
        let size = keyed(self.seed, &["stock", purchase.as_str(), cloud, region, zone, chip]);
        // Squared: many small zones, few large ones. Whole nodes of eight, so that the largest shapes fit.
        let gpus = ((least + (most - least) * unit(size).powi(2)) / 8.0).ceil() * 8.0;
        let reclaims = if spot && self.weather == Weather::Seeded { class.reclaims_per_hour * zone_heat } else { 0.0 };
        let index = self.pools.len();
        self.pools.push(Pool { stock: (gpus * 10_000.0) as u64, streams, reclaims_per_hour: reclaims });
        self.pool_of.insert(id, index);
        index
    }
}

impl Market {
    /// From rows. Rows that would make the same offer twice count once.
    pub(super) fn build(rows: &[Row], seed: u64, weather: Weather) -> Self {
        let mut builder =
            Builder { seed, weather, streams: FxHashMap::default(), pools: Vec::new(), pool_of: FxHashMap::default() };
        let mut offers: Vec<Listed> = Vec::with_capacity(rows.len() * 2);
        let mut by_key = FxHashMap::default();
        let mut providers: Vec<(ProviderId, Vec<usize>)> = Vec::new();
        for row in rows {
            let profile = Profile::of(row.provider.as_str());
            for purchase in [Purchase::OnDemand, Purchase::Spot] {
                if purchase == Purchase::Spot && row.spot.is_none() {
                    continue;
                }
                let key = row.key(purchase);
                if by_key.contains_key(&key) || row.shape.accelerators.ten_thousandths() == 0 {
                    continue;
                }
                let pool = builder.pool(row, purchase);
                let quota = profile.quota_of(&row.shape, purchase).map(|(code, needed)| {
                    let limit = quota_limit(seed, &profile, row, &code);
                    Quota { code, limit, needed }
                });
                let mut listed = Listed {
                    pricing: pricing(seed, row, purchase),
                    shape: row.shape.clone(),
                    quota,
                    pool,
                    key,
                    idle_interruptions: 0.0,
                };
                if let (Purchase::Spot, Some(pool)) = (purchase, builder.pools.get(pool)) {
                    listed.idle_interruptions = pool.interruptions_per_day(listed.gpus());
                }
                let index = offers.len();
                by_key.insert(listed.key.clone(), index);
                match providers.iter_mut().find(|(p, _)| *p == row.provider) {
                    Some((_, of)) => of.push(index),
                    None => providers.push((row.provider.clone(), vec![index])),
                }
                offers.push(listed);
            }
        }
        providers.sort_by(|a, b| a.0.cmp(&b.0));
        Self { offers, pools: builder.pools, by_key, providers }
    }

    /// The clouds, in the order of their names.
    pub(super) fn providers(&self) -> impl Iterator<Item = &ProviderId> {
        self.providers.iter().map(|(id, _)| id)
    }

    /// All offers of a cloud.
    pub(super) fn of(&self, provider: &ProviderId) -> impl Iterator<Item = &Listed> + use<'_> {
        let of = self.providers.binary_search_by(|(p, _)| p.cmp(provider)).ok();
        let of = of.and_then(|i| self.providers.get(i)).map_or(&[][..], |(_, of)| of);
        of.iter().filter_map(|i| self.offers.get(*i))
    }

    /// One offer.
    pub(super) fn get(&self, key: &OfferKey) -> Option<&Listed> {
        self.by_key.get(key).and_then(|i| self.offers.get(*i))
    }

    /// Stock of an offer while we hold so many ten-thousandths of a GPU in its pool.
    pub(super) fn stock(&self, offer: &Listed, held: u64, at_ms: i64) -> Stock {
        let none = Stock { machines: 0, missing: 1.0 };
        let Some(pool) = self.pools.get(offer.pool) else { return none };
        if matches!(offer.pricing, Pricing::Unpriced) {
            return none;
        }
        let missing = pool.missing(at_ms);
        let left = pool.left(missing).saturating_sub(held);
        let machines = u32::try_from(left / offer.gpus().max(1)).unwrap_or(u32::MAX);
        Stock { machines, missing }
    }

    /// What an instance costs now, given the share of its pool that is missing.
    pub(super) fn price(offer: &Listed, missing: f64, at_ms: i64) -> Option<HourlyRate> {
        match &offer.pricing {
            Pricing::Unpriced => None,
            Pricing::Fixed(rate) => Some(*rate),
            Pricing::Spot { mean, cap, region_seed, zone_seed, swing } => {
                // Each zone re-prices at a phase of its own.
                let phase = (*zone_seed % REPRICE_MS.unsigned_abs()).cast_signed();
                let tick = (at_ms + phase).div_euclid(REPRICE_MS) * REPRICE_MS - phase;
                let stray = 0.40 * smooth(*region_seed, tick, 36 * HOUR_MS)
                    + 0.20 * smooth(mix(*region_seed), tick, 5 * HOUR_MS)
                    + 0.30 * smooth(*zone_seed, tick, 11 * HOUR_MS)
                    + 0.10 * smooth(mix(*zone_seed), tick, HOUR_MS);
                let rate = mean.scaled((swing * stray).exp() * (1.0 + SHORTAGE_PREMIUM * missing));
                let steps = (rate.micros() / PRICE_STEP_MICROS).max(1);
                let rate = HourlyRate::from_micros(steps * PRICE_STEP_MICROS);
                Some(cap.map_or(rate, |cap| rate.min(cap)))
            }
        }
    }

    /// Interruptions a day that one more machine must expect, while we hold so many ten-thousandths of a GPU there.
    pub(super) fn interruptions_per_day(&self, offer: &Listed, held: u64) -> f64 {
        match self.pools.get(offer.pool) {
            Some(pool) if offer.key.purchase == Purchase::Spot && held > 0 => {
                pool.interruptions_per_day(held + offer.gpus())
            }
            _ => offer.idle_interruptions,
        }
    }

    /// When a spot machine launched now will be told that it is taken away: at the first shortage that cuts below its
    /// place in the pool (what we held there already, and itself), or at a reclaim of its own, whichever is first.
    pub(super) fn reclaimed_at(&self, offer: &Listed, held: u64, machine_seed: u64, at_ms: i64) -> Option<i64> {
        if offer.key.purchase != Purchase::Spot {
            return None;
        }
        let pool = self.pools.get(offer.pool)?;
        let mut until = at_ms + HORIZON_MS;
        let mut first = None;
        if pool.reclaims_per_hour > 0.0 {
            let hours = -unit(numbered(machine_seed, 0x7ec1)).ln() / pool.reclaims_per_hour;
            let at = at_ms + (hours * HOUR_MS as f64) as i64;
            if at < until {
                (until, first) = (at, Some(at));
            }
        }
        let threshold = pool.harmless(held + offer.gpus());
        for stream in &pool.streams {
            if let Some(at) = stream.next_above(threshold, at_ms, until) {
                (until, first) = (at, Some(at));
            }
        }
        first
    }
}

impl Pool {
    fn missing(&self, at_ms: i64) -> f64 {
        self.streams.iter().map(|s| s.severity(at_ms)).fold(0.0, f64::max)
    }

    fn left(&self, missing: f64) -> u64 {
        (self.stock as f64 * (1.0 - missing)).floor() as u64
    }

    /// The deepest shortage that a machine lives through whose place in the pool is this.
    fn harmless(&self, place: u64) -> f64 {
        1.0 - place as f64 / self.stock.max(1) as f64
    }

    fn interruptions_per_day(&self, place: u64) -> f64 {
        let threshold = self.harmless(place);
        let shortages: f64 = self.streams.iter().map(|s| s.per_hour_above(threshold)).sum();
        24.0 * (shortages + self.reclaims_per_hour)
    }
}

impl Listed {
    /// GPUs of one machine, in ten-thousandths.
    pub(super) fn gpus(&self) -> u64 {
        u64::from(self.shape.accelerators.ten_thousandths())
    }
}

/// How much of a quota the account has; the same for all that count against it.
fn quota_limit(seed: u64, profile: &Profile, row: &Row, code: &str) -> f64 {
    let limits = profile.quota_limits();
    let draw = unit(keyed(seed, &["quota", row.provider.as_str(), row.region.as_str(), code]));
    limits.get((draw * limits.len() as f64) as usize).copied().unwrap_or(0.0)
}

fn pricing(seed: u64, row: &Row, purchase: Purchase) -> Pricing {
    let chip = row.shape.accelerator.as_str();
    let (cloud, region) = (row.provider.as_str(), row.region.as_str());
    let zone = row.zone.as_ref().map_or("", Zone::as_str);
    match (purchase, row.on_demand, row.spot) {
        (Purchase::Spot, cap, Some(mean)) => Pricing::Spot {
            mean,
            cap,
            region_seed: keyed(seed, &["price", cloud, region, chip]),
            zone_seed: keyed(seed, &["price", cloud, region, zone, row.shape.instance_type.as_str()]),
            swing: Scarcity::of(&row.shape.accelerator).price_swing,
        },
        (Purchase::OnDemand, Some(rate), _) => Pricing::Fixed(rate),
        _ => Pricing::Unpriced,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{AcceleratorCount, Interconnect};

    /// One scarce chip in four zones of each of six regions, one common chip in the same.
    fn rows() -> Vec<Row> {
        let shape = |name: &str, chip: &str, gpus: u32| {
            Arc::new(Shape {
                instance_type: name.into(),
                accelerator: Accelerator::from_canonical(chip),
                accelerators: AcceleratorCount::whole(gpus),
                gpu_memory_gib: Some(80.0),
                vcpus: Some(24 * gpus),
                memory_gib: Some(256.0),
                interconnect: Interconnect::Unknown,
            })
        };
        let shapes = [
            (shape("p5.48xlarge", "H100-80GB-SXM", 8), 55.04),
            (shape("p5.4xlarge", "H100-80GB-SXM", 1), 6.88),
            (shape("g4dn.xlarge", "T4-16GB", 1), 0.526),
        ];
        let mut rows = Vec::new();
        for region in 0..6 {
            for zone in 0..4 {
                for (shape, usd) in &shapes {
                    rows.push(Row {
                        provider: "aws".into(),
                        region: format!("region-{region}").into(),
                        zone: Some(format!("r{region}-az{zone}").into()),
                        shape: shape.clone(),
                        on_demand: HourlyRate::from_usd(*usd).ok(),
                        spot: HourlyRate::from_usd(usd * 0.4).ok(),
                        interruptions_per_day: None,
                    });
                }
            }
        }
        rows
    }

    fn offers<'a>(market: &'a Market, shape: &str, purchase: Purchase) -> Vec<&'a Listed> {
        let all = market.of(&"aws".into());
        all.filter(|o| o.key.instance_type == *shape && o.key.purchase == purchase).collect()
    }

    /// Up fraction, and lengths of outages in hours, sampled every five minutes over so many days.
    fn history(market: &Market, offer: &Listed, days: i64) -> (f64, Vec<f64>) {
        let step = 300_000;
        let (mut up, mut outages, mut down) = (0_u32, Vec::new(), 0_u32);
        let samples = days * 24 * 12;
        for i in 0..samples {
            if market.stock(offer, 0, i * step).machines > 0 {
                up += 1;
                if down > 0 {
                    outages.push(f64::from(down) / 12.0);
                }
                down = 0;
            } else {
                down += 1;
            }
        }
        outages.sort_by(f64::total_cmp);
        (f64::from(up) / samples as f64, outages)
    }

    fn correlation(a: &[bool], b: &[bool]) -> f64 {
        let mean = |x: &[bool]| x.iter().filter(|v| **v).count() as f64 / x.len() as f64;
        let (ma, mb) = (mean(a), mean(b));
        let both = a.iter().zip(b).filter(|(x, y)| **x && **y).count() as f64 / a.len() as f64;
        (both - ma * mb) / (ma * (1.0 - ma) * mb * (1.0 - mb)).sqrt()
    }

    /// The stated ranges: where the traces put hot and ordinary zones. Printed, for `--nocapture`.
    #[test]
    fn zones_are_up_and_down_for_as_long_as_stated() {
        let market = Market::build(&rows(), 7, Weather::Seeded);
        println!("offer                  zones  up min/mean/max        median outage h  mean outage h");
        let figure = |shape: &str, purchase: Purchase| {
            let mut ups = Vec::new();
            let mut outages = Vec::new();
            for offer in offers(&market, shape, purchase) {
                let (up, mut of) = history(&market, offer, 40);
                ups.push(up);
                outages.append(&mut of);
            }
            ups.sort_by(f64::total_cmp);
            outages.sort_by(f64::total_cmp);
            let mean = ups.iter().sum::<f64>() / ups.len() as f64;
            let median_outage = outages.get(outages.len() / 2).copied().unwrap_or(0.0);
            let mean_outage = outages.iter().sum::<f64>() / outages.len().max(1) as f64;
            println!(
                "{shape:<12} {purchase:<9} {:>5}  {:.2} / {mean:.2} / {:.2}   {median_outage:>17.2} {mean_outage:>14.2}",
                ups.len(),
                ups[0],
                ups[ups.len() - 1]
            );
            (ups[0], mean, ups[ups.len() - 1], median_outage, mean_outage)
        };
        let (hot, mean, cool, median, mean_outage) = figure("p5.4xlarge", Purchase::Spot);
        assert!((0.30..0.70).contains(&hot) && (0.55..0.90).contains(&mean) && cool > 0.85);
        assert!((0.3..1.5).contains(&median) && (0.8..4.5).contains(&mean_outage));
        let (_, eight, ..) = figure("p5.48xlarge", Purchase::Spot);
        assert!(eight < mean, "a whole node is harder to get than one GPU");
        let (_, on_demand, ..) = figure("p5.48xlarge", Purchase::OnDemand);
        assert!((0.75..0.97).contains(&on_demand));
        let (worst, common, ..) = figure("g4dn.xlarge", Purchase::Spot);
        assert!(worst > 0.85 && common > 0.95);
        let (_, common, ..) = figure("g4dn.xlarge", Purchase::OnDemand);
        assert!(common > 0.985);
    }

    #[test]
    fn zones_of_a_region_run_short_together() {
        let market = Market::build(&rows(), 7, Weather::Seeded);
        let spot = offers(&market, "p5.4xlarge", Purchase::Spot);
        let series: Vec<(Region, Vec<bool>)> = spot
            .iter()
            .map(|o| {
                let up = (0..60 * 24 * 6).map(|i| market.stock(o, 0, i * 600_000).machines > 0).collect();
                (o.key.region.clone(), up)
            })
            .collect();
        let (mut same, mut other) = (Vec::new(), Vec::new());
        for (i, (region, a)) in series.iter().enumerate() {
            for (r, b) in &series[i + 1..] {
                if r == region { &mut same } else { &mut other }.push(correlation(a, b));
            }
        }
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        println!("correlation of zones: same region {:.2}, other regions {:.2}", mean(&same), mean(&other));
        assert!((0.25..0.65).contains(&mean(&same)) && (0.02..0.3).contains(&mean(&other)));
    }

    /// The interruptions that an offer states are those that its machines have.
    #[test]
    fn stated_interruptions_are_the_ones_that_happen() {
        let market = Market::build(&rows(), 7, Weather::Seeded);
        let mut rates = Vec::new();
        for offer in offers(&market, "p5.48xlarge", Purchase::Spot) {
            let stated = market.interruptions_per_day(offer, 0);
            let (mut hours, mut machines) = (0.0, 0_u32);
            // Launch whenever there is stock, run until taken, launch again.
            for start in (0..2_000).map(|i| i * 9 * HOUR_MS + i * 977) {
                if market.stock(offer, 0, start).machines == 0 {
                    continue;
                }
                let seed = numbered(99, start);
                let Some(end) = market.reclaimed_at(offer, 0, seed, start) else { continue };
                hours += (end - start) as f64 / HOUR_MS as f64;
                machines += 1;
            }
            let real = 24.0 * f64::from(machines) / hours;
            assert!((real / stated - 1.0).abs() < 0.12, "{}: stated {stated:.2}, real {real:.2}", offer.key);
            rates.push(24.0 / stated);
        }
        rates.sort_by(f64::total_cmp);
        println!("hours between preemptions of 8xH100 spot: {:.1} … {:.1}", rates[0], rates[rates.len() - 1]);
        assert!((3.0..8.0).contains(&rates[0]), "in the hottest zone {} h", rates[0]);
        assert!(rates[rates.len() - 1] > 10.0);
    }

    #[test]
    fn spot_prices_wander_around_their_mean() {
        let market = Market::build(&rows(), 7, Weather::Seeded);
        let mut relative = Vec::new();
        for offer in offers(&market, "p5.48xlarge", Purchase::Spot) {
            for i in 0..2_000 {
                let at = i * 3 * HOUR_MS;
                let price = Market::price(offer, market.stock(offer, 0, at).missing, at).expect("priced");
                relative.push(price.to_usd() / (55.04 * 0.4));
            }
        }
        let mean = relative.iter().sum::<f64>() / relative.len() as f64;
        let (low, high) = relative.iter().fold((f64::MAX, 0.0_f64), |(l, h), p| (l.min(*p), h.max(*p)));
        println!("spot price over its catalogue mean: {low:.2} … {mean:.3} … {high:.2}");
        assert!((0.95..1.10).contains(&mean) && low < 0.85 && high > 1.2);
    }

    #[test]
    fn b6_what_has_no_price_keeps_having_none() {
        let mut rows = rows();
        for row in &mut rows {
            row.on_demand = None;
        }
        let market = Market::build(&rows, 7, Weather::Seeded);
        for offer in offers(&market, "p5.48xlarge", Purchase::OnDemand) {
            let stock = market.stock(offer, 0, 0);
            assert_eq!((Market::price(offer, stock.missing, 0), stock.machines), (None, 0));
        }
        assert!(!offers(&market, "p5.48xlarge", Purchase::Spot).is_empty());
    }

    proptest! {
        /// The market is a function of seed and time: asked in any order, by another instance of it, it says the same;
        /// spot is never dearer than on-demand; what we hold is not there to be had.
        #[test]
        fn the_market_is_a_function_of_seed_and_time(
            seed in any::<u64>(), times in proptest::collection::vec(-4_000_000_000_000_i64..4_000_000_000_000, 1..12),
        ) {
            let rows = &rows()[..6];
            let (one, two) = (Market::build(rows, seed, Weather::Seeded), Market::build(rows, seed, Weather::Seeded));
            let ask = |market: &Market, at: i64| -> Vec<(Stock, Option<HourlyRate>)> {
                let all = market.of(&"aws".into()).map(|o| {
                    let stock = market.stock(o, 0, at);
                    (stock, Market::price(o, stock.missing, at))
                });
                all.collect()
            };
            let forwards: Vec<_> = times.iter().map(|t| ask(&one, *t)).collect();
            let mut backwards: Vec<_> = times.iter().rev().map(|t| ask(&two, *t)).collect();
            backwards.reverse();
            prop_assert_eq!(forwards, backwards);
            for offer in one.of(&"aws".into()) {
                for t in &times {
                    let stock = one.stock(offer, 0, *t);
                    let price = Market::price(offer, stock.missing, *t);
                    if let Pricing::Spot { cap: Some(cap), .. } = &offer.pricing {
                        prop_assert!(price.is_some_and(|p| p <= *cap && p > HourlyRate::ZERO));
                    }
                    let fewer = one.stock(offer, offer.gpus(), *t).machines;
                    prop_assert_eq!(fewer, stock.machines.saturating_sub(1));
                }
            }
        }
    }
}
