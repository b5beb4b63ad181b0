//! Runs the command `urscope` in a temporary directory with a minimal environment.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{os::unix::process::ExitStatusExt, thread};

use tempfile::TempDir;

/// The time limit of a command.
const LIMIT: Duration = Duration::from_mins(1);

/// The temporary working directory of a test.
pub(crate) struct Workspace {
    folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit code; 128 plus the number of a signal.
    pub(crate) code: i32,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error.
    pub(crate) stderr: String,
}

/// A command that has been started.
pub(crate) struct Running {
    child: Child,
    folder: PathBuf,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `urscope` with arguments. Its output goes to files, because remaining processes would keep a pipe open.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        // A shell that runs the tests in the background makes them ignore SIGINT, which urscope would inherit.
        let mut command = Command::new("/usr/bin/env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_urscope")]).args(arguments);
        self.surround(&mut command);
        command
    }

    /// Sets the directory, the output files and a minimal environment of a command.
    pub(crate) fn surround(&self, command: &mut Command) {
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        for name in ["PATH", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdout(File::create(self.path().join("stdout")).unwrap());
        command.stderr(File::create(self.path().join("stderr")).unwrap());
    }

    /// Runs `urscope` with arguments and waits for its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(self.command(arguments)).end()
    }

    /// Runs a shell script under `urscope run` and waits for its end.
    pub(crate) fn run_script(&self, options: &[&str], script: &str) -> Ended {
        self.start(self.script(options, script)).end()
    }

    /// The command that runs a shell script under `urscope run`.
    pub(crate) fn script(&self, options: &[&str], script: &str) -> Command {
        let mut arguments = vec!["run"];
        arguments.extend(options);
        arguments.extend(["--", "/bin/sh", "-c", script]);
        self.command(&arguments)
    }

    /// Runs a shell script with a harmless library preloaded, and waits for its end.
    pub(crate) fn run_traced(&self, options: &[&str], script: &str) -> Ended {
        self.start(self.traced(options, script)).end()
    }

    /// The command that runs a shell script with a harmless library preloaded.
    pub(crate) fn traced(&self, options: &[&str], script: &str) -> Command {
        let mut command = self.script(options, script);
        command.env("URSCOPE_LIBRARY", harmless_library());
        command
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: impl AsRef<Path>) -> String {
        fs::read_to_string(self.path().join(file)).unwrap()
    }

    pub(crate) fn start(&self, mut command: Command) -> Running {
        Running { child: command.spawn().unwrap(), folder: self.path().into() }
    }

    /// Creates executable files with a shell script. If this process wrote them, a process that another test starts
    /// could inherit the open file, and executing it would fail with ETXTBSY.
    pub(crate) fn prepare(&self, script: &str) {
        let status = Command::new("/bin/sh").args(["-c", script]).current_dir(self.path()).status();
        assert!(status.unwrap().success(), "{script}");
    }

    /// Waits until a condition holds.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            let stderr = fs::read_to_string(self.path().join("stderr")).unwrap();
            assert!(start.elapsed() < LIMIT, "never came: {what}; stderr: {stderr}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a file, with which a script signals its progress.
    pub(crate) fn wait_for(&self, file: &str) {
        self.wait_until(file, || self.path().join(file).exists());
    }

    /// Creates a file that a script waits for.
    pub(crate) fn make(&self, file: &str) {
        File::create(self.path().join(file)).unwrap();
    }
}

impl Running {
    pub(crate) fn signal(&self, name: &str) {
        send(name, &self.child.id().to_string());
    }

    pub(crate) fn signal_group(&self, name: &str) {
        send(name, &format!("-{}", self.child.id()));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    pub(crate) fn end(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > LIMIT {
                self.child.kill().unwrap();
                panic!("the command did not end; its stderr: {}", self.stderr());
            }
            thread::sleep(Duration::from_millis(2));
        };
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
        let stdout = fs::read_to_string(self.folder.join("stdout")).unwrap();
        Ended { code, stdout, stderr: self.stderr() }
    }
}

fn send(name: &str, to: &str) {
    let status = Command::new("/bin/sh").args(["-c", "kill -s \"$0\" -- \"$1\"", name, to]).status();
    assert!(status.unwrap().success());
}

/// A library whose preloading has no effect: the C library, which is loaded anyway.
pub(crate) fn harmless_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().filter_map(|line| line.split_ascii_whitespace().last());
    path.into_iter().find(|path| path.contains("/libc.so") || path.contains("/libc-")).unwrap().into()
}
