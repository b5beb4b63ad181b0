//! Tracing changes nothing that a program sees: output, exit code and copied bytes equal those without urscope.

use urscope_tests::{Adapter, Outcome, Release, TestRun};

/// Programs whose output is the same in each run. It includes checksums of the bytes that they copied.
const PROGRAMS: [&str; 15] = [
    "clean",
    "leaked_handle",
    "leaked_mapping",
    "double_put",
    "put_of_unknown",
    "double_close",
    "close_of_unknown",
    "close_interior",
    "close_wrong_context",
    "close_by_free",
    "free_while_open",
    "free_before_put",
    "killed_producer",
    "fork_child",
    "direct_ur",
];

fn is_the_same_traced_and_bare(adapter: Adapter) {
    for program in PROGRAMS {
        let test_run = || TestRun::of(program, Release::R2026_2, adapter);
        assert_same(program, &test_run().untraced().run(), &test_run().option("--no-check").run());
    }
}

fn assert_same(program: &str, bare: &Outcome, traced: &Outcome) {
    assert!(bare.trace_files().is_empty(), "{program}: the bare run was traced");
    assert!(!traced.trace_files().is_empty(), "{program}: the traced run was not traced:\n{}", traced.stderr);
    assert!(!bare.stdout.is_empty(), "{program} prints nothing to compare:\n{}", bare.stderr);
    assert_eq!((&bare.stdout, bare.code), (&traced.stdout, traced.code), "{program}:\n{}", traced.stderr);
}

#[test]
fn a_program_is_the_same_traced_and_bare_on_v1() {
    is_the_same_traced_and_bare(Adapter::V1);
}

#[test]
fn a_program_is_the_same_traced_and_bare_on_v2() {
    is_the_same_traced_and_bare(Adapter::V2);
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
    let test_run = || TestRun::of("clean", Release::R2026_2, Adapter::V2);
    let bare = test_run().untraced().run();
    let quiet = test_run().option("--no-check").env("URSCOPE_QUIET", "1").run();
    assert_eq!(bare.stderr, quiet.stderr);
    let loud = test_run().option("--no-check").run();
    assert_ne!(bare.stderr, loud.stderr, "the start-up line is missing");
}

/// The v1 adapter writes into the bytes of an open. It gets a copy of them, so a program sees no difference to v2.
#[test]
fn the_bytes_of_an_open_stay_as_they_were() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = TestRun::of("reopened_buffer", Release::R2026_2, adapter).run();
        assert!(outcome.stdout.contains("the bytes are unchanged"), "{adapter:?}: {}", outcome.stdout);
    }
}
