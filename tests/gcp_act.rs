//! Launching and terminating on Google Cloud, against a Compute Engine of our own on loopback.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]
#![cfg(feature = "gcp")]

#[path = "support/gce_fake.rs"]
mod gce_fake;

use std::sync::{Arc, Mutex};

use chrono::{TimeZone, Utc};
use gce_fake::{Server, Shared, serve};
use google_cloud_auth::credentials::anonymous;
use gpudeck::config::gcp::GcpSettings;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::{
    Accelerator, AcceleratorCount, ErrorClass, HourlyRate, Instance, InstanceState, Interconnect, Mark, OfferKey,
    Purchase, Shape,
};
use gpudeck::provider::gcp::Gcp;
use gpudeck::provider::{InstanceRef, LaunchRequest, Operator, Provider, Support, Termination};
use serde_json::json;

const IMAGE: &str = "projects/acme/global/images/family/gpu-node";

async fn gcp() -> (Gcp, Shared) {
    let server: Shared = Arc::new(Mutex::new(Server::default()));
    let settings = GcpSettings {
        project: Some("p".into()),
        endpoint_url: Some(serve(server.clone()).await),
        image: Some(IMAGE.into()),
        ..GcpSettings::default()
    };
    let clock = Arc::new(ManualClock::at(Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap()));
    (Gcp::new(&settings, Some(anonymous::Builder::new().build()), clock).unwrap(), server)
}

fn request(n: u32) -> LaunchRequest {
    LaunchRequest {
        offer: OfferKey {
            provider: "gcp".into(),
            region: "us-central1".into(),
            zone: Some("us-central1-a".into()),
            instance_type: "a3-highgpu-8g".into(),
            purchase: Purchase::Spot,
        },
        shape: Arc::new(Shape {
            instance_type: "a3-highgpu-8g".into(),
            accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(208),
            memory_gib: Some(1872.0),
            interconnect: Interconnect::Unknown,
        }),
        max_price: Some(HourlyRate::from_micros(500_000_000)),
        token: format!("token-{n}"),
        name: format!("gpudeck-{n}"),
        mark: Mark { owner: "me".into(), job: "j".into(), operation: "o".into(), attempt: 1, node: n },
        intended_at: Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap(),
        user_data: Some("#!/bin/sh\nexport KEY='canary-secret'\n".into()),
    }
}

fn reference(instance: &Instance) -> InstanceRef {
    InstanceRef { id: instance.id.clone(), location: instance.location.clone() }
}

#[tokio::test]
async fn a_machine_is_made_found_and_ended_with_its_disk() {
    let (gcp, server) = gcp().await;
    assert_eq!(gcp.capabilities().launch_token, Support::Yes);
    let made = gcp.launch(&request(0)).await.unwrap();
    assert_eq!((&made.state, &made.mark), (&InstanceState::Provisioning, &Some(request(0).mark)));
    assert_eq!((made.id.as_str(), made.purchase), ("us-central1-a/gpudeck-0", Purchase::Spot));
    let body = server.lock().unwrap().inserts[0].clone();
    assert_eq!(
        (&body["disks"][0]["autoDelete"], &body["disks"][0]["initializeParams"]["sourceImage"]),
        (&json!(true), &json!(IMAGE))
    );
    assert_eq!(body["scheduling"]["provisioningModel"], "SPOT");
    assert_eq!(body["scheduling"]["instanceTerminationAction"], "DELETE");
    assert_eq!(body["scheduling"]["onHostMaintenance"], "TERMINATE");
    assert_eq!(body["labels"]["gpudeck-created"], "2026-11-01t00-00-00z");
    assert_eq!(body["metadata"]["items"][0]["key"], "startup-script");
    assert!(body["networkInterfaces"][0].get("accessConfigs").is_none(), "no public address");
    let seen = gcp.describe(&[reference(&made)]).await.unwrap().remove(0);
    assert_eq!(seen.state, InstanceState::Running);
    assert_eq!(gcp.instances("me").await.unwrap().len(), 1);
    assert!(gcp.instances("you").await.unwrap().is_empty());
    assert_eq!(gcp.terminate(&reference(&made)).await.unwrap(), Termination::Accepted(InstanceState::Terminating));
    assert!(gcp.instances("me").await.unwrap()[0].state.may_bill(), "accepted is not gone");
    assert!(gcp.describe(&[reference(&made)]).await.unwrap().is_empty());
    assert_eq!(gcp.terminate(&reference(&made)).await.unwrap(), Termination::AlreadyGone);
}

#[tokio::test]
async fn a4_the_same_token_gives_the_same_machine_and_a_stranger_s_is_not_taken() {
    let (gcp, server) = gcp().await;
    let first = gcp.launch(&request(0)).await.unwrap();
    assert_eq!(gcp.launch(&request(0)).await.unwrap().id, first.id);
    // Later than Google remembers the request's id, the name still guards.
    let forgotten = LaunchRequest { token: "another".into(), ..request(0) };
    assert_eq!(gcp.launch(&forgotten).await.unwrap().id, first.id);
    let stranger = LaunchRequest { mark: Mark { operation: "other".into(), ..request(0).mark }, ..forgotten };
    assert_eq!(gcp.launch(&stranger).await.unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(server.lock().unwrap().machines.len(), 1);
}

#[tokio::test]
async fn a1_an_answer_that_is_lost_is_an_unknown_outcome_and_the_machine_is_found() {
    let (gcp, server) = gcp().await;
    server.lock().unwrap().lose_answer = true;
    assert_eq!(gcp.launch(&request(0)).await.unwrap_err().class, ErrorClass::Transient);
    let region = request(0).offer.region;
    assert_eq!(gcp.find_by_token(&region, "token-0", &request(0).mark).await.unwrap().len(), 1);
    gcp.launch(&request(0)).await.unwrap();
    assert_eq!(server.lock().unwrap().machines.len(), 1);
    // The operation cannot be asked about: it was accepted all the same.
    server.lock().unwrap().wait_fails = true;
    assert_eq!(gcp.launch(&request(1)).await.unwrap().mark.unwrap().node, 1);
}

#[tokio::test]
async fn d1_refusals_before_and_after_acceptance_are_classed() {
    for (status, reason, class) in [
        (403, "quotaExceeded", ErrorClass::Quota),
        (403, "rateLimitExceeded", ErrorClass::Throttled),
        (403, "forbidden", ErrorClass::Auth),
        (400, "invalid", ErrorClass::Invalid),
    ] {
        let (gcp, server) = gcp().await;
        server.lock().unwrap().refuse = Some((status, reason));
        let error = gcp.launch(&request(0)).await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
    for (code, class) in [
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", ErrorClass::NoCapacity),
        ("QUOTA_EXCEEDED", ErrorClass::Quota),
        ("BRAND_NEW_CODE", ErrorClass::Transient),
    ] {
        let (gcp, server) = gcp().await;
        server.lock().unwrap().fail_later = Some(code);
        let error = gcp.launch(&request(0)).await.unwrap_err();
        assert_eq!((error.class, &*error.code), (class, code), "{error}");
        assert!(server.lock().unwrap().machines.is_empty());
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_before_google_is_asked() {
    let (gcp, server) = gcp().await;
    let dear = LaunchRequest { max_price: Some(HourlyRate::from_micros(1)), ..request(0) };
    let error = gcp.launch(&dear).await.unwrap_err();
    assert_eq!((error.class, &*error.code), (ErrorClass::NoCapacity, "PriceAboveLimit"), "{error}");
    let no_zone = LaunchRequest { offer: OfferKey { zone: None, ..request(0).offer }, ..request(0) };
    let long = LaunchRequest { user_data: Some("x".repeat(300_000)), ..request(0) };
    for wrong in [no_zone, long] {
        assert_eq!(gcp.launch(&wrong).await.unwrap_err().class, ErrorClass::Invalid);
    }
    assert!(server.lock().unwrap().inserts.is_empty());
    let mut odd = reference(&gcp.launch(&request(0)).await.unwrap());
    odd.id = "us-central1-a/../../x".into();
    assert_eq!(gcp.terminate(&odd).await.unwrap_err().class, ErrorClass::Invalid);
}
