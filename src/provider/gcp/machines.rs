//! Instances as Google tells them. `TERMINATED` means stopped there, with its disk billed; gone is absent.

use chrono::{DateTime, Utc};
use google_cloud_compute_v1::model;

use super::{last, region_of};
use crate::domain::{Instance, InstanceState, Location, Purchase};
use crate::provider::mark;

/// The one state for Google's word.
pub(super) fn state(word: &str) -> InstanceState {
    match word {
        "PROVISIONING" | "STAGING" | "PENDING" => InstanceState::Provisioning,
        "RUNNING" | "REPAIRING" => InstanceState::Running,
        "STOPPING" | "PENDING_STOP" | "SUSPENDING" | "DEPROVISIONING" => InstanceState::Stopping,
        "TERMINATED" | "STOPPED" | "SUSPENDED" => InstanceState::Stopped,
        other => InstanceState::Unknown(other.to_owned()),
    }
}

/// One machine; `None` for a row without name or zone, which no operation could name.
pub(super) fn read(machine: &model::Instance) -> Option<Instance> {
    let name = machine.name.as_deref().filter(|n| !n.is_empty())?;
    let zone = machine.zone.as_deref().map(last)?;
    let spot = machine.scheduling.as_ref().is_some_and(|s| {
        s.preemptible == Some(true) || s.provisioning_model.as_ref().and_then(|m| m.name()) == Some("SPOT")
    });
    let time = |t: &Option<String>| {
        t.as_deref().and_then(|t| DateTime::parse_from_rfc3339(t).ok()).map(|t| t.with_timezone(&Utc))
    };
    Some(Instance {
        // The name, not the number: names are what calls take. The zone makes it unique in a project.
        id: format!("{zone}/{name}").into(),
        location: Location { provider: "gcp".into(), region: region_of(zone)?, zone: Some(zone.into()) },
        instance_type: machine.machine_type.as_deref().map(last).unwrap_or_default().into(),
        purchase: if spot { Purchase::Spot } else { Purchase::OnDemand },
        state: state(machine.status.as_ref().and_then(|s| s.name()).unwrap_or("(no status)")),
        launched_at: time(&machine.creation_timestamp),
        ended_at: None,
        price: None,
        token: None,
        mark: mark::from_tags(|key| machine.labels.get(key).cloned()),
        preemption_notice: None,
        reason: machine.status_message.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminated_at_google_is_stopped_and_may_bill() {
        assert_eq!(state("TERMINATED"), InstanceState::Stopped);
        assert!(state("TERMINATED").may_bill());
        assert_eq!(state("FROZEN"), InstanceState::Unknown("FROZEN".into()));
    }
}
