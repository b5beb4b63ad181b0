//! Records of calls in few words: only the values that a record has take room.
//!
//! Most values of a call are absent, and [`Values`] has room for all. An analysis keeps the records between reading and
//! use in this form. A record is four words and its values, in the order of [`Values::FIELDS`].

use super::Record;
use crate::api::{Effect, Function, ResultCode};
use crate::call::{Enter, Exit, Fields, Nanos, Values};
use crate::operation::{Answer, Begun, Operation, Returned};

/// What the first byte of a record says: the call begins, or it returns.
const ENTER: u64 = 1;
const EXIT: u64 = 2;

/// Added to these where the call is inside of another one.
const INNER: u64 = 2;

/// The first words of a record.
type Head = [u64; 4];

/// A record of a call, at the front of some words.
#[derive(Clone, Copy, Debug)]
pub struct PackedCall<'w> {
    head: &'w Head,
    values: &'w [u64],
    function: Function,
}

impl<'w> PackedCall<'w> {
    /// The record at the front of `words`; `None` if there is none.
    #[inline]
    pub fn first_of(words: &'w [u64]) -> Option<Self> {
        let (head, rest) = words.split_first_chunk()?;
        let first = head[0];
        if !(ENTER..=EXIT + INNER).contains(&(first & 0xff)) {
            return None;
        }
        let function = *Function::ALL.get((first >> 8 & 0xffff) as usize)?;
        Some(Self { head, values: rest.get(..(first >> 24 & 0xff) as usize)?, function })
    }

    /// The number of its words.
    #[inline]
    pub fn size(&self) -> usize {
        self.head.len() + self.values.len()
    }

    /// Whether the call begins; otherwise it returns.
    #[inline]
    pub fn enters(&self) -> bool {
        self.head[0] & 1 == ENTER
    }

    /// Whether the call is inside of another one, whose number it has then.
    #[inline]
    pub fn is_inner(&self) -> bool {
        self.head[0] & 0xff > EXIT
    }

    /// The function.
    #[inline]
    pub fn function(&self) -> Function {
        self.function
    }

    /// The thread.
    #[inline]
    pub fn tid(&self) -> u32 {
        (self.head[0] >> 32) as u32
    }

    /// When the call began or returned.
    #[inline]
    pub fn time(&self) -> Nanos {
        Nanos(self.head[1])
    }

    /// The call that begins, decoded.
    #[inline]
    pub fn begun(&self) -> Begun {
        // Without a zero, flags and a description, nothing is missing and nothing undefined.
        let is_described = matches!(self.function.effect(), Effect::Creates(_));
        let may_lack = is_described || self.values.contains(&0) || self.flags().is_some();
        if may_lack {
            let enter = self.enter();
            return enter.begun(&enter.nulls());
        }
        let function = self.function;
        let [_, _, call, _] = *self.head;
        let tid = self.tid();
        let time = self.time();
        let operation = Operation::from_call(function, self);
        Begun { function, call, tid, time, stack: self.stack(), operation, fault: None }
    }

    /// The call that has returned, decoded.
    #[inline]
    pub fn returned(&self) -> Returned {
        let function = self.function;
        let [_, _, call, places] = *self.head;
        let tid = self.tid();
        let time = self.time();
        let result = ResultCode((places >> 32) as u32);
        Returned { function, call, tid, time, result, answer: Answer::from_call(function, self) }
    }

    /// The record of a call that begins.
    #[inline]
    pub fn enter(&self) -> Enter {
        let [_, time, call, places] = *self.head;
        let values = Values::unpacked(places, self.values);
        Enter { function: self.function, call, tid: self.tid(), time: Nanos(time), values }
    }

    /// The record of a call that returns.
    #[inline]
    pub fn exit(&self) -> Exit {
        let [_, time, call, places] = *self.head;
        let values = Values::unpacked(places, self.values);
        let result = ResultCode((places >> 32) as u32);
        Exit { function: self.function, call, tid: self.tid(), time: Nanos(time), result, values }
    }

    /// The number of the call in its process, or of the one that it is inside of.
    #[inline]
    pub fn number(&self) -> u64 {
        self.head[2]
    }

    /// Where the value at a position of [`Values::FIELDS`] is among the values, if it is there.
    #[inline]
    fn index_of(&self, place: usize) -> Option<usize> {
        let [.., places] = *self.head;
        let bit = 1_u64 << place;
        (places & bit != 0).then(|| (places & (bit - 1)).count_ones() as usize)
    }

    /// The call as a record of a trace.
    pub fn record(&self) -> Record {
        match (self.enters(), self.is_inner()) {
            (true, false) => Record::Enter(self.enter()),
            (false, false) => Record::Exit(self.exit()),
            (true, true) => Record::InnerEnter(self.enter()),
            (false, true) => Record::InnerExit(self.exit()),
        }
    }
}

/// Changes the number of the call at the front of `words`, and by `command` that of the command which it names, if it
/// executes command lists.
#[inline]
pub fn renumber(words: &mut [u64], number: u64, command: impl FnOnce(u64) -> u64) {
    let Some(call) = PackedCall::first_of(words) else { return };
    let named = if call.enters() { call.index_of(Values::APPENDED) } else { None };
    if let Some((head, values)) = words.split_first_chunk_mut::<4>() {
        head[2] = number;
        if let Some(value) = named.and_then(|index| values.get_mut(index)) {
            *value = command(*value);
        }
    }
}

impl Fields for PackedCall<'_> {
    #[inline]
    fn value_at(&self, place: usize) -> Option<u64> {
        self.values.get(self.index_of(place)?).copied()
    }
}

/// Adds a record behind some words.
pub struct Packing<'w> {
    words: &'w mut Vec<u64>,
    start: usize,
    places: u64,
}

impl<'w> Packing<'w> {
    /// Begins a record. If it is not ended, [`Self::abandon`] must take it away.
    #[inline]
    pub fn begin(words: &'w mut Vec<u64>) -> Self {
        let start = words.len();
        words.extend_from_slice(&[0; 4]);
        Self { words, start, places: 0 }
    }

    /// Adds the value at a position of [`Values::FIELDS`], or replaces it. False, without an effect, if it is neither
    /// there nor behind the positions of all values before.
    #[inline]
    pub fn value(&mut self, place: usize, value: u64) -> bool {
        if place < Values::FIELDS.len() && self.places >> place == 0 {
            self.places |= 1 << place;
            self.words.push(value);
            return true;
        }
        let bit = 1_u64.checked_shl(place as u32).unwrap_or_default();
        let index = self.start + 4 + (self.places & bit.wrapping_sub(1)).count_ones() as usize;
        let old = self.words.get_mut(index).filter(|_| self.places & bit != 0);
        old.map(|old| *old = value).is_some()
    }

    /// Ends the record of a call that begins.
    #[inline]
    pub fn enter(self, function: Function, call: u64, tid: u32, time: Nanos) {
        self.end(ENTER, function, tid, [time.0, call, 0]);
    }

    /// Ends the record of a call that returns.
    #[inline]
    pub fn exit(self, function: Function, call: u64, tid: u32, time: Nanos, result: ResultCode) {
        self.end(EXIT, function, tid, [time.0, call, u64::from(result.0) << 32]);
    }

    #[inline]
    fn end(self, kind: u64, function: Function, tid: u32, [time, call, result]: [u64; 3]) {
        let record = self.words.get_mut(self.start..).and_then(<[u64]>::split_first_chunk_mut);
        if let Some((head, values)) = record {
            let first = kind | (function as u64) << 8 | (values.len() as u64) << 24 | u64::from(tid) << 32;
            *head = [first, time, call, self.places | result];
        }
    }

    /// Takes the record away again.
    #[inline]
    pub fn abandon(self) {
        self.words.truncate(self.start);
    }
}

/// Adds a record of a call behind some words; false, without an effect, if it is another one.
pub fn pack(record: &Record, words: &mut Vec<u64>) -> bool {
    let (Record::Enter(Enter { values, .. })
    | Record::InnerEnter(Enter { values, .. })
    | Record::Exit(Exit { values, .. })
    | Record::InnerExit(Exit { values, .. })) = record
    else {
        return false;
    };
    let start = words.len();
    let mut packing = Packing::begin(words);
    values.for_each_place(|place, _, value| {
        packing.value(place, value);
    });
    match *record {
        Record::Enter(Enter { function, call, tid, time, .. })
        | Record::InnerEnter(Enter { function, call, tid, time, .. }) => packing.enter(function, call, tid, time),
        Record::Exit(Exit { function, call, tid, time, result, .. })
        | Record::InnerExit(Exit { function, call, tid, time, result, .. }) => {
            packing.exit(function, call, tid, time, result);
        }
        _ => packing.abandon(),
    }
    if matches!(record, Record::InnerEnter(_) | Record::InnerExit(_)) {
        words.get_mut(start).into_iter().for_each(|first| *first += INNER);
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn calls_are_unpacked_and_decoded_as_they_were(
            calls in prop::collection::vec(
                (
                    (0..Function::COUNT, any::<u64>(), any::<u32>(), any::<u64>(), any::<Option<u32>>()),
                    prop::collection::vec(any::<Option<u64>>(), 18),
                ),
                1..8,
            ),
        ) {
            let mut words = Vec::new();
            let mut records = Vec::new();
            for ((row, call, tid, time, result), fields) in calls {
                let function = Function::ALL[row];
                let time = Nanos(time);
                let mut values = Values::NONE;
                for (place, value) in fields.into_iter().enumerate() {
                    // A zero is a missing argument.
                    if let Some(value) = value {
                        values.set(place, if value % 4 == 0 { 0 } else { value });
                    }
                }
                let is_inner = call % 2 == 0;
                let record = match result.map(ResultCode) {
                    None => {
                        let enter = Enter { function, call, tid, time, values };
                        if is_inner { Record::InnerEnter(enter) } else { Record::Enter(enter) }
                    }
                    Some(result) => {
                        let exit = Exit { function, call, tid, time, result, values };
                        if is_inner { Record::InnerExit(exit) } else { Record::Exit(exit) }
                    }
                };
                prop_assert!(pack(&record, &mut words));
                records.push(record);
            }
            let mut rest = words.as_slice();
            for record in records {
                let call = PackedCall::first_of(rest).unwrap();
                let is_inner = matches!(record, Record::InnerEnter(_) | Record::InnerExit(_));
                match &record {
                    Record::Enter(enter) | Record::InnerEnter(enter) => {
                        prop_assert_eq!(call.begun(), enter.begun(&enter.nulls()));
                    }
                    Record::Exit(exit) | Record::InnerExit(exit) => prop_assert_eq!(call.returned(), exit.returned()),
                    _ => unreachable!(),
                }
                prop_assert_eq!((call.record(), call.is_inner()), (record, is_inner));
                rest = &rest[call.size()..];
            }
            prop_assert!(rest.is_empty() && PackedCall::first_of(rest).is_none());
        }
    }

    #[test]
    fn values_are_taken_in_order_only() {
        let mut words = vec![7];
        let mut packing = Packing::begin(&mut words);
        let last = Values::FIELDS.len() - 1;
        assert!(packing.value(2, 1) && packing.value(last, 1) && packing.value(2, 5));
        assert_eq!(packing.words[5..], [5, 1]);
        assert!(!packing.value(3, 1) && !packing.value(last + 1, 1) && !packing.value(64, 1));
        packing.abandon();
        assert_eq!(words, [7]);
        assert!(PackedCall::first_of(&words).is_none());
    }
}
