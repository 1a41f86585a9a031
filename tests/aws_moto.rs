//! The AWS adapter against moto, an EC2 emulator that others wrote, with AWS's own lists of types and zones.
#![cfg(feature = "aws")]
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on must stop")]

#[path = "support/ec2_fake_client.rs"]
mod ec2_fake_client;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ec2_fake_client::{mark, reference, settings, wish};
use gpudeck::domain::observation::PriceStatement;
use gpudeck::domain::{
    AcceleratorCount, Availability, ErrorClass, Evidence, InstanceState, Interconnect, Purchase, Zone,
};
use gpudeck::provider::aws::{Deadlines, Ec2, Options, connect_with};
use gpudeck::provider::{FindingStatus, InstanceRef, Operator, Provider, Termination};
use pretty_assertions::assert_eq;

const REMEDY: &str = "moto_server was not found: run `tests/run`, which installs it, or set GPUDECK_MOTO_SERVER";
const EAST: &str = "us-east-1";
const OHIO: &str = "us-east-2";

/// A server on a free port. It takes seconds to start, so tests that run together share one; the last of them ends it.
struct Moto {
    child: Child,
    url: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("GPUDECK_MOTO_SERVER") {
        return path.into();
    }
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".cache/venv/bin/moto_server");
    if here.exists() {
        return here;
    }
    std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|dir| dir.join("moto_server")).find(|p| p.exists()))
        .unwrap_or_else(|| panic!("{REMEDY}"))
}

impl Moto {
    async fn shared() -> Arc<Self> {
        static RUNNING: tokio::sync::Mutex<Weak<Moto>> = tokio::sync::Mutex::const_new(Weak::new());
        let mut running = RUNNING.lock().await;
        if let Some(moto) = running.upgrade() {
            return moto;
        }
        let moto = Arc::new(Self::start().await);
        *running = Arc::downgrade(&moto);
        moto
    }

    async fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let child = Command::new(program())
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{REMEDY} ({e})"));
        let moto = Self { child, url: format!("http://127.0.0.1:{port}") };
        let started = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(started.elapsed() < Duration::from_mins(2), "moto_server did not open its port within two minutes");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        moto
    }

    /// The adapter, with the bundled catalogue and the system's clock, as a user has it.
    fn adapter(&self, regions: &[&str]) -> (Arc<Ec2>, tempfile::TempDir) {
        let (mut settings, dir) = settings(&self.url, regions);
        settings.regions = regions.iter().map(ToString::to_string).collect();
        settings.home_region = EAST.into();
        // One of the images that moto knows.
        for region in settings.region.values_mut() {
            region.image = Some("ami-03cf127a".into());
        }
        // An emulator on a busy machine takes its time; that is not what is looked at here.
        let patient = Duration::from_mins(5);
        let deadlines = Deadlines { call: patient, region: patient, ..Deadlines::default() };
        let options = Options { deadlines, ..Options::default() };
        (connect_with(&settings, options).expect("it connects"), dir)
    }
}

#[tokio::test]
async fn what_aws_lists_comes_out_as_offers_by_zone_id() {
    let moto = Moto::shared().await;
    let (ec2, _dir) = moto.adapter(&[EAST]);
    let all = ec2.offerings().await.unwrap();
    assert!(all.complete, "{:?}", all.failed);
    let p5: Vec<_> =
        all.observations.iter().filter(|o| o.key.instance_type == *"p5.48xlarge" && o.key.region == *EAST).collect();
    let shape = &p5.first().expect("p5.48xlarge is offered in us-east-1").shape;
    assert_eq!(shape.accelerator.as_str(), "H100-80GB-SXM");
    assert_eq!(shape.accelerators, AcceleratorCount::whole(8));
    assert_eq!((shape.gpu_memory_gib, shape.vcpus, shape.memory_gib), (Some(80.0), Some(192), Some(2048.0)));
    assert_eq!(shape.interconnect, Interconnect::Efa);

    let spot: Vec<_> = p5.iter().filter(|o| o.key.purchase == Purchase::Spot && o.price.is_some()).collect();
    let mut zones: Vec<&str> = spot.iter().filter_map(|o| o.key.zone.as_ref()).map(Zone::as_str).collect();
    zones.sort_unstable();
    zones.dedup();
    assert!(zones.len() >= 3 && zones.iter().all(|z| z.starts_with("use1-az")), "{zones:?}");
    assert!(spot.iter().all(|o| matches!(o.price, Some(PriceStatement::Live(p)) if p.micros() == 10)));

    let published =
        p5.iter().find(|o| matches!(o.price, Some(PriceStatement::Published(_)))).expect("a published price");
    assert_eq!(published.key.purchase, Purchase::OnDemand);
    for o in &all.observations {
        assert!(o.availability.is_none_or(|a| a == (Availability::Unknown, Evidence::Catalogue)), "{}", o.key);
        assert!(o.shape.accelerators.ten_thousandths() > 0);
    }
    let kinds = |name: &str| all.observations.iter().any(|o| o.shape.accelerator.as_str() == name);
    for name in ["T4", "L4", "A10G", "H200-141GB-SXM", "A100-40GB-SXM"] {
        assert!(kinds(name), "{name}");
    }
    assert!(all.observations.iter().all(|o| o.key.region == *EAST));
}

#[tokio::test]
async fn a_machine_lives_and_ends() {
    let moto = Moto::shared().await;
    let (ec2, _dir) = moto.adapter(&[EAST, OHIO]);
    let check = ec2.check().await;
    assert!(check.iter().all(|f| f.status == FindingStatus::Ok || f.check == "endpoint"), "{check:?}");

    let zone = "use1-az2";
    let made = ec2.launch(&wish(EAST, Some(zone), Purchase::OnDemand, "op1-a1-n0")).await.unwrap();
    assert_eq!(made.mark, Some(mark(0)));
    assert_eq!(made.location.zone.as_ref().map(Zone::as_str), Some(zone));
    let mut wanted = wish(OHIO, None, Purchase::Spot, "op1-a1-n1");
    wanted.mark = mark(1);
    let spot = ec2.launch(&wanted).await.unwrap();
    assert_eq!(spot.purchase, Purchase::Spot);

    let mut owned = ec2.instances("deck-1").await.unwrap();
    owned.sort_by(|a, b| a.location.cmp(&b.location));
    assert_eq!(owned.iter().map(|m| m.id.clone()).collect::<Vec<_>>(), [made.id.clone(), spot.id.clone()]);
    assert_eq!(
        owned.iter().map(|m| m.state.clone()).collect::<Vec<_>>(),
        [InstanceState::Running, InstanceState::Running]
    );
    assert_eq!(owned.iter().map(|m| m.mark.clone()).collect::<Vec<_>>(), [Some(mark(0)), Some(mark(1))]);
    assert_eq!(owned.iter().map(|m| m.token.as_deref()).collect::<Vec<_>>(), [Some("op1-a1-n0"), Some("op1-a1-n1")]);
    assert_eq!(ec2.instances("somebody-else").await.unwrap(), []);

    // moto cannot filter by token; the tags find the machine.
    let found = ec2.find_by_token(&EAST.into(), "op1-a1-n0", &mark(0)).await.unwrap();
    assert_eq!(found.iter().map(|m| &m.id).collect::<Vec<_>>(), [&made.id]);

    for machine in [&made, &spot] {
        let target = reference(machine);
        assert!(matches!(ec2.terminate(&target).await.unwrap(), Termination::Accepted(_)));
        let seen = ec2.describe(std::slice::from_ref(&target)).await.unwrap();
        assert_eq!(seen.iter().map(|m| m.state.clone()).collect::<Vec<_>>(), [InstanceState::Gone]);
        assert_eq!(ec2.terminate(&target).await.unwrap(), Termination::AlreadyGone);
    }
    let ghost = InstanceRef { id: "i-00000000000000001".into(), ..reference(&made) };
    assert_eq!(ec2.terminate(&ghost).await.unwrap(), Termination::AlreadyGone);
    assert_eq!(ec2.describe(&[ghost]).await.unwrap(), []);
}

#[tokio::test]
async fn a_region_that_aws_does_not_have_is_told() {
    let moto = Moto::shared().await;
    let (ec2, _dir) = moto.adapter(&["eu-nowhere-9"]);
    let all = ec2.offerings().await.unwrap();
    assert_eq!(all.observations, []);
    assert!(!all.complete);
    let failed: Vec<_> = all.failed.iter().map(|e| (e.class, e.region.clone())).collect();
    assert_eq!(failed, [(ErrorClass::Invalid, Some("eu-nowhere-9".into()))]);
}
