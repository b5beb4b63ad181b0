//! Call stacks: the names of their frames, the frames that reports show, and those that are no call sites: `wrappers`
//! are named by a person, and `dispatchers` are found.

mod bodies;
mod call_sites;
mod dispatchers;
mod frames;
mod roles;
mod symbolizer;
mod wrappers;

pub use call_sites::{CallSite, CallSites};
pub(crate) use dispatchers::{CallPlaces, Dispatchers, Made, compared};
pub use frames::file_name;
pub(crate) use roles::roles;
pub(crate) use symbolizer::Symbolizer;
pub use wrappers::Wrappers;
