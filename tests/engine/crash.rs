//! A process that dies at a chosen point: from then on nothing of it reaches ledger or cloud.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpudeck::store::CrashPoint;
use tokio::sync::Notify;

pub struct Crash {
    at: u64,
    armed: AtomicBool,
    count: AtomicU64,
    dead: AtomicBool,
    notify: Notify,
    last: Mutex<String>,
}

impl Crash {
    /// Dies at the point with this number, counted from when it is armed; 0 is never.
    pub fn at(at: u64) -> Self {
        Self {
            at,
            armed: AtomicBool::new(false),
            count: AtomicU64::new(0),
            dead: AtomicBool::new(false),
            notify: Notify::new(),
            last: Mutex::new(String::new()),
        }
    }
    pub fn never() -> Self {
        Self::at(0)
    }
    pub fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }
    /// Where it died.
    pub fn place(&self) -> String {
        self.last.lock().expect("no panic").clone()
    }
    pub async fn death(&self) {
        self.notify.notified().await;
    }
}

impl CrashPoint for Crash {
    fn died(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn dies(&self, point: &str) -> bool {
        if self.died() {
            return true;
        }
        if !self.armed.load(Ordering::SeqCst) {
            return false;
        }
        let n = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if n != self.at {
            return false;
        }
        *self.last.lock().expect("no panic") = format!("{n}: {point}");
        self.dead.store(true, Ordering::SeqCst);
        self.notify.notify_one();
        true
    }
}
