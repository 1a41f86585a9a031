//! `[providers.gcp]` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// `[providers.gcp.region.NAME]`: what machines need there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GcpRegionSettings {
    /// The subnetwork, `projects/…/regions/…/subnetworks/…`; `None`: the project's default network.
    pub subnetwork: Option<String>,
}

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
    /// What machines boot from, `projects/…/global/images/family/…`; needed to launch.
    pub image: Option<String>,
    /// Size of the boot disk in GiB, where the image's own is smaller.
    pub disk_gib: Option<u32>,
    /// The service account that machines run as; `None`: none.
    pub service_account: Option<String>,
    /// What machines need in a region, by the region's name.
    pub region: BTreeMap<String, GcpRegionSettings>,
    /// The file with application default credentials: from `GOOGLE_APPLICATION_CREDENTIALS`, else gcloud's own.
    #[serde(skip)]
    pub credentials_file: Option<PathBuf>,
}

impl GcpSettings {
    /// Everything that is wrong, as key and sentence; empty where all is well.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut need = |ok: bool, key: String, message: &str| {
            if !ok {
                found.push((key, message.to_owned()));
            }
        };
        let resource = |text: &str| text.starts_with("projects/") || text.starts_with("https://");
        let image = self.image.as_deref().is_none_or(|t| resource(t) && t.contains("/images/"));
        need(image, "image".into(), "write projects/PROJECT/global/images/NAME or …/images/family/NAME");
        let disk = self.disk_gib.is_none_or(|gib| (10..=65_536).contains(&gib));
        need(disk, "disk_gib".into(), "a boot disk has 10 to 65536 GiB");
        let account =
            self.service_account.as_deref().is_none_or(|t| t.contains('@') && !t.contains(char::is_whitespace));
        need(account, "service_account".into(), "a service account is written as its e-mail address");
        for (name, region) in &self.region {
            let known =
                name.contains('-') && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            need(known, format!("region.{name}"), "a region is written as Google's own name, for example us-central1");
            let ok = region.subnetwork.as_deref().is_none_or(resource);
            need(ok, format!("region.{name}.subnetwork"), "write projects/PROJECT/regions/REGION/subnetworks/NAME");
        }
        found
    }

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
