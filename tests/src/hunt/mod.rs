//! A generator of programs that share between processes: correct ones, and the same with one mistake.
//!
//! A program is a scenario, in the language of `rules/pages/src/scenario`. `tests/apps/scenario.cpp` plays it on the
//! real runtime, and `rules/pages/tests` includes this module and plays it to the tracker alone. What a seed yields
//! never depends on the machine. The generator states what must be found by the texts of SYCL and Unified Runtime; it
//! must never be adjusted to what urscope finds.

mod draft;
mod expectation;
mod judgement;
mod mistake;
mod plant;
mod processes;
mod program;
pub(crate) mod random;
mod schedule;
mod script;
mod sharing;
mod stage;

pub use judgement::Finding;
pub use mistake::Mistake;
pub use program::Program;
pub use script::Script;
pub use stage::Stage;
