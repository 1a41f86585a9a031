//! Where nothing fits: for each constraint of the job, the smallest change of that one alone that gives it a place.
//!
//! A constraint is first dropped altogether; what then passes shows how far it has to give way, and the job with
//! exactly that change is placed again, so nothing is suggested that does not hold. Smallest means: a figure as near
//! to the asked one as any offer allows; for lists one more entry (or one exclusion less), the nearest chip by name,
//! else the one whose place costs least an hour. Facts that are not known cannot be met by another figure: only where
//! no known one helps, the constraint's removal is suggested. Places left alone, stale facts and policies are not the
//! job's to relax.

use std::fmt::Display;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::domain::{GpuHourlyRate, JobSpec, Location, Offer, Purchase};

use super::constraints::{Check, common_prefix};
use super::detail::list;
use super::facts::{NetworkFacts, same_region};
use super::survey::{Found, Survey, Tally, survey};
use super::{Reason, Relaxation};

/// What a removed minimum or limit reads as.
const NOT_SET: &str = "not set";

/// Every single change that helps, cheapest place first, then by name.
pub(super) fn relax<N: NetworkFacts>(check: &Check<'_, N>, tally: &Tally) -> Vec<Relaxation> {
    let search = Search { check };
    let refused = |reasons: &[Reason]| reasons.iter().any(|r| tally.of(*r) > 0);
    let mut changes = Vec::new();
    if refused(&[Reason::Accelerator]) {
        changes.extend(search.accelerators());
        changes.extend(search.gpu_memory());
    }
    if refused(&[Reason::Count]) {
        changes.extend(search.count());
    }
    if refused(&[Reason::Memory]) {
        changes.extend(search.memory());
    }
    if refused(&[Reason::Vcpus]) {
        changes.extend(search.vcpus());
    }
    if refused(&[Reason::Provider]) {
        changes.extend(search.providers());
    }
    if refused(&[Reason::Region]) {
        changes.extend(search.regions());
        changes.extend(search.exclusions());
    }
    if refused(&[Reason::Jurisdiction]) {
        changes.extend(search.jurisdictions());
    }
    if refused(&[Reason::Purchase]) {
        changes.extend(search.models());
    }
    if refused(&[Reason::Price]) {
        changes.extend(search.price());
    }
    if refused(&[Reason::Latency]) {
        changes.extend(search.latencies());
    }
    if refused(&[Reason::Quota, Reason::Availability, Reason::Deadline]) {
        changes.extend(search.nodes());
        changes.extend(search.combine_zones());
    }
    if refused(&[Reason::Deadline]) {
        changes.extend(search.deadline());
    }
    let mut found: Vec<Relaxation> = changes.into_iter().filter_map(|change| search.prove(change)).collect();
    found.sort_by(|a, b| a.usd_per_hour.cmp(&b.usd_per_hour).then_with(|| a.constraint.cmp(&b.constraint)));
    found
}

/// A changed job, and the change in words.
struct Change {
    constraint: String,
    from: String,
    to: String,
    spec: JobSpec,
}

struct Search<'a, N> {
    check: &'a Check<'a, N>,
}

impl<N: NetworkFacts> Search<'_, N> {
    fn spec(&self) -> &JobSpec {
        self.check.spec
    }

    /// The job with a change.
    fn with(&self, change: impl FnOnce(&mut JobSpec)) -> JobSpec {
        let mut spec = self.spec().clone();
        change(&mut spec);
        spec
    }

    fn survey(&self, spec: &JobSpec, top: usize) -> Survey {
        survey(&Check::new(spec, self.check.question), top)
    }

    fn change(&self, name: &str, from: &dyn Display, to: &dyn Display, change: impl FnOnce(&mut JobSpec)) -> Change {
        Change { constraint: name.to_owned(), from: from.to_string(), to: to.to_string(), spec: self.with(change) }
    }

    /// Place the changed job; nothing is suggested that does not place.
    fn prove(&self, change: Change) -> Option<Relaxation> {
        let survey = self.survey(&change.spec, 1);
        let best = survey.found.first()?;
        let offer = self.check.question.offer(best.rank.index)?;
        Some(Relaxation {
            constraint: change.constraint,
            from: change.from,
            to: change.to,
            usd_per_hour: best.rank.rate,
            offer: Arc::clone(offer),
        })
    }

    /// Every candidate of a job, with the offer it stands for (the first, where zones are combined).
    fn all(&self, spec: &JobSpec) -> Vec<(Found, &Arc<Offer>)> {
        let found = self.survey(spec, usize::MAX).found;
        found.into_iter().filter_map(|f| self.check.question.offer(f.rank.index).map(|o| (f, o))).collect()
    }

    fn accelerators(&self) -> Option<Change> {
        let asked = &self.spec().resources.accelerators;
        if asked.is_empty() {
            return None;
        }
        let alike = |offer: &Offer| {
            asked.iter().map(|a| common_prefix(a.as_str(), offer.shape.accelerator.as_str())).max().unwrap_or(0)
        };
        let (_, nearest) = self
            .all(&self.with(|s| s.resources.accelerators.clear()))
            .into_iter()
            .min_by_key(|(f, o)| (std::cmp::Reverse(alike(o)), f.rank.rate, o.shape.accelerator.clone()))?;
        let chip = nearest.shape.accelerator.clone();
        let mut to = asked.clone();
        to.push(chip.clone());
        Some(self.change("resources.accelerators", &list(asked), &list(&to), |s| {
            s.resources.accelerators_as_written.push(chip.as_str().to_owned());
            s.resources.accelerators.push(chip);
        }))
    }

    fn gpu_memory(&self) -> Option<Change> {
        self.minimum(
            "resources.min_gpu_memory_gib",
            self.spec().resources.min_gpu_memory_gib?,
            |s, to| s.resources.min_gpu_memory_gib = to,
            |o| o.shape.gpu_memory_gib,
        )
    }

    fn memory(&self) -> Option<Change> {
        self.minimum(
            "resources.memory_gib",
            self.spec().resources.memory_gib?,
            |s, to| s.resources.memory_gib = to,
            |o| o.shape.memory_gib,
        )
    }

    fn vcpus(&self) -> Option<Change> {
        self.minimum(
            "resources.vcpus",
            f64::from(self.spec().resources.vcpus?),
            |s, to| s.resources.vcpus = to.map(|n| n as u32),
            |o| o.shape.vcpus.map(f64::from),
        )
    }

    /// A minimum lowered to the most that any place has; removed where it is known of none.
    fn minimum(
        &self,
        name: &str,
        asked: f64,
        set: impl Fn(&mut JobSpec, Option<f64>),
        have: impl Fn(&Offer) -> Option<f64>,
    ) -> Option<Change> {
        let all = self.all(&self.with(|s| set(s, None)));
        if all.is_empty() {
            return None;
        }
        let most = all.iter().filter_map(|(_, o)| have(o)).filter(|m| !m.is_nan()).max_by(f64::total_cmp);
        let to = most.map_or_else(|| NOT_SET.to_owned(), |m| m.to_string());
        Some(self.change(name, &asked, &to, |s| set(s, most)))
    }

    fn count(&self) -> Option<Change> {
        let asked = self.spec().resources.count;
        let all = self.all(&self.with(|s| s.resources.count = asked.min(1)));
        let most = all.iter().map(|(_, o)| o.shape.accelerators.floor()).max()?;
        Some(self.change("resources.count", &asked, &most, |s| s.resources.count = most))
    }

    fn providers(&self) -> Option<Change> {
        let asked = &self.spec().constraints.providers;
        let all = self.all(&self.with(|s| s.constraints.providers.clear()));
        let (_, offer) = all.into_iter().min_by_key(|(f, o)| (f.rank.rate, o.key.provider.clone()))?;
        let mut to = asked.clone();
        to.push(offer.key.provider.clone());
        Some(self.change("constraints.providers", &list(asked), &list(&to), move |s| s.constraints.providers = to))
    }

    fn regions(&self) -> Option<Change> {
        let asked = &self.spec().constraints.regions;
        if asked.is_empty() {
            return None;
        }
        let all = self.all(&self.with(|s| s.constraints.regions.clear()));
        let (found, offer) = all.into_iter().min_by_key(|(f, o)| (f.rank.rate, o.key.clone()))?;
        let zone = offer.key.location();
        let region = Location { zone: None, ..zone.clone() };
        // Where the job names zones of the region already, one zone more is less than the whole region.
        let smaller = found.spread.is_none() && asked.iter().any(|l| same_region(l, &region));
        let mut to = asked.clone();
        to.push(if smaller { zone } else { region });
        Some(self.change("constraints.regions", &list(asked), &list(&to), move |s| s.constraints.regions = to))
    }

    fn exclusions(&self) -> Option<Change> {
        let asked = &self.spec().constraints.exclude_regions;
        let without = |i: usize| {
            let mut left = asked.clone();
            left.remove(i);
            left
        };
        let (i, _) = (0..asked.len())
            .filter_map(|i| {
                let survey = self.survey(&self.with(|s| s.constraints.exclude_regions = without(i)), 1);
                survey.found.first().map(|f| (i, f.rank.rate))
            })
            .min_by_key(|(i, rate)| (*rate, *i))?;
        let to = without(i);
        Some(self.change("constraints.exclude_regions", &list(asked), &list(&to), move |s| {
            s.constraints.exclude_regions = to;
        }))
    }

    fn jurisdictions(&self) -> Option<Change> {
        let asked = &self.spec().constraints.jurisdictions;
        let all = self.all(&self.with(|s| s.constraints.jurisdictions.clear()));
        let known = all
            .iter()
            .filter_map(|(f, o)| o.jurisdiction.as_deref().map(|law| (f.rank.rate, law)))
            .min()
            .map(|(_, law)| law.to_owned());
        if all.is_empty() {
            return None;
        }
        let mut to = asked.clone();
        match known {
            Some(law) => to.push(law),
            None => to.clear(),
        }
        let text = if to.is_empty() { NOT_SET.to_owned() } else { list(&to) };
        Some(self.change("constraints.jurisdictions", &list(asked), &text, move |s| s.constraints.jurisdictions = to))
    }

    fn models(&self) -> Option<Change> {
        let asked = &self.spec().buying.models;
        let every = vec![Purchase::OnDemand, Purchase::Spot, Purchase::Reserved];
        let all = self.all(&self.with(|s| s.buying.models = every));
        let (_, offer) = all.into_iter().min_by_key(|(f, o)| (f.rank.rate, o.key.purchase))?;
        let mut to = asked.clone();
        to.push(offer.key.purchase);
        Some(self.change("purchase.models", &list(asked), &list(&to), move |s| s.buying.models = to))
    }

    fn price(&self) -> Option<Change> {
        let asked = self.spec().buying.max_usd_per_gpu_hour?;
        let all = self.all(&self.with(|s| s.buying.max_usd_per_gpu_hour = None));
        let least = if self.spec().constraints.combine_zones {
            // A spread needs the dearest of its zones to be allowed, and another spread than the cheapest may have a
            // lower dearest: try the prices there are.
            let mut caps: Vec<GpuHourlyRate> =
                self.check.question.snapshot.iter().filter_map(|o| o.price_per_gpu()).filter(|p| *p > asked).collect();
            caps.sort_unstable();
            caps.dedup();
            let fits = |cap: GpuHourlyRate| {
                let spec = self.with(|s| s.buying.max_usd_per_gpu_hour = Some(cap));
                !self.survey(&spec, 1).found.is_empty()
            };
            *caps.get(caps.partition_point(|cap| !fits(*cap)))?
        } else {
            all.iter().filter_map(|(_, o)| o.price_per_gpu()).min()?
        };
        Some(self.change("purchase.max_usd_per_gpu_hour", &usd(asked), &usd(least), |s| {
            s.buying.max_usd_per_gpu_hour = Some(least);
        }))
    }

    fn latencies(&self) -> Vec<Change> {
        (0..self.spec().constraints.latency.len()).filter_map(|i| self.latency(i)).collect()
    }

    fn latency(&self, i: usize) -> Option<Change> {
        let limit = self.spec().constraints.latency.get(i)?;
        let dropped = self.with(|s| {
            s.constraints.latency.remove(i);
        });
        let all = self.all(&dropped);
        if all.is_empty() {
            return None;
        }
        let least = all
            .iter()
            .filter_map(|(_, o)| {
                let from = Location { zone: None, ..o.key.location() };
                self.check.question.network.round_trip(&from, &limit.to).map(|t| t.ms)
            })
            .filter(|ms| !ms.is_nan())
            .min_by(f64::total_cmp);
        let name = format!("constraints.latency[{}].max_ms", crate::domain::text::inert(&limit.to.to_string()));
        Some(match least {
            Some(ms) => self.change(&name, &limit.max_ms, &ms, |s| {
                if let Some(limit) = s.constraints.latency.get_mut(i) {
                    limit.max_ms = ms;
                }
            }),
            None => Change { constraint: name, from: limit.max_ms.to_string(), to: NOT_SET.to_owned(), spec: dropped },
        })
    }

    /// The most nodes that find a place; more never fit where fewer do not.
    fn nodes(&self) -> Option<Change> {
        let asked = self.check.nodes;
        let fits = |n: u32| !self.survey(&self.with(|s| s.resources.nodes = n), 1).found.is_empty();
        if asked < 2 || !fits(1) {
            return None;
        }
        let (mut most, mut too_many) = (1, asked);
        while too_many - most > 1 {
            let middle = u32::midpoint(most, too_many);
            if fits(middle) {
                most = middle;
            } else {
                too_many = middle;
            }
        }
        Some(self.change("resources.nodes", &asked, &most, |s| s.resources.nodes = most))
    }

    fn combine_zones(&self) -> Option<Change> {
        (!self.spec().constraints.combine_zones && self.check.nodes > 1)
            .then(|| self.change("constraints.combine_zones", &false, &true, |s| s.constraints.combine_zones = true))
    }

    /// The earliest deadline that any place makes, to the second.
    fn deadline(&self) -> Option<Change> {
        let asked = self.spec().schedule.deadline?;
        let all = self.all(&self.with(|s| s.schedule.deadline = None));
        let mut end = all.iter().filter_map(|(_, o)| self.check.earliest_end(o)).min()?;
        let fits = |at: DateTime<Utc>| !self.survey(&self.with(|s| s.schedule.deadline = Some(at)), 1).found.is_empty();
        if self.spec().constraints.combine_zones {
            // A spread's end depends on its zones: close in on it from both sides, in whole seconds.
            let at = |seconds: i64| DateTime::from_timestamp(seconds, 0);
            let (mut late, mut early) = (asked.timestamp(), end.timestamp());
            let mut width = 3_600;
            while !fits(at(early)?) {
                late = early;
                early = early.checked_add(width)?;
                width = width.saturating_mul(2);
            }
            while early - late > 1 {
                let middle = i64::midpoint(late, early);
                if fits(at(middle)?) {
                    early = middle;
                } else {
                    late = middle;
                }
            }
            end = at(early)?;
        }
        let text = |at: DateTime<Utc>| at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
        Some(self.change("schedule.deadline", &text(asked), &text(end), |s| s.schedule.deadline = Some(end)))
    }
}

/// `6.88`: USD as a job file writes them, every digit that counts.
fn usd(rate: GpuHourlyRate) -> String {
    let text = format!("{}.{:06}", rate.micros() / 1_000_000, rate.micros().rem_euclid(1_000_000));
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}
