//! The test programs, compiled once for each runtime release by `scripts/compile-app`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::{collections::HashMap, fs, process::Command};

use crate::runtime::Release;
use crate::{artefacts, repository};

/// The executables of this test process by program and release; each is compiled by the first test that asks for it.
type Executables = HashMap<(String, Release), Arc<OnceLock<PathBuf>>>;

/// The executable of `tests/apps/<name>.cpp`, or `.c`, compiled against a release.
pub fn executable(name: &str, release: Release) -> PathBuf {
    static COMPILED: Mutex<Option<Executables>> = Mutex::new(None);
    let executable = {
        let mut compiled = COMPILED.lock().expect("no test panics while it holds this lock");
        Arc::clone(compiled.get_or_insert_default().entry((name.to_owned(), release)).or_default())
    };
    executable.get_or_init(|| compile(name, release)).clone()
}

fn compile(name: &str, release: Release) -> PathBuf {
    release.folder();
    let output = Command::new(repository().join("scripts/compile-app"))
        .args([name, release.version()])
        .env("CARGO_TARGET_DIR", artefacts::target_folder())
        .output()
        .expect("scripts/compile-app cannot be started");
    assert!(
        output.status.success(),
        "the test program {name} cannot be compiled:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// Compiles `tests/apps/<source>` with `flags` against the headers of the newest runtime, and nothing else of it.
pub fn compile_with_headers(source: &str, to: &Path, flags: &[&str]) {
    let include = Release::R2026_2.folder().join("include");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra"]).args(flags).arg("-isystem").arg(&include).arg("-isystem");
    compiler.arg(include.join("unified-runtime")).arg(self::source(source)).arg("-o").arg(to);
    let status = compiler.arg("-ldl").status().expect("g++ cannot be started; install it with: apt-get install g++");
    assert!(status.success(), "{source} does not compile with {flags:?}");
}

/// What the program of `own_adapter.cpp` calls once each. What its adapter calls itself is a part of that.
pub const CALLS_OF_OWN_ADAPTER: [&str; 6] = [
    "urUSMDeviceAlloc",
    "urUSMFree",
    "urIPCGetMemHandleExp",
    "urIPCPutMemHandleExp",
    "urIPCOpenMemHandleExp",
    "urIPCCloseMemHandleExp",
];

/// A file of `tests/apps`.
pub fn source(file: &str) -> PathBuf {
    let path = repository().join("tests/apps").join(file);
    assert!(path.exists(), "there is no test program {}", path.display());
    path
}

/// The number of the only line of a file of `tests/apps` with a text.
pub fn line_of(file: &str, text: &str) -> usize {
    let source = fs::read_to_string(source(file)).expect("a source can be read");
    let lines: Vec<usize> = (1..).zip(source.lines()).filter(|(_, line)| line.contains(text)).map(|at| at.0).collect();
    let [line] = lines[..] else { panic!("{text:?} is in {} lines of {file}", lines.len()) };
    line
}
