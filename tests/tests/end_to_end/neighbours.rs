//! Others that stand in the process beside urscope: sanitizers, a filter of system calls, allocators, profilers,
//! libraries that wrap functions of the C library or `dlsym`, and another urscope.

use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, artefacts, runtime, trace};

/// Compiles the program that opens a loader, with `flags`.
fn opener(folder: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join("opener");
    apps::compile_with_headers("other_namespace.cpp", &program, flags);
    program
}

fn run_of(program: &Path) -> TestRun {
    let loader = Release::R2026_2.library("libur_loader.so.0");
    TestRun::of_program(program).adapter(Adapter::V2).arg("plain").arg(loader)
}

/// AddressSanitizer ends a program at its start if another library is loaded before it.
#[test]
fn a_program_with_address_sanitizer_starts_and_is_traced() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = opener(folder.path(), &["-fsanitize=address"]);
    // The runtime keeps what it has allocated until the end.
    let test_run = || run_of(&program).env("ASAN_OPTIONS", "detect_leaks=0");
    let bare = test_run().untraced().run();
    let traced = test_run().run();
    assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{}{}", bare.stderr, traced.stderr);
    assert_eq!(traced.report().verdict(), "clean", "{}", traced.stderr);
}

/// ThreadSanitizer does not know the atomic instructions of a library that it has not compiled, but sees each memcpy(3)
/// there.
#[test]
fn a_program_with_thread_sanitizer_gets_no_report_about_urscope() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = folder.path().join("cycles");
    let libraries = Release::R2026_2.library("libur_loader.so.0");
    let rpath = format!("-Wl,-rpath,{}", libraries.parent().expect("it lies in a folder").display());
    let loader = libraries.to_str().expect("a path in UTF-8");
    apps::compile_with_headers(
        "backend_cycles.cpp",
        &program,
        &["-fsanitize=thread", "-pthread", "-Wl,--no-as-needed", loader, &rpath],
    );
    // The driver is not the matter here: it is not compiled by ThreadSanitizer, either.
    let left_out = folder.path().join("left_out");
    fs::write(&left_out, "called_from_lib:libze_loader.so\n").expect("a file can be written");
    let options = format!("exitcode=66 suppressions={}", left_out.display());
    let test_run =
        || TestRun::of_program(&program).adapter(Adapter::V2).env("TSAN_OPTIONS", &options).arg("100").arg("4");
    let bare = test_run().untraced().run();
    assert_eq!(bare.code, 0, "{}", bare.stderr);
    for form in ["binary", "chrome"] {
        for validate in ["on", "off"] {
            let traced = test_run().env("URSCOPE_FORMAT", form).env("URSCOPE_VALIDATE", validate).run();
            assert!(!traced.stderr.contains("WARNING: ThreadSanitizer"), "{form}, {validate}: {}", traced.stderr);
            let gets = trace::count(&traced.traces(), "E", "urIPCGetMemHandleExp");
            assert!(gets >= 400, "{form}, {validate}: {gets} gets: {}", traced.stderr);
        }
    }
}

/// The filter kills the program for a call that the standard library of Rust makes, and the program does not.
#[test]
fn a_filter_of_system_calls_kills_no_traced_program() {
    let test_run = || TestRun::new("ur_sharing no_statx", Release::R2026_2, Adapter::V2);
    let bare = test_run().untraced().run();
    let traced = test_run().run();
    assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{}{}", bare.stderr, traced.stderr);
    assert_eq!(traced.report().verdict(), "clean", "{}", traced.stderr);
    assert_eq!(trace::count(&traced.traces(), "E", "urIPCGetMemHandleExp"), 5002);
}

/// A library that counts in its `dlsym` how often the table of the IPC functions is asked for.
const WRAPPER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static int asked;
void *dlsym(void *handle, const char *name) {
  static void *(*real)(void *, const char *);
  if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (name && strcmp(name, "urGetIPCExpProcAddrTable") == 0) asked++;
  return real(handle, name);
}
__attribute__((destructor)) static void end(void) {
  if (asked > 0) printf("asked %d times\n", asked);
}
"#;

fn wrapper(folder: &Path) -> PathBuf {
    compiled(folder, WRAPPER)
}

fn compiled(folder: &Path, text: &str) -> PathBuf {
    let source = folder.join("wrapper.c");
    let library = folder.join("wrapper.so");
    fs::write(&source, text).expect("a file can be written");
    let compiled = Command::new("gcc").args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&library).status();
    assert!(compiled.expect("gcc cannot be started").success());
    library
}

#[test]
fn another_wrapper_behind_urscope_sees_what_it_saw() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = opener(folder.path(), &[]);
    let wrapper = wrapper(folder.path());
    let test_run = || run_of(&program).env("LD_PRELOAD", &wrapper);
    let bare = test_run().untraced().run();
    let traced = test_run().run();
    assert!(bare.stdout.contains("asked 2 times"), "{}", bare.stdout);
    assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{}{}", bare.stderr, traced.stderr);
    assert_eq!(traced.report().verdict(), "clean", "{}", traced.stderr);
}

/// It passes on to the C library, so urscope sees nothing: the verdict names it.
#[test]
fn a_wrapper_in_front_of_urscope_is_named() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = opener(folder.path(), &[]);
    let wrapper = wrapper(folder.path());
    let script = format!("export LD_PRELOAD={}:{}; exec \"$@\"", wrapper.display(), artefacts::preloaded().display());
    let loader = Release::R2026_2.library("libur_loader.so.0");
    let test_run = TestRun::of_program("/bin/sh").adapter(Adapter::V2).arg("-c").arg(script).arg("sh");
    let outcome = test_run.arg(&program).arg("plain").arg(loader).run();
    assert_eq!(outcome.report().verdict(), "not-judged", "{}", outcome.stderr);
    let reason = outcome.report().reason().map(str::to_owned).unwrap_or_default();
    assert!(reason.contains("wrapper.so exports a dlsym that stands before urscope's"), "{reason}");
}

/// A library that wraps functions of the C library until it is finalized, as libfaketime does.
const GONE: &str = r"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_gone;
int fstat(int file, struct stat *status) {
  if (is_gone) abort();
  return syscall(SYS_fstat, file, status);
}
int stat(const char *path, struct stat *status) {
  if (is_gone) abort();
  return syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}
__attribute__((destructor)) static void end(void) { is_gone = 1; }
";

#[test]
fn a_wrapper_that_is_gone_at_the_end_is_not_called() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = opener(folder.path(), &[]);
    let wrapper = compiled(folder.path(), GONE);
    let outcome = run_of(&program).env("LD_PRELOAD", &wrapper).run();
    assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
}

/// What is preloaded together, and the variables that it needs. `{lib}` is the folder of Debian's libraries, `{tmp}`
/// one for the test.
const NEIGHBOURS: [(&str, &[(&str, &str)]); 11] = [
    ("{lib}/x86_64-linux-gnu/libjemalloc.so.2", &[]),
    ("{lib}/x86_64-linux-gnu/libtcmalloc.so.4", &[]),
    ("{lib}/x86_64-linux-gnu/libmimalloc.so.2", &[]),
    ("{lib}/x86_64-linux-gnu/libeatmydata.so.1", &[]),
    // It interrupts the program by SIGPROF.
    ("{lib}/x86_64-linux-gnu/libprofiler.so.0", &[("CPUPROFILE", "{tmp}/profile"), ("CPUPROFILE_FREQUENCY", "1000")]),
    ("{lib}/x86_64-linux-gnu/faketime/libfaketime.so.1", &[("FAKETIME", "-15d")]),
    // It removes LD_PRELOAD from the environment.
    (HEAPTRACK, &[]),
    // Its memory is aligned for what the program may store there with this only.
    ("{lib}/libefence.so.0", &[("EF_ALIGNMENT", "16")]),
    // Wrappers of malloc(3), dlopen(3), fork(2) and close(2) that trace to LTTng.
    (
        "{lib}/x86_64-linux-gnu/liblttng-ust-libc-wrapper.so.1:{lib}/x86_64-linux-gnu/liblttng-ust-dl.so.1:\
         {lib}/x86_64-linux-gnu/liblttng-ust-fork.so.1:{lib}/x86_64-linux-gnu/liblttng-ust-fd.so.1",
        &[],
    ),
    ("libmemusage.so", &[]),
    ("{tmp}/another_urscope.so", &[]),
];

const HEAPTRACK: &str = "{lib}/heaptrack/libheaptrack_preload.so";

/// What is said of a process without urscope.
const NOT_REACHED: &str = "could not be traced, because LD_PRELOAD did not reach it";

fn lib() -> PathBuf {
    runtime::neighbours().join("usr/lib")
}

/// Runs a program with `preload`, which is `LD_PRELOAD` of the program only, and not that of `urscope run`.
fn run_beside(program: &str, preload: &str, variables: &[(&str, String)], traced: bool) -> Outcome {
    let mut words = program.split(' ');
    let executable = apps::executable(words.next().unwrap_or_default(), Release::R2026_2);
    let script = format!("export LD_PRELOAD={preload}; exec \"$@\"");
    let test_run = TestRun::of_program("/bin/sh").adapter(Adapter::V2).arg("-c").arg(script).arg("sh").arg(executable);
    let test_run = words.fold(test_run, TestRun::arg).env("LD_LIBRARY_PATH", lib().join("x86_64-linux-gnu"));
    let test_run = variables.iter().fold(test_run, |run, (name, value)| run.env(name, value));
    if traced { test_run.run() } else { test_run.untraced().run() }
}

/// In front of urscope and behind it. A run is clean only if urscope has seen it.
#[test]
fn programs_run_and_are_judged_beside_each_neighbour() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    fs::copy(artefacts::preloaded(), folder.path().join("another_urscope.so")).expect("a library can be copied");
    let at = |text: &str| {
        let text = text.replace("{lib}", &lib().display().to_string());
        text.replace("{tmp}", &folder.path().display().to_string())
    };
    let ours = artefacts::preloaded().display().to_string();
    for (name, variables) in NEIGHBOURS {
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, at(value))).collect();
        let neighbour = at(name);
        let behind = format!("{ours}:{neighbour}");
        let in_front = format!("{neighbour}:{ours}");
        for (program, preloads) in [("clean", &[&behind][..]), ("mistakes leaked_mapping", &[&behind, &in_front])] {
            let bare = run_beside(program, &neighbour, &variables, false);
            assert_eq!(bare.code, 0, "{neighbour}: {}", bare.stderr);
            for preload in preloads {
                let traced = run_beside(program, preload, &variables, true);
                assert_eq!(bare.stdout, traced.stdout, "{preload}: {}", traced.stderr);
                let report = traced.report();
                if name == HEAPTRACK {
                    // The consumer is another process, which urscope does not reach.
                    assert_eq!((traced.code, report.verdict()), (2, "partly-judged"), "{preload}: {report:#?}");
                    assert!(report.reason().is_some_and(|reason| reason.contains(NOT_REACHED)), "{report:#?}");
                } else if program == "clean" {
                    assert_eq!((traced.code, report.verdict()), (0, "clean"), "{preload}: {report:#?}");
                    assert_eq!(report.processes().len(), 2, "{preload}: {report:#?}");
                } else {
                    assert_eq!(report.violations(), ["warning leaked-mapping"], "{preload}: {}", traced.stderr);
                }
            }
        }
    }
}

#[test]
fn a_program_under_heaptrack_is_judged_in_part() {
    let run = |program: &str| {
        let mut words = program.split(' ');
        let executable = apps::executable(words.next().unwrap_or_default(), Release::R2026_2);
        let test_run = TestRun::of_program(runtime::neighbours().join("usr/bin/heaptrack")).adapter(Adapter::V2);
        let test_run = test_run.env("LD_LIBRARY_PATH", lib().join("x86_64-linux-gnu")).arg("--raw").arg(executable);
        words.fold(test_run, TestRun::arg).run()
    };
    let clean = run("clean");
    assert_eq!((clean.code, clean.report().verdict()), (2, "partly-judged"), "{}", clean.stderr);
    assert!(clean.report().reason().is_some_and(|reason| reason.contains(NOT_REACHED)), "{:#?}", clean.report());
    // One process, which has the library.
    let leaking = run("mistakes leaked_handle");
    assert_eq!(leaking.report().violations(), ["warning leaked-handle"], "{}", leaking.stderr);
}
