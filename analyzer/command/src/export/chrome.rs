//! Writes a timeline as a Chrome trace that Perfetto imports without loss.
//!
//! It uses the object form, with one event per line. Times are in microseconds with three decimals. `bind_id` binds
//! arrows to their slices. Lifetimes are async slices with an id that is local to their process.

use std::io::{self, Write};
use std::ops::Range;

use serde::Serialize;
use serde_json::json;

use super::drawing::{Argument, Drawing, EventArguments, Track, Unit, category};
use urscope_analyzer::lifetimes::{Arrow, Lifetime};
use urscope_schema::trace::records::Hex;

pub(super) struct Chrome<'w> {
    out: &'w mut dyn Write,
    failed: Option<io::Error>,
    /// A buffer for one event, because serde_json writes many small pieces.
    line: Vec<u8>,
    /// How many bars have a track of their own.
    bars: u64,
}

impl<'w> Chrome<'w> {
    pub(super) fn begin(out: &'w mut dyn Write) -> Self {
        let other = json!({"urscope": env!("CARGO_PKG_VERSION")});
        let failed = write!(out, r#"{{"displayTimeUnit":"ns","otherData":{other},"traceEvents":["#).err();
        Self { out, failed, line: b"\n".to_vec(), bars: 0 }
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.failed.is_none() {
            let written = serde_json::to_writer(&mut self.line, event).map_err(io::Error::from);
            self.failed = written.and_then(|()| self.out.write_all(&self.line)).err();
        }
        self.line.clear();
        self.line.extend_from_slice(b"\n,");
    }

    fn metadata(&mut self, name: &str, on: Track, args: EventArguments) {
        self.event(&Event::new("M", name, on, args));
    }
}

/// An event. The order of the fields is that of the output.
#[derive(Default, Serialize)]
struct Event<'a> {
    ph: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id2: Option<Local>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bind_id: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_out: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_in: Option<bool>,
    args: EventArguments,
}

#[derive(Serialize)]
struct Local {
    local: Hex,
}

impl<'a> Event<'a> {
    fn new(ph: &'static str, name: &'a str, on: Track, args: EventArguments) -> Self {
        Self { ph, name, pid: on.pid, tid: on.tid, args, ..Self::default() }
    }

    fn at(self, nanos: u64) -> Self {
        Self { ts: Some(micros(nanos)), ..self }
    }

    fn with_category(self, cat: &'static str) -> Self {
        Self { cat: Some(cat), ..self }
    }

    fn bound(self, arrow: Option<Arrow>) -> Self {
        match arrow {
            None => self,
            Some(Arrow::From(id)) => Self { bind_id: Some(Hex(id)), flow_out: Some(true), ..self },
            Some(Arrow::To(id)) => Self { bind_id: Some(Hex(id)), flow_in: Some(true), ..self },
        }
    }

    /// The begin or the end event of a lifetime.
    fn life(ph: &'static str, on: Track, life: &Lifetime, name: &'a str, args: EventArguments) -> Self {
        let id2 = Some(Local { local: Hex(life.id) });
        Self { id2, ..Self::new(ph, name, on, args).with_category(category(life.lane)) }
    }
}

impl Drawing for Chrome<'_> {
    /// Does nothing: a Chrome trace has only one clock.
    fn clock(&mut self, _: u64, _: u64) {}

    fn process(&mut self, pid: u32, name: &str, order: usize) {
        let on = Track { pid, tid: pid };
        self.metadata("process_name", on, EventArguments::new("name", Argument::Text(name.into())));
        self.metadata("process_sort_index", on, EventArguments::new("sort_index", Argument::Number(order as u64)));
    }

    fn thread(&mut self, on: Track, name: &str) {
        self.metadata("thread_name", on, EventArguments::new("name", Argument::Text(name.into())));
        // The main thread is first, then the others by number.
        let order = if on.tid == on.pid { 0 } else { on.tid };
        self.metadata("thread_sort_index", on, EventArguments::new("sort_index", Argument::Number(order.into())));
    }

    fn call(
        &mut self,
        on: Track,
        category: &'static str,
        name: &str,
        (from, to): (u64, Option<u64>),
        args: EventArguments,
        arrow: Option<Arrow>,
    ) {
        let phase = if to.is_some() { "X" } else { "B" };
        let dur = to.map(|to| micros(to.saturating_sub(from)));
        self.event(&Event { dur, ..Event::new(phase, name, on, args).with_category(category).at(from).bound(arrow) });
    }

    fn birth(&mut self, on: Track, life: &Lifetime, name: &str, args: EventArguments) {
        self.event(&Event::life("b", on, life, name, args).at(life.at).bound(life.arrow()));
    }

    fn death(&mut self, on: Track, life: &Lifetime, name: &str, at: u64, how: &str) {
        let args = EventArguments::new("ended_by", Argument::Text(how.into()));
        self.event(&Event::life("e", on, life, name, args).at(at));
    }

    fn bar(&mut self, pid: u32, category: &'static str, name: &str, span: Range<u64>, args: EventArguments) {
        self.bars += 1;
        for (phase, at, args) in [("b", span.start, args), ("e", span.end, EventArguments::default())] {
            let id2 = Some(Local { local: Hex(self.bars) });
            let event = Event::new(phase, name, Track { pid, tid: pid }, args).with_category(category).at(at);
            self.event(&Event { id2, ..event });
        }
    }

    fn counter(&mut self, pid: u32, _: Unit, name: &str, at: u64, values: &[(&'static str, u64)]) {
        let mut args = EventArguments::default();
        for (key, value) in values {
            args.put(key, Argument::Number(*value));
        }
        self.event(&Event::new("C", name, Track { pid, tid: pid }, args).at(at));
    }

    fn finding(&mut self, on: Option<Track>, name: &str, at: u64, args: EventArguments) {
        let scope = if on.is_some() { "t" } else { "g" };
        let on = on.unwrap_or(Track { pid: 0, tid: 0 });
        self.event(&Event { s: Some(scope), ..Event::new("i", name, on, args).with_category("finding").at(at) });
    }

    fn end(self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        write!(self.out, "\n]}}")?;
        self.out.flush()
    }
}

/// Converts nanoseconds to microseconds. An f64 keeps the three decimals for runs of up to a hundred days.
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}
