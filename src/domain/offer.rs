//! What can be rented: a shape of machine in a place under a purchase model, with what is known of price and stock.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::accelerator::{Accelerator, AcceleratorCount};
use super::money::{GpuHourlyRate, HourlyRate};
use super::names::{InstanceType, Location, ProviderId, Region, Zone};

/// How an instance is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purchase {
    /// Kept until released, at the list price.
    OnDemand,
    /// Cheaper, and taken away at short notice.
    Spot,
    /// Paid for ahead, for a time.
    Reserved,
}

impl Purchase {
    /// As written in JSON (`on_demand`).
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on_demand",
            Self::Spot => "spot",
            Self::Reserved => "reserved",
        }
    }
    /// From the job file's or the command line's spelling: `on-demand` and `on_demand` are the same.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "on-demand" | "on_demand" | "ondemand" => Some(Self::OnDemand),
            "spot" => Some(Self::Spot),
            "reserved" => Some(Self::Reserved),
            _ => None,
        }
    }
}
impl fmt::Display for Purchase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
            Self::Reserved => "reserved",
        })
    }
}

/// Whether an offer can be had now. Three values and "unknown": what is merely in a price list is unknown. In the order in
/// which places are preferred, for everybody who takes the better of two: perhaps is better than no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// The evidence says yes.
    Available,
    /// Some, or perhaps: a low score, a tight quota, a launch that was refused a while ago.
    Limited,
    /// No evidence.
    Unknown,
    /// The evidence says no.
    None,
}

/// Where a statement on availability comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The provider's interface states stock.
    Api,
    /// A spot placement score.
    SpotScore,
    /// A quota that is used up, or restricts.
    Quota,
    /// A launch that was granted or refused.
    Attempt,
    /// Only that the type is listed there.
    Catalogue,
    /// A simulated cloud says so.
    Simulated,
}

/// The network between nodes of a gang.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interconnect {
    /// Plain Ethernet.
    Ethernet,
    /// AWS Elastic Fabric Adapter.
    Efa,
    /// `InfiniBand`.
    Infiniband,
    /// Google's `GPUDirect` (TCPX, TCPXO or RDMA).
    Gpudirect,
    /// Not known.
    Unknown,
}

/// A shape of machine, the same wherever it is rented.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The provider's name for it.
    pub instance_type: InstanceType,
    /// Which accelerator.
    pub accelerator: Accelerator,
    /// How many of them an instance has.
    pub accelerators: AcceleratorCount,
    /// Memory of one accelerator in GiB.
    pub gpu_memory_gib: Option<f64>,
    /// Virtual CPUs of an instance.
    pub vcpus: Option<u32>,
    /// Main memory of an instance in GiB.
    pub memory_gib: Option<f64>,
    /// The network between such machines.
    pub interconnect: Interconnect,
}

/// What makes two offers the same offer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OfferKey {
    /// The cloud or pool.
    pub provider: ProviderId,
    /// The region in it.
    pub region: Region,
    /// The zone, where the provider tells zones apart.
    pub zone: Option<Zone>,
    /// The shape's name.
    pub instance_type: InstanceType,
    /// How it is paid for.
    pub purchase: Purchase,
}

impl OfferKey {
    /// The place of the offer.
    pub fn location(&self) -> Location {
        Location { provider: self.provider.clone(), region: self.region.clone(), zone: self.zone.clone() }
    }
}

impl fmt::Display for OfferKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.location(), self.instance_type, self.purchase)
    }
}

/// Room under a quota, in the unit that the provider counts (vCPUs, GPUs or instances).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuotaRoom {
    /// The provider's code or metric: `L-417A185B`, `NVIDIA_H100_GPUS`.
    pub code: String,
    /// How much is allowed in all.
    pub limit: f64,
    /// How much is used.
    pub used: f64,
    /// How much one instance of this offer would use.
    pub per_instance: f64,
}

impl QuotaRoom {
    /// How many more instances fit.
    pub fn instances_left(&self) -> u32 {
        if self.per_instance <= 0.0 {
            return u32::MAX;
        }
        ((self.limit - self.used) / self.per_instance + 1e-9).floor().max(0.0) as u32
    }
}

/// All that the market knows of one offer at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Which offer.
    pub key: OfferKey,
    /// The machine.
    pub shape: Arc<Shape>,
    /// Price of one instance; `None` is unknown, which is neither free nor cheap.
    pub price: Option<HourlyRate>,
    /// Whether the price was said by the provider itself; a published table's is not.
    pub price_is_live: bool,
    /// Whether it can be had.
    pub availability: Availability,
    /// Who says so.
    pub evidence: Evidence,
    /// When that was observed; for a price list its date.
    pub observed_at: DateTime<Utc>,
    /// Older than its source's age limit: shown dimmed, and not to be acted on before it is read again.
    pub stale: bool,
    /// Instances that can be had, where the source counts them.
    pub capacity: Option<u32>,
    /// Room under the quota, where it is known.
    pub quota: Option<QuotaRoom>,
    /// Expected interruptions of one instance a day, where there is evidence (spot only; on-demand has 0).
    pub interruptions_per_day: Option<f64>,
    /// Whose law the place lies under: `EU`, `US`, `GB`, …; `None` where unknown.
    pub jurisdiction: Option<Arc<str>>,
}

impl Offer {
    /// Price of one GPU.
    pub fn price_per_gpu(&self) -> Option<GpuHourlyRate> {
        self.price.and_then(|p| p.per_gpu(self.shape.accelerators))
    }
}
