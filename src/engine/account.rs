//! Whose account a session uses, against whose a machine was made in. What another account does not have is not gone, and
//! what it has is not ours: after a login as somebody else nothing is launched again, ended or proved.

use serde_json::json;

use super::shared::Shared;
use crate::domain::text::inert;
use crate::domain::{ErrorClass, EventKind, ProviderError, ProviderId};
use crate::store::{IntentRow, NewEvent, StoreError};

/// The code of the error that another account's session gets.
pub(crate) const OTHER_ACCOUNT: &str = "OtherAccount";

/// How this session's account stands to the one that a machine was made in.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// It is the same one (or the machine is from before accounts were written down).
    Same,
    /// It is another one.
    Other(ProviderError),
    /// It is not known: what is seen counts, what is not seen proves nothing.
    Unknown(ProviderError),
}

impl Shared {
    /// Compare the account that this session uses with the one that a machine was made in.
    pub(crate) async fn standing(&self, provider: &ProviderId, made_in: Option<&str>, call: &str) -> Standing {
        let Some(made_in) = made_in else { return Standing::Same };
        match self.call_account(provider).await {
            Ok(account) if account == made_in => Standing::Same,
            Ok(account) => Standing::Other(other_account(provider, call, made_in, &account)),
            Err(error) => Standing::Unknown(error),
        }
    }

    /// Say it where machines are out of reach because the session is logged in elsewhere, and take it back once it is
    /// not any more.
    pub(crate) async fn tell_accounts(&self, open: &[IntentRow]) -> std::result::Result<(), StoreError> {
        for connected in &self.providers {
            let provider = connected.watch.id();
            let held: Vec<&IntentRow> =
                open.iter().filter(|i| &i.offer.provider == provider && i.account.is_some()).collect();
            if held.is_empty() {
                continue;
            }
            let Ok(account) = self.call_account(provider).await else { continue };
            let out: Vec<&&IntentRow> =
                held.iter().filter(|i| i.account.as_deref().is_some_and(|made_in| made_in != account)).collect();
            // Nothing is written where nothing is to be taken back.
            if out.is_empty() && self.state.borrow().alerts.is_empty() {
                continue;
            }
            let key = format!("account:{provider}");
            let now = self.now();
            let mut tx = self.begin().await?;
            let Some(first) = out.first() else {
                if tx.clear_alert(&key, now).await? {
                    self.commit(tx, None).await?;
                }
                continue;
            };
            let made_in = inert(first.account.as_deref().unwrap_or_default()).into_owned();
            let text = format!(
                "{} machines of {provider} are out of reach and bill on: they were made in {made_in}, and this session is \
                 logged in to {}; log in to the former",
                out.len(),
                inert(&account)
            );
            let data = json!({ "provider": provider, "machines": out.len(), "made_in": made_in, "account": account });
            let alert =
                NewEvent { at: now, actor: &self.actor, kind: EventKind::Alert, job: None, plan: None, text, data };
            if tx.raise_alert(&key, alert).await? {
                self.commit(tx, None).await?;
            }
        }
        Ok(())
    }
}

/// The session's account is not the one that it would have to be.
fn other_account(provider: &ProviderId, call: &str, made_in: &str, account: &str) -> ProviderError {
    let text = format!(
        "the machine was made in {}, and this session is logged in to {}; log in to the former",
        inert(made_in),
        inert(account)
    );
    ProviderError::new(ErrorClass::Auth, provider, call, text).code(OTHER_ACCOUNT)
}
