//! The Chrome trace of a timeline, as Perfetto's importer takes it without a loss.
//!
//! One event a line in the object form. Times are in microseconds with three decimals. Arrows are bound to their
//! slices by `bind_id`; lives are async slices with an id of their process.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::drawing::{Arguments, Drawing, Track, Unit};
use crate::account::{Arrow, Lane, Life};

/// A trace that is being written.
pub(super) struct Chrome<'w> {
    out: &'w mut dyn Write,
    failed: Option<io::Error>,
    /// The event that is being written: a value is written in many small pieces.
    line: Vec<u8>,
}

impl<'w> Chrome<'w> {
    /// Begins a trace.
    pub(super) fn begin(out: &'w mut dyn Write) -> Self {
        let other = json!({"urscope": env!("CARGO_PKG_VERSION")});
        let failed = write!(out, r#"{{"displayTimeUnit":"ns","otherData":{other},"traceEvents":["#).err();
        Self { out, failed, line: b"\n".to_vec() }
    }

    fn event(&mut self, event: &Value) {
        if self.failed.is_none() {
            let written = serde_json::to_writer(&mut self.line, event).map_err(io::Error::from);
            self.failed = written.and_then(|()| self.out.write_all(&self.line)).err();
        }
        self.line.clear();
        self.line.extend_from_slice(b"\n,");
    }

    fn metadata(&mut self, name: &str, on: Track, args: &Value) {
        self.event(&json!({"ph": "M", "name": name, "pid": on.pid, "tid": on.tid, "args": args}));
    }
}

impl Drawing for Chrome<'_> {
    /// A Chrome trace has one clock.
    fn clock(&mut self, _: u64, _: u64) {}

    fn process(&mut self, pid: u32, name: &str, order: usize) {
        let on = Track { pid, tid: pid };
        self.metadata("process_name", on, &json!({"name": name}));
        self.metadata("process_sort_index", on, &json!({"sort_index": order}));
    }

    fn thread(&mut self, on: Track, name: &str) {
        self.metadata("thread_name", on, &json!({"name": name}));
        // The main thread first, the others in the order of their numbers.
        let order = if on.tid == on.pid { 0 } else { on.tid };
        self.metadata("thread_sort_index", on, &json!({"sort_index": order}));
    }

    fn call(&mut self, on: Track, name: &str, (from, to): (u64, Option<u64>), args: Arguments, arrow: Option<Arrow>) {
        let phase = if to.is_some() { "X" } else { "B" };
        let mut event = json!({"ph": phase, "cat": "ur", "name": name, "pid": on.pid, "tid": on.tid});
        if let Some(fields) = event.as_object_mut() {
            fields.insert("ts".into(), micros(from));
            fields.extend(to.map(|to| ("dur".to_owned(), micros(to.saturating_sub(from)))));
            arrow.inspect(|arrow| bind(fields, *arrow));
            fields.insert("args".into(), Value::Object(args));
        }
        self.event(&event);
    }

    fn birth(&mut self, on: Track, life: &Life, args: Arguments) {
        let mut event = of_life(life, "b", on, life.at);
        if let Some(fields) = event.as_object_mut() {
            life.arrow().inspect(|arrow| bind(fields, *arrow));
            fields.insert("args".into(), Value::Object(args));
        }
        self.event(&event);
    }

    fn death(&mut self, on: Track, life: &Life, at: u64, how: &str) {
        let mut event = of_life(life, "e", on, at);
        if let Some(fields) = event.as_object_mut() {
            fields.insert("args".into(), json!({"ended_by": how}));
        }
        self.event(&event);
    }

    fn counter(&mut self, pid: u32, _: Unit, name: &str, at: u64, values: &[(&'static str, u64)]) {
        let args: Map<String, Value> = values.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.event(&json!({"ph": "C", "name": name, "pid": pid, "tid": pid, "ts": micros(at), "args": args}));
    }

    fn finding(&mut self, on: Track, name: &str, at: u64, args: Arguments) {
        self.event(&json!({
            "ph": "i", "s": "t", "cat": "finding", "name": name, "pid": on.pid, "tid": on.tid, "ts": micros(at), "args": args
        }));
    }

    fn end(self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        write!(self.out, "\n]}}")?;
        self.out.flush()
    }
}

fn of_life(life: &Life, phase: &str, on: Track, at: u64) -> Value {
    let category = match life.lane {
        Lane::Handle => "export",
        Lane::Opening => "import",
    };
    json!({
        "ph": phase, "cat": category, "name": life.kind.noun(), "id2": {"local": format!("{:#x}", life.id)},
        "pid": on.pid, "tid": on.tid, "ts": micros(at)
    })
}

fn bind(fields: &mut Map<String, Value>, arrow: Arrow) {
    let (id, end) = match arrow {
        Arrow::From(id) => (id, "flow_out"),
        Arrow::To(id) => (id, "flow_in"),
    };
    fields.insert("bind_id".into(), json!(format!("{id:#x}")));
    fields.insert(end.into(), Value::Bool(true));
}

/// Nanoseconds as microseconds. A double holds the three decimals of any run that is shorter than a hundred days.
fn micros(nanos: u64) -> Value {
    json!(nanos as f64 / 1000.0)
}
