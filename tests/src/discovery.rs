//! Plays scenarios on the real runtime, under urscope.

use std::{fmt, fs};

use serde_json::Value;

use crate::hunt::{Finding, Program, Stage};
use crate::{Adapter, Outcome, Release, TestRun};

/// A program on which urscope judged otherwise.
#[derive(Clone, Debug)]
pub struct Discovery {
    program: Program,
    differences: String,
}

/// Plays a scenario on a device that finishes no command before something waits for it. The status is that of `urscope
/// run`, or 3 if it cannot take place as it is written.
pub fn play(scenario: &str, stage: Stage) -> Outcome {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let file = folder.path().join("scenario");
    fs::write(&file, scenario).expect("no file for the scenario");
    let adapter = match stage {
        Stage::V1 | Stage::OursOnV1 => Adapter::V1,
        Stage::V2 | Stage::OursOnV2 => Adapter::V2,
    };
    let run = TestRun::new("scenario", Release::R2026_2, adapter).arg(&file).env("ZE_SOFT_DELAY", "until-wait");
    if stage.is_ours() { run.env("URSCOPE_BACKEND", "level_zero").run() } else { run.run() }
}

impl Program {
    /// Runs it.
    pub fn run(&self) -> Outcome {
        play(&self.text(), self.stage())
    }

    /// Runs it. Returns what is wrong, if something is.
    pub fn play(self) -> Option<Discovery> {
        let outcome = self.run();
        self.discovery(&outcome)
    }

    /// What is wrong with a run of it, if something is.
    pub fn discovery(self, outcome: &Outcome) -> Option<Discovery> {
        let differences = if outcome.code > 2 {
            format!("the run ended with {}: {}", outcome.code, outcome.stderr)
        } else {
            let report = outcome.report();
            let is_serious = |it: &Value| it["severity"] != "note";
            // A process without a call has no trace.
            let text = self.text();
            let steps_of = |process: &str| text.lines().filter(|line| process_of(line) == Some(process)).count();
            let killed = text.lines().filter(|line| line.ends_with(": killed")).filter_map(process_of);
            let killed = killed.filter(|process| steps_of(process) > 1).count();
            // What a lost call did is not known, so the run is not judged.
            let loses = text.lines().any(|line| line.ends_with(": incomplete"));
            let is_incomplete = |it: &Value| it["ended"] == "incomplete" && it["lost"].as_u64() > Some(0);
            assert_eq!(report.processes().iter().any(is_incomplete), loses, "{report:#?}");
            let is_partly = killed > 0 || loses;
            let expected = if report.findings().iter().any(is_serious) { 1 } else { 2 * i32::from(is_partly) };
            assert_eq!(
                outcome.code, expected,
                "a note does not fail a run, a death or a lost call is not clean: {report:#?}"
            );
            assert_eq!(report.verdict() == "not-judged", loses, "{report:#?}");
            let named = report.died_of("SIGKILL").count();
            assert!(named <= killed && (named > 0) == (killed > 0), "{killed} were killed: {report:#?}");
            for field in ["message", "advice"] {
                let is_said = |it: &Value| it[field].as_str().is_some_and(|text| !text.is_empty());
                assert!(report.findings().iter().all(is_said), "no {field}: {report:#?}");
            }
            // How long calls take depends on the machine, and what lies next to memory on the adapter's pool.
            let is_compared = |it: &&Value| {
                !["slow-call", "slab-exposed"].iter().any(|rule| it["rule"] == *rule && !self.text().contains(rule))
            };
            let found = report.findings().iter().filter(is_compared).map(finding);
            let messages = report.findings().iter().map(|it| format!("{}: {}\n", it["rule"], it["message"]));
            self.differences(&found.collect::<Vec<_>>())? + &messages.collect::<String>()
        };
        Some(Discovery { program: self, differences })
    }
}

/// The process of a step, which may be one of its other threads.
fn process_of(line: &str) -> Option<&str> {
    line.trim_start_matches("& ").split_once(':')?.0.split('/').next()
}

fn finding(finding: &Value) -> Finding {
    let text = |field: &str| finding[field].as_str().unwrap_or("?").to_owned();
    let text = format!("{} {}", text("severity"), text("rule"));
    Finding { text, here: line(&finding["process"]), there: line(&finding["other"]) }
}

/// The line of a location in the scenario. Each line calls from a function of its own.
fn line(place: &Value) -> Option<usize> {
    let frames = place["stack"].as_array()?;
    let of_line = |frame: &Value| {
        let (_, line) = frame["function"].as_str()?.split_once("at_line<")?;
        line.split('>').next()?.trim_matches(|part: char| !part.is_ascii_digit()).parse().ok()
    };
    frames.iter().find_map(of_line)
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scripts/hunt {}", self.program.again())?;
        writeln!(f, "{}{}", self.differences, self.program.text())
    }
}
