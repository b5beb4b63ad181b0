//! All end-to-end tests in one executable: what they share is built once, and they run side by side.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is test code: a panic is how it reports"
)]

mod arguments;
mod backend;
mod bad_calls;
mod binary_form;
mod browser;
mod call_counts;
mod call_sites;
mod circumstances;
mod clean_memory;
mod closed_twice;
mod complete_traces;
mod conformance;
mod crate_dependencies;
mod cuda;
mod device_support;
mod doctor;
mod documents;
mod endurance;
mod event;
mod example_command;
mod examples;
mod exec;
mod export;
mod followed_calls;
mod forgotten_wait;
mod fork;
mod fourth_interface;
mod hunt;
mod inner_calls;
mod installed;
mod instructions;
mod interrupted;
mod kernels;
mod kill;
mod launchers;
mod level_zero;
mod live_equals_offline;
mod loaders;
mod long_runs;
mod messages;
mod middleware;
mod missing_results;
mod missing_traces;
mod mixed_backends;
mod module_dependencies;
mod museum;
mod neighbours;
mod no_skips;
mod nothing_to_judge;
mod odd_processes;
mod order_rounds;
mod other_adapters;
mod other_runs;
mod other_users;
mod perfetto_importer;
mod physical;
mod plain_c;
mod process_end;
mod programs;
mod python;
mod races;
mod repeated_violations;
mod reports;
mod scripts;
mod software_cuda;
mod stacks;
mod suites;
mod sycl_order;
mod top;
mod torn_records;
mod transparency;
mod unknown_adapter;
mod view;
mod views_agree;
mod violations;
mod violent_ends;
mod xpti;
mod ze_order;

/// Makes two tests of each function: one on each adapter.
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
