//! The clouds that the contract is held against, each with its fake.

use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use google_cloud_auth::credentials::anonymous;
use gpudeck::catalogue::Row;
use gpudeck::config::azure::AzureSettings;
use gpudeck::config::gcp::GcpSettings;
use gpudeck::domain::clock::ManualClock;
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Clock, ErrorClass, HourlyRate, Interconnect, Location, Mark, OfferKey, Purchase,
    Shape,
};
use gpudeck::provider::aws::{Ec2, Options, connect_with};
use gpudeck::provider::azure::Azure;
use gpudeck::provider::gcp::Gcp;
use gpudeck::provider::sim::{self, Call, FaultPlan, Rule, Setup, SimCloud, World};
use gpudeck::provider::{InstanceRef, LaunchRequest, Operator};
use serde_json::json;

use super::{Cloud, Fault, arm_fake, ec2_fake, ec2_fake_client, gce_fake};

fn start() -> DateTime<Utc> {
    ec2_fake_client::now()
}

fn wish(provider: &str, region: &str, zone: Option<&str>, kind: &str, vcpus: u32, n: u32) -> LaunchRequest {
    LaunchRequest {
        offer: OfferKey {
            provider: provider.into(),
            region: region.into(),
            zone: zone.map(Into::into),
            instance_type: kind.into(),
            purchase: Purchase::Spot,
        },
        shape: Arc::new(Shape {
            instance_type: kind.into(),
            accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(vcpus),
            memory_gib: Some(1900.0),
            interconnect: Interconnect::Unknown,
        }),
        max_price: HourlyRate::from_usd(500.0).ok(),
        token: format!("token-{n}"),
        name: format!("gpudeck-{n}"),
        mark: Mark { owner: "deck-1".into(), job: "job".into(), operation: "operation".into(), attempt: 1, node: n },
        intended_at: start(),
        user_data: Some("#!/bin/sh\nexport KEY='canary-secret'\n".into()),
    }
}

// ── EC2 ──────────────────────────────────────────────────────────────────────────────────────────────────────────

pub(crate) struct Aws {
    fake: ec2_fake::Fake,
    adapter: Arc<Ec2>,
    _keys: tempfile::TempDir,
}

pub(crate) async fn aws() -> Aws {
    let fake = ec2_fake::Fake::start(&["us-east-1"]).await;
    fake.offer_p5();
    let (settings, keys) = ec2_fake_client::settings(&fake.url, &["us-east-1"]);
    let options = Options { clock: Arc::new(ManualClock::at(start())), ..Options::default() };
    let adapter = connect_with(&settings, options).unwrap();
    Aws { fake, adapter, _keys: keys }
}

#[async_trait::async_trait]
impl Cloud for Aws {
    fn adapter(&self) -> &dyn Operator {
        &*self.adapter
    }
    fn wish(&self, n: u32) -> LaunchRequest {
        wish("aws", "us-east-1", Some(&ec2_fake::zone_id("us-east-1", 0)), "p5.48xlarge", 192, n)
    }
    fn machines(&self) -> usize {
        self.fake.world().machines.iter().filter(|m| m.state != "terminated").count()
    }
    fn next_launch(&self, fault: Fault) {
        use ec2_fake::Fault as F;
        let fault = match fault {
            Fault::LostAnswer => F::LostAfterEffect { status: 500 },
            Fault::SoldOut => F::refuse(500, "InsufficientInstanceCapacity", "none left"),
            Fault::OutOfQuota => F::refuse(400, "VcpuLimitExceeded", "no more"),
            Fault::Forbidden => F::refuse(403, "UnauthorizedOperation", "no right"),
            Fault::Throttled => F::refuse(503, "RequestLimitExceeded", "slow down"),
            Fault::Broken => F::refuse(500, "InternalError", "broken"),
            Fault::FailsLater => {
                let why = ("Server.InsufficientInstanceCapacity".to_owned(), "none left after all".to_owned());
                self.fake.world().dies = Some(why);
                return;
            }
        };
        self.fake.fail("RunInstances", None, 1, fault);
    }
    async fn pass(&self) {
        for machine in &mut self.fake.world().machines {
            match machine.state.as_str() {
                "pending" => machine.state = "running".into(),
                "shutting-down" => machine.state = "terminated".into(),
                _ => {}
            }
        }
    }
    fn nobody(&self) -> InstanceRef {
        InstanceRef { id: "i-0ffffffffffffffff".into(), location: Location::region("aws", "us-east-1") }
    }
}

// ── Azure ────────────────────────────────────────────────────────────────────────────────────────────────────────

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

pub(crate) struct Arm {
    server: arm_fake::Shared,
    adapter: Azure,
}

const GROUP: &str = "/subscriptions/s/resourceGroups/g/providers";

pub(crate) async fn azure() -> Arm {
    let subnet = format!("{GROUP}/Microsoft.Network/virtualNetworks/n/subnets/one");
    let server: arm_fake::Shared = Arc::new(Mutex::new(arm_fake::Server {
        networks: json!([{"location": "eastus", "properties": {"subnets": [{"id": subnet}]}}]),
        ..arm_fake::Server::default()
    }));
    let settings = AzureSettings {
        subscription_id: Some("s".into()),
        endpoint_url: Some(arm_fake::serve(server.clone()).await),
        resource_group: Some("g".into()),
        ssh_public_key: Some("ssh-ed25519 AAAA on-call".into()),
        ..AzureSettings::default()
    };
    let adapter = Azure::with_credential(&settings, Arc::new(Token), Arc::new(ManualClock::at(start()))).unwrap();
    Arm { server, adapter }
}

#[async_trait::async_trait]
impl Cloud for Arm {
    fn adapter(&self) -> &dyn Operator {
        &self.adapter
    }
    fn wish(&self, n: u32) -> LaunchRequest {
        wish("azure", "eastus", Some("2"), "Standard_ND96isr_H100_v5", 96, n)
    }
    fn machines(&self) -> usize {
        self.server.lock().unwrap().machines.len()
    }
    fn next_launch(&self, fault: Fault) {
        let mut server = self.server.lock().unwrap();
        match fault {
            Fault::LostAnswer => server.lose_answer = true,
            Fault::SoldOut => server.refuse = Some((409, "ZonalAllocationFailed", "none left")),
            Fault::OutOfQuota => {
                let text = "Operation could not be completed as it results in exceeding approved family Cores quota.";
                server.refuse = Some((409, "OperationNotAllowed", text));
            }
            Fault::Forbidden => server.refuse = Some((403, "AuthorizationFailed", "no right")),
            Fault::Throttled => server.refuse = Some((429, "TooManyRequests", "slow down")),
            Fault::Broken => server.refuse = Some((500, "InternalServerError", "broken")),
            Fault::FailsLater => server.fail_later = Some("AllocationFailed"),
        }
    }
    async fn pass(&self) {}
    fn nobody(&self) -> InstanceRef {
        let id = format!("{GROUP}/Microsoft.Compute/virtualMachines/nobody");
        InstanceRef { id: id.into(), location: Location::region("azure", "eastus") }
    }
}

// ── Google Cloud ─────────────────────────────────────────────────────────────────────────────────────────────────

pub(crate) struct Gce {
    server: gce_fake::Shared,
    adapter: Gcp,
}

pub(crate) async fn gcp() -> Gce {
    let server: gce_fake::Shared = Arc::new(Mutex::new(gce_fake::Server::default()));
    let settings = GcpSettings {
        project: Some("p".into()),
        endpoint_url: Some(gce_fake::serve(server.clone()).await),
        image: Some("projects/acme/global/images/family/gpu-node".into()),
        ..GcpSettings::default()
    };
    let credentials = Some(anonymous::Builder::new().build());
    let adapter = Gcp::new(&settings, credentials, Arc::new(ManualClock::at(start()))).unwrap();
    Gce { server, adapter }
}

#[async_trait::async_trait]
impl Cloud for Gce {
    fn adapter(&self) -> &dyn Operator {
        &self.adapter
    }
    fn wish(&self, n: u32) -> LaunchRequest {
        wish("gcp", "us-central1", Some("us-central1-a"), "a3-highgpu-8g", 208, n)
    }
    fn machines(&self) -> usize {
        self.server.lock().unwrap().machines.len()
    }
    fn next_launch(&self, fault: Fault) {
        let mut server = self.server.lock().unwrap();
        match fault {
            Fault::LostAnswer => server.lose_answer = true,
            Fault::SoldOut => server.refuse = Some((503, "ZONE_RESOURCE_POOL_EXHAUSTED")),
            Fault::OutOfQuota => server.refuse = Some((403, "quotaExceeded")),
            Fault::Forbidden => server.refuse = Some((403, "forbidden")),
            Fault::Throttled => server.refuse = Some((403, "rateLimitExceeded")),
            Fault::Broken => server.refuse = Some((500, "backendError")),
            Fault::FailsLater => server.fail_later = Some("ZONE_RESOURCE_POOL_EXHAUSTED"),
        }
    }
    async fn pass(&self) {}
    fn nobody(&self) -> InstanceRef {
        let zone = Some("us-central1-a".into());
        let location = Location { provider: "gcp".into(), region: "us-central1".into(), zone };
        InstanceRef { id: "us-central1-a/nobody".into(), location }
    }
}

// ── The demo world ───────────────────────────────────────────────────────────────────────────────────────────────

pub(crate) struct Demo {
    world: World,
    clock: Arc<ManualClock>,
    adapter: Arc<SimCloud>,
}

pub(crate) async fn demo() -> Demo {
    let clock = Arc::new(ManualClock::at(start()));
    let shape = wish("aws", "us-east-1", None, "p5.48xlarge", 192, 0).shape;
    let row = |zone: &str| Row {
        provider: "aws".into(),
        region: "us-east-1".into(),
        zone: Some(zone.into()),
        shape: shape.clone(),
        on_demand: HourlyRate::from_usd(55.04).ok(),
        spot: HourlyRate::from_usd(22.0).ok(),
        interruptions_per_day: None,
    };
    let rows = [row("use1-az1"), row("use1-az2")];
    let world = World::of(&rows, Setup::planned(FaultPlan::none()), 7, clock.clone());
    let adapter = world.cloud("aws").unwrap();
    Demo { world, clock, adapter }
}

#[async_trait::async_trait]
impl Cloud for Demo {
    fn adapter(&self) -> &dyn Operator {
        &*self.adapter
    }
    fn wish(&self, n: u32) -> LaunchRequest {
        wish("aws", "us-east-1", Some("use1-az1"), "p5.48xlarge", 192, n)
    }
    fn machines(&self) -> usize {
        self.world.billed().unwrap().len()
    }
    fn next_launch(&self, fault: Fault) {
        use sim::Fault as F;
        let fault = match fault {
            Fault::LostAnswer => F::LoseAnswer,
            Fault::SoldOut => F::refuse(ErrorClass::NoCapacity, "InsufficientInstanceCapacity"),
            Fault::OutOfQuota => F::refuse(ErrorClass::Quota, "VcpuLimitExceeded"),
            Fault::Forbidden => F::refuse(ErrorClass::Auth, "UnauthorizedOperation"),
            Fault::Throttled => F::refuse(ErrorClass::Throttled, "RequestLimitExceeded"),
            Fault::Broken => F::refuse(ErrorClass::Transient, "InternalError"),
            Fault::FailsLater => F::FailLater,
        };
        self.world.heal();
        self.world.inject(Rule::on(Call::Launch, fault).nth(1));
    }
    async fn pass(&self) {
        self.clock.advance(TimeDelta::minutes(2));
        let _ = self.clock.now();
    }
    fn nobody(&self) -> InstanceRef {
        InstanceRef { id: "i-nobody".into(), location: Location::region("aws", "us-east-1") }
    }
}
