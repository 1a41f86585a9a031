//! A refusal in a sentence with figures: what the nearest offer has, what is needed.

use std::fmt::Write as _;

use crate::domain::text::inert;
use crate::domain::{Availability, JobSpec, Offer};

use super::Reason;
use super::constraints::Check;
use super::facts::NetworkFacts;
use super::region::RegionView;
use super::survey::Count;

/// The sentence for one line of the tally.
pub(super) fn sentence<N: NetworkFacts>(check: &Check<'_, N>, count: &Count, offer: &Offer) -> String {
    let mut text = figures(check, count, offer);
    if count.unknown > 0 && count.unknown < count.offers {
        let _ = write!(text, "; of {} more it is not known", count.unknown);
    }
    text
}

fn figures<N: NetworkFacts>(check: &Check<'_, N>, count: &Count, offer: &Offer) -> String {
    let spec = check.spec;
    let (need, shape) = (&spec.resources, &offer.shape);
    let place = offer.key.location().to_string();
    let (place, machine) = (inert(&place), inert(offer.key.instance_type.as_str()));
    match count.reason {
        Reason::Accelerator => accelerator(spec, offer),
        Reason::Count => format!("{machine} has {} GPUs, {} are needed on a node", shape.accelerators, need.count),
        Reason::Memory => minimum(&machine, "GiB of main memory", shape.memory_gib, need.memory_gib),
        Reason::Vcpus => minimum(&machine, "vCPUs", shape.vcpus.map(f64::from), need.vcpus.map(f64::from)),
        Reason::Provider => {
            format!("{} is not among {}", inert(offer.key.provider.as_str()), list(&spec.constraints.providers))
        }
        Reason::Region => region(spec, offer, &place),
        Reason::Jurisdiction => {
            let asked = list(&spec.constraints.jurisdictions);
            match &offer.jurisdiction {
                Some(law) => format!("{place} lies under {}, asked for is {asked}", inert(law)),
                None => format!("under whose law {place} lies is not known, asked for is {asked}"),
            }
        }
        Reason::Purchase => format!("{} is not among {}", offer.key.purchase, list(&spec.buying.models)),
        Reason::Price => match (offer.price.filter(|p| p.micros() > 0), offer.price_per_gpu()) {
            (None, _) | (_, None) => format!("no price is known for {machine} {} in {place}", offer.key.purchase),
            (Some(_), Some(price)) => format!(
                "the cheapest costs {price:.4} ({place} {machine} {}), at most {} is allowed",
                offer.key.purchase,
                spec.buying.max_usd_per_gpu_hour.map_or_else(String::new, |cap| format!("{cap:.4}")),
            ),
        },
        Reason::Latency => latency(check, offer, &place),
        Reason::Quota => quota(check, offer, &place, &machine),
        Reason::Availability => availability(check, offer, &place, &machine),
        Reason::CoolDown => cooling(check, offer, &place),
        Reason::Deadline => deadline(check, offer, &place),
        Reason::Stale => format!(
            "{place} {machine} was last seen at {}; facts older than {} min are not planned with",
            offer.observed_at.format("%Y-%m-%dT%H:%M:%SZ"),
            check.question.rules.expired_after.num_minutes()
        ),
        Reason::Policy => check
            .question
            .rules
            .forbid
            .and_then(|forbid| forbid(offer))
            .unwrap_or_else(|| format!("a policy forbids {place}")),
    }
}

fn accelerator(spec: &JobSpec, offer: &Offer) -> String {
    let need = &spec.resources;
    let chip = inert(offer.shape.accelerator.as_str());
    let chosen = need.accelerators.is_empty() || need.accelerators.contains(&offer.shape.accelerator);
    match (chosen, need.min_gpu_memory_gib, offer.shape.gpu_memory_gib) {
        (true, _, _) if need.accelerators.is_empty() && !offer.shape.accelerator.is_known() => {
            format!("{chip} is a chip that is not known; name it to allow it")
        }
        (true, Some(min), Some(have)) => format!("{chip} has {have} GiB a GPU, {min} GiB are needed"),
        (true, Some(min), None) => format!("the memory of {chip} is not known, {min} GiB are needed"),
        _ => format!("{chip} is not among {}", list(&need.accelerators)),
    }
}

fn minimum(machine: &str, what: &str, have: Option<f64>, need: Option<f64>) -> String {
    let need = need.unwrap_or(0.0);
    match have {
        Some(have) => format!("{machine} has {have} {what}, {need} are needed"),
        None => format!("how many {what} {machine} has is not known, {need} are needed"),
    }
}

fn region(spec: &JobSpec, offer: &Offer, place: &str) -> String {
    let limits = &spec.constraints;
    let here = offer.key.location();
    if let Some(out) = limits
        .exclude_regions
        .iter()
        .find(|l| l.contains(&here) || (here.zone.is_none() && l.provider == here.provider && l.region == here.region))
    {
        if out.contains(&here) {
            format!("{place} is excluded by {}", inert(&out.to_string()))
        } else {
            format!("{place} names no zone and may end up in {}, which is excluded", inert(&out.to_string()))
        }
    } else {
        format!("{place} is not in {}", list(&limits.regions))
    }
}

fn latency<N: NetworkFacts>(check: &Check<'_, N>, offer: &Offer, place: &str) -> String {
    let from = RegionView::new(check.spec, &offer.key).location;
    let worst = check
        .spec
        .constraints
        .latency
        .iter()
        .filter_map(|limit| check.question.network.round_trip(&from, &limit.to).map(|t| (t.ms, limit)))
        .max_by(|a, b| (a.0 - a.1.max_ms).total_cmp(&(b.0 - b.1.max_ms)));
    match worst {
        Some((ms, limit)) if ms > limit.max_ms => {
            format!(
                "{place} is {ms:.1} ms from {}, at most {} ms is allowed",
                inert(&limit.to.to_string()),
                limit.max_ms
            )
        }
        _ => {
            let unknown = check
                .spec
                .constraints
                .latency
                .iter()
                .find(|l| check.question.network.round_trip(&from, &l.to).is_none());
            let to = unknown.map_or_else(String::new, |l| inert(&l.to.to_string()).into_owned());
            format!("the latency from {place} to {to} is not known")
        }
    }
}

fn quota<N: NetworkFacts>(check: &Check<'_, N>, offer: &Offer, place: &str, machine: &str) -> String {
    match &offer.quota {
        Some(q) => format!(
            "quota {} for {machine} {} in {place}: limit {}, used {}, needed {} ({} x {}): room for {} of {} nodes",
            inert(&q.code),
            offer.key.purchase,
            q.limit,
            q.used,
            q.per_instance * f64::from(check.nodes),
            check.nodes,
            q.per_instance,
            q.instances_left(),
            check.nodes
        ),
        None => format!("the quota in {place} leaves no room"),
    }
}

fn availability<N: NetworkFacts>(check: &Check<'_, N>, offer: &Offer, place: &str, machine: &str) -> String {
    match (offer.availability, offer.capacity) {
        (Availability::None, _) => format!("{place} has no {machine} {} now", offer.key.purchase),
        (_, Some(capacity)) => format!(
            "{place} has {capacity} {machine} {}, {} are needed{}",
            offer.key.purchase,
            check.nodes,
            if check.may_spread(offer) { ", and all its region's zones together have fewer" } else { "" }
        ),
        (_, None) => format!("{place} has fewer {machine} than needed"),
    }
}

fn cooling<N: NetworkFacts>(check: &Check<'_, N>, offer: &Offer, place: &str) -> String {
    let cool = check.cooling_until(offer).and_then(|until| check.question.cooling.iter().find(|c| c.until == until));
    match cool {
        Some(c) => {
            format!("{place} is left alone until {}: {}", c.until.format("%Y-%m-%dT%H:%M:%SZ"), inert(&c.reason))
        }
        None => format!("{place} failed lately and is left alone"),
    }
}

fn deadline<N: NetworkFacts>(check: &Check<'_, N>, offer: &Offer, place: &str) -> String {
    let Some(end) = check.earliest_end(offer) else { return format!("{place} cannot finish in time") };
    let verb = if check.spec.schedule.duration_hours.is_some() { "be finished" } else { "start" };
    format!(
        "{place} could {verb} by {} at the earliest, the deadline is {}",
        end.format("%Y-%m-%dT%H:%M:%SZ"),
        check.spec.schedule.deadline.map_or_else(String::new, |d| d.format("%Y-%m-%dT%H:%M:%SZ").to_string())
    )
}

/// `a, b, c`, made harmless.
pub(super) fn list<T: std::fmt::Display>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    items.iter().map(|i| inert(&i.to_string()).into_owned()).collect::<Vec<_>>().join(", ")
}
