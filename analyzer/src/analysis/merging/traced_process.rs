//! One process of a run, as its trace describes it.

use std::sync::{Arc, LazyLock};

use urscope_rules::{End, Place, ProcessId, Rights};
use urscope_schema::call::Nanos;
use urscope_schema::trace::records::{self, Header};

use crate::analysis::reading::{Notes, is_alive};
use crate::analysis::{Ended, Stacks};

/// A traced process.
#[derive(Clone)]
pub(crate) struct TracedProcess {
    /// The header of its trace.
    pub(crate) header: Arc<Header>,
    /// What its trace says besides its calls; set when the trace was read to its end.
    pub(crate) notes: Arc<Notes>,
    /// Its call stacks, as far as its trace was read.
    pub(crate) stacks: Stacks,
    pub(crate) host: u64,
    /// When it began, on its host's monotonic clock: when its trace begins, or, if the process that forked it was
    /// traced by then, when the fork returned.
    pub(crate) began: Nanos,
    pub(crate) id: Option<ProcessId>,
    /// When the next trace of the same process begins: it became another program by `exec` before that.
    pub(crate) execs: Option<Nanos>,
    pub(crate) ended: Ended,
    /// The call that it was in then.
    pub(crate) inside: Option<Place>,
    /// The number of the signal that ended it; 0 if it ended by itself, `None` if that is not known.
    pub(crate) signal: Option<u32>,
}

/// The notes of all processes whose traces are being read.
static NONE: LazyLock<Arc<Notes>> = LazyLock::new(Arc::default);

impl TracedProcess {
    /// A process whose first event was not fed yet.
    pub(crate) fn new(header: &Arc<Header>, host: u64) -> Self {
        let began = Nanos(header.clock.monotonic_ns);
        let header = Arc::clone(header);
        let notes = Arc::clone(&NONE);
        Self {
            header,
            notes,
            stacks: Stacks::default(),
            host,
            began,
            id: None,
            execs: None,
            ended: Ended::Incomplete,
            inside: None,
            signal: None,
        }
    }

    /// Whether it has forked a process with that header, or is another program of the process that has.
    pub(crate) fn may_have_forked(&self, child: &Header, host: u64) -> bool {
        let own = &self.header;
        (self.host, own.pid) == (host, child.parent) && own.executable == child.executable
    }

    /// Whether it was there before a process with that header, with urscope from its start on.
    pub(crate) fn is_older_than(&self, other: &Header) -> bool {
        !self.header.late && self.header.started().zip(other.started()).is_some_and(|(own, its)| own < its)
    }

    /// Whether calls may be missing from its trace.
    pub(crate) fn has_gaps(&self) -> bool {
        self.notes.skipped_lines > 0 || self.lost() > 0
    }

    /// The number of intercepted calls that could not be recorded.
    pub(crate) fn lost(&self) -> u64 {
        // The trace of a killed process has no footer, and more may be lost behind one.
        self.notes.closing.map_or(0, |closing| closing.lost).max(self.notes.lost)
    }

    pub(crate) fn how_it_ended(&self) -> (Ended, End) {
        match &self.notes.closing {
            _ if self.has_gaps() => (Ended::Incomplete, End::Incomplete),
            Some(closing) if closing.aborted => (Ended::Killed, End::Killed),
            Some(_) => (Ended::Exited, End::Exited),
            None if self.execs.is_some() || self.notes.exec.is_some() => (Ended::Exec, End::Exec),
            None if self.notes.closed => (Ended::Incomplete, End::Incomplete),
            None if is_alive(&self.header) => (Ended::Running, End::Running),
            None => (Ended::Killed, End::Killed),
        }
    }
}

/// What the kernel lets a process do, according to its header.
pub(crate) fn rights(header: &Header) -> Rights {
    let records::Rights { ptrace_scope, sys_ptrace, seccomp, dumpable, descriptors } = header.rights;
    // A header that does not name its namespace does not name its user either.
    let pid_namespace = Some(header.pid_namespace).filter(|namespace| *namespace != 0);
    let uid = pid_namespace.map(|_| header.uid);
    Rights { uid, pid_namespace, ptrace_scope, seccomp, dumpable, traces_any: sys_ptrace, descriptors }
}

/// The boot id, or the host's name if that is not known, and the time namespace.
pub(crate) fn clock_of(header: &Header) -> (&str, u64) {
    let boot = if header.boot_id.is_empty() { &header.host } else { &header.boot_id };
    (boot, header.time_namespace)
}
