//! All trials in one executable: what they share is built once, and they run side by side.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is test code: a panic is how it reports"
)]

mod arguments;
mod arrows;
mod backend;
mod browser;
mod circumstances;
mod closed_twice;
mod company;
mod conformance;
mod counts;
mod doctor;
mod ending;
mod endurance;
mod event;
mod export;
mod fork;
mod importer;
mod kill;
mod launchers;
mod left_out;
mod loaders;
mod memory_saint;
mod no_skips;
mod nothing_to_judge;
mod other_adapters;
mod physical;
mod plain_c;
mod programs;
mod repeated;
mod reports;
mod scripts;
mod sins;
mod stacks;
mod strange_adapter;
mod support;
mod top;
mod torn;
mod transparency;
mod twin;
mod view;
mod whole;

/// Tests that are run on either adapter.
macro_rules! on_both_adapters {
    ($($(#[$doc:meta])* fn $name:ident($adapter:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            fn try_on($adapter: Adapter) $body

            $(#[$doc])*
            #[test]
            fn on_v1() {
                try_on(Adapter::V1);
            }

            $(#[$doc])*
            #[test]
            fn on_v2() {
                try_on(Adapter::V2);
            }
        })*
    };
}
pub(crate) use on_both_adapters;
