//! From a job as written to a job as meant: many small checks, a message each, all of them made.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{Draft, Facts, LatencyDraft, place};
use crate::config::limits;
use crate::config::problem::{Origin, Problem, Written};
use crate::config::reader::nearest_word;
use crate::domain::job::{Buying, Constraints, Data, LatencyLimit, Recovery, Resources, Schedule};
use crate::domain::text::inert;
use crate::domain::{Accelerator, GpuHourlyRate, JobSpec, Location, ProviderId, Purchase};

/// The job as meant, and what is wrong with it; the job is of use only where nothing is.
pub(super) fn validate(draft: Draft, facts: &dyn Facts, now: DateTime<Utc>) -> (JobSpec, Vec<Problem>) {
    let mut check = Check { facts, now, problems: Vec::new() };
    let resources = Resources {
        accelerators_as_written: draft.accelerators.iter().flatten().map(|w| w.value.clone()).collect(),
        accelerators: check.accelerators(draft.accelerators, draft.min_gpu_memory_gib.as_ref()),
        min_gpu_memory_gib: draft
            .min_gpu_memory_gib
            .map(|w| check.above_zero(&w, "resources.min_gpu_memory_gib", limits::MEMORY_A_GPU_GIB)),
        count: check.whole(draft.count, "resources.count", limits::GPUS_A_NODE).unwrap_or(1),
        nodes: check.whole(draft.nodes, "resources.nodes", limits::NODES_A_JOB).unwrap_or(1),
        vcpus: check.whole(draft.vcpus, "resources.vcpus", limits::VCPUS_A_NODE),
        memory_gib: draft.memory_gib.map(|w| check.above_zero(&w, "resources.memory_gib", limits::MEMORY_A_NODE_GIB)),
    };
    let spec = JobSpec {
        name: check.name(draft.name, &resources),
        run: draft.run.map(|w| check.argument(w, "run")),
        image: draft.image.map(|w| check.image(w)),
        env: check.env(draft.env),
        buying: Buying {
            models: check.models(draft.models),
            max_usd_per_gpu_hour: draft.max_usd_per_gpu_hour.map(|w| check.price(&w)),
        },
        constraints: Constraints {
            providers: check.providers(draft.providers),
            regions: check.places(draft.regions, "constraints.regions"),
            exclude_regions: check.places(draft.exclude_regions, "constraints.exclude_regions"),
            jurisdictions: check.jurisdictions(draft.jurisdictions),
            latency: check.latency(draft.latency),
            combine_zones: draft.combine_zones.is_some_and(|w| w.value),
        },
        data: Data {
            location: draft.location.and_then(|w| check.place(w, "data.location")),
            input_gib: draft.input_gib.map_or(0.0, |w| check.at_least_zero(&w, "data.input_gib", limits::DATA_GIB)),
            checkpoint_gib: draft
                .checkpoint_gib
                .map_or(0.0, |w| check.at_least_zero(&w, "data.checkpoint_gib", limits::DATA_GIB)),
            checkpoint_uri: draft.checkpoint_uri.map(|w| check.uri(w)),
        },
        schedule: Schedule {
            duration_hours: draft
                .duration_hours
                .map(|w| check.above_zero(&w, "schedule.duration_hours", limits::DURATION_HOURS)),
            deadline: draft.deadline.map(|w| check.deadline(w)),
            recovery: draft.recovery.map_or(Recovery::Restart, |w| check.recovery(w)),
            restart_loss_hours: draft.restart_loss_hours.map_or(limits::RESTART_LOSS_HOURS, |w| {
                check.at_least_zero(&w, "schedule.restart_loss_hours", limits::DURATION_HOURS)
            }),
        },
        resources,
    };
    check.contradictions(&spec);
    (spec, check.problems)
}

struct Check<'f> {
    facts: &'f dyn Facts,
    now: DateTime<Utc>,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn complain(&mut self, at: Origin, key: &str, message: impl Into<String>) {
        self.problems.push(Problem { at, key: key.to_owned(), message: message.into() });
    }

    // ── numbers ──

    fn whole(&mut self, written: Option<Written<u64>>, key: &str, most: u64) -> Option<u32> {
        let written = written?;
        match written.value {
            0 => self.complain(written.at, key, "0 asks for nothing; it starts at 1"),
            n if n > most => self.complain(written.at, key, format!("more than {most}, which nobody can provide")),
            _ => {}
        }
        u32::try_from(written.value.min(most)).ok()
    }

    fn number(&mut self, written: &Written<f64>, key: &str, most: f64) {
        let n = written.value;
        if n.is_nan() {
            self.complain(written.at, key, "nan is not an amount");
        } else if n < 0.0 {
            self.complain(written.at, key, format!("{n} is negative"));
        } else if n > most {
            self.complain(written.at, key, format!("{n} is more than {most}, which cannot be meant"));
        }
    }

    fn at_least_zero(&mut self, written: &Written<f64>, key: &str, most: f64) -> f64 {
        self.number(written, key, most);
        written.value
    }

    fn above_zero(&mut self, written: &Written<f64>, key: &str, most: f64) -> f64 {
        if written.value == 0.0 {
            self.complain(written.at, key, "0 is not an amount; it lies above 0");
        }
        self.at_least_zero(written, key, most)
    }

    fn price(&mut self, written: &Written<f64>) -> GpuHourlyRate {
        let at = written.at;
        let usd = self.above_zero(written, "purchase.max_usd_per_gpu_hour", limits::GPU_HOUR_USD);
        let rate = GpuHourlyRate::from_usd(usd).unwrap_or(GpuHourlyRate::ZERO);
        if usd > 0.0 && rate <= GpuHourlyRate::ZERO {
            self.complain(at, "purchase.max_usd_per_gpu_hour", format!("{usd} is less than a millionth of a dollar"));
        }
        rate
    }

    // ── texts ──

    /// A name that a terminal, a tag and a person can take. Without one, a name is made of what is asked for.
    fn name(&mut self, written: Option<Written<String>>, resources: &Resources) -> String {
        let Some(Written { value, at }) = written else { return default_name(resources) };
        if value.trim().is_empty() {
            self.complain(at, "name", "a job needs a name");
        } else if value.trim() != value {
            self.complain(at, "name", "a name does not begin or end with a space");
        }
        if value.chars().count() > limits::JOB_NAME_CHARS {
            self.complain(at, "name", format!("a name has at most {} characters", limits::JOB_NAME_CHARS));
        }
        if inert(&value) != value {
            self.complain(at, "name", format!("'{}' holds control or invisible characters", inert(&value)));
        }
        if value.starts_with('-') {
            self.complain(at, "name", "a name does not begin with '-': commands would take it for a flag");
        }
        value
    }

    fn argument(&mut self, Written { value, at }: Written<String>, key: &str) -> String {
        if value.trim().is_empty() {
            self.complain(at, key, "it is empty; leave the key out to hold the instances only");
        }
        if value.contains('\0') {
            self.complain(at, key, "it holds a NUL character, which no command can take");
        }
        if value.len() > limits::RUN_BYTES {
            self.complain(at, key, format!("it is longer than {} KiB", limits::RUN_BYTES / 1024));
        }
        value
    }

    fn image(&mut self, Written { value, at }: Written<String>) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
        if value.is_empty() || value.starts_with('-') || !value.chars().all(fits) {
            self.complain(at, "image", format!("'{value}' is not an image such as ghcr.io/acme/train:7"));
        }
        value
    }

    fn env(&mut self, written: BTreeMap<String, Written<String>>) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for (name, Written { value, at }) in written {
            let key = format!("env.{name}");
            let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
            if !first || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                self.complain(at, &key, "a variable's name has letters, digits and _ and does not begin with a digit");
            }
            // The value may be a secret: it is not repeated in the message.
            if value.contains('\0') || value.len() > limits::RUN_BYTES {
                self.complain(at, &key, "the value holds a NUL character or is too long");
            }
            env.insert(name, value);
        }
        env
    }

    fn uri(&mut self, Written { value, at }: Written<String>) -> String {
        let scheme = value.split_once("://").map(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
        if scheme != Some(true) && !value.starts_with('/') {
            self.complain(at, "data.checkpoint_uri", format!("'{value}' is not a place such as s3://bucket/path"));
        }
        if inert(&value) != value {
            self.complain(at, "data.checkpoint_uri", "it holds control or invisible characters");
        }
        value
    }

    // ── words ──

    fn accelerators(
        &mut self,
        written: Option<Vec<Written<String>>>,
        min_memory: Option<&Written<f64>>,
    ) -> Vec<Accelerator> {
        let key = "resources.accelerators";
        if written.as_ref().is_none_or(Vec::is_empty) && min_memory.is_none() {
            self.complain(
                Origin::Missing,
                key,
                "say which accelerators (--gpu H100), or how much memory each must have (min_gpu_memory_gib)",
            );
        }
        let mut all = Vec::new();
        for Written { value, at } in written.into_iter().flatten() {
            match self.facts.accelerators(&value) {
                Ok(meant) => all.extend(meant),
                Err(message) => self.complain(at, key, message),
            }
        }
        all.sort();
        all.dedup();
        all
    }

    fn models(&mut self, written: Option<Vec<Written<String>>>) -> Vec<Purchase> {
        let key = "purchase.models";
        let Some(written) = written else { return vec![Purchase::OnDemand, Purchase::Spot] };
        let mut models = Vec::new();
        for Written { value, at } in &written {
            if let Some(model) = Purchase::parse(value) {
                models.push(model);
            } else {
                let words = ["spot", "on-demand", "reserved"];
                let hint = did_you_mean(nearest_word(value, words));
                self.complain(*at, key, format!("'{value}' is none of spot, on-demand, reserved{hint}"));
            }
        }
        if written.is_empty() {
            self.complain(Origin::Missing, key, "an empty list allows nothing; leave the key out to allow all");
        }
        models.sort();
        models.dedup();
        models
    }

    fn recovery(&mut self, Written { value, at }: Written<String>) -> Recovery {
        match value.as_str() {
            "restart" => {}
            "stay-down" => return Recovery::StayDown,
            other => {
                let hint = did_you_mean(nearest_word(other, ["restart", "stay-down"]));
                self.complain(at, "schedule.recovery", format!("'{other}' is neither restart nor stay-down{hint}"));
            }
        }
        Recovery::Restart
    }

    fn deadline(&mut self, Written { value, at }: Written<DateTime<Utc>>) -> DateTime<Utc> {
        if value <= self.now {
            let now = self.now.format("%Y-%m-%dT%H:%M:%SZ");
            self.complain(
                at,
                "schedule.deadline",
                format!("{} is past (it is {now})", value.format("%Y-%m-%dT%H:%M:%SZ")),
            );
        }
        value
    }

    // ── places ──

    fn providers(&mut self, written: Option<Vec<Written<String>>>) -> Vec<ProviderId> {
        let mut all: Vec<ProviderId> = Vec::new();
        for Written { value, at } in written.into_iter().flatten() {
            self.provider(&value, at, "constraints.providers");
            all.push(value.into());
        }
        all.sort();
        all.dedup();
        all
    }

    fn provider(&mut self, provider: &str, at: Origin, key: &str) -> bool {
        let known = self.facts.providers();
        let is_known = known.iter().any(|p| p == provider);
        if !is_known {
            let hint = did_you_mean(nearest_word(provider, known.iter().map(String::as_str)));
            self.complain(at, key, format!("there is no provider '{provider}' (known: {}){hint}", known.join(", ")));
        }
        is_known
    }

    fn place(&mut self, Written { value, at }: Written<String>, key: &str) -> Option<Location> {
        let location = match place(&value, self.facts) {
            Ok(location) => location,
            Err(message) => {
                self.complain(at, key, message);
                return None;
            }
        };
        if self.provider(location.provider.as_str(), at, key) {
            let regions = self.facts.regions(location.provider.as_str());
            // Without a table nobody can say that a region does not exist.
            if !regions.is_empty() && !regions.iter().any(|r| location.region == r.as_str()) {
                let hint = did_you_mean(nearest_word(location.region.as_str(), regions.iter().map(String::as_str)));
                let message = format!("{} has no region '{}' that is known{hint}", location.provider, location.region);
                self.complain(at, key, message);
            }
        }
        Some(location)
    }

    fn places(&mut self, written: Option<Vec<Written<String>>>, key: &str) -> Vec<Location> {
        let mut all: Vec<Location> = written.into_iter().flatten().filter_map(|w| self.place(w, key)).collect();
        all.sort();
        all.dedup();
        all
    }

    fn jurisdictions(&mut self, written: Option<Vec<Written<String>>>) -> Vec<String> {
        let key = "constraints.jurisdictions";
        let known = self.facts.jurisdictions();
        let mut all = Vec::new();
        for Written { value, at } in written.into_iter().flatten() {
            let within = self.facts.within(&value);
            if within.is_empty() {
                self.complain(at, key, format!("no place is under '{value}' (known: {})", known.join(", ")));
            }
            all.extend(within);
        }
        all.sort();
        all.dedup();
        all
    }

    fn latency(&mut self, written: Option<Vec<LatencyDraft>>) -> Vec<LatencyLimit> {
        let key = "constraints.latency";
        let mut all = Vec::new();
        for LatencyDraft { at, to, max_ms } in written.into_iter().flatten() {
            if to.is_none() {
                self.complain(at, key, "an entry needs `to`: the place");
            }
            if max_ms.is_none() {
                self.complain(at, key, "an entry needs `max_ms`: the longest round trip in milliseconds");
            }
            let max_ms = max_ms.map(|w| self.above_zero(&w, "constraints.latency.max_ms", limits::LATENCY_MS));
            let to = to.and_then(|w| self.place(w, "constraints.latency.to"));
            if let (Some(to), Some(max_ms)) = (to, max_ms) {
                all.push(LatencyLimit { to, max_ms });
            }
        }
        all
    }

    /// What cannot be fulfilled whatever the market offers.
    fn contradictions(&mut self, spec: &JobSpec) {
        let constraints = &spec.constraints;
        for region in &constraints.regions {
            if constraints.exclude_regions.iter().any(|out| out.contains(region)) {
                self.complain(
                    Origin::Missing,
                    "constraints.exclude_regions",
                    format!("{region} is both asked for and excluded"),
                );
            }
            if !constraints.providers.is_empty() && !constraints.providers.contains(&region.provider) {
                self.complain(
                    Origin::Missing,
                    "constraints.regions",
                    format!("{region} is not of the providers asked for"),
                );
            }
        }
    }
}

fn did_you_mean(word: Option<&str>) -> String {
    word.map(|w| format!("; did you mean '{w}'?")).unwrap_or_default()
}

/// `h100-80gb-8x` from the first accelerator as written, the GPUs a node and the nodes.
fn default_name(resources: &Resources) -> String {
    let chip: String = resources
        .accelerators_as_written
        .first()
        .map_or("gpu", String::as_str)
        .to_lowercase()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(32)
        .collect();
    let chip = if chip.trim_matches('-').is_empty() { "gpu" } else { chip.trim_matches('-') };
    match resources.nodes {
        0 | 1 => format!("{chip}-{}x", resources.count),
        nodes => format!("{chip}-{nodes}x{}", resources.count),
    }
}
