//! The placement core against an independent brute-force oracle on small random markets, its laws, and the cases that
//! other schedulers got wrong (`tests/placement/*.toml`).

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "placement/cases.rs"]
mod cases;
#[path = "placement/laws.rs"]
mod laws;
#[path = "placement/oracle.rs"]
mod oracle;
#[path = "placement/words.rs"]
mod words;
#[path = "placement/world.rs"]
mod world;
