//! Signals: what a handler must not interrupt, where it runs, and how it shares memory with what it interrupts.

pub mod interruptions;
pub mod signal_stack;
pub(super) mod sync;
