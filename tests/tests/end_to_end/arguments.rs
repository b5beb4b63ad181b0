//! Arguments that the header forbids. With `URSCOPE_ON_ERROR=refuse` they get the result of Unified Runtime's own
//! validation layer; without it they are only reported. A correct call is never refused.

use std::collections::BTreeMap;

use urscope_tests::{Adapter, Outcome, Release, TestRun};

/// Each case, the specified answer, and that of the v2 adapter alone; `None` where it crashes, or may.
#[rustfmt::skip]
const CASES: [(&str, &str, Option<&str>); 11] = [
    ("info-of-a-device", "49 48 48 0 0", Some("49 0 48 0 0")),
    ("info-of-support", "49 48 48 0 0", Some("49 0 48 0 0")),
    ("info-of-an-event", "49 48 48 0 0", Some("49 0 48 0 0")),
    ("wait-for-nothing", "4 0", Some("0 0")),
    ("context-of-no-device", "49", None),
    ("context-with-undefined-flags", "53 0", None),
    ("memory-of-no-size", "64", None),
    ("memory-with-undefined-hints", "53 0", None),
    // The adapter checks this one.
    ("memory-unevenly-aligned", "4 4 0", None),
    ("get-of-memory-into-nothing", "48", None),
    ("free-of-nothing", "48", None),
];

fn test_run() -> TestRun {
    TestRun::new("ur_arguments", Release::R2026_2, Adapter::V2).option("--no-check").arg("alone")
}

fn lines(outcome: &Outcome) -> Vec<&str> {
    outcome.stdout.lines().collect()
}

#[test]
fn what_the_header_forbids_is_refused_as_the_runtimes_own_validation_does() {
    let promised: Vec<String> = CASES.iter().map(|(case, answer, _)| format!("{case}: {answer}")).collect();
    let refusing = test_run().env("URSCOPE_ON_ERROR", "refuse").run();
    assert_eq!((refusing.code, lines(&refusing)), (0, promised.iter().map(String::as_str).collect()));
    let checked = test_run().option("--no-shim").env("UR_ENABLE_LAYERS", "UR_LAYER_PARAMETER_VALIDATION").run();
    assert_eq!((checked.code, &checked.stdout), (0, &refusing.stdout), "{}", checked.stderr);
}

/// A trace shows null out-parameters, too.
#[test]
fn what_is_reported_at_the_call_is_found_in_the_trace() {
    let test_run = TestRun::new("ur_arguments", Release::R2026_2, Adapter::V2).env("URSCOPE_ON_ERROR", "refuse");
    let outcome = test_run.arg("alone").run();
    let mut live = BTreeMap::new();
    for line in outcome.stderr.lines().filter(|line| line.contains(": error: invalid-argument: ")) {
        let call = line.rsplit_once(" in call ").expect("a call is named").1;
        let function = call.split_once('(').and_then(|(_, rest)| rest.split_once(',')).expect("its function, too").0;
        *live.entry(function.to_owned()).or_insert(0) += 1;
    }
    let mut found = BTreeMap::new();
    let report = outcome.report();
    for finding in report.findings().iter().filter(|finding| finding["rule"] == "invalid-argument") {
        let function = finding["function"].as_str().expect("a finding about a call has its function");
        *found.entry(function.to_owned()).or_insert(0) += finding["count"].as_u64().expect("a number");
    }
    assert!(["urDeviceGetInfo", "urEventGetInfo", "urContextCreate"].iter().all(|name| live.contains_key(*name)));
    assert_eq!(live, found, "{}", outcome.stderr);
}

/// By default the answers are those of the adapter, and each mistake is reported with its argument.
#[test]
fn what_is_only_reported_reaches_the_adapter() {
    let [reported, bare] = [test_run().run(), test_run().option("--no-shim").run()];
    assert_eq!((reported.code, &reported.stdout), (bare.code, &bare.stdout), "{}", reported.stderr);
    let own = CASES.iter().map_while(|(case, _, own)| Some(format!("{case}: {}", (*own)?)));
    assert_eq!(lines(&reported), own.collect::<Vec<_>>());
    let reports = |argument: &str, function: &str| {
        let wanted = |line: &&str| line.contains(": error: invalid-argument: ") && line.contains(argument);
        reported.stderr.lines().filter(wanted).filter(|line| line.contains(&format!("({function}, "))).count()
    };
    assert_eq!(reports(" passes 0 as size in ", "urDeviceGetInfo"), 2);
    assert_eq!(reports(" passes null as value in ", "urDeviceGetInfo"), 2);
    assert_eq!(reports(", as value in ", "urDeviceGetInfo"), 2);
    assert_eq!(reports("", "urEventGetInfo"), 3);
    assert_eq!((reports(" passes 0 as count in ", "urEventWait"), reports("", "urContextCreate")), (1, 1));
}
