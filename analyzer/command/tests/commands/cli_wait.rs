//! `urscope run` and its descendants: which processes it waits for, and the effects of signals.
//!
//! Scripts and tests signal each other with files, so the tests do not depend on timing.

use std::fs::{self, File, OpenOptions};
use std::os::unix::{fs::OpenOptionsExt, process::CommandExt};
use std::{io::Write, process::Command, thread, time::Duration};

use crate::command::{Running, Workspace, harmless_library};

/// A script that waits for the file `go`, for a minute at most.
const WAIT: &str = "n=0; while [ ! -e go ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done";

/// A script with a process that outlives the program, its parent and its grandparent.
fn orphan(then: &str) -> String {
    format!("( ( {WAIT}; {then} ) & ) ; exit 3")
}

/// Starts a run, and waits until it says that it waits for processes.
fn waiting(workspace: &Workspace, command: Command) -> Running {
    let running = workspace.start(command);
    workspace.wait_until("the notice", || running.stderr().contains("ends the waiting"));
    running
}

#[test]
fn all_processes_that_the_program_started_are_waited_for() {
    let workspace = Workspace::new();
    let mut running = waiting(&workspace, workspace.script(&["--no-shim"], &orphan("touch done")));
    assert!(running.stderr().contains("waiting for"), "{}", running.stderr());
    assert!(running.is_running());
    workspace.make("go");
    let ended = running.end();
    assert_eq!(ended.code, 3);
    assert!(workspace.path().join("done").exists());
    assert_eq!(ended.stderr.lines().count(), 1, "the notice is printed once: {}", ended.stderr);
}

#[test]
fn a_signal_after_the_end_of_the_program_ends_the_waiting() {
    for signal in ["INT", "TERM", "HUP"] {
        let workspace = Workspace::new();
        let mut running = waiting(&workspace, workspace.script(&["--no-shim"], &orphan("touch done")));
        assert!(running.is_running());
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, 3, "{signal}: {}", ended.stderr);
        assert!(!workspace.path().join("done").exists(), "{signal}: the others were not waited for");
        // They were not terminated either.
        workspace.make("go");
        workspace.wait_for("done");
    }
}

#[test]
fn the_waiting_has_a_limit_where_one_is_given() {
    let workspace = Workspace::new();
    let options = ["--no-shim", "--wait-for-children", "1"];
    let ended = workspace.start(workspace.script(&options, &orphan("touch done"))).end();
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(!workspace.path().join("done").exists(), "the others were not waited for");
    workspace.make("go");
    workspace.wait_for("done");
}

#[test]
fn a_signal_to_urscope_reaches_the_program() {
    for (signal, code) in [("INT", 41), ("TERM", 42), ("HUP", 43), ("USR1", 44)] {
        let workspace = Workspace::new();
        let script = format!("trap 'exit {code}' {signal}; touch ready; {WAIT}");
        let running = workspace.start(workspace.script(&["--no-shim"], &script));
        workspace.wait_for("ready");
        running.signal(signal);
        assert_eq!(running.end().code, code, "{signal}");
    }
}

#[test]
fn the_exit_code_shows_that_a_signal_ended_the_program() {
    let workspace = Workspace::new();
    let running = workspace.start(workspace.script(&["--no-shim"], &format!("touch ready; {WAIT}")));
    workspace.wait_for("ready");
    running.signal("TERM");
    assert_eq!(running.end().code, 128 + 15);
}

/// Runs a command as the leader of the session of a terminal, as `ssh -t` does, and closes the terminal when the file
/// `ready` is there.
const IN_A_TERMINAL: &str = "import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
while not os.path.exists('ready'): time.sleep(0.01)
os.close(terminal)
sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status := os.waitpid(pid, 0)[1]) else os.WEXITSTATUS(status))";

/// The leader gets the signal, and the others when the leader has ended.
#[test]
fn a_terminal_that_is_closed_ends_the_program_as_without_urscope() {
    let others = format!("(trap 'touch others; exit' HUP; touch begun; {WAIT})");
    let script = format!("{others} & until [ -e begun ]; do sleep 0.01; done; touch ready; {WAIT}");
    for before in [&[][..], &[env!("CARGO_BIN_EXE_urscope"), "run", "--no-shim", "--"]] {
        let workspace = Workspace::new();
        let mut command = Command::new("/usr/bin/env");
        command
            .args(["--default-signal", "python3", "-c", IN_A_TERMINAL])
            .args(before)
            .args(["/bin/sh", "-c", &script]);
        workspace.surround(&mut command);
        let ended = workspace.start(command).end();
        assert_eq!(ended.code, 128 + 1, "{before:?}: {}", ended.stderr);
        workspace.wait_for("others");
    }
}

#[test]
fn urscope_outlives_an_interrupt_of_the_whole_group() {
    let workspace = Workspace::new();
    let script = format!("trap 'exit 5' INT; touch ready; {WAIT}");
    let mut command = workspace.script(&["--no-shim"], &script);
    command.process_group(0);
    let running = workspace.start(command);
    workspace.wait_for("ready");
    running.signal_group("INT");
    assert_eq!(running.end().code, 5);
}

#[test]
fn a_program_may_signal_its_own_group() {
    let workspace = Workspace::new();
    let script = "trap 'echo once' TERM; kill -TERM 0; exit 6";
    let mut command = workspace.script(&["--no-shim"], script);
    command.process_group(0);
    let ended = workspace.start(command).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (6, "once\n"), "{}", ended.stderr);
}

/// A run whose program has ended, and whose report goes to this pipe, which is full and which nobody reads.
fn stuck(workspace: &Workspace) -> (Running, File) {
    workspace.prepare("mkfifo report");
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let pipe = workspace.path().join("report");
    let mut full = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(pipe).unwrap();
    while full.write(&[0; 4096]).is_ok() {}
    let running = workspace.start(workspace.traced(&["--report", "report"], "true"));
    // write(2) has the number 1.
    let syscall = format!("/proc/{}/syscall", running.pid());
    workspace.wait_until("the report", || fs::read_to_string(&syscall).unwrap().starts_with("1 "));
    (running, full)
}

#[test]
fn a_second_interrupt_ends_a_run_that_waits_for_its_output() {
    let workspace = Workspace::new();
    let (mut running, _full) = stuck(&workspace);
    running.signal("INT");
    workspace.wait_until("the message", || running.stderr().contains("the next Ctrl-C ends urscope"));
    assert!(running.is_running());
    running.signal("INT");
    assert_eq!(running.end().code, 130);
}

/// As by Slurm, when it cancels a job.
#[test]
fn repeated_termination_does_not_cost_the_verdict() {
    let workspace = Workspace::new();
    let (mut running, _full) = stuck(&workspace);
    for _ in 0..2 {
        running.signal("TERM");
        workspace.wait_until("the message", || running.stderr().contains("the next Ctrl-C ends urscope"));
    }
    thread::sleep(Duration::from_millis(300));
    assert!(running.is_running());
    running.signal("INT");
    assert_eq!(running.end().code, 130);
}

#[test]
fn ignored_signals_stay_ignored() {
    let workspace = Workspace::new();
    let urscope = env!("CARGO_BIN_EXE_urscope");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" run --no-shim -- grep SigIgn /proc/self/status", urscope]);
    workspace.surround(&mut command);
    let ended = workspace.start(command).end();
    let mask = ended.stdout.trim().strip_prefix("SigIgn:").unwrap().trim();
    assert_eq!(u64::from_str_radix(mask, 16).unwrap() & 1, 1, "{ended:?}");
}

#[test]
fn the_report_names_processes_that_had_not_ended() {
    let workspace = Workspace::new();
    let running = waiting(&workspace, workspace.traced(&[], &orphan("touch done")));
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("had not ended"), "{}", ended.stderr);
    workspace.make("go");
    workspace.wait_for("done");
}

/// The remaining processes may still start programs that load the device from the private directory.
#[test]
fn the_private_directory_is_kept_for_remaining_processes() {
    let workspace = Workspace::new();
    let library = workspace.path().join("a library.so");
    fs::copy(harmless_library(), &library).unwrap();
    let mut command = workspace.script(&["--no-check"], &orphan("readlink $LD_PRELOAD; touch done"));
    command.env("URSCOPE_LIBRARY", &library).env("TMPDIR", workspace.path());
    let running = waiting(&workspace, command);
    running.signal("INT");
    assert_eq!(running.end().code, 3);
    workspace.make("go");
    workspace.wait_for("done");
    let target = fs::read_to_string(workspace.path().join("stdout")).unwrap();
    assert_eq!(target.trim(), library.to_str().unwrap());
}
