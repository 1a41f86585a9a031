//! `gpudeck offers`: what can be rented now.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{availability, chips, evidence, market, place_of, price};
use crate::catalogue::regions;
use crate::cli::app::App;
use crate::cli::args::OffersArgs;
use crate::cli::facts::{self, WorldFacts};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::output::{Cell, Column, Style, Table, age};
use crate::cli::shapes::OfferShape;
use crate::config::job_file::Facts as _;
use crate::config::reader::nearest_word;
use crate::domain::{Accelerator, Availability, Location, Offer};
use crate::market::Snapshot;

/// Run it.
pub async fn run(app: &App, args: &OffersArgs) -> Outcome {
    let sort = Sort::parse(&args.sort)?;
    let market = market(app).await?;
    let chips_wanted = accelerators(&args.gpu, &market.snapshot)?;
    known(app, args, &market.snapshot)?;
    let mut offers: Vec<&Arc<Offer>> =
        market.snapshot.iter().filter(|offer| wanted(offer, args, chips_wanted.as_deref())).collect();
    offers.sort_by(|a, b| sort.compare(a, b));
    let found = offers.len();
    offers.truncate(args.limit.unwrap_or(usize::MAX));
    if app.out.json {
        let shapes: Vec<OfferShape<'_>> = offers.iter().map(|o| OfferShape::from(&***o)).collect();
        app.out.document(&shapes)?;
        return Ok(market.exit);
    }
    let mut table = Table::new(vec![
        Column::new("GPU"),
        Column::new("PLACE").cut_to(16),
        Column::new("TYPE").cut_to(14).leaves(2),
        Column::new("BUY").leaves(1),
        Column::new("$/GPU-H").right(),
        Column::new("$/H").right().leaves(3),
        Column::new("STOCK"),
        Column::new("BY").leaves(5),
        Column::new("AGE").right().leaves(4),
        Column::new("LAW").leaves(6),
        Column::new("VCPU").right().leaves(8),
        Column::new("MEM GIB").right().leaves(7),
    ]);
    for offer in &offers {
        table.row(row(app, offer, market.now));
    }
    app.out.table(&table)?;
    let more = found - offers.len();
    let rest = if more > 0 { format!(", {more} more not shown (--limit)") } else { String::new() };
    app.out.note(&format!("{} offers{rest}; * published, not live", offers.len()));
    Ok(market.exit)
}

/// A provider, region or law that nobody knows is a typing error, not an empty market.
fn known(app: &App, args: &OffersArgs, market: &Snapshot) -> Outcome<()> {
    let facts = WorldFacts::new(app.catalogue(), Some(market));
    for provider in &args.provider {
        facts::known("--provider", provider, &facts.providers())?;
    }
    for law in args.jurisdiction.iter().filter(|law| facts.within(law).is_empty()) {
        facts::known("--jurisdiction", law, &facts.jurisdictions())?;
    }
    for region in &args.region {
        if let Ok(place) = region.parse::<Location>() {
            facts.place("--region", &place)?;
        } else {
            let all: BTreeSet<&str> = market.iter().map(|o| o.key.region.as_str()).collect();
            let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
            facts::known("--region", region, &all)?;
        }
    }
    Ok(())
}

/// The accelerators that the names mean; `None` where none is named.
pub(super) fn accelerators(names: &[String], market: &Snapshot) -> Outcome<Option<Vec<Accelerator>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for name in names {
        all.extend(facts::select(name, Some(market)).map_err(|e| Failure::usage(format!("--gpu: {e}")))?);
    }
    Ok(Some(all))
}

fn wanted(offer: &Offer, args: &OffersArgs, accelerators: Option<&[Accelerator]>) -> bool {
    accelerators.is_none_or(|all| all.contains(&offer.shape.accelerator))
        && args.count.is_none_or(|count| offer.shape.accelerators.floor() >= count)
        && (args.provider.is_empty() || args.provider.iter().any(|p| offer.key.provider == p.as_str()))
        && (args.region.is_empty() || args.region.iter().any(|r| in_region(offer, r)))
        && (args.jurisdiction.is_empty()
            || offer
                .jurisdiction
                .as_deref()
                .is_some_and(|law| args.jurisdiction.iter().any(|j| regions::is_within(law, j))))
        && (args.purchase.is_empty() || args.purchase.contains(&offer.key.purchase))
        && args.max_price.is_none_or(|max| offer.price_per_gpu().is_some_and(|p| p <= max))
        && (!args.available || matches!(offer.availability, Availability::Available | Availability::Limited))
}

/// `us-east-1`, `aws/us-east-1` or `aws/us-east-1/use1-az4`.
fn in_region(offer: &Offer, region: &str) -> bool {
    match region.parse::<Location>() {
        Ok(place) => place.contains(&offer.key.location()),
        Err(_) => offer.key.region == *region,
    }
}

fn row(app: &App, offer: &Offer, now: chrono::DateTime<chrono::Utc>) -> Vec<Cell> {
    let unknown = app.out.unknown();
    let seen = age(now, offer.observed_at);
    vec![
        Cell::new(chips(offer)),
        Cell::new(place_of(offer)),
        Cell::new(offer.key.instance_type.as_str()),
        Cell::new(offer.key.purchase.to_string()),
        price(app, offer.price_per_gpu().map(|p| dollars(p.micros())), offer.price_is_live),
        price(app, offer.price.map(|p| dollars(p.micros())), offer.price_is_live),
        availability(offer),
        Cell::new(evidence(offer)).style(Style::Dim),
        if offer.stale { Cell::new(format!("{seen} old")).style(Style::Warn) } else { Cell::new(seen) },
        Cell::new(offer.jurisdiction.as_deref().unwrap_or(unknown)),
        Cell::new(offer.shape.vcpus.map_or_else(|| unknown.to_owned(), |n| n.to_string())),
        Cell::new(offer.shape.memory_gib.map_or_else(|| unknown.to_owned(), |n| format!("{n:.0}"))),
    ]
}

/// An amount whose unit stands in the head of its column; four decimals, as price lists have.
pub(super) fn dollars(micros: i64) -> String {
    format!("{:.4}", crate::domain::Money::from_micros(micros))
}

/// By which field of the shape, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sort {
    field: &'static str,
    descending: bool,
}

const FIELDS: [&str; 17] = [
    "provider",
    "region",
    "zone",
    "instance_type",
    "accelerator",
    "accelerators",
    "gpu_memory_gib",
    "vcpus",
    "memory_gib",
    "purchase",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "availability",
    "evidence",
    "observed_at",
    "jurisdiction",
    "interruptions_per_day",
];

impl Sort {
    fn parse(text: &str) -> Outcome<Self> {
        let (descending, name) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let name = if name == "price" { "usd_per_gpu_hour" } else { name };
        if let Some(field) = FIELDS.into_iter().find(|f| *f == name) {
            return Ok(Self { field, descending });
        }
        let hint = nearest_word(name, FIELDS).map(|f| format!("Did you mean {f}?"));
        Err(Failure::usage(format!("--sort: offers have no field '{name}'; there are {}", FIELDS.join(", ")))
            .hint(hint.unwrap_or_else(|| "-FIELD sorts the largest first.".to_owned())))
    }

    /// A total order: by the field, what is not known last in either direction, then by key.
    fn compare(self, a: &Offer, b: &Offer) -> Ordering {
        let known = |a: bool, b: bool| b.cmp(&a);
        let floats = |a: Option<f64>, b: Option<f64>| {
            known(a.is_some(), b.is_some()).then_with(|| self.turn(a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0))))
        };
        let by_field = match self.field {
            "provider" => self.turn(a.key.provider.cmp(&b.key.provider)),
            "region" => self.turn(a.key.region.cmp(&b.key.region)),
            "zone" => {
                known(a.key.zone.is_some(), b.key.zone.is_some()).then_with(|| self.turn(a.key.zone.cmp(&b.key.zone)))
            }
            "instance_type" => self.turn(a.key.instance_type.cmp(&b.key.instance_type)),
            "accelerator" => self.turn(a.shape.accelerator.cmp(&b.shape.accelerator)),
            "accelerators" => self.turn(a.shape.accelerators.cmp(&b.shape.accelerators)),
            "gpu_memory_gib" => floats(a.shape.gpu_memory_gib, b.shape.gpu_memory_gib),
            "vcpus" => floats(a.shape.vcpus.map(f64::from), b.shape.vcpus.map(f64::from)),
            "memory_gib" => floats(a.shape.memory_gib, b.shape.memory_gib),
            "purchase" => self.turn(a.key.purchase.cmp(&b.key.purchase)),
            "usd_per_hour" => {
                known(a.price.is_some(), b.price.is_some()).then_with(|| self.turn(a.price.cmp(&b.price)))
            }
            "availability" => self.turn(a.availability.cmp(&b.availability)),
            "evidence" => self.turn(a.evidence.cmp(&b.evidence)),
            "observed_at" => self.turn(a.observed_at.cmp(&b.observed_at)),
            "jurisdiction" => known(a.jurisdiction.is_some(), b.jurisdiction.is_some())
                .then_with(|| self.turn(a.jurisdiction.cmp(&b.jurisdiction))),
            "interruptions_per_day" => floats(a.interruptions_per_day, b.interruptions_per_day),
            _ => {
                let (a, b) = (a.price_per_gpu(), b.price_per_gpu());
                known(a.is_some(), b.is_some()).then_with(|| self.turn(a.cmp(&b)))
            }
        };
        by_field.then_with(|| a.key.cmp(&b.key))
    }

    const fn turn(self, order: Ordering) -> Ordering {
        if self.descending { order.reverse() } else { order }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cli::offers_file::tests::offer;
    use crate::domain::{HourlyRate, Purchase};

    #[test]
    fn an_unknown_field_names_the_nearest() {
        let failure = Sort::parse("usd_per_gpu").expect_err("unknown");
        assert_eq!(failure.exit.code(), 2);
        assert!(failure.hint.is_some_and(|h| h.contains("usd_per_gpu_hour")));
    }

    proptest! {
        #[test]
        fn b23_every_sort_is_total_and_unknown_prices_come_last(
            prices in proptest::collection::vec(proptest::option::of(0_i64..50), 2..40),
            field in 0..FIELDS.len(),
            descending in any::<bool>(),
        ) {
            let mut offers: Vec<Offer> = prices.iter().enumerate().map(|(i, price)| {
                let mut offer = offer("aws", "us-east-1", &format!("t{i}"), Purchase::Spot);
                offer.price = price.map(HourlyRate::from_micros);
                offer
            }).collect();
            let sort = Sort { field: FIELDS[field], descending };
            offers.sort_by(|a, b| sort.compare(a, b));
            for pair in offers.windows(2) {
                prop_assert_eq!(sort.compare(&pair[0], &pair[1]), Ordering::Less);
                if sort.field == "usd_per_hour" {
                    prop_assert!(pair[1].price.is_none() || pair[0].price.is_some());
                    if let (Some(a), Some(b)) = (pair[0].price, pair[1].price) {
                        let in_order = if descending { a >= b } else { a <= b };
                        prop_assert!(in_order);
                    }
                }
            }
        }
    }
}
