//! A run that `urscope view` or `urscope run --view` serves, and a small HTTP client for it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{ffi::OsStr, net::TcpStream, path::Path, thread};

use serde_json::Value;
use tempfile::TempDir;

use crate::{artefacts, run};

/// The time after which a wait fails. Even on a busy machine nothing here takes nearly as long.
const LIMIT: Duration = Duration::from_mins(1);

/// A command that serves a run. Dropping this ends it.
#[derive(Debug)]
pub struct ViewServer {
    child: Child,
    folder: TempDir,
    /// The address that it printed.
    pub url: String,
}

impl ViewServer {
    /// Starts `urscope` in a temporary folder and waits until it prints its address.
    pub fn by<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let folder = tempfile::tempdir().expect("no temporary folder");
        let file = |name| File::create(folder.path().join(name)).expect("no file for the output");
        let child = run::clean_command(Path::new("/usr/bin/env"))
            // A shell that runs the tests in the background makes them ignore SIGINT.
            .arg("--default-signal=INT")
            .arg(artefacts::command())
            .args(arguments)
            .env("ONEAPI_DEVICE_SELECTOR", "level_zero:*")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .expect("urscope cannot be started");
        let mut served = Self { child, folder, url: String::new() };
        served.url = served.wait_for("an address", |said| {
            said.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")).map(str::to_owned)
        });
        served
    }

    /// The folder that it runs in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output and standard error so far.
    pub fn said(&self) -> String {
        ["stdout", "stderr"].map(|name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()).concat()
    }

    /// Waits until `find` finds something in its output.
    pub fn wait_for<A>(&self, what: &str, find: impl Fn(&str) -> Option<A>) -> A {
        let start = Instant::now();
        loop {
            let said = self.said();
            if let Some(found) = find(&said) {
                return found;
            }
            assert!(start.elapsed() < LIMIT, "urscope never wrote {what}, but: {said}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a GET request; returns the status and the body.
    pub fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let (host, token) = self.url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
        let mut stream = TcpStream::connect(host).unwrap_or_else(|error| panic!("{host} does not answer: {error}"));
        stream.set_read_timeout(Some(LIMIT)).expect("a time-out can be set");
        // In HTTP/1.0 the end of the connection ends the response.
        write!(stream, "GET /{token}{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").expect("the request can be sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the answer can be read");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8_lossy(&answer[..end]);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("an answer has a status");
        (status, answer[end + 4..].to_vec())
    }

    /// Sends a GET request that must succeed; returns the body as JSON.
    pub fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("answers are JSON")
    }

    /// Repeats a request until `holds` is true of its answer.
    pub fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let answer = self.json(path);
            if holds(&answer) {
                return answer;
            }
            assert!(start.elapsed() < LIMIT, "{what} did not come; the last answer: {answer:#}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends SIGINT (Ctrl-C) and returns the exit code.
    pub fn interrupt(&mut self) -> Option<i32> {
        let killed = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(killed.expect("kill cannot be started").success());
        self.child.wait().expect("a child can be waited for").code()
    }
}

impl Drop for ViewServer {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
