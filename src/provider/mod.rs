//! Clouds and pools behind one seam. Watching ([`Provider`]) and acting ([`Operator`]) are two traits, so that a
//! read-only session is made by leaving the second one out, not by hiding keys.
//!
//! What an adapter owes:
//! - **Return at once.** `launch` returns when the provider has accepted, not when the machine runs; the engine polls.
//! - **Same token, same machine.** `launch` with a token that was used before gives the machine made then. A provider
//!   without tokens says so in its [`Capabilities`], and the engine then looks by mark before it ever sends again.
//! - **An error is not "nothing happened".** Only [`ErrorClass::NoCapacity`], `Quota`, `Auth`, `Invalid` and `Throttled`
//!   promise that nothing was made. After any other error of `launch` the outcome is unknown.
//! - **Absent is gone, not an error.** `terminate` of a machine that is not there is [`Termination::AlreadyGone`].
//! - **Nothing is dropped silently.** A row that cannot be read is counted under a reason in [`Offerings::skipped`].
//! - **Words are kept.** States, codes and texts of the provider travel as data; a state that is not known is
//!   [`InstanceState::Unknown`] and counts as billed.
//! - **No retries inside.** Time-outs, retries and rate limits are decorators' work.

#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "azure")]
pub mod azure;
pub mod decorators;
#[cfg(feature = "gcp")]
pub mod gcp;
pub mod mark;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
pub mod published;
pub mod sim;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

#[cfg_attr(
    not(any(feature = "azure", feature = "gcp")),
    expect(unused_imports, reason = "named in the module's documentation")
)]
use crate::domain::ErrorClass;
pub use crate::domain::Offerings;
use crate::domain::{
    HourlyRate, Instance, InstanceId, InstanceState, Location, Mark, OfferKey, ProviderError, ProviderId, Region, Shape,
};

/// What an adapter's calls give.
pub type Result<T> = std::result::Result<T, ProviderError>;

/// The watching half of a cloud.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its name.
    fn id(&self) -> &ProviderId;

    /// What it can do; each thing that it cannot carries its reason.
    fn capabilities(&self) -> &Capabilities;

    /// Where its calls go, for `doctor` and the header when it is not the provider's own address.
    fn endpoint(&self) -> Option<String> {
        None
    }

    /// An address in this region, `HOST:PORT`, that takes connections there, for measuring round trips; `None` where none
    /// is known.
    fn regional_address(&self, _region: &Region) -> Option<String> {
        None
    }

    /// Who we are there, and whether what we need works. Never fails as a whole: a check that fails is a finding.
    async fn check(&self) -> Vec<Finding>;

    /// Whose account the calls go to, as one line that stays the same as long as it is the same one: the account's number,
    /// the subscription, the project; with the address where that is not the provider's own. Kept beside every machine:
    /// what another account does not have is not gone. Asked often, so it is remembered for minutes.
    async fn account(&self) -> Result<String>;

    /// Everything that is offered, the unavailable included. Regions that fail are told in `failed`, the others count.
    async fn offerings(&self) -> Result<Offerings>;

    /// All machines under the owner's mark, in every region. Those that are gone may be left out.
    async fn instances(&self, owner: &str) -> Result<Vec<Instance>>;

    /// These machines as they are now. One that the provider does not know (any more) is not in the answer.
    async fn describe(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>>;

    /// The machines that were launched with this token, if the provider can look that up; else by mark.
    async fn find_by_token(&self, region: &Region, token: &str, mark: &Mark) -> Result<Vec<Instance>>;
}

/// The acting half. A read-only session never holds one.
#[async_trait]
pub trait Operator: Provider {
    /// Start one machine. See the module for what an error promises.
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance>;

    /// Stop and release one machine. Accepted is not gone: the engine polls to proof.
    async fn terminate(&self, target: &InstanceRef) -> Result<Termination>;
}

/// An account with the address that it was asked at, where that is not the provider's own.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
pub(crate) fn account_at(account: &str, endpoint: Option<&str>) -> String {
    match endpoint {
        Some(address) => format!("{account} at {}", address.trim_end_matches('/')),
        None => account.to_owned(),
    }
}

/// A cloud as the engine holds it: `act` is absent in a read-only session.
#[derive(Clone)]
pub struct Connected {
    /// Watching.
    pub watch: Arc<dyn Provider>,
    /// Acting.
    pub act: Option<Arc<dyn Operator>>,
}

impl Connected {
    /// Both halves of an adapter.
    pub fn full<P: Operator + 'static>(adapter: Arc<P>) -> Self {
        Self { watch: adapter.clone(), act: Some(adapter) }
    }

    /// Only the watching half.
    pub fn read_only<P: Provider + 'static>(adapter: Arc<P>) -> Self {
        Self { watch: adapter, act: None }
    }

    /// Without the acting half.
    #[must_use]
    pub fn into_read_only(self) -> Self {
        Self { watch: self.watch, act: None }
    }
}

/// A provider that is named in the configuration or built in, but cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// Which.
    pub provider: ProviderId,
    /// Why: no credentials, not built in, switched off.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

/// What a provider can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether `launch` honours the token.
    pub launch_token: Support,
    /// Whether machines can be had on spot.
    pub spot: Support,
    /// Whether zones are told apart.
    pub zones: Support,
    /// Whether the price in an offer is the provider's own.
    pub live_prices: Support,
    /// Whether it says what is in stock.
    pub stock: Support,
    /// Most machines that one request may ask for.
    pub max_instances_per_request: u32,
    /// Longest start script in bytes; `None` where there is no limit that a job could reach.
    pub start_script_bytes: Option<usize>,
    /// Whether a spot machine is billed at the market's price of each moment (`true`), or at the one that it was bound at.
    pub spot_follows_market: bool,
}

/// Whether a thing is supported; where not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    /// It is.
    Yes,
    /// It is not, and why.
    No(String),
}

impl Support {
    /// Whether it is.
    pub const fn is_yes(&self) -> bool {
        matches!(self, Self::Yes)
    }
}

/// A finding of `check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: `credentials`, `permissions`, `endpoint`, `clock`, …
    pub check: String,
    /// How it is.
    pub status: FindingStatus,
    /// What was found.
    pub detail: String,
    /// What to do; empty where nothing is.
    pub remedy: String,
}

impl Finding {
    /// Whether the credentials work: what they let us read, or the refusal with how to log in again.
    #[cfg(any(feature = "azure", feature = "gcp"))]
    fn credentials(answer: std::result::Result<String, ProviderError>, login: &str) -> Self {
        let check = "credentials".to_owned();
        match answer {
            Ok(detail) => Self { check, status: FindingStatus::Ok, detail, remedy: String::new() },
            Err(error) => Self {
                check,
                status: FindingStatus::Fail,
                detail: error.to_string(),
                remedy: if error.class == ErrorClass::Auth { login } else { error.remedy() }.to_owned(),
            },
        }
    }

    /// Whether machines can be launched, with what is set up for it, or what is missing.
    #[cfg(any(feature = "azure", feature = "gcp"))]
    fn launching(capabilities: &Capabilities, setup: String) -> Self {
        let check = "launching".to_owned();
        match &capabilities.launch_token {
            Support::Yes => Self { check, status: FindingStatus::Ok, detail: setup, remedy: String::new() },
            Support::No(why) => Self {
                check,
                status: FindingStatus::Warn,
                detail: why.clone(),
                remedy: "`gpudeck config init` writes a sample of what is needed.".to_owned(),
            },
        }
    }
}

/// How a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingStatus {
    /// Good.
    Ok,
    /// Works, with a catch.
    Warn,
    /// Does not work.
    Fail,
    /// Not looked at.
    Skip,
}

impl FindingStatus {
    /// As written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}

/// Which machine; with enough to be sure that it is the one that was meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceRef {
    /// The provider's id.
    pub id: InstanceId,
    /// Where it is.
    pub location: Location,
}

/// A wish for one machine. The engine sends one request a node, so that each has a token and a fate of its own.
#[derive(Clone, PartialEq)]
pub struct LaunchRequest {
    /// Which offer.
    pub offer: OfferKey,
    /// Its shape.
    pub shape: Arc<Shape>,
    /// At most so much an hour; more is refused with `NoCapacity`, code `PriceAboveLimit` or the provider's own.
    pub max_price: Option<HourlyRate>,
    /// The idempotency token: at most 64 ASCII letters, digits and `-`, derived from operation, attempt and node,
    /// durable before this call.
    pub token: String,
    /// A name of at most 40 lower-case letters, digits and `-`, derived from the token, for clouds that name machines.
    pub name: String,
    /// Our mark.
    pub mark: Mark,
    /// When the intent was written, for the `created` tag.
    pub intended_at: DateTime<Utc>,
    /// What the machine runs at its start; `None` holds it only. Never logged.
    pub user_data: Option<String>,
}

impl std::fmt::Debug for LaunchRequest {
    /// Without the user data, which may hold what the job's environment keeps secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaunchRequest")
            .field("offer", &self.offer)
            .field("max_price", &self.max_price)
            .field("token", &self.token)
            .field("mark", &self.mark)
            .field("user_data", &self.user_data.as_ref().map(|_| "***"))
            .finish_non_exhaustive()
    }
}

/// How a terminate was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Termination {
    /// Under way; the state as answered.
    Accepted(InstanceState),
    /// There is no such machine (any more).
    AlreadyGone,
}
