//! The book of a run: the processes that have urscope's library or make traces, what they tell, and what is seen of
//! them.
//!
//! A process that is killed cannot record its end. The analysis needs it to decide whether the process still held a
//! mapping when its owner freed the memory. And a run is only as well judged as its processes are traced: whoever has
//! told of a trace, or has one as a look into its memory shows, must have it in the directory at the end
//! ([`Book::close`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::{fd::AsFd as _, fd::OwnedFd, unix::ffi::OsStrExt as _};
use std::{fs, io, mem::MaybeUninit, path::Path, thread, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use urscope_analyzer::analysis::is_running;
use urscope_analyzer::files::{Folder, owners};
use urscope_schema::host::ranks::process_name;
use urscope_schema::trace::process_times::{EarlyDeath, Notice, ProcessTimes};
use urscope_schema::trace::{UNFINISHED, writer_of};

use super::looks::{Kind, Looked};
use super::observation::{Observation, Written};
use super::{early_deaths, end_of_process, notices::Notices};

/// How many processes are waited for by a descriptor. The ends of more are seen when it is checked whether they run.
const DESCRIPTORS: usize = 512;

/// A process: its number and its start, as in the name of its trace.
pub(super) type Key = (u32, u64);

/// A process that has made a trace, or has the library.
struct Running {
    /// The pid namespace in which its number counts.
    pid_namespace: u64,
    /// Readable once the process has ended.
    pidfd: Option<OwnedFd>,
    /// When it was last seen running, in nanoseconds of `CLOCK_MONOTONIC`.
    alive_ns: u64,
    /// Whether it has made a trace.
    is_traced: bool,
    /// What it executes, of one that was looked at.
    program: Option<EarlyDeath>,
}

/// What ended a wait.
#[derive(Clone, Copy, Default)]
pub(super) struct Woken {
    pub(super) is_stopped: bool,
    /// Nothing did, but the time was over.
    pub(super) is_timeout: bool,
    /// The process whose end it was, and when it had ended at the latest.
    ended: Option<(Key, u64)>,
}

pub(super) struct Book {
    folder: Folder,
    /// Whether other users may make files in it.
    is_sticky: bool,
    /// Reports new files in the directory.
    created: Option<OwnedFd>,
    notices: Option<Notices>,
    running: HashMap<Key, Running>,
    /// How many of them are waited for by a descriptor.
    descriptors: usize,
    /// Those that have ended, and what there is to write if they turn out to have made traces.
    ended: HashMap<Key, Option<ProcessTimes>>,
    /// The traces that are begun, by their writers.
    begun: BTreeMap<Key, OsString>,
    /// The traces that processes told of, or that appeared: they must be there at the end.
    traces: BTreeSet<OsString>,
    /// The processes of which a look has shown that they made traces, or could not, and their names.
    looked: BTreeMap<Key, (Kind, String)>,
    /// What could not be observed.
    unobserved: BTreeSet<String>,
    seen: Observation,
    written: Written,
}

impl Book {
    /// Begins with the processes that write into a directory already. Those that have ended are ignored.
    pub(super) fn open(folder: Folder, run: &str, notices: io::Result<Notices>) -> Self {
        let created = created_in(&folder);
        let mut unobserved = BTreeSet::new();
        if let Err(error) = &created {
            let remedy = "raise fs.inotify.max_user_instances or max_user_watches";
            unobserved.insert(format!("the directory of the traces could not be watched ({error}; {remedy})"));
        }
        if let Err(error) = &notices {
            unobserved.insert(format!("there was no socket by which processes could tell of their traces ({error})"));
        }
        let mut book = Self {
            is_sticky: folder.is_sticky(),
            written: Written::beside(folder.clone()),
            folder,
            created: created.ok(),
            notices: notices.ok(),
            running: HashMap::new(),
            descriptors: 0,
            ended: HashMap::new(),
            begun: BTreeMap::new(),
            traces: BTreeSet::new(),
            looked: BTreeMap::new(),
            unobserved,
            seen: Observation::new(run),
        };
        for key in book.names().iter().filter_map(writer) {
            if is_running(key.0, key.1) {
                book.note_trace(key, None);
            } else {
                book.ended.insert(key, None);
            }
        }
        book
    }

    /// Waits until there is something to observe, or until `stop` is readable.
    pub(super) fn wait(&self, stop: &OwnedFd, most: Duration) -> Woken {
        let ends: Vec<_> =
            self.running.iter().filter_map(|(key, process)| Some((*key, process.pidfd.as_ref()?))).collect();
        let others = self.created.iter().map(OwnedFd::as_fd).chain(self.notices.iter().flat_map(Notices::descriptors));
        let descriptors = [stop.as_fd()].into_iter().chain(ends.iter().map(|(_, fd)| fd.as_fd())).chain(others);
        let mut waits: Vec<_> = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        let before = Scheduled::now();
        match poll(&mut waits, Some(&timeout)) {
            Ok(0) => Woken { is_timeout: true, ..Woken::default() },
            Ok(_) => {
                let at = now() - Scheduled::now().zip(before).map_or(0, |(now, before)| now.delay_since(before));
                let is_stopped = waits.first().is_some_and(is_ready);
                let ended = ends.iter().zip(waits.iter().skip(1)).find(|(_, wait)| is_ready(wait));
                // What else is ready may have woken this thread before.
                let is_only = waits.iter().filter(|wait| is_ready(wait)).count() == 1;
                Woken {
                    is_stopped,
                    is_timeout: false,
                    ended: ended.filter(|_| is_only).map(|((key, _), _)| (*key, at)),
                }
            }
            Err(Errno::INTR) => Woken::default(),
            Err(_) => {
                thread::sleep(most);
                Woken::default()
            }
        }
    }

    pub(super) fn observe(&mut self, woken: Woken) {
        let before = now();
        // Before their traces are looked for: one that has ended makes none any more.
        let ended = self.has_ended();
        let gone_ns = now();
        for name in self.new_names() {
            self.note_name(name);
        }
        for (notice, pidfd) in self.notices.as_mut().map(Notices::take).unwrap_or_default() {
            self.note_notice(notice, pidfd);
        }
        for key in ended {
            let gone_ns = woken.ended.filter(|(only, _)| *only == key).map_or(gone_ns, |(_, at)| at);
            self.note_end(key, gone_ns);
        }
        self.running.values_mut().for_each(|process| process.alive_ns = process.alive_ns.max(before));
    }

    fn has_ended(&self) -> Vec<Key> {
        let (by_fd, others): (Vec<_>, Vec<_>) = self.running.iter().partition(|(_, process)| process.pidfd.is_some());
        let fds = by_fd.iter().filter_map(|(_, process)| process.pidfd.as_ref());
        let mut waits: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let polled = poll(&mut waits, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok();
        let by_fd = by_fd.iter().zip(&waits).filter(|(_, wait)| polled && is_ready(wait)).map(|((key, _), _)| **key);
        let others = others.iter().map(|(key, _)| **key).filter(|(pid, start)| !is_running(*pid, *start));
        by_fd.chain(others).collect()
    }

    /// Notes that there is a file of this name.
    fn note_name(&mut self, name: OsString) {
        // In a sticky directory, others may make and remove files of any name.
        if self.is_sticky && !self.folder.has_file_of(Path::new(&name), |owner| owners().have(owner)) {
            return;
        }
        if let Some(key) = writer(&name) {
            self.note_trace(key, None);
            self.traces.insert(name);
        } else if let Some(key) = unfinished(&name) {
            self.begun.insert(key, name);
        }
    }

    /// Notes what a process has told.
    fn note_notice(&mut self, notice: Notice, pidfd: Option<OwnedFd>) {
        let Notice { pid_namespace, pid, start, trace, untraced, .. } = notice;
        if !trace.is_empty() {
            self.traces.insert(trace.into());
            self.note_trace((pid, start), pidfd.map(|pidfd| (pid_namespace, pidfd)));
        }
        if !untraced.is_empty() {
            let line = self.seen.without_trace((pid, start));
            self.add(ProcessTimes { pid_namespace, untraced, ..line });
        }
    }

    /// Notes what a look has shown.
    pub(super) fn note_looked(&mut self, Looked { key, own, executable, kind, loaded }: Looked) {
        let path = executable.to_string_lossy().into_owned();
        let name = process_name(&path, key.0, None);
        match kind {
            Kind::Bypassed => {
                let untraced = format!("{name} could not be traced, because LD_PRELOAD did not reach it");
                self.add(ProcessTimes { untraced, ..self.seen.without_trace(key) });
            }
            Kind::Preloaded if self.descriptors < DESCRIPTORS => {
                self.begin(key, None);
                let program = EarlyDeath { executable: path, ..early_deaths::rank_of(key.0) };
                self.running.entry(key).and_modify(|process| process.program = Some(program));
            }
            Kind::Preloaded => {}
            Kind::Opened => self.seen.opened = Some(format!("{name} loaded {loaded}")),
            Kind::Traced | Kind::Untraced => {
                self.looked.insert((own, key.1), (kind, name));
                // Its end is no longer one before its first call.
                self.running.entry(key).and_modify(|process| process.program = None);
            }
        }
    }

    /// Notes that a process has made a trace. One that has told it comes with its pid namespace and its pidfd.
    fn note_trace(&mut self, key: Key, told: Option<(u64, OwnedFd)>) {
        if let Some((pid_namespace, _)) = &told {
            // It is known better than by its number.
            self.ended.remove(&key);
            if self.running.get(&key).is_some_and(|process| process.pid_namespace != *pid_namespace) {
                self.running.remove(&key);
            }
        }
        self.begin(key, told);
        if let Some(process) = self.running.get_mut(&key) {
            process.is_traced = true;
        } else if let Some(times) = self.ended.get_mut(&key).and_then(Option::take) {
            self.add(times);
        }
    }

    /// Adds a process that is not known.
    fn begin(&mut self, key: Key, told: Option<(u64, OwnedFd)>) {
        if self.running.contains_key(&key) || self.ended.contains_key(&key) {
            return;
        }
        let has_told = told.is_some();
        let (pid_namespace, pidfd) =
            told.map_or((self.seen.pid_namespace, None), |(namespace, pidfd)| (namespace, Some(pidfd)));
        let pidfd = pidfd.or_else(|| pidfd_open(Pid::from_raw(key.0 as i32)?, PidfdFlags::empty()).ok());
        let alive_ns = now();
        // This check comes after the open, so the descriptor is not of a later process with this number.
        let runs = if has_told { !pidfd.as_ref().is_some_and(has_ended) } else { is_running(key.0, key.1) };
        if runs {
            let pidfd = pidfd.filter(|_| self.descriptors < DESCRIPTORS);
            self.descriptors += usize::from(pidfd.is_some());
            let process = Running { pid_namespace, pidfd, alive_ns, is_traced: false, program: None };
            self.running.insert(key, process);
        } else {
            let signal = end_of_process::signal(pidfd.filter(|_| has_told), key.0, key.1);
            let times = ProcessTimes { pid_namespace, gone_ns: now(), signal, ..self.seen.times(key) };
            self.ended.insert(key, Some(times));
        }
    }

    /// Notes the end of a process.
    fn note_end(&mut self, key: Key, gone_ns: u64) {
        let Some(Running { pid_namespace, pidfd, alive_ns, is_traced, program }) = self.running.remove(&key) else {
            return;
        };
        self.descriptors -= usize::from(pidfd.is_some());
        let signal = end_of_process::signal(pidfd, key.0, key.1);
        let times = ProcessTimes { pid_namespace, alive_ns, gone_ns, signal, ..self.seen.times(key) };
        if is_traced {
            self.ended.insert(key, None);
            return self.add(times);
        }
        self.ended.insert(key, Some(times));
        if let Some(program) = program
            && signal.is_some_and(|signal| early_deaths::matters(&program, signal))
        {
            self.add(ProcessTimes { signal, early_death: Some(program), ..self.seen.without_trace(key) });
        }
    }

    /// Notes that a signal ended the program, if it has made no trace. It may have ended too soon to be seen by a look.
    fn note_end_of_program(&mut self, death: ProcessTimes) {
        let is_known =
            |line: &&ProcessTimes| line.pid == death.pid && (line.early_death.is_some() || line.run.is_empty());
        if !self.seen.lines().iter().any(|line| is_known(&line)) {
            let line = self.seen.without_trace((death.pid, death.start));
            self.add(ProcessTimes { signal: death.signal, early_death: death.early_death, ..line });
        }
    }

    /// The names of files that were created since the last call.
    fn new_names(&mut self) -> Vec<OsString> {
        let Some(created) = &self.created else { return self.names() };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(created, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.unobserved.insert("too much changed in the directory of the traces at once".into());
                return self.names();
            }
            self.seen.is_moved |= event.events().intersects(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF);
            names.extend(event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned()));
        }
        names
    }

    fn names(&self) -> Vec<OsString> {
        self.folder.names().unwrap_or_default()
    }

    fn add(&mut self, line: ProcessTimes) {
        self.written.add(&mut self.seen, line);
    }

    /// Observes a last time, and compares what was seen with the traces that are there. A program that died of a signal
    /// is given as what there is to write if it has made no trace.
    pub(super) fn close(mut self, death: Option<ProcessTimes>) -> Observation {
        self.observe(Woken::default());
        if let Some(death) = death {
            self.note_end_of_program(death);
        }
        if self.notices.as_ref().is_some_and(|notices| notices.is_overrun) {
            self.unobserved.insert("more connections came to the socket of the run than could be heard".into());
        }
        match self.folder.names() {
            Ok(names) => self.compare(&names.into_iter().collect()),
            Err(error) => {
                self.unobserved.insert(format!("the directory of the traces could not be listed ({error})"));
            }
        }
        for unobserved in std::mem::take(&mut self.unobserved) {
            self.add(self.seen.unobserved(unobserved));
        }
        self.seen
    }

    /// Adds the processes whose traces are not there.
    fn compare(&mut self, there: &BTreeSet<OsString>) {
        const WHERE: &str =
            "it was removed, or urscope does not see it, as behind a mount or in another root directory";
        let mut without: BTreeMap<Key, String> = BTreeMap::new();
        for name in self.traces.difference(there) {
            let key = writer(name).unwrap_or_default();
            without.insert(key, format!("process {} could not keep its trace {}: {WHERE}", key.0, name.display()));
        }
        // In another time namespace, a process has another start.
        let traced: BTreeSet<u32> = self.traces.iter().chain(there).filter_map(writer).map(|(pid, _)| pid).collect();
        for (key, (kind, name)) in self.looked.iter().filter(|(key, _)| !traced.contains(&key.0)) {
            let why = if *kind == Kind::Traced { format!(": {WHERE}") } else { String::new() };
            without.insert(*key, format!("{name} could not write its trace{why}"));
        }
        for (key, name) in &self.begun {
            // A process that is killed before its first call leaves the file.
            if !traced.contains(&key.0) && !there.contains(name) {
                without.entry(*key).or_insert_with(|| format!("process {} could not write its trace", key.0));
            }
        }
        let told: BTreeSet<Key> = self.seen.of_the_run().map(|line| (line.pid, line.start)).collect();
        for (key, untraced) in without.into_iter().filter(|(key, _)| !told.contains(key)) {
            self.add(ProcessTimes { untraced, ..self.seen.without_trace(key) });
        }
    }
}

/// How this thread was scheduled so far.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    /// How long it had to wait for a processor, in nanoseconds.
    waited_ns: u64,
    /// How often it got one.
    times: u64,
}

impl Scheduled {
    /// `None` where the kernel does not count.
    fn now() -> Option<Self> {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut numbers = text.split_ascii_whitespace().skip(1).map(str::parse);
        Some(Self { waited_ns: numbers.next()?.ok()?, times: numbers.next()?.ok()? })
    }

    /// How long after what woke it the thread went on, on a busy machine; 0 if it is not sure that it waited only then.
    fn delay_since(self, before: Self) -> u64 {
        if self.times == before.times + 1 { self.waited_ns.saturating_sub(before.waited_ns) } else { 0 }
    }
}

fn writer(name: &OsString) -> Option<Key> {
    writer_of(name.to_str()?)
}

/// The writer of a trace that is not finished, from its name.
fn unfinished(name: &OsString) -> Option<Key> {
    writer_of(name.to_str()?.strip_suffix(UNFINISHED)?)
}

/// A descriptor that reports new files in a directory, and that it or one above it is moved.
fn created_in(folder: &Folder) -> io::Result<OwnedFd> {
    let created = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let moved = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
    inotify::add_watch(&created, folder.by_descriptor(), WatchFlags::CREATE | WatchFlags::MOVED_TO | moved)?;
    for above in folder.movable() {
        inotify::add_watch(&created, above, moved)?;
    }
    Ok(created)
}

/// Whether the process of a pidfd has ended.
pub(super) fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut wait = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut wait, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok() && wait.iter().any(is_ready)
}

fn is_ready(wait: &PollFd<'_>) -> bool {
    !wait.revents().is_empty()
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests;
