//! The command line: every command and flag, with its help. Shell completion and the manual page come from here too.

mod job;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use job::JobArgs;

use crate::config::reader::parse_time;
use crate::domain::{GpuHourlyRate, Location, Purchase};

/// A terminal cockpit that keeps GPU workloads running over many clouds.
///
/// Without a command it opens the cockpit. Every command prints one JSON document on standard output with --json;
/// texts for people, progress and warnings go to standard error.
#[derive(Debug, Parser)]
#[command(
    name = "gpudeck",
    version,
    propagate_version = true,
    max_term_width = 110,
    after_help = "Exit codes: 0 done, 1 failed, 2 usage or invalid file, 3 no feasible placement, 4 refused by policy, \
                  budget or read-only, 5 a provider was not reached or refused credentials, 6 conflict, 130 interrupted."
)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do; the cockpit where nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// A seeded, simulated market: no credentials, no network
    #[arg(long, global = true)]
    pub demo: bool,
    /// What the simulated market's randomness starts from (a new world only)
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<u64>,
    /// Seconds of the simulated world in a real one: above 0, at most 100000 (a minute where nothing is said)
    #[arg(long, global = true, value_name = "X", allow_negative_numbers = true)]
    pub speed: Option<f64>,
    /// Read this configuration file instead of the usual one
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep configuration, ledger, cache and logs under this directory
    #[arg(long, global = true, value_name = "DIR", env = "GPUDECK_HOME", hide_env_values = true)]
    pub home: Option<PathBuf>,
    /// Use this market instead of the live one: the shape of `offers --json`, plus `capacity` (offers, spreads, place)
    #[arg(long, global = true, value_name = "FILE")]
    pub offers: Option<PathBuf>,
    /// Nothing that acts: the providers' acting halves are not even made
    #[arg(long, global = true)]
    pub read_only: bool,
    /// Print one JSON document on standard output and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour; `NO_COLOR` is honoured
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// Draw with ASCII only
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Say more in the log (twice: everything), and on standard error too
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// No notes and no progress on standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Do not ask (only where something acts)
    #[arg(short, long, global = true)]
    pub yes: bool,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What can be rented now
    Offers(OffersArgs),
    /// Per accelerator: cheapest, median and dearest offer, and how far apart they are
    Spreads(SpreadsArgs),
    /// Rank the places for a job; acts on nothing
    Place(PlaceArgs),
    /// Plan, confirm and launch a job
    Launch(LaunchArgs),
    /// Move a running job
    Migrate(MigrateArgs),
    /// Stop jobs and release everything they hold
    Terminate(TerminateArgs),
    /// What runs
    Jobs(JobsArgs),
    /// One job: its specification, plan, instances, cost and events
    Job(JobArg),
    /// What happened, and who did it
    Events(EventsArgs),
    /// Round-trip times between places, with where each figure comes from
    Latency(LatencyArgs),
    /// Instances that carry our mark but that no job owns
    Orphans(OrphansArgs),
    /// Check credentials, permissions, endpoints, clock, terminal and ledger, each with its remedy
    Doctor(DoctorArgs),
    /// What can be rented at all
    #[command(subcommand)]
    Catalogue(CatalogueCommand),
    /// The configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Keep jobs alive without a screen, until SIGTERM or Ctrl-C
    Controller,
    /// Start the simulated world anew (with --demo)
    Reset,
    /// Print a completion script for a shell
    Completions {
        /// Which shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// Which offers.
#[derive(Debug, Clone, Args)]
pub struct OffersArgs {
    /// Only this accelerator (a name, an alias or a family: H100, H100-80GB-SXM); may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub gpu: Vec<String>,
    /// Only instances with at least so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Only this provider; may be repeated
    #[arg(long, value_name = "P", value_delimiter = ',')]
    pub provider: Vec<String>,
    /// Only this region: REGION or PROVIDER/REGION[/ZONE]; may be repeated
    #[arg(long, value_name = "R", value_delimiter = ',')]
    pub region: Vec<String>,
    /// Only places under this law, such as EU or US; may be repeated
    #[arg(long, value_name = "J", value_delimiter = ',')]
    pub jurisdiction: Vec<String>,
    /// Only this purchase model: spot, on-demand, reserved; may be repeated
    #[arg(long, value_name = "MODEL", value_delimiter = ',', value_parser = purchase)]
    pub purchase: Vec<Purchase>,
    /// Only offers that cost at most so much a GPU-hour
    #[arg(long, value_name = "USD_PER_GPU_H", value_parser = usd)]
    pub max_price: Option<GpuHourlyRate>,
    /// Only what the evidence says can be had
    #[arg(long)]
    pub available: bool,
    /// Sort by this field of the JSON shape; `-FIELD` for the largest first. Unknown values come last
    #[arg(long, value_name = "FIELD", default_value = "usd_per_gpu_hour", allow_hyphen_values = true)]
    pub sort: String,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<usize>,
}

/// Which accelerators.
#[derive(Debug, Clone, Args)]
pub struct SpreadsArgs {
    /// Only this accelerator; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub gpu: Vec<String>,
    /// For all places together, or for each region or zone by itself
    #[arg(long, value_name = "WHAT", default_value = "gpu")]
    pub by: SpreadsBy,
}

/// What spreads are told for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpreadsBy {
    /// Each accelerator
    Gpu,
    /// Each accelerator in each region
    Region,
    /// Each accelerator in each zone
    Zone,
}

/// What to rank.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// Show at most so many candidates
    #[arg(long, value_name = "N", default_value = "10", value_parser = at_least_one)]
    pub top: usize,
    /// Tell for every refused group of offers why, and what would help
    #[arg(long)]
    pub explain: bool,
}

/// What to launch.
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// Show the plan and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// What to move.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The job: its name, its id or the beginning of its id
    pub job: String,
    /// Where to, as PROVIDER/REGION[/ZONE]; wherever it is best where nothing is said
    #[arg(long, value_name = "PLACE")]
    pub to: Option<Location>,
    /// Show the plan and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// What to stop.
#[derive(Debug, Args)]
pub struct TerminateArgs {
    /// The jobs: names, ids or beginnings of ids
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Show the plans and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// Which jobs.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Ended ones too
    #[arg(long)]
    pub all: bool,
    /// Go on showing them whenever something changes (with --json one document a line)
    #[arg(long)]
    pub watch: bool,
}

/// One job.
#[derive(Debug, Args)]
pub struct JobArg {
    /// The job: its name, its id or the beginning of its id
    pub job: String,
}

/// Which events.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only of this job
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// Only from then on: a time such as 2026-12-10T00:00:00Z, or an age such as 90s, 30m, 6h, 2d
    #[arg(long, value_name = "T", value_parser = since)]
    pub since: Option<Since>,
    /// Go on showing them as they happen (with --json one document a line)
    #[arg(short, long)]
    pub follow: bool,
}

/// Between which places.
#[derive(Debug, Args)]
pub struct LatencyArgs {
    /// Only from this place, as PROVIDER/REGION
    #[arg(long, value_name = "LOC")]
    pub from: Option<Location>,
    /// Only to this place, as PROVIDER/REGION
    #[arg(long, value_name = "LOC")]
    pub to: Option<Location>,
    /// Measure from this machine now, by connecting to the providers' regional addresses
    #[arg(long, conflicts_with = "from")]
    pub probe: bool,
}

/// What to check, or to print.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print the least rights that a cloud must grant: CLOUD is aws, azure or gcp; `read` to watch (the default),
    /// `operate` to launch and terminate, too
    #[arg(long, num_args = 1..=2, value_names = ["CLOUD", "RIGHTS"])]
    pub print_policy: Vec<String>,
}

/// What to do with orphans.
#[derive(Debug, Args)]
pub struct OrphansArgs {
    /// Terminate them, after confirmation
    #[arg(long)]
    pub terminate: bool,
}

/// The catalogue.
#[derive(Debug, Subcommand)]
pub enum CatalogueCommand {
    /// Show what can be rented at all, and since when that is known
    Show {
        /// Only this accelerator; may be repeated
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        gpu: Vec<String>,
        /// Only this provider; may be repeated
        #[arg(long, value_name = "P", value_delimiter = ',')]
        provider: Vec<String>,
    },
    /// Take in tables of prices from a directory; they stand before the bundled ones
    Import {
        /// The directory with the tables.
        dir: PathBuf,
    },
    /// Fetch the tables of prices that the configuration names, and take them in
    Update {
        /// Only this provider's; may be repeated. All that are bundled where none is named
        #[arg(long, value_name = "P", value_delimiter = ',')]
        provider: Vec<String>,
    },
}

/// The configuration.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Write a configuration file with every key and its default
    Init {
        /// Replace a file that exists
        #[arg(long)]
        force: bool,
    },
    /// Check the configuration file; tells every finding at once
    Check,
    /// Show the configuration in force
    Show,
    /// Say where the configuration file belongs
    Path,
}

/// A moment, or an age that is taken from now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Since {
    /// A moment.
    At(DateTime<Utc>),
    /// So long ago.
    Ago(chrono::Duration),
}

impl Since {
    /// The moment meant.
    pub fn moment(self, now: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::At(at) => at,
            Self::Ago(age) => now.checked_sub_signed(age).unwrap_or(DateTime::<Utc>::MIN_UTC),
        }
    }
}

fn since(text: &str) -> Result<Since, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        _ => None,
    };
    match (number.parse::<i64>(), seconds) {
        (Ok(n), Some(unit)) => n
            .checked_mul(unit)
            .and_then(chrono::Duration::try_seconds)
            .map(Since::Ago)
            .ok_or_else(|| format!("'{text}' is too long ago")),
        _ => parse_time(text).map(Since::At).map_err(|e| format!("{e}, or as an age such as 6h")),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1".to_owned()),
        Ok(n) => Ok(n),
        Err(e) => Err(e.to_string()),
    }
}

fn purchase(text: &str) -> Result<Purchase, String> {
    Purchase::parse(text).ok_or_else(|| "it is spot, on-demand or reserved".to_owned())
}

fn usd(text: &str) -> Result<GpuHourlyRate, String> {
    match GpuHourlyRate::parse_usd(text) {
        Ok(rate) if rate > GpuHourlyRate::ZERO => Ok(rate),
        Ok(_) => Err("a price lies above 0".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_age_or_a_time_says_since_when() {
        let now = DateTime::from_timestamp(1_796_083_200, 0).expect("a time");
        assert_eq!(since("6h").map(|s| s.moment(now)), Ok(now - chrono::Duration::hours(6)));
        assert_eq!(since("2026-12-01T00:00:00Z").map(|s| s.moment(now)), parse_time("2026-12-01T00:00:00Z"));
        for bad in ["", "h", "6", "6y", "-6h", "99999999999999999999s", "yesterday", "9223372036854775807d"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
