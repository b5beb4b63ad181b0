//! Which export an IPC handle means that names a descriptor of its exporter.

use smallvec::{SmallVec, smallvec};
use urscope_schema::handle::{descriptor_in, named_fingerprint};
use urscope_schema::operation::Open;

use super::{exports::Export, process_state::ProcessState, state::Tracker};
use crate::place::ProcessId;

impl Tracker {
    /// An open with the fingerprint of the export that its handle data means.
    ///
    /// Handle data that names a descriptor of another process is as the get returned it, and then is that of the get;
    /// or a program has stored a descriptor of its own process in it, and then its file tells. Where the driver does
    /// not write which of the two it is, and they differ, it is one of them.
    pub(super) fn resolved(&self, who: ProcessId, open: &Open) -> Open {
        let (Some(exporter), Some(data), None) = (open.exporter, open.data, open.one_of) else { return *open };
        let by_file =
            self.export_of(who, open.fingerprint).and_then(|id| self.exports.get(id)).map(Export::fingerprint);
        let is_as_got = exporter.got == Some(data);
        if exporter.got.is_some() && (!is_as_got || by_file.is_some()) {
            return *open;
        }
        let mut found: SmallVec<[u64; 2]> = self.named_by_descriptor(who, exporter.process, data);
        found.extend(by_file.filter(|file| !found.contains(file)));
        match found[..] {
            [] => *open,
            [one] => Open { fingerprint: Some(one), ..*open },
            [one, other, ..] => {
                let unknown = descriptor_in(data).map(|number| named_fingerprint(exporter.process, number));
                Open { fingerprint: unknown, one_of: Some([one, other]), ..*open }
            }
        }
    }

    /// The fingerprints of what processes with that number got as a descriptor. Within a pid namespace it is one
    /// process; a driver may reach those of other namespaces in another way than by the number.
    fn named_by_descriptor(&self, who: ProcessId, pid: u64, data: u64) -> SmallVec<[u64; 2]> {
        let mut found = SmallVec::new();
        let Some(own) = self.process(who) else { return found };
        for (index, ProcessState { process, .. }) in self.states.iter().enumerate().rev() {
            let export = self.exports.of_descriptor(ProcessId(index as u32), data);
            let is_it = u64::from(process.pid) == pid && process.host == own.host;
            let Some(fingerprint) = export.filter(|_| is_it).map(Export::fingerprint) else { continue };
            if !process.rights.is_elsewhere(&own.rights) {
                return smallvec![fingerprint];
            }
            if !found.contains(&fingerprint) {
                found.push(fingerprint);
            }
        }
        found
    }
}
