//! `--profile FILE`: writes a Chrome trace of urscope's own work, to find out where it spends its time.
//!
//! The analyzer and the command open a span of the `tracing` crate around each stage. Without `--profile` the spans
//! have no subscriber. They are `opening`, `reading` (one per block of a file), `merging` (one per 65,536 events; its
//! argument `checking_us` is the time spent in the tracker, the rules and the observers), `reporting`, `symbolizing`
//! (one per module), `judging` and `rendering`. For runs that are shown, they are also `following`, `snapshot` and
//! `serving`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_chrome::{ChromeLayerBuilder, FlushGuard};
use tracing_subscriber::layer::SubscriberExt as _;
use urscope_analyzer::files;

/// A profile that is being written. It is complete once [`finish`](Self::finish) has returned.
pub(crate) struct Profile {
    path: PathBuf,
    guard: FlushGuard,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Profile {
    /// Starts to record the spans of this process. An existing file is replaced. Only the first call records spans.
    pub(crate) fn start(path: &Path) -> Result<Self, String> {
        let file = files::create(path).map_err(|error| unwritable(path, &error))?;
        let failure = Arc::default();
        let out = Output { file, failure: Arc::clone(&failure) };
        let (layer, guard) = ChromeLayerBuilder::new().writer(out).include_args(true).include_locations(false).build();
        // It fails only if this process already has a subscriber.
        drop(tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)));
        Ok(Self { path: path.to_owned(), guard, failure })
    }

    /// Writes all buffered spans. Spans that are still open have no end in the file.
    pub(crate) fn finish(self) -> Result<(), String> {
        drop(self.guard);
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), |error| Err(unwritable(&self.path, &error)))
    }
}

fn unwritable(path: &Path, why: &io::Error) -> String {
    format!("the profile {} cannot be written: {why}; name another file", path.display())
}

/// The output file. `tracing-chrome` panics if a write fails, so this keeps the first error and drops all later data.
struct Output {
    file: File,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = self.file.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
