//! A job as written: every key optional, each value with the place it was written at.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::config::problem::{Origin, Problem, Written};
use crate::config::reader::{Reader, Section};

/// A job as written, in a file or in flags.
#[derive(Debug, Default)]
pub struct Draft {
    /// `name`
    pub name: Option<Written<String>>,
    /// `run`
    pub run: Option<Written<String>>,
    /// `image`
    pub image: Option<Written<String>>,
    /// `env`
    pub env: BTreeMap<String, Written<String>>,
    /// `resources.accelerators`
    pub accelerators: Option<Vec<Written<String>>>,
    /// `resources.min_gpu_memory_gib`
    pub min_gpu_memory_gib: Option<Written<f64>>,
    /// `resources.count`
    pub count: Option<Written<u64>>,
    /// `resources.nodes`
    pub nodes: Option<Written<u64>>,
    /// `resources.vcpus`
    pub vcpus: Option<Written<u64>>,
    /// `resources.memory_gib`
    pub memory_gib: Option<Written<f64>>,
    /// `purchase.models`
    pub models: Option<Vec<Written<String>>>,
    /// `purchase.max_usd_per_gpu_hour`
    pub max_usd_per_gpu_hour: Option<Written<f64>>,
    /// `constraints.providers`
    pub providers: Option<Vec<Written<String>>>,
    /// `constraints.regions`
    pub regions: Option<Vec<Written<String>>>,
    /// `constraints.exclude_regions`
    pub exclude_regions: Option<Vec<Written<String>>>,
    /// `constraints.jurisdictions`
    pub jurisdictions: Option<Vec<Written<String>>>,
    /// `constraints.latency`
    pub latency: Option<Vec<LatencyDraft>>,
    /// `constraints.combine_zones`
    pub combine_zones: Option<Written<bool>>,
    /// `data.location`
    pub location: Option<Written<String>>,
    /// `data.input_gib`
    pub input_gib: Option<Written<f64>>,
    /// `data.checkpoint_gib`
    pub checkpoint_gib: Option<Written<f64>>,
    /// `data.checkpoint_uri`
    pub checkpoint_uri: Option<Written<String>>,
    /// `schedule.duration_hours`
    pub duration_hours: Option<Written<f64>>,
    /// `schedule.deadline`
    pub deadline: Option<Written<DateTime<Utc>>>,
    /// `schedule.recovery`
    pub recovery: Option<Written<String>>,
    /// `schedule.restart_loss_hours`
    pub restart_loss_hours: Option<Written<f64>>,
}

/// An entry of `constraints.latency`.
#[derive(Debug)]
pub struct LatencyDraft {
    /// Where it stands.
    pub at: Origin,
    /// `to`
    pub to: Option<Written<String>>,
    /// `max_ms`
    pub max_ms: Option<Written<f64>>,
}

impl Draft {
    /// From the text of a job file, with what is wrong with its keys and their kinds.
    pub(super) fn parse(text: &str) -> (Self, Vec<Problem>) {
        Reader::read(text, Self::read)
    }

    fn read(r: &mut Reader, root: &Section<'_>) -> Self {
        let resources = root.section(r, "resources");
        let purchase = root.section(r, "purchase");
        let constraints = root.section(r, "constraints");
        let data = root.section(r, "data");
        let schedule = root.section(r, "schedule");
        Self {
            name: root.text(r, "name"),
            run: root.text(r, "run"),
            image: root.text(r, "image"),
            env: root.free_texts(r, "env").unwrap_or_default(),
            accelerators: resources.texts(r, "accelerators"),
            min_gpu_memory_gib: resources.number(r, "min_gpu_memory_gib"),
            count: resources.whole(r, "count"),
            nodes: resources.whole(r, "nodes"),
            vcpus: resources.whole(r, "vcpus"),
            memory_gib: resources.number(r, "memory_gib"),
            models: purchase.texts(r, "models"),
            max_usd_per_gpu_hour: purchase.number(r, "max_usd_per_gpu_hour"),
            providers: constraints.texts(r, "providers"),
            regions: constraints.texts(r, "regions"),
            exclude_regions: constraints.texts(r, "exclude_regions"),
            jurisdictions: constraints.texts(r, "jurisdictions"),
            latency: Self::latency(r, &constraints),
            combine_zones: constraints.switch(r, "combine_zones"),
            location: data.text(r, "location"),
            input_gib: data.number(r, "input_gib"),
            checkpoint_gib: data.number(r, "checkpoint_gib"),
            checkpoint_uri: data.text(r, "checkpoint_uri"),
            duration_hours: schedule.number(r, "duration_hours"),
            deadline: schedule.time(r, "deadline"),
            recovery: schedule.text(r, "recovery"),
            restart_loss_hours: schedule.number(r, "restart_loss_hours"),
        }
    }

    fn latency(r: &mut Reader, constraints: &Section<'_>) -> Option<Vec<LatencyDraft>> {
        let entries = constraints.sections(r, "latency")?;
        Some(
            entries
                .into_iter()
                .map(|(at, entry)| LatencyDraft { at, to: entry.text(r, "to"), max_ms: entry.number(r, "max_ms") })
                .collect(),
        )
    }

    /// This draft with the flags' values in place of its own. Variables are merged one by one.
    pub(super) fn overlaid(mut self, flags: Self) -> Self {
        self.env.extend(flags.env);
        Self {
            name: flags.name.or(self.name),
            run: flags.run.or(self.run),
            image: flags.image.or(self.image),
            env: self.env,
            accelerators: flags.accelerators.or(self.accelerators),
            min_gpu_memory_gib: flags.min_gpu_memory_gib.or(self.min_gpu_memory_gib),
            count: flags.count.or(self.count),
            nodes: flags.nodes.or(self.nodes),
            vcpus: flags.vcpus.or(self.vcpus),
            memory_gib: flags.memory_gib.or(self.memory_gib),
            models: flags.models.or(self.models),
            max_usd_per_gpu_hour: flags.max_usd_per_gpu_hour.or(self.max_usd_per_gpu_hour),
            providers: flags.providers.or(self.providers),
            regions: flags.regions.or(self.regions),
            exclude_regions: flags.exclude_regions.or(self.exclude_regions),
            jurisdictions: flags.jurisdictions.or(self.jurisdictions),
            latency: flags.latency.or(self.latency),
            combine_zones: flags.combine_zones.or(self.combine_zones),
            location: flags.location.or(self.location),
            input_gib: flags.input_gib.or(self.input_gib),
            checkpoint_gib: flags.checkpoint_gib.or(self.checkpoint_gib),
            checkpoint_uri: flags.checkpoint_uri.or(self.checkpoint_uri),
            duration_hours: flags.duration_hours.or(self.duration_hours),
            deadline: flags.deadline.or(self.deadline),
            recovery: flags.recovery.or(self.recovery),
            restart_loss_hours: flags.restart_loss_hours.or(self.restart_loss_hours),
        }
    }
}
