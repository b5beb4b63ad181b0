//! A generator of rounds for `tests/apps/order_rounds.hpp`: programs whose commands are ordered by waits and messages,
//! and the same with some of the waits too late. No device needs a delay for those to be found.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::hunt::random::Random;
use crate::{Adapter, Outcome, Release, TestRun, run};

/// Where the rounds are played.
#[derive(Clone, Copy, Debug)]
pub enum Interface {
    /// In SYCL, on the software device.
    Sycl(Adapter),
    /// With the CUDA driver, on its stand-in.
    Cuda,
    /// With Level Zero, on the software device.
    LevelZero,
}

const QUEUES: [&str; 3] = ["first", "second", "third"];
const WAITS: [&str; 6] = ["queue", "event", "barrier", "elsewhere", "behind", "polled"];

/// So many rounds of one program. A seed determines them.
#[derive(Debug)]
pub struct Rounds {
    /// A line for each.
    pub text: String,
    /// The numbers of those with a wait that is too late.
    pub wrong: BTreeSet<u64>,
}

impl Rounds {
    /// `wrong` says whether some waits are too late.
    pub fn new(seed: u64, count: u64, wrong: bool) -> Self {
        let mut random = Random::new(seed);
        let mut rounds = Self { text: String::new(), wrong: BTreeSet::new() };
        for number in 0..count {
            let writer = random.choose(&["parent", "child"]);
            let late = if wrong && random.one_in(2) { Some(random.below(2)) } else { None };
            let mut step = |at| {
                let when = if late == Some(at) { "late" } else { "in-time" };
                format!("{} {} {when}", random.choose(&QUEUES), random.choose(&WAITS))
            };
            rounds.text.extend([writer, " ", &step(0), " ", &step(1), "\n"]);
            if late.is_some() {
                rounds.wrong.insert(number);
            }
        }
        rounds
    }

    /// Plays them; returns what is wrong with the judgement.
    pub fn complaint(&self, interface: Interface) -> Option<String> {
        let mut file = NamedTempFile::new().expect("no temporary file");
        file.write_all(self.text.as_bytes()).expect("the rounds cannot be written");
        let run = match interface {
            Interface::Sycl(adapter) => TestRun::new("sycl_order_rounds", Release::R2026_2, adapter),
            Interface::Cuda => TestRun::of_cuda("cuda_order_rounds"),
            Interface::LevelZero => TestRun::new("ze_order_rounds", Release::R2026_2, Adapter::V1),
        };
        let outcome = run.arg(file.path()).run();
        let found = races(&outcome);
        let others = outcome.report().violations().into_iter().filter(|violation| violation != "error race");
        let others: Vec<_> = others.collect();
        let is_right = found == self.wrong && others.is_empty();
        (!is_right).then(|| {
            let [missing, more] = [(&self.wrong, &found), (&found, &self.wrong)].map(|(all, some)| {
                let lines = |number: &u64| self.text.lines().nth(*number as usize).unwrap_or("no round").to_owned();
                all.difference(some).map(lines).collect::<Vec<_>>()
            });
            format!("not found: {missing:#?}\nnot wrong: {more:#?}\n{others:?}\n{}{}", outcome.stdout, outcome.stderr)
        })
    }
}

/// The numbers of the rounds with a race, by the sizes of their commands.
fn races(outcome: &Outcome) -> BTreeSet<u64> {
    let folder = outcome.trace_folder();
    let listed = run::urscope(&["calls", "--format", "json", folder.to_str().expect("a path in UTF-8")]).stdout;
    let calls = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("a call in JSON"));
    let size = |call: Value| {
        let size = call["arguments"]["size"].as_str()?.parse::<u64>().ok()?;
        Some(((call["pid"].as_u64()?, call["call"].as_u64()?), size))
    };
    let sizes: BTreeMap<(u64, u64), u64> = calls.filter_map(size).collect();
    let report = outcome.report();
    let races = report.findings().iter().filter(|finding| finding["rule"] == "race");
    let occurrences = races.flat_map(|finding| finding["occurrences"].as_array().into_iter().flatten());
    let size = |place: &Value| sizes.get(&(place["pid"].as_u64()?, place["call"].as_u64()?)).copied();
    occurrences.filter_map(size).map(|size| (size - (1 << 15)) / 64).collect()
}
