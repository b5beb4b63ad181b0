//! The table of the lifetimes of a run: handle data from get to put, and openings from open to close.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::chunks::Chunks;
use urscope_analyzer::{
    analysis::FoundFinding,
    lifetimes::{EndReason, Lifetime, LifetimeKind, ProcessIndex},
};

/// How many lifetimes are kept. Later ones are omitted, and [`LifetimeTable::limit`] reports that.
pub(super) const MOST_LIVES: usize = 2_000_000;

/// The default number of entries of a part.
const PART: usize = 50_000;
/// The maximum number of entries of a part.
const LONGEST_PART: usize = 200_000;

/// One lifetime.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    export: Option<u64>,
    from: u64,
    to: Option<u64>,
    address: u64,
    bytes: Option<u64>,
    fingerprint: Option<u64>,
    process: u32,
    lane: LifetimeKind,
    kind: u8,
    how: u8,
}

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.from, self.id)
    }
}

/// The table of lifetimes.
#[derive(Clone, Debug, Default)]
pub(super) struct LifetimeTable {
    /// In the order in which they began.
    entries: Chunks<Entry>,
    total: u64,
    kinds: Names,
    how: Names,
}

/// A few names, numbered in the order in which they first occur.
#[derive(Clone, Debug, Default)]
struct Names(Vec<&'static str>);

impl Names {
    fn number(&mut self, name: &'static str) -> u8 {
        let known = self.0.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        }) as u8
    }
}

/// The query parameters of a part.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    offset: usize,
    limit: Option<usize>,
}

/// A part of the table.
#[derive(Debug, Serialize)]
pub(super) struct Part<'a> {
    generation: u64,
    total: u64,
    offset: usize,
    kinds: &'a [&'static str],
    how: &'a [&'static str],
    columns: Columns<'a>,
}

/// The columns of a part. Each has one entry per lifetime.
#[derive(Debug, Default, Serialize)]
struct Columns<'a> {
    id: Vec<u64>,
    process: Vec<u32>,
    lane: Vec<u8>,
    kind: Vec<u8>,
    export: Vec<Option<u64>>,
    from_ns: Vec<u64>,
    to_ns: Vec<Option<u64>>,
    how: Vec<Option<u8>>,
    address: Vec<String>,
    bytes: Vec<Option<u64>>,
    fingerprint: Vec<Option<String>>,
    findings: Vec<&'a [u32]>,
}

impl LifetimeTable {
    /// Adds a lifetime if the table is not full.
    pub(super) fn born(&mut self, life: &Lifetime) {
        self.total += 1;
        if self.entries.len() < MOST_LIVES {
            let kind = self.kinds.number(life.kind.noun());
            let Lifetime { id, export, at, address, bytes, fingerprint, process, lane, .. } = *life;
            let entry =
                Entry { id, export, from: at, to: None, address, bytes, fingerprint, process, lane, kind, how: 0 };
            self.entries.insert(entry, Entry::key);
        }
    }

    /// Sets the end of a lifetime.
    pub(super) fn died(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        let how = self.how.number(how.name());
        if let Some(entry) = self.entries.find_mut(&(life.at, life.id), Entry::key) {
            (entry.to, entry.how) = (Some(at), how);
        }
    }

    /// The number of all lifetimes, including those that are not kept.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// A message if lifetimes were omitted.
    pub(super) fn limit(&self) -> Option<String> {
        let kept = self.entries.len() as u64;
        (self.total > kept).then(|| {
            format!("the table of lifetimes holds the first {kept} of {}; `urscope export` has all of them", self.total)
        })
    }

    /// The requested part of the table.
    pub(super) fn part<'a>(&'a self, generation: u64, asked: Asked, marks: &'a Marks) -> Part<'a> {
        let limit = asked.limit.unwrap_or(PART).min(LONGEST_PART);
        let offset = asked.offset.min(self.entries.len());
        let mut columns = Columns::default();
        for entry in self.entries.iter_from(offset).take(limit) {
            columns.id.push(entry.id);
            columns.process.push(entry.process);
            columns.lane.push(match entry.lane {
                LifetimeKind::Handle => 0,
                LifetimeKind::Opening => 1,
            });
            columns.kind.push(entry.kind);
            columns.export.push(entry.export);
            columns.from_ns.push(entry.from);
            columns.to_ns.push(entry.to);
            columns.how.push(entry.to.map(|_| entry.how));
            columns.address.push(format!("{:#x}", entry.address));
            columns.bytes.push(entry.bytes);
            columns.fingerprint.push(entry.fingerprint.map(|bytes| format!("{bytes:#x}")));
            columns.findings.push(entry.fingerprint.map_or(&[], |bytes| marks.of(entry.process, bytes)));
        }
        let (kinds, how) = (self.kinds.0.as_slice(), self.how.0.as_slice());
        Part { generation, total: self.total, offset, kinds, how, columns }
    }
}

/// The findings about handle data in a process, as indices in the judgement.
#[derive(Debug, Default)]
pub(super) struct Marks(HashMap<(u32, u64), Vec<u32>>);

impl Marks {
    /// Collects the findings of a judgement for both of their processes.
    pub(super) fn new(findings: &[FoundFinding], process_index: &ProcessIndex) -> Self {
        let mut marks = Self::default();
        for (place, finding) in (0..).zip(findings) {
            let bytes = finding.fingerprint.as_deref().and_then(|bytes| urscope_analyzer::questions::word(bytes).ok());
            let Some(bytes) = bytes else { continue };
            let sides = [Some(&finding.process), finding.other.as_ref()].into_iter().flatten();
            let mut sides: Vec<_> = sides.filter_map(|side| process_index.number(side)).collect();
            sides.dedup();
            for process in sides {
                marks.0.entry((process, bytes)).or_default().push(place);
            }
        }
        marks
    }

    fn of(&self, process: u32, fingerprint: u64) -> &[u32] {
        self.0.get(&(process, fingerprint)).map_or(&[], Vec::as_slice)
    }
}
