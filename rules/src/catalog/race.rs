//! # What it does
//!
//! Reports two commands of different processes that accessed the same bytes of shared memory while both were under way,
//! if one of them wrote there. Copies, fills and copies of regions count, with the bytes that they access, row by row.
//!
//! Only the software device tells when it has executed a command: from the moment at which all but earlier copies and
//! fills of its queue had happened that the command waits for, until its end. Commands that nothing orders may not meet
//! in a run: `ZE_SOFT_DELAY=until-wait` makes them meet, because the device then finishes no command before something
//! waits for it.
//!
//! Of copies and fills, on any device, it also reports two that nothing orders. One process enqueued its command before
//! the other process knew that its own had completed: it had not waited for the queue of its command, nor for an event
//! of it or behind it. In a queue out of order, as SYCL's are by default, the event of a later command is not behind
//! it. Then no message, barrier or file can have ordered them. Where a kernel, a graph, a shared event or a flag may
//! have, nothing is reported. [races.md](races.md) explains the order between processes.
//!
//! Kernels count, too, as a note: they may access what is behind the pointers that they were given, up to the end of
//! the memory, and may write there unless their SPIR-V says otherwise. Memory that a kernel reaches by other pointers
//! is not seen.
//!
//! Not seen are accesses of the host. Of a command that was enqueued before the process first got or opened a handle,
//! or as part of a command buffer of SYCL, the call is not known. Of each memory, the latest 64 accesses are compared,
//! of the 4,096 memories that were accessed last; and a command is known while fewer than 1,024 others have been
//! enqueued since.
//!
//! # Why it is bad
//!
//! The command that reads gets bytes from before, bytes from after, or some of each, and the next run gets others. Of
//! two that write, any may win.
//!
//! It is a note if both access nothing but one aligned word of 8 bytes: programs that poll a flag do that on purpose.
//! It is a note, too, if one of them is a kernel: it may have accessed other bytes, or may have waited for a flag in
//! the memory.
//!
//! # Example
//!
//! The process that writes, and then says that it is done:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, size);
//! // Wrong: the other process may read too soon.
//! barrier();
//! queue.wait();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, size).wait();
//! barrier();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! cuMemcpyDtoDAsync(buffer, mapped, size, stream);
//! // Wrong: the copy may still read when the other process goes on.
//! barrier();
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: copy m sized 4096
//! producer: copy p sized 4096
//! producer: ran p writes 4096 since 1
//! consumer: ran p reads 4096 since 3
//! consumer: host-waits
//! consumer: close m
//! producer: host-waits
//! producer: put h
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: copy m sized 4096
//! consumer: ran p reads 4096 since 1
//! consumer: host-waits
//! producer: copy p sized 4096
//! producer: ran p writes 4096 since 1
//! consumer: close m
//! producer: host-waits
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Let the process whose command comes first wait for it on the host before it tells the other one, and let the other
//! one enqueue its command only then. Or share an event: one command signals it, and the other one waits for it.

use std::{collections::VecDeque, num::NonZeroU64};

use urscope_schema::call::{Access, Executed, Rows};
use urscope_schema::handle::Handle;
use urscope_schema::{duration, size};

use super::wording::{call, name};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::place::ProcessId;
use crate::tracker::fact::{Fact, FactKind, Unordered, UnorderedAccess, What};
use crate::tracker::{Map, Set, Tracker};

pub(super) static RULE: Rule = Rule {
    code: "race",
    severity: Severity::Error,
    when: When::Run,
    title: "commands of two processes access the same bytes at the same time",
    sentence: "accessed {what} before a command of {other} on it was known to be over, and one of them wrote",
    facts: &[FactKind::Executed, FactKind::Unordered],
    check: Check::Stateful(|| Box::new(Accesses::default())),
};

/// What to do about two commands that nothing orders.
const ADVICE: &str = "wait for the first command itself, by its event or its queue, before the other process is told to go on, or let the second \
     one wait for an event that the first one signals";

/// How many memories are remembered, and how many accesses of each.
const MEMORIES: usize = 4096;
const ACCESSES: usize = 64;

/// How many rows of two commands are compared.
const ROWS: u32 = 1 << 17;

/// The latest accesses, by host and memory, the pairs of commands that have met, and those that nothing orders.
#[derive(Clone, Debug, Default)]
struct Accesses {
    latest: Map<(u64, u64), VecDeque<Executing>>,
    met: Set<[Command; 2]>,
    unordered: Set<[Command; 2]>,
}

/// A command: its process and the number of its call.
type Command = (ProcessId, Option<NonZeroU64>);

const fn command(at: Place) -> Command {
    (at.process, at.call)
}

#[derive(Clone, Copy, Debug)]
struct Executing {
    /// The call that enqueued the command.
    at: Place,
    memory: Option<Handle>,
    executed: Executed,
}

impl RuleState for Accesses {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        let (executed, memory) = match fact.what {
            What::Executed(executed, memory) => (executed, memory),
            What::Unordered(unordered) => {
                let pair = [unordered.first, unordered.second].map(|it| command(it.place));
                if !has(&self.met, pair) {
                    found.push(never_ordered(fact.tracker, unordered));
                    add(&mut self.unordered, pair);
                }
                return;
            }
            _ => return,
        };
        let Some(host) = fact.tracker.process(fact.at.process).map(|process| process.host) else { return };
        let key = (host, executed.memory);
        let new = Executing { at: fact.at, memory, executed: *executed };
        let known = self.for_memory(key);
        let with = |known: &Executing| Some(([command(known.at), command(new.at)], race(fact.tracker, known, &new)?));
        let races: Vec<_> = known.iter().filter_map(with).collect();
        if known.len() >= ACCESSES {
            known.pop_front();
        }
        known.push_back(new);
        for (pair, race) in races {
            if !has(&self.unordered, pair) {
                found.push(race);
                add(&mut self.met, pair);
            }
        }
    }
}

/// Whether a pair was added, in any order.
fn has(pairs: &Set<[Command; 2]>, [one, other]: [Command; 2]) -> bool {
    pairs.contains(&[one, other]) || pairs.contains(&[other, one])
}

fn add(pairs: &mut Set<[Command; 2]>, pair: [Command; 2]) {
    if pairs.len() < MEMORIES {
        pairs.insert(pair);
    }
}

impl Accesses {
    /// Those of a memory. If there are too many, the one that was accessed longest ago is forgotten.
    fn for_memory(&mut self, key: (u64, u64)) -> &mut VecDeque<Executing> {
        if self.latest.len() >= MEMORIES && !self.latest.contains_key(&key) {
            let latest = |accesses: &VecDeque<Executing>| accesses.back().map(|access| access.executed.end);
            let oldest =
                self.latest.iter().min_by_key(|(key, accesses)| (latest(accesses), **key)).map(|(key, _)| *key);
            oldest.and_then(|oldest| self.latest.remove(&oldest));
        }
        self.latest.entry(key).or_default()
    }
}

/// The finding about two accesses to the same memory, if they are a race.
fn race(tracker: &Tracker, one: &Executing, other: &Executing) -> Option<Finding> {
    let (first, second) = if other.executed.begin < one.executed.begin { (other, one) } else { (one, other) };
    let together = first.executed.end.min(second.executed.end).0.checked_sub(second.executed.begin.0)?;
    let accesses = [first, second].map(|it| it.executed.access);
    let writes = accesses.iter().any(|access| access.writes());
    if !writes || together == 0 || first.at.process == second.at.process {
        return None;
    }
    let bytes = common(&first.executed.rows, &second.executed.rows)?;
    // A call that is known shows more.
    let (first, second) = if second.at.call.is_none() { (second, first) } else { (first, second) };
    let does = |it: &Executing| match it.executed.access {
        Access::Read => "reads",
        Access::Write => "writes",
        may => may.name(),
    };
    let is_certain = accesses.iter().all(|access| access.is_certain());
    let message = format!(
        "{} {} {} in {} while {} {} it in {}: both were under way for {}, and {} {} in common",
        name(tracker, second.at.process),
        does(second),
        second.memory.map_or_else(|| "shared memory".into(), |memory| memory.to_string()),
        enqueued(second.at),
        name(tracker, first.at.process),
        does(first),
        enqueued(first.at),
        duration(together),
        if is_certain { "have" } else { "may have" },
        size(bytes),
    );
    let is_flag = [first, second].iter().all(|access| is_word(&access.executed.rows));
    let finding = Finding { subject: second.memory, ..Finding::of_call(&RULE, second.at, message) };
    let most = if is_flag || !is_certain { Severity::Note } else { Severity::Error };
    let finding = finding.other(first.at.call.map(|_| first.at)).at_most(most);
    Some(finding.advice(ADVICE))
}

/// The finding about two commands that nothing orders.
fn never_ordered(tracker: &Tracker, unordered: &Unordered) -> Finding {
    let Unordered { first, second, bytes, known } = unordered;
    let does = |it: &UnorderedAccess| if it.writes { "writes" } else { "reads" };
    let owner = name(tracker, first.place.process);
    let why = known.map_or_else(
        || format!("{owner} ended without having waited for its command"),
        |known| {
            let early = duration(known.0.saturating_sub(second.place.time.0));
            format!("it was enqueued {early} before {owner} knew that its command had completed")
        },
    );
    let message = format!(
        "{} {} {} in {}, and nothing orders that and {owner}, which {} it in {}: {why}, and {} are in common",
        name(tracker, second.place.process),
        does(second),
        second.memory,
        call(second.place),
        does(first),
        call(first.place),
        size(*bytes),
    );
    let finding = Finding { subject: Some(second.memory), ..Finding::of_call(&RULE, second.place, message) };
    let most = if *bytes <= 8 { Severity::Note } else { Severity::Error };
    finding.other(Some(first.place)).at_most(most).advice(ADVICE)
}

/// The call of a command, in words.
fn enqueued(at: Place) -> String {
    match at.call {
        Some(_) => call(at),
        None => "a command that it enqueued before its first get or open, or in a call that is not recorded".into(),
    }
}

/// Whether these are bytes of one aligned word.
const fn is_word(rows: &Rows) -> bool {
    rows.count == 1 && rows.length <= 8 && rows.offset % 8 + rows.length <= 8
}

/// The number of bytes that both have; `None` for none. Of very many rows, the first ones count.
fn common(one: &Rows, other: &Rows) -> Option<u64> {
    let mut here = first_row(one, other);
    let mut there = first_row(other, one);
    let mut bytes = 0_u64;
    for _ in 0..ROWS {
        if here >= one.count || there >= other.count {
            break;
        }
        let [start, end] = row(one, here);
        let [other_start, other_end] = row(other, there);
        bytes = bytes.saturating_add(end.min(other_end).saturating_sub(start.max(other_start)));
        if end <= other_end {
            here += 1;
        } else {
            there += 1;
        }
    }
    (bytes > 0).then_some(bytes)
}

/// The last row that does not begin behind the first byte of others.
const fn first_row(rows: &Rows, others: &Rows) -> u64 {
    match others.offset.saturating_sub(rows.offset).checked_div(rows.pitch) {
        Some(row) if row < rows.count => row,
        _ => 0,
    }
}

const fn row(rows: &Rows, number: u64) -> [u64; 2] {
    let start = rows.offset.saturating_add(rows.pitch.saturating_mul(number));
    [start, start.saturating_add(rows.length)]
}
