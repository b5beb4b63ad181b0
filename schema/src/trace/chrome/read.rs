//! Reads a trace line by line, from files that may be cut short, damaged or not written by urscope.
//!
//! A line that cannot be used is reported with its position and skipped; it never ends the reading. The length of a
//! line is limited, so that a hostile file cannot exhaust the memory.

use std::borrow::Cow;
use std::io::{self, BufRead};

use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::scan;
use crate::api::{Function, ResultCode};
use crate::call::{Access, Enter, Executed, Exit, Nanos, Rows, SyncKind, Synchronization, Values};
use crate::trace::record::{LINE_LIMIT, Record, Skipped, Why, unfit};
use crate::trace::{CALL, INNER, NOTE};

/// The memory that a reader keeps for the next line, in bytes.
const LINE_KEPT: usize = 1 << 12;

/// Reads a trace: one item per line, but for empty ones and brackets.
pub struct Reader<R> {
    input: R,
    line: Vec<u8>,
    offset: u64,
    number: u64,
    base: u64,
    closed: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from the start of a file.
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), offset: 0, number: 0, base: 0, closed: false }
    }

    /// A reader of another input, which begins where this one stands in its file.
    pub fn continued<S: BufRead>(&self, input: S) -> Reader<S> {
        let Self { offset, number, base, closed, .. } = *self;
        Reader { input, line: Vec::new(), offset, number, base, closed }
    }

    /// The input that it reads from.
    pub fn input_mut(&mut self) -> &mut R {
        &mut self.input
    }

    /// Frees the memory for a line, which has no content between two records.
    pub fn release(&mut self) {
        self.line = Vec::new();
    }

    /// Whether the closing bracket has been read.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// The number of bytes that have been read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Adds the next record to `words`, if it is that of a call and is complete in the input's buffer; [`PackedCall`]
    /// reads it there. `None` says nothing about what follows: this is the fast path in front of the iterator.
    ///
    /// [`PackedCall`]: crate::trace::packed::PackedCall
    #[inline]
    pub fn next_call(&mut self, words: &mut Vec<u64>) -> Option<()> {
        let ahead = self.input.fill_buf().ok()?;
        let line = ahead.get(..memchr(b'\n', ahead)?)?;
        scan::pack(line.strip_prefix(b",")?, self.base, words)?;
        let used = line.len() + 1;
        self.input.consume(used);
        self.offset += used as u64;
        self.number += 1;
        Some(())
    }

    /// Reads the next line into `self.line`, without the spaces around it. Gives its position, whether it was too long
    /// and whether a line end followed it.
    fn next_line(&mut self) -> io::Result<Option<(u64, bool, bool)>> {
        self.line.clear();
        let start = self.offset;
        let mut too_long = false;
        let mut ended = false;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            let (part, used) = match memchr(b'\n', chunk) {
                Some(end) => {
                    ended = true;
                    (chunk.get(..end).unwrap_or_default(), end + 1)
                }
                None => (chunk, chunk.len()),
            };
            let kept = if self.line.is_empty() { part.trim_ascii_start() } else { part };
            // The unwritten rest of a file is megabytes of spaces. Those beyond the limit need not be kept, and
            // anything after them is beyond the limit too.
            let room = LINE_LIMIT - self.line.len();
            too_long |= kept.trim_ascii_end().len() > room;
            self.line.extend_from_slice(kept.get(..room).unwrap_or(kept));
            self.input.consume(used);
            self.offset += used as u64;
            if ended {
                break;
            }
        }
        if self.offset == start {
            return Ok(None);
        }
        self.number += 1;
        // A run may have thousands of readers that wait at the unwritten rest of their files.
        self.line.truncate(self.line.trim_ascii_end().len());
        self.line.shrink_to(LINE_KEPT);
        Ok(Some((start, too_long, ended)))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Result<Record, Skipped>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (offset, too_long, ended) = match self.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            let skipped = |why| Some(Ok(Err(Skipped { offset, line: self.number, why })));
            if too_long {
                return skipped(Why::TooLong);
            }
            let text = strip(&self.line);
            match text {
                b"" | b"[" => continue,
                b"]" => {
                    self.closed = true;
                    continue;
                }
                _ => {}
            }
            let parsed = parse(text, self.base);
            if let Ok(Record::Header(header)) = &parsed {
                self.base = header.clock.base_ns;
            }
            return match parsed {
                Ok(record) => Some(Ok(Ok(record))),
                Err(Why::Damaged(_)) if !ended => skipped(Why::Torn),
                Err(why) => skipped(why),
            };
        }
    }
}

/// Removes what separates events: the bracket before the first one, commas and white space.
fn strip(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    let line = match line {
        [b',', rest @ ..] => rest.trim_ascii(),
        [b'[', b'{', ..] => line.get(1..).unwrap_or_default(),
        _ => line,
    };
    line.strip_suffix(b",").unwrap_or(line)
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    ph: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    cat: Cow<'a, str>,
    #[serde(default)]
    tid: Option<serde_json::Number>,
    #[serde(borrow, default)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    dur: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallArgs {
    call: u64,
    #[serde(default)]
    result: Option<u32>,
}

#[derive(Deserialize)]
struct InnerArgs {
    inside: u64,
    #[serde(default)]
    result: Option<u32>,
}

#[derive(Deserialize)]
struct OpenArgs {
    open: u64,
}

#[derive(Deserialize)]
struct SynchronizationArgs {
    #[serde(default, deserialize_with = "crate::values::word")]
    queue: Option<u64>,
    #[serde(default, deserialize_with = "crate::values::word")]
    event: Option<u64>,
}

#[derive(Deserialize)]
struct ExecutedArgs {
    call: u64,
    memory: u64,
    offset: u64,
    size: u64,
    pitch: u64,
    rows: u64,
}

#[derive(Deserialize)]
struct TextArgs<'a> {
    #[serde(borrow, alias = "name")]
    text: Cow<'a, str>,
}

fn parse(text: &[u8], base: u64) -> Result<Record, Why> {
    match scan::call(text, base) {
        Some(record) => Ok(record),
        None => parse_json(text, base),
    }
}

pub(super) fn parse_json(text: &[u8], base: u64) -> Result<Record, Why> {
    let text = std::str::from_utf8(text).map_err(|error| Why::Damaged(error.to_string()))?;
    let event: Event<'_> = serde_json::from_str(text).map_err(|error| Why::Damaged(error.to_string()))?;
    let args = event.args.map_or("{}", RawValue::get).as_bytes();
    match (event.ph.as_ref(), event.name.as_ref()) {
        ("M", "process_name") => Ok(Record::ProcessName(unfit::<TextArgs<'_>>(args)?.text.into_owned())),
        ("M", "thread_name") => Ok(Record::ThreadName(event.tid()?, unfit::<TextArgs<'_>>(args)?.text.into_owned())),
        ("i", "note") if event.cat == NOTE => {
            Ok(Record::Note(event.time(base)?, unfit::<TextArgs<'_>>(args)?.text.into_owned()))
        }
        ("C", "descriptors") if event.cat == NOTE => {
            Ok(Record::Descriptors(event.time(base)?, unfit::<OpenArgs>(args)?.open))
        }
        ("i", name)
            if event.cat == NOTE
                && let Some(kind) = SyncKind::ALL.into_iter().find(|kind| kind.name() == name) =>
        {
            let tid = event.tid()?;
            let time = event.time(base)?;
            let SynchronizationArgs { queue, event } = unfit(args)?;
            Ok(Record::Synchronization(Synchronization { tid, time, kind, queue, event }))
        }
        ("i", "finding") if event.cat == NOTE => Ok(Record::Finding(event.time(base)?, unfit(args)?)),
        ("X", name)
            if event.cat == NOTE
                && let Some(access) = Access::ALL.into_iter().find(|access| access.name() == name) =>
        {
            let ExecutedArgs { call, memory, offset, size, pitch, rows } = unfit(args)?;
            let tid = event.tid()?;
            let begin = event.time(base)?;
            let lasted = event.dur.and_then(|dur| nanos(dur.get()));
            let lasted = lasted.ok_or_else(|| Why::Unfit("no time in microseconds in dur".into()))?;
            let end = Nanos(begin.0.saturating_add(lasted));
            let rows = Rows { offset, length: size, pitch, count: rows };
            Ok(Record::Executed(Executed { call, tid, begin, end, memory, rows, access }))
        }
        (phase @ ("B" | "E"), name) if event.cat == CALL || event.cat == INNER => {
            let Some(function) = Function::from_name(name) else { return Ok(Record::Foreign) };
            let tid = event.tid()?;
            let time = event.time(base)?;
            let is_inner = event.cat == INNER;
            let (call, result) = if is_inner {
                let InnerArgs { inside, result } = unfit(args)?;
                (inside, result)
            } else {
                let CallArgs { call, result } = unfit(args)?;
                (call, result)
            };
            let values: Values = unfit(args)?;
            if phase == "B" {
                let enter = Enter { function, call, tid, time, values };
                return Ok(if is_inner { Record::InnerEnter(enter) } else { Record::Enter(enter) });
            }
            let result = ResultCode(result.ok_or_else(|| Why::Unfit("an exit without a result".into()))?);
            let exit = Exit { function, call, tid, time, result, values };
            Ok(if is_inner { Record::InnerExit(exit) } else { Record::Exit(exit) })
        }
        ("M", name) => Record::named(name, args).unwrap_or(Ok(Record::Foreign)),
        _ => Ok(Record::Foreign),
    }
}

impl Event<'_> {
    fn tid(&self) -> Result<u32, Why> {
        let tid = self.tid.as_ref().and_then(serde_json::Number::as_u64);
        tid.and_then(|tid| u32::try_from(tid).ok()).ok_or_else(|| Why::Unfit("no thread number in tid".into()))
    }

    /// The time: `ts` is in microseconds after `base`, with up to three decimals.
    fn time(&self, base: u64) -> Result<Nanos, Why> {
        let since = self.ts.and_then(|ts| nanos(ts.get()));
        let since = since.ok_or_else(|| Why::Unfit("no time in microseconds in ts".into()))?;
        Ok(Nanos(base.saturating_add(since)))
    }
}

/// Converts microseconds as text to nanoseconds. A double would lose the last digit after 52 days.
fn nanos(micros: &str) -> Option<u64> {
    let (whole, fraction) = micros.split_once('.').unwrap_or((micros, ""));
    if fraction.len() > 3 {
        return None;
    }
    let nanos = fraction
        .bytes()
        .chain(*b"000")
        .take(3)
        .try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0')))?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(nanos)
}
