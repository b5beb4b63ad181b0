//! The end-to-end tests of urscope: real SYCL programs, each with one violation or none, run against the real runtime.
//!
//! This is the harness; the tests are in `tests/tests`, the programs in `tests/apps`. It uses urscope as a person does:
//! through its command and its files. It must never depend on another crate of ours: it reads traces with a reader of
//! its own, so that a mistake in ours cannot hide itself.
//!
//! A test that misses something that it needs fails and says what to do. No test is skipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is test code: a panic is how it reports"
)]

pub mod apps;
pub mod artefacts;
pub mod clients;
pub mod discovery;
pub mod hunt;
pub mod instructions;
pub mod order_rounds;
pub mod perfetto;
pub mod processor;
pub mod record_fields;
pub mod report;
pub mod run;
pub mod runtime;
pub mod trace;
pub mod users;
pub mod view_server;
pub mod violence;

pub use report::Report;
pub use run::{Adapter, Outcome, TestRun};
pub use runtime::{Release, launcher, level_zero_loader, python_with};
pub use trace::Trace;

use std::path::{Path, PathBuf};
use std::{iter, sync::Mutex, thread};

/// Does work, as much at a time as there are processors.
pub fn on_all_processors<T>(work: impl Iterator<Item = T> + Send, does: impl Fn(T) + Sync) {
    let work = Mutex::new(work);
    let next = || work.lock().expect("no thread panics while it holds this lock").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| iter::from_fn(next).for_each(&does));
        }
    });
}

/// All files below a folder, but for those of git and what is downloaded or built.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let below = |path: PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name {
            "target" | "node_modules" | ".git" => Vec::new(),
            _ if path.is_dir() => files_below(&path),
            _ => vec![path],
        }
    };
    entries.flat_map(|entry| below(entry.expect("a folder can be listed").path())).collect()
}

/// Those with an extension.
pub fn files_with(extension: &str, folder: &Path) -> Vec<PathBuf> {
    let mut files = files_below(folder);
    files.retain(|file| file.extension().is_some_and(|its| its == extension));
    files
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests crate lies in the repository").to_path_buf()
}
