//! Placeholders in the path of a directory or a file: `%h`, `%p` and `%r` for the host, the process and the rank.
//!
//! The shim and the command use it, so that one setting is right for all ranks of a job. It does not read the
//! environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The variables in which launchers pass the rank of a process: MPICH and its derivatives, Open MPI, PMIx, Slurm's
/// `srun`, HPE's PALS. Under `mpiexec` in a batch script, Slurm's variable is that of the script, so it comes after
/// those of the launchers.
pub const RANKS: [&str; 5] = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "PALS_RANKID"];

/// The rank of a process that no launcher started, and the name of a host that has none.
pub const NONE: &str = "none";

/// The rank in the environment that `variable` looks up; `None` without a launcher.
pub fn rank(variable: impl Fn(&str) -> Option<OsString>) -> Option<u32> {
    named_rank(variable).map(|(_, rank)| rank)
}

/// The rank, and the variable that gives it.
pub fn named_rank(variable: impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, u32)> {
    RANKS.into_iter().find_map(|name| Some((name, variable(name)?.to_str()?.parse().ok()?)))
}

/// The path with `%h`, `%p` and `%r` filled in, and `%%` as a percent sign. Any other `%` stays.
pub fn fill(path: &Path, host: &str, pid: u32, rank: Option<u32>) -> PathBuf {
    let mut filled = Vec::new();
    let mut rest = path.as_os_str().as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let word = match (first, behind.first()) {
            (b'%', Some(b'h')) => name(host),
            (b'%', Some(b'p')) => pid.to_string(),
            (b'%', Some(b'r')) => rank.map_or_else(|| NONE.to_owned(), |rank| rank.to_string()),
            (b'%', Some(b'%')) => "%".to_owned(),
            _ => {
                filled.push(*first);
                rest = behind;
                continue;
            }
        };
        filled.extend_from_slice(word.as_bytes());
        rest = behind.get(1..).unwrap_or_default();
    }
    OsString::from_vec(filled).into()
}

/// The path that [`fill`] turns into this one.
pub fn escape(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let escaped = bytes.iter().flat_map(|byte| if *byte == b'%' { &b"%%"[..] } else { std::slice::from_ref(byte) });
    OsString::from_vec(escaped.copied().collect()).into()
}

/// Whether a path has placeholders.
pub fn any(path: &OsStr) -> bool {
    path.as_bytes().contains(&b'%')
}

/// A host's name as one part of a path: no name can lead out of its directory.
fn name(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    match host.trim_matches('.') {
        "" => NONE.to_owned(),
        host => host.chars().map(plain).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(path: &str) -> String {
        fill(Path::new(path), "node7", 42, Some(3)).into_os_string().into_string().unwrap()
    }

    #[test]
    fn placeholders_are_filled_in() {
        assert_eq!(filled("/scratch/%h/rank-%r.%p"), "/scratch/node7/rank-3.42");
        assert_eq!(filled("100%%/%%h"), "100%/%h");
    }

    #[test]
    fn what_is_no_placeholder_stays() {
        for path in ["plain", "", "%", "50%", "%x/%", "ü%H"] {
            assert_eq!(filled(path), path);
        }
    }

    #[test]
    fn what_is_escaped_comes_back() {
        for path in ["plain", "%h", "%%h", "50%", "%"] {
            assert_eq!(filled(escape(Path::new(path)).to_str().unwrap()), path);
        }
    }

    #[test]
    fn no_name_leads_out_of_its_directory() {
        for (host, name) in [("../../etc", "_.._etc"), ("..", NONE), ("", NONE), ("a b/c", "a_b_c")] {
            assert_eq!(fill(Path::new("t/%h/x"), host, 1, None), Path::new("t").join(name).join("x"));
        }
        assert_eq!(fill(Path::new("r%r"), "h", 1, None), Path::new("rnone"));
    }

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
}
