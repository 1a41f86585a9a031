//! The canonical names of accelerators, their families, and every spelling that providers use for them.
//!
//! The table is `data/accelerators.csv`. A name with children is a family: as a wish (`H100`) it means every chip below
//! it, as a fact it means "one of them, the provider does not tell which". Names are compared whole, never by their
//! beginning: `A100-8` is an error, not an A100 with 80 GB.

use std::fmt;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::domain::{Accelerator, text};

const TABLE: &str = include_str!("../../data/accelerators.csv");

/// What a driver reports lies below what the maker sells, because of error correction and reserved pages: 22.35 GiB of
/// an A10G's 24, 262 of a B300's 288. Further below, or above by more than a rounding, it is another chip or a part.
const REPORTED_AT_LEAST: f64 = 0.90;
const REPORTED_AT_MOST: f64 = 1.02;

/// Longest provider's text kept of a chip that the table does not know.
const LONGEST_UNKNOWN: usize = 120;

/// Words in front of a name that say who made it and not what it is.
const VENDOR_WORDS: [&str; 12] =
    ["nvidia", "tesla", "geforce", "quadro", "amd", "instinct", "radeon", "intel", "habana", "aws", "google", "cloud"];

/// One canonical name.
#[derive(Debug)]
pub struct Entry {
    /// The name.
    pub accelerator: Accelerator,
    /// The family above it.
    pub parent: Option<usize>,
    /// Nominal memory of one in GiB; `None` where the variants below it differ.
    pub memory_gib: Option<f64>,
    /// Who makes it: `nvidia`, `amd`, `google`, `aws`, `intel`.
    pub vendor: &'static str,
    /// A short form for narrow columns.
    pub short: &'static str,
}

struct Table {
    entries: Vec<Entry>,
    /// By normalised spelling.
    spellings: FxHashMap<String, usize>,
    /// By canonical name as it is.
    names: FxHashMap<Accelerator, usize>,
}

/// A wish for an accelerator that the table does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownAccelerator {
    /// What was asked for.
    pub text: String,
    /// The names that look most like it, nearest first; perhaps none.
    pub nearest: Vec<String>,
}

impl fmt::Display for UnknownAccelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no accelerator '{}'", text::inert(&self.text))?;
        match self.nearest.as_slice() {
            [] => Ok(()),
            [one] => write!(f, "; did you mean {one}?"),
            [rest @ .., last] => write!(f, "; did you mean {} or {last}?", rest.join(", ")),
        }
    }
}

impl std::error::Error for UnknownAccelerator {}

/// A spelling in the form in which spellings are compared: lower case, separators alike and single.
fn normalise(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        if matches!(c, ' ' | '_' | '-' | '/' | '\t' | '\u{a0}') {
            if !out.is_empty() && !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.push(c.to_ascii_lowercase());
        }
    }
    if out.ends_with('-') {
        out.pop();
    }
    out
}

impl Table {
    fn parse(table: &'static str) -> Result<Self, String> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut parsed = Self { entries: Vec::new(), spellings: FxHashMap::default(), names: FxHashMap::default() };
        let rows = table.lines().enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#')).skip(1);
        for (number, line) in rows {
            let at = |what: &str| format!("line {}: {what}: {line}", number + 1);
            let fields: Vec<&'static str> = line.split(',').collect();
            let [name, parent, memory, vendor, short, aliases] = fields.as_slice() else {
                return Err(at("six fields are needed"));
            };
            let index = entries.len();
            let accelerator = Accelerator::from_canonical(*name);
            let parent = match *parent {
                "" => None,
                parent => Some(
                    *parsed.names.get(&Accelerator::from_canonical(parent)).ok_or_else(|| at("the parent is below"))?,
                ),
            };
            let memory_gib = match *memory {
                "" => None,
                memory => Some(memory.parse().map_err(|e| at(&format!("{e}")))?),
            };
            parsed.names.insert(accelerator.clone(), index);
            for spelling in std::iter::once(*name).chain(aliases.split('|').filter(|a| !a.is_empty())) {
                if parsed.spellings.insert(normalise(spelling), index).is_some_and(|before| before != index) {
                    return Err(at(&format!("'{spelling}' is another's")));
                }
            }
            entries.push(Entry { accelerator, parent, memory_gib, vendor, short });
        }
        parsed.entries = entries;
        Ok(parsed)
    }

    /// The entry of a spelling, with or without a vendor's words before it.
    fn find(&self, raw: &str) -> Option<usize> {
        let normalised = normalise(raw);
        let mut rest = normalised.as_str();
        loop {
            if let Some(index) = self.spellings.get(rest) {
                return Some(*index);
            }
            let (word, tail) = rest.split_once('-')?;
            if !VENDOR_WORDS.contains(&word) {
                return None;
            }
            rest = tail;
        }
    }

    fn is_within(&self, mut index: usize, family: usize) -> bool {
        loop {
            if index == family {
                return true;
            }
            match self.entries.get(index).and_then(|e| e.parent) {
                Some(parent) => index = parent,
                None => return false,
            }
        }
    }

    /// A family and all below it, in the table's order: parents stand before their children.
    fn family(&self, family: usize) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().skip(family).filter(move |(i, _)| self.is_within(*i, family))
    }

    fn entry(&self, accelerator: &Accelerator) -> Option<&Entry> {
        self.names.get(accelerator).and_then(|i| self.entries.get(*i))
    }
}

#[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
fn table() -> &'static Table {
    static PARSED: OnceLock<Table> = OnceLock::new();
    PARSED.get_or_init(|| Table::parse(TABLE).unwrap_or_else(|e| panic!("data/accelerators.csv: {e}")))
}

/// Every canonical name, families before what belongs to them.
pub fn all() -> &'static [Entry] {
    &table().entries
}

/// The canonical name of a provider's text. A text that no alias knows is kept behind `unknown:`, so that it is shown
/// and never taken for another chip.
pub fn canonical(raw: &str) -> Accelerator {
    let mut name = raw.trim();
    while let Some(rest) = name.strip_prefix("unknown:") {
        name = rest.trim();
    }
    let table = table();
    match table.find(name).and_then(|i| table.entries.get(i)) {
        Some(entry) => entry.accelerator.clone(),
        // The ellipsis says that something was cut, and keeps the rest from being read as another chip.
        None if name.chars().count() > LONGEST_UNKNOWN => {
            let kept: String = name.chars().take(LONGEST_UNKNOWN - 1).chain(['…']).collect();
            Accelerator::unknown(&kept)
        }
        None => Accelerator::unknown(name),
    }
}

/// As [`canonical`], and where that leaves variants open (`A100`: 40 or 80 GB?) the memory that the provider reports
/// for one accelerator decides among them.
pub fn canonical_with_memory(raw: &str, gib: Option<f64>) -> Accelerator {
    let plain = canonical(raw);
    let table = table();
    let (Some(gib), Some(family)) = (gib, table.names.get(&plain)) else {
        return plain;
    };
    if table.entries.get(*family).is_some_and(|e| e.memory_gib.is_some()) {
        return plain;
    }
    // Parents stand before children, so the first of the nearest tells no more than is known.
    let mut best: Option<(f64, &Accelerator)> = None;
    for (_, entry) in table.family(*family) {
        let Some(nominal) = entry.memory_gib else { continue };
        let off = (gib - nominal).abs();
        if is_reported_as(gib, nominal) && best.is_none_or(|(least, _)| off < least) {
            best = Some((off, &entry.accelerator));
        }
    }
    best.map_or(plain, |(_, accelerator)| accelerator.clone())
}

/// Whether a driver's figure is that of a chip sold with so much memory.
pub fn is_reported_as(gib: f64, nominal: f64) -> bool {
    (REPORTED_AT_LEAST..=REPORTED_AT_MOST).contains(&(gib / nominal))
}

/// The nominal memory for a reported one: the chip's own where the two agree (22.35 → 24), the reported one where the
/// instance has only a part of a chip or the chip is not known.
pub fn nominal_memory_gib(accelerator: &Accelerator, reported: Option<f64>) -> Option<f64> {
    match (memory_gib(accelerator), reported) {
        (Some(nominal), Some(gib)) if !is_reported_as(gib, nominal) => Some(gib),
        (Some(nominal), _) => Some(nominal),
        (None, reported) => reported,
    }
}

/// The chips that a wish means: one name, or a family and all below it. Case and separators do not matter. A chip that
/// the table does not know can be chosen by its full name, `unknown:…`.
pub fn select(text: &str) -> Result<Vec<Accelerator>, UnknownAccelerator> {
    let table = table();
    let wish = text.trim();
    if let Some(family) = table.find(wish) {
        return Ok(table.family(family).map(|(_, e)| e.accelerator.clone()).collect());
    }
    if wish.starts_with("unknown:") {
        let chip = canonical(wish);
        if chip.as_str() != "unknown:" {
            return Ok(vec![chip]);
        }
    }
    Err(UnknownAccelerator { text: wish.chars().take(LONGEST_UNKNOWN).collect(), nearest: nearest(table, wish) })
}

/// The three canonical names that look most like a text.
fn nearest(table: &Table, wish: &str) -> Vec<String> {
    /// Below this two names have little more in common than a letter.
    const ALIKE: f64 = 0.75;
    let wish: String = normalise(wish).chars().take(LONGEST_UNKNOWN).collect();
    let mut scored: Vec<(f64, usize)> = Vec::new();
    for (spelling, index) in &table.spellings {
        let score = strsim::jaro_winkler(&wish, spelling);
        match scored.iter_mut().find(|(_, i)| i == index) {
            Some(best) => best.0 = best.0.max(score),
            None => scored.push((score, *index)),
        }
    }
    scored.retain(|(score, _)| *score >= ALIKE);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(3);
    scored.into_iter().filter_map(|(_, i)| table.entries.get(i)).map(|e| e.accelerator.to_string()).collect()
}

/// Whether a chip is the wanted one or belongs to the wanted family.
pub fn is_a(accelerator: &Accelerator, family: &Accelerator) -> bool {
    let table = table();
    match (table.names.get(accelerator), table.names.get(family)) {
        (Some(index), Some(family)) => table.is_within(*index, *family),
        _ => accelerator == family,
    }
}

/// Nominal memory of one accelerator in GiB; `None` for unknown chips and for families whose variants differ.
pub fn memory_gib(accelerator: &Accelerator) -> Option<f64> {
    table().entry(accelerator).and_then(|e| e.memory_gib)
}

/// A short form for narrow columns; an unknown chip keeps its whole name.
pub fn short(accelerator: &Accelerator) -> &str {
    table().entry(accelerator).map_or(accelerator.as_str(), |e| e.short)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn names(wish: &str) -> Vec<String> {
        select(wish).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_spelling_belongs_to_one_chip_and_canonical_is_idempotent() {
        let table = Table::parse(TABLE).unwrap();
        assert!(table.entries.len() > 70);
        let shorts: HashSet<&str> = table.entries.iter().map(|e| e.short).collect();
        assert_eq!(shorts.len(), table.entries.len(), "two chips share a short form");
        for (spelling, index) in &table.spellings {
            let chip = canonical(spelling);
            assert_eq!(chip, table.entries[*index].accelerator, "{spelling}");
            assert_eq!(canonical(chip.as_str()), chip);
            assert!(chip.is_known());
        }
    }

    #[test]
    fn the_spellings_of_the_providers_are_known() {
        for (raw, name) in [
            ("NVIDIA H100 80GB HBM3", "H100-80GB-SXM"),
            ("NVIDIA H100 PCIe", "H100-80GB-PCIe"),
            ("NVIDIA H100 NVL", "H100-94GB-NVL"),
            ("nvidia-h100-mega-80gb", "H100-80GB-SXM"),
            ("nvidia-h100-80gb", "H100-80GB"),
            ("H100-MEGA", "H100-80GB-SXM"),
            ("nvidia-tesla-t4", "T4"),
            ("nvidia-tesla-a100", "A100-40GB-SXM"),
            ("nvidia-a100-80gb", "A100-80GB"),
            ("NVIDIA A100-SXM4-80GB", "A100-80GB-SXM"),
            ("A100 80GB PCIe", "A100-80GB-PCIe"),
            ("Tesla V100-SXM2-32GB", "V100-32GB"),
            ("nvidia-l4", "L4"),
            ("NVIDIA GeForce RTX 4090", "RTX-4090"),
            ("RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"),
            ("RTXPRO6000", "RTX-PRO-6000"),
            ("Quadro RTX 6000", "RTX-6000"),
            ("RTX 6000 Ada Generation", "RTX-6000-Ada"),
            ("NVIDIA RTX A6000", "RTX-A6000"),
            ("AMD Instinct MI300X OAM", "MI300X"),
            ("AMD Radeon Pro V520", "Radeon-V520"),
            ("Gaudi HL-205", "Gaudi"),
            ("B300 SXM6 262GB", "B300"),
            ("tpu-v5-lite-podslice", "TPU-v5e"),
            ("h100", "H100"),
        ] {
            assert_eq!(canonical(raw).as_str(), name, "{raw}");
        }
    }

    #[test]
    fn b14_no_name_is_found_by_its_beginning() {
        for wish in ["A100-8", "A100-80", "A100-80G", "H10", "V100-3", "L", "H100-80GB-S", "A100-80GB:8", ""] {
            let refused = select(wish).unwrap_err();
            assert!(!canonical(wish).is_known(), "{wish}");
            assert_eq!(refused.text, wish);
        }
        let refused = select("A100-8").unwrap_err();
        assert!(refused.nearest.iter().any(|n| n.starts_with("A100")), "{refused}");
        assert!(refused.to_string().starts_with("there is no accelerator 'A100-8'; did you mean A100"), "{refused}");
        assert!(select("zzzzqqqq").unwrap_err().nearest.is_empty());
    }

    #[test]
    fn b14_a_family_means_its_variants_and_no_other_chip() {
        assert_eq!(names("h100_80gb"), ["H100-80GB", "H100-80GB-PCIe", "H100-80GB-SXM"]);
        assert_eq!(names("H100"), ["H100", "H100-80GB", "H100-80GB-PCIe", "H100-80GB-SXM", "H100-94GB-NVL"]);
        assert_eq!(names("A100-80GB"), ["A100-80GB", "A100-80GB-PCIe", "A100-80GB-SXM"]);
        assert_eq!(names("A100").len(), 7);
        assert_eq!(names("V100-32GB"), ["V100-32GB"]);
        assert_eq!(names("L4"), ["L4"]);
        assert_eq!(names("A10"), ["A10"]);
        assert_eq!(names("nvidia h100 sxm"), ["H100-80GB-SXM"]);
        assert!(is_a(&canonical("A100-SXM4-80GB"), &canonical("A100")));
        assert!(!is_a(&canonical("A100-SXM4-40GB"), &canonical("A100-80GB")));
        assert!(!is_a(&canonical("A100"), &canonical("A100-80GB")), "a chip of unknown memory is not one of 80 GB");
    }

    #[test]
    fn b14_reported_memory_tells_variants_apart_and_is_rounded_to_the_nominal() {
        let with = |raw: &str, gib: f64| canonical_with_memory(raw, Some(gib)).to_string();
        assert_eq!(with("A100", 40.0), "A100-40GB");
        assert_eq!(with("A100", 80.0), "A100-80GB");
        assert_eq!(with("V100", 32.0), "V100-32GB");
        assert_eq!(with("V100", 15.78), "V100-16GB");
        assert_eq!(with("H100", 79.6475), "H100-80GB");
        assert_eq!(with("H100", 94.0), "H100-94GB-NVL");
        assert_eq!(with("GH200", 96.0), "GH200-96GB");
        assert_eq!(with("A100", 60.0), "A100", "no variant has 60 GB");
        assert_eq!(with("T4", 14.6), "T4");
        assert_eq!(with("Foo 9", 80.0), "unknown:Foo 9");
        assert_eq!(nominal_memory_gib(&canonical("L4"), Some(22.3516)), Some(24.0));
        assert_eq!(nominal_memory_gib(&canonical("L40S"), Some(44.7031)), Some(48.0));
        assert_eq!(nominal_memory_gib(&canonical("B300"), Some(262.0)), Some(288.0));
        assert_eq!(nominal_memory_gib(&canonical("A10"), Some(4.0)), Some(4.0), "a sixth of a card");
        assert_eq!(nominal_memory_gib(&canonical("Foo"), Some(4.0)), Some(4.0));
        assert_eq!(nominal_memory_gib(&canonical("A100"), None), None);
    }

    #[test]
    fn c2_an_unknown_chip_is_kept_and_can_be_chosen() {
        let chip = canonical("  R100 SXM9 999GB ");
        assert_eq!(chip.as_str(), "unknown:R100 SXM9 999GB");
        assert!(!chip.is_known());
        assert_eq!(short(&chip), "unknown:R100 SXM9 999GB");
        assert_eq!(select(chip.as_str()), Ok(vec![chip.clone()]));
        assert_eq!(memory_gib(&chip), None);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_canonical_is_stable(raw in "\\PC*|(unknown:)*[ a-zA-Z0-9_/-]{0,12}") {
            let chip = canonical(&raw);
            prop_assert_eq!(&canonical(chip.as_str()), &chip);
            let _ = canonical_with_memory(&raw, Some(-1.0));
            if let Err(refused) = select(&raw) {
                prop_assert!(refused.nearest.len() <= 3);
                let _ = refused.to_string();
            }
        }

        #[test]
        fn case_and_separators_do_not_matter(index in 0..table().entries.len(), separator in "[ _/-]{1,2}", upper: bool) {
            let name = &table().entries[index].accelerator;
            let spelt = name.as_str().replace('-', &separator);
            let spelt = if upper { spelt.to_uppercase() } else { spelt.to_lowercase() };
            prop_assert_eq!(&canonical(&spelt), name);
        }
    }
}
