//! Every call has a deadline. A provider that never answers is an error with a name, not a hanging screen.

use std::sync::Arc;
use std::time::Duration;

use super::layer::{Call, Layer, Layered, Sent};
use super::timer::Timer;
use crate::config::limits;
use crate::domain::{ErrorClass, ProviderError, ProviderId};
use crate::provider::Result;

/// A provider whose calls all come to an end.
pub type Timeout<P> = Layered<Deadlines, P>;

/// The deadline of each call.
pub struct Deadlines {
    timer: Arc<dyn Timer>,
}

impl Deadlines {
    /// The usual ones.
    pub fn new(timer: Arc<dyn Timer>) -> Self {
        Self { timer }
    }

    /// How long a call may take.
    pub const fn of(call: Call) -> Duration {
        match call {
            Call::Check => limits::CHECK_DEADLINE,
            Call::Account => limits::ACCOUNT_DEADLINE,
            Call::Offerings => limits::OFFERINGS_DEADLINE,
            Call::Instances => limits::INSTANCES_DEADLINE,
            Call::Describe => limits::DESCRIBE_DEADLINE,
            Call::FindByToken => limits::FIND_DEADLINE,
            Call::Launch => limits::LAUNCH_DEADLINE,
            Call::Terminate => limits::TERMINATE_DEADLINE,
        }
    }
}

impl Layer for Deadlines {
    async fn around<'a, T, F>(&'a self, provider: &'a ProviderId, call: Call, send: F) -> Result<T>
    where
        T: Send + 'a,
        F: Fn() -> Sent<'a, T> + Send + Sync + 'a,
    {
        let deadline = Self::of(call);
        tokio::select! {
            biased;
            answer = send() => answer,
            () = self.timer.wait(deadline) => {
                let what = if call.only_reads() { "" } else { "; whether it was carried out is not known" };
                // Transient, because something may have been sent: nobody may take this for a refusal.
                Err(ProviderError::new(
                    ErrorClass::Transient,
                    provider,
                    call.as_str(),
                    format!("no answer within {} s{what}", deadline.as_secs()),
                )
                .code("Timeout"))
            }
        }
    }
}
