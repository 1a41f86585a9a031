//! A ranking in words, for `--explain` and the screen: how many offers were looked at, what the best place costs and
//! why, what else there is, what was refused for which reason, what would help. Lines without colour or markup; what
//! providers wrote in them is harmless already.

use crate::domain::text::inert;
use crate::domain::{JobSpec, Money};

use super::{Candidate, Ranking};

/// How many other places are set against the best.
const OTHERS: usize = 4;

/// All lines for a ranking.
pub fn explain(spec: &JobSpec, ranking: &Ranking) -> Vec<String> {
    let mut lines = vec![summary(spec, ranking)];
    if let Some(best) = ranking.candidates.first() {
        lines.push(String::new());
        lines.extend(candidate(spec, best));
        for other in ranking.candidates.iter().skip(1).take(OTHERS) {
            lines.push(format!("  instead {}", compare(best, other)));
        }
    }
    if !ranking.rejected.is_empty() {
        lines.push(String::new());
        lines.push("refused, each offer under its first reason:".to_owned());
        lines.extend(refusals(ranking));
    }
    if !ranking.relax.is_empty() {
        lines.push(String::new());
        lines.push("what would make it fit, one change alone, cheapest first:".to_owned());
        lines.extend(relaxations(ranking));
    }
    lines
}

/// What is asked for and how many offers there are for it, in one line.
pub fn summary(spec: &JobSpec, ranking: &Ranking) -> String {
    let refused: usize = ranking.rejected.iter().map(|r| r.offers).sum();
    let need = &spec.resources;
    let chips = if need.accelerators.is_empty() {
        "of any known accelerator".to_owned()
    } else {
        super::detail::list(&need.accelerators)
    };
    format!(
        "{}: {} x {} GPUs ({chips}); {} offers looked at, {refused} refused, {} usable, {} candidates",
        inert(&spec.name),
        need.nodes,
        need.count,
        ranking.considered,
        ranking.usable,
        ranking.feasible
    )
}

/// One candidate: where, what it costs and of what that consists, and what to know about it.
pub fn candidate(spec: &JobSpec, candidate: &Candidate) -> Vec<String> {
    let parts = &candidate.breakdown;
    let horizon = if spec.schedule.duration_hours.is_some() { "expected" } else { "open-ended, compared over" };
    let mut lines = vec![
        format!("{}: {:.4}", place(candidate), candidate.usd_per_hour),
        format!(
            "  {horizon} {} h: {} = compute {} + egress {} + switching {} + risk {}{}",
            spec.costing_hours(),
            candidate.usd_total,
            parts.compute,
            parts.egress,
            parts.switching,
            parts.risk,
            if parts.commitment == Money::ZERO { String::new() } else { format!(" + commitment {}", parts.commitment) }
        ),
    ];
    match candidate.interruptions_per_day {
        Some(n) if n > 0.0 => lines.push(format!("  interruptions: {n:.4} a day expected for the whole gang")),
        Some(_) => {}
        None => lines.push("  interruptions: not known".to_owned()),
    }
    if let Some(ms) = candidate.latency_ms {
        lines.push(format!("  latency: {ms:.1} ms to the farthest place asked for"));
    }
    lines.extend(candidate.caveats.iter().map(|c| format!("  note: {c}")));
    lines
}

/// How another candidate differs from the chosen one, in a line that names every part that differs.
pub fn compare(chosen: &Candidate, other: &Candidate) -> String {
    let parts = [
        ("compute", chosen.breakdown.compute, other.breakdown.compute),
        ("egress", chosen.breakdown.egress, other.breakdown.egress),
        ("switching", chosen.breakdown.switching, other.breakdown.switching),
        ("risk", chosen.breakdown.risk, other.breakdown.risk),
        ("commitment", chosen.breakdown.commitment, other.breakdown.commitment),
    ];
    let differing: Vec<String> =
        parts.iter().filter(|(_, a, b)| a != b).map(|(name, a, b)| format!("{name} {}", signed(*b - *a))).collect();
    let total = signed(other.usd_total - chosen.usd_total);
    let why = if differing.is_empty() { "the same cost, later in order".to_owned() } else { differing.join(", ") };
    format!("{}: {:.4}, {total} in all ({why})", place(other), other.usd_per_hour)
}

/// A line for each reason that refused offers, most first.
pub fn refusals(ranking: &Ranking) -> Vec<String> {
    ranking.rejected.iter().map(|r| format!("  {:>6} {:<12} {}", r.offers, r.reason.as_str(), r.detail)).collect()
}

/// A line for each single change that would help, best first.
pub fn relaxations(ranking: &Ranking) -> Vec<String> {
    ranking
        .relax
        .iter()
        .map(|r| {
            let key = r.offer.key.to_string();
            format!("  {}: {} -> {} gives {} at {:.4}", r.constraint, r.from, r.to, inert(&key), r.usd_per_hour)
        })
        .collect()
}

/// `2 x p5.48xlarge spot in aws/us-east-1/use1-az4 + …`.
fn place(candidate: &Candidate) -> String {
    let groups: Vec<String> = candidate
        .nodes
        .iter()
        .map(|g| {
            let key = &g.offer.key;
            let text = format!("{} x {} {} in {}", g.count, key.instance_type, key.purchase, key.location());
            inert(&text).into_owned()
        })
        .collect();
    groups.join(" + ")
}

/// With its sign, also where it is more.
fn signed(money: Money) -> String {
    if money < Money::ZERO { money.to_string() } else { format!("+{money}") }
}
