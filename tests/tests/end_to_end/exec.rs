//! A process that becomes another program: what it has left then is left for good, also if the other program makes no
//! call.

use urscope_tests::{Adapter, Release, TestRun};

use crate::on_both_adapters;

/// What is found when the process becomes another program in the way `how`, or is killed.
fn found(how: &str, adapter: Adapter) -> Vec<String> {
    let outcome = TestRun::new("becomes_another_program", Release::R2026_2, adapter).arg(how).run();
    let is_killed = ["failed", "vfork"].contains(&how);
    assert_eq!(outcome.stdout.ends_with("\nanother program\n"), how != "failed", "{how}: {}", outcome.stderr);
    assert_eq!(outcome.code, if is_killed { 128 + 9 } else { 1 }, "{how}: {}", outcome.stderr);
    let traces = outcome.traces();
    let [trace] = &traces[..] else { panic!("{how}: {:?}", outcome.trace_files()) };
    let failed = trace.records.iter().filter(|record| record["name"] == "urscope_exec");
    let failed: Vec<bool> = failed.map(|record| record["args"]["failed"].as_bool().expect("a boolean")).collect();
    let expected: &[bool] = match how {
        "failed" => &[false, true],
        "vfork" => &[],
        _ => &[false],
    };
    assert_eq!(failed, expected, "{how}");
    outcome.report().violations()
}

on_both_adapters! {
    fn what_a_process_leaves_when_it_becomes_another_program_is_a_leak(adapter) {
        let ways = ["execl", "execle", "execlp", "execv", "execve", "execveat", "execvp", "execvpe", "fexecve"];
        for how in ways {
            assert_eq!(found(how, adapter), ["warning leaked-handle"], "{how}");
        }
    }

    fn a_process_that_fails_to_become_another_program_goes_on(adapter) {
        assert_eq!(found("failed", adapter), ["note leaked-handle"]);
    }

    fn a_child_of_vfork_ends_nothing_of_its_parent(adapter) {
        assert_eq!(found("vfork", adapter), ["note leaked-handle"]);
    }
}
