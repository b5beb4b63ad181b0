//! The window: what is answered to whom, asked for as a browser, a stranger or an attacker does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops where it is surprised"
)]

mod answers;
mod client;
mod following;
mod refusals;
#[path = "../../../tests/analysis/traces.rs"]
#[allow(dead_code, reason = "it is used by other tests as well")]
mod traces;

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use urscope_analyzer::Options;
use urscope_command::view::{Settings, Subject, View, perfetto::Copy};

use client::Place;

/// One process frees what another has open.
const SIN: &str = "producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nproducer: put h\n\
                   producer: free p\nconsumer: close m";

/// Traces of a story, and the window on them.
struct Shown {
    folder: TempDir,
    view: View,
    place: Place,
}

impl Shown {
    fn new(story: &str) -> Self {
        Self::with(story, None)
    }

    fn with(story: &str, perfetto: Option<Copy>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        traces::put(folder.path(), &traces::files(story));
        let view = window(folder.path(), perfetto);
        let place = Place::of(&view);
        Self { folder, view, place }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

fn window(folder: &Path, perfetto: Option<Copy>) -> View {
    let subject = Subject::named(vec![folder.to_owned()], Options::default());
    View::open(subject, Settings { port: 0, perfetto }).unwrap()
}
