//! The flags that describe a job: the same keys as in a job file, into the same checks.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::Origin;
use crate::config::job_file::{Draft, LatencyDraft};
use crate::config::problem::Written;
use crate::config::reader::parse_time;

/// A job: a file, flags, or a file with flags in place of some of its keys.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "The job")]
pub struct JobArgs {
    /// The job file; flags stand before its keys. `-` reads standard input
    #[arg(short, long, value_name = "JOB.TOML")]
    file: Option<PathBuf>,
    /// A name for it
    #[arg(long)]
    name: Option<String>,
    /// A shell command on every node; without one the instances are only held
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// A container to run it in
    #[arg(long)]
    image: Option<String>,
    /// A variable for it; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Any of these accelerators; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    gpu: Vec<String>,
    /// At least so much memory on each GPU
    #[arg(long, value_name = "GIB", allow_negative_numbers = true)]
    min_gpu_memory_gib: Option<f64>,
    /// GPUs on a node
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Nodes: all in one zone, all or nothing
    #[arg(long, value_name = "N")]
    nodes: Option<u64>,
    /// At least so many virtual CPUs on a node
    #[arg(long, value_name = "N")]
    vcpus: Option<u64>,
    /// At least so much main memory on a node
    #[arg(long, value_name = "GIB", allow_negative_numbers = true)]
    memory_gib: Option<f64>,
    /// Allowed purchase models: spot, on-demand, reserved; may be repeated
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    purchase: Vec<String>,
    /// At most so much a GPU-hour
    #[arg(long, value_name = "USD_PER_GPU_H", allow_negative_numbers = true)]
    max_price: Option<f64>,
    /// Only this provider; may be repeated
    #[arg(long, value_name = "P", value_delimiter = ',')]
    provider: Vec<String>,
    /// Only in this place, as PROVIDER/REGION[/ZONE]; may be repeated
    #[arg(long, value_name = "PLACE", value_delimiter = ',')]
    region: Vec<String>,
    /// Never in this place; may be repeated
    #[arg(long, value_name = "PLACE", value_delimiter = ',')]
    exclude_region: Vec<String>,
    /// Only under this jurisdiction, such as EU; may be repeated
    #[arg(long, value_name = "J", value_delimiter = ',')]
    jurisdiction: Vec<String>,
    /// Round trip to a place at most so long; may be repeated
    #[arg(long, value_name = "PLACE=MS", value_parser = latency)]
    latency: Vec<(String, f64)>,
    /// The nodes of a gang may lie in several zones of one region
    #[arg(long)]
    combine_zones: bool,
    /// Where the input lies, as PROVIDER/REGION
    #[arg(long, value_name = "PLACE")]
    data_location: Option<String>,
    /// How much is read at each start in another region
    #[arg(long, value_name = "GIB", allow_negative_numbers = true)]
    input_gib: Option<f64>,
    /// How much a checkpoint has
    #[arg(long, value_name = "GIB", allow_negative_numbers = true)]
    checkpoint_gib: Option<f64>,
    /// Where checkpoints are kept
    #[arg(long, value_name = "URI")]
    checkpoint_uri: Option<String>,
    /// Expected run time
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    duration_hours: Option<f64>,
    /// To be finished by then, such as 2026-12-10T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    deadline: Option<chrono::DateTime<chrono::Utc>>,
    /// What happens after a preemption: restart, stay-down
    #[arg(long, value_name = "HOW")]
    recovery: Option<String>,
    /// Work lost at each interruption
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    restart_loss_hours: Option<f64>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "write it as NAME=VALUE".to_owned())
}

fn latency(text: &str) -> Result<(String, f64), String> {
    let (place, ms) = text.rsplit_once('=').ok_or("write it as PLACE=MS, such as aws/eu-west-1=30")?;
    Ok((place.to_owned(), ms.parse().map_err(|_not_a_number| format!("'{ms}' is not a number of milliseconds"))?))
}

impl JobArgs {
    /// The job file, where one is given.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The flags as a draft, each value with its flag.
    pub fn draft(&self) -> Draft {
        Draft {
            name: one("--name", self.name.as_ref()),
            run: one("--run", self.run.as_ref()),
            image: one("--image", self.image.as_ref()),
            env: self.env.iter().map(|(k, v)| (k.clone(), Written::flag("--env", v.clone()))).collect(),
            accelerators: many("--gpu", &self.gpu),
            min_gpu_memory_gib: one("--min-gpu-memory-gib", self.min_gpu_memory_gib.as_ref()),
            count: one("--count", self.count.as_ref()),
            nodes: one("--nodes", self.nodes.as_ref()),
            vcpus: one("--vcpus", self.vcpus.as_ref()),
            memory_gib: one("--memory-gib", self.memory_gib.as_ref()),
            models: many("--purchase", &self.purchase),
            max_usd_per_gpu_hour: one("--max-price", self.max_price.as_ref()),
            providers: many("--provider", &self.provider),
            regions: many("--region", &self.region),
            exclude_regions: many("--exclude-region", &self.exclude_region),
            jurisdictions: many("--jurisdiction", &self.jurisdiction),
            latency: (!self.latency.is_empty()).then(|| {
                self.latency
                    .iter()
                    .map(|(place, ms)| LatencyDraft {
                        at: Origin::Flag("--latency"),
                        to: Some(Written::flag("--latency", place.clone())),
                        max_ms: Some(Written::flag("--latency", *ms)),
                    })
                    .collect()
            }),
            combine_zones: self.combine_zones.then(|| Written::flag("--combine-zones", true)),
            location: one("--data-location", self.data_location.as_ref()),
            input_gib: one("--input-gib", self.input_gib.as_ref()),
            checkpoint_gib: one("--checkpoint-gib", self.checkpoint_gib.as_ref()),
            checkpoint_uri: one("--checkpoint-uri", self.checkpoint_uri.as_ref()),
            duration_hours: one("--duration-hours", self.duration_hours.as_ref()),
            deadline: one("--deadline", self.deadline.as_ref()),
            recovery: one("--recovery", self.recovery.as_ref()),
            restart_loss_hours: one("--restart-loss-hours", self.restart_loss_hours.as_ref()),
        }
    }
}

fn one<T: Clone>(flag: &'static str, value: Option<&T>) -> Option<Written<T>> {
    value.map(|v| Written::flag(flag, v.clone()))
}

fn many(flag: &'static str, values: &[String]) -> Option<Vec<Written<String>>> {
    (!values.is_empty()).then(|| values.iter().map(|v| Written::flag(flag, v.clone())).collect())
}
