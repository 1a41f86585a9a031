//! Whole-cockpit tests: keys in, screens and effects out.

mod navigation;
mod safety;
mod scale;
mod screens;
mod storm;
mod truth;
