//! Launching and terminating on Azure, against a resource manager of our own on loopback.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]
#![cfg(feature = "azure")]

#[path = "support/arm_fake.rs"]
mod arm_fake;

use std::sync::{Arc, Mutex};

use arm_fake::{Server, Shared, serve};
use chrono::{TimeZone, Utc};
use gpudeck::config::azure::AzureSettings;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::{
    Accelerator, AcceleratorCount, ErrorClass, HourlyRate, InstanceState, Interconnect, Mark, OfferKey, Purchase, Shape,
};
use gpudeck::provider::azure::Azure;
use gpudeck::provider::{InstanceRef, LaunchRequest, Operator, Provider, Support, Termination};
use serde_json::json;

const SUBNET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/one";

#[derive(Debug)]
struct Token;

#[async_trait::async_trait]
impl azure_core::auth::TokenCredential for Token {
    async fn get_token(&self, _scopes: &[&str]) -> azure_core::Result<azure_core::auth::AccessToken> {
        let far = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000);
        Ok(azure_core::auth::AccessToken::new("canary-token".to_owned(), far.into()))
    }
    async fn clear_cache(&self) -> azure_core::Result<()> {
        Ok(())
    }
}

async fn azure() -> (Azure, Shared) {
    let server: Shared = Arc::new(Mutex::new(Server {
        networks: json!([{"location": "EastUS", "properties": {"subnets": [{"id": SUBNET}]}},
                         {"location": "westeurope", "properties": {"subnets": [{"id": "a"}, {"id": "b"}]}}]),
        ..Server::default()
    }));
    let settings = AzureSettings {
        subscription_id: Some("s".into()),
        endpoint_url: Some(serve(server.clone()).await),
        resource_group: Some("g".into()),
        ssh_public_key: Some("ssh-ed25519 AAAA on-call".into()),
        ..AzureSettings::default()
    };
    let clock = Arc::new(ManualClock::at(Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap()));
    (Azure::with_credential(&settings, Arc::new(Token), clock).unwrap(), server)
}

fn request(n: u32) -> LaunchRequest {
    LaunchRequest {
        offer: OfferKey {
            provider: "azure".into(),
            region: "eastus".into(),
            zone: Some("2".into()),
            instance_type: "Standard_ND96isr_H100_v5".into(),
            purchase: Purchase::Spot,
        },
        shape: Arc::new(Shape {
            instance_type: "Standard_ND96isr_H100_v5".into(),
            accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(96),
            memory_gib: Some(1900.0),
            interconnect: Interconnect::Infiniband,
        }),
        max_price: Some(HourlyRate::from_micros(40_123_456)),
        token: format!("token-{n}"),
        name: format!("gpudeck-{n}"),
        mark: Mark { owner: "me".into(), job: "j".into(), operation: "o".into(), attempt: 1, node: n },
        intended_at: Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap(),
        user_data: Some("#!/bin/sh\nexport KEY='canary-secret'\n".into()),
    }
}

fn reference(instance: &gpudeck::domain::Instance) -> InstanceRef {
    InstanceRef { id: instance.id.clone(), location: instance.location.clone() }
}

#[tokio::test]
async fn a_machine_is_made_found_and_ended_with_all_that_belongs_to_it() {
    let (azure, server) = azure().await;
    assert_eq!(azure.capabilities().launch_token, Support::Yes);
    let made = azure.launch(&request(0)).await.unwrap();
    assert_eq!(made.state, InstanceState::Provisioning);
    assert_eq!(made.mark, Some(request(0).mark));
    assert_eq!(
        (made.purchase, made.location.zone.as_ref().map(gpudeck::domain::Zone::as_str)),
        (Purchase::Spot, Some("2"))
    );
    let body = server.lock().unwrap().puts[0].clone();
    let properties = &body["properties"];
    assert_eq!(properties["storageProfile"]["osDisk"]["deleteOption"], "Delete");
    let card = &properties["networkProfile"]["networkInterfaceConfigurations"][0]["properties"];
    assert_eq!(
        (&card["deleteOption"], &card["ipConfigurations"][0]["properties"]["subnet"]["id"]),
        (&json!("Delete"), &json!(SUBNET))
    );
    assert!(card["ipConfigurations"][0]["properties"].get("publicIPAddressConfiguration").is_none());
    assert_eq!((&properties["priority"], &properties["evictionPolicy"]), (&json!("Spot"), &json!("Delete")));
    assert_eq!(properties["billingProfile"]["maxPrice"], 40.12345, "never above the limit");
    assert_eq!(properties["osProfile"]["linuxConfiguration"]["disablePasswordAuthentication"], true);
    assert!(properties["osProfile"].get("adminPassword").is_none());
    assert_eq!(properties["osProfile"]["customData"], "IyEvYmluL3NoCmV4cG9ydCBLRVk9J2NhbmFyeS1zZWNyZXQnCg==");
    assert_eq!(azure.describe(&[reference(&made)]).await.unwrap()[0].state, InstanceState::Provisioning);
    assert_eq!(azure.describe(&[reference(&made)]).await.unwrap()[0].state, InstanceState::Running);
    assert_eq!(azure.instances("me").await.unwrap().len(), 1);
    assert!(azure.instances("you").await.unwrap().is_empty());
    let ended = azure.terminate(&reference(&made)).await.unwrap();
    assert_eq!(ended, Termination::Accepted(InstanceState::Terminating));
    assert_eq!(azure.instances("me").await.unwrap()[0].state, InstanceState::Terminating, "accepted is not gone");
    assert!(azure.describe(&[reference(&made)]).await.unwrap().is_empty());
    assert_eq!(azure.terminate(&reference(&made)).await.unwrap(), Termination::AlreadyGone);
}

#[tokio::test]
async fn a4_the_same_token_gives_the_same_machine_and_a_stranger_s_is_not_taken() {
    let (azure, server) = azure().await;
    let first = azure.launch(&request(0)).await.unwrap();
    let again = azure.launch(&request(0)).await.unwrap();
    assert_eq!(first.id, again.id);
    let stranger = LaunchRequest { mark: Mark { operation: "other".into(), ..request(0).mark }, ..request(0) };
    assert_eq!(azure.launch(&stranger).await.unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(server.lock().unwrap().machines.len(), 1);
}

#[tokio::test]
async fn a1_an_answer_that_is_lost_is_an_unknown_outcome_and_the_machine_is_found() {
    let (azure, server) = azure().await;
    server.lock().unwrap().lose_answer = true;
    let error = azure.launch(&request(0)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient);
    assert_eq!(error.request_id.as_deref(), Some("request-1"));
    let region = request(0).offer.region;
    let found = azure.find_by_token(&region, "token-0", &request(0).mark).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(azure.launch(&request(0)).await.unwrap().id, found[0].id);
    assert_eq!(server.lock().unwrap().machines.len(), 1);
}

#[tokio::test]
async fn d1_refusals_are_classed_and_what_fails_later_says_why() {
    let quota = "Operation could not be completed as it results in exceeding approved standardNDSH100v5Family Cores quota. Current Limit: 0";
    for (status, code, text, class) in [
        (409, "OperationNotAllowed", quota, ErrorClass::Quota),
        (409, "SkuNotAvailable", "The requested size is not available", ErrorClass::NoCapacity),
        (409, "ZonalAllocationFailed", "Allocation failed.", ErrorClass::NoCapacity),
        (403, "AuthorizationFailed", "no", ErrorClass::Auth),
        (429, "TooManyRequests", "slow down", ErrorClass::Throttled),
        (400, "InvalidParameter", "no", ErrorClass::Invalid),
        (400, "BrandNewCode", "no", ErrorClass::Unknown),
    ] {
        let (azure, server) = azure().await;
        server.lock().unwrap().refuse = Some((status, code, text));
        let error = azure.launch(&request(0)).await.unwrap_err();
        assert_eq!((error.class, &*error.code), (class, code), "{error}");
        assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(17)));
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        assert!(server.lock().unwrap().machines.is_empty());
    }
    let (azure, server) = azure().await;
    server.lock().unwrap().fail_later = Some("AllocationFailed");
    let made = azure.launch(&request(0)).await.unwrap();
    let mut seen = made.clone();
    for _ in 0..2 {
        seen = azure.describe(&[reference(&made)]).await.unwrap().remove(0);
    }
    assert_eq!(seen.state, InstanceState::Failed);
    assert_eq!(seen.reason.as_deref(), Some("AllocationFailed: there is none left"));
    assert!(seen.state.may_bill(), "what failed may still hold a disk and a card");
    assert!(matches!(azure.terminate(&reference(&made)).await.unwrap(), Termination::Accepted(_)));
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_before_azure_is_asked() {
    let (azure, server) = azure().await;
    let on_demand = |micros| LaunchRequest {
        offer: OfferKey { purchase: Purchase::OnDemand, ..request(0).offer },
        max_price: Some(HourlyRate::from_micros(micros)),
        ..request(0)
    };
    let dear = azure.launch(&on_demand(1_000_000)).await.unwrap_err();
    assert_eq!((dear.class, &*dear.code), (ErrorClass::NoCapacity, "PriceAboveLimit"), "{dear}");
    let reserved = OfferKey { purchase: Purchase::Reserved, ..request(0).offer };
    let long = LaunchRequest { user_data: Some("x".repeat(70_000)), ..request(0) };
    let two_subnets = OfferKey { region: "westeurope".into(), ..request(0).offer };
    let no_subnet = OfferKey { region: "uksouth".into(), ..request(0).offer };
    for (wrong, says) in [
        (LaunchRequest { offer: reserved, ..request(0) }, "capacity blocks"),
        (long, "64 KiB"),
        (LaunchRequest { offer: two_subnets, ..request(0) }, "2 subnets in westeurope"),
        (LaunchRequest { offer: no_subnet, ..request(0) }, "no subnet in uksouth"),
    ] {
        let error = azure.launch(&wrong).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    assert!(server.lock().unwrap().puts.is_empty());
    azure.launch(&on_demand(500_000_000)).await.unwrap();
    let body = server.lock().unwrap().puts[0].clone();
    assert!(body["properties"].get("priority").is_none() && body["properties"].get("billingProfile").is_none());
    let mut odd = reference(&azure.instances("me").await.unwrap()[0]);
    odd.id = "../../x".into();
    assert_eq!(azure.terminate(&odd).await.unwrap_err().class, ErrorClass::Invalid);
    assert_eq!(server.lock().unwrap().deletes, 0);
}
