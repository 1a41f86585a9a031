//! `place`.

use serde::Serialize;

use super::job::SpecShape;
use super::offer::OfferShape;
use crate::cli::output::Stamp;
use crate::domain::{HourlyRate, JobSpec, Money};
use crate::market::Snapshot;
use crate::placement::{Breakdown, Candidate, Ranking, Reason};

/// The answer to `place`.
#[derive(Debug, Serialize)]
pub struct PlaceShape<'p> {
    request: SpecShape<'p>,
    snapshot: SnapshotShape,
    #[serde(flatten)]
    ranking: RankingShape<'p>,
}

/// What was ranked, what was refused, what would help.
#[derive(Debug, Serialize)]
pub struct RankingShape<'p> {
    candidates: Vec<CandidateShape<'p>>,
    rejected: Vec<RejectionShape<'p>>,
    relax: Vec<RelaxationShape<'p>>,
    feasible: usize,
}

#[derive(Debug, Serialize)]
struct SnapshotShape {
    observed_at: Stamp,
    offers: usize,
}

#[derive(Debug, Serialize)]
struct CandidateShape<'p> {
    rank: usize,
    nodes: Vec<NodeShape<'p>>,
    usd_per_hour: HourlyRate,
    usd_total: Money,
    breakdown: Breakdown,
    latency_ms: Option<f64>,
    interruptions_per_day: Option<f64>,
    caveats: &'p [String],
}

#[derive(Debug, Serialize)]
struct NodeShape<'p> {
    #[serde(flatten)]
    offer: OfferShape<'p>,
    count: u32,
}

#[derive(Debug, Serialize)]
struct RejectionShape<'p> {
    reason: Reason,
    offers: usize,
    example: OfferShape<'p>,
    detail: &'p str,
}

#[derive(Debug, Serialize)]
struct RelaxationShape<'p> {
    constraint: &'p str,
    from: &'p str,
    to: &'p str,
    usd_per_hour: HourlyRate,
    offer: OfferShape<'p>,
}

impl<'p> PlaceShape<'p> {
    /// The answer to this request from this snapshot.
    pub fn new(request: &'p JobSpec, snapshot: &Snapshot, ranking: &'p Ranking) -> Self {
        Self {
            request: SpecShape::from(request),
            snapshot: SnapshotShape { observed_at: Stamp(snapshot.at()), offers: snapshot.len() },
            ranking: ranking.into(),
        }
    }
}

impl<'p> From<&'p Ranking> for RankingShape<'p> {
    fn from(ranking: &'p Ranking) -> Self {
        Self {
            candidates: ranking.candidates.iter().enumerate().map(|(i, c)| CandidateShape::new(i + 1, c)).collect(),
            rejected: ranking
                .rejected
                .iter()
                .map(|r| RejectionShape {
                    reason: r.reason,
                    offers: r.offers,
                    example: (&*r.example).into(),
                    detail: &r.detail,
                })
                .collect(),
            relax: ranking
                .relax
                .iter()
                .map(|r| RelaxationShape {
                    constraint: &r.constraint,
                    from: &r.from,
                    to: &r.to,
                    usd_per_hour: r.usd_per_hour,
                    offer: (&*r.offer).into(),
                })
                .collect(),
            feasible: ranking.feasible,
        }
    }
}

impl<'p> CandidateShape<'p> {
    fn new(rank: usize, candidate: &'p Candidate) -> Self {
        Self {
            rank,
            nodes: candidate
                .nodes
                .iter()
                .map(|group| NodeShape { offer: (&*group.offer).into(), count: group.count })
                .collect(),
            usd_per_hour: candidate.usd_per_hour,
            usd_total: candidate.usd_total,
            breakdown: candidate.breakdown,
            latency_ms: candidate.latency_ms,
            interruptions_per_day: candidate.interruptions_per_day,
            caveats: &candidate.caveats,
        }
    }
}
