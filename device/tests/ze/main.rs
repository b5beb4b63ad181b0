//! The device through its C functions, without any runtime on top.
//!
//! One file for each theme. A test that needs other variables or another process starts this binary anew with a role
//! (`api::child`). Nothing here sleeps to let something else happen: gates are events, processes talk through pipes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod api;
mod peer;

mod descriptors;
mod discovery;
mod event_ipc;
mod faults;
mod forged_handles;
mod fork;
mod handles;
mod ipc;
mod lists;
mod memory;
mod physical;
mod stress;
mod surface;
mod virtual_memory;
