//! # What it does
//!
//! Reports handle data that is got for an address inside an allocation, by a function whose handle names the allocation
//! only (`zeMemGetIpcHandle`, `cuIpcGetMemHandle`). It is a note once a process accesses what it has opened from that
//! offset on: the offset was sent by another way. In CUDA it is always a note: all gets of an allocation return the
//! same handle.
//!
//! # Why it is bad
//!
//! What is opened begins where the allocation begins. A process that takes it for the address that was got reads and
//! writes other memory. Level Zero asks for the address that the allocation returned. (Unified Runtime's handle data,
//! and so SYCL's, contain the offset.)
//!
//! # Example
//!
//! The exporter, by Level Zero:
//!
//! ```cpp
//! char *second = static_cast<char *>(p) + length;
//! ze_ipc_mem_handle_t handle;
//! // Wrong: the handle names p.
//! zeMemGetIpcHandle(ze_ctx, second, &handle);
//! send(bytes_of(handle));
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! ze_ipc_mem_handle_t handle;
//! zeMemGetIpcHandle(ze_ctx, p, &handle);
//! // The process that opens it adds the length.
//! send(bytes_of(handle));
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 65536 ze
//! producer: get p + 4096 -> h ze
//! consumer: open h -> m ze
//! consumer: copy m sized 4096 ze
//! consumer: host-waits
//! consumer: close m ze
//! producer: free p ze
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 65536 ze
//! producer: get p -> h ze
//! consumer: open h -> m ze
//! consumer: copy m + 4096 sized 4096 ze
//! consumer: host-waits
//! consumer: close m ze
//! producer: free p ze
//! ```
//!
//! # What to do
//!
//! Get handle data for the address that the allocation returned, or that `zeMemGetAddressRange` returns, and send the
//! offset with it.

use urscope_schema::api::{Effect, Promise};
use urscope_schema::counted;
use urscope_schema::handle::{Handle, Kind};

use super::memory::PerProcess;
use super::wording::{call, name, of_size};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Exported, Fact, FactKind, Target, What};
use crate::tracker::records::{Allocation, ExportId, Mapping};
use crate::tracker::{ProcessId, Tracker};

pub(super) static RULE: Rule = Rule {
    code: "lost-offset",
    severity: Severity::Warning,
    when: When::Run,
    title: "handle data is exported for an address inside an allocation, and names its beginning",
    sentence: "got handle data for an address inside {what}, which name its beginning",
    facts: &[FactKind::Exported, FactKind::Ending, FactKind::ProcessEnded, FactKind::Finished],
    check: Check::Stateful(|| Box::new(LostOffsets::default())),
};

/// The number of places in a program whose gets are reported.
const MAX_PLACES: usize = 256;

/// The first such get of each place in a process.
#[derive(Clone, Debug, Default)]
struct LostOffsets(PerProcess<Vec<LostOffset>>);

#[derive(Clone, Copy, Debug)]
struct LostOffset {
    got: Place,
    export: Option<ExportId>,
    base: u64,
    size: Option<u64>,
    fingerprint: Option<u64>,
    offset: u64,
    /// The first command that is known to access what was opened in front of the offset.
    in_front: Option<Place>,
    /// A command that accesses it from the offset on.
    behind: Option<Place>,
}

impl RuleState for LostOffsets {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        let who = fact.at.process;
        match fact.what {
            What::Exported(exported) => self.got(fact, &exported),
            What::Ending(ending) => {
                if let Target::Mapping(mapping) = ending.target {
                    self.opened(fact.tracker, who, ending.object.value, mapping);
                }
            }
            What::ProcessEnded(_) => {
                let Some(state) = fact.tracker.state(who) else { return };
                state.mappings.iter().for_each(|(pointer, mapping)| self.opened(fact.tracker, who, pointer, mapping));
            }
            What::Finished => found.extend(self.0.iter().flatten().map(|lost| report(fact.tracker, lost))),
            _ => {}
        }
    }
}

impl LostOffsets {
    fn got(&mut self, fact: &Fact<'_>, exported: &Exported<'_>) {
        let Some((base, memory, offset)) = inside(fact, exported) else { return };
        let known = self.0.get_or_insert_with(fact.at.process, Vec::new);
        let is_here = |lost: &LostOffset| (lost.got.function, lost.got.stack) == (fact.at.function, fact.at.stack);
        if known.len() < MAX_PLACES && !known.iter().any(is_here) {
            let export = exported.data.export;
            let size = memory.requested.size;
            let fingerprint = exported.answer.fingerprint;
            let in_front = None;
            let behind = None;
            known.push(LostOffset { got: fact.at, export, base, size, fingerprint, offset, in_front, behind });
        }
    }

    /// Looks at the commands that access a mapping which is about to end.
    fn opened(&mut self, tracker: &Tracker, who: ProcessId, pointer: u64, mapping: &Mapping) {
        let export = mapping.export.and_then(|id| tracker.exports.get(id));
        let gets = export.and_then(|export| self.0.get_mut(export.producer)).into_iter().flatten();
        for lost in gets.filter(|lost| lost.export == mapping.export) {
            let Some(state) = tracker.state(who) else { return };
            for command in &state.commands {
                for address in command.addresses.into_iter().flatten() {
                    match address.checked_sub(pointer) {
                        Some(from) if from < lost.offset => _ = lost.in_front.get_or_insert(command.place),
                        Some(from) if lost.size.is_some_and(|size| from < size) => lost.behind = Some(command.place),
                        _ => {}
                    }
                }
            }
        }
    }
}

/// The allocation that the address of a get lies inside of, where the handle data name the allocation only.
fn inside<'t>(fact: &Fact<'t>, exported: &Exported<'_>) -> Option<(u64, &'t Allocation, u64)> {
    let names_allocation = [Promise::HandlesAreDescriptors, Promise::HandlesNameAllocations];
    let names_base = names_allocation.iter().any(|promise| fact.at.promises(*promise))
        && matches!(fact.at.effect(), Some(Effect::Exports(Kind::Usm)));
    let address = exported.of.filter(|_| names_base)?;
    let (base, memory) = fact.tracker.state(fact.at.process)?.allocation_at(address)?;
    (address != base && Some(memory.serial) == exported.data.exported).then_some((base, memory, address - base))
}

fn report(tracker: &Tracker, lost: &LostOffset) -> Finding {
    let LostOffset { got, base, size, fingerprint, offset, in_front, behind, .. } = *lost;
    let what = Handle { kind: Kind::Usm, value: base };
    let who = name(tracker, got.process);
    let at = call(got);
    let does = |command: Place, how: &str| format!("{} {how} in {}", name(tracker, command.process), call(command));
    let (what_follows, other, most) = match (behind, in_front) {
        (Some(behind), _) => (does(behind, "adds an offset to what it opened"), Some(behind), Severity::Note),
        (None, Some(before)) => {
            (does(before, "accesses the beginning of what it opened"), Some(before), Severity::Warning)
        }
        (None, None) => ("whoever opens it is at the beginning".into(), None, Severity::Warning),
    };
    let message = format!(
        "{who} gets handle data in {at} for {:#x}, {} into {what}{}; the handle names {base:#x}, and {what_follows}",
        base + offset,
        counted(offset, "byte"),
        of_size(size)
    );
    let finding = Finding::new(&RULE, got, what, message).other(other).values(size, fingerprint).at_most(most);
    // Others may have got the same handle for what lies in front.
    let finding = finding.note_where(Promise::HandlesNameAllocations);
    finding.advice("get handle data for the address that the allocation returned, and send the offset with it")
}
