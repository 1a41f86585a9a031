//! Releasing machines to proof. It never gives up: a machine counts as billed until the provider shows that it is gone.

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use serde_json::json;

use super::account::Standing;
use super::boot::reference;
use super::driver::{Case, Driver, Next, Recall, event, steps};
use super::launch::Looked;
use super::observe;
use super::reaction::{self, OnTerminate};
use super::shared::world;
use crate::domain::job::Recovery;
use crate::domain::text::inert;
use crate::domain::{ErrorClass, EventKind, InstanceState, JobState, OperationKind, ProviderError};
use crate::provider::Termination;
use crate::store::{IntentRow, IntentState, OperationState, Phase, StoreError};

/// How one machine's release stands.
enum Release {
    /// Proved to be gone, or never made.
    Closed,
    /// Under way.
    Going,
    /// The provider refuses or does not answer.
    Refused(ProviderError),
    /// The id belongs to somebody else's machine by now.
    Disputed,
}

impl Driver {
    /// Release what the failed attempt made; then try elsewhere, or give up.
    pub(crate) async fn clean(&self, case: &Case) -> Result<Next, StoreError> {
        let targets: Vec<&IntentRow> = case.own_open().collect();
        if let Some(wait) = self.remove(case, &targets).await? {
            return Ok(wait);
        }
        if case.operation.phase == Phase::Quitting {
            return self.give_up(case).await;
        }
        self.enter(case, Phase::Choosing, "a place").await
    }

    /// Release what is left of the last allocation; then choose a place, where the job is to be started again.
    pub(crate) async fn release(&self, case: &Case) -> Result<Next, StoreError> {
        let targets: Vec<&IntentRow> = case.earlier().collect();
        if let Some(wait) = self.remove(case, &targets).await? {
            return Ok(wait);
        }
        if case.job.spec.schedule.recovery == Recovery::Restart {
            return self.enter(case, Phase::Choosing, "a place").await;
        }
        let now = self.shared.now();
        let mut operation = case.operation.clone();
        let mut tx = self.begin().await?;
        operation.steps = steps(&case.plan, operation.kind, None);
        self.end(&mut tx, &mut operation, OperationState::Done, now).await?;
        let who = (&case.job.id, case.job.name.as_str());
        let text = "everything it held is proved gone; it stays down, as its recovery says";
        tx.append_event(event(now, &operation.actor, EventKind::Terminated, who, None, text, json!({}))).await?;
        self.shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Done)
    }

    /// The target is verified: release the source.
    pub(crate) async fn release_source(&self, case: &Case) -> Result<Next, StoreError> {
        let targets: Vec<&IntentRow> = case.earlier().collect();
        if let Some(wait) = self.remove(case, &targets).await? {
            return Ok(wait);
        }
        let shared = &self.shared;
        let now = shared.now();
        let mut operation = case.operation.clone();
        let who = (&case.job.id, case.job.name.as_str());
        let mut tx = self.begin().await?;
        operation.steps = steps(&case.plan, operation.kind, None);
        operation.reason.clear();
        operation.error = None;
        self.end(&mut tx, &mut operation, OperationState::Done, now).await?;
        if let Some(mut job) = tx.job(&case.job.id).await? {
            job.running_since = Some(now);
            tx.move_job(&mut job, JobState::Running, None, now).await?;
        }
        let text = "moved; the source is proved gone";
        let data = json!({ "operation": operation.id });
        tx.append_event(event(now, &operation.actor, EventKind::Migration, who, Some(&operation.plan), text, data))
            .await?;
        tx.clear_alerts_of(&case.job.id, now).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Done)
    }

    /// Release everything that the job holds, of every operation; then it is terminated.
    pub(crate) async fn remove_all(&self, case: &Case) -> Result<Next, StoreError> {
        let targets: Vec<&IntentRow> = case.intents.iter().filter(|i| !i.state.is_closed()).collect();
        if let Some(wait) = self.remove(case, &targets).await? {
            return Ok(wait);
        }
        let shared = &self.shared;
        let now = shared.now();
        let mut operation = case.operation.clone();
        let who = (&case.job.id, case.job.name.as_str());
        let spent: crate::domain::Money = case.intents.iter().map(|i| i.cost(now)).sum();
        let mut tx = self.begin().await?;
        operation.steps = steps(&case.plan, operation.kind, None);
        self.end(&mut tx, &mut operation, OperationState::Done, now).await?;
        if let Some(mut job) = tx.job(&case.job.id).await? {
            tx.move_job(&mut job, JobState::Terminated, None, now).await?;
        }
        let machines = case.intents.iter().filter(|i| i.instance.is_some()).count();
        let what = if machines == 1 { "machine" } else { "machines" };
        let text = format!("terminated: {machines} {what} proved gone, {spent} spent in all");
        let data = json!({ "operation": operation.id, "machines": machines, "usd_spent": spent });
        tx.append_event(event(now, &operation.actor, EventKind::Terminated, who, Some(&operation.plan), text, data))
            .await?;
        tx.clear_alerts_of(&case.job.id, now).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Done)
    }

    async fn enter(&self, case: &Case, phase: Phase, waiting_for: &str) -> Result<Next, StoreError> {
        let mut operation = case.operation.clone();
        operation.phase = phase;
        operation.steps = steps(&case.plan, operation.kind, Some(phase));
        waiting_for.clone_into(&mut operation.waiting_for);
        let mut tx = self.begin().await?;
        tx.update_operation(&operation, &self.lease).await?;
        self.shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Again)
    }

    /// Nothing of the operation is left: it has failed, and the job with it, unless its source still runs.
    async fn give_up(&self, case: &Case) -> Result<Next, StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut operation = case.operation.clone();
        let who = (&case.job.id, case.job.name.as_str());
        let mut tx = self.begin().await?;
        let attempts = tx.attempts(&operation.id).await?;
        let table: Vec<serde_json::Value> = attempts
            .iter()
            .map(|a| json!({ "attempt": a.attempt, "offer": a.offer, "result": a.result, "class": a.error.as_ref().map(|e| e.class) }))
            .collect();
        let reason = operation.reason.clone();
        let data = json!({ "operation": operation.id, "attempts": table });
        let (kind, next, text) = if operation.kind == OperationKind::Migrate {
            let lost = case.intents.iter().find(|i| {
                i.operation != operation.id && i.instance.is_some() && !i.state.is_closed() && observe::is_lost(i)
            });
            match lost {
                Some(lost) => (
                    EventKind::Migration,
                    JobState::Preempted,
                    format!("not moved: {reason}; and the source is lost ({})", lost.machine()),
                ),
                None if case.earlier().next().is_none() => {
                    (EventKind::Migration, JobState::Preempted, format!("not moved: {reason}; and the source is gone"))
                }
                None => (EventKind::Migration, JobState::Running, format!("not moved, runs on where it was: {reason}")),
            }
        } else {
            let tried = attempts.len();
            (EventKind::JobState, JobState::Failed, format!("not started after {tried} attempts: {reason}"))
        };
        if let Some(mut job) = tx.job(&case.job.id).await? {
            tx.move_job(&mut job, next, Some(text.clone()), now).await?;
        }
        // What it made and is gone was never what the job runs on: else its end would count as the job's, and the recovery
        // would end the source that runs.
        for intent in case.intents.iter().filter(|i| i.operation == operation.id && i.instance.is_some()) {
            if let Some(mut row) = tx.intent(&intent.token).await?.filter(|row| row.terminate_at.is_none()) {
                row.terminate_at = Some(now);
                row.terminate_by = Some(operation.id.clone());
                let state = row.state;
                tx.update_intent(&row, state).await?;
            }
        }
        self.end(&mut tx, &mut operation, OperationState::Failed, now).await?;
        tx.append_event(event(now, &operation.actor, kind, who, Some(&operation.plan), text, data)).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Next::Done)
    }

    /// Release these machines, one look and at most one call each; `None` once all are proved gone.
    async fn remove(&self, case: &Case, targets: &[&IntentRow]) -> Result<Option<Next>, StoreError> {
        let shared = &self.shared;
        let mut open = 0;
        let mut trouble = None;
        let mut disputed = false;
        for release in join_all(targets.iter().map(|intent| self.remove_one(case, intent))).await {
            match release? {
                Release::Closed => {}
                Release::Going => open += 1,
                Release::Refused(error) => {
                    open += 1;
                    trouble = Some(error);
                }
                Release::Disputed => {
                    open += 1;
                    disputed = true;
                }
            }
        }
        if open == 0 {
            if let Some(next) = (!targets.is_empty()).then_some(Next::Again) {
                // Read the ledger once more: what closes the operation is what it says, not what we remember.
                let mut tx = shared.ledger.read().await?;
                let rows = tx.intents_of(&case.job.id).await?;
                let closed = |t: &&IntentRow| rows.iter().any(|r| r.token == t.token && r.state.is_closed());
                if !targets.iter().all(closed) {
                    return Ok(Some(next));
                }
            }
            return Ok(None);
        }
        let what = match (&trouble, disputed) {
            (Some(error), _) => format!("{open} machines to be gone; the last answer: {error}"),
            (None, true) => format!("an operator: {open} machines have ids that carry another mark now"),
            (None, false) => format!("{open} machines to be gone"),
        };
        self.waits_for(case, &what).await?;
        if trouble.is_some() || disputed {
            self.note(case, &format!("still billing: {what}")).await?;
        }
        Ok(Some(Next::Wait(shared.real(shared.limits.poll_every))))
    }

    async fn remove_one(&self, case: &Case, intent: &IntentRow) -> Result<Release, StoreError> {
        match intent.state {
            IntentState::Intended => self.withdraw(case, intent).await,
            IntentState::Sent | IntentState::Unproven => self.remove_unknown(case, intent).await,
            IntentState::Accepted => self.remove_machine(case, intent).await,
            IntentState::Refused | IntentState::Absent | IntentState::Cancelled | IntentState::Gone => {
                Ok(Release::Closed)
            }
        }
    }

    /// It was never sent, and will not be.
    async fn withdraw(&self, case: &Case, intent: &IntentRow) -> Result<Release, StoreError> {
        let mut tx = self.begin().await?;
        let Some(mut row) = tx.intent(&intent.token).await? else { return Ok(Release::Closed) };
        if row.state != IntentState::Intended {
            return Ok(Release::Going);
        }
        row.state = IntentState::Cancelled;
        tx.update_intent(&row, IntentState::Intended).await?;
        self.shared.commit(tx, Some(&case.job.id)).await?;
        Ok(Release::Closed)
    }

    /// The durable intent to terminate.
    async fn intend(&self, case: &Case, intent: &IntentRow) -> Result<(), StoreError> {
        if intent.terminate_at.is_some() {
            return Ok(());
        }
        let shared = &self.shared;
        let now = shared.now();
        let mut tx = self.begin().await?;
        let Some(mut row) = tx.intent(&intent.token).await? else { return Ok(()) };
        if row.terminate_at.is_some() || row.state.is_closed() {
            return Ok(());
        }
        let was = row.state;
        row.terminate_at = Some(now);
        row.terminate_by = Some(case.operation.id.clone());
        // Reads from before do not prove what is true after.
        row.absent_since = None;
        tx.update_intent(&row, was).await?;
        let machine =
            row.instance.as_ref().map_or_else(|| format!("node {}", row.node), |id| inert(id.as_str()).into_owned());
        let text = format!("{machine} in {} is to be terminated", inert(&row.offer.location().to_string()));
        let data = json!({ "operation": case.operation.id, "instance": row.instance, "token": row.token });
        let who = (&case.job.id, case.job.name.as_str());
        let plan = Some(&case.operation.plan);
        tx.append_event(event(now, &case.operation.actor, EventKind::TerminateRequested, who, plan, text, data))
            .await?;
        shared.commit(tx, Some(&case.job.id)).await
    }

    /// Sent and never answered: look until it is found or proved not to be there.
    async fn remove_unknown(&self, case: &Case, intent: &IntentRow) -> Result<Release, StoreError> {
        let shared = &self.shared;
        self.intend(case, intent).await?;
        let recall = self.recall(&intent.token);
        let now = shared.now();
        if recall.not_before.is_some_and(|at| now < at) {
            return Ok(Release::Going);
        }
        let mut next = Recall { tries: 0, not_before: Some(now + world(shared.limits.look_every)) };
        let release = match self.look(case, intent).await? {
            Looked::Found => return Ok(Release::Going),
            Looked::NoAnswer(error) => {
                next.tries = recall.tries + 1;
                let wait = reaction::backoff(recall.tries, Some(&error), &shared.limits, shared.ids.fraction());
                next.not_before = Some(shared.now() + world(wait));
                self.press(case, intent, Some(&error)).await?;
                Release::Refused(error)
            }
            Looked::Nothing(row) if shared.proved_absent(&row, shared.now()) => {
                let now = shared.now();
                let mut tx = self.begin().await?;
                let Some(mut row) = tx.intent(&row.token).await? else { return Ok(Release::Closed) };
                let was = row.state;
                if !matches!(was, IntentState::Sent | IntentState::Unproven) {
                    return Ok(Release::Going);
                }
                row.state = IntentState::Absent;
                tx.update_intent(&row, was).await?;
                let text =
                    format!("proved: no machine was made in {} (node {})", inert(&row.offer.to_string()), row.node);
                let who = (&case.job.id, case.job.name.as_str());
                let plan = Some(&case.operation.plan);
                let data = json!({ "token": row.token });
                tx.append_event(event(now, &case.operation.actor, EventKind::Terminated, who, plan, text, data))
                    .await?;
                tx.clear_alert(&format!("unproven:{}", row.token), now).await?;
                shared.commit(tx, Some(&case.job.id)).await?;
                Release::Closed
            }
            Looked::Nothing(_) => Release::Going,
        };
        self.set_recall(&intent.token, next);
        Ok(release)
    }

    /// Read the target again; make sure that it is still ours; ask for its end; see that it came.
    async fn remove_machine(&self, case: &Case, intent: &IntentRow) -> Result<Release, StoreError> {
        let shared = &self.shared;
        match self.intend(case, intent).await {
            // The operation that an operator asked for is in the ledger: that is intent enough while nothing can be written.
            Err(error) if error.is_outage() && case.operation.kind == OperationKind::Terminate => {}
            done => done?,
        }
        let Some(target) = reference(intent) else { return Ok(Release::Going) };
        let provider = &intent.offer.provider;
        let standing = shared.standing(provider, intent.account.as_deref(), "terminate").await;
        if let Standing::Other(error) = standing {
            self.press(case, intent, Some(&error)).await?;
            return Ok(Release::Refused(error));
        }
        let mut going = false;
        let unseen = match shared.call_describe(provider, std::slice::from_ref(&target)).await {
            Ok(list) => {
                let seen = list.into_iter().find(|i| i.id == target.id);
                if seen.as_ref().is_some_and(|seen| observe::is_disputed(intent, &shared.owner, seen)) {
                    return self.dispute(case, intent).await;
                }
                going = seen.as_ref().is_some_and(|s| s.state == InstanceState::Terminating);
                match (seen, standing) {
                    (None, Standing::Unknown(error)) => Some(error),
                    (seen, _) => match self.take_in(case, &intent.token, seen).await {
                        Ok(true) => return Ok(Release::Closed),
                        Ok(false) => None,
                        // It cannot be written down now; it can be asked to go all the same.
                        Err(error) if error.is_outage() => None,
                        Err(error) => return Err(error),
                    },
                }
            }
            // It cannot be looked at. What was seen with its own mark before is asked to go all the same: a read that
            // fails must not keep a machine billing.
            Err(error) if observe::carried_its_mark(intent, &shared.owner) => Some(error),
            Err(error) => {
                self.press(case, intent, Some(&error)).await?;
                return Ok(Release::Refused(error));
            }
        };
        let recall = self.recall(&intent.token);
        let now = shared.now();
        if recall.not_before.is_some_and(|at| now < at) || (going && recall.tries > 0) {
            if let Some(error) = unseen {
                self.press(case, intent, Some(&error)).await?;
                return Ok(Release::Refused(error));
            }
            self.press(case, intent, None).await?;
            return Ok(match &intent.error {
                Some(error) if recall.tries > 1 => Release::Refused(error.clone()),
                _ => Release::Going,
            });
        }
        // A call that is already being obeyed is harmless; one that never came is not.
        match shared.call_terminate(provider, &target).await {
            Ok(Termination::Accepted(_)) => {
                let again = shared.now() + world(shared.limits.absent_apart);
                self.set_recall(&intent.token, Recall { tries: 1, not_before: Some(again) });
                self.set_error(case, intent, None).await?;
                Ok(Release::Going)
            }
            Ok(Termination::AlreadyGone) => {
                let again = shared.now() + world(shared.limits.absent_apart);
                self.set_recall(&intent.token, Recall { tries: 1, not_before: Some(again) });
                self.set_error(case, intent, None).await?;
                if let Some(error) = unseen {
                    self.press(case, intent, Some(&error)).await?;
                    return Ok(Release::Refused(error));
                }
                Ok(if self.take_in(case, &intent.token, None).await? { Release::Closed } else { Release::Going })
            }
            Err(error) => {
                let wait = reaction::backoff(recall.tries, Some(&error), &shared.limits, shared.ids.fraction());
                let not_before = Some(shared.now() + world(wait));
                self.set_recall(&intent.token, Recall { tries: recall.tries.max(1) + 1, not_before });
                if unseen.is_none() && reaction::on_terminate(error.class) == OnTerminate::Absent {
                    let closed = self.take_in(case, &intent.token, None).await?;
                    return Ok(if closed { Release::Closed } else { Release::Going });
                }
                self.set_error(case, intent, Some(error.clone())).await?;
                self.press(case, intent, Some(&error)).await?;
                Ok(Release::Refused(error))
            }
        }
    }

    /// Take in one read of a machine that is to go; gives whether it is proved gone.
    async fn take_in(
        &self,
        case: &Case,
        token: &str,
        seen: Option<crate::domain::Instance>,
    ) -> Result<bool, StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut tx = shared.begin().await?;
        let Some(mut row) = tx.intent(token).await? else { return Ok(true) };
        if row.state != IntentState::Accepted {
            return Ok(row.state.is_closed());
        }
        match seen {
            Some(seen) => observe::observe(&mut row, seen, now),
            None => {
                observe::absent(&mut row, now, &shared.limits);
            }
        }
        let gone = row.state == IntentState::Gone;
        if gone {
            let id = row.instance.as_ref().map_or_else(String::new, |id| inert(id.as_str()).into_owned());
            let cost = row.cost(now);
            let text = format!("{id} in {} is proved gone; it cost {cost}", inert(&row.offer.location().to_string()));
            let data = json!({ "operation": case.operation.id, "instance": row.instance, "usd": cost });
            let who = (&case.job.id, case.job.name.as_str());
            let plan = Some(&case.operation.plan);
            tx.append_event(event(now, &case.operation.actor, EventKind::Terminated, who, plan, text, data)).await?;
            tx.clear_alert(&alert_key(token), now).await?;
        }
        tx.update_intent(&row, IntentState::Accepted).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        Ok(gone)
    }

    async fn set_error(&self, case: &Case, intent: &IntentRow, error: Option<ProviderError>) -> Result<(), StoreError> {
        if intent.error == error {
            return Ok(());
        }
        let mut tx = self.shared.begin().await?;
        let Some(mut row) = tx.intent(&intent.token).await? else { return Ok(()) };
        let was = row.state;
        row.error = error;
        tx.update_intent(&row, was).await?;
        self.shared.commit(tx, Some(&case.job.id)).await
    }

    /// The id belongs to somebody else's machine by now: nothing is called, a person must look.
    async fn dispute(&self, case: &Case, intent: &IntentRow) -> Result<Release, StoreError> {
        let shared = &self.shared;
        let id = intent.instance.as_ref().map_or_else(String::new, |id| inert(id.as_str()).into_owned());
        let text =
            format!("{id} does not carry the mark it was launched with; it is not terminated. Look at the provider");
        let who = (&case.job.id, case.job.name.as_str());
        let alert = event(
            shared.now(),
            &case.operation.actor,
            EventKind::Alert,
            who,
            Some(&case.operation.plan),
            text,
            json!({}),
        );
        shared.alert(&format!("disputed:{}", intent.token), alert).await?;
        Ok(Release::Disputed)
    }

    /// Raise the alerts on a machine that does not go: at once where only a person can help, then as time passes, with
    /// the money it has cost since.
    async fn press(&self, case: &Case, intent: &IntentRow, error: Option<&ProviderError>) -> Result<(), StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let Some(since) = intent.terminate_at else { return Ok(()) };
        let late = shared.limits.terminate_alerts.iter().filter(|after| now - since >= world(**after)).count();
        let helpless = error.is_some_and(|e| reaction::on_terminate(e.class) == OnTerminate::Tell);
        let level = u32::try_from(late).unwrap_or(u32::MAX);
        if level <= intent.alerted && !(helpless && intent.alerted == 0) {
            return Ok(());
        }
        let mut tx = shared.begin().await?;
        let Some(mut row) = tx.intent(&intent.token).await? else { return Ok(()) };
        if row.state.is_closed() || row.alerted >= level.max(1) {
            return Ok(());
        }
        let was = row.state;
        row.alerted = level.max(1);
        tx.update_intent(&row, was).await?;
        // Between two tries the last refusal is still what it is about.
        let last = row.error.clone();
        let error = error.or(last.as_ref());
        let text = overdue(&row, since, now, error);
        let data = json!({
            "instance": row.instance, "class": error.map(|e| e.class), "code": error.map(|e| &e.code),
            "usd_since": row.cost(now) - row.cost(since), "seconds": (now - since).num_seconds(),
        });
        let key = alert_key(&row.token);
        // The next level is another alert: an acknowledged one must not hide that it goes on.
        tx.clear_alert(&key, now).await?;
        let who = (&case.job.id, case.job.name.as_str());
        let alert = event(now, &case.operation.actor, EventKind::Alert, who, Some(&case.operation.plan), text, data);
        tx.raise_alert(&key, alert).await?;
        shared.commit(tx, Some(&case.job.id)).await
    }
}

fn alert_key(token: &str) -> String {
    format!("terminate:{token}")
}

fn overdue(row: &IntentRow, since: DateTime<Utc>, now: DateTime<Utc>, error: Option<&ProviderError>) -> String {
    let id = row.instance.as_ref().map_or_else(|| format!("node {}", row.node), |id| inert(id.as_str()).into_owned());
    let minutes = (now - since).num_minutes();
    // What it cost up to the press is not what the delay costs.
    let burnt = row.cost(now) - row.cost(since);
    let why = match error {
        Some(error) if error.class == ErrorClass::Auth => format!("the provider refuses: {error}. {}", error.remedy()),
        Some(error) => format!("the last answer: {error}"),
        None => format!("last seen {}", row.machine()),
    };
    format!(
        "{id} in {} is still billing {minutes} min after its terminate ({burnt} since); {why}",
        inert(&row.offer.location().to_string())
    )
}
