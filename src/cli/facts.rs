//! What a job file is checked against: the catalogue's names, and those of a market that was given as a file.

use std::collections::BTreeSet;

use crate::catalogue::{Catalogue, accelerators, regions};
use crate::config::job_file::Facts;
use crate::domain::Accelerator;
use crate::market::Snapshot;

/// Providers that there are adapters or words for, whether or not a price list knows them.
const PROVIDERS: [&str; 8] = ["aws", "azure", "gcp", "hyperbolic", "kubernetes", "lambda", "runpod", "ssh"];

/// The catalogue, and perhaps a market of one's own.
pub struct WorldFacts<'w> {
    catalogue: &'w Catalogue,
    market: Option<&'w Snapshot>,
}

impl<'w> WorldFacts<'w> {
    /// From the catalogue in force; `market` adds its own providers, regions and jurisdictions.
    pub const fn new(catalogue: &'w Catalogue, market: Option<&'w Snapshot>) -> Self {
        Self { catalogue, market }
    }
}

impl Facts for WorldFacts<'_> {
    fn accelerators(&self, text: &str) -> Result<Vec<Accelerator>, String> {
        select(text, self.market)
    }

    fn providers(&self) -> Vec<String> {
        let mut all: BTreeSet<String> = PROVIDERS.into_iter().map(str::to_owned).collect();
        all.extend(self.catalogue.sources().iter().map(|s| s.provider.to_string()));
        all.extend(self.market.into_iter().flat_map(Snapshot::iter).map(|o| o.key.provider.to_string()));
        all.into_iter().collect()
    }

    fn regions(&self, provider: &str) -> Vec<String> {
        let mut all: BTreeSet<String> = self.catalogue.rows_of(provider).iter().map(|r| r.region.to_string()).collect();
        all.extend(
            regions::all().into_iter().filter(|(p, _, _)| *p == provider).map(|(_, region, _)| region.to_owned()),
        );
        // A market in a file has the regions that somebody chose to put there: it adds to a table, and is none itself.
        if !all.is_empty() {
            let offers = self.market.into_iter().flat_map(Snapshot::iter);
            all.extend(offers.filter(|o| o.key.provider == *provider).map(|o| o.key.region.to_string()));
        }
        all.into_iter().collect()
    }

    fn jurisdictions(&self) -> Vec<String> {
        let mut all: BTreeSet<String> =
            regions::all().into_iter().map(|(_, _, facts)| facts.jurisdiction.to_owned()).collect();
        let offers = self.market.into_iter().flat_map(Snapshot::iter);
        all.extend(offers.filter_map(|o| o.jurisdiction.as_deref()).map(str::to_owned));
        all.into_iter().collect()
    }

    fn within(&self, wanted: &str) -> Vec<String> {
        self.jurisdictions().into_iter().filter(|known| regions::is_within(known, wanted)).collect()
    }
}

/// The canonical accelerators that a text means; a market of one's own may have chips that no table knows.
pub fn select(text: &str, market: Option<&Snapshot>) -> Result<Vec<Accelerator>, String> {
    accelerators::select(text).or_else(|unknown| {
        let own: BTreeSet<Accelerator> = market
            .into_iter()
            .flat_map(Snapshot::iter)
            .map(|o| &o.shape.accelerator)
            .filter(|a| a.as_str().eq_ignore_ascii_case(text))
            .cloned()
            .collect();
        if own.is_empty() { Err(unknown.to_string()) } else { Ok(own.into_iter().collect()) }
    })
}
