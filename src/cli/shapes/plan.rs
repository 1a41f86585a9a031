//! `launch`, `migrate`, `terminate`.

use serde::Serialize;

use super::job::JobShape;
use crate::cli::output::Stamp;
use crate::domain::{HourlyRate, Money, Plan, PlanKind, PlanStep, Purchase, StepAction};

/// A plan.
#[derive(Debug, Serialize)]
pub struct PlanShape<'p> {
    id: &'p str,
    steps: Vec<StepShape<'p>>,
    usd_per_hour_before: Option<HourlyRate>,
    usd_per_hour_after: Option<HourlyRate>,
    usd_once: Option<Money>,
    kind: PlanKind,
    made_at: Stamp,
    warnings: &'p [String],
}

#[derive(Debug, Serialize)]
struct StepShape<'p> {
    action: StepAction,
    provider: &'p str,
    region: &'p str,
    zone: Option<&'p str>,
    instance_type: Option<&'p str>,
    count: u32,
    usd_per_hour: Option<HourlyRate>,
    usd_once: Option<Money>,
    seconds: Option<u64>,
    purchase: Option<Purchase>,
}

/// What a command that acts has planned, and whether it was done.
#[derive(Debug, Serialize)]
pub struct ActShape<'p> {
    /// The job as it is now; `null` where there is none yet.
    pub job: Option<JobShape<'p>>,
    /// The plan.
    pub plan: PlanShape<'p>,
    /// Whether it was carried out.
    pub executed: bool,
}

impl<'p> From<&'p Plan> for PlanShape<'p> {
    fn from(plan: &'p Plan) -> Self {
        Self {
            id: plan.id.as_str(),
            steps: plan.steps.iter().map(StepShape::from).collect(),
            usd_per_hour_before: plan.usd_per_hour_before,
            usd_per_hour_after: plan.usd_per_hour_after,
            usd_once: plan.usd_once,
            kind: plan.kind,
            made_at: Stamp(plan.made_at),
            warnings: &plan.warnings,
        }
    }
}

impl<'p> From<&'p PlanStep> for StepShape<'p> {
    fn from(step: &'p PlanStep) -> Self {
        Self {
            action: step.action,
            provider: step.provider.as_str(),
            region: step.region.as_str(),
            zone: step.zone.as_ref().map(AsRef::as_ref),
            instance_type: step.instance_type.as_ref().map(AsRef::as_ref),
            count: step.count,
            usd_per_hour: step.usd_per_hour,
            usd_once: step.usd_once,
            seconds: step.seconds,
            purchase: step.purchase,
        }
    }
}
