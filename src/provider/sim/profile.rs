//! What tells the simulated clouds apart: the names of their calls and codes, tokens, notices, boot times, quotas.

use std::time::Duration;

use crate::domain::{Purchase, Shape};
use crate::provider::{Capabilities, Support};

/// How a cloud counts its quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaUnit {
    /// In virtual CPUs under EC2's codes.
    Ec2Vcpus,
    /// In virtual CPUs of a region.
    AzureCores,
    /// In GPUs by model.
    GcpGpus,
    /// In GPUs of a region, under this code.
    Gpus(&'static str),
    /// None that its interface tells.
    Hidden,
}

/// One cloud's ways.
#[derive(Debug, Clone, Copy)]
pub(super) struct Profile {
    /// Why it has no launch tokens; `None` where it has.
    pub(super) no_token: Option<&'static str>,
    /// Seconds from accepted to running, least and most.
    pub(super) boot_seconds: (f64, f64),
    /// How long before it takes a spot machine it says so.
    pub(super) notice: Duration,
    /// Quotas.
    pub(super) quota: QuotaUnit,
    /// Machines that the account may hold in all, where there is such a limit.
    pub(super) account_machines: Option<u32>,
    /// A machine whose making failed stays, and bills, until it is deleted; else it is gone by itself.
    pub(super) failed_stays: bool,
    /// Names of its calls: offers, list, launch, terminate.
    pub(super) calls: [&'static str; 4],
    /// Code of a refusal for want of stock.
    pub(super) no_capacity: &'static str,
    /// Code of a refusal by quota.
    pub(super) over_quota: &'static str,
    /// Code of a spot price above the limit.
    pub(super) price_above: &'static str,
    /// Code of too many calls.
    pub(super) throttled: &'static str,
    /// Its word on why it took a spot machine.
    pub(super) preempted: &'static str,
}

const GENERIC: Profile = Profile {
    no_token: Some("its interface takes no idempotency token"),
    boot_seconds: (60.0, 180.0),
    notice: Duration::ZERO,
    quota: QuotaUnit::Hidden,
    account_machines: None,
    failed_stays: true,
    calls: ["list-offers", "list-instances", "create-instance", "delete-instance"],
    no_capacity: "no_capacity",
    over_quota: "quota_exceeded",
    price_above: "PriceAboveLimit",
    throttled: "too_many_requests",
    preempted: "preempted",
};

impl Profile {
    /// The ways of a cloud; one that is not known has no tokens and no notice, which is the harder case.
    pub(super) fn of(provider: &str) -> Self {
        match provider {
            "aws" => Self {
                no_token: None,
                boot_seconds: (50.0, 120.0),
                notice: Duration::from_mins(2),
                quota: QuotaUnit::Ec2Vcpus,
                failed_stays: false,
                calls: ["DescribeInstanceTypeOfferings", "DescribeInstances", "RunInstances", "TerminateInstances"],
                no_capacity: "InsufficientInstanceCapacity",
                over_quota: "VcpuLimitExceeded",
                price_above: "SpotMaxPriceTooLow",
                throttled: "RequestLimitExceeded",
                preempted: "Server.SpotInstanceTermination",
                ..GENERIC
            },
            "azure" => Self {
                no_token: None,
                boot_seconds: (90.0, 240.0),
                notice: Duration::from_secs(30),
                quota: QuotaUnit::AzureCores,
                calls: ["ResourceSkus", "VirtualMachines.List", "VirtualMachines.Put", "VirtualMachines.Delete"],
                no_capacity: "AllocationFailed",
                over_quota: "OperationNotAllowed",
                throttled: "TooManyRequests",
                preempted: "Preempt",
                ..GENERIC
            },
            "gcp" => Self {
                no_token: None,
                boot_seconds: (40.0, 90.0),
                notice: Duration::from_secs(30),
                quota: QuotaUnit::GcpGpus,
                failed_stays: false,
                calls: [
                    "machineTypes.aggregatedList",
                    "instances.aggregatedList",
                    "instances.insert",
                    "instances.delete",
                ],
                no_capacity: "ZONE_RESOURCE_POOL_EXHAUSTED",
                over_quota: "QUOTA_EXCEEDED",
                throttled: "rateLimitExceeded",
                preempted: "compute.instances.preempted",
                ..GENERIC
            },
            "nebius" => Self {
                no_token: None,
                quota: QuotaUnit::Gpus("compute.instance.gpu"),
                no_capacity: "not_enough_resources",
                over_quota: "quota_failure",
                ..GENERIC
            },
            "oci" => Self {
                no_token: None,
                boot_seconds: (90.0, 240.0),
                notice: Duration::from_secs(30),
                quota: QuotaUnit::Gpus("gpu-count"),
                calls: ["ListShapes", "ListInstances", "LaunchInstance", "TerminateInstance"],
                no_capacity: "OutOfHostCapacity",
                over_quota: "LimitExceeded",
                throttled: "TooManyRequests",
                ..GENERIC
            },
            "lambda" => Self {
                no_token: Some("the Lambda interface takes no idempotency token; machines are found by name and tags"),
                boot_seconds: (120.0, 240.0),
                account_machines: Some(24),
                calls: ["instance-types", "instances", "instance-operations/launch", "instance-operations/terminate"],
                no_capacity: "instance-operations/launch/insufficient-capacity",
                over_quota: "global/quota-exceeded",
                throttled: "global/rate-limited",
                ..GENERIC
            },
            "hyperbolic" => Self {
                no_token: Some(
                    "the Hyperbolic interface takes no idempotency token; machines are found by their metadata",
                ),
                calls: [
                    "marketplace",
                    "marketplace/instances",
                    "marketplace/instances/create",
                    "marketplace/instances/terminate",
                ],
                ..GENERIC
            },
            "runpod" => Self {
                no_token: Some("the RunPod interface takes no idempotency token; pods are found by name"),
                boot_seconds: (40.0, 120.0),
                notice: Duration::from_secs(5),
                calls: ["catalog/gpus", "pods", "pods/create", "pods/delete"],
                ..GENERIC
            },
            _ => GENERIC,
        }
    }

    /// As the engine is told.
    pub(super) fn capabilities(&self, spot: bool, zones: bool) -> Capabilities {
        let or_else = |yes: bool, why: &str| if yes { Support::Yes } else { Support::No(why.to_owned()) };
        Capabilities {
            launch_token: self.no_token.map_or(Support::Yes, |why| Support::No(why.to_owned())),
            spot: or_else(spot, "the bundled catalogue has no spot price of this cloud"),
            zones: or_else(zones, "the bundled catalogue tells no zones of this cloud"),
            live_prices: Support::Yes,
            stock: Support::Yes,
            max_instances_per_request: 1,
            start_script_bytes: None,
            spot_follows_market: false,
        }
    }

    /// Under which code, and how much, one machine counts against a quota; `None` where there is none, or where the
    /// catalogue does not say how many virtual CPUs the machine has.
    pub(super) fn quota_of(&self, shape: &Shape, purchase: Purchase) -> Option<(String, f64)> {
        let spot = purchase == Purchase::Spot;
        let gpus = shape.accelerators.to_f64();
        let vcpus = shape.vcpus.map(f64::from);
        match self.quota {
            QuotaUnit::Hidden => None,
            QuotaUnit::Gpus(code) => Some((if spot { format!("{code}.preemptible") } else { code.to_owned() }, gpus)),
            QuotaUnit::AzureCores => Some(((if spot { "lowPriorityCores" } else { "cores" }).to_owned(), vcpus?)),
            QuotaUnit::GcpGpus => {
                let mut parts = shape.accelerator.as_str().split('-');
                let model = parts.next().unwrap_or_default().replace([':', ' '], "_").to_ascii_uppercase();
                // Only the larger A100 has a metric of its own.
                let model =
                    if model == "A100" && parts.next() == Some("80GB") { "A100_80GB".to_owned() } else { model };
                Some((format!("{}NVIDIA_{model}_GPUS", if spot { "PREEMPTIBLE_" } else { "" }), gpus))
            }
            QuotaUnit::Ec2Vcpus => {
                let code = match (shape.instance_type.as_str().as_bytes(), spot) {
                    ([b'p', b'5', ..], true) => "L-C4BD4855",
                    ([b'p', ..], true) => "L-7212CCBC",
                    ([b'p', ..], false) => "L-417A185B",
                    ([b'g', ..], false) => "L-DB2E81BA",
                    ([b'g', ..], true) => "vcpus-spot-G-VT",
                    (_, false) => "vcpus-other",
                    (_, true) => "vcpus-spot-other",
                };
                Some((code.to_owned(), vcpus?))
            }
        }
    }

    /// The limits that accounts are found with, in the quota's unit: in some regions nothing was ever asked for.
    pub(super) fn quota_limits(&self) -> &'static [f64] {
        match self.quota {
            QuotaUnit::Ec2Vcpus | QuotaUnit::AzureCores => {
                &[0.0, 96.0, 192.0, 192.0, 192.0, 384.0, 384.0, 384.0, 768.0, 768.0]
            }
            _ => &[0.0, 8.0, 8.0, 8.0, 16.0, 16.0, 16.0, 32.0, 32.0, 64.0],
        }
    }
}
