//! `[providers.gcp]` of the configuration.

use std::path::PathBuf;

use serde::Deserialize;

/// How Google Cloud is reached. The credentials themselves stand in Google's own file, never here.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GcpSettings {
    /// `false` leaves Google Cloud out.
    pub enabled: Option<bool>,
    /// The project; else `GOOGLE_CLOUD_PROJECT`.
    pub project: Option<String>,
    /// Only these regions; empty means every one.
    pub regions: Vec<String>,
    /// Another address than Google's own. Bearer tokens go there: name only what you trust.
    pub endpoint_url: Option<String>,
    /// The file with application default credentials: from `GOOGLE_APPLICATION_CREDENTIALS`, else gcloud's own.
    #[serde(skip)]
    pub credentials_file: Option<PathBuf>,
}

impl GcpSettings {
    /// With what the environment adds; what the file says wins.
    #[must_use]
    pub fn with_environment(mut self, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        self.project = self.project.or_else(|| variable("GOOGLE_CLOUD_PROJECT"));
        self.credentials_file = variable("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from).or_else(|| {
            let base = variable("CLOUDSDK_CONFIG")
                .map(PathBuf::from)
                .or_else(|| variable("HOME").map(|h| PathBuf::from(h).join(".config/gcloud")))?;
            Some(base.join("application_default_credentials.json"))
        });
        self
    }
}
