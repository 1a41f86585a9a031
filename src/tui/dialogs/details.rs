//! All that is known of a row.

use super::reader::{Line, field, heading};
use crate::domain::{Evidence, Money, Offer, StepState};
use crate::engine::JobView;
use crate::tui::panes::capacity::{CapacityRow, availability_mark, too_old};
use crate::tui::panes::jobs::{place, risk, state_mark, why_stale};
use crate::tui::spark;
use crate::tui::table::{RowId, age, grouped};
use crate::tui::theme::Role;
use crate::tui::view::View;

pub(crate) fn title(view: &View, id: &RowId) -> String {
    match id {
        RowId::Job(job) => view.job(job).map_or_else(|| "Job".to_owned(), |j| format!("Job {}", j.name)),
        RowId::Place(location, shape) => format!("{shape} in {location}"),
        RowId::Gpu(gpu) => format!("Prices of {gpu}"),
        RowId::Region(region) => format!("Latency of {region}"),
        RowId::Event(seq) => format!("Event {seq}"),
    }
}

pub(crate) fn lines(view: &View, id: &RowId, columns: u16) -> Vec<Line> {
    let gone = || vec![vec![("It is not there any more.".into(), Role::Failed)]];
    match id {
        RowId::Place(..) => view.board.capacity.row(id).map_or_else(gone, |row| of_place(view, row, columns)),
        RowId::Gpu(_) => view.board.prices.row(id).map_or_else(gone, |row| of_gpu(view, row, columns)),
        RowId::Job(job) => view.job(job).map_or_else(gone, |job| of_job(view, job, columns)),
        RowId::Event(_) => view.board.events.row(id).map_or_else(gone, |event| of_event(view, event, columns)),
        RowId::Region(_) => of_region(view, id),
    }
}

fn number(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "not known".to_owned(), |v| format!("{v} {unit}"))
}

fn of_place(view: &View, row: &CapacityRow, columns: u16) -> Vec<Line> {
    let shape = &row.lead.shape;
    let mut lines = Vec::new();
    let mut put = |label: &str, value: &str, role: Role| lines.extend(field(label, value, role, columns));
    put("GPU", &format!("{} × {}", shape.accelerators, shape.accelerator), Role::Title);
    put("GPU memory", &number(shape.gpu_memory_gib, "GiB"), Role::Text);
    put(
        "vCPUs, memory",
        &format!("{}, {}", number(shape.vcpus.map(f64::from), "vCPUs"), number(shape.memory_gib, "GiB")),
        Role::Text,
    );
    put("Interconnect", &format!("{:?}", shape.interconnect).to_lowercase(), Role::Text);
    put("Law", row.lead.jurisdiction.as_deref().unwrap_or("not known"), Role::Text);
    for offer in row.offers() {
        lines.push(Vec::new());
        lines.extend(of_offer(view, offer, columns));
    }
    lines
}

fn of_offer(view: &View, offer: &Offer, columns: u16) -> Vec<Line> {
    let now = view.now();
    let mut lines = vec![heading(&format!("{}", offer.key.purchase))];
    let price = match (offer.price, offer.price_per_gpu()) {
        (Some(p), Some(g)) if too_old(offer, now) => format!("was {g:.4}, {p:.4} an instance; too old to go by"),
        (Some(p), Some(g)) => format!("{g:.4}, {p:.4} an instance"),
        (Some(p), None) => format!("{p:.4} an instance"),
        (None, _) => "not known".to_owned(),
    };
    let source = if offer.price_is_live { "said by the provider" } else { "from a published table" };
    lines.extend(field("Price", &format!("{price} ({source})"), Role::Money, columns));
    let (mark, word, role) = availability_mark(offer.availability);
    lines.extend(field(
        "Availability",
        &format!("{mark} {word}, by {}", evidence_sentence(offer.evidence)),
        role,
        columns,
    ));
    let when = format!(
        "{}{}",
        view.times.full(now, offer.observed_at),
        if offer.stale { ", stale: read it again before acting (r)" } else { "" }
    );
    lines.extend(field("Observed", &when, if offer.stale { Role::Stale } else { Role::Text }, columns));
    if let Some(capacity) = offer.capacity {
        lines.extend(field("In stock", &format!("{capacity} instances"), Role::Text, columns));
    }
    match &offer.quota {
        Some(q) => {
            let text = format!("{} used of {} ({}); room for {} more", q.used, q.limit, q.code, q.instances_left());
            lines.extend(field("Quota", &text, if q.instances_left() == 0 { Role::None } else { Role::Text }, columns));
        }
        None => lines.extend(field("Quota", "not known", Role::Muted, columns)),
    }
    let interruptions =
        offer.interruptions_per_day.map_or_else(|| "not known".to_owned(), |r| format!("{r:.2} expected a day"));
    lines.extend(field("Interruptions", &interruptions, Role::Text, columns));
    if let Some(history) = view.board.state.market.history(&offer.key).filter(|h| h.points().len() > 1) {
        let mut line = vec![(format!("{:<18}", "Price history").into(), Role::Muted)];
        line.extend(spark::trend(Some(history), usize::from(columns.saturating_sub(40)).max(8)));
        if let Some(first) = history.points().next() {
            line.push((
                format!("  {} changes since {}", history.points().len() - 1, view.times.short(now, first.at)).into(),
                Role::Muted,
            ));
        }
        lines.push(line);
    }
    lines
}

/// Where a statement on availability comes from.
const fn evidence_sentence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Api => "the provider's own word",
        Evidence::SpotScore => "a spot placement score",
        Evidence::Quota => "the quota",
        Evidence::Attempt => "a launch that was granted or refused",
        Evidence::Catalogue => "the price list alone: it is listed there",
        Evidence::Simulated => "a simulated cloud",
    }
}

fn of_gpu(view: &View, row: &crate::tui::panes::prices::PriceRow, columns: u16) -> Vec<Line> {
    let mut lines = Vec::new();
    let offer = |label: &str, offer: Option<&std::sync::Arc<Offer>>| -> Vec<Line> {
        match offer.and_then(|o| o.price_per_gpu().map(|p| (o, p))) {
            Some((o, p)) => {
                let (mark, word, _) = availability_mark(o.availability);
                field(label, &format!("{p:.4} at {} ({mark} {word})", o.key), Role::Text, columns)
            }
            None => field(label, "not known", Role::Muted, columns),
        }
    };
    lines.extend(offer("Cheapest", row.cheapest.as_ref()));
    lines.extend(offer("Cheapest on-demand", row.cheapest_on_demand.as_ref()));
    lines.extend(field(
        "Median",
        &row.median.map_or_else(|| "not known".to_owned(), |m| format!("{m:.4}")),
        Role::Text,
        columns,
    ));
    lines.extend(offer("Dearest", row.dearest.as_ref()));
    lines.extend(field("Offers", &grouped(row.offers), Role::Text, columns));
    lines.push(Vec::new());
    lines.push(heading("The ten cheapest places"));
    let mut offers: Vec<_> =
        view.board.state.market.iter().filter(|o| o.shape.accelerator == row.gpu && o.price.is_some()).collect();
    let key = |o: &&std::sync::Arc<Offer>| (o.price_per_gpu(), o.key.clone());
    if offers.len() > 10 {
        offers.select_nth_unstable_by_key(10, key);
        offers.truncate(10);
    }
    offers.sort_by_key(key);
    for o in offers {
        let (mark, word, role) = availability_mark(o.availability);
        let price = o.price_per_gpu().map_or_else(String::new, |p| format!("{p:.4}"));
        lines.push(vec![
            (format!("  {price:>16}{} ", if o.price_is_live { " " } else { "p" }).into(), Role::Money),
            (format!("{mark} {word:<10} ").into(), role),
            (o.key.to_string().into(), Role::Text),
        ]);
    }
    lines
}

fn of_job(view: &View, job: &JobView, columns: u16) -> Vec<Line> {
    let now = view.now();
    let mut lines = Vec::new();
    let (mark, role) = state_mark(job.state);
    lines.extend(field("State", &format!("{mark} {}", job.state), role, columns));
    if let Some(note) = &job.note {
        lines.extend(field("", note, Role::Muted, columns));
    }
    if let Some(why) = why_stale(&view.state, job) {
        lines.extend(field("Stale", &why, Role::Stale, columns));
    }
    lines.extend(field("Id", job.id.as_str(), Role::Text, columns));
    lines.extend(field("Where", &place(job), Role::Text, columns));
    let machine = job.instance_type.as_ref().map_or("–", |t| t.as_str());
    let gpu = job.accelerator.as_ref().map_or("–", |a| a.as_str());
    lines.extend(field(
        "Machines",
        &format!("{} nodes of {machine}, {} × {gpu} together", job.nodes, job.accelerators),
        Role::Text,
        columns,
    ));
    lines.extend(field("Paid", &job.purchase.map_or_else(|| "–".to_owned(), |p| p.to_string()), Role::Text, columns));
    lines.push(Vec::new());
    lines.push(heading("Money"));
    lines.extend(field(
        "Now",
        &job.usd_per_hour.map_or_else(|| "not known: a price is missing".to_owned(), |p| p.to_string()),
        Role::Money,
        columns,
    ));
    lines.extend(field("So far", &job.usd_spent.to_string(), Role::Money, columns));
    let best = match (job.best_usd_per_hour, job.usd_per_hour) {
        (Some(b), Some(n)) if b < n => format!("{b} at the best place now, {} less", n - b),
        (Some(b), _) => format!("{b} at the best place now"),
        (None, _) => "not known".to_owned(),
    };
    lines.extend(field("Best place", &best, Role::Text, columns));
    if let Some(saves) = job.move_saves {
        let text = if saves > Money::ZERO {
            let over = job.spec.schedule.duration_hours.map_or("a day", |_| "what is left of it");
            format!("saves {saves} over {over}, after all that the move costs")
        } else {
            "does not pay: moving costs more than it saves".to_owned()
        };
        lines.extend(field("A move", &text, Role::Text, columns));
    }
    let (figure, role) = risk(job);
    lines.extend(field("Interruptions", &format!("{figure} expected a day"), role, columns));
    lines.extend(field("Restarts", &job.restarts.to_string(), Role::Text, columns));
    lines.push(Vec::new());
    lines.push(heading("Times"));
    lines.extend(field("Created", &view.times.full(now, job.created_at), Role::Text, columns));
    lines.extend(field(
        "First ran",
        &job.started_at.map_or_else(|| "not yet".to_owned(), |t| view.times.full(now, t)),
        Role::Text,
        columns,
    ));
    if let Some(since) = job.running_since.filter(|since| Some(*since) != job.started_at) {
        lines.extend(field("Last started", &view.times.full(now, since), Role::Text, columns));
    }
    if let Some(ended) = job.ended_at {
        lines.extend(field("Ended", &view.times.full(now, ended), Role::Text, columns));
    }
    if let Some(operation) = &job.operation {
        lines.push(Vec::new());
        lines.push(heading(&format!("Under way: {} since {}", operation.kind.as_str(), age(now, operation.since))));
        for (step, state) in operation.plan.steps.iter().zip(&operation.steps) {
            let (mark, role) = step_mark(*state);
            let machine = step.instance_type.as_ref().map_or_else(String::new, |t| format!(" {} × {t}", step.count));
            lines.push(vec![
                (format!("  {mark} {:<9} ", state.as_str()).into(), role),
                (format!("{:<11} {}/{}{machine}", step.action.as_str(), step.provider, step.region).into(), Role::Text),
            ]);
        }
        lines.extend(field("  waits for", &operation.waiting_for, Role::Muted, columns));
    }
    lines.push(Vec::new());
    lines.push(heading(&format!("Instances ({})", job.instances.len())));
    for i in &job.instances {
        let bound = i.bound_price.map_or_else(|| "price not known".to_owned(), |p| p.to_string());
        lines.push(vec![
            (format!("  {:>2} ", i.node).into(), Role::Muted),
            (format!("{} ", i.instance.id).into(), Role::Title),
            (format!("{} ", i.instance.state).into(), Role::Text),
            (
                format!(
                    "{} {} {bound}, seen {} ago",
                    i.instance.location,
                    i.instance.instance_type,
                    age(now, i.observed_at)
                )
                .into(),
                Role::Muted,
            ),
        ]);
        if let Some(notice) = i.instance.preemption_notice {
            lines.push(vec![(format!("     taken away at {}", view.times.short(now, notice)).into(), Role::Failed)]);
        }
    }
    lines.push(Vec::new());
    lines.push(heading("Asked for"));
    let spec = &job.spec;
    let chips = if spec.resources.accelerators.is_empty() {
        "any".to_owned()
    } else {
        spec.resources.accelerators.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    lines.extend(field(
        "GPUs",
        &format!("{} × {chips} on each of {} nodes", spec.resources.count, spec.resources.nodes),
        Role::Text,
        columns,
    ));
    lines.extend(field("Run", spec.run.as_deref().unwrap_or("(holds the machines only)"), Role::Text, columns));
    lines.extend(field(
        "Checkpoints",
        spec.data.checkpoint_uri.as_deref().unwrap_or("nowhere stated"),
        Role::Text,
        columns,
    ));
    lines
}

/// A step's mark and role.
pub(crate) const fn step_mark(state: StepState) -> (&'static str, Role) {
    match state {
        StepState::Planned => ("·", Role::Muted),
        StepState::Intended => ("◐", Role::Moving),
        StepState::Done => ("✓", Role::Running),
        StepState::Failed => ("✕", Role::Failed),
        StepState::Unknown => ("?", Role::Failed),
    }
}

fn of_event(view: &View, event: &crate::tui::panes::events::EventRow, columns: u16) -> Vec<Line> {
    let mut lines = Vec::new();
    lines.extend(field("When", &view.times.full(view.now(), event.at), Role::Text, columns));
    lines.extend(field("What", event.kind.as_str(), crate::tui::panes::events::role(event.kind), columns));
    lines.extend(field("Who", &event.actor.to_string(), Role::Text, columns));
    if let Some(name) = &event.job_name {
        lines.extend(field("Job", name, Role::Title, columns));
    }
    if let Some(plan) = &event.plan {
        lines.extend(field("Plan", plan.as_str(), Role::Text, columns));
    }
    lines.push(Vec::new());
    lines.extend(field("Text", &event.text, Role::Text, columns));
    if let Some(alert) = view.state.alerts.iter().find(|a| a.seq == event.seq) {
        let by = alert
            .acknowledged_by
            .as_deref()
            .map_or_else(|| "waits for a note (a)".to_owned(), |who| format!("noted by {who}"));
        lines.extend(field("Alert", &by, Role::Waiting, columns));
    }
    if let serde_json::Value::Object(data) = &event.data {
        for (key, value) in data {
            lines.extend(field(key, &value.to_string(), Role::Muted, columns));
        }
    }
    lines
}

fn of_region(view: &View, id: &RowId) -> Vec<Line> {
    let RowId::Region(region) = id else { return Vec::new() };
    let matrix = &view.board.matrix;
    let Some(row) = matrix.from.iter().position(|l| l == region) else {
        return vec![vec![("It is not in the matrix any more.".into(), Role::Failed)]];
    };
    let mut cells: Vec<_> = (0..matrix.to.len()).filter_map(|j| matrix.cells.get(&(row, j))).collect();
    cells.sort_by(|a, b| a.p50_ms.total_cmp(&b.p50_ms));
    cells
        .into_iter()
        .map(|latency| {
            let mut line = vec![(format!("{:<34} ", latency.to.to_string()).into(), Role::Text)];
            line.extend(crate::tui::panes::latency::sentence(latency, view.now()));
            line
        })
        .collect()
}
