//! Starting and ending one machine. Its name is made from the token, and a `PUT` that must not find anything under that
//! name makes it at most once: sent again, it finds the machine of the first time.
//!
//! Network card and disks are made with the machine and go with it. The management crate repeats the `PUT` when its
//! poller is awaited, so it is only ever sent; the engine polls.

use azure_mgmt_compute::package_2024_07_01::models::VirtualMachine;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::pages::List;
use super::{Azure, error, machines, rows};
use crate::config::azure::{DEFAULT_ADMIN, DEFAULT_IMAGE};
use crate::config::limits::AZURE_USER_DATA_BYTES;
use crate::domain::{ErrorClass, HourlyRate, Instance, InstanceState, Purchase, Region};
use crate::provider::mark;
use crate::provider::{InstanceRef, LaunchRequest, Result, Termination};

const CREATE: &str = "VirtualMachines_CreateOrUpdate";
const DELETE: &str = "VirtualMachines_Delete";

impl Azure {
    pub(super) async fn create(&self, request: &LaunchRequest) -> Result<Instance> {
        let invalid = |why: String| Err(error(ErrorClass::Invalid, CREATE, why));
        let (Some(group), Some(key)) = (&self.settings.resource_group, &self.settings.ssh_public_key) else {
            return invalid(super::NOT_SET_UP.into());
        };
        if request.offer.purchase == Purchase::Reserved {
            return invalid("capacity blocks are bought ahead; gpudeck launches on-demand and spot".into());
        }
        if request.user_data.as_ref().is_some_and(|text| text.len() > AZURE_USER_DATA_BYTES) {
            return invalid("the start-up script is longer than Azure's 64 KiB".into());
        }
        self.within_limit(request)?;
        let subnet = self.subnet(group, &request.offer.region).await?;
        let body = self.body(request, key, &subnet);
        let machine: VirtualMachine = serde_json::from_value(body)
            .map_err(|e| error(ErrorClass::Invalid, CREATE, format!("the request cannot be written: {e}")))?;
        let client = self.client.virtual_machines_client();
        let call = client.create_or_update(group, &request.name, machine, &self.subscription).if_none_match("*");
        let made = match self.pages.read::<rows::Machine>(CREATE, call.send().await.map(Into::into)).await {
            Ok(row) => machines::read(&row),
            // There is one under this name: ours from the first time, or a stranger's.
            Err(refused) if refused.class == ErrorClass::Conflict => {
                return match self.machine(group, &request.name).await? {
                    Some(there) if there.mark.as_ref() == Some(&request.mark) => Ok(there),
                    _ => Err(refused),
                };
            }
            Err(refused) => return Err(refused),
        };
        made.ok_or_else(|| error(ErrorClass::Transient, CREATE, "the answer names no machine".into()))
    }

    pub(super) async fn delete(&self, target: &InstanceRef) -> Result<Termination> {
        let (group, name) = machines::named(target, DELETE)?;
        let call = self.client.virtual_machines_client().delete(group, name, &self.subscription).force_deletion(true);
        match self.pages.accepted(DELETE, call.send().await.map(Into::into)).await {
            Ok(azure_core::StatusCode::NoContent) => Ok(Termination::AlreadyGone),
            Ok(_) => Ok(Termination::Accepted(InstanceState::Terminating)),
            Err(refused) if refused.class == ErrorClass::NotFound => Ok(Termination::AlreadyGone),
            Err(refused) => Err(refused),
        }
    }

    /// A machine by its name; `None` where there is none.
    pub(super) async fn machine(&self, group: &str, name: &str) -> Result<Option<Instance>> {
        let get = self.client.virtual_machines_client().get(group, name, &self.subscription).expand("instanceView");
        match self.pages.read::<rows::Machine>("VirtualMachines_Get", get.send().await.map(Into::into)).await {
            Ok(row) => Ok(machines::read(&row)),
            Err(refused) if refused.class == ErrorClass::NotFound => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    /// Azure holds spot to the limit; for on-demand the list price decides, the published one where no list was read, and
    /// one that is not known keeps none.
    fn within_limit(&self, request: &LaunchRequest) -> Result<()> {
        let (Purchase::OnDemand, Some(limit)) = (request.offer.purchase, request.max_price) else { return Ok(()) };
        let kind = &request.offer.instance_type;
        let listed = self.remembered_prices().and_then(|p| p.of(&request.offer.region, kind, Purchase::OnDemand));
        let why = match listed.or_else(|| self.published.on_demand(&request.offer.region, kind)) {
            Some(price) if price <= limit => return Ok(()),
            Some(price) => format!("the published on-demand price {price:.4} is above the limit {limit:.4}"),
            None => format!("no on-demand price is published for {kind} here, so the limit {limit:.4} cannot be kept"),
        };
        Err(error(ErrorClass::NoCapacity, CREATE, format!("{why}; nothing was asked for")).code("PriceAboveLimit"))
    }

    /// The subnet that is configured for the region, else the only one that the resource group has there.
    async fn subnet(&self, group: &str, region: &Region) -> Result<String> {
        let name = region.as_str().to_ascii_lowercase();
        if let Some(subnet) = self.settings.region.get(&name).and_then(|r| r.subnet.clone()) {
            return Ok(subnet);
        }
        let list = List {
            operation: "VirtualNetworks_List",
            path: format!(
                "/subscriptions/{}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks",
                self.subscription
            ),
            version: "2024-05-01",
            query: Vec::new(),
        };
        let mut found: Vec<String> = Vec::new();
        let take = |network: rows::Network, _: &mut std::collections::BTreeMap<String, u32>| {
            if network.location.is_some_and(|l| l.eq_ignore_ascii_case(&name)) {
                found.extend(network.properties.subnets.into_iter().filter_map(|s| s.id));
            }
        };
        self.pages.rows(&list, &mut std::collections::BTreeMap::new(), take).await?;
        match &found[..] {
            [only] => Ok(only.clone()),
            [] => Err(error(
                ErrorClass::Invalid,
                list.operation,
                format!(
                    "the resource group {group} has no subnet in {name}; make one, or name one as `subnet` under [providers.azure.region.{name}]"
                ),
            )),
            several => Err(error(
                ErrorClass::Invalid,
                list.operation,
                format!(
                    "the resource group {group} has {} subnets in {name}; name one as `subnet` under [providers.azure.region.{name}]",
                    several.len()
                ),
            )),
        }
    }

    fn body(&self, request: &LaunchRequest, key: &str, subnet: &str) -> Value {
        let name = &request.name;
        let here = self.settings.region.get(&request.offer.region.as_str().to_ascii_lowercase());
        let admin = self.settings.admin_user.as_deref().unwrap_or(DEFAULT_ADMIN);
        let mut tags: serde_json::Map<String, Value> =
            mark::to_tags(&request.mark).into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        tags.insert("gpudeck-created".into(), request.intended_at.to_rfc3339().into());
        let mut disk = json!({"createOption": "FromImage", "deleteOption": "Delete",
            "managedDisk": {"storageAccountType": "Premium_LRS"}});
        if let Some(gib) = self.settings.disk_gib {
            disk["diskSizeGB"] = gib.into();
        }
        let mut card = json!({"primary": true, "deleteOption": "Delete",
            "ipConfigurations": [{"name": "primary", "properties": {"primary": true, "subnet": {"id": subnet}}}]});
        if let Some(group) = here.and_then(|r| r.security_group.as_ref()) {
            card["networkSecurityGroup"] = json!({ "id": group });
        }
        let mut system = json!({"computerName": name, "adminUsername": admin,
            "linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": [
                {"path": format!("/home/{admin}/.ssh/authorized_keys"), "keyData": key}]}}});
        if let Some(text) = &request.user_data {
            system["customData"] = BASE64.encode(text).into();
        }
        let mut properties = json!({
            "hardwareProfile": {"vmSize": request.offer.instance_type.as_str()},
            "storageProfile": {"imageReference": image(self.settings.image.as_deref()), "osDisk": disk},
            "osProfile": system,
            "networkProfile": {"networkApiVersion": "2020-11-01",
                "networkInterfaceConfigurations": [{"name": name, "properties": card}]},
        });
        if request.offer.purchase == Purchase::Spot {
            properties["priority"] = "Spot".into();
            // Deallocated it would keep its disks billed and its quota used.
            properties["evictionPolicy"] = "Delete".into();
            properties["billingProfile"] = json!({ "maxPrice": request.max_price.map_or(-1.0, dollars) });
        }
        let mut body = json!({"location": request.offer.region.as_str(), "tags": tags, "properties": properties});
        if let Some(zone) = &request.offer.zone {
            body["zones"] = json!([zone.as_str()]);
        }
        body
    }
}

/// `PUBLISHER:OFFER:SKU:VERSION`, or the id of an image.
fn image(configured: Option<&str>) -> Value {
    let text = configured.unwrap_or(DEFAULT_IMAGE);
    match text.split(':').collect::<Vec<_>>()[..] {
        [publisher, offer, sku, version] => {
            json!({"publisher": publisher, "offer": offer, "sku": sku, "version": version})
        }
        _ => json!({ "id": text }),
    }
}

/// Dollars an hour as Azure reads them: at most five decimals, and never above the limit.
fn dollars(rate: HourlyRate) -> f64 {
    (rate.micros().max(0) / 10) as f64 / 100_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_limit_has_five_decimals_and_is_never_rounded_up() {
        assert_eq!(dollars(HourlyRate::from_micros(12_345_678)).to_string(), "12.34567");
        assert_eq!(dollars(HourlyRate::from_micros(19)).to_string(), "0.00001");
        assert_eq!(dollars(HourlyRate::from_micros(-5)).to_string(), "0");
    }

    #[test]
    fn an_image_is_four_words_or_an_id() {
        assert_eq!(image(Some("a:b:c:latest"))["sku"], "c");
        assert_eq!(image(Some("/subscriptions/1/images/x"))["id"], "/subscriptions/1/images/x");
        assert_eq!(image(None)["publisher"], "microsoft-dsvm");
    }
}
