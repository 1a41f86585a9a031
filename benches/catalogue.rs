//! What the bundled tables cost: reading them once, and asking them often.

use std::hint::black_box;

use divan::Bencher;
use gpudeck::catalogue::{Catalogue, accelerators, published_observations, table};
use gpudeck::domain::Location;
use gpudeck::network::Network;

fn main() {
    divan::main();
}

/// Bar: below 5 ms.
#[divan::bench]
fn read_the_catalogue() -> Result<Catalogue, table::TableError> {
    table::read(black_box(table::BUNDLED))
}

#[divan::bench]
fn observations_of_a_cloud() -> usize {
    let at = Catalogue::bundled().date_of("aws");
    published_observations(black_box("aws"), at).len()
}

#[divan::bench(args = ["NVIDIA H100 80GB HBM3", "nvidia-tesla-t4", "R100 of tomorrow"])]
fn name_a_chip(raw: &str) -> gpudeck::domain::Accelerator {
    accelerators::canonical(black_box(raw))
}

fn places() -> [(Location, Location); 4] {
    let at = |provider: &str, region: &str| Location::region(provider, region);
    [
        (at("aws", "us-east-1"), at("gcp", "europe-west4")),
        (at("gcp", "europe-west4"), at("aws", "us-east-1")),
        (at("azure", "westus3"), at("aws", "eu-west-1")),
        (at("aws", "us-east-1"), at("lambda", "us-south-1")),
    ]
}

/// Bar: below 200 ns for each of the four (a listed pair, its reverse, an unlisted source, an unlisted cloud).
#[divan::bench(args = 0..4)]
fn egress(bencher: Bencher<'_, '_>, pair: usize) {
    let (network, places) = (Network::published(), places());
    let (from, to) = &places[pair];
    bencher.bench(|| network.egress(black_box(from), black_box(to), black_box(1_000.0)));
}

/// Bar: below 200 ns.
#[divan::bench(args = 0..4)]
fn latency(bencher: Bencher<'_, '_>, pair: usize) {
    let (network, places) = (Network::published(), places());
    let (from, to) = &places[pair];
    bencher.bench(|| network.latency(black_box(from), black_box(to)));
}
