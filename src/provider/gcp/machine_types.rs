//! Machine types → observations.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use google_cloud_compute_v1::model::{MachineType, MachineTypesScopedList};

use super::super::Offerings;
use super::quotas::Quotas;
use super::{Gcp, last, region_of};
use crate::catalogue::{accelerators, instance_types};
use crate::domain::{
    AcceleratorCount, Availability, ErrorClass, Evidence, InstanceType, Observation, OfferKey, ProviderError, Purchase,
    Shape, Zone,
};

fn shape(kind: &MachineType, name: &InstanceType, known: Option<&Arc<Shape>>) -> Option<Arc<Shape>> {
    if let Some(known) = known {
        return Some(known.clone());
    }
    let first = kind.accelerators.first()?;
    let raw = first.guest_accelerator_type.as_deref().map(last)?;
    let count = u32::try_from(first.guest_accelerator_count?).ok().filter(|n| (1..=64).contains(n))?;
    let accelerator = instance_types::accelerator("gcp", name.as_str(), raw, None);
    Some(Arc::new(Shape {
        instance_type: name.clone(),
        gpu_memory_gib: accelerators::memory_gib(&accelerator),
        accelerator,
        accelerators: AcceleratorCount::whole(count),
        vcpus: kind.guest_cpus.and_then(|n| u32::try_from(n).ok()),
        memory_gib: kind.memory_mb.filter(|m| *m > 0).map(|m| f64::from(m) / 1024.0),
        interconnect: instance_types::interconnect("gcp", name.as_str()),
    }))
}

/// Put the types of one zone into the answer; a zone that was not reached is told, not dropped.
pub(super) fn read(
    scope_name: &str,
    scope: &MachineTypesScopedList,
    gcp: &Gcp,
    quotas: Option<&Quotas>,
    now: DateTime<Utc>,
    offerings: &mut Offerings,
) {
    let zone = last(scope_name);
    let Some(region) = region_of(zone) else {
        *offerings.skipped.entry("a zone without a region".into()).or_default() += 1;
        return;
    };
    if !gcp.settings.regions.is_empty() && !gcp.settings.regions.iter().any(|r| region == r.as_str()) {
        return;
    }
    if let Some(code) = scope.warning.as_ref().and_then(|w| w.code.as_ref()).and_then(|c| c.name())
        && code == "UNREACHABLE"
    {
        let mut error = ProviderError::new(
            ErrorClass::Transient,
            &gcp.id,
            "machineTypes.aggregatedList",
            "the zone was not reached",
        )
        .code(code);
        error.region = Some(region);
        error.zone = Some(zone.into());
        offerings.failed.push(error);
        return;
    }
    for kind in &scope.machine_types {
        let Some(name) = kind.name.as_deref().filter(|n| !n.is_empty()).map(InstanceType::from) else {
            *offerings.skipped.entry("a machine type without a name".into()).or_default() += 1;
            continue;
        };
        let Some(shape) = shape(kind, &name, gcp.published.shape(&name)) else {
            *offerings.skipped.entry("a machine type whose accelerators cannot be read".into()).or_default() += 1;
            continue;
        };
        let quota = kind.accelerators.first().and_then(|a| {
            let (name, count) = (a.guest_accelerator_type.as_deref().map(last)?, a.guest_accelerator_count?);
            quotas?.room(&region, name, f64::from(count), Purchase::OnDemand)
        });
        let listing = Observation {
            key: OfferKey {
                provider: gcp.id.clone(),
                region: region.clone(),
                zone: Some(Zone::from(zone)),
                instance_type: name.clone(),
                purchase: Purchase::OnDemand,
            },
            at: now,
            shape,
            price: None,
            availability: Some((Availability::Unknown, Evidence::Catalogue)),
            capacity: None,
            quota,
            interruptions_per_day: None,
        };
        gcp.published.state_on_demand(listing, &mut offerings.observations);
    }
}
