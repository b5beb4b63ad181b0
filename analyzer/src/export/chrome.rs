//! The Chrome trace of a timeline, as Perfetto's importer takes it without a loss.
//!
//! One event a line in the object form. Times are in microseconds with three decimals. Arrows are bound to their
//! slices by `bind_id`; lives are async slices with an id of their process.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    account::{Arrow, Lane, Life},
    plain::plain,
};

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Calls.
    pub calls: u64,
    /// Those of them that never returned.
    pub unreturned: u64,
    /// Lives of handle data, from get to put.
    pub handles: u64,
    /// Openings, from open to close.
    pub openings: u64,
    /// Values of counters.
    pub counters: u64,
    /// Findings.
    pub findings: u64,
}

/// Where something is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

fn event(life: &Life, phase: &str, on: Track, at: u64) -> Value {
    let category = match life.lane {
        Lane::Handle => "export",
        Lane::Opening => "import",
    };
    json!({
        "ph": phase, "cat": category, "name": life.kind.noun(), "id2": {"local": format!("{:#x}", life.id)},
        "pid": on.pid, "tid": on.tid, "ts": micros(at)
    })
}

/// A trace that is being written. After the first failure nothing more is written, and the end tells it.
pub(super) struct Chrome<'w> {
    out: &'w mut dyn Write,
    failed: Option<io::Error>,
    first: bool,
    pub(super) written: Written,
}

impl<'w> Chrome<'w> {
    /// Begins a trace.
    pub(super) fn begin(out: &'w mut dyn Write) -> Self {
        let other = json!({"urscope": env!("CARGO_PKG_VERSION")});
        let failed = write!(out, r#"{{"displayTimeUnit":"ns","otherData":{other},"traceEvents":["#).err();
        Self { out, failed, first: true, written: Written::default() }
    }

    /// Ends it.
    pub(super) fn end(self) -> io::Result<Written> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        write!(self.out, "\n]}}")?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn event(&mut self, event: &Value) {
        if self.failed.is_none() {
            let separator = if std::mem::take(&mut self.first) { "\n" } else { "\n," };
            self.failed = write!(self.out, "{separator}{event}").err();
        }
    }

    /// Names a process and says in which order it is shown.
    pub(super) fn process(&mut self, pid: u32, name: &str, order: usize) {
        self.event(&json!({"ph": "M", "name": "process_name", "pid": pid, "tid": pid, "args": {"name": text(name)}}));
        let args = json!({"sort_index": order});
        self.event(&json!({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": pid, "args": args}));
    }

    /// A call that returned, from `from` to `to` in nanoseconds.
    pub(super) fn call(
        &mut self,
        on: Track,
        name: &str,
        (from, to): (u64, u64),
        args: Map<String, Value>,
        arrow: Option<Arrow>,
    ) {
        let mut event = json!({"ph": "X", "cat": "ur", "name": name, "pid": on.pid, "tid": on.tid});
        if let Some(fields) = event.as_object_mut() {
            fields.insert("ts".into(), micros(from));
            fields.insert("dur".into(), micros(to.saturating_sub(from)));
            arrow.inspect(|arrow| bind(fields, *arrow));
            fields.insert("args".into(), Value::Object(args));
        }
        self.event(&event);
        self.written.calls += 1;
    }

    /// A call that never returned.
    pub(super) fn unreturned(&mut self, on: Track, name: &str, from: u64, args: &Map<String, Value>) {
        self.event(&json!({
            "ph": "B", "cat": "ur", "name": name, "pid": on.pid, "tid": on.tid, "ts": micros(from), "args": args
        }));
        self.written.calls += 1;
        self.written.unreturned += 1;
    }

    /// A life begins.
    pub(super) fn birth(&mut self, on: Track, life: &Life, args: Map<String, Value>) {
        let mut event = event(life, "b", on, life.at);
        if let Some(fields) = event.as_object_mut() {
            life.arrow().inspect(|arrow| bind(fields, *arrow));
            fields.insert("args".into(), Value::Object(args));
        }
        self.event(&event);
        match life.lane {
            Lane::Handle => self.written.handles += 1,
            Lane::Opening => self.written.openings += 1,
        }
    }

    /// It ends.
    pub(super) fn death(&mut self, on: Track, life: &Life, at: u64, how: &str) {
        let mut event = event(life, "e", on, at);
        if let Some(fields) = event.as_object_mut() {
            fields.insert("args".into(), json!({"ended_by": how}));
        }
        self.event(&event);
    }

    /// The values of a process's counters.
    pub(super) fn counter(&mut self, pid: u32, name: &str, at: u64, values: &[(&str, u64)]) {
        let args: Map<String, Value> = values.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.event(&json!({"ph": "C", "name": name, "pid": pid, "tid": pid, "ts": micros(at), "args": args}));
        self.written.counters += values.len() as u64;
    }

    /// A finding.
    pub(super) fn finding(&mut self, on: Track, name: &str, at: u64, args: &Map<String, Value>) {
        self.event(&json!({
            "ph": "i", "s": "t", "cat": "finding", "name": name, "pid": on.pid, "tid": on.tid, "ts": micros(at), "args": args
        }));
        self.written.findings += 1;
    }
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

/// Text without control characters, and without a backslash at its end, behind which some importers lose the rest.
pub(super) fn text(text: &str) -> String {
    let mut text = plain(text);
    if text.ends_with('\\') {
        text.push(' ');
    }
    text
}
