//! Makes records of the binary form.
//!
//! The record of a call is made by a function that is run twice: with [`Measure`] it gives the first word, which
//! contains the length, and then it gives the other words to where they are kept. So the caller can claim room before
//! anything is written.

#![expect(clippy::inline_always, reason = "where the values are known to be absent, nothing is left of them")]

use super::{ACCESSES, CHUNK, HEAD, INLINE, LONGEST, MAGIC, Name, SYNCHRONIZATIONS, hole, kind, words_of};
use crate::api::Function;
use crate::call::{Enter, Executed, Exit, Nanos, Shape, Synchronization, Values};
use crate::trace::chrome;
use crate::trace::records::{Found, Named};

/// The most arguments of an event: the field of their number has 4 bits.
pub const ARGUMENTS: u64 = 15;

/// The longest text in bytes that an event keeps.
const TEXT: usize = 1 << 13;

/// Takes the words of a record behind its first one, in order.
pub trait Sink {
    /// Takes the next word.
    fn word(&mut self, word: u64);
}

/// Takes no word, to learn the first word of a record.
pub struct Measure;

impl Sink for Measure {
    #[inline]
    fn word(&mut self, _: u64) {}
}

impl Sink for Vec<u64> {
    fn word(&mut self, word: u64) {
        self.push(word);
    }
}

/// The number of words of the record with this first word.
#[inline]
pub const fn length(first: u64) -> usize {
    (first >> 4 & LONGEST as u64) as usize
}

/// The record of a call that begins. Returns its first word; `None` if it has more than [`ARGUMENTS`] arguments.
pub fn enter(enter: &Enter, to: &mut impl Sink) -> Option<u64> {
    begin(enter, Name::Call, Name::Calls, Event::new(to, enter.time))
}

/// The record of a call that begins, without its number. It must stand behind a record of the call before it.
#[inline(always)]
pub fn short_enter(of: Function, time: Nanos, values: &Values, to: &mut impl Sink) -> Option<u64> {
    short(kind::BEGIN, of, time, values, to)
}

#[inline(always)]
fn short(event_kind: u64, of: Function, time: Nanos, values: &Values, to: &mut impl Sink) -> Option<u64> {
    let mut event = Event::new(to, time);
    event.values(values);
    event.first(event_kind, Name::Calls, function(of))
}

/// The record of a call that begins inside of the call with its number. Leaves nothing out, and says nothing to the
/// next record.
pub fn inner_enter(enter: &Enter, to: &mut impl Sink) -> Option<u64> {
    begin(enter, Name::Inside, Name::Inner, Event::new(to, enter.time))
}

fn begin(enter: &Enter, number: Name, category: Name, mut event: Event<'_, impl Sink>) -> Option<u64> {
    event.number(reference(number), enter.call);
    event.values(&enter.values);
    event.first(kind::BEGIN, category, function(enter.function))
}

/// The record of a call that returns, likewise. A call without a result has returned success.
pub fn exit(exit: &Exit, to: &mut impl Sink) -> Option<u64> {
    end(exit, Name::Call, Name::Calls, Event::new(to, exit.time))
}

/// The record of a call that has returned success, without its number. It must stand behind another record of the call.
#[inline(always)]
pub fn short_exit(of: Function, time: Nanos, values: &Values, to: &mut impl Sink) -> Option<u64> {
    short(kind::END, of, time, values, to)
}

/// The first word of the record in `words`, of [`short_enter`] or [`short_exit`], without its arguments: it repeats all
/// those of the latest such record in the chunk, of the same function, that was written whole.
#[inline]
pub const fn repetition(first: u64) -> u64 {
    // The number of words is behind 4 bits, that of the arguments behind 20, and the category behind 32.
    let categories = (reference(Name::Repeats) ^ reference(Name::Calls)) << 32;
    (first & !0x00f0_fff0 ^ categories) | 2 << 4
}

/// The record in `words` without the values that `base` has, too, as for [`repetition`], where not all are the same.
/// Returns its first word. `None` if the fields are others, or no value is left out.
pub fn repeat(words: &[u64], base: &[u64], to: &mut impl Sink) -> Option<u64> {
    let ([first, time, arguments @ ..], [_, _, its @ ..]) = (words, base) else { return None };
    to.word(*time);
    let whole = arguments.len();
    let mut arguments = arguments;
    let mut base = its;
    let mut first = repetition(*first);
    while let ([head, ..], [its, ..]) = (arguments, base) {
        let size = length(*head).max(1);
        let (argument, rest) = arguments.split_at_checked(size)?;
        let (in_base, rest_of_base) = base.split_at_checked(size)?;
        if (head ^ its) as u32 != 0 {
            return None;
        }
        if argument != in_base {
            for word in argument {
                to.word(*word);
            }
            first += (size as u64) << 4 | 1 << 20;
        }
        (arguments, base) = (rest, rest_of_base);
    }
    (arguments.is_empty() && base.is_empty() && length(first) - 2 < whole).then_some(first)
}

/// The record of a call that returns inside of the call with its number, likewise.
pub fn inner_exit(exit: &Exit, to: &mut impl Sink) -> Option<u64> {
    end(exit, Name::Inside, Name::Inner, Event::new(to, exit.time))
}

fn end(exit: &Exit, number: Name, category: Name, mut event: Event<'_, impl Sink>) -> Option<u64> {
    event.number(reference(number), exit.call);
    if !exit.result.is_success() {
        event.number(reference(Name::Result), u64::from(exit.result.0));
    }
    event.values(&exit.values);
    event.first(kind::END, category, function(exit.function))
}

/// What orders commands, or shows that some have completed, an instant on the thread. Returns its first word.
pub fn synchronization(synchronization: &Synchronization, to: &mut impl Sink) -> Option<u64> {
    let Synchronization { time, kind, queue, event, .. } = *synchronization;
    let mut record = Event::new(to, time);
    for (name, value) in [(field(Values::QUEUE), queue), (reference(Name::Event), event)] {
        if let Some(value) = value {
            record.number(name, value);
        }
    }
    let (_, name) = SYNCHRONIZATIONS.into_iter().find(|(its, _)| *its == kind)?;
    record.first(kind::INSTANT, Name::Own, reference(name))
}

/// The execution of a command, which Perfetto draws as a bar. Returns its first word.
pub fn executed(executed: &Executed, to: &mut impl Sink) -> Option<u64> {
    let Executed { call, begin, end, memory, rows, access, .. } = *executed;
    let mut event = Event::new(to, begin);
    event.number(reference(Name::Call), call);
    event.number(reference(Name::Memory), memory);
    event.number(field(Values::OFFSET), rows.offset);
    event.number(field(Values::SIZE), rows.length);
    event.number(reference(Name::Pitch), rows.pitch);
    event.number(reference(Name::Rows), rows.count);
    event.word(end.0);
    let (_, name) = ACCESSES.into_iter().find(|(its, _)| *its == access)?;
    event.first(kind::COMPLETE, Name::Own, reference(name))
}

/// The number of open descriptors, as a counter that Perfetto draws.
pub fn descriptors(time: Nanos, open: u64) -> Vec<u64> {
    whole(|words| {
        let mut event = Event::new(words, time);
        event.number(reference(Name::Open), open);
        // The number of the counter.
        event.word(0);
        event.first(kind::COUNTER, Name::Own, reference(Name::Descriptors))
    })
    .unwrap_or_else(|| vec![hole(1)])
}

/// A note of urscope's own, an instant on the thread.
pub fn note(time: Nanos, text: &str) -> Vec<u64> {
    instant(time, Name::Note, &[(Name::Text, text)])
}

/// A finding of the validation layer, an instant on the thread of the call.
pub fn finding(time: Nanos, found: &Found) -> Vec<u64> {
    let texts = [(Name::Rule, &found.rule), (Name::Severity, &found.severity), (Name::Message, &found.message)];
    instant(time, Name::Finding, &texts.map(|(name, text)| (name, text.as_str())))
}

/// A record that is not of a call: its fields as JSON, in a blob. `None` if it is too long for a chunk.
pub fn record<R: Named>(record: &R) -> Option<Vec<u64>> {
    let (name, _) = Name::ALL.iter().find(|(_, text)| *text == R::NAME)?;
    let text = serde_json::to_string(record).ok()?;
    whole(|words| blob(*name, &text, words))
}

/// The footer, from its fields as JSON ([`End::args`](chrome::write::End::args)). Returns its first word.
pub fn footer(fields: &str, to: &mut impl Sink) -> Option<u64> {
    blob(Name::Footer, fields, to)
}

/// The number of records that are lost so far, with the fields of [`gap`](chrome::write::gap). Returns its first
/// word.
pub fn gap(lost: u64, to: &mut impl Sink) -> Option<u64> {
    blob(Name::Gap, std::str::from_utf8(&chrome::write::gap(lost)).ok()?, to)
}

fn blob(name: Name, text: &str, to: &mut impl Sink) -> Option<u64> {
    let words = 1 + words_of(text.len());
    text_words(text).for_each(|word| to.word(word));
    let sizes = (words as u64) << 4 | (text.len() as u64) << 32;
    (words <= CHUNK - HEAD).then_some(kind::BLOB | sizes | reference(name) << 16 | kind::DATA << 55)
}

/// The beginning of a file: the magic number, the unit of time, the strings that records refer to, and the name of the
/// process.
pub fn beginning(pid: u32, process: &str) -> Vec<u64> {
    let mut words = vec![MAGIC, kind::INITIALIZATION | 2 << 4, NANOS_PER_SECOND];
    for (index, text) in strings() {
        let length = (1 + words_of(text.len())) as u64;
        words.push(kind::STRING | length << 4 | index << 16 | (text.len() as u64) << 32);
        words.extend(text_words(text));
    }
    let process = limited(process, TEXT);
    let length = (2 + words_of(process.len())) as u64;
    words.push(kind::KERNEL_OBJECT | length << 4 | kind::PROCESS << 16 | inline(process) << 24);
    words.push(u64::from(pid));
    words.extend(text_words(process));
    words
}

/// The head of a chunk of the writer number `lane`.
pub const fn head(lane: u32) -> [u64; 2] {
    [kind::METADATA | 2 << 4 | kind::METADATA_CHUNK << 16, lane as u64]
}

/// The thread that all further events of the lane come from.
pub const fn thread(pid: u32, tid: u32) -> [u64; 3] {
    [kind::THREAD | 3 << 4 | THREAD_INDEX << 16, pid as u64, tid as u64]
}

/// The name of a thread. Returns the first word of the record.
pub fn thread_name(pid: u32, tid: u32, name: &str, to: &mut impl Sink) -> u64 {
    let name = limited(name, TEXT);
    let length = (4 + words_of(name.len())) as u64;
    to.word(u64::from(tid));
    text_words(name).for_each(|word| to.word(word));
    to.word(kind::KOID | 2 << 4 | reference(Name::Process) << 16);
    to.word(u64::from(pid));
    kind::KERNEL_OBJECT | length << 4 | 1 << 40 | kind::THREAD_OBJECT << 16 | inline(name) << 24
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The number by which all events of a lane name their thread.
const THREAD_INDEX: u64 = 1;

/// An event while its words are made.
struct Event<'a, S: Sink> {
    to: &'a mut S,
    /// The number of words, including the first one.
    words: u64,
    arguments: u64,
}

impl<'a, S: Sink> Event<'a, S> {
    #[inline]
    fn new(to: &'a mut S, time: Nanos) -> Self {
        let mut event = Self { to, words: 1, arguments: 0 };
        event.word(time.0);
        event
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.to.word(word);
        self.words += 1;
    }

    #[inline(always)]
    fn number(&mut self, name: u64, value: u64) {
        self.arguments += 1;
        if value < 1 << 32 {
            self.word(kind::UINT32 | 1 << 4 | name << 16 | value << 32);
        } else {
            self.word(kind::UINT64 | 2 << 4 | name << 16);
            self.word(value);
        }
    }

    #[inline(always)]
    fn values(&mut self, values: &Values) {
        values.for_each_place(|place, shape, value| match shape {
            Shape::Number => self.number(field(place), value),
            Shape::Hex => {
                self.arguments += 1;
                self.word(kind::POINTER | 2 << 4 | field(place) << 16);
                self.word(value);
            }
        });
    }

    fn text(&mut self, name: Name, text: &str) {
        self.arguments += 1;
        let text = limited(text, TEXT);
        let length = (1 + words_of(text.len())) as u64;
        self.word(kind::STRING_ARG | length << 4 | reference(name) << 16 | inline(text) << 32);
        text_words(text).for_each(|word| self.word(word));
    }

    #[inline(always)]
    fn first(self, event: u64, category: Name, name: u64) -> Option<u64> {
        let sizes = self.words << 4 | self.arguments << 20;
        let names = reference(category) << 32 | name << 48;
        let fits = self.arguments <= ARGUMENTS && self.words <= (CHUNK - HEAD) as u64;
        fits.then_some(kind::EVENT | sizes | event << 16 | THREAD_INDEX << 24 | names)
    }
}

fn instant(time: Nanos, name: Name, texts: &[(Name, &str)]) -> Vec<u64> {
    whole(|words| {
        let mut event = Event::new(words, time);
        for (name, text) in texts {
            event.text(*name, text);
        }
        event.first(kind::INSTANT, Name::Own, reference(name))
    })
    .unwrap_or_else(|| vec![hole(1)])
}

/// A whole record; `None` where it does not fit.
fn whole(make: impl FnOnce(&mut Vec<u64>) -> Option<u64>) -> Option<Vec<u64>> {
    let mut words = vec![0];
    let first = make(&mut words)?;
    words.first_mut().into_iter().for_each(|place| *place = first);
    Some(words)
}

/// The strings of every file, with the numbers by which records refer to them.
fn strings() -> impl Iterator<Item = (u64, &'static str)> {
    let fields = Values::FIELDS.iter().enumerate().map(|(place, (text, _))| (field(place), *text));
    let names = Name::ALL.iter().map(|(name, text)| (reference(*name), *text));
    fields.chain(names).chain(Function::ALL.iter().map(|of| (function(*of), of.name())))
}

#[inline]
const fn field(place: usize) -> u64 {
    1 + place as u64
}

#[inline]
const fn reference(name: Name) -> u64 {
    field(Values::FIELDS.len()) + name as u64
}

#[inline]
const fn function(of: Function) -> u64 {
    field(Values::FIELDS.len()) + Name::ALL.len() as u64 + of as u64
}

/// The reference to a text that follows inline.
const fn inline(text: &str) -> u64 {
    if text.is_empty() { 0 } else { INLINE | text.len() as u64 }
}

fn text_words(text: &str) -> impl Iterator<Item = u64> {
    text.as_bytes().chunks(size_of::<u64>()).map(|bytes| {
        let mut word = [0; size_of::<u64>()];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    })
}

fn limited(text: &str, length: usize) -> &str {
    text.get(..text.floor_char_boundary(length)).unwrap_or_default()
}
