//! The command line from outside: the real binary, in a home of its own for each test.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    reason = "the whole crate is tests; the lints' own exception covers only what stands inside a test function"
)]

mod act;
mod home;
mod market;
mod terminal;
mod usage;
