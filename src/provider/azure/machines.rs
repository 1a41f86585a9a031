//! Virtual machines → instances. Azure's state is two words: how the request went, and whether the machine has power.

use azure_mgmt_compute::package_2024_07_01::models::{Priority, VirtualMachine};
use chrono::{DateTime, Utc};

use crate::domain::{Instance, InstanceState, Location, Purchase, Zone};
use crate::provider::mark;

/// The one state for Azure's two. `stopped` still bills in full, only `deallocated` keeps just the disk.
pub(super) fn state(provisioning: &str, power: Option<&str>) -> InstanceState {
    match (provisioning, power) {
        ("Deleting", _) => InstanceState::Terminating,
        ("Failed", _) => InstanceState::Failed,
        ("Creating", _) | (_, Some("PowerState/starting")) => InstanceState::Provisioning,
        (_, Some("PowerState/running")) => InstanceState::Running,
        (_, Some("PowerState/stopping" | "PowerState/deallocating")) => InstanceState::Stopping,
        (_, Some("PowerState/stopped" | "PowerState/deallocated")) => InstanceState::Stopped,
        (other, power) => InstanceState::Unknown(format!("{other} {}", power.unwrap_or("without power state"))),
    }
}

/// One machine; `None` for a row without an id, which no operation could name.
pub(super) fn read(machine: &VirtualMachine) -> Option<Instance> {
    let id = machine.resource.id.as_deref().filter(|i| !i.is_empty())?;
    let properties = machine.properties.as_ref();
    let tag = |key: &str| machine.resource.tags.as_ref()?.get(key)?.as_str().map(str::to_owned);
    let power = properties
        .and_then(|p| p.instance_view.as_ref())
        .and_then(|v| v.statuses.iter().filter_map(|s| s.code.as_deref()).find(|c| c.starts_with("PowerState/")));
    let size = properties
        .and_then(|p| p.hardware_profile.as_ref()?.vm_size.as_ref())
        .and_then(|s| serde_json::to_value(s).ok())
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default();
    let spot =
        properties.and_then(|p| p.priority.as_ref()).is_some_and(|p| matches!(p, Priority::Spot | Priority::Low));
    Some(Instance {
        id: id.into(),
        location: Location {
            provider: "azure".into(),
            region: machine.resource.location.to_ascii_lowercase().into(),
            zone: machine.zones.first().map(|z| Zone::from(z.as_str())),
        },
        instance_type: size.into(),
        purchase: if spot { Purchase::Spot } else { Purchase::OnDemand },
        state: state(properties.and_then(|p| p.provisioning_state.as_deref()).unwrap_or_default(), power),
        launched_at: properties
            .and_then(|p| p.time_created)
            .and_then(|t| DateTime::<Utc>::from_timestamp(t.unix_timestamp(), 0)),
        ended_at: None,
        price: None,
        token: None,
        mark: mark::from_tags(tag),
        preemption_notice: None,
        reason: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_known_is_shown_and_billed() {
        assert_eq!(state("Succeeded", Some("PowerState/running")), InstanceState::Running);
        assert_eq!(state("Succeeded", Some("PowerState/deallocated")), InstanceState::Stopped);
        assert_eq!(state("Updating", Some("PowerState/running")), InstanceState::Running);
        let odd = state("Succeeded", Some("PowerState/hibernated"));
        assert!(matches!(odd, InstanceState::Unknown(_)) && odd.may_bill());
    }
}
