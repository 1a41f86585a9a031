//! Price tables of others, checked line by line before a figure is believed.
//!
//! [`skypilot()`] reads directories in the format of `SkyPilot`'s catalogues: `DIR/CLOUD/vms.csv` or `DIR/CLOUD.csv` with
//! the columns `InstanceType, vCPUs, MemoryGiB, AcceleratorName, AcceleratorCount, GpuInfo, Price, SpotPrice, Region,
//! AvailabilityZone` in any order. A table with a single impossible figure is refused as a whole, with every finding and
//! its line; rows that are sound and of no use here are counted under their reason, so that nothing is lost silently.

mod skypilot;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use skypilot::skypilot;

use super::Catalogue;
use crate::domain::text::inert;

/// What was imported.
#[derive(Debug, Clone, Default)]
pub struct Import {
    /// The rows that can be used, by provider.
    pub catalogue: Catalogue,
    /// What each file held, by path.
    pub files: Vec<FileReport>,
}

impl Import {
    /// Rows that can be used, of all files.
    pub fn kept(&self) -> usize {
        self.files.iter().map(|f| f.kept).sum()
    }
    /// Rows read, of all files.
    pub fn read(&self) -> usize {
        self.files.iter().map(|f| f.read).sum()
    }
}

/// What one file held: `read` is `kept` and all of `left_out` together.
#[derive(Debug, Clone)]
pub struct FileReport {
    /// Which file.
    pub path: PathBuf,
    /// Whose prices.
    pub provider: String,
    /// Rows in it.
    pub read: usize,
    /// Rows that became part of the catalogue.
    pub kept: usize,
    /// Rows that did not, by reason.
    pub left_out: BTreeMap<LeftOut, usize>,
    /// What was corrected or not believed in the rows that were kept, by kind.
    pub noted: BTreeMap<Noted, usize>,
}

/// Why a sound row is not in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// A machine without an accelerator.
    NoAccelerator,
    /// The accelerator's half of a price that was added to its machine's.
    AddedToMachine,
    /// An accelerator's price without a machine that could carry it.
    NoMachine,
    /// The same machine in the same place as a row before.
    Repeated,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoAccelerator => "no accelerator",
            Self::AddedToMachine => "accelerator's part of a price, added to its machine's",
            Self::NoMachine => "accelerator priced without a machine to carry it",
            Self::Repeated => "listed before",
        })
    }
}

/// What was noticed about a row that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Noted {
    /// No on-demand price, or one of zero: unknown.
    NoOnDemandPrice,
    /// No spot price, or one of zero: none.
    NoSpotPrice,
    /// The chip is not in the table of names.
    UnknownAccelerator,
    /// The table repeats the on-demand price in every row: not a spot price, left out.
    SpotRepeatsOnDemand,
    /// A part of a sum costs less on demand than as spot: it is a placeholder, the on-demand price is left out.
    PartBelowSpot,
    /// The list's memory of a chip is not that of the chip; the chip's is used.
    MemoryDisagrees,
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoOnDemandPrice => "no on-demand price",
            Self::NoSpotPrice => "no spot price",
            Self::UnknownAccelerator => "accelerator not known by name",
            Self::SpotRepeatsOnDemand => "spot column repeats the on-demand price, left out",
            Self::PartBelowSpot => "a part of the price lies below its own spot price, on-demand price left out",
            Self::MemoryDisagrees => "GPU memory is not that of the chip, the chip's is used",
        })
    }
}

/// One thing that is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Which file or directory.
    pub file: PathBuf,
    /// Which line, from 1; `None` where it is about the whole.
    pub line: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.to_string_lossy();
        match self.line {
            Some(line) => write!(f, "{} line {line}: {}", inert(&file), inert(&self.reason)),
            None => write!(f, "{}: {}", inert(&file), inert(&self.reason)),
        }
    }
}

impl std::error::Error for ImportError {}
