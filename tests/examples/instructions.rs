//! Counts the instructions that urscope adds to a call and prints them next to those that are kept. `scripts/bench
//! instructions` calls it and says how.

#![allow(clippy::print_stdout, reason = "this is a program for the terminal")]

use std::{env, process::ExitCode};

use urscope_tests::artefacts;
use urscope_tests::instructions::{Counted, RecordedCounts, TOLERANCE, count};

fn main() -> ExitCode {
    let keeps = match env::args().nth(1).as_deref() {
        None => false,
        Some("--keep") => true,
        Some(argument) => panic!("{argument:?} is not --keep"),
    };
    let mut kept = if keeps { RecordedCounts::default() } else { RecordedCounts::read() };
    // The script has built the libraries of the profile `release`.
    let release = count(&artefacts::target_folder().join("release"));
    let (folder, profile) = artefacts::libraries();
    let dev = count(&folder);
    let mut differences = Vec::new();
    for (profile, counted) in [("release", &release), (profile.as_str(), &dev)] {
        if keeps {
            kept.renew(profile, counted);
        }
        show(profile, counted, &kept);
        differences.extend(kept.differences(profile, counted));
    }
    if keeps {
        kept.write();
    }
    for difference in &differences {
        println!("{difference}");
    }
    ExitCode::from(u8::from(!differences.is_empty()))
}

fn show(profile: &str, counted: &Counted, kept: &RecordedCounts) {
    println!("profile {profile}: instructions added to a call, which has {} without urscope", counted.bare);
    println!("{:<24} {:>13} {:>9} {:>8} {:>8}", "", "liburscope.so", "elsewhere", "together", "kept");
    for (way, added) in &counted.ways {
        let before = kept.get(profile, *way).map_or_else(|| "-".to_owned(), |kept| kept.total().to_string());
        let library = added.library;
        let elsewhere = added.elsewhere;
        let total = added.total();
        println!("{way:<24} {library:>13} {elsewhere:>9} {total:>8} {before:>8}");
    }
    println!("(a count may differ by {TOLERANCE} % from the one that is kept)\n");
}
