//! Placeholders in the path of a directory or a file: `%h`, `%p` and `%r` for the host, the process and the rank.
//!
//! The shim and the command use it, so that one setting is right for all ranks of a job. It does not read the
//! environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The rank of a process that no launcher started, and the name of a host that has none.
pub const NONE: &str = "none";

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
}
