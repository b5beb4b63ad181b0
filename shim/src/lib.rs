//! The witness: stands between a SYCL program and its Unified Runtime adapter, and writes down what passes.
//!
//! `app -> entry -> call -> layers -> backend`: [`entry`] holds the entry points through which a call reaches us, [`call`] makes a
//! recordable thing of it, [`chain`] shows it to the [`layer`]s before and after the [`backend`] does the work.
//!
//! Nothing here may change what a correct program observes: no lock is held and nothing is allocated across the real
//! call, nothing unwinds into C, nothing is printed to stdout, and whatever fails in here switches itself off and lets
//! the calls go straight through. Unsafe code stands in `entry`, `raw` and `backend` only.

#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "it calls functions of adapters and drivers by address")]
pub mod backend;
pub mod call;
pub mod chain;
#[expect(unsafe_code, reason = "it replaces function pointers in tables of others, and is called by C")]
pub mod entry;
mod event_filter;
pub mod knobs;
pub mod layer;
#[expect(unsafe_code, reason = "it reads and writes the memory of the application, and makes system calls")]
pub mod raw;
mod stacks;

/// Prepares the library; to be called once, when it is loaded.
///
/// Opens no file and prints nothing: a process that never meets Unified Runtime shall not notice us.
pub fn start() {
    knobs::read();
    entry::dlsym::resolve();
    layer::trace::notices::install();
    layer::validate::send_findings_to(&layer::trace::Trace);
    stacks::send_to(&layer::trace::Trace);
    let in_child = || {
        chain::restart();
        layer::trace::after_fork_in_child();
        layer::validate::after_fork_in_child();
        event_filter::after_fork_in_child();
        backend::after_fork_in_child();
        stacks::after_fork_in_child();
    };
    let before = || {
        layer::validate::before_fork();
        layer::trace::before_fork();
    };
    let in_parent = || {
        layer::trace::after_fork_in_parent();
        layer::validate::after_fork_in_parent();
    };
    raw::process::on_fork(before, in_parent, in_child);
    raw::process::on_exit(|| chain::end("exit"));
}
