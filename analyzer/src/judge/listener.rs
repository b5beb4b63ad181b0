//! Who listens to a hearing besides the law: statistics, tables, timelines.

use urscope_rules::{ProcessId, World};
use urscope_schema::{
    call::{Enter, Exit, Nanos},
    trace::records::Header,
};

use super::Ended;

/// Hears what the law hears, record by record, in the order of time over all processes of a host.
pub trait Listener {
    /// A process begins.
    fn begin(&mut self, world: &World, who: ProcessId, header: &Header) {
        let _ = (world, who, header);
    }

    /// A call begins, and has not moved the world yet: what it will end is still there.
    fn enter(&mut self, world: &World, who: ProcessId, enter: &Enter) {
        let _ = (world, who, enter);
    }

    /// A call has returned and moved the world: what it made is there.
    fn exit(&mut self, world: &World, who: ProcessId, exit: &Exit) {
        let _ = (world, who, exit);
    }

    /// A process ends: what it held is still there.
    fn end(&mut self, world: &World, who: ProcessId, at: Nanos, ended: Ended) {
        let _ = (world, who, at, ended);
    }
}

/// Nobody.
impl Listener for () {}
