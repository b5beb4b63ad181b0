//! Runs generated programs and prints those that urscope judges wrongly. `scripts/hunt` calls it and says how.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program for the terminal, and of the tests: a panic is how it reports"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, panic, path::Path, process::ExitCode, sync::Mutex};

use urscope_tests::hunt::{Mistake, Program, Stage};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let printed = arguments.first().is_some_and(|argument| argument == "--print");
    if printed {
        arguments.remove(0);
    }
    let programs = programs(&arguments);
    if !printed {
        return run(programs);
    }
    programs.for_each(|program| println!("{}", program.text()));
    ExitCode::SUCCESS
}

/// Makes the programs that the arguments ask for.
fn programs(arguments: &[String]) -> Box<dyn Iterator<Item = Program> + Send> {
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    let file = argument(0).filter(|name| Path::new(name).exists()).map(str::to_owned);
    let number = |index: usize, default: u64| match argument(index) {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number")),
        None => default,
    };
    let (count, first) = if file.is_some() { (0, 0) } else { (number(0, 100), number(1, 1)) };
    let stage = argument(if file.is_some() { 1 } else { 2 });
    let stages = stage.map_or(Stage::ALL.to_vec(), |name| {
        vec![Stage::named(name).expect("a stage is v1, v2, ours-on-v1 or ours-on-v2")]
    });
    let mistake =
        argument(3).map(|name| (name != "correct").then(|| Mistake::named(name).expect("there is no such mistake")));
    if let Some(file) = file {
        return Box::new(stages.into_iter().map(move |stage| Program::of_file(Path::new(&file), stage)));
    }
    Box::new((first..first + count).map(move |seed| {
        let stage = stages[(seed % stages.len() as u64) as usize];
        Program::new(seed, stage, mistake.unwrap_or_else(|| Program::mistake_of(seed, stage)))
    }))
}

/// Runs them. Prints the commands that repeat the failures once more at the end.
fn run(programs: impl Iterator<Item = Program> + Send) -> ExitCode {
    let run = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    urscope_tests::on_all_processors(programs, |program| {
        run.fetch_add(1, Ordering::Relaxed);
        let again = program.again().to_owned();
        // A program that hangs panics. The night goes on.
        let discovery = panic::catch_unwind(|| program.play());
        if let Ok(Some(discovery)) = &discovery {
            println!("{discovery}");
        }
        if !matches!(discovery, Ok(None)) {
            failed.lock().expect("no thread panics while it holds this lock").push(again);
        }
    });
    let failed = failed.into_inner().expect("no thread panics while it holds this lock");
    eprintln!("{} programs, {} judged wrongly", run.into_inner(), failed.len());
    for again in &failed {
        eprintln!("scripts/hunt {again}");
    }
    ExitCode::from(u8::from(!failed.is_empty()))
}
