//! What a recorded call costs, written directly and through the `tracing` facade, measured in turns in one run.
//!
//! Both sides read the clock twice, format the same two records into the same kind of line and append them to a file of the
//! same kind under a lock; the second gets its values as the fields of a span. Run by `scripts/bench facade`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and stops where it is surprised")]

use std::{cell::Cell, time::Instant};

use parking_lot::Mutex;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use urscope_schema::{
    api::{Function, UrResult},
    call::{Enter, Exit, Values},
    trace::write::Line,
};
use urscope_shim::raw::{clock, pages::Pages, thread};

const CALLS: u64 = 20_000;
const ROUNDS: usize = 15;
const FUNCTION: Function = Function::urIPCGetMemHandleExp;

fn append(pages: &Mutex<Pages>, line: &Line) {
    let bytes = line.bytes().unwrap();
    let mut pages = pages.lock();
    if bytes.len() as u64 > pages.room() {
        pages.grow().unwrap();
    }
    assert!(pages.append(bytes));
}

fn enter(pages: &Mutex<Pages>, call: u64, values: Values) {
    let mut line = Line::default();
    line.enter(4242, 0, &Enter { function: FUNCTION, call, tid: thread::id(), time: clock::now(), values });
    append(pages, &line);
}

fn exit(pages: &Mutex<Pages>, call: u64, values: Values) {
    let mut line = Line::default();
    let (function, tid, time) = (FUNCTION, thread::id(), clock::now());
    line.exit(4242, 0, &Exit { function, call, tid, time, result: UrResult::SUCCESS, values });
    append(pages, &line);
}

fn direct(pages: &Mutex<Pages>) {
    for call in 0..CALLS {
        let values =
            Values { via: Some(1), context: Some(0xc0de), pointer: Some(0x7f00_0000_0000), ..Values::default() };
        enter(pages, call, values);
        let values = Values {
            data: Some(0x5555_0000),
            data_size: Some(120),
            fingerprint: Some(u64::MAX / 3),
            ..Values::default()
        };
        exit(pages, call, values);
    }
}

fn facade() {
    for call in 0..CALLS {
        let span = tracing::trace_span!(
            "urIPCGetMemHandleExp",
            call,
            via = 1_u64,
            context = 0xc0de_u64,
            pointer = 0x7f00_0000_0000_u64,
            data = tracing::field::Empty,
            data_size = tracing::field::Empty,
            fingerprint = tracing::field::Empty,
        );
        span.record("data", 0x5555_0000_u64);
        span.record("data_size", 120_u64);
        span.record("fingerprint", u64::MAX / 3);
    }
}

struct Writer(Mutex<Pages>);

thread_local! {
    static OPEN: Cell<(u64, Values)> = const { Cell::new((0, Values::NONE)) };
}

struct Fields(u64, Values);

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "call" => self.0 = value,
            "via" => self.1.via = Some(value),
            "context" => self.1.context = Some(value),
            "pointer" => self.1.pointer = Some(value),
            "data" => self.1.data = Some(value),
            "data_size" => self.1.data_size = Some(value),
            "fingerprint" => self.1.fingerprint = Some(value),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for Writer {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields(0, Values::NONE);
        span.record(&mut fields);
        enter(&self.0, fields.0, fields.1);
        OPEN.set((fields.0, Values::NONE));
        span::Id::from_u64(fields.0 + 1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        let (call, kept) = OPEN.get();
        let mut fields = Fields(call, kept);
        values.record(&mut fields);
        OPEN.set((call, fields.1));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}

    fn try_close(&self, _: span::Id) -> bool {
        let (call, values) = OPEN.get();
        exit(&self.0, call, values);
        true
    }
}

fn median(mut nanos: Vec<f64>) -> f64 {
    nanos.sort_by(f64::total_cmp);
    nanos.get(nanos.len() / 2).copied().unwrap_or(f64::NAN)
}

fn time(what: impl FnOnce()) -> f64 {
    let start = Instant::now();
    what();
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let pages = Mutex::new(Pages::create(&directory.path().join("direct")).unwrap());
    let writer = Writer(Mutex::new(Pages::create(&directory.path().join("facade")).unwrap()));
    tracing::subscriber::set_global_default(writer).unwrap();
    let (mut direct_ns, mut facade_ns) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        direct_ns.push(time(|| direct(&pages)));
        facade_ns.push(time(facade));
    }
    let (direct, facade) = (median(direct_ns), median(facade_ns));
    println!("a recorded call, median of {ROUNDS} rounds of {CALLS} calls");
    println!("  written directly     {direct:7.0} ns");
    println!("  through `tracing`    {facade:7.0} ns");
    println!("  ratio                {:7.2}", facade / direct);
}
