//! Processes that end violently, and what their traces must hold.
//!
//! `tests/apps/violent_ends.cpp` ends them, and counts the calls of each in memory that outlives it. Here the counts
//! are compared with what the traces hold: every call that returned, and none that was not begun. What is compared
//! depends on the seed, the moments depend on the machine as well.

mod batch;
mod counted;
mod crowd;
mod ledger;
mod stage;

pub use batch::{Batch, Outcomes};
pub use crowd::Crowd;
pub use stage::Stage;
