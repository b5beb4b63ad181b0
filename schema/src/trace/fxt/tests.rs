use std::iter;

use proptest::prelude::*;

use super::read::{Before, Item, Strings, next, next_call};
use super::write::{self, Measure};
use super::*;
use crate::api::{Function, ResultCode};
use crate::call::{Access, Enter, Executed, Exit, Fields as _, Nanos, Rows, SyncKind, Synchronization, Values};
use crate::trace::records::{Found, Hex, PythonFrame};
use crate::trace::{Record, packed::PackedCall};

/// The strings of a file, as a reader learns them.
fn strings() -> Strings {
    let mut strings = Strings::default();
    let words = write::beginning(42, "app");
    let mut at = 0;
    let mut last = Item::Other;
    while at < words.len() {
        let (item, count) = next(&words, at, 0, &mut strings, &mut Before::default());
        assert!(!matches!(item, Item::Damaged(_)), "{item:?}");
        last = item;
        at += count;
    }
    assert_eq!(last, Item::Record(Record::ProcessName("app".into())));
    strings
}

fn read(words: &[u64], tid: u32) -> Item {
    let (item, count) = next(words, 0, tid, &mut strings(), &mut Before::default());
    assert_eq!(count, words.len());
    item
}

/// What the fast path reads, and the number of its words.
fn packed(words: &[u64], tid: u32) -> Option<(Record, usize)> {
    let mut to = vec![7];
    let Some(count) = next_call(words, 0, tid, &strings(), &mut Before::default(), &mut to) else {
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

/// A call, and the number of the one whose record is in front of it: often what it leaves out.
fn call() -> impl Strategy<Value = (Exit, u64)> {
    let result = prop_oneof![Just(0), any::<u32>()];
    let parts = (0..Function::COUNT, 1..=u64::MAX, any::<u32>(), any::<u64>(), values(), result);
    parts.prop_flat_map(|(row, call, tid, time, values, result)| {
        let function = Function::ALL[row];
        let time = Nanos(time);
        let result = ResultCode(result);
        let before = prop_oneof![Just(call), Just(call - 1), Just(0), any::<u64>()];
        (Just(Exit { function, call, tid, time, result, values }), before)
    })
}

/// The words of a record.
fn words_of(make: impl Fn(&mut Vec<u64>) -> Option<u64>) -> Vec<u64> {
    let mut words = vec![0];
    words[0] = make(&mut words).unwrap();
    words
}

/// The arguments of the record of a call.
fn arguments(words: &[u64]) -> Vec<&[u64]> {
    let mut rest = &words[2..];
    iter::from_fn(|| rest.split_off(..write::length(*rest.first()?).max(1))).collect()
}

/// Checks that a record leaves out what it repeats, that both are read back, also in one pass, and that the second is
/// nothing without the first.
fn check_repeated(
    (base, first): (Vec<u64>, Record),
    (words, repeated): (Vec<u64>, Record),
    before: u64,
) -> Result<(), TestCaseError> {
    let at = base.len();
    let is_same = base[2..] == words[2..];
    let its = arguments(&base);
    let arguments = arguments(&words);
    let pairs = || its.iter().zip(&arguments);
    let has_its_fields =
        its.len() == arguments.len() && pairs().all(|(its, argument)| (its[0] ^ argument[0]) as u32 == 0);
    let repeats = write::repeat(&words, &base, &mut Measure).map(|_| words_of(|to| write::repeat(&words, &base, to)));
    if is_same && at > 2 {
        prop_assert_eq!(&repeats, &Some(vec![write::repetition(words[0]), words[1]]));
    }
    prop_assert_eq!(repeats.is_some(), has_its_fields && pairs().any(|(its, argument)| its == argument));
    let Some(repeats) = repeats else { return Ok(()) };
    prop_assert!(repeats.len() < at);
    let words = [base, repeats.clone()].concat();
    let mut behind = Before::of_call(before);
    let mut also_behind = Before::of_call(before);
    let mut to = Vec::new();
    prop_assert_eq!(next(&words, 0, tid_of(&first), &mut strings(), &mut behind).0, Item::Record(first.clone()));
    prop_assert_eq!(next_call(&words, 0, tid_of(&first), &strings(), &mut also_behind, &mut Vec::new()), Some(at));
    // The calls of this test have one number.
    behind.set_call(before);
    also_behind.set_call(before);
    prop_assert_eq!(
        next(&words, at, tid_of(&first), &mut strings(), &mut behind),
        (Item::Record(repeated.clone()), repeats.len())
    );
    prop_assert_eq!(next_call(&words, at, tid_of(&first), &strings(), &mut also_behind, &mut to), Some(repeats.len()));
    prop_assert_eq!(PackedCall::first_of(&to).unwrap().record(), repeated);
    prop_assert_eq!(behind, also_behind);
    prop_assert!(matches!(next(&repeats, 0, 0, &mut strings(), &mut Before::of_call(before)).0, Item::Damaged(_)));
    prop_assert_eq!(next_call(&repeats, 0, 0, &strings(), &mut Before::of_call(before), &mut Vec::new()), None);
    Ok(())
}

fn tid_of(record: &Record) -> u32 {
    match record {
        Record::Enter(enter) => enter.tid,
        Record::Exit(exit) => exit.tid,
        _ => 0,
    }
}

proptest! {
    #[test]
    fn a_call_is_read_back((returns, before) in call(), bit in 0..64_u32) {
        let Exit { function, call, tid, time, result, values } = returns;
        let begins = Enter { function, call, tid, time, values };
        let enter = words_of(|to| write::enter(&begins, to));
        let exit = words_of(|to| write::exit(&returns, to));
        prop_assert_eq!(write::enter(&begins, &mut Measure), Some(enter[0]));
        prop_assert_eq!(write::exit(&returns, &mut Measure), Some(exit[0]));
        let mut all = vec![(enter, Record::Enter(begins)), (exit, Record::Exit(returns))];
        if before != 0 && before.wrapping_add(1) == call {
            all.push((words_of(|to| write::short_enter(begins.function, begins.time, &begins.values, to)), Record::Enter(begins)));
        }
        if before == call && result.is_success() {
            all.push((words_of(|to| write::short_exit(returns.function, returns.time, &returns.values, to)), Record::Exit(returns)));
        }
        let before = Before::of_call(before);
        for (mut words, record) in all {
            prop_assert_eq!(write::length(words[0]), words.len());
            let mut after = before.clone();
            let mut also_after = before.clone();
            let mut to = Vec::new();
            let read = next(&words, 0, tid, &mut strings(), &mut after);
            prop_assert_eq!(read, (Item::Record(record.clone()), words.len()));
            prop_assert_eq!(next_call(&words, 0, tid, &strings(), &mut also_after, &mut to), Some(words.len()));
            prop_assert_eq!(PackedCall::first_of(&to).unwrap().record(), record.clone());
            prop_assert_eq!(&after, &also_after);
            // The same inside of another call: it does not say anything to the next record.
            let inner = match &record {
                Record::Enter(begins) => (words_of(|to| write::inner_enter(begins, to)), Record::InnerEnter(*begins)),
                _ => (words_of(|to| write::inner_exit(&returns, to)), Record::InnerExit(returns)),
            };
            let mut after = before.clone();
            prop_assert_eq!(next(&inner.0, 0, tid, &mut strings(), &mut after), (Item::Record(inner.1), inner.0.len()));
            prop_assert_eq!(after, Before::default());
            prop_assert_eq!(next_call(&inner.0, 0, tid, &strings(), &mut before.clone(), &mut Vec::new()), None);
            // A damaged record is declined, or taken as the whole reader takes it.
            for place in 0..words.len() {
                words[place] ^= 1 << bit;
                let mut after = before.clone();
                let mut also_after = before.clone();
                let mut to = vec![7];
                let item = next(&words, 0, tid, &mut strings(), &mut after);
                if let Some(count) = next_call(&words, 0, tid, &strings(), &mut also_after, &mut to) {
                    let packed = PackedCall::first_of(&to[1..]).unwrap().record();
                    prop_assert_eq!((item, after), ((Item::Record(packed), count), also_after));
                } else {
                    prop_assert_eq!((to, also_after), (vec![7], before.clone()));
                }
                words[place] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn a_call_repeats_the_values_of_its_base((one, _) in call(), other in values(), changed in prop::collection::btree_map(0..Values::FIELDS.len(), any::<u64>(), 0..3)) {
        // Most often the same fields with one or two other values.
        let mut values = if one.tid % 4 == 0 { other } else { one.values };
        for (place, value) in changed {
            if one.values.value_at(place).is_some() {
                values.set(place, value);
            }
        }
        let one = Exit { result: ResultCode::SUCCESS, call: one.call.max(2), ..one };
        let two = Exit { values, ..one };
        let Exit { function, call, tid, time, .. } = one;
        let enter = |values| Enter { function, call, tid, time, values };
        let base = words_of(|to| write::short_exit(one.function, one.time, &one.values, to));
        let words = words_of(|to| write::short_exit(two.function, two.time, &two.values, to));
        check_repeated((base, Record::Exit(one)), (words, Record::Exit(two)), call)?;
        let one = enter(one.values);
        let two = enter(values);
        let base = words_of(|to| write::short_enter(one.function, one.time, &one.values, to));
        let words = words_of(|to| write::short_enter(two.function, two.time, &two.values, to));
        check_repeated((base, Record::Enter(one)), (words, Record::Enter(two)), call - 1)?;
    }

    #[test]
    fn any_words_are_read_without_harm(mut words in prop::collection::vec(any::<u64>(), 1..40), kind in 0..9_u64, size in 0..40_u64) {
        words[0] = words[0] & !0xffff | size << 4 | kind;
        let (item, count) = next(&words, 0, 0, &mut strings(), &mut Before::default());
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
    let rows = Rows { offset: 0, length: 1 << 40, pitch: 1 << 40, count: 1 };
    for access in Access::ALL {
        let executed = Executed { call: 3, tid: 1, begin: Nanos(5), end: Nanos(9), memory: 7, rows, access };
        let words = words_of(|to| write::executed(&executed, to));
        assert_eq!(read(&words, 1), Item::Record(Record::Executed(executed)));
    }
    for (kind, queue) in SyncKind::ALL.into_iter().zip([None, Some(0), Some(7), Some(u64::MAX)].into_iter().cycle()) {
        let by = Synchronization { tid: 1, time: Nanos(5), kind, queue, event: queue.map(|queue| queue ^ 1) };
        let words = words_of(|to| write::synchronization(&by, to));
        assert_eq!(read(&words, 1), Item::Record(Record::Synchronization(by)));
    }
    let mut words = vec![write::thread_name(1, 7, "worker", &mut Measure)];
    write::thread_name(1, 7, "worker", &mut words);
    assert_eq!(read(&words, 1), Item::Record(Record::ThreadName(7, "worker".into())));
    assert_eq!(read(&write::head(9), 1), Item::Head(9));
    assert_eq!(read(&write::thread(1, 7), 1), Item::Thread(7));
    assert_eq!(read(&[UNWRITTEN], 1), Item::Unwritten);
    assert_eq!(read(&[hole(3), 4, 5], 1), Item::Claimed);
    let python = PythonFrame {
        at: 1,
        function: "f.<locals>.g".into(),
        file: "/a b.py".into(),
        line: Some(7),
        first: Some(5),
        last: None,
    };
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
    let (item, count) = next(&words[..words.len() - 1], 0, 1, &mut strings(), &mut Before::default());
    assert!(matches!(item, Item::Damaged(_)) && count == words.len() - 1, "{item:?}");
    assert!(matches!(next(&[0], 0, 1, &mut strings(), &mut Before::default()), (Item::Damaged(_), 1)));
}
