//! `[providers.azure]` of the configuration.

use secrecy::SecretString;
use serde::Deserialize;

/// How Azure is reached. Secrets never stand in the file: they come from the environment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AzureSettings {
    /// `false` leaves Azure out.
    pub enabled: Option<bool>,
    /// The subscription; else `AZURE_SUBSCRIPTION_ID`.
    pub subscription_id: Option<String>,
    /// Only these regions; empty means every one.
    pub regions: Vec<String>,
    /// Another address than Azure's own. Bearer tokens go there: name only what you trust.
    pub endpoint_url: Option<String>,
    /// From `AZURE_TENANT_ID`.
    #[serde(skip)]
    pub tenant_id: Option<String>,
    /// From `AZURE_CLIENT_ID`.
    #[serde(skip)]
    pub client_id: Option<String>,
    /// From `AZURE_CLIENT_SECRET`.
    #[serde(skip)]
    pub client_secret: Option<SecretString>,
    /// `AZURE_FEDERATED_TOKEN_FILE` is set: workload identity.
    #[serde(skip)]
    pub federated: bool,
}

impl AzureSettings {
    /// With what the environment adds; what the file says wins.
    #[must_use]
    pub fn with_environment(mut self, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        self.subscription_id = self.subscription_id.or_else(|| variable("AZURE_SUBSCRIPTION_ID"));
        self.tenant_id = variable("AZURE_TENANT_ID");
        self.client_id = variable("AZURE_CLIENT_ID");
        self.client_secret = variable("AZURE_CLIENT_SECRET").map(SecretString::from);
        self.federated = variable("AZURE_FEDERATED_TOKEN_FILE").is_some();
        self
    }
}
