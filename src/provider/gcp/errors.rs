//! Google's codes, classed once.

use google_cloud_gax::error::Error;

use crate::domain::{ErrorClass, ProviderError, ProviderId};

/// Words that occur in Google's texts and reasons, in the order in which they decide.
const WORDS: &[(&str, ErrorClass)] = &[
    ("ZONE_RESOURCE_POOL_EXHAUSTED", ErrorClass::NoCapacity),
    ("resource_availability", ErrorClass::NoCapacity),
    ("QUOTA_EXCEEDED", ErrorClass::Quota),
    ("quotaExceeded", ErrorClass::Quota),
    ("rateLimitExceeded", ErrorClass::Throttled),
    ("RESOURCE_OPERATION_RATE_EXCEEDED", ErrorClass::Throttled),
    ("IAM_PERMISSION_DENIED", ErrorClass::Auth),
    ("accessNotConfigured", ErrorClass::Auth),
    ("RESOURCE_NOT_READY", ErrorClass::Conflict),
    ("RESOURCE_ALREADY_EXISTS", ErrorClass::Conflict),
    ("alreadyExists", ErrorClass::Conflict),
];

fn class_of(status: Option<u16>, text: &str) -> ErrorClass {
    if let Some((_, class)) = WORDS.iter().find(|(word, _)| text.contains(word)) {
        return *class;
    }
    match status {
        Some(401 | 403) => ErrorClass::Auth,
        Some(404) => ErrorClass::NotFound,
        Some(409 | 412) => ErrorClass::Conflict,
        Some(429) => ErrorClass::Throttled,
        Some(400 | 422) => ErrorClass::Invalid,
        None | Some(408 | 500..=599) => ErrorClass::Transient,
        Some(_) => ErrorClass::Unknown,
    }
}

/// An error of the client, classed.
pub(super) fn classify(provider: &ProviderId, operation: &str, e: &Error) -> ProviderError {
    if e.is_authentication() {
        // Its text may quote what was sent: only its kind travels.
        return ProviderError::new(
            ErrorClass::Auth,
            provider,
            operation,
            "no token could be had for these credentials",
        );
    }
    let status = e.http_status_code();
    let text = e.to_string();
    let message = e.status().map_or_else(|| text.clone(), |s| s.message.clone());
    let code = e.status().map(|s| format!("{:?}", s.code)).or_else(|| status.map(|s| format!("HTTP {s}")));
    ProviderError::new(class_of(status, &text), provider, operation, message).code(code.unwrap_or_default())
}

/// An error of an operation that was accepted first, classed by its own code.
pub(super) fn of_operation(
    provider: &ProviderId,
    operation: &str,
    status: Option<i32>,
    code: String,
    message: String,
) -> ProviderError {
    // Without a status only the code speaks, and one that is not known is unknown.
    let status = status.and_then(|s| u16::try_from(s).ok()).or(Some(0));
    ProviderError::new(class_of(status, &code), provider, operation, message).code(code)
}

/// A client that could not be made.
pub(super) fn build(provider: &ProviderId, text: &str) -> ProviderError {
    ProviderError::new(ErrorClass::Auth, provider, "client", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_every_spelling_of_a_sold_out_zone_is_no_capacity() {
        for text in ["ZONE_RESOURCE_POOL_EXHAUSTED", "… ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS …"] {
            assert_eq!(class_of(Some(503), text), ErrorClass::NoCapacity);
        }
        assert_eq!(class_of(Some(403), "quotaExceeded"), ErrorClass::Quota);
        assert_eq!(class_of(Some(418), "short and stout"), ErrorClass::Unknown);
    }
}
