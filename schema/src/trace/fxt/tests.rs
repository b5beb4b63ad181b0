use proptest::prelude::*;

use super::read::{Item, Strings, next, next_call};
use super::write::{self, Measure};
use super::*;
use crate::api::{Function, UrResult};
use crate::call::{Access, Enter, Executed, Exit, Nanos, Rows, Values};
use crate::trace::records::{Found, Hex, PythonFrame};
use crate::trace::{packed::PackedCall, read::Record};

/// The strings of a file, as a reader learns them.
fn strings() -> Strings {
    let mut strings = Strings::default();
    let words = write::beginning(42, "app");
    let mut rest = words.as_slice();
    let mut last = Item::Other;
    while !rest.is_empty() {
        let (item, count) = next(rest, 0, &mut strings, &mut Before::default());
        assert!(!matches!(item, Item::Damaged(_)), "{item:?}");
        last = item;
        rest = &rest[count..];
    }
    assert_eq!(last, Item::Record(Record::ProcessName("app".into())));
    strings
}

fn read(words: &[u64], tid: u32) -> Item {
    let (item, count) = next(words, tid, &mut strings(), &mut Before::default());
    assert_eq!(count, words.len());
    item
}

/// What the fast path reads, and the number of its words.
fn packed(words: &[u64], tid: u32) -> Option<(Record, usize)> {
    let mut to = vec![7];
    let Some(count) = next_call(words, tid, &strings(), &mut Before::default(), &mut to) else {
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

/// What is in front of a record: often what it leaves out.
fn before(call: u64, values: Values) -> impl Strategy<Value = Before> {
    let calls = prop_oneof![Just(call), Just(call - 1), Just(0), any::<u64>()];
    let contexts = prop_oneof![Just((values.context.unwrap_or(0), values.via.unwrap_or(0))), any::<(u64, u64)>()];
    (calls, contexts).prop_map(|(call, (context, via))| Before { call, context, via })
}

/// A call, and what is in front of its record.
fn call() -> impl Strategy<Value = (Exit, Before)> {
    let result = prop_oneof![Just(0), any::<u32>()];
    let parts = (0..Function::COUNT, 1..=u64::MAX, any::<u32>(), any::<u64>(), values(), result);
    parts.prop_flat_map(|(row, call, tid, time, values, result)| {
        let (function, time, result) = (Function::ALL[row], Nanos(time), UrResult(result));
        (Just(Exit { function, call, tid, time, result, values }), before(call, values))
    })
}

/// The words of a record.
fn words_of(make: impl Fn(&mut Vec<u64>) -> Option<u64>) -> Vec<u64> {
    let mut words = vec![0];
    words[0] = make(&mut words).unwrap();
    words
}

proptest! {
    #[test]
    fn a_call_is_read_back((returns, before) in call(), bit in 0..64_u32) {
        let Exit { function, call, tid, time, values, .. } = returns;
        let begins = Enter { function, call, tid, time, values };
        let (enter, exit) = (words_of(|to| write::enter(&begins, before, to)), words_of(|to| write::exit(&returns, before, to)));
        prop_assert_eq!(write::enter(&begins, before, &mut Measure), Some(enter[0]));
        prop_assert_eq!(write::exit(&returns, before, &mut Measure), Some(exit[0]));
        // The short forms are the same records.
        if write::is_short_enter(&begins, before) {
            prop_assert_eq!(&words_of(|to| write::short_enter(&begins, to)), &enter);
        }
        if write::is_short_exit(&returns, before) {
            prop_assert_eq!(&words_of(|to| write::short_exit(&returns, to)), &exit);
        }
        for (mut words, record) in [(enter, Record::Enter(begins)), (exit, Record::Exit(returns))] {
            prop_assert_eq!(write::length(words[0]), words.len());
            let (mut after, mut also_after, mut to) = (before, before, Vec::new());
            prop_assert_eq!(next(&words, tid, &mut strings(), &mut after), (Item::Record(record.clone()), words.len()));
            prop_assert_eq!(next_call(&words, tid, &strings(), &mut also_after, &mut to), Some(words.len()));
            prop_assert_eq!(PackedCall::first_of(&to).unwrap().record(), record.clone());
            prop_assert_eq!((after, after.call), (also_after, call));
            // The same inside of another call: it does not say anything to the next record.
            let inner = match &record {
                Record::Enter(begins) => (words_of(|to| write::inner_enter(begins, to)), Record::InnerEnter(*begins)),
                _ => (words_of(|to| write::inner_exit(&returns, to)), Record::InnerExit(returns)),
            };
            let mut after = before;
            prop_assert_eq!(next(&inner.0, tid, &mut strings(), &mut after), (Item::Record(inner.1), inner.0.len()));
            prop_assert_eq!(after, Before::default());
            prop_assert_eq!(next_call(&inner.0, tid, &strings(), &mut before.clone(), &mut Vec::new()), None);
            // A damaged record is declined, or taken as the whole reader takes it.
            for place in 0..words.len() {
                words[place] ^= 1 << bit;
                let (mut after, mut also_after, mut to) = (before, before, vec![7]);
                let item = next(&words, tid, &mut strings(), &mut after);
                if let Some(count) = next_call(&words, tid, &strings(), &mut also_after, &mut to) {
                    let packed = PackedCall::first_of(&to[1..]).unwrap().record();
                    prop_assert_eq!((item, after), ((Item::Record(packed), count), also_after));
                } else {
                    prop_assert_eq!((to, also_after), (vec![7], before));
                }
                words[place] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn any_words_are_read_without_harm(mut words in prop::collection::vec(any::<u64>(), 1..40), kind in 0..9_u64, size in 0..40_u64) {
        words[0] = words[0] & !0xffff | size << 4 | kind;
        let (item, count) = next(&words, 0, &mut strings(), &mut Before::default());
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
        assert_eq!(
            write::enter(&enter, Before::default(), &mut Measure).is_some(),
            fits,
            "{}",
            Values::FIELDS[place].0
        );
    }
}

#[test]
fn other_records_are_read_back() {
    let found = Found { rule: "leaked-handle".into(), severity: "warning".into(), message: "Größe\n".repeat(3) };
    assert_eq!(read(&write::finding(Nanos(5), &found), 1), Item::Record(Record::Finding(Nanos(5), Box::new(found))));
    assert_eq!(read(&write::note(Nanos(5), "text"), 1), Item::Record(Record::Note(Nanos(5), "text".into())));
    assert_eq!(read(&write::note(Nanos(5), ""), 1), Item::Record(Record::Note(Nanos(5), String::new())));
    assert_eq!(read(&write::descriptors(Nanos(5), 1 << 40), 1), Item::Record(Record::Descriptors(Nanos(5), 1 << 40)));
    let rows = Rows { offset: 0, length: 1 << 40, pitch: 1 << 40, count: 1 };
    for access in Access::ALL {
        let executed = Executed { call: 3, tid: 1, begin: Nanos(5), end: Nanos(9), memory: 7, rows, access };
        let words = words_of(|to| write::executed(&executed, to));
        assert_eq!(read(&words, 1), Item::Record(Record::Executed(executed)));
    }
    let mut words = vec![write::thread_name(1, 7, "worker", &mut Measure)];
    write::thread_name(1, 7, "worker", &mut words);
    assert_eq!(read(&words, 1), Item::Record(Record::ThreadName(7, "worker".into())));
    assert_eq!(read(&write::head(9), 1), Item::Head(9));
    assert_eq!(read(&write::thread(1, 7), 1), Item::Thread(7));
    assert_eq!(read(&[UNWRITTEN], 1), Item::Unwritten);
    assert_eq!(read(&[hole(3), 4, 5], 1), Item::Claimed);
    let python = PythonFrame { at: 1, function: "f.<locals>.g".into(), file: "/a b.py".into(), line: Some(7) };
    let stack = Stack { stack: 3, frames: vec![Hex(1), Hex(u64::MAX)], python: vec![python] };
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
    let (item, count) = next(&words[..words.len() - 1], 1, &mut strings(), &mut Before::default());
    assert!(matches!(item, Item::Damaged(_)) && count == words.len() - 1, "{item:?}");
    assert!(matches!(next(&[0], 1, &mut strings(), &mut Before::default()), (Item::Damaged(_), 1)));
}

#[test]
fn what_the_record_in_front_says_is_left_out_and_read_from_it() {
    let values = |context| Values { via: Some(3), context: Some(context), pointer: Some(1), ..Values::NONE };
    let function = Function::urIPCGetMemHandleExp;
    let enter = |call, values| Record::Enter(Enter { function, call, tid: 7, time: Nanos(call), values });
    let exit = |call| {
        let values = Values { data: Some(0x10), ..Values::NONE };
        Record::Exit(Exit { function, call, tid: 7, time: Nanos(call), result: UrResult::SUCCESS, values })
    };
    // Each record, and its words: the first one and the time, the number, the adapter, the context, and another address.
    let records = [
        (enter(65, values(0xc0)), 2 + 1 + 1 + 2 + 2),
        (exit(65), 2 + 2),
        (enter(66, values(0xc0)), 2 + 2),
        // A call within a call.
        (enter(67, values(0xc1)), 2 + 1 + 2 + 2),
        (exit(67), 2 + 2),
        (exit(66), 2 + 1 + 2),
        (enter(68, values(0xc1)), 2 + 1 + 2),
        (exit(68), 2 + 2),
        (enter(69, Values { via: Some(4), ..values(0xc1) }), 2 + 1 + 2 + 2),
    ];
    let mut words = Vec::new();
    let mut before = Before::default();
    for (record, count) in &records {
        let of_record = words_of(|to| match record {
            Record::Enter(begins) => write::enter(begins, before, to),
            Record::Exit(returns) => write::exit(returns, before, to),
            other => panic!("{other:?}"),
        });
        assert_eq!(of_record.len(), *count, "{record:?}");
        assert_eq!(next(&of_record, 7, &mut strings(), &mut before).0, Item::Record(record.clone()));
        words.push(of_record);
    }
    // Behind anything else, the same words are damaged: nothing is guessed.
    let mut before = Before { call: 65, context: 0xc0, via: 3 };
    assert_eq!(next(&[UNWRITTEN], 7, &mut strings(), &mut before).0, Item::Unwritten);
    assert!(matches!(next(&words[1], 7, &mut strings(), &mut before).0, Item::Damaged(_)));
    let before = Before { call: 65, ..Before::default() };
    assert!(matches!(next(&words[2], 7, &mut strings(), &mut before.clone()).0, Item::Damaged(_)));
    assert_eq!(next_call(&words[2], 7, &strings(), &mut before.clone(), &mut Vec::new()), None);
}
