//! What the project may still have, by region: accelerators by chip. Chips newer than the interface's own list of quotas
//! (H200, B200 and later are counted elsewhere) are not told, and so not known.

use chrono::{DateTime, TimeDelta, Utc};
use google_cloud_compute_v1::client::Regions;
use google_cloud_gax::paginator::ItemPaginator as _;
use google_cloud_gax::retry_policy::{Aip194Strict, RetryPolicyExt as _};
use rustc_hash::FxHashMap;

use super::{Gcp, errors};
use crate::config::limits::QUOTA_TTL;
use crate::domain::{Purchase, QuotaRoom, Region};
use crate::provider::Result;

/// Which quota an accelerator counts against, by Google's name of it.
const METRICS: &[(&str, &str)] = &[
    ("nvidia-tesla-a100", "NVIDIA_A100_GPUS"),
    ("nvidia-a100-80gb", "NVIDIA_A100_80GB_GPUS"),
    ("nvidia-h100-80gb", "NVIDIA_H100_GPUS"),
    ("nvidia-h100-mega-80gb", "NVIDIA_H100_MEGA_GPUS"),
    ("nvidia-h200-141gb", "NVIDIA_H200_GPUS"),
    ("nvidia-b200", "NVIDIA_B200_GPUS"),
    ("nvidia-l4", "NVIDIA_L4_GPUS"),
];

/// Limits and use, by region and metric.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    at: DateTime<Utc>,
    lines: FxHashMap<(Region, String), (f64, f64)>,
}

impl Quotas {
    /// The room for machines with so many of this accelerator; `None` where none is told.
    pub(super) fn room(&self, region: &Region, accelerator: &str, count: f64, purchase: Purchase) -> Option<QuotaRoom> {
        let (_, metric) = METRICS.iter().find(|(name, _)| *name == accelerator)?;
        let code = match purchase {
            Purchase::Spot => format!("PREEMPTIBLE_{metric}"),
            _ => (*metric).to_owned(),
        };
        let (limit, used) = *self.lines.get(&(region.clone(), code.clone()))?;
        Some(QuotaRoom { code, limit, used, per_instance: count })
    }
}

impl Gcp {
    /// The project's quotas in all regions, as remembered for some minutes.
    pub(super) async fn quotas(&self, now: DateTime<Utc>) -> Result<std::sync::Arc<Quotas>> {
        let mut known = self.quotas.lock().await;
        if let Some(quotas) = known.as_ref().filter(|q| {
            let age = now - q.at;
            age >= TimeDelta::zero() && age < TimeDelta::from_std(QUOTA_TTL).unwrap_or_default()
        }) {
            return Ok(quotas.clone());
        }
        let client = self.regions().await?;
        let mut quotas = Quotas { at: now, ..Quotas::default() };
        let mut items = client.list().set_project(&self.project).by_item();
        while let Some(item) = items.next().await {
            let region = item.map_err(|e| errors::classify(&self.id, "regions.list", &e))?;
            let Some(name) = region.name.as_deref().map(Region::from) else { continue };
            for quota in &region.quotas {
                let metric = quota.metric.as_ref().and_then(|m| m.name());
                if let (Some(metric), Some(limit), Some(used)) = (metric, quota.limit, quota.usage)
                    && limit.is_finite()
                    && used.is_finite()
                {
                    quotas.lines.insert((name.clone(), metric.to_owned()), (limit, used));
                }
            }
        }
        let quotas = std::sync::Arc::new(quotas);
        *known = Some(quotas.clone());
        Ok(quotas)
    }

    async fn regions(&self) -> Result<&Regions> {
        self.regions_client
            .get_or_try_init(|| async {
                let mut builder = Regions::builder().with_retry_policy(Aip194Strict.with_attempt_limit(1));
                if let Some(url) = &self.settings.endpoint_url {
                    builder = builder.with_endpoint(url);
                }
                if let Some(credentials) = &self.credentials {
                    builder = builder.with_credentials(credentials.clone());
                }
                builder.build().await.map_err(|e| errors::build(&self.id, &e.to_string()))
            })
            .await
    }
}
