//! What every adapter owes, in one text: run for each cloud over its own wire protocol on loopback, and for the demo
//! world. Each test is a cloud and a promise of `gpudeck::provider`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails here"
)]
#![allow(dead_code, reason = "the fakes are shared with other tests, which use the rest of them")]
#![cfg(all(feature = "aws", feature = "azure", feature = "gcp"))]

#[path = "../support/arm_fake.rs"]
mod arm_fake;
mod clouds;
#[path = "../support/ec2_fake.rs"]
mod ec2_fake;
#[path = "../support/ec2_fake_client.rs"]
mod ec2_fake_client;
#[path = "../support/ec2_fake_wire.rs"]
mod ec2_fake_wire;
#[path = "../support/gce_fake.rs"]
mod gce_fake;
mod promises;

/// What befalls the next launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It has its effect, and the answer is lost.
    LostAnswer,
    /// There is none left.
    SoldOut,
    /// The account may not have more.
    OutOfQuota,
    /// The right is missing.
    Forbidden,
    /// Too many calls.
    Throttled,
    /// A fault of the cloud's own, before anything was done.
    Broken,
    /// Accepted, and there is none left after all.
    FailsLater,
}

/// A cloud with its adapter.
#[async_trait::async_trait]
pub(crate) trait Cloud: Send + Sync {
    fn adapter(&self) -> &dyn gpudeck::provider::Operator;
    /// A wish that the cloud can grant; with a token, a name and a mark of its own for each number.
    fn wish(&self, n: u32) -> gpudeck::provider::LaunchRequest;
    /// Machines that the cloud itself has in its books and that are not gone.
    fn machines(&self) -> usize;
    fn next_launch(&self, fault: Fault);
    /// Time passes: what is under way comes about.
    async fn pass(&self);
    /// A machine that was never there, in a place that is.
    fn nobody(&self) -> gpudeck::provider::InstanceRef;
}

macro_rules! contract {
    ($($cloud:ident),+ : $promises:tt) => { $(contract!(@one $cloud $promises);)+ };
    (@one $cloud:ident [$($promise:ident),+ $(,)?]) => {
        mod $cloud {
            $(
                #[tokio::test]
                async fn $promise() {
                    crate::promises::$promise(&crate::clouds::$cloud().await).await;
                }
            )+
        }
    };
}

contract!(aws, azure, gcp, demo: [
    a12_one_token_is_one_machine,
    a1_an_answer_that_is_lost_promises_nothing_and_the_machine_is_found,
    d1_a_refusal_has_its_class_and_made_nothing,
    d1_what_fails_after_it_was_accepted_does_not_run,
    a4_accepted_is_not_gone_and_gone_is_no_error,
    a9_a_machine_that_is_not_there_is_no_error,
    e1_a_machine_is_told_as_it_was_wished_for,
    a3_only_our_own_are_listed,
    f18_the_account_is_told_and_stays_the_same,
    b5_no_offer_is_free_or_in_stock_without_a_witness,
]);
