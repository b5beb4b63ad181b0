//! The mapped file of a trace: pages that only grow, and chunks that threads fill.

pub mod chunks;
pub mod pages;
