//! What EC2's codes mean: the one table, and the way from the SDK's errors to ours.
//!
//! Sources: the EC2 API reference's list of error codes, and the classes that Karpenter's AWS provider reacts to. The
//! code decides, not the HTTP status: sold-out capacity comes as a 500 and throttling as a 503.

use std::error::Error;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::operation::RequestId as _;

use crate::config::limits::AWS_RETRY_AFTER;
use crate::domain::ErrorClass::{
    self, Auth, Conflict, Invalid, NoCapacity, NotFound, Quota, Throttled, Transient, Unknown,
};
use crate::domain::{ProviderError, ProviderId, Region, Zone};

/// Codes and what they mean.
///
/// - `Unsupported` says that a zone does not have the type ("not supported in your requested Availability Zone"): the
///   next zone may.
/// - `SpotMaxPriceTooLow` is sold out *at that price*: it concerns this offer alone.
/// - `IdempotentInstanceTerminated` says that the machine of this token was made, and is gone. `launch` then gives back
///   that machine as it ended where EC2 still knows it, and the engine goes on from there; otherwise it is a conflict
///   like the other one of tokens: sending again never helps, a look finds nothing, and the next attempt has a token of
///   its own.
const CODES: &[(&str, ErrorClass)] = &[
    ("InsufficientInstanceCapacity", NoCapacity),
    ("InsufficientCapacity", NoCapacity),
    ("InsufficientCapacityOnHost", NoCapacity),
    ("InsufficientHostCapacity", NoCapacity),
    ("InsufficientReservedInstanceCapacity", NoCapacity),
    ("InsufficientVolumeCapacity", NoCapacity),
    ("InsufficientAddressCapacity", NoCapacity),
    ("InsufficientFreeAddressesInSubnet", NoCapacity),
    ("UnfulfillableCapacity", NoCapacity),
    ("ReservationCapacityExceeded", NoCapacity),
    ("SpotMaxPriceTooLow", NoCapacity),
    ("Unsupported", NoCapacity),
    ("VcpuLimitExceeded", Quota),
    ("InstanceLimitExceeded", Quota),
    ("MaxSpotInstanceCountExceeded", Quota),
    ("MaxFleetCountExceeded", Quota),
    ("MaxIOPSLimitExceeded", Quota),
    ("VolumeLimitExceeded", Quota),
    ("NetworkInterfaceLimitExceeded", Quota),
    ("AddressLimitExceeded", Quota),
    ("ResourceLimitExceeded", Quota),
    ("UnauthorizedOperation", Auth),
    ("AccessDenied", Auth),
    ("AccessDeniedException", Auth),
    ("AuthFailure", Auth),
    ("Blocked", Auth),
    ("ExpiredToken", Auth),
    ("ExpiredTokenException", Auth),
    ("IncompleteSignature", Auth),
    ("InvalidClientTokenId", Auth),
    ("MissingAuthenticationToken", Auth),
    ("OptInRequired", Auth),
    ("PendingVerification", Auth),
    ("RequestExpired", Auth),
    ("SignatureDoesNotMatch", Auth),
    ("UnrecognizedClientException", Auth),
    ("RequestLimitExceeded", Throttled),
    ("EC2ThrottledException", Throttled),
    ("RequestThrottled", Throttled),
    ("RequestThrottledException", Throttled),
    ("Throttling", Throttled),
    ("ThrottlingException", Throttled),
    ("TooManyRequestsException", Throttled),
    ("IdempotentParameterMismatch", Conflict),
    ("IdempotentInstanceTerminated", Conflict),
    ("IncorrectInstanceState", Conflict),
    ("IncorrectState", Conflict),
    ("InvalidInstanceID.NotFound", NotFound),
    ("InvalidSpotInstanceRequestID.NotFound", NotFound),
    ("InternalError", Transient),
    ("InternalFailure", Transient),
    ("Internal", Transient),
    ("InternalServiceError", Transient),
    ("RequestTimeout", Transient),
    ("ServiceUnavailable", Transient),
    ("ServiceUnavailableException", Transient),
    ("Unavailable", Transient),
    ("OperationNotPermitted", Invalid),
    ("UnsupportedOperation", Invalid),
    ("UnknownParameter", Invalid),
    ("ValidationError", Invalid),
    ("VPCIdNotSpecified", Invalid),
    ("VPCResourceNotSpecified", Invalid),
    ("MissingAction", Invalid),
    ("MissingInput", Invalid),
    ("MissingParameter", Invalid),
    ("MalformedQueryString", Invalid),
    ("TagLimitExceeded", Invalid),
    ("TagPolicyViolation", Invalid),
];

/// Families of codes, after the table: `InvalidAMIID.Unavailable`, `AuthFailure.ServiceLinkedRoleCreationNotPermitted`.
const PREFIXES: &[(&str, ErrorClass)] = &[("AuthFailure.", Auth), ("Invalid", Invalid)];

/// What to do beyond the class's own remedy, by code.
const HINTS: &[(&str, &str)] = &[
    ("RequestExpired", "EC2 refuses the signature for its time: set this machine's clock right."),
    ("SignatureDoesNotMatch", "The secret key is wrong, or this machine's clock is."),
    ("ExpiredToken", "Log in again, for example with `aws sso login`."),
    ("ExpiredTokenException", "Log in again, for example with `aws sso login`."),
    ("UnauthorizedOperation", "`aws sts decode-authorization-message` tells which permission is missing."),
    ("PendingVerification", "AWS verifies the account; that takes up to four hours."),
    ("OptInRequired", "The account is not signed up for EC2 here, or the region is not enabled."),
    ("SpotMaxPriceTooLow", "The spot price is above the limit now."),
    (
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "Create the role once: `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`.",
    ),
];

/// The class of a code; `None` for one that the table does not know.
pub(super) fn class_of(code: &str) -> Option<ErrorClass> {
    CODES
        .iter()
        .find(|(known, _)| *known == code)
        .or_else(|| PREFIXES.iter().find(|(prefix, _)| code.starts_with(prefix)))
        .map(|(_, class)| *class)
}

/// Which call, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) provider: &'a ProviderId,
    pub(super) operation: &'static str,
    pub(super) region: Option<&'a Region>,
    pub(super) zone: Option<&'a Zone>,
}

impl Site<'_> {
    /// An error of ours, there.
    pub(super) fn error(&self, class: ErrorClass, message: impl Into<String>) -> ProviderError {
        let mut error = ProviderError::new(class, self.provider, self.operation, message);
        error.region = self.region.cloned();
        error.zone = self.zone.cloned();
        error
    }

    /// An error of the SDK, there. Never holds a secret: bodies of requests are not in it.
    pub(super) fn sdk<E>(&self, error: &SdkError<E, HttpResponse>) -> ProviderError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        match error {
            SdkError::TimeoutError(_) => self.error(Transient, "no answer in time"),
            SdkError::ConstructionFailure(_) | SdkError::DispatchFailure(_) => match credentials_error(error) {
                Some(failure) => self.credentials(failure),
                None if matches!(error, SdkError::DispatchFailure(_)) => {
                    // The SDK's own "dispatch failure" says nothing that "not reached" does not.
                    self.error(Transient, format!("not reached: {}", causes(error.source().unwrap_or(error))))
                }
                None => self.error(Invalid, format!("the request could not be made: {}", causes(error))),
            },
            SdkError::ServiceError(answer) if answer.err().code().is_some_and(|code| !code.is_empty()) => {
                self.service(answer.err(), answer.raw())
            }
            other => {
                // A body cut short, or one that is not EC2's: whatever was asked may have been done.
                let raw = other.raw_response();
                let status = raw.map_or(0, |r| r.status().as_u16());
                let class = if status == 429 { Throttled } else { Transient };
                let mut made = self.error(class, format!("the answer (HTTP {status}) could not be read"));
                made.request_id = raw.and_then(request_id);
                made.retry_after = raw.and_then(retry_after);
                made
            }
        }
    }

    fn service<E: ProvideErrorMetadata>(&self, error: &E, raw: &HttpResponse) -> ProviderError {
        let code = error.code().unwrap_or_default();
        let text = error.message().unwrap_or_default();
        let message = match HINTS.iter().find(|(known, _)| *known == code) {
            Some((_, hint)) if text.is_empty() => (*hint).to_owned(),
            Some((_, hint)) => format!("{text} {hint}"),
            None => text.to_owned(),
        };
        let mut made = self.error(class_of(code).unwrap_or(Unknown), message).code(code);
        made.request_id = error.meta().request_id().map(str::to_owned).or_else(|| request_id(raw));
        made.retry_after = retry_after(raw);
        made
    }

    fn credentials(&self, error: &CredentialsError) -> ProviderError {
        let text = causes(error);
        match error {
            CredentialsError::CredentialsNotLoaded(_) => self
                .error(Auth, "no credentials were found; run `aws configure` or `aws sso login`, or set AWS_PROFILE"),
            CredentialsError::ProviderTimedOut(_) => self.error(Transient, format!("credentials did not come: {text}")),
            // Who gives them out was not reached; that says nothing against them.
            _ if network_fault(error) => self.error(Transient, format!("credentials did not come: {text}")),
            _ => self
                .error(Auth, format!("credentials could not be had; `aws sts get-caller-identity` tells more: {text}")),
        }
    }
}

/// An error and its causes in their own words, from the outermost in; what says nothing new is left out.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut told = String::new();
    let mut cause = Some(error);
    while let Some(e) = cause {
        let text = e.to_string();
        if !told.contains(&text) {
            if !told.is_empty() {
                told.push_str(": ");
            }
            told.push_str(&text);
        }
        cause = e.source();
    }
    told
}

/// The failure to get credentials among an error's causes.
fn credentials_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a CredentialsError> {
    let mut cause = Some(error);
    while let Some(e) = cause {
        if let Some(found) = e.downcast_ref::<CredentialsError>() {
            return Some(found);
        }
        cause = e.source();
    }
    None
}

/// Whether a connection that failed is among an error's causes.
fn network_fault(error: &(dyn Error + 'static)) -> bool {
    use std::io::ErrorKind;
    let mut cause = Some(error);
    while let Some(e) = cause {
        if e.downcast_ref::<std::io::Error>().is_some_and(|io| {
            matches!(
                io.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::NetworkDown
                    | ErrorKind::TimedOut
                    | ErrorKind::UnexpectedEof
            )
        }) {
            return true;
        }
        cause = e.source();
    }
    false
}

/// EC2's id of the request, from the header or, as older endpoints do it, from the body alone.
fn request_id(raw: &HttpResponse) -> Option<String> {
    if let Some(id) = raw.headers().get("x-amzn-requestid").or_else(|| raw.headers().get("x-amz-request-id")) {
        return Some(id.chars().take(128).collect());
    }
    let body = raw.body().bytes()?;
    let text = String::from_utf8_lossy(body.get(..body.len().min(64 * 1024))?);
    let (_, rest) = text.split_once("<RequestID>").or_else(|| text.split_once("<RequestId>"))?;
    let id = rest.split('<').next()?.trim();
    (!id.is_empty() && id.len() <= 128).then(|| id.to_owned())
}

/// How long the answer asks to wait; what is not a sensible number of seconds is no statement.
fn retry_after(raw: &HttpResponse) -> Option<Duration> {
    let seconds: u64 = raw.headers().get("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(AWS_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_the_table_names_each_code_once() {
        for (i, (code, _)) in CODES.iter().enumerate() {
            assert!(CODES.iter().skip(i + 1).all(|(other, _)| other != code), "{code} stands twice");
        }
    }

    #[test]
    fn d1_codes_have_the_class_that_the_engine_reacts_to() {
        for (code, class) in [
            ("InsufficientInstanceCapacity", NoCapacity),
            ("Unsupported", NoCapacity),
            ("VcpuLimitExceeded", Quota),
            ("RequestExpired", Auth),
            ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", Auth),
            ("InvalidClientTokenId", Auth),
            ("InvalidAMIID.NotFound", Invalid),
            ("InvalidParameterValue", Invalid),
            ("InvalidInstanceID.NotFound", NotFound),
            ("InvalidInstanceID.Malformed", Invalid),
            ("RequestLimitExceeded", Throttled),
            ("InternalError", Transient),
        ] {
            assert_eq!(class_of(code), Some(class), "{code}");
        }
    }

    #[test]
    fn d1_a_code_that_nobody_knows_has_no_class() {
        for code in ["InsufficientInstanceCapacity_WITH_DETAILS", "", "Insufficient", "insufficientinstancecapacity"] {
            assert_eq!(class_of(code), None, "{code}");
        }
    }

    #[test]
    fn d14_causes_are_told_in_their_own_words_and_once() {
        #[derive(Debug)]
        struct Layer(&'static str, Option<Box<Self>>);
        impl std::fmt::Display for Layer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.0)
            }
        }
        impl Error for Layer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                self.1.as_deref().map(|l| l as &(dyn Error + 'static))
            }
        }
        let over = |text, below| Layer(text, Some(Box::new(below)));
        let error =
            over("io error", over("io error", over("connect: refused", over("refused", Layer("os 111", None)))));
        assert_eq!(causes(&error), "io error: connect: refused: os 111");
    }

    #[test]
    fn f17_credentials_that_could_not_be_fetched_are_not_refused_ones() {
        let (provider, region) = (ProviderId::from("aws"), Region::from("us-east-1"));
        let site = Site { provider: &provider, operation: "RunInstances", region: Some(&region), zone: None };
        let of = |kind: std::io::ErrorKind| {
            site.credentials(&CredentialsError::provider_error(std::io::Error::from(kind))).class
        };
        assert_eq!(of(std::io::ErrorKind::ConnectionRefused), Transient);
        assert_eq!(of(std::io::ErrorKind::NotFound), Auth, "a credential process that is not there");
        assert_eq!(site.credentials(&CredentialsError::not_loaded("none")).class, Auth);
    }

    #[test]
    fn b10_a_spot_price_above_the_limit_is_sold_out_at_that_price() {
        assert_eq!(class_of("SpotMaxPriceTooLow"), Some(NoCapacity));
    }
}
