//! The generated programs that the end-to-end tests run on the real runtime, played to the tracker alone.

use std::path::Path;

use urscope_rule_pages::scenario::Scenario;
use urscope_rules::Place;

use crate::hunt::{Finding, Mistake, Program, Script, Stage};

/// How many programs of each stage are played.
const PROGRAMS: u64 = 200;

/// What the tracker finds wrongly or misses.
fn differences(program: &Program) -> Option<String> {
    let text = program.text();
    let scenario: Scenario = text.parse().unwrap_or_else(|error| panic!("{error} of\n{text}"));
    let lines = scenario.lines_of_calls().unwrap();
    let line = |place: &Place| place.call.map(|call| lines[place.process.0 as usize][call.get() as usize - 1]);
    let found = scenario.play().unwrap().into_iter().map(|finding| Finding {
        text: format!("{} {}", finding.severity, finding.rule.code),
        here: line(&finding.at),
        there: finding.other.as_ref().and_then(line),
    });
    program.differences(&found.collect::<Vec<_>>())
}

#[test]
fn each_program_is_judged_as_the_specifications_say() {
    let mut wrong = Vec::new();
    for stage in Stage::ALL {
        let chosen = (0..PROGRAMS).map(|seed| Program::new(seed, stage, Program::mistake_of(seed, stage)));
        let each =
            Mistake::on(stage).into_iter().map(|mistake| Program::new(100 + mistake as u64, stage, Some(mistake)));
        // What races, only the device knows.
        for program in chosen.chain(each).filter(|program| !program.text().contains("error race")) {
            if let Some(differences) = differences(&program) {
                wrong.push(format!("scripts/hunt {}\n{differences}", program.again()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
fn what_was_found_once_is_judged_right() {
    for script in Script::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apps/found")) {
        let differences = differences(&script.program(script.stages[0]));
        assert_eq!(differences, None, "{script:?}");
    }
}
