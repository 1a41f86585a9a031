//! Faults: the ordinary small ones of the demo, drawn by chance from the world's seed, and planned ones for tests.

use std::time::Duration;

use super::noise::{between, mix, unit};
use crate::domain::{ErrorClass, ProviderId, Region};

/// A kind of call to a simulated cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `offerings`.
    Offerings,
    /// `instances`.
    Instances,
    /// `describe`.
    Describe,
    /// `find_by_token`.
    FindByToken,
    /// `launch`.
    Launch,
    /// `terminate`.
    Terminate,
}

impl Call {
    /// Where its count stands.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
    /// How many kinds there are.
    pub(super) const KINDS: usize = 6;
}

/// What goes wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Refused with this class and code; nothing was done.
    Refuse {
        /// The class.
        class: ErrorClass,
        /// The cloud's code.
        code: String,
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
    },
    /// Done, but the answer is lost: the caller gets a `Transient` error.
    LoseAnswer,
    /// Done, and visible only so long after (world time); the answer is lost as well.
    Late(Duration),
    /// Never answered; nothing was done.
    Hang,
    /// Done, and never answered.
    HangAfter,
    /// A read that shows the world as it was so long ago (world time).
    Lag(Duration),
    /// A read that shows none of our machines.
    Miss,
    /// A read that shows every machine in a state of this word, which no table knows.
    Say(String),
    /// A terminate that is accepted and then forgotten.
    Ignore,
    /// A launch that is accepted and fails while the machine is being made.
    FailLater,
}

impl Fault {
    /// A refusal without a wait.
    pub fn refuse(class: ErrorClass, code: impl Into<String>) -> Self {
        Self::Refuse { class, code: code.into(), retry_after: None }
    }
}

/// Which calls a fault befalls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    call: Call,
    provider: Option<ProviderId>,
    region: Option<Region>,
    first: u64,
    times: u64,
    seen: u64,
    fault: Fault,
}

impl Rule {
    /// Befalls every call of this kind; the methods below narrow it.
    pub fn on(call: Call, fault: Fault) -> Self {
        Self { call, provider: None, region: None, first: 1, times: u64::MAX, seen: 0, fault }
    }
    /// Only at this cloud.
    #[must_use]
    pub fn at(mut self, provider: &str) -> Self {
        self.provider = Some(provider.into());
        self
    }
    /// Only where the call names this region. For `offerings` the region alone fails, the others are answered.
    #[must_use]
    pub fn region(mut self, region: &str) -> Self {
        self.region = Some(region.into());
        self
    }
    /// Only the n-th such call, counted from 1.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        (self.first, self.times) = (n, 1);
        self
    }
    /// So many in a row, from the first (or the n-th) on.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// The fault, if it befalls this call; counts the call.
    fn strike(&mut self, provider: &ProviderId, call: Call, region: Option<&Region>) -> Option<&Fault> {
        let fits = self.call == call
            && self.provider.as_ref().is_none_or(|p| p == provider)
            && self.region.as_ref().is_none_or(|r| Some(r) == region);
        if !fits {
            return None;
        }
        self.seen += 1;
        (self.seen >= self.first && self.seen - self.first < self.times).then_some(&self.fault)
    }

    /// Whether it is about a single region of `offerings`.
    fn is_regional_offer(&self) -> bool {
        self.call == Call::Offerings && self.region.is_some()
    }
}

/// Probabilities of ordinary faults, each of one call. What befalls an act is drawn from the number of the act in its
/// world, so that the same commands meet the same luck; what befalls a read also from its moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// A read or terminate fails in passing.
    pub transient: f64,
    /// A call is throttled.
    pub throttled: f64,
    /// A launch is refused although there was stock: somebody was faster.
    pub outrun: f64,
    /// A launch is done but its answer is lost.
    pub lost_answer: f64,
    /// A machine that was accepted fails while it is made.
    pub fails_later: f64,
    /// A region is missing from `offerings`, for ten virtual minutes.
    pub region_down: f64,
    /// A list shows the world of some seconds ago.
    pub lag: f64,
}

impl Rates {
    /// None at all.
    pub const NONE: Self = Self {
        transient: 0.0,
        throttled: 0.0,
        outrun: 0.0,
        lost_answer: 0.0,
        fails_later: 0.0,
        region_down: 0.0,
        lag: 0.0,
    };
    /// As in the demo: low enough that work gets done, high enough that each is met within an hour of watching.
    pub const ORDINARY: Self = Self {
        transient: 0.005,
        throttled: 0.005,
        outrun: 0.02,
        lost_answer: 0.01,
        fails_later: 0.02,
        region_down: 0.003,
        lag: 0.02,
    };
}

/// How long a throttled caller is asked to wait, in real time.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest that a list lags by chance, in seconds of world time.
const LONGEST_LAG_SECONDS: f64 = 20.0;

impl Rates {
    /// What befalls a call that reads, by chance.
    pub(super) fn of_read(&self, call: Call, draws: u64, throttled: &str) -> Option<Fault> {
        if let Some(refused) = self.refused(draws, throttled) {
            return Some(refused);
        }
        let lists = matches!(call, Call::Instances | Call::FindByToken);
        (lists && unit(mix(draws ^ 4)) < self.lag)
            .then(|| Fault::Lag(Duration::from_secs_f64(between(mix(draws ^ 5), 0.0, LONGEST_LAG_SECONDS))))
    }

    /// What befalls a terminate, by chance.
    pub(super) fn of_terminate(&self, draws: u64, throttled: &str) -> Option<Fault> {
        self.refused(draws, throttled)
    }

    /// What befalls a launch, by chance. Never a passing fault before the effect: it would look like the one after it.
    pub(super) fn of_launch(&self, draws: u64, throttled: &str) -> Option<Fault> {
        let refused = self
            .refused(draws, throttled)
            .filter(|f| matches!(f, Fault::Refuse { class, .. } if *class == ErrorClass::Throttled));
        refused.or_else(|| (unit(mix(draws ^ 2)) < self.lost_answer).then_some(Fault::LoseAnswer))
    }

    fn refused(&self, draws: u64, throttled: &str) -> Option<Fault> {
        if unit(mix(draws ^ 1)) < self.throttled {
            let (class, code) = (ErrorClass::Throttled, throttled.to_owned());
            return Some(Fault::Refuse { class, code, retry_after: Some(RETRY_AFTER) });
        }
        (unit(mix(draws ^ 3)) < self.transient).then(|| Fault::refuse(ErrorClass::Transient, "503"))
    }
}

/// All faults of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultPlan {
    rates: Rates,
    rules: Vec<Rule>,
}

impl FaultPlan {
    /// Nothing goes wrong.
    pub const fn none() -> Self {
        Self { rates: Rates::NONE, rules: Vec::new() }
    }
    /// The demo's.
    pub const fn ordinary() -> Self {
        Self { rates: Rates::ORDINARY, rules: Vec::new() }
    }
    /// With these probabilities.
    #[must_use]
    pub fn rates(mut self, rates: Rates) -> Self {
        self.rates = rates;
        self
    }
    /// With one more rule. Of several that fit, the one that was added last counts, and all count the call.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    pub(super) fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }
    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }
    pub(super) const fn ordinary_rates(&self) -> Rates {
        self.rates
    }

    /// The planned fault of this call.
    pub(super) fn strike(&mut self, provider: &ProviderId, call: Call, region: Option<&Region>) -> Option<Fault> {
        let mut struck = None;
        for rule in self.rules.iter_mut().filter(|r| !r.is_regional_offer()) {
            struck = rule.strike(provider, call, region).cloned().or(struck);
        }
        struck
    }

    /// The planned fault of one region of `offerings`.
    pub(super) fn strike_region(&mut self, provider: &ProviderId, region: &Region) -> Option<Fault> {
        let mut struck = None;
        for rule in self.rules.iter_mut().filter(|r| r.is_regional_offer()) {
            struck = rule.strike(provider, Call::Offerings, Some(region)).cloned().or(struck);
        }
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_strikes_the_calls_that_it_names_and_no_others() {
        let aws = ProviderId::from("aws");
        let region = Region::from("us-east-1");
        let mut plan = FaultPlan::none()
            .with(Rule::on(Call::Launch, Fault::LoseAnswer).at("aws").region("us-east-1").nth(2).times(2));
        let mut struck = Vec::new();
        for _ in 0..5 {
            struck.push(plan.strike(&aws, Call::Launch, Some(&region)).is_some());
            assert_eq!(plan.strike(&"gcp".into(), Call::Launch, Some(&region)), None);
            assert_eq!(plan.strike(&aws, Call::Terminate, Some(&region)), None);
            assert_eq!(plan.strike(&aws, Call::Launch, Some(&"us-west-2".into())), None);
        }
        assert_eq!(struck, [false, true, true, false, false]);
    }
}
