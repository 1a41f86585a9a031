//! Virtual machines → instances. Azure's state is two words: how the request went, and whether the machine has power.

use super::error;
use super::rows::{Machine, Status};
use crate::domain::{ErrorClass, Instance, InstanceState, Location, Purchase, Zone};
use crate::provider::{InstanceRef, Result, mark};

/// The one state for Azure's two. `stopped` still bills in full, only `deallocated` keeps just the disk.
pub(super) fn state(provisioning: &str, power: Option<&str>) -> InstanceState {
    match (provisioning, power) {
        ("Deleting", _) => InstanceState::Terminating,
        // An update of a running machine failed (an extension, say): it runs on.
        ("Failed", Some("PowerState/running")) => InstanceState::Running,
        ("Failed", _) => InstanceState::Failed,
        ("Creating", _) | (_, Some("PowerState/starting")) => InstanceState::Provisioning,
        (_, Some("PowerState/running")) => InstanceState::Running,
        (_, Some("PowerState/stopping" | "PowerState/deallocating")) => InstanceState::Stopping,
        (_, Some("PowerState/stopped" | "PowerState/deallocated")) => InstanceState::Stopped,
        (other, power) => InstanceState::Unknown(format!("{other} {}", power.unwrap_or("without power state"))),
    }
}

/// The resource group and the name in a machine's id.
pub(super) fn group_and_name(id: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = id.split('/').collect();
    match parts[..] {
        ["", s, _, g, group, p, _, kind, name]
            if s.eq_ignore_ascii_case("subscriptions")
                && g.eq_ignore_ascii_case("resourceGroups")
                && p.eq_ignore_ascii_case("providers")
                && kind.eq_ignore_ascii_case("virtualMachines") =>
        {
            Some((group, name)).filter(|(group, name)| !group.is_empty() && !name.is_empty())
        }
        _ => None,
    }
}

/// The same of a machine that is to be acted on.
pub(super) fn named<'a>(target: &'a InstanceRef, operation: &str) -> Result<(&'a str, &'a str)> {
    group_and_name(target.id.as_str())
        .ok_or_else(|| error(ErrorClass::Invalid, operation, format!("'{}' is no id of a virtual machine", target.id)))
}

/// Why it failed, in Azure's words: the state `ProvisioningState/failed/AllocationFailed` with its text.
fn failure(statuses: &[Status]) -> Option<String> {
    let of = |s: &Status| {
        let code = s.code.as_deref()?.strip_prefix("ProvisioningState/failed")?.trim_start_matches('/').to_owned();
        let text = s.message.as_deref().unwrap_or_default();
        Some(if code.is_empty() { text.to_owned() } else { format!("{code}: {text}") })
    };
    statuses.iter().find_map(of)
}

/// One machine; `None` for a row without an id, which no operation could name.
pub(super) fn read(machine: &Machine) -> Option<Instance> {
    let id = machine.id.as_deref().filter(|i| !i.is_empty())?;
    let properties = machine.properties.as_ref();
    let tag = |key: &str| machine.tags.get(key)?.as_str().map(str::to_owned);
    let power = properties
        .and_then(|p| p.instance_view.as_ref())
        .and_then(|v| v.statuses.iter().filter_map(|s| s.code.as_deref()).find(|c| c.starts_with("PowerState/")));
    let size = properties.and_then(|p| p.hardware_profile.as_ref()?.vm_size.as_deref()).unwrap_or_default();
    let spot = properties.is_some_and(|p| matches!(p.priority.as_deref(), Some("Spot" | "Low")));
    Some(Instance {
        id: id.into(),
        location: Location {
            provider: "azure".into(),
            region: machine.location.as_deref().unwrap_or("unknown").to_ascii_lowercase().into(),
            zone: machine.zones.first().map(|z| Zone::from(z.as_str())),
        },
        instance_type: size.into(),
        purchase: if spot { Purchase::Spot } else { Purchase::OnDemand },
        state: state(properties.and_then(|p| p.provisioning_state.as_deref()).unwrap_or_default(), power),
        launched_at: properties.and_then(|p| p.time_created),
        ended_at: None,
        price: None,
        token: None,
        mark: mark::from_tags(tag),
        preemption_notice: None,
        reason: properties.and_then(|p| failure(&p.instance_view.as_ref()?.statuses)),
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
