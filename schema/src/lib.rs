//! The words of urscope: what a call is, and what a trace record is.
//!
//! Both rivers drink from here: the shim fills [`call::Enter`] and [`call::Exit`] and writes them with
//! [`trace::write`], the judge reads them back with [`trace::read`]. One table ([`api::ur`]) says which Unified
//! Runtime functions there are; everything else that needs such a list is made from it.
//!
//! This crate must never hold unsafe code, start a thread, open a file or decide what is right or wrong.

#![forbid(unsafe_code)]

pub mod api;
pub mod call;
pub mod handle;
pub mod placeholders;
pub mod trace;
