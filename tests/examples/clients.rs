//! Runs the clients of Level Zero over and over, and prints how often each was right and clean. `scripts/clients` calls
//! it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for the terminal")]

use std::time::{Duration, Instant};
use std::{env, process::ExitCode};

use urscope_tests::clients::{CLIENTS, Client};

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let count = arguments.next().unwrap_or_else(|| "20".into());
    let Some(runs) = count.parse().ok().filter(|runs| *runs > 0) else {
        eprintln!("scripts/clients: {count:?} is not a number of runs");
        return ExitCode::FAILURE;
    };
    let words: Vec<String> = arguments.collect();
    let is_meant = |client: &&Client| words.is_empty() || words.iter().any(|word| client.name.contains(word.as_str()));
    let clients: Vec<_> = CLIENTS.iter().filter(is_meant).collect();
    if clients.is_empty() {
        eprintln!("scripts/clients: no client has one of these in its name: {}", words.join(", "));
        return ExitCode::FAILURE;
    }
    println!("{:<30} {:>5} {:>16} {:>24}", "client", "runs", "right and clean", "seconds (least, most)");
    let mut all_good = true;
    for client in clients {
        if let lacking @ [_, ..] = &client.lacks()[..] {
            println!("{:<30} cannot run on this processor, which lacks {}", client.name, lacking.join(", "));
            continue;
        }
        let results: Vec<_> = (0..runs).map(|_| run(client)).collect();
        let times = results.iter().map(|(_, time)| time.as_secs_f64());
        let (least, most) = times.fold((f64::MAX, 0.0_f64), |(least, most), time| (least.min(time), most.max(time)));
        let good = results.iter().filter(|(complaint, _)| complaint.is_none()).count();
        println!("{:<30} {runs:>5} {good:>16} {:>24}", client.name, format!("{least:.1}, {most:.1}"));
        all_good &= good == runs;
    }
    if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One run: what is wrong with it, which is printed with what it wrote, and how long it took.
fn run(client: &Client) -> (Option<String>, Duration) {
    let (run, _folder) = (client.run)();
    let begin = Instant::now();
    let outcome = run.run();
    let time = begin.elapsed();
    let complaint = client.complaint(&outcome);
    if let Some(complaint) = &complaint {
        eprintln!("{}: {complaint}\n{}{}", client.name, outcome.stdout, outcome.stderr);
    }
    (complaint, time)
}
