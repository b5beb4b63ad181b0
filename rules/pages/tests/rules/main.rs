//! The tracker and the rules, in scenarios, in random histories, and in what differs from them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test panics where it fails")]

mod after_the_end;
mod bounds;
mod by_descriptor;
mod catalog;
mod circumstances;
mod cuda;
mod descriptors;
mod devices;
mod ended_owners;
mod forks;
mod generated;
mod growth;
mod histories;
#[path = "../../../../tests/src/hunt/mod.rs"]
#[expect(dead_code, unreachable_pub, reason = "the end-to-end tests use the rest")]
mod hunt;
mod in_use;
mod kinds;
mod lifecycles;
mod mapped;
mod mutations;
mod object_histories;
mod own_rule;
mod race;
mod received;
mod refused;
mod scenarios;
