//! Others that stand in the process beside urscope: a sanitizer, a filter of system calls, and libraries that wrap `dlsym`, too.

use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use urscope_tests::{Adapter, Release, TestRun, apps, artefacts, trace};

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
    let (bare, traced) = (test_run().untraced().run(), test_run().run());
    assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{}{}", bare.stderr, traced.stderr);
    assert_eq!(traced.report().verdict(), "clean", "{}", traced.stderr);
}

/// ThreadSanitizer does not know the atomic instructions of a library that it has not compiled, but sees each memcpy(3) there.
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
    let test_run = || TestRun::of("ur_sharing no_statx", Release::R2026_2, Adapter::V2);
    let (bare, traced) = (test_run().untraced().run(), test_run().run());
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
    let (source, library) = (folder.join("wrapper.c"), folder.join("wrapper.so"));
    fs::write(&source, text).expect("a file can be written");
    let compiled = Command::new("gcc").args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&library).status();
    assert!(compiled.expect("gcc cannot be started").success());
    library
}

#[test]
fn another_wrapper_behind_urscope_sees_what_it_saw() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let (program, wrapper) = (opener(folder.path(), &[]), wrapper(folder.path()));
    let test_run = || run_of(&program).env("LD_PRELOAD", &wrapper);
    let (bare, traced) = (test_run().untraced().run(), test_run().run());
    assert!(bare.stdout.contains("asked 2 times"), "{}", bare.stdout);
    assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{}{}", bare.stderr, traced.stderr);
    assert_eq!(traced.report().verdict(), "clean", "{}", traced.stderr);
}

/// It passes on to the C library, so urscope sees nothing: the verdict names it.
#[test]
fn a_wrapper_in_front_of_urscope_is_named() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let (program, wrapper) = (opener(folder.path(), &[]), wrapper(folder.path()));
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
    let (program, wrapper) = (opener(folder.path(), &[]), compiled(folder.path(), GONE));
    let outcome = run_of(&program).env("LD_PRELOAD", &wrapper).run();
    assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
}
