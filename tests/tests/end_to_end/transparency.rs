//! Tracing changes nothing that a program sees: output, exit code and copied bytes equal those without urscope.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, artefacts, repository, run};

use crate::event::ORDERS;
use crate::on_both_adapters;

/// Programs whose output is the same in each run. Most print checksums of the bytes that they
/// copied; scenarios compare them.
const PROGRAMS: [&str; 15] = [
    "clean",
    "mistakes leaked_handle",
    "mistakes leaked_mapping",
    "mistakes double_put",
    "scenario put_of_unknown",
    "mistakes double_close",
    "scenario close_of_unknown",
    "scenario close_interior",
    "scenario close_wrong_context",
    "mistakes close_by_free",
    "free_while_open",
    "scenario free_before_put",
    "scenario killed_producer",
    "sharing fork_idle_child",
    "ur_sharing direct",
];

/// Programs that share physical memory and events, whose output is the same in each run.
const OF_OTHER_KINDS: [&str; 7] = [
    "scenario physical_side_by_side",
    "scenario physical_leaked_handle",
    "scenario physical_leaked_memory",
    "scenario physical_released_while_mapped",
    "scenario physical_released_while_open",
    "scenario event_leaked_handle",
    "scenario event_leaked",
];

on_both_adapters! {
    fn a_program_is_the_same_traced_and_bare(adapter) {
        let mut programs = PROGRAMS.map(str::to_owned).to_vec();
        if adapter == Adapter::V2 {
            programs.extend(OF_OTHER_KINDS.map(str::to_owned));
            programs.extend(ORDERS.map(str::to_owned));
        }
        for program in &programs {
            let test_run = || TestRun::new(program, Release::R2026_2, adapter);
            assert_same(program, &test_run().untraced().run(), &test_run().option("--no-check").run());
        }
    }
}

fn assert_same(program: &str, bare: &Outcome, traced: &Outcome) {
    assert!(bare.trace_files().is_empty(), "{program}: the bare run was traced");
    assert!(!traced.trace_files().is_empty(), "{program}: the traced run was not traced:\n{}", traced.stderr);
    assert!(!bare.stdout.is_empty(), "{program} prints nothing to compare:\n{}", bare.stderr);
    assert_eq!((&bare.stdout, bare.code), (&traced.stdout, traced.code), "{program}:\n{}", traced.stderr);
}

#[test]
fn an_exit_code_goes_through() {
    for code in [0, 7] {
        let test_run = TestRun::of_program("/bin/sh").arg("-c").arg(format!("echo said; exit {code}"));
        let outcome = test_run.option("--no-check").run();
        assert_eq!((outcome.stdout.as_str(), outcome.code), ("said\n", code), "{}", outcome.stderr);
    }
}

/// Urscope writes to standard error only; `URSCOPE_QUIET` silences the preloaded library there, too.
#[test]
fn nothing_is_added_to_standard_error_when_it_is_quiet() {
    let test_run = || TestRun::new("clean", Release::R2026_2, Adapter::V2);
    let bare = test_run().untraced().run();
    let quiet = test_run().option("--no-check").env("URSCOPE_QUIET", "1").run();
    assert_eq!(bare.stderr, quiet.stderr);
    let loud = test_run().option("--no-check").run();
    assert_ne!(bare.stderr, loud.stderr, "the start-up line is missing");
}

/// The verdict, too, is silent where there is nothing to say. A report that was asked for is written.
#[test]
fn a_clean_verdict_is_silent_when_it_is_quiet() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let urscope = |quiet: &str, program: &str| {
        let mut command = Command::new(artefacts::command());
        command.args(["run", "--device", "software", "--dir"]).arg(folder.path());
        let (program, mode) = program.split_once(' ').unwrap_or((program, ""));
        command.arg("--").arg(apps::executable(program, Release::R2026_2)).args(mode.split_whitespace());
        command.current_dir(repository()).env("URSCOPE_QUIET", quiet);
        run::forget_suite(&mut command);
        let output = command.output().expect("urscope can be started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(urscope("1", "clean"), "");
    assert_eq!(urscope("1", "scenario tests/apps/mistakes/get_without_open.txt"), "", "a note is no problem");
    assert!(urscope("0", "clean").contains("urscope: clean"));
    assert!(urscope("1", "mistakes double_put").contains("double-put"));
}

/// A file name is any bytes, and so is the name of the process that the kernel derives from it.
#[test]
fn a_program_whose_name_is_no_utf_8_is_known_by_its_start() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = folder.path().join(OsStr::from_bytes(b"cl\xffean"));
    fs::copy(apps::executable("clean", Release::R2026_2), &program).expect("a program can be copied");
    let outcome = TestRun::of_program(&program).adapter(Adapter::V2).run();
    assert_eq!(outcome.report().verdict(), "clean", "{}", outcome.stderr);
    for trace in outcome.traces() {
        let header = trace.records.iter().find(|record| record["name"] == "urscope_header").expect("a header");
        assert!(header["args"]["start"].as_u64().is_some_and(|start| start > 0), "{header}");
        assert!(header["args"]["rights"]["seccomp"].is_u64(), "{header}");
    }
}

/// Whoever sets the environment could write to the terminal of the person who reads the message.
#[test]
fn an_unknown_variable_controls_no_terminal() {
    let test_run = TestRun::new("clean", Release::R2026_2, Adapter::V2).env("URSCOPE_DIRE\x1b[2J\x07", "1");
    let outcome = test_run.run();
    assert!(outcome.stderr.contains("is not a variable of urscope"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains(['\x1b', '\x07']), "{:?}", outcome.stderr);
}

#[test]
fn a_foreign_file_among_the_traces_is_named_and_the_run_is_judged() {
    let script = "echo '{}' >\"$URSCOPE_DIR/urscope-mine.json\"; exec \"$0\"";
    let program = apps::executable("clean", Release::R2026_2);
    let outcome = TestRun::of_program("/bin/sh").adapter(Adapter::V2).arg("-c").arg(script).arg(program).run();
    assert_eq!(outcome.report().verdict(), "clean", "{}", outcome.stderr);
    let unseen = outcome.report().unseen().join("; ");
    assert!(unseen.contains("urscope-mine.json was ignored"), "{unseen}");
}

/// The v1 adapter writes into the bytes of an open. It gets a copy of them, so a program sees no difference to v2.
#[test]
fn the_bytes_of_an_open_stay_as_they_were() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = TestRun::new("mistakes reopened_buffer", Release::R2026_2, adapter).run();
        assert!(outcome.stdout.contains("the bytes are unchanged"), "{adapter:?}: {}", outcome.stdout);
    }
}

/// Whatever the mask of the program is, its trace can be read and written by its owner only, also when it grows.
#[test]
fn a_trace_is_private_whatever_the_mask_is() {
    for mask in ["0", "777"] {
        let program = apps::executable("bench_get_put", Release::R2026_2);
        let script = format!("umask {mask}; exec \"$0\" 1 60000");
        let outcome = TestRun::of_program("/bin/sh").adapter(Adapter::V2).arg("-c").arg(script).arg(program).run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        for file in outcome.trace_files() {
            let known = fs::metadata(&file).expect("a trace");
            assert_eq!(known.mode() & 0o7777, 0o600, "umask {mask}");
            assert!(known.len() > 2 << 20, "it never grew");
        }
    }
}

/// A trace shows no word of the command line but the first unless it is asked for, and a report does not show it at
/// all.
#[test]
fn a_secret_of_the_command_line_stays_where_it_is() {
    let run = |how: Option<&str>| {
        let program = apps::executable("clean", Release::R2026_2);
        // The program ignores the arguments of the shell.
        let script = "exec \"$0\" --password=hunter2";
        let mut test_run = TestRun::of_program("/bin/sh").adapter(Adapter::V2).arg("-c").arg(script).arg(program);
        if let Some(how) = how {
            test_run = test_run.env("URSCOPE_COMMAND_LINE", how);
        }
        let outcome = test_run.run();
        let traces = outcome.trace_files();
        let traces = traces.iter().flat_map(|file| fs::read(file).expect("a trace can be read")).collect::<Vec<u8>>();
        let traces = String::from_utf8_lossy(&traces).into_owned();
        (traces, format!("{:?}", outcome.report()))
    };
    let (traces, report) = run(None);
    assert!(traces.contains("\u{2026}") && !traces.contains("hunter2") && !traces.contains("--password"));
    assert!(!report.contains("hunter2") && !report.contains("--password"), "{report}");
    let (traces, report) = run(Some("full"));
    assert!(traces.contains("hunter2") && !report.contains("hunter2"), "{report}");
}

/// The process is told that it has gained rights, as the kernel tells a setuid program: the library leaves it alone.
#[test]
fn a_program_that_gains_rights_is_left_alone() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let source = folder.path().join("secure.c");
    let library = folder.path().join("secure.so");
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
        unsigned long getauxval(unsigned long which) {\n\
        unsigned long (*real)(unsigned long) = dlsym(RTLD_NEXT, \"getauxval\");\n\
        return which == 23 ? 1 : real(which);\n}\n";
    fs::write(&source, text).expect("a file can be written");
    let compiled = Command::new("gcc").args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&library).status();
    assert!(compiled.expect("gcc can be started").success());
    let test_run = || TestRun::new("ur_sharing direct", Release::R2026_2, Adapter::V2).env("LD_PRELOAD", &library);
    let bare = test_run().untraced().run();
    let traced = test_run().run();
    assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{}", traced.stderr);
    assert!(traced.trace_files().is_empty() && !traced.stderr.contains("watching"), "{}", traced.stderr);
    assert_eq!(traced.report().verdict(), "not-judged");
}
