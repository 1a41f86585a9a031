//! Resource SKUs → observations. The interface names no chip: it comes from the published table, by type.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::super::published::Published;
use super::rows::{Restriction, Sku};
use super::skip;
use crate::catalogue::instance_types;
use crate::domain::{
    Accelerator, AcceleratorCount, Availability, Evidence, InstanceType, Interconnect, Observation, OfferKey,
    ProviderId, Purchase, Region, Shape, Zone,
};

fn capability<'a>(sku: &'a Sku, name: &str) -> Option<&'a str> {
    sku.capabilities.iter().find(|c| c.name.as_deref() == Some(name)).and_then(|c| c.value.as_deref())
}

fn number(sku: &Sku, name: &str) -> Option<f64> {
    capability(sku, name).and_then(|v| v.parse::<f64>().ok()).filter(|v| v.is_finite() && (0.0..1e7).contains(v))
}

/// The machine: from the published table where it is known, else from the capabilities, the chip then unknown.
fn shape(sku: &Sku, name: &InstanceType, gpus: f64, published: &Published) -> Option<Arc<Shape>> {
    if let Some(known) = published.shape(name) {
        return Some(known.clone());
    }
    Some(Arc::new(Shape {
        instance_type: name.clone(),
        accelerator: Accelerator::unknown(name.as_str()),
        accelerators: AcceleratorCount::from_f64(gpus)?,
        gpu_memory_gib: None,
        vcpus: number(sku, "vCPUs").map(|v| v as u32),
        memory_gib: number(sku, "MemoryGB"),
        interconnect: if capability(sku, "RdmaEnabled") == Some("True") {
            Interconnect::Infiniband
        } else {
            instance_types::interconnect("azure", name.as_str())
        },
    }))
}

fn names_location(restriction: &Restriction, location: &str) -> bool {
    let info = restriction.info.as_ref();
    restriction
        .values
        .iter()
        .chain(info.iter().flat_map(|i| i.locations.iter()))
        .any(|v| v.eq_ignore_ascii_case(location))
}

/// Whether the subscription may not use it there at all, or not in that zone.
fn is_restricted(sku: &Sku, location: &str, zone: Option<&str>) -> bool {
    sku.restrictions.iter().any(|r| match r.kind.as_deref() {
        Some("Zone") => r
            .info
            .as_ref()
            .is_some_and(|i| zone.is_some_and(|z| i.zones.iter().any(|x| x == z)) && names_location(r, location)),
        // A kind that is not known restricts wherever it names the location.
        _ => names_location(r, location),
    })
}

/// A size in a place.
pub(super) struct Listing {
    pub(super) region: Region,
    pub(super) zone: Option<Zone>,
    pub(super) shape: Arc<Shape>,
    /// The subscription may not use it there.
    pub(super) restricted: bool,
    /// Whether it can be had on spot at all.
    pub(super) spot: bool,
    /// Which quota it counts against.
    pub(super) family: Option<String>,
    pub(super) vcpus: Option<u32>,
}

impl Listing {
    /// As an observation without price and quota. Listed is not in stock; restricted is a plain no.
    pub(super) fn observe(&self, provider: &ProviderId, purchase: Purchase, now: DateTime<Utc>) -> Observation {
        let availability = if self.restricted {
            (Availability::None, Evidence::Api)
        } else {
            (Availability::Unknown, Evidence::Catalogue)
        };
        Observation {
            key: OfferKey {
                provider: provider.clone(),
                region: self.region.clone(),
                zone: self.zone.clone(),
                instance_type: self.shape.instance_type.clone(),
                purchase,
            },
            at: now,
            shape: self.shape.clone(),
            price: None,
            availability: Some(availability),
            capacity: None,
            quota: None,
            interruptions_per_day: None,
        }
    }
}

/// Put one SKU into the list, or count it as skipped.
pub(super) fn read(sku: &Sku, published: &Published, listings: &mut Vec<Listing>, skipped: &mut BTreeMap<String, u32>) {
    if sku.resource_type.as_deref() != Some("virtualMachines") {
        return;
    }
    let Some(name) = sku.name.as_deref().filter(|n| !n.is_empty()) else {
        return skip(skipped, "a virtual machine size without a name");
    };
    let name = InstanceType::from(name);
    let gpus = number(sku, "GPUs").unwrap_or(0.0);
    if gpus <= 0.0 && published.shape(&name).is_none() {
        return; // No accelerator: not what this program is about.
    }
    let Some(shape) = shape(sku, &name, gpus, published) else {
        return skip(skipped, "an absurd number of GPUs");
    };
    if sku.location_info.is_empty() {
        return skip(skipped, "a size without a location");
    }
    for info in &sku.location_info {
        let Some(location) = info.location.as_deref().filter(|l| !l.is_empty()) else {
            skip(skipped, "a location without a name");
            continue;
        };
        let location = location.to_ascii_lowercase();
        let zones: Vec<Option<&str>> =
            if info.zones.is_empty() { vec![None] } else { info.zones.iter().map(|z| Some(z.as_str())).collect() };
        for zone in zones {
            listings.push(Listing {
                region: Region::from(location.as_str()),
                zone: zone.map(Zone::from),
                shape: shape.clone(),
                restricted: is_restricted(sku, &location, zone),
                spot: capability(sku, "LowPriorityCapable") == Some("True"),
                family: sku.family.clone(),
                vcpus: number(sku, "vCPUs").map(|n| n as u32).or(shape.vcpus),
            });
        }
    }
}
