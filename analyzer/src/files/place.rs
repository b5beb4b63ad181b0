//! Follows a path to the directory that it leads to and the name there, without a link that another user may have put
//! there.

use std::os::{fd::OwnedFd, unix::ffi::OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::{collections::VecDeque, ffi::OsString, io};

use rustix::fs::{CWD, FileType, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, readlinkat};
use rustix::io::Errno;

use super::{is_shared, kind, opened, owners, refused};

/// The most links that a path may have, as in the kernel (`path_resolution(7)`).
const LINKS: usize = 40;

/// Where a path leads.
pub(super) struct ResolvedPath {
    /// The directory, opened by its path only.
    pub(super) folder: OwnedFd,
    /// The name in it, which is no link that could be followed; below `/proc`, the rest of the path.
    pub(super) name: PathBuf,
    /// What is there; `None` if nothing is.
    pub(super) there: Option<Stat>,
    /// Whether it is below `/proc`, where a link leads to an open file, which has no path.
    pub(super) is_open_file: bool,
}

impl ResolvedPath {
    /// Follows a path. A link counts only if it belongs to this user or to root, or if nobody else can write where it
    /// is.
    pub(super) fn follow(path: &Path) -> io::Result<Self> {
        let mut folder = start(path)?;
        let mut rest = names(path);
        let mut links = 0;
        loop {
            let Some(name) = rest.pop_front() else {
                let there = Some(fstat(&folder)?);
                return Ok(Self { folder, name: ".".into(), there, is_open_file: false });
            };
            if fstatfs(&folder)?.f_type == PROC_SUPER_MAGIC {
                let name: PathBuf = [name].into_iter().chain(rest).collect();
                return Ok(Self { folder, name, there: None, is_open_file: true });
            }
            let found = match opened(&folder, Path::new(&name), OFlags::PATH | OFlags::NOFOLLOW, 0) {
                Err(Errno::NOENT) if rest.is_empty() => {
                    return Ok(Self { folder, name: name.into(), there: None, is_open_file: false });
                }
                found => found?,
            };
            let status = fstat(&found)?;
            if kind(&status) == FileType::Symlink {
                links += 1;
                if links > LINKS {
                    return Err(Errno::LOOP.into());
                }
                if !owners().have(status.st_uid) && is_shared(&fstat(&folder)?) {
                    return Err(refused(format!("it leads through a symbolic link of the user {}", status.st_uid)));
                }
                let target = PathBuf::from(OsString::from_vec(readlinkat(&found, "", Vec::new())?.into_bytes()));
                if target.is_absolute() {
                    folder = start(&target)?;
                }
                rest = names(&target).into_iter().chain(rest).collect();
            } else if rest.is_empty() && name != ".." {
                return Ok(Self { folder, name: name.into(), there: Some(status), is_open_file: false });
            } else {
                folder = found;
            }
        }
    }

    /// Opens what is there.
    pub(super) fn open(&self, flags: OFlags, mode: u32) -> rustix::io::Result<OwnedFd> {
        let follow = if self.is_open_file { OFlags::empty() } else { OFlags::NOFOLLOW };
        opened(&self.folder, &self.name, flags | follow, mode)
    }
}

/// The directory in which a path begins.
fn start(path: &Path) -> io::Result<OwnedFd> {
    let from = if path.is_absolute() { "/" } else { "." };
    Ok(opened(CWD, Path::new(from), OFlags::PATH | OFlags::DIRECTORY, 0)?)
}

/// The names in a path.
fn names(path: &Path) -> VecDeque<OsString> {
    let of = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_path_leads_where_the_kernel_goes() {
        let outer = tempfile::tempdir().unwrap();
        let path = |name: &str| outer.path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/file"), "").unwrap();
        symlink("a", path("link")).unwrap();
        symlink(path("a/file"), path("absolute")).unwrap();
        symlink("../link/file", path("a/chain")).unwrap();
        symlink("none", path("dangling")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let identity =
            |path: &Path| ResolvedPath::follow(path).map(|place| place.there.map(|there| (there.st_dev, there.st_ino)));
        for name in
            ["a", "a/b", "a/b/", "a/file", "link", "link/b", "link/b/../file", "absolute", "a/chain", "a/b/..", "."]
        {
            let known = fs::metadata(path(name)).unwrap();
            let known = (std::os::unix::fs::MetadataExt::dev(&known), std::os::unix::fs::MetadataExt::ino(&known));
            assert_eq!(identity(&path(name)).unwrap(), Some(known), "{name}");
        }
        assert_eq!(identity(&path("a/none")).unwrap(), None);
        let dangling = ResolvedPath::follow(&path("dangling")).unwrap();
        assert_eq!((dangling.name.as_path(), dangling.there.is_none()), (Path::new("none"), true));
        for (name, error) in [("none/b", Errno::NOENT), ("a/file/b", Errno::NOTDIR), ("loop", Errno::LOOP)] {
            assert_eq!(identity(&path(name)).unwrap_err().raw_os_error(), Some(error.raw_os_error()), "{name}");
        }
        assert!(identity(Path::new("/")).unwrap().is_some());
        assert!(ResolvedPath::follow(Path::new("/dev/stdin")).unwrap().is_open_file);
    }
}
