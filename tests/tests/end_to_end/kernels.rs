//! Programs with kernels run on the software device, and kernels work on memory of other processes.

use urscope_tests::{Adapter, Release, TestRun};

use crate::on_both_adapters;

on_both_adapters! {
    /// With both implementations of the entry points, and with an engine that is named and one that is found.
    fn kernels_work_on_shared_memory(adapter) {
        let run = |release, backend: &str| TestRun::new("kernels exchange", release, adapter).env("URSCOPE_BACKEND", backend);
        let runs = [
            run(Release::R2026_2, "adapter").with_engine(),
            run(Release::R2026_2, "level_zero").with_engine(),
            run(Release::R2026_1, "auto"),
        ];
        for run in runs {
            let outcome = run.run();
            let expected = "consumer sees the results\nproducer sees the results\n";
            assert_eq!((outcome.code, outcome.stdout.as_str()), (0, expected), "{}", outcome.stderr);
            let report = outcome.report();
            assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{report:#?}");
        }
    }

    /// The adapters keep the memory mapped, so the kernel works.
    fn a_kernel_after_the_close_is_found(adapter) {
        let run = TestRun::new("kernels exchange", Release::R2026_2, adapter).with_engine().arg("late");
        let outcome = run.run();
        let report = outcome.report();
        assert_eq!((outcome.code, report.violations()), (1, vec!["error use-after-close".to_owned()]), "{report:#?}");
        let message = report.findings()[0]["message"].as_str().unwrap();
        let parts = ["(urEnqueueKernelLaunchWithArgsExp,", "closed in"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }

    /// The kernel may have read other bytes, so it is a note.
    fn a_kernel_beside_a_command_of_another_process_is_noted(adapter) {
        let run = || TestRun::new("kernels told_first", Release::R2026_2, adapter).with_engine().env("ZE_SOFT_DELAY", "until-wait");
        let outcome = run().run();
        let report = outcome.report();
        assert_eq!((report.violations(), report.verdict()), (vec!["note race".to_owned()], "clean"), "{}", outcome.stderr);
        let message = report.finding("race")["message"].as_str().unwrap();
        let parts = [" may write ", "(urEnqueueKernelLaunchWithArgsExp,", "(urEnqueueUSMFill,", " may have 256 KiB"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        let report = run().arg("fixed").run().report();
        assert_eq!((report.violations(), report.verdict()), (vec![], "clean"), "{report:#?}");
    }

    /// Limits may be lower than the engine's.
    fn sycl_knows_what_the_engine_can_do(adapter) {
        let run = TestRun::new("device_aspects", Release::R2026_2, adapter).with_engine().option("--no-check");
        let outcome = run.run();
        let right = ["half precision", "double precision", "64-bit atomics", "address bits", "sizes of sub-groups", "largest group", "local memory"];
        let lines: Vec<_> = outcome.stdout.lines().map(|line| line.strip_suffix(": right").unwrap_or(line)).collect();
        assert_eq!((outcome.code, lines), (0, right.to_vec()), "{}", outcome.stderr);
    }

    /// The program goes on after the fault, and its trace is closed.
    fn a_wild_pointer_in_a_kernel_loses_the_device(adapter) {
        let outcome = TestRun::new("kernels fault", Release::R2026_2, adapter).with_engine().option("--no-check").run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (3, "the device is lost\n"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("ze_soft: kernel scale faulted at address 0x"), "{}", outcome.stderr);
        for trace in outcome.traces() {
            assert!(trace.closed, "{}", trace.path.display());
        }
    }

    /// The adapters make a command buffer only if the driver lists the extension for it.
    fn a_command_buffer_with_kernels_runs_in_order(adapter) {
        let outcome = TestRun::new("kernels graph", Release::R2026_2, adapter).with_engine().option("--no-check").run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "right\n"), "{}", outcome.stderr);
    }

    /// A program can ask for it, and gets it if the device offers it.
    fn kernels_use_memory_of_the_process_on_demand(adapter) {
        let run = TestRun::new("kernels copies", Release::R2026_2, adapter).with_engine().option("--no-check");
        let outcome = run.env("ZE_SOFT_SYSTEM_USM", "on").run();
        let expected = "in order: right\nby events: right\nmemory of the process: right\n";
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, expected), "{}", outcome.stderr);
    }

    /// The adapters change mutable lists for it.
    fn a_command_buffer_takes_other_arguments_and_ranges(adapter) {
        let outcome = TestRun::new("kernels update", Release::R2026_2, adapter).with_engine().option("--no-check").run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "right\nright\nright\nright\n"), "{}", outcome.stderr);
    }

    /// A device is partitioned as SYCL does it, and its parts use each other's memory in both processes.
    fn sub_devices_share_memory_and_run_kernels(adapter) {
        let run = TestRun::new("kernels sub_devices", Release::R2026_2, adapter).with_engine().env("ZE_SOFT_SUB_DEVICES", "2");
        let outcome = run.run();
        let expected = "the consumer sees the numbers\nthe producer's sub-devices: 2\n";
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, expected), "{}", outcome.stderr);
        let report = outcome.report();
        assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{report:#?}");
    }

    /// With immediate lists, and with regular ones that a queue executes. What the v1 adapter does with the device's
    /// engine for copies is in its log.
    fn kernels_and_copies_are_in_order_over_the_engines(adapter) {
        for lists in ["1", "0"] {
            let run = TestRun::new("kernels copies", Release::R2026_2, adapter).with_engine().option("--no-check");
            let run = run.env("UR_L0_USE_IMMEDIATE_COMMANDLISTS", lists).env("UR_LOG_LEVEL_ZERO", "level:debug;output:stderr");
            let outcome = run.run();
            assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "in order: right\nby events: right\n"), "{}", outcome.stderr);
            assert_eq!(outcome.stderr.contains("create queue ordinal = 1,"), adapter == Adapter::V1, "{}", outcome.stderr);
        }
    }

    /// A value of 8 bytes that is 0 among them, for which the v1 adapter passes no pointer.
    fn kernels_in_sycl_need_no_other_compiler(adapter) {
        let outcome = TestRun::new("kernels source", Release::R2026_2, adapter).with_engine().option("--no-check").run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "right\nright\n"), "{}", outcome.stderr);
    }
}

/// The device captures the graph from two queues, in the consumer. Only the v2 adapter asks for it.
#[test]
fn a_graph_that_is_recorded_natively_works_on_shared_memory() {
    for backend in ["adapter", "level_zero"] {
        let run = TestRun::new("kernels native_graph", Release::R2026_2, Adapter::V2).with_engine();
        let outcome = run.env("URSCOPE_BACKEND", backend).run();
        let consumer = "both are recorded\nconsumer sees the results\nconsumer sees the results\n";
        let expected = format!("{consumer}producer sees the results\n");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, expected.as_str()), "{}", outcome.stderr);
        let report = outcome.report();
        assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{report:#?}");
    }
}
