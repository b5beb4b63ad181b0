//! Small programs after public reports of bugs: each is found under its rule, where it happens, and is clean when it is
//! fixed.

use std::process::Command;

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, artefacts};

use crate::violations::is_at;

/// A program and what is found in it.
pub(crate) struct Exhibit {
    program: &'static str,
    /// The one finding that counts, as "severity rule".
    pub(crate) found: &'static str,
    /// The only line of the program with this text is in its call stack.
    at: &'static str,
    /// What the program prints with the mistake, and without it.
    printed: [&'static str; 2],
}

#[rustfmt::skip]
pub(crate) const EXHIBITS: [Exhibit; 23] = [
    Exhibit { program: "museum_mpich_7977", found: "error closed-while-in-use", at: "void evict()", printed: ["the second slice is x", "the second slice is a"] },
    Exhibit { program: "museum_mpich_7302", found: "error stale-handle", at: "= opened(ze,", printed: ["the second message is a", "the second message is b"] },
    Exhibit { program: "museum_mpich_7329", found: "error put-after-free", at: "if (!is_fixed()) ze.put(handle)", printed: ["the second message is b"; 2] },
    Exhibit { program: "museum_mpich_6959", found: "warning leaked-mapping", at: "cache.push_back(", printed: ["the receiver has 300 buffers open", "the receiver has 16 buffers open"] },
    Exhibit { program: "museum_oneccl_212", found: "warning stale-mapping", at: "receive_by_copy(", printed: ["the second message is a", "the second message is b"] },
    Exhibit { program: "museum_oneccl_217", found: "note permission-denied", at: "= ze.try_open(", printed: ["the open returned 0x78000004", "the message is a"] },
    Exhibit { program: "museum_mooncake_3546", found: "warning lost-offset", at: "message(ze.get(", printed: ["block 2 is a", "block 2 is c"] },
    Exhibit { program: "museum_dpctl_2331", found: "error out-of-bounds", at: "receive_by_copy(", printed: ["the last byte is none of the array's", "the last byte is a"] },
    Exhibit { program: "museum_ucx_4431", found: "error double-close", at: "ze.zeMemCloseIpcHandle(", printed: ["closes that were refused: 1", "closes that were refused: 0"] },
    Exhibit { program: "museum_numba_cuda_930", found: "error race", at: "= gpu.read(array, size)", printed: ["the array is stale", "the array is right"] },
    Exhibit { program: "museum_mstar_66", found: "error race", at: "= gpu.read(cache", printed: ["page 2 is stale", "page 2 is right"] },
    Exhibit { program: "museum_pytorch_191725", found: "warning unreturned-gets", at: "push_back(get(tensor", printed: ["handles of one tensor: 300", "handles of one tensor: 1"] },
    Exhibit { program: "museum_vllm_46515", found: "error freed-while-open", at: "check(cuMemFree(buffer)", printed: ["buffers of graphs that are gone and still open: 20", "buffers of graphs that are gone and still open: 0"] },
    Exhibit { program: "museum_nccl_842", found: "error altered-handle", at: "= cuIpcOpenMemHandle(", printed: ["the open returned 1", "the message is a"] },
    Exhibit { program: "museum_pytorch_149187", found: "note get-without-open", at: "check(cuIpcGetMemHandle(&handle", printed: ["tensors that are never freed: 19", "tensors that are never freed: 0"] },
    Exhibit { program: "museum_pytorch_114534", found: "error stale-handle", at: "check(cuIpcOpenMemHandle(", printed: ["the tensors are b b", "the tensors are a b"] },
    Exhibit { program: "museum_ms_swift_10204", found: "error race", at: "check(cuMemsetD8(bucket, 'b'", printed: ["both workers have a bucket"; 2] },
    Exhibit { program: "museum_ms_swift_10204_sycl", found: "error race", at: "gpu.queue.memset(bucket, 'b'", printed: ["both workers have a bucket"; 2] },
    Exhibit { program: "museum_bifrost_138", found: "error race", at: "check(cuMemcpyDtoH(frame", printed: ["all slots were read"; 2] },
    Exhibit { program: "museum_bifrost_138_sycl", found: "error race", at: "gpu.read(ring", printed: ["all slots were read"; 2] },
    Exhibit { program: "museum_ghex_220", found: "error race", at: "check(cuMemcpyDtoH(received", printed: ["the borders were exchanged"; 2] },
    Exhibit { program: "museum_ghex_220_sycl", found: "error race", at: "other.memcpy(received", printed: ["the borders were exchanged"; 2] },
    // The end of a process is no call.
    Exhibit { program: "museum_compute_runtime_974", found: "note descriptor-growth", at: "", printed: ["opened and closed 200 times"; 2] },
];

/// The programs of the CUDA driver.
const OF_CUDA: [&str; 7] = [
    "museum_vllm_46515",
    "museum_nccl_842",
    "museum_pytorch_149187",
    "museum_pytorch_114534",
    "museum_ms_swift_10204",
    "museum_bifrost_138",
    "museum_ghex_220",
];

fn run(program: &str, adapter: Adapter, fixed: bool) -> Outcome {
    let of_cuda = OF_CUDA.contains(&program);
    let test_run = if of_cuda { TestRun::of_cuda(program) } else { TestRun::new(program, Release::R2026_2, adapter) };
    let outcome = if fixed { test_run.arg("fixed") } else { test_run }.run();
    assert!(!outcome.stderr.contains("test program:"), "{program}: {}", outcome.stderr);
    outcome
}

/// The findings that are as bad as a rule's, or worse.
fn findings(outcome: &Outcome, rule: &str) -> Vec<String> {
    let notes_count = rule.starts_with("note ");
    let violations = outcome.report().violations().into_iter();
    violations.filter(|violation| notes_count || !violation.starts_with("note ")).collect()
}

/// `all` are the findings of the program: that of the exhibit, and what follows from it.
fn is_found(exhibit: &Exhibit, adapter: Adapter, all: &[&str]) {
    let Exhibit { program, found, at, printed } = *exhibit;
    let outcome = run(program, adapter, false);
    let report = outcome.report();
    assert_eq!(findings(&outcome, found), all, "{program}: {report:#?}");
    assert!(outcome.stdout.lines().any(|line| line == printed[0]), "{program}: {}", outcome.stdout);
    let (severity, rule) = found.split_once(' ').expect("a severity and a rule");
    // What cannot be proved to be a mistake of the program fails no run.
    assert_eq!(report.verdict(), if severity == "note" { "clean" } else { "findings" }, "{program}");
    let of_rule = report.findings().iter().find(|it| it["rule"] == rule && it["severity"] == severity);
    let finding = of_rule.unwrap_or_else(|| panic!("{program}: {report:#?}"));
    if !at.is_empty() {
        is_at(&outcome, program, finding, at);
    }
    let outcome = run(program, adapter, true);
    assert_eq!(findings(&outcome, found), [""; 0], "{program}, fixed: {:#?}", outcome.report());
    assert_eq!(outcome.report().verdict(), "clean", "{program}, fixed");
    assert!(outcome.stdout.lines().any(|line| line == printed[1]), "{program}, fixed: {}", outcome.stdout);
}

#[test]
fn each_bug_is_found_where_it_happens_and_is_clean_when_fixed() {
    for exhibit in &EXHIBITS {
        is_found(exhibit, Adapter::V2, &[exhibit.found]);
    }
}

#[test]
fn an_entry_that_is_evicted_while_in_use_is_found_in_sycl_too() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let exhibit = Exhibit {
            program: "museum_mpich_7977_sycl",
            found: "error closed-while-in-use",
            at: "  close(memory, gpu);",
            printed: ["a slice is wrong", "both slices are right"],
        };
        // The sender writes its memory again while the copy reads it.
        is_found(&exhibit, adapter, &[exhibit.found, "error race"]);
    }
}

fn message(program: &str, rule: &str) -> String {
    let report = run(program, Adapter::V2, false).report();
    report.finding(rule)["message"].as_str().expect("a message").to_owned()
}

/// The program has closed all that it has opened.
#[test]
fn what_a_driver_leaks_is_not_laid_to_the_program() {
    let message = message("museum_compute_runtime_974", "descriptor-growth");
    assert!(message.contains("so the program's IPC calls are balanced"), "{message}");
}

#[test]
fn a_forbidden_system_call_is_named_by_the_rule_and_by_the_doctor() {
    let message = message("museum_oneccl_217", "permission-denied");
    assert!(message.contains("the filters of containers forbid pidfd_getfd"), "{message}");
    let under = Command::new(apps::executable("museum_oneccl_217", Release::R2026_2))
        .arg("under")
        .arg(artefacts::command())
        .args(["doctor", "--device", "software", "--runtime"])
        .arg(Release::R2026_2.folder())
        .output()
        .expect("the program can be started");
    let said = String::from_utf8_lossy(&under.stdout);
    assert_eq!(under.status.code(), Some(1), "{said}");
    for part in ["a system-call filter forbids the call, even within one process", "--cap-add=SYS_PTRACE"] {
        assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{said}");
    }
}
