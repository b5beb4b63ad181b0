//! Plays generated rounds of commands and prints those that urscope judges wrongly. `scripts/orders` calls it and says
//! how.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "this is a program for the terminal, and of the tests: a panic is how it reports"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, process::ExitCode};

use urscope_tests::order_rounds::{Interface, Mistakes, Rounds};
use urscope_tests::{Adapter, on_all_processors};

/// The rounds of a program.
const ROUNDS: u64 = 40;

fn main() -> ExitCode {
    let number = |at: usize, default| env::args().nth(at).map_or(default, |text| text.parse().expect("not a number"));
    let count = number(1, 50);
    let first = number(2, 1);
    let interfaces =
        [Interface::Sycl(Adapter::V1), Interface::Sycl(Adapter::V2), Interface::Cuda, Interface::LevelZero];
    let programs = (first..first + count).flat_map(|seed| {
        let all = [Mistakes::No, Mistakes::LateWaits, Mistakes::Any];
        interfaces.into_iter().flat_map(move |interface| all.map(|mistakes| (seed, interface, mistakes)))
    });
    let played = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    on_all_processors(programs, |(seed, interface, mistakes)| {
        played.fetch_add(1, Ordering::Relaxed);
        if let Some(complaint) = Rounds::new(seed, ROUNDS, interface, mistakes).complaint() {
            failed.fetch_add(1, Ordering::Relaxed);
            println!("seed {seed}, {interface:?}, mistakes: {mistakes:?}: {complaint}");
        }
    });
    let played = played.into_inner();
    let failed = failed.into_inner();
    println!("{played} programs of {ROUNDS} rounds: {failed} were judged wrongly");
    ExitCode::from(u8::from(failed > 0))
}
