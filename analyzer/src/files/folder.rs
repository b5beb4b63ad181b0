//! A directory that is held open, so that nobody can put another one in its place.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{ffi::OsString, io, sync::Arc};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fchmod, fstat, mkdirat, stat, statat, symlinkat, unlinkat};
use rustix::io::Errno;
use urscope_schema::host::owners::Owner;

use super::{
    identity, is_shared, is_trusted, not_regular, opened, owners, parent, place::ResolvedPath, refuse_untrusted,
    refused,
};

/// The mode of a directory that urscope makes: traces show paths, addresses and names of functions.
const PRIVATE_FOLDER: u32 = 0o700;

/// The mode of a file that urscope makes in it.
const PRIVATE: u32 = 0o600;

/// The bit of a directory in which everyone but its owner can remove and rename only what is theirs.
const STICKY: u32 = 0o1000;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Behind what is there.
    Append,
    /// Anywhere, and it is read, too.
    Change,
}

/// A directory and a descriptor of it. Copies share the descriptor.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    descriptor: Arc<OwnedFd>,
}

impl Folder {
    /// Opens a directory. No link of another user is followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let descriptor = ResolvedPath::follow(path)?.open(OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        Ok(Self { path: path.to_owned(), descriptor: Arc::new(descriptor) })
    }

    /// Makes a directory for this user alone, and those above it. Returns whether it is new.
    pub fn make(path: &Path) -> io::Result<(Self, bool)> {
        let place = match ResolvedPath::follow(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && path != parent(path) => {
                Self::make(parent(path))?;
                ResolvedPath::follow(path)
            }
            place => place,
        }?;
        let is_new = match mkdirat(&place.folder, &place.name, Mode::from_raw_mode(PRIVATE_FOLDER)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let descriptor = place.open(OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        let folder = Self { path: path.to_owned(), descriptor: Arc::new(descriptor) };
        if is_new {
            folder.make_private();
        }
        Ok((folder, is_new))
    }

    /// Makes a directory with a name that is not taken yet in this one.
    pub fn make_below(&self, name: &str) -> io::Result<Self> {
        mkdirat(self, name, Mode::from_raw_mode(PRIVATE_FOLDER))?;
        let folder = self.below(name)?;
        folder.make_private();
        Ok(folder)
    }

    /// Gives it back to this user where the mask of this process has taken more away. Some file systems have no modes.
    fn make_private(&self) {
        let _ = fchmod(self, Mode::from_raw_mode(PRIVATE_FOLDER));
    }

    /// Opens a directory of this user or of root in this one.
    pub fn below(&self, name: &str) -> io::Result<Self> {
        let descriptor = opened(self, Path::new(name), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, 0)?;
        let folder = Self { path: self.path.join(name), descriptor: Arc::new(descriptor) };
        let owner = folder.status()?.st_uid;
        if owners().have(owner) { Ok(folder) } else { Err(refused(format!("it belongs to the user {owner}"))) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path that leads to it by the descriptor, whatever is at [`Self::path`] by now.
    pub fn by_descriptor(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()).into()
    }

    /// Whether it is still at its path.
    pub fn is_in_place(&self) -> bool {
        let own = self.status().map(|status| identity(&status));
        own.is_ok_and(|own| stat(&self.path).is_ok_and(|there| identity(&there) == own))
    }

    /// The directories above it that another user can move or replace, by their paths.
    pub fn movable(&self) -> Vec<PathBuf> {
        let Ok(real) = fs::canonicalize(self.by_descriptor()) else { return Vec::new() };
        let can_be_moved = |path: &&Path| {
            let Some((above, own)) = path.parent().and_then(|above| Some((stat(above).ok()?, stat(*path).ok()?)))
            else {
                return false;
            };
            let is_protected = is_trusted(&above) && above.st_mode & STICKY != 0 && is_trusted(&own);
            is_shared(&above) && !is_protected
        };
        real.ancestors().skip(1).filter(can_be_moved).map(Path::to_owned).collect()
    }

    /// Whether everyone can remove only what is theirs in it.
    pub fn is_sticky(&self) -> bool {
        self.status().is_ok_and(|status| status.st_mode & STICKY != 0)
    }

    /// Refuses a directory of another user, who could replace what is in it, and if `parent` counts, one in a directory
    /// of another user.
    pub fn refuse_foreign(&self, parent: bool) -> io::Result<()> {
        let own = self.status()?;
        let above = if parent { statat(self, "..", AtFlags::empty())? } else { own };
        let owner = |folder: &Stat| Owner { user: folder.st_uid, is_system: is_trusted(folder) };
        owners().object(owner(&own), owner(&above)).map_or(Ok(()), |why| Err(refused(why)))
    }

    /// The names of what is in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(self.by_descriptor())?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Opens a file whose name urscope chose for writing, and makes it if it does not exist. Only this user and root
    /// can have written it, and nobody else can read what is written.
    pub fn own_file(&self, name: &str, access: WriteMode) -> io::Result<File> {
        let flags = match access {
            WriteMode::Append => OFlags::WRONLY | OFlags::APPEND,
            WriteMode::Change => OFlags::RDWR,
        };
        self.file(name, flags | OFlags::CREATE, |owner| owners().have(owner))
    }

    /// Opens a file whose name urscope chose for reading, if an owner who `is_trusted` has written it.
    pub fn file_of(&self, name: &str, is_trusted: impl Fn(u32) -> bool) -> io::Result<File> {
        self.file(name, OFlags::RDONLY, is_trusted)
    }

    fn file(&self, name: &str, flags: OFlags, is_trusted: impl Fn(u32) -> bool) -> io::Result<File> {
        let file = opened(self, Path::new(name), flags | OFlags::NOFOLLOW, PRIVATE).map_err(|error| match error {
            Errno::LOOP => refused("it is a symbolic link"),
            // A pipe that nobody reads, or a socket.
            Errno::NXIO => not_regular(),
            error => error.into(),
        })?;
        of_trusted(&fstat(&file)?, is_trusted)?;
        Ok(file.into())
    }

    /// Whether there is a regular file with one link that an owner who `is_trusted` has written.
    pub fn has_file_of(&self, name: &Path, is_trusted: impl Fn(u32) -> bool) -> bool {
        statat(self, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|status| of_trusted(&status, is_trusted).is_ok())
    }

    /// Makes a symbolic link in it.
    pub fn link(&self, target: &Path, name: &str) -> io::Result<()> {
        Ok(symlinkat(target, self, name)?)
    }

    /// Removes a file or a link.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::empty())?)
    }

    /// Removes a directory that is empty.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::REMOVEDIR)?)
    }

    /// Refuses a directory that others may enter.
    pub fn refuse_shared(&self) -> io::Result<()> {
        let may_be_entered = self.status()?.st_mode & !PRIVATE_FOLDER & 0o777 != 0;
        if may_be_entered { Err(refused("its file system lets others enter it")) } else { Ok(()) }
    }

    /// Refuses a directory in which another user could replace a directory of this one, or which they could replace.
    /// Libraries are loaded by such a path, so each directory above it counts.
    pub fn refuse_replaceable(&self) -> io::Result<()> {
        let mut at = self.descriptor.try_clone()?;
        loop {
            let here = fstat(&at)?;
            if is_shared(&here) && !(is_trusted(&here) && here.st_mode & STICKY != 0) {
                return Err(refused("another user could replace what is in it or in a directory above it"));
            }
            let above = opened(&at, Path::new(".."), OFlags::PATH | OFlags::DIRECTORY, 0)?;
            if identity(&fstat(&above)?) == identity(&here) {
                return Ok(());
            }
            at = above;
        }
    }

    pub(super) fn status(&self) -> io::Result<Stat> {
        Ok(fstat(self)?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Refuses what is no regular file with one link of a trusted user.
fn of_trusted(status: &Stat, is_trusted: impl Fn(u32) -> bool) -> io::Result<()> {
    refuse_untrusted(status, is_trusted)?;
    if status.st_nlink > 1 { Err(refused("it has several links")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_of_ones_own_is_private() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, is_new) = Folder::make(&outer.path().join("a/b")).unwrap();
        assert!(is_new && !Folder::make(folder.path()).unwrap().1);
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&outer.path().join("a")), 0o700);
        for part in ["one", "two"] {
            folder.own_file("file", WriteMode::Append).unwrap().write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(mode(&folder.path().join("file")), 0o600);
        let mut text = String::new();
        folder.file_of("file", |_| true).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "onetwo");
        assert_eq!(folder.file_of("other", |_| true).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(folder.names().unwrap(), ["file"]);
    }

    #[test]
    fn nothing_but_a_regular_file_with_one_link_is_opened() {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::open(outer.path()).unwrap();
        let path = |name: &str| outer.path().join(name);
        fs::write(path("mine"), "mine").unwrap();
        fs::hard_link(path("mine"), path("hard link")).unwrap();
        symlink("mine", path("link")).unwrap();
        symlink("nothing", path("dangling link")).unwrap();
        mknodat(CWD, path("pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::create_dir(path("directory")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        for name in ["hard link", "link", "dangling link", "pipe", "directory", "socket"] {
            for access in [WriteMode::Append, WriteMode::Change] {
                assert!(folder.own_file(name, access).is_err(), "{name} {access:?}");
            }
            assert!(folder.file_of(name, |_| true).is_err(), "{name}");
            assert!(!folder.has_file_of(Path::new(name), |_| true), "{name}");
        }
        assert!(!path("nothing").exists());
        assert_eq!(fs::read(path("mine")).unwrap(), b"mine");
        fs::write(path("single"), "").unwrap();
        assert!(
            folder.has_file_of(Path::new("single"), |_| true) && !folder.has_file_of(Path::new("single"), |_| false)
        );
        assert!(folder.file_of("single", |_| false).unwrap_err().to_string().contains("belongs to the user"));
    }

    #[test]
    fn a_directory_is_the_same_wherever_it_is_moved() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, _) = Folder::make(&outer.path().join("here")).unwrap();
        assert!(folder.is_in_place());
        fs::rename(folder.path(), outer.path().join("there")).unwrap();
        assert!(!folder.is_in_place());
        fs::create_dir(folder.path()).unwrap();
        assert!(!folder.is_in_place());
        folder.own_file("file", WriteMode::Append).unwrap();
        assert!(outer.path().join("there/file").is_file());
        assert!(folder.by_descriptor().join("file").is_file());
    }
}
