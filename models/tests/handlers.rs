//! A signal handler interrupts a thread everywhere: while it appends to a binary trace, and while it takes the number
//! of a call. A reader looks at the file at each of these places.

use std::cell::{Cell, RefCell};
use std::{fs::File, os::unix::fs::FileExt as _, rc::Rc};

use urscope_models::handlers::chunks::call_words::CallWords;
use urscope_models::handlers::chunks::{Appended, Chunks, Short, append, append_call};
use urscope_models::handlers::explorer::{Model, explore, without_interruptions};
use urscope_models::handlers::thread::next_call;
use urscope_schema::api::{Function, ResultCode};
use urscope_schema::call::{Enter, Exit, Nanos, Values};
use urscope_schema::trace::Record;
use urscope_schema::trace::fxt::read::{Before, Item, Strings, next};
use urscope_schema::trace::fxt::{CHUNK, CHUNK_BYTES, HEAD, UNWRITTEN, hole, kind_of, write};

/// The records of an execution, and whether they were appended; `None` until that is known.
type Records = RefCell<Vec<(Record, Option<bool>)>>;

/// The kind of records that an execution appends.
#[derive(Clone, Copy)]
enum Kind {
    /// Names of threads, whose words do not depend on the record before.
    Names,
    /// Calls that begin and return.
    Calls,
}

impl Kind {
    /// The record with this number.
    fn record(self, number: u64) -> Record {
        let function = Function::urIPCPutMemHandleExp;
        let call = number / 2 + 1;
        let tid = 1;
        let time = Nanos(number);
        match (self, number % 2) {
            (Self::Names, _) => Record::ThreadName(number as u32, String::new()),
            (Self::Calls, 0) => {
                // Of four calls, two repeat all values of the one before, and one repeats some.
                let context = 0xc0 + number / 8;
                let pointer = number / 4 * 16;
                let values = Values { via: Some(0), context: Some(context), pointer: Some(pointer), ..Values::NONE };
                Record::Enter(Enter { function, call, tid, time, values })
            }
            (Self::Calls, _) => {
                Record::Exit(Exit { function, call, tid, time, result: ResultCode::SUCCESS, values: Values::NONE })
            }
        }
    }
}

/// Appends a record as the trace layer does: that of a call in the short form, if it can have that here.
fn append_record(record: &Record) -> Appended {
    let short = |make: &dyn Fn(&mut CallWords) -> Option<u64>, call, short| {
        let mut words = CallWords::empty();
        let first = make(&mut words);
        append_call(words.with_first(first).unwrap(), call, short)
    };
    match record {
        Record::Enter(it) => {
            let before = Some(Short { before: it.call - 1, kind: kind_of(it.function, true) });
            match short(&|to| write::short_enter(it.function, it.time, &it.values, to), it.call, before) {
                Appended::Unfit => short(&|to| write::enter(it, to), it.call, None),
                appended => appended,
            }
        }
        Record::Exit(it) => {
            let before = Some(Short { before: it.call, kind: kind_of(it.function, false) });
            match short(&|to| write::short_exit(it.function, it.time, &it.values, to), it.call, before) {
                Appended::Unfit => short(&|to| write::exit(it, to), it.call, None),
                appended => appended,
            }
        }
        Record::ThreadName(tid, name) => {
            let mut words = vec![0];
            words[0] = write::thread_name(7, *tid, name, &mut words);
            append(&words)
        }
        other => panic!("{other:?}"),
    }
}

/// A file, and the records that an execution appends to it.
struct Trace {
    kind: Kind,
    /// The strings of a file.
    strings: Strings,
    chunks: RefCell<Chunks>,
    file: File,
    /// The number of the chunk in which an execution begins.
    first: Cell<u64>,
    records: Records,
    folder: tempfile::TempDir,
}

impl Trace {
    fn new(kind: Kind) -> Rc<Self> {
        let mut strings = Strings::default();
        let words = write::beginning(7, "app");
        let mut at = 0;
        while at < words.len() {
            at += next(&words, at, 0, &mut strings, &mut Before::default()).1;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut chunks = Chunks::create(&path).unwrap();
        chunks.name.publish().unwrap();
        let file = File::open(&path).unwrap();
        Rc::new(Self {
            kind,
            strings,
            chunks: RefCell::new(chunks),
            file,
            first: Cell::new(0),
            records: RefCell::default(),
            folder,
        })
    }

    /// Begins an execution in a new chunk that has `free` words left.
    fn begin(&self, free: usize) {
        self.chunks.borrow_mut().renew(1, 1, &[]).unwrap();
        let mut filler = vec![0; CHUNK - HEAD - free];
        filler[0] = hole(filler.len());
        assert_eq!(append(&filler), Appended::Yes);
        while self.words(self.first.get() + 1, 1).first().is_some_and(|word| *word != UNWRITTEN) {
            self.first.set(self.first.get() + 1);
        }
        self.records.borrow_mut().clear();
    }

    fn words(&self, chunk: u64, count: usize) -> Vec<u64> {
        let mut bytes = vec![0; count * 8];
        let length = self.file.read_at(&mut bytes, chunk * CHUNK_BYTES).unwrap();
        bytes[..length].as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// Checks what a reader finds: every record that was appended, whole, and no other than those that were begun.
    fn look(&self) {
        let records = self.records.borrow();
        let mut found = vec![0; records.len()];
        let mut strings = self.strings.clone();
        for chunk in self.first.get()..self.first.get() + 4 {
            // Nothing is written after the first records of a new chunk.
            let words = self.words(chunk, if chunk == self.first.get() { CHUNK } else { 200 });
            let mut at = 0;
            let mut before = Before::default();
            while at < words.len() {
                let (item, count) = next(&words, at, 1, &mut strings, &mut before);
                match item {
                    Item::Unwritten | Item::Claimed | Item::Head(_) | Item::Thread(_) => {}
                    Item::Record(found_here) => {
                        let record = records.iter().position(|(record, _)| *record == found_here);
                        found[record.unwrap_or_else(|| panic!("a record that nobody appended: {found_here:x?}"))] += 1;
                    }
                    item => panic!("{item:?} at word {at} of chunk {chunk}"),
                }
                at += count;
            }
        }
        for (found, (_, appended)) in found.iter().zip(&*records) {
            match appended {
                Some(appended) => assert_eq!(*found, i32::from(*appended)),
                None => assert!(*found <= 1),
            }
        }
    }

    /// Appends a record as `layer::trace::binary` does.
    fn append(&self) {
        let number = self.records.borrow().len();
        let record = self.kind.record(number as u64);
        self.records.borrow_mut().push((record.clone(), None));
        let mut appended = append_record(&record);
        if appended != Appended::Yes {
            without_interruptions(|| {
                appended = append_record(&record);
                if appended == Appended::NoRoom
                    && let Ok(mut chunks) = self.chunks.try_borrow_mut()
                {
                    chunks.renew(1, 1, &[]).unwrap();
                    appended = append_record(&record);
                }
            });
        }
        self.records.borrow_mut()[number].1 = Some(appended == Appended::Yes);
    }

    /// Explores what is done in a chunk that has `free` words left, while up to two handlers append a record each.
    fn explore(self: &Rc<Self>, free: usize, run: &dyn Fn(), end: &dyn Fn(), least: usize) {
        let reader = Rc::clone(self);
        let handler = Rc::clone(self);
        let look: Rc<dyn Fn()> = Rc::new(move || reader.look());
        let model = Model {
            begin: &|| {
                self.begin(free);
                Rc::clone(&look)
            },
            run,
            handler: Rc::new(move || handler.append()),
            end: &|| {
                self.look();
                end();
            },
            interruptions: 2,
        };
        println!("{free} words free");
        explore(&model, least);
    }
}

#[test]
fn records_of_handlers_and_of_what_they_interrupt_are_whole() {
    for kind in [Kind::Names, Kind::Calls] {
        let trace = Trace::new(kind);
        // Room for all; then the chunk gets full at the first, a middle and the last record.
        for free in [40, 0, 5, 9, 14] {
            let append = || (0..3).for_each(|_| trace.append());
            let all_are_there = || {
                assert!(trace.records.borrow().iter().all(|(_, appended)| *appended == Some(true)), "a record is lost")
            };
            trace.explore(free, &append, &all_are_there, 500);
        }
        assert!(trace.folder.path().exists());
    }
}

#[test]
fn a_handler_in_the_middle_of_another_chunk_loses_only_its_own_record() {
    let trace = Trace::new(Kind::Calls);
    let run = || {
        trace.chunks.borrow_mut().renew(1, 1, &[]).unwrap();
        trace.append();
    };
    let end = || {
        let records = trace.records.borrow();
        let last = trace.kind.record(records.len() as u64 - 1);
        let (record, appended) = records.iter().find(|(record, _)| *record == last).unwrap();
        assert!(appended.is_some(), "{record:x?}");
    };
    trace.explore(40, &run, &end, 500);
}

#[test]
fn a_chunk_that_a_thread_leaves_is_used_further_without_harm() {
    let trace = Trace::new(Kind::Calls);
    let run = || {
        trace.append();
        trace.chunks.borrow_mut().leave_chunk();
        trace.append();
    };
    // More than half of it is free, so another thread reuses it.
    trace.explore(CHUNK - HEAD - 100, &run, &|| (), 300);
}

#[test]
fn handlers_take_other_numbers_than_what_they_interrupt() {
    let taken = Rc::new(RefCell::new(Vec::new()));
    let take = |taken: &RefCell<Vec<u64>>| {
        let number = next_call();
        taken.borrow_mut().push(number);
    };
    let model = Model {
        begin: &|| {
            taken.borrow_mut().clear();
            // The block of numbers ends in this execution.
            while next_call() % 64 != 63 {}
            Rc::new(|| ())
        },
        run: &|| (0..4).for_each(|_| take(&taken)),
        handler: {
            let taken = Rc::clone(&taken);
            Rc::new(move || take(&taken))
        },
        end: &|| {
            let mut numbers = taken.borrow().clone();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), taken.borrow().len(), "{:?}", taken.borrow());
        },
        interruptions: 3,
    };
    explore(&model, 500);
}
