//! How long the cockpit takes with 100,000 offers at 200x60: the tables off the draw path, a frame, a key to its frame.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark stops where its world is wrong, and prints")]

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use divan::Bencher;
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Actor, Availability, Evidence, HourlyRate, Interconnect, Offer, OfferKey, Purchase,
    Shape,
};
use gpudeck::engine::State;
use gpudeck::market::Snapshot;
use gpudeck::network::Network;
use gpudeck::tui::keymap::Keymap;
use gpudeck::tui::theme::Themes;
use gpudeck::tui::{BoardRequest, ColorChoice, Effect, Incoming, Input, Session, View, draw, update};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const OFFERS: u32 = 100_000;

fn main() {
    divan::main();
    // What the process held at most, for the limit of 120 MB with one world.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|l| l.starts_with("VmHWM")) {
        println!("{line}");
    }
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_090_000, 0).unwrap_or_default()
}

/// Offers over ten clouds, forty regions each, three zones; every machine on demand and on spot.
fn offers(shift: i64) -> Vec<Offer> {
    let gpus = [
        "H100-80GB-SXM",
        "H200-141GB-SXM",
        "A100-80GB-SXM",
        "L4",
        "A10G",
        "B200",
        "L40S",
        "T4",
        "V100-16GB",
        "A100-40GB-SXM",
    ];
    let shapes: Vec<Arc<Shape>> = (0..42)
        .map(|i| {
            Arc::new(Shape {
                instance_type: format!("type-{i}.48xlarge").into(),
                accelerator: Accelerator::from_canonical(gpus[i % gpus.len()]),
                accelerators: AcceleratorCount::whole(8),
                gpu_memory_gib: Some(80.0),
                vcpus: Some(192),
                memory_gib: Some(2048.0),
                interconnect: Interconnect::Efa,
            })
        })
        .collect();
    let clouds: Vec<Arc<str>> = (0..10).map(|i| format!("cloud{i}").into()).collect();
    let regions: Vec<Arc<str>> = (0..40).map(|i| format!("region-{i}").into()).collect();
    let zones: Vec<Arc<str>> = (0..3).map(|i| format!("zone-{i}").into()).collect();
    (0..OFFERS)
        .map(|n| {
            let purchase = if n % 2 == 0 { Purchase::OnDemand } else { Purchase::Spot };
            let m = (n / 2) as usize;
            let shape = &shapes[m / 1200 % shapes.len()];
            Offer {
                key: OfferKey {
                    provider: gpudeck::domain::ProviderId::new(clouds[m % 10].clone()),
                    region: gpudeck::domain::Region::new(regions[m / 10 % 40].clone()),
                    zone: Some(gpudeck::domain::Zone::new(zones[m / 400 % 3].clone())),
                    instance_type: shape.instance_type.clone(),
                    purchase,
                },
                shape: shape.clone(),
                price: Some(HourlyRate::from_micros(1_000_000 + (i64::from(n) * 7919 + shift) % 90_000_000)),
                price_is_live: true,
                availability: [
                    Availability::Available,
                    Availability::Limited,
                    Availability::None,
                    Availability::Unknown,
                ][n as usize % 4],
                evidence: Evidence::Api,
                observed_at: now(),
                stale: false,
                capacity: None,
                quota: None,
                interruptions_per_day: None,
                jurisdiction: None,
            }
        })
        .collect()
}

fn state(shift: i64) -> State {
    State {
        at: now(),
        market: Arc::new(Snapshot::from_offers(now(), offers(shift))),
        network: Network::published(),
        jobs: Vec::new().into(),
        events: Vec::new().into(),
        alerts: Vec::new().into(),
        absent: Vec::new().into(),
        usd_per_hour: HourlyRate::ZERO,
        gpus: 0,
        speed: 1.0,
    }
}

fn view(state: State) -> View {
    let themes = Themes::load([]).expect("bundled themes");
    let theme = themes.get("dark", ColorChoice::TrueColor).expect("a bundled theme");
    let session = Session {
        demo: false,
        replay: false,
        read_only: false,
        actor: Actor { user: "bench".into(), via: "cockpit".into(), host: "bench".into() },
        colors: ColorChoice::TrueColor,
        ascii: false,
        clipboard: false,
        name_above: HourlyRate::from_micros(100_000_000),
        times: gpudeck::config::settings::TimeDisplay::Utc,
        zone: gpudeck::tui::times::utc,
    };
    View::new(session, Arc::new(state), Keymap::default(), themes, theme)
}

/// Take an input and give the board that it asks for, if any.
fn take(view: &mut View, at: u64, what: Incoming) -> Option<Box<BoardRequest>> {
    update(view, Input { at: Duration::from_millis(at), what }).into_iter().find_map(|e| match e {
        Effect::Board(request) => Some(request),
        _ => None,
    })
}

fn key(c: char) -> Incoming {
    Incoming::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
}

fn ready() -> View {
    let mut view = view(state(0));
    if let Some(request) = take(&mut view, 0, Incoming::Resize(200, 60)) {
        take(&mut view, 1, Incoming::Board(Box::new(request.build())));
    }
    view
}

fn frame(view: &View) -> Buffer {
    let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width: 200, height: 60 });
    draw(&mut buffer, view);
    buffer
}

#[divan::bench]
fn frame_200x60(bencher: Bencher<'_, '_>) {
    let view = ready();
    bencher.bench_local(|| frame(&view));
}

#[divan::bench]
fn key_to_frame(bencher: Bencher<'_, '_>) {
    let mut view = ready();
    let mut at = 1_000;
    bencher.bench_local(|| {
        at += 40;
        take(&mut view, at, key(if at % 80 == 0 { 'j' } else { 'k' }));
        frame(&view)
    });
}

#[divan::bench(sample_count = 20)]
fn first_paint(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(|| view(state(0))).bench_local_values(|mut view| {
        let request = take(&mut view, 0, Incoming::Resize(200, 60));
        let empty = frame(&view);
        if let Some(request) = request {
            take(&mut view, 1, Incoming::Board(Box::new(request.build())));
        }
        (empty, frame(&view))
    });
}

#[divan::bench(sample_count = 20)]
fn tables_of_a_new_market(bencher: Bencher<'_, '_>) {
    let new = Arc::new(state(1_000_003));
    bencher
        .with_inputs(|| {
            // A view each time: one that still waits for its tables asks for no others.
            let request = take(&mut ready(), 10_000, Incoming::State(new.clone()));
            request.expect("a new market asks for a board")
        })
        .bench_local_values(|request| request.build());
}

#[divan::bench(sample_count = 20)]
fn tables_of_a_filter(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(|| {
            let mut view = ready();
            take(&mut view, 100, key('/'));
            for (i, c) in "h100 region:region-1* price<".chars().enumerate() {
                if let Some(request) = take(&mut view, 200 + i as u64, key(c)) {
                    drop(request);
                }
            }
            view
        })
        .bench_local_values(|mut view| take(&mut view, 9_000, key('4')).map(|r| r.build()));
}
