//! Many processes that share with each other while some of them are killed: exactly the mistakes that others make are
//! found.

use std::time::Duration;

use serde_json::Value;

use super::{counted::Counted, ledger, stage::Stage};
use crate::{Trace, trace};

/// A crowd of processes.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// The number of processes: 9 to 64.
    pub processes: u32,
    /// The threads of each: at most 18.
    pub threads: u32,
    /// What each thread does, in pairs of calls.
    pub cycles: u32,
    /// Which are killed, and when.
    pub seed: u64,
    /// Where.
    pub stage: Stage,
}

/// What came of it.
#[derive(Debug)]
pub struct Verdict {
    /// What went wrong.
    pub failures: Vec<String>,
    /// How many calls the traces hold.
    pub calls: u64,
    /// How many processes were killed.
    pub killed: u64,
}

/// A rule, and the process that violates it.
type Finding = (String, u64);

impl Crowd {
    /// Runs it and compares what is found with what was planted, and the calls in the traces with those that were
    /// counted.
    pub fn run(&self) -> Verdict {
        let numbers = [self.processes, self.threads, self.cycles].map(|number| number.to_string());
        let run = numbers.into_iter().fold(self.stage.test_run("killed_crowd"), crate::TestRun::arg);
        let outcome = run.arg(self.seed.to_string()).limit(Duration::from_mins(30)).run();
        let lines: Vec<Value> =
            outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("the program prints JSON")).collect();
        let counted: Vec<Counted> =
            outcome.stdout.lines().filter(|line| line.contains("slots")).map(Counted::parse).collect();
        let mut failures = Vec::new();
        if outcome.code != 1 || counted.len() != self.processes as usize {
            failures.push(format!("the run ended with {}: {}", outcome.code, outcome.stderr));
        }

        let mut planted: Vec<Finding> =
            lines.iter().filter_map(|line| finding(&line["planted"], &line["pid"])).collect();
        let report = outcome.report();
        // So does the v1 adapter answer an open of what a killed process had offered.
        let counts = |finding: &&Value| finding["severity"] != "note" && finding["rule"] != "success-without-result";
        let found = report.findings().iter().filter(counts);
        let mut found: Vec<Finding> = found.filter_map(|it| finding(&it["rule"], &it["process"]["pid"])).collect();
        planted.sort();
        found.sort();
        if planted.is_empty() || planted != found {
            failures.push(format!("planted: {planted:?}\nfound: {found:?}"));
        }
        let lost = report.findings().iter().filter(|it| it["rule"] == "calls-lost");
        failures.extend(lost.map(|it| format!("{}", it["message"])));

        let mut calls = 0;
        for file in outcome.trace_files() {
            // Some were killed, maybe inside a record.
            let trace = Trace::read_of_killed(&file);
            trace.assert_whole();
            calls += trace.calls("B").count() as u64;
            match counted.iter().find(|counted| counted.pid == trace.pid()) {
                Some(counted) => failures.extend(ledger::compare(counted, Some(&trace)).wrong),
                None => failures.push(format!("nobody counted the calls of {}", file.display())),
            }
        }
        if trace::files_in(&outcome.trace_folder()).len() != counted.len() || calls != report.all_calls() {
            failures.push(format!("the traces hold {calls} calls, and the report {}", report.all_calls()));
        }
        let killed = lines.iter().find_map(|line| line["killed"].as_u64()).unwrap_or(0);
        Verdict { failures, calls, killed }
    }
}

fn finding(rule: &Value, pid: &Value) -> Option<Finding> {
    Some((rule.as_str()?.to_owned(), pid.as_u64()?))
}
