//! Reads a trace in the binary form: merges its lanes by time.
//!
//! A lane is the chunks of one writing thread, whose records are in order. The lanes' next records wait in a queue; only one chunk of
//! each lane is in memory. A file that is still being written is read up to a given time: before that, all records have
//! arrived. A record that arrives later than its time allowed is reported by [`ChunkReader::is_late`].

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque, binary_heap::PeekMut},
    io::{self, Read as _},
    sync::Arc,
};

use urscope_schema::{
    call::Nanos,
    trace::{
        fxt::{
            CHUNK, CHUNK_BYTES, UNWRITTEN,
            read::{Item, Strings, next},
        },
        read::{Record, Skipped},
    },
};

use super::{event::TraceEvent, source::Source};

/// With more lanes than this, a lane keeps no chunk in memory between two records.
const LANES_KEPT: usize = 256;

/// The size of a word in bytes.
const WORD: u64 = size_of::<u64>() as u64;

/// The time of a record and its rank at that time, as [`TraceEvent::order`] gives it; records without a time come first.
type Key = (Nanos, u8);

/// A record, or why it was skipped.
type Found = Result<Record, Skipped>;

/// The records of a file, in the order of time.
pub(crate) struct ChunkReader {
    source: Source,
    strings: Arc<Strings>,
    lanes: Vec<Lane>,
    numbers: HashMap<u32, usize>,
    /// The lanes that have a next record, by its key.
    queue: BinaryHeap<Reverse<(Key, usize)>>,
    /// The lanes that wait for more records.
    idle: Vec<usize>,
    /// The number of chunks that are known to belong to a lane.
    indexed: u64,
    /// `None` if the file is read to its end; otherwise records from this time on are not returned yet.
    until: Option<Nanos>,
    last: Nanos,
    late: bool,
    closed: bool,
    /// The number of bytes that have been read.
    read: u64,
    scratch: Vec<u8>,
}

/// The chunks of one writer.
#[derive(Default)]
struct Lane {
    /// The chunks that follow the present one, by their number in the file.
    chunks: VecDeque<u32>,
    present: Option<u32>,
    /// The words of the present chunk; empty if they must be read (again).
    words: Vec<u64>,
    /// The next word to be read.
    at: usize,
    tid: u32,
    /// The time of the latest record that was returned.
    last: Nanos,
    /// The next record, and its position in bytes from the start of the file.
    head: Option<(u64, Found)>,
}

impl ChunkReader {
    /// Begins to read a file. Records from `until` on are not returned yet; `None` reads to the end of the file.
    pub(crate) fn open(source: Source, until: Option<Nanos>) -> io::Result<Self> {
        let mut reader = Self {
            source,
            strings: Arc::default(),
            lanes: Vec::new(),
            numbers: HashMap::new(),
            queue: BinaryHeap::new(),
            idle: Vec::new(),
            indexed: 0,
            until,
            last: Nanos(0),
            late: false,
            closed: false,
            read: 0,
            scratch: Vec::new(),
        };
        reader.grow(until)?;
        Ok(reader)
    }

    /// Reads the file further, up to a later time. False if it was truncated, removed or replaced.
    pub(crate) fn grow(&mut self, until: Option<Nanos>) -> io::Result<bool> {
        let Some(size) = self.source.size().filter(|size| *size >= self.indexed * CHUNK_BYTES) else {
            return Ok(false);
        };
        self.until = until;
        self.index(size)?;
        // What is in memory of the present chunks may be older than the file.
        for lane in &mut self.lanes {
            lane.words.clear();
        }
        for lane in std::mem::take(&mut self.idle) {
            self.advance(lane)?;
        }
        Ok(true)
    }

    /// Finds the lanes of new chunks. A chunk is handed out before its head is written.
    fn index(&mut self, size: u64) -> io::Result<()> {
        while self.indexed * CHUNK_BYTES < size {
            let chunk = self.indexed as u32;
            // The first chunk begins with the strings, and belongs to the first lane.
            let number = if chunk == 0 { Some(0) } else { self.lane_of(chunk)? };
            if number.is_none() && self.until.is_some() {
                return Ok(());
            }
            self.indexed += 1;
            if let Some(number) = number {
                let new = self.lanes.len();
                let lane = *self.numbers.entry(number).or_insert(new);
                if lane == new {
                    self.lanes.push(Lane::default());
                    self.idle.push(lane);
                }
                if let Some(lane) = self.lanes.get_mut(lane) {
                    lane.chunks.push_back(chunk);
                }
            }
        }
        Ok(())
    }

    /// The number of the lane of a chunk; `None` if nothing was written to it.
    fn lane_of(&mut self, chunk: u32) -> io::Result<Option<u32>> {
        let words = self.words(u64::from(chunk) * CHUNK_BYTES, 2)?;
        match next(&words, 0, &mut Strings::default()).0 {
            Item::Head(number) => Ok(Some(number)),
            // A chunk with a damaged head is read for itself.
            _ if words.iter().any(|word| *word != UNWRITTEN) => Ok(Some(u32::MAX - chunk)),
            _ => Ok(None),
        }
    }

    /// Reads words from a position in bytes, at most `count`.
    fn words(&mut self, at: u64, count: usize) -> io::Result<Vec<u64>> {
        self.source.go_to(at)?;
        self.scratch.clear();
        (&mut self.source).take(count as u64 * WORD).read_to_end(&mut self.scratch)?;
        Ok(self.scratch.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Finds the next record of a lane and puts the lane into the queue, or among those that wait.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        match self.next_of(index)? {
            Some(key) => self.queue.push(Reverse((key, index))),
            None => self.idle.push(index),
        }
        Ok(())
    }

    /// Finds the next record of a lane.
    fn next_of(&mut self, index: usize) -> io::Result<Option<Key>> {
        loop {
            let Some(lane) = self.lanes.get_mut(index) else { return Ok(None) };
            if lane.head.is_none() {
                lane.decode(Arc::make_mut(&mut self.strings), self.until.is_some());
            }
            if let Some((_, found)) = &lane.head {
                return Ok(Some(key(found)));
            }
            let wanted = if lane.words.is_empty() && lane.present.is_some() {
                lane.present
            } else if lane.is_at_end() || !lane.chunks.is_empty() {
                let Some(chunk) = lane.chunks.pop_front() else { return Ok(None) };
                (lane.present, lane.at) = (Some(chunk), 0);
                self.read += CHUNK_BYTES;
                Some(chunk)
            } else {
                None
            };
            let Some(chunk) = wanted else { return Ok(None) };
            let words = self.words(u64::from(chunk) * CHUNK_BYTES, CHUNK)?;
            let Some(lane) = self.lanes.get_mut(index) else { return Ok(None) };
            if words.len() <= lane.at {
                lane.present = None;
            }
            lane.words = words;
        }
    }

    /// The next record with its position, in bytes from the start of the file.
    pub(crate) fn next(&mut self) -> Option<io::Result<(u64, Found)>> {
        let top = self.queue.peek_mut()?;
        let Reverse((key, index)) = *top;
        if self.until.is_some_and(|until| key.0 >= until) {
            return None;
        }
        PeekMut::pop(top);
        let lane = self.lanes.get_mut(index)?;
        if key.0 > Nanos(0) {
            // In a lane, a record of a signal handler may stand before an earlier one: that is its order, whenever it is read.
            self.late |= key.0 < self.last && key.0 >= lane.last;
            self.last = self.last.max(key.0);
            lane.last = lane.last.max(key.0);
        }
        let found = lane.head.take()?;
        self.closed |= matches!(found, (_, Ok(Record::Footer(_))));
        if let Err(error) = self.advance(index) {
            return Some(Err(error));
        }
        if self.lanes.len() > LANES_KEPT
            && let Some(lane) = self.lanes.get_mut(index)
        {
            lane.words = Vec::new();
        }
        Some(Ok(found))
    }

    /// The next record, if it is that of a call.
    pub(crate) fn next_call(&mut self) -> Option<Record> {
        let Reverse((_, index)) = self.queue.peek()?;
        match self.lanes.get(*index)?.head.as_ref()? {
            (_, Ok(Record::Enter(_) | Record::Exit(_))) => self.next()?.ok()?.1.ok(),
            _ => None,
        }
    }

    /// Whether a record was found that is earlier than one that had been returned.
    pub(crate) fn is_late(&self) -> bool {
        self.late
    }

    /// Whether the process wrote a footer.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// Whether the file is read only up to some time.
    pub(crate) fn is_growing(&self) -> bool {
        self.until.is_some()
    }

    /// The number of bytes that have been read.
    pub(crate) fn offset(&self) -> u64 {
        self.read
    }

    /// The bytes of the file.
    pub(crate) fn source(&mut self) -> &mut Source {
        &mut self.source
    }

    /// The strings of the file that have been read.
    pub(crate) fn strings(&self) -> Arc<Strings> {
        Arc::clone(&self.strings)
    }

    /// Frees what can be read again, and closes the file's descriptor until the next read.
    pub(crate) fn release(&mut self) {
        self.source.release();
        self.scratch = Vec::new();
        for lane in &mut self.lanes {
            lane.words = Vec::new();
        }
    }

    /// A reader of the rest of the file to its end, with another source of the same file.
    pub(crate) fn remainder(&self, source: Source) -> io::Result<Self> {
        let mut rest = Self {
            source,
            strings: Arc::clone(&self.strings),
            lanes: self.lanes.iter().map(Lane::remainder).collect(),
            numbers: self.numbers.clone(),
            queue: self.queue.clone(),
            idle: self.idle.clone(),
            scratch: Vec::new(),
            ..*self
        };
        rest.grow(None)?;
        Ok(rest)
    }
}

impl Lane {
    /// Finds the next record in the words that are in memory. In a file that is still being written, it stops where a record may
    /// still appear.
    fn decode(&mut self, strings: &mut Strings, growing: bool) {
        let waits = growing && self.chunks.is_empty();
        while let Some(rest) = self.words.get(self.at..).filter(|rest| !rest.is_empty()) {
            let (item, count) = next(rest, self.tid, strings);
            let offset = self.present.map_or(0, |chunk| u64::from(chunk) * CHUNK_BYTES) + self.at as u64 * WORD;
            let found = match item {
                Item::Unwritten | Item::Claimed if waits => return,
                Item::Unwritten | Item::Claimed | Item::Head(_) | Item::Other => None,
                Item::Thread(tid) => {
                    self.tid = tid;
                    None
                }
                Item::Record(record) => Some(Ok(record)),
                Item::Damaged(why) => Some(Err(Skipped { offset, line: 0, why })),
            };
            self.at += count;
            if let Some(found) = found {
                self.head = Some((offset, found));
                return;
            }
        }
    }

    /// Whether all words of the present chunk were read, or there is none.
    fn is_at_end(&self) -> bool {
        self.present.is_none() || (!self.words.is_empty() && self.at >= self.words.len())
    }

    /// The same position, without the words.
    fn remainder(&self) -> Self {
        Self { chunks: self.chunks.clone(), words: Vec::new(), head: self.head.clone(), ..*self }
    }
}

/// Reads the record at a position of a file with these strings.
pub(crate) fn record_at(source: &mut Source, offset: u64, strings: &Strings) -> Option<Record> {
    source.go_to(offset).ok()?;
    let mut bytes = Vec::new();
    source.take(CHUNK_BYTES - offset % CHUNK_BYTES).read_to_end(&mut bytes).ok()?;
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    match next(&words, 0, &mut strings.clone()).0 {
        Item::Record(record) => Some(record),
        _ => None,
    }
}

fn key(found: &Found) -> Key {
    match found {
        Ok(Record::Enter(enter)) => TraceEvent::Enter(*enter).order(enter.time),
        Ok(Record::Exit(exit)) => TraceEvent::Exit(*exit).order(exit.time),
        Ok(Record::Note(time, _) | Record::Descriptors(time, _) | Record::Finding(time, _)) => (*time, 1),
        _ => (Nanos(0), 0),
    }
}

#[cfg(test)]
mod tests;
