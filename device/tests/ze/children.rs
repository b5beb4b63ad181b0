//! Tests in a process of their own: this binary in another role.

use std::process::{Command, Output};

/// The role of this process. `None` in the test itself.
pub(crate) fn role() -> Option<String> {
    std::env::var("DEVICE_TEST_ROLE").ok()
}

/// The name of the test that this stands in.
macro_rules! this_test {
    () => {{
        fn here() {}
        let place = std::any::type_name_of_val(&here).trim_end_matches("::here");
        place.split_once("::").map(|(_, test)| test.split("::{{closure}}").next().unwrap_or_default()).unwrap()
    }};
}

/// The other process of a test, which does this there.
#[allow(unused_macros, reason = "the tests of kernels have none")]
macro_rules! peer {
    ($there:expr) => {{
        if role().is_some() {
            return $there;
        }
        Peer::start(this_test!(), "producer")
    }};
}

/// The rest of the test happens in a process of its own, with these environment variables.
macro_rules! alone {
    () => {
        alone!(&[])
    };
    ($variables:expr) => {
        if role().is_none() {
            run_child(child(this_test!(), "device", $variables));
            return;
        }
    };
}
#[allow(unused_imports, reason = "not every program uses both")]
pub(crate) use {alone, peer, this_test};

/// A command that runs the test `name` of this binary in another process, with a role and environment variables.
pub(crate) fn child(name: &str, role: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env("DEVICE_TEST_ROLE", role);
    command.envs(variables.iter().copied());
    command
}

/// Runs a child, and requires that it exits normally and has run exactly one test.
#[track_caller]
pub(crate) fn run_child(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}{}", output.status, String::from_utf8_lossy(&output.stdout));
    assert_one_passed(&output.stdout);
    output
}

/// Requires that the output of a test harness reports one passed test. A name that matches no test passes none.
#[track_caller]
pub(crate) fn assert_one_passed(output: &[u8]) {
    let text = String::from_utf8_lossy(output);
    assert!(text.contains("test result: ok. 1 passed; 0 failed"), "{text}");
}
