//! Call stacks: the names of their frames, the frames that reports show, and those that are no call sites.

mod call_sites;
mod frames;
mod symbolizer;
mod wrappers;

pub use call_sites::{CallSite, CallSites};
pub use frames::file_name;
pub(crate) use symbolizer::Symbolizer;
pub use wrappers::Wrappers;
