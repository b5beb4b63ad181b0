//! What the launcher of a job says to a process in its environment: its rank, and how many ranks there are.
//!
//! The shim and the command use it. It does not read the environment.

use std::ffi::OsString;

/// The variables in which launchers pass the rank of a process: MPICH and its derivatives, Open MPI, PMIx, Slurm's
/// `srun`, HPE's PALS. Under `mpiexec` in a batch script, Slurm's variable is that of the script, so it comes after
/// those of the launchers.
pub const RANKS: [&str; 5] = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "PALS_RANKID"];

/// The variables that tell how many ranks a job has, and how many of them are on this host, by launcher. Slurm lists
/// the latter.
const SIZES: [(&str, &str); 3] =
    [("PMI_SIZE", "MPI_LOCALNRANKS"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"), (SLURM_SIZE, "")];
const SLURM_SIZE: &str = "SLURM_STEP_NUM_TASKS";

/// The rank in the environment that `variable` looks up; `None` without a launcher.
pub fn rank(variable: impl Fn(&str) -> Option<OsString>) -> Option<u32> {
    named_rank(variable).map(|(_, rank)| rank)
}

/// The rank, and the variable that gives it.
pub fn named_rank(variable: impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, u32)> {
    RANKS.into_iter().find_map(|name| Some((name, variable(name)?.to_str()?.parse().ok()?)))
}

/// How many ranks a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// All of them: two or more.
    pub all: usize,
    /// Those on this host, where the launcher tells it.
    pub here: Option<usize>,
    /// The launcher is Slurm, which also starts ranks that have the variables of PMI. Under another launcher in a batch
    /// script, it tells of the script.
    pub by_slurm: bool,
}

impl Size {
    /// The size of the job in the environment that `variable` looks up; `None` if it has no other rank, or the launcher
    /// does not tell.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let number = |name: &str| variable(name)?.to_str()?.parse::<usize>().ok();
        let rank = rank(&variable)?;
        let of_name = |(all, here)| Some((number(all).filter(|all| *all > 1)?, here));
        let (all, here) = SIZES.into_iter().find_map(of_name)?;
        let by_slurm = number(SLURM_SIZE) == Some(all) && number("SLURM_PROCID") == usize::try_from(rank).ok();
        let listed = || Some(variable("SLURM_GTIDS")?.to_str()?.split(',').count());
        Some(Self { all, here: number(here).or_else(|| listed().filter(|_| by_slurm)), by_slurm })
    }

    /// How many ranks are on other hosts; `None` if none is, or if the launcher does not tell.
    pub fn elsewhere(&self) -> Option<u32> {
        let elsewhere = self.all.checked_sub(self.here?)?;
        u32::try_from(elsewhere).ok().filter(|elsewhere| *elsewhere > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_own_variable_comes_before_that_of_the_batch_script() {
        let variable = |known: &'static [(&str, &str)]| {
            move |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        };
        let both: &[_] = &[("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "7")];
        assert_eq!(named_rank(variable(both)), Some(("OMPI_COMM_WORLD_RANK", 7)));
        assert_eq!(rank(variable(&[("PMI_RANK", "../x"), ("PALS_RANKID", "5")])), Some(5));
        assert_eq!(rank(variable(&[])), None);
    }

    #[test]
    fn ranks_on_other_hosts_are_those_that_the_launcher_has_not_put_here() {
        let elsewhere = |known: &[(&str, &str)]| {
            let value = |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            Size::new(value)?.elsewhere()
        };
        assert_eq!(elsewhere(&[("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "2")]), Some(2));
        assert_eq!(elsewhere(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), None, "not told");
        assert_eq!(elsewhere(&[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")]), None);
        let step = [("SLURM_PROCID", "5"), ("SLURM_STEP_NUM_TASKS", "6"), ("SLURM_GTIDS", "4,5")];
        assert_eq!(elsewhere(&step), Some(4));
        assert_eq!(elsewhere(&[]), None);
    }
}
