//! `urscope check`, `explain` and `doctor`, the help texts, and the errors for invalid arguments.

use std::fs;

use serde_json::Value;

use urscope_analyzer::plain::is_unprintable;

use crate::command::{Workspace, harmless_library};

#[test]
fn the_version_and_the_help_are_printed() {
    let workspace = Workspace::new();
    let short = workspace.run(&["-V"]);
    assert_eq!((short.code, short.stdout), (0, format!("urscope {}\n", env!("CARGO_PKG_VERSION"))));
    let version = workspace.run(&["--version"]);
    let [first, formats @ ..] = &version.stdout.lines().collect::<Vec<_>>()[..] else { panic!("{version:?}") };
    assert!(first.starts_with(&format!("urscope {}", env!("CARGO_PKG_VERSION"))), "{version:?}");
    assert_eq!(formats.len(), 4, "{version:?}");
    for (line, name) in formats.iter().zip(["trace", "report", "node report", "answer"]) {
        let number = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(" format "));
        assert!(number.is_some_and(|number| number.parse::<u32>().is_ok()), "{line}");
    }
    for arguments in
        [&["--help"][..], &["run", "--help"], &["check", "--help"], &["doctor", "--help"], &["explain", "--help"]]
    {
        let help = workspace.run(arguments);
        assert_eq!(help.code, 0);
        assert!(help.stdout.contains("Examples:") && help.stdout.contains("Exit code"), "{}", help.stdout);
        assert!(!help.stdout.contains("doctor-probe"), "{}", help.stdout);
    }
}

#[test]
fn unknown_arguments_are_refused() {
    let workspace = Workspace::new();
    for arguments in [&["judge"][..], &["run", "--fast", "--", "true"], &["handle"], &["check", "--fail-on", "x", "."]]
    {
        let ended = workspace.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains("error:"), "{}", ended.stderr);
    }
}

#[test]
fn missing_traces_cannot_be_analyzed() {
    let workspace = Workspace::new();
    let ended = workspace.run(&["check", "nowhere"]);
    assert_eq!(ended.code, 2, "{ended:?}");
}

/// Writes a trace of a process that was killed while it had handle data, as the library does.
fn put_trace(workspace: &Workspace, path: &str, run: &str, pid: u32) {
    let path = workspace.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!(
        r#"[
{{"ph":"M","name":"urscope_header","pid":{pid},"tid":{pid},"args":{{"format":1,"run":"{run}","pid":{pid},"host":"h"}}}}
,{{"ph":"B","name":"urIPCGetMemHandleExp","cat":"api","pid":{pid},"tid":{pid},"ts":1.0,"args":{{"call":1,"pointer":"0x10"}}}}
,{{"ph":"E","name":"urIPCGetMemHandleExp","cat":"api","pid":{pid},"tid":{pid},"ts":2.0,"args":{{"call":1,"result":0,"data":"0x20","data_size":8,"fingerprint":"0x77"}}}}
"#
    );
    fs::write(path, text).unwrap();
}

/// "Nothing" is no answer about a place without traces.
#[test]
fn a_directory_without_traces_is_refused_with_what_is_in_it() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path().join("empty")).unwrap();
    fs::create_dir(workspace.path().join("notes")).unwrap();
    fs::write(workspace.path().join("notes/a.txt"), "").unwrap();
    for run in ["app-1", "app-2"] {
        put_trace(&workspace, &format!("urscope-traces/{run}/urscope-app-7-1.json"), run, 7);
    }
    for (folder, found) in [
        ("empty", "empty has no traces: it is empty; name a directory that `urscope run` wrote"),
        ("notes", "notes has no traces: it has 1 file (a.txt), and none is named urscope-*.json or *.fxt"),
        ("urscope-traces", "has no traces: it is the directory of 2 runs (app-1, app-2)"),
    ] {
        for command in [
            &["holders", folder][..],
            &["handle", "0x1", folder],
            &["stats", folder],
            &["export", "-o", "out.json", folder],
            &["diff", folder, "urscope-traces/app-1"],
            &["diff", "urscope-traces/app-1", folder],
        ] {
            let ended = workspace.run(command);
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{command:?}");
            assert!(ended.stderr.contains(found), "{command:?}: {}", ended.stderr);
        }
        let checked = workspace.run(&["check", folder]);
        let text: String = checked.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!("in {folder} (")), "{text}");
        assert_eq!(checked.code, 2);
    }
    for command in [&["top", "--once", "urscope-traces"][..], &["view", "--no-open", "urscope-traces"]] {
        let ended = workspace.run(command);
        assert_eq!(ended.code, 2);
        assert!(ended.stderr.contains("it is the directory of 2 runs"), "{}", ended.stderr);
    }
}

#[test]
fn without_a_name_the_newest_run_is_read() {
    let workspace = Workspace::new();
    let nothing = workspace.run(&["holders"]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("no traces are named, and there are none in urscope-traces"), "{}", nothing.stderr);
    put_trace(&workspace, "urscope-traces/old-1/urscope-app-7-1.json", "one", 7);
    let time = std::time::SystemTime::UNIX_EPOCH;
    fs::File::open(workspace.path().join("urscope-traces/old-1")).unwrap().set_modified(time).unwrap();
    put_trace(&workspace, "urscope-traces/app-2/urscope-app-8-1.json", "two", 8);
    for command in [&["check", "--format", "json"][..], &["stats", "--format", "json"]] {
        let ended = workspace.run(command);
        assert!(ended.stdout.contains("\"pid\": 8") && !ended.stdout.contains("\"pid\": 7"), "{}", ended.stdout);
        assert!(ended.stderr.contains("the newest run, urscope-traces/app-2"), "{}", ended.stderr);
    }
}

#[test]
fn one_of_several_runs_in_a_directory_is_chosen() {
    let workspace = Workspace::new();
    for (run, pid) in [("ab1", 7), ("ab2", 8), ("cd", 9)] {
        put_trace(&workspace, &format!("traces/urscope-app-{pid}-1.json"), run, pid);
    }
    let read = |run: &str| workspace.run(&["check", "--format", "json", "--run", run, "traces"]);
    for (run, pid) in [("ab2", 8), ("c", 9), ("ab1", 7)] {
        let report: Value = serde_json::from_str(&read(run).stdout).unwrap();
        let processes: Vec<_> = report["processes"].as_array().unwrap().iter().map(|process| &process["pid"]).collect();
        assert_eq!(processes, [&Value::from(pid)], "{run}");
    }
    for (run, message) in [
        ("ab", "ab is the beginning of several runs: \"ab1\" (1 trace), \"ab2\" (1 trace); give more of the name"),
        ("x", "no trace is of the run x; the runs there are \"ab1\" (1 trace), \"ab2\" (1 trace), \"cd\" (1 trace)"),
    ] {
        let ended = read(run);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
    let all = workspace.run(&["check", "traces"]);
    assert!(all.stdout.contains("these are traces of 3 runs"), "{}", all.stdout);
}

#[test]
fn the_exit_code_of_findings_can_be_chosen() {
    let workspace = Workspace::new();
    // A put of what was never got.
    put_trace(&workspace, "traces/urscope-app-7-1.json", "one", 7);
    for (options, code, verdict) in [
        (&["--fail-on", "note"][..], 1, "findings"),
        (&["--fail-on", "note", "--error-exitcode", "66"], 66, "findings"),
        (&["--fail-on", "never", "--error-exitcode", "66"], 0, "clean"),
        (&["--fail-on", "never"], 0, "clean"),
    ] {
        let check = ["check", "--format", "json", "--expect-signal", "KILL"];
        let ended = workspace.run(&[&check[..], options, &["traces"]].concat());
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let expected = (code, &Value::from(verdict), &Value::from(code));
        assert_eq!((ended.code, &report["verdict"], &report["exit"]), expected, "{options:?}: {report:#}");
        assert!(!report["findings"].as_array().unwrap().is_empty());
    }
    assert_eq!(workspace.run(&["check", "--error-exitcode", "0", "traces"]).code, 2);
}

#[test]
fn colours_are_chosen_and_messages_silenced() {
    let workspace = Workspace::new();
    put_trace(&workspace, "urscope-traces/app-1/urscope-app-7-1.json", "one", 7);
    assert!(workspace.run(&["check", "--color", "always"]).stdout.contains("\x1b["));
    assert!(!workspace.run(&["--color=auto", "check"]).stdout.contains("\x1b["));
    assert!(workspace.run(&["check"]).stderr.contains("the newest run"));
    assert_eq!(workspace.run(&["check", "-q"]).stderr, "");
    let mut forced = workspace.command(&["check"]);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(workspace.start(forced).end().stdout.contains("\x1b["));
}

#[test]
fn standard_output_is_an_output_like_a_file() {
    let workspace = Workspace::new();
    put_trace(&workspace, "traces/urscope-app-7-1.json", "one", 7);
    for command in [&["check"][..], &["holders"], &["stats"]] {
        let ended = workspace.run(&[command, &["--output", "json=-", "--output", "text=out.txt", "traces"]].concat());
        let json: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert_eq!(json["version"], 1, "{command:?}");
        let text = fs::read_to_string(workspace.path().join("out.txt")).unwrap();
        assert!(text.starts_with("urscope: "), "{command:?}: {text}");
        let twice = workspace.run(&[command, &["--output", "json=-", "--output", "text=-", "traces"]].concat());
        assert!(twice.code == 2 && twice.stderr.contains("two outputs are standard output"), "{twice:?}");
    }
}

#[test]
fn completions_and_manual_pages_are_made_for_every_subcommand() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish"] {
        let ended = workspace.run(&["completions", shell]);
        assert_eq!(ended.code, 0, "{shell}");
        for word in ["holders", "export", "fail-on"] {
            assert!(ended.stdout.contains(word), "{shell}: {word}");
        }
        assert!(!ended.stdout.contains("doctor-probe"), "{shell}: it is hidden");
    }
    let page = workspace.run(&["man"]);
    assert!(page.code == 0 && page.stdout.contains(".TH urscope 1"), "{}", page.stdout);
    assert_eq!(workspace.run(&["man", "pages"]).code, 0);
    for page in ["urscope.1", "urscope-run.1", "urscope-check.1", "urscope-env.1"] {
        assert!(workspace.path().join("pages").join(page).exists(), "{page}");
    }
    fs::write(workspace.path().join("file"), "").unwrap();
    let refused = workspace.run(&["man", "file"]);
    assert!(refused.code == 2 && refused.stderr.contains("file cannot be written"), "{refused:?}");
}

#[test]
fn a_project_says_what_it_wants_of_every_verdict() {
    let workspace = Workspace::new();
    put_trace(&workspace, "traces/urscope-app-7-1.json", "one", 7);
    let config = |text: &str| fs::write(workspace.path().join("urscope.toml"), text).unwrap();
    let check =
        |options: &[&str]| workspace.run(&[&["check", "--expect-signal", "9"][..], options, &["traces"]].concat());
    assert_eq!(check(&[]).code, 0);
    config("fail-on = \"note\"");
    let strict = check(&[]);
    assert_eq!(strict.code, 1, "{strict:?}");
    assert!(strict.stderr.contains("urscope.toml adds to the options"), "{}", strict.stderr);
    assert_eq!(check(&["--fail-on", "error"]).code, 0, "the command line comes first");
    assert_eq!(check(&["--no-config"]).code, 0);
    fs::create_dir(workspace.path().join("ci")).unwrap();
    fs::write(workspace.path().join("ci/known.txt"), "*:*\n").unwrap();
    config("fail-on = \"note\"\nsuppressions = \"ci/known.txt\"\nwrappers = [\"my_*\"]\n");
    assert_eq!(check(&[]).code, 0);
    for (text, found) in [
        ("fail-on = \"fatal\"", "fatal"),
        ("suppression = \"a\"", "unknown field"),
        ("wrappers = 1", "invalid type"),
        ("x", "urscope.toml: "),
    ] {
        config(text);
        let ended = check(&[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{text}");
        assert!(ended.stderr.contains(found) && ended.stderr.contains("--no-config"), "{}", ended.stderr);
    }
}

#[test]
fn every_variable_is_listed_with_its_value() {
    let workspace = Workspace::new();
    let mut command = workspace.command(&["env"]);
    command.env("URSCOPE_FORMAT", "chrome\x1b");
    let ended = workspace.start(command).end();
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("URSCOPE_FORMAT=chrome\u{fffd}\n    The form of"), "{}", ended.stdout);
    assert!(ended.stdout.contains("URSCOPE_VALIDATE is not set (default on)\n"), "{}", ended.stdout);
    let json: Value = serde_json::from_str(&workspace.run(&["env", "--format", "json"]).stdout).unwrap();
    assert!(json.as_array().unwrap().iter().any(|variable| variable["name"] == "URSCOPE_DIR"), "{json:#}");
}

#[test]
fn a_rule_is_explained() {
    let workspace = Workspace::new();
    let list = workspace.run(&["explain"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""));
    assert!(list.stdout.contains("leaked-handle") && list.stdout.contains("warning"), "{}", list.stdout);
    let page = workspace.run(&["explain", "leaked-handle"]);
    assert_eq!(page.code, 0);
    let head = "leaked-handle (warning): ";
    assert!(page.stdout.starts_with(head) && page.stdout.contains("# What to do"), "{}", page.stdout);
    assert_eq!(workspace.run(&["explain", "leaked_handle"]).stdout, page.stdout);
    assert_eq!(workspace.run(&["explain", "leaked-handle", "--format", "markdown"]).stdout, page.stdout);
    let text = workspace.run(&["explain", "leaked_handle", "--format", "text"]).stdout;
    assert!(text.starts_with(head) && text.contains("\nWhat to do\n  Put each handle"), "{text}");
    assert!(text.lines().any(|line| line.contains("Wrong:") && line.contains("Fixed:")), "{text}");
    let coloured = workspace.run(&["--color", "always", "explain", "leaked_handle", "--format", "text"]).stdout;
    assert!(coloured.starts_with("leaked-handle (\x1b[1;33mwarning\x1b[0m): "), "{coloured}");
    assert_eq!(workspace.run(&["explain", "--format", "text"]).code, 2);
    let misspelled = workspace.run(&["explain", "leaked_handel"]);
    assert_eq!((misspelled.code, misspelled.stdout.as_str()), (2, ""));
    assert!(misspelled.stderr.contains("did you mean leaked-handle"), "{}", misspelled.stderr);
}

#[test]
fn reports_are_written_even_without_traces() {
    let workspace = Workspace::new();
    let outputs = ["--output", "junit=report.xml", "--output", "html=report.html", "--write-suppressions", "known.txt"];
    let ended = workspace.run(&[&["check", "--format", "github"][..], &outputs, &["."]].concat());
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stdout.contains("\n::error title=urscope%3A not judged::no trace files"), "{}", ended.stdout);
    let written = |name: &str| fs::read_to_string(workspace.path().join(name)).unwrap();
    assert!(written("report.xml").contains("errors=\"1\"") && written("report.html").contains("not judged"));
    assert!(
        written("known.txt").lines().all(|line| line.is_empty() || line.starts_with('#')),
        "{}",
        written("known.txt")
    );
}

#[test]
fn unusable_inputs_and_outputs_are_reported_before_the_analysis() {
    let workspace = Workspace::new();
    fs::write(workspace.path().join("known.txt"), "\nleaked-handle\n").unwrap();
    fs::write(workspace.path().join("main.json"), "[]").unwrap();
    fs::write(workspace.path().join("newer.json"), "{\"version\": 99}").unwrap();
    for (arguments, message) in [
        (["--suppressions", "known.txt"], "known.txt:2: expected RULE:PATTERN"),
        (["--suppressions", "nowhere.txt"], "nowhere.txt cannot be read: "),
        (["--baseline", "main.json"], "main.json is not a urscope report: "),
        (["--baseline", "newer.json"], "it has version 99, and this urscope reads up to 1"),
        (["--baseline", "nowhere.json"], "nowhere.json cannot be read: "),
        (["--output", "html=no/where.html"], "no/where.html cannot be written: "),
        (["--output", "html=report.sarif"], "the extension .sarif is that of sarif, and not of html"),
        (["--output", "xml=report.xml"], "expected one of text, json, sarif, junit, html, github"),
    ] {
        let ended = workspace.run(&[&["check"][..], &arguments, &["."]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains(message), "{arguments:?}: {}", ended.stderr);
    }
}

fn doctor(workspace: &Workspace, arguments: &[&str]) -> (i32, Value) {
    let mut command = workspace.command(&["doctor", "--format", "json"]);
    command.args(arguments).env("URSCOPE_LIBRARY", harmless_library()).env("URSCOPE_DIRECTORY", "/tmp");
    let ended = workspace.start(command).end();
    (ended.code, serde_json::from_str(&ended.stdout).unwrap())
}

fn line<'a>(checkup: &'a Value, check: &str) -> &'a Value {
    let lines = checkup["lines"].as_array().unwrap();
    lines.iter().find(|line| line["check"] == check).unwrap_or_else(|| panic!("no line {check}: {checkup:#}"))
}

#[test]
fn the_doctor_reports_missing_parts() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path().join("empty")).unwrap();
    let (code, checkup) = doctor(&workspace, &["--runtime", "empty"]);
    assert_eq!((code, &checkup["able"]), (1, &Value::Bool(false)), "{checkup:#}");
    assert_eq!(line(&checkup, "runtime")["state"], "problem");
    assert!(line(&checkup, "library")["found"].as_str().unwrap().contains("is not liburscope.so"), "{checkup:#}");
    assert_eq!(line(&checkup, "environment")["state"], "warning");
    for line in checkup["lines"].as_array().unwrap() {
        assert!(line["state"] == "ok" || line["advice"].is_string(), "a problem without advice: {line:#}");
    }
}

/// Whether pidfd_getfd works depends on the machine. The report must show that it was tested.
#[test]
fn the_doctor_tests_passing_a_descriptor() {
    let workspace = Workspace::new();
    let (_, checkup) = doctor(&workspace, &["--device", "software"]);
    let found = line(&checkup, "descriptors")["found"].as_str().unwrap();
    assert!(!found.contains("could not be tested") && !found.contains("does not know the cause"), "{found}");
    line(&checkup, "device");
}

#[test]
fn the_doctor_also_writes_text() {
    let workspace = Workspace::new();
    let written = workspace.run(&["doctor", "--output", "json=-", "--output", "text=doctor.txt"]);
    let json: Value = serde_json::from_str(&written.stdout).unwrap();
    assert!(json["lines"].is_array() && workspace.path().join("doctor.txt").exists());
    let ended = workspace.run(&["doctor"]);
    assert!(ended.stdout.contains("on this machine"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "a file must have no colours");
}

/// Names of directories and what the user typed are printed like everything else.
#[test]
fn nothing_that_is_printed_controls_the_terminal() {
    const EVIL: &str = "a\x1b[2J\u{202e}b";
    let workspace = Workspace::new();
    fs::create_dir(workspace.path().join(EVIL)).unwrap();
    fs::write(workspace.path().join(EVIL).join(EVIL), "").unwrap();
    fs::create_dir(workspace.path().join("run")).unwrap();
    put_trace(&workspace, &format!("run/urscope-{EVIL}-1-1.json"), EVIL, 1);
    let missing = format!("{EVIL}/missing");
    let named = format!("json={missing}/report.json");
    for arguments in [
        &["check", EVIL][..],
        &["check", &missing],
        &["check", "run"],
        &["check", "--run", "other\x1b[2J", "run"],
        &["check", "--suppressions", &missing, "run"],
        &["check", "--baseline", EVIL, "run"],
        &["check", "--output", &named, "run"],
        &["check", "--output", "xml\x1b[2J=report", "run"],
        &["check", "--node-report", &missing, EVIL],
        &["merge", EVIL],
        &["merge", &missing],
        &["calls", EVIL],
        &["calls", "run"],
        &["holders", EVIL],
        &["handle", EVIL, "run"],
        &["stats", "run"],
        &["diff", EVIL, &missing],
        &["export", "run", "-o", EVIL],
        &["export", "run", "-o", "\x1b[2J.json"],
        &["view", "--port", EVIL, "run"],
        &["top", "--once", EVIL],
        &["explain", EVIL],
        &["doctor", &missing],
        &["run", "--", EVIL],
        &["run", "--", &missing],
        &["run", "--dir", &missing, "--", "true"],
        &["--profile", "nowhere\x1b[2J/profile", "check", "run"],
        &["check", "--\x1b[2J"],
        &["\x1b[2J"],
    ] {
        let ended = workspace.run(arguments);
        let hostile = |c: char| c != '\n' && is_unprintable(c);
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!printed.is_empty() && !printed.contains(hostile), "{arguments:?}: {printed:?}");
    }
}
