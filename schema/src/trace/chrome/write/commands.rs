//! The records of commands that are no calls.

use super::Line;
use crate::call::{Executed, Synchronization};
use crate::trace::NOTE;

impl Line {
    /// Writes what orders commands, or shows that some have completed, an instant on the thread.
    pub fn synchronization(&mut self, pid: u32, base: u64, synchronization: &Synchronization) {
        let Synchronization { tid, time, kind, queue, event } = *synchronization;
        self.opening(r#"{"ph":"i","pid":"#, pid, tid, time, base);
        self.0.text(r#","s":"t","cat":""#).text(NOTE).text(r#"","name":""#).text(kind.name()).text(r#"","args":{"#);
        let named = [("queue", queue), ("event", event)].into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut between = "";
        for (name, value) in named {
            self.0.text(between).text(r#"""#).text(name).text(r#"":"0x"#).hex(value).text(r#"""#);
            between = ",";
        }
        self.0.text("}}");
    }

    /// Writes the execution of a command, which Perfetto draws as a bar.
    pub fn executed(&mut self, pid: u32, base: u64, executed: &Executed) {
        let Executed { call, tid, begin, end, memory, rows, access } = *executed;
        self.opening(r#"{"ph":"X","pid":"#, pid, tid, begin, base);
        self.micros(r#","dur":"#, end.0.saturating_sub(begin.0));
        self.0.text(r#","cat":""#).text(NOTE).text(r#"","name":""#).text(access.name());
        self.0.text(r#"","args":{"call":"#).decimal(call).text(r#","memory":"#).decimal(memory);
        self.0.text(r#","offset":"#).decimal(rows.offset).text(r#","size":"#).decimal(rows.length);
        self.0.text(r#","pitch":"#).decimal(rows.pitch).text(r#","rows":"#).decimal(rows.count).text("}}");
    }
}
