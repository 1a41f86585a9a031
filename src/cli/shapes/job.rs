//! `jobs`, `job`, and a job's specification as it was meant.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::PlanShape;
use super::world::EventShape;
use crate::cli::output::Stamp;
use crate::domain::job::{Constraints, Data, Recovery, Resources};
use crate::domain::{
    Accelerator, AcceleratorCount, Event, GpuHourlyRate, HourlyRate, InstanceState, JobSpec, JobState, Money, Plan,
    Purchase,
};
use crate::engine::{CostLine, InstanceView, JobView};

/// A job.
#[derive(Debug, Serialize)]
pub struct JobShape<'j> {
    id: &'j str,
    name: &'j str,
    state: JobState,
    provider: Option<&'j str>,
    region: Option<&'j str>,
    zone: Option<&'j str>,
    instance_type: Option<&'j str>,
    accelerator: Option<&'j str>,
    accelerators: AcceleratorCount,
    nodes: u32,
    purchase: Option<Purchase>,
    usd_per_hour: Option<HourlyRate>,
    usd_spent: Money,
    best_usd_per_hour: Option<HourlyRate>,
    move_saves_usd: Option<Money>,
    started_at: Option<Stamp>,
    restarts: u32,
    interruption_risk: Option<f64>,
    instances: Vec<InstanceShape<'j>>,
    created_at: Stamp,
    ended_at: Option<Stamp>,
    note: Option<&'j str>,
}

/// An instance of a job.
#[derive(Debug, Serialize)]
struct InstanceShape<'j> {
    id: &'j str,
    state: &'j str,
    node: u32,
    provider: &'j str,
    region: &'j str,
    zone: Option<&'j str>,
    instance_type: &'j str,
    purchase: Purchase,
    usd_per_hour: Option<HourlyRate>,
    launched_at: Option<Stamp>,
    observed_at: Stamp,
    preemption_notice: Option<Stamp>,
}

/// A job with everything that is known of it.
#[derive(Debug, Serialize)]
pub struct JobDetail<'j> {
    #[serde(flatten)]
    job: JobShape<'j>,
    spec: SpecShape<'j>,
    plan: Option<PlanShape<'j>>,
    events: Vec<EventShape<'j>>,
    cost: CostShape<'j>,
}

/// What a job has cost.
#[derive(Debug, Serialize)]
pub struct CostShape<'j> {
    usd_spent: Money,
    usd_per_hour: Option<HourlyRate>,
    instances: Vec<CostLineShape<'j>>,
}

#[derive(Debug, Serialize)]
struct CostLineShape<'j> {
    instance: Option<&'j str>,
    provider: &'j str,
    region: &'j str,
    zone: Option<&'j str>,
    instance_type: &'j str,
    purchase: Purchase,
    usd_per_hour: Option<HourlyRate>,
    from: Stamp,
    until: Option<Stamp>,
    usd: Money,
    proved: bool,
}

/// A job's specification by the names of the job file. The values of variables are hidden: they may be secrets.
#[derive(Debug, Serialize)]
pub struct SpecShape<'j> {
    name: &'j str,
    run: Option<&'j str>,
    image: Option<&'j str>,
    env: BTreeMap<&'j str, &'static str>,
    resources: ResourcesShape<'j>,
    purchase: PurchaseShape<'j>,
    constraints: ConstraintsShape<'j>,
    data: DataShape<'j>,
    schedule: ScheduleShape,
}

#[derive(Debug, Serialize)]
struct ResourcesShape<'j> {
    accelerators: &'j [Accelerator],
    min_gpu_memory_gib: Option<f64>,
    count: u32,
    nodes: u32,
    vcpus: Option<u32>,
    memory_gib: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PurchaseShape<'j> {
    models: &'j [Purchase],
    max_usd_per_gpu_hour: Option<GpuHourlyRate>,
}

#[derive(Debug, Serialize)]
struct ConstraintsShape<'j> {
    providers: Vec<&'j str>,
    regions: Vec<String>,
    exclude_regions: Vec<String>,
    jurisdictions: &'j [String],
    latency: Vec<LatencyLimitShape>,
    combine_zones: bool,
}

#[derive(Debug, Serialize)]
struct LatencyLimitShape {
    to: String,
    max_ms: f64,
}

#[derive(Debug, Serialize)]
struct DataShape<'j> {
    location: Option<String>,
    input_gib: f64,
    checkpoint_gib: f64,
    checkpoint_uri: Option<&'j str>,
}

#[derive(Debug, Serialize)]
struct ScheduleShape {
    duration_hours: Option<f64>,
    deadline: Option<Stamp>,
    recovery: Recovery,
    restart_loss_hours: f64,
}

impl<'j> From<&'j JobView> for JobShape<'j> {
    fn from(job: &'j JobView) -> Self {
        Self {
            id: job.id.as_str(),
            name: &job.name,
            state: job.state,
            provider: job.provider.as_ref().map(AsRef::as_ref),
            region: job.region.as_ref().map(AsRef::as_ref),
            zone: job.zone.as_ref().map(AsRef::as_ref),
            instance_type: job.instance_type.as_ref().map(AsRef::as_ref),
            accelerator: job.accelerator.as_ref().map(Accelerator::as_str),
            accelerators: job.accelerators,
            nodes: job.nodes,
            purchase: job.purchase,
            usd_per_hour: job.usd_per_hour,
            usd_spent: job.usd_spent,
            best_usd_per_hour: job.best_usd_per_hour,
            move_saves_usd: job.move_saves,
            started_at: job.started_at.map(Stamp),
            restarts: job.restarts,
            interruption_risk: job.interruption_risk,
            instances: job.instances.iter().map(InstanceShape::from).collect(),
            created_at: Stamp(job.created_at),
            ended_at: job.ended_at.map(Stamp),
            note: job.note.as_deref(),
        }
    }
}

impl<'j> From<&'j InstanceView> for InstanceShape<'j> {
    fn from(view: &'j InstanceView) -> Self {
        let instance = &view.instance;
        Self {
            id: instance.id.as_str(),
            state: state_word(&instance.state),
            node: view.node,
            provider: instance.location.provider.as_str(),
            region: instance.location.region.as_str(),
            zone: instance.location.zone.as_ref().map(AsRef::as_ref),
            instance_type: instance.instance_type.as_str(),
            purchase: instance.purchase,
            usd_per_hour: instance.price.or(view.bound_price),
            launched_at: instance.launched_at.map(Stamp),
            observed_at: Stamp(view.observed_at),
            preemption_notice: instance.preemption_notice.map(Stamp),
        }
    }
}

/// A word for scripts; the provider's own where we do not know it.
const fn state_word(state: &InstanceState) -> &str {
    match state {
        InstanceState::Requested => "requested",
        InstanceState::Provisioning => "provisioning",
        InstanceState::Running => "running",
        InstanceState::Stopping => "stopping",
        InstanceState::Stopped => "stopped",
        InstanceState::Terminating => "terminating",
        InstanceState::Preempted => "preempted",
        InstanceState::Failed => "failed",
        InstanceState::Gone => "gone",
        InstanceState::Unknown(raw) => raw.as_str(),
    }
}

impl<'j> JobDetail<'j> {
    /// Everything about one job.
    pub fn new(job: &'j JobView, plan: Option<&'j Plan>, events: &'j [Event], cost: &'j [CostLine]) -> Self {
        Self {
            job: job.into(),
            spec: SpecShape::from(&*job.spec),
            plan: plan.map(PlanShape::from),
            events: events.iter().map(EventShape::from).collect(),
            cost: CostShape {
                usd_spent: job.usd_spent,
                usd_per_hour: job.usd_per_hour,
                instances: cost.iter().map(CostLineShape::from).collect(),
            },
        }
    }
}

impl<'j> From<&'j CostLine> for CostLineShape<'j> {
    fn from(line: &'j CostLine) -> Self {
        Self {
            instance: line.instance.as_ref().map(AsRef::as_ref),
            provider: line.location.provider.as_str(),
            region: line.location.region.as_str(),
            zone: line.location.zone.as_ref().map(AsRef::as_ref),
            instance_type: line.instance_type.as_str(),
            purchase: line.purchase,
            usd_per_hour: line.bound_price,
            from: Stamp(line.from),
            until: line.until.map(Stamp),
            usd: line.usd,
            proved: line.proved,
        }
    }
}

impl<'j> From<&'j JobSpec> for SpecShape<'j> {
    fn from(spec: &'j JobSpec) -> Self {
        Self {
            name: &spec.name,
            run: spec.run.as_deref(),
            image: spec.image.as_deref(),
            env: spec.env.keys().map(|name| (name.as_str(), "***")).collect(),
            resources: ResourcesShape::from(&spec.resources),
            purchase: PurchaseShape {
                models: &spec.buying.models,
                max_usd_per_gpu_hour: spec.buying.max_usd_per_gpu_hour,
            },
            constraints: ConstraintsShape::from(&spec.constraints),
            data: DataShape::from(&spec.data),
            schedule: ScheduleShape {
                duration_hours: spec.schedule.duration_hours,
                deadline: spec.schedule.deadline.map(Stamp),
                recovery: spec.schedule.recovery,
                restart_loss_hours: spec.schedule.restart_loss_hours,
            },
        }
    }
}

impl<'j> From<&'j Resources> for ResourcesShape<'j> {
    fn from(r: &'j Resources) -> Self {
        Self {
            accelerators: &r.accelerators,
            min_gpu_memory_gib: r.min_gpu_memory_gib,
            count: r.count,
            nodes: r.nodes,
            vcpus: r.vcpus,
            memory_gib: r.memory_gib,
        }
    }
}

impl<'j> From<&'j Constraints> for ConstraintsShape<'j> {
    fn from(c: &'j Constraints) -> Self {
        Self {
            providers: c.providers.iter().map(AsRef::as_ref).collect(),
            regions: c.regions.iter().map(ToString::to_string).collect(),
            exclude_regions: c.exclude_regions.iter().map(ToString::to_string).collect(),
            jurisdictions: &c.jurisdictions,
            latency: c.latency.iter().map(|l| LatencyLimitShape { to: l.to.to_string(), max_ms: l.max_ms }).collect(),
            combine_zones: c.combine_zones,
        }
    }
}

impl<'j> From<&'j Data> for DataShape<'j> {
    fn from(d: &'j Data) -> Self {
        Self {
            location: d.location.as_ref().map(ToString::to_string),
            input_gib: d.input_gib,
            checkpoint_gib: d.checkpoint_gib,
            checkpoint_uri: d.checkpoint_uri.as_deref(),
        }
    }
}
