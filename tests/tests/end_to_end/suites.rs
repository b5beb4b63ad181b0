//! Other people's test suites, unmodified, on the software device: alone and under urscope, equal test by test.
//!
//! What takes longer, or is not in the wheels that the set-up installs anyway, `scripts/suites` runs.

use std::collections::BTreeMap;

use urscope_tests::{Adapter, Release, TestRun, python_with};

use crate::on_both_adapters;

/// Files of dpctl's own suite: what runs kernels, copies and waits. The others ask devices for their properties.
const DPCTL: [&str; 8] = [
    "test_raw_kernel_arg.py",
    "test_sycl_event.py",
    "test_sycl_kernel_submit.py",
    "test_sycl_program.py",
    "test_sycl_queue_memcpy.py",
    "test_sycl_timer.py",
    "test_sycl_usm.py",
    "test_work_group_memory.py",
];

/// What pytest says of each test.
fn results(stdout: &str) -> BTreeMap<&str, &str> {
    let words = ["PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL", "XPASS"];
    let lines = stdout.lines().filter_map(|line| {
        line.contains("::").then_some(())?;
        words.iter().find_map(|word| Some((line.split_once(&format!(" {word}"))?.0, *word)))
    });
    lines.collect()
}

on_both_adapters! {
    fn dpctl_passes_its_own_tests(adapter) {
        let python = Release::R2026_2.python();
        let pytest = python_with("pytest-9.2.0");
        let packages = pytest.parent().unwrap().parent().unwrap().join("lib");
        let version = packages.read_dir().unwrap().next().unwrap().unwrap().path();
        let tests = python.parent().unwrap().parent().unwrap().join("lib").join(version.file_name().unwrap());
        let run = || {
            let run = TestRun::of_program(&python)
                .adapter(adapter)
                .env("PYTHONPATH", version.join("site-packages"))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .arg("-m");
            let options = ["pytest", "-v", "--color=no", "-p", "no:cacheprovider", "-p", "no:xdist"];
            let run = options.into_iter().fold(run, TestRun::arg);
            let run = DPCTL.iter().fold(run, |run, file| run.arg(tests.join("site-packages/dpctl/tests").join(file)));
            run.with_engine()
        };
        let alone = run().untraced().run();
        assert_eq!(alone.code, 0, "{}", alone.stdout);
        let passed = results(&alone.stdout);
        let count = passed.values().filter(|result| **result == "PASSED").count();
        assert!(count > 70, "{count} tests passed:\n{}", alone.stdout);
        let traced = run().option("--no-check").run();
        assert_eq!((traced.code, results(&traced.stdout)), (0, passed), "{}", traced.stderr);
    }
}
