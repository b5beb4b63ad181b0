//! Call stacks: the names of their frames, and the frames that reports show.

mod frames;
mod symbolizer;

pub use frames::file_name;
pub(crate) use symbolizer::Symbolizer;
