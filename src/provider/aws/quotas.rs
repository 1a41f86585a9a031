//! Which quota a launch counts against. EC2 counts virtual CPUs, by family and apart for spot and on-demand: more of
//! the one does not help the other, so a refusal must name which it was.

use crate::domain::{Purchase, Shape};

/// First letters of a type's family, and the names and codes of its two quotas (Service Quotas, service `ec2`). The
/// code is left out where it is not certain.
struct Bucket {
    families: &'static [&'static str],
    on_demand: (&'static str, Option<&'static str>),
    spot: (&'static str, Option<&'static str>),
}

/// The more special ones first.
const BUCKETS: &[Bucket] = &[
    Bucket {
        families: &["p6"],
        on_demand: ("Running On-Demand P instances", Some("L-417A185B")),
        spot: ("P6 Spot Instance Requests", None),
    },
    Bucket {
        families: &["p5"],
        on_demand: ("Running On-Demand P instances", Some("L-417A185B")),
        spot: ("All P5 Spot Instance Requests", Some("L-C4BD4855")),
    },
    Bucket {
        families: &["p2", "p3", "p4"],
        on_demand: ("Running On-Demand P instances", Some("L-417A185B")),
        spot: ("All P4, P3 and P2 Spot Instance Requests", Some("L-7212CCBC")),
    },
    Bucket {
        families: &["trn"],
        on_demand: ("Running On-Demand Trn instances", Some("L-2C3B7624")),
        spot: ("All Trn Spot Instance Requests", Some("L-6B0D517C")),
    },
    Bucket {
        families: &["inf"],
        on_demand: ("Running On-Demand Inf instances", Some("L-1945791B")),
        spot: ("All Inf Spot Instance Requests", Some("L-B5D1601B")),
    },
    Bucket {
        families: &["dl"],
        on_demand: ("Running On-Demand DL instances", Some("L-6E869C2A")),
        spot: ("All DL Spot Instance Requests", Some("L-85EED4F7")),
    },
    Bucket {
        families: &["g", "vt"],
        on_demand: ("Running On-Demand G and VT instances", Some("L-DB2E81BA")),
        spot: ("All G and VT Spot Instance Requests", Some("L-3819A6DF")),
    },
];

/// What a launch of this shape counts against, in words for people: name and code of the quota, and the need.
pub(super) fn told(shape: &Shape, purchase: Purchase) -> String {
    let kind = shape.instance_type.as_str();
    let need = shape.vcpus.map_or_else(String::new, |n| format!("; one {kind} counts {n} vCPUs"));
    let bucket = BUCKETS.iter().find(|b| b.families.iter().any(|f| kind.starts_with(f)));
    match (bucket, purchase) {
        (Some(b), Purchase::OnDemand | Purchase::Spot) => {
            let (name, code) = if purchase == Purchase::Spot { b.spot } else { b.on_demand };
            let code = code.map_or_else(String::new, |c| format!(" ({c})"));
            format!("quota {name}{code}{need}")
        }
        _ => format!("{purchase} quota of the family of {kind}{need}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Accelerator, AcceleratorCount, Interconnect};

    fn shape(kind: &str, vcpus: Option<u32>) -> Shape {
        Shape {
            instance_type: kind.into(),
            accelerator: Accelerator::unknown("x"),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: None,
            vcpus,
            memory_gib: None,
            interconnect: Interconnect::Unknown,
        }
    }

    #[test]
    fn d4_spot_and_on_demand_quotas_are_told_apart() {
        let p5 = shape("p5.48xlarge", Some(192));
        assert_eq!(
            told(&p5, Purchase::OnDemand),
            "quota Running On-Demand P instances (L-417A185B); one p5.48xlarge counts 192 vCPUs"
        );
        assert_eq!(
            told(&p5, Purchase::Spot),
            "quota All P5 Spot Instance Requests (L-C4BD4855); one p5.48xlarge counts 192 vCPUs"
        );
        assert!(told(&shape("g6e.xlarge", None), Purchase::Spot).ends_with("(L-3819A6DF)"));
        assert_eq!(told(&shape("p6-b300.48xlarge", None), Purchase::Spot), "quota P6 Spot Instance Requests");
        assert_eq!(told(&shape("zz9.large", None), Purchase::OnDemand), "on-demand quota of the family of zz9.large");
    }
}
