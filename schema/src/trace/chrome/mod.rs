//! The Chrome form of a trace: one JSON line per record.
//!
//! [`write`] makes lines without allocating, and [`read`] reads them back, those of calls by a scanner that knows the
//! writer's form.

pub mod read;
mod scan;
pub mod write;
