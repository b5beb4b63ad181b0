//! The tables of functions, parameters and constants against the headers that they are from, and the reader of lines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is test code: a panic is how it reports"
)]

mod cuda_header;
mod header;
mod level_zero_header;
mod reading;
mod releases;
