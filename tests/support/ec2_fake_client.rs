//! The adapter as tests use it: against an endpoint of the loopback, with keys from a file that means nothing.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use gpudeck::config::aws::{AwsRegionSettings, AwsSettings};
use gpudeck::domain::{Accelerator, AcceleratorCount, Instance, Interconnect, Mark, OfferKey, Purchase, Shape};
use gpudeck::provider::{InstanceRef, LaunchRequest};

pub(crate) const SECRET: &str = "canary-secret-key-0123456789";
pub(crate) const IMAGE: &str = "ami-0123456789abcdef0";

/// When these tests play.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_090_400, 0).expect("a time")
}

/// The settings for an endpoint, and the directory that its key file lies in.
pub(crate) fn settings(url: &str, regions: &[&str]) -> (AwsSettings, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("credentials");
    std::fs::write(&file, format!("[default]\naws_access_key_id = AKIATEST\naws_secret_access_key = {SECRET}\n"))
        .expect("a file");
    let region = |name: &&str| {
        ((*name).to_owned(), AwsRegionSettings { image: Some(IMAGE.into()), ..AwsRegionSettings::default() })
    };
    let settings = AwsSettings {
        profile: Some("default".into()),
        credentials_file: Some(file),
        home_region: regions.first().map_or("us-east-1", |r| r).to_owned(),
        endpoint_url: Some(url.into()),
        region: regions.iter().map(region).collect(),
        ..AwsSettings::default()
    };
    (settings, dir)
}

pub(crate) fn mark(node: u32) -> Mark {
    Mark {
        owner: "deck-1".into(),
        job: "0193aaaa-0000-7000-8000-000000000001".into(),
        operation: "0193aaaa-0000-7000-8000-000000000002".into(),
        attempt: 1,
        node,
    }
}

/// A wish for a p5.48xlarge.
pub(crate) fn wish(region: &str, zone: Option<&str>, purchase: Purchase, token: &str) -> LaunchRequest {
    let shape = Shape {
        instance_type: "p5.48xlarge".into(),
        accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
        accelerators: AcceleratorCount::whole(8),
        gpu_memory_gib: Some(80.0),
        vcpus: Some(192),
        memory_gib: Some(2048.0),
        interconnect: Interconnect::Efa,
    };
    LaunchRequest {
        offer: OfferKey {
            provider: "aws".into(),
            region: region.into(),
            zone: zone.map(Into::into),
            instance_type: "p5.48xlarge".into(),
            purchase,
        },
        shape: Arc::new(shape),
        max_price: None,
        token: token.into(),
        name: format!("gd-{token}"),
        mark: mark(0),
        intended_at: now(),
        user_data: None,
    }
}

pub(crate) fn reference(machine: &Instance) -> InstanceRef {
    InstanceRef { id: machine.id.clone(), location: machine.location.clone() }
}
