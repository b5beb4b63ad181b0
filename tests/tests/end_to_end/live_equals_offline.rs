//! For every program: what the validation layer finds in a process while it runs equals what the judge finds in the
//! trace of that process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use urscope_tests::{Adapter, Outcome, Release, Report, TestRun, Trace, on_all_processors, repository, run};

use crate::{on_both_adapters, programs, views_agree};

/// What was found: how often each "severity rule", and the messages.
#[derive(Debug, Default)]
struct Found {
    violations: BTreeMap<String, u64>,
    messages: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, finding: &Value, times: u64) {
        let [severity, rule, message] =
            ["severity", "rule", "message"].map(|word| finding[word].as_str().expect("a finding has these fields"));
        *self.violations.entry(format!("{severity} {rule}")).or_default() += times;
        self.messages.insert(message.to_owned());
    }
}

/// What was found in one process while it ran.
fn live(trace: &Trace) -> Found {
    let mut found = Found::default();
    for finding in trace.records.iter().filter(|record| record["ph"] == "i" && record["name"] == "finding") {
        assert_eq!(finding["cat"], "urscope", "{finding}");
        found.add(&finding["args"], 1);
    }
    found
}

/// What was found in all processes while they ran, as "severity rule".
fn all_live(outcome: &Outcome) -> Vec<String> {
    let violations: BTreeSet<String> =
        outcome.traces().iter().flat_map(|trace| live(trace).violations.into_keys()).collect();
    violations.into_iter().collect()
}

/// The rules that need the whole run: one process cannot check them.
fn by_judge() -> BTreeSet<String> {
    let rules = std::fs::read_to_string(repository().join("docs/rules.md")).expect("the rules can be read");
    let rows = rules.lines().filter_map(|line| line.strip_prefix("| [`"));
    let looks_at_run = rows.filter(|row| row.split(" | ").nth(2) == Some("run"));
    let rules: BTreeSet<String> = looks_at_run.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect();
    assert!(rules.contains("no-calls-seen") && rules.len() <= 12, "{rules:?}");
    rules
}

/// What the judge finds in the trace of one process alone. For a process that was killed, or became another program, it
/// leaves out what the process left behind, because the layer could not report that: when an `exec` begins, it may
/// still fail.
fn judged(trace: &Trace) -> Found {
    let ended = run::urscope(&["check", "--format", "json", trace.path.to_str().expect("a path in UTF-8")]);
    let report = Report::parse(&ended.stdout);
    let ended = report.process(trace.pid())["ended"] == "exited";
    let mut found = Found::default();
    let by_judge = by_judge();
    for finding in report.findings() {
        let message = finding["message"].as_str().unwrap_or_default();
        let by_its_end = message.contains("was killed before it could")
            || message.contains("its trace is incomplete")
            || message.contains("has become another program");
        let rule = finding["rule"].as_str().unwrap_or_default();
        if (ended || !by_its_end) && !by_judge.contains(rule) {
            // One that stands for others that are left is one record, too.
            let stands_for_others = message.contains("; it is one of ");
            match finding["severities"].as_object() {
                None => found.add(finding, finding["count"].as_u64().filter(|_| !stands_for_others).unwrap_or(1)),
                Some(severities) => {
                    for (severity, count) in severities {
                        let of_severity = json!({"severity": severity, "rule": rule, "message": message});
                        let shown = stands_for_others && finding["severity"] == **severity;
                        found.add(&of_severity, count.as_u64().filter(|_| !shown).unwrap_or(1));
                    }
                }
            }
        }
    }
    found
}

/// Checks that what was found in each process of a run while it ran is what the judge finds in its trace. Returns how
/// many processes were compared, and how many kinds of violations they have. Where nothing was found either way, there
/// is nothing to compare.
pub(crate) fn same_while_it_runs(way: &str, outcome: &Outcome) -> (usize, usize) {
    let traces = outcome.traces();
    let found: Vec<Found> = traces.iter().map(live).collect();
    if outcome.report().findings().is_empty() && found.iter().all(|found| found.violations.is_empty()) {
        return (traces.len(), 0);
    }
    for (trace, found) in traces.iter().zip(&found) {
        let expected = judged(trace);
        assert_eq!(found.violations, expected.violations, "{way}: {}", outcome.stderr);
        // The judge reports one message for findings that repeat at one place.
        assert!(found.messages.is_superset(&expected.messages), "{way}: {found:#?}, {expected:#?}");
    }
    (traces.len(), found.iter().map(|found| found.violations.len()).sum())
}

on_both_adapters! {
    /// The scenarios of `tests/apps/mistakes` are compared where they are judged (`hunt`).
    fn live_findings_are_the_judges(adapter) {
        let programs = programs::on(adapter);
        let [processes, violations] = [0, 0].map(AtomicUsize::new);
        let differences = Mutex::new(Vec::new());
        // What a process finds of itself does not depend on the adapter: on v1, one way to run each program is enough.
        // Of the many ways on v2, every second one is.
        let ways = if adapter == Adapter::V1 { 1 } else { usize::MAX };
        let ways = |program: &&str| programs::ways(program, adapter).into_iter().zip(0..).step_by(2).take(ways);
        let all = programs.iter().flat_map(ways);
        on_all_processors(all, |((way, test_run), number)| {
            let outcome = test_run.run();
            let (compared, found) = same_while_it_runs(&way, &outcome);
            processes.fetch_add(compared, Ordering::Relaxed);
            violations.fetch_add(found, Ordering::Relaxed);
            // Of the many ways to run a program, every eighth is enough.
            if adapter == Adapter::V2 && number % 8 == 0 && views_agree::are_comparable(&way, &outcome) {
                let found = views_agree::differences(&outcome).into_iter().map(|it| format!("{way}: {it}"));
                differences.lock().expect("no other thread has panicked").extend(found);
            }
        });
        let differences = differences.into_inner().expect("no thread has panicked");
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        let [processes, violations] = [processes, violations].map(AtomicUsize::into_inner);
        assert!(processes > programs.len() && violations > 5, "only {violations} findings in {processes} processes were compared");
    }
}

/// The handle data say how long a mapping is, so the consumer alone knows a pointer into it.
#[test]
fn a_pointer_into_a_mapping_is_known_to_one_process_alone() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = TestRun::new("scenario close_interior", Release::R2026_2, adapter).run();
        assert_eq!(all_live(&outcome), ["error open-close-mismatch"], "{}", outcome.stderr);
        assert_eq!(outcome.report().violations(), ["error open-close-mismatch"]);
    }
}

/// The lines of standard error that report a violation.
fn reported<'a>(outcome: &'a Outcome, violation: &str) -> Vec<&'a str> {
    let begins = format!("urscope: {}: ", violation.replace(' ', ": "));
    outcome.stderr.lines().filter(|line| line.starts_with(&begins)).collect()
}

#[test]
fn a_violation_is_reported_on_standard_error_even_when_quiet() {
    for quiet in ["0", "1"] {
        let outcome =
            TestRun::new("scenario put_of_unknown", Release::R2026_2, Adapter::V2).env("URSCOPE_QUIET", quiet).run();
        assert_eq!(reported(&outcome, "error put-of-unknown").len(), 1, "{}", outcome.stderr);
        let noted =
            TestRun::new("scenario free_before_put", Release::R2026_2, Adapter::V2).env("URSCOPE_QUIET", quiet).run();
        assert_eq!(reported(&noted, "note freed-while-exported").len(), usize::from(quiet == "0"), "{}", noted.stderr);
    }
}

/// Both stacks show the functions of the program, with offsets that other tools understand.
#[test]
fn a_violation_is_reported_with_the_call_stacks_of_both_places() {
    let line = |stacks: &str, app: &str, violation: &str| {
        let outcome = TestRun::new(app, Release::R2026_2, Adapter::V2).env("URSCOPE_STACKS", stacks).run();
        let lines = reported(&outcome, violation);
        assert_eq!(lines.len(), 1, "{}", outcome.stderr);
        lines[0].to_owned()
    };
    let both = line("1", "mistakes double_close", "error double-close");
    let (_, stacks) = both.split_once("; here ").expect("a stack");
    let (here, there) = stacks.split_once("; there ").expect("another stack");
    for stack in [here, there] {
        let frames: Vec<&str> = stack.split(" ← ").collect();
        assert!(frames.iter().all(|frame| frame.contains(" (mistakes+0x")), "{both}");
        assert!(frames.iter().any(|frame| frame.contains("double_close(")), "{both}");
    }
    assert_ne!(here, there, "two calls in two lines: {both}");
    let leak = line("1", "mistakes leaked_handle", "warning leaked-handle");
    assert!(
        leak.contains("; here ") && !leak.contains("; there "),
        "a leak is reported with the stack of the get: {leak}"
    );
    let bare = line("0", "mistakes double_close", "error double-close");
    assert!(!bare.contains("; here ") && !bare.contains("; there "), "{bare}");
}

/// The program only records, judged or not, unless the user wants findings while it runs.
#[test]
fn findings_are_reported_while_the_program_runs_where_that_is_wanted() {
    let test_run =
        || TestRun::new("scenario put_of_unknown", Release::R2026_2, Adapter::V2).without_env("URSCOPE_VALIDATE");
    let violation = "error put-of-unknown";
    let none = Vec::<String>::new();
    let unwanted = [
        test_run(),
        TestRun::new("scenario put_of_unknown", Release::R2026_2, Adapter::V2).env("URSCOPE_VALIDATE", "off"),
    ];
    for outcome in unwanted.map(TestRun::run) {
        assert_eq!((all_live(&outcome), reported(&outcome, violation).len()), (none.clone(), 0), "{}", outcome.stderr);
        assert_eq!(outcome.report().violations(), [violation], "the judge finds it without the layer");
    }
    let unjudged = test_run().option("--no-check").run();
    assert_eq!((all_live(&unjudged), reported(&unjudged, violation).len()), (none, 0), "{}", unjudged.stderr);
    for wanted in [test_run().option("--verbose"), test_run().env("URSCOPE_ON_ERROR", "refuse")] {
        let outcome = wanted.run();
        assert_eq!((all_live(&outcome), reported(&outcome, violation).len()), (vec![violation.to_owned()], 1));
        assert_eq!(outcome.report().violations(), [violation]);
    }
}

/// A process of two threads that call in turns.
#[test]
fn a_finding_is_reported_in_the_call_that_causes_it() {
    let pairs = "p: get a -> f\np/2: get a -> g\np: put f\np/2: put g\n";
    let scenario = format!("p: alloc a 64\n{pairs}p/2: get a -> h\np/2: put h\np: put h\n{pairs}p: free a\n");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), &scenario).expect("a file for the scenario");
    let test_run = TestRun::new("scenario", Release::R2026_2, Adapter::V2).arg(file.path());
    let outcome = test_run.env("URSCOPE_VALIDATE", "on").env("URSCOPE_FORMAT", "chrome").run();
    assert_eq!(outcome.report().violations(), ["error double-put"], "{}", outcome.stderr);
    let traces = outcome.traces();
    let is_finding = |record: &Value| record["ph"] == "i" && record["name"] == "finding";
    let mut findings = traces.iter().filter_map(|trace| {
        let at = trace.records.iter().position(is_finding)?;
        let before = trace.records.get(..at)?;
        let finding = trace.records.get(at)?;
        let of_thread = |record: &&Value| record["cat"] == "api" && record["tid"] == finding["tid"];
        before.iter().rev().find(of_thread)
    });
    let call = findings.next().expect("a finding while the program ran");
    assert_eq!(
        (&call["ph"], &call["name"]),
        (&"B".into(), &"urIPCPutMemHandleExp".into()),
        "the second put is under way"
    );
    assert!(findings.next().is_none());
}

/// The results of a call in all traces, in order.
fn results(outcome: &Outcome, entry_point: &str) -> Vec<u64> {
    let traces = outcome.traces();
    let exits = traces.iter().flat_map(|trace| trace.calls("E")).filter(|exit| exit["name"] == entry_point);
    exits.map(|exit| exit["args"]["result"].as_u64().expect("an exit has a result")).collect()
}

#[test]
fn a_refused_call_gets_the_documented_error_and_is_recorded_once() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let refused = |app: &str| TestRun::new(app, Release::R2026_2, adapter).env("URSCOPE_ON_ERROR", "refuse").run();
        let outcome = refused("mistakes double_close");
        assert!(outcome.stdout.contains("second close refused"), "{}", outcome.stdout);
        assert_eq!(results(&outcome, "urIPCCloseMemHandleExp"), [0, 45]);
        assert_eq!(outcome.report().violations(), ["error double-close"]);
        outcome.traces().iter().for_each(Trace::assert_whole);

        let outcome = refused("scenario put_of_unknown");
        assert!(outcome.stdout.contains("p: put unknown may-fail: refused"), "{}", outcome.stdout);
        assert_eq!(results(&outcome, "urIPCPutMemHandleExp"), [45, 0]);
        assert_eq!(outcome.report().violations(), ["error put-of-unknown"]);
    }
}

#[test]
fn a_clean_program_is_never_refused() {
    for app in ["clean", "clean_threads 100", "ur_sharing direct", "scenario free_before_put"] {
        let run =
            |on_error: &str| TestRun::new(app, Release::R2026_2, Adapter::V2).env("URSCOPE_ON_ERROR", on_error).run();
        for on_error in ["refuse", "abort"] {
            let left = run("report");
            let strict = run(on_error);
            assert_eq!(
                (strict.code, &strict.stdout),
                (left.code, &left.stdout),
                "{app}, {on_error}: {}",
                strict.stderr
            );
        }
    }
}

/// The trace of the aborted process is closed after its last finding.
#[test]
fn an_abort_ends_the_program_at_the_call_and_closes_its_trace() {
    for (app, violation) in
        [("scenario put_of_unknown", "error put-of-unknown"), ("mistakes double_close", "error double-close")]
    {
        let outcome = TestRun::new(app, Release::R2026_2, Adapter::V2).env("URSCOPE_ON_ERROR", "abort").run();
        assert_eq!(reported(&outcome, violation).len(), 1, "{}", outcome.stderr);
        assert!(outcome.report().violations().contains(&violation.to_owned()), "{:#?}", outcome.report());
        let traces = outcome.traces();
        let aborted = |record: &Value| record["name"] == "urscope_footer" && record["args"]["how"] == "abort";
        let ended = traces.iter().find(|trace| trace.records.iter().any(aborted)).expect("a trace that says abort");
        assert!(ended.closed, "{}", ended.path.display());
        assert_eq!(ended.unfinished().len(), 1, "the call that it ended in");
    }
}
