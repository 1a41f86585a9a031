//! The documents of `--json`: a contract. Fields may be added at the end, none renamed; what is absent is `null`.

mod job;
mod offer;
mod place;
mod plan;
mod world;

pub use job::{CostShape, JobDetail, JobShape, SpecShape};
pub use offer::{OfferShape, SpreadShape};
pub use place::{PlaceShape, RankingShape};
pub use plan::{ActShape, PlanShape};
pub use world::{CheckShape, EventShape, LatencyShape, OrphanShape};
