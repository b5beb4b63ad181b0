//! Ends processes violently and compares what they called with what their traces hold. `scripts/fire` calls it and says
//! how.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program for the terminal, and of the tests: a panic is how it reports"
)]

use std::{env, panic, process::ExitCode, sync::Mutex};

use urscope_tests::violence::{Batch, Crowd, Outcomes, Stage};

/// The most ends in one run of urscope.
const MOST: u64 = 50;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    let number = |index: usize, default: u64| match argument(index) {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number")),
        None => default,
    };
    let stages = argument(2).map_or(Stage::ALL.to_vec(), |name| {
        vec![Stage::named(name).expect("a stage is v1-chrome, v2-chrome, v1-binary or v2-binary")]
    });
    let first = number(1, 1);
    if argument(0) == Some("--crowd") {
        return crowds(first, &stages);
    }
    let count = number(0, 1000);
    let way = argument(3).map(str::to_owned);
    let batches = (0..count.div_ceil(MOST)).map(|index| Batch {
        seed: first + index * MOST,
        count: MOST.min(count - index * MOST),
        stage: stages[index as usize % stages.len()],
        way: way.clone(),
    });
    run(batches)
}

/// Runs a crowd on each stage, one after the other.
fn crowds(seed: u64, stages: &[Stage]) -> ExitCode {
    let mut failed = false;
    for stage in stages {
        let verdict = Crowd { processes: 64, threads: 16, cycles: 10_000, seed, stage: *stage }.run();
        for failure in &verdict.failures {
            println!("scripts/fire --crowd {seed} {stage}: {failure}");
        }
        let killed = verdict.killed;
        let calls = verdict.calls;
        eprintln!("{stage}: {killed} of 64 processes killed, {calls} calls, {} failures", verdict.failures.len());
        failed |= !verdict.failures.is_empty();
    }
    ExitCode::from(u8::from(failed))
}

/// Runs them.
fn run(batches: impl Iterator<Item = Batch> + Send) -> ExitCode {
    let all = Mutex::new(Outcomes::default());
    urscope_tests::on_all_processors(batches, |batch| {
        // A run that hangs panics. The others go on.
        let outcomes = panic::catch_unwind(|| batch.run()).unwrap_or_else(|_| Outcomes {
            failures: vec![format!("scripts/fire {} {} {}: the run failed", batch.count, batch.seed, batch.stage)],
            ..Outcomes::default()
        });
        for failure in &outcomes.failures {
            println!("{failure}");
        }
        all.lock().expect("no thread panics while it holds this lock").add(outcomes);
    });
    let all = all.into_inner().expect("no thread panics while it holds this lock");
    eprintln!("{} ends: {:?}", all.ends, all.ways);
    eprintln!(
        "{} traces with {} calls that returned; limits kept {} records out of traces that report them, and {} out of traces whose \
         processes were killed before that; {} failures",
        all.files,
        all.calls,
        all.stated,
        all.unstated,
        all.failures.len()
    );
    ExitCode::from(u8::from(!all.failures.is_empty()))
}
