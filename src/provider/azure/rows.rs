//! What is read of the resource manager's rows: every word a text, everything optional.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};

/// `null` as nothing, which the resource manager writes for empty lists too.
fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Sku {
    pub(super) resource_type: Option<String>,
    pub(super) name: Option<String>,
    pub(super) family: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) location_info: Vec<LocationInfo>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) capabilities: Vec<Capability>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) restrictions: Vec<Restriction>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct LocationInfo {
    pub(super) location: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) zones: Vec<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Capability {
    pub(super) name: Option<String>,
    pub(super) value: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Restriction {
    /// `Location`, `Zone`.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) values: Vec<String>,
    #[serde(rename = "restrictionInfo")]
    pub(super) info: Option<RestrictionInfo>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct RestrictionInfo {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) locations: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) zones: Vec<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Machine {
    pub(super) id: Option<String>,
    pub(super) location: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) zones: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) tags: BTreeMap<String, serde_json::Value>,
    pub(super) properties: Option<MachineProperties>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MachineProperties {
    pub(super) provisioning_state: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) hardware_profile: Option<HardwareProfile>,
    #[serde(deserialize_with = "moment")]
    pub(super) time_created: Option<DateTime<Utc>>,
    pub(super) instance_view: Option<InstanceView>,
}

/// A time that cannot be read is no time; the machine is shown all the same.
fn moment<'de, D: Deserializer<'de>>(d: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    Ok(Option::<String>::deserialize(d)?.and_then(|text| text.parse().ok()))
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HardwareProfile {
    pub(super) vm_size: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct InstanceView {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) statuses: Vec<Status>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Status {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Network {
    pub(super) location: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) properties: NetworkProperties,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct NetworkProperties {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) subnets: Vec<Subnet>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Subnet {
    pub(super) id: Option<String>,
}

/// How much of a quota is used.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Usage {
    pub(super) name: UsageName,
    pub(super) limit: Option<f64>,
    pub(super) current_value: Option<f64>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct UsageName {
    pub(super) value: Option<String>,
}
