//! The tracker and the rules, in scenarios, in random histories, and in what differs from them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test panics where it fails")]

mod catalog;
mod circumstances;
mod devices;
mod forks;
mod growth;
mod histories;
mod in_use;
mod kinds;
mod lifecycles;
mod mapped;
mod mutations;
mod object_histories;
mod own_rule;
mod received;
mod scenarios;
