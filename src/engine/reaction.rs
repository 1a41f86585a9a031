//! One reaction to each class of error. Everything that the engine does about a refusal is decided here.

use std::time::Duration;

use crate::config::limits::EngineLimits;
use crate::domain::{ErrorClass, ProviderError};

/// What to do about a launch that was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLaunch {
    /// Nothing was made; try elsewhere, and leave this place alone for so long.
    Elsewhere(Duration),
    /// Nothing was made, and nothing would be: stop, tell the operator.
    Stop,
    /// Nothing was made; send the same again when the provider is ready for it.
    Wait,
    /// Whether something was made is not known: look, never guess.
    Look,
}

/// The reaction to an error of `launch`. Only the classes that promise that nothing was made lead on at once.
pub(crate) fn on_launch(class: ErrorClass, limits: &EngineLimits) -> OnLaunch {
    match class {
        ErrorClass::NoCapacity => OnLaunch::Elsewhere(limits.cool_capacity),
        ErrorClass::Quota => OnLaunch::Elsewhere(limits.cool_quota),
        ErrorClass::Auth | ErrorClass::Invalid => OnLaunch::Stop,
        ErrorClass::Throttled => OnLaunch::Wait,
        ErrorClass::NotFound | ErrorClass::Conflict | ErrorClass::Transient | ErrorClass::Unknown => OnLaunch::Look,
    }
}

/// Whether an unanswered launch may be sent again under its token, once a look has found nothing. After a conflict the
/// provider knows the token with other parameters: only looking helps.
pub(crate) fn may_resend(class: Option<ErrorClass>) -> bool {
    !matches!(class, Some(ErrorClass::Conflict))
}

/// What to do about a terminate that was not accepted. There is no class on which it gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnTerminate {
    /// It is not there (any more): counts as one absent read.
    Absent,
    /// Try again, and tell a person at once: without them it will not succeed.
    Tell,
    /// Try again.
    Again,
}

/// The reaction to an error of `terminate`.
pub(crate) fn on_terminate(class: ErrorClass) -> OnTerminate {
    match class {
        ErrorClass::NotFound => OnTerminate::Absent,
        ErrorClass::Auth | ErrorClass::Invalid => OnTerminate::Tell,
        ErrorClass::NoCapacity
        | ErrorClass::Quota
        | ErrorClass::Throttled
        | ErrorClass::Conflict
        | ErrorClass::Transient
        | ErrorClass::Unknown => OnTerminate::Again,
    }
}

/// The wait before try number `tries` (from 0), in world time: doubling, capped, with full jitter on the upper half;
/// never earlier than the provider asked for, and never later than the cap even if it asks for a year.
pub(crate) fn backoff(tries: u32, asked: Option<&ProviderError>, limits: &EngineLimits, fraction: f64) -> Duration {
    let doubled = limits.backoff_first.saturating_mul(1_u32 << tries.min(16)).min(limits.backoff_max);
    let jittered = doubled.mul_f64(0.5 + 0.5 * fraction.clamp(0.0, 1.0));
    match asked.and_then(|e| e.retry_after) {
        Some(asked) => jittered
            .max(asked.min(limits.backoff_max).mul_f64(1.0 + 0.1 * fraction.clamp(0.0, 1.0)))
            .min(limits.backoff_max),
        None => jittered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ErrorClass; 9] = [
        ErrorClass::NoCapacity,
        ErrorClass::Quota,
        ErrorClass::Auth,
        ErrorClass::Throttled,
        ErrorClass::Invalid,
        ErrorClass::NotFound,
        ErrorClass::Conflict,
        ErrorClass::Transient,
        ErrorClass::Unknown,
    ];

    #[test]
    fn d1_only_promises_that_nothing_was_made_are_believed() {
        let limits = EngineLimits::default();
        for class in ALL {
            let promises = matches!(
                class,
                ErrorClass::NoCapacity
                    | ErrorClass::Quota
                    | ErrorClass::Auth
                    | ErrorClass::Invalid
                    | ErrorClass::Throttled
            );
            assert_eq!(on_launch(class, &limits) != OnLaunch::Look, promises, "{class}");
        }
    }

    #[test]
    fn a7_a_wait_is_never_earlier_than_asked_and_never_endless() {
        let limits = EngineLimits::default();
        let mut error = ProviderError::new(ErrorClass::Throttled, &"lambda".into(), "launch", "slow down");
        error.retry_after = Some(Duration::from_secs(90));
        for fraction in [0.0, 0.5, 1.0] {
            assert!(backoff(0, Some(&error), &limits, fraction) >= Duration::from_secs(90));
        }
        error.retry_after = Some(Duration::from_hours(365 * 24));
        assert_eq!(backoff(0, Some(&error), &limits, 0.3), limits.backoff_max);
        assert!(backoff(40, None, &limits, 1.0) <= limits.backoff_max);
        assert!(backoff(0, None, &limits, 0.0) > Duration::ZERO);
    }
}
