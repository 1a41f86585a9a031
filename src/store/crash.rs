//! For tests: a process that dies at a chosen point, and simulated time that stands while the ledger works.

use std::sync::Arc;
use std::sync::mpsc;

/// A place where the process may be made to die.
pub trait CrashPoint: Send + Sync {
    /// Whether it dies here, before the next thing happens. Once it has died every further point says so too.
    fn dies(&self, point: &str) -> bool;

    /// Whether it has died.
    fn died(&self) -> bool;
}

/// A dead process does nothing any more: wait for ever.
pub(crate) async fn point(crash: Option<&Arc<dyn CrashPoint>>, name: &str) {
    if crash.is_some_and(|c| c.dies(name)) {
        std::future::pending::<()>().await;
    }
}

/// A dead process does not read either; to die before a read is to die after what came before it.
pub(crate) async fn alive(crash: Option<&Arc<dyn CrashPoint>>) {
    if crash.is_some_and(|c| c.died()) {
        std::future::pending::<()>().await;
    }
}

/// While it lives, paused tokio time does not run ahead: SQLite works on a thread of its own, which a paused runtime
/// would take for idleness.
pub(crate) struct Hold {
    _release: mpsc::Sender<()>,
}

impl Hold {
    pub(crate) fn new() -> Self {
        let (release, wait) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || {
            // Ends when the sender is dropped.
            let _ = wait.recv();
        });
        Self { _release: release }
    }
}
