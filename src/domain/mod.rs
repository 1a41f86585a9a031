//! The nouns: money, accelerator, location, offer, observation, job, allocation, plan, event, errors.
//! No input or output, no clock, no async.

pub mod accelerator;
pub mod clock;
pub mod error;
pub mod event;
pub mod feed;
pub mod instance;
pub mod job;
pub mod money;
pub mod names;
pub mod observation;
pub mod offer;
pub mod operation;
pub mod plan;
pub mod text;

pub use accelerator::{Accelerator, AcceleratorCount};
pub use clock::Clock;
pub use error::{ErrorClass, ProviderError};
pub use event::{Actor, Event, EventKind};
pub use feed::{FeedHealth, FeedStatus};
pub use instance::{Instance, InstanceState, Mark};
pub use job::{JobSpec, JobState};
pub use money::{GpuHourlyRate, HourlyRate, Money};
pub use names::{InstanceId, InstanceType, JobId, Location, OperationId, PlanId, ProviderId, Region, Zone};
pub use observation::{Observation, Offerings, PriceStatement};
pub use offer::{Availability, Evidence, Interconnect, Offer, OfferKey, Purchase, QuotaRoom, Shape};
pub use operation::{OperationKind, StepState};
pub use plan::{Plan, PlanKind, PlanStep, StepAction};
