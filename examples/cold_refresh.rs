//! A cold refresh of a simulated account: EC2, Azure and Google Cloud with thirty regions each, over their own protocols on
//! loopback, with 80 ms added to every question. Tells calls, time and memory.
//!
//! `cargo run --release --example cold_refresh`
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot go on fails here")]
#![allow(dead_code, clippy::print_stdout, reason = "the fake is shared with the tests, which use the rest of it")]

#[path = "../tests/support/ec2_fake.rs"]
mod ec2_fake;
#[path = "../tests/support/ec2_fake_client.rs"]
mod ec2_fake_client;
#[path = "../tests/support/ec2_fake_wire.rs"]
mod ec2_fake_wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::routing::get;
use axum::{Json, Router};
use google_cloud_auth::credentials::anonymous;
use gpudeck::config::azure::AzureSettings;
use gpudeck::config::gcp::GcpSettings;
use gpudeck::config::system_clock::SystemClock;
use gpudeck::provider::Provider;
use gpudeck::provider::aws::{Options, connect_with};
use gpudeck::provider::azure::Azure;
use gpudeck::provider::gcp::Gcp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const LATENCY: Duration = Duration::from_millis(80);
const REGIONS: usize = 30;

/// An address in front of another that holds every question back for a while; counts them.
async fn delayed(to: &str, count: Arc<AtomicU32>) -> String {
    let to = to.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (to, count) = (to.clone(), count.clone());
            tokio::spawn(async move {
                let server = TcpStream::connect(&to).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
                let mut piece = vec![0; 1 << 16];
                while let Ok(n @ 1..) = from_client.read(&mut piece).await {
                    let words = piece.get(..n).unwrap_or_default();
                    if words.starts_with(b"GET ") || words.starts_with(b"POST ") {
                        count.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(LATENCY).await;
                    }
                    if to_server.write_all(words).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

#[derive(Debug)]
struct Token;

#[async_trait::async_trait]
impl azure_core::auth::TokenCredential for Token {
    async fn get_token(&self, _scopes: &[&str]) -> azure_core::Result<azure_core::auth::AccessToken> {
        let far = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        Ok(azure_core::auth::AccessToken::new("token".to_owned(), far.into()))
    }
    async fn clear_cache(&self) -> azure_core::Result<()> {
        Ok(())
    }
}

fn azure_pages() -> (Vec<Value>, Vec<Value>) {
    let mut skus = Vec::new();
    let mut meters = Vec::new();
    for region in 0..REGIONS {
        let location = format!("region{region}");
        for size in 0..25 {
            let name = format!("Standard_ND{size}isr_H100_v5");
            skus.push(json!({"resourceType": "virtualMachines", "name": name, "family": "standardNDSH100v5Family",
                "locations": [location], "locationInfo": [{"location": location, "zones": ["1", "2", "3"]}],
                "capabilities": [{"name": "GPUs", "value": "8"}, {"name": "vCPUs", "value": "96"},
                    {"name": "LowPriorityCapable", "value": "True"}]}));
            for kind in ["", " Spot"] {
                meters.push(json!({"currencyCode": "USD", "retailPrice": 98.5, "armRegionName": location,
                    "armSkuName": name, "skuName": format!("{name}{kind}"), "meterName": "x", "productName": "y",
                    "unitOfMeasure": "1 Hour", "type": "Consumption", "tierMinimumUnits": 0.0}));
            }
        }
    }
    (skus, meters)
}

async fn azure_server() -> String {
    let (skus, meters) = azure_pages();
    let usages = json!({"value": [{"currentValue": 0, "limit": 960, "name": {"value": "standardNDSH100v5Family"}}]});
    serve(
        Router::new()
            .route(
                "/subscriptions/{s}/providers/Microsoft.Compute/skus",
                get(move || async move { Json(json!({"value": skus})) }),
            )
            .route(
                "/subscriptions/{s}/providers/Microsoft.Compute/locations/{l}/usages",
                get(move || async move { Json(usages) }),
            )
            .route("/prices", get(move || async move { Json(json!({"Items": meters, "NextPageLink": null})) })),
    )
    .await
}

async fn gcp_server() -> String {
    let mut items = serde_json::Map::new();
    let mut regions = Vec::new();
    for region in 0..REGIONS {
        regions.push(json!({"name": format!("region{region}"), "quotas": [
            {"metric": "NVIDIA_H100_GPUS", "limit": 16.0, "usage": 0.0}]}));
        for zone in ["a", "b", "c"] {
            let types: Vec<Value> = (1..=8)
                .map(|n| {
                    json!({"name": format!("a3-highgpu-{n}g"), "guestCpus": 26 * n, "memoryMb": 239_616 * n,
                        "accelerators": [{"guestAcceleratorType": "nvidia-h100-80gb", "guestAcceleratorCount": n}]})
                })
                .collect();
            items.insert(format!("zones/region{region}-{zone}"), json!({"machineTypes": types}));
        }
    }
    serve(
        Router::new()
            .route(
                "/compute/v1/projects/p/aggregated/machineTypes",
                get(move || async move { Json(json!({"items": items})) }),
            )
            .route("/compute/v1/projects/p/regions", get(move || async move { Json(json!({"items": regions})) })),
    )
    .await
}

async fn refresh(name: &str, provider: &dyn Provider, calls: &AtomicU32) {
    let began = Instant::now();
    let answer = provider.offerings().await.unwrap();
    println!(
        "{name:<6} {:>4} calls  {:>6.2} s  {:>6} statements  {} failed",
        calls.load(Ordering::Relaxed),
        began.elapsed().as_secs_f64(),
        answer.observations.len(),
        answer.failed.len()
    );
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let directions = ["east", "west", "north", "south", "central"];
    let names: Vec<String> = (0..REGIONS).map(|n| format!("us-{}-{}", directions[n % 5], n / 5 + 1)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fake = ec2_fake::Fake::start(&names).await;
    fake.offer_p5();
    let counts: [Arc<AtomicU32>; 3] = Default::default();
    let (settings, _keys) = ec2_fake_client::settings(&delayed(&fake.url, counts[0].clone()).await, &names);
    let aws = connect_with(&settings, Options::default()).unwrap();
    let url = delayed(&azure_server().await, counts[1].clone()).await;
    let settings = AzureSettings {
        subscription_id: Some("s".into()),
        prices_url: Some(format!("{url}/prices")),
        endpoint_url: Some(url),
        ..AzureSettings::default()
    };
    let azure = Azure::with_credential(&settings, Arc::new(Token), Arc::new(SystemClock)).unwrap();
    let settings = GcpSettings {
        project: Some("p".into()),
        endpoint_url: Some(delayed(&gcp_server().await, counts[2].clone()).await),
        ..GcpSettings::default()
    };
    let credentials = Some(anonymous::Builder::new().build());
    let gcp = Gcp::new(&settings, credentials, Arc::new(SystemClock)).unwrap();
    let began = Instant::now();
    tokio::join!(
        refresh("aws", &*aws, &counts[0]),
        refresh("azure", &azure, &counts[1]),
        refresh("gcp", &gcp, &counts[2])
    );
    println!("all    {:.2} s, {} resident with the fakes in it", began.elapsed().as_secs_f64(), resident());
}
