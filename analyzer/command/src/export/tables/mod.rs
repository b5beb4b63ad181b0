//! Exports tables of a run as Parquet or JSON lines, with a row for each call, lifetime, finding and process.
//!
//! `columns` defines the tables, `folder` writes them. Groups of rows are written while the traces are read. Only what
//! is alive is kept, never the whole run.

mod columns;
mod folder;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet_file.rs")]
mod parquet_file;
mod row;

use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;
use urscope_schema::call::Values;
use urscope_schema::trace::records::{Header, Hex};

use self::folder::Folder;
use self::row::{Column, Shape};
use super::ExportError;
use urscope_analyzer::{
    analysis::{Analysis, Ended, FoundFinding, Location, Options, ProcessSummary},
    lifetimes::{EndReason, EventSink, FinishedCall, Lifetime, LifetimeTracker, ProcessIndex, ProcessStart},
    plain::plain,
};

/// The format of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Apache Parquet.
    #[default]
    Parquet,
    /// One JSON object per line.
    Jsonl,
}

/// How many rows each table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// The rows of `calls`.
    pub calls: u64,
    /// The rows of `handles`: lifetimes of handle data and of openings.
    pub handles: u64,
    /// The rows of `findings`.
    pub findings: u64,
    /// The rows of `processes`.
    pub processes: u64,
}

/// Writes the tables of a run to a directory, which is created if necessary. Returns how many rows they have.
pub fn export(paths: &[PathBuf], options: &Options, form: Form, folder: &Path) -> Result<Rows, ExportError> {
    let folder = Folder::begin(folder, form)?;
    let rows = Rows::default();
    let mut tracker = LifetimeTracker::new(Tables {
        folder,
        rows,
        processes: Vec::new(),
        process_index: ProcessIndex::default(),
        living: BTreeMap::new(),
    });
    let mut analysis = Analysis::run(paths, options, &mut tracker)?;
    let mut tables = tracker.into_sink();
    let judgement = analysis.judgement();
    for life in std::mem::take(&mut tables.living).into_values() {
        tables.life(&life, None);
    }
    for finding in &judgement.findings {
        tables.finding(finding);
    }
    for (index, seen) in judgement.processes.iter().enumerate() {
        tables.process(index, seen);
    }
    tables.folder.end()?;
    Ok(tables.rows)
}

/// Generates the text of `docs/tables.md`.
pub fn tables_md() -> String {
    let mut text = String::from(
        "# The tables of a run\n\n\
         `urscope export DIR --format parquet -o FOLDER` writes them as `FOLDER/calls.parquet` and so on, `--format jsonl` as JSON lines.\n\
         Generated from `analyzer/command/src/export/tables/columns.rs`; `BLESS=1 cargo test -p urscope-command` updates this page.\n\n\
         Numbers are unsigned 64-bit integers. Addresses, handles and fingerprints are hexadecimal text with `0x`, as in reports. Join tables\n\
         of one folder by `process`, and folders of several nodes by `host` and `processes.realtime_ns`.\n",
    );
    for (name, about, columns) in columns::all() {
        let _ = write!(text, "\n## `{name}`\n\n{}\n\n| column | type | content |\n|---|---|---|\n", about.trim());
        for Column { name, shape, optional, about } in columns {
            let shape = match shape {
                Shape::Number => "number",
                Shape::Text => "text",
            };
            let optional = if optional { ", may be empty" } else { "" };
            let _ = writeln!(text, "| `{name}` | {shape}{optional} | {} |", about.trim());
        }
    }
    text
}

struct Tables {
    folder: Folder,
    rows: Rows,
    processes: Vec<Known>,
    process_index: ProcessIndex,
    living: BTreeMap<u64, Lifetime>,
}

/// A process, with texts that contain no control characters.
struct Known {
    host: String,
    pid: u32,
    rank: Option<u32>,
    executable: String,
    boot: String,
    realtime: u64,
    began: u64,
    ended: u64,
}

/// The end of a lifetime: its time in nanoseconds, and the reason.
type Death = (u64, EndReason);

impl Tables {
    fn life(&mut self, life: &Lifetime, death: Option<Death>) {
        let Some(known) = self.processes.get(life.process as usize) else { return };
        self.rows.handles += 1;
        self.folder.put(&columns::Handle {
            host: &known.host,
            process: life.process,
            pid: known.pid,
            rank: known.rank,
            tid: life.tid,
            life: life.id,
            lane: life.lane.name(),
            kind: life.kind.name(),
            address: Hex(life.address),
            bytes: life.bytes,
            fingerprint: life.fingerprint.map(Hex),
            export: life.export,
            producer: life.producer,
            handle: life.of,
            born_ns: life.at,
            born_call: life.call,
            died_ns: death.map(|(at, _)| at),
            died_call: death.and_then(|(_, how)| match how {
                EndReason::By(_, call) => Some(call),
                EndReason::Replaced | EndReason::With(_) => None,
            }),
            how: death.map(|(_, how)| how.name()),
        });
    }

    fn finding(&mut self, found: &FoundFinding) {
        let FoundFinding { process: side, other, .. } = found;
        let other = other.as_ref();
        let host = plain(&side.host);
        let message = plain(&found.message);
        let advice = plain(&found.advice);
        let process = self.process_index.number(side);
        let other_process = other.and_then(|other| self.process_index.number(other));
        self.rows.findings += 1;
        self.folder.put(&columns::Finding {
            host: &host,
            process,
            pid: side.pid,
            rank: side.rank,
            tid: side.tid,
            rule: &found.rule,
            severity: found.severity.name(),
            at_ns: found.time_ns,
            function: found.function.as_deref(),
            call: found.call,
            message: &message,
            advice: &advice,
            count: found.count,
            subject: found.subject.as_deref(),
            kind: found.kind.as_deref(),
            bytes: found.size,
            fingerprint: found.fingerprint.as_deref(),
            identity: &found.identity,
            stack: stack(side),
            other_process,
            other_pid: other.map(|other| other.pid),
            other_rank: other.and_then(|other| other.rank),
            other_tid: other.map(|other| other.tid),
            other_function: other.and_then(|other| other.function.as_deref()),
            other_call: other.and_then(|other| other.call),
            other_at_ns: other.map(|other| other.time_ns),
            other_stack: other.map(stack),
        });
    }

    fn process(&mut self, index: usize, seen: &ProcessSummary) {
        let Some(known) = self.processes.get(index) else { return };
        self.rows.processes += 1;
        let trace = plain(&seen.file);
        self.folder.put(&columns::Process {
            host: &known.host,
            process: index as u32,
            pid: seen.pid,
            boot: &known.boot,
            rank: seen.rank,
            executable: &known.executable,
            command: plain(&seen.command.join(" ")),
            began_ns: known.began,
            realtime_ns: Some(known.realtime).filter(|time| *time > 0),
            ended: seen.ended.name(),
            ended_ns: known.ended,
            calls: seen.calls,
            ipc_calls: seen.ipc_calls,
            lost: seen.lost,
            trace: &trace,
        });
    }
}

impl EventSink for Tables {
    fn process(&mut self, began: &ProcessStart<'_>) {
        self.process_index.enter(began);
        let Header { host, pid, rank, executable, boot_id, clock, .. } = began.header;
        self.processes.push(Known {
            host: plain(host),
            pid: *pid,
            rank: *rank,
            executable: plain(executable),
            boot: plain(boot_id),
            realtime: clock.realtime_ns,
            began: began.at,
            ended: began.at,
        });
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        let Some(known) = self.processes.get(call.process as usize) else { return };
        let asked = call.asked;
        let answered = call.answered;
        let number = |of: fn(&Values) -> Option<u64>| of(answered).or(of(asked));
        let hex = |of: fn(&Values) -> Option<u64>| number(of).map(Hex);
        self.rows.calls += 1;
        self.folder.put(&columns::Call {
            host: &known.host,
            process: call.process,
            pid: known.pid,
            rank: known.rank,
            tid: call.tid,
            call: call.number,
            function: call.function.name(),
            begin_ns: call.from,
            end_ns: call.to,
            took_ns: call.to.map(|to| to.saturating_sub(call.from)),
            result: call.result.map(|result| u64::from(result.0)),
            result_name: call.result.map(|result| result.text_of(call.function)),
            made: call.made,
            opened: call.of,
            via: number(|values| values.via),
            adapter: hex(|values| values.adapter),
            device: hex(|values| values.device),
            context: hex(|values| values.context),
            object: hex(|values| values.object),
            pointer: hex(|values| values.pointer),
            size: number(|values| values.size),
            offset: number(|values| values.offset),
            flags: hex(|values| values.flags),
            count: number(|values| values.count),
            data: hex(|values| values.data),
            data_size: number(|values| values.data_size),
            fingerprint: hex(|values| values.fingerprint),
            property: hex(|values| values.property),
            value: number(|values| values.value),
            exporter: number(|values| values.exporter),
            exported: hex(|values| values.exported),
            source: hex(|values| values.source),
            queue: hex(|values| values.queue),
            noticed: hex(|values| values.noticed),
            unfinished: number(|values| values.unfinished),
            appended: number(|values| values.appended),
            checksum: number(|values| values.checksum),
            changed: number(|values| values.changed),
            stack: number(|values| values.stack),
        });
    }

    fn birth(&mut self, life: &Lifetime) {
        self.living.insert(life.id, *life);
    }

    fn death(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        self.living.remove(&life.id);
        self.life(life, Some((at, how)));
    }

    fn end(&mut self, process: u32, at: u64, _: Ended) {
        if let Some(known) = self.processes.get_mut(process as usize) {
            known.ended = at;
        }
    }
}

/// A call stack, one line for each frame.
fn stack(side: &Location) -> String {
    let lines: Vec<_> = side.stack.iter().map(|frame| plain(&frame.line())).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_call_has_a_column_of_its_type() {
        use urscope_schema::call::Shape as Written;
        let calls = columns::all().into_iter().find(|(name, ..)| *name == "calls").unwrap().2;
        for (name, shape) in Values::FIELDS {
            let column = calls.iter().find(|column| column.name == *name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(column.shape == Shape::Text, *shape == Written::Hex, "{name}");
        }
    }

    #[test]
    fn tables_md_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, tables_md()).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == tables_md(),
            "docs/tables.md is old: BLESS=1 cargo test -p urscope-command renews it"
        );
    }
}
