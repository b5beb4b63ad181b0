use proptest::prelude::*;

use super::{
    read::{Item, Strings, next, next_call},
    write::{self, Measure},
    *,
};
use crate::{
    api::{Function, UrResult},
    call::{Enter, Exit, Nanos, Values},
    packed::PackedCall,
    trace::{
        read::Record,
        records::{Found, Hex},
    },
};

/// The strings of a file, as a reader learns them.
fn strings() -> Strings {
    let mut strings = Strings::default();
    let words = write::beginning(42, "app");
    let mut rest = words.as_slice();
    let mut last = Item::Other;
    while !rest.is_empty() {
        let (item, count) = next(rest, 0, &mut strings);
        assert!(!matches!(item, Item::Damaged(_)), "{item:?}");
        last = item;
        rest = &rest[count..];
    }
    assert_eq!(last, Item::Record(Record::ProcessName("app".into())));
    strings
}

fn read(words: &[u64], tid: u32) -> Item {
    let (item, count) = next(words, tid, &mut strings());
    assert_eq!(count, words.len());
    item
}

/// What the fast path reads, and the number of its words.
fn packed(words: &[u64], tid: u32) -> Option<(Record, usize)> {
    let mut to = vec![7];
    let Some(count) = next_call(words, tid, &strings(), &mut to) else {
        assert_eq!(to, [7]);
        return None;
    };
    let call = PackedCall::first_of(&to[1..]).unwrap();
    assert_eq!(call.size(), to.len() - 1);
    Some((call.record(), count))
}

fn values() -> impl Strategy<Value = Values> {
    let places = prop::collection::btree_map(0..Values::FIELDS.len(), prop_oneof![any::<u64>(), 0..1_u64 << 33], 0..12);
    places.prop_map(|places| {
        let mut values = Values::NONE;
        for (place, value) in places {
            values.set(place, value);
        }
        values
    })
}

proptest! {
    #[test]
    fn a_call_is_read_back(
        row in 0..Function::COUNT, call: u64, tid: u32, time: u64, values in values(), result in prop_oneof![Just(0), any::<u32>()],
    ) {
        let (function, time) = (Function::ALL[row], Nanos(time));
        let begins = Enter { function, call, tid, time, values };
        let mut words = vec![write::enter(&begins, &mut Measure).unwrap()];
        prop_assert_eq!(write::enter(&begins, &mut words), Some(words[0]));
        prop_assert_eq!(write::length(words[0]), words.len());
        prop_assert_eq!(read(&words, tid), Item::Record(Record::Enter(begins)));
        prop_assert_eq!(packed(&words, tid), Some((Record::Enter(begins), words.len())));
        let returns = Exit { function, call, tid, time, result: UrResult(result), values };
        let mut words = vec![write::exit(&returns, &mut Measure).unwrap()];
        write::exit(&returns, &mut words);
        prop_assert_eq!(read(&words, tid), Item::Record(Record::Exit(returns)));
        prop_assert_eq!(packed(&words, tid), Some((Record::Exit(returns), words.len())));
        // A damaged record is declined, or taken as the whole reader takes it.
        for place in 0..words.len() {
            words[place] ^= 1 << (time.0 % 64);
            let item = next(&words, tid, &mut strings());
            if let Some((record, count)) = packed(&words, tid) {
                prop_assert_eq!(item, (Item::Record(record), count));
            }
            words[place] ^= 1 << (time.0 % 64);
        }
    }

    #[test]
    fn any_words_are_read_without_harm(mut words in prop::collection::vec(any::<u64>(), 1..40), kind in 0..9_u64, size in 0..40_u64) {
        words[0] = words[0] & !0xffff | size << 4 | kind;
        let (item, count) = next(&words, 0, &mut strings());
        prop_assert!((1..=words.len()).contains(&count));
        if let Some((packed, used)) = packed(&words, 0) {
            prop_assert_eq!((item, count), (Item::Record(packed), used));
        }
    }
}

#[test]
fn the_longest_call_fits_and_a_longer_one_is_rejected() {
    let mut values = Values::NONE;
    for place in 0..Values::FIELDS.len() {
        values.set(place, u64::MAX);
        let enter = Enter { function: Function::ALL[0], call: u64::MAX, tid: 1, time: Nanos(1), values };
        let fits = place as u64 + 2 <= write::ARGUMENTS;
        assert_eq!(write::enter(&enter, &mut Measure).is_some(), fits, "{}", Values::FIELDS[place].0);
    }
}

#[test]
fn other_records_are_read_back() {
    let found = Found { rule: "leaked-handle".into(), severity: "warning".into(), message: "Größe\n".repeat(3) };
    assert_eq!(read(&write::finding(Nanos(5), &found), 1), Item::Record(Record::Finding(Nanos(5), Box::new(found))));
    assert_eq!(read(&write::note(Nanos(5), "text"), 1), Item::Record(Record::Note(Nanos(5), "text".into())));
    assert_eq!(read(&write::note(Nanos(5), ""), 1), Item::Record(Record::Note(Nanos(5), String::new())));
    assert_eq!(read(&write::descriptors(Nanos(5), 1 << 40), 1), Item::Record(Record::Descriptors(Nanos(5), 1 << 40)));
    let mut words = vec![write::thread_name(1, 7, "worker", &mut Measure)];
    write::thread_name(1, 7, "worker", &mut words);
    assert_eq!(read(&words, 1), Item::Record(Record::ThreadName(7, "worker".into())));
    assert_eq!(read(&write::head(9), 1), Item::Head(9));
    assert_eq!(read(&write::thread(1, 7), 1), Item::Thread(7));
    assert_eq!(read(&[UNWRITTEN], 1), Item::Unwritten);
    assert_eq!(read(&[hole(3), 4, 5], 1), Item::Claimed);
    let stack = Stack { stack: 3, frames: vec![Hex(1), Hex(u64::MAX)] };
    assert_eq!(read(&write::record(&stack).unwrap(), 1), Item::Record(Record::Stack(Box::new(stack))));
}

#[test]
fn texts_are_limited_and_too_long_records_are_rejected() {
    let long = "ü".repeat(1 << 15);
    let found = Found { rule: long.clone(), severity: long.clone(), message: long };
    let words = write::finding(Nanos(1), &found);
    assert!(words.len() <= CHUNK - HEAD);
    let Item::Record(Record::Finding(_, found)) = read(&words, 1) else { panic!("not a finding") };
    assert!(found.message.len() > 8000 && found.message.chars().all(|letter| letter == 'ü'));
    let header = Header { command: vec!["\u{1}".repeat(1 << 13)], ..Header::default() };
    assert_eq!(write::record(&header), None);
}

#[test]
fn a_record_that_goes_beyond_its_chunk_is_damaged() {
    let words = write::note(Nanos(1), "text");
    let (item, count) = next(&words[..words.len() - 1], 1, &mut strings());
    assert!(matches!(item, Item::Damaged(_)) && count == words.len() - 1, "{item:?}");
    assert!(matches!(next(&[0], 1, &mut strings()), (Item::Damaged(_), 1)));
}
