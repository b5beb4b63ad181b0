//! The ranks of an MPI job of which each has an urscope of its own: `mpiexec urscope run -- ./app`.
//!
//! What one rank exports, another one opens, so a rank alone cannot be judged. The ranks of a job on one host therefore
//! share a directory and the name of the run, and the last one to end judges all. They agree by a file in the
//! directory: it has the name of the run, and a line for each rank, which it adds when it begins and changes when it
//! ends, under a lock. What a rank has observed of its processes is in its line. Of an urscope that was killed, it is
//! not known.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};
use std::{os::unix::ffi::OsStrExt as _, process, thread};

use rustix::system::uname;
use serde::{Deserialize, Serialize};
use urscope_analyzer::analysis::{Limit, LimitCause, is_running};
use urscope_analyzer::files::{Folder, WriteMode};
use urscope_schema::{host::launcher, trace::process_times::ProcessTimes};

use super::descendants::{Stat, stat};
use super::{early_deaths::value, observation::Observation};

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
    /// The number of ranks that may be on this host: that, or else of all ranks. `None` if Slurm, which has many hosts,
    /// does not tell it.
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

    /// Adds this rank to those that have begun in the directory. The first one gives the job the name of its run, and
    /// the others take it.
    pub(crate) fn begin(self, folder: &Folder, run: &mut String) -> io::Result<Ranks> {
        let name = format!(".urscope-ranks-{}", self.name);
        let start = stat(process::id()).map_or(0, |stat| stat.start);
        let ranks = Ranks { job: self, folder: folder.clone(), name, start };
        ranks.change(|all| {
            if all.run.is_empty() {
                all.run.clone_from(run);
            }
            run.clone_from(&all.run);
            all.ranks.push(Known { pid: process::id(), start, has_ended: false, observed: Vec::new() });
        })?;
        Ok(ranks)
    }
}

/// Who judges the processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// This urscope, whatever others do: it is no rank of a job, or the ranks cannot agree.
    Alone,
    /// This rank, the last to end of so many.
    Last(usize),
    /// A rank that ends later.
    Another,
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

/// What the file has.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct All {
    /// The name of the run.
    run: String,
    ranks: Vec<Known>,
}

/// One of the ranks: the urscope that runs it.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    pid: u32,
    start: u64,
    has_ended: bool,
    /// What it has observed that changes the verdict.
    observed: Vec<ProcessTimes>,
}

impl Known {
    fn runs(&self) -> bool {
        !self.has_ended && is_running(self.pid, self.start)
    }
}

impl Ranks {
    /// The file by which the ranks agree.
    pub(crate) fn path(&self) -> String {
        self.folder.path().join(&self.name).display().to_string()
    }

    /// Adds this rank to those that have ended, with what it has observed. If it was the last, adds what all have
    /// observed. The error says why the ranks cannot agree; what the others have observed is not known then.
    pub(crate) fn end(&self, observed: &mut Observation) -> io::Result<Judge> {
        let ended = self.wait_for_end(observed);
        if let Err(error) = &ended {
            observed.miss(format!("what the other ranks have observed is not known ({error})"));
        }
        ended
    }

    fn wait_for_end(&self, observed: &mut Observation) -> io::Result<Judge> {
        let began = Instant::now();
        loop {
            let mut is_last = None;
            let mut is_known = false;
            let mut joined = 0;
            self.change(|all| {
                joined = all.ranks.len();
                let is_own = |rank: &Known| rank.pid == process::id() && rank.start == self.start;
                let (own, others): (Vec<_>, Vec<_>) = all.ranks.iter_mut().partition(|rank| is_own(rank));
                let all_began = self.job.here.is_none_or(|here| joined >= here) || began.elapsed() >= PATIENCE;
                let all_ended = !others.iter().any(|rank| rank.runs());
                is_last = (all_began || !all_ended).then_some(all_ended);
                is_known = !own.is_empty();
                for rank in own.into_iter().filter(|_| is_last.is_some()) {
                    (rank.has_ended, rank.observed) = (true, observed.of_the_run().cloned().collect());
                }
                for rank in others.into_iter().filter(|_| is_last == Some(true)) {
                    if !rank.has_ended {
                        observed.miss(format!("the urscope of a rank (pid {}) was killed", rank.pid));
                    }
                    observed.extend(std::mem::take(&mut rank.observed));
                }
            })?;
            if !is_known {
                return Err(io::Error::other("the line of this rank is no longer there"));
            }
            match is_last {
                Some(true) => return Ok(Judge::Last(joined)),
                Some(false) => return Ok(Judge::Another),
                None => thread::sleep(PERIOD),
            }
        }
    }

    /// Removes the file of the job, after its judgement.
    pub(crate) fn forget(&self) {
        let _ = self.folder.remove_file(&self.name);
    }

    /// Changes what is known of the ranks. Only one of them does so at a time.
    fn change(&self, change: impl FnOnce(&mut All)) -> io::Result<()> {
        let mut file = self.locked()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let mut all = if text.is_empty() { All::default() } else { serde_json::from_slice(&text)? };
        change(&mut all);
        file.seek(SeekFrom::Start(0))?;
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(&all)?)
    }

    /// Opens the file, and waits until no other rank has it.
    fn locked(&self) -> io::Result<File> {
        let file = self.folder.own_file(&self.name, WriteMode::Change)?;
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

/// The nearest ancestor of a process that has no rank in this variable, and its start: the launcher's process on this
/// host. One whose environment cannot be read is no process of this user, and so no rank. A launcher in a batch script
/// of Slurm has the script's rank.
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
        let job = Job { rank: 0, name: name.into(), here, size: here };
        job.begin(&Folder::open(folder.path()).unwrap(), &mut "r".into())
    }

    #[test]
    fn the_ranks_of_a_job_take_the_name_of_the_first_run() {
        let folder = tempfile::tempdir().unwrap();
        let _first = begun(&folder, "j", None).unwrap();
        let mut run = "another".to_owned();
        let second = Job { rank: 1, name: "j".into(), here: None, size: None };
        second.begin(&Folder::open(folder.path()).unwrap(), &mut run).unwrap();
        assert_eq!(run, "r");
    }

    #[test]
    fn the_last_rank_judges() {
        let folder = tempfile::tempdir().unwrap();
        let this = begun(&folder, "j", Some(3)).unwrap();
        let start = |pid: u32| stat(pid).unwrap().start;
        let parent = stat(process::id()).unwrap().parent;
        // Another one runs, and one was killed.
        let others = [
            Known { pid: parent, start: start(parent), has_ended: false, observed: Vec::new() },
            Known { pid: u32::MAX, start: 1, has_ended: false, observed: Vec::new() },
        ];
        this.change(|all| all.ranks.extend(others)).unwrap();
        let mut observed = Observation::new("r");
        assert_eq!(this.end(&mut observed).unwrap(), Judge::Another);
        assert_eq!(observed.lines(), []);
        let line = observed.without_trace((5, 5));
        this.change(|all| (all.ranks[1].has_ended, all.ranks[1].observed) = (true, vec![line.clone()])).unwrap();
        assert_eq!(this.end(&mut observed).unwrap(), Judge::Last(3));
        let [told, killed] = observed.lines() else { panic!("{observed:?}") };
        assert_eq!(told, &line);
        assert!(killed.unobserved.starts_with("the urscope of a rank"), "{killed:?}");
        assert_eq!(this.job.absent(3), None);
        assert!(this.job.absent(2).unwrap().text.starts_with("2 of the 3 ranks"));
        this.forget();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_rank_whose_line_is_gone_does_not_take_itself_for_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let this = begun(&folder, "j", None).unwrap();
        this.change(|all| all.ranks.clear()).unwrap();
        let mut observed = Observation::new("r");
        assert!(this.end(&mut observed).unwrap_err().to_string().contains("no longer there"));
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(this.end(&mut observed).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(observed.lines().iter().all(|line| line.unobserved.starts_with("what the other ranks have observed")));
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
                let other = Known { pid: u32::MAX, start: 1, has_ended: true, observed: Vec::new() };
                this.change(|all| all.ranks.push(other)).unwrap();
            });
            assert_eq!(this.end(&mut Observation::new("r")).unwrap(), Judge::Last(2));
        });
        assert_eq!(begun(&folder, "k", Some(2)).unwrap().end(&mut Observation::new("r")).unwrap(), Judge::Last(1));
    }
}
