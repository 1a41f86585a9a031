//! `[watches.NAME]` of the configuration: offers that somebody wants to be told of.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::limits::GPU_HOUR_USD;
use crate::domain::Purchase;

/// All of them, by name.
pub type Watches = BTreeMap<String, WatchSettings>;

/// Tell when such an offer is to be had for no more than that.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatchSettings {
    /// A name, an alias or a family, as `--gpu` takes it.
    pub gpu: String,
    /// At most so much a GPU-hour, in USD.
    pub below_usd_per_gpu_hour: f64,
    /// Only instances with at least so many.
    pub count: Option<u32>,
    /// Only these purchase models: spot, on-demand, reserved; empty means any.
    pub purchase: Vec<String>,
    /// Only these providers; empty means any.
    pub providers: Vec<String>,
    /// Only places under these laws, such as EU; empty means any.
    pub jurisdictions: Vec<String>,
}

/// Everything that is wrong with them, as key and sentence.
pub fn problems(watches: &Watches) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, watch) in watches {
        let mut need = |ok: bool, key: &str, message: &str| {
            if !ok {
                found.push((format!("{name}{key}"), message.to_owned()));
            }
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        need(
            (1..=40).contains(&name.len()) && name.chars().all(plain),
            "",
            "a name has 1 to 40 letters, digits, - and _",
        );
        need(!watch.gpu.is_empty(), ".gpu", "say which GPU, such as gpu = \"H100\"");
        let limit = watch.below_usd_per_gpu_hour;
        need(
            limit > 0.0 && limit <= GPU_HOUR_USD,
            ".below_usd_per_gpu_hour",
            "a price of a GPU-hour in USD above 0, such as 2.5",
        );
        need(watch.count != Some(0), ".count", "at least 1");
        need(
            watch.purchase.iter().all(|p| Purchase::parse(p).is_some()),
            ".purchase",
            "purchase models are spot, on-demand and reserved",
        );
    }
    found
}
