//! # What it does
//!
//! Reports an open in which the adapter would have changed the program's handle data, if a child that the process
//! starts afterwards opens the same bytes.
//!
//! # Why it is bad
//!
//! The v1 adapter writes a descriptor of its own process into handle data that it opens. urscope gives it a copy, so
//! the program works under urscope. Without urscope, whoever gets the bytes from the process afterwards gets the
//! changed ones: its open is refused, or maps something else.
//!
//! The child has the bytes from its parent, and they are the changed ones unless the parent opened a copy: a trace does
//! not show that. Where the child started before the open returned, the parent opens the same bytes again, even later,
//! or another process opens them, the bytes may be those of the sender, so nothing is reported. Of a child that is not
//! a fork, the start is known in steps of 10 ms.
//!
//! # Example
//!
//! A process between the exporter and another one:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! // Wrong: the v1 adapter has changed data.
//! send(data);
//! barrier();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! send(data);
//! void *p = ipc::memory::open(data, ctx, dev);
//! barrier();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m overwrites 44
//! consumer: fork child
//! child: open h -> n
//! child: close n
//! consumer: close m
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m overwrites 44
//! other: open h -> n overwrites 44
//! other: close n
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Send handle data on before it is opened, or open a copy of it. The v2 adapter does not write into it.

use urscope_schema::handle::Handle;
use urscope_schema::operation::Open;

use super::wording::{call, name};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Severity};
use crate::tracker::exports::Overwriting;
use crate::tracker::fact::{Fact, FactKind, Opening, What};
use crate::tracker::records::ExportId;

pub(super) static RULE: Rule = Rule {
    code: "overwritten-handle",
    severity: Severity::Warning,
    when: When::Run,
    title: "an open changes handle data that is passed on, unless urscope prevents it",
    sentence: "passed on handle data that its adapter changes",
    facts: &[FactKind::Opening, FactKind::Finished],
    check: Check::Stateful(|| Box::new(PassedOn::default())),
};

/// The number of opens that are kept until the run is over.
const MAX_OPENS: usize = 256;

/// The first open of handle data by a child of a process that has opened them. It is reported if that process does not
/// open them again.
#[derive(Clone, Debug, Default)]
struct PassedOn(Vec<(ExportId, Finding)>);

impl RuleState for PassedOn {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Opening(Opening { export: Some(export), open, .. }) => {
                let is_of = |(id, finding): &(ExportId, Finding), who| (*id, finding.at.process) == (export, who);
                self.0.retain(|kept| !is_of(kept, fact.at.process));
                if let Some(finding) = passed_on(fact, export, open)
                    && !self.0.iter().any(|kept| is_of(kept, finding.at.process))
                    && self.0.len() < MAX_OPENS
                {
                    self.0.push((export, finding));
                }
            }
            What::Finished => found.extend(self.0.drain(..).map(|(_, finding)| finding)),
            _ => {}
        }
    }
}

fn passed_on(fact: &Fact<'_>, export: ExportId, open: &Open) -> Option<Finding> {
    let export = fact.tracker.exports.get(export)?;
    if export.overwritten.is_empty() {
        return None;
    }
    let child = fact.tracker.process(fact.at.process)?;
    let parent = fact.tracker.process_with_pid(fact.at.process, child.parent?.into())?;
    let of_parent = |open: &&Overwriting| open.opened.process == parent && !open.again;
    let Overwriting { opened, returned, byte, .. } = *export.overwritten.iter().find(of_parent)?;
    // A child that started before may have got the bytes before. The thread is the parent's if a handler of a signal
    // forked in an open of the parent, which then opens the bytes again.
    child.started.filter(|started| *started >= returned && fact.at.tid != opened.tid)?;
    let what = Handle { kind: export.subject.kind, value: open.data.unwrap_or_default() };
    let who = name(fact.tracker, parent);
    let child = name(fact.tracker, fact.at.process);
    let size = open.size?;
    let message = format!(
        "{who} opened handle data of {size} bytes in {}; without urscope, its adapter would have changed them from byte {byte} on, and \
         {child}, a child of this process, which opens them in {}, would have got the changed ones: they name another descriptor of {}, so \
         this open would be refused, or map something else",
        call(opened),
        call(fact.at),
        name(fact.tracker, export.latest_get.process)
    );
    let finding = Finding::new(&RULE, opened, what, message).other(Some(fact.at));
    let finding = finding.values(export.subject.size, Some(export.fingerprint()));
    Some(
        finding.advice(
            "send handle data on before it is opened; if the process opened a copy of it, suppress this finding",
        ),
    )
}
