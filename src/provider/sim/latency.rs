//! The one place of the simulated clouds that waits in real time.

use std::time::Duration;

/// Take so long, as a call over a network would. None at all arms no timer.
pub(super) async fn pass(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
