//! The index of call stacks and modules. They stay in the trace file; only those that a report needs are read.
//!
//! A run of a thousand processes has a thousand times the same libraries, and most call stacks are never needed. The
//! index keeps only their offsets.

use std::collections::HashMap;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use urscope_schema::trace::chrome::read::Reader;
use urscope_schema::trace::fxt::read::Strings;
use urscope_schema::trace::records::{Module, Stack};
use urscope_schema::trace::{LINE_LIMIT, Record};

use super::{chunks::record_at, source::Source};

/// The number of modules of a process that are kept.
const MODULES_KEPT: usize = 1 << 12;

/// The number of call stacks of a process that are kept, equal to the number that a writer writes.
const STACKS_KEPT: usize = 1 << 16;

/// The call stacks of a process, as far as its trace was read. All copies are one index, so a call stack is found as
/// soon as a call that refers to it was read.
#[derive(Clone, Default)]
pub struct Stacks(Arc<Index>);

/// The index of a file.
#[derive(Default)]
struct Index {
    path: PathBuf,
    /// Device and inode: a file that replaced the trace is not read.
    identity: (u64, u64),
    /// The strings of a binary trace.
    strings: Option<Strings>,
    /// What was read so far.
    offsets: Mutex<Offsets>,
}

/// The offsets of modules, in the order of the trace, and of stacks, by their numbers, in bytes from the start of the
/// file.
#[derive(Default)]
struct Offsets {
    modules: Vec<u64>,
    stacks: HashMap<u64, u64>,
}

impl Stacks {
    /// An empty index of a file.
    pub(crate) fn new(path: &Path, identity: (u64, u64), strings: Option<Strings>) -> Self {
        Self(Arc::new(Index { path: path.to_owned(), identity, strings, offsets: Mutex::default() }))
    }

    /// The path of the file; empty without a file.
    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Adds the module record at `offset`.
    pub(crate) fn put_module(&self, offset: u64) {
        let mut offsets = self.offsets();
        // The end of a growing file is read again.
        if offsets.modules.len() < MODULES_KEPT && !offsets.modules.contains(&offset) {
            offsets.modules.push(offset);
        }
    }

    /// Adds the stack record at `offset`.
    pub(crate) fn put_stack(&self, number: u64, offset: u64) {
        let mut offsets = self.offsets();
        if offsets.stacks.len() < STACKS_KEPT {
            offsets.stacks.insert(number, offset);
        }
    }

    /// Frees the memory that is not needed for what was read.
    pub(crate) fn shrink(&self) {
        let mut offsets = self.offsets();
        offsets.modules.shrink_to_fit();
        offsets.stacks.shrink_to_fit();
    }

    /// A stack; `None` if there is no such stack or the file is gone.
    pub(crate) fn stack(&self, number: u64) -> Option<Stack> {
        let offset = self.offsets().stacks.get(&number).copied()?;
        match self.read(&mut self.open()?, offset)? {
            Record::Stack(stack) => Some(*stack),
            _ => None,
        }
    }

    /// All modules; empty if the file is gone.
    pub(crate) fn modules(&self) -> Vec<Module> {
        let Some(mut source) = self.open() else { return Vec::new() };
        let offsets = self.offsets().modules.clone();
        let records = offsets.iter().filter_map(|offset| self.read(&mut source, *offset));
        records.filter_map(|record| if let Record::Module(module) = record { Some(*module) } else { None }).collect()
    }

    /// The number of modules known so far.
    pub(crate) fn module_count(&self) -> usize {
        self.offsets().modules.len()
    }

    fn offsets(&self) -> MutexGuard<'_, Offsets> {
        self.0.offsets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record at an offset.
    fn read(&self, source: &mut Source, offset: u64) -> Option<Record> {
        if let Some(strings) = &self.0.strings {
            return record_at(source, offset, strings);
        }
        source.go_to(offset).ok()?;
        let limited = source.take(2 * LINE_LIMIT as u64);
        Reader::new(BufReader::with_capacity(1 << 12, limited)).next()?.ok()?.ok()
    }

    fn open(&self) -> Option<Source> {
        Source::open(&self.0.path).ok().filter(|source| source.identity() == self.0.identity)
    }
}
