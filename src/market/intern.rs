//! One copy of each name and shape, however many offers carry it: a region's name stands in thousands of keys.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::domain::{InstanceType, OfferKey, ProviderId, Region, Shape, Zone};

/// Beyond so many names the table is started anew: names are few, unless a feed makes up a new one for every row.
const NAMES_MAX: usize = 100_000;

/// The names and shapes seen so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    providers: FxHashSet<ProviderId>,
    regions: FxHashSet<Region>,
    zones: FxHashSet<Zone>,
    types: FxHashSet<InstanceType>,
    shapes: FxHashMap<InstanceType, Vec<Arc<Shape>>>,
    laws: FxHashMap<&'static str, Arc<str>>,
}

fn shared<T: Clone + Eq + std::hash::Hash>(set: &mut FxHashSet<T>, name: &T) -> T {
    if let Some(known) = set.get(name) {
        return known.clone();
    }
    set.insert(name.clone());
    name.clone()
}

impl Names {
    /// The key with shared names.
    pub(super) fn key(&mut self, key: &OfferKey) -> OfferKey {
        if self.types.len() + self.regions.len() + self.zones.len() > NAMES_MAX {
            *self = Self::default();
        }
        OfferKey {
            provider: shared(&mut self.providers, &key.provider),
            region: shared(&mut self.regions, &key.region),
            zone: key.zone.as_ref().map(|z| shared(&mut self.zones, z)),
            instance_type: shared(&mut self.types, &key.instance_type),
            purchase: key.purchase,
        }
    }

    /// The shared shape that equals this one.
    pub(super) fn shape(&mut self, shape: &Arc<Shape>) -> Arc<Shape> {
        let known = self.shapes.entry(shape.instance_type.clone()).or_default();
        if let Some(same) = known.iter().find(|s| Arc::ptr_eq(s, shape) || ***s == **shape) {
            return Arc::clone(same);
        }
        // A type has one shape, or two while a provider changes it; more is noise that need not be kept.
        known.truncate(7);
        known.push(Arc::clone(shape));
        Arc::clone(shape)
    }

    /// The shared name of a jurisdiction.
    pub(super) fn law(&mut self, name: &'static str) -> Arc<str> {
        Arc::clone(self.laws.entry(name).or_insert_with(|| Arc::from(name)))
    }
}
