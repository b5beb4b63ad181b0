//! `urscope top` in a terminal, next to a real program: it shows the process, what it holds and its violation, follows
//! it to its end, and restores the terminal whatever ends it.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, path::Path};

use serde_json::Value;
use urscope_tests::{Release, apps, artefacts, run};

/// The sequence that restores the screen that was there before.
const BACK: &[u8] = b"\x1b[?1049l";

/// The time after which a wait fails. Even on a busy machine nothing takes nearly as long.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// A terminal in which `urscope top` runs.
struct Screen {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
    /// Ends when nothing more can be written to the terminal.
    reader: Option<JoinHandle<()>>,
}

/// A test that fails leaves no process behind.
impl Drop for Screen {
    fn drop(&mut self) {
        drop(self.child.kill());
    }
}

impl Screen {
    /// Follows the traces in a directory. `script` (util-linux) provides the terminal.
    fn new(folder: &Path, lines: u16, columns: u16) -> Self {
        let command = artefacts::command();
        let top = format!("stty rows {lines} cols {columns}; exec {} top {}", command.display(), folder.display());
        let mut child = Command::new("script")
            .args(["-q", "-e", "-f", "-c", &top, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script can be started");
        let keys = child.stdin.take().expect("a pipe");
        let mut out = child.stdout.take().expect("a pipe");
        let shown = Arc::new(Mutex::new((vt100::Parser::new(lines, columns, 0), Vec::new())));
        let into = Arc::clone(&shown);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut piece) {
                let mut into = into.lock().expect("no holder of this lock panics");
                into.0.process(&piece[..count]);
                into.1.extend_from_slice(&piece[..count]);
            }
        });
        Self { child, keys, shown, reader: Some(reader) }
    }

    /// The text on it; several spaces become one.
    fn text(&self) -> String {
        let text = self.shown.lock().expect("no holder of this lock panics").0.screen().contents();
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Waits until all of these are on the screen.
    fn shows(&self, texts: &[&str]) {
        let begun = Instant::now();
        while !texts.iter().all(|text| self.text().contains(text)) {
            assert!(begun.elapsed() < LIMIT, "{texts:?} do not come; there is:\n{}", self.text());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The pid of `urscope top`.
    fn top(&self) -> String {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        fs::read_to_string(children).expect("script has a child").trim().to_owned()
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("a key can be pressed");
    }

    /// Waits for its end; returns the exit code and all that was written to the terminal.
    fn end(mut self) -> (Option<i32>, Vec<u8>) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => break status,
                None if begun.elapsed() < LIMIT => thread::sleep(Duration::from_millis(20)),
                None => panic!("it does not end; there is:\n{}", self.text()),
            }
        };
        self.reader.take().map(JoinHandle::join).expect("it ends once").expect("the reader does not panic");
        let written = self.shown.lock().expect("no holder of this lock panics").1.clone();
        (status.code(), written)
    }
}

fn is_restored(written: &[u8]) -> bool {
    written.windows(BACK.len()).any(|bytes| bytes == BACK)
}

/// Starts a program that runs until its input ends.
pub(crate) fn lingering(traces: &Path, program: &str) -> (Child, ChildStdin) {
    let mut program = Command::new(artefacts::command())
        .args(["run", "--device", "software", "--no-check", "--dir"])
        .arg(traces)
        .arg("--")
        .arg(apps::executable(program, Release::R2026_2))
        .arg("lingering")
        .env("ONEAPI_DEVICE_SELECTOR", "level_zero:*")
        .envs(["SYCL_UR_USE_LEVEL_ZERO_V2", "UR_LOADER_USE_LEVEL_ZERO_V2"].map(|it| (it, "1")))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a program can be started");
    let input = program.stdin.take().expect("a pipe");
    (program, input)
}

#[test]
fn a_run_is_followed_from_before_it_begins_to_its_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let traces = folder.path().join("later");
    let mut screen = Screen::new(&traces, 24, 110);
    screen.shows(&["waiting", "does not exist yet"]);

    let (mut program, input) = lingering(&traces, "sharing");
    // From its eighth call on it only waits for the end of its input.
    screen.shows(&["running", "1 error", "sharing", "double-put", "8 calls"]);
    // The numbers equal those of the other commands.
    let answer = |question: &str| -> Value {
        let ended = run::urscope(&[question, "--format", "json", traces.to_str().expect("a path in UTF-8")]);
        serde_json::from_str(&ended.stdout).expect("JSON")
    };
    let judgement = answer("check");
    let holders = answer("holders");
    let stats = answer("stats");
    let process = &judgement["processes"][0];
    assert_eq!((&process["ended"], holders["pinned_bytes"].as_u64()), (&Value::from("running"), Some(8 << 20)));
    let errors: u64 = stats["calls"]
        .as_array()
        .expect("calls")
        .iter()
        .filter_map(|calls| calls["errors"].as_object())
        .flat_map(|errors| errors.values())
        .filter_map(Value::as_u64)
        .sum();
    screen.shows(&[&process["pid"].to_string(), &format!("{} calls, {errors} failed", process["calls"])]);
    screen.shows(&["memory 1 0 8 MiB", "pinned 8 MiB"]);

    screen.press("1\r");
    // Escape is pressed when the finding is shown: in one read with the next key it would be Alt and that key.
    let place = format!("sharing.cpp:{}", apps::line_of("sharing.cpp", "second put"));
    screen.shows(&["error: double-put", &place, "Esc back"]);
    screen.press("\x1b");
    screen.shows(&["4 Holders"]);
    screen.press("p");
    screen.shows(&["paused"]);
    drop(input);
    assert_eq!(program.wait().expect("a child can be waited for").code(), Some(0));
    // Another screen, which is not paused, shows the end. After that the paused one is redrawn, and does not.
    let mut other = Screen::new(&traces, 24, 110);
    other.shows(&["ended", "exited"]);
    other.press("q");
    assert_eq!(other.end().0, Some(0));
    screen.press("?");
    screen.shows(&["Keys"]);
    screen.press("\x1b");
    screen.shows(&["4 Holders", "paused", "running"]);
    screen.press("p");
    screen.shows(&["ended", "exited"]);
    screen.press("q");
    let (code, written) = screen.end();
    assert_eq!(code, Some(0));
    assert!(is_restored(&written));
    let names = fs::read_dir(&traces).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let written: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("urscope-")).collect();
    assert_eq!(written.len(), 1, "{written:?}");
}

/// While the wait hangs, it is named with its call and with the process that has ended.
#[test]
fn a_wait_that_nobody_is_left_to_end_is_named_while_it_hangs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut program, input) = lingering(folder.path(), "never_signalled");
    let mut screen = Screen::new(folder.path(), 24, 110);
    screen.shows(&["running", "exited", "never-signalled"]);
    screen.press("1\r");
    let line = format!("never_signalled.cpp:{}", apps::line_of("never_signalled.cpp", "event.wait()"));
    screen.shows(&["note: never-signalled", "urEventWait", "has exited", &line]);
    let held = run::urscope(&["holders", folder.path().to_str().expect("a path in UTF-8")]).stdout;
    assert!(held.contains("urEventWait, which has not returned") && held.contains(&line), "{held}");
    drop(input);
    assert_eq!(program.wait().expect("a child can be waited for").code(), Some(0));
    screen.press("\x1b");
    screen.shows(&["4 Holders"]);
    screen.press("q");
    assert_eq!(screen.end().0, Some(0));
}

#[test]
fn a_small_terminal_is_given_back_after_a_signal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let screen = Screen::new(folder.path(), 10, 40);
    screen.shows(&["no traces yet"]);
    let killed = Command::new("kill").args(["-TERM", &screen.top()]).status();
    assert!(killed.expect("kill can be started").success());
    let (code, written) = screen.end();
    assert_eq!(code, Some(143));
    assert!(is_restored(&written));
}

#[test]
fn it_ends_when_its_terminal_is_gone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut screen = Screen::new(folder.path(), 24, 80);
    screen.shows(&["no traces yet"]);
    let top = format!("/proc/{}/stat", screen.top());
    screen.child.kill().and_then(|()| screen.child.wait()).expect("script can be killed");
    let begun = Instant::now();
    while fs::read_to_string(&top).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begun.elapsed() < LIMIT, "it goes on without a terminal");
        thread::sleep(Duration::from_millis(20));
    }
}
