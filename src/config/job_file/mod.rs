//! Job files, and the flags of `place` and `launch`: both become the same [`JobSpec`] by the same checks.
//!
//! Beyond the keys of the published format there are: `constraints.regions` (only in these), `constraints.combine_zones`
//! (a gang's nodes may lie in several zones of one region), `schedule.restart_loss_hours` (work lost at each
//! interruption) and `resources.min_gpu_memory_gib`. `examples/jobs/` shows all of them.

mod draft;
mod validate;

use std::path::Path;

use chrono::{DateTime, Utc};

pub use draft::{Draft, LatencyDraft};

use super::problem::Problems;
use super::settings::read_written_file;
use crate::domain::{Accelerator, JobSpec, Location};

/// What the validation must know of the world; the catalogue's and the market's knowledge, handed in because this
/// module stands below both.
pub trait Facts {
    /// The canonical accelerators that a text means, or a sentence on why it means none.
    fn accelerators(&self, text: &str) -> Result<Vec<Accelerator>, String>;
    /// Every provider there is.
    fn providers(&self) -> Vec<String>;
    /// The regions of a provider as far as a table knows them; empty where there is no table.
    fn regions(&self, provider: &str) -> Vec<String>;
    /// Every jurisdiction that a place lies under.
    fn jurisdictions(&self) -> Vec<String>;
    /// Those of them that a wish is fulfilled by: `UK` by `GB`, `EEA` by `EU` and more; none where it is unknown.
    fn within(&self, wanted: &str) -> Vec<String> {
        self.jurisdictions().into_iter().filter(|known| known.eq_ignore_ascii_case(wanted)).collect()
    }
}

/// A job from a file, with the values of flags in place of the file's.
///
/// # Errors
/// Every finding on the file and the flags at once.
pub fn load(path: &Path, flags: Draft, facts: &dyn Facts, now: DateTime<Utc>) -> Result<JobSpec, Problems> {
    let name = path.display().to_string();
    let text = read_written_file(path).map_err(|e| Problems::whole(&name, format!("could not be read: {e}")))?;
    parse(&text, &name, flags, facts, now)
}

/// A job from a file's text, with the values of flags in place of the file's.
///
/// # Errors
/// Every finding on the file and the flags at once.
pub fn parse(text: &str, file: &str, flags: Draft, facts: &dyn Facts, now: DateTime<Utc>) -> Result<JobSpec, Problems> {
    let (draft, found) = Draft::parse(text);
    let (spec, more) = validate::validate(draft.overlaid(flags), facts, now);
    let all: Vec<_> = found.into_iter().chain(more).collect();
    if all.is_empty() { Ok(spec) } else { Err(Problems::new(file, all)) }
}

/// A job from flags alone.
///
/// # Errors
/// Every finding at once.
pub fn from_flags(flags: Draft, facts: &dyn Facts, now: DateTime<Utc>) -> Result<JobSpec, Problems> {
    let (spec, found) = validate::validate(flags, facts, now);
    if found.is_empty() { Ok(spec) } else { Err(Problems::new("", found)) }
}

/// A place as people write it; a region alone is enough where only one provider has a region of that name.
fn place(text: &str, facts: &dyn Facts) -> Result<Location, String> {
    if !text.is_empty() && !text.contains('/') {
        let mut having: Vec<String> =
            facts.providers().into_iter().filter(|p| facts.regions(p).iter().any(|r| r == text)).collect();
        return match having.len() {
            1 => Ok(Location::region(having.remove(0), text)),
            0 => Err(format!("'{text}' is no region that is known; write PROVIDER/REGION, such as aws/us-east-1")),
            _ => {
                Err(format!("several providers have a region '{text}' ({}); write PROVIDER/REGION", having.join(", ")))
            }
        };
    }
    text.parse::<Location>().map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
