//! What a process counted of its own calls.

use std::collections::BTreeMap;

use serde_json::Value;

/// The calls of one thread, by function.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    pub begun: BTreeMap<String, u64>,
    pub returned: BTreeMap<String, u64>,
}

/// One process, or one program of a process that executed another.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub seed: u64,
    pub way: String,
    /// "itself", or what came of it: "forked", "executed".
    pub process: String,
    pub pid: u64,
    /// "exit" or "signal", and a number.
    pub ended: String,
    /// It did not end in time.
    pub hung: bool,
    /// From some moment on, a limit kept records out of the trace.
    pub limited: bool,
    pub threads: BTreeMap<u64, Calls>,
    /// How many calls signal handlers began.
    pub by_handlers: u64,
}

impl Counted {
    /// Reads a line of the program.
    pub(super) fn parse(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in: {line}"));
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("a number is missing in: {line}"));
        let text = |name: &str| value[name].as_str().unwrap_or_else(|| panic!("no {name} in: {line}")).to_owned();
        let mut counted = Self {
            seed: number(&value["seed"]),
            way: text("way"),
            process: text("process"),
            pid: number(&value["pid"]),
            ended: text("ended"),
            hung: value["hung"] == true,
            limited: value["limited"] != 0,
            threads: BTreeMap::new(),
            by_handlers: 0,
        };
        for slot in value["slots"].as_array().expect("a list of slots") {
            let calls = counted.threads.entry(number(&slot["tid"])).or_default();
            for (counts, name) in [(&mut calls.begun, "begun"), (&mut calls.returned, "returned")] {
                for (function, count) in slot[name].as_object().expect("a count of each function") {
                    *counts.entry(function.clone()).or_default() += number(count);
                }
            }
            if slot["of_handlers"] != 0 {
                let begun = slot["begun"].as_object().expect("just read");
                counted.by_handlers += begun.values().map(number).sum::<u64>();
            }
        }
        counted
    }

    /// How many calls have returned.
    pub(super) fn returned(&self) -> u64 {
        self.threads.values().flat_map(|calls| calls.returned.values()).sum()
    }

    /// Whether the process ends, or becomes another program, by its own call while its threads are inside calls: what
    /// they hold then is left behind.
    pub(super) fn leaves_in_the_middle(&self) -> bool {
        let ways = [
            "exit",
            "exit_at_once",
            "handler_exits",
            "handler_exits_at_once",
            "handler_exits_inside_malloc",
            "execute",
        ];
        ways.contains(&self.way.as_str())
    }

    /// Whether a handler forked this process in the middle of a call, whose begin is in the trace of its parent.
    pub(super) fn begins_inside_a_call(&self) -> bool {
        self.way == "handler_forks" && self.process == "forked"
    }

    /// Whether the trace may hold returns of calls without their begins.
    pub(super) fn may_lack_begins(&self) -> bool {
        self.limited || self.by_handlers > 0 || self.begins_inside_a_call()
    }

    /// Whether the process may have ended as it did. All others end in order, or are killed.
    pub(super) fn may_end_so(&self) -> bool {
        let own = match (self.process.as_str(), self.way.as_str()) {
            ("itself", "terminate") => "signal 15",
            // A thread that is cancelled inside the adapter aborts the process.
            ("itself", "abort" | "cancel") => "signal 6",
            // exit(3) unloads what other threads are in.
            ("itself", "exit") if self.ended == "signal 6" => "signal 6",
            ("itself", "fault" | "exit") => "signal 11",
            ("itself", "limit_files") => "signal 25",
            ("itself", "full_disk" | "out_of_reach") => "exit 137",
            _ => "",
        };
        ["exit 0", "signal 9", own].contains(&self.ended.as_str())
    }
}
