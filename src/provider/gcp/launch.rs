//! Starting and ending one machine. The request's id is made from the token, and so is the name: sent again within the
//! time that Google remembers ids it is the same request, and later the name is taken, by the machine of the first time.
//!
//! Google accepts first and may still refuse within seconds (a zone that is sold out): the operation is waited for once,
//! on Google's side, so that a refusal is told as one.

use google_cloud_compute_v1::model;
use google_cloud_compute_v1::model::operation::Status;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Gcp, NOT_SET_UP, errors, machines};
use crate::config::limits::GCP_USER_DATA_BYTES;
use crate::domain::{ErrorClass, Instance, InstanceState, ProviderError, Purchase};
use crate::provider::mark;
use crate::provider::{InstanceRef, LaunchRequest, Result, Termination};

const INSERT: &str = "instances.insert";
const DELETE: &str = "instances.delete";

impl Gcp {
    pub(super) async fn insert(&self, request: &LaunchRequest) -> Result<Instance> {
        let invalid = |why: &str| Err(self.error(ErrorClass::Invalid, INSERT, why.to_owned()));
        let Some(image) = &self.settings.image else { return invalid(NOT_SET_UP) };
        let Some(zone) = request.offer.zone.as_ref().map(AsRef::<str>::as_ref) else {
            return invalid("a machine at Google needs a zone");
        };
        if request.offer.purchase == Purchase::Reserved {
            return invalid("reservations are bought ahead; gpudeck launches on-demand and spot");
        }
        if request.user_data.as_ref().is_some_and(|text| text.len() > GCP_USER_DATA_BYTES) {
            return invalid("the start-up script is longer than Google's 256 KiB");
        }
        self.within_limit(request)?;
        let body: model::Instance = serde_json::from_value(self.body(request, zone, image))
            .map_err(|e| self.error(ErrorClass::Invalid, INSERT, format!("the request cannot be written: {e}")))?;
        let call = self.client().await?.insert().set_project(&self.project).set_zone(zone);
        let accepted = match call.set_request_id(request_id(&request.token)).set_body(body).send().await {
            Ok(operation) => self.settled(zone, operation).await,
            Err(e) => Err(errors::classify(&self.id, INSERT, &e)),
        };
        match accepted {
            Ok(()) => {}
            // There is one of this name: ours from the first time, or a stranger's.
            Err(refused) if refused.class == ErrorClass::Conflict => {
                return match self.machine(zone, &request.name).await? {
                    Some(there) if there.mark.as_ref() == Some(&request.mark) => Ok(there),
                    _ => Err(refused),
                };
            }
            Err(refused) => return Err(refused),
        }
        // What was accepted is known, whether or not a read shows it yet.
        Ok(self.machine(zone, &request.name).await.ok().flatten().unwrap_or_else(|| Instance {
            id: format!("{zone}/{}", request.name).into(),
            location: request.offer.location(),
            instance_type: request.offer.instance_type.clone(),
            purchase: request.offer.purchase,
            state: InstanceState::Provisioning,
            launched_at: None,
            ended_at: None,
            price: None,
            token: Some(request.token.clone()),
            mark: Some(request.mark.clone()),
            preemption_notice: None,
            reason: None,
        }))
    }

    /// Wait, on Google's side, for an operation that was accepted. One that is not done by then goes on; one that cannot be
    /// asked about leaves the outcome unknown only where it may have failed.
    async fn settled(&self, zone: &str, operation: model::Operation) -> Result<()> {
        let done = |o: &model::Operation| o.status == Some(Status::Done);
        let last = if done(&operation) {
            operation
        } else {
            let Some(name) = operation.name.clone() else { return Ok(()) };
            let client = self.operations().await?;
            let wait = client.wait().set_project(&self.project).set_zone(zone).set_operation(name).send();
            match wait.await {
                Ok(last) => last,
                // Accepted it was; the engine looks how it ended.
                Err(e) => {
                    tracing::debug!(error = %errors::classify(&self.id, "zoneOperations.wait", &e), "not waited for");
                    return Ok(());
                }
            }
        };
        match last.error.and_then(|e| e.errors.into_iter().next()) {
            Some(first) => Err(errors::of_operation(
                &self.id,
                INSERT,
                last.http_error_status_code,
                first.code.unwrap_or_default(),
                first.message.unwrap_or_default(),
            )),
            None => Ok(()),
        }
    }

    pub(super) async fn delete(&self, target: &InstanceRef) -> Result<Termination> {
        let (zone, name) = self.named(target, DELETE)?;
        let call = self.client().await?.delete().set_project(&self.project).set_zone(zone).set_instance(name);
        match call.send().await {
            Ok(_) => Ok(Termination::Accepted(InstanceState::Terminating)),
            Err(e) => match errors::classify(&self.id, DELETE, &e) {
                gone if gone.class == ErrorClass::NotFound => Ok(Termination::AlreadyGone),
                refused => Err(refused),
            },
        }
    }

    /// A machine by its name; `None` where there is none.
    pub(super) async fn machine(&self, zone: &str, name: &str) -> Result<Option<Instance>> {
        let call = self.client().await?.get().set_project(&self.project).set_zone(zone).set_instance(name);
        match call.send().await {
            Ok(machine) => Ok(machines::read(&machine)),
            Err(e) => match errors::classify(&self.id, "instances.get", &e) {
                gone if gone.class == ErrorClass::NotFound => Ok(None),
                refused => Err(refused),
            },
        }
    }

    /// Zone and name in a machine's id.
    pub(super) fn named<'a>(&self, target: &'a InstanceRef, operation: &str) -> Result<(&'a str, &'a str)> {
        let plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        match target.id.as_str().split_once('/') {
            Some((zone, name)) if plain(zone) && plain(name) => Ok((zone, name)),
            _ => Err(self.error(ErrorClass::Invalid, operation, format!("'{}' is no id of an instance", target.id))),
        }
    }

    /// Google has no limit of its own: the published price decides, and one that is not known keeps none.
    fn within_limit(&self, request: &LaunchRequest) -> Result<()> {
        let Some(limit) = request.max_price else { return Ok(()) };
        let offer = &request.offer;
        let why = match self.published.price(offer.purchase, &offer.region, &offer.instance_type) {
            Some(price) if price <= limit => return Ok(()),
            Some(price) => format!("the published {} price {price:.4} is above the limit {limit:.4}", offer.purchase),
            None => format!(
                "no {} price is published for {} here, so the limit {limit:.4} cannot be kept",
                offer.purchase, offer.instance_type
            ),
        };
        Err(self.error(ErrorClass::NoCapacity, INSERT, format!("{why}; nothing was asked for")).code("PriceAboveLimit"))
    }

    pub(super) fn error(&self, class: ErrorClass, operation: &str, message: String) -> ProviderError {
        ProviderError::new(class, &self.id, operation, message)
    }

    fn body(&self, request: &LaunchRequest, zone: &str, image: &str) -> Value {
        let mut labels: serde_json::Map<String, Value> =
            mark::to_tags(&request.mark).into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        labels.insert("gpudeck-created".into(), request.intended_at.format("%Y-%m-%dt%H-%M-%Sz").to_string().into());
        let mut disk = json!({"sourceImage": image});
        if let Some(gib) = self.settings.disk_gib {
            disk["diskSizeGb"] = gib.to_string().into();
        }
        let here = self.settings.region.get(request.offer.region.as_str());
        let network = match here.and_then(|r| r.subnetwork.as_ref()) {
            Some(subnetwork) => json!({ "subnetwork": subnetwork }),
            None => json!({ "network": "global/networks/default" }),
        };
        // Machines with GPUs cannot be moved while they run.
        let mut scheduling = json!({"onHostMaintenance": "TERMINATE", "automaticRestart": false});
        if request.offer.purchase == Purchase::Spot {
            scheduling["provisioningModel"] = "SPOT".into();
            // Stopped it would keep its disk billed.
            scheduling["instanceTerminationAction"] = "DELETE".into();
        }
        let mut body = json!({
            "name": request.name,
            "machineType": format!("zones/{zone}/machineTypes/{}", request.offer.instance_type),
            "labels": labels,
            "disks": [{"boot": true, "autoDelete": true, "initializeParams": disk}],
            "networkInterfaces": [network],
            "scheduling": scheduling,
        });
        if let Some(text) = &request.user_data {
            body["metadata"] = json!({"items": [{"key": "startup-script", "value": text}]});
        }
        if let Some(account) = &self.settings.service_account {
            body["serviceAccounts"] =
                json!([{"email": account, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}]);
        }
        body
    }
}

/// A UUID that is the same for the same token.
fn request_id(token: &str) -> String {
    let digest = Sha256::digest(token.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_a_uuid_and_of_its_token() {
        assert_eq!(request_id("a"), request_id("a"));
        assert_ne!(request_id("a"), request_id("b"));
        assert!(uuid::Uuid::parse_str(&request_id("a")).is_ok_and(|u| !u.is_nil()));
    }
}
