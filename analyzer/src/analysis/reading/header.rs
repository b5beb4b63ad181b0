//! The header of a trace, as an analysis keeps it of every process.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use urscope_schema::trace::records::{Clock, Header, Rights};

use crate::analysis::once::{Last, kept_once};

/// The header of a trace. What the processes of a run have in common is kept once for all of them.
#[derive(Clone, Debug)]
pub(crate) struct TraceHeader {
    pub(crate) common: Arc<Common>,
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) start: u64,
    /// How it was forked, if it was.
    fork: Option<Box<Fork>>,
    pub(crate) rank: Option<u32>,
    pub(crate) clock: Clock,
}

/// The fields of a [`Header`] that only forked processes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fork {
    pub(crate) is_traced: bool,
    pub(crate) at_ns: Option<u64>,
    pub(crate) returned_ns: Option<u64>,
}

/// The fields of a [`Header`] that many processes have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Common {
    format: u32,
    urscope: String,
    pub(crate) run: String,
    pub(crate) host: String,
    pub(crate) boot_id: String,
    pub(crate) time_namespace: u64,
    pub(crate) pid_namespace: u64,
    pub(crate) uid: u32,
    pub(crate) rights: Rights,
    pub(crate) executable: Arc<str>,
    pub(crate) command: Vec<String>,
    pub(crate) ranks: String,
    pub(crate) late: bool,
}

impl From<Header> for TraceHeader {
    fn from(header: Header) -> Self {
        static LAST: Last<Common> = Mutex::new(VecDeque::new());
        let Header { format, urscope, run, host, boot_id, time_namespace, pid_namespace, uid, rights, .. } = header;
        let Header { pid, parent, start, forked, forked_ns, fork_returned_ns, rank, clock, .. } = header;
        let (executable, command, ranks, late) = (header.executable.into(), header.command, header.ranks, header.late);
        let common = Common {
            format,
            urscope,
            run,
            host,
            boot_id,
            time_namespace,
            pid_namespace,
            uid,
            rights,
            executable,
            command,
            ranks,
            late,
        };
        let common = kept_once(&LAST, common);
        let fork = Fork { is_traced: forked, at_ns: forked_ns, returned_ns: fork_returned_ns };
        let fork = (fork != Fork::default()).then(|| Box::new(fork));
        Self { common, pid, parent, start, fork, rank, clock }
    }
}

impl TraceHeader {
    /// How it was forked.
    pub(crate) fn fork(&self) -> Fork {
        self.fork.as_deref().copied().unwrap_or_default()
    }

    /// The whole header.
    pub(crate) fn whole(&self) -> Header {
        let Self { ref common, pid, parent, start, rank, clock, .. } = *self;
        let Fork { is_traced: forked, at_ns: forked_ns, returned_ns: fork_returned_ns } = self.fork();
        Header {
            format: common.format,
            urscope: common.urscope.clone(),
            run: common.run.clone(),
            host: common.host.clone(),
            boot_id: common.boot_id.clone(),
            time_namespace: common.time_namespace,
            pid_namespace: common.pid_namespace,
            pid,
            start,
            parent,
            forked,
            forked_ns,
            fork_returned_ns,
            uid: common.uid,
            rights: common.rights,
            executable: common.executable.as_ref().into(),
            command: common.command.clone(),
            rank,
            ranks: common.ranks.clone(),
            late: common.late,
            clock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_what_they_have_in_common_once() {
        let header = |pid: u32, host: &str| {
            let (host, executable, command) = (host.into(), "/opt/a".into(), vec!["a".into(), "-v".into()]);
            let rights = Rights { dumpable: Some(true), ..Rights::default() };
            let clock = Clock { monotonic_ns: u64::from(pid), ..Clock::default() };
            let (forked_ns, fork_returned_ns, rank) = (Some(3), Some(4), Some(pid));
            Header {
                format: 1,
                urscope: "0.1".into(),
                run: "run".into(),
                host,
                boot_id: "boot".into(),
                time_namespace: 5,
                pid_namespace: 6,
                pid,
                start: 7,
                parent: 8,
                forked: true,
                forked_ns,
                fork_returned_ns,
                uid: 9,
                rights,
                executable,
                command,
                rank,
                ranks: "0-3".into(),
                late: true,
                clock,
            }
        };
        let (one, same, other) = (header(1, "here"), header(2, "here"), header(3, "there"));
        let kept = [one.clone(), same.clone(), other.clone()].map(TraceHeader::from);
        assert!(Arc::ptr_eq(&kept[0].common, &kept[1].common) && !Arc::ptr_eq(&kept[0].common, &kept[2].common));
        assert_eq!(kept.map(|header| header.whole()), [one, same, other]);
    }
}
