//! A call that is tracked and checked allocates nothing, once the tables have grown to what is alive.

#![allow(clippy::unwrap_used, reason = "this is test code: a panic is how it reports")]

use urscope_rule_pages::scenario::{Event, Scenario};
use urscope_rules::{Checker, Tracker};
use urscope_schema::call::Nanos;

/// How many rounds fill what is bounded: what a process remembers of ended handles, and the tracker of ended exports.
const WARM_UP: u64 = 70_000;

/// How many rounds are measured.
const ROUNDS: u64 = 1000;

/// One round in two processes: every call of the memory functions, as a correct program makes them.
const ROUND: &str = "p: alloc a 4096\np: get a -> h\nc: open h -> m\nc: close m\np: put h\np: free a";

#[test]
fn a_call_of_a_correct_program_allocates_nothing() {
    let events = format!("p: context x\nc: context y\n{ROUND}").parse::<Scenario>().unwrap().events().unwrap();
    let mut tracker = Tracker::new();
    let mut checker = Checker::new();
    let mut calls = 0;
    let mut play = |rounds: u64| {
        for round in 0..rounds {
            for event in &events {
                // Each call has a number and a time of its own.
                let later = |call: u64, time: Nanos| (call + calls, Nanos(time.0 + calls * 1000 + round));
                match event {
                    Event::Begin(process, _) if tracker.processes() < 2 => {
                        tracker.begin(process.clone());
                    }
                    Event::Enter(who, enter) => {
                        let mut enter = *enter;
                        (enter.call, enter.time) = later(enter.call, enter.time);
                        tracker.enter(*who, &enter.begun(&enter.nulls()), &mut checker);
                    }
                    Event::Exit(who, exit) => {
                        let mut exit = *exit;
                        (exit.call, exit.time) = later(exit.call, exit.time);
                        tracker.exit(*who, &exit.returned(), &mut checker);
                    }
                    Event::Begin(..)
                    | Event::Device(..)
                    | Event::Descriptors(..)
                    | Event::End(..)
                    | Event::Executed(..)
                    | Event::Keeps(..)
                    | Event::Observed(..)
                    | Event::Synchronization(..) => {}
                }
            }
            calls += 10;
        }
    };
    play(WARM_UP);
    let allocated = allocation_counter::measure(|| play(ROUNDS));
    assert_eq!(tracker.ipc_calls(), 4 * (WARM_UP + ROUNDS), "get, open, close and put of each round");
    assert!(checker.take().is_empty(), "the program is correct");
    assert_eq!(allocated.count_total, 0, "{allocated:?} in {ROUNDS} rounds");
}
