//! How sought-after an accelerator is, and what follows from it. These are properties of the simulated clouds, chosen so
//! that the demo shows what operators meet: the newest chips are scarce everywhere and reclaimed several times a day in
//! hot zones, old ones are nearly always to be had.

use crate::domain::Accelerator;

/// The figures of one class of accelerators.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scarcity {
    /// Spot shortages begun an hour in a zone of ordinary heat, all levels (cloud, region, zone) together.
    pub(super) spot_shortages_per_hour: f64,
    /// The same for shortages that also leave nothing to on-demand.
    pub(super) on_demand_shortages_per_hour: f64,
    /// Median hours that a spot shortage lasts in a zone of ordinary heat.
    pub(super) spot_median_hours: f64,
    /// The same for an on-demand shortage.
    pub(super) on_demand_median_hours: f64,
    /// Reclaims an hour of a single spot machine that have nothing to do with the zone's stock.
    pub(super) reclaims_per_hour: f64,
    /// GPUs that a zone keeps for on-demand, least and most.
    pub(super) on_demand_gpus: (f64, f64),
    /// GPUs that a zone has for spot when nothing is short.
    pub(super) spot_gpus: (f64, f64),
    /// How far the spot price strays from its mean, as a factor's exponent.
    pub(super) price_swing: f64,
}

const SCARCE: Scarcity = Scarcity {
    spot_shortages_per_hour: 0.13,
    on_demand_shortages_per_hour: 0.045,
    spot_median_hours: 0.7,
    on_demand_median_hours: 2.0,
    reclaims_per_hour: 0.01,
    on_demand_gpus: (8.0, 96.0),
    spot_gpus: (8.0, 64.0),
    price_swing: 0.35,
};

const SOUGHT: Scarcity = Scarcity {
    spot_shortages_per_hour: 0.05,
    on_demand_shortages_per_hour: 0.010,
    spot_median_hours: 0.6,
    on_demand_median_hours: 1.2,
    reclaims_per_hour: 0.005,
    on_demand_gpus: (16.0, 192.0),
    spot_gpus: (16.0, 128.0),
    price_swing: 0.28,
};

const COMMON: Scarcity = Scarcity {
    spot_shortages_per_hour: 0.020,
    on_demand_shortages_per_hour: 0.003,
    spot_median_hours: 0.5,
    on_demand_median_hours: 0.7,
    reclaims_per_hour: 0.002,
    on_demand_gpus: (48.0, 400.0),
    spot_gpus: (32.0, 256.0),
    price_swing: 0.20,
};

impl Scarcity {
    /// The class of a chip, by its canonical name; one that is not known is taken to be sought after.
    pub(super) fn of(accelerator: &Accelerator) -> Self {
        let name = accelerator.as_str();
        let name = name.strip_prefix("unknown:").unwrap_or(name).to_ascii_uppercase();
        let one_of = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
        if one_of(&["H100", "H200", "H800", "H20", "B100", "B200", "B300", "GB", "GH200", "MI3", "TRAINIUM2", "TRN2"]) {
            SCARCE
        } else if one_of(&["T4", "L4-", "M4", "M6", "P4", "K80", "P100", "V100", "A10", "A2", "A4000", "RTX", "GAUDI"])
            && !one_of(&["A100", "RTX-PRO", "RTXPRO"])
            || name == "L4"
        {
            COMMON
        } else {
            SOUGHT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_fall_into_their_classes() {
        let class = |name: &str| Scarcity::of(&Accelerator::from_canonical(name));
        for scarce in ["H100-80GB-SXM", "H200-141GB-SXM", "B200-180GB", "unknown:B300 SXM6", "MI300X-192GB"] {
            assert_eq!(class(scarce), SCARCE, "{scarce}");
        }
        for sought in ["A100-80GB-SXM", "A100-40GB", "L40S-48GB", "RTX-PRO-6000", "unknown:x"] {
            assert_eq!(class(sought), SOUGHT, "{sought}");
        }
        for common in ["T4-16GB", "L4-24GB", "L4", "A10G-24GB", "A10-24GB", "V100-16GB", "RTX-6000-24GB"] {
            assert_eq!(class(common), COMMON, "{common}");
        }
    }
}
