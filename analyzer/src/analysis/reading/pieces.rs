//! Events as those of very many files wait: in few bytes.
//!
//! A word is written as the difference to the one that stood for the same before: mostly an address, a size or a time that is close. The
//! numbers are of 7 bits a byte, the last one without the highest bit.

use urscope_schema::packed::{Head, places};

use super::packed_other::name_words;

/// What a word may stand for: one of the first four of an event, a value at one of 32 places, or a part of a name.
const NAME: usize = 4 + 32;

/// The latest words of each kind.
type Latest = [u64; NAME + 1];

/// What the words behind the first four of an event stand for.
fn kinds(head: &Head) -> impl Iterator<Item = usize> {
    let values = places(head).map(|places| places.map(|place| 4 + place % 32));
    let names = if values.is_none() { name_words(head) } else { 0 };
    values.into_iter().flatten().chain(std::iter::repeat_n(NAME, names))
}

/// Whole events in bytes. What follows the last whole one is left out.
pub(super) fn pack(mut words: &[u64]) -> Box<[u8]> {
    let (mut bytes, mut latest): (_, Latest) = (Vec::with_capacity(4 * words.len()), [0; NAME + 1]);
    while let Some((head, rest)) = words.split_first_chunk() {
        (0..).zip(head).for_each(|(kind, word)| put(*word, kind, &mut latest, &mut bytes));
        words = rest;
        for kind in kinds(head) {
            let Some((word, rest)) = words.split_first() else { break };
            put(*word, kind, &mut latest, &mut bytes);
            words = rest;
        }
    }
    bytes.into()
}

/// Adds the events that are in these bytes.
pub(super) fn unpack(bytes: &[u8], words: &mut Vec<u64>) {
    let (mut bytes, mut latest): (_, Latest) = (bytes.iter(), [0; NAME + 1]);
    while !bytes.as_slice().is_empty() {
        let mut head: Head = [0; 4];
        for (kind, word) in (0..).zip(&mut head) {
            *word = next(&mut bytes, kind, &mut latest);
        }
        words.extend_from_slice(&head);
        words.extend(kinds(&head).map(|kind| next(&mut bytes, kind, &mut latest)));
    }
}

#[inline]
fn put(word: u64, kind: usize, latest: &mut Latest, bytes: &mut Vec<u8>) {
    let Some(before) = latest.get_mut(kind) else { return };
    let difference = word.wrapping_sub(*before) as i64;
    *before = word;
    // Small negative numbers become small ones, too.
    let mut rest = (difference << 1 ^ difference >> 63) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[inline]
fn next(bytes: &mut std::slice::Iter<'_, u8>, kind: usize, latest: &mut Latest) -> u64 {
    let (mut coded, mut shift) = (0, 0);
    for byte in bytes {
        coded |= u64::from(byte & 0x7f) << (shift & 63);
        shift += 7;
        if *byte < 0x80 {
            break;
        }
    }
    let difference = coded >> 1 ^ (coded & 1).wrapping_neg();
    latest.get_mut(kind).map_or(0, |before| {
        *before = before.wrapping_add(difference);
        *before
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use urscope_schema::{
        api::{Function, UrResult},
        call::{Exit, Nanos, Values},
    };

    use super::*;
    use crate::analysis::reading::event::{Events, Label, Other, TraceEvent};

    proptest! {
        #[test]
        fn events_are_unpacked_as_they_were(
            calls in prop::collection::vec((0..Function::COUNT, any::<u64>(), any::<u32>(), any::<[Option<u64>; 18]>()), 0..9),
            name in ".{0,70}",
        ) {
            let mut events = Events::only((Nanos(1), 0), Other::Begin(Nanos(u64::MAX)));
            for (row, call, tid, fields) in calls {
                let mut values = Values::NONE;
                for (place, value) in fields.into_iter().enumerate() {
                    if let Some(value) = value {
                        values.set(place, value);
                    }
                }
                let (function, time, result) = (Function::ALL[row], Nanos(call / 2), UrResult(tid));
                events.push((time, 1), &TraceEvent::Exit(Exit { function, call, tid, time, result, values }));
                events.push_other((time, 1), &Other::Thread(tid, Label::of(&name)));
            }
            let words = events.words();
            let bytes = pack(words);
            let mut unpacked = Vec::new();
            unpack(&bytes, &mut unpacked);
            prop_assert_eq!(unpacked, words);
        }
    }
}
