//! Prints what the rules find in traces, and which launches of kernels are in them.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use urscope_rules::{Checker, End, Process, ProcessId, Rights, Tracker};
use urscope_schema::call::Nanos;
use urscope_schema::trace::Record;
use urscope_schema::trace::chrome::read::Reader;

fn main() {
    let traces: Vec<String> = std::env::args().skip(1).collect();
    let mut tracker = Tracker::new();
    let mut checker = Checker::new();
    let mut records: Vec<(Nanos, ProcessId, Record)> = Vec::new();
    for (pid, trace) in traces.iter().enumerate() {
        let executable = Path::new(trace).file_name().unwrap().to_string_lossy().into();
        let who = tracker.begin(Process {
            pid: pid as u32,
            start: 0,
            host: 0,
            executable,
            rank: None,
            parent: None,
            forked_from: None,
            started: None,
            rights: Rights::default().into(),
        });
        for record in Reader::new(BufReader::new(File::open(trace).unwrap())) {
            match record.unwrap().unwrap() {
                Record::Enter(enter) => {
                    if enter.function.effect().launches() {
                        println!("launch: {}", enter.function.name());
                    }
                    records.push((enter.time, who, Record::Enter(enter)));
                }
                Record::Exit(exit) => records.push((exit.time, who, Record::Exit(exit))),
                Record::Synchronization(by) => records.push((by.time, who, Record::Synchronization(by))),
                _ => {}
            }
        }
    }
    records.sort_by_key(|(time, ..)| *time);
    let last = records.last().map_or(Nanos(0), |(time, ..)| *time);
    for (_, who, record) in records {
        match record {
            Record::Enter(enter) => tracker.enter(who, &enter.begun(&enter.nulls()), &mut checker),
            Record::Exit(exit) => tracker.exit(who, &exit.returned(), &mut checker),
            Record::Synchronization(by) => tracker.synchronization(who, &by, &mut checker),
            _ => {}
        }
    }
    for who in 0..traces.len() as u32 {
        tracker.end(ProcessId(who), End::Exited, last, &mut checker);
    }
    tracker.finish(&mut checker);
    for finding in checker.take() {
        println!("{} {}: {}", finding.severity, finding.rule.code, finding.message);
    }
}
