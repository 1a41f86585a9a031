//! Asking for machines: each wish sent once under its token, an unanswered one looked for before anything else is done.

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use serde_json::json;

use super::account::Standing;
use super::driver::{Case, Driver, Next, Recall, event, steps};
use super::observe;
use super::reaction::{self, OnLaunch};
use super::shared::{Shared, world};
use super::start_script::start_script;
use crate::domain::text::inert;
use crate::domain::{ErrorClass, EventKind, Instance, InstanceState, JobState, OfferKey, OperationKind, ProviderError};
use crate::placement::Cooling;
use crate::provider::LaunchRequest;
use crate::store::{IntentRow, IntentState, OrphanRow, Phase, StoreError};

/// How a machine became known by the answer to its launch, in the event's words.
const ACCEPTED: &str = "accepted";
/// A launch that is refused by a full call budget so often is given up at this place.
const THROTTLED_MAX: u32 = 8;

/// What a look for an unanswered launch found.
pub(crate) enum Looked {
    /// It was found and is in the ledger now.
    Found,
    /// Not there; the intent with the absent read in it.
    Nothing(Box<IntentRow>),
    /// The provider did not say.
    NoAnswer(ProviderError),
}

/// Why an attempt failed, and what follows.
pub(crate) struct Failure {
    /// In a sentence.
    pub(crate) reason: String,
    /// The provider's error, where there was one.
    pub(crate) error: Option<ProviderError>,
    /// How long the place is left alone.
    pub(crate) cool: Option<std::time::Duration>,
    /// No other place would be any better.
    pub(crate) stop: bool,
    /// Which place it was; of a gang over several zones only that one is left alone.
    pub(crate) offer: OfferKey,
}

impl Driver {
    /// Send what was not sent, look for what was not answered, and go on when every node has its machine.
    pub(crate) async fn launch(&self, case: &Case) -> Result<Next, StoreError> {
        if let Some(failure) = self.failure(case) {
            return self.fail_attempt(case, failure).await;
        }
        let now = self.shared.now();
        let due = |i: &&IntentRow| self.recall(&i.token).not_before.is_none_or(|at| at <= now);
        let open: Vec<&IntentRow> = case.attempt().filter(|i| i.state != IntentState::Accepted).collect();
        if open.is_empty() {
            let mut operation = case.operation.clone();
            operation.phase = Phase::Booting;
            operation.steps = steps(&case.plan, operation.kind, Some(operation.phase));
            "the machines to come up".clone_into(&mut operation.waiting_for);
            let mut tx = self.begin().await?;
            tx.update_operation(&operation, &self.lease).await?;
            self.shared.commit(tx, Some(&case.job.id)).await?;
            return Ok(Next::Again);
        }
        if open.iter().any(|i| i.state == IntentState::Unproven) {
            self.waits_for(case, "an operator: whether a machine was made could not be proved; look at the provider, then terminate the job").await?;
            return Ok(Next::Wait(self.shared.real(self.shared.limits.backoff_max)));
        }
        let work: Vec<&IntentRow> = open.iter().copied().filter(due).collect();
        if work.is_empty() {
            let wait = open
                .iter()
                .filter_map(|i| self.recall(&i.token).not_before)
                .min()
                .map_or(chrono::Duration::zero(), |at| at - now);
            let what = if open.iter().any(|i| i.state == IntentState::Sent) {
                "word of a launch that was not answered"
            } else {
                "the provider to take calls again"
            };
            self.waits_for(case, what).await?;
            let wait = wait.to_std().unwrap_or_default().max(std::time::Duration::from_millis(100));
            return Ok(Next::Wait(self.shared.real(wait)));
        }
        for done in join_all(work.iter().map(|intent| async move {
            match intent.state {
                IntentState::Intended => self.send(case, intent).await,
                _ => self.resolve(case, intent).await,
            }
        }))
        .await
        {
            done?;
        }
        Ok(Next::Again)
    }

    /// What makes the attempt fail, if anything does.
    fn failure(&self, case: &Case) -> Option<Failure> {
        let limits = &self.shared.limits;
        for intent in case.attempt() {
            let place = inert(&intent.offer.to_string()).into_owned();
            match intent.state {
                IntentState::Refused => {
                    let error = intent.error.clone();
                    let class = error.as_ref().map_or(ErrorClass::Unknown, |e| e.class);
                    let (cool, stop) = match reaction::on_launch(class, limits) {
                        OnLaunch::Elsewhere(cool) => (Some(cool), false),
                        OnLaunch::Stop => (None, true),
                        OnLaunch::Wait | OnLaunch::Look => (Some(limits.cool_fault), false),
                    };
                    let reason = error.as_ref().map_or_else(|| format!("{place}: refused"), ToString::to_string);
                    return Some(Failure { reason, error, cool, stop, offer: intent.offer.clone() });
                }
                IntentState::Absent => {
                    let why = intent.error.as_ref().map_or_else(String::new, |e| format!(" ({e})"));
                    let reason = format!("{place}: the launch was not answered, and no machine was made of it{why}");
                    return Some(Failure {
                        reason,
                        error: intent.error.clone(),
                        cool: Some(limits.cool_fault),
                        stop: false,
                        offer: intent.offer.clone(),
                    });
                }
                IntentState::Gone | IntentState::Cancelled => return Some(self.ended_early(intent)),
                IntentState::Accepted => {
                    if let (Some(bound), Some(limit)) = (intent.bound_price, intent.max_price)
                        && bound > limit
                    {
                        let reason =
                            format!("{place}: bound at {bound:.4}, above the limit of {limit:.4}; it is given back");
                        let provider = &intent.offer.provider;
                        let error = ProviderError::new(ErrorClass::NoCapacity, provider, "launch", &reason)
                            .code("PriceAboveLimit");
                        return Some(Failure {
                            reason,
                            error: Some(error),
                            cool: Some(limits.cool_fault),
                            stop: false,
                            offer: intent.offer.clone(),
                        });
                    }
                    if observe::is_lost(intent) {
                        return Some(self.ended_early(intent));
                    }
                }
                IntentState::Intended | IntentState::Sent | IntentState::Unproven => {}
            }
        }
        None
    }

    /// A machine that was accepted and then did not come up.
    pub(crate) fn ended_early(&self, intent: &IntentRow) -> Failure {
        let limits = &self.shared.limits;
        let machine = intent.seen.as_ref();
        let state = machine.map_or("gone".into(), |m| m.state.label().into_owned());
        let words = machine.and_then(|m| m.reason.as_deref()).map_or_else(String::new, |r| format!(": {}", inert(r)));
        let reason = format!("{}: accepted, then {state}{words}", inert(&intent.offer.to_string()));
        let preempted = machine.is_some_and(|m| m.state == InstanceState::Preempted);
        let cool = if preempted { limits.cool_preempted } else { limits.cool_capacity };
        Failure { reason, error: intent.error.clone(), cool: Some(cool), stop: false, offer: intent.offer.clone() }
    }

    /// The attempt has failed: write why, leave the place alone, release what was made.
    pub(crate) async fn fail_attempt(&self, case: &Case, failure: Failure) -> Result<Next, StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut operation = case.operation.clone();
        let recover = operation.kind == OperationKind::Recover;
        let mut tx = self.begin().await?;
        tx.end_attempt(&operation.id, operation.attempt, &failure.reason, failure.error.as_ref(), now).await?;
        // A place that was merely sold out has cost nothing, and the next may have some.
        let attempts = tx.attempts(&operation.id).await?;
        let faults = attempts.iter().filter(|a| !case.was_sold_out(a)).count();
        let spent = faults >= shared.limits.attempts_max as usize;
        operation.phase = if !recover && (failure.stop || spent) { Phase::Quitting } else { Phase::Cleaning };
        operation.reason.clone_from(&failure.reason);
        operation.error.clone_from(&failure.error);
        operation.steps = steps(&case.plan, operation.kind, Some(operation.phase));
        "what the attempt made to be gone".clone_into(&mut operation.waiting_for);
        let who = (&case.job.id, case.job.name.as_str());
        tx.update_operation(&operation, &self.lease).await?;
        let offer = failure.offer.clone();
        if let Some(cool) = failure.cool {
            let mut location = offer.location();
            if failure.error.as_ref().is_some_and(|e| e.class == ErrorClass::Quota) {
                // A quota is a region's.
                location.zone = None;
            }
            let (until, reason) = (now + world(cool), failure.reason.clone());
            tx.cool(&Cooling { location, purchase: Some(offer.purchase), until, reason }).await?;
        }
        if operation.kind != OperationKind::Migrate
            && let Some(mut job) = tx.job(&case.job.id).await?
        {
            tx.move_job(&mut job, JobState::Placing, Some(failure.reason.clone()), now).await?;
        }
        let data = json!({
            "operation": operation.id, "attempt": operation.attempt, "offer": offer,
            "class": failure.error.as_ref().map(|e| e.class), "code": failure.error.as_ref().map(|e| &e.code),
        });
        let text = format!("attempt {} failed: {}", operation.attempt, failure.reason);
        tx.append_event(event(now, &operation.actor, EventKind::AttemptFailed, who, Some(&operation.plan), text, data))
            .await?;
        if failure.stop && recover {
            let text = format!("recovery is refused: {}", failure.reason);
            let alert = event(now, &operation.actor, EventKind::Alert, who, Some(&operation.plan), text, json!({}));
            tx.raise_alert(&format!("recover:{}", case.job.id), alert).await?;
        }
        shared.commit(tx, Some(&case.job.id)).await?;
        shared.tell(super::publish::Told::Attempt(offer, false)).await;
        Ok(Next::Again)
    }

    /// Send a wish; durable before the call, and its answer right after.
    async fn send(&self, case: &Case, intent: &IntentRow) -> Result<(), StoreError> {
        let shared = &self.shared;
        // Whose account it goes to is durable before it goes: only there can it be looked for.
        let account = match shared.call_account(&intent.offer.provider).await {
            Ok(account) => account,
            Err(error) => return self.not_sent(case, intent, error).await,
        };
        let now = shared.now();
        let mut tx = self.begin().await?;
        let Some(mut row) = tx.intent(&intent.token).await? else { return Ok(()) };
        let was = row.state;
        if !matches!(was, IntentState::Intended | IntentState::Sent) {
            return Ok(());
        }
        if row.account.as_ref().is_some_and(|first| *first != account) {
            // Logged in elsewhere since the first sending. The next look says so.
            self.set_recall(&row.token, Recall { tries: 0, not_before: Some(now + world(shared.limits.look_every)) });
            return Ok(());
        }
        row.account = Some(account);
        row.state = IntentState::Sent;
        row.sent_at.get_or_insert(now);
        // What was not there before this sending proves nothing of it.
        row.absent_since = None;
        row.tries += 1;
        tx.update_intent(&row, was).await?;
        if row.tries == 1 {
            let text = format!("asks for {} (node {})", inert(&row.offer.to_string()), row.node);
            let data = json!({
                "operation": row.operation, "attempt": row.attempt, "node": row.node, "offer": row.offer, "token": row.token,
                "max_usd_per_hour": row.max_price,
            });
            let who = (&case.job.id, case.job.name.as_str());
            let plan = Some(&case.operation.plan);
            tx.append_event(event(now, &case.operation.actor, EventKind::LaunchRequested, who, plan, text, data))
                .await?;
        }
        shared.commit(tx, Some(&case.job.id)).await?;
        let request = LaunchRequest {
            offer: row.offer.clone(),
            shape: row.shape.clone(),
            max_price: row.max_price,
            token: row.token.clone(),
            name: row.name.clone(),
            mark: row.mark(&shared.owner),
            intended_at: row.intended_at,
            user_data: start_script(&case.job.spec, row.node),
        };
        match shared.call_launch(&request).await {
            Ok(seen) => {
                let id = seen.id.clone();
                let written = self.granted(case, &row.token, seen, ACCEPTED).await;
                if let Err(error) = &written {
                    // The next look finds it by its token; until then this line is all there is.
                    let id = inert(id.as_str());
                    tracing::error!(instance = %id, token = row.token, %error, "a machine was made and could not be written down yet");
                }
                written
            }
            Err(error) => self.refused(case, &row.token, error).await,
        }
    }

    /// Whose account it would go to cannot be had: it is not sent, tried again while that may pass, refused otherwise.
    async fn not_sent(&self, case: &Case, intent: &IntentRow, error: ProviderError) -> Result<(), StoreError> {
        let shared = &self.shared;
        let tries = self.recall(&intent.token).tries + 1;
        let passes = matches!(error.class, ErrorClass::Transient | ErrorClass::Throttled) && tries < THROTTLED_MAX;
        if passes || intent.state != IntentState::Intended {
            let wait = reaction::backoff(tries - 1, Some(&error), &shared.limits, shared.ids.fraction());
            self.set_recall(&intent.token, Recall { tries, not_before: Some(shared.now() + world(wait)) });
            return Ok(());
        }
        let mut tx = self.begin().await?;
        let Some(mut row) = tx.intent(&intent.token).await? else { return Ok(()) };
        if row.state == IntentState::Intended {
            row.state = IntentState::Refused;
            row.error = Some(error);
            tx.update_intent(&row, IntentState::Intended).await?;
            shared.commit(tx, Some(&case.job.id)).await?;
        }
        Ok(())
    }

    /// A machine was given. Written whoever drives the operation by now: the id must never be lost.
    pub(crate) async fn granted(&self, case: &Case, token: &str, seen: Instance, how: &str) -> Result<(), StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut tx = shared.begin().await?;
        let Some(mut row) = tx.intent(token).await? else { return Ok(()) };
        let was = row.state;
        let who = (&case.job.id, case.job.name.as_str());
        let actor = &case.operation.actor;
        match was {
            IntentState::Sent | IntentState::Unproven | IntentState::Intended => {
                let text = format!(
                    "{} {how} in {}{}",
                    inert(seen.id.as_str()),
                    inert(&seen.location.to_string()),
                    seen.price.map_or_else(String::new, |p| format!(" at {p:.4}"))
                );
                let data = json!({
                    "operation": row.operation, "attempt": row.attempt, "node": row.node, "instance": seen.id,
                    "usd_per_hour": seen.price.or(row.bound_price),
                });
                observe::accept(&mut row, seen, now, how != ACCEPTED);
                tx.update_intent(&row, was).await?;
                let plan = Some(&case.operation.plan);
                tx.append_event(event(now, actor, EventKind::Launched, who, plan, text, data)).await?;
                tx.clear_alert(&format!("unproven:{token}"), now).await?;
                shared.commit(tx, Some(&case.job.id)).await?;
                shared.tell(super::publish::Told::Attempt(row.offer.clone(), true)).await;
            }
            _ if row.instance.as_ref() == Some(&seen.id) => {
                if was == IntentState::Accepted {
                    observe::observe(&mut row, seen, now);
                    tx.update_intent(&row, was).await?;
                    shared.commit(tx, Some(&case.job.id)).await?;
                }
            }
            _ => {
                shared.quarantine(&mut tx, seen, row.account.clone(), actor, now).await?;
                shared.commit(tx, Some(&case.job.id)).await?;
            }
        }
        Ok(())
    }

    /// A launch was not granted. Written whoever drives the operation by now.
    async fn refused(&self, case: &Case, token: &str, error: ProviderError) -> Result<(), StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut tx = shared.begin().await?;
        let Some(mut row) = tx.intent(token).await? else { return Ok(()) };
        if row.state != IntentState::Sent {
            return Ok(());
        }
        let reaction = reaction::on_launch(error.class, &shared.limits);
        // Of an earlier send the outcome may still be open. A token is looked up before stock and quota are, so these
        // two say that nothing was made then either; a refusal at the door says nothing on it.
        let open = row.unknown_since.is_some();
        let tries = row.tries;
        let wait = reaction::backoff(tries.saturating_sub(1), Some(&error), &shared.limits, shared.ids.fraction());
        match reaction {
            OnLaunch::Elsewhere(_) => row.state = IntentState::Refused,
            OnLaunch::Stop if !open => row.state = IntentState::Refused,
            OnLaunch::Wait if !open && tries >= THROTTLED_MAX => row.state = IntentState::Refused,
            OnLaunch::Wait if !open => row.state = IntentState::Intended,
            OnLaunch::Stop | OnLaunch::Wait | OnLaunch::Look => {}
        }
        if row.state == IntentState::Sent && row.unknown_since.is_none() {
            row.unknown_since = Some(now);
            let text = format!("whether a machine was made is not known: {error}");
            let data = json!({ "operation": row.operation, "attempt": row.attempt, "node": row.node, "class": error.class, "code": error.code });
            let who = (&case.job.id, case.job.name.as_str());
            let plan = Some(&case.operation.plan);
            tx.append_event(event(now, &case.operation.actor, EventKind::OutcomeUnknown, who, plan, text, data))
                .await?;
        }
        row.error = Some(error);
        tx.update_intent(&row, IntentState::Sent).await?;
        shared.commit(tx, Some(&case.job.id)).await?;
        if matches!(row.state, IntentState::Intended | IntentState::Sent) {
            let not_before = if row.state == IntentState::Sent && reaction == OnLaunch::Look {
                now + world(shared.limits.poll_every)
            } else {
                now + world(wait)
            };
            self.set_recall(token, Recall { tries, not_before: Some(not_before) });
        }
        Ok(())
    }

    /// A wish was sent and not answered, or we stopped before the answer: look first, then send the same again where the
    /// cloud knows our token, until it is found or proved not to be there.
    async fn resolve(&self, case: &Case, intent: &IntentRow) -> Result<(), StoreError> {
        let shared = &self.shared;
        let row = match self.look(case, intent).await? {
            Looked::Found => return Ok(()),
            Looked::NoAnswer(error) => {
                let wait = reaction::backoff(
                    self.recall(&intent.token).tries,
                    Some(&error),
                    &shared.limits,
                    shared.ids.fraction(),
                );
                let tries = self.recall(&intent.token).tries + 1;
                self.set_recall(&intent.token, Recall { tries, not_before: Some(shared.now() + world(wait)) });
                return self.suspect(case, intent, &error).await;
            }
            Looked::Nothing(row) => row,
        };
        let now = shared.now();
        let next = Recall { tries: 0, not_before: Some(now + world(shared.limits.look_every)) };
        let knows_tokens =
            shared.connected(&row.offer.provider, "launch").is_ok_and(|c| c.watch.capabilities().launch_token.is_yes());
        let fresh = row.sent_at.is_none_or(|sent| now - sent < world(shared.limits.resend_within));
        if knows_tokens
            && fresh
            && row.tries <= shared.limits.resend_max
            && reaction::may_resend(row.error.as_ref().map(|e| e.class))
        {
            self.set_recall(&row.token, next);
            return self.send(case, &row).await;
        }
        if !shared.proved_absent(&row, now) {
            self.set_recall(&row.token, next);
            return Ok(());
        }
        let mut tx = self.begin().await?;
        let Some(mut row) = tx.intent(&row.token).await? else { return Ok(()) };
        if row.state != IntentState::Sent {
            return Ok(());
        }
        let who = (&case.job.id, case.job.name.as_str());
        let actor = &case.operation.actor;
        let plan = Some(&case.operation.plan);
        let place = inert(&row.offer.to_string()).into_owned();
        if knows_tokens {
            row.state = IntentState::Absent;
            let text = format!("proved: no machine was made in {place} (node {})", row.node);
            tx.append_event(event(now, actor, EventKind::Note, who, plan, text, json!({ "token": row.token }))).await?;
        } else {
            row.state = IntentState::Unproven;
            let text = format!(
                "a launch in {place} was not answered, and no machine with its mark was found; it counts as billed until \
                 an operator terminates the job"
            );
            let key = format!("unproven:{}", row.token);
            tx.raise_alert(&key, event(now, actor, EventKind::Alert, who, plan, text, json!({ "token": row.token })))
                .await?;
        }
        tx.update_intent(&row, IntentState::Sent).await?;
        shared.commit(tx, Some(&case.job.id)).await
    }

    /// The provider does not even say what there is: a machine may be billed unseen, and that is said.
    async fn suspect(&self, case: &Case, intent: &IntentRow, error: &ProviderError) -> Result<(), StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        self.note(case, &format!("a machine may have been made and cannot be seen: {error}")).await?;
        if intent.unknown_since.is_some_and(|since| now - since >= world(shared.limits.look_for)) {
            let who = (&case.job.id, case.job.name.as_str());
            let text = format!("a machine may be billed unseen in {}: {error}", inert(&intent.offer.to_string()));
            let alert =
                event(now, &case.operation.actor, EventKind::Alert, who, Some(&case.operation.plan), text, json!({}));
            shared.alert(&format!("unproven:{}", intent.token), alert).await?;
        }
        Ok(())
    }

    /// Look for the machine of a wish whose outcome is not known.
    pub(crate) async fn look(&self, case: &Case, intent: &IntentRow) -> Result<Looked, StoreError> {
        let shared = &self.shared;
        if intent.unknown_since.is_none() {
            self.open_question(case, &intent.token).await?;
        }
        let standing = shared.standing(&intent.offer.provider, intent.account.as_deref(), "find_by_token").await;
        if let Standing::Other(error) = standing {
            return Ok(Looked::NoAnswer(error));
        }
        let mark = intent.mark(&shared.owner);
        let found = shared.call_find(&intent.offer.provider, &intent.offer.region, &intent.token, &mark).await;
        let mut found = match found {
            Ok(found) => found,
            Err(error) => return Ok(Looked::NoAnswer(error)),
        };
        found.retain(|seen| observe::is_of(intent, &shared.owner, seen));
        // The oldest that lives; one that has ended already counts only where none lives.
        found.sort_by_key(|i| {
            (i.state == InstanceState::Gone, i.launched_at.unwrap_or(DateTime::<Utc>::MAX_UTC), i.id.clone())
        });
        let mut found = found.into_iter();
        if let Some(first) = found.next() {
            self.granted(case, &intent.token, first, "found by its mark").await?;
            for other in found.filter(|i| i.state != InstanceState::Gone) {
                let mut tx = shared.begin().await?;
                let account = intent.account.clone();
                shared.quarantine(&mut tx, other, account, &case.operation.actor, shared.now()).await?;
                shared.commit(tx, Some(&case.job.id)).await?;
            }
            return Ok(Looked::Found);
        }
        if let Standing::Unknown(error) = standing {
            return Ok(Looked::NoAnswer(error));
        }
        let now = shared.now();
        let mut tx = shared.begin().await?;
        let Some(mut row) = tx.intent(&intent.token).await? else {
            return Err(StoreError::Corrupt { detail: format!("the intent {} is missing", intent.token) });
        };
        let was = row.state;
        if !matches!(was, IntentState::Sent | IntentState::Unproven) {
            return Ok(Looked::Found);
        }
        if row.absent_since.is_none() {
            row.absent_since = Some(now);
            tx.update_intent(&row, was).await?;
            shared.commit(tx, None).await?;
        }
        Ok(Looked::Nothing(Box::new(row)))
    }

    /// We stopped between sending and the answer: from now on it is looked for.
    async fn open_question(&self, case: &Case, token: &str) -> Result<(), StoreError> {
        let shared = &self.shared;
        let now = shared.now();
        let mut tx = shared.begin().await?;
        let Some(mut row) = tx.intent(token).await? else { return Ok(()) };
        let was = row.state;
        if !matches!(was, IntentState::Sent | IntentState::Unproven) || row.unknown_since.is_some() {
            return Ok(());
        }
        row.unknown_since = Some(now);
        tx.update_intent(&row, was).await?;
        let text = format!("node {} was asked for, and the answer was not written down; it is looked for", row.node);
        let who = (&case.job.id, case.job.name.as_str());
        let data = json!({ "operation": row.operation, "attempt": row.attempt, "node": row.node });
        let plan = Some(&case.operation.plan);
        tx.append_event(event(now, &case.operation.actor, EventKind::OutcomeUnknown, who, plan, text, data)).await?;
        shared.commit(tx, Some(&case.job.id)).await
    }
}

impl Shared {
    /// Whether the looks so far prove that a launch made nothing: long enough, and the first of the absent reads far
    /// enough from this one.
    pub(crate) fn proved_absent(&self, row: &IntentRow, now: DateTime<Utc>) -> bool {
        row.unknown_since.is_some_and(|since| now - since >= world(self.limits.look_for))
            && row.absent_since.is_some_and(|since| now - since >= world(self.limits.absent_apart))
    }

    /// A machine under our mark that no intent holds: written down and told, never touched without an operator's word.
    pub(crate) async fn quarantine(
        &self,
        tx: &mut crate::store::Tx,
        seen: Instance,
        account: Option<String>,
        actor: &crate::domain::Actor,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let provider = seen.location.provider.clone();
        let known = tx.orphan(&provider, &seen.id).await?;
        let first_seen_at = known.as_ref().map_or(now, |o| o.first_seen_at);
        let orphan = OrphanRow {
            provider: provider.clone(),
            account: account.or_else(|| known.as_ref().and_then(|o| o.account.clone())),
            seen,
            first_seen_at,
            last_seen_at: now,
            absent_since: None,
            terminate_at: known.as_ref().and_then(|o| o.terminate_at),
            terminate_by: known.and_then(|o| o.terminate_by),
            gone_at: None,
        };
        tx.put_orphan(&orphan).await?;
        let seen = &orphan.seen;
        let text = format!(
            "{} {} in {} carries our mark, and no job owns it{}; `gpudeck orphans` lists it",
            inert(seen.id.as_str()),
            inert(seen.instance_type.as_str()),
            inert(&seen.location.to_string()),
            seen.price.map_or_else(String::new, |p| format!(" ({p})")),
        );
        let data = json!({ "provider": provider, "instance": seen.id, "mark": seen.mark, "usd_per_hour": seen.price });
        let event =
            crate::store::NewEvent { at: now, actor, kind: EventKind::Orphan, job: None, plan: None, text, data };
        tx.raise_alert(&format!("orphan:{provider}:{}", seen.id), event).await
    }
}
