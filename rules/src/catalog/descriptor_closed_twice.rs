//! # What it does
//!
//! Reports a put of physical memory's handle data whose descriptor is already closed, by the put of other handle data
//! with the same bytes.
//!
//! # Why it is bad
//!
//! The bytes contain the exporter's process and the number of a descriptor, and the put of the v2 adapter closes that
//! number. Intel's driver exports the same descriptor each time. There the first put ends every other handle of that
//! memory, and the second put closes whatever has the number by then: a file, a socket, another handle. The program is
//! correct: it puts each handle that it got, once.
//!
//! # Example
//!
//! The exporter of physical memory:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! auto one = physical::get(mem);
//! auto two = physical::get(mem);
//! send(one.data());
//! send(two.data());
//! barrier();
//! physical::put(one, ctx);
//! // Wrong: both have the same descriptor.
//! physical::put(two, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! auto one = physical::get(mem);
//! send(one.data());
//! send(one.data());
//! barrier();
//! physical::put(one, ctx);
//! ```
//!
//! # Bad trace
//!
//! `like h` states that the driver exported the descriptor of `h` again.
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: get-physical m -> h2 like h
//! producer: put-physical h
//! producer: put-physical h2
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! A number that was closed may be used again.
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: put-physical h
//! producer: get-physical m -> h2 like h
//! producer: put-physical h2
//! producer: release-physical m
//! ```
//!
//! # What to do
//!
//! Get handle data of physical memory once and send copies of its bytes; or let urscope's own backend serve it
//! (`URSCOPE_BACKEND=level_zero`), which duplicates the descriptor. `URSCOPE_ON_ERROR=refuse` returns success for such
//! a put without passing it on, so the descriptor that now has the number stays open.

use std::collections::VecDeque;

use urscope_schema::api::ResultCode;
use urscope_schema::handle::{Handle, Kind};

use super::{Check, Rule, RuleState, When, wording::call};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::Map;
use crate::tracker::fact::{Ending, Fact, FactKind, Target, What};
use crate::tracker::records::{HandleData, Serial};

pub(super) static RULE: Rule = Rule {
    code: "descriptor-closed-twice",
    severity: Severity::Error,
    when: When::Enter,
    title: "a put closes a descriptor that an earlier put with the same bytes has closed",
    sentence: "closed a descriptor twice with puts of equal handle data",
    facts: &[FactKind::Exported, FactKind::Ending, FactKind::EndRefused],
    check: Check::Stateful(|| Box::new(Closed::default())),
};

/// How many closed descriptors are remembered.
const MAX_REMEMBERED: usize = 1 << 16;

/// Equal handle data of physical memory: its host and its fingerprint. The bytes name a descriptor.
type Bytes = (u64, u64);

/// The puts that have closed descriptors.
#[derive(Clone, Debug, Default)]
struct Closed {
    /// By the bytes: the last put, and the latest handle data that had been got by then.
    puts: Map<Bytes, (Place, Serial)>,
    order: VecDeque<Bytes>,
    latest: Serial,
}

impl RuleState for Closed {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Exported(exported) if exported.handle.kind == Kind::PhysicalMemHandle => {
                self.latest = self.latest.max(exported.data.serial);
            }
            What::Ending(Ending { object, target: Target::Handle(data), .. })
                if object.kind == Kind::PhysicalMemHandle && !data.ended_wrongly =>
            {
                let Some(bytes) = bytes(fact, data) else { return };
                if let Some((put, latest)) = self.puts.get(&bytes)
                    && *latest >= data.serial
                {
                    found.push(report(fact, object, data, *put));
                }
                self.remember(bytes, fact.at);
            }
            // The refused put has closed nothing.
            What::EndRefused(handle) if handle.kind == Kind::PhysicalMemHandle => {
                let data = fact.tracker.state(fact.at.process).and_then(|state| state.handles.get(&handle));
                if let Some(bytes) = data.and_then(|data| bytes(fact, data)) {
                    self.puts.remove(&bytes);
                }
            }
            _ => {}
        }
    }
}

impl Closed {
    fn remember(&mut self, bytes: Bytes, put: Place) {
        if self.puts.insert(bytes, (put, self.latest)).is_none() {
            self.order.push_back(bytes);
        }
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.puts.remove(&oldest);
        }
    }
}

fn bytes(fact: &Fact<'_>, data: &HandleData) -> Option<Bytes> {
    Some((fact.tracker.process(fact.at.process)?.host, data.fingerprint?))
}

fn report(fact: &Fact<'_>, handle: Handle, data: &HandleData, closed: Place) -> Finding {
    let who = fact.actor();
    let at = call(fact.at);
    let born = call(data.born);
    let put = call(closed);
    let message = format!(
        "{who} puts {handle} in {at}, got in {born}: its descriptor was closed in {put}, the put of other handle data with the \
         same bytes, so this put closes whatever has its number now"
    );
    let finding = Finding::new(&RULE, fact.at, handle, message).other(Some(closed));
    let advice = "get handle data of physical memory once and send copies of its bytes, or set \
                  URSCOPE_BACKEND=level_zero: its backend duplicates the descriptor";
    finding.values(data.size, data.fingerprint).advice(advice).answer(ResultCode::SUCCESS)
}
