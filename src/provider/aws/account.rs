//! Whose account the credentials belong to.

use std::sync::PoisonError;

use chrono::TimeDelta;

use super::ec2::Ec2;
use crate::config::limits::{AWS_ACCOUNT, AWS_ACCOUNT_LAST_RESORT};
use crate::domain::ErrorClass;
use crate::provider::{Result, account_at};

impl Ec2 {
    /// The account's number. Credentials can change under a running process (a profile that is edited, a session that is
    /// renewed as somebody else), so it is asked for again every few minutes; while nobody answers, the last word holds
    /// for a while longer. An endpoint that only emulates EC2 may have no such service: it is its own account then.
    pub(super) async fn caller(&self) -> Result<String> {
        let now = self.clock.now();
        let known = self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let within = |limit: std::time::Duration| {
            known.as_ref().filter(|(at, _)| {
                let age = now - *at;
                age >= TimeDelta::zero() && age < TimeDelta::from_std(limit).unwrap_or(TimeDelta::MAX)
            })
        };
        if let Some((_, account)) = within(AWS_ACCOUNT) {
            return Ok(account.clone());
        }
        let home = self.home();
        let site = self.site("GetCallerIdentity", &home);
        let endpoint = self.settings.endpoint_url.as_deref();
        let account = match self.clients.sts.get_caller_identity().send().await {
            Ok(who) => match who.account() {
                Some(account) => account_at(account, endpoint),
                None => return Err(site.error(ErrorClass::Unknown, "the answer names no account")),
            },
            Err(error) => {
                // It does not know the question, in whatever words it says so.
                let status = error.raw_response().map(|r| r.status().as_u16());
                let no_such_service = status.is_some_and(|s| matches!(s, 400 | 404 | 405 | 501));
                let error = site.sdk(&error);
                match (error.class, endpoint) {
                    (
                        ErrorClass::Invalid | ErrorClass::NotFound | ErrorClass::Unknown | ErrorClass::Transient,
                        Some(_),
                    ) if no_such_service => account_at("the only account", endpoint),
                    (ErrorClass::Transient | ErrorClass::Throttled, _) => {
                        return within(AWS_ACCOUNT_LAST_RESORT).map(|(_, account)| account.clone()).ok_or(error);
                    }
                    _ => return Err(error),
                }
            }
        };
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, account.clone()));
        Ok(account)
    }
}
