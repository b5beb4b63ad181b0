//! The tracker: all handles of all processes, and the one state machine of their lives.
//!
//! Records come in the order of time, those of one process in the order of its file. [`Tracker::enter`] and
//! [`Tracker::exit`] take the begin and the return of a call, [`Tracker::end`] the end of a process; each emits the
//! [facts](fact) that follow from it. Memory grows with the number of live objects, not with the length of the run.
//!
//! The modules are layers, and each knows those below it only: plain data (`records`, `freeing`, `in_flight`,
//! `observations`), collections of them (`exports`, `tombstones`, `mapped`, `queues`, `lists`), calls under way
//! (`pending`), one process (`process_state`), all of them (`state`), the export that handle data means (`resolving`),
//! what calls change there (`transitions`, `changes`), commands that nothing orders (`unordered`), and on top the facts
//! and where they are emitted (`fact`, `entering`, `returning`, `leaving`).
//!
//! The tracker knows no rule and no consumer of its facts, and it never judges.

mod changes;
mod entering;
pub(crate) mod exports;
pub mod fact;
mod fact_kind;
mod freeing;
mod in_flight;
mod leaving;
mod lists;
mod mapped;
mod maps;
mod observations;
pub mod pending;
mod process;
pub(crate) mod process_state;
mod queues;
pub mod records;
mod resolving;
mod returning;
mod rights;
mod small_maps;
mod state;
mod tombstones;
mod transitions;
mod unordered;
mod view;

pub(crate) use self::maps::{Map, Set};
pub use self::process::{End, Process};
pub(crate) use self::rights::Barrier;
pub use self::view::{Holder, Shared};
pub use self::{in_flight::NotJudged, records::DeviceError, records::ExportId, rights::Rights, state::Tracker};
pub use crate::place::ProcessId;
