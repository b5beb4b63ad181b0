//! The command `urscope`, as the tests of it run it: in a directory and an environment of its own.

use std::{
    fs::{self, File},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// No test takes this long; one that would is stopped.
const LIMIT: Duration = Duration::from_mins(1);

/// A directory to work in.
pub struct Workspace {
    folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; 128 and more for signals.
    pub code: i32,
    /// What it wrote.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// A command that has been started.
pub struct Running {
    child: Child,
    folder: PathBuf,
}

impl Workspace {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `urscope` with arguments, output to files, as a pipe would be held open by whoever is left.
    pub fn command(&self, arguments: &[&str]) -> Command {
        // A shell that runs the tests in the background lets them ignore SIGINT, and urscope would go on ignoring it.
        let mut command = Command::new("/usr/bin/env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_urscope")]).args(arguments);
        self.surround(&mut command);
        command
    }

    /// Gives a command the directory and a bare environment.
    pub fn surround(&self, command: &mut Command) {
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        for name in ["PATH", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdout(File::create(self.path().join("stdout")).unwrap());
        command.stderr(File::create(self.path().join("stderr")).unwrap());
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(self.command(arguments)).end()
    }

    /// Runs a shell script untraced; what `urscope run` does with it does not depend on tracing.
    pub fn run_script(&self, options: &[&str], script: &str) -> Ended {
        self.start(self.script(options, script)).end()
    }

    /// A shell script under `urscope run`.
    pub fn script(&self, options: &[&str], script: &str) -> Command {
        let mut arguments = vec!["run"];
        arguments.extend(options);
        arguments.extend(["--", "/bin/sh", "-c", script]);
        self.command(&arguments)
    }

    pub fn start(&self, mut command: Command) -> Running {
        Running { child: command.spawn().unwrap(), folder: self.path().into() }
    }

    /// Lets a shell make files that will be executed. A file that this process wrote could not be: while it is open for
    /// writing, another test may start a process, which has it open as well for a moment.
    pub fn prepare(&self, script: &str) {
        let status = Command::new("/bin/sh").args(["-c", script]).current_dir(self.path()).status();
        assert!(status.unwrap().success(), "{script}");
    }

    /// Waits until something holds.
    pub fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            let stderr = fs::read_to_string(self.path().join("stderr")).unwrap();
            assert!(start.elapsed() < LIMIT, "never came: {what}; stderr: {stderr}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a file, as scripts make them to say how far they are.
    pub fn wait_for(&self, file: &str) {
        self.wait_until(file, || self.path().join(file).exists());
    }

    /// What a script is told by a file.
    pub fn make(&self, file: &str) {
        File::create(self.path().join(file)).unwrap();
    }
}

impl Running {
    pub fn signal(&self, name: &str) {
        send(name, &self.child.id().to_string());
    }

    pub fn signal_group(&self, name: &str) {
        send(name, &format!("-{}", self.child.id()));
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    pub fn end(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > LIMIT {
                self.child.kill().unwrap();
                panic!("the command did not end; it said {}", self.stderr());
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

/// A library that does no harm when it is preloaded: the C library, which is loaded anyway.
pub fn harmless_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().filter_map(|line| line.split_ascii_whitespace().last());
    path.into_iter().find(|path| path.contains("/libc.so") || path.contains("/libc-")).unwrap().into()
}
