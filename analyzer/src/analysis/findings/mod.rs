//! Findings: deduplicated, kept by node, aggregated over all nodes, and exempted.

mod advice;
mod aggregate;
mod deduplicator;
pub mod exemptions;
#[cfg(test)]
mod merge_properties;
mod node;
mod sentence;

pub(crate) use deduplicator::{Deduplicator, Occurred, Repeated};
pub use exemptions::{ExemptionError, Exemptions};
pub(crate) use node::{Key, Node, report_text};
pub use node::{REPORT_VERSION, Report, ReportError};
