//! Call stacks: how they are unwound, and who called.

pub mod caller;
pub mod outer;
pub mod stack;
pub mod unwound_callers;
