//! All processes before the law: their traces are merged by time and fed to one world.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, binary_heap::PeekMut},
    path::PathBuf,
    sync::Arc,
};

use urscope_rules::{End, Place, Process, ProcessId, Rights, Tracker};
use urscope_schema::{
    call::Nanos,
    trace::records::{self, Header},
};

use super::{
    Ended, JudgeError, Listener, Progress,
    act::{Act, Moment},
    alive,
    axis::{self, Axis},
    cursor::{Cursor, Notes, Opened},
    lanes::{self, Lanes},
    tally::Tally,
};

/// The hearing of a run.
#[derive(Default)]
pub(super) struct Court {
    pub(super) parties: Vec<Party>,
    /// Files that hold no header yet.
    pub(super) empty: Vec<PathBuf>,
    pub(super) tally: Tally,
    pub(super) world: Tracker,
    /// The parties by the numbers that the world gave them.
    pub(super) by_id: Vec<usize>,
    hosts: HashMap<(String, u64), u64>,
    /// How the clock of each host lies on the axis of time, by the hosts' numbers.
    axes: Vec<Axis>,
}

/// What the kernel lets a process do, as its header says.
fn rights(header: &Header) -> Rights {
    let records::Rights { ptrace_scope, sys_ptrace, seccomp, dumpable, descriptors } = header.rights;
    // A header that does not name its namespace does not name its user either.
    let pid_namespace = Some(header.pid_namespace).filter(|namespace| *namespace != 0);
    let uid = pid_namespace.map(|_| header.uid);
    Rights { uid, pid_namespace, ptrace_scope, seccomp, dumpable, traces_any: sys_ptrace, descriptors }
}

/// The boot, or the host's name where it is not known, and the time namespace.
fn clock_of(header: &Header) -> (&str, u64) {
    let boot = if header.boot_id.is_empty() { &header.host } else { &header.boot_id };
    (boot, header.time_namespace)
}

/// A process.
pub(super) struct Party {
    /// Who it is. The moment of its clock is the moment at which it began.
    pub(super) header: Header,
    /// Complete when it has ended.
    pub(super) notes: Notes,
    /// Its trace, until the hearing begins.
    cursor: Option<Box<Cursor>>,
    pub(super) host: u64,
    pub(super) id: Option<ProcessId>,
    /// A later trace of the same process exists: it became another program.
    execs: bool,
    pub(super) ended: Ended,
    pub(super) inside: Option<Place>,
}

impl Party {
    /// When it began.
    pub(super) fn began(&self) -> Nanos {
        Nanos(self.header.clock.monotonic_ns)
    }

    /// Whether calls may be missing in its trace.
    pub(super) fn has_gaps(&self) -> bool {
        self.notes.skipped_lines > 0 || self.lost() > 0
    }

    /// How many calls were seen and not recorded.
    pub(super) fn lost(&self) -> u64 {
        self.notes.footer.as_ref().map_or(0, |footer| footer.lost)
    }

    fn how_it_ended(&self) -> (Ended, End) {
        match &self.notes.footer {
            _ if self.has_gaps() => (Ended::Incomplete, End::Incomplete),
            // The validation layer ended it in the middle of its work.
            Some(footer) if footer.how == "abort" => (Ended::Killed, End::Killed),
            Some(_) => (Ended::Exited, End::Exited),
            None if self.execs => (Ended::Exec, End::Exited),
            None if self.notes.closed => (Ended::Incomplete, End::Incomplete),
            None if alive::is_alive(&self.header) => (Ended::Running, End::Running),
            None => (Ended::Killed, End::Killed),
        }
    }
}

impl Court {
    /// Takes files in.
    pub(super) fn summon(&mut self, files: &[PathBuf]) -> Result<(), JudgeError> {
        for path in files {
            match Cursor::open(path, lanes::buffer_size(files.len()))? {
                Opened::Nothing => self.empty.push(path.clone()),
                Opened::Trace(mut cursor) => {
                    if !lanes::stay_open(files.len()) {
                        cursor.rest();
                    }
                    let header = cursor.header().clone();
                    let host = self.host_key(&header);
                    let (ended, notes) = (Ended::Incomplete, Notes::default());
                    let cursor = Some(cursor);
                    self.parties.push(Party {
                        header,
                        notes,
                        cursor,
                        host,
                        id: None,
                        execs: false,
                        ended,
                        inside: None,
                    });
                }
            }
        }
        Ok(())
    }

    /// Within equal keys clocks and handles mean the same. The boot says more than the host's name, which differs
    /// between containers that share a device.
    fn host_key(&mut self, header: &Header) -> u64 {
        let (boot, time_namespace) = clock_of(header);
        let next = self.hosts.len() as u64;
        *self.hosts.entry((boot.to_owned(), time_namespace)).or_insert(next)
    }

    /// Finds out how the clocks of the hosts lie on the axis of time.
    fn relate(&mut self) {
        let mut began = vec![(Nanos(u64::MAX), u32::MAX, 0); self.hosts.len()];
        for party in &self.parties {
            let Header { pid, clock, .. } = &party.header;
            if let Some(first) = began.get_mut(party.host as usize)
                && (party.began(), *pid) < (first.0, first.1)
            {
                *first = (party.began(), *pid, clock.realtime_ns);
            }
        }
        let first = axis::first(began.iter().map(|(.., real)| *real));
        let axis = |(zero, _, real)| Axis { zero, shift: axis::shift(real, first) };
        self.axes = began.into_iter().map(axis).collect();
    }

    /// How the clock of a host lies on the axis of time.
    pub(super) fn axis(&self, host: u64) -> Axis {
        self.axes.get(host as usize).copied().unwrap_or_default()
    }

    /// A moment of a process in nanoseconds since the run began.
    pub(super) fn at(&self, who: ProcessId, time: Nanos) -> u64 {
        let party = self.by_id.get(who.0 as usize).and_then(|index| self.parties.get(*index));
        party.map_or_else(Axis::default, |party| self.axis(party.host)).at(time)
    }

    /// Hears all of them to the end.
    pub(super) fn hear(&mut self, progress: &Arc<Progress>, listener: &mut dyn Listener) -> Result<(), JudgeError> {
        self.relate();
        let axes = self.axes.clone();
        // The verdict over all nodes has the same order, so that the numbers of processes are the same.
        let order = |party: &Party| {
            let axis = axes.get(party.host as usize).copied().unwrap_or_default();
            let (boot, time_namespace) = clock_of(&party.header);
            (axis.at(party.began()), boot.to_owned(), time_namespace, party.header.pid)
        };
        self.parties.sort_by_cached_key(order);
        self.find_execs();
        let begun = |party: &mut Party| Some((Act::Begin(party.began()), party.cursor.take()?));
        let mut lanes = Lanes::start(self.parties.iter_mut().filter_map(begun).collect(), progress);
        // Who has what to do next is in the lanes: what is sorted should be small.
        let axes: Vec<_> = self.parties.iter().map(|party| self.axis(party.host)).collect();
        let on_axis = |index: usize, (time, rank): Moment| {
            let axis = axes.get(index).copied().unwrap_or_default();
            Reverse(((axis.at(time), rank), index))
        };
        let moments = self.parties.iter().map(|party| Act::Begin(party.began()).order(Nanos(0)));
        let mut queue: BinaryHeap<_> = moments.enumerate().map(|(index, moment)| on_axis(index, moment)).collect();
        while let Some(mut first) = queue.peek_mut() {
            let Reverse(((now, _), index)) = *first;
            if let Some(notes) = lanes.notes_at_end(index)
                && let Some(party) = self.parties.get_mut(index)
            {
                party.notes = *notes;
            }
            if let Some(act) = lanes.act(index) {
                listener.until(&self.world, now);
                self.feed(index, act, listener);
            }
            match lanes.step(index)? {
                Some(moment) => *first = on_axis(index, moment),
                None => drop(PeekMut::pop(first)),
            }
        }
        let mut found = Vec::new();
        self.world.finish(&mut found);
        self.tally.add(&mut found);
        Ok(())
    }

    fn find_execs(&mut self) {
        let mut latest = HashMap::new();
        for index in (0..self.parties.len()).rev() {
            if let Some(party) = self.parties.get_mut(index) {
                let header = &party.header;
                party.execs = latest.insert((party.host, header.pid, header.start), index).is_some();
            }
        }
    }

    fn feed(&mut self, index: usize, act: &Act, listener: &mut dyn Listener) {
        let parent = self.parent_of(index);
        let axis = self.parties.get(index).map_or_else(Axis::default, |party| self.axis(party.host));
        let Some(party) = self.parties.get_mut(index) else { return };
        let mut found = Vec::new();
        match (act, party.id) {
            (Act::Begin(_), _) => {
                let header = &party.header;
                let id = self.world.begin(Process {
                    pid: header.pid,
                    start: header.start,
                    host: party.host,
                    executable: header.executable.clone(),
                    forked_from: parent,
                    rights: rights(header),
                });
                party.id = Some(id);
                listener.begin(&self.world, id, axis.at(party.began()), header);
                self.by_id.push(index);
            }
            (Act::Enter(enter), Some(id)) => {
                listener.enter(&self.world, id, axis.at(enter.time), enter);
                self.world.check(id, enter, &mut found);
                self.world.enter(id, enter);
            }
            (Act::Exit(exit), Some(id)) => {
                self.world.exit(id, exit, &mut found);
                listener.exit(&self.world, id, axis.at(exit.time), exit);
            }
            (Act::Thread(tid, name), Some(id)) => listener.thread(&self.world, id, *tid, name.text()),
            (Act::Descriptors(open, at), Some(id)) => {
                self.world.descriptors(id, *open, *at);
                listener.descriptors(&self.world, id, axis.at(*at), *open);
            }
            (Act::End(at), Some(id)) => {
                party.inside = self.world.inside(id);
                let (ended, how) = party.how_it_ended();
                party.ended = ended;
                listener.end(&self.world, id, axis.at(*at), ended);
                self.world.missing(id, party.lost(), party.notes.skipped_lines);
                self.world.end(id, how, *at, &mut found);
            }
            (_, None) => {}
        }
        self.tally.add(&mut found);
    }

    /// The process that this one is a forked copy of: the latest of its parent's number that runs the same program. One
    /// whose parent is not to be found is a child of somebody unknown.
    fn parent_of(&self, index: usize) -> Option<ProcessId> {
        let party = self.parties.get(index).filter(|party| party.id.is_none() && party.header.forked)?;
        let header = &party.header;
        let begun = self.by_id.iter().rev().filter_map(|index| self.parties.get(*index));
        let parent = begun.filter(|other| other.host == party.host).find(|other| {
            let other = &other.header;
            other.pid == header.parent && other.executable == header.executable
        });
        Some(parent.and_then(|parent| parent.id).unwrap_or(ProcessId::UNKNOWN))
    }
}
