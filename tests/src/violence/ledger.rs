//! Compares what a process counted with what its trace holds.

use std::collections::BTreeMap;

use super::counted::Counted;
use crate::Trace;

/// What comes of one comparison.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// What must not be.
    pub wrong: Vec<String>,
    /// Records that are missing, because of a limit or a handler, and are reported as lost.
    pub stated: u64,
    /// The same, where the process ended before its trace could report them.
    pub unstated: u64,
}

/// Records of one thread by phase and function.
type Recorded<'a> = BTreeMap<(u64, &'a str, &'a str), u64>;

/// Compares, thread by thread and function by function.
pub(super) fn compare(counted: &Counted, trace: Option<&Trace>) -> Comparison {
    let mut comparison = Comparison::default();
    let Some(trace) = trace else {
        if counted.limited {
            comparison.unstated = counted.returned();
        } else if counted.returned() > u64::from(counted.begins_inside_a_call()) {
            comparison.wrong.push(format!("{} calls returned, and there is no trace", counted.returned()));
        }
        return comparison;
    };
    let recorded = recorded(trace);
    // The call that a handler forked in is counted by parent and child, in parts.
    let inherited = u64::from(counted.begins_inside_a_call());
    let mut missing = 0;
    for (tid, calls) in &counted.threads {
        for (function, begun) in &calls.begun {
            let returned = calls.returned.get(function).copied().unwrap_or(0);
            for phase in ["B", "E"] {
                let found = recorded.get(&(*tid, phase, function.as_str())).copied().unwrap_or(0);
                if found > *begun + inherited {
                    let what =
                        format!("thread {tid} began {begun} calls of {function}, and {found} {phase} records exist");
                    comparison.wrong.push(what);
                }
                missing += returned.saturating_sub(found);
            }
        }
    }
    let missing = missing.saturating_sub(2 * inherited);
    let lost = Lost::from_trace(trace);
    // In a process that is killed, each thread may be about to write the number.
    let room = if lost.is_final { 0 } else { counted.threads.len() as u64 };
    let excused = counted.limited || counted.by_handlers > 0;
    if missing <= lost.records + if excused { room } else { 0 } {
        comparison.stated = missing;
        // What a handler interrupted to fork, the child may be unable to record: it says so.
        if lost.records > inherited && !excused {
            comparison.wrong.push(format!("{} records are lost without a limit", lost.records));
        }
    } else if lost.records <= 1 && !lost.is_final && missing <= 2 * counted.by_handlers {
        comparison.unstated = missing;
    } else {
        let what = format!(
            "{missing} records of calls that returned are missing, of which the trace reports {}",
            lost.records
        );
        comparison.wrong.push(what);
    }
    comparison
}

fn recorded(trace: &Trace) -> Recorded<'_> {
    let mut recorded = Recorded::new();
    for phase in ["B", "E"] {
        for record in trace.calls(phase) {
            let tid = record["tid"].as_u64().expect("a record has a thread");
            let function = record["name"].as_str().expect("a call has a name");
            *recorded.entry((tid, phase, function)).or_default() += 1;
        }
    }
    recorded
}

/// How many records are lost, as the trace reports it.
struct Lost {
    records: u64,
    /// The process ended in order and reported all of them.
    is_final: bool,
}

impl Lost {
    fn from_trace(trace: &Trace) -> Self {
        let reported = |name: &str| {
            let records = trace.records.iter().filter(|record| record["name"] == name);
            records.map(|record| record["args"]["lost"].as_u64().expect("a number of lost records")).max()
        };
        let at_the_end = reported("urscope_footer");
        Self { records: at_the_end.max(reported("urscope_gap")).unwrap_or(0), is_final: at_the_end.is_some() }
    }
}
