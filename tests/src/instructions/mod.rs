//! How many instructions urscope adds to a call: counted on the software device with the v2 adapter, and compared with
//! the counts that the repository keeps. `scripts/bench instructions` prints and renews them.
//!
//! `tests/apps/marked_pairs.cpp` gets and puts the handle of one allocation, which the adapter serves from its cache. A
//! side of the comparison is a run of it; what it has more instructions than the run without urscope was added.

mod counts_file;
mod stepper;

use std::{fmt, fs, os::unix::fs::symlink, path::Path, process::Stdio};

use crate::run::clean_command;
use crate::runtime::Release;
use crate::{apps, trace};

pub use counts_file::{RecordedCounts, TOLERANCE};
pub use stepper::{Section, sections};

/// Pairs of calls before the first that is counted: by then everything is bound and has grown.
const UNMARKED: u32 = 200;

/// Pairs that are counted one by one. The least is taken: now and then, one of them gets another chunk of the file or
/// counts descriptors, which depends on the time that passes, and the next ones fill again what that has displaced.
const MARKED: u32 = 9;

/// Calls of a pair: a get and a put.
const CALLS: u64 = 2;

const LIBRARY: &str = "liburscope.so";

/// A way of recording calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    form: &'static str,
    validate: &'static str,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self { form: "binary", validate: "off" },
        Self { form: "binary", validate: "on" },
        Self { form: "chrome", validate: "off" },
        Self { form: "chrome", validate: "on" },
    ];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.form == "chrome" { "Chrome" } else { self.form };
        let kind = if self.validate == "on" { "validated" } else { "traced" };
        f.pad(&format!("{form} form, {kind}"))
    }
}

/// The instructions that a way adds to a call, on average over a get and a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// In the preloaded library.
    pub library: u64,
    /// Elsewhere, above all in the C library that it calls. It can be negative, where the library answers a call
    /// itself.
    pub elsewhere: i64,
}

impl Added {
    /// All instructions that are added to a call.
    pub fn total(self) -> u64 {
        self.library.saturating_add_signed(self.elsewhere)
    }
}

/// What was counted.
#[derive(Debug)]
pub struct Counted {
    /// The instructions of a call without urscope.
    pub bare: u64,
    /// What each way adds.
    pub ways: Vec<(Way, Added)>,
}

/// Counts all ways with the libraries in a folder: that of a cargo profile.
pub fn count(libraries: &Path) -> Counted {
    let bare = pair_of(libraries, None);
    assert_eq!(bare.library, 0, "a run without urscope executes none of its code");
    let ways = Way::ALL.map(|way| {
        let pair = pair_of(libraries, Some(way));
        assert!(pair.library > 0, "the run in the {way} executed no code of {LIBRARY}");
        let elsewhere = (pair.elsewhere as i64 - bare.elsewhere as i64) / CALLS as i64;
        (way, Added { library: pair.library / CALLS, elsewhere })
    });
    Counted { bare: bare.elsewhere / CALLS, ways: ways.into() }
}

/// The instructions of a get and a put.
#[derive(Clone, Copy)]
struct Pair {
    library: u64,
    elsewhere: u64,
}

/// The least of the marked pairs of a run; without urscope for `None`.
fn pair_of(libraries: &Path, way: Option<Way>) -> Pair {
    let folder = tempfile::Builder::new().prefix("urscope-instructions-").tempdir().expect("no temporary folder");
    let place = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a folder in a temporary folder");
        path
    };
    let loader = place("loader");
    let traces = place("traces");
    symlink(libraries.join("libze_loader.so"), loader.join("libze_loader.so.1")).expect("a link in a temporary folder");

    let mut command = clean_command(&apps::executable("marked_pairs", Release::R2026_2));
    command
        .args([UNMARKED, MARKED].map(|pairs| pairs.to_string()))
        .env("LD_LIBRARY_PATH", &loader)
        .env("ONEAPI_DEVICE_SELECTOR", "level_zero:*")
        .env("SYCL_UR_USE_LEVEL_ZERO_V2", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(way) = way {
        command
            .env("LD_PRELOAD", libraries.join(LIBRARY))
            .env("URSCOPE_DIR", &traces)
            .env("URSCOPE_FORMAT", way.form)
            .env("URSCOPE_VALIDATE", way.validate)
            .env("URSCOPE_QUIET", "1");
    }
    let marked = sections(command);
    assert_eq!(marked.len(), MARKED as usize, "the program makes as many marked pairs as it is asked for");
    assert_eq!(trace::files_in(&traces).len(), usize::from(way.is_some()), "a recorded process leaves one trace");
    let in_library = |section: &Section| section.get(LIBRARY).copied().unwrap_or(0);
    let library = least(marked.iter().map(in_library));
    let elsewhere = least(marked.iter().map(|section| section.values().sum::<u64>() - in_library(section)));
    Pair { library, elsewhere }
}

fn least(counts: impl Iterator<Item = u64>) -> u64 {
    counts.min().expect("at least one pair is marked")
}
