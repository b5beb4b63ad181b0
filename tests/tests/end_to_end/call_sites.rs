//! A finding is shown where the callers of the program's wrappers differ, in every answer, and recognized there in a
//! baseline.

use std::path::Path;
use std::{fs, process::Command};

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, Report, TestRun, apps, run};

fn program() -> std::path::PathBuf {
    apps::executable("lending", Release::R2026_2)
}

fn lending(program: &Path, mode: &str) -> Outcome {
    TestRun::of_program(program).adapter(Adapter::V2).arg(mode).run()
}

/// The number of the line of a source that has this comment.
fn line(source: &str, comment: &str) -> usize {
    let text = fs::read_to_string(apps::source(source)).expect("the source");
    1 + text.lines().position(|line| line.ends_with(comment)).expect("the line")
}

/// The call site of the finding of a rule.
fn site(report: &Report, rule: &str) -> String {
    report.finding(rule)["process"]["site"].as_str().expect("a call site").to_owned()
}

#[test]
fn mistakes_behind_wrappers_are_shown_at_the_lines_that_differ() {
    let [early, late, kept] = ["early", "late", "kept"].map(|mode| lending(&program(), mode).report());
    let morning = format!("lend, lending.cpp:{}", line("lending.cpp", "In the morning."));
    let evening = format!("lend, lending.cpp:{}", line("lending.cpp", "In the evening."));
    assert_eq!((site(&early, "freed-while-open"), site(&late, "freed-while-open")), (morning, evening));
    assert_eq!(site(&kept, "leaked-mapping"), format!("use, lending.cpp:{}", line("lending.cpp", "What is kept.")));
    let identity = |report: &Report| report.finding("freed-while-open")["identity"].clone();
    assert_ne!(identity(&early), identity(&late));
}

#[test]
fn a_baseline_with_one_mistake_does_not_excuse_another_in_the_same_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let [early, late] = ["early", "late"].map(|mode| lending(&program(), mode));
    let baseline = folder.path().join("early.json");
    let judged = |outcome: &Outcome, options: &[&str]| {
        let traces = outcome.trace_folder();
        run::urscope(&[&["check", traces.to_str().expect("a path in UTF-8")], options].concat())
    };
    fs::write(&baseline, judged(&early, &["--format", "json"]).stdout).expect("a baseline");
    let baseline = baseline.to_str().expect("a path in UTF-8");
    assert_eq!(judged(&early, &["--baseline", baseline]).code, 0);
    let found = judged(&late, &["--baseline", baseline]);
    assert!(found.code == 1 && found.stdout.contains("1 new, 1 fixed"), "{}", found.stdout);
}

/// Without lines, the functions are compared, and without functions the addresses.
/// The run shows more of a program that makes more mistakes, and that must not change what a mistake is.
#[test]
fn a_mistake_has_one_place_and_identity_alone_and_among_others() {
    let of = |programs: &[&str]| {
        let run = |program: &&str| {
            let (name, case) = program.split_once(' ').unwrap_or((program, ""));
            format!("'{}' {case}", apps::executable(name, Release::R2026_2).display())
        };
        let script = programs.iter().map(run).collect::<Vec<_>>().join("; ");
        let outcome = TestRun::of_program("/bin/sh").adapter(Adapter::V2).arg("-c").arg(script).run();
        let report = outcome.report();
        let named = |finding: &Value| ["rule", "identity", "severity"].map(|field| finding[field].clone());
        let found = report.findings().iter().map(|finding| (named(finding), finding["process"]["site"].clone()));
        found.collect::<Vec<_>>()
    };
    let programs = ["free_while_open", "mistakes double_put", "mistakes leaked_mapping", "mistakes double_close"];
    let together = of(&programs);
    for program in programs {
        let alone = of(&[program]);
        assert!(!alone.is_empty() && alone.iter().all(|found| together.contains(found)), "{alone:#?}, {together:#?}");
    }
}

#[test]
fn stripped_programs_are_compared_as_far_as_they_have_names() {
    let folder = tempfile::tempdir().expect("a folder");
    for (option, expected) in [("--strip-debug", Some("lend")), ("--strip-all", None)] {
        let stripped = folder.path().join("lending");
        let status = Command::new("strip").arg(option).arg(program()).arg("-o").arg(&stripped).status();
        assert!(status.expect("strip cannot be started; install it with: apt-get install binutils").success());
        let [early, late] = ["early", "late"].map(|mode| {
            let report = lending(&stripped, mode).report();
            (site(&report, "freed-while-open"), report.finding("freed-while-open")["identity"].clone())
        });
        assert_ne!(early.1, late.1);
        match expected {
            Some(function) => assert_eq!((early.0.as_str(), late.0.as_str()), (function, function)),
            None => assert!(early.0.ends_with(" in lending") && early.0 != late.0, "{early:?} {late:?}"),
        }
    }
}

#[test]
fn mistakes_of_scripts_are_shown_at_their_lines() {
    let library = apps::executable("lending.so", Release::R2026_2);
    let expected = ["open_the_shop", "close_the_shop"].into_iter().zip(["In the morning.", "In the evening."]);
    let expected: Vec<_> =
        expected.map(|(name, comment)| format!("{name}, lending.py:{}", line("lending.py", comment))).collect();
    for (way, path, rule) in
        [("library", library, "freed-while-exported"), ("loader", "libze_loader.so.1".into(), "leaked-mapping")]
    {
        let test_run = TestRun::of_program(Release::R2026_2.python()).adapter(Adapter::V2);
        let outcome = test_run.arg(apps::source("lending.py")).arg(way).arg(path).run();
        let report = outcome.report();
        let found = report.findings().iter().filter(|found| found["rule"] == rule);
        let mut sites: Vec<_> = found.map(|found| found["process"]["site"].as_str().unwrap_or("none")).collect();
        sites.sort_unstable_by_key(|site| !site.starts_with("open"));
        assert_eq!(sites, expected, "{way}: {}", outcome.stderr);
    }
}

#[test]
fn every_answer_has_the_same_call_site() {
    let outcome = lending(&program(), "kept");
    let expected = site(&outcome.report(), "leaked-mapping");
    let traces = outcome.trace_folder();
    let traces = traces.to_str().expect("a path in UTF-8");
    let answer = |arguments: &[&str]| -> Value {
        let ended = run::urscope(&[arguments, &["--format", "json", traces]].concat());
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {} {}", ended.stdout, ended.stderr))
    };
    let held = answer(&["holders"]);
    assert_eq!(held["held"][0]["holders"][0]["since"]["site"], expected.as_str(), "{held:#}");
    let fingerprint = held["held"][0]["fingerprint"].as_str().expect("a fingerprint");
    let history = answer(&["handle", fingerprint]);
    let moments = history["moments"].as_array().expect("moments");
    let opened = moments.iter().find(|moment| moment["place"]["function"] == "urIPCOpenMemHandleExp");
    assert_eq!(opened.expect("it was opened")["place"]["site"], expected.as_str(), "{history:#}");
    for question in ["holders", "stats"] {
        let parts = answer(&[question, "--by", "site"]);
        let mut names = parts["parts"].as_array().expect("parts").iter().map(|part| &part["name"]);
        assert!(names.any(|name| name == expected.as_str()), "{parts:#}");
    }
    let text = run::urscope(&["check", traces]).stdout;
    assert!(text.contains(&format!("leaked-mapping in {expected}")), "{text}");
}
