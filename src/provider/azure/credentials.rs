//! Tokens from the maintained `azure_identity`, handed to the management crate, which knows only the older trait.

use std::sync::Arc;

use azure_core::auth::{AccessToken, TokenCredential};
use azure_identity::{ClientSecretCredential, DeveloperToolsCredential, WorkloadIdentityCredential};
use secrecy::ExposeSecret;

use super::absent;
use crate::config::azure::AzureSettings;
use crate::provider::Absent;

/// The scope of the management interface, whatever address the calls go to.
const MANAGEMENT_SCOPE: &str = "https://management.azure.com/.default";

/// Environment, then workload identity, then the developer's own `az login`.
pub(super) fn from_settings(settings: &AzureSettings) -> Result<Arc<dyn TokenCredential>, Absent> {
    let failed = |e: azure_core_v1::Error| {
        absent(
            &format!("the credentials cannot be used: {e}"),
            "Run `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET.",
        )
    };
    let inner: Arc<dyn azure_core_v1::credentials::TokenCredential> =
        match (&settings.tenant_id, &settings.client_id, &settings.client_secret) {
            (Some(tenant), Some(client), Some(secret)) => ClientSecretCredential::new(
                tenant,
                client.clone(),
                azure_core_v1::credentials::Secret::new(secret.expose_secret().to_owned()),
                None,
            )
            .map_err(failed)?,
            _ if settings.federated => WorkloadIdentityCredential::new(None).map_err(failed)?,
            _ => DeveloperToolsCredential::new(None).map_err(failed)?,
        };
    Ok(Arc::new(Bridge(inner)))
}

/// The newer trait behind the older one.
#[derive(Debug)]
struct Bridge(Arc<dyn azure_core_v1::credentials::TokenCredential>);

#[async_trait::async_trait]
impl TokenCredential for Bridge {
    async fn get_token(&self, _scopes: &[&str]) -> azure_core::Result<AccessToken> {
        let token =
            self.0.get_token(&[MANAGEMENT_SCOPE], None).await.map_err(|e| {
                azure_core::Error::full(azure_core::error::ErrorKind::Credential, e, "no token for Azure")
            })?;
        Ok(AccessToken::new(token.token.secret().to_owned(), token.expires_on))
    }

    async fn clear_cache(&self) -> azure_core::Result<()> {
        Ok(())
    }
}
