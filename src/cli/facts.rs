//! What a job file is checked against: the catalogue's names, and those of a market that was given as a file.

use std::collections::BTreeSet;

use crate::catalogue::{Catalogue, accelerators, regions};
use crate::cli::failure::{Failure, Outcome};
use crate::config::job_file::Facts;
use crate::config::reader::nearest_word;
use crate::domain::text::inert;
use crate::domain::{Accelerator, Location};
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

/// Refuse a word that is none of these; the failure names the nearest one.
pub fn known(flag: &str, text: &str, all: &[String]) -> Outcome<()> {
    if all.iter().any(|known| known == text) {
        return Ok(());
    }
    let near = nearest_word(text, all.iter().map(String::as_str));
    let hint = match near {
        Some(near) => format!("Did you mean {near}?"),
        None if all.len() <= 20 => format!("There are {}.", all.join(", ")),
        None => "`gpudeck catalogue show` lists places.".to_owned(),
    };
    Err(Failure::usage(format!("{flag}: '{}' is not known", inert(text))).hint(hint))
}

impl WorldFacts<'_> {
    /// Refuse a place whose provider or region no table knows. Of a provider without a table any region may be right.
    pub fn place(&self, flag: &str, place: &Location) -> Outcome<()> {
        known(flag, place.provider.as_str(), &self.providers())?;
        let regions = self.regions(place.provider.as_str());
        if regions.is_empty() || regions.iter().any(|r| place.region == r.as_str()) {
            return Ok(());
        }
        let hint = match nearest_word(place.region.as_str(), regions.iter().map(String::as_str)) {
            Some(near) => format!("Did you mean {}/{near}?", place.provider),
            None => "`gpudeck catalogue show` lists places.".to_owned(),
        };
        let text = inert(&place.to_string()).into_owned();
        Err(Failure::usage(format!("{flag}: '{text}' is not a place that is known")).hint(hint))
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
