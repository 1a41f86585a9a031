//! How a launch is decided, within one step that nobody can interrupt: token, quota, stock, price, then the machine.

use std::time::Duration as StdDuration;

use chrono::{DateTime, Duration, Utc};

use super::faults::{Fault, Rates};
use super::machine::Machine;
use super::market::{Listed, Market, Quota, Weather};
use super::noise::{between, keyed, mix, unit};
use super::profile::Profile;
use super::state::State;
use crate::domain::{ErrorClass, HourlyRate, Instance, InstanceState, ProviderError, Purchase, Region};
use crate::provider::LaunchRequest;

/// Seconds that a machine takes to go, least and most.
const WINDING_SECONDS: (f64, f64) = (20.0, 60.0);
/// Longest token that the trait allows.
const LONGEST_TOKEN: usize = 64;

/// What a launch is decided by.
pub(super) struct Launcher<'a> {
    pub(super) market: &'a Market,
    pub(super) profile: &'a Profile,
    pub(super) seed: u64,
    pub(super) weather: Weather,
    pub(super) rates: Rates,
    pub(super) now: DateTime<Utc>,
}

/// GPUs (in ten-thousandths) that our machines hold in a pool.
pub(super) fn held_in(state: &State, market: &Market, pool: usize, now: DateTime<Utc>) -> u64 {
    state
        .machines
        .iter()
        .filter(|m| m.holds(now) && market.get(&m.offer).is_some_and(|o| o.pool == pool))
        .map(|m| u64::from(m.gpus.ten_thousandths()))
        .sum()
}

/// How much of a quota our machines use.
fn quota_used(state: &State, provider: &str, region: &Region, code: &str, now: DateTime<Utc>) -> f64 {
    let same = |m: &&Machine| m.offer.provider == *provider && m.offer.region == *region && m.holds(now);
    let counted = state.machines.iter().filter(same).filter_map(|m| m.quota.as_ref());
    counted.filter(|(c, _)| c == code).map(|(_, n)| n).sum()
}

impl Launcher<'_> {
    fn error(&self, request: &LaunchRequest, class: ErrorClass, code: &str, text: impl Into<String>) -> ProviderError {
        let [_, _, launch, _] = self.profile.calls;
        let mut error = ProviderError::new(class, &request.offer.provider, launch, text).code(code);
        error.region = Some(request.offer.region.clone());
        if class == ErrorClass::NoCapacity {
            error.zone.clone_from(&request.offer.zone);
        }
        error
    }

    fn checked<'m>(&'m self, request: &LaunchRequest) -> Result<&'m Listed, ProviderError> {
        let invalid = |code: &str, text: String| Err(self.error(request, ErrorClass::Invalid, code, text));
        let sound = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if request.token.is_empty() || request.token.len() > LONGEST_TOKEN || !request.token.chars().all(sound) {
            return invalid("InvalidToken", "the token is not 1 to 64 ASCII letters, digits and '-'".into());
        }
        if request.shape.instance_type != request.offer.instance_type {
            return invalid("InvalidShape", "shape and offer name two instance types".into());
        }
        match self.market.get(&request.offer) {
            Some(listed) if request.offer.purchase != Purchase::Reserved => Ok(listed),
            _ => invalid("Unsupported", format!("{} is not offered", request.offer)),
        }
    }

    /// Decide, and write the machine down. `draws` are the act's own; `fault` is one that the launch itself must do.
    pub(super) fn launch(
        &self,
        state: &mut State,
        request: &LaunchRequest,
        draws: u64,
        fault: Option<&Fault>,
    ) -> Result<Instance, ProviderError> {
        let now = self.now;
        let listed = self.checked(request)?;
        if let Some(answer) = self.replay(state, request) {
            return answer;
        }
        let (provider, region) = (request.offer.provider.as_str(), &request.offer.region);

        let holding = state.machines.iter().filter(|m| m.offer.provider == *provider && m.holds(now)).count();
        if let Some(limit) = self.profile.account_machines.filter(|limit| holding >= *limit as usize) {
            let text = format!("the account may hold {limit} machines, and holds {holding}");
            return Err(self.error(request, ErrorClass::Quota, self.profile.over_quota, text));
        }
        if let Some(Quota { code, limit, needed }) = &listed.quota {
            let used = quota_used(state, provider, region, code, now);
            if used + needed > *limit {
                let text = format!("quota {code} in {region}: limit {limit}, used {used}, needed {needed}");
                return Err(self.error(request, ErrorClass::Quota, self.profile.over_quota, text));
            }
        }

        let held = held_in(state, self.market, listed.pool, now);
        let stock = self.market.stock(listed, held, now.timestamp_millis());
        let Some(price) = Market::price(listed, stock.missing, now.timestamp_millis()) else {
            let text = format!("{} is not sold by the hour", request.offer);
            return Err(self.error(request, ErrorClass::Invalid, "Unsupported", text));
        };
        if stock.machines == 0 || unit(mix(draws ^ 0x11)) < self.rates.outrun {
            let text = format!("no {} left in {}", request.offer.instance_type, request.offer.location());
            return Err(self.error(request, ErrorClass::NoCapacity, self.profile.no_capacity, text));
        }
        if let Some(limit) = request.max_price.filter(|limit| price > *limit) {
            let text = format!("the price is {price:.4}, above the limit of {limit:.4}");
            return Err(self.error(request, ErrorClass::NoCapacity, self.profile.price_above, text));
        }

        let machine = self.made(request, listed, held, price, draws, fault);
        let instance = machine.instance(now);
        state.machines.push(machine);
        Ok(instance)
    }

    /// What a token that was used before gives: the machine made then, or the refusals that EC2 has for the same token
    /// with other parameters and for a machine that has ended since. Tokens are a region's own.
    fn replay(&self, state: &State, request: &LaunchRequest) -> Option<Result<Instance, ProviderError>> {
        if self.profile.no_token.is_some() {
            return None;
        }
        let here = |m: &&Machine| m.offer.provider == request.offer.provider && m.offer.region == request.offer.region;
        let before = state.machines.iter().filter(here).find(|m| m.token == request.token)?;
        let conflict = |code, text: &str| Some(Err(self.error(request, ErrorClass::Conflict, code, text)));
        if before.offer != request.offer || before.mark != request.mark {
            return conflict("IdempotentParameterMismatch", "the token was used with other parameters");
        }
        if before.state(self.now) == InstanceState::Gone {
            return conflict("IdempotentInstanceTerminated", "the machine of this token has ended");
        }
        Some(Ok(before.instance(self.now)))
    }

    fn made(
        &self,
        request: &LaunchRequest,
        listed: &Listed,
        held: u64,
        price: HourlyRate,
        draws: u64,
        fault: Option<&Fault>,
    ) -> Machine {
        let now = self.now;
        let after = |seconds: f64| now + Duration::milliseconds((seconds * 1000.0) as i64);
        let (least, most) = self.profile.boot_seconds;
        let boot = between(mix(draws ^ 0x12), least, most);
        let fails = matches!(fault, Some(Fault::FailLater)) || unit(mix(draws ^ 0x13)) < self.rates.fails_later;
        // Its end is drawn from seed and token, its id from the number of the act as well: without tokens a repeated
        // launch makes a second machine.
        let machine_seed = keyed(self.seed, &["machine", request.offer.provider.as_str(), &request.token]);
        let told = match self.weather {
            Weather::Calm => None,
            Weather::Seeded => self.market.reclaimed_at(listed, held, machine_seed, now.timestamp_millis()),
        };
        let notice_at = told.and_then(DateTime::from_timestamp_millis);
        let visible_from = match fault {
            Some(Fault::Late(by)) => now + world(*by),
            _ => now,
        };
        Machine {
            id: format!("sim-{:016x}", mix(machine_seed ^ draws)).into(),
            offer: request.offer.clone(),
            gpus: listed.shape.accelerators,
            quota: listed.quota.as_ref().map(|q| (q.code.clone(), q.needed)),
            price,
            token: request.token.clone(),
            mark: request.mark.clone(),
            launched_at: now,
            visible_from,
            running_at: after(boot),
            fails_at: fails.then(|| after(boot * 0.5)),
            notice_at,
            taken_at: notice_at.map(|t| t + world(self.profile.notice)),
            terminated_at: None,
            ended_by: None,
            winding_ms: (between(mix(draws ^ 0x14), WINDING_SECONDS.0, WINDING_SECONDS.1) * 1000.0) as i64,
            forced: None,
        }
    }
}

/// A duration of world time.
pub(super) fn world(duration: StdDuration) -> Duration {
    Duration::from_std(duration).unwrap_or(Duration::zero())
}
