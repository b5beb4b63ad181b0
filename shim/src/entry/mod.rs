//! The entry points: the ways in which a call reaches urscope.
//!
//! [`dlsym`] notices when a loader asks an adapter for its tables, [`ddi`] takes the slots in them, [`exports`] serves
//! programs that call our exported functions.
//!
//! An entry point must refuse what it does not recognise, say so, and leave the program alone.

pub mod ddi;
pub mod dlsym;
pub mod exports;
