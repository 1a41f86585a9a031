//! `[providers.azure]` of the configuration.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

/// What machines boot from where nothing else is configured: Microsoft's Ubuntu image for GPU machines, which holds the
/// NVIDIA driver.
pub const DEFAULT_IMAGE: &str = "microsoft-dsvm:ubuntu-hpc:2204:latest";
/// The user that the SSH key is for where no other is configured.
pub const DEFAULT_ADMIN: &str = "gpudeck";

/// `[providers.azure.region.NAME]`: what machines need there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AzureRegionSettings {
    /// The subnet's resource id; `None`: the only one that the resource group has in the region.
    pub subnet: Option<String>,
    /// The network security group's resource id; `None`: the subnet's own.
    pub security_group: Option<String>,
}

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
    /// Another address of the public price list; with `endpoint_url` and without this one no list is asked.
    pub prices_url: Option<String>,
    /// Where machines are made; needed to launch.
    pub resource_group: Option<String>,
    /// The public key that machines let in; needed to launch, for Azure makes no machine without one.
    pub ssh_public_key: Option<String>,
    /// The user whose key that is; else [`DEFAULT_ADMIN`].
    pub admin_user: Option<String>,
    /// `PUBLISHER:OFFER:SKU:VERSION` or an image's resource id; else [`DEFAULT_IMAGE`].
    pub image: Option<String>,
    /// Size of the boot disk in GiB, where the image's own is smaller.
    pub disk_gib: Option<u32>,
    /// What machines need in a region, by the region's name.
    pub region: BTreeMap<String, AzureRegionSettings>,
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
    /// Everything that is wrong, as key and sentence; empty where all is well.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut need = |ok: bool, key: String, message: &str| {
            if !ok {
                found.push((key, message.to_owned()));
            }
        };
        let group = |t: &str| t.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '(' | ')'));
        if let Some(text) = &self.resource_group {
            let ok = (1..=90).contains(&text.len()) && group(text);
            need(ok, "resource_group".into(), "a resource group has 1 to 90 letters, digits and -_.()");
        }
        if let Some(text) = &self.ssh_public_key {
            let ok = text.starts_with("ssh-") && text.split(' ').count() >= 2 && !text.contains(['\n', '\r']);
            need(ok, "ssh_public_key".into(), "a public key is one line such as `ssh-ed25519 AAAA… name`");
        }
        if let Some(text) = &self.admin_user {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
            let ok = (1..=32).contains(&text.len()) && text.chars().all(plain) && !matches!(&**text, "root" | "admin");
            need(
                ok,
                "admin_user".into(),
                "a user has 1 to 32 small letters, digits, - and _, and is not root or admin",
            );
        }
        if let Some(text) = &self.image {
            let ok = text.starts_with('/') || text.split(':').filter(|part| !part.is_empty()).count() == 4;
            need(ok, "image".into(), "write PUBLISHER:OFFER:SKU:VERSION or the resource id of an image");
        }
        need(
            self.disk_gib.is_none_or(|g| (8..=4_095).contains(&g)),
            "disk_gib".into(),
            "a boot disk has 8 to 4095 GiB",
        );
        for (name, region) in &self.region {
            let known = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            need(known, format!("region.{name}"), "a region is written as Azure's own name, for example westeurope");
            for (key, id) in [("subnet", &region.subnet), ("security_group", &region.security_group)] {
                let ok = id.as_ref().is_none_or(|id| id.starts_with("/subscriptions/"));
                need(ok, format!("region.{name}.{key}"), "it is a resource id, which begins with /subscriptions/");
            }
        }
        found
    }

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
