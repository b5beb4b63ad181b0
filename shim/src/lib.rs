//! The interposer between a SYCL program and its Unified Runtime adapter: it records and checks the calls.
//!
//! `program -> interface -> call -> chain (layers) -> backend`: an [`interface`] replaces functions by hooks, whose
//! calls take the path in [`call`]: it shows each to the [`layer`]s through the [`chain`], before and after a
//! [`backend`] or a driver implements it. [`entry`] has the functions of the C library by which it is found.
//!
//! Nothing here may change what a correct program observes: no lock is held and nothing is allocated across the real
//! call, nothing unwinds into C, nothing is printed to stdout, and a part that fails is switched off.
//!
//! Unsafe code is denied except in `interface`, `entry`, `raw` and `backend`.
//! `tests/tests/end_to_end/module_dependencies.rs` checks which module uses which.

#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "it calls functions of adapters and drivers by address")]
pub mod backend;
pub mod call;
pub mod chain;
mod command_line;
mod devices;
#[expect(unsafe_code, reason = "it is called by C")]
pub mod entry;
mod inner;
#[expect(
    unsafe_code,
    reason = "it replaces function pointers in tables of others, is called by C, and reads its structures"
)]
pub mod interface;
pub mod knobs;
pub mod layer;
#[expect(unsafe_code, reason = "it reads and writes the memory of the application, and makes system calls")]
pub mod raw;
mod sharing;
mod stacks;

/// Prepares the library and connects its parts. Called once, when the library is loaded.
///
/// It opens no file and prints nothing: a process without Unified Runtime must not notice the library. With the
/// feature `frida-gum` it reads the files of loaded libraries.
///
/// It does nothing in a process that gained rights (setuid, setgid or capabilities), whose user must not control what
/// it reads and writes, in ranks that are not traced, and behind another copy of the library.
pub fn start() {
    if knobs::is_excluded() {
        chain::switch_off();
        return;
    }
    knobs::read();
    inner::start();
    raw::processes::fork_mark::install();
    raw::symbols::real_dlsym::resolve_early();
    entry::exec::resolve();
    layer::trace::notices::install();
    layer::validate::send_findings_to(&layer::trace::Trace);
    stacks::send_to(&layer::trace::Trace);
    let in_child = || {
        layer::trace::after_fork_in_child();
        sharing::limit::after_fork_in_child();
        layer::validate::after_fork_in_child();
        sharing::event_filter::after_fork_in_child();
        backend::after_fork_in_child();
        stacks::after_fork_in_child();
        devices::after_fork_in_child();
        raw::files::kept_descriptors::after_fork_in_child();
    };
    let before = || {
        layer::validate::before_fork();
        layer::trace::before_fork();
    };
    let in_parent = || {
        layer::trace::after_fork_in_parent();
        layer::validate::after_fork_in_parent();
    };
    raw::processes::fork::on_fork(before, in_parent, in_child);
    raw::processes::process::on_exit(|| {
        interface::unified_runtime::untraced_adapters::report();
        chain::end("exit");
    });
    #[cfg(feature = "frida-gum")]
    if knobs::read().entry == knobs::Entry::Auto {
        entry::dlsym::replace_where_late();
        interface::unified_runtime::inline::start();
    }
}
