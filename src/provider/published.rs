//! What the published table knows of a provider's instance types, for adapters whose interface does not tell the chip or
//! the price. It stays published: never shown as the provider's own word.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::catalogue::Catalogue;
use crate::domain::observation::PriceStatement;
use crate::domain::{HourlyRate, InstanceType, Region, Shape};

/// Shapes and on-demand prices of one provider, from the bundled table.
#[derive(Debug)]
pub(super) struct Published {
    shapes: FxHashMap<InstanceType, Arc<Shape>>,
    on_demand: FxHashMap<(InstanceType, Region), HourlyRate>,
}

impl Published {
    /// Of this provider.
    pub(super) fn of(provider: &str) -> Self {
        let (mut shapes, mut on_demand) = (FxHashMap::default(), FxHashMap::default());
        for row in Catalogue::bundled().rows().iter().filter(|r| r.provider == *provider) {
            let name = row.shape.instance_type.clone();
            shapes.entry(name.clone()).or_insert_with(|| row.shape.clone());
            if let Some(price) = row.on_demand {
                on_demand.entry((name, row.region.clone())).or_insert(price);
            }
        }
        Self { shapes, on_demand }
    }

    /// The shape of this type, if the table has it.
    pub(super) fn shape(&self, name: &InstanceType) -> Option<&Arc<Shape>> {
        self.shapes.get(name)
    }

    /// What the table says of the on-demand price there.
    pub(super) fn on_demand(&self, name: &InstanceType, region: &Region) -> PriceStatement {
        self.on_demand
            .get(&(name.clone(), region.clone()))
            .map_or(PriceStatement::Unpriced, |price| PriceStatement::Published(*price))
    }
}
