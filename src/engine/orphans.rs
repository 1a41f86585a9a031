//! Machines under our mark that no job owns: found, told, and terminated only by an operator's word.

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::json;

use super::EngineError;
use super::account::Standing;
use super::reaction;
use super::shared::{Shared, world};
use super::timer;
use crate::domain::text::inert;
use crate::domain::{Actor, EventKind, Instance, InstanceId, InstanceState, ProviderId};
use crate::provider::{InstanceRef, Termination};
use crate::store::{IntentState, NewEvent, OrphanRow, StoreError};

impl Shared {
    /// Look at every cloud, then list what has no owner.
    pub(crate) async fn list_orphans(&self) -> Result<Vec<Instance>, EngineError> {
        self.reconcile().await.map_err(|e| self.ledger_error(e))?;
        let read = async { self.ledger.read().await?.orphans().await };
        let orphans = read.await.map_err(|e| self.ledger_error(e))?;
        Ok(orphans.into_iter().map(|o| o.seen).collect())
    }

    /// Terminate one orphan to proof.
    pub(crate) async fn end_orphan(
        &self,
        provider: &ProviderId,
        id: &InstanceId,
        actor: Actor,
    ) -> Result<(), EngineError> {
        if !self.acts(provider) {
            return Err(EngineError::Refused { reason: format!("this session may only watch {provider}") });
        }
        let fail = |e: StoreError| self.ledger_error(e);
        let Some(orphan) = self.claim(provider, id, &actor).await.map_err(fail)? else {
            return Err(EngineError::NotFound(format!(
                "{provider} {} is not a known orphan; `gpudeck orphans` lists them",
                inert(id.as_str())
            )));
        };
        let key = (provider.clone(), id.clone());
        self.ending().insert(key.clone());
        let ended = self.see_gone(orphan, &actor).await;
        self.ending().remove(&key);
        ended
    }

    /// Orphans whose end this process is seeing to.
    fn ending(&self) -> MutexGuard<'_, HashSet<(ProviderId, InstanceId)>> {
        self.orphans_ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Go on with an orphan that is to go, where nobody in this process does. Another one may: a terminate that is sent
    /// twice does no harm, one that is never sent does.
    pub(crate) fn resume_orphan(self: &Arc<Self>, orphan: OrphanRow) {
        let key = (orphan.provider.clone(), orphan.seen.id.clone());
        if !self.acts(&orphan.provider) || !self.ending().insert(key.clone()) {
            return;
        }
        let shared = self.clone();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                ended = shared.see_gone(orphan, &shared.actor) => {
                    if let Err(error) = ended {
                        tracing::warn!(%error, "an orphan's end is not proved yet; it is tried again");
                    }
                }
                () = stop.cancelled() => {}
            }
            shared.ending().remove(&key);
        });
    }

    /// Ask until it is proved gone.
    async fn see_gone(&self, mut orphan: OrphanRow, actor: &Actor) -> Result<(), EngineError> {
        let fail = |e: StoreError| self.ledger_error(e);
        let (provider, id) = (&orphan.provider.clone(), &orphan.seen.id.clone());
        let target = InstanceRef { id: id.clone(), location: orphan.seen.location.clone() };
        let (mut tries, mut call_at) = (0_u32, self.now());
        loop {
            let seen = match self.standing(provider, orphan.account.as_deref(), "terminate").await {
                Standing::Other(error) => return Err(EngineError::Provider(error)),
                // What is not seen then proves nothing.
                Standing::Unknown(error) => match self.call_describe(provider, std::slice::from_ref(&target)).await {
                    Ok(list) if list.iter().all(|i| &i.id != id) => Err(error),
                    answer => answer,
                },
                Standing::Same => self.call_describe(provider, std::slice::from_ref(&target)).await,
            };
            let now = self.now();
            match seen.map(|list| list.into_iter().find(|i| &i.id == id)) {
                Ok(Some(seen)) => {
                    if seen.mark != orphan.seen.mark {
                        return Err(EngineError::Conflict(format!(
                            "{} carries another mark than the orphan that was listed; nothing was done",
                            inert(id.as_str())
                        )));
                    }
                    orphan.absent_since = None;
                    orphan.last_seen_at = now;
                    orphan.seen = seen;
                }
                Ok(None) => {
                    orphan.absent_since.get_or_insert(now);
                }
                Err(error) => tracing::warn!(%error, "an orphan cannot be looked at; trying again"),
            }
            let absent = orphan.absent_since.is_some_and(|first| now - first >= world(self.limits.absent_apart));
            if orphan.seen.state == InstanceState::Gone || absent {
                return self.close_orphan(orphan, actor).await.map_err(fail);
            }
            if now >= call_at && !(orphan.seen.state == InstanceState::Terminating && tries > 0) {
                tries += 1;
                call_at = now + world(self.limits.absent_apart);
                match self.call_terminate(provider, &target).await {
                    Ok(Termination::Accepted(_)) => {}
                    Ok(Termination::AlreadyGone) => {
                        orphan.absent_since.get_or_insert(now);
                    }
                    // An operator waits for this one: a refusal is theirs to see, and the orphan stays listed.
                    Err(error) if reaction::on_terminate(error.class) == reaction::OnTerminate::Tell => {
                        return Err(EngineError::Provider(error));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "an orphan's terminate was not accepted; trying again");
                        call_at =
                            now + world(reaction::backoff(tries, Some(&error), &self.limits, self.ids.fraction()));
                    }
                }
            }
            timer::wait(self.real(self.limits.poll_every)).await;
        }
    }

    /// Write down that an operator wants it gone; `None` where it is no orphan.
    async fn claim(
        &self,
        provider: &ProviderId,
        id: &InstanceId,
        actor: &Actor,
    ) -> Result<Option<OrphanRow>, StoreError> {
        let now = self.now();
        let mut tx = self.begin().await?;
        let Some(mut orphan) = tx.orphan(provider, id).await? else { return Ok(None) };
        let owned = tx.intent_of_instance(provider.as_str(), id.as_str()).await?;
        if orphan.gone_at.is_some() || owned.is_some_and(|i| i.state == IntentState::Accepted) {
            return Ok(None);
        }
        orphan.terminate_at = Some(now);
        orphan.terminate_by = Some(actor.to_string());
        orphan.absent_since = None;
        tx.put_orphan(&orphan).await?;
        let text = format!(
            "the orphan {} in {} is to be terminated",
            inert(id.as_str()),
            inert(&orphan.seen.location.to_string())
        );
        let data = json!({ "provider": provider, "instance": id, "mark": orphan.seen.mark });
        tx.append_event(NewEvent {
            at: now,
            actor,
            kind: EventKind::TerminateRequested,
            job: None,
            plan: None,
            text,
            data,
        })
        .await?;
        self.commit(tx, None).await?;
        Ok(Some(orphan))
    }

    async fn close_orphan(&self, mut orphan: OrphanRow, actor: &Actor) -> Result<(), StoreError> {
        let now = self.now();
        orphan.gone_at = Some(now);
        orphan.seen.state = InstanceState::Gone;
        let mut tx = self.begin().await?;
        tx.put_orphan(&orphan).await?;
        let id = &orphan.seen.id;
        let text =
            format!("the orphan {} in {} is proved gone", inert(id.as_str()), inert(&orphan.seen.location.to_string()));
        let data = json!({ "provider": orphan.provider, "instance": id });
        tx.append_event(NewEvent { at: now, actor, kind: EventKind::Terminated, job: None, plan: None, text, data })
            .await?;
        tx.clear_alert(&format!("orphan:{}:{id}", orphan.provider), now).await?;
        self.commit(tx, None).await
    }
}
