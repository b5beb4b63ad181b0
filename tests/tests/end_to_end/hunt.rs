//! Generated programs, with one mistake or none, are judged as the specifications say. `scripts/hunt` runs any number of them.

use urscope_tests::hunt::{Found, Mistake, Program, Stage};

/// The number of correct programs of each test. Of each mistake there is one program.
const CORRECT: u64 = 20;

fn is_judged_right(program: Program) {
    if let Some(discovery) = program.play() {
        panic!("{discovery}");
    }
}

fn correct_programs_are_clean(stage: Stage) {
    (0..CORRECT).for_each(|seed| is_judged_right(Program::new(seed, stage, None)));
}

fn each_mistake_is_found_with_both_lines(stage: Stage) {
    for mistake in Mistake::on(stage) {
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

/// Scripts on which urscope was wrong once. Where it still is, this test tells when it no longer is.
#[test]
fn what_was_found_once_is_judged_right() {
    for found in Found::all() {
        for stage in &found.stages {
            let discovery = found.program(*stage).play();
            match (discovery, found.not_yet.contains(stage)) {
                (Some(discovery), false) => panic!("{discovery}"),
                (None, true) => panic!(
                    "{found:?} is judged right on {stage} now: take it out of `not yet on` in the script, and plant it \
                     (tests/src/hunt)"
                ),
                _ => {}
            }
        }
    }
}
