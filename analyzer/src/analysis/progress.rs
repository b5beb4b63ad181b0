//! The progress of an analysis.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{fs, path::PathBuf};

/// The size of the traces, and how much of them has been read. It can be read from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    all: AtomicU64,
    read: AtomicU64,
}

impl Progress {
    /// The size of all traces in bytes when the analysis began; 0 before that.
    pub fn all(&self) -> u64 {
        self.all.load(Relaxed)
    }

    /// The number of bytes that have been read. It can exceed [`Self::all`] if a program still writes.
    pub fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    pub(crate) fn expect(&self, files: &[PathBuf]) {
        let sizes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|metadata| metadata.len());
        self.all.store(sizes.sum(), Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.read.fetch_add(bytes, Relaxed);
    }
}
