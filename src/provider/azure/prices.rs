//! Retail prices, from Microsoft's public price list: no token goes there. List prices in USD, without what an enterprise
//! agreement takes off.
//!
//! Of a machine's many meters those count that are for an hour of Linux on demand or on spot. What is Windows, a dedicated
//! host, a cloud service or the older "low priority" is another product at another price.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use url::Url;

use super::error;
use crate::config::limits::{
    AZURE_CALL_TIMEOUT, AZURE_MAX_BODY_BYTES, AZURE_PRICE_PAGES, AZURE_SKUS_A_QUESTION, LOOKS_AT_ONCE,
};
use crate::domain::{ErrorClass, HourlyRate, InstanceType, ProviderError, Purchase, Region};
use crate::provider::Result;

/// As the errors name it.
const OPERATION: &str = "RetailPrices_List";

/// What was asked for, and when.
#[derive(Debug, Default)]
pub(super) struct Prices {
    pub(super) at: DateTime<Utc>,
    asked: BTreeSet<InstanceType>,
    lines: FxHashMap<(Region, String), Line>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    on_demand: Option<Dated>,
    spot: Option<Dated>,
}

/// A price and since when it holds.
#[derive(Debug, Clone, Copy)]
struct Dated {
    since: DateTime<Utc>,
    rate: HourlyRate,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Page {
    #[serde(rename = "Items")]
    items: Vec<serde_json::Value>,
    #[serde(rename = "NextPageLink")]
    next: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meter {
    currency_code: String,
    retail_price: f64,
    arm_region_name: String,
    arm_sku_name: String,
    sku_name: String,
    #[serde(rename = "meterName")]
    counted_as: String,
    product_name: String,
    unit_of_measure: String,
    #[serde(rename = "type")]
    kind: String,
    tier_minimum_units: f64,
    effective_start_date: Option<DateTime<Utc>>,
}

impl Prices {
    /// Whether all these types were asked for.
    pub(super) fn covers(&self, types: &BTreeSet<InstanceType>) -> bool {
        types.is_subset(&self.asked)
    }

    /// What one machine costs an hour; `None` where no list has it.
    pub(super) fn of(&self, region: &Region, kind: &InstanceType, purchase: Purchase) -> Option<HourlyRate> {
        let line = self.lines.get(&(region.clone(), kind.as_str().to_ascii_lowercase()))?;
        match purchase {
            Purchase::OnDemand => line.on_demand,
            Purchase::Spot => line.spot,
            Purchase::Reserved => None,
        }
        .map(|dated| dated.rate)
    }

    /// Take in one meter, if it is one that counts.
    fn take(&mut self, meter: &Meter, now: DateTime<Utc>) {
        let says =
            |text: &str| [&meter.product_name, &meter.sku_name, &meter.counted_as].iter().any(|t| t.contains(text));
        let counts = meter.currency_code == "USD"
            && meter.kind == "Consumption"
            && meter.unit_of_measure == "1 Hour"
            && meter.tier_minimum_units == 0.0
            && !["Windows", "Low Priority", "Dedicated Host", "CloudServices", "Cloud Services"].into_iter().any(says);
        let since = meter.effective_start_date.unwrap_or_default();
        // One of nothing is a price that is missing, not a gift.
        let Some(rate) = HourlyRate::from_usd(meter.retail_price).ok().filter(|r| *r > HourlyRate::ZERO) else {
            return;
        };
        if !counts || since > now || meter.arm_region_name.is_empty() || meter.arm_sku_name.is_empty() {
            return;
        }
        let key = (
            Region::from(meter.arm_region_name.to_ascii_lowercase().as_str()),
            meter.arm_sku_name.to_ascii_lowercase(),
        );
        let line = self.lines.entry(key).or_default();
        let place = if says("Spot") { &mut line.spot } else { &mut line.on_demand };
        // The newest that holds by now; of two of one day the dearer.
        if place.is_none_or(|known| (known.since, known.rate) < (since, rate)) {
            *place = Some(Dated { since, rate });
        }
    }
}

/// The public list.
pub(super) struct PriceList {
    client: reqwest::Client,
    url: Url,
}

impl PriceList {
    /// At this address.
    pub(super) fn at(url: Url) -> std::result::Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(AZURE_CALL_TIMEOUT)
            .build()?;
        Ok(Self { client, url })
    }

    /// Prices of these types in every region; all of them or an error.
    pub(super) async fn fetch(&self, types: BTreeSet<InstanceType>, now: DateTime<Utc>) -> Result<Prices> {
        let names: Vec<String> = types.iter().map(|t| t.as_str().to_owned()).collect();
        let questions: Vec<Vec<String>> = names.chunks(AZURE_SKUS_A_QUESTION).map(<[String]>::to_vec).collect();
        let mut prices = Prices { at: now, asked: types, ..Prices::default() };
        let mut answers =
            stream::iter(questions.into_iter().map(|names| self.meters(names))).buffer_unordered(LOOKS_AT_ONCE);
        while let Some(meters) = answers.try_next().await? {
            for meter in &meters {
                prices.take(meter, now);
            }
        }
        Ok(prices)
    }

    /// All meters of these types.
    async fn meters(&self, names: Vec<String>) -> Result<Vec<Meter>> {
        // Names come from Azure; a quote in one would end the text that it stands in.
        let names: Vec<String> = names.iter().map(|n| format!("armSkuName eq '{}'", n.replace('\'', "''"))).collect();
        let filter =
            format!("serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and ({})", names.join(" or "));
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("currencyCode", "USD").append_pair("$filter", &filter);
        let mut meters = Vec::new();
        for _ in 0..AZURE_PRICE_PAGES {
            let page = self.page(url.clone()).await?;
            meters.extend(page.items.into_iter().filter_map(|row| serde_json::from_value::<Meter>(row).ok()));
            let Some(next) = page.next.filter(|link| !link.is_empty()) else { return Ok(meters) };
            url = Url::parse(&next).map_err(|e| failed(format!("the next page has no address: {e}")))?;
            if url.origin() != self.url.origin() {
                return Err(failed(format!(
                    "the next page lies at {}, which is not the price list",
                    url.host_str().unwrap_or("nowhere")
                )));
            }
        }
        Err(failed(format!("the list did not end after {AZURE_PRICE_PAGES} pages")))
    }

    async fn page(&self, url: Url) -> Result<Page> {
        let unanswered = |e: reqwest::Error| failed(format!("not reached: {}", e.without_url()));
        let mut answer = self.client.get(url).send().await.map_err(unanswered)?;
        let status = answer.status();
        if !status.is_success() {
            let class = if status.as_u16() == 429 { ErrorClass::Throttled } else { ErrorClass::Transient };
            let mut refused = error(class, OPERATION, format!("answered with {status}")).code(status.as_str());
            let header = answer.headers().get("retry-after").and_then(|v| v.to_str().ok());
            refused.retry_after = header.and_then(|v| v.trim().parse().ok()).map(std::time::Duration::from_secs);
            return Err(refused);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unanswered)? {
            if body.len() + chunk.len() > AZURE_MAX_BODY_BYTES {
                return Err(failed("the answer is larger than any real one".to_owned()));
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|e| failed(format!("the answer cannot be read: {e}")))
    }
}

fn failed(text: String) -> ProviderError {
    error(ErrorClass::Transient, OPERATION, text)
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn meter(sku_name: &str, product: &str, price: f64, since: (i32, u32)) -> Meter {
        Meter {
            currency_code: "USD".into(),
            retail_price: price,
            arm_region_name: "eastus".into(),
            arm_sku_name: "Standard_ND96isr_H100_v5".into(),
            sku_name: sku_name.into(),
            counted_as: sku_name.into(),
            product_name: product.into(),
            unit_of_measure: "1 Hour".into(),
            kind: "Consumption".into(),
            tier_minimum_units: 0.0,
            effective_start_date: Utc.with_ymd_and_hms(since.0, since.1, 1, 0, 0, 0).single(),
        }
    }

    #[test]
    fn b9_only_an_hour_of_linux_counts_and_the_newest_price_that_holds() {
        let now = Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).single().expect("a time");
        let linux = "Virtual Machines NDsrH100v5 Series";
        let mut prices = Prices::default();
        let others = [
            Meter { currency_code: "EUR".into(), ..meter("ND96isr_H100_v5", linux, 1.0, (2026, 2)) },
            Meter { unit_of_measure: "1/Month".into(), ..meter("ND96isr_H100_v5", linux, 1.0, (2026, 2)) },
            Meter { kind: "Reservation".into(), ..meter("ND96isr_H100_v5", linux, 1.0, (2026, 2)) },
            Meter { tier_minimum_units: 100.0, ..meter("ND96isr_H100_v5", linux, 1.0, (2026, 2)) },
            meter("ND96isr_H100_v5", "Virtual Machines NDsrH100v5 Series Windows", 110.0, (2026, 2)),
            meter("ND96isr_H100_v5 Low Priority", linux, 20.0, (2026, 2)),
            meter("ND96isr_H100_v5", "NDsrH100v5 Series Dedicated Host", 500.0, (2026, 2)),
            meter("ND96isr_H100_v5", linux, 0.0, (2026, 3)),
            meter("ND96isr_H100_v5", linux, -4.0, (2026, 3)),
            meter("ND96isr_H100_v5", linux, 70.0, (2026, 12)),
        ];
        for meter in &others {
            prices.take(meter, now);
        }
        let of = |prices: &Prices, purchase| prices.of(&"eastus".into(), &"Standard_ND96isr_H100_v5".into(), purchase);
        assert_eq!((of(&prices, Purchase::OnDemand), of(&prices, Purchase::Spot)), (None, None));
        for (name, price, since) in [
            ("ND96isr_H100_v5", 98.32, (2025, 1)),
            ("ND96isr_H100_v5", 95.5, (2026, 1)),
            ("ND96isr_H100_v5 Spot", 30.25, (2026, 10)),
            ("ND96isr_H100_v5 Spot", 28.0, (2026, 9)),
        ] {
            prices.take(&meter(name, linux, price, since), now);
        }
        assert_eq!(of(&prices, Purchase::OnDemand), HourlyRate::from_usd(95.5).ok());
        assert_eq!(of(&prices, Purchase::Spot), HourlyRate::from_usd(30.25).ok());
        assert_eq!(of(&prices, Purchase::Reserved), None);
    }
}
