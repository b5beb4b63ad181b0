//! `urscope run`: exit codes, input and output, the environment of the program, and errors before it starts.

use std::path::{Path, PathBuf};
use std::{fs, process::Stdio};

use crate::command::{Ended, Workspace, harmless_library};

/// The environment of a program, as `env` prints it.
fn environment(ended: &Ended) -> Vec<(&str, &str)> {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout.lines().filter_map(|line| line.split_once('=')).collect()
}

fn value<'a>(environment: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    environment.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The names of the files in a directory, sorted.
fn names(workspace: &Workspace, folder: &str) -> Vec<String> {
    let files = fs::read_dir(workspace.path().join(folder)).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn exit_codes_and_signals_are_those_of_the_program() {
    let workspace = Workspace::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        assert_eq!(workspace.run_script(&["--no-shim"], script).code, code, "{script}");
    }
}

#[test]
fn input_and_output_are_those_of_the_program() {
    let workspace = Workspace::new();
    let input = workspace.path().join("input");
    fs::write(&input, "text\n").unwrap();
    let mut command = workspace.script(&["--no-shim"], "cat; echo complained >&2");
    command.stdin(fs::File::open(&input).unwrap());
    let ended = workspace.start(command).end();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("text\n", "complained\n"));
}

#[test]
fn arguments_reach_the_program_as_they_are() {
    let workspace = Workspace::new();
    let ended = workspace.run(&["run", "--no-shim", "/bin/echo", "--dir", "x", "--", "a  b"]);
    assert_eq!(ended.stdout, "--dir x -- a  b\n");
}

#[test]
fn without_the_shim_no_variable_is_set_and_no_file_is_left() {
    let workspace = Workspace::new();
    let ended = workspace.run(&["run", "--no-shim", "--", "/usr/bin/env"]);
    let environment = environment(&ended);
    assert!(environment.iter().all(|(name, _)| !name.starts_with("URSCOPE_") && *name != "LD_PRELOAD"), "{ended:?}");
    assert_eq!(ended.stderr, "");
    assert!(!workspace.path().join("urscope-traces").exists());
}

#[test]
fn a_traced_program_finds_library_directory_and_run() {
    let workspace = Workspace::new();
    let library = harmless_library();
    let mut command = workspace.command(&["run", "--no-check", "--dir", "traces", "--", "/usr/bin/env"]);
    command.env("URSCOPE_LIBRARY", &library).env("LD_PRELOAD", "");
    let ended = workspace.start(command).end();
    let environment = environment(&ended);
    assert_eq!(value(&environment, "LD_PRELOAD"), library.to_str());
    let directory = value(&environment, "URSCOPE_DIR").unwrap();
    assert!(Path::new(directory).is_absolute() && directory.ends_with("/traces"), "{directory}");
    assert!(value(&environment, "URSCOPE_RUN").is_some_and(|run| !run.is_empty()));
    assert_eq!(value(&environment, "LD_LIBRARY_PATH"), None, "the native device changes nothing");
}

#[test]
fn two_runs_have_different_names() {
    let workspace = Workspace::new();
    let run = || workspace.run_traced(&["--no-check"], "echo $URSCOPE_RUN").stdout;
    assert_ne!(run(), run());
}

#[test]
fn a_library_whose_path_cannot_be_preloaded_is_linked() {
    let workspace = Workspace::new();
    let library = workspace.path().join("my lib:rary.so");
    fs::copy(harmless_library(), &library).unwrap();
    // The link exists only during the run, so the program reads it.
    let mut command = workspace.script(&["--no-check"], "echo $LD_PRELOAD; readlink $LD_PRELOAD");
    command.env("URSCOPE_LIBRARY", &library);
    let ended = workspace.start(command).end();
    let [preload, target] = &ended.stdout.lines().collect::<Vec<_>>()[..] else { panic!("{ended:?}") };
    assert!(!preload.contains(' ') && preload.ends_with("/liburscope.so"), "{preload}");
    assert_eq!(Path::new(target), library);
    assert!(!Path::new(preload).exists(), "the private directory is removed after the run");
}

/// A copy of the command in a directory of its own, with a software device beside it.
fn with_device(workspace: &Workspace) -> PathBuf {
    let urscope = workspace.path().join("bin/urscope");
    fs::create_dir_all(workspace.path().join("bin")).unwrap();
    workspace.prepare(&format!("cp '{}' bin/urscope", env!("CARGO_BIN_EXE_urscope")));
    fs::write(workspace.path().join("bin/libze_loader.so"), "").unwrap();
    urscope
}

#[test]
fn the_software_device_is_found_by_the_name_of_the_loader() {
    let workspace = Workspace::new();
    let urscope = with_device(&workspace);
    let script = "readlink ${LD_LIBRARY_PATH%%:*}/libze_loader.so.1; env";
    let mut command = std::process::Command::new(urscope);
    command.args(["run", "--no-shim", "--device", "software", "--", "/bin/sh", "-c", script]);
    workspace.surround(&mut command);
    command.env("LD_LIBRARY_PATH", "/opt/lib");
    let ended = workspace.start(command).end();
    let link = ended.stdout.lines().next().unwrap();
    assert!(link.ends_with("/bin/libze_loader.so"), "{link}");
    let environment = environment(&ended);
    let path = value(&environment, "LD_LIBRARY_PATH").unwrap();
    let private = value(&environment, "ZEL_LIBRARY_PATH").unwrap();
    assert_eq!(path, format!("{private}:/opt/lib"));
    assert_eq!(value(&environment, "ONEAPI_DEVICE_SELECTOR"), Some("level_zero:*"));
    assert!(!Path::new(private).exists());
}

/// A path below it would be relative, and lead to the files of others where the program goes.
#[test]
fn an_empty_temporary_directory_is_none() {
    let workspace = Workspace::new();
    let urscope = with_device(&workspace);
    let mut command = std::process::Command::new(urscope);
    command.args(["run", "--no-shim", "--device", "software", "--", "/usr/bin/env"]);
    workspace.surround(&mut command);
    command.env("TMPDIR", "");
    let ended = workspace.start(command).end();
    let environment = environment(&ended);
    for name in ["LD_LIBRARY_PATH", "ZEL_LIBRARY_PATH"] {
        assert!(value(&environment, name).is_some_and(|path| path.starts_with('/')), "{ended:?}");
    }
}

#[test]
fn programs_that_cannot_be_run_have_the_exit_codes_of_a_shell() {
    let workspace = Workspace::new();
    workspace.prepare(
        "echo data >data; echo '#!/nowhere/interpreter' >orphan; echo 'echo hello' >unmarked; chmod +x orphan unmarked",
    );
    for (program, code, word) in [
        ("no-such-program", 127, "no such program in PATH"),
        ("./no-such-program", 127, "no such program at this path"),
        ("./data", 126, "may not be executed"),
        ("./unmarked", 126, "is neither a program nor a script with a #! line; run it as `sh ./unmarked`"),
        ("/", 126, "is a directory"),
        ("./orphan", 126, "interpreter"),
    ] {
        let ended = workspace.run(&["run", "--no-shim", "--", program]);
        assert_eq!(ended.code, code, "{program}: {}", ended.stderr);
        assert!(ended.stderr.contains(program) && ended.stderr.contains(word), "{program}: {}", ended.stderr);
    }
}

#[test]
fn unwritable_outputs_are_reported_before_the_program_starts() {
    let workspace = Workspace::new();
    workspace.make("file");
    for options in [["--dir", "file/traces"], ["--report", "file/report"], ["--report", "/nowhere/report"]] {
        let ended = workspace.run_traced(&options, "touch started");
        assert_eq!(ended.code, 2, "{options:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(options[0]) && ended.stderr.contains(options[1]), "{}", ended.stderr);
        assert!(!workspace.path().join("started").exists(), "{options:?}");
    }
}

#[test]
fn a_missing_library_is_reported_before_the_program_starts() {
    let workspace = Workspace::new();
    let mut command = workspace.script(&[], "touch started");
    command.env("URSCOPE_LIBRARY", "/nowhere/liburscope.so");
    let ended = workspace.start(command).end();
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("URSCOPE_LIBRARY names /nowhere/liburscope.so"), "{}", ended.stderr);
    assert!(!workspace.path().join("started").exists());
}

#[test]
fn a_run_without_traces_is_not_clean_and_leaves_no_directory() {
    let workspace = Workspace::new();
    let ended = workspace.run_traced(&["--format", "json", "--report", "report.json"], "echo text");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, "text\n"), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&workspace.text("report.json")).unwrap();
    assert_eq!((&report["verdict"], &report["exit"]), (&"not-judged".into(), &2.into()));
    assert!(report["reason"].as_str().unwrap().contains("nothing was recorded"), "{report:#}");
    assert!(!workspace.path().join("urscope-traces").exists(), "the empty directory is removed");
}

#[test]
fn a_failure_of_the_program_takes_precedence_over_the_verdict() {
    let workspace = Workspace::new();
    let ended = workspace.run_traced(&[], "exit 7");
    assert_eq!(ended.code, 7);
    assert!(ended.stderr.contains("exit code 7"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn traces_of_each_run_get_a_directory_of_their_own() {
    let workspace = Workspace::new();
    let script = "cp /dev/null $URSCOPE_DIR/urscope-x-1-1.json";
    for number in 1..=2 {
        let ended = workspace.run_traced(&["--no-check"], script);
        let folder = format!("urscope-traces/sh-{number}");
        assert!(workspace.path().join(&folder).join("urscope-x-1-1.json").exists(), "{folder}");
        assert!(ended.stderr.contains(&format!("the traces are in {folder}")), "{}", ended.stderr);
    }
}

#[test]
fn only_the_traces_of_the_run_are_analyzed() {
    let workspace = Workspace::new();
    // The script writes a trace as the library does, with one call that has not returned.
    let header = r#"{"ph":"M","name":"urscope_header","pid":PID,"tid":PID,"args":{"format":1,"run":"RUN","pid":PID,"host":"h"}}"#;
    let call = r#"{"ph":"B","name":"urIPCPutMemHandleExp","cat":"api","pid":PID,"tid":PID,"ts":1.0,"args":{"call":1}}"#;
    fs::write(workspace.path().join("trace"), format!("[\n{header}\n,{call}\n")).unwrap();
    let script = "sed \"s/RUN/$URSCOPE_RUN/; s/PID/$$/g\" trace >\"$URSCOPE_DIR/urscope-sh-$$-1.json\"; echo $$";
    for _ in 0..2 {
        let ended = workspace.run_traced(&["--dir", "traces", "--format", "json", "--report", "report.json"], script);
        let report: serde_json::Value = serde_json::from_str(&workspace.text("report.json")).unwrap();
        let pids: Vec<String> =
            report["processes"].as_array().unwrap().iter().map(|process| process["pid"].to_string()).collect();
        assert_eq!(pids, [ended.stdout.trim()], "{report:#}");
    }
    let names = names(&workspace, "traces");
    let [merged_later, merged, traces @ ..] = &names[..] else { panic!("{names:?}") };
    assert_eq!([merged_later, merged], ["merged-1.json", "merged.json"], "the earlier one is not replaced");
    let traces = traces.iter().filter(|name| name.starts_with("urscope-"));
    assert_eq!(traces.count(), 2, "the earlier trace is still there: {names:?}");
}

/// A program that writes a trace with one call, as the library does.
const ONE_CALL: &str = r#"cat >"$URSCOPE_DIR/urscope-sh-$$-1.json" <<END
[
{"ph":"M","name":"urscope_header","pid":$$,"tid":$$,"args":{"format":1,"run":"$URSCOPE_RUN","pid":$$,"host":"h"}}
,{"ph":"B","name":"urIPCPutMemHandleExp","cat":"api","pid":$$,"tid":$$,"ts":1.0,"args":{"call":1}}
END
"#;

/// Runs [`ONE_CALL`] and then `script`.
fn one_call(workspace: &Workspace, options: &[&str], script: &str) -> Ended {
    // The trace has no footer.
    workspace.run_traced(&[&["--expect-signal", "KILL"], options].concat(), &format!("{ONE_CALL}{script}"))
}

#[test]
fn a_run_that_is_not_analyzed_names_the_commands_that_do_it() {
    let workspace = Workspace::new();
    let ended = one_call(&workspace, &["--no-check"], "");
    assert_eq!(ended.code, 0);
    let traces = "urscope-traces/sh-1";
    let expected = format!(
        "urscope: the traces are in {traces}; `urscope check {traces}` analyzes them, and \
         `urscope export {traces} -o {traces}/merged.json` merges them for https://ui.perfetto.dev\n"
    );
    assert_eq!(ended.stderr, expected);
    assert!(!workspace.path().join(traces).join("merged.json").exists());
    let command = expected.split('`').nth(3).unwrap();
    let exported = workspace.run(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(exported.code, 0, "{command}: {}", exported.stderr);
    assert!(workspace.path().join(traces).join("merged.json").exists());
}

#[test]
fn a_merged_trace_that_cannot_be_written_changes_neither_verdict_nor_exit_code() {
    let whole = one_call(&Workspace::new(), &[], "");
    assert!(whole.stderr.contains("open urscope-traces/sh-1/merged.json with"), "{}", whole.stderr);
    let workspace = Workspace::new();
    // The limit is that of urscope, which is the parent of the program.
    let mut command =
        workspace.traced(&["--expect-signal", "KILL"], &format!("{ONE_CALL}prlimit --pid $PPID --fsize=64"));
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(whole.code), "{stderr}");
    let expected = "urscope: the traces are in urscope-traces/sh-1, but the merged trace cannot be written there: \
        File too large (os error 27); `urscope export urscope-traces/sh-1 -o FILE` writes it elsewhere\n";
    assert!(stderr.ends_with(expected), "{stderr}");
    let verdict = |stderr: &str| stderr.lines().next().map(str::to_owned);
    assert_eq!(verdict(&stderr), verdict(&whole.stderr));
    let names = names(&workspace, "urscope-traces/sh-1");
    assert!(names.iter().all(|name| !name.contains("merged")), "{names:?}");
}

/// Processes that began afterwards may have written their traces elsewhere.
#[test]
fn a_run_whose_directory_was_replaced_is_not_judged() {
    for script in [
        "mv \"$URSCOPE_DIR\" elsewhere",
        "cp -r \"$URSCOPE_DIR\" new; mv \"$URSCOPE_DIR\" old; mv new \"$URSCOPE_DIR\"",
    ] {
        let ended = one_call(&Workspace::new(), &["--dir", "traces"], script);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains("moved or replaced while the program ran"), "{}", ended.stderr);
    }
}

/// The library makes a trace under another name first, and removes it if it cannot have its own.
#[test]
fn a_run_of_a_process_without_a_trace_is_not_judged() {
    let begun = "touch \"$URSCOPE_DIR/urscope-other-7-1.json.unfinished\"";
    let ended = one_call(&Workspace::new(), &[], &format!("{begun}; rm \"$URSCOPE_DIR\"/*.unfinished"));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("process 7 could not write its trace"), "{}", ended.stderr);
    let killed = one_call(&Workspace::new(), &[], begun);
    assert_ne!(killed.code, 2, "{}", killed.stderr);
}

#[test]
fn a_run_in_a_directory_that_is_gone_is_refused() {
    let workspace = Workspace::new();
    let script = format!(
        "mkdir gone && cd gone && rmdir ../gone && exec {} run --dir traces -- true",
        env!("CARGO_BIN_EXE_urscope")
    );
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &script]);
    workspace.surround(&mut command);
    command.env("URSCOPE_LIBRARY", harmless_library());
    let ended = workspace.start(command).end();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("the directory for the traces"), "{}", ended.stderr);
}

/// Whoever removes a trace removes what it proves.
#[test]
fn a_run_whose_traces_are_removed_is_not_judged() {
    let script = "cp \"$URSCOPE_DIR\"/urscope-sh-$$-1.json \"$URSCOPE_DIR\"/urscope-other-7-1.json; sleep 0.1; \
                  rm \"$URSCOPE_DIR\"/urscope-other-7-1.json";
    for mode in ["755", "1777"] {
        let workspace = Workspace::new();
        workspace.prepare(&format!("mkdir traces; chmod {mode} traces"));
        let ended = one_call(&workspace, &["--dir", "traces"], script);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let said = "process 7 could not keep its trace urscope-other-7-1.json";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

#[test]
fn damaged_traces_are_not_judged_and_not_merged() {
    let workspace = Workspace::new();
    let ended = one_call(&workspace, &[], "echo garbage >\"$URSCOPE_DIR/urscope-sh-$$-1.json\"");
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("no merged trace was written, because they cannot be analyzed"), "{}", ended.stderr);
    let names = names(&workspace, "urscope-traces/sh-1");
    assert!(names.iter().all(|name| !name.contains("merged")), "{names:?}");
}
