//! One simulated cloud behind the same seam as the real ones.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rustc_hash::{FxHashMap, FxHashSet};

use super::error::SimError;
use super::faults::{Call, Fault};
use super::latency;
use super::launch::{Launcher, world as world_time};
use super::market::{Listed, Market, Quota};
use super::noise::{between, keyed, numbered, unit};
use super::profile::Profile;
use super::state::State;
use super::world::Inner;
use crate::domain::observation::PriceStatement;
use crate::domain::{
    Availability, ErrorClass, Evidence, Instance, InstanceState, Mark, Observation, ProviderError, ProviderId,
    Purchase, QuotaRoom, Region,
};
use crate::provider::{
    Capabilities, Finding, FindingStatus, InstanceRef, LaunchRequest, Offerings, Operator, Provider, Result,
    Termination,
};

/// A region that is down stays so for ten minutes of world time.
const REGION_DOWN_MS: i64 = 600_000;
/// So few machines left, or fewer, count as limited.
const LIMITED: u32 = 2;
/// A simulated cloud.
pub struct SimCloud {
    world: Arc<Inner>,
    id: ProviderId,
    profile: Profile,
    capabilities: Capabilities,
}

impl SimCloud {
    pub(super) fn new(world: Arc<Inner>, id: &ProviderId) -> Self {
        let profile = Profile::of(id.as_str());
        let spot = world.market.of(id).any(|o| o.key.purchase == Purchase::Spot);
        let zones = world.market.of(id).any(|o| o.key.zone.is_some());
        Self { capabilities: profile.capabilities(spot, zones), id: id.clone(), profile, world }
    }

    /// The cloud's name of a call.
    const fn name(&self, call: Call) -> &'static str {
        let [offers, list, launch, terminate] = self.profile.calls;
        match call {
            Call::Offerings => offers,
            Call::Instances | Call::Describe | Call::FindByToken => list,
            Call::Launch => launch,
            Call::Terminate => terminate,
        }
    }

    fn error(&self, call: Call, class: ErrorClass, code: &str, text: impl Into<String>) -> ProviderError {
        ProviderError::new(class, &self.id, self.name(call), text).code(code)
    }

    /// Whether the world's file could be used; what it could not is unknown, not passing.
    fn lost(&self, call: Call, error: &SimError) -> ProviderError {
        self.error(call, ErrorClass::Unknown, "DemoWorld", error.to_string())
    }

    fn answer_lost(&self, call: Call, region: Option<&Region>) -> ProviderError {
        let mut error = self.error(call, ErrorClass::Transient, "504", "no answer within the time allowed");
        error.region = region.cloned();
        error
    }

    /// The start of every call: counted, made to wait, perhaps refused. Gives the fault that the call itself must do.
    async fn enter(&self, call: Call, region: Option<&Region>) -> Result<Option<Fault>> {
        let count = self.world.count(&self.id, call);
        let now = self.world.clock.now();
        let draws = keyed(self.world.seed, &[self.id.as_str(), self.name(call)]);
        let draws = numbered(numbered(draws, count.cast_signed()), now.timestamp_millis());
        let acts = matches!(call, Call::Launch | Call::Terminate);
        let longest = if acts { self.world.latency.act } else { self.world.latency.read };
        latency::pass(longest.mul_f64(between(draws, 0.25, 1.0))).await;

        let (planned, rates) = {
            let mut plan = self.world.faults.lock().unwrap_or_else(PoisonError::into_inner);
            (plan.strike(&self.id, call, region), plan.ordinary_rates())
        };
        // The first read of each kind in a session meets no chance: a single command shows the market and not our dice.
        let by_chance = || rates.of_read(call, draws, self.profile.throttled).filter(|_| !acts && count > 1);
        match planned.or_else(by_chance) {
            Some(Fault::Refuse { class, code, retry_after }) => {
                Err(self.refusal(call, region, class, &code, retry_after))
            }
            Some(Fault::Hang) => std::future::pending().await,
            other => Ok(other),
        }
    }

    fn refusal(
        &self,
        call: Call,
        region: Option<&Region>,
        class: ErrorClass,
        code: &str,
        retry_after: Option<Duration>,
    ) -> ProviderError {
        let mut error = self.error(call, class, code, format!("simulated fault: {class}"));
        error.region = region.cloned();
        error.retry_after = retry_after;
        error
    }

    /// The end of an act: its answer, unless a fault takes that away.
    async fn leave<T>(
        &self,
        call: Call,
        region: &Region,
        done: std::result::Result<(Option<Result<T>>, Option<Fault>), SimError>,
    ) -> Result<T> {
        match done {
            Err(e) => Err(self.lost(call, &e)),
            Ok((_, Some(Fault::Refuse { class, code, retry_after }))) => {
                Err(self.refusal(call, Some(region), class, &code, retry_after))
            }
            Ok((_, Some(Fault::LoseAnswer | Fault::Late(_)))) => Err(self.answer_lost(call, Some(region))),
            Ok((_, Some(Fault::HangAfter))) => std::future::pending().await,
            Ok((Some(answer), _)) => answer,
            Ok((None, _)) => Err(self.answer_lost(call, Some(region))),
        }
    }

    /// The machines that a read shows which wants those that `fit`.
    async fn shown(
        &self,
        call: Call,
        fault: Option<Fault>,
        fit: impl Fn(&Instance) -> bool + Send + 'static,
    ) -> Result<Vec<Instance>> {
        let id = self.id.clone();
        let seen_fault = fault.clone();
        let shown = self.world.read(move |inner, state| {
            let now = inner.clock.now();
            let at = match &seen_fault {
                Some(Fault::Lag(by)) => now - world_time(*by),
                Some(Fault::Miss) => return Vec::new(),
                _ => now,
            };
            let ours = state.machines.iter().filter(|m| m.offer.provider == id && m.launched_at <= at);
            ours.filter_map(|m| m.seen(at)).filter(|m| fit(m)).collect()
        });
        let mut shown = shown.await.map_err(|e| self.lost(call, &e))?;
        match fault {
            Some(Fault::Say(word)) => {
                for machine in &mut shown {
                    machine.state = InstanceState::Unknown(word.clone());
                }
            }
            Some(Fault::LoseAnswer | Fault::Late(_)) => return Err(self.answer_lost(call, None)),
            Some(Fault::HangAfter) => std::future::pending().await,
            _ => {}
        }
        Ok(shown)
    }

    /// Regions of `offerings` that do not answer, and why.
    fn regions_down(&self, now: DateTime<Utc>) -> FxHashMap<Region, ProviderError> {
        let regions: FxHashSet<&Region> = self.world.market.of(&self.id).map(|o| &o.key.region).collect();
        let mut regions: Vec<&Region> = regions.into_iter().collect();
        regions.sort();
        let window = now.timestamp_millis().div_euclid(REGION_DOWN_MS);
        let mut plan = self.world.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = plan.ordinary_rates().region_down;
        let mut down = FxHashMap::default();
        for region in regions {
            let draw = keyed(self.world.seed, &["region-down", self.id.as_str(), region.as_str()]);
            let by_chance = unit(numbered(draw, window)) < rate;
            let fault = plan.strike_region(&self.id, region);
            let (class, code, retry_after) = match (fault, by_chance) {
                (Some(Fault::Refuse { class, code, retry_after }), _) => (class, code, retry_after),
                (Some(_), _) | (None, true) => (ErrorClass::Transient, "503".to_owned(), None),
                (None, false) => continue,
            };
            let error = self.refusal(Call::Offerings, Some(region), class, &code, retry_after);
            down.insert(region.clone(), error);
        }
        down
    }
}

/// What our machines at one cloud take up.
#[derive(Debug, Default)]
struct Holdings {
    /// Ten-thousandths of a GPU by pool.
    pools: FxHashMap<usize, u64>,
    /// By region and quota code.
    quotas: BTreeMap<(Region, String), f64>,
}

impl Holdings {
    fn of(state: &State, market: &Market, provider: &ProviderId, now: DateTime<Utc>) -> Self {
        let mut all = Self::default();
        for machine in state.machines.iter().filter(|m| m.offer.provider == *provider && m.holds(now)) {
            if let Some(offer) = market.get(&machine.offer) {
                *all.pools.entry(offer.pool).or_default() += u64::from(machine.gpus.ten_thousandths());
            }
            if let Some((code, amount)) = &machine.quota {
                *all.quotas.entry((machine.offer.region.clone(), code.clone())).or_default() += amount;
            }
        }
        all
    }

    fn used(&self, region: &Region, code: &str) -> f64 {
        // A handful of entries at most: a scan needs no key to be made. The sum of none is -0.0, which `abs` mends.
        self.quotas.iter().filter(|((r, c), _)| r == region && c == code).map(|(_, n)| n).sum::<f64>().abs()
    }
}

/// What the cloud says of one offer.
fn observe(market: &Market, offer: &Listed, holdings: &Holdings, now: DateTime<Utc>) -> Observation {
    let held = holdings.pools.get(&offer.pool).copied().unwrap_or(0);
    let stock = market.stock(offer, held, now.timestamp_millis());
    let price = Market::price(offer, stock.missing, now.timestamp_millis());
    let availability = match stock.machines {
        0 => Availability::None,
        n if n <= LIMITED => Availability::Limited,
        _ => Availability::Available,
    };
    let interruptions = market.interruptions_per_day(offer, held);
    Observation {
        key: offer.key.clone(),
        at: now,
        shape: offer.shape.clone(),
        price: Some(price.map_or(PriceStatement::Unpriced, PriceStatement::Live)),
        availability: Some((availability, Evidence::Simulated)),
        capacity: Some(stock.machines),
        quota: offer.quota.as_ref().map(|Quota { code, limit, needed }| QuotaRoom {
            code: code.clone(),
            limit: *limit,
            used: holdings.used(&offer.key.region, code),
            per_instance: *needed,
        }),
        interruptions_per_day: Some(interruptions),
    }
}

#[async_trait]
impl Provider for SimCloud {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn endpoint(&self) -> Option<String> {
        Some(format!("simulated (seed {})", self.world.seed))
    }

    async fn check(&self) -> Vec<Finding> {
        let ok = |check: &str, detail: String| Finding {
            check: check.to_owned(),
            status: FindingStatus::Ok,
            detail,
            remedy: String::new(),
        };
        let offers = self.world.market.of(&self.id).count();
        let world = match self.world.read(|inner, state| (inner.clock.now(), state.machines.len())).await {
            Ok((now, machines)) => ok(
                "world",
                format!(
                    "seed {}, {} at {}x speed; {offers} offers, {machines} machines remembered",
                    self.world.seed,
                    now.format("%Y-%m-%d %H:%M:%SZ"),
                    self.world.clock.speed()
                ),
            ),
            Err(e) => Finding {
                check: "world".to_owned(),
                status: FindingStatus::Fail,
                detail: e.to_string(),
                remedy: "gpudeck --demo reset".to_owned(),
            },
        };
        vec![ok("credentials", "simulated: none needed".to_owned()), world]
    }

    async fn account(&self) -> Result<String> {
        // The seed alone does not change: a world that is reset is another one, and its ledger is, too.
        Ok(format!("simulated, seed {}", self.world.seed))
    }

    async fn offerings(&self) -> Result<Offerings> {
        let fault = self.enter(Call::Offerings, None).await?;
        if let Some(Fault::LoseAnswer | Fault::Late(_)) = fault {
            return Err(self.answer_lost(Call::Offerings, None));
        }
        if let Some(Fault::HangAfter) = fault {
            std::future::pending::<()>().await;
        }
        let id = self.id.clone();
        let holdings = self.world.read(move |inner, state| {
            let now = inner.clock.now();
            (now, Holdings::of(state, &inner.market, &id, now))
        });
        let (now, holdings) = holdings.await.map_err(|e| self.lost(Call::Offerings, &e))?;
        let down = self.regions_down(now);
        let market = &self.world.market;
        let answering = market.of(&self.id).filter(|o| down.is_empty() || !down.contains_key(&o.key.region));
        let observations: Vec<Observation> = answering.map(|o| observe(market, o, &holdings, now)).collect();
        let mut failed: Vec<ProviderError> = down.into_values().collect();
        failed.sort_by(|a, b| a.region.cmp(&b.region));
        Ok(Offerings { observations, complete: failed.is_empty(), failed, skipped: BTreeMap::new() })
    }

    async fn instances(&self, owner: &str) -> Result<Vec<Instance>> {
        let fault = self.enter(Call::Instances, None).await?;
        let owner = owner.to_owned();
        self.shown(Call::Instances, fault, move |m| m.mark.as_ref().is_some_and(|mark| mark.owner == owner)).await
    }

    async fn describe(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        let fault = self.enter(Call::Describe, ids.first().map(|i| &i.location.region)).await?;
        let ids = ids.to_vec();
        // A machine is known in its own region only.
        let asked = move |m: &Instance| ids.iter().any(|i| i.id == m.id && i.location.region == m.location.region);
        self.shown(Call::Describe, fault, asked).await
    }

    async fn find_by_token(&self, region: &Region, token: &str, mark: &Mark) -> Result<Vec<Instance>> {
        let fault = self.enter(Call::FindByToken, Some(region)).await?;
        let (region, token, mark) = (region.clone(), token.to_owned(), mark.clone());
        let by_token = self.profile.no_token.is_none();
        let wanted = move |m: &Instance| {
            let same = if by_token { m.token.as_deref() == Some(&*token) } else { m.mark.as_ref() == Some(&mark) };
            same && m.location.region == region
        };
        self.shown(Call::FindByToken, fault, wanted).await
    }
}

#[async_trait]
impl Operator for SimCloud {
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance> {
        let region = request.offer.region.clone();
        let fault = self.enter(Call::Launch, Some(&region)).await?;
        if request.offer.provider != self.id {
            let text = format!("{} is not an offer of {}", request.offer, self.id);
            return Err(self.error(Call::Launch, ErrorClass::Invalid, "Unsupported", text));
        }
        let (request, profile) = (request.clone(), self.profile);
        let done = self.world.update(move |inner, state| {
            let now = inner.clock.now();
            let rates = inner.rates();
            let draws = numbered(keyed(inner.seed, &["launch"]), state.begin_act(now).cast_signed());
            let fault = fault.or_else(|| rates.of_launch(draws, profile.throttled));
            if matches!(fault, Some(Fault::Refuse { .. })) {
                return (None, fault);
            }
            let weather = inner.weather;
            let launcher = Launcher { market: &inner.market, profile: &profile, seed: inner.seed, weather, rates, now };
            (Some(launcher.launch(state, &request, draws, fault.as_ref())), fault)
        });
        self.leave(Call::Launch, &region, done.await).await
    }

    async fn terminate(&self, target: &InstanceRef) -> Result<Termination> {
        let region = target.location.region.clone();
        let fault = self.enter(Call::Terminate, Some(&region)).await?;
        let (id, target, profile) = (self.id.clone(), target.clone(), self.profile);
        let done = self.world.update(move |inner, state| {
            let now = inner.clock.now();
            let draws = numbered(keyed(inner.seed, &["terminate"]), state.begin_act(now).cast_signed());
            let fault = fault.or_else(|| inner.rates().of_terminate(draws, profile.throttled));
            if matches!(fault, Some(Fault::Refuse { .. })) {
                return (None, fault);
            }
            let known = state
                .machines
                .iter_mut()
                .find(|m| m.id == target.id && m.offer.provider == id && m.offer.region == target.location.region);
            let answer = match known {
                Some(machine) if machine.gone_at(now).is_none() && machine.visible_from <= now => {
                    if fault == Some(Fault::Ignore) {
                        Termination::Accepted(InstanceState::Terminating)
                    } else {
                        machine.terminated_at.get_or_insert(now);
                        machine.forced = None;
                        Termination::Accepted(machine.state(now))
                    }
                }
                _ => Termination::AlreadyGone,
            };
            (Some(Ok(answer)), fault)
        });
        self.leave(Call::Terminate, &region, done.await).await
    }
}
