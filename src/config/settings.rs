//! The configuration file: as written (a patch over the defaults) and as meant.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::aws::AwsSettings;
use super::azure::AzureSettings;
use super::gcp::GcpSettings;
use super::limits::{CATALOGUE_URL, WRITTEN_FILE_BYTES};
use super::problem::{Origin, Problem, Problems, Written};
use super::reader::{Reader, Section, nearest_word};
use super::watches::{self, Watches};
use crate::domain::HourlyRate;

/// The shipped sample: every key with its default and what it does.
pub const EXAMPLE: &str = include_str!("../../config.example.toml");

/// The configuration as meant.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `[providers.*]`.
    pub providers: Providers,
    /// `[ui]`.
    pub ui: Ui,
    /// `[demo]`.
    pub demo: Demo,
    /// `[limits]`.
    pub limits: Limits,
    /// `[ledger]`.
    pub ledger: Ledger,
    /// `[catalogue]`.
    pub catalogue: CatalogueSource,
    /// `[watches.*]`.
    pub watches: Watches,
}

/// `[catalogue]`: published prices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueSource {
    /// Where `catalogue update` fetches `CLOUD/vms.csv` from.
    pub url: String,
}

impl Default for CatalogueSource {
    fn default() -> Self {
        Self { url: CATALOGUE_URL.to_owned() }
    }
}

/// `[ledger]`: the durable record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// The installation's id that machines are marked with; `None` is the ledger's own, made at random with it. Where a
    /// ledger is lost, a new one with the old id finds the machines again.
    pub owner: Option<String>,
}

/// `[providers.*]`: which clouds to use, and how.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    /// `[providers.aws]`.
    pub aws: AwsSettings,
    /// `[providers.azure]`.
    pub azure: AzureSettings,
    /// `[providers.gcp]`.
    pub gcp: GcpSettings,
}

/// `[ui]`: how things are shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ui {
    /// The theme's name; `None` is the default theme.
    pub theme: Option<String>,
    /// Whether to draw with ASCII only.
    pub ascii: Ascii,
    /// In whose time moments are shown; files and JSON are always UTC.
    pub time: TimeDisplay,
    /// Whether the cockpit may write the terminal's clipboard (OSC 52).
    pub clipboard: bool,
    /// Keys that are bound otherwise: the action's name, and its keys.
    pub keys: BTreeMap<String, Vec<String>>,
    /// The user's own themes, from files beside the configuration: where each was read, and its text.
    pub themes: Vec<(String, String)>,
}

/// Whether to draw with ASCII only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ascii {
    /// Where the locale or the terminal cannot do more.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// In whose time moments are shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeDisplay {
    /// In UTC.
    #[default]
    Utc,
    /// In the system's zone, which is always written behind.
    Local,
    /// As an age: `4 min ago`.
    Relative,
}

/// `[demo]`: the simulated market.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demo {
    /// What its randomness starts from; `None` is the demo's own default.
    pub seed: Option<u64>,
    /// Seconds of the simulated world in a real second; `None` is the demo's own default.
    pub speed: Option<f64>,
}

/// `[limits]`: what protects the purse.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// A launch dearer than this wants the job's name typed instead of `y`.
    pub type_name_above_usd_per_hour: HourlyRate,
}

impl Default for Limits {
    fn default() -> Self {
        // About one machine with eight GPUs of the newest kind on demand: more than that is not started by a `y`.
        Self { type_name_above_usd_per_hour: HourlyRate::from_micros(100_000_000) }
    }
}

/// The configuration as written: what is absent keeps its default.
#[derive(Debug, Default)]
struct Patch {
    aws: AwsSettings,
    azure: AzureSettings,
    gcp: GcpSettings,
    theme: Option<Written<String>>,
    ascii: Option<Written<String>>,
    time: Option<Written<String>>,
    clipboard: Option<Written<bool>>,
    keys: BTreeMap<String, Written<Vec<String>>>,
    seed: Option<Written<u64>>,
    speed: Option<Written<f64>>,
    type_name_above: Option<Written<f64>>,
    owner: Option<Written<String>>,
    catalogue_url: Option<Written<String>>,
    watches: Watches,
}

impl Patch {
    fn read(r: &mut Reader, root: &Section<'_>) -> Self {
        let providers = root.section(r, "providers");
        let aws: AwsSettings = providers.whole_section(r, "aws");
        for (key, message) in aws.problems() {
            providers.problem_at(r, &format!("aws.{key}"), &message);
        }
        let azure: AzureSettings = providers.whole_section(r, "azure");
        for (key, message) in azure.problems() {
            providers.problem_at(r, &format!("azure.{key}"), &message);
        }
        let gcp: GcpSettings = providers.whole_section(r, "gcp");
        for (key, message) in gcp.problems() {
            providers.problem_at(r, &format!("gcp.{key}"), &message);
        }
        for (key, url) in [
            ("azure.endpoint_url", &azure.endpoint_url),
            ("azure.prices_url", &azure.prices_url),
            ("gcp.endpoint_url", &gcp.endpoint_url),
        ] {
            if let Some(why) = url.as_deref().and_then(endpoint_problem) {
                providers.problem_at(r, key, why);
            }
        }
        let ui = root.section(r, "ui");
        let demo = root.section(r, "demo");
        let limits = root.section(r, "limits");
        let ledger = root.section(r, "ledger");
        let watches: Watches = root.whole_section(r, "watches");
        let wrong = watches::problems(&watches);
        if !wrong.is_empty() {
            let section = root.section(r, "watches");
            for (key, message) in wrong {
                section.problem_at(r, &key, &message);
            }
        }
        let catalogue = root.section(r, "catalogue");
        let catalogue_url = catalogue.text(r, "url");
        if let Some(why) = catalogue_url.as_ref().and_then(|w| endpoint_problem(&w.value)) {
            catalogue.problem_at(r, "url", why);
        }
        Self {
            aws,
            azure,
            gcp,
            theme: ui.text(r, "theme"),
            ascii: ui.text(r, "ascii"),
            time: ui.text(r, "time"),
            clipboard: ui.switch(r, "clipboard"),
            keys: ui.free_lists(r, "keys").unwrap_or_default(),
            seed: demo.whole(r, "seed"),
            speed: demo.number(r, "speed"),
            type_name_above: limits.number(r, "type_name_above_usd_per_hour"),
            owner: ledger.text(r, "owner"),
            catalogue_url,
            watches,
        }
    }
}

impl Settings {
    /// From the text of a configuration file; every finding at once.
    pub fn parse(text: &str, file: &str) -> Result<Self, Problems> {
        let (patch, mut problems) = Reader::read(text, Patch::read);
        let settings = Self::validate(patch, &mut problems);
        if problems.is_empty() { Ok(settings) } else { Err(Problems::new(file, problems)) }
    }

    /// The configuration in force, as a table to be shown: the defaults with what the file says over them.
    pub fn effective(path: &Path) -> Result<toml::Table, Problems> {
        let name = path.display().to_string();
        let table = |text: &str| text.parse::<toml::Table>().map_err(|e| Problems::whole(&name, e.to_string()));
        let mut all = table(EXAMPLE)?;
        match read_written_file(path) {
            Ok(text) => overlay(&mut all, table(&text)?),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Problems::whole(&name, format!("could not be read: {e}"))),
        }
        Ok(all)
    }

    /// From a file; a file that does not exist is the defaults, unless it `must_exist`.
    pub fn load(path: &Path, must_exist: bool) -> Result<Self, Problems> {
        let name = path.display().to_string();
        match read_written_file(path) {
            Ok(text) => Self::parse(&text, &name),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !must_exist => Ok(Self::default()),
            Err(e) => Err(Problems::whole(&name, format!("could not be read: {e}"))),
        }
    }

    fn validate(patch: Patch, problems: &mut Vec<Problem>) -> Self {
        let defaults = Self::default();
        Self {
            providers: Providers { aws: patch.aws, azure: patch.azure, gcp: patch.gcp },
            ui: Ui {
                theme: theme(patch.theme, problems),
                ascii: word(
                    patch.ascii,
                    "ui.ascii",
                    &[("auto", Ascii::Auto), ("always", Ascii::Always), ("never", Ascii::Never)],
                    problems,
                ),
                time: word(
                    patch.time,
                    "ui.time",
                    &[("utc", TimeDisplay::Utc), ("local", TimeDisplay::Local), ("relative", TimeDisplay::Relative)],
                    problems,
                ),
                clipboard: patch.clipboard.is_some_and(|w| w.value),
                keys: keys(patch.keys, problems),
                themes: Vec::new(),
            },
            ledger: Ledger { owner: owner(patch.owner, problems) },
            watches: patch.watches,
            catalogue: patch.catalogue_url.map_or_else(CatalogueSource::default, |w| CatalogueSource { url: w.value }),
            demo: Demo { seed: patch.seed.map(|w| w.value), speed: speed(patch.speed, problems) },
            limits: Limits {
                type_name_above_usd_per_hour: usd_limit(
                    patch.type_name_above,
                    "limits.type_name_above_usd_per_hour",
                    defaults.limits.type_name_above_usd_per_hour,
                    problems,
                ),
            },
        }
    }
}

/// The theme files in a directory, in the order of their names; none where there is no such directory.
pub fn read_themes(dir: &Path) -> Result<Vec<(String, String)>, Problems> {
    let failed = |path: &Path, e: &std::io::Error| {
        Problems::whole(&path.display().to_string(), format!("could not be read: {e}"))
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(dir, &e)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| failed(dir, &e))?.path();
        // Editors leave locks and copies behind that begin with a dot.
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if !hidden && path.extension().is_some_and(|e| e == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = read_written_file(&path).map_err(|e| failed(&path, &e))?;
            Ok((path.display().to_string(), text))
        })
        .collect()
}

/// A text file that people write: at most [`WRITTEN_FILE_BYTES`], UTF-8; a byte-order mark is passed over.
pub fn read_written_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(WRITTEN_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > WRITTEN_FILE_BYTES {
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            format!("it is larger than {} KiB; that cannot be the right file", WRITTEN_FILE_BYTES / 1024),
        ));
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn overlay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// Why an address must not be called, if so: bearer tokens go there, so in the clear only to this machine itself.
fn endpoint_problem(url: &str) -> Option<&'static str> {
    let (rest, clear) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => return Some("it must start with https:// (http:// only for this machine itself)"),
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

fn complain(problems: &mut Vec<Problem>, at: Origin, key: &str, message: String) {
    problems.push(Problem { at, key: key.to_owned(), message });
}

/// One of a few words.
fn word<T: Copy + Default>(
    written: Option<Written<String>>,
    key: &str,
    words: &[(&str, T)],
    problems: &mut Vec<Problem>,
) -> T {
    let Some(written) = written else { return T::default() };
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == written.value) {
        return *value;
    }
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let hint = nearest_word(&written.value, all.iter().copied()).map(|w| format!("; did you mean '{w}'?"));
    let message = format!("'{}' is none of {}{}", written.value, all.join(", "), hint.unwrap_or_default());
    complain(problems, written.at, key, message);
    T::default()
}

fn theme(written: Option<Written<String>>, problems: &mut Vec<Problem>) -> Option<String> {
    let written = written?;
    if written.value.is_empty() || !written.value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        let message = format!("'{}' cannot be a theme's name (letters, digits, - and _)", written.value);
        complain(problems, written.at, "ui.theme", message);
    }
    (written.value != "default").then_some(written.value)
}

/// An id as every cloud takes it for a tag or label.
fn owner(written: Option<Written<String>>, problems: &mut Vec<Problem>) -> Option<String> {
    let written = written?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=63).contains(&written.value.len()) || !written.value.chars().all(fits) {
        let message = "it is 1 to 63 small letters, digits and -: clouds take no more in a mark".to_owned();
        complain(problems, written.at, "ledger.owner", message);
    }
    Some(written.value)
}

fn keys(written: BTreeMap<String, Written<Vec<String>>>, problems: &mut Vec<Problem>) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for (action, written) in written {
        if let Some(empty) = written.value.iter().find(|key| key.trim().is_empty()) {
            complain(problems, written.at, &format!("ui.keys.{action}"), format!("'{empty}' is not a key"));
        }
        all.insert(action, written.value);
    }
    all
}

fn speed(written: Option<Written<f64>>, problems: &mut Vec<Problem>) -> Option<f64> {
    let written = written?;
    if !(written.value.is_finite() && (0.0..=100_000.0).contains(&written.value)) || written.value == 0.0 {
        let message = format!("{} is not a speed; it lies above 0 (1 is real time) and up to 100000", written.value);
        complain(problems, written.at, "demo.speed", message);
    }
    Some(written.value)
}

fn usd_limit(written: Option<Written<f64>>, key: &str, default: HourlyRate, problems: &mut Vec<Problem>) -> HourlyRate {
    let Some(written) = written else { return default };
    match HourlyRate::from_usd(written.value) {
        Ok(rate) if rate >= HourlyRate::ZERO => rate,
        _ => {
            complain(problems, written.at, key, format!("{} is not an amount of USD of at least 0", written.value));
            default
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    /// Sections on clouds hold secrets of the environment and so cannot be compared; what they show can.
    fn shown(settings: &Result<Settings, Problems>) -> String {
        format!("{settings:#?}")
    }

    #[test]
    fn a_cloud_s_section_tells_unknown_keys_and_bad_values_with_their_lines() {
        let text = "[providers.aws]\nregoins = []\n[providers.gcp]\nendpoint_url = 'http://10.0.0.1'\n";
        let problems = Settings::parse(text, "c.toml").expect_err("wrong").to_string();
        for part in ["c.toml:2: providers.aws", "'regoins'", "'regions'", "c.toml:4: providers.gcp.endpoint_url"] {
            assert!(problems.contains(part), "{part} in\n{problems}");
        }
        let text = "[providers.aws]\nregions = ['us-east-1']\n[providers.aws.region.us-east-1]\nimage = 'ubuntu'\n";
        let problems = Settings::parse(text, "c.toml").expect_err("wrong").to_string();
        assert!(problems.contains("c.toml:4: providers.aws.region.us-east-1.image"), "{problems}");
    }

    #[test]
    fn what_is_in_force_is_the_defaults_under_the_file() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("config.toml");
        fs::write(&path, "[ui]\ntime = 'local'\n[providers.aws]\nregions = ['eu-west-1']\n").expect("written");
        let all = Settings::effective(&path).expect("readable");
        assert_eq!(all["ui"]["time"].as_str(), Some("local"));
        assert_eq!(all["ui"]["theme"].as_str(), Some("default"));
        assert_eq!(all["providers"]["aws"]["home_region"].as_str(), Some("us-east-1"));
        assert_eq!(all["providers"]["aws"]["regions"][0].as_str(), Some("eu-west-1"));
    }

    #[test]
    fn the_example_equals_the_defaults() {
        assert_eq!(shown(&Settings::parse(EXAMPLE, "config.example.toml")), shown(&Ok(Settings::default())));
    }

    /// The keys that the example shows commented out are known too, and their sample values valid.
    #[test]
    fn the_example_s_commented_keys_are_valid() {
        let text: String = EXAMPLE
            .lines()
            .map(|line| match line.strip_prefix("#") {
                Some(rest) if rest.starts_with('[') || (rest.contains(" = ") && !rest.starts_with(' ')) => {
                    format!("{rest}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        let settings = Settings::parse(&text, "config.example.toml").expect("valid");
        assert_ne!(shown(&Ok(settings)), shown(&Ok(Settings::default())), "nothing was commented out");
    }

    #[test]
    fn own_themes_are_read_in_order_and_what_is_no_theme_file_is_left_alone() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let themes = dir.path().join("themes");
        assert_eq!(read_themes(&themes), Ok(Vec::new()));
        fs::create_dir(&themes).expect("made");
        for name in ["b.toml", "a.toml", "notes.txt"] {
            fs::write(themes.join(name), name).expect("written");
        }
        let texts: Vec<String> = read_themes(&themes).expect("readable").into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["a.toml", "b.toml"]);
        fs::write(themes.join("c.toml"), [0xff, 0xfe]).expect("written");
        assert!(read_themes(&themes).expect_err("not text").to_string().contains("c.toml"));
    }

    #[test]
    fn an_owner_is_what_every_cloud_takes_as_a_label() {
        let read = |owner: &str| Settings::parse(&format!("[ledger]\nowner = '{owner}'\n"), "c.toml");
        assert_eq!(read("acme-on-call-1").expect("valid").ledger.owner.as_deref(), Some("acme-on-call-1"));
        for wrong in ["", "Acme", "a b", "a/b", &"x".repeat(64)] {
            let problems = read(wrong).expect_err("wrong").to_string();
            assert!(problems.contains("c.toml:2: ledger.owner"), "{problems}");
        }
    }

    #[test]
    fn an_absent_file_is_the_defaults_but_a_named_one_must_exist() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("config.toml");
        assert_eq!(shown(&Settings::load(&path, false)), shown(&Ok(Settings::default())));
        assert!(Settings::load(&path, true).is_err());
    }

    #[test]
    fn all_findings_come_at_once_with_line_key_and_what_would_be_right() {
        let text = "[ui]\ntime = \"ut\"\nascii = \"perhaps\"\nthem = \"dark\"\n[demo]\nspeed = -1\n[limits]\ntype_name_above_usd_per_hour = nan\n";
        let problems = Settings::parse(text, "c.toml").expect_err("wrong");
        let shown = problems.to_string();
        assert_eq!(problems.found.len(), 5, "{shown}");
        for part in [
            "c.toml:2: ui.time: 'ut' is none of",
            "'utc'",
            "c.toml:3:",
            "c.toml:4:",
            "'theme'",
            "c.toml:6: demo.speed",
            "c.toml:8:",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*|[\\x00-\\u{ff}]*|(\\[?(ui|demo|limits|providers)\\]?|[a-z.]+ ?= ?[-0-9a-z\"'{}\\[\\]]+|\n)*") {
            let _ = Settings::parse(&text, "c.toml").map_err(|p| p.to_string());
        }
    }
}
