//! # What it does
//!
//! Reports a process whose number of open descriptors grew until its end. The note states whether as many handles,
//! mappings and shared objects were left open (a leak of the program) or not (a cache, the driver, or other files of
//! the program), and after how many more calls the limit is reached.
//!
//! # Why it is bad
//!
//! Handle data of Level Zero holds file descriptors. At the limit, gets and opens fail, and so does everything else
//! that needs a file. It is a note: a cache may still reach its maximum size, and other rules report handles that were
//! left open. Only traces show it: the preloaded library counts descriptors now and then, and does not judge them.
//!
//! # Example
//!
//! The process that opens, in the main loop of a program:
//!
//! ```cpp
//! for (int step = 0; step < 1000; step++) {
//!   auto data = receive();
//!   void *p = ipc::memory::open(data, ctx, dev);
//!   queue.memset(p, 0, size).wait();
//!   // Noted: nothing is closed.
//! }
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! for (int step = 0; step < 1000; step++) {
//!   auto data = receive();
//!   void *p = ipc::memory::open(data, ctx, dev);
//!   queue.memset(p, 0, size).wait();
//!   ipc::memory::close(p, ctx);
//! }
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! for (int descriptor : descriptors()) {
//!   CUmemGenericAllocationHandle memory;
//!   cuMemImportFromShareableHandle(
//!       &memory, (void *)(intptr_t)descriptor,
//!       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
//!   // Wrong: the import does not close the descriptor.
//!   cuMemRelease(memory);
//! }
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: descriptor-limit 1024
//! producer: alloc p 4096
//! producer: get p -> g
//! 4 times
//! producer: get p -> h
//! producer: put h
//! producer: descriptors 20
//! end
//! 4 times
//! producer: get p -> h
//! producer: put h
//! producer: descriptors 40
//! end
//! 4 times
//! producer: get p -> h
//! producer: put h
//! producer: descriptors 60
//! end
//! producer: put g
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: descriptor-limit 1024
//! producer: alloc p 4096
//! producer: get p -> g
//! 6 times
//! producer: descriptors 20
//! end
//! 6 times
//! producer: descriptors 60
//! end
//! producer: put g
//! ```
//!
//! # What to do
//!
//! If the number of handles grows as well, see `leaked-handle`, `leaked-mapping` and `urscope holders`; if descriptors
//! are exported and not closed, see `leaked-descriptor`. If neither, list the descriptors (`ls -l /proc/PID/fd`): the
//! driver or a cache keeps those of a `dmabuf` or `memfd`. The limits of caches are `UMF_MAX_OPENED_IPC_HANDLES` and
//! the pool settings of the runtime.

mod samples;

use self::samples::{Growth, Sample, Samples};
use urscope_schema::{api::interface::Words, counted, duration};

use super::{Check, Rule, RuleState, When, memory::PerProcess};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Descriptors, Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "descriptor-growth",
    severity: Severity::Note,
    when: When::Run,
    title: "the number of open descriptors of a process keeps growing",
    sentence: "kept opening descriptors",
    facts: &[FactKind::Descriptors, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(AllSamples::default())),
};

/// The samples of each process.
#[derive(Clone, Debug, Default)]
struct AllSamples(PerProcess<Samples>);

impl RuleState for AllSamples {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Descriptors(Descriptors { open, held, exported, calls }) => {
                let samples = self.0.get_or_insert_with(fact.at.process, Samples::default);
                samples.add(Sample { at: fact.at.time, calls, descriptors: open, held, exported });
            }
            What::ProcessEnded(_) => {
                let limit = fact.tracker.process(fact.at.process).and_then(|process| process.rights.descriptors);
                let samples = self.0.take(fact.at.process);
                found.extend(samples.and_then(|samples| samples.growth(limit)).map(|growth| report(fact, &growth)));
            }
            _ => {}
        }
    }
}

fn report(fact: &Fact<'_>, growth: &Growth) -> Finding {
    let more = growth.descriptors();
    let held = growth.held();
    let calls = growth.to.calls - growth.from.calls;
    // At the end of a process, no call tells its interface.
    let function = fact.tracker.state(fact.at.process).and_then(|state| state.latest_ipc);
    let Words { left_open, end_left_open, .. } = Place { function, ..fact.at }.words();
    let exported = growth.exported();
    let (whose, advice) = if 2 * exported >= more {
        (
            format!("{exported} more exported descriptors were open, too: the program leaves them open"),
            "close(2) each exported descriptor once it is sent; leaked-descriptor reports those whose memory is released",
        )
    } else if 2 * held >= more {
        (format!("{held} more {left_open} were open, too: the program leaves them open"), end_left_open)
    } else {
        // A sample may be taken after an open or a get whose close or put follows.
        let balanced = if 16 * held <= more { ", so the program's IPC calls are balanced" } else { "" };
        (
            format!(
                "only {held} more {left_open} were open{balanced}: a cache, the driver or other files hold the rest"
            ),
            "list them (ls -l /proc/PID/fd), and limit the cache or report it to the vendor of the driver",
        )
    };
    let forecast = match (growth.limit, growth.calls_until_limit()) {
        (Some(limit), Some(left)) => {
            format!("; the limit of {limit} is reached after {}", counted(left, "more such call"))
        }
        _ => String::new(),
    };
    let message = format!(
        "{} had {} descriptors open after {}, and {} after {calls} more, {} later; {whose}{forecast}",
        fact.actor(),
        growth.from.descriptors,
        counted(growth.from.calls, "IPC call"),
        growth.to.descriptors,
        duration(growth.to.at.0.saturating_sub(growth.from.at.0)),
    );
    Finding::of_call(&RULE, fact.at, message).advice(advice)
}
