//! Which quota a launch counts against, and what it leaves. EC2 counts virtual CPUs, by family and apart for spot and on-demand: more of
//! the one does not help the other, so a refusal must name which it was.

use std::sync::{Arc, PoisonError};

use aws_sdk_ec2::types::InstanceLifecycleType;
use chrono::{DateTime, TimeDelta, Utc};
use rustc_hash::FxHashMap;

use super::ec2::{Ec2, filter};
use crate::config::limits::{AWS_PAGES, QUOTA_TTL};
use crate::domain::{ErrorClass, Purchase, QuotaRoom, Region, Shape};
use crate::provider::Result;

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

/// Families of machines that are looked at, as EC2's filter takes them.
const LOOKED_AT: [&str; 6] = ["p*", "g*", "vt*", "trn*", "inf*", "dl*"];

fn bucket(kind: &str) -> Option<usize> {
    BUCKETS.iter().position(|b| b.families.iter().any(|f| kind.starts_with(f)))
}

/// One region's quotas: of each bucket and purchase model the code, the limit, and the virtual CPUs in use.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    at: DateTime<Utc>,
    lines: FxHashMap<(usize, bool), Line>,
}

#[derive(Debug, Clone)]
struct Line {
    code: String,
    limit: f64,
    used: f64,
}

impl Quotas {
    /// The room for machines of this shape; `None` where it is not told or what one counts is not known.
    pub(super) fn room(&self, shape: &Shape, purchase: Purchase) -> Option<QuotaRoom> {
        let per_instance = f64::from(shape.vcpus.filter(|n| *n > 0)?);
        let spot = match purchase {
            Purchase::Spot => true,
            Purchase::OnDemand => false,
            // Paid for beforehand: it counts against none of these.
            Purchase::Reserved => return None,
        };
        let line = self.lines.get(&(bucket(shape.instance_type.as_str())?, spot))?;
        Some(QuotaRoom { code: line.code.clone(), limit: line.limit, used: line.used, per_instance })
    }
}

impl Ec2 {
    /// What the account may still run in a region, as remembered for some minutes; `None` at an address that has no such
    /// service, or where the credentials may not ask it.
    pub(super) async fn quotas(&self, region: &Region, now: DateTime<Utc>) -> Result<Option<Arc<Quotas>>> {
        let known = self.quotas.lock().unwrap_or_else(PoisonError::into_inner).get(region).cloned();
        if let Some(quotas) = known.filter(|q| {
            let age = now - q.at;
            age >= TimeDelta::zero() && age < TimeDelta::from_std(QUOTA_TTL).unwrap_or_default()
        }) {
            return Ok(Some(quotas));
        }
        let Some(limits) = self.quota_limits(region).await? else { return Ok(None) };
        let used = self.vcpus_in_use(region).await?;
        let line = |(key, (code, limit)): ((usize, bool), (String, f64))| {
            let used = used.get(&key).copied().unwrap_or_default();
            // A machine whose CPUs nobody tells may have used it up.
            used.is_finite().then_some((key, Line { code, limit, used }))
        };
        let quotas = Arc::new(Quotas { at: now, lines: limits.into_iter().filter_map(line).collect() });
        self.quotas.lock().unwrap_or_else(PoisonError::into_inner).insert(region.clone(), quotas.clone());
        Ok(Some(quotas))
    }

    /// Limits by bucket, and whether of spot.
    async fn quota_limits(&self, region: &Region) -> Result<Option<FxHashMap<(usize, bool), (String, f64)>>> {
        let site = self.site("ListServiceQuotas", region);
        let Some(client) = self.clients.quotas(region) else { return Ok(None) };
        let mut pages = client.list_service_quotas().service_code("ec2").into_paginator().send();
        let mut limits = FxHashMap::default();
        let mut page = 0;
        while let Some(answer) = pages.next().await {
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) => {
                    let told = site.sdk(&error);
                    // An address of one's own speaks EC2, and need not speak this; and a right that is not given is no
                    // fault of the feed: offers are shown without it.
                    return if self.settings.endpoint_url.is_some() || told.class == ErrorClass::Auth {
                        tracing::debug!(%region, error = %told, "quotas are not to be had");
                        Ok(None)
                    } else {
                        Err(told)
                    };
                }
            };
            for quota in answer.quotas() {
                let (Some(code), Some(limit)) = (quota.quota_code(), quota.value().filter(|v| v.is_finite())) else {
                    continue;
                };
                let name = quota.quota_name().unwrap_or_default();
                for (at, bucket) in BUCKETS.iter().enumerate() {
                    for (spot, (known_name, known_code)) in [(false, bucket.on_demand), (true, bucket.spot)] {
                        if known_code == Some(code) || (known_code.is_none() && name.eq_ignore_ascii_case(known_name)) {
                            limits.insert((at, spot), (code.to_owned(), limit));
                        }
                    }
                }
            }
            page += 1;
            if page >= AWS_PAGES {
                return Err(site.error(ErrorClass::Transient, "the listing does not end"));
            }
        }
        Ok(Some(limits))
    }

    /// Virtual CPUs of all machines of the account that run or are about to, whoever started them. Buckets with the same
    /// on-demand quota share its use. Infinite where one of them does not tell how many it has.
    async fn vcpus_in_use(&self, region: &Region) -> Result<FxHashMap<(usize, bool), f64>> {
        let site = self.site("DescribeInstances", region);
        let filters = vec![
            filter("instance-type", LOOKED_AT.map(str::to_owned)),
            filter("instance-state-name", ["pending".to_owned(), "running".to_owned()]),
        ];
        let mut pages = self
            .client(&site)?
            .describe_instances()
            .set_filters(Some(filters))
            .into_paginator()
            .stop_on_duplicate_token(false)
            .send();
        let mut by_code: FxHashMap<(String, bool), f64> = FxHashMap::default();
        let mut page = 0;
        while let Some(answer) = pages.next().await {
            let answer = answer.map_err(|e| site.sdk(&e))?;
            for machine in answer.reservations().iter().flat_map(aws_sdk_ec2::types::Reservation::instances) {
                let kind = machine.instance_type().map_or("", |t| t.as_str());
                let spot = match machine.instance_lifecycle() {
                    Some(InstanceLifecycleType::CapacityBlock) => continue,
                    lifecycle => lifecycle == Some(&InstanceLifecycleType::Spot),
                };
                let Some(at) = bucket(kind) else { continue };
                let cpu = machine.cpu_options();
                let vcpus = cpu.and_then(|c| Some(f64::from(c.core_count()?) * f64::from(c.threads_per_core()?)));
                let vcpus = vcpus.or_else(|| {
                    let shape = self.published().shape(&kind.into())?;
                    shape.vcpus.map(f64::from)
                });
                *by_code.entry((quota_name(at, spot).to_owned(), spot)).or_default() += vcpus.unwrap_or(f64::INFINITY);
            }
            page += 1;
            if page >= AWS_PAGES {
                return Err(site.error(ErrorClass::Transient, "the listing does not end"));
            }
        }
        let all = (0..BUCKETS.len()).flat_map(|at| [(at, false), (at, true)]);
        let of = |(at, spot): (usize, bool)| by_code.get(&(quota_name(at, spot).to_owned(), spot)).copied();
        Ok(all.filter_map(|key| Some((key, of(key)?))).collect())
    }
}

fn quota_name(at: usize, spot: bool) -> &'static str {
    BUCKETS.get(at).map_or("", |b| if spot { b.spot.0 } else { b.on_demand.0 })
}

/// What a launch of this shape counts against, in words for people: name and code of the quota, and the need.
pub(super) fn told(shape: &Shape, purchase: Purchase) -> String {
    let kind = shape.instance_type.as_str();
    let need = shape.vcpus.map_or_else(String::new, |n| format!("; one {kind} counts {n} vCPUs"));
    let bucket = bucket(kind).and_then(|at| BUCKETS.get(at));
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
