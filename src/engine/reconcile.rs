//! Clouds and ledger compared: what jobs hold is looked at, what carries our mark and has no owner is told.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use serde_json::json;

use super::account::Standing;
use super::calls::Look;
use super::driver::event;
use super::observe;
use super::report::Reconciliation;
use super::shared::{Shared, world};
use crate::domain::text::inert;
use crate::domain::{EventKind, HourlyRate, Instance, InstanceState, JobId, JobState, ProviderId, Purchase};
use crate::placement::Cooling;
use crate::provider::InstanceRef;
use crate::store::{IntentRow, IntentState, StoreError};

impl Shared {
    /// List the clouds first, then read the ledger: a machine that was made meanwhile is in the ledger already, because
    /// its intent was written before its call. What is missing from a list is never concluded to be gone.
    pub(crate) async fn reconcile(&self) -> Result<Reconciliation, StoreError> {
        let asked = self
            .providers
            .iter()
            .map(|c| async move { (c.watch.id().clone(), self.call_instances(c.watch.id()).await) });
        let mut report = Reconciliation::default();
        let mut accounts: BTreeMap<ProviderId, String> = BTreeMap::new();
        let mut listed: Vec<(ProviderId, Instance)> = Vec::new();
        let mut answered: Vec<ProviderId> = Vec::new();
        for (provider, answer) in join_all(asked).await {
            match answer {
                Ok(instances) => {
                    // From memory, as a rule. Without it what is listed is known all the same.
                    if let Ok(account) = self.call_account(&provider).await {
                        accounts.insert(provider.clone(), account);
                    }
                    answered.push(provider.clone());
                    listed.extend(instances.into_iter().map(|i| (provider.clone(), i)));
                }
                Err(error) => report.failed.push(error),
            }
        }
        report.listed = listed.len();
        let now = self.now();
        let mut seen_orphans = Vec::new();
        for (provider, seen) in listed {
            let mut tx = self.begin().await?;
            let by_id = tx.intent_of_instance(provider.as_str(), seen.id.as_str()).await?;
            let by_mark = match &seen.mark {
                Some(mark) => tx.intent_of_mark(mark).await?,
                None => None,
            };
            let by_token = match &seen.token {
                Some(token) if by_mark.is_none() => tx.intent(token).await?,
                _ => None,
            };
            let account = accounts.get(&provider);
            // A mark or an id in another account is a copy, whatever it says.
            let same_account =
                |row: &IntentRow| account.is_none() || row.account.is_none() || row.account.as_ref() == account;
            match by_id.or(by_mark).or(by_token).filter(same_account) {
                Some(mut row)
                    if matches!(row.state, IntentState::Sent | IntentState::Unproven)
                        && seen.state != InstanceState::Gone =>
                {
                    let was = row.state;
                    let Some(job) = tx.job(&row.job).await? else { continue };
                    let text = format!(
                        "{} found by its mark in {}",
                        inert(seen.id.as_str()),
                        inert(&seen.location.to_string())
                    );
                    if row.account.is_none() {
                        row.account = account.cloned();
                    }
                    observe::accept(&mut row, seen, now, true);
                    tx.update_intent(&row, was).await?;
                    let data = json!({ "operation": row.operation, "attempt": row.attempt, "node": row.node, "instance": row.instance });
                    let who = (&job.id, job.name.as_str());
                    tx.append_event(event(now, &self.actor, EventKind::Launched, who, None, text, data)).await?;
                    tx.clear_alert(&format!("unproven:{}", row.token), now).await?;
                    self.commit(tx, Some(&job.id)).await?;
                    self.wake(&row.operation);
                    report.adopted += 1;
                }
                // A list may lag: a read by id decides on a machine that an intent holds.
                Some(row) if row.instance.as_ref() == Some(&seen.id) && row.state == IntentState::Accepted => {}
                Some(row) if row.instance.as_ref() == Some(&seen.id) && self.gone_lately(&row, now) => {}
                // Its driver is about to write it down.
                Some(row) if row.state == IntentState::Sent => {}
                _ if seen.state == InstanceState::Gone => {}
                _ => {
                    seen_orphans.push((provider, seen.id.clone()));
                    self.quarantine(&mut tx, seen, account.cloned(), &self.actor, now).await?;
                    self.commit(tx, None).await?;
                    report.orphans += 1;
                }
            }
        }
        self.settle_orphans(&answered, &seen_orphans).await?;
        self.watch().await?;
        Ok(report)
    }

    /// A list that still shows a machine that was proved gone a moment ago lags; later it contradicts the proof.
    fn gone_lately(&self, row: &IntentRow, now: DateTime<Utc>) -> bool {
        row.gone_at.is_some_and(|at| now - at < world(self.limits.look_for))
    }

    /// Orphans that no list shows any more are read by id until they are proved gone.
    async fn settle_orphans(
        &self,
        answered: &[ProviderId],
        seen: &[(ProviderId, crate::domain::InstanceId)],
    ) -> Result<(), StoreError> {
        let mut tx = self.ledger.read().await?;
        let orphans = tx.orphans().await?;
        drop(tx);
        for mut orphan in orphans {
            let listed = seen.iter().any(|(p, id)| p == &orphan.provider && id == &orphan.seen.id);
            if listed || !answered.contains(&orphan.provider) {
                continue;
            }
            let target = InstanceRef { id: orphan.seen.id.clone(), location: orphan.seen.location.clone() };
            let standing = self.standing(&orphan.provider, orphan.account.as_deref(), "describe").await;
            if self.read_only || !matches!(standing, Standing::Same) {
                continue;
            }
            let Ok(found) = self.call_describe(&orphan.provider, std::slice::from_ref(&target)).await else { continue };
            let now = self.now();
            if let Some(found) = found.into_iter().find(|i| i.id == target.id) {
                if found.state == InstanceState::Gone {
                    orphan.gone_at = Some(now);
                }
                orphan.absent_since = None;
                orphan.last_seen_at = now;
                orphan.seen = found;
            } else {
                let first = *orphan.absent_since.get_or_insert(now);
                if now - first >= world(self.limits.absent_apart) {
                    orphan.gone_at = Some(now);
                    orphan.seen.state = InstanceState::Gone;
                }
            }
            let mut tx = self.begin().await?;
            tx.put_orphan(&orphan).await?;
            if orphan.gone_at.is_some() {
                tx.clear_alert(&format!("orphan:{}:{}", orphan.provider, orphan.seen.id), now).await?;
            }
            self.commit(tx, None).await?;
        }
        Ok(())
    }

    /// Look at every machine that a job holds, by its id, and see what that means for the jobs that run.
    pub(crate) async fn watch(&self) -> Result<(), StoreError> {
        let mut tx = self.ledger.read().await?;
        let open = tx.open_intents().await?;
        drop(tx);
        if !open.iter().any(|i| i.state == IntentState::Accepted) {
            return self.judge_all(&open).await;
        }
        let looks = self.describe_all(open.iter()).await;
        let now = self.now();
        let mut jobs: Vec<JobId> = Vec::new();
        let mut tx = self.begin().await?;
        for intent in open.iter().filter(|i| i.state == IntentState::Accepted) {
            let Some(mut row) = tx.intent(&intent.token).await? else { continue };
            // What is to be terminated is its driver's to prove; a look must not take that proof from it half-way.
            if row.state != IntentState::Accepted || row.terminate_at.is_some() {
                continue;
            }
            let noticed = row.notice_at.is_some();
            match looks.of(intent) {
                Look::Seen(seen) if observe::is_disputed(&row, &self.owner, seen) => continue,
                Look::Seen(seen) => observe::observe(&mut row, seen.clone(), now),
                // A session that only watches may see less than one that acts: it concludes nothing from that.
                Look::Absent if !self.read_only => {
                    observe::absent(&mut row, now, &self.limits);
                }
                Look::Absent | Look::AbsentSomewhere | Look::NotAsked | Look::Failed(_) => continue,
            }
            if row.state == IntentState::Accepted
                && let Some(price) = self.market_price(&row)
            {
                observe::rebind(&mut row, price, now);
            }
            tx.update_intent(&row, IntentState::Accepted).await?;
            if let (Some(at), false) = (row.notice_at, noticed)
                && let Some(job) = tx.job(&row.job).await?
            {
                let id = row.instance.as_ref().map_or_else(String::new, |id| inert(id.as_str()).into_owned());
                let text = format!(
                    "{id} in {} will be taken away at {}",
                    inert(&row.offer.location().to_string()),
                    at.format("%H:%M:%SZ")
                );
                let data = json!({ "instance": row.instance, "at": at });
                let who = (&job.id, job.name.as_str());
                let notice = event(now, &self.actor, EventKind::PreemptionNotice, who, job.plan.as_ref(), text, data);
                tx.raise_alert(&format!("notice:{}", row.token), notice).await?;
            }
            if !jobs.contains(&row.job) {
                jobs.push(row.job.clone());
            }
        }
        self.commit(tx, None).await?;
        self.tell_accounts(&open).await?;
        {
            let mut touched = self.touched.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            touched.extend(jobs);
        }
        self.judge_all(&open).await
    }

    /// What a spot machine is billed by now, at providers that bill the market's price of each moment; `None` where what
    /// was bound stands, or no live price is at hand.
    fn market_price(&self, row: &IntentRow) -> Option<HourlyRate> {
        let follows = |c: &crate::provider::Connected| {
            c.watch.id() == &row.offer.provider && c.watch.capabilities().spot_follows_market
        };
        if row.offer.purchase != Purchase::Spot || !self.providers.iter().any(follows) {
            return None;
        }
        let state = self.state.borrow();
        let offer = state.market.get(&row.offer)?;
        offer.price.filter(|_| offer.price_is_live && !offer.stale)
    }

    /// A running job that has lost a machine is preempted, whole: its nodes are worth nothing one by one.
    async fn judge_all(&self, open: &[IntentRow]) -> Result<(), StoreError> {
        let mut jobs: BTreeSet<JobId> = open.iter().map(|i| i.job.clone()).collect();
        let mut tx = self.ledger.read().await?;
        for job in tx.jobs_in(JobState::Running).await? {
            jobs.insert(job.id);
        }
        drop(tx);
        for id in jobs {
            self.judge(&id).await?;
        }
        Ok(())
    }

    async fn judge(&self, id: &JobId) -> Result<(), StoreError> {
        if self.read_only {
            // The view shows what its machines show; the job's state is for a session that may act to change.
            return Ok(());
        }
        let mut tx = self.ledger.read().await?;
        let Some(job) = tx.job(id).await? else { return Ok(()) };
        if job.state != JobState::Running || tx.open_operation(id).await?.is_some() {
            return Ok(());
        }
        let Some((lost, _)) = lost_of(&tx.intents_of(id).await?) else { return Ok(()) };
        drop(tx);
        let now = self.now();
        let mut tx = self.begin().await?;
        let Some(mut job) = tx.job(id).await? else { return Ok(()) };
        if job.state != JobState::Running || tx.open_operation(id).await?.is_some() {
            return Ok(());
        }
        let stays = job.spec.schedule.recovery == crate::domain::job::Recovery::StayDown;
        let what = lost.iter().map(describe).collect::<Vec<_>>().join("; ");
        tx.move_job(&mut job, JobState::Preempted, Some(what.clone()), now).await?;
        for intent in &lost {
            let until = now + world(self.limits.cool_preempted);
            let reason = describe(intent);
            tx.cool(&Cooling {
                location: intent.offer.location(),
                purchase: Some(intent.offer.purchase),
                until,
                reason,
            })
            .await?;
        }
        let who = (&job.id, job.name.as_str());
        let data = json!({
            "lost": lost.iter().map(|i| json!({ "instance": i.instance, "node": i.node, "state": i.machine(),
                "reason": i.seen.as_ref().and_then(|s| s.reason.as_deref()) })).collect::<Vec<_>>(),
        });
        let plan = job.plan.clone();
        tx.append_event(event(now, &self.actor, EventKind::Preempted, who, plan.as_ref(), what.clone(), data)).await?;
        let (key, text) = if stays {
            (format!("down:{id}"), format!("stays down, as its recovery says: {what}"))
        } else {
            (format!("preempted:{id}"), format!("preempted: {what}"))
        };
        tx.raise_alert(&key, event(now, &self.actor, EventKind::Alert, who, plan.as_ref(), text, json!({}))).await?;
        self.commit(tx, Some(id)).await
    }
}

/// The machines that a running job has lost, and how many it holds: those of its newest operation that ran.
fn lost_of(intents: &[IntentRow]) -> Option<(Vec<IntentRow>, usize)> {
    let holding = intents.iter().rev().find(|i| i.instance.is_some() && i.terminate_at.is_none())?;
    let gang: Vec<&IntentRow> = intents
        .iter()
        .filter(|i| i.operation == holding.operation && i.attempt == holding.attempt && i.terminate_at.is_none())
        .collect();
    let lost: Vec<IntentRow> = gang.iter().filter(|i| observe::is_lost(i)).map(|i| (*i).clone()).collect();
    (!lost.is_empty()).then_some((lost, gang.len()))
}

fn describe(intent: &IntentRow) -> String {
    let id =
        intent.instance.as_ref().map_or_else(|| format!("node {}", intent.node), |id| inert(id.as_str()).into_owned());
    let place = intent.offer.location().to_string();
    let words =
        intent.seen.as_ref().and_then(|s| s.reason.as_deref()).map_or_else(String::new, |r| format!(" ({})", inert(r)));
    let how = match intent.machine() {
        InstanceState::Preempted => "was preempted".to_owned(),
        InstanceState::Gone => "is gone, and not by us".to_owned(),
        InstanceState::Terminating => "is being terminated, and not by us".to_owned(),
        other => format!("is {other}"),
    };
    format!("{id} in {} {how}{words}", inert(&place))
}
