//! Finding machines, and ending them.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{Filter, InstanceStateName};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, stream};

use super::ec2::{Ec2, filter};
use super::offerings::regions_of;
use super::{states, tags};
use crate::config::limits::{AWS_MACHINES_A_CALL, AWS_PAGES, AWS_REGIONS_AT_ONCE, AWS_SPOT_NOTICE};
use crate::domain::{ErrorClass, Instance, InstanceState, Mark, ProviderError, Purchase, Region};
use crate::provider::mark as marks;
use crate::provider::{InstanceRef, Result, Termination};

impl Ec2 {
    /// All machines under the mark. A region that does not answer fails the whole: a list that silently lacks one would
    /// make machines look gone that are billed on.
    pub(super) async fn owned(&self, owner: &str) -> Result<Vec<Instance>> {
        let (regions, failed) = self.regions().await?;
        if !failed.is_empty() {
            return Err(joined(failed));
        }
        let asked = regions.iter().map(|r| (r, vec![filter(&format!("tag:{}", marks::OWNER), [tags::literal(owner)])]));
        let machines = self.in_all(asked.collect()).await?;
        let unreadable = machines.iter().filter(|m| m.mark.is_none()).count();
        if unreadable > 0 {
            tracing::warn!(unreadable, "AWS machines carry the owner's tag and no mark that can be read");
        }
        Ok(machines)
    }

    /// These machines. By filter, not by id: one unknown id would fail the whole call.
    pub(super) async fn described(&self, ids: &[InstanceRef]) -> Result<Vec<Instance>> {
        let mut by_region: BTreeMap<&Region, Vec<String>> = BTreeMap::new();
        for one in ids {
            by_region.entry(&one.location.region).or_default().push(tags::literal(one.id.as_str()));
        }
        let mut asked = Vec::new();
        for (region, ids) in &by_region {
            for some in ids.chunks(AWS_MACHINES_A_CALL) {
                asked.push((*region, vec![filter("instance-id", some.iter().cloned())]));
            }
        }
        let mut machines = self.in_all(asked).await?;
        self.add_notices(&mut machines).await;
        Ok(machines)
    }

    /// Put down which spot machines AWS has announced to take away. Two minutes before it does, the request behind such a
    /// machine says so. A region that does not tell says nothing: the machine's own state follows soon enough.
    async fn add_notices(&self, machines: &mut [Instance]) {
        let mut by_region: BTreeMap<Region, Vec<String>> = BTreeMap::new();
        let running = |i: &&Instance| i.purchase == Purchase::Spot && i.state == InstanceState::Running;
        for machine in machines.iter().filter(running) {
            by_region.entry(machine.location.region.clone()).or_default().push(machine.id.as_str().to_owned());
        }
        for (region, ids) in by_region {
            match self.notices(&region, &ids).await {
                Ok(notices) => {
                    for machine in machines.iter_mut().filter(|m| m.location.region == region) {
                        machine.preemption_notice = notices.get(machine.id.as_str()).copied();
                    }
                }
                Err(error) => tracing::debug!(%region, %error, "spot notices are not to be had"),
            }
        }
    }

    /// By the machine's id, when it will be taken away at the earliest.
    async fn notices(&self, region: &Region, machines: &[String]) -> Result<BTreeMap<String, DateTime<Utc>>> {
        let site = self.site("DescribeSpotInstanceRequests", region);
        let client = self.client(&site)?;
        let mut notices = BTreeMap::new();
        for some in machines.chunks(AWS_MACHINES_A_CALL) {
            let by_machine = filter("instance-id", some.iter().map(|id| tags::literal(id)));
            let answer =
                client.describe_spot_instance_requests().filters(by_machine).send().await.map_err(|e| site.sdk(&e))?;
            for request in answer.spot_instance_requests() {
                let Some(status) = request.status() else { continue };
                let announced = status.code().is_some_and(|code| code.starts_with("marked-for-"));
                let since = status.update_time().and_then(|t| DateTime::from_timestamp(t.secs(), t.subsec_nanos()));
                if let (true, Some(since), Some(id)) = (announced, since, request.instance_id()) {
                    notices.insert(id.to_owned(), since + AWS_SPOT_NOTICE);
                }
            }
        }
        Ok(notices)
    }

    /// The machines of a token; where the endpoint does not answer that (some only emulate EC2, and fail in ways of their
    /// own), those of the mark, which is written in the same call and so finds as much.
    pub(super) async fn launched_with(&self, region: &Region, token: &str, mark: &Mark) -> Result<Vec<Instance>> {
        match self.find(region, vec![filter("client-token", [tags::literal(token)])]).await {
            Err(refused) if !matches!(refused.class, ErrorClass::Auth | ErrorClass::Throttled) => {
                let tag = |key: &str, value: String| filter(&format!("tag:{key}"), [tags::literal(&value)]);
                let filters = vec![
                    tag(marks::OWNER, mark.owner.clone()),
                    tag(marks::OPERATION, mark.operation.as_str().to_owned()),
                    tag(marks::ATTEMPT, mark.attempt.to_string()),
                    tag(marks::NODE, mark.node.to_string()),
                ];
                self.find(region, filters).await
            }
            answer => answer,
        }
    }

    /// One id a call: with several, one that is unknown or protected would spare the others.
    pub(super) async fn terminate_instance(&self, target: &InstanceRef) -> Result<Termination> {
        let region = &target.location.region;
        let site = self.site("TerminateInstances", region);
        let answer = match self.client(&site)?.terminate_instances().instance_ids(target.id.as_str()).send().await {
            Ok(answer) => answer,
            Err(error) => {
                let told = site.sdk(&error);
                // For some seconds after its launch EC2 may not know a machine yet, so the engine looks twice.
                return if told.code == "InvalidInstanceID.NotFound" {
                    Ok(Termination::AlreadyGone)
                } else {
                    Err(told)
                };
            }
        };
        let Some(change) = answer.terminating_instances().iter().find(|c| c.instance_id() == Some(target.id.as_str()))
        else {
            return Err(site.error(ErrorClass::Transient, "the answer does not name the machine"));
        };
        let before = change.previous_state().and_then(|s| s.name());
        let now = change.current_state().and_then(|s| s.name());
        if [before, now].contains(&Some(&InstanceStateName::Terminated)) {
            return Ok(Termination::AlreadyGone);
        }
        Ok(Termination::Accepted(states::state(now.map_or("", InstanceStateName::as_str), "")))
    }

    /// Each region with its filters, several at once; all of them or an error that names those that failed.
    async fn in_all(&self, asked: Vec<(&Region, Vec<Filter>)>) -> Result<Vec<Instance>> {
        let asked: Vec<_> = asked.into_iter().map(|(region, filters)| self.find(region, filters)).collect();
        let answers: Vec<Result<Vec<Instance>>> = stream::iter(asked).buffered(AWS_REGIONS_AT_ONCE).collect().await;
        let mut machines = Vec::new();
        let mut failed = Vec::new();
        for answer in answers {
            match answer {
                Ok(some) => machines.extend(some),
                Err(error) => failed.push(error),
            }
        }
        if failed.is_empty() { Ok(machines) } else { Err(joined(failed)) }
    }

    /// The machines of one region that pass the filters, page by page.
    async fn find(&self, region: &Region, filters: Vec<Filter>) -> Result<Vec<Instance>> {
        let site = self.site("DescribeInstances", region);
        let mut pages = self
            .client(&site)?
            .describe_instances()
            .set_filters(Some(filters))
            .into_paginator()
            .stop_on_duplicate_token(false)
            .send();
        let mut described = Vec::new();
        let mut page = 0;
        while let Some(answer) = pages.next().await {
            let answer = answer.map_err(|e| site.sdk(&e))?;
            described.extend(
                answer.reservations.unwrap_or_default().into_iter().flat_map(|r| r.instances.unwrap_or_default()),
            );
            page += 1;
            if page >= AWS_PAGES {
                return Err(site.error(ErrorClass::Transient, "the listing does not end"));
            }
        }
        if described.is_empty() {
            return Ok(Vec::new());
        }
        let mut zones = self.known_zones(region);
        let nameless = described.iter().any(|i| i.placement().is_some_and(|p| p.availability_zone_id().is_none()));
        if nameless && zones.is_none() {
            // Without them the machines are told all the same, only not their zones.
            zones = self.fresh_zones(region).await.ok();
        }
        let rows = described.len();
        let machines: Vec<Instance> =
            described.iter().filter_map(|i| states::instance(&self.id, region, zones.as_deref(), i)).collect();
        if machines.len() < rows {
            return Err(site.error(ErrorClass::Transient, "the answer has a machine without an id"));
        }
        Ok(machines)
    }
}

/// One error for several regions: the first, with the names of all.
fn joined(mut errors: Vec<ProviderError>) -> ProviderError {
    errors.sort_by(|a, b| a.region.cmp(&b.region));
    let regions = regions_of(&errors);
    let more = errors.len() - 1;
    let mut first = errors.swap_remove(0);
    if more > 0 {
        first.message = format!("{} (and {more} more; failed: {regions})", first.message);
    }
    first
}
