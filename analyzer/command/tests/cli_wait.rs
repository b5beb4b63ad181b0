//! `urscope run` and the processes below it: who is waited for, and what signals do.
//!
//! Scripts say by files how far they are, and are told by files to go on; nothing here depends on how long a thing takes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops where it is surprised"
)]

#[allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
mod command;

use std::{fs, os::unix::process::CommandExt, process::Command};

use command::Desk;

/// Waits for the file `go`, for a minute at most.
const WAIT: &str = "n=0; while [ ! -e go ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done";

/// A process that outlives the program, its parent and its grandparent.
fn orphan(then: &str) -> String {
    format!("( ( {WAIT}; {then} ) & ) ; exit 3")
}

#[test]
fn all_that_the_program_started_is_waited_for() {
    let desk = Desk::new();
    let mut running = desk.start(desk.script(&["--no-shim"], &orphan("touch done")));
    desk.wait_until("the notice", || running.stderr().contains("ends the waiting"));
    assert!(running.stderr().contains("waiting for"), "{}", running.stderr());
    assert!(running.is_running());
    desk.make("go");
    let ended = running.end();
    assert_eq!(ended.code, 3);
    assert!(desk.path().join("done").exists());
    assert_eq!(ended.stderr.lines().count(), 1, "it is said once: {}", ended.stderr);
}

#[test]
fn a_signal_after_the_end_of_the_program_ends_the_waiting() {
    for signal in ["INT", "TERM", "HUP"] {
        let desk = Desk::new();
        let mut running = desk.start(desk.script(&["--no-shim"], &orphan("touch done")));
        desk.wait_until("the notice", || running.stderr().contains("ends the waiting"));
        assert!(running.is_running());
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, 3, "{signal}: {}", ended.stderr);
        assert!(!desk.path().join("done").exists(), "{signal}: the others were not waited for");
        // They were not ended either.
        desk.make("go");
        desk.wait_for("done");
    }
}

#[test]
fn a_signal_to_urscope_reaches_the_program() {
    for (signal, code) in [("INT", 41), ("TERM", 42), ("HUP", 43), ("USR1", 44)] {
        let desk = Desk::new();
        let script = format!("trap 'exit {code}' {signal}; touch ready; {WAIT}");
        let running = desk.start(desk.script(&["--no-shim"], &script));
        desk.wait_for("ready");
        running.signal(signal);
        assert_eq!(running.end().code, code, "{signal}");
    }
}

#[test]
fn a_program_that_a_signal_ends_says_so_by_its_exit_code() {
    let desk = Desk::new();
    let running = desk.start(desk.script(&["--no-shim"], &format!("touch ready; {WAIT}")));
    desk.wait_for("ready");
    running.signal("TERM");
    assert_eq!(running.end().code, 128 + 15);
}

#[test]
fn urscope_outlives_an_interrupt_of_the_whole_group() {
    let desk = Desk::new();
    let script = format!("trap 'exit 5' INT; touch ready; {WAIT}");
    let mut command = desk.script(&["--no-shim"], &script);
    command.process_group(0);
    let running = desk.start(command);
    desk.wait_for("ready");
    running.signal_group("INT");
    assert_eq!(running.end().code, 5);
}

#[test]
fn a_program_may_signal_its_own_group() {
    let desk = Desk::new();
    let script = "trap 'echo once' TERM; kill -TERM 0; exit 6";
    let mut command = desk.script(&["--no-shim"], script);
    command.process_group(0);
    let ended = desk.start(command).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (6, "once\n"), "{}", ended.stderr);
}

#[test]
fn what_is_ignored_stays_ignored() {
    let desk = Desk::new();
    let urscope = env!("CARGO_BIN_EXE_urscope");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" run --no-shim -- grep SigIgn /proc/self/status", urscope]);
    desk.surround(&mut command);
    let ended = desk.start(command).end();
    let mask = ended.stdout.trim().strip_prefix("SigIgn:").unwrap().trim();
    assert_eq!(u64::from_str_radix(mask, 16).unwrap() & 1, 1, "{ended:?}");
}

#[test]
fn the_report_tells_who_had_not_ended() {
    let desk = Desk::new();
    let mut command = desk.script(&[], &orphan("touch done"));
    command.env("URSCOPE_LIBRARY", command::harmless_library());
    let running = desk.start(command);
    desk.wait_until("the notice", || running.stderr().contains("ends the waiting"));
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("had not ended"), "{}", ended.stderr);
    desk.make("go");
    desk.wait_for("done");
}

/// What is left behind may still start programs, which look for the device in the private directory.
#[test]
fn the_private_directory_stays_for_those_who_are_left() {
    let desk = Desk::new();
    let library = desk.path().join("a library.so");
    fs::copy(command::harmless_library(), &library).unwrap();
    let mut command = desk.script(&["--no-check"], &orphan("readlink $LD_PRELOAD; touch done"));
    command.env("URSCOPE_LIBRARY", &library).env("TMPDIR", desk.path());
    let running = desk.start(command);
    desk.wait_until("the notice", || running.stderr().contains("ends the waiting"));
    running.signal("INT");
    assert_eq!(running.end().code, 3);
    desk.make("go");
    desk.wait_for("done");
    let target = fs::read_to_string(desk.path().join("stdout")).unwrap();
    assert_eq!(target.trim(), library.to_str().unwrap());
}
