//! The Google adapter against a server of our own on loopback that speaks its wire protocol.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test that cannot go on fails here"
)]
#![cfg(feature = "gcp")]

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{TimeZone, Utc};
use google_cloud_auth::credentials::anonymous;
use gpudeck::config::gcp::GcpSettings;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::{ErrorClass, InstanceState, Interconnect, Purchase};
use gpudeck::provider::Provider;
use gpudeck::provider::gcp::{Gcp, connect};
use serde_json::{Value, json};

type Answer = Arc<dyn Fn(Option<String>) -> Response + Send + Sync>;

#[derive(serde::Deserialize)]
struct Page {
    #[serde(rename = "pageToken")]
    page_token: Option<String>,
}

async fn adapter(types: impl Fn(Option<String>) -> Response + Send + Sync + 'static, machines: Value) -> Gcp {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer: Answer = Arc::new(types);
    let app =
        Router::new()
            .route(
                "/compute/v1/projects/p/aggregated/machineTypes",
                get(|State(a): State<Answer>, Query(q): Query<Page>| async move {
                    a(q.page_token.filter(|t| !t.is_empty()))
                }),
            )
            .route("/compute/v1/projects/p/aggregated/instances", get(move || async move { Json(machines.clone()) }))
            .route(
                "/compute/v1/projects/p/regions",
                get(|| async {
                    Json(json!({"items": [{"name": "us-central1", "quotas": [
                        {"metric": "NVIDIA_H100_GPUS", "limit": 16.0, "usage": 4.0},
                        {"metric": "PREEMPTIBLE_NVIDIA_H100_GPUS", "limit": 0.0, "usage": 0.0},
                        {"metric": "BRAND_NEW_THINGS", "limit": 1.0}]}]}))
                }),
            )
            .with_state(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let settings = GcpSettings { project: Some("p".into()), endpoint_url: Some(url), ..GcpSettings::default() };
    let clock = Arc::new(ManualClock::at(Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap()));
    Gcp::new(&settings, Some(anonymous::Builder::new().build()), clock).unwrap()
}

fn kind(name: &str, chip: &str, count: i64) -> Value {
    json!({"name": name, "guestCpus": 208, "memoryMb": 1_916_928, "zone": "z",
        "accelerators": [{"guestAcceleratorType": chip, "guestAcceleratorCount": count}]})
}

#[tokio::test]
async fn types_of_all_pages_and_zones_are_read_and_an_unreached_zone_is_told() {
    let gcp = adapter(
        |page| match page.as_deref() {
            None => Json(json!({"items": {
                "zones/us-central1-a": {"machineTypes": [kind("a3-highgpu-8g", "nvidia-h100-80gb", 8)]},
                "zones/europe-west4-b": {"warning": {"code": "UNREACHABLE", "message": "…"}}},
                "nextPageToken": "2"}))
            .into_response(),
            _ => Json(json!({"items": {
                "zones/asia-east1-c": {"machineTypes": [kind("a9-new-4g", "nvidia-z900", 4), kind("a9-odd", "nvidia-z900", -3)]}}}))
            .into_response(),
        },
        json!({"items": {}}),
    )
    .await;
    let offerings = gcp.offerings().await.unwrap();
    let of = |t: &str| {
        offerings
            .observations
            .iter()
            .find(|o| o.key.instance_type == t)
            .unwrap_or_else(|| panic!("{t} in {offerings:?}"))
    };
    assert_eq!(of("a3-highgpu-8g").key.region.as_str(), "us-central1");
    assert_eq!(of("a3-highgpu-8g").key.zone.as_ref().unwrap().as_str(), "us-central1-a");
    assert_eq!(of("a3-highgpu-8g").shape.accelerators.floor(), 8);
    let room = |t: &str| {
        let all = offerings.observations.iter().filter(|o| o.key.instance_type == t);
        all.filter_map(|o| o.quota.clone()).map(|q| (q.code.clone(), q.instances_left())).next()
    };
    assert_eq!(room("a3-highgpu-8g"), Some(("NVIDIA_H100_GPUS".to_owned(), 1)), "twelve left, eight a machine");
    assert_eq!(room("a9-new-4g"), None, "not told is not none");
    assert!(!of("a9-new-4g").shape.accelerator.is_known(), "c2: unknown, not dropped");
    assert_eq!(of("a9-new-4g").shape.interconnect, Interconnect::Unknown);
    assert_eq!(offerings.skipped.values().sum::<u32>(), 1, "{:?}", offerings.skipped);
    assert_eq!(offerings.failed.len(), 1);
    assert_eq!(offerings.failed[0].region.as_ref().unwrap().as_str(), "europe-west4");
}

#[tokio::test]
async fn machines_under_our_mark_are_read() {
    let labels = json!({"gpudeck-owner": "me", "gpudeck-job": "j", "gpudeck-operation": "o", "gpudeck-attempt": "0", "gpudeck-node": "1"});
    let machine = |name: &str, status: &str, labels: Value| {
        json!({"name": name, "zone": "https://x/zones/us-central1-a", "machineType": "https://x/a3-highgpu-8g",
            "status": status, "labels": labels, "creationTimestamp": "2026-10-31T16:00:00.000-07:00",
            "scheduling": {"provisioningModel": "SPOT"}})
    };
    let gcp = adapter(
        |_| StatusCode::NOT_FOUND.into_response(),
        json!({"items": {"zones/us-central1-a": {"instances": [
            machine("a", "RUNNING", labels.clone()), machine("b", "TERMINATED", labels), machine("c", "RUNNING", json!({}))]}}}),
    )
    .await;
    let machines = gcp.instances("me").await.unwrap();
    assert_eq!(machines.len(), 2);
    assert_eq!((&machines[0].state, &machines[1].state), (&InstanceState::Running, &InstanceState::Stopped));
    assert_eq!(machines[0].purchase, Purchase::Spot);
    assert_eq!(machines[0].launched_at.unwrap().to_rfc3339(), "2026-10-31T23:00:00+00:00");
    assert_eq!(machines[0].mark.as_ref().unwrap().node, 1);
}

/// A list that lacks a zone, or a machine that nothing can name, would make machines look gone that bill on.
#[tokio::test]
async fn d7_a_list_that_is_not_whole_is_no_list() {
    let nothing = |_: Option<String>| StatusCode::NOT_FOUND.into_response();
    let unreached = json!({"items": {
        "zones/us-central1-a": {"instances": []},
        "zones/us-central1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}},
        "zones/europe-west4-b": {"warning": {"code": "UNREACHABLE", "message": "…"}}}});
    let error = adapter(nothing, unreached).await.instances("me").await.unwrap_err();
    assert_eq!((error.class, &*error.code), (ErrorClass::Transient, "UNREACHABLE"));
    assert!(error.message.contains("europe-west4-b"), "{error}");
    let nameless = json!({"items": {"zones/us-central1-a": {"instances": [{"status": "RUNNING"}]}}});
    let error = adapter(nothing, nameless).await.instances("me").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unknown);
    let empty = json!({"items": {"zones/us-central1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}});
    assert_eq!(adapter(nothing, empty).await.instances("me").await.unwrap(), []);
}

#[tokio::test]
async fn errors_are_classed_and_the_call_is_not_repeated() {
    use std::sync::atomic::{AtomicU32, Ordering};
    for (status, reason, class) in [
        (403, "accessNotConfigured", ErrorClass::Auth),
        (403, "rateLimitExceeded", ErrorClass::Throttled),
        (503, "backendError", ErrorClass::Transient),
    ] {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        let gcp = adapter(
            move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                let body = json!({"error": {"code": status, "message": format!("{reason} \u{1b}[31m"), "errors": [{"reason": reason}]}});
                (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
            },
            json!({"items": {}}),
        )
        .await;
        let error = gcp.offerings().await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(!error.to_string().contains('\u{1b}'));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn without_credentials_it_says_so_at_once_and_what_to_do() {
    let clock = Arc::new(ManualClock::at(Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap()));
    let settings = GcpSettings { project: Some("p".into()), ..GcpSettings::default() };
    let absent = connect(&settings, clock).err().unwrap();
    assert!(absent.remedy.contains("gcloud auth application-default login"), "{absent:?}");
}
