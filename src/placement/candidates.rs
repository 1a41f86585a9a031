//! Candidates written out: figures, and what is assumed, stale or unknown about them in sentences.

use std::sync::Arc;

use crate::config::limits::{PLACEMENT_SPOT_PRIOR_PER_DAY, PLACEMENT_UNKNOWN_GBIT_PER_SECOND};
use crate::domain::text::inert;
use crate::domain::{Availability, HourlyRate, Location, Offer};

use super::constraints::Check;
use super::cost;
use super::facts::NetworkFacts;
use super::region::{Journey, Leg, RegionView};
use super::survey::Found;
use super::{Candidate, NodeGroup};

/// Write out what a survey found, in its order.
pub(super) fn write<N: NetworkFacts>(check: &Check<'_, N>, found: &[Found]) -> Vec<Candidate> {
    found.iter().filter_map(|f| candidate(check, f)).collect()
}

fn candidate<N: NetworkFacts>(check: &Check<'_, N>, found: &Found) -> Option<Candidate> {
    let parts: &[(usize, u32)] = match &found.spread {
        Some(spread) => spread,
        None => &[(found.rank.index, check.nodes)],
    };
    let nodes: Vec<NodeGroup> = parts
        .iter()
        .filter_map(|(i, count)| check.question.offer(*i).map(|o| NodeGroup { offer: Arc::clone(o), count: *count }))
        .collect();
    let first = Arc::clone(&nodes.first()?.offer);
    let mut region = RegionView::new(check.spec, &first.key);
    let latency =
        (!check.spec.constraints.latency.is_empty()).then(|| region.latency(check.spec, check.question.network));
    let staying =
        check.question.current.is_some_and(|here| nodes.iter().all(|g| here.contains(&g.offer.key.location())));
    let journey = if staying {
        Journey::default()
    } else {
        region.journey(check.spec, check.question.network, check.question.current)
    };
    let rate: HourlyRate = nodes.iter().filter_map(|g| g.offer.price.map(|p| p.times(g.count))).sum();
    let per_day: f64 = nodes.iter().map(|g| cost::hazard(&g.offer) * f64::from(g.count)).sum();
    let moving = check.question.current.is_some() && !staying;
    let breakdown = cost::breakdown(rate, per_day, check.horizon, &journey, moving);
    let known: Option<Vec<f64>> = nodes
        .iter()
        .map(|g| g.offer.interruptions_per_day.filter(|h| h.is_finite() && *h >= 0.0).map(|h| h * f64::from(g.count)))
        .collect();
    let mut caveats = Vec::new();
    for group in &nodes {
        for caveat in of_offer(check, &group.offer) {
            if !caveats.contains(&caveat) {
                caveats.push(caveat);
            }
        }
    }
    if let Some(from) = &check.spec.data.location {
        of_leg(&mut caveats, "the input", from, &region.location, journey.input, check.spec.data.input_gib);
    }
    if let Some(from) = check.question.current {
        let gib = check.spec.data.checkpoint_gib;
        of_leg(&mut caveats, "the checkpoint", from, &region.location, journey.checkpoint, gib);
    }
    if let Some(latency) = latency {
        if latency.estimated {
            caveats.push("the latency is estimated from distance, not measured".to_owned());
        }
        if latency.inside {
            caveats.push("the latency inside the region is taken as 0 ms; it is not measured".to_owned());
        }
    }
    if check.spec.schedule.deadline.is_some() && check.spec.schedule.duration_hours.is_none() {
        caveats
            .push("the job gives no duration, so only its start is held against the deadline, not its end".to_owned());
    }
    Some(Candidate {
        nodes,
        usd_per_hour: rate,
        usd_total: breakdown.total(),
        breakdown,
        latency_ms: latency.and_then(|l| l.longest_ms),
        interruptions_per_day: known.map(|k| k.into_iter().sum()),
        caveats,
    })
}

/// What is assumed, old or unknown about one offer.
fn of_offer<N>(check: &Check<'_, N>, offer: &Offer) -> Vec<String> {
    let place = offer.key.location().to_string();
    let place = inert(&place);
    let mut caveats = Vec::new();
    if !offer.price_is_live {
        caveats.push(format!(
            "published price of {}, not confirmed by the provider",
            offer.observed_at.format("%Y-%m-%d")
        ));
    }
    if offer.stale {
        caveats.push(format!(
            "what is known of {place} is of {}, older than its source's age limit",
            offer.observed_at.format("%Y-%m-%dT%H:%M:%SZ")
        ));
    }
    if offer.availability == Availability::Unknown {
        caveats.push(format!("whether {place} has any is not known; it is only listed"));
    }
    if cost::hazard_is_assumed(offer) {
        caveats.push(format!(
            "how often {place} interrupts is not known; costs assume {PLACEMENT_SPOT_PRIOR_PER_DAY} times a day a node \
             (AWS spot advisor, middle band)"
        ));
    }
    let (has, asked) = (offer.shape.accelerators.floor(), check.spec.resources.count);
    if has > asked {
        caveats.push(format!(
            "{} has {has} GPUs where {asked} are asked for; all are paid for",
            inert(offer.key.instance_type.as_str())
        ));
    }
    if offer.key.zone.is_none() && check.nodes > 1 {
        caveats
            .push(format!("{place} does not tell zones apart; whether all nodes share one is the provider's choice"));
    }
    caveats
}

/// What is assumed about moving data.
fn of_leg(caveats: &mut Vec<String>, what: &str, from: &Location, to: &Location, leg: Leg, gib: f64) {
    if leg.cost_assumed {
        caveats.push(format!(
            "no tariff is known from {} to {}; moving {what} ({gib} GiB) is charged at the dearest published one, {}",
            inert(&from.to_string()),
            inert(&to.to_string()),
            leg.cost
        ));
    }
    if leg.seconds_assumed {
        caveats.push(format!(
            "no throughput is known from {} to {}; {PLACEMENT_UNKNOWN_GBIT_PER_SECOND} Gbit/s is assumed for {what}",
            inert(&from.to_string()),
            inert(&to.to_string())
        ));
    }
}
