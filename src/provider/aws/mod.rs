//! Amazon EC2.
//!
//! - [`connect`]: from the settings to an [`Ec2`], or why there is none, within milliseconds and without asking anybody.
//! - `clients`: credentials and a client a region. The SDK's own retries are off: retrying is a decorator's work.
//! - `offerings`, `shapes`: what is offered, by zone id; what is listed may well be sold out, so availability is unknown.
//!   On-demand prices are not in EC2's interface and come from the bundled catalogue, as published and with its date.
//! - `launch`, `images`: one machine a request, with its token and all tags in the one call.
//! - `machines`: finding and ending them. `states`, `tags`: EC2's words and our mark.
//! - `errors`: the one table of codes. `quotas`: which quota a launch counts against.
//!
//! What EC2 promises and this adapter builds on: the same client token with the same parameters gives the same machine,
//! in one region, for at least a day after it is gone; tags of the launch call are there from the first moment; a
//! machine can be missing from listings for some seconds after its launch, so one absent read proves nothing.

mod account;
mod check;
mod clients;
mod ec2;
mod errors;
mod images;
mod launch;
mod machines;
mod offerings;
mod quotas;
mod shapes;
mod states;
mod tags;
mod zones;

use std::sync::Arc;

pub use clients::Deadlines;
pub use ec2::{Ec2, Options};

use super::Absent;
pub use super::published::Published;
use crate::config::aws::AwsSettings;
use crate::domain::ProviderId;

/// The provider's id.
pub const ID: &str = "aws";

/// EC2 as the settings say, with the system's clock and the bundled catalogue.
///
/// # Errors
/// Why it cannot be used: switched off, settings that are wrong, or nowhere that credentials could come from. Nobody is
/// asked for this, so it takes milliseconds; credentials that are there and do not work show in `check`.
pub fn connect(settings: &AwsSettings) -> Result<Arc<Ec2>, Absent> {
    connect_with(settings, Options::default())
}

/// The same with a clock, published prices and deadlines of the caller's.
pub fn connect_with(settings: &AwsSettings, options: Options) -> Result<Arc<Ec2>, Absent> {
    let absent =
        |reason: String, remedy: &str| Absent { provider: ProviderId::from(ID), reason, remedy: remedy.to_owned() };
    if !settings.enabled {
        return Err(absent(
            "switched off".to_owned(),
            "Take `enabled = false` out of `[providers.aws]` in the configuration.",
        ));
    }
    if let Some((key, problem)) = settings.problems().into_iter().next() {
        return Err(absent(
            format!("providers.aws.{key}: {problem}"),
            "Correct the configuration; `gpudeck doctor` checks it.",
        ));
    }
    if settings.credential_sources().is_empty() {
        return Err(absent(
            "no credentials".to_owned(),
            "Run `aws configure` or `aws sso login`, or set AWS_PROFILE or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY; on EC2 itself set `instance_metadata = true` in `[providers.aws]`.",
        ));
    }
    Ok(Arc::new(Ec2::new(settings.clone(), options)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_says_why_and_what_to_do() {
        let off = AwsSettings { enabled: false, ..AwsSettings::default() };
        assert_eq!(connect(&off).err().map(|a| a.reason), Some("switched off".to_owned()));
        let wrong = AwsSettings { home_region: "x".to_owned(), ..AwsSettings::default() };
        assert!(connect(&wrong).err().is_some_and(|a| a.reason.contains("home_region")));
        let nobody =
            AwsSettings { credentials_file: Some("/nonexistent/credentials".into()), ..AwsSettings::default() };
        let absent = connect(&nobody).err();
        assert_eq!(absent.as_ref().map(|a| a.reason.as_str()), Some("no credentials"));
        assert!(absent.is_some_and(|a| a.remedy.contains("aws configure")));
    }
}
