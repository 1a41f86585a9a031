//! Who we are at AWS, and whether what we need works.

use super::ec2::Ec2;
use super::offerings::regions_of;
use crate::domain::{ErrorClass, ProviderError};
use crate::provider::{Finding, FindingStatus};

fn finding(check: &str, status: FindingStatus, detail: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { check: check.to_owned(), status, detail: detail.into(), remedy: remedy.into() }
}

fn failed(check: &str, error: &ProviderError) -> Finding {
    let clock = matches!(error.code.as_str(), "RequestExpired" | "SignatureDoesNotMatch");
    let check = if clock { "clock" } else { check };
    let status = if error.class == ErrorClass::Throttled { FindingStatus::Warn } else { FindingStatus::Fail };
    finding(check, status, error.to_string(), error.remedy())
}

impl Ec2 {
    /// Only questions that change nothing; a launch is not tried, not even dry: an endpoint that is not AWS's may not
    /// know what that means.
    pub(super) async fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if let Some(url) = &self.settings.endpoint_url {
            found.push(finding(
                "endpoint",
                FindingStatus::Warn,
                format!("calls go to {url}, which is not AWS's own address"),
                "Take `endpoint_url` out of `[providers.aws]` if that is not meant.",
            ));
        }
        let home = self.home();
        let site = self.site("GetCallerIdentity", &home);
        match self.clients.sts.get_caller_identity().send().await {
            Ok(who) => found.push(finding(
                "credentials",
                FindingStatus::Ok,
                format!(
                    "account {} as {}",
                    who.account().unwrap_or("without a number"),
                    who.arn().unwrap_or("somebody without a name")
                ),
                "",
            )),
            Err(error) => found.push(failed("credentials", &site.sdk(&error))),
        }
        match self.regions().await {
            Ok((regions, missing)) if missing.is_empty() => {
                let names: Vec<&str> = regions.iter().map(crate::domain::Region::as_str).collect();
                found.push(finding("regions", FindingStatus::Ok, names.join(", "), ""));
            }
            Ok((_, missing)) => found.push(finding(
                "regions",
                FindingStatus::Fail,
                format!("not there or not enabled: {}", regions_of(&missing)),
                "Correct `regions` in `[providers.aws]`, or enable them in the account's settings.",
            )),
            Err(error) => found.push(failed("permissions", &error)),
        }
        // The regions' cache may answer for a while; this one asks EC2 itself.
        if let Err(error) = self.fresh_zones(&home).await {
            found.push(failed("permissions", &error));
        } else {
            found.push(finding("permissions", FindingStatus::Ok, "EC2 can be read", ""));
        }
        found
    }
}
