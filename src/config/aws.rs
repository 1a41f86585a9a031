//! What people write about AWS, and whether credentials for it could be there at all.
//!
//! Credentials themselves never stand here: they come from where every AWS tool takes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// `[providers.aws]` of the configuration. All keys may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AwsSettings {
    /// Use AWS where credentials are found; `false` leaves it out.
    pub enabled: bool,
    /// Which profile of the shared configuration; where it is named, nothing else is asked for credentials.
    pub profile: Option<String>,
    /// Another file of profiles than `~/.aws/credentials` and `~/.aws/config`; then those two are not read.
    pub credentials_file: Option<PathBuf>,
    /// Ask the metadata service of the machine that gpudeck runs on for credentials, last of all. Off, because
    /// anywhere else than on EC2 the question only costs time.
    pub instance_metadata: bool,
    /// Where questions on the whole account are asked.
    pub home_region: String,
    /// Only these regions are looked at, for offers and for machines. None named: all that are enabled for the
    /// account. Keep a region here for as long as machines run in it.
    pub regions: Vec<String>,
    /// Another address than AWS's own, for a private endpoint or a test; everywhere it is shown that it is not AWS.
    /// Only this key sets it: `AWS_ENDPOINT_URL` and profiles do not.
    pub endpoint_url: Option<String>,
    /// Name pattern of Amazon's own images to boot from, newest first, instead of the Deep Learning Base images.
    pub image_name: Option<String>,
    /// Size of the boot disk in GiB, where the image's own is smaller.
    pub disk_gib: Option<u32>,
    /// The instance profile that machines run with.
    pub instance_profile: Option<String>,
    /// What machines need in a region, by the region's name.
    pub region: BTreeMap<String, AwsRegionSettings>,
}

/// `[providers.aws.region.NAME]`: what machines need there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AwsRegionSettings {
    /// The image to boot from, `ami-…`.
    pub image: Option<String>,
    /// The key pair for SSH.
    pub key_name: Option<String>,
    /// Security groups, `sg-…`; none: the default group of the network.
    pub security_groups: Vec<String>,
    /// The subnet of each zone, by the zone's id (`use1-az4`). None: the default subnet; some: launches go only into
    /// zones that have one.
    pub subnets: BTreeMap<String, String>,
}

impl Default for AwsSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            profile: None,
            credentials_file: None,
            instance_metadata: false,
            home_region: "us-east-1".to_owned(),
            regions: Vec::new(),
            endpoint_url: None,
            image_name: None,
            disk_gib: None,
            instance_profile: None,
            region: BTreeMap::new(),
        }
    }
}

/// Whether this is how AWS names regions: `us-east-1`, `us-gov-west-1`. It becomes part of a host name, so nothing else
/// may pass.
pub fn is_region_name(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() >= 3
        && text.len() <= 32
        && parts.iter().all(|p| !p.is_empty())
        && parts.last().is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        && parts.iter().rev().skip(1).all(|p| p.bytes().all(|b| b.is_ascii_lowercase()))
}

impl AwsSettings {
    /// Everything that is wrong, as key and sentence; empty where all is well.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut region = |key: String, name: &str| {
            if !is_region_name(name) {
                found.push((key, format!("'{name}' is not a region's name; write for example us-east-1")));
            }
        };
        region("home_region".to_owned(), &self.home_region);
        for (i, name) in self.regions.iter().enumerate() {
            region(format!("regions[{i}]"), name);
        }
        for name in self.region.keys() {
            region(format!("region.{name}"), name);
        }
        for (i, name) in self.regions.iter().enumerate() {
            if self.regions.iter().take(i).any(|other| other == name) {
                found.push((format!("regions[{i}]"), format!("'{name}' is named twice")));
            }
        }
        if let Some(why) = self.endpoint_url.as_deref().and_then(endpoint_problem) {
            found.push(("endpoint_url".to_owned(), why.to_owned()));
        }
        if self.disk_gib.is_some_and(|gib| !(8..=16_384).contains(&gib)) {
            found.push(("disk_gib".to_owned(), "a boot disk has 8 to 16384 GiB".to_owned()));
        }
        for (key, text) in [("profile", &self.profile), ("image_name", &self.image_name)] {
            if text.as_deref().is_some_and(|t| t.trim().is_empty()) {
                found.push((key.to_owned(), "it is empty; leave the key out instead".to_owned()));
            }
        }
        for (name, settings) in &self.region {
            settings.problems(name, &mut found);
        }
        found
    }

    /// Where credentials could come from, each in a few words; empty where there cannot be any. Reads the environment
    /// and the profile files, and asks nobody.
    pub fn credential_sources(&self) -> Vec<String> {
        self.credential_sources_in(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
    }

    fn credential_sources_in(&self, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let mut found = Vec::new();
        let named = self.profile.clone();
        if named.is_none() && self.credentials_file.is_none() {
            if env("AWS_ACCESS_KEY_ID").is_some() && env("AWS_SECRET_ACCESS_KEY").is_some() {
                found.push("environment variables".to_owned());
            }
            if env("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() && env("AWS_ROLE_ARN").is_some() {
                found.push("web identity token".to_owned());
            }
            for name in ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"] {
                if env(name).is_some() {
                    found.push("container credentials".to_owned());
                }
            }
        }
        let profile = named.or_else(|| env("AWS_PROFILE")).unwrap_or_else(|| "default".to_owned());
        let home = env("HOME").map(PathBuf::from);
        let file = |variable: &str, name: &str| {
            env(variable).map(PathBuf::from).or_else(|| home.as_ref().map(|h| h.join(".aws").join(name)))
        };
        let files = match &self.credentials_file {
            Some(only) => vec![Some(only.clone())],
            None => {
                vec![file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), file("AWS_CONFIG_FILE", "config")]
            }
        };
        if files.into_iter().flatten().any(|path| file_names_credentials(&path, &profile)) {
            found.push(format!("profile {profile}"));
        }
        if self.instance_metadata {
            found.push("instance metadata".to_owned());
        }
        found
    }
}

impl AwsRegionSettings {
    fn problems(&self, region: &str, found: &mut Vec<(String, String)>) {
        let id = |found: &mut Vec<(String, String)>, key: String, prefix: &str, text: &str| {
            let well = text.strip_prefix(prefix).is_some_and(|rest| {
                (8..=32).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            });
            if !well {
                found.push((key, format!("'{text}' is not an id that starts with {prefix}")));
            }
        };
        if let Some(image) = &self.image {
            id(found, format!("region.{region}.image"), "ami-", image);
        }
        for (i, group) in self.security_groups.iter().enumerate() {
            id(found, format!("region.{region}.security_groups[{i}]"), "sg-", group);
        }
        for (zone, subnet) in &self.subnets {
            id(found, format!("region.{region}.subnets.{zone}"), "subnet-", subnet);
            if zone.starts_with(region) {
                found.push((
                    format!("region.{region}.subnets.{zone}"),
                    "this is an account's own letter for a zone; write the zone's id, such as use1-az4 \
                     (aws ec2 describe-availability-zones shows both)"
                        .to_owned(),
                ));
            }
        }
    }
}

/// Why an address must not be called, if so: requests carry session tokens and start-up scripts, so in the clear only
/// to this machine itself.
fn endpoint_problem(url: &str) -> Option<&'static str> {
    let (rest, clear) = if let Some(rest) = url.strip_prefix("https://") {
        (rest, false)
    } else if let Some(rest) = url.strip_prefix("http://") {
        (rest, true)
    } else {
        return Some("it must start with https:// (http:// only for this machine itself)");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("it needs a host, and no user name or blanks");
    }
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (clear && !here).then_some("http:// is allowed only for this machine itself; use https://")
}

/// Whether the file has a section of that profile that says where credentials come from.
fn file_names_credentials(path: &Path, profile: &str) -> bool {
    const SAYS: [&str; 8] = [
        "aws_access_key_id",
        "role_arn",
        "sso_session",
        "sso_start_url",
        "credential_process",
        "web_identity_token_file",
        "credential_source",
        "source_profile",
    ];
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            let name = section.trim();
            inside = name.strip_prefix("profile ").map_or(name, str::trim) == profile;
        } else if inside && line.split('=').next().is_some_and(|key| SAYS.contains(&key.trim())) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<AwsSettings, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn unknown_keys_are_errors_and_all_keys_may_be_left_out() {
        assert_eq!(settings(""), Ok(AwsSettings::default()));
        assert!(settings("regoins = []").is_err());
        assert!(settings("[region.us-east-1]\nsubnet = 'x'").is_err());
    }

    #[test]
    fn problems_name_their_keys_all_at_once() {
        let written = settings(
            "home_region = 'evil.example/'\nregions = ['us-east-1', 'us-east-1', 'US']\nendpoint_url = 'http://10.0.0.1'\n\
             [region.us-east-1]\nimage = 'ubuntu'\nsubnets = { us-east-1a = 'subnet-0123456789abcdef0' }",
        );
        let keys: Vec<String> =
            written.map(|s| s.problems().into_iter().map(|(key, _)| key).collect()).unwrap_or_default();
        assert_eq!(
            keys,
            [
                "home_region",
                "regions[2]",
                "regions[1]",
                "endpoint_url",
                "region.us-east-1.image",
                "region.us-east-1.subnets.us-east-1a"
            ]
        );
        assert_eq!(AwsSettings::default().problems(), []);
    }

    #[test]
    fn d5_subnets_are_by_zone_id_not_by_the_accounts_letter() {
        let good = settings("[region.us-east-1]\nsubnets = { use1-az4 = 'subnet-0123456789abcdef0' }");
        assert_eq!(good.map(|s| s.problems()), Ok(vec![]));
    }

    #[test]
    fn an_endpoint_in_the_clear_is_allowed_only_here() {
        for good in ["https://vpce-1.ec2.example", "http://127.0.0.1:5000", "http://localhost:5000/x", "http://[::1]:1"]
        {
            assert_eq!(endpoint_problem(good), None, "{good}");
        }
        for bad in
            ["http://169.254.169.254", "ftp://x", "https://", "https://a@b", "http://127.0.0.1.example", "http://[::2]"]
        {
            assert!(endpoint_problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn region_names_cannot_lead_a_request_elsewhere() {
        for good in ["us-east-1", "ap-southeast-4", "us-gov-west-1", "us-iso-east-1", "mx-central-1"] {
            assert!(is_region_name(good), "{good}");
        }
        for bad in
            ["", "us-east-1.evil.example", "us-east-1/", "us--1", "us-east-1#", "-east-1", "us-east-a", "US-east-1"]
        {
            assert!(!is_region_name(bad), "{bad}");
        }
    }

    #[test]
    fn no_credentials_anywhere_is_seen_without_asking_anybody() {
        let none = AwsSettings::default();
        assert!(none.credential_sources_in(&|_| None).is_empty());
        let keys = |name: &str| name.starts_with("AWS_").then(|| "x".to_owned());
        assert!(none.credential_sources_in(&keys).contains(&"environment variables".to_owned()));
    }

    #[test]
    fn a_named_profile_alone_counts_where_one_is_named() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("credentials");
        std::fs::write(&file, "# x\n[other]\nregion = us-east-1\n[work]\naws_access_key_id = AKIA\n")?;
        let with = |profile: &str| AwsSettings {
            profile: Some(profile.to_owned()),
            credentials_file: Some(file.clone()),
            ..AwsSettings::default()
        };
        let env = |name: &str| name.starts_with("AWS_").then(|| "x".to_owned());
        assert_eq!(with("work").credential_sources_in(&env), ["profile work"]);
        assert!(with("other").credential_sources_in(&env).is_empty());
        assert!(with("absent").credential_sources_in(&env).is_empty());
        Ok(())
    }
}
