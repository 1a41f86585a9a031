//! What the name of an instance type tells beyond its price list: which variant of a chip it has and which network lies
//! between such machines. The tables are `data/instance_types.csv` and `data/provider_accelerators.csv`.

use std::sync::OnceLock;

use super::accelerators::{canonical, canonical_with_memory, is_a, is_reported_as, memory_gib};
use crate::domain::{Accelerator, AcceleratorCount, Interconnect, Shape};

const TYPES: &str = include_str!("../../data/instance_types.csv");
const NAMES: &str = include_str!("../../data/provider_accelerators.csv");

struct Rule {
    provider: &'static str,
    /// The whole name, or what stands before the `*`.
    pattern: &'static str,
    is_family: bool,
    accelerator: Option<Accelerator>,
    interconnect: Interconnect,
}

impl Rule {
    fn fits(&self, provider: &str, instance_type: &str) -> bool {
        self.provider == provider
            && if self.is_family { instance_type.starts_with(self.pattern) } else { instance_type == self.pattern }
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    text.lines().enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#')).skip(1)
}

fn known(name: &str, number: usize) -> Result<Accelerator, String> {
    let accelerator = canonical(name);
    if accelerator.as_str() == name {
        Ok(accelerator)
    } else {
        Err(format!("line {}: '{name}' is not a canonical name", number + 1))
    }
}

fn parse_types(text: &'static str) -> Result<Vec<Rule>, String> {
    lines(text)
        .map(|(number, line)| {
            let fields: Vec<&'static str> = line.split(',').collect();
            let [provider, pattern, accelerator, interconnect] = fields.as_slice() else {
                return Err(format!("line {}: four fields are needed", number + 1));
            };
            let family = pattern.strip_suffix('*');
            Ok(Rule {
                provider,
                pattern: family.unwrap_or(pattern),
                is_family: family.is_some(),
                accelerator: if accelerator.is_empty() { None } else { Some(known(accelerator, number)?) },
                interconnect: interconnect_from(interconnect)
                    .ok_or_else(|| format!("line {}: '{interconnect}' is no interconnect", number + 1))?,
            })
        })
        .collect()
}

fn parse_names(text: &'static str) -> Result<Vec<(&'static str, &'static str, Accelerator)>, String> {
    lines(text)
        .map(|(number, line)| {
            let fields: Vec<&'static str> = line.split(',').collect();
            let [provider, name, accelerator] = fields.as_slice() else {
                return Err(format!("line {}: three fields are needed", number + 1));
            };
            Ok((*provider, *name, known(accelerator, number)?))
        })
        .collect()
}

#[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
fn types() -> &'static [Rule] {
    static PARSED: OnceLock<Vec<Rule>> = OnceLock::new();
    PARSED.get_or_init(|| parse_types(TYPES).unwrap_or_else(|e| panic!("data/instance_types.csv: {e}")))
}

#[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
fn names() -> &'static [(&'static str, &'static str, Accelerator)] {
    static PARSED: OnceLock<Vec<(&'static str, &'static str, Accelerator)>> = OnceLock::new();
    PARSED.get_or_init(|| parse_names(NAMES).unwrap_or_else(|e| panic!("data/provider_accelerators.csv: {e}")))
}

/// From its name in the tables and in JSON.
pub fn interconnect_from(text: &str) -> Option<Interconnect> {
    Some(match text {
        "ethernet" => Interconnect::Ethernet,
        "efa" => Interconnect::Efa,
        "infiniband" => Interconnect::Infiniband,
        "gpudirect" => Interconnect::Gpudirect,
        "unknown" => Interconnect::Unknown,
        _ => return None,
    })
}

/// Its name in the tables and in JSON.
pub const fn interconnect_name(interconnect: Interconnect) -> &'static str {
    match interconnect {
        Interconnect::Ethernet => "ethernet",
        Interconnect::Efa => "efa",
        Interconnect::Infiniband => "infiniband",
        Interconnect::Gpudirect => "gpudirect",
        Interconnect::Unknown => "unknown",
    }
}

/// The network between machines of a type, as far as its name tells.
pub fn interconnect(provider: &str, instance_type: &str) -> Interconnect {
    types().iter().find(|r| r.fits(provider, instance_type)).map_or(Interconnect::Unknown, |r| r.interconnect)
}

/// The accelerator of a machine from all that is known of it: the type's name (`gpu_1x_h100_pcie` is no SXM), then what
/// this provider means by the chip's name, then the name and the memory of one chip in GiB.
///
/// Every adapter should name accelerators through this, so that a live offer and a published one agree. A provider that
/// names another chip than its type is known for is believed.
pub fn accelerator(provider: &str, instance_type: &str, raw: &str, memory_gib: Option<f64>) -> Accelerator {
    let said = canonical_with_memory(raw, memory_gib);
    let nothing_said = raw.trim().is_empty();
    if let Some(from_type) =
        types().iter().find(|r| r.fits(provider, instance_type)).and_then(|r| r.accelerator.as_ref())
        && (nothing_said || is_a(from_type, &said))
    {
        return from_type.clone();
    }
    accelerator_named(provider, raw).filter(|named| is_a(named, &said)).unwrap_or(said)
}

/// What a price list or an interface says of a machine, as it says it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// The type's name.
    pub instance_type: &'a str,
    /// The chip's name.
    pub accelerator: &'a str,
    /// How many of them; a part of one counts below one.
    pub accelerators: AcceleratorCount,
    /// Memory of one in GiB as reported; some lists give that of all together, which is recognised.
    pub gpu_memory_gib: Option<f64>,
    /// Virtual CPUs.
    pub vcpus: Option<u32>,
    /// Main memory in GiB.
    pub memory_gib: Option<f64>,
}

/// The machine that a list tells of, with the chip's canonical name, its nominal memory and the network; and whether
/// the memory that the list gives agrees with the chip's.
///
/// The rule for memory: a whole chip has the nominal memory of its table; what the list says only tells variants apart.
/// A part of a chip has what the list says. A chip that the table does not know has what the list says.
pub fn shape(provider: &str, told: &Told<'_>) -> (Shape, bool) {
    let count = told.accelerators.to_f64();
    let each = |gib: Option<f64>| accelerator(provider, told.instance_type, told.accelerator, gib);
    let mut chip = each(told.gpu_memory_gib);
    if memory_gib(&chip).is_none() && count > 1.0 {
        chip = each(told.gpu_memory_gib.map(|all| all / count));
    }
    let (gpu_memory_gib, agrees) = match (memory_gib(&chip), told.gpu_memory_gib) {
        (Some(nominal), None) => (Some(nominal * count.min(1.0)), true),
        (Some(nominal), Some(part)) if count < 1.0 && !is_reported_as(part, nominal) => {
            (Some(part.min(nominal)), part <= nominal)
        }
        (Some(nominal), Some(_)) if count < 1.0 => (Some(nominal * count), true),
        (Some(nominal), Some(gib)) => {
            (Some(nominal), is_reported_as(gib, nominal) || is_reported_as(gib, nominal * count))
        }
        (None, reported) => (reported, true),
    };
    let shape = Shape {
        instance_type: told.instance_type.into(),
        accelerator: chip,
        accelerators: told.accelerators,
        gpu_memory_gib,
        vcpus: told.vcpus,
        memory_gib: told.memory_gib,
        interconnect: interconnect(provider, told.instance_type),
    };
    (shape, agrees)
}

/// What one provider (or table, such as `skypilot`) means by a chip's bare name, where that is more than the name says.
pub fn accelerator_named(provider: &str, raw: &str) -> Option<Accelerator> {
    names().iter().find(|(p, name, _)| *p == provider && name.eq_ignore_ascii_case(raw.trim())).map(|(.., a)| a.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sound() {
        assert!(parse_types(TYPES).unwrap().len() > 100);
        parse_names(NAMES).unwrap();
        assert!(parse_types("h\naws,p5.*,H100-SXM,efa").is_err(), "an alias is not a canonical name");
        assert!(parse_types("h\naws,p5.*,H100-80GB-SXM,string").is_err());
    }

    #[test]
    fn b14_the_type_tells_the_variant() {
        let of = |provider, kind, raw, gib| accelerator(provider, kind, raw, gib).to_string();
        assert_eq!(of("aws", "p4d.24xlarge", "A100", Some(40.0)), "A100-40GB-SXM");
        assert_eq!(of("aws", "p4de.24xlarge", "A100", Some(80.0)), "A100-80GB-SXM");
        assert_eq!(of("lambda", "gpu_1x_h100_pcie", "H100", Some(80.0)), "H100-80GB-PCIe");
        assert_eq!(of("lambda", "gpu_1x_h100_sxm5", "H100", Some(80.0)), "H100-80GB-SXM");
        assert_eq!(of("runpod", "6x_H100_SECURE", "H100", Some(80.0)), "H100-80GB-PCIe");
        assert_eq!(of("runpod", "6x_H100-SXM_SECURE", "H100-SXM", Some(80.0)), "H100-80GB-SXM");
        assert_eq!(of("hyperbolic", "1x-H100-75-722", "H100", Some(79.6475)), "H100-80GB", "the variant is not told");
        assert_eq!(of("gcp", "a3-megagpu-8g", "H100-MEGA", Some(80.0)), "H100-80GB-SXM");
        assert_eq!(of("aws", "p5.48xlarge", "", None), "H100-80GB-SXM");
        assert_eq!(of("aws", "p5.48xlarge", "R100", Some(300.0)), "unknown:R100", "the provider is believed");
        assert_eq!(of("aws", "p5.48xlarge", "T4", Some(16.0)), "T4");
    }

    #[test]
    fn b14_memory_is_that_of_one_whole_chip_whatever_the_list_multiplies() {
        let of = |kind, chip, count: f64, gib| {
            let accelerators = AcceleratorCount::from_f64(count).unwrap();
            let told =
                Told { instance_type: kind, accelerator: chip, accelerators, gpu_memory_gib: gib, ..Told::default() };
            let (shape, agrees) = shape("x", &told);
            (shape.accelerator.to_string(), shape.gpu_memory_gib, agrees)
        };
        assert_eq!(of("g6.48xlarge", "L4", 8.0, Some(22.3516)), ("L4".to_owned(), Some(24.0), true));
        assert_eq!(of("g6.48xlarge", "L4", 8.0, Some(178.8)), ("L4".to_owned(), Some(24.0), true));
        assert_eq!(of("g6.48xlarge", "L4", 8.0, Some(1430.0)), ("L4".to_owned(), Some(24.0), false));
        assert_eq!(of("a", "A100", 8.0, Some(320.0)), ("A100-40GB".to_owned(), Some(40.0), true));
        assert_eq!(of("a", "A100", 8.0, None), ("A100".to_owned(), None, true));
        assert_eq!(of("sixth", "A10", 1.0 / 6.0, Some(4.0)), ("A10".to_owned(), Some(4.0), true));
        assert_eq!(of("eighth", "RTX-PRO-6000", 0.125, None), ("RTX-PRO-6000".to_owned(), Some(12.0), true));
        assert_eq!(of("half", "A10", 0.5, Some(24.0)), ("A10".to_owned(), Some(12.0), true));
        assert_eq!(of("new", "R100", 2.0, Some(300.0)), ("unknown:R100".to_owned(), Some(300.0), true));
    }

    #[test]
    fn the_type_tells_the_network() {
        assert_eq!(interconnect("aws", "p5.48xlarge"), Interconnect::Efa);
        assert_eq!(interconnect("aws", "p5e.48xlarge"), Interconnect::Efa);
        assert_eq!(interconnect("aws", "g4dn.xlarge"), Interconnect::Ethernet);
        assert_eq!(interconnect("azure", "Standard_ND96isr_H100_v5"), Interconnect::Infiniband);
        assert_eq!(interconnect("azure", "Standard_ND96is_H100_v5"), Interconnect::Ethernet);
        assert_eq!(interconnect("gcp", "a3-megagpu-8g"), Interconnect::Gpudirect);
        assert_eq!(interconnect("runpod", "1x_L40S_SECURE"), Interconnect::Unknown);
        assert_eq!(interconnect("azure", "p5.48xlarge"), Interconnect::Unknown);
    }
}
