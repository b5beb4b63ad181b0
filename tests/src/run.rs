//! Runs a program as a person does: with `urscope run`, on the software device, in a clean environment.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::{env, ffi::OsString, sync::mpsc, thread, time::Duration};

use tempfile::TempDir;

use crate::report::Report;
use crate::runtime::{ENVIRONMENTS, Release};
use crate::trace::{self, Trace};
use crate::{apps, artefacts};

/// The time after which a program is killed and its test fails. Even on a busy machine no program takes nearly as long.
const LIMIT: Duration = Duration::from_mins(2);

/// The Level Zero adapter that serves a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// `libur_adapter_level_zero.so.0`.
    V1,
    /// `libur_adapter_level_zero_v2.so.0`.
    V2,
}

/// One run of a program: first described, then started.
#[derive(Debug)]
pub struct TestRun {
    program: PathBuf,
    program_arguments: Vec<OsString>,
    options: Vec<OsString>,
    device: &'static str,
    environment: Vec<(OsString, OsString)>,
    /// Variables of the suite that are left out.
    without: Vec<&'static str>,
    limit: Duration,
}

impl TestRun {
    /// A run of one of our programs, built for a release, on one adapter. The words behind its name are its arguments,
    /// and behind `scenario` the name of a script of `tests/apps/mistakes`.
    pub fn new(app: &str, release: Release, adapter: Adapter) -> Self {
        let mut words = app.split(' ');
        let program = words.next().unwrap_or_default();
        let script = |word: &str| apps::source(&format!("mistakes/{word}.txt")).into_os_string();
        let words = words.map(|word| if program == "scenario" { script(word) } else { word.into() });
        words.fold(Self::of_program(apps::executable(program, release)), Self::arg).adapter(adapter)
    }

    /// A run of Python that loads one of our programs as a library, as it loads a module, and calls its `share`.
    pub fn of_library(app: &str, release: Release, adapter: Adapter) -> Self {
        let library = apps::executable(&format!("{app}.so"), release);
        let open = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).share())";
        // Only this runtime comes with a Python.
        let python = Release::R2026_2.python();
        Self::of_program(python).adapter(adapter).arg("-c").arg(open).arg(library)
    }

    /// A run of any program.
    pub fn of_program(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            program_arguments: Vec::new(),
            options: Vec::new(),
            device: "software",
            environment: Vec::new(),
            without: Vec::new(),
            limit: LIMIT,
        }
    }

    /// Chooses the adapter. The loader inside libsycl and the separate loader read different variables.
    #[must_use]
    pub fn adapter(self, adapter: Adapter) -> Self {
        let number = match adapter {
            Adapter::V1 => "0",
            Adapter::V2 => "1",
        };
        self.env("SYCL_UR_USE_LEVEL_ZERO_V2", number).env("UR_LOADER_USE_LEVEL_ZERO_V2", number)
    }

    /// A run of one of our programs of the CUDA driver, on the software device.
    pub fn of_cuda(app: &str) -> Self {
        Self::of_program(apps::executable(app, Release::R2026_2)).on_cuda()
    }

    /// With the software device as a CUDA driver.
    #[must_use]
    pub fn on_cuda(mut self) -> Self {
        self.device = "software-cuda";
        self
    }

    /// With an engine for kernels: that of 2026.1, which the set-up installs for a test of that release. One for 2026.2
    /// would be 225 MB more.
    #[must_use]
    pub fn with_engine(self) -> Self {
        self.env("ZE_SOFT_ENGINE", Release::R2026_1.library("libintelocl.so"))
    }

    /// An argument of the program.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.program_arguments.push(argument.into());
        self
    }

    /// An option of `urscope run`.
    #[must_use]
    pub fn option(mut self, option: impl Into<OsString>) -> Self {
        self.options.push(option.into());
        self
    }

    /// A variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The environment without a variable that the suite sets.
    #[must_use]
    pub fn without_env(mut self, name: &'static str) -> Self {
        self.without.push(name);
        self
    }

    /// The time after which it is killed, for a run that takes long.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same run without urscope: nothing is preloaded, and nothing is judged.
    #[must_use]
    pub fn untraced(self) -> Self {
        self.option("--no-shim").option("--no-check")
    }

    /// Runs it to its end.
    pub fn run(self) -> Outcome {
        let folder = tempfile::Builder::new().prefix("urscope-e2e-").tempdir().expect("no temporary folder");
        let traces = folder.path().join("traces");
        fs::create_dir(&traces).expect("no folder for the traces");

        let mut command = clean_command(&artefacts::command());
        command
            .args(["run", "--device", self.device, "--format", "json", "--dir"])
            .arg(&traces)
            .arg("--report")
            .arg(folder.path().join("report.json"))
            .args(&self.options)
            .arg("--")
            .arg(&self.program)
            .args(&self.program_arguments)
            .env("ONEAPI_DEVICE_SELECTOR", "level_zero:*")
            .env("URSCOPE_VALIDATE", validation().unwrap_or_else(|| "on".into()))
            .envs(form().map(|value| ("URSCOPE_FORMAT", value)))
            .envs(self.environment);
        for name in self.without {
            command.env_remove(name);
        }
        let ended = run_to_end(command, folder.path(), self.limit);
        Outcome { code: ended.code, stdout: ended.stdout, stderr: ended.stderr, folder }
    }
}

/// Sets `URSCOPE_VALIDATE` for all runs of the suite, which are validated while the program runs otherwise. A test that
/// sets it itself takes precedence.
const VALIDATION: &str = "URSCOPE_E2E_VALIDATE";

fn validation() -> Option<OsString> {
    env::var_os(VALIDATION)
}

/// Sets `URSCOPE_FORMAT` for all runs of the suite, also for processes that load the library without `urscope run`.
/// Without it, each process has its own default. A test that sets it itself takes precedence.
const FORM: &str = "URSCOPE_E2E_FORMAT";

fn form() -> Option<OsString> {
    env::var_os(FORM)
}

/// Removes the variables of the suite from a command's environment: urscope names variables that it does not know.
pub fn forget_suite(command: &mut Command) {
    command.env_remove(VALIDATION).env_remove(FORM).env_remove(ENVIRONMENTS);
}

/// Whether runs are validated while the program runs, unless a test chooses otherwise.
pub fn is_validated() -> bool {
    validation().is_none_or(|value| value == "on")
}

/// What a run left behind.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code of `urscope run`.
    pub code: i32,
    /// What the program wrote to standard output. Urscope must write nothing there.
    pub stdout: String,
    /// What the program and urscope wrote to standard error.
    pub stderr: String,
    folder: TempDir,
}

impl Outcome {
    /// The judge's report.
    pub fn report(&self) -> Report {
        let file = self.folder.path().join("report.json");
        let text = fs::read_to_string(&file).unwrap_or_else(|error| {
            panic!("urscope run wrote no report ({error}); it ended with {} and wrote:\n{}", self.code, self.stderr)
        });
        Report::parse(&text)
    }

    /// The folder of the traces.
    pub fn trace_folder(&self) -> PathBuf {
        self.folder.path().join("traces")
    }

    /// The trace files, by name.
    pub fn trace_files(&self) -> Vec<PathBuf> {
        trace::files_in(&self.trace_folder())
    }

    /// The merged trace of all processes, which `urscope run` writes.
    pub fn merged_trace(&self) -> PathBuf {
        self.trace_folder().join("merged.json")
    }

    /// The traces, read line by line.
    pub fn traces(&self) -> Vec<Trace> {
        self.trace_files().iter().map(|file| Trace::read(file)).collect()
    }
}

/// Runs `urscope` with other arguments than `run`.
pub fn urscope(arguments: &[&str]) -> Ended {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let mut command = clean_command(&artefacts::command());
    command.args(arguments);
    run_to_end(command, folder.path(), LIMIT)
}

/// A script of the shell, run in a folder with a clean environment.
#[derive(Debug)]
pub struct Session<'a> {
    folder: &'a Path,
    command: Command,
    limit: Duration,
}

impl<'a> Session<'a> {
    /// A session that executes a script, and is killed after a time.
    pub fn new(script: &str, folder: &'a Path, limit: Duration) -> Self {
        let mut command = clean_command(Path::new("/bin/bash"));
        command.arg("-c").arg(script).env("ONEAPI_DEVICE_SELECTOR", "level_zero:*");
        Self { folder, command, limit }
    }

    /// A variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Ended {
        run_to_end(self.command, self.folder, self.limit)
    }
}

/// How a process ended and what it wrote.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A command that inherits only those environment variables that every program needs.
pub(crate) fn clean_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in ["PATH", "HOME", "TMPDIR"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Output goes to files, because a pipe stays open as long as a process that the program left behind.
fn run_to_end(mut command: Command, folder: &Path, limit: Duration) -> Ended {
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.join(name));
    let child = command
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).expect("no file for the output"))
        .stderr(File::create(&stderr).expect("no file for the errors"))
        .current_dir(folder)
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let status = wait(child, limit);
    let read = |file| String::from_utf8_lossy(&fs::read(file).expect("the output is there")).into_owned();
    let ended = Ended { code: 0, stdout: read(stdout), stderr: read(stderr) };
    match status {
        Some(status) => Ended { code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), ..ended },
        None => panic!("{command:?} did not end within {limit:?} and was killed; it wrote:\n{ended:#?}"),
    }
}

/// Waits for a child; kills it and all that it started when its time is over.
fn wait(mut child: Child, limit: Duration) -> Option<ExitStatus> {
    let group = format!("-{}", child.id());
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || sender.send(child.wait()));
    let status = receiver.recv_timeout(limit).ok();
    if status.is_none() {
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        killed.expect("kill cannot be started");
    }
    drop(waiter.join());
    status.map(|status| status.expect("a child that was started can be waited for"))
}
