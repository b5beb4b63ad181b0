//! Call stacks: the names of their frames, the frames that reports show, and wrappers, which are no call sites: a
//! person names some (`wrappers`), and others are found (`found_wrappers`).

mod bodies;
mod call_sites;
mod found_wrappers;
mod frames;
mod roles;
mod symbolizer;
mod wrappers;

pub use call_sites::{CallSite, CallSites};
pub(crate) use found_wrappers::{CallPlaces, FoundWrappers, Made, compared};
pub use frames::file_name;
pub(crate) use roles::roles;
pub(crate) use symbolizer::Symbolizer;
pub use wrappers::Wrappers;
