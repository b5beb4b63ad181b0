//! All processes before the law: their traces are merged by time and fed to one world.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    path::{Path, PathBuf},
};

use urscope_rules::{End, Place, Process, ProcessId, World};
use urscope_schema::call::Nanos;

use super::{
    Ended, JudgeError, alive,
    cursor::{Act, Cursor, Opened},
    tally::Tally,
};

/// The hearing of a run.
#[derive(Default)]
pub(super) struct Court {
    pub(super) parties: Vec<Party>,
    /// Files that hold no header yet.
    pub(super) empty: Vec<PathBuf>,
    pub(super) tally: Tally,
    pub(super) world: World,
    /// The parties by the numbers that the world gave them.
    pub(super) by_id: Vec<usize>,
    hosts: HashMap<(String, u64), u64>,
}

/// A process.
pub(super) struct Party {
    pub(super) cursor: Cursor,
    pub(super) host: u64,
    pub(super) id: Option<ProcessId>,
    /// A later trace of the same process exists: it became another program.
    execs: bool,
    pub(super) ended: Ended,
    pub(super) inside: Option<Place>,
}

impl Party {
    /// Whether calls may be missing in its trace.
    pub(super) fn has_gaps(&self) -> bool {
        self.cursor.skipped_lines > 0 || self.lost() > 0
    }

    /// How many calls were seen and not recorded.
    pub(super) fn lost(&self) -> u64 {
        self.cursor.footer.as_ref().map_or(0, |footer| footer.lost)
    }

    fn how_it_ended(&self) -> (Ended, End) {
        match &self.cursor.footer {
            _ if self.has_gaps() => (Ended::Incomplete, End::Incomplete),
            // The validation layer ended it in the middle of its work.
            Some(footer) if footer.how == "abort" => (Ended::Killed, End::Killed),
            Some(_) => (Ended::Exited, End::Exited),
            None if self.execs => (Ended::Exec, End::Exited),
            None if self.cursor.closed() => (Ended::Incomplete, End::Incomplete),
            None if alive::is_alive(&self.cursor.header) => (Ended::Running, End::Running),
            None => (Ended::Killed, End::Killed),
        }
    }
}

impl Court {
    /// Takes a file in.
    pub(super) fn summon(&mut self, path: &Path) -> Result<(), JudgeError> {
        match Cursor::open(path)? {
            Opened::Nothing => self.empty.push(path.to_owned()),
            Opened::Trace(cursor) => {
                let host = self.host_key(&cursor);
                let ended = Ended::Incomplete;
                self.parties.push(Party { cursor: *cursor, host, id: None, execs: false, ended, inside: None });
            }
        }
        Ok(())
    }

    /// Within equal keys clocks and handles mean the same. The boot says more than the host's name, which differs
    /// between containers that share a device.
    fn host_key(&mut self, cursor: &Cursor) -> u64 {
        let header = &cursor.header;
        let name = if header.boot_id.is_empty() { &header.host } else { &header.boot_id };
        let next = self.hosts.len() as u64;
        *self.hosts.entry((name.clone(), header.time_namespace)).or_insert(next)
    }

    /// Hears all of them to the end.
    pub(super) fn hear(&mut self) -> Result<(), JudgeError> {
        self.parties.sort_by_key(|party| (party.cursor.began(), party.host, party.cursor.header.pid));
        self.find_execs();
        let mut queue = BinaryHeap::new();
        let mut acts = Vec::with_capacity(self.parties.len());
        for (index, party) in self.parties.iter().enumerate() {
            let act = Act::Begin(party.cursor.began());
            queue.push(Reverse((act.order(Nanos(0)), index)));
            acts.push(act);
        }
        while let Some(Reverse((_, index))) = queue.pop() {
            let Some(act) = acts.get_mut(index) else { continue };
            let now = *act;
            self.feed(index, &now);
            let Some(party) = self.parties.get_mut(index).filter(|_| !matches!(now, Act::End(_))) else { continue };
            *act = party.cursor.next()?;
            queue.push(Reverse((act.order(party.cursor.now), index)));
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
                let header = &party.cursor.header;
                party.execs = latest.insert((party.host, header.pid, header.start), index).is_some();
            }
        }
    }

    fn feed(&mut self, index: usize, act: &Act) {
        let parent = self.parent_of(index);
        let Some(party) = self.parties.get_mut(index) else { return };
        let mut found = Vec::new();
        match (act, party.id) {
            (Act::Begin(_), _) => {
                let header = &party.cursor.header;
                let id = self.world.begin(Process {
                    pid: header.pid,
                    start: header.start,
                    host: party.host,
                    executable: header.executable.clone(),
                    forked_from: parent,
                });
                party.id = Some(id);
                self.by_id.push(index);
            }
            (Act::Enter(enter), Some(id)) => {
                self.world.check(id, enter, &mut found);
                self.world.enter(id, enter);
            }
            (Act::Exit(exit), Some(id)) => self.world.exit(id, exit, &mut found),
            (Act::End(at), Some(id)) => {
                party.inside = self.world.inside(id);
                let (ended, how) = party.how_it_ended();
                party.ended = ended;
                self.world.end(id, how, *at, &mut found);
            }
            (_, None) => {}
        }
        self.tally.add(&mut found);
    }

    /// The process that this one is a forked copy of: the latest of its parent's number that runs the same program. One
    /// whose parent is not to be found is a child of somebody unknown.
    fn parent_of(&self, index: usize) -> Option<ProcessId> {
        let party = self.parties.get(index).filter(|party| party.id.is_none() && party.cursor.header.forked)?;
        let header = &party.cursor.header;
        let begun = self.by_id.iter().rev().filter_map(|index| self.parties.get(*index));
        let parent = begun.filter(|other| other.host == party.host).find(|other| {
            let other = &other.cursor.header;
            other.pid == header.parent && other.executable == header.executable
        });
        Some(parent.and_then(|parent| parent.id).unwrap_or(ProcessId::UNKNOWN))
    }
}
