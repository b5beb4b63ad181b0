//! The mapped file of a trace: pages that only grow, chunks that threads fill, and the number of lost records.

pub mod chunks;
pub mod loss_count;
pub mod pages;
