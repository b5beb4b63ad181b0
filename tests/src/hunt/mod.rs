//! A generator of programs that share between processes: correct ones, and the same with one mistake.
//!
//! A program is a script for `tests/apps/scenario.cpp`. What a seed yields never depends on the machine. The generator states what
//! must be found by the texts of SYCL and Unified Runtime; it must never be adjusted to what urscope finds.

mod draft;
mod expectation;
mod found;
mod mistake;
mod plant;
mod play;
mod processes;
mod program;
mod random;
mod schedule;
mod sharing;
mod sites;
mod stage;

pub use found::Found;
pub use mistake::Mistake;
pub use play::Discovery;
pub use program::Program;
pub use stage::Stage;
