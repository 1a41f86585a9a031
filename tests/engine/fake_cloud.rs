//! A cloud that does what a script says: refuses, hangs, answers late, lists late, takes machines away, and keeps the
//! books on what it really billed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use gpudeck::domain::{
    Accelerator, AcceleratorCount, Availability, Clock, ErrorClass, Evidence, HourlyRate, Instance, InstanceId,
    InstanceState, Interconnect, Location, Mark, Money, Observation, OfferKey, Offerings, PriceStatement,
    ProviderError, ProviderId, Purchase, Region, Shape,
};
use gpudeck::provider::{
    Capabilities, Finding, InstanceRef, LaunchRequest, Operator, Provider, Result, Support, Termination,
};
use gpudeck::store::CrashPoint;

use super::crash::Crash;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Launch,
    Terminate,
    Describe,
    Find,
    List,
    Offerings,
}

#[derive(Debug, Clone)]
pub enum Fault {
    /// Refused; nothing happened.
    Refuse(ErrorClass, &'static str),
    /// It happened, and the answer is this error.
    DoneBut(ErrorClass, &'static str),
    /// Never answers; nothing happened.
    Hang,
    /// It happened, and it never answers.
    DoneAndHang,
    /// Throttled for so long.
    Throttle(Duration),
}

struct Rule {
    call: Call,
    zone: Option<String>,
    left: u32,
    fault: Fault,
}

#[derive(Clone)]
pub struct Stock {
    pub key: OfferKey,
    pub shape: Arc<Shape>,
    pub price: HourlyRate,
    /// What is bound at a launch, where it is not the price.
    pub binds_at: Option<HourlyRate>,
    pub capacity: u32,
}

#[derive(Clone)]
pub struct Machine {
    pub account: Option<String>,
    pub instance: Instance,
    pub made_at: DateTime<Utc>,
    pub ends_at: Option<DateTime<Utc>>,
    pub forced: Option<(InstanceState, &'static str)>,
    /// Terminates are accepted and not obeyed.
    pub stuck: bool,
}

struct State {
    stock: Vec<Stock>,
    machines: Vec<Machine>,
    rules: Vec<Rule>,
    calls: Vec<(Call, DateTime<Utc>, String)>,
    next: u32,
    crash: Arc<Crash>,
    /// Machines younger than that are not listed, and not found.
    lag: TimeDelta,
    boot: TimeDelta,
    fade: TimeDelta,
    /// Machines that were made for a mark of which one was alive: what must never be.
    doubles: Vec<Mark>,
    most_alive: usize,
    /// Whose account the session is in; `None`: it cannot be had.
    account: Option<String>,
    /// How much it says is in stock; that may be more than there is.
    told: Option<u32>,
    /// Which share of all calls goes wrong, and what draws it.
    weather: Option<(f64, rand::rngs::StdRng)>,
    /// How many went wrong so.
    struck: u32,
}

pub struct FakeCloud {
    id: ProviderId,
    capabilities: Capabilities,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

pub fn shape(instance_type: &str, gpus: u32) -> Arc<Shape> {
    Arc::new(Shape {
        instance_type: instance_type.into(),
        accelerator: Accelerator::from_canonical("H100-80GB-SXM"),
        accelerators: AcceleratorCount::whole(gpus),
        gpu_memory_gib: Some(80.0),
        vcpus: Some(192),
        memory_gib: Some(2048.0),
        interconnect: Interconnect::Efa,
    })
}

pub fn usd(text: &str) -> HourlyRate {
    HourlyRate::parse_usd(text).expect("an amount")
}

impl State {
    /// Another account's machines are not seen. A session that cannot say whose it is acts for the same one as before.
    fn reaches(&self, machine: &Machine) -> bool {
        self.account.is_none() || machine.account == self.account
    }
}

impl FakeCloud {
    pub fn new(id: &str, tokens: bool, clock: Arc<dyn Clock>) -> Arc<Self> {
        Self::made(id, tokens, false, clock)
    }

    /// One whose spot machines are billed at the market's price of each moment.
    pub fn floating(id: &str, clock: Arc<dyn Clock>) -> Arc<Self> {
        Self::made(id, true, true, clock)
    }

    fn made(id: &str, tokens: bool, floats: bool, clock: Arc<dyn Clock>) -> Arc<Self> {
        let support = |yes: bool| if yes { Support::Yes } else { Support::No("it has none".into()) };
        Arc::new(Self {
            id: id.into(),
            capabilities: Capabilities {
                launch_token: support(tokens),
                spot: Support::Yes,
                zones: Support::Yes,
                live_prices: Support::Yes,
                stock: Support::Yes,
                max_instances_per_request: 1,
                start_script_bytes: (id == "aws").then_some(4_096),
                spot_follows_market: floats,
            },
            clock,
            state: Mutex::new(State {
                stock: Vec::new(),
                machines: Vec::new(),
                rules: Vec::new(),
                calls: Vec::new(),
                next: 0,
                crash: Arc::new(Crash::never()),
                lag: TimeDelta::zero(),
                boot: TimeDelta::seconds(60),
                fade: TimeDelta::seconds(30),
                doubles: Vec::new(),
                most_alive: 0,
                account: Some("first".to_owned()),
                told: None,
                weather: None,
                struck: 0,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    pub fn stock(&self, region: &str, zone: &str, purchase: Purchase, price: &str, capacity: u32) {
        self.put(region, zone, purchase, ("p5.48xlarge", 8), price, capacity);
    }

    /// Spot machines of another type, with so many GPUs each.
    pub fn machine(&self, region: &str, zone: &str, machine: (&str, u32), price: &str, capacity: u32) {
        self.put(region, zone, Purchase::Spot, machine, price, capacity);
    }

    fn put(&self, region: &str, zone: &str, purchase: Purchase, (name, gpus): (&str, u32), price: &str, capacity: u32) {
        let key = OfferKey {
            provider: self.id.clone(),
            region: region.into(),
            zone: Some(zone.into()),
            instance_type: name.into(),
            purchase,
        };
        let mut state = self.lock();
        state.stock.retain(|s| s.key != key);
        state.stock.push(Stock { key, shape: shape(name, gpus), price: usd(price), binds_at: None, capacity });
    }

    /// It offers nothing there any more.
    pub fn withdraw(&self, region: &str) {
        self.lock().stock.retain(|s| s.key.region != region);
    }

    pub fn binds_at(&self, zone: &str, price: &str) {
        for stock in self.lock().stock.iter_mut().filter(|s| s.key.zone.as_ref().is_some_and(|z| z.as_str() == zone)) {
            stock.binds_at = Some(usd(price));
        }
    }

    pub fn rule(&self, call: Call, times: u32, fault: Fault) {
        self.lock().rules.push(Rule { call, zone: None, left: times, fault });
    }

    pub fn rule_in(&self, zone: &str, call: Call, times: u32, fault: Fault) {
        self.lock().rules.push(Rule { call, zone: Some(zone.into()), left: times, fault });
    }

    pub fn heal(&self) {
        self.lock().rules.clear();
    }

    pub fn crash(&self, crash: Arc<Crash>) {
        self.lock().crash = crash;
    }

    /// From now on the session is logged in there.
    pub fn log_in(&self, account: Option<&str>) {
        self.lock().account = account.map(str::to_owned);
    }

    /// From now on such a share of all calls goes wrong, in every way that such a call can.
    pub fn foul_weather(&self, share: f64, seed: u64) {
        self.lock().weather = Some((share, rand::SeedableRng::seed_from_u64(seed)));
    }

    /// No more of that.
    pub fn fair_weather(&self) {
        self.lock().weather = None;
    }

    /// How many calls went wrong by the weather.
    pub fn struck(&self) -> u32 {
        self.lock().struck
    }

    /// From now on it says that so many machines are in stock everywhere, whatever there is.
    pub fn tell_stock(&self, machines: u32) {
        self.lock().told = Some(machines);
    }

    pub fn lag(&self, seconds: i64) {
        self.lock().lag = TimeDelta::seconds(seconds);
    }

    pub fn boot(&self, seconds: i64) {
        self.lock().boot = TimeDelta::seconds(seconds);
    }

    pub fn force(&self, id: &InstanceId, state: &InstanceState, reason: &'static str) {
        let now = self.clock.now();
        for machine in self.lock().machines.iter_mut().filter(|m| &m.instance.id == id) {
            if *state == InstanceState::Gone {
                machine.ends_at = Some(now);
            } else {
                machine.forced = Some((state.clone(), reason));
            }
        }
    }

    pub fn stick(&self, id: &InstanceId, stuck: bool) {
        for machine in self.lock().machines.iter_mut().filter(|m| &m.instance.id == id) {
            machine.stuck = stuck;
        }
    }

    /// A machine that somebody made with such a mark, now.
    pub fn plant(&self, mark: Option<Mark>, token: Option<&str>) -> InstanceId {
        let now = self.clock.now();
        let mut state = self.lock();
        let stock = state.stock.first().expect("some stock").clone();
        state.next += 1;
        let id: InstanceId = format!("i-{}-{:04}", self.id, state.next).into();
        let account = state.account.clone();
        state.machines.push(Machine {
            account,
            instance: Instance {
                id: id.clone(),
                location: stock.key.location(),
                instance_type: stock.key.instance_type.clone(),
                purchase: stock.key.purchase,
                state: InstanceState::Running,
                launched_at: Some(now),
                ended_at: None,
                price: Some(stock.price),
                token: token.map(Into::into),
                mark,
                preemption_notice: None,
                reason: None,
            },
            made_at: now,
            ends_at: None,
            forced: None,
            stuck: false,
        });
        id
    }

    pub fn remark(&self, id: &InstanceId, change: impl Fn(&mut Instance)) {
        for machine in self.lock().machines.iter_mut().filter(|m| &m.instance.id == id) {
            change(&mut machine.instance);
        }
    }

    /// Every machine that was ever made.
    pub fn machines(&self) -> Vec<Machine> {
        self.lock().machines.clone()
    }

    /// Machines that bill now.
    pub fn alive(&self) -> Vec<Machine> {
        let now = self.clock.now();
        self.lock().machines.iter().filter(|m| m.ends_at.is_none_or(|at| at > now)).cloned().collect()
    }

    pub fn most_alive(&self) -> usize {
        self.lock().most_alive
    }

    pub fn doubles(&self) -> Vec<Mark> {
        self.lock().doubles.clone()
    }

    pub fn count(&self, call: Call) -> usize {
        self.lock().calls.iter().filter(|(c, ..)| *c == call).count()
    }

    /// When such calls came, and on what.
    pub fn calls(&self, call: Call) -> Vec<(DateTime<Utc>, String)> {
        self.lock().calls.iter().filter(|(c, ..)| *c == call).map(|(_, at, what)| (*at, what.clone())).collect()
    }

    /// What it really bills until now: the bound price from the making to the end.
    pub fn billed(&self) -> Money {
        let now = self.clock.now();
        self.lock()
            .machines
            .iter()
            .map(|m| m.instance.price.unwrap_or_default().for_duration(m.ends_at.unwrap_or(now).min(now) - m.made_at))
            .sum()
    }

    fn seen(&self, machine: &Machine, state: &State) -> Option<Instance> {
        let now = self.clock.now();
        let mut instance = machine.instance.clone();
        if machine.ends_at.is_some_and(|at| now >= at) {
            return None;
        }
        if now < machine.made_at + state.lag || !state.reaches(machine) {
            return None;
        }
        instance.state = match (&machine.forced, machine.ends_at) {
            (_, Some(_)) => InstanceState::Terminating,
            (Some((forced, reason)), None) => {
                instance.reason = Some((*reason).to_owned());
                forced.clone()
            }
            (None, None) if now >= machine.made_at + state.boot => InstanceState::Running,
            (None, None) => InstanceState::Provisioning,
        };
        Some(instance)
    }

    fn fault(&self, call: Call, zone: Option<&str>) -> Option<Fault> {
        let mut state = self.lock();
        let rule = state
            .rules
            .iter_mut()
            .find(|r| r.call == call && r.left > 0 && r.zone.as_deref().is_none_or(|z| Some(z) == zone))?;
        rule.left -= 1;
        Some(rule.fault.clone())
    }

    /// What the weather does to a call.
    fn strike(&self, call: Call) -> Option<Fault> {
        use rand::RngExt as _;
        let mut state = self.lock();
        let (share, draws) = state.weather.as_mut()?;
        if !draws.random_bool(*share) {
            return None;
        }
        let throttle = Fault::Throttle(Duration::from_secs(draws.random_range(1..20)));
        let kinds = match call {
            Call::Launch => vec![
                Fault::Refuse(ErrorClass::NoCapacity, "InsufficientInstanceCapacity"),
                Fault::Refuse(ErrorClass::Transient, "InternalError"),
                Fault::DoneBut(ErrorClass::Transient, "500"),
                Fault::DoneBut(ErrorClass::Unknown, "BrandNewCode"),
                Fault::DoneAndHang,
                Fault::Hang,
                throttle,
            ],
            Call::Terminate => vec![
                Fault::Refuse(ErrorClass::Transient, "InternalError"),
                Fault::DoneBut(ErrorClass::Transient, "500"),
                Fault::DoneAndHang,
                Fault::Hang,
                throttle,
            ],
            Call::Describe | Call::Find | Call::List | Call::Offerings => {
                vec![Fault::Refuse(ErrorClass::Transient, "503"), Fault::Hang, throttle]
            }
        };
        let kind = draws.random_range(0..kinds.len());
        state.struck += 1;
        kinds.into_iter().nth(kind)
    }

    fn error(&self, call: Call, class: ErrorClass, code: &str) -> ProviderError {
        let mut error = ProviderError::new(class, &self.id, &format!("{call:?}"), format!("the script says {code}"));
        code.clone_into(&mut error.code);
        error
    }

    async fn point(&self, name: &str) {
        let crash = self.lock().crash.clone();
        if crash.dies(name) {
            std::future::pending::<()>().await;
        }
    }

    fn log(&self, call: Call, what: &str) {
        let now = self.clock.now();
        self.lock().calls.push((call, now, what.to_owned()));
    }

    /// Before the call has its effect.
    async fn before(&self, call: Call, what: &str, zone: Option<&str>) -> Result<Option<Fault>> {
        self.point(&format!("{call:?} before")).await;
        self.log(call, what);
        match self.fault(call, zone).or_else(|| self.strike(call)) {
            Some(Fault::Refuse(class, code)) => Err(self.error(call, class, code)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Throttle(wait)) => {
                let mut error = self.error(call, ErrorClass::Throttled, "RequestLimitExceeded");
                error.retry_after = Some(wait);
                Err(error)
            }
            other => Ok(other),
        }
    }

    /// After it had it.
    async fn after(&self, call: Call, fault: Option<Fault>) -> Result<()> {
        self.point(&format!("{call:?} after")).await;
        match fault {
            Some(Fault::DoneBut(class, code)) => Err(self.error(call, class, code)),
            Some(Fault::DoneAndHang) => std::future::pending().await,
            _ => Ok(()),
        }
    }

    fn make(&self, request: &LaunchRequest) -> Result<Instance> {
        let now = self.clock.now();
        let mut state = self.lock();
        if self.capabilities.launch_token.is_yes()
            && let Some(known) = state.machines.iter().find(|m| m.instance.token.as_deref() == Some(&request.token))
        {
            if known.ends_at.is_some_and(|at| at <= now) {
                return Err(self.error(Call::Launch, ErrorClass::Conflict, "IdempotentInstanceTerminated"));
            }
            let mut instance = known.instance.clone();
            instance.state = InstanceState::Provisioning;
            return Ok(instance);
        }
        let Some(index) = state.stock.iter().position(|s| s.key == request.offer) else {
            return Err(self.error(Call::Launch, ErrorClass::Invalid, "NoSuchOffer"));
        };
        let alive = |m: &&Machine| m.ends_at.is_none_or(|at| at > now);
        let used = state.machines.iter().filter(alive).filter(|m| {
            m.instance.location == request.offer.location() && m.instance.purchase == request.offer.purchase
        });
        let stock = state.stock.get(index).expect("just found").clone();
        if used.count() >= stock.capacity as usize {
            return Err(self.error(Call::Launch, ErrorClass::NoCapacity, "InsufficientInstanceCapacity"));
        }
        if state.machines.iter().filter(alive).any(|m| m.instance.mark.as_ref() == Some(&request.mark)) {
            state.doubles.push(request.mark.clone());
        }
        state.next += 1;
        let instance = Instance {
            id: format!("i-{}-{:04}", self.id, state.next).into(),
            location: request.offer.location(),
            instance_type: request.offer.instance_type.clone(),
            purchase: request.offer.purchase,
            state: InstanceState::Provisioning,
            launched_at: Some(now),
            ended_at: None,
            price: Some(stock.binds_at.unwrap_or(stock.price)),
            token: Some(request.token.clone()).filter(|_| self.capabilities.launch_token.is_yes()),
            mark: Some(request.mark.clone()),
            preemption_notice: None,
            reason: None,
        };
        let account = state.account.clone();
        state.machines.push(Machine {
            account,
            instance: instance.clone(),
            made_at: now,
            ends_at: None,
            forced: None,
            stuck: false,
        });
        let count = state.machines.iter().filter(alive).count();
        state.most_alive = state.most_alive.max(count);
        Ok(instance)
    }
}

#[async_trait]
impl Provider for FakeCloud {
    fn id(&self) -> &ProviderId {
        &self.id
    }
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    async fn check(&self) -> Vec<Finding> {
        Vec::new()
    }
    async fn account(&self) -> Result<String> {
        match self.lock().account.clone() {
            Some(account) => Ok(account),
            None => Err(self.error(Call::Describe, ErrorClass::Transient, "NoIdentity")),
        }
    }
    async fn offerings(&self) -> Result<Offerings> {
        let fault = self.before(Call::Offerings, "", None).await?;
        let now = self.clock.now();
        let told = self.lock().told;
        let observations = self
            .lock()
            .stock
            .iter()
            .map(|s| Observation {
                key: s.key.clone(),
                at: now,
                shape: s.shape.clone(),
                price: Some(PriceStatement::Live(s.price)),
                availability: Some((Availability::Available, Evidence::Api)),
                capacity: told,
                quota: None,
                interruptions_per_day: Some(0.1),
            })
            .collect();
        self.after(Call::Offerings, fault).await?;
        Ok(Offerings { observations, failed: Vec::new(), skipped: BTreeMap::new(), complete: true })
    }
    async fn instances(&self, owner: &str) -> Result<Vec<Instance>> {
        let fault = self.before(Call::List, owner, None).await?;
        let found = {
            let state = self.lock();
            let ours = |m: &&Machine| m.instance.mark.as_ref().is_some_and(|mark| mark.owner == owner);
            state.machines.iter().filter(ours).filter_map(|m| self.seen(m, &state)).collect()
        };
        self.after(Call::List, fault).await?;
        Ok(found)
    }
    async fn describe(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        let names: Vec<&str> = ids.iter().map(|i| i.id.as_str()).collect();
        let fault = self.before(Call::Describe, &names.join(","), names.first().copied()).await?;
        let found = {
            let state = self.lock();
            let wanted = |m: &&Machine| ids.iter().any(|i| i.id == m.instance.id);
            state.machines.iter().filter(wanted).filter_map(|m| self.seen(m, &state)).collect()
        };
        self.after(Call::Describe, fault).await?;
        Ok(found)
    }
    async fn find_by_token(&self, _region: &Region, token: &str, mark: &Mark) -> Result<Vec<Instance>> {
        let fault = self.before(Call::Find, token, None).await?;
        let found = {
            let state = self.lock();
            let ours =
                |m: &&Machine| m.instance.token.as_deref() == Some(token) || m.instance.mark.as_ref() == Some(mark);
            state.machines.iter().filter(ours).filter_map(|m| self.seen(m, &state)).collect()
        };
        self.after(Call::Find, fault).await?;
        Ok(found)
    }
}

#[async_trait]
impl Operator for FakeCloud {
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance> {
        let zone = request.offer.zone.as_ref().map(|z| z.as_str().to_owned());
        let fault = self.before(Call::Launch, &request.token, zone.as_deref()).await?;
        let made = self.make(request)?;
        self.after(Call::Launch, fault).await?;
        Ok(made)
    }

    async fn terminate(&self, target: &InstanceRef) -> Result<Termination> {
        let fault = self.before(Call::Terminate, target.id.as_str(), None).await?;
        let now = self.clock.now();
        let answer = {
            let mut state = self.lock();
            let fade = state.fade;
            let account = state.account.clone();
            let ours = |m: &&mut Machine| account.is_none() || m.account == account;
            match state.machines.iter_mut().filter(ours).find(|m| m.instance.id == target.id) {
                Some(machine) if machine.ends_at.is_none_or(|at| at > now) => {
                    if !machine.stuck {
                        machine.ends_at.get_or_insert(now + fade);
                    }
                    Termination::Accepted(InstanceState::Terminating)
                }
                _ => Termination::AlreadyGone,
            }
        };
        self.after(Call::Terminate, fault).await?;
        Ok(answer)
    }
}

/// Where machines of this cloud are, for messages.
pub fn place(region: &str, zone: &str, provider: &str) -> Location {
    Location { provider: provider.into(), region: region.into(), zone: Some(zone.into()) }
}
