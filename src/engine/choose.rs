//! Choosing a place: on the market as it is now, without the places that failed lately, within what was confirmed.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;

use super::driver::{Case, Driver, Next, event, steps};
use super::feed::Pace;
use super::reaction;
use super::shared::{Shared, world};
use super::start_script::start_script;
use super::token;
use crate::config::limits::EngineLimits;
use crate::domain::text::inert;
use crate::domain::{
    ErrorClass, EventKind, FeedHealth, HourlyRate, JobSpec, JobState, Location, Offer, OfferKey, OperationId,
    OperationKind, Plan, PlanId, ProviderId,
};
use crate::placement::plans::{self, Holding, Progress};
use crate::placement::{Candidate, Context, Cooling, Ranking, Rules, place_by};
use crate::store::{AttemptRow, IntentRow, IntentState, OperationRow, Phase, StoreError, Tx};

/// Candidates to look through for one that is allowed. More than there are zones of any one machine.
const LOOK_THROUGH: usize = 256;

impl Shared {
    /// Rank all places on the newest market, those too where nothing can be started now: to look at, not to act on.
    pub(crate) fn rank_all(&self, spec: &JobSpec, now: DateTime<Utc>, top: usize) -> Ranking {
        let snapshot = self.state.borrow().market.clone();
        let context = Context { snapshot: &snapshot, network: &self.network, now, cooling: &[], current: None };
        place_by(spec, &context, self.rules(), top)
    }

    /// Why nothing can be started at a provider, whatever its price list says; `None` where it can.
    pub(crate) fn cannot_launch(&self, provider: &ProviderId) -> Option<String> {
        match self.providers.iter().find(|c| c.watch.id() == provider) {
            Some(connected) if connected.act.is_some() || self.read_only => None,
            Some(_) => Some(format!("{provider} can only be watched, not launched at")),
            None => {
                let why = self.absent.iter().find(|a| a.provider == *provider).map_or("not connected", |a| &a.reason);
                Some(format!("nothing can be launched at {provider}: {}", inert(why)))
            }
        }
    }

    /// Why a start script of so many bytes is not taken; found out before anything is confirmed.
    fn too_long(&self, provider: &ProviderId, bytes: usize) -> Option<String> {
        let connected = self.providers.iter().find(|c| c.watch.id() == provider)?;
        let most = connected.watch.capabilities().start_script_bytes.filter(|most| bytes > *most)?;
        Some(format!("the job's start script (command and environment) has {bytes} bytes; {provider} takes {most}"))
    }

    /// Rank places on the newest market, at the providers where something can be started.
    pub(crate) fn rank_with(
        &self,
        spec: &JobSpec,
        cooling: &[Cooling],
        current: Option<&Location>,
        now: DateTime<Utc>,
        top: usize,
    ) -> Ranking {
        let snapshot = self.state.borrow().market.clone();
        let context = Context { snapshot: &snapshot, network: &self.network, now, cooling, current };
        // Of all nodes the last has the longest number in it.
        let script = start_script(spec, spec.resources.nodes.saturating_sub(1)).map_or(0, |text| text.len());
        let forbid = |offer: &Offer| {
            let provider = &offer.key.provider;
            self.cannot_launch(provider).or_else(|| self.too_long(provider, script))
        };
        place_by(spec, &context, Rules { forbid: Some(&forbid), ..self.rules() }, top)
    }

    /// What placement keeps to: facts are as old as a world's pace lets them be.
    pub(crate) fn rules(&self) -> Rules<'static> {
        let expired_after = world(Pace::of(&self.limits, self.clock.speed()).expired_after());
        Rules { expired_after, ..Rules::default() }
    }

    /// Feeds of providers that the job allows and that do not answer, in words: a fault of theirs is not "no capacity".
    pub(crate) fn feed_faults(&self, spec: &JobSpec) -> Vec<String> {
        let allowed = |p: &ProviderId| spec.constraints.providers.is_empty() || spec.constraints.providers.contains(p);
        let state = self.state.borrow();
        let faults = state.market.feeds().iter().filter(|f| allowed(&f.provider)).filter_map(|f| match f.health {
            FeedHealth::Live | FeedHealth::Partial | FeedHealth::Published | FeedHealth::NoCredentials => None,
            health => {
                let why = f.error.as_ref().map_or_else(|| inert(&f.detail).into_owned(), ToString::to_string);
                Some(format!("{}: {} ({why})", f.provider, health.label()))
            }
        });
        faults.collect()
    }

    /// The spec with its place fixed to where the operator said.
    pub(crate) fn aimed(spec: &JobSpec, target: Option<&Location>) -> JobSpec {
        let mut spec = spec.clone();
        if let Some(target) = target {
            spec.constraints.regions = vec![target.clone()];
        }
        spec
    }
}

/// The most that one machine may cost an hour: the job's own limit, else the price seen now and the headroom.
pub(crate) fn node_limit(spec: &JobSpec, offer: &Offer, limits: &EngineLimits) -> Option<HourlyRate> {
    match spec.buying.max_usd_per_gpu_hour {
        Some(limit) => {
            let parts = i128::from(offer.shape.accelerators.ten_thousandths());
            let micros = i128::from(limit.micros()) * parts / 10_000;
            Some(HourlyRate::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)))
        }
        None => offer.price.map(|price| with_headroom(price, limits)),
    }
}

/// A price and the headroom on it.
pub(crate) fn with_headroom(price: HourlyRate, limits: &EngineLimits) -> HourlyRate {
    let micros = i128::from(price.micros()) * i128::from(100 + limits.headroom_percent) / 100;
    HourlyRate::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// The most that one machine of a candidate may cost: its own limit, and its part of what all may cost together.
fn most(
    spec: &JobSpec,
    offer: &Offer,
    candidate: &Candidate,
    ceiling: Option<HourlyRate>,
    limits: &EngineLimits,
) -> Option<HourlyRate> {
    let own = node_limit(spec, offer, limits);
    let (Some(ceiling), Some(price)) = (ceiling, offer.price) else { return own };
    let all = i128::from(candidate.usd_per_hour.micros()).max(1);
    let part = i128::from(price.micros()) * i128::from(ceiling.micros()) / all;
    let part = HourlyRate::from_micros(i64::try_from(part).unwrap_or(i64::MAX));
    Some(own.map_or(part, |own| own.min(part)))
}

/// The intents of one attempt of an operation at a candidate, a row a node, each with its token.
pub(crate) fn intents(
    spec: &JobSpec,
    candidate: &Candidate,
    wished: &OperationRow,
    now: DateTime<Utc>,
    limits: &EngineLimits,
) -> Vec<IntentRow> {
    let (operation, job, attempt) = (&wished.id, &wished.job, wished.attempt);
    let mut node = 0;
    let mut rows = Vec::new();
    for group in &candidate.nodes {
        for _ in 0..group.count {
            let token = token::token(operation, attempt, node, &group.offer.key);
            rows.push(IntentRow {
                name: token::name(&token),
                token,
                operation: operation.clone(),
                job: job.clone(),
                attempt,
                node,
                offer: group.offer.key.clone(),
                shape: group.offer.shape.clone(),
                max_price: most(spec, &group.offer, candidate, wished.ceiling, limits),
                account: None,
                state: IntentState::Intended,
                intended_at: now,
                sent_at: None,
                tries: 0,
                unknown_since: None,
                instance: None,
                location: None,
                bound_price: group.offer.price,
                accrued: crate::domain::Money::ZERO,
                accrued_until: None,
                seen: None,
                observed_at: None,
                absent_since: None,
                notice_at: None,
                terminate_at: None,
                terminate_by: None,
                alerted: 0,
                gone_at: None,
                error: None,
            });
            node += 1;
        }
    }
    rows
}

/// Write an attempt down: its row and its intents.
pub(crate) async fn write_attempt(
    tx: &mut Tx,
    operation: &OperationId,
    attempt: u32,
    rows: &[IntentRow],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    if let Some(first) = rows.first() {
        let attempt = AttemptRow {
            attempt,
            offer: first.offer.clone(),
            result: String::new(),
            error: None,
            started_at: now,
            ended_at: None,
        };
        tx.insert_attempt(operation, &attempt).await?;
    }
    for row in rows {
        tx.insert_intent(row).await?;
    }
    Ok(())
}

/// What intents hold, grouped by place, machine and price, for plans.
pub(crate) fn holdings<'a>(intents: impl Iterator<Item = &'a IntentRow>) -> Vec<Holding> {
    let mut held: Vec<Holding> = Vec::new();
    for intent in intents.filter(|i| i.state.may_bill()) {
        let one = Holding {
            location: intent.location.clone().unwrap_or_else(|| intent.offer.location()),
            instance_type: intent.offer.instance_type.clone(),
            purchase: Some(intent.offer.purchase),
            rate: intent.bound_price,
            count: 1,
        };
        let same = held.iter_mut().find(|h| Holding { count: 1, ..(*h).clone() } == one);
        match same {
            Some(known) => known.count += 1,
            None => held.push(one),
        }
    }
    held
}

/// What became of an operation's attempts, counted.
fn tally(attempts: &[AttemptRow]) -> String {
    let class = |a: &&AttemptRow| a.error.as_ref().map(|e| e.class);
    let sold_out = attempts.iter().filter(|a| class(a) == Some(ErrorClass::NoCapacity)).count();
    let quota = attempts.iter().filter(|a| class(a) == Some(ErrorClass::Quota)).count();
    let counts =
        [(sold_out, "sold out"), (quota, "out of quota"), (attempts.len() - sold_out - quota, "failed otherwise")];
    let told: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    told.join(", ")
}

/// Why nothing fits, in a sentence or two.
pub(crate) fn why_nothing(
    ranking: &Ranking,
    faults: &[String],
    over_ceiling: Option<HourlyRate>,
    sold_out: usize,
) -> String {
    let mut parts = Vec::new();
    if sold_out > 0 {
        parts.push(format!("{sold_out} that fit were sold out when they were asked"));
    }
    if let Some(cheapest) = over_ceiling {
        parts.push(format!("what fits costs {cheapest} or more, above what was confirmed"));
    }
    parts.extend(ranking.rejected.iter().take(4).map(|r| format!("{} offers: {}", r.offers, inert(&r.detail))));
    if parts.is_empty() {
        parts.push("no offers are known".to_owned());
    }
    if !faults.is_empty() {
        parts.push(format!("not answering: {}", faults.join("; ")));
    }
    parts.join("; ")
}

impl Driver {
    /// Choose where to try next and write it down, or say why there is nowhere.
    pub(crate) async fn choose(&self, case: &Case) -> Result<Next, StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut tx = shared.ledger.read().await?;
        let cooling = tx.cooling(now).await?;
        let attempts = tx.attempts(&case.operation.id).await?;
        drop(tx);
        let kind = case.operation.kind;
        if kind == OperationKind::Recover
            && let Some(last) = attempts.last()
        {
            // A recovery goes on for ever, but not faster and faster.
            let due = last.ended_at.unwrap_or(last.started_at)
                + world(reaction::backoff(last.attempt, None, &shared.limits, 0.5));
            if now < due {
                self.waits_for(case, "the next try at another place").await?;
                return Ok(Next::Wait(shared.real((due - now).to_std().unwrap_or_default())));
            }
        }
        shared.refresh_if_old().await;
        let now = shared.now();
        let current = Self::current_place(case);
        let spec = Shared::aimed(&case.job.spec, case.operation.target.as_ref());
        let ranking = shared.rank_with(&spec, &cooling, current.as_ref(), now, LOOK_THROUGH);
        let refused = self.refusing(&attempts, now);
        let mut over = None;
        // A launch or a move asks each place once: it ends when there are no more. A recovery goes round for ever.
        let mut again = 0;
        let asked: Vec<BTreeSet<&OfferKey>> = match kind {
            OperationKind::Recover => Vec::new(),
            _ => attempts.iter().filter(|a| case.was_sold_out(a)).map(|a| case.offers_of(a)).collect(),
        };
        let allowed: Vec<&Candidate> = ranking
            .candidates
            .iter()
            .filter(|candidate| {
                if case.operation.ceiling.is_some_and(|ceiling| candidate.usd_per_hour > ceiling) {
                    let cheapest = over.get_or_insert(candidate.usd_per_hour);
                    *cheapest = (*cheapest).min(candidate.usd_per_hour);
                    return false;
                }
                // The same machines in the same places; of a gang over zones another zone may do.
                let places: BTreeSet<&OfferKey> = candidate.nodes.iter().map(|g| &g.offer.key).collect();
                if asked.contains(&places) {
                    again += 1;
                    return false;
                }
                let moves = kind != OperationKind::Migrate
                    || candidate.nodes.iter().any(|g| case.earlier().all(|i| i.offer != g.offer.key));
                moves
                    && candidate.nodes.iter().all(|g| {
                        let provider = &g.offer.key.provider;
                        shared.acts(provider) && !refused.contains(provider) && !g.offer.stale
                    })
            })
            .collect();
        // Round after round: places that this operation has not tried come first, then the one that it tried longest ago.
        // By cool-downs alone the cheapest would be tried again and again, and a dearer one that has room never.
        let last_try = |c: &&&Candidate| {
            let of = |offer: &OfferKey| attempts.iter().rev().find(|a| &a.offer == offer).map_or(0, |a| a.attempt);
            c.nodes.iter().map(|g| of(&g.offer.key)).max()
        };
        let chosen = allowed.iter().min_by_key(last_try).copied();
        let Some(candidate) = chosen else {
            let why = why_nothing(&ranking, &shared.feed_faults(&case.job.spec), over, again);
            return self.nowhere(case, &attempts, &why, over).await;
        };
        *self.dry_tries.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = 0;
        self.write_choice(case, candidate, now).await
    }

    /// Providers that refused our credentials in this operation a short while ago: they are stopped, and said so.
    fn refusing(&self, attempts: &[AttemptRow], now: DateTime<Utc>) -> Vec<ProviderId> {
        let lately = now - world(self.shared.limits.backoff_max * 2);
        attempts
            .iter()
            .filter(|a| {
                a.error.as_ref().is_some_and(|e| e.class == ErrorClass::Auth) && a.ended_at.is_none_or(|at| at > lately)
            })
            .map(|a| a.offer.provider.clone())
            .collect()
    }

    fn current_place(case: &Case) -> Option<Location> {
        match case.operation.kind {
            OperationKind::Migrate => case.earlier().next().map(|i| i.offer.location()),
            // Its checkpoint lies where it ran last.
            OperationKind::Recover => {
                case.intents.iter().rev().find(|i| i.instance.is_some()).map(|i| i.offer.location())
            }
            OperationKind::Launch | OperationKind::Terminate => None,
        }
    }

    /// Nothing fits: a recovery waits and tries again for ever, anything else gives up with the reasons.
    async fn nowhere(
        &self,
        case: &Case,
        attempts: &[AttemptRow],
        why: &str,
        over: Option<HourlyRate>,
    ) -> Result<Next, StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        if case.operation.kind == OperationKind::Recover {
            let tries = {
                let mut tries = self.dry_tries.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                *tries += 1;
                *tries - 1
            };
            if case.job.state == JobState::Placing {
                let mut tx = self.begin().await?;
                if let Some(mut job) = tx.job(&case.job.id).await? {
                    tx.move_job(&mut job, JobState::Preempted, Some(why.to_owned()), now).await?;
                }
                shared.commit(tx, Some(&case.job.id)).await?;
            }
            self.note(case, &format!("no place to go on: {why}")).await?;
            if let Some((cheapest, ceiling)) = over.zip(case.operation.ceiling) {
                let text = format!(
                    "stays down: what fits costs {cheapest} or more by now, and {ceiling} was agreed to; terminate it and \
                     launch it again to agree to more"
                );
                let data = json!({ "usd_per_hour": cheapest, "ceiling_usd_per_hour": ceiling });
                let who = (&case.job.id, case.job.name.as_str());
                let plan = Some(&case.operation.plan);
                let alert = event(now, &case.operation.actor, EventKind::Alert, who, plan, text, data);
                shared.alert(&format!("ceiling:{}", case.job.id), alert).await?;
            }
            self.waits_for(case, "a place that fits").await?;
            let wait = reaction::backoff(tries, None, &shared.limits, shared.ids.fraction());
            return Ok(Next::Wait(shared.real(wait)));
        }
        let mut operation = case.operation.clone();
        operation.phase = Phase::Quitting;
        operation.reason = if operation.reason.is_empty() {
            why.to_owned()
        } else {
            format!("{}; the last: {}; and nowhere else: {why}", tally(attempts), operation.reason)
        };
        let mut tx = self.begin().await?;
        tx.update_operation(&operation, &self.lease).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Again)
    }

    async fn write_choice(&self, case: &Case, candidate: &Candidate, now: DateTime<Utc>) -> Result<Next, StoreError> {
        let shared = &self.shared;
        let mut operation = case.operation.clone();
        operation.attempt += 1;
        operation.phase = Phase::Launching;
        let plan = self.plan_for(case, candidate, now);
        operation.plan = plan.id.clone();
        operation.steps = steps(&plan, operation.kind, Some(operation.phase));
        "the provider to accept".clone_into(&mut operation.waiting_for);
        let rows = intents(&case.job.spec, candidate, &operation, now, &shared.limits);
        let place = rows.first().map_or_else(String::new, |r| inert(&r.offer.to_string()).into_owned());
        let mut tx = self.begin().await?;
        tx.insert_plan(&plan, &case.job.id).await?;
        write_attempt(&mut tx, &operation.id, operation.attempt, &rows, now).await?;
        if operation.kind == OperationKind::Recover {
            let before = operation.attempt.saturating_sub(shared.limits.attempts_kept);
            tx.prune_attempts(&operation.id, before).await?;
        }
        tx.update_operation(&operation, &self.lease).await?;
        if let Some(mut job) = tx.job(&case.job.id).await? {
            job.plan = Some(plan.id.clone());
            if operation.kind == OperationKind::Migrate {
                tx.update_job(&mut job).await?;
            } else {
                if job.state == JobState::Preempted {
                    tx.move_job(&mut job, JobState::Placing, None, now).await?;
                }
                tx.move_job(&mut job, JobState::Starting, None, now).await?;
            }
        }
        let text = format!("attempt {}: {} x {place} at {}", operation.attempt, rows.len(), candidate.usd_per_hour);
        let data = json!({
            "operation": operation.id, "attempt": operation.attempt, "nodes": rows.len(),
            "usd_per_hour": candidate.usd_per_hour, "offer": rows.first().map(|r| &r.offer),
        });
        let who = (&case.job.id, case.job.name.as_str());
        tx.append_event(event(now, &operation.actor, EventKind::Note, who, Some(&plan.id), text, data)).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Again)
    }

    fn plan_for(&self, case: &Case, candidate: &Candidate, now: DateTime<Utc>) -> Plan {
        let id = PlanId::from(self.shared.ids.next(now));
        let mut plan = if case.operation.kind == OperationKind::Migrate {
            let from = holdings(case.earlier());
            let progress = Progress { running_since: case.job.running_since, last_checkpoint: None };
            let network = Arc::as_ref(&self.shared.network);
            plans::migrate(&case.job.spec, &case.job.id, (&from, progress), candidate, network, id, now)
        } else {
            plans::launch(&case.job.spec, candidate, id, now)
        };
        plan.kind = case.operation.kind;
        plan.job = Some(case.job.id.clone());
        plan
    }
}
