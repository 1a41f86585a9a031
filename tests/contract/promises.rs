//! The promises, each against any cloud.

use std::collections::BTreeSet;

use gpudeck::domain::observation::PriceStatement;
use gpudeck::domain::{Availability, ErrorClass, Evidence, HourlyRate, Instance, InstanceState, Mark, ProviderError};
use gpudeck::provider::{InstanceRef, Termination};

use super::{Cloud, Fault};

/// Enough for a machine to boot or to go in every fake.
const ROUNDS: usize = 8;

fn reference(machine: &Instance) -> InstanceRef {
    InstanceRef { id: machine.id.clone(), location: machine.location.clone() }
}

/// An error names whose it is and what was asked, in words; and never what a job's environment keeps secret.
fn is_told(error: &ProviderError, cloud: &dyn Cloud) {
    assert_eq!(&error.provider, cloud.adapter().id(), "{error:?}");
    assert!(!error.operation.is_empty() && !error.message.is_empty(), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

async fn described(cloud: &dyn Cloud, machine: &Instance) -> Option<Instance> {
    cloud.adapter().describe(&[reference(machine)]).await.unwrap().into_iter().find(|i| i.id == machine.id)
}

/// Until it is as wanted, or rounds are over.
async fn until(cloud: &dyn Cloud, machine: &Instance, wanted: impl Fn(Option<&Instance>) -> bool) -> Option<Instance> {
    let mut seen = None;
    for _ in 0..ROUNDS {
        seen = described(cloud, machine).await;
        if wanted(seen.as_ref()) {
            return seen;
        }
        cloud.pass().await;
    }
    panic!("it never came about: {seen:?}");
}

pub(crate) async fn a12_one_token_is_one_machine(cloud: &impl Cloud) {
    let first = cloud.adapter().launch(&cloud.wish(0)).await.unwrap();
    let again = cloud.adapter().launch(&cloud.wish(0)).await.unwrap();
    let other = cloud.adapter().launch(&cloud.wish(1)).await.unwrap();
    assert_eq!(first.id, again.id);
    assert_ne!(first.id, other.id);
    assert_eq!(cloud.machines(), 2);
}

pub(crate) async fn a1_an_answer_that_is_lost_promises_nothing_and_the_machine_is_found(cloud: &impl Cloud) {
    let wish = cloud.wish(0);
    cloud.next_launch(Fault::LostAnswer);
    let error = cloud.adapter().launch(&wish).await.unwrap_err();
    is_told(&error, cloud);
    assert!(matches!(error.class, ErrorClass::Transient | ErrorClass::Unknown), "{error:?}");
    assert_eq!(cloud.machines(), 1, "it was made all the same");
    cloud.pass().await;
    let found = cloud.adapter().find_by_token(&wish.offer.region, &wish.token, &wish.mark).await.unwrap();
    assert_eq!(found.iter().map(|i| i.mark.clone()).collect::<Vec<_>>(), [Some(wish.mark.clone())]);
    let again = cloud.adapter().launch(&wish).await.unwrap();
    assert_eq!((again.id, cloud.machines()), (found[0].id.clone(), 1));
}

pub(crate) async fn d1_a_refusal_has_its_class_and_made_nothing(cloud: &impl Cloud) {
    for (n, (fault, class)) in [
        (Fault::SoldOut, ErrorClass::NoCapacity),
        (Fault::OutOfQuota, ErrorClass::Quota),
        (Fault::Forbidden, ErrorClass::Auth),
        (Fault::Throttled, ErrorClass::Throttled),
    ]
    .into_iter()
    .enumerate()
    {
        let wish = cloud.wish(u32::try_from(n).unwrap());
        cloud.next_launch(fault);
        let error = cloud.adapter().launch(&wish).await.unwrap_err();
        is_told(&error, cloud);
        assert_eq!(error.class, class, "{fault:?}: {error:?}");
        assert!(!error.code.is_empty(), "the cloud's own code: {error:?}");
        assert_eq!(cloud.machines(), 0, "{fault:?}");
        let found = cloud.adapter().find_by_token(&wish.offer.region, &wish.token, &wish.mark).await.unwrap();
        assert_eq!(found, [], "{fault:?}");
    }
    // Of a cloud's own fault nobody says that nothing was made.
    cloud.next_launch(Fault::Broken);
    let error = cloud.adapter().launch(&cloud.wish(9)).await.unwrap_err();
    assert!(matches!(error.class, ErrorClass::Transient | ErrorClass::Unknown), "{error:?}");
    assert!(cloud.adapter().launch(&cloud.wish(9)).await.is_ok(), "and the next one is granted");
}

pub(crate) async fn d1_what_fails_after_it_was_accepted_does_not_run(cloud: &impl Cloud) {
    cloud.next_launch(Fault::FailsLater);
    match cloud.adapter().launch(&cloud.wish(0)).await {
        Ok(made) => {
            let ended = |seen: Option<&Instance>| {
                seen.is_none_or(|i| {
                    assert_ne!(i.state, InstanceState::Running, "{i:?}");
                    matches!(i.state, InstanceState::Failed | InstanceState::Gone | InstanceState::Terminating)
                })
            };
            let seen = until(cloud, &made, ended).await;
            if let Some(seen) = seen {
                assert!(seen.reason.is_some_and(|r| !r.is_empty()), "and it says why");
            }
        }
        // The adapter waits for the cloud's operation, and tells how it ended.
        Err(error) => {
            is_told(&error, cloud);
            assert_eq!((error.class, cloud.machines()), (ErrorClass::NoCapacity, 0), "{error:?}");
        }
    }
}

pub(crate) async fn a4_accepted_is_not_gone_and_gone_is_no_error(cloud: &impl Cloud) {
    let made = cloud.adapter().launch(&cloud.wish(0)).await.unwrap();
    let running = until(cloud, &made, |seen| seen.is_some_and(|i| i.state == InstanceState::Running)).await.unwrap();
    assert!(running.state.may_bill());
    let kept = cloud.adapter().launch(&cloud.wish(1)).await.unwrap();
    let answer = cloud.adapter().terminate(&reference(&made)).await.unwrap();
    assert!(matches!(answer, Termination::Accepted(_)), "{answer:?}");
    let gone = |seen: Option<&Instance>| {
        seen.is_none_or(|i| {
            assert!(!matches!(i.state, InstanceState::Running | InstanceState::Preempted), "{i:?}");
            i.state == InstanceState::Gone
        })
    };
    until(cloud, &made, gone).await;
    for _ in 0..2 {
        assert_eq!(cloud.adapter().terminate(&reference(&made)).await.unwrap(), Termination::AlreadyGone);
    }
    assert!(described(cloud, &kept).await.is_some(), "its neighbour stays");
    assert_eq!(cloud.machines(), 1);
}

pub(crate) async fn a9_a_machine_that_is_not_there_is_no_error(cloud: &impl Cloud) {
    let nobody = cloud.nobody();
    assert_eq!(cloud.adapter().describe(std::slice::from_ref(&nobody)).await.unwrap(), []);
    assert_eq!(cloud.adapter().terminate(&nobody).await.unwrap(), Termination::AlreadyGone);
    let made = cloud.adapter().launch(&cloud.wish(0)).await.unwrap();
    let both = [nobody, reference(&made)];
    let seen = cloud.adapter().describe(&both).await.unwrap();
    assert_eq!(seen.len(), 1, "one that is not there hides no other: {seen:?}");
}

pub(crate) async fn e1_a_machine_is_told_as_it_was_wished_for(cloud: &impl Cloud) {
    let wish = cloud.wish(0);
    let made = cloud.adapter().launch(&wish).await.unwrap();
    cloud.pass().await;
    let seen = described(cloud, &made).await.unwrap();
    for machine in [&made, &seen] {
        assert_eq!(machine.mark.as_ref(), Some(&wish.mark));
        assert_eq!((&machine.location.provider, &machine.location.region), (&wish.offer.provider, &wish.offer.region));
        assert_eq!(machine.location.zone, wish.offer.zone);
        assert_eq!((&machine.instance_type, machine.purchase), (&wish.offer.instance_type, wish.offer.purchase));
        assert!(machine.state.may_bill(), "{machine:?}");
        assert!(!format!("{machine:?}").contains("canary"));
    }
}

pub(crate) async fn a3_only_our_own_are_listed(cloud: &impl Cloud) {
    let wish = cloud.wish(0);
    let made = cloud.adapter().launch(&wish).await.unwrap();
    cloud.pass().await;
    let ids = |all: Vec<Instance>| all.into_iter().map(|i| i.id).collect::<Vec<_>>();
    assert_eq!(ids(cloud.adapter().instances(&wish.mark.owner).await.unwrap()), [made.id]);
    assert!(cloud.adapter().instances("somebody-else").await.unwrap().is_empty());
    assert!(cloud.adapter().instances("*").await.unwrap().is_empty(), "an owner is no pattern");
    let other = Mark { node: 7, ..wish.mark };
    let found = cloud.adapter().find_by_token(&wish.offer.region, "another-token", &other).await.unwrap();
    assert!(found.is_empty());
}

pub(crate) async fn f18_the_account_is_told_and_stays_the_same(cloud: &impl Cloud) {
    let first = cloud.adapter().account().await.unwrap();
    assert!(!first.is_empty() && !first.contains(char::is_control), "{first:?}");
    cloud.pass().await;
    assert_eq!(cloud.adapter().account().await.unwrap(), first);
}

pub(crate) async fn b5_no_offer_is_free_or_in_stock_without_a_witness(cloud: &impl Cloud) {
    let offerings = match cloud.adapter().offerings().await {
        Ok(offerings) => offerings,
        // A fake that has no list of offers says so, and the error is told like any other.
        Err(error) => return is_told(&error, cloud),
    };
    assert!(!offerings.observations.is_empty());
    let mut keys = BTreeSet::new();
    for observation in &offerings.observations {
        assert_eq!(&observation.key.provider, cloud.adapter().id());
        assert_eq!(observation.key.instance_type, observation.shape.instance_type);
        keys.insert(observation.key.clone());
        let priced = match observation.price {
            Some(PriceStatement::Live(p) | PriceStatement::Listed(p) | PriceStatement::Published(p)) => Some(p),
            Some(PriceStatement::Unpriced) | None => None,
        };
        assert!(priced.is_none_or(|p| p > HourlyRate::ZERO), "{observation:?}");
        let (availability, evidence) = observation.availability.unwrap_or((Availability::Unknown, Evidence::Catalogue));
        let claims = matches!(availability, Availability::Available | Availability::Limited);
        assert!(!claims || evidence != Evidence::Catalogue, "listed is not in stock: {observation:?}");
    }
    assert!(keys.contains(&cloud.wish(0).offer), "what can be launched is offered");
}
