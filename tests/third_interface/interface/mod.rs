//! A third interface, of three functions.

mod results;
#[macro_use]
pub mod rows;

use super::interface::{Interface, Promise};

/// The interface.
pub static INTERFACE: Interface = Interface {
    name: "Third",
    results: results::RESULTS,
    hex_results: false,
    shareable: &[],
    flags: &[],
    importing: None,
    usm_types: &[],
    support: &[],
    promises: &[Promise::PutIsOptional],
    words: super::unified_runtime::WORDS,
};
