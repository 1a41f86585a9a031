//! `gpudeck latency --probe`: round trips from this machine to the providers' regional addresses, measured now.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::net::{TcpStream, lookup_host};

use super::latency::print;
use super::system_now;
use crate::cli::app::App;
use crate::cli::facts::WorldFacts;
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::config::limits::{PROBE_PAUSE, PROBE_TIMEOUT, PROBES};
use crate::domain::text::inert;
use crate::domain::{Location, Region};
use crate::network::{Latency, LatencySource};

/// What connecting to one address again and again showed.
struct Probed {
    /// Round trips in milliseconds, in their order.
    trips: Vec<f64>,
    lost: u32,
    /// The last refusal, in words.
    why: String,
}

/// Run it for one place, or for every region that a connected provider has an address in.
pub async fn run(app: &App, to: Option<&Location>) -> Outcome {
    app.no_offers_file("latency")?;
    if app.global.demo {
        return Err(Failure::usage("the clouds of the demo are simulated: there is nothing to measure")
            .hint("`gpudeck latency --probe` without --demo measures; without --probe figures are as published."));
    }
    let facts = WorldFacts::new(app.catalogue(), None);
    if let Some(place) = to {
        facts.place("--to", place)?;
    }
    let world = app.world().await?;
    let mut targets: Vec<(Location, String)> = Vec::new();
    for connected in &world.providers {
        let provider = connected.watch.id();
        let regions: Vec<Region> = match to {
            Some(place) if &place.provider == provider => vec![place.region.clone()],
            Some(_) => continue,
            None => {
                let mut all: Vec<Region> =
                    app.catalogue().rows_of(provider.as_str()).iter().map(|row| row.region.clone()).collect();
                all.sort();
                all.dedup();
                all
            }
        };
        let address = |region: &Region| connected.watch.regional_address(region);
        targets
            .extend(regions.iter().filter_map(|r| Some((Location::region(provider.clone(), r.clone()), address(r)?))));
    }
    if targets.is_empty() {
        return Err(Failure::new(
            Exit::Provider,
            "unsupported",
            "no connected provider has a regional address to measure",
        )
        .hint("AWS has; `gpudeck doctor` shows what is connected. `gpudeck latency` shows published figures."));
    }
    let here = Location::region(
        "here",
        nix::unistd::gethostname()
            .map_or_else(|_| "this machine".to_owned(), |name| inert(&name.to_string_lossy()).into_owned()),
    );
    // One after the other at each address, all addresses at once: no more than ten connections a second anywhere.
    let probed = join_all(targets.iter().map(|(_, address)| probe(address))).await;
    let mut found = Vec::new();
    for ((place, address), probed) in targets.into_iter().zip(probed) {
        match figures(&here, &place, &probed) {
            Some(latency) => found.push(latency),
            None => app.out.complain(&format!("{place}: {} was not reached: {}", inert(&address), inert(&probed.why))),
        }
    }
    let none = found.is_empty();
    print(app, found)?;
    Ok(if none { Exit::Provider } else { Exit::Done })
}

/// The figures of what answered; `None` where nothing did.
fn figures(from: &Location, to: &Location, probed: &Probed) -> Option<Latency> {
    let mut sorted = probed.trips.clone();
    sorted.sort_by(f64::total_cmp);
    // The nearest rank: the smallest value that so many percent do not exceed.
    let rank = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied();
    let sent = probed.trips.len() as u32 + probed.lost;
    let steps: Vec<f64> =
        probed.trips.windows(2).map(|w| w.last().zip(w.first()).map_or(0.0, |(b, a)| (b - a).abs())).collect();
    Some(Latency {
        from: from.clone(),
        to: to.clone(),
        p50_ms: rank(50)?,
        p99_ms: rank(99),
        jitter_ms: (!steps.is_empty()).then(|| steps.iter().sum::<f64>() / steps.len() as f64),
        loss_percent: Some(f64::from(probed.lost) * 100.0 / f64::from(sent.max(1))),
        samples: Some(sent),
        source: LatencySource::Measured,
        observed_at: Some(system_now()),
    })
}

/// Connect to an address again and again. A connection takes one round trip; the name is looked up once, before.
async fn probe(address: &str) -> Probed {
    let mut probed = Probed { trips: Vec::new(), lost: 0, why: String::new() };
    let found = match tokio::time::timeout(PROBE_TIMEOUT * 2, lookup_host(address)).await {
        Ok(Ok(mut found)) => found.next(),
        Ok(Err(error)) => {
            probed.why = error.to_string();
            None
        }
        Err(_) => {
            "its name was not found in time".clone_into(&mut probed.why);
            None
        }
    };
    let Some(socket) = found else { return probed };
    for n in 0..PROBES {
        if n > 0 {
            tokio::time::sleep(PROBE_PAUSE).await;
        }
        let began = Instant::now();
        match tokio::time::timeout(PROBE_TIMEOUT, TcpStream::connect(socket)).await {
            Ok(Ok(stream)) => {
                probed.trips.push(millis(began.elapsed()));
                drop(stream);
            }
            Ok(Err(error)) => {
                probed.lost += 1;
                probed.why = error.to_string();
            }
            Err(_) => {
                probed.lost += 1;
                probed.why = format!("no answer within {} s", PROBE_TIMEOUT.as_secs());
            }
        }
        // Nobody is there: no need to ask twenty times.
        if probed.trips.is_empty() && probed.lost >= 3 {
            break;
        }
    }
    probed
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(trips: &[f64], lost: u32) -> Option<Latency> {
        let place = |p: &str| Location::region(p, "r");
        figures(&place("here"), &place("aws"), &Probed { trips: trips.to_vec(), lost, why: String::new() })
    }

    #[test]
    fn figures_are_those_of_what_answered() {
        let one = of(&[10.0, 12.0, 11.0, 50.0], 1).expect("figures");
        assert_eq!((one.p50_ms, one.p99_ms, one.samples), (11.0, Some(50.0), Some(5)));
        assert_eq!(one.loss_percent, Some(20.0));
        assert!(one.jitter_ms.is_some_and(|j| (j - 14.0).abs() < 1e-9), "2, 1 and 39 on the average");
        assert_eq!(one.source, LatencySource::Measured);
        assert_eq!(of(&[], 3), None);
        assert_eq!(of(&[7.0], 0).map(|l| (l.p50_ms, l.p99_ms, l.jitter_ms)), Some((7.0, Some(7.0), None)));
    }
}
