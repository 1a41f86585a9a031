//! The Azure adapter against a server of our own on loopback that speaks its wire protocol.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test that cannot go on fails here"
)]
#![cfg(feature = "azure")]

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{TimeZone, Utc};
use gpudeck::config::azure::AzureSettings;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::observation::PriceStatement;
use gpudeck::domain::{Availability, ErrorClass, Evidence, HourlyRate, InstanceState, Purchase};
use gpudeck::provider::azure::Azure;
use gpudeck::provider::{InstanceRef, Provider};
use serde_json::{Value, json};

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

#[derive(Clone)]
struct Fake {
    prices: Arc<dyn Fn(&str, Option<String>, &str) -> Response + Send + Sync>,
    usages: Arc<dyn Fn(&str) -> Response + Send + Sync>,
    skus: Arc<dyn Fn(Option<String>, &str) -> Response + Send + Sync>,
    machines: Value,
}

#[derive(serde::Deserialize)]
struct Page {
    #[serde(rename = "$filter")]
    filter: Option<String>,
    page: Option<String>,
}

async fn serve(fake: Fake) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let base = address.clone();
    let prices_base = address.clone();
    let app = Router::new()
        .route(
            "/subscriptions/{s}/providers/Microsoft.Compute/skus",
            get(move |State(f): State<Fake>, Query(q): Query<Page>, headers: HeaderMap| async move {
                assert_eq!(headers["authorization"], "Bearer canary-token");
                let _ = q.filter;
                (f.skus)(q.page, &base)
            }),
        )
        .route(
            "/subscriptions/{s}/providers/Microsoft.Compute/virtualMachines",
            get(|State(f): State<Fake>| async move { Json(f.machines.clone()) }),
        )
        .route(
            "/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.Compute/virtualMachines/{name}",
            get(|State(f): State<Fake>, Path((_, _, name)): Path<(String, String, String)>| async move {
                let machines = f.machines["value"].as_array().unwrap();
                let found = machines.iter().find(|m| m["name"] == *name);
                let gone = json!({"error": {"code": "ResourceNotFound", "message": "gone"}});
                found.map_or_else(
                    || (StatusCode::NOT_FOUND, Json(gone)).into_response(),
                    |machine| Json(machine.clone()).into_response(),
                )
            }),
        )
        .route(
            "/prices",
            get(move |State(f): State<Fake>, Query(q): Query<Page>, headers: HeaderMap| async move {
                assert!(!headers.contains_key("authorization"), "no token goes to the public list");
                (f.prices)(&q.filter.unwrap_or_default(), q.page, &prices_base)
            }),
        )
        .route(
            "/subscriptions/{s}/providers/Microsoft.Compute/locations/{l}/usages",
            get(|State(f): State<Fake>, Path((_, l)): Path<(String, String)>| async move { (f.usages)(&l) }),
        )
        .with_state(fake);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn adapter(skus: impl Fn(Option<String>, &str) -> Response + Send + Sync + 'static, machines: Value) -> Azure {
    let none = |_: &str| Json(json!({"value": []})).into_response();
    let fake = Fake {
        prices: Arc::new(|_, _, _| StatusCode::NOT_FOUND.into_response()),
        usages: Arc::new(none),
        skus: Arc::new(skus),
        machines,
    };
    connected(fake, false).await.0
}

/// An adapter at this fake, and its clock; `priced` where its list of prices is asked, too.
async fn connected(fake: Fake, priced: bool) -> (Azure, Arc<ManualClock>) {
    let url = serve(fake).await;
    let settings = AzureSettings {
        subscription_id: Some("11111111-2222-3333-4444-555555555555".into()),
        prices_url: priced.then(|| format!("{url}/prices")),
        endpoint_url: Some(url),
        ..AzureSettings::default()
    };
    let clock = Arc::new(ManualClock::at(Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap()));
    (Azure::with_credential(&settings, Arc::new(Token), clock.clone()).unwrap(), clock)
}

fn sku(name: &str, gpus: &str, location: &str, zones: &[&str], restrictions: Value) -> Value {
    json!({"resourceType": "virtualMachines", "name": name, "locations": [location],
        "locationInfo": [{"location": location, "zones": zones}],
        "capabilities": [{"name": "GPUs", "value": gpus}, {"name": "vCPUs", "value": "96"}, {"name": "MemoryGB", "value": "1900"}],
        "restrictions": restrictions})
}

#[tokio::test]
async fn pages_are_followed_and_restrictions_are_a_plain_no() {
    let azure = adapter(
        |page, base| {
            let next = format!("{base}/subscriptions/1/providers/Microsoft.Compute/skus?page=2");
            match page.as_deref() {
                None => Json(json!({"value": [
                    sku("Standard_ND96isr_H100_v5", "8", "EastUS", &["1", "2"], json!([
                        {"type": "Zone", "values": ["EastUS"], "reasonCode": "NotAvailableForSubscription",
                         "restrictionInfo": {"locations": ["EastUS"], "zones": ["2"]}}])),
                    {"resourceType": "disks", "name": "Premium_LRS"},
                    sku("Standard_D2s_v5", "0", "EastUS", &[], json!([]))],
                    "nextLink": next}))
                .into_response(),
                _ => Json(json!({"value": [
                    sku("Standard_Brand_New_v9", "4", "westus3", &[], json!([])),
                    sku("Standard_Absurd", "1e300", "westus3", &[], json!([]))]}))
                .into_response(),
            }
        },
        json!({"value": []}),
    )
    .await;
    let offerings = azure.offerings().await.unwrap();
    assert!(offerings.complete && offerings.failed.is_empty());
    let find = |t: &str, zone: Option<&str>| {
        offerings
            .observations
            .iter()
            .find(|o| {
                o.availability.is_some()
                    && o.key.instance_type == t
                    && o.key.zone.as_ref().map(gpudeck::domain::Zone::as_str) == zone
            })
            .unwrap_or_else(|| panic!("{t} {zone:?}"))
    };
    let open = find("Standard_ND96isr_H100_v5", Some("1"));
    assert_eq!(open.availability, Some((Availability::Unknown, Evidence::Catalogue)), "listed is not in stock");
    assert_eq!(open.key.region.as_str(), "eastus");
    assert_eq!(open.shape.accelerators.floor(), 8);
    let closed = find("Standard_ND96isr_H100_v5", Some("2"));
    assert_eq!(closed.availability, Some((Availability::None, Evidence::Api)));
    let new = find("Standard_Brand_New_v9", None);
    assert!(!new.shape.accelerator.is_known(), "c2: an unknown accelerator is shown as unknown, not dropped");
    assert_eq!(new.shape.accelerators.floor(), 4);
    let listed = offerings.observations.iter().filter(|o| o.availability.is_some()).count();
    assert_eq!(listed, 3, "a size without GPUs is not listed, an absurd one neither");
    let priced: Vec<_> = offerings.observations.iter().filter(|o| o.availability.is_none()).collect();
    assert_eq!(priced.len(), 2, "the table has a price for one size, in two zones");
    assert!(priced.iter().all(|o| o.at < open.at), "a table's price has the table's date, not that of the listing");
}

#[tokio::test]
async fn machines_under_our_mark_are_read_and_unknown_states_bill() {
    let vm = |name: &str, power: &str, tags: Value| {
        json!({"id": format!("/subscriptions/1/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/{name}"),
            "name": name, "location": "westeurope", "zones": ["1"], "tags": tags,
            "properties": {"provisioningState": "Succeeded", "priority": "Spot",
                "hardwareProfile": {"vmSize": "Standard_ND96isr_H100_v5"},
                "timeCreated": "2026-10-31T23:00:00Z",
                "instanceView": {"statuses": [{"code": "ProvisioningState/succeeded"}, {"code": power}]}}})
    };
    let ours = json!({"gpudeck-owner": "me", "gpudeck-job": "j", "gpudeck-operation": "o", "gpudeck-attempt": "1", "gpudeck-node": "0"});
    let azure = adapter(
        |_, _| StatusCode::NOT_FOUND.into_response(),
        json!({"value": [vm("a", "PowerState/running", ours.clone()), vm("b", "PowerState/hibernated\u{1b}[2J", ours),
                         vm("c", "PowerState/running", json!({"gpudeck-owner": "somebody else"}))]}),
    )
    .await;
    let machines = azure.instances("me").await.unwrap();
    assert_eq!(machines.len(), 2);
    assert_eq!(machines[0].state, InstanceState::Running);
    assert_eq!(machines[0].purchase, Purchase::Spot);
    assert_eq!(machines[0].instance_type.as_str(), "Standard_ND96isr_H100_v5");
    assert!(machines[1].state.may_bill());
    assert!(!machines[1].state.label().contains('\u{1b}'), "{}", machines[1].state.label());
    let one = InstanceRef { id: machines[0].id.clone(), location: machines[0].location.clone() };
    let mut gone = one.clone();
    gone.id = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/gone".into();
    assert_eq!(azure.describe(&[one.clone(), gone]).await.unwrap(), [machines[0].clone()]);
    let mut odd = one;
    odd.id = "a/../b".into();
    assert_eq!(azure.describe(&[odd]).await.unwrap_err().class, ErrorClass::Invalid, "never an address of its own");
}

/// New words, `null`s and rows of another shape: each row is read by itself.
#[tokio::test]
async fn c2_a_new_word_in_one_row_loses_no_other_row() {
    let new = json!([{"type": "Continent", "values": ["eastus"], "reasonCode": "BrandNewReason"}]);
    let known = sku("Standard_ND96isr_H100_v5", "8", "eastus", &[], new);
    let mut nulls = sku("Standard_NC24ads_A100_v4", "1", "eastus", &[], json!(null));
    nulls["locationInfo"][0]["zones"] = json!(null);
    let rows = json!([known, nulls, 7, {"resourceType": ["virtualMachines"]}]);
    let vm = |name: &str| {
        json!({"id": format!("/subscriptions/1/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/{name}"),
            "name": name, "location": "westeurope", "tags": {"gpudeck-owner": "me", "gpudeck-job": "j",
                "gpudeck-operation": "o", "gpudeck-attempt": "1", "gpudeck-node": "0", "other": {"nested": true}},
            "properties": {"provisioningState": "BrandNewState", "priority": "BrandNewPriority", "timeCreated": "soon",
                "hardwareProfile": {"vmSize": "Standard_Brand_New_v9"}, "instanceView": {"statuses": null}}})
    };
    let azure = adapter(move |_, _| Json(json!({"value": rows})).into_response(), json!({"value": [vm("a")]})).await;
    let offerings = azure.offerings().await.unwrap();
    let listed: Vec<_> = offerings.observations.iter().filter_map(|o| o.availability).collect();
    assert_eq!(listed, [(Availability::None, Evidence::Api), (Availability::Unknown, Evidence::Catalogue)]);
    assert_eq!(offerings.skipped.values().sum::<u32>(), 2, "{:?}", offerings.skipped);
    let machines = azure.instances("me").await.unwrap();
    assert!(machines.len() == 1 && machines[0].state.may_bill(), "{machines:?}");
    let azure = adapter(|_, _| StatusCode::NOT_FOUND.into_response(), json!({"value": [vm("a"), 7]})).await;
    let error = azure.instances("me").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unknown, "a machine that cannot be read is never passed over: {error}");
}

#[tokio::test]
async fn a_list_that_leads_in_a_circle_or_elsewhere_ends() {
    let circle = |_: Option<String>, base: &str| {
        let next = format!("{base}/subscriptions/1/providers/Microsoft.Compute/skus?page=2");
        Json(json!({"value": [], "nextLink": next})).into_response()
    };
    assert_eq!(adapter(circle, json!({})).await.offerings().await.unwrap_err().class, ErrorClass::Transient);
    let elsewhere = |_: Option<String>, _: &str| {
        Json(json!({"value": [], "nextLink": "http://127.0.0.2:1/skus?page=2"})).into_response()
    };
    let error = adapter(elsewhere, json!({})).await.offerings().await.unwrap_err();
    assert!(error.message.contains("refused to send the token"), "{error}");
}

#[tokio::test]
async fn c5_an_answer_that_is_an_error_is_classed_and_names_the_call() {
    for (status, code, class) in [
        (401, "InvalidAuthenticationToken", ErrorClass::Auth),
        (403, "AuthorizationFailed", ErrorClass::Auth),
        (429, "TooManyRequests", ErrorClass::Throttled),
        (500, "InternalServerError", ErrorClass::Transient),
    ] {
        let azure = adapter(
            move |_, _| {
                let body = json!({"error": {"code": code, "message": "no \u{1b}]0;x\u{7}"}});
                (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
            },
            json!({"value": []}),
        )
        .await;
        let error = azure.offerings().await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert_eq!((&*error.operation, &*error.code), ("ResourceSkus_List", code));
        let shown = error.to_string();
        assert!(!shown.contains('\u{1b}') && !shown.contains("canary-token"), "{shown}");
    }
}

#[tokio::test]
async fn a_truncated_body_is_a_passing_fault_not_an_empty_offer() {
    let azure = adapter(|_, _| "{\"value\": [{\"resourceType\"".into_response(), json!({"value": []})).await;
    assert_eq!(azure.offerings().await.unwrap_err().class, ErrorClass::Transient);
}

#[test]
fn without_a_subscription_it_says_what_to_do() {
    let clock = Arc::new(ManualClock::at(Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap()));
    let absent = Azure::with_credential(&AzureSettings::default(), Arc::new(Token), clock).err().unwrap();
    assert!(absent.remedy.contains("AZURE_SUBSCRIPTION_ID"), "{absent:?}");
}

fn h100(spot: &str) -> Value {
    json!({"resourceType": "virtualMachines", "name": "Standard_ND96isr_H100_v5", "family": "standardNDSH100v5Family",
        "locations": ["eastus"], "locationInfo": [{"location": "EastUS", "zones": ["1"]}],
        "capabilities": [{"name": "GPUs", "value": "8"}, {"name": "vCPUs", "value": "96"},
            {"name": "LowPriorityCapable", "value": spot}]})
}

fn meter(name: &str, price: f64) -> Value {
    json!({"currencyCode": "USD", "retailPrice": price, "unitPrice": price, "armRegionName": "eastus", "location": "US East",
        "effectiveStartDate": "2026-01-01T00:00:00Z", "meterName": name, "productName": "Virtual Machines NDsrH100v5 Series",
        "skuName": name, "armSkuName": "Standard_ND96isr_H100_v5", "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour", "type": "Consumption", "tierMinimumUnits": 0.0, "isPrimaryMeterRegion": true})
}

/// Retail prices of every page, spot by itself, quotas by family; the list is asked once an hour, and what it does not
/// answer leaves the prices of before.
#[tokio::test]
async fn b9_live_prices_and_quotas_of_azure() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let (asked, down) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (count, off) = (asked.clone(), down.clone());
    let fake = Fake {
        skus: Arc::new(|_, _| Json(json!({"value": [h100("True")]})).into_response()),
        machines: json!({"value": []}),
        prices: Arc::new(move |filter, page, base| {
            if off.load(Ordering::SeqCst) > 0 {
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            assert!(page.is_some() || filter.contains("armSkuName eq 'Standard_ND96isr_H100_v5'"), "{filter}");
            count.fetch_add(1, Ordering::SeqCst);
            match page {
                None => Json(json!({"Items": [meter("ND96isr_H100_v5", 98.5), "odd", {"retailPrice": "x"}],
                    "NextPageLink": format!("{base}/prices?page=2")})),
                Some(_) => Json(json!({"Items": [meter("ND96isr_H100_v5 Spot", 29.25),
                    meter("ND96isr_H100_v5 Low Priority", 19.0)], "NextPageLink": null})),
            }
            .into_response()
        }),
        usages: Arc::new(|location| {
            assert_eq!(location, "eastus");
            Json(json!({"value": [
                {"currentValue": 96, "limit": 192, "unit": "Count", "name": {"value": "standardNDSH100v5Family"}},
                {"currentValue": 0, "limit": 0, "unit": "Count", "name": {"value": "lowPriorityCores"}},
                {"currentValue": "many", "name": 3}]}))
            .into_response()
        }),
    };
    let (azure, clock) = connected(fake, true).await;
    assert!(azure.capabilities().spot.is_yes() && azure.capabilities().live_prices.is_yes());
    let of = |offerings: &gpudeck::domain::Offerings, purchase| {
        let all: Vec<_> = offerings.observations.iter().filter(|o| o.key.purchase == purchase).cloned().collect();
        let price = all.iter().find_map(|o| o.price.map(|p| (o.at, p)));
        let room = all.iter().find_map(|o| o.quota.clone()).map(|q| (q.code.clone(), q.instances_left()));
        (price, room)
    };
    let start = Utc.with_ymd_and_hms(2026, 11, 1, 0, 0, 0).unwrap();
    let listed = |usd| Some((start, PriceStatement::Listed(HourlyRate::from_usd(usd).unwrap())));
    for minutes in [0, 1, 58] {
        clock.advance(chrono::TimeDelta::minutes(minutes));
        let offerings = azure.offerings().await.unwrap();
        assert_eq!(offerings.failed, []);
        let (price, room) = of(&offerings, Purchase::OnDemand);
        assert_eq!((price, room), (listed(98.5), Some(("standardNDSH100v5Family".to_owned(), 1))));
        let (price, room) = of(&offerings, Purchase::Spot);
        assert_eq!((price, room), (listed(29.25), Some(("lowPriorityCores".to_owned(), 0))));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2, "two pages, once");
    down.store(1, Ordering::SeqCst);
    clock.advance(chrono::TimeDelta::minutes(5));
    let offerings = azure.offerings().await.unwrap();
    assert_eq!(of(&offerings, Purchase::OnDemand).0, listed(98.5), "of when it was read");
    assert_eq!(offerings.failed.len(), 1, "{:?}", offerings.failed);
    assert_eq!(offerings.failed[0].class, ErrorClass::Transient);
}

/// A list that leads to another address is not followed, and quotas that may not be read are told, not guessed.
#[tokio::test]
async fn c5_what_azure_does_not_tell_is_not_made_up() {
    let fake = Fake {
        skus: Arc::new(|_, _| Json(json!({"value": [h100("False")]})).into_response()),
        machines: json!({"value": []}),
        prices: Arc::new(|_, _, _| {
            Json(json!({"Items": [meter("ND96isr_H100_v5", 98.5)], "NextPageLink": "http://127.0.0.1:9/elsewhere"}))
                .into_response()
        }),
        usages: Arc::new(|_| {
            let body = json!({"error": {"code": "AuthorizationFailed", "message": "no right to read usages"}});
            (StatusCode::FORBIDDEN, Json(body)).into_response()
        }),
    };
    let offerings = connected(fake, true).await.0.offerings().await.unwrap();
    assert_eq!(offerings.failed.len(), 2, "{:?}", offerings.failed);
    assert!(offerings.failed.iter().any(|e| e.message.contains("not the price list")), "{:?}", offerings.failed);
    assert!(offerings.failed.iter().any(|e| e.class == ErrorClass::Auth && e.message.contains("quotas of 1 regions")));
    assert!(offerings.observations.iter().all(|o| o.quota.is_none() && o.key.purchase == Purchase::OnDemand));
    let published = |o: &gpudeck::domain::Observation| matches!(o.price, Some(PriceStatement::Published(_)));
    assert!(offerings.observations.iter().any(published), "the table's price, as such");
}
