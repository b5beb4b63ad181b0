//! Reads a trace in the binary form: merges its lanes by time.
//!
//! A lane is the chunks of one writing thread, whose records are in order. The lanes' next records wait in a queue;
//! only one chunk of each lane is in memory. A file that is still being written is read up to a given time: before
//! that, all records have arrived. A record that arrives later than its time allowed is reported by
//! [`ChunkReader::is_late`].

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::{cmp::Reverse, io};

use urscope_schema::call::Nanos;
use urscope_schema::packed::{PackedCall, pack};
use urscope_schema::trace::fxt::read::{Before, Item, Strings, next, next_call};
use urscope_schema::trace::fxt::{CHUNK, CHUNK_BYTES, UNWRITTEN, is_hole};
use urscope_schema::trace::{Record, Skipped};

use super::{event::rank_of, source::Source};

/// With more lanes than this, a lane keeps no chunk in memory between two records.
const LANES_KEPT: usize = 256;

/// The size of a word in bytes.
const WORD: u64 = size_of::<u64>() as u64;

/// The time of a record and its rank at that time, as a [`Moment`](super::event::Moment) has it; records without a time
/// come first.
type Key = (Nanos, u8);

/// A record, or why it was skipped.
type Found = Result<Record, Skipped>;

/// The records of a file, in the order of time.
pub(crate) struct ChunkReader {
    source: Source,
    strings: Strings,
    lanes: Vec<LaneReader>,
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
    /// Why reading stopped.
    failed: Option<io::Error>,
}

/// The chunks of one writer.
#[derive(Default)]
struct LaneReader {
    /// The chunks that follow the present one, by their number in the file.
    chunks: VecDeque<u32>,
    present: Option<u32>,
    /// The words of the present chunk; empty if they must be read (again).
    words: Vec<u64>,
    /// The next word to be read.
    at: usize,
    tid: u32,
    /// What the next records leave out.
    before: Before,
    /// The time of the latest record that was returned.
    last: Nanos,
    /// The next record, and its position in bytes from the start of the file.
    head: Option<(u64, Head)>,
    /// The next record, if it is a call, packed.
    packed: Vec<u64>,
}

/// The next record of a lane.
#[derive(Clone)]
enum Head {
    /// A call, which is packed.
    Call(Key),
    Other(Box<Found>),
}

impl Head {
    fn key(&self) -> Key {
        match self {
            Self::Call(key) => *key,
            Self::Other(found) => match &**found {
                Ok(Record::Note(time, _) | Record::Descriptors(time, _) | Record::Finding(time, _)) => (*time, 1),
                Ok(Record::Executed(executed)) => (executed.end, 1),
                Ok(Record::Synchronization(by)) => (by.time, 1),
                _ => (Nanos(0), 0),
            },
        }
    }
}

/// The key of a call.
fn key_of(call: &PackedCall<'_>) -> Key {
    (call.time(), rank_of(call))
}

impl ChunkReader {
    /// Begins to read a file. Records from `until` on are not returned yet; `None` reads to the end of the file.
    pub(crate) fn open(source: Source, until: Option<Nanos>) -> io::Result<Self> {
        let mut reader = Self {
            source,
            strings: Strings::default(),
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
            failed: None,
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
                    // Most files have one, and a run may have very many files.
                    self.lanes.reserve_exact(new.max(1));
                    self.lanes.push(LaneReader::default());
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
        let mut words = Vec::new();
        self.source.words_at(u64::from(chunk) * CHUNK_BYTES, 2, &mut words)?;
        match next(&words, 0, 0, &mut Strings::default(), &mut Before::default()).0 {
            Item::Head(number) => Ok(Some(number)),
            // A chunk with a damaged head is read for itself.
            _ if words.iter().any(|word| *word != UNWRITTEN) => Ok(Some(u32::MAX - chunk)),
            _ => Ok(None),
        }
    }

    /// Finds the next record of a lane that is not in the queue, and puts the lane into it or among those that wait.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        match self.next_of(index)? {
            Some(key) => self.queue.push(Reverse((key, index))),
            None => self.idle.push(index),
        }
        if self.lanes.len() > LANES_KEPT
            && let Some(lane) = self.lanes.get_mut(index)
        {
            lane.words = Vec::new();
        }
        Ok(())
    }

    /// Finds the next record of a lane.
    fn next_of(&mut self, index: usize) -> io::Result<Option<Key>> {
        loop {
            let Some(lane) = self.lanes.get_mut(index) else { return Ok(None) };
            if lane.head.is_none() {
                lane.decode(&mut self.strings, self.until.is_some());
            }
            if let Some((_, head)) = &lane.head {
                return Ok(Some(head.key()));
            }
            let wanted = if lane.words.is_empty() && lane.present.is_some() {
                lane.present
            } else if lane.is_at_end() || !lane.chunks.is_empty() {
                let Some(chunk) = lane.chunks.pop_front() else { return Ok(None) };
                (lane.present, lane.at, lane.before) = (Some(chunk), 0, Before::default());
                self.read += CHUNK_BYTES;
                Some(chunk)
            } else {
                None
            };
            let Some(chunk) = wanted else { return Ok(None) };
            self.source.words_at(u64::from(chunk) * CHUNK_BYTES, CHUNK, &mut lane.words)?;
            if lane.words.len() <= lane.at {
                lane.present = None;
            }
        }
    }

    /// The first lane in the queue and the key of its record, if that is returned now.
    fn first(&self) -> Option<(Key, usize)> {
        let Reverse(first) = *self.queue.peek()?;
        (self.failed.is_none() && self.until.is_none_or(|until| first.0.0 < until)).then_some(first)
    }

    /// The next record with its position, in bytes from the start of the file.
    pub(crate) fn next(&mut self) -> Option<io::Result<(u64, Found)>> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let (key, index) = self.first()?;
        self.queue.pop();
        let lane = self.lanes.get_mut(index)?;
        let (offset, head) = lane.head.take()?;
        let found = match head {
            Head::Call(_) => Ok(PackedCall::first_of(&lane.packed)?.record()),
            Head::Other(found) => *found,
        };
        self.late |= lane.returned(key, &mut self.last);
        self.closed |= matches!(found, Ok(Record::Footer(_)));
        Some(self.advance(index).map(|()| (offset, found)))
    }

    /// Adds the next records to `words` as long as they are calls, at most `limit`, and passes each to `each`. Returns
    /// their number.
    pub(crate) fn next_calls(
        &mut self,
        words: &mut Vec<u64>,
        limit: usize,
        mut each: impl FnMut(&PackedCall<'_>),
    ) -> usize {
        let mut count = 0;
        while count < limit
            && let Some((key, index)) = self.first()
            && let Some(lane) = self.lanes.get_mut(index)
            && let Some((_, Head::Call(_))) = lane.head
            && let Some(call) = PackedCall::first_of(&lane.packed)
        {
            each(&call);
            words.extend_from_slice(&lane.packed);
            lane.head = None;
            count += 1;
            self.late |= lane.returned(key, &mut self.last);
            self.queue.pop();
            match self.run_on(index, words, &mut count, limit, &mut each) {
                Some(key) => self.queue.push(Reverse((key, index))),
                None => self.failed = self.advance(index).err(),
            }
        }
        count
    }

    /// Adds further calls of a lane that is not in the queue, as long as they come before the records of all others.
    /// Returns the key of a call that does not, which is the head of the lane then; `None` where the words in memory go
    /// on otherwise.
    fn run_on(
        &mut self,
        index: usize,
        words: &mut Vec<u64>,
        count: &mut usize,
        limit: usize,
        each: &mut impl FnMut(&PackedCall<'_>),
    ) -> Option<Key> {
        let bound = self.queue.peek().map(|Reverse(bound)| *bound);
        let until = self.until.unwrap_or(Nanos(u64::MAX));
        let lane = self.lanes.get_mut(index)?;
        loop {
            let start = words.len();
            let used = next_call(&lane.words, lane.at, lane.tid, &self.strings, &mut lane.before, words)?;
            let offset = lane.offset();
            lane.at += used;
            let packed = words.get(start..).unwrap_or_default();
            let call = PackedCall::first_of(packed)?;
            let key = key_of(&call);
            if *count >= limit || key.0 >= until || bound.is_some_and(|bound| (key, index) > bound) {
                lane.packed.clear();
                lane.packed.extend_from_slice(packed);
                words.truncate(start);
                lane.head = Some((offset, Head::Call(key)));
                return Some(key);
            }
            each(&call);
            *count += 1;
            self.late |= lane.returned(key, &mut self.last);
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
    pub(crate) fn strings(&mut self) -> Strings {
        self.strings.share();
        self.strings.clone()
    }

    /// Frees what can be read again, and closes the file's descriptor until the next read.
    pub(crate) fn release(&mut self) {
        self.source.release(0);
        for lane in &mut self.lanes {
            lane.words = Vec::new();
            lane.packed.shrink_to_fit();
        }
    }

    /// A reader of the rest of the file to its end, with another source of the same file.
    pub(crate) fn remainder(&self, source: Source) -> io::Result<Self> {
        let mut rest = Self {
            source,
            strings: self.strings.clone(),
            lanes: self.lanes.iter().map(LaneReader::remainder).collect(),
            numbers: self.numbers.clone(),
            queue: self.queue.clone(),
            idle: self.idle.clone(),
            failed: None,
            ..*self
        };
        rest.grow(None)?;
        Ok(rest)
    }
}

impl LaneReader {
    /// Finds the next record in the words that are in memory. In a file that is still being written, it stops where a
    /// record may still appear.
    fn decode(&mut self, strings: &mut Strings, growing: bool) {
        let waits = growing && self.chunks.is_empty();
        while let Some(first) = self.words.get(self.at).copied() {
            let offset = self.offset();
            self.packed.clear();
            if let Some(used) = next_call(&self.words, self.at, self.tid, strings, &mut self.before, &mut self.packed) {
                self.at += used;
                self.head = PackedCall::first_of(&self.packed).map(|call| (offset, Head::Call(key_of(&call))));
                return;
            }
            if waits && is_hole(first) {
                return;
            }
            let (item, count) = next(&self.words, self.at, self.tid, strings, &mut self.before);
            let found = match item {
                Item::Unwritten | Item::Claimed | Item::Head(_) | Item::Other => None,
                Item::Thread(tid) => {
                    self.tid = tid;
                    None
                }
                Item::Record(record) => (!pack(&record, &mut self.packed)).then_some(Ok(record)),
                Item::Damaged(why) => Some(Err(Skipped { offset, line: 0, why })),
            };
            self.at += count;
            let call = PackedCall::first_of(&self.packed).map(|call| Head::Call(key_of(&call)));
            self.head = call.or(found.map(|found| Head::Other(Box::new(found)))).map(|head| (offset, head));
            if self.head.is_some() {
                return;
            }
        }
    }

    /// Notes that a record of the lane is returned, where `last` is the latest time of all lanes. Whether it is late.
    #[inline]
    fn returned(&mut self, (time, _): Key, last: &mut Nanos) -> bool {
        if time == Nanos(0) {
            return false;
        }
        // In a lane, a record of a signal handler may stand before an earlier one: that is its order, whenever it is
        // read.
        let is_late = time < *last && time >= self.last;
        (*last, self.last) = ((*last).max(time), self.last.max(time));
        is_late
    }

    /// The position of the next word, in bytes from the start of the file.
    fn offset(&self) -> u64 {
        self.present.map_or(0, |chunk| u64::from(chunk) * CHUNK_BYTES) + self.at as u64 * WORD
    }

    /// Whether all words of the present chunk were read, or there is none.
    fn is_at_end(&self) -> bool {
        self.present.is_none() || (!self.words.is_empty() && self.at >= self.words.len())
    }

    /// A copy at this position, without the words.
    fn remainder(&self) -> Self {
        let chunks = self.chunks.clone();
        let head = self.head.clone();
        let packed = self.packed.clone();
        Self { chunks, words: Vec::new(), before: self.before.clone(), head, packed, ..*self }
    }
}

/// Reads the record at a position of a file with these strings. Those of calls may need the record in front of them,
/// and are damaged then.
pub(crate) fn record_at(source: &mut Source, offset: u64, strings: &Strings) -> Option<Record> {
    let mut words = Vec::new();
    source.words_at(offset, ((CHUNK_BYTES - offset % CHUNK_BYTES) / WORD) as usize, &mut words).ok()?;
    match next(&words, 0, 0, &mut strings.clone(), &mut Before::default()).0 {
        Item::Record(record) => Some(record),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
