//! The page's server: answers to a browser, and refusals of unauthorized or malicious requests.

mod answers;
mod client;
mod following;
mod refusals;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use urscope_analyzer::Options;
use urscope_command::view::{Settings, Subject, View, perfetto::Copy};

use client::Client;

use crate::traces;

/// A scenario in which one process frees memory that another has open.
const VIOLATION: &str = "producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nproducer: put h\n\
                   producer: free p\nconsumer: close m";

/// The traces of a scenario, and a server that shows them.
struct Shown {
    folder: TempDir,
    view: View,
    client: Client,
}

impl Shown {
    fn new(scenario: &str) -> Self {
        Self::with(scenario, None)
    }

    fn with(scenario: &str, perfetto: Option<Copy>) -> Self {
        Self::from_files(&traces::files(scenario), perfetto)
    }

    fn from_files(files: &BTreeMap<String, Vec<u8>>, perfetto: Option<Copy>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        traces::put(folder.path(), files);
        let view = serve(folder.path(), perfetto);
        let client = Client::new(&view);
        Self { folder, view, client }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

fn serve(folder: &Path, perfetto: Option<Copy>) -> View {
    let subject = Subject::named(vec![folder.to_owned()], Options::default());
    View::open(subject, Settings { port: 0, perfetto, ..Settings::default() }).unwrap()
}
