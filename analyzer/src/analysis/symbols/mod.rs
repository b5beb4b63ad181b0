//! Call stacks: the names of their frames, and which of the frames count.

mod frames;
mod symbolizer;

pub use frames::file_name;
pub(crate) use symbolizer::Symbolizer;
