//! Processes that take from their trace what it needs, and those in which it could do harm: what is lost is counted and
//! not judged, every process ends, and nothing of the program is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use urscope_tests::{Adapter, Outcome, Release, Report, TestRun, Trace, apps, repository, run};

use crate::on_both_adapters;

const FORMS: [&str; 2] = ["chrome", "binary"];

/// The form in which a test that takes long runs on an adapter.
fn form(adapter: Adapter) -> &'static str {
    if adapter == Adapter::V1 { "chrome" } else { "binary" }
}

fn test_run(mode: &str, form: &str, adapter: Adapter) -> TestRun {
    TestRun::new(&format!("odd_process {mode}"), Release::R2026_2, adapter).env("URSCOPE_FORMAT", form)
}

/// As root, if need be of a user namespace, which chroot(2) takes.
fn run_as_root(mode: &str, form: &str, adapter: Adapter) -> Outcome {
    let script = "[ \"$(id -u)\" = 0 ] && exec \"$@\"; exec unshare --user --map-root-user \"$@\"";
    let program = apps::executable("odd_process", Release::R2026_2);
    let test_run = TestRun::of_program("/bin/sh").adapter(adapter).arg("-c").arg(script).arg("sh").arg(program);
    test_run.arg(mode).env("URSCOPE_FORMAT", form).run()
}

/// Runs a script, to which the program is `$0`.
fn run_script(script: &str, form: &str, adapter: Adapter) -> Outcome {
    let program = apps::executable("odd_process", Release::R2026_2);
    let test_run = TestRun::of_program("/bin/sh").adapter(adapter).arg("-c").arg(script).arg(program);
    test_run.env("URSCOPE_FORMAT", form).run()
}

/// What is said of a process whose traces are to be in a file.
const NO_TRACE: &str = " could not write its trace: Not a directory";

/// Checks that nothing is judged, and that each record is in the trace or counted as lost.
fn is_counted(outcome: &Outcome) {
    // A file that cannot be opened again is not cut behind its end.
    let report = outcome.report();
    let trace = Trace::read_of_killed(&outcome.trace_files()[0]);
    assert_eq!(report.verdict(), "not-judged", "{}", outcome.stderr);
    let [process] = report.processes() else { panic!("one process: {}", outcome.stderr) };
    let lost = process["lost"].as_u64().expect("a number");
    let recorded = (trace.calls("B").count() + trace.calls("E").count()) as u64;
    // The program makes 2 x 8010 gets and puts, and some calls before and after.
    let made = 2 * 2 * 8010;
    assert!((made..made + 300).contains(&(recorded + lost)), "{recorded} records, {lost} lost: {}", outcome.stderr);
    let reason = report.reason().expect("a reason");
    assert!(reason.replace(',', "").contains(&format!("{lost} records lost")), "{reason}");
}

/// What `urscope check` says of the traces afterwards.
fn checked(outcome: &Outcome) -> Report {
    let traces = outcome.trace_folder();
    Report::parse(&run::urscope(&["check", "--format", "json", traces.to_str().expect("a path in UTF-8")]).stdout)
}

on_both_adapters! {
    fn what_a_trace_out_of_reach_lacks_is_counted(adapter) {
        for form in FORMS {
            for mode in ["out_of_reach", "out_of_reach_and_killed"] {
                let outcome = run_as_root(mode, form, adapter);
                is_counted(&outcome);
                assert!(outcome.stderr.contains("cannot grow: No such file"), "{}", outcome.stderr);
            }
            let outcome = run_as_root("in_reach", form, adapter);
            assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
        }
    }

    /// The trace of the second process cannot be made.
    fn a_process_that_cannot_write_its_trace_is_named_in_the_verdict(adapter) {
        for form in FORMS {
            let outcome = run_script("$0 in_reach && URSCOPE_DIR=/dev/null/traces $0 in_reach", form, adapter);
            for (said, code) in [(outcome.report(), outcome.code), (checked(&outcome), 2)] {
                assert_eq!((said.verdict(), code), ("partly-judged", 2), "{said:#?}");
                let [limit] = said.limits() else { panic!("not one limit: {said:#?}") };
                assert_eq!(limit["cause"], "not-traced");
                assert!(limit["text"].as_str().is_some_and(|text| text.contains(NO_TRACE)), "{limit}");
            }
        }
    }

    fn what_a_trace_without_address_space_lacks_is_counted(adapter) {
        for form in FORMS {
            // The layer that validates needs memory, too.
            let outcome = test_run("without_address_space", form, adapter).env("URSCOPE_VALIDATE", "off").run();
            is_counted(&outcome);
        }
    }

    /// The device and urscope's backend make descriptors as well.
    fn nothing_lands_in_a_file_of_the_tracer(adapter) {
        for backend in ["adapter", "level_zero"] {
            let outcome = test_run("closed_streams", form(adapter), adapter).env("URSCOPE_BACKEND", backend).run();
            assert_eq!(outcome.stdout, "writes to closed streams that succeeded: 0\n", "{}", outcome.stderr);
            assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
        }
    }

    fn no_call_changes_errno(adapter) {
        for backend in ["adapter", "level_zero"] {
            for form in FORMS {
                let outcome = test_run("keeps_errno", form, adapter).env("URSCOPE_BACKEND", backend).run();
                assert_eq!(outcome.stdout, "calls that changed errno: 0\n", "{form}: {}", outcome.stderr);
            }
        }
    }

    /// A handler may have interrupted malloc(3), for whose lock another thread waits then, in the tracer.
    fn a_process_ends_at_once_beside_a_thread_that_allocates(adapter) {
        for mode in ["end_beside_each_of_a_thread", "end_beside_some_of_a_process"] {
            let outcome = test_run(mode, form(adapter), adapter).env("URSCOPE_VALIDATE", "off").run();
            assert_eq!(outcome.stdout, "processes that ended late: 0\n", "{mode}: {}", outcome.stderr);
            let report = outcome.report();
            assert!(report.processes().iter().all(|process| process["ended"] == "exited"), "{:?}", report.processes());
        }
    }
}

/// The program is not blamed for having called nothing.
#[test]
fn a_run_whose_traces_could_not_be_made_says_so() {
    for form in FORMS {
        let outcome = run_script("URSCOPE_DIR=/dev/null/traces $0 in_reach", form, Adapter::V2);
        assert_eq!(outcome.report().verdict(), "not-judged", "{}", outcome.stderr);
        let reason = outcome.report().reason().map(str::to_owned).unwrap_or_default();
        assert!(reason.starts_with("nothing was recorded: odd_process (pid ") && reason.contains(NO_TRACE), "{reason}");
    }
}

on_both_adapters! {
    /// Something takes the library from the environment of a part of the run. Nobody knows what that part does.
    fn a_process_without_the_library_is_named(adapter) {
        let [clean, faulty] = ["clean", "free_while_open"].map(|name| apps::executable(name, Release::R2026_2));
        let run = |script: &str| {
            let test_run = TestRun::of_program("/bin/sh").adapter(adapter).arg("-c").arg(script);
            test_run.arg(clean.clone()).arg(faulty.clone()).run()
        };
        let said = " could not be traced, because LD_PRELOAD did not reach it";
        // Each process exists for some moments only, and is looked for.
        let untraced = "for n in 1 2 3 4 5; do env -u LD_PRELOAD $1; done";
        let beside = run(&format!("$0 && {untraced}"));
        let report = beside.report();
        assert_eq!((report.verdict(), report.processes().len()), ("partly-judged", 2), "{}", beside.stderr);
        let names = |reason: &str| reason.starts_with("free_while_open (pid ") && reason.contains(said);
        assert!(report.reason().is_some_and(names), "{report:#?}");
        // Also later, of the traces alone.
        let folder = beside.trace_folder();
        let checked = run::urscope(&["check", "--format", "json", folder.to_str().expect("a path in UTF-8")]);
        let checked = Report::parse(&checked.stdout);
        assert_eq!((checked.verdict(), checked.reason()), (report.verdict(), report.reason()));

        let alone = run(untraced).report();
        assert_eq!(alone.verdict(), "not-judged");
        assert!(alone.reason().is_some_and(|reason| reason.contains(said)), "{alone:#?}");
        // A program that uses no GPU may do without it.
        let harmless = run("$0 && env -u LD_PRELOAD sleep 0.2");
        assert_eq!(harmless.report().verdict(), "clean", "{}", harmless.stderr);
    }
}

/// The numbers of the system calls that a filter must allow for a trace.
const FOR_A_TRACE: [(&str, i64); 25] = [
    ("openat", libc::SYS_openat),
    ("read", libc::SYS_read),
    ("write", libc::SYS_write),
    ("pwrite64", libc::SYS_pwrite64),
    ("pwritev", libc::SYS_pwritev),
    ("close", libc::SYS_close),
    ("fstat", libc::SYS_fstat),
    ("newfstatat", libc::SYS_newfstatat),
    ("ftruncate", libc::SYS_ftruncate),
    ("mmap", libc::SYS_mmap),
    ("munmap", libc::SYS_munmap),
    ("madvise", libc::SYS_madvise),
    ("readlink", libc::SYS_readlink),
    ("rename", libc::SYS_rename),
    ("getpid", libc::SYS_getpid),
    ("getppid", libc::SYS_getppid),
    ("gettid", libc::SYS_gettid),
    ("geteuid", libc::SYS_geteuid),
    ("prctl", libc::SYS_prctl),
    ("prlimit64", libc::SYS_prlimit64),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("futex", libc::SYS_futex),
    ("sched_yield", libc::SYS_sched_yield),
    ("clock_gettime", libc::SYS_clock_gettime),
    ("getrandom", libc::SYS_getrandom),
];

/// Those that are made only where threads meet, or where the kernel maps no clock.
const SOMETIMES: [&str; 3] = ["futex", "sched_yield", "clock_gettime"];

#[test]
fn the_documents_list_the_system_calls_of_a_trace() {
    let text = fs::read_to_string(repository().join("docs/troubleshooting.md")).expect("the page can be read");
    let (_, behind) = text.split_once("besides what the program needs: ").expect("the page has a list");
    let listed: BTreeSet<&str> = behind.split(';').next().unwrap_or_default().split('`').skip(1).step_by(2).collect();
    let names: BTreeMap<i64, &str> = FOR_A_TRACE.into_iter().map(|(name, number)| (number, name)).collect();
    assert_eq!(listed, names.values().copied().collect());

    let made = |run: TestRun| -> BTreeSet<i64> {
        let outcome = run.run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stdout.lines().map(|line| line.parse().expect("a number")).collect()
    };
    let mut of_traces = BTreeSet::new();
    for adapter in [Adapter::V1, Adapter::V2] {
        let run = || TestRun::new("system_calls", Release::R2026_2, adapter).env("URSCOPE_VALIDATE", "off");
        let bare = made(run().untraced());
        for form in FORMS {
            let traced = made(run().env("URSCOPE_FORMAT", form));
            let missing: Vec<_> = traced.difference(&bare).filter(|number| !names.contains_key(number)).collect();
            assert!(missing.is_empty(), "{form}: the page does not list the system calls {missing:?}");
            of_traces.extend(traced);
        }
    }
    let is_unused = |(number, name): &(&i64, &&str)| !of_traces.contains(number) && !SOMETIMES.contains(name);
    let unused: Vec<_> = names.iter().filter(is_unused).collect();
    assert!(unused.is_empty(), "no trace takes {unused:?}");
}
