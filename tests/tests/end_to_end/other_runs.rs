//! Two runs that write into one directory are judged apart, and together by `urscope check`.

use std::fs;

use urscope_tests::{Adapter, Release, Report, TestRun, apps, artefacts, run::urscope};

use crate::on_both_adapters;

/// Starts one `urscope run` after the other, at the same time, and writes their reports.
const SCRIPT: &str = r#"
urscope=$1 app=$2 folder=$3 fixed=$4
run() { "$urscope" run --device software --dir "$folder/traces" --format json --report "$folder/$1.json" -- "$app" "$1" "$folder/socket" $fixed; }
run server & run client; wait
"#;

on_both_adapters! {
    fn a_consumer_in_another_run_is_not_known(adapter) {
        for (backend, fixed) in [("adapter", ""), ("adapter", "fixed"), ("level_zero", "")] {
            let folder = tempfile::tempdir().unwrap();
            let run = TestRun::of_program("/bin/bash").adapter(adapter).untraced().env("URSCOPE_BACKEND", backend);
            let run = run.arg("-c").arg(SCRIPT).arg("bash").arg(artefacts::command());
            let run = run.arg(apps::executable("two_terminals", Release::R2026_2)).arg(folder.path()).arg(fixed).run();
            let report = |who: &str| {
                let text = fs::read_to_string(folder.path().join(format!("{who}.json")));
                Report::parse(&text.unwrap_or_else(|error| panic!("{who}: {error}: {}", run.stderr)))
            };
            let server = report("server");
            assert_eq!((server.verdict(), server.processes().len()), ("partly-judged", 1), "{server:#?}");
            let said = "no process of this run opened 1 exported object of its own, and another run wrote traces";
            assert!(server.reason().is_some_and(|reason| reason.starts_with(said)), "{server:#?}");
            assert_eq!(report("client").violations(), ["note untraced-peer"]);

            let together = urscope(&["check", folder.path().join("traces").to_str().unwrap()]);
            let expected = if fixed.is_empty() { "urscope: 1 error (2 processes" } else { "urscope: clean (2 processes" };
            assert!(together.stdout.lines().any(|line| line.starts_with(expected)), "{}", together.stdout);
        }
    }
}
