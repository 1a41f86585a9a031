//! `gpudeck launch`, `migrate`, `terminate`: a plan, the operator's word, the engine's doing, the outcome.

use std::time::Duration;

use super::place::job;
use super::{market, tell_feeds};
use crate::cli::app::App;
use crate::cli::args::{JobArgs, LaunchArgs, MigrateArgs, TerminateArgs};
use crate::cli::confirm::{Wanted, confirm};
use crate::cli::facts::WorldFacts;
use crate::cli::failure::{Exit, Failure, Outcome};
use crate::cli::output::{Cell, Column, Style, Table};
use crate::cli::shapes::{ActShape, JobShape, PlanShape, RankingShape};
use crate::cli::{Stop, actor, interruptible};
use crate::config::limits;
use crate::domain::text::inert;
use crate::domain::{HourlyRate, JobId, JobSpec, OperationId, Plan, PlanKind, ProviderError};
use crate::engine::{Engine, EngineError, JobView, Mode, Proposal, Wish};

/// `launch`
pub async fn launch(app: &App, args: &LaunchArgs) -> Outcome {
    app.no_offers_file("launch")?;
    may_act(app, args.dry_run)?;
    let now = app.world().await?.clock.now();
    // What is wrong with the job is told before anybody is asked anything.
    let spec = job(app, &args.job, None, now)?;
    let market = interruptible(Box::pin(market(app))).await?;
    let engine = market.engine.ok_or_else(|| Failure::failed("there is no engine for a market from a file"))?;
    let outcome = launch_with(app, args, spec, &engine).await;
    engine.shutdown().await;
    outcome
}

async fn launch_with(app: &App, args: &LaunchArgs, mut spec: JobSpec, engine: &Engine) -> Outcome {
    make_name_unique(engine, &args.job, &mut spec).await?;
    let name = spec.name.clone();
    let wish = Wish::Launch { spec: Box::new(spec), candidate: 0 };
    let proposal = propose(app, engine, wish).await?;
    show_plan(app, &format!("launch {name}"), &proposal.plan);
    if args.dry_run {
        return finish(app, &[Done::planned(proposal.plan, None)]);
    }
    interruptible(confirm_launch(app, &name, &proposal.plan)).await?;
    let done = carry_out(app, engine, proposal).await?;
    finish(app, &[done])
}

/// `migrate`
pub async fn migrate(app: &App, args: &MigrateArgs) -> Outcome {
    app.no_offers_file("migrate")?;
    may_act(app, args.dry_run)?;
    let engine = app.engine(Mode::OneShot, "cli").await?;
    let outcome = migrate_with(app, args, &engine).await;
    engine.shutdown().await;
    outcome
}

async fn migrate_with(app: &App, args: &MigrateArgs, engine: &Engine) -> Outcome {
    let job = engine.job(&args.job).await?;
    let statuses = interruptible(async { Ok(engine.refresh_feeds(None).await?) }).await?;
    tell_feeds(app, &statuses);
    if let Some(place) = &args.to {
        let market = engine.state().borrow().market.clone();
        WorldFacts::new(app.catalogue(), Some(&market)).place("--to", place)?;
    }
    let wish = Wish::Migrate { job: job.id.clone(), to: args.to.clone() };
    let proposal = propose(app, engine, wish).await?;
    show_plan(app, &format!("migrate {}", job.name), &proposal.plan);
    if args.dry_run {
        return finish(app, &[Done::planned(proposal.plan, Some(job))]);
    }
    let question = format!("Move {}?", inert(&job.name));
    interruptible(confirm(app, &question, &Wanted::name_of(&job.name, job.id.as_str()))).await?;
    let done = carry_out(app, engine, proposal).await?;
    finish(app, &[done])
}

/// `terminate`
pub async fn terminate(app: &App, args: &TerminateArgs) -> Outcome {
    app.no_offers_file("terminate")?;
    may_act(app, args.dry_run)?;
    let engine = app.engine(Mode::OneShot, "cli").await?;
    let outcome = terminate_with(app, args, &engine).await;
    engine.shutdown().await;
    outcome
}

async fn terminate_with(app: &App, args: &TerminateArgs, engine: &Engine) -> Outcome {
    // All jobs are found and planned before the first is touched: a wrong name among them stops nothing half-way.
    let mut proposals = Vec::new();
    let mut jobs: Vec<JobView> = Vec::new();
    for name in &args.jobs {
        let job = engine.job(name).await?;
        if !jobs.iter().any(|known| known.id == job.id) {
            proposals.push(propose(app, engine, Wish::Terminate { job: job.id.clone() }).await?);
            jobs.push(job);
        }
    }
    for (job, proposal) in jobs.iter().zip(&proposals) {
        show_plan(app, &format!("terminate {}", job.name), &proposal.plan);
    }
    if args.dry_run {
        let planned: Vec<Done> =
            proposals.into_iter().zip(jobs).map(|(p, job)| Done::planned(p.plan, Some(job))).collect();
        return finish(app, &planned);
    }
    for job in &jobs {
        let question = format!("Stop {} and release everything it holds?", inert(&job.name));
        interruptible(confirm(app, &question, &Wanted::name_of(&job.name, job.id.as_str()))).await?;
    }
    let mut done = Vec::new();
    for (proposal, job) in proposals.into_iter().zip(jobs) {
        let plan = proposal.plan.clone();
        match carry_out(app, engine, proposal).await {
            Ok(one) => done.push(one),
            Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
            // The others are to be stopped all the same, and what became of each is told.
            Err(failure) => done.push(Done { plan, job: Some(job), executed: false, failure: Some(failure) }),
        }
    }
    finish(app, &done)
}

/// The plan for a wish; where nothing fits, with every refusal and what would help.
async fn propose(app: &App, engine: &Engine, wish: Wish) -> Outcome<Proposal> {
    interruptible(async {
        engine.propose(wish).await.map_err(|error| match error {
            EngineError::NoPlace { name, ranking } => no_place(app, &name, &ranking),
            other => other.into(),
        })
    })
    .await
}

/// Acting is refused early in a read-only session; the engine would refuse it too, and the providers cannot act at all.
fn may_act(app: &App, dry_run: bool) -> Outcome<()> {
    if app.global.read_only && !dry_run {
        return Err(Failure::new(Exit::Refused, "refused", "refused: this is a read-only session")
            .hint("Leave --read-only out to act, or add --dry-run to see the plan."));
    }
    Ok(())
}

/// A name that was made up, not given, gets a number where a live job has it already.
async fn make_name_unique(engine: &Engine, args: &JobArgs, spec: &mut JobSpec) -> Outcome<()> {
    if args.draft().name.is_some() || args.file().is_some() {
        return Ok(());
    }
    let jobs = engine.jobs().await?;
    let taken = |name: &str| jobs.iter().any(|job| !job.state.is_final() && job.name == name);
    let base = spec.name.clone();
    let mut number = 2;
    while taken(&spec.name) {
        spec.name = format!("{base}-{number}");
        number += 1;
    }
    Ok(())
}

fn no_place(app: &App, name: &str, ranking: &crate::placement::Ranking) -> Failure {
    if !app.out.json {
        for line in crate::placement::explain::refusals(ranking) {
            app.out.complain(&line);
        }
        for line in crate::placement::explain::relaxations(ranking) {
            app.out.complain(&format!("would fit:{line}"));
        }
    }
    Failure::new(Exit::NoPlace, "no_placement", format!("no feasible placement for '{name}'"))
        .hint("`gpudeck place --explain` with the same job says why, and what would help.")
        .beside("place", &RankingShape::from(ranking))
}

async fn confirm_launch(app: &App, name: &str, plan: &Plan) -> Outcome<()> {
    let after = plan.usd_per_hour_after;
    let dear = after.is_none_or(|rate| rate > app.settings.limits.type_name_above_usd_per_hour);
    let cost = after.map_or_else(|| "an unknown price".to_owned(), |rate| rate.to_string());
    let question = format!("Launch {} for {cost}?", inert(name));
    let wanted = if dear { Wanted::name_of(name, plan.id.as_str()) } else { Wanted::Yes };
    confirm(app, &question, &wanted).await
}

/// What became of one plan.
struct Done {
    plan: Plan,
    job: Option<JobView>,
    executed: bool,
    failure: Option<Failure>,
}

impl Done {
    /// Planned, and nothing done.
    const fn planned(plan: Plan, job: Option<JobView>) -> Self {
        Self { plan, job, executed: false, failure: None }
    }
}

/// Have the engine do it, tell what happens while it happens, and what came of it.
async fn carry_out(app: &App, engine: &Engine, proposal: Proposal) -> Outcome<Done> {
    let plan = proposal.plan.clone();
    let mut stop = Stop::listen()?;
    let seen = engine.state().borrow().events.last().map_or(0, |event| event.seq);
    let (job, operation) = engine.execute(proposal, actor::current("cli")).await?;
    tokio::select! {
        settled = settle(app, engine, &job, &operation, seen) => {
            let job = settled?;
            let outcome = engine.outcome(&operation).await?;
            let failure = (!outcome.done).then(|| match outcome.error {
                Some(error) => after_all(&outcome.reason, error),
                None if outcome.reason.is_empty() => Failure::failed(format!("'{}' did not come to its end", job.name)),
                None => Failure::failed(outcome.reason.clone()),
            });
            if failure.is_some() {
                tell_attempts(app, &outcome.attempts);
            }
            Ok(Done { plan, job: Some(job), executed: outcome.done, failure })
        }
        () = stop.asked() => {
            let _ = tokio::time::timeout(limits::SHUTDOWN, engine.shutdown()).await;
            Err(Failure {
                message: format!(
                    "interrupted; operation {operation} of job {job} is in the ledger, and what was started is not forgotten"
                ),
                ..Failure::interrupted()
            }
            .hint("It goes on with the cockpit or `gpudeck controller`; `gpudeck terminate JOB` gives it up."))
        }
    }
}

/// Wait for the end of an operation, and pass on what happens.
async fn settle(app: &App, engine: &Engine, job: &JobId, operation: &OperationId, mut seen: i64) -> Outcome<JobView> {
    let mut state = engine.state();
    let settled = engine.settle(operation);
    tokio::pin!(settled);
    loop {
        tokio::select! {
            settled = &mut settled => {
                tell_events(app, engine, job, &mut seen);
                return Ok(settled?);
            }
            changed = state.changed() => {
                if changed.is_err() {
                    return Ok(settled.await?);
                }
                tell_events(app, engine, job, &mut seen);
            }
        }
    }
}

fn tell_events(app: &App, engine: &Engine, job: &JobId, seen: &mut i64) {
    let state = engine.state();
    let state = state.borrow().clone();
    for event in state.events.iter().filter(|e| e.seq > *seen) {
        if event.job.as_ref() == Some(job) {
            app.out.note(&format!("{} {}", app.out.moment(event.at, state.at), inert(&event.text)));
        }
    }
    if let Some(last) = state.events.last() {
        *seen = (*seen).max(last.seq);
    }
}

/// What an operation ended on: the last provider's error, and with it what became of the places before.
fn after_all(reason: &str, error: ProviderError) -> Failure {
    let last = error.to_string();
    let failure = Failure::from(error);
    match reason.split_once(&last) {
        // The failure's own words are fuller than those in the reason: they name the request.
        Some((before, after)) => Failure { message: format!("{before}{}{after}", failure.message), ..failure },
        None => failure,
    }
}

fn tell_attempts(app: &App, attempts: &[crate::engine::Attempt]) {
    for attempt in attempts {
        app.out.complain(&format!(
            "attempt {}: {} {} {}: {}",
            attempt.number,
            inert(&attempt.location.to_string()),
            inert(attempt.instance_type.as_str()),
            attempt.purchase,
            inert(&attempt.result)
        ));
    }
}

/// Print what came of it: one document for one plan, a list for several.
fn finish(app: &App, all: &[Done]) -> Outcome {
    let exit = all.iter().find_map(|d| d.failure.as_ref()).map_or(Exit::Done, |f| f.exit);
    if app.out.json {
        let shape = |done: &Done| -> serde_json::Value {
            let act = ActShape {
                job: done.job.as_ref().map(JobShape::from),
                plan: PlanShape::from(&done.plan),
                executed: done.executed,
            };
            let value = serde_json::to_value(&act).unwrap_or_default();
            match &done.failure {
                Some(failure) => failure_beside(failure, value),
                None => value,
            }
        };
        match all {
            [done] if done.failure.is_none() => app.out.document(&ActShape {
                job: done.job.as_ref().map(JobShape::from),
                plan: PlanShape::from(&done.plan),
                executed: done.executed,
            })?,
            [done] => app.out.document(&shape(done))?,
            several => app.out.document(&several.iter().map(shape).collect::<Vec<_>>())?,
        }
        return Ok(exit);
    }
    for done in all {
        match (&done.failure, &done.job) {
            (Some(failure), _) => app.out.failure(failure),
            (None, Some(job)) if done.executed => app.out.text(&format!("{}\n", sentence(job)))?,
            _ => app.out.note("nothing was done (dry run)"),
        }
    }
    Ok(exit)
}

/// The error and, beside it, what was planned and what is left.
fn failure_beside(failure: &Failure, act: serde_json::Value) -> serde_json::Value {
    let mut document = serde_json::to_value(failure.document()).unwrap_or_default();
    if let (Some(document), serde_json::Value::Object(act)) = (document.as_object_mut(), act) {
        document.extend(act);
    }
    document
}

fn sentence(job: &JobView) -> String {
    let place = match (&job.provider, &job.region, &job.zone) {
        (Some(provider), Some(region), Some(zone)) => format!(" in {provider}/{region}/{zone}"),
        (Some(provider), Some(region), None) => format!(" in {provider}/{region}"),
        _ => String::new(),
    };
    let rate = match job.usd_per_hour {
        Some(rate) if !job.state.is_final() => format!(" at {rate}"),
        _ => String::new(),
    };
    let so_far = if job.state.is_final() { "in all" } else { "so far" };
    inert(&format!("{} {} is {}{place}{rate}, {} {so_far}", job.name, job.id, job.state, job.usd_spent)).into_owned()
}

/// The plan, for people, on standard error: it is what they confirm.
pub(super) fn show_plan(app: &App, title: &str, plan: &Plan) {
    if app.out.quiet && app.global.yes {
        return;
    }
    let out = &app.out;
    out.complain(&format!("{}  (plan {})", inert(title), inert(plan.id.as_str())));
    let mut table = Table::new(vec![
        Column::new("STEP"),
        // What is confirmed is never cut, even if a line has to wrap.
        Column::new("PLACE"),
        Column::new("INSTANCES"),
        Column::new("BUY").leaves(2),
        Column::new("$/H").right(),
        Column::new("ONCE").right(),
        Column::new("TIME").right().leaves(1),
    ]);
    for step in &plan.steps {
        let unknown = || Cell::new(out.unknown()).style(Style::Dim);
        let place = match &step.zone {
            Some(zone) => format!("{}/{}/{zone}", step.provider, step.region),
            None => format!("{}/{}", step.provider, step.region),
        };
        table.row(vec![
            Cell::new(step.action.as_str()),
            Cell::new(place),
            step.instance_type.as_ref().map_or_else(unknown, |kind| Cell::new(format!("{}x {kind}", step.count))),
            step.purchase.map_or_else(unknown, |p| Cell::new(p.to_string())),
            step.usd_per_hour
                .map_or_else(unknown, |p| Cell::new(format!("{:.2}", crate::domain::Money::from_micros(p.micros())))),
            step.usd_once.map_or_else(unknown, |m| Cell::new(m.to_string())),
            step.seconds.map_or_else(unknown, |s| Cell::new(duration(s))),
        ]);
    }
    out.table_for_people(&table);
    let rate = |rate: Option<HourlyRate>| rate.map_or_else(|| "unknown".to_owned(), |r| r.to_string());
    let day = plan
        .usd_per_hour_after
        .map(|r| format!(" ({} a day)", crate::domain::Money::from_micros(r.micros()).times(24)));
    let once = plan.usd_once.map(|m| format!(", {m} once")).unwrap_or_default();
    let before = match plan.kind {
        PlanKind::Launch => String::new(),
        _ => format!("{} before, ", rate(plan.usd_per_hour_before)),
    };
    out.complain(&format!("costs {before}{} then{}{once}", rate(plan.usd_per_hour_after), day.unwrap_or_default()));
    for warning in &plan.warnings {
        out.complain(&format!("note: {}", inert(warning)));
    }
}

fn duration(seconds: u64) -> String {
    let d = Duration::from_secs(seconds);
    match d.as_secs() {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{:.1} h", d.as_secs_f64() / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ErrorClass;

    #[test]
    fn c3_a_launch_that_found_no_place_tells_the_last_refusal_and_what_was_before() {
        let mut error = ProviderError::new(ErrorClass::NoCapacity, &"aws".into(), "RunInstances", "none left");
        error.request_id = Some("req-7".to_owned());
        let reason = format!("15 sold out; the last: {error}; and nowhere else: 3 offers: too dear");
        let failure = after_all(&reason, error.clone());
        assert_eq!(failure.exit, Exit::NoPlace);
        for part in ["15 sold out; the last: aws RunInstances", "req-7", "nowhere else: 3 offers"] {
            assert!(failure.message.contains(part), "{part} in {}", failure.message);
        }
        assert_eq!(after_all("", error.clone()).message, Failure::from(error).message);
    }
}
