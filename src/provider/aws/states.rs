//! EC2's words on a machine, as ours.
//!
//! EC2's `terminated` is gone for good and no longer billed, whoever ended it; the words of the reason say who did. Until
//! then a machine that is taken away is told as [`InstanceState::Preempted`]. `stopped` keeps its disks, which are billed.

use aws_sdk_ec2::types::{Instance as Described, InstanceLifecycleType};
use chrono::{DateTime, NaiveDateTime, Utc};

use super::tags;
use super::zones::Zones;
use crate::domain::{Instance, InstanceState, Location, ProviderId, Purchase, Region};

/// Reasons with which AWS takes a spot machine away.
const PREEMPTED: [&str; 2] = ["Server.SpotInstanceTermination", "Server.SpotInstanceShutdown"];
/// Our state for EC2's word and the code of its reason (empty where there is none).
pub(super) fn state(word: &str, reason: &str) -> InstanceState {
    let going = matches!(word, "shutting-down" | "stopping" | "stopped");
    if going && PREEMPTED.contains(&reason) {
        return InstanceState::Preempted;
    }
    match word {
        "pending" => InstanceState::Provisioning,
        "running" => InstanceState::Running,
        "stopping" => InstanceState::Stopping,
        "stopped" => InstanceState::Stopped,
        "shutting-down" => InstanceState::Terminating,
        // For good and no longer billed, whoever ended it: the reason tells who. It stays listed for about an hour, and
        // anything but gone would be waited for so long.
        "terminated" => InstanceState::Gone,
        other => InstanceState::Unknown(other.to_owned()),
    }
}

/// A machine as EC2 describes it; `None` for a row without an id. Its texts stay as they are.
pub(super) fn instance(
    provider: &ProviderId,
    region: &Region,
    zones: Option<&Zones>,
    described: &Described,
) -> Option<Instance> {
    let id = described.instance_id().filter(|id| !id.is_empty())?;
    let word = described.state().and_then(|s| s.name()).map_or("", |n| n.as_str());
    let (code, text) =
        described.state_reason().map_or(("", ""), |r| (r.code().unwrap_or_default(), r.message().unwrap_or_default()));
    let transition = described.state_transition_reason().unwrap_or_default();
    let place = described.placement();
    let zone = place
        .and_then(|p| p.availability_zone_id())
        .filter(|z| !z.is_empty())
        .map(Into::into)
        .or_else(|| zones?.id(place?.availability_zone()?).cloned());
    Some(Instance {
        id: id.into(),
        location: Location { provider: provider.clone(), region: region.clone(), zone },
        instance_type: described.instance_type().map_or("", |t| t.as_str()).into(),
        purchase: match described.instance_lifecycle() {
            Some(InstanceLifecycleType::Spot) => Purchase::Spot,
            Some(InstanceLifecycleType::CapacityBlock) => Purchase::Reserved,
            _ => Purchase::OnDemand,
        },
        state: state(word, code),
        launched_at: described.launch_time().and_then(time),
        ended_at: if word == "terminated" { ended_at(transition) } else { None },
        price: None,
        token: described.client_token().filter(|t| !t.is_empty()).map(str::to_owned),
        mark: tags::mark(described.tags()),
        preemption_notice: None,
        reason: reason(code, text, transition),
    })
}

/// EC2's own words: code and text of the reason, or what it says of the last change.
fn reason(code: &str, text: &str, transition: &str) -> Option<String> {
    let said = match (code.is_empty(), text.is_empty()) {
        (true, true) => transition.to_owned(),
        (false, false) if !text.starts_with(code) => format!("{code}: {text}"),
        (_, false) => text.to_owned(),
        (false, true) => code.to_owned(),
    };
    (!said.is_empty()).then_some(said)
}

/// The time in `User initiated (2026-12-01 01:55:02 GMT)`.
fn ended_at(transition: &str) -> Option<DateTime<Utc>> {
    let (_, rest) = transition.rsplit_once('(')?;
    let text = rest.split(')').next()?.trim().strip_suffix("GMT")?.trim();
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").ok().map(|t| t.and_utc())
}

/// The SDK's time as ours.
pub(super) fn time(t: &aws_sdk_ec2::primitives::DateTime) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(t.secs(), t.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{InstanceState as SdkState, InstanceStateName};

    use super::*;

    #[test]
    fn e1_each_word_of_ec2_has_one_state() {
        for (word, reason, expected) in [
            ("pending", "", InstanceState::Provisioning),
            ("running", "", InstanceState::Running),
            ("stopping", "Client.UserInitiatedShutdown", InstanceState::Stopping),
            ("stopped", "Client.UserInitiatedShutdown", InstanceState::Stopped),
            ("stopped", "Server.ScheduledStop", InstanceState::Stopped),
            ("stopped", "Server.SpotInstanceShutdown", InstanceState::Preempted),
            ("shutting-down", "Client.UserInitiatedShutdown", InstanceState::Terminating),
            ("shutting-down", "Server.SpotInstanceTermination", InstanceState::Preempted),
            ("terminated", "Client.UserInitiatedShutdown", InstanceState::Gone),
            ("terminated", "Client.InstanceInitiatedShutdown", InstanceState::Gone),
            ("terminated", "", InstanceState::Gone),
            ("terminated", "Server.SpotInstanceTermination", InstanceState::Gone),
            ("terminated", "Server.InsufficientInstanceCapacity", InstanceState::Gone),
            ("terminated", "Server.InternalError", InstanceState::Gone),
            ("terminated", "Client.VolumeLimitExceeded", InstanceState::Gone),
        ] {
            assert_eq!(state(word, reason), expected, "{word} {reason}");
        }
    }

    #[test]
    fn e1_a_word_that_nobody_knows_is_kept_and_may_bill() {
        for word in ["hibernated", "", "Running", "TERMINATED"] {
            let state = state(word, "Server.SpotInstanceTermination");
            assert_eq!(state, InstanceState::Unknown(word.to_owned()));
            assert!(state.may_bill());
        }
    }

    #[test]
    fn a_row_without_an_id_is_no_machine_and_one_without_anything_else_is() {
        let (aws, region) = (ProviderId::from("aws"), Region::from("us-east-1"));
        assert_eq!(instance(&aws, &region, None, &Described::builder().build()), None);
        let bare = instance(&aws, &region, None, &Described::builder().instance_id("i-1").build());
        assert_eq!(bare.map(|i| i.state), Some(InstanceState::Unknown(String::new())));
    }

    #[test]
    fn the_end_is_told_by_ec2s_clock_and_only_when_it_has_come() {
        let at = |word: InstanceStateName, text: &str| {
            let described = Described::builder()
                .instance_id("i-1")
                .state(SdkState::builder().name(word).build())
                .state_transition_reason(text)
                .build();
            instance(&"aws".into(), &"us-east-1".into(), None, &described).and_then(|i| i.ended_at)
        };
        let text = "User initiated (2026-12-01 01:55:02 GMT)";
        let expected = DateTime::from_timestamp(1_796_090_102, 0);
        assert_eq!(at(InstanceStateName::Terminated, text), expected);
        assert_eq!(at(InstanceStateName::ShuttingDown, text), None);
        assert_eq!(at(InstanceStateName::Terminated, "User initiated"), None);
        assert_eq!(at(InstanceStateName::Terminated, "x (yesterday GMT)"), None);
    }

    #[test]
    fn reasons_are_not_told_twice() {
        let told = "Server.InternalError: Internal error on launch";
        assert_eq!(reason("Server.InternalError", told, "").as_deref(), Some(told));
        assert_eq!(reason("Server.InternalError", "sorry", "").as_deref(), Some("Server.InternalError: sorry"));
        assert_eq!(reason("", "", "").as_deref(), None);
        assert_eq!(reason("", "", "User initiated").as_deref(), Some("User initiated"));
    }
}
