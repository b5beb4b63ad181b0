//! Call stacks and modules are left in the file: only those of findings are ever read.
//!
//! A run of a thousand processes has a thousand times the same libraries, and call stacks that nobody asks for. What is
//! kept of each is where it stands.

use std::{
    collections::HashMap,
    io::{BufReader, Read as _},
    path::PathBuf,
    sync::Arc,
};

use urscope_schema::trace::{
    read::{LINE_LIMIT, Reader, Record},
    records::{Hex, Module},
};

use super::source::Source;

/// How many libraries of a process are kept.
const MODULES_KEPT: usize = 1 << 12;

/// How many call stacks of a process are kept, as many as a writer writes.
const STACKS_KEPT: usize = 1 << 16;

/// Where the records of one trace stand, in bytes from its start.
#[derive(Clone, Default)]
pub(crate) struct StackIndex {
    pub(crate) path: PathBuf,
    /// Device and inode: another file of that name is not looked into.
    identity: (u64, u64),
    modules: Vec<u64>,
    /// Shared with the copies that look at a run which goes on.
    stacks: Arc<HashMap<u64, u64>>,
}

impl StackIndex {
    /// Of a file, empty.
    pub(crate) fn of(path: PathBuf, identity: (u64, u64)) -> Self {
        Self { path, identity, ..Self::default() }
    }

    /// There is a module record at `offset`.
    pub(crate) fn put_module(&mut self, offset: u64) {
        if self.modules.len() < MODULES_KEPT {
            self.modules.push(offset);
        }
    }

    /// The stack of that number is at `offset`.
    pub(crate) fn put_stack(&mut self, number: u64, offset: u64) {
        if self.stacks.len() < STACKS_KEPT {
            Arc::make_mut(&mut self.stacks).insert(number, offset);
        }
    }

    /// The addresses of a stack, innermost first; nothing if there is none of that number or the file is gone.
    pub(crate) fn stack(&self, number: u64) -> Option<Vec<Hex>> {
        match read(&mut self.open()?, *self.stacks.get(&number)?)? {
            Record::Stack(stack) => Some(stack.frames),
            _ => None,
        }
    }

    /// All modules.
    pub(crate) fn modules(&self) -> Vec<Module> {
        let Some(mut source) = self.open() else { return Vec::new() };
        let records = self.modules.iter().filter_map(|offset| read(&mut source, *offset));
        records.filter_map(|record| if let Record::Module(module) = record { Some(*module) } else { None }).collect()
    }

    /// How many modules there are by now.
    pub(crate) fn module_count(&self) -> usize {
        self.modules.len()
    }

    fn open(&self) -> Option<Source> {
        Source::open(&self.path).ok().filter(|source| source.identity() == self.identity)
    }
}

/// The first record at or behind a place.
fn read(source: &mut Source, offset: u64) -> Option<Record> {
    source.go_to(offset).ok()?;
    let limited = source.take(2 * LINE_LIMIT as u64);
    Reader::new(BufReader::with_capacity(1 << 12, limited)).next()?.ok()?.ok()
}
