//! Reads records of the binary form, from files that may be cut short, damaged or not written by urscope.
//!
//! A function, a field or a record that this version does not know is skipped: the file itself names its strings.

use std::sync::{Arc, LazyLock};

use super::{ACCESSES, INLINE, MAGIC, Name, SYNCHRONIZATIONS, kind, kind_of, write::length};
use crate::api::{Function, ResultCode};
use crate::call::{Access, Enter, Executed, Exit, Nanos, Rows, Synchronization, Values};
use crate::trace::{Record, Why};
use crate::trace::{packed::Packing, records::Found};

/// The strings of a file, by the numbers that its records use. A copy costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Strings(Arc<Vec<Meaning>>);

/// What a string of a file stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Meaning {
    #[default]
    Unknown,
    /// The field of [`Values`] at this position.
    Field(u8),
    Name(Name),
    Function(Function),
}

impl Meaning {
    fn from_text(text: &[u8]) -> Self {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let field = Values::FIELDS.iter().position(|(field, _)| *field == text);
        if let Some(place) = field {
            return Self::Field(place as u8);
        }
        let name = Name::ALL.iter().find(|(_, name)| *name == text).map(|(name, _)| Self::Name(*name));
        name.or_else(|| Function::from_name(text).map(Self::Function)).unwrap_or_default()
    }
}

impl Strings {
    #[inline]
    fn get(&self, reference: u64) -> Meaning {
        self.0.get(reference as usize).copied().unwrap_or_default()
    }

    fn put(&mut self, index: u64, text: &[u8]) {
        let index = index as usize;
        let all = Arc::make_mut(&mut self.0);
        if all.len() <= index {
            all.resize(index + 1, Meaning::Unknown);
        }
        let mut meaning = Meaning::from_text(text);
        // The second string of this text is the category of calls that repeat values.
        if meaning == Meaning::Name(Name::Calls)
            && all.iter().enumerate().any(|(at, known)| at != index && *known == meaning)
        {
            meaning = Meaning::Name(Name::Repeats);
        }
        if let Some(place) = all.get_mut(index) {
            *place = meaning;
        }
    }

    /// Shares the memory of the strings that this version writes, if they are these: many files of one run need it
    /// once.
    pub fn share(&mut self) {
        static OWN: LazyLock<Strings> = LazyLock::new(Strings::own);
        if self.0 == OWN.0 {
            self.0 = Arc::clone(&OWN.0);
        }
    }

    /// The strings that this version writes.
    fn own() -> Self {
        let words = super::write::beginning(0, "");
        let mut own = Self::default();
        let mut at = 0;
        while at < words.len() {
            at += next(&words, at, 0, &mut own, &mut Before::default()).1;
        }
        own
    }
}

/// What the records of calls in front of a place in a chunk say to those behind it, which leave it out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// The number of the call whose record is directly in front; 0 where another record is there, or none. The return
    /// of the same call leaves it out, and so does the beginning of the call with the next number.
    call: u64,
    /// The bases of the chunk.
    bases: Vec<Base>,
}

/// The latest record of its kind in the chunk that leaves out nothing but the number: other records repeat its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Base {
    /// Its kind ([`kind_of`]).
    kind: u16,
    /// The position in the chunk.
    at: u16,
}

impl Before {
    /// Behind a record of the call with this number.
    #[cfg(test)]
    pub(super) fn of_call(call: u64) -> Self {
        Self { call, bases: Vec::new() }
    }

    /// As if the record directly in front was one of the call with this number.
    #[cfg(test)]
    pub(super) fn set_call(&mut self, call: u64) {
        self.call = call;
    }

    /// The number of a call that leaves it out; 0 if nothing says it.
    #[inline]
    const fn number(&self, begins: bool) -> u64 {
        if self.call == 0 { 0 } else { self.call.wrapping_add(begins as u64) }
    }

    /// The first word and the arguments of the base of a call.
    #[inline]
    fn base<'w>(&self, words: &'w [u64], function: Function, begins: bool) -> Option<(u64, &'w [u64])> {
        let kind = kind_of(function, begins);
        let base = self.bases.iter().find(|base| base.kind == kind)?;
        let (_, words) = words.split_at_checked(base.at.into())?;
        let [first, _, arguments @ ..] = words.get(..length(*words.first()?))? else { return None };
        Some((*first, arguments))
    }

    /// Passes the record of a call at a place.
    #[inline]
    fn pass(&mut self, call: &Call, at: usize) {
        self.call = if call.is_inner { 0 } else { call.number };
        if call.is_base {
            let kind = kind_of(call.function, call.begins);
            let at = at as u16;
            match self.bases.iter_mut().find(|base| base.kind == kind) {
                Some(base) => base.at = at,
                None => self.bases.push(Base { kind, at }),
            }
        }
    }
}

/// What stands at the beginning of some words.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "an item is consumed at once, and nearly all are records")]
pub enum Item {
    /// A word that nothing was written to.
    Unwritten,
    /// Room that a writer has claimed and not used yet: a record may appear there.
    Claimed,
    /// A chunk of the writer with this number begins.
    Head(u32),
    /// Further events come from this thread.
    Thread(u32),
    /// A record of urscope.
    Record(Record),
    /// A record of Fuchsia's format that is nothing to urscope, or a string.
    Other,
    /// Words that are not a record, or a record of urscope that is not complete.
    Damaged(Why),
}

/// Reads the record at a place of `words`, which are those of a chunk. Returns the number of its words, at least 1: all
/// further words where its length makes no sense. `tid` is the thread of the lane. `before` is what the records in
/// front of it in its chunk say, and becomes what they say with this one.
#[inline]
pub fn next(words: &[u64], at: usize, tid: u32, strings: &mut Strings, before: &mut Before) -> (Item, usize) {
    let number = std::mem::take(&mut before.call);
    let rest = words.get(at..).unwrap_or_default();
    let Some(first) = rest.first().copied() else { return (Item::Other, 1) };
    if first == MAGIC {
        return (Item::Other, 1);
    }
    let count = length(first);
    let Some((_, body)) = rest.get(..count).and_then(<[u64]>::split_first) else {
        let why = format!("a record of {count} words where {} are left", rest.len());
        return (Item::Damaged(Why::Damaged(why)), rest.len());
    };
    let item = match first & 0xf {
        kind::EVENT => {
            before.call = number;
            let mut values = Values::NONE;
            let set = |place, value| {
                values.set(place, value);
                true
            };
            let called = call(words, at, strings, before, set);
            before.call = 0;
            match called {
                Some(Ok(call)) => {
                    before.pass(&call, at);
                    Item::Record(call.record(tid, values))
                }
                Some(Err(why)) => damaged(why),
                None => event(first, body, tid, strings),
            }
        }
        kind::METADATA => match (first >> 16 & 0xf, body) {
            (kind::METADATA_HOLE, []) => Item::Unwritten,
            (kind::METADATA_HOLE, _) => Item::Claimed,
            (kind::METADATA_CHUNK, [lane]) => {
                *before = Before::default();
                Item::Head(*lane as u32)
            }
            _ => Item::Other,
        },
        kind::STRING => {
            strings.put(first >> 16 & 0x7fff, &bytes(body, (first >> 32 & 0x7fff) as usize));
            Item::Other
        }
        kind::THREAD => body.get(1).map_or(Item::Other, |tid| Item::Thread(*tid as u32)),
        kind::BLOB => blob(strings.get(first >> 16 & 0xffff), &bytes(body, (first >> 32 & 0x007f_ffff) as usize)),
        kind::KERNEL_OBJECT => named(first, body),
        _ => Item::Other,
    };
    (item, count)
}

/// Adds the record at a place of `words`, which are those of a chunk, to `to`, if it is that of a call; [`PackedCall`]
/// reads it there. Returns the number of its words, and takes `before`, as [`next`] does. `None`, without an effect,
/// says nothing about what follows: this is the fast path in front of [`next`].
///
/// [`PackedCall`]: crate::trace::packed::PackedCall
#[inline]
pub fn next_call(
    words: &[u64],
    at: usize,
    tid: u32,
    strings: &Strings,
    before: &mut Before,
    to: &mut Vec<u64>,
) -> Option<usize> {
    let mut packing = Packing::begin(to);
    let Some(Ok(call)) = call(words, at, strings, before, |place, value| packing.value(place, value)) else {
        packing.abandon();
        return None;
    };
    if call.is_inner {
        packing.abandon();
        return None;
    }
    if call.begins {
        packing.enter(call.function, call.number, tid, call.time);
    } else {
        packing.exit(call.function, call.number, tid, call.time, call.result);
    }
    before.pass(&call, at);
    Some(call.count)
}

/// What the event of a call says, besides the values.
struct Call {
    function: Function,
    begins: bool,
    is_inner: bool,
    time: Nanos,
    /// The number of the call, or of the one that it is inside of.
    number: u64,
    result: ResultCode,
    /// The number of its words.
    count: usize,
    is_base: bool,
}

impl Call {
    fn record(&self, tid: u32, values: Values) -> Record {
        let Self { function, time, number: call, result, .. } = *self;
        let enter = Enter { function, call, tid, time, values };
        let exit = Exit { function, call, tid, time, result, values };
        match (self.begins, self.is_inner) {
            (true, false) => Record::Enter(enter),
            (true, true) => Record::InnerEnter(enter),
            (false, false) => Record::Exit(exit),
            (false, true) => Record::InnerExit(exit),
        }
    }
}

/// The event of a call; `None` for another record. Passes each value to `set`: first those that it leaves out, with
/// their position in [`Values::FIELDS`]. An error says why the event is damaged, or that `set` has returned false.
#[inline(always)]
#[expect(clippy::inline_always, reason = "`set` is known then")]
fn call(
    words: &[u64],
    at: usize,
    strings: &Strings,
    before: &Before,
    mut set: impl FnMut(usize, u64) -> bool,
) -> Option<Result<Call, &'static str>> {
    let (_, rest) = words.split_at_checked(at)?;
    let first = *rest.first().filter(|first| **first & 0xf == kind::EVENT)?;
    let count = length(first);
    let (Meaning::Name(category), Meaning::Function(function)) =
        (strings.get(first >> 32 & 0xffff), strings.get(first >> 48))
    else {
        return None;
    };
    let begins = match first >> 16 & 0xf {
        kind::BEGIN => true,
        kind::END => false,
        _ => return None,
    };
    if !matches!(category, Name::Calls | Name::Repeats | Name::Inner) {
        return None;
    }
    let [_, time, arguments @ ..] = rest.get(..count)? else { return Some(Err("an event without a time")) };
    let is_inner = category == Name::Inner;
    let mut number = if is_inner { 0 } else { before.number(begins) };
    let mut result = 0;
    let mut is_taken = true;
    let mut is_base = category == Name::Calls;
    let mut take = |meaning, value| match meaning {
        Meaning::Field(place) => is_taken &= set(usize::from(place), value),
        Meaning::Name(Name::Inside) if is_inner => number = value,
        Meaning::Name(Name::Call) if !is_inner => (number, is_base) = (value, false),
        Meaning::Name(Name::Result) => (result, is_base) = (value, false),
        _ => {}
    };
    if category == Name::Repeats {
        let Some((first, arguments)) = before.base(words, function, begins) else {
            return Some(Err("a call without the record that it repeats"));
        };
        numbers(first, arguments, strings, &mut take);
    }
    if !numbers(first, arguments, strings, &mut take) {
        return Some(Err("an argument that goes beyond its event"));
    }
    if number == 0 {
        return Some(Err(if is_inner { "a call inside of one without a number" } else { "a call without a number" }));
    }
    if !is_taken {
        return Some(Err("values that are not in order"));
    }
    let time = Nanos(*time);
    let result = ResultCode(result as u32);
    Some(Ok(Call { function, begins, is_inner, time, number, result, count, is_base }))
}

#[inline]
fn event(first: u64, body: &[u64], tid: u32, strings: &Strings) -> Item {
    let Some((time, arguments)) = body.split_first() else { return damaged("an event without a time") };
    let time = Nanos(*time);
    match (strings.get(first >> 32 & 0xffff), strings.get(first >> 48)) {
        (Meaning::Name(Name::Own), Meaning::Name(Name::Descriptors)) => {
            let mut open = 0;
            numbers(first, arguments, strings, &mut |_, value| open = value);
            Item::Record(Record::Descriptors(time, open))
        }
        (Meaning::Name(Name::Own), Meaning::Name(name))
            if let Some((kind, _)) = SYNCHRONIZATIONS.iter().find(|(_, its)| *its == name) =>
        {
            let kind = *kind;
            let mut queue = None;
            let mut event = None;
            numbers(first, arguments, strings, &mut |name, value| match name {
                Meaning::Field(place) if usize::from(place) == Values::QUEUE => queue = Some(value),
                Meaning::Name(Name::Event) => event = Some(value),
                _ => {}
            });
            Item::Record(Record::Synchronization(Synchronization { tid, time, kind, queue, event }))
        }
        (Meaning::Name(Name::Own), Meaning::Name(Name::Note)) => {
            let mut note = String::new();
            texts(first, arguments, strings, |_, text| note = text);
            Item::Record(Record::Note(time, note))
        }
        (Meaning::Name(Name::Own), Meaning::Name(name))
            if let Some((access, _)) = ACCESSES.iter().find(|(_, its)| *its == name) =>
        {
            executed(first, time, tid, *access, arguments, strings)
        }
        (Meaning::Name(Name::Own), Meaning::Name(Name::Finding)) => {
            let mut found = Found::default();
            texts(first, arguments, strings, |name, text| match name {
                Name::Rule => found.rule = text,
                Name::Severity => found.severity = text,
                Name::Message => found.message = text,
                _ => {}
            });
            Item::Record(Record::Finding(time, Box::new(found)))
        }
        _ => Item::Other,
    }
}

/// The execution of a command.
fn executed(first: u64, begin: Nanos, tid: u32, access: Access, arguments: &[u64], strings: &Strings) -> Item {
    let mut call = None;
    let mut memory = 0;
    let mut rows = Rows { offset: 0, length: 0, pitch: 0, count: 0 };
    let mut set = |name, value| match name {
        Meaning::Name(Name::Call) => call = Some(value),
        Meaning::Name(Name::Memory) => memory = value,
        Meaning::Field(place) if usize::from(place) == Values::OFFSET => rows.offset = value,
        Meaning::Field(place) if usize::from(place) == Values::SIZE => rows.length = value,
        Meaning::Name(Name::Pitch) => rows.pitch = value,
        Meaning::Name(Name::Rows) => rows.count = value,
        _ => {}
    };
    let is_whole = numbers(first, arguments, strings, &mut set);
    match (call, arguments.last()) {
        (Some(call), Some(end)) if is_whole && first >> 16 & 0xf == kind::COMPLETE => {
            Item::Record(Record::Executed(Executed { call, tid, begin, end: Nanos(*end), memory, rows, access }))
        }
        _ => damaged("an execution without its call or its end"),
    }
}

/// Calls `each` for every argument that is a number; false if one goes beyond the event.
#[inline]
fn numbers(first: u64, mut words: &[u64], strings: &Strings, each: &mut impl FnMut(Meaning, u64)) -> bool {
    for _ in 0..first >> 20 & 0xf {
        let Some(head) = words.first().copied() else { return false };
        let Some((argument, rest)) = words.split_at_checked(length(head).max(1)) else { return false };
        let name = strings.get(head >> 16 & 0xffff);
        match (head & 0xf, argument) {
            (kind::UINT32, _) => each(name, head >> 32),
            (kind::UINT64 | kind::POINTER, [_, value]) => each(name, *value),
            _ => {}
        }
        words = rest;
    }
    true
}

fn texts(first: u64, mut words: &[u64], strings: &Strings, mut each: impl FnMut(Name, String)) {
    for _ in 0..first >> 20 & 0xf {
        let Some(head) = words.first().copied() else { return };
        let Some((argument, rest)) = words.split_at_checked(length(head).max(1)) else { return };
        if let (kind::STRING_ARG, Meaning::Name(name)) = (head & 0xf, strings.get(head >> 16 & 0xffff)) {
            each(name, inline(head >> 32 & 0xffff, argument.get(1..).unwrap_or_default()));
        }
        words = rest;
    }
}

fn blob(name: Meaning, payload: &[u8]) -> Item {
    let text = Name::ALL.iter().find(|(known, _)| name == Meaning::Name(*known)).map_or("", |(_, text)| text);
    Record::named(text, payload).map_or(Item::Other, |record| record.map_or_else(Item::Damaged, Item::Record))
}

/// The name of a process or a thread.
fn named(first: u64, body: &[u64]) -> Item {
    let reference = first >> 24 & 0xffff;
    let [koid, rest @ ..] = body else { return damaged("the name of nothing") };
    let name = inline(reference, rest);
    match first >> 16 & 0xff {
        kind::PROCESS => Item::Record(Record::ProcessName(name)),
        kind::THREAD_OBJECT => Item::Record(Record::ThreadName(*koid as u32, name)),
        _ => Item::Other,
    }
}

/// A string that stands inline at the beginning of `words`; empty for one that does not.
fn inline(reference: u64, words: &[u64]) -> String {
    let length = if reference & INLINE == 0 { 0 } else { reference & !INLINE };
    String::from_utf8_lossy(&bytes(words, length as usize)).into_owned()
}

fn bytes(words: &[u64], length: usize) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).take(length).collect()
}

fn damaged(why: &str) -> Item {
    Item::Damaged(Why::Damaged(why.into()))
}
