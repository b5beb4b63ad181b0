//! How far the judge has come, for whoever waits.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Bytes of traces: how many there are, and how many have been read. It may be looked at from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    all: AtomicU64,
    read: AtomicU64,
}

impl Progress {
    /// How many bytes there were when the judge began; 0 before.
    pub fn all(&self) -> u64 {
        self.all.load(Relaxed)
    }

    /// How many bytes have been read. It can become more than there were, when a program still writes.
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
