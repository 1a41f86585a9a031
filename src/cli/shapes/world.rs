//! `events`, `latency`, `orphans`, `doctor`.

use serde::Serialize;
use serde_json::Value;

use crate::cli::output::Stamp;
use crate::domain::{Event, EventKind, HourlyRate, Instance, Mark};
use crate::network::{Latency, LatencySource};

/// An event.
#[derive(Debug, Serialize)]
pub struct EventShape<'e> {
    seq: i64,
    at: Stamp,
    actor: String,
    kind: EventKind,
    job: Option<&'e str>,
    plan: Option<&'e str>,
    text: &'e str,
    data: &'e Value,
    job_name: Option<&'e str>,
}

impl<'e> From<&'e Event> for EventShape<'e> {
    fn from(event: &'e Event) -> Self {
        let actor = &event.actor;
        Self {
            seq: event.seq,
            at: Stamp(event.at),
            actor: format!("{}@{} ({})", actor.user, actor.host, actor.via),
            kind: event.kind,
            job: event.job.as_ref().map(AsRef::as_ref),
            plan: event.plan.as_ref().map(AsRef::as_ref),
            text: &event.text,
            data: &event.data,
            job_name: event.job_name.as_deref(),
        }
    }
}

/// Round trip between two places.
#[derive(Debug, Serialize)]
pub struct LatencyShape {
    from: String,
    to: String,
    p50_ms: f64,
    p99_ms: Option<f64>,
    jitter_ms: Option<f64>,
    loss_percent: Option<f64>,
    samples: Option<u32>,
    source: LatencySource,
    observed_at: Option<Stamp>,
}

impl From<&Latency> for LatencyShape {
    fn from(latency: &Latency) -> Self {
        let place = |l: &crate::domain::Location| format!("{}/{}", l.provider, l.region);
        Self {
            from: place(&latency.from),
            to: place(&latency.to),
            p50_ms: latency.p50_ms,
            p99_ms: latency.p99_ms,
            jitter_ms: latency.jitter_ms,
            loss_percent: latency.loss_percent,
            samples: latency.samples,
            source: latency.source,
            observed_at: latency.observed_at.map(Stamp),
        }
    }
}

/// A machine with our mark that no job owns.
#[derive(Debug, Serialize)]
pub struct OrphanShape<'o> {
    provider: &'o str,
    region: &'o str,
    zone: Option<&'o str>,
    id: &'o str,
    instance_type: &'o str,
    launched_at: Option<Stamp>,
    usd_per_hour: Option<HourlyRate>,
    mark: Option<&'o Mark>,
    state: std::borrow::Cow<'o, str>,
    /// Whether this command has terminated it, proved; absent where it was not asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminated: Option<bool>,
}

impl OrphanShape<'_> {
    /// With what became of it, where that was asked for.
    #[must_use]
    pub const fn terminated(mut self, terminated: Option<bool>) -> Self {
        self.terminated = terminated;
        self
    }
}

impl<'o> From<&'o Instance> for OrphanShape<'o> {
    fn from(instance: &'o Instance) -> Self {
        Self {
            provider: instance.location.provider.as_str(),
            region: instance.location.region.as_str(),
            zone: instance.location.zone.as_ref().map(AsRef::as_ref),
            id: instance.id.as_str(),
            instance_type: instance.instance_type.as_str(),
            launched_at: instance.launched_at.map(Stamp),
            usd_per_hour: instance.price,
            mark: instance.mark.as_ref(),
            state: instance.state.label(),
            terminated: None,
        }
    }
}

/// A finding of `doctor`.
#[derive(Debug, Clone, Serialize)]
pub struct CheckShape {
    /// What was looked at.
    pub check: String,
    /// At which provider; `None` where it is about this machine.
    pub provider: Option<String>,
    /// `ok`, `warn`, `fail`, `skip`.
    pub status: &'static str,
    /// What was found.
    pub detail: String,
    /// What to do; `None` where nothing is.
    pub remedy: Option<String>,
}
