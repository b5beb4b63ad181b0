//! Runs a program under urscope, and compares what is found with what must be found.

use std::fmt;
use std::fs;

use serde_json::Value;

use super::draft::Site;
use super::expectation::{EXPECTED, Expectation, There};
use super::program::Program;
use super::sites;
use crate::Outcome;

/// A finding as it is compared: its severity and rule, and the lines of its two locations.
#[derive(Clone, Debug)]
struct Finding {
    text: String,
    here: Option<u64>,
    there: Option<u64>,
}

/// A program on which urscope judged otherwise.
#[derive(Clone, Debug)]
pub struct Discovery {
    program: Program,
    differences: String,
}

impl Program {
    /// Runs it. Returns what is wrong, if something is.
    pub fn play(self) -> Option<Discovery> {
        let folder = tempfile::tempdir().expect("no temporary folder");
        let script = folder.path().join("script");
        fs::write(&script, &self.script).expect("no file for the script");
        let outcome = self.stage.test_run().arg(&script).run();
        let differences = differences(&self, &outcome)?;
        Some(Discovery { program: self, differences })
    }

    /// The script, and what must be found.
    pub fn text(&self) -> String {
        if self.script.starts_with('#') {
            return self.script.clone();
        }
        let expected: Vec<String> = self.expected.iter().map(|it| format!("{EXPECTED}{it}\n")).collect();
        expected.concat() + &self.script
    }
}

fn differences(program: &Program, outcome: &Outcome) -> Option<String> {
    if outcome.code > 1 {
        return Some(format!("the run ended with {}: {}", outcome.code, outcome.stderr));
    }
    let report = outcome.report();
    let mut wrong: Vec<Finding> =
        report.findings().iter().filter(|it| !depends_on_the_machine(it)).map(Finding::new).collect();
    let mut missed: Vec<&Expectation> = program.expected.iter().collect();
    wrong.retain(|finding| match missed.iter().position(|expected| finding.is(expected)) {
        Some(index) => {
            missed.remove(index);
            false
        }
        None => true,
    });
    missed.retain(|expected| !expected.optional);
    let missed = missed.iter().map(|expected| format!("missed: {expected}\n"));
    let text: String = missed.chain(wrong.iter().map(|finding| format!("wrong: {finding}\n"))).collect();
    if text.is_empty() {
        return None;
    }
    let messages = report.findings().iter().map(|it| format!("{}: {}\n", it["rule"], it["message"]));
    Some(text + &messages.collect::<String>())
}

/// How long calls take depends on the machine, and what lies next to memory on the adapter's pool.
fn depends_on_the_machine(finding: &Value) -> bool {
    finding["rule"] == "slow-call" || finding["rule"] == "slab-exposed"
}

impl Finding {
    fn new(finding: &Value) -> Self {
        let text = |field: &str| finding[field].as_str().unwrap_or("?").to_owned();
        let finding_text = format!("{} {}", text("severity"), text("rule"));
        Self { text: finding_text, here: line(&finding["process"]), there: line(&finding["other"]) }
    }

    fn is(&self, expected: &Expectation) -> bool {
        let line = |site: Site| Some(sites::line(site) as u64);
        let there = match &expected.there {
            There::Nowhere => self.there.is_none(),
            There::OneOf(sites) => sites.iter().any(|site| self.there == line(*site)),
            There::Anywhere => self.there.is_some(),
        };
        let here = if expected.here.is_empty() {
            self.here.is_none()
        } else {
            expected.here.iter().any(|site| self.here == line(*site))
        };
        self.text == expected.finding && here && there
    }
}

/// The line of a location in the file with the call sites.
fn line(place: &Value) -> Option<u64> {
    let frames = place["stack"].as_array()?;
    let is_site = |frame: &&Value| frame["file"].as_str().is_some_and(|file| file.ends_with(sites::FILE));
    frames.iter().find(is_site)?["line"].as_u64()
}

impl fmt::Display for Finding {
    /// With the numbers of the call sites, as the script has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = sites::line(Site(0)) as u64;
        let place = |line: Option<u64>| line.map_or("no line".to_owned(), |line| format!("@{}", line - first));
        write!(f, "{} at {}, other location {}", self.text, place(self.here), place(self.there))
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scripts/hunt {}", self.program.again)?;
        writeln!(f, "{}{}", self.differences, self.program.text())
    }
}
