use chrono::{DateTime, Utc};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::config::problem::{Origin, Written};
use crate::domain::job::{LatencyLimit, Recovery};
use crate::domain::{GpuHourlyRate, Purchase};

/// A small world: two chips, two clouds with tables, one without.
struct World;

impl Facts for World {
    fn accelerators(&self, text: &str) -> Result<Vec<Accelerator>, String> {
        match text {
            "H100" | "H100-80GB" => Ok(vec![Accelerator::from_canonical("H100-80GB-SXM")]),
            "H200" => Ok(vec![Accelerator::from_canonical("H200-141GB-SXM")]),
            other => Err(format!("no accelerator is called '{other}'; did you mean 'H100'?")),
        }
    }
    fn providers(&self) -> Vec<String> {
        ["aws", "gcp", "azure", "ssh"].map(str::to_owned).to_vec()
    }
    fn regions(&self, provider: &str) -> Vec<String> {
        match provider {
            "aws" => ["us-east-1", "eu-west-1", "eu-south-1"].map(str::to_owned).to_vec(),
            "gcp" => ["us-central1", "europe-west4"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        }
    }
    fn jurisdictions(&self) -> Vec<String> {
        ["EU", "US"].map(str::to_owned).to_vec()
    }
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_083_200, 0).expect("a time")
}

fn read(text: &str) -> Result<JobSpec, Problems> {
    parse(text, "job.toml", Draft::default(), &World, now())
}

const FULL: &str = r#"
name = "llama-ft"
run = "python train.py --resume"
image = "ghcr.io/acme/train:7"
env = { WANDB_MODE = "offline" }

[resources]
accelerators = ["H100-80GB", "H200"]
count = 8
nodes = 2
vcpus = 96
memory_gib = 512

[purchase]
models = ["spot", "on-demand"]
max_usd_per_gpu_hour = 4.0

[constraints]
providers = ["aws", "gcp", "azure"]
jurisdictions = ["EU"]
exclude_regions = ["aws/eu-south-1"]
latency = [{ to = "aws/eu-west-1", max_ms = 30 }]

[data]
location = "aws/eu-west-1"
input_gib = 500
checkpoint_gib = 40
checkpoint_uri = "s3://acme-ckpt/llama-ft"

[schedule]
duration_hours = 72
deadline = "2027-12-10T00:00:00Z"
recovery = "restart"
"#;

#[test]
fn the_published_format_is_read_in_full() {
    let spec = read(FULL).expect("valid");
    assert_eq!(spec.name, "llama-ft");
    assert_eq!(spec.run.as_deref(), Some("python train.py --resume"));
    assert_eq!(spec.env.get("WANDB_MODE").map(String::as_str), Some("offline"));
    assert_eq!(spec.resources.accelerators.len(), 2);
    assert_eq!((spec.resources.count, spec.resources.nodes, spec.resources.vcpus), (8, 2, Some(96)));
    assert_eq!(spec.resources.memory_gib, Some(512.0));
    assert_eq!(spec.buying.models, [Purchase::OnDemand, Purchase::Spot]);
    assert_eq!(spec.buying.max_usd_per_gpu_hour, Some(GpuHourlyRate::from_micros(4_000_000)));
    assert_eq!(spec.constraints.latency, [LatencyLimit { to: Location::region("aws", "eu-west-1"), max_ms: 30.0 }]);
    assert_eq!(spec.constraints.exclude_regions, [Location::region("aws", "eu-south-1")]);
    assert_eq!(spec.data.location, Some(Location::region("aws", "eu-west-1")));
    assert_eq!((Some(spec.data.input_gib), Some(spec.data.checkpoint_gib)), (Some(500.0), Some(40.0)));
    assert_eq!(spec.schedule.duration_hours, Some(72.0));
    assert_eq!(spec.schedule.recovery, Recovery::Restart);
}

#[test]
fn a_minimal_file_gets_defaults_that_restrict_nothing() {
    let spec = read("[resources]\naccelerators = 'H100'\ncount = 8").expect("valid");
    assert_eq!(spec.name, "h100-8x");
    assert_eq!(spec.resources.nodes, 1);
    assert!(spec.constraints.providers.is_empty() && spec.constraints.regions.is_empty());
    assert_eq!(spec.buying.models, [Purchase::OnDemand, Purchase::Spot]);
    assert_eq!(spec.buying.max_usd_per_gpu_hour, None);
}

/// Each line of the table: a key's line in the file, and a part of the message it must get.
#[rstest::rstest]
#[case("resources", "count = 0", "asks for nothing")]
#[case("resources", "count = -3", "negative")]
#[case("resources", "count = 2.5", "whole number")]
#[case("resources", "count = 99999999999999999999999999", "more than 1024")]
#[case("resources", "nodes = 0", "asks for nothing")]
#[case("resources", "memory_gib = nan", "nan")]
#[case("resources", "memory_gib = inf", "more than")]
#[case("resources", "memory_gib = -1.0", "negative")]
#[case("resources", "min_gpu_memory_gib = 0", "above 0")]
#[case("purchase", "max_usd_per_gpu_hour = 0", "above 0")]
#[case("purchase", "max_usd_per_gpu_hour = -4", "negative")]
#[case("purchase", "max_usd_per_gpu_hour = nan", "nan")]
#[case("purchase", "max_usd_per_gpu_hour = 1e-9", "millionth")]
#[case("purchase", "models = ['spott']", "did you mean 'spot'")]
#[case("purchase", "models = []", "empty list")]
#[case("constraints", "providers = ['awz']", "did you mean 'aws'")]
#[case("constraints", "jurisdictions = ['Mars']", "known: EU, US")]
#[case("constraints", "exclude_regions = ['aws']", "PROVIDER/REGION")]
#[case("constraints", "exclude_regions = ['aws/eu-south-l']", "did you mean 'eu-south-1'")]
#[case("constraints", "exclude_regions = ['aws//x']", "not a place")]
#[case("constraints", "latency = [{ to = 'aws/nowhere-1', max_ms = 30 }]", "no region 'nowhere-1'")]
#[case("constraints", "latency = [{ to = 'aws/eu-west-1' }]", "needs `max_ms`")]
#[case("constraints", "latency = [{ max_ms = 3 }]", "needs `to`")]
#[case("constraints", "latency = [{ to = 'aws/eu-west-1', max_ms = -1 }]", "negative")]
#[case("constraints", "latency = [{ to = 'aws/eu-west-1', max = 1 }]", "unknown key 'max'")]
#[case("data", "location = 'nowhere'", "no region that is known")]
#[case("data", "input_gib = -1", "negative")]
#[case("data", "checkpoint_uri = 'bucket'", "s3://")]
#[case("schedule", "duration_hours = 0", "above 0")]
#[case("schedule", "duration_hours = 1e12", "more than")]
#[case("schedule", "deadline = '2020-01-01T00:00:00Z'", "past")]
#[case("schedule", "deadline = '2027-01-01'", "offset")]
#[case("schedule", "recovery = 'restrat'", "did you mean 'restart'")]
fn a_bad_value_is_told_with_its_line(#[case] section: &str, #[case] line: &str, #[case] part: &str) {
    let text = format!("[resources]\naccelerators = ['H100']\n\n[{section}]\n{line}\n").replace("\n\n[resources]", "");
    let problems = read(&text).expect_err("refused");
    let expected = text.lines().position(|l| l == line).map(|i| Origin::Line(i + 1)).expect("the line");
    assert!(
        problems.found.iter().any(|p| (p.at == expected || p.at == Origin::Missing) && p.message.contains(part)),
        "{problems}"
    );
}

#[test]
fn an_unknown_key_names_key_line_and_nearest_key() {
    let problems = read("[resources]\naccelerator = ['H100']\ncount = 8").expect_err("refused").to_string();
    for part in ["job.toml:2", "unknown key 'accelerator'", "'accelerators'"] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
}

#[test]
fn all_findings_come_at_once() {
    let problems = read("nam = 'x'\n[resources]\naccelerators = ['H900']\ncount = 0\n[schedule]\nduration_hours = -1")
        .expect_err("refused");
    assert_eq!(problems.found.len(), 4, "{problems}");
}

#[test]
fn flags_stand_before_the_file_and_are_named_in_findings() {
    let flags = Draft {
        count: Some(Written::flag("--count", 4)),
        regions: Some(vec![Written::flag("--region", "europe-west4".to_owned())]),
        ..Draft::default()
    };
    let spec = parse(FULL, "job.toml", flags, &World, now()).expect("valid");
    assert_eq!(spec.resources.count, 4);
    assert_eq!(spec.constraints.regions, [Location::region("gcp", "europe-west4")]);
    let flags = Draft { count: Some(Written::flag("--count", 0)), ..Draft::default() };
    let problems = parse(FULL, "job.toml", flags, &World, now()).expect_err("refused").to_string();
    assert!(problems.starts_with("--count: 0 asks for nothing"), "{problems}");
}

#[test]
fn op38_a_name_that_would_act_on_a_terminal_is_refused_and_told_inert() {
    let problems = read("name = \"a\\u001b]52;c;AAAA\\u0007\"\n[resources]\naccelerators=['H100']")
        .expect_err("refused")
        .to_string();
    assert!(problems.contains("control or invisible"), "{problems}");
    assert!(!problems.contains('\u{1b}') && !problems.contains('\u{7}'), "{problems:?}");
}

#[test]
fn a_secret_in_env_is_not_repeated_in_a_finding() {
    let problems = read("env = { '1BAD' = 'hunter2' }\n[resources]\naccelerators=['H100']").expect_err("refused");
    assert!(!problems.to_string().contains("hunter2"), "{problems}");
}

#[test]
fn what_asks_for_no_chip_is_refused() {
    assert!(read("name = 'x'").expect_err("refused").to_string().contains("which accelerators"));
    assert!(read("[resources]\nmin_gpu_memory_gib = 80").is_ok());
}

#[test]
fn a_region_both_asked_for_and_excluded_is_a_contradiction() {
    let text = "[resources]\naccelerators=['H100']\n[constraints]\nregions=['aws/us-east-1']\nexclude_regions=['aws/us-east-1']";
    assert!(read(text).expect_err("refused").to_string().contains("both asked for and excluded"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&String::from_utf8_lossy(&bytes)).map_err(|p| p.to_string());
    }

    /// Texts that look like job files: real keys with arbitrary values.
    #[test]
    fn arbitrary_values_never_panic(
        lines in proptest::collection::vec(
            ("(name|run|count|nodes|vcpus|memory_gib|accelerators|models|latency|deadline|env|input_gib|max_usd_per_gpu_hour)",
             "(-?[0-9]{1,40}|-?[0-9]e[0-9]{1,3}|nan|inf|'[^'\n]{0,12}'|\\[[^\n]{0,12}\\]|\\{[^\n]{0,12}\\}|[0-9]{4}-[0-9]{2}-[0-9]{2})"),
            0..12),
        sections in proptest::collection::vec("(\\[resources\\]|\\[purchase\\]|\\[constraints\\]|\\[data\\]|\\[schedule\\]|)", 0..12),
    ) {
        let mut text = String::new();
        for (i, (key, value)) in lines.iter().enumerate() {
            let section = sections.get(i).map_or("", String::as_str);
            text.push_str(&[section, "\n", key, " = ", value, "\n"].concat());
        }
        let _ = read(&text).map_err(|p| p.to_string());
    }
}
