//! What the subscription may still have, by region: virtual CPUs by family of machine, those of spot together, and all of a
//! region together.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;

use super::Azure;
use super::pages::List;
use super::rows::Usage;
use crate::config::limits::{LOOKS_AT_ONCE, QUOTA_TTL};
use crate::domain::{ProviderError, Purchase, QuotaRoom, Region};
use crate::provider::Result;
use futures_util::{StreamExt as _, stream};

/// Counts against every machine that is not spot.
const ALL_CORES: &str = "cores";
/// Counts against every machine that is.
const SPOT_CORES: &str = "lowprioritycores";

/// One region's quotas, by their name in small letters.
#[derive(Debug, Clone, Default)]
pub(super) struct Quotas {
    at: DateTime<Utc>,
    lines: FxHashMap<String, Line>,
}

#[derive(Debug, Clone)]
struct Line {
    /// As Azure writes it: what an operator asks for more of.
    name: String,
    limit: f64,
    used: f64,
}

impl Quotas {
    /// The quota that leaves the least room for machines of this family; `None` where none is told.
    pub(super) fn room(&self, family: Option<&str>, vcpus: Option<u32>, purchase: Purchase) -> Option<QuotaRoom> {
        let per_instance = f64::from(vcpus.filter(|n| *n > 0)?);
        let names: Vec<String> = match purchase {
            Purchase::Spot => vec![SPOT_CORES.to_owned()],
            _ => family.map(str::to_ascii_lowercase).into_iter().chain([ALL_CORES.to_owned()]).collect(),
        };
        names
            .iter()
            .filter_map(|name| self.lines.get(name))
            .map(|line| QuotaRoom { code: line.name.clone(), limit: line.limit, used: line.used, per_instance })
            .min_by_key(QuotaRoom::instances_left)
    }
}

impl Azure {
    /// The quotas of these regions, those remembered that are young enough; and what could not be read, as one error.
    pub(super) async fn quotas(
        &self,
        regions: impl IntoIterator<Item = Region>,
        now: DateTime<Utc>,
    ) -> (FxHashMap<Region, Quotas>, Option<ProviderError>) {
        let mut known = self.quotas.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let young = |q: &Quotas| {
            let age = now - q.at;
            age >= chrono::TimeDelta::zero() && age < chrono::TimeDelta::from_std(QUOTA_TTL).unwrap_or_default()
        };
        known.retain(|_, quotas| young(quotas));
        let wanted: Vec<Region> = regions.into_iter().filter(|r| !known.contains_key(r)).collect();
        let asked = stream::iter(wanted.into_iter().map(|region| async move {
            let answer = self.usages(&region, now).await;
            (region, answer)
        }));
        let mut failed: Option<(ProviderError, u32)> = None;
        let answers: Vec<(Region, Result<Quotas>)> = asked.buffer_unordered(LOOKS_AT_ONCE).collect().await;
        for (region, answer) in answers {
            match answer {
                Ok(quotas) => {
                    known.insert(region, quotas);
                }
                Err(error) => {
                    let (_, count) = failed.get_or_insert((error, 0));
                    *count += 1;
                }
            }
        }
        self.quotas.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone_from(&known);
        let failed = failed.map(|(mut error, count)| {
            error.message = format!("quotas of {count} regions are not known: {}", error.message);
            error
        });
        (known, failed)
    }

    async fn usages(&self, region: &Region, now: DateTime<Utc>) -> Result<Quotas> {
        let mut quotas = Quotas { at: now, ..Quotas::default() };
        let list = List {
            operation: "Usage_List",
            path: format!("/subscriptions/{}/providers/Microsoft.Compute/locations/{region}/usages", self.subscription),
            version: "2024-07-01",
            query: Vec::new(),
        };
        let take = |row: Usage, _: &mut BTreeMap<String, u32>| {
            if let (Some(name), Some(limit), Some(used)) = (row.name.value, row.limit, row.current_value)
                && limit.is_finite()
                && used.is_finite()
            {
                quotas.lines.insert(name.to_ascii_lowercase(), Line { name, limit, used });
            }
        };
        let mut skipped = BTreeMap::new();
        self.pages.rows(&list, &mut skipped, take).await.map_err(|mut error| {
            error.region = Some(region.clone());
            error
        })?;
        Ok(quotas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_quota_counts_and_spot_has_its_own() {
        let line = |name: &str, limit, used| (name.to_ascii_lowercase(), Line { name: name.into(), limit, used });
        let quotas = Quotas {
            lines: [
                line("standardNDSH100v5Family", 192.0, 0.0),
                line("cores", 300.0, 200.0),
                line("lowPriorityCores", 0.0, 0.0),
            ]
            .into_iter()
            .collect(),
            ..Quotas::default()
        };
        let room = |purchase| quotas.room(Some("StandardNDSH100v5Family"), Some(96), purchase);
        let of = |purchase| room(purchase).map(|r| (r.code.clone(), r.instances_left()));
        assert_eq!(of(Purchase::OnDemand), Some(("cores".to_owned(), 1)), "two by the family, one by the region");
        assert_eq!(of(Purchase::Spot), Some(("lowPriorityCores".to_owned(), 0)));
        assert_eq!(quotas.room(Some("x"), None, Purchase::OnDemand), None, "how much it would use is not known");
        assert_eq!(Quotas::default().room(Some("x"), Some(96), Purchase::OnDemand), None);
    }
}
