//! Azure's codes, classed once.

use std::time::Duration;

use azure_core::error::ErrorKind;
use serde::Deserialize;

use super::error;
use crate::domain::{ErrorClass, ProviderError, ProviderId};

/// Code → class, as Azure's documentation and other operators' records have it.
const CODES: &[(&str, ErrorClass)] = &[
    ("AllocationFailed", ErrorClass::NoCapacity),
    ("ZonalAllocationFailed", ErrorClass::NoCapacity),
    ("OverconstrainedAllocationRequest", ErrorClass::NoCapacity),
    ("OverconstrainedZonalAllocationRequest", ErrorClass::NoCapacity),
    ("SkuNotAvailable", ErrorClass::NoCapacity),
    ("QuotaExceeded", ErrorClass::Quota),
    ("AuthorizationFailed", ErrorClass::Auth),
    ("InvalidAuthenticationToken", ErrorClass::Auth),
    ("ExpiredAuthenticationToken", ErrorClass::Auth),
    ("AuthenticationFailed", ErrorClass::Auth),
    ("ReadOnlyDisabledSubscription", ErrorClass::Auth),
    ("RequestDisallowedByPolicy", ErrorClass::Auth),
    ("SubscriptionNotFound", ErrorClass::Auth),
    ("TooManyRequests", ErrorClass::Throttled),
    ("OperationNotAllowed", ErrorClass::Conflict),
    ("AnotherOperationInProgress", ErrorClass::Conflict),
    ("Conflict", ErrorClass::Conflict),
    ("ResourceNotFound", ErrorClass::NotFound),
    ("ResourceGroupNotFound", ErrorClass::NotFound),
    ("NotFound", ErrorClass::NotFound),
    ("InvalidParameter", ErrorClass::Invalid),
    ("BadRequest", ErrorClass::Invalid),
];

/// What a code and an HTTP status mean together. `OperationNotAllowed` is a quota where its text speaks of cores.
fn class_of(status: u16, code: &str, message: &str) -> ErrorClass {
    if code == "OperationNotAllowed" && message.contains("Cores") {
        return ErrorClass::Quota;
    }
    if let Some((_, class)) = CODES.iter().find(|(c, _)| *c == code) {
        return *class;
    }
    match status {
        401 | 403 => ErrorClass::Auth,
        404 => ErrorClass::NotFound,
        409 | 412 => ErrorClass::Conflict,
        429 => ErrorClass::Throttled,
        400 | 422 if code.is_empty() => ErrorClass::Invalid,
        408 | 500..=599 => ErrorClass::Transient,
        _ => ErrorClass::Unknown,
    }
}

/// A refusal as it came: the crate's own error keeps neither request id nor wait.
#[derive(Debug, Clone, thiserror::Error)]
#[error("HTTP {status} {code}: {message}")]
pub(super) struct Refused {
    status: u16,
    code: String,
    message: String,
    request_id: Option<String>,
    retry_after: Option<Duration>,
}

/// The body of a refusal, in the resource manager's words.
#[derive(Deserialize, Default)]
struct Body {
    #[serde(default)]
    error: Words,
}

#[derive(Deserialize, Default)]
struct Words {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl Refused {
    /// From status, headers and body.
    pub(super) fn read(status: u16, header: impl Fn(&str) -> Option<String>, body: &[u8]) -> Self {
        let Body { error: Words { code, message } } = serde_json::from_slice(body).unwrap_or_default();
        Self {
            status,
            message: if message.is_empty() { format!("HTTP {status}") } else { message },
            code,
            request_id: header("x-ms-request-id"),
            retry_after: header("retry-after").and_then(|s| s.parse().ok()).map(Duration::from_secs),
        }
    }
}

/// An error of the management crate or of the transport under it, classed.
pub(super) fn classify(provider: &ProviderId, operation: &str, e: &azure_core::Error) -> ProviderError {
    if let Some(refused) = e.get_ref().and_then(|inner| inner.downcast_ref::<Refused>()).cloned() {
        let Refused { status, code, message, request_id, retry_after } = refused;
        let class = class_of(status, &code, &message);
        let code = if code.is_empty() { format!("HTTP {status}") } else { code };
        return ProviderError {
            code,
            request_id,
            retry_after,
            ..ProviderError::new(class, provider, operation, message)
        };
    }
    match e.kind() {
        // The text of a credential error may quote what was sent: only its kind travels.
        ErrorKind::Credential => error(
            ErrorClass::Auth,
            operation,
            "no token could be had; `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET".into(),
        ),
        _ => error(ErrorClass::Transient, operation, e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_quota_is_told_from_a_conflict() {
        let quota = "Operation could not be completed as it results in exceeding approved NDH100v5 Cores quota.";
        assert_eq!(class_of(409, "OperationNotAllowed", quota), ErrorClass::Quota);
        assert_eq!(class_of(409, "OperationNotAllowed", "The VM is being deleted."), ErrorClass::Conflict);
    }

    #[test]
    fn d1_a_code_that_no_table_knows_is_unknown_not_swallowed() {
        assert_eq!(class_of(400, "BrandNewCode", ""), ErrorClass::Unknown);
        assert_eq!(class_of(503, "", ""), ErrorClass::Transient);
    }
}
