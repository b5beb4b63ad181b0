//! The table of the lifetimes of a run: handle data from get to put, and openings from open to close.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::shared_list::SharedList;
use urscope_analyzer::analysis::{CallSite, CallSites, FoundFinding, Location, Occurrence};
use urscope_analyzer::lifetimes::{EndReason, Lifetime, LifetimeKind, ProcessIndex};
use urscope_schema::trace::records::Hex;

/// How many lifetimes are kept. Later ones are omitted, and [`LifetimeTable::limit`] reports that.
pub(super) const MOST_LIVES: usize = 2_000_000;

/// The default number of entries of a part.
const PART: usize = 50_000;
/// The maximum number of entries of a part.
pub(super) const LONGEST_PART: usize = 200_000;

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
    stack: u32,
    lane: LifetimeKind,
    kind: u8,
    how: u8,
    /// When its memory was allocated and freed.
    allocated: Option<u64>,
    freed: Option<u64>,
}

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.from, self.id)
    }
}

#[derive(Clone, Debug)]
pub(super) struct LifetimeTable {
    /// In the order in which they began.
    entries: SharedList<Entry>,
    /// The number of all lifetimes, including those that are not kept.
    pub(super) total: u64,
    kinds: Vec<&'static str>,
    how: Vec<&'static str>,
    /// The keys of the handle data of each allocation that was not freed yet.
    of_memory: HashMap<u64, Vec<(u64, u64)>>,
    most: usize,
}

/// The number of a name, in the order in which names first occur.
fn number(names: &mut Vec<&'static str>, name: &'static str) -> u8 {
    let known = names.iter().position(|known| *known == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    }) as u8
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    offset: usize,
    limit: Option<usize>,
}

impl Asked {
    /// The longest part that begins there.
    pub(super) fn part(offset: usize) -> Self {
        Self { offset, limit: Some(LONGEST_PART) }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Part<'a> {
    generation: u64,
    total: u64,
    offset: usize,
    /// The number of lifetimes, in the binary form.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    kinds: &'a [&'static str],
    how: &'a [&'static str],
    sites: Vec<String>,
    /// The lifetimes with findings, by their position in the part, in the binary form.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<(usize, &'a [u32])>>,
    /// Absent in the head of the binary form.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<Columns<'a>>,
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
    address: Vec<Hex>,
    bytes: Vec<Option<u64>>,
    fingerprint: Vec<Option<Hex>>,
    allocated_ns: Vec<Option<u64>>,
    freed_ns: Vec<Option<u64>>,
    site: Vec<Option<u32>>,
    findings: Vec<&'a [u32]>,
}

/// The size of the numbers that precede all else, and the alignment of the columns, in bytes.
const WORD: usize = 8;

impl Part<'_> {
    /// The part in a form that the page reads without parsing: the length of the head, the head as JSON, and the
    /// columns as arrays of little-endian numbers: 64-bit floating point numbers, addresses and fingerprints as 64-bit
    /// integers, the others. All but the bytes at the end are aligned.
    pub(super) fn packed(mut self) -> Result<Vec<u8>, serde_json::Error> {
        let columns = self.columns.take().unwrap_or_default();
        let count = columns.id.len();
        let found = columns.findings.iter().copied().enumerate().filter(|(_, findings)| !findings.is_empty());
        (self.count, self.findings) = (Some(count), Some(found.collect()));
        let mut head = serde_json::to_vec(&self)?;
        head.resize(head.len().next_multiple_of(WORD), b' ');
        let mut out = Vec::with_capacity(WORD + head.len() + count * 80);
        out.extend_from_slice(&(head.len() as u64).to_le_bytes());
        out.extend_from_slice(&head);
        let mut floats =
            |values: &mut dyn Iterator<Item = f64>| values.for_each(|value| out.extend(value.to_le_bytes()));
        let time = |time: &Option<u64>| time.map_or(f64::INFINITY, |time| time as f64);
        floats(&mut columns.from_ns.iter().map(|from| *from as f64));
        floats(&mut columns.to_ns.iter().map(time));
        floats(&mut columns.allocated_ns.iter().map(time));
        floats(&mut columns.freed_ns.iter().map(time));
        floats(&mut columns.export.iter().map(|export| export.map_or(-1.0, |export| export as f64)));
        floats(&mut columns.bytes.iter().map(|bytes| bytes.unwrap_or_default() as f64));
        columns.address.iter().for_each(|address| out.extend(address.0.to_le_bytes()));
        let words = columns.fingerprint.iter().map(|word| word.unwrap_or_default().0);
        words.for_each(|word| out.extend(word.to_le_bytes()));
        columns.process.iter().for_each(|process| out.extend(process.to_le_bytes()));
        columns.site.iter().for_each(|site| out.extend(site.map_or(u32::MAX, |site| site).to_le_bytes()));
        out.extend_from_slice(&columns.lane);
        out.extend_from_slice(&columns.kind);
        out.extend(columns.how.iter().map(|how| how.unwrap_or_default()));
        Ok(out)
    }
}

impl LifetimeTable {
    /// A table that keeps at most that many lifetimes.
    pub(super) fn new(most: usize) -> Self {
        let kinds = Vec::new();
        let how = Vec::new();
        let of_memory = HashMap::new();
        Self { entries: SharedList::default(), total: 0, kinds, how, of_memory, most }
    }

    /// Adds a lifetime if the table is not full.
    pub(super) fn born(&mut self, life: &Lifetime) {
        self.total += 1;
        if self.entries.len() < self.most {
            let kind = number(&mut self.kinds, life.kind.noun());
            let Lifetime { id, export, at, address, bytes, fingerprint, process, lane, .. } = *life;
            let stack = life.stack.and_then(|stack| stack.try_into().ok()).unwrap_or_default();
            let allocated = life.allocated.map(|memory| memory.at);
            let how = 0;
            let entry = Entry {
                id,
                export,
                from: at,
                to: None,
                address,
                bytes,
                fingerprint,
                process,
                stack,
                lane,
                kind,
                how,
                allocated,
                freed: None,
            };
            if let Some(memory) = life.allocated {
                self.of_memory.entry(memory.memory).or_default().push(entry.key());
            }
            self.entries.insert(entry, Entry::key);
        }
    }

    pub(super) fn died(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        let how = number(&mut self.how, how.name());
        if let Some(entry) = self.entries.find_mut(&(life.at, life.id), Entry::key) {
            (entry.to, entry.how) = (Some(at), how);
        }
    }

    pub(super) fn freed(&mut self, memory: u64, at: u64) {
        for key in self.of_memory.remove(&memory).unwrap_or_default() {
            if let Some(entry) = self.entries.find_mut(&key, Entry::key) {
                entry.freed = Some(at);
            }
        }
    }

    /// A message if lifetimes were omitted.
    pub(super) fn limit(&self) -> Option<String> {
        let kept = self.entries.len() as u64;
        (self.total > kept).then(|| {
            format!("the table of lifetimes holds the first {kept} of {}; `urscope export` has all of them", self.total)
        })
    }

    pub(super) fn part<'a>(
        &'a self,
        generation: u64,
        asked: Asked,
        marks: &'a Marks,
        call_sites: &mut CallSites,
    ) -> Part<'a> {
        let limit = asked.limit.unwrap_or(PART).min(LONGEST_PART);
        let offset = asked.offset.min(self.entries.len());
        let mut columns = Columns::default();
        let mut sites: Vec<String> = Vec::new();
        let mut numbers: HashMap<Arc<CallSite>, u32> = HashMap::new();
        let mut number = |site: Arc<CallSite>| {
            *numbers.entry(site).or_insert_with_key(|site| {
                sites.push(site.name.clone());
                (sites.len() - 1) as u32
            })
        };
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
            columns.address.push(Hex(entry.address));
            columns.bytes.push(entry.bytes);
            columns.fingerprint.push(entry.fingerprint.map(Hex));
            columns.allocated_ns.push(entry.allocated);
            columns.freed_ns.push(entry.freed);
            let stack = (entry.stack != 0).then_some(entry.stack.into());
            columns.site.push(call_sites.get(entry.process, stack).map(&mut number));
            columns.findings.push(entry.fingerprint.map_or(&[], |bytes| marks.get(entry.process, bytes)));
        }
        let kinds = self.kinds.as_slice();
        let how = self.how.as_slice();
        let count = None;
        let findings = None;
        let columns = Some(columns);
        Part { generation, total: self.total, offset, count, kinds, how, sites, findings, columns }
    }
}

/// The findings about handle data in a process, as indices in the judgement.
#[derive(Debug, Default)]
pub(super) struct Marks(HashMap<(u32, u64), Vec<u32>>);

impl Marks {
    /// Collects findings: for all processes of the first occurrence, and for the process of each other one.
    pub(super) fn new(findings: &[FoundFinding], process_index: &ProcessIndex) -> Self {
        let mut marks = Self::default();
        for (place, finding) in (0..).zip(findings) {
            let number = |bytes: &str| urscope_analyzer::questions::word(bytes).ok();
            let mut mark = |side: &Location, bytes: u64| {
                let Some(process) = process_index.number(side) else { return };
                let known = marks.0.entry((process, bytes)).or_default();
                if known.last() != Some(&place) {
                    known.push(place);
                }
            };
            if let Some(bytes) = finding.fingerprint.as_deref().and_then(number) {
                finding.locations().chain(&finding.others).for_each(|side| mark(side, bytes));
            }
            for Occurrence { host, pid, executable, time_ns, fingerprint, .. } in &finding.occurrences {
                let Some(bytes) = fingerprint.as_deref().and_then(number) else { continue };
                let host = host.clone();
                let executable = executable.clone();
                mark(&Location { host, pid: *pid, executable, time_ns: *time_ns, ..Location::default() }, bytes);
            }
        }
        marks
    }

    fn get(&self, process: u32, fingerprint: u64) -> &[u32] {
        self.0.get(&(process, fingerprint)).map_or(&[], Vec::as_slice)
    }
}
