//! Expected cost of a candidate over the job's costing hours.
//!
//! With `H` the costing hours, `R` the price an hour of all nodes together, `Λ` the interruptions of the gang a day,
//! and `L` the hours lost at each interruption:
//!
//! - compute = `R × H`;
//! - risk = `R × L × Λ × H / 24`: at each interruption the whole gang loses `L` hours at its price. `Λ` is the sum of
//!   the nodes' own hazards: nodes are taken to be interrupted independently of each other, and one interrupted node
//!   stops the gang. Where a zone takes all nodes back at once that overstates the risk, never understates it.
//!   Interruptions during the time lost to interruptions are not counted (a term of second order);
//! - egress = the input once a start, from where it lies, for the whole gang, plus the checkpoint from where the job
//!   runs now. That the input is read again after an interruption, perhaps elsewhere, is not assumed;
//! - switching, only when the job runs elsewhere now = `R × (start-up + transfers + L)`: the target is paid for while
//!   the source still runs and until the work since the last checkpoint is done again. A candidate in the very place
//!   where the job runs costs neither egress nor switching;
//! - commitment = 0: no source here states commitments yet.
//!
//! Money is counted in whole micro-USD and saturates; only hours and hazards are floating.

use crate::config::limits::PLACEMENT_SPOT_PRIOR_PER_DAY;
use crate::domain::{HourlyRate, JobSpec, Money, Offer, Purchase};

use super::Breakdown;
use super::region::Journey;

/// The job's figures that cost depends on, made safe against values that are not numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Horizon {
    /// Hours that costs are compared over.
    pub(super) hours: f64,
    /// Hours lost at each interruption.
    pub(super) loss_hours: f64,
}

impl Horizon {
    pub(super) fn of(spec: &JobSpec) -> Self {
        let safe = |h: f64| if h.is_finite() { h.max(0.0) } else { 0.0 };
        Self { hours: safe(spec.costing_hours()), loss_hours: safe(spec.schedule.restart_loss_hours) }
    }
    /// Expected interruptions over the costing hours at so many a day.
    pub(super) fn interruptions(&self, per_day: f64) -> f64 {
        per_day * self.hours / 24.0
    }
    /// Hours from the start of work to its end, at so many interruptions a day.
    pub(super) fn hours_to_finish(&self, per_day: f64) -> f64 {
        self.hours + self.interruptions(per_day) * self.loss_hours
    }
}

/// Interruptions of one instance a day as costs count them: the offer's own figure; where a spot offer has none, the
/// prior; none for other purchase models.
pub(super) fn hazard(offer: &Offer) -> f64 {
    match offer.interruptions_per_day {
        Some(h) if h.is_finite() && h >= 0.0 => h,
        _ if offer.key.purchase == Purchase::Spot => PLACEMENT_SPOT_PRIOR_PER_DAY,
        _ => 0.0,
    }
}

/// Whether [`hazard`] had to assume a figure.
pub(super) fn hazard_is_assumed(offer: &Offer) -> bool {
    offer.key.purchase == Purchase::Spot && !offer.interruptions_per_day.is_some_and(|h| h.is_finite() && h >= 0.0)
}

/// What a gang at this price and hazard costs. `moving` is whether the job runs elsewhere now.
pub(super) fn breakdown(
    rate: HourlyRate,
    per_day: f64,
    horizon: Horizon,
    journey: &Journey,
    moving: bool,
) -> Breakdown {
    Breakdown {
        compute: rate.for_hours(horizon.hours),
        egress: journey.cost(),
        switching: if moving { rate.for_hours(switching_hours(horizon, journey)) } else { Money::ZERO },
        risk: rate.for_hours(horizon.loss_hours * horizon.interruptions(per_day)),
        commitment: Money::ZERO,
    }
}

/// What staying costs over the same hours as a candidate's `usd_total`, compute and risk: the job's own rate and
/// hazard. An unknown hazard counts as none, so that a move is never made to look better than it is known to be.
pub fn staying(spec: &JobSpec, rate: HourlyRate, per_day: Option<f64>) -> Money {
    let horizon = Horizon::of(spec);
    let per_day = per_day.filter(|h| h.is_finite() && *h > 0.0).unwrap_or(0.0);
    rate.for_hours(horizon.hours + horizon.loss_hours * horizon.interruptions(per_day))
}

/// Hours that are paid twice during a move.
pub(super) fn switching_hours(horizon: Horizon, journey: &Journey) -> f64 {
    journey.seconds() / 3600.0 + horizon.loss_hours
}
