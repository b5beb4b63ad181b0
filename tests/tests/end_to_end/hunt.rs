//! Scenarios on the real runtime: generated programs, with one mistake or none, which `scripts/hunt` runs any number
//! of, and the traces on the pages of the rules. Both are judged as the specifications say.

use urscope_tests::hunt::{Mistake, Program, Script, Stage};
use urscope_tests::{Outcome, apps, discovery, repository};

use crate::examples::rules;
use crate::live_equals_offline::same_while_it_runs;

/// The number of correct programs of each test. Of each mistake there is one program.
const CORRECT: u64 = 6;

fn is_judged_right(program: Program) {
    if let Some(discovery) = program.play() {
        panic!("{discovery}");
    }
}

fn correct_programs_are_clean(stage: Stage) {
    (0..CORRECT).for_each(|seed| is_judged_right(Program::new(seed, stage, None)));
}

/// Of the mistakes that are possible on our backend with both adapters, each adapter has every other one.
fn each_mistake_is_found_with_both_lines(stage: Stage) {
    let other = match stage {
        Stage::V1 | Stage::V2 => Vec::new(),
        Stage::OursOnV1 => Mistake::on(Stage::OursOnV2),
        Stage::OursOnV2 => Mistake::on(Stage::OursOnV1),
    };
    let is_here = |mistake: &Mistake| {
        !other.contains(mistake) || (*mistake as u64).is_multiple_of(2) == (stage == Stage::OursOnV1)
    };
    for mistake in Mistake::on(stage).into_iter().filter(is_here) {
        is_judged_right(Program::new(100 + mistake as u64, stage, Some(mistake)));
    }
}

/// Two tests of each stage, which run side by side.
macro_rules! on_stages {
    ($($name:ident: $stage:ident;)*) => {
        $(mod $name {
            use super::{Stage, correct_programs_are_clean, each_mistake_is_found_with_both_lines};

            #[test]
            fn correct_programs() {
                correct_programs_are_clean(Stage::$stage);
            }

            #[test]
            fn faulty_programs() {
                each_mistake_is_found_with_both_lines(Stage::$stage);
            }
        })*
    };
}

on_stages! {
    on_v1: V1;
    on_v2: V2;
    on_our_backend_with_v1: OursOnV1;
    on_our_backend_with_v2: OursOnV2;
}

#[test]
fn a_seed_determines_its_program() {
    let program = || Program::new(7, Stage::V2, Mistake::named("freed-while-open")).text();
    assert_eq!(program(), program());
    assert_ne!(program(), Program::new(8, Stage::V2, Mistake::named("freed-while-open")).text());
}

/// Plays the scripts of a folder, each on every `step`-th of its stages, and shows each run to `seen`.
fn scripts_are_judged_right(folder: &str, step: usize, seen: impl Fn(&str, &Outcome)) {
    for (number, script) in Script::all(&apps::source(folder)).into_iter().enumerate() {
        let first = number % step.min(script.stages.len());
        for stage in script.stages.iter().skip(first).step_by(step) {
            let program = script.program(*stage);
            let outcome = program.run();
            seen(&format!("{script:?} on {stage}"), &outcome);
            let discovery = program.discovery(&outcome);
            match (discovery, script.not_yet.contains(stage)) {
                (Some(discovery), false) => panic!("{discovery}"),
                (None, true) => panic!(
                    "{script:?} is judged right on {stage} now: take it out of `not yet on` in the script, and plant it \
                     (tests/src/hunt)"
                ),
                _ => {}
            }
        }
    }
}

/// Scripts on which urscope was wrong once. Where it still is, this test tells when it no longer is.
#[test]
fn what_was_found_once_is_judged_right() {
    scripts_are_judged_right("found", 1, |_, _| {});
}

/// Also while the program runs. `scripts/hunt FILE` plays a script on all stages.
#[test]
fn each_mistake_is_found_and_nothing_else() {
    scripts_are_judged_right("mistakes", 2, |way, outcome| {
        same_while_it_runs(way, outcome);
    });
}

/// Traces on the pages of rules that do not happen as they are written, and why.
const OTHERWISE: [(&str, &str, &str); 17] = [
    ("double-release", "Bad", "an object of SYCL releases its memory once"),
    ("export-of-import", "Bad", "libsycl refuses to get handle data of an opened event, without a call"),
    ("leaked-handle", "Good", "the second get succeeds"),
    ("no-calls-seen", "Bad", "this is the verdict on the run, and no finding"),
    ("open-in-producer", "Good", "a forked child cannot use the device"),
    ("put-of-unknown", "Bad", "a process without handle data has none to copy"),
    ("refused-open", "Bad", "the open succeeds"),
    ("success-without-result", "Bad", "the get has a result"),
    ("success-without-result", "Good", "the second get succeeds"),
    ("untraced-peer", "Bad", "nobody got the bytes"),
    ("use-after-close", "Good", "an allocation does not get the address of a mapping"),
    ("use-after-free", "Good", "the first free succeeds"),
    ("wrong-context", "Good", "two contexts do not map memory at one address"),
    ("wrong-kind", "Bad", "libsycl puts handle data of an event when that ends"),
    ("wrong-kind", "Good", "libsycl puts handle data of an event when that ends"),
    // On v1 only.
    ("garbage-handle", "Bad", "v1 returns success for what the driver refuses"),
    ("use-after-free", "Bad", "v1 returns success for what the driver refuses"),
];

/// The page of a rule, from its source: what is shown to users has no traces.
fn page(rule: &str) -> String {
    let catalog = repository().join("rules/src/catalog").join(rule.replace('-', "_"));
    let source = std::fs::read_to_string(catalog.with_extension("rs"))
        .or_else(|_| std::fs::read_to_string(catalog.join("mod.rs")))
        .expect("a rule is a file or a folder");
    let page = source.lines().map_while(|line| line.strip_prefix("//!"));
    page.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The traces on the pages of the rules. Those of a thing that no program in SYCL does are left out. Of those that both
/// adapters can play, v1 has every third.
fn traces_of_rules_happen(stage: Stage, at_least: usize) {
    let happens = |rule: &str, trace: &str, scenario: &str| {
        let on_v1 = |why: &str| why.starts_with("v1");
        let otherwise =
            OTHERWISE.iter().any(|it| (it.0, it.1) == (rule, trace) && (stage == Stage::V1 || !on_v1(it.2)));
        !otherwise && (stage == Stage::V2 || !["physical", "event"].iter().any(|kind| scenario.contains(kind)))
    };
    let mut played = 0;
    for (place, rule) in rules().into_iter().enumerate() {
        if stage == Stage::V1
            && !place.is_multiple_of(3)
            && !OTHERWISE.iter().any(|it| it.0 == rule && it.2.starts_with("v1"))
        {
            continue;
        }
        let page = page(&rule);
        for (trace, expected) in [("Bad", vec![rule.as_str()]), ("Good", vec![])] {
            let (_, scenario) = page.split_once(&format!("# {trace} trace\n")).expect("every page has two traces");
            let scenario =
                scenario.split("```").nth(1).and_then(|block| block.strip_prefix("text\n")).expect("a trace");
            if !happens(&rule, trace, scenario) {
                continue;
            }
            let outcome = discovery::play(scenario, stage);
            if outcome.code == 4 {
                continue;
            }
            played += 1;
            let in_part = [": killed", ": incomplete"].iter().any(|end| scenario.contains(end));
            let most = if in_part { 2 } else { 1 };
            assert!(outcome.code <= most, "{trace} trace of {rule}: {}\n{scenario}", outcome.stderr);
            let report = outcome.report();
            let found = report.violations().into_iter().filter_map(|it| it.split_once(' ').map(|it| it.1.to_owned()));
            // Handles that are not put outlive their memory, and what lies beside memory in a pool is the adapter's
            // choice. What a call that fails changes is a part of some rules.
            let is_refused = |it: &String| it == "refused-call" && trace == "Good";
            let not_put = ["lost-handles", "unreturned-gets"].contains(&rule.as_str());
            let beside =
                |it: &String| is_refused(it) || it == "slab-exposed" || not_put && it == "freed-while-exported";
            assert_eq!(
                found.filter(|it| !beside(it)).collect::<Vec<_>>(),
                expected,
                "{trace} trace of {rule} on {stage}"
            );
        }
    }
    assert!(played >= at_least, "{played}");
}

#[test]
fn traces_of_rules_happen_on_v1() {
    traces_of_rules_happen(Stage::V1, 10);
}

#[test]
fn traces_of_rules_happen_on_v2() {
    traces_of_rules_happen(Stage::V2, 50);
}
