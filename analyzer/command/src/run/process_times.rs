//! Observes until when the traced processes are there, and writes it beside their traces.
//!
//! A process that is killed cannot record its end. The analysis needs it to decide whether the process still held a mapping when
//! its owner freed the memory. A thread waits for new traces and, by a pidfd each, for the ends of their processes. A process that makes its
//! trace connects to a socket of this thread: that gives its pidfd, however soon it ends, and says if the trace cannot be made. The thread also
//! sees what must not happen to the traces and their directory ([`Seen`]).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::{fd::AsFd as _, fd::OwnedFd, unix::ffi::OsStrExt as _};
use std::sync::mpsc::{self, Receiver, Sender};
use std::{fs, fs::File, mem::MaybeUninit, path::Path, thread, time::Duration};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use urscope_analyzer::analysis::{boot_id, is_running, pid_namespace};
use urscope_analyzer::files::{Access, Folder};
use urscope_schema::ranks::process_name;
use urscope_schema::trace::process_times::{FILE, Notice, ProcessTimes};
use urscope_schema::trace::write::{UNFINISHED, writer_of};

use super::bypassed::{Bypassed, Looked};
use super::{early_deaths::Untraced, end_of_process, notices::Notices};
use crate::output::complain;

/// How often it is checked at least that the processes still run. Their ends are seen at once.
const PERIOD: Duration = Duration::from_millis(500);

/// How long the file system may take for the last lines.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// How many processes are waited for by a descriptor. The ends of more are seen within [`PERIOD`].
const DESCRIPTORS: usize = 256;

/// Observes the processes that write traces into a directory.
pub(super) struct ProcessObserver {
    /// The name of the socket by which processes tell that they make their traces; empty if there is none.
    pub(super) address: String,
    stop: OwnedFd,
    program: Sender<ProcessTimes>,
    ended: Receiver<Seen>,
}

impl ProcessObserver {
    /// Begins to observe. Processes of earlier runs that have ended are ignored.
    /// Also looks for processes that do not have `library`.
    pub(super) fn start(folder: Folder, run: &str, library: Option<&Path>) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        // The ranks of a job have one run.
        let address = format!("urscope-{run}-{}", std::process::id());
        let notices = Notices::listen(&address, run).ok();
        let address = if notices.is_some() { address } else { String::new() };
        let mut processes = Processes::new(folder, run, notices);
        let mut bypassed = library.and_then(Bypassed::of);
        let ((end, ended), (program, of_program)) = (mpsc::channel(), mpsc::channel());
        thread::Builder::new().name("process-times".into()).spawn(move || {
            let pause = |bypassed: Option<&Bypassed>| bypassed.map_or(PERIOD, |bypassed| bypassed.pause().min(PERIOD));
            while !processes.wait(&stopped, pause(bypassed.as_ref())) {
                processes.observe();
                for looked in bypassed.iter_mut().flat_map(Bypassed::look) {
                    processes.note_looked(looked);
                }
            }
            processes.observe();
            if let Ok(death) = of_program.try_recv() {
                processes.note_end_of_program(death);
            }
            drop(end.send(processes.seen));
        })?;
        Ok(Self { address, stop, program, ended })
    }

    /// Observes a last time; then everything is written, unless the file system does not answer. A program that died of a signal is given
    /// as what there is to write if it has made no trace.
    pub(super) fn finish(self, death: Option<ProcessTimes>) -> Seen {
        if let Some(death) = death {
            drop(self.program.send(death));
        }
        match rustix::io::write(&self.stop, &1_u64.to_ne_bytes()) {
            Ok(_) => self.ended.recv_timeout(WRITTEN_WITHIN).unwrap_or_default(),
            Err(_) => Seen::default(),
        }
    }
}

/// What happened to the directory while the program ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) appeared: BTreeSet<OsString>,
    /// Those that were begun, by their writers, and have not appeared.
    pub(super) begun: BTreeMap<Key, OsString>,
    /// The processes that could not write their traces, and why.
    pub(super) untraced: Vec<String>,
    /// The numbers of those that signals ended before they made traces.
    pub(super) died_early: BTreeSet<u32>,
    /// Whether the directory, or one above it that another user can move, was moved.
    pub(super) is_moved: bool,
}

/// A process: its number and its start, as in the name of its trace.
pub(super) type Key = (u32, u64);

struct Running {
    /// The pid namespace in which its number counts.
    pid_namespace: u64,
    /// Readable once the process has ended.
    pidfd: Option<OwnedFd>,
    /// When it was last seen running, in nanoseconds of `CLOCK_MONOTONIC`.
    alive_ns: u64,
}

/// The processes that write traces into a directory. What cannot be read or written only costs precision.
struct Processes {
    folder: Folder,
    /// The name of the run.
    run: String,
    boot_id: String,
    pid_namespace: u64,
    /// Reports new files in the directory.
    created: Option<OwnedFd>,
    notices: Option<Notices>,
    known: HashSet<Key>,
    seen: Seen,
    running: HashMap<Key, Running>,
    untraced: Untraced,
    /// The processes whose ends have woken this thread, and when they had ended at the latest.
    woken_by: (HashSet<Key>, u64),
    file: Option<File>,
    /// Whether the user knows that the file cannot be written.
    said: bool,
}

impl Processes {
    fn new(folder: Folder, run: &str, notices: Option<Notices>) -> Self {
        let created = created_in(&folder).ok();
        let (known, running, seen) = (HashSet::new(), HashMap::new(), Seen::default());
        let (boot_id, pid_namespace) = (boot_id(), pid_namespace());
        let mut processes = Self {
            folder,
            run: run.to_owned(),
            boot_id,
            pid_namespace,
            created,
            notices,
            known,
            seen,
            running,
            untraced: Untraced::default(),
            woken_by: Default::default(),
            file: None,
            said: false,
        };
        for writer in processes.names().iter().filter_map(writer) {
            if is_running(writer.0, writer.1) {
                processes.add(writer, None);
            }
            processes.known.insert(writer);
        }
        processes
    }

    /// Waits until there is something to observe. Returns whether `stop` is readable.
    fn wait(&mut self, stop: &OwnedFd, most: Duration) -> bool {
        let ends: Vec<_> =
            self.running.iter().filter_map(|(key, process)| Some((*key, process.pidfd.as_ref()?))).collect();
        let told = self.notices.iter().flat_map(Notices::descriptors).chain(self.untraced.descriptors());
        let others: Vec<_> =
            [stop.as_fd()].into_iter().chain(self.created.as_ref().map(OwnedFd::as_fd)).chain(told).collect();
        let ends_at = others.len();
        let descriptors = others.into_iter().chain(ends.iter().map(|(_, fd)| fd.as_fd()));
        let mut waits: Vec<_> = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        let before = Scheduled::now();
        match poll(&mut waits, Some(&timeout)) {
            Ok(_) => {
                let woken_ns = now() - Scheduled::now().zip(before).map_or(0, |(now, before)| now.delay_since(before));
                let ended = ends.iter().zip(waits.iter().skip(ends_at)).filter(|(_, wait)| is_ready(wait));
                let is_stopped = waits.first().is_some_and(is_ready);
                self.woken_by = (ended.map(|((key, _), _)| *key).collect(), woken_ns);
                is_stopped
            }
            Err(Errno::INTR) => false,
            Err(_) => {
                thread::sleep(most);
                false
            }
        }
    }

    fn observe(&mut self) {
        // Before their traces are looked for: one that has ended makes none any more.
        let untraced = self.untraced.ended();
        let names = self.new_names();
        self.seen.begun.extend(names.iter().filter_map(|name| Some((unfinished(name)?, name.clone()))));
        // A process tells that it makes a trace before it has made it, and afterwards that it could not.
        for (notice, pidfd) in self.notices.as_mut().map(Notices::take).unwrap_or_default() {
            self.note(notice, pidfd);
        }
        for name in names {
            if let Some(writer) = writer(&name) {
                if !self.known.contains(&writer) {
                    self.add(writer, None);
                }
                self.seen.begun.remove(&writer);
                self.seen.appeared.insert(name);
            }
        }
        for key in untraced {
            if let Some((process, signal)) = self.untraced.take(key) {
                let (pid, start) = key;
                let died = ProcessTimes { pid, start, signal: Some(signal), ..ProcessTimes::default() };
                self.note_early_death(ProcessTimes { run: self.run.clone(), early_death: Some(process), ..died });
            }
        }
        let before = now();
        let ended = self.ended();
        let gone_ns = now();
        for writer in ended {
            if let Some(process) = self.running.remove(&writer) {
                let (woken_by, woken_ns) = &self.woken_by;
                let gone_ns = if woken_by.contains(&writer) { *woken_ns } else { gone_ns };
                self.write(writer, process, gone_ns);
            }
        }
        self.running.values_mut().for_each(|process| process.alive_ns = before);
    }

    fn ended(&self) -> Vec<Key> {
        let (by_fd, others): (Vec<_>, Vec<_>) = self.running.iter().partition(|(_, process)| process.pidfd.is_some());
        let fds = by_fd.iter().filter_map(|(_, process)| process.pidfd.as_ref());
        let mut waits: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let polled = poll(&mut waits, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok();
        let by_fd = by_fd.iter().zip(&waits).filter(|(_, wait)| polled && is_ready(wait)).map(|((key, _), _)| **key);
        let others = others.iter().map(|(key, _)| **key).filter(|(pid, start)| !is_running(*pid, *start));
        by_fd.chain(others).collect()
    }

    /// Adds a process, as it tells it.
    fn note(&mut self, notice: Notice, pidfd: Option<OwnedFd>) {
        let Notice { pid_namespace, pid, start, untraced, .. } = notice;
        if untraced.is_empty() {
            // Another program of the process makes another trace.
            let is_new = !self.known.contains(&(pid, start)) && self.running.len() < DESCRIPTORS;
            if let Some(pidfd) = pidfd.filter(|_| is_new) {
                self.add((pid, start), Some((pid_namespace, pidfd)));
            }
            return;
        }
        self.seen.begun.remove(&(pid, start));
        let (boot_id, run) = (self.boot_id.clone(), notice.run);
        self.seen.untraced.push(untraced.clone());
        self.append(&ProcessTimes { boot_id, pid_namespace, pid, start, run, untraced, ..ProcessTimes::default() });
    }

    /// Notes a process of the run, which goes on without a trace or may make one.
    fn note_looked(&mut self, process: Looked) {
        let Looked { key, executable, is_traced } = process;
        let (pid, start) = key;
        if !is_traced {
            let name = process_name(&executable.to_string_lossy(), pid, None);
            let untraced = format!("{name} could not be traced, because LD_PRELOAD did not reach it");
            let (pid_namespace, run) = (self.pid_namespace, self.run.clone());
            self.note(Notice { run, pid_namespace, pid, start, untraced }, None);
        } else if !self.known.contains(&key) {
            self.untraced.add(key, &executable);
        }
    }

    /// Writes that a signal ended a process before it made a trace.
    fn note_early_death(&mut self, death: ProcessTimes) {
        self.seen.died_early.insert(death.pid);
        let (boot_id, pid_namespace) = (self.boot_id.clone(), self.pid_namespace);
        self.append(&ProcessTimes { boot_id, pid_namespace, ..death });
    }

    /// Writes that a signal ended the program, if it has made no trace. It may have ended too soon to be seen by a look.
    fn note_end_of_program(&mut self, death: ProcessTimes) {
        let is_known = self.known.iter().any(|(pid, _)| *pid == death.pid);
        if !is_known && !self.seen.died_early.contains(&death.pid) {
            self.note_early_death(death);
        }
    }

    /// Adds a process; one that has told it with its pid namespace and its pidfd.
    fn add(&mut self, (pid, start): Key, told: Option<(u64, OwnedFd)>) {
        self.known.insert((pid, start));
        self.untraced.remove((pid, start));
        let has_told = told.is_some();
        let (pid_namespace, pidfd) = told.map_or((self.pid_namespace, None), |(namespace, fd)| (namespace, Some(fd)));
        let fd = || pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok();
        let pidfd = pidfd.or_else(fd);
        let alive_ns = now();
        // This check comes after the open, so the descriptor is not of a later process with this number.
        let runs = if has_told { pidfd.as_ref().is_some_and(|fd| !has_ended(fd)) } else { is_running(pid, start) };
        if runs {
            let pidfd = pidfd.filter(|_| self.running.len() < DESCRIPTORS);
            self.running.insert((pid, start), Running { pid_namespace, pidfd, alive_ns });
        } else {
            let pidfd = pidfd.filter(|_| has_told);
            self.write((pid, start), Running { pid_namespace, pidfd, alive_ns: 0 }, now());
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

    fn write(&mut self, (pid, start): Key, Running { pid_namespace, pidfd, alive_ns }: Running, gone_ns: u64) {
        let (boot_id, signal) = (self.boot_id.clone(), end_of_process::signal(pidfd, pid, start));
        let of_process = ProcessTimes { boot_id, pid_namespace, pid, start, ..ProcessTimes::default() };
        self.append(&ProcessTimes { alive_ns, gone_ns, signal, ..of_process });
    }

    fn append(&mut self, times: &ProcessTimes) {
        let Ok(mut line) = serde_json::to_vec(times) else { return };
        line.push(b'\n');
        if self.file.is_none() && !self.said {
            match self.folder.own_file(FILE, Access::Append) {
                Ok(file) => self.file = Some(file),
                Err(error) => {
                    self.said = true;
                    let path = self.folder.path().join(FILE);
                    complain(format_args!(
                        "{} is not used: {error}; when a process was killed is known less well, so remove it",
                        path.display()
                    ));
                }
            }
        }
        // One write per line: runs that share a directory append to one file.
        drop(self.file.as_mut().map(|file| file.write_all(&line)));
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
