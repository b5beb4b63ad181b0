//! Looks at a run as a person does: with `urscope view`, and a browser.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::runtime::browser;
use crate::{artefacts, repository, run};

/// A window on a run that is open: it is closed when it goes.
#[derive(Debug)]
pub struct Window {
    child: Child,
    /// Its address.
    pub url: String,
}

impl Window {
    /// Opens one on the traces of a folder.
    pub fn on(traces: &Path, options: &[&str]) -> Self {
        let mut child = run::clean_command(&artefacts::command())
            .args(["view", "--no-open", "--port", "0"])
            .args(options)
            .arg(traces)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("urscope view cannot be started");
        let mut url = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut url).expect("its output can be read");
        assert!(url.starts_with("http://127.0.0.1:"), "urscope view gave no address but {url:?}");
        Self { child, url: url.trim().to_owned() }
    }

    /// Has a browser play a story of `tests/browser/stories.mjs`. Fails with what went wrong in it.
    pub fn play(&self, story: &str, arguments: &[&str]) {
        browser();
        let output = Command::new("node")
            .arg(repository().join("tests/browser/trial.mjs"))
            .args([story, &self.url])
            .args(arguments)
            .output()
            .expect("node cannot be started: apt-get install nodejs");
        assert!(output.status.success(), "{story}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // It has no more to do; whether it is gone already does not matter.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
