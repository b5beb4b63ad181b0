//! The doors: the ways in which a call reaches us.
//!
//! [`dlsym`] notices when a loader asks an adapter for its tables, [`ddi`] takes the slots in them, [`symbols`] serves
//! programs that call our exported functions. [`modules`] knows what is loaded where.
//!
//! A door must refuse what it does not recognise, say so, and leave the program alone.

pub mod ddi;
pub mod demangle;
pub mod dlsym;
pub mod modules;
pub mod symbols;
