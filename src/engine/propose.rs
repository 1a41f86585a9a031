//! From a wish to a plan that can be confirmed. Acts on nothing.

use std::sync::Arc;

use super::choose::{holdings, node_limit, with_headroom};
use super::jobview::JobRecord;
use super::shared::{Shared, words};
use super::{EngineError, Proposal, Wish};
use crate::domain::text::inert;
use crate::domain::{
    FeedHealth, HourlyRate, InstanceState, JobId, JobSpec, JobState, Location, PlanId, ProviderError, ProviderId,
};
use crate::placement::plans::{self, Progress};
use crate::placement::{Candidate, Ranking, Reason};

/// Candidates that a proposal carries.
const SHOWN: usize = 50;

impl Shared {
    pub(crate) async fn propose(&self, wish: Wish) -> Result<Proposal, EngineError> {
        match &wish {
            Wish::Launch { spec, candidate } => {
                let (spec, candidate) = (spec.clone(), *candidate);
                self.propose_launch(wish, &spec, candidate).await
            }
            Wish::Migrate { job, to } => {
                let (job, to) = (job.clone(), to.clone());
                self.propose_migrate(wish, &job, to.as_ref()).await
            }
            Wish::Terminate { job } => {
                let job = job.clone();
                self.propose_terminate(wish, &job).await
            }
        }
    }

    async fn propose_launch(&self, wish: Wish, spec: &JobSpec, index: usize) -> Result<Proposal, EngineError> {
        let ranking = self.fresh_ranking(spec, None, index, |_| true).await?;
        let Some(candidate) = ranking.candidates.get(index) else {
            return Err(EngineError::NoPlace { name: inert(&spec.name).into_owned(), ranking: Box::new(ranking) });
        };
        let now = self.now();
        let mut plan = plans::launch(spec, candidate, PlanId::from(self.ids.next(now)), now);
        plan.warnings.push(self.ceiling_warning(spec, candidate));
        Ok(Proposal { wish, plan, ranking, job_version: None })
    }

    async fn propose_migrate(&self, wish: Wish, id: &JobId, to: Option<&Location>) -> Result<Proposal, EngineError> {
        let record = self.record(id).await?;
        let job = &record.job;
        if job.state != JobState::Running {
            return Err(EngineError::Failed(format!(
                "'{}' is {}; only a running job can be moved",
                inert(&job.name),
                job.state
            )));
        }
        let held = holdings(record.billing());
        let from = held.first().map(|h| h.location.clone());
        let spec = Self::aimed(&job.spec, to);
        // Where it is already is no move.
        let elsewhere = |c: &Candidate| c.nodes.iter().any(|g| record.billing().all(|i| i.offer != g.offer.key));
        let mut ranking = self.fresh_ranking(&spec, from.as_ref(), 0, elsewhere).await?;
        ranking.candidates.retain(elsewhere);
        let Some(candidate) = ranking.candidates.first() else {
            return Err(EngineError::NoPlace { name: inert(&job.name).into_owned(), ranking: Box::new(ranking) });
        };
        let now = self.now();
        let plan_id = PlanId::from(self.ids.next(now));
        let progress = Progress { running_since: job.running_since, last_checkpoint: None };
        let network = Arc::as_ref(&self.network);
        let mut plan = plans::migrate(&job.spec, id, (&held, progress), candidate, network, plan_id, now);
        plan.warnings.push(self.ceiling_warning(&job.spec, candidate));
        let version = job.version;
        Ok(Proposal { wish, plan, ranking, job_version: Some(version) })
    }

    async fn propose_terminate(&self, wish: Wish, id: &JobId) -> Result<Proposal, EngineError> {
        let record = self.record(id).await?;
        let job = &record.job;
        if job.state.is_final() {
            return Err(EngineError::Failed(format!(
                "'{}' is {} already; it holds nothing",
                inert(&job.name),
                job.state
            )));
        }
        let now = self.now();
        let progress = Progress { running_since: job.running_since, last_checkpoint: None };
        let held = holdings(record.billing());
        let mut plan = plans::terminate(&job.spec, id, &held, progress, PlanId::from(self.ids.next(now)), now);
        if let Some((operation, _)) = &record.operation {
            plan.warnings.push(format!("sets the {} aside that is under way", operation.kind.as_str()));
        }
        let unseen = record.billing().filter(|i| i.machine() == InstanceState::Requested).count();
        if unseen > 0 {
            plan.warnings.push(format!("{unseen} machines were asked for and never seen; they are looked for"));
        }
        let version = job.version;
        Ok(Proposal { wish, plan, ranking: Ranking::default(), job_version: Some(version) })
    }

    /// Rank, and where the place that would be taken rests on old facts, read its provider again first. What stays old
    /// is refused: nothing is started on a figure that nobody vouches for.
    async fn fresh_ranking(
        &self,
        spec: &JobSpec,
        current: Option<&Location>,
        index: usize,
        wanted: impl Fn(&Candidate) -> bool,
    ) -> Result<Ranking, EngineError> {
        let top = SHOWN.max(index + 1);
        let rank = async || {
            let now = self.now();
            let mut tx = self.ledger.read().await.map_err(|e| self.ledger_error(e))?;
            let cooling = tx.cooling(now).await.map_err(|e| self.ledger_error(e))?;
            Ok::<_, EngineError>(self.rank_with(spec, &cooling, current, now, top))
        };
        let chosen = |ranking: &Ranking| {
            let found = if current.is_some() {
                ranking.candidates.iter().find(|c| wanted(c))
            } else {
                ranking.candidates.get(index)
            };
            found.cloned()
        };
        let ranking = rank().await?;
        match chosen(&ranking) {
            Some(candidate) => {
                let old = self.old_providers(&candidate);
                if old.is_empty() {
                    return Ok(ranking);
                }
                self.ask_all(Some(&old)).await;
            }
            // What would fit may be too old to be ranked at all: every provider is read again before that is the answer.
            None if ranking.rejected.iter().any(|r| r.reason == Reason::Stale) => self.ask_all(None).await,
            None => return Ok(ranking),
        }
        let ranking = rank().await?;
        match chosen(&ranking) {
            Some(candidate) => {
                self.check_fresh(&candidate)?;
                Ok(ranking)
            }
            None => Ok(ranking),
        }
    }

    /// Providers whose facts on this candidate are too old to act on.
    fn old_providers(&self, candidate: &Candidate) -> Vec<ProviderId> {
        let mut old: Vec<ProviderId> = candidate
            .nodes
            .iter()
            .filter(|g| g.offer.stale || self.feed_refuses(&g.offer.key.provider).is_some())
            .map(|g| g.offer.key.provider.clone())
            .collect();
        old.sort();
        old.dedup();
        old
    }

    /// Why nothing is started at a provider now: it was not reached, refused our credentials or is not believed.
    fn feed_refuses(&self, provider: &ProviderId) -> Option<EngineError> {
        let state = self.state.borrow();
        let feed = state.market.feeds().iter().find(|f| &f.provider == provider)?;
        let label = feed.health.label();
        match (feed.health, &feed.error) {
            // It was asked and has never answered: whatever a published table says of it, nobody vouches for it.
            (FeedHealth::Loading, Some(error)) => Some(error.clone().into()),
            (FeedHealth::AuthNeeded | FeedHealth::Down, Some(error)) => {
                let message = format!("{}; nothing is started there now ({label})", error.message);
                Some(ProviderError { message, ..error.clone() }.into())
            }
            (FeedHealth::AuthNeeded | FeedHealth::Down | FeedHealth::Quarantined, _) => {
                let reason = format!("{provider} is not acted on now ({label}: {})", inert(&feed.detail));
                Some(EngineError::Refused { reason })
            }
            _ => None,
        }
    }

    /// Refuse what rests on old facts or on a feed that is not believed.
    pub(crate) fn check_fresh(&self, candidate: &Candidate) -> Result<(), EngineError> {
        for group in &candidate.nodes {
            let provider = &group.offer.key.provider;
            if let Some(refusal) = self.feed_refuses(provider) {
                return Err(refusal);
            }
            let market = self.state.borrow().market.clone();
            if market.get(&group.offer.key).is_none_or(|offer| offer.stale) {
                let age = words(self.now() - group.offer.observed_at);
                let known = format!("what is known of {} is {age} old", inert(&group.offer.key.to_string()));
                let state = self.state.borrow();
                let feed = state.market.feeds().iter().find(|f| &f.provider == provider);
                return Err(match feed.and_then(|f| f.error.as_ref()) {
                    // Its own word on why it did not confirm it.
                    Some(error) => {
                        let message = format!("{}; {known}, and nothing is started on it", error.message);
                        ProviderError { message, ..error.clone() }.into()
                    }
                    None => EngineError::Refused {
                        reason: format!("{known}, and {provider} did not confirm it; refresh, then look again"),
                    },
                });
            }
        }
        Ok(())
    }

    /// What the operator agrees to besides the shown place, in a sentence.
    fn ceiling_warning(&self, spec: &JobSpec, candidate: &Candidate) -> String {
        match spec.buying.max_usd_per_gpu_hour {
            Some(limit) => format!(
                "where it is sold out or taken away, the next place within {limit:.4} and {} in all is taken",
                self.ceiling(spec, candidate)
            ),
            None => format!(
                "where it is sold out or taken away, the next place up to {} in all is taken: the job sets no limit of \
                 its own",
                self.ceiling(spec, candidate)
            ),
        }
    }

    /// The most that all machines together may cost an hour: what the shown machines would cost at the job's own limit a
    /// GPU, or with the headroom where it sets none. A larger machine within the same limit a GPU is not what was agreed to.
    pub(crate) fn ceiling(&self, spec: &JobSpec, candidate: &Candidate) -> HourlyRate {
        if spec.buying.max_usd_per_gpu_hour.is_none() {
            return with_headroom(candidate.usd_per_hour, &self.limits);
        }
        let limits =
            candidate.nodes.iter().map(|group| Some(node_limit(spec, &group.offer, &self.limits)?.times(group.count)));
        let most = limits.fold(HourlyRate::ZERO, |sum, one| sum + one.unwrap_or_default());
        most.max(candidate.usd_per_hour)
    }

    /// All that the ledger has of a job.
    pub(crate) async fn record(&self, id: &JobId) -> Result<JobRecord, EngineError> {
        let mut tx = self.ledger.read().await.map_err(|e| self.ledger_error(e))?;
        let record = JobRecord::read(&mut tx, id).await.map_err(|e| self.ledger_error(e))?;
        record.ok_or_else(|| EngineError::NotFound(format!("there is no job with the id '{}'", inert(id.as_str()))))
    }
}
