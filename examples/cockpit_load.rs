//! What the cockpit costs with 100,000 offers: started in a terminal of 200x60 and measured from outside.
//!
//! ```text
//! cargo run --release --no-default-features --example cockpit_load
//! ```
//!
//! The cockpit measured is the real one, on the real engine and a ledger of its own; only the clouds are synthetic: 20 of
//! 5,000 offers behind the ordinary provider trait. Busy, each answers in full every 100 s with every price changed, one
//! after the other: 1,000 observations a second. Idle, they answered once.
//!
//! - first paint: from the start of the process to the first frame; offers: to the first frame with offers in it.
//! - key to frame: from writing a key that moves the selection to the bytes that move the mark in the selected line. A
//!   repaint for other reasons moves no mark, so it is not taken for the answer.
//! - memory, processor and bytes: of the whole process over a minute, from `/proc` and the terminal.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement stops where its world is wrong, and prints"
)]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use gpudeck::config::settings::TimeDisplay;
use gpudeck::config::system_clock::SystemClock;
use gpudeck::domain::observation::PriceStatement;
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Actor, Availability, Clock, Evidence, HourlyRate, Instance, Interconnect, Mark,
    Observation, OfferKey, Offerings, ProviderError, ProviderId, Purchase, Region, Shape, Zone,
};
use gpudeck::engine::{Engine, Mode, Options};
use gpudeck::provider::{Capabilities, Connected, Finding, InstanceRef, Provider, Support};
use gpudeck::tui::{self, ColorChoice};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};

const CLOUDS: u32 = 20;
const OFFERS: u32 = 5_000;
const EVERY: Duration = Duration::from_secs(100);
const COLUMNS: u16 = 200;
const ROWS: u16 = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cockpit", home, load] => cockpit(Path::new(home), load == "busy"),
        _ => measure(),
    }
}

/// A cloud that only offers.
struct Cloud {
    id: ProviderId,
    index: u32,
    busy: bool,
    answers: AtomicU64,
    shapes: Vec<Arc<Shape>>,
    capabilities: Capabilities,
}

impl Cloud {
    fn new(index: u32, busy: bool) -> Self {
        const CHIPS: [&str; 8] = [
            "H100-80GB-SXM",
            "H200-141GB-SXM",
            "A100-80GB-SXM",
            "L4-24GB",
            "A10G-24GB",
            "B200-180GB-SXM",
            "L40S-48GB",
            "T4-16GB",
        ];
        let shape = |i: usize| Shape {
            instance_type: format!("type-{i}.48xlarge").into(),
            accelerator: Accelerator::from_canonical(CHIPS[i % CHIPS.len()]),
            accelerators: AcceleratorCount::whole(8),
            gpu_memory_gib: Some(80.0),
            vcpus: Some(192),
            memory_gib: Some(2048.0),
            interconnect: Interconnect::Efa,
        };
        let capabilities = Capabilities {
            launch_token: Support::Yes,
            spot: Support::Yes,
            zones: Support::Yes,
            live_prices: Support::Yes,
            stock: Support::Yes,
            max_instances_per_request: 1,
            start_script_bytes: None,
            spot_follows_market: false,
        };
        Self {
            id: format!("cloud{index:02}").into(),
            index,
            busy,
            answers: AtomicU64::new(0),
            shapes: (0..25).map(|i| Arc::new(shape(i))).collect(),
            capabilities,
        }
    }

    fn observation(&self, n: u32, answer: u64) -> Observation {
        let shape = &self.shapes[n as usize % self.shapes.len()];
        let place = n / self.shapes.len() as u32 / 2;
        let dice = u64::from(n).wrapping_mul(7_919).wrapping_add(answer.wrapping_mul(104_729));
        Observation {
            key: OfferKey {
                provider: self.id.clone(),
                region: Region::from(format!("region-{:02}", place / 3)),
                zone: Some(Zone::from(format!("zone-{}", place % 3))),
                instance_type: shape.instance_type.clone(),
                purchase: if (n / self.shapes.len() as u32).is_multiple_of(2) {
                    Purchase::OnDemand
                } else {
                    Purchase::Spot
                },
            },
            at: SystemClock.now(),
            shape: shape.clone(),
            price: Some(PriceStatement::Live(HourlyRate::from_micros(
                1_000_000 + i64::try_from(dice % 90_000_000).unwrap(),
            ))),
            availability: Some((
                [Availability::Available, Availability::Limited, Availability::None][dice as usize % 3],
                Evidence::Api,
            )),
            capacity: None,
            quota: None,
            interruptions_per_day: None,
        }
    }
}

type Answer<T> = Result<T, ProviderError>;

#[async_trait]
impl Provider for Cloud {
    fn id(&self) -> &ProviderId {
        &self.id
    }
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    async fn check(&self) -> Vec<Finding> {
        Vec::new()
    }
    async fn account(&self) -> Result<String, ProviderError> {
        Ok("load".to_owned())
    }
    async fn offerings(&self) -> Answer<Offerings> {
        let answer = self.answers.fetch_add(1, Ordering::Relaxed);
        if self.busy && answer == 1 {
            // From here on one cloud after the other, so that the load is even.
            tokio::time::sleep(EVERY / CLOUDS * self.index).await;
        }
        let observations = (0..OFFERS).map(|n| self.observation(n, answer)).collect();
        Ok(Offerings { observations, failed: Vec::new(), skipped: BTreeMap::new(), complete: true })
    }
    async fn instances(&self, _: &str) -> Answer<Vec<Instance>> {
        Ok(Vec::new())
    }
    async fn describe(&self, _: &[InstanceRef]) -> Answer<Vec<Instance>> {
        Ok(Vec::new())
    }
    async fn find_by_token(&self, _: &Region, _: &str, _: &Mark) -> Answer<Vec<Instance>> {
        Ok(Vec::new())
    }
}

/// The cockpit over such clouds, in this terminal.
fn cockpit(home: &Path, busy: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let actor = Actor { user: "load".into(), via: "cockpit".into(), host: "load".into() };
        let mut options = Options::new(Arc::new(SystemClock), home.join("ledger.sqlite"), actor.clone());
        options.providers = (0..CLOUDS).map(|i| Connected::read_only(Arc::new(Cloud::new(i, busy)))).collect();
        options.mode = Mode::Live;
        options.limits.feed_every = if busy { EVERY } else { Duration::from_hours(1) };
        options.limits.feed_deadline = EVERY * 2;
        let engine = Engine::start(options).await.unwrap();
        let options = tui::Options {
            demo: false,
            replay: false,
            read_only: false,
            theme: None,
            themes: Vec::new(),
            keys: BTreeMap::new(),
            color: ColorChoice::TrueColor,
            ascii: false,
            clipboard: false,
            name_above: HourlyRate::from_micros(100_000_000),
            times: TimeDisplay::Utc,
            zone: tui::times::utc,
            multiplexer: tui::Multiplexer::None,
            actor,
        };
        tui::run(engine.clone(), options).await.unwrap();
        engine.shutdown().await;
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
}

/// A cockpit in a terminal, seen from outside.
struct Seen {
    started: Instant,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    writer: Box<dyn std::io::Write + Send>,
    _master: Box<dyn portable_pty::MasterPty + Send>,
    read: Receiver<Instant>,
    state: Arc<Mutex<(vt100::Parser, usize)>>,
    _home: tempfile::TempDir,
}

impl Seen {
    fn start(load: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["cockpit", home.path().to_str().unwrap(), load]);
        command.env("TERM", "xterm-256color");
        let started = Instant::now();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let writer = pair.master.take_writer().unwrap();
        let parser = vt100::Parser::new(NonZeroU16::new(ROWS).unwrap(), NonZeroU16::new(COLUMNS).unwrap(), 0);
        let state = Arc::new(Mutex::new((parser, 0)));
        let (tell, read) = channel();
        let shared = state.clone();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                let at = Instant::now();
                let mut state = shared.lock().unwrap();
                state.0.process(&buffer[..n]);
                state.1 += n;
                drop(state);
                if tell.send(at).is_err() {
                    return;
                }
            }
        });
        Self { started, child, writer, _master: pair.master, read, state, _home: home }
    }

    /// When the bytes came that made the screen so.
    fn when(&self, what: &str, until: impl Fn(&vt100::Screen) -> bool) -> Instant {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            match self.read.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(at) => {
                    if until(self.state.lock().unwrap().0.screen()) {
                        return at;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let screen = self.state.lock().unwrap().0.screen().contents();
                    panic!("waited in vain for {what}:\n{screen}");
                }
            }
        }
    }

    fn mark(screen: &vt100::Screen) -> Option<usize> {
        screen.rows(0, 3).position(|row| row.contains('▸'))
    }

    /// Let everything through that is on its way.
    fn drain(&self, time: Duration) {
        let end = Instant::now() + time;
        while self.read.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok() {}
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.process_id().unwrap())).unwrap()
    }

    /// Hundredths of a second of processor time.
    fn ticks(&self) -> u64 {
        let stat = self.proc("stat");
        let rest: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        rest[11].parse::<u64>().unwrap() + rest[12].parse::<u64>().unwrap()
    }

    fn kib(&self, name: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn bytes(&self) -> usize {
        self.state.lock().unwrap().1
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quantile(sorted: &[Duration], q: f64) -> f64 {
    let at = ((sorted.len() - 1) as f64 * q).round() as usize;
    sorted[at].as_secs_f64() * 1e3
}

fn line(what: &str, figure: &str, aim: &str) {
    println!("{what:<52} {figure:>34}   {aim}");
}

fn measure() {
    println!("load average {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    let (mut first, mut offers) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let seen = Seen::start("idle");
        let painted = |s: &vt100::Screen| s.alternate_screen() && s.contents().contains("1 Capacity");
        first.push(seen.when("the first frame", painted) - seen.started);
        offers.push(seen.when("offers", |s| s.contents().contains("region-00")) - seen.started);
    }
    first.sort();
    offers.sort();
    line("first paint, median / slowest of 10, ms", &spread(&first), "aim 200");
    line("100,000 offers on the screen, the same, ms", &spread(&offers), "");
    for load in ["idle", "busy"] {
        let mut seen = Seen::start(load);
        seen.when("offers", |s| s.contents().contains("region-00"));
        // Busy, the second answers begin to come one after the other after a while.
        seen.drain(if load == "busy" { EVERY + Duration::from_secs(10) } else { Duration::from_secs(10) });
        let (ticks, bytes, from) = (seen.ticks(), seen.bytes(), Instant::now());
        seen.drain(Duration::from_mins(1));
        let time = from.elapsed().as_secs_f64();
        let cpu = (seen.ticks() - ticks) as f64 / time;
        let rate = (seen.bytes() - bytes) as f64 / time;
        let aim = if load == "idle" { "aim 1" } else { "" };
        line(&format!("{load}: processor, % of one core"), &format!("{cpu:.2}"), aim);
        line(&format!("{load}: bytes a second to the terminal"), &format!("{rate:.0}"), "");
        let memory = format!("{} / {}", seen.kib("VmRSS") / 1024, seen.kib("VmHWM") / 1024);
        line(&format!("{load}: resident memory, now / most, MiB"), &memory, "aim 120");
        let mut waits = Vec::new();
        for n in 0..300 {
            seen.drain(Duration::from_millis(60));
            let before = Seen::mark(seen.state.lock().unwrap().0.screen());
            let pressed = Instant::now();
            seen.writer.write_all(if n % 20 < 10 { b"j" } else { b"k" }).unwrap();
            seen.writer.flush().unwrap();
            waits.push(seen.when("the mark to move", |s| Seen::mark(s) != before) - pressed);
        }
        waits.sort();
        let figures = format!("{:.2} / {:.2}", quantile(&waits, 0.5), quantile(&waits, 0.99));
        line(&format!("{load}: key to frame, p50 / p99 of 300, ms"), &figures, "aim p99 16");
    }
}

fn spread(sorted: &[Duration]) -> String {
    format!("{:.0} / {:.0}", quantile(sorted, 0.5), quantile(sorted, 1.0))
}
