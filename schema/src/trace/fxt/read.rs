//! Reads records of the binary form, from files that may be cut short, damaged or not written by urscope.
//!
//! A function, a field or a record that this version does not know is skipped: the file itself names its strings.

use std::sync::{Arc, LazyLock};

use super::{ACCESSES, Before, INLINE, MAGIC, Name, kind, write::length};
use crate::api::{Function, UrResult};
use crate::call::{Access, Enter, Executed, Exit, Nanos, Rows, Values};
use crate::trace::read::{Record, Why};
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
    fn of(text: &[u8]) -> Self {
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
        let mut meaning = Meaning::of(text);
        let is_second = |(at, known): (usize, &Meaning)| at != index && *known == Meaning::Name(Name::Calls);
        if meaning == Meaning::Name(Name::Calls) && all.iter().enumerate().any(is_second) {
            meaning = Meaning::Name(Name::CallsInContext);
        }
        if let Some(place) = all.get_mut(index) {
            *place = meaning;
        }
    }

    /// Shares the memory of the strings that this version writes, if they are these: many files of one run need it once.
    pub fn share(&mut self) {
        static OWN: LazyLock<Strings> = LazyLock::new(Strings::own);
        if self.0 == OWN.0 {
            self.0 = Arc::clone(&OWN.0);
        }
    }

    /// The strings that this version writes.
    fn own() -> Self {
        let (words, mut own) = (super::write::beginning(0, ""), Self::default());
        let mut rest = words.as_slice();
        while !rest.is_empty() {
            let (_, count) = next(rest, 0, &mut own, &mut Before::default());
            rest = rest.get(count..).unwrap_or_default();
        }
        own
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

/// Reads the record at the beginning of `words`, which go to the end of its chunk. Returns the number of its words, at
/// least 1: all words where its length makes no sense. `tid` is the thread of the lane. `before` is what the record in
/// front of it in its chunk says, and becomes what this one says.
#[inline]
pub fn next(words: &[u64], tid: u32, strings: &mut Strings, before: &mut Before) -> (Item, usize) {
    let in_front = std::mem::take(before);
    let Some(first) = words.first().copied() else { return (Item::Other, 1) };
    if first == MAGIC {
        return (Item::Other, 1);
    }
    let count = length(first);
    let Some((_, body)) = words.get(..count).and_then(<[u64]>::split_first) else {
        let why = format!("a record of {count} words where {} are left", words.len());
        return (Item::Damaged(Why::Damaged(why)), words.len());
    };
    let item = match first & 0xf {
        kind::EVENT => event(first, body, tid, strings, in_front),
        kind::METADATA => match (first >> 16 & 0xf, body) {
            (kind::METADATA_HOLE, []) => Item::Unwritten,
            (kind::METADATA_HOLE, _) => Item::Claimed,
            (kind::METADATA_CHUNK, [lane]) => Item::Head(*lane as u32),
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
    match &item {
        Item::Record(Record::Enter(enter)) => *before = in_front.behind_enter(enter),
        Item::Record(Record::Exit(exit)) => *before = in_front.behind_exit(exit),
        _ => {}
    }
    (item, count)
}

/// Adds the record at the beginning of `words` to `to`, if it is that of a call; [`PackedCall`] reads it there. Returns
/// the number of its words, and takes `before`, as [`next`] does. `None`, without an effect, says nothing about what
/// follows: this is the fast path in front of [`next`].
///
/// [`PackedCall`]: crate::trace::packed::PackedCall
#[inline]
pub fn next_call(words: &[u64], tid: u32, strings: &Strings, before: &mut Before, to: &mut Vec<u64>) -> Option<usize> {
    let first = *words.first().filter(|first| **first & 0xf == kind::EVENT)?;
    let [_, time, arguments @ ..] = words.get(..length(first))? else { return None };
    let (in_context, function) = call(first, strings)?;
    let begins = match first >> 16 & 0xf {
        kind::BEGIN => true,
        kind::END => false,
        _ => return None,
    };
    let (mut number, mut result, mut in_order) = (before.number(begins), 0, true);
    // The context stands where it would if it was not left out.
    let mut context = Some(before.context).filter(|_| in_context);
    let mut packing = Packing::begin(to);
    if in_context {
        packing.value(Values::VIA, before.via);
    }
    let mut set = |meaning, value| match meaning {
        Meaning::Field(place) => {
            let place = usize::from(place);
            if let Some(context) = context.take_if(|_| place >= Values::CONTEXT) {
                packing.value(Values::CONTEXT, context);
            }
            in_order &= packing.value(place, value);
        }
        Meaning::Name(Name::Call) => number = value,
        Meaning::Name(Name::Result) => result = value,
        _ => {}
    };
    let is_whole = numbers(first, arguments, strings, &mut set);
    if let Some(context) = context {
        packing.value(Values::CONTEXT, context);
    }
    if !is_whole || !in_order || number == 0 || (in_context && before.context == 0) {
        packing.abandon();
        return None;
    }
    if begins {
        if let (Some(context), Some(via)) = (packing.get(Values::CONTEXT), packing.get(Values::VIA)) {
            (before.context, before.via) = (context, via);
        }
        packing.enter(function, number, tid, Nanos(*time));
    } else {
        packing.exit(function, number, tid, Nanos(*time), UrResult(result as u32));
    }
    before.call = number;
    Some(length(first))
}

/// Whether an event of a call leaves out its context, and the function; `None` for another event.
#[inline]
fn call(first: u64, strings: &Strings) -> Option<(bool, Function)> {
    match (strings.get(first >> 32 & 0xffff), strings.get(first >> 48)) {
        (Meaning::Name(Name::Calls), Meaning::Function(function)) => Some((false, function)),
        (Meaning::Name(Name::CallsInContext), Meaning::Function(function)) => Some((true, function)),
        _ => None,
    }
}

#[inline]
fn event(first: u64, body: &[u64], tid: u32, strings: &Strings, before: Before) -> Item {
    let Some((time, arguments)) = body.split_first() else { return damaged("an event without a time") };
    let time = Nanos(*time);
    let (category, name) = (strings.get(first >> 32 & 0xffff), strings.get(first >> 48));
    match (category, name) {
        (Meaning::Name(Name::Calls | Name::CallsInContext | Name::Inner), Meaning::Function(function)) => {
            called(first, category, (function, time, tid), arguments, strings, before)
        }
        (Meaning::Name(Name::Own), Meaning::Name(Name::Descriptors)) => {
            let mut open = 0;
            numbers(first, arguments, strings, &mut |_, value| open = value);
            Item::Record(Record::Descriptors(time, open))
        }
        (Meaning::Name(Name::Own), Meaning::Name(Name::Note)) => {
            let mut note = String::new();
            texts(first, arguments, strings, |_, text| note = text);
            Item::Record(Record::Note(time, note))
        }
        (Meaning::Name(Name::Own), Meaning::Name(name))
            if let Some((access, _)) = ACCESSES.iter().find(|(_, its)| *its == name) =>
        {
            executed(first, (time, tid, *access), arguments, strings)
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

/// The event of a call. Those of calls inside of another one leave nothing out.
#[inline]
fn called(
    first: u64,
    category: Meaning,
    (function, time, tid): (Function, Nanos, u32),
    arguments: &[u64],
    strings: &Strings,
    before: Before,
) -> Item {
    let begins = match first >> 16 & 0xf {
        kind::BEGIN => true,
        kind::END => false,
        _ => return Item::Other,
    };
    let is_inner = category == Meaning::Name(Name::Inner);
    let in_context = category == Meaning::Name(Name::CallsInContext);
    let mut values = Values::NONE;
    if in_context {
        (values.context, values.via) = (Some(before.context), Some(before.via));
    }
    let (mut call, mut result) = (if is_inner { 0 } else { before.number(begins) }, 0);
    let mut set = |meaning, value| match meaning {
        Meaning::Field(place) => values.set(usize::from(place), value),
        Meaning::Name(Name::Inside) if is_inner => call = value,
        Meaning::Name(Name::Call) if !is_inner => call = value,
        Meaning::Name(Name::Result) => result = value,
        _ => {}
    };
    if !numbers(first, arguments, strings, &mut set) {
        return damaged("an argument that goes beyond its event");
    }
    if call == 0 {
        return damaged(if is_inner { "a call inside of one without a number" } else { "a call without a number" });
    }
    if in_context && before.context == 0 {
        return damaged("a call without the context that it refers to");
    }
    let (enter, result) = (Enter { function, call, tid, time, values }, UrResult(result as u32));
    let exit = Exit { function, call, tid, time, result, values };
    Item::Record(match (begins, is_inner) {
        (true, false) => Record::Enter(enter),
        (true, true) => Record::InnerEnter(enter),
        (false, false) => Record::Exit(exit),
        (false, true) => Record::InnerExit(exit),
    })
}

/// The execution of a command.
fn executed(first: u64, (begin, tid, access): (Nanos, u32, Access), arguments: &[u64], strings: &Strings) -> Item {
    let (mut call, mut memory, mut rows) = (None, 0, Rows { offset: 0, length: 0, pitch: 0, count: 0 });
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
