//! The ranks of an MPI job of which each has an urscope of its own: `mpiexec urscope run -- ./app`.
//!
//! What one rank exports, another one opens, so a rank alone cannot be judged. The ranks of a job on one host therefore share a directory
//! and the name of the run, and the last one to end judges all. They agree by a file in the directory, to which each adds a line when
//! it begins and one when it ends, under a lock. A rank that is killed counts as ended.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};
use std::{os::unix::ffi::OsStrExt as _, process, thread};

use rustix::system::uname;
use urscope_analyzer::analysis::{Limit, LimitCause, is_running};
use urscope_analyzer::files::{Access, Folder};
use urscope_schema::launcher;

use super::descendants::{Stat, stat};
use super::early_deaths::value;

/// The variables that name a job, in the order in which they are asked for.
const NAMES: [&str; 2] = ["SLURM_JOB_ID", "PALS_APID"];

/// How long the last rank waits for ranks that have not begun yet, and a rank for the file that another one has locked.
const PATIENCE: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) rank: u32,
    /// A name that no other job has, nor this one on another host, which may share the disk. A part of a path.
    pub(crate) name: String,
    /// The number of ranks on this host, where the launcher tells it.
    here: Option<usize>,
    /// The number of ranks that may be on this host: that, or else of all ranks. `None` if Slurm, which has many hosts, does not tell it.
    size: Option<usize>,
}

impl Job {
    /// The job that a launcher started this process for; `None` where there is none, or no other rank.
    pub(crate) fn of_this_process() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name);
        let (of_rank, _) = launcher::named_rank(variable)?;
        let (pid, start) = launcher(process::id(), of_rank)?;
        Self::new(variable, OsStr::from_bytes(uname().nodename().to_bytes()), pid, start)
    }

    /// The job, given its launcher: the nearest ancestor that is no rank of it.
    fn new(variable: impl Fn(&str) -> Option<OsString>, host: &OsStr, pid: u32, start: u64) -> Option<Self> {
        let rank = launcher::rank(&variable)?;
        let launcher::Size { all, here, by_slurm } = launcher::Size::new(&variable)?;
        let named = NAMES.into_iter().find_map(|name| Some(plain(&variable(name)?) + "-"));
        let name = format!("{}{}-{pid}-{start:x}", named.unwrap_or_default(), plain(host));
        Some(Self { rank, name, here, size: here.or_else(|| Some(all).filter(|_| !by_slurm)) })
    }

    /// What is not known where only so many ranks ran under urscope.
    pub(crate) fn absent(&self, joined: usize) -> Option<Limit> {
        let size = self.size.filter(|size| joined < *size)?;
        let text = format!(
            "{joined} of the {size} ranks of the job ran under urscope here: what the others did with memory that they share is not known"
        );
        Some(Limit { cause: LimitCause::NotTraced, text })
    }

    /// Adds this rank to those that have begun in the directory.
    pub(crate) fn begin(self, folder: &Folder) -> io::Result<Ranks> {
        let name = format!(".urscope-ranks-{}", self.name);
        let start = stat(process::id()).map_or(0, |stat| stat.start);
        let ranks = Ranks { job: self, folder: folder.clone(), name, start };
        ranks.change(|known| known.push(Known { pid: process::id(), start, has_ended: false }))?;
        Ok(ranks)
    }
}

/// The ranks that share a directory.
#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) job: Job,
    folder: Folder,
    name: String,
    /// When this process began, as in `/proc/PID/stat`.
    start: u64,
}

/// One of the ranks: the urscope that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    pid: u32,
    start: u64,
    has_ended: bool,
}

impl Ranks {
    /// The file by which the ranks agree.
    pub(crate) fn path(&self) -> String {
        self.folder.path().join(&self.name).display().to_string()
    }

    /// Adds this rank to those that have ended. Returns, if it was the last, how many there were.
    /// The error says why the ranks cannot agree.
    pub(crate) fn end(&self) -> io::Result<Option<usize>> {
        let began = Instant::now();
        loop {
            let (mut is_last, mut is_known, mut joined) = (None, true, 0);
            self.change(|known| {
                joined = known.len();
                is_known = known.iter().any(|rank| rank.pid == process::id() && rank.start == self.start);
                let has_ended =
                    |rank: &Known| rank.pid == process::id() || rank.has_ended || !is_running(rank.pid, rank.start);
                let all_began = self.job.here.is_none_or(|here| known.len() >= here) || began.elapsed() >= PATIENCE;
                let all_ended = known.iter().all(has_ended);
                is_last = (all_began || !all_ended).then_some(all_ended);
                if is_last.is_some() {
                    let own = known.iter_mut().filter(|rank| rank.pid == process::id() && rank.start == self.start);
                    own.for_each(|rank| rank.has_ended = true);
                }
            })?;
            if !is_known {
                return Err(io::Error::other("the line of this rank is no longer there"));
            }
            match is_last {
                Some(is_last) => return Ok(is_last.then_some(joined)),
                None => thread::sleep(PERIOD),
            }
        }
    }

    /// Removes the file of the job, after its judgement.
    pub(crate) fn forget(&self) {
        let _ = self.folder.remove_file(&self.name);
    }

    /// Changes what is known of the ranks. Only one of them does so at a time.
    fn change(&self, change: impl FnOnce(&mut Vec<Known>)) -> io::Result<()> {
        let mut file = self.locked()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut known: Vec<Known> = text.lines().filter_map(Known::parse).collect();
        change(&mut known);
        file.seek(SeekFrom::Start(0))?;
        file.set_len(0)?;
        let lines: String = known.iter().map(Known::line).collect();
        file.write_all(lines.as_bytes())
    }

    /// Opens the file, and waits until no other rank has it.
    fn locked(&self) -> io::Result<File> {
        let file = self.folder.own_file(&self.name, Access::Change)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => thread::sleep(PERIOD),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Known {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { pid, start, has_ended: words.next() == Some("ended") })
    }

    fn line(&self) -> String {
        format!("{} {} {}\n", self.pid, self.start, if self.has_ended { "ended" } else { "began" })
    }
}

/// The nearest ancestor of a process that has no rank in this variable, and its start: the launcher's process on this host. One whose
/// environment cannot be read is no process of this user, and so no rank. A launcher in a batch script of Slurm has the script's rank.
fn launcher(of: u32, variable: &str) -> Option<(u32, u64)> {
    let mut pid = stat(of)?.parent;
    for _ in 0..1024 {
        let Stat { parent, start, .. } = stat(pid)?;
        if !fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| value(&environment, variable).is_some()) {
            return Some((pid, start));
        }
        pid = parent;
    }
    None
}

/// A name as one part of a path.
fn plain(name: &OsStr) -> String {
    let plain = |byte: &u8| if byte.is_ascii_alphanumeric() { char::from(*byte) } else { '_' };
    name.as_bytes().iter().take(64).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> Option<Job> {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Job::new(value, OsStr::new("n.1"), 7, 0x10)
    }

    #[test]
    fn launchers_tell_rank_and_number_of_ranks() {
        let of = |rank, name: &str, here| Some(Job { rank, name: name.into(), here, size: here });
        assert_eq!(job(&[("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "2")]), of(1, "n_1-7-10", Some(2)));
        let open_mpi =
            [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
        assert_eq!(job(&open_mpi), of(0, "n_1-7-10", Some(2)));
        let slurm = [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_JOB_ID", "../4")];
        assert_eq!(job(&slurm), of(3, "___4-n_1-7-10", None));
        assert_eq!(job(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None, "one rank alone");
        assert_eq!(job(&[("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "4")]), None, "a batch script");
        assert_eq!(job(&[]), None);
    }

    #[test]
    fn slurm_lists_the_ranks_of_the_host_whichever_interface_the_ranks_have() {
        let step = [("SLURM_PROCID", "5"), ("SLURM_STEP_NUM_TASKS", "6"), ("SLURM_GTIDS", "4,5")];
        let pmi = [("PMI_RANK", "5"), ("PMI_SIZE", "6")];
        let here = |variables: &[(&str, &str)]| job(variables).map(|job| (job.here, job.size));
        assert_eq!(here(&step), Some((Some(2), Some(2))));
        assert_eq!(here(&[&step[..], &pmi].concat()), Some((Some(2), Some(2))));
        assert_eq!(here(&[&step[..2], &pmi].concat()), Some((None, None)), "the rest may be on other hosts");
        // mpiexec in a batch script.
        let script = [("SLURM_PROCID", "0"), ("SLURM_GTIDS", "0"), ("PMI_RANK", "0"), ("PMI_SIZE", "6")];
        assert_eq!(here(&script), Some((None, Some(6))));
    }

    #[test]
    fn the_launcher_is_the_nearest_ancestor_without_a_rank() {
        let has_rank = |environment| value(environment, "PMI_RANK").is_some();
        assert!(has_rank(b"A=1\0PMI_RANK=3\0B=2\0") && !has_rank(b"A=PMI_RANK=3\0") && !has_rank(b""));
        assert!(!has_rank(b"SLURM_PROCID=0\0"), "mpiexec in a batch script");
        let (pid, start) = launcher(process::id(), "PMI_RANK").unwrap();
        assert!(is_running(pid, start));
    }

    fn begun(folder: &tempfile::TempDir, name: &str, here: Option<usize>) -> io::Result<Ranks> {
        Job { rank: 0, name: name.into(), here, size: here }.begin(&Folder::open(folder.path()).unwrap())
    }

    #[test]
    fn the_last_rank_judges() {
        let folder = tempfile::tempdir().unwrap();
        let this = begun(&folder, "j", Some(3)).unwrap();
        let start = |pid: u32| stat(pid).unwrap().start;
        let parent = stat(process::id()).unwrap().parent;
        // Another one runs, and one was killed.
        let others = [
            Known { pid: parent, start: start(parent), has_ended: false },
            Known { pid: u32::MAX, start: 1, has_ended: false },
        ];
        this.change(|known| known.extend(others)).unwrap();
        assert_eq!(this.end().unwrap(), None);
        this.change(|known| known[1].has_ended = true).unwrap();
        assert_eq!(this.end().unwrap(), Some(3));
        assert_eq!(this.job.absent(3), None);
        assert!(this.job.absent(2).unwrap().text.starts_with("2 of the 3 ranks"));
        this.forget();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_rank_whose_line_is_gone_does_not_take_itself_for_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let this = begun(&folder, "j", None).unwrap();
        this.change(Vec::clear).unwrap();
        assert!(this.end().unwrap_err().to_string().contains("no longer there"));
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(this.end().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_rank_does_not_wait_for_ever_for_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let _held = begun(&folder, "j", None).unwrap().locked().unwrap();
        assert_eq!(begun(&folder, "j", None).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_rank_waits_for_those_that_have_not_begun_but_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let this = begun(&folder, "j", Some(2)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(PERIOD * 3);
                this.change(|known| known.push(Known { pid: u32::MAX, start: 1, has_ended: true })).unwrap();
            });
            assert_eq!(this.end().unwrap(), Some(2));
        });
        assert_eq!(begun(&folder, "k", Some(2)).unwrap().end().unwrap(), Some(1));
    }
}
