//! A generator of rounds for `tests/apps/order_rounds.hpp`: programs whose commands are ordered by waits and messages,
//! by events that processes share, and by flags, and the same with some of these orders broken.

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

/// What is wrong in about half of the rounds of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistakes {
    /// Nothing.
    No,
    /// Waits that are too late. They are found on a device without a delay.
    LateWaits,
    /// Anything. What shared events and flags may have ordered is found only where the commands meet, so the device
    /// finishes none before it must.
    Any,
}

const QUEUES: [&str; 3] = ["first", "second", "third"];
const WAITS: [&str; 6] = ["queue", "event", "barrier", "elsewhere", "behind", "polled"];

/// What orders two commands, rightly or not.
const WAIT: [&str; 2] = ["in-time", "late"];
const EVENT: [&str; 3] = ["event", "event-in-front", "event-ignored"];
const FLAG: [&str; 3] = ["flag", "flag-in-front", "flag-elsewhere"];

impl Interface {
    /// The orders in its rounds. The adapter v1 shares no events. With Level Zero, one shared pool makes each event of
    /// the process one that may order commands of others, so late waits are not all found without a delay.
    fn orders(self, mistakes: Mistakes) -> &'static [&'static [&'static str]] {
        match (self, mistakes) {
            (Self::Sycl(Adapter::V1), _) | (Self::LevelZero, Mistakes::LateWaits) => &[&WAIT, &FLAG],
            _ => &[&WAIT, &EVENT, &FLAG],
        }
    }
}

/// So many rounds of one program. A seed determines them.
#[derive(Debug)]
pub struct Rounds {
    interface: Interface,
    mistakes: Mistakes,
    /// A line for each.
    pub text: String,
    /// The numbers of those with a mistake.
    pub wrong: BTreeSet<u64>,
}

impl Rounds {
    /// Rounds with some mistakes.
    pub fn new(seed: u64, count: u64, interface: Interface, mistakes: Mistakes) -> Self {
        let orders = interface.orders(mistakes);
        let mut random = Random::new(seed);
        let mut rounds = Self { interface, mistakes, text: String::new(), wrong: BTreeSet::new() };
        for number in 0..count {
            let writer = random.choose(&["parent", "child"]);
            let mistake = if mistakes != Mistakes::No && random.one_in(2) { Some(random.below(2)) } else { None };
            let mut step = |at| {
                let is_wrong = mistake == Some(at);
                let is_late = is_wrong && mistakes == Mistakes::LateWaits;
                // Once the reader says that it goes on, the writer waits for the write, and the device ends that soon.
                // So the reader waits for the read before, or the read may begin too late to meet the write.
                let must_meet = mistakes == Mistakes::Any && at == 1 && mistake == Some(0);
                let of = if is_late || must_meet { &WAIT } else { random.choose(orders) };
                let order = if is_wrong { random.choose(&of[1..]) } else { of[0] };
                format!("{} {} {order}", random.choose(&QUEUES), random.choose(&WAITS))
            };
            rounds.text.extend([writer, " ", &step(0), " ", &step(1), "\n"]);
            if mistake.is_some() {
                rounds.wrong.insert(number);
            }
        }
        rounds
    }

    /// Plays them; returns what is wrong with the judgement.
    pub fn complaint(&self) -> Option<String> {
        let mut file = NamedTempFile::new().expect("no temporary file");
        file.write_all(self.text.as_bytes()).expect("the rounds cannot be written");
        let run = match self.interface {
            Interface::Sycl(adapter) => TestRun::new("sycl_order_rounds", Release::R2026_2, adapter),
            Interface::Cuda => TestRun::of_cuda("cuda_order_rounds"),
            Interface::LevelZero => TestRun::new("ze_order_rounds", Release::R2026_2, Adapter::V1),
        };
        let delay = if self.mistakes == Mistakes::Any { "until-wait" } else { "0" };
        let outcome = run.env("ZE_SOFT_DELAY", delay).arg(file.path()).run();
        let found = races(&outcome);
        let mut others = outcome.report().violations();
        // Flags are noted.
        others.retain(|it| !["error race", "note race"].contains(&it.as_str()));
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
    let is_race = |finding: &&Value| finding["rule"] == "race" && finding["severity"] == "error";
    let races = report.findings().iter().filter(is_race);
    let occurrences = races.flat_map(|finding| finding["occurrences"].as_array().into_iter().flatten());
    let size = |place: &Value| sizes.get(&(place["pid"].as_u64()?, place["call"].as_u64()?)).copied();
    occurrences.filter_map(size).map(|size| (size - (1 << 15)) / 64).collect()
}
