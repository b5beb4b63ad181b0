//! The device through its C functions, without a runtime.
//!
//! One file for each topic. A test that needs environment variables or another process starts this binary again with a
//! role (`api::child`). No test sleeps to let something else happen: gates are events, and processes communicate
//! through pipes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[allow(dead_code, reason = "the tests of kernels use the rest")]
mod api;
mod passing;
mod peer;

mod bare_descriptors;
mod descriptors;
mod discovery;
mod engines;
mod event_ipc;
mod external_events;
mod faults;
mod forged_handles;
mod fork;
mod graph_objects;
mod graphs;
mod handles;
mod ipc;
mod lists;
mod memory;
mod newer_calls;
mod observer;
mod physical;
mod reasons;
mod stress;
mod sub_devices;
mod surface;
mod tracing;
mod virtual_memory;
