//! A private directory with symbolic links to parts of urscope, and the file that leads a browser to the page. It
//! exists as long as the run.
//!
//! The adapters and libumf open a Level Zero loader by its soname, `libze_loader.so.1`. LD_PRELOAD cannot contain a
//! path with a space or a colon. A symbolic link solves both. An installed urscope has the links of the device beside
//! it, and needs no such directory.
//!
//! Programs load libraries from it, so nobody else may write to it or put another one in its place.

use std::path::{Path, PathBuf};
use std::{env, fs, io, io::Write as _, os::unix::ffi::OsStrExt as _, process};

use urscope_analyzer::analysis::{boot_id, is_running, pid_namespace};
use urscope_analyzer::files::{Folder, WriteMode};
use urscope_schema::handle::fingerprint;

use super::descendants::stat;

/// The name under which programs load the Level Zero loader.
pub(crate) const LOADER: &str = "libze_loader.so.1";
/// The name under which some open it themselves, oneCCL for example.
const LOADER_WITHOUT_VERSION: &str = "libze_loader.so";
/// The name under which programs load the CUDA driver.
const DRIVER: &str = "libcuda.so.1";
/// The link to the library that is preloaded.
const LIBRARY: &str = "liburscope.so";
/// The file that leads a browser to the page of a run.
const PAGE: &str = "urscope.html";

/// The directory beside an installed device that has it under the names of the loader.
const INSTALLED: &str = "device";

/// The private directory, created with its first link.
#[derive(Debug, Default)]
pub(crate) struct TemporaryInstall {
    place: Option<(Folder, String)>,
    folder: Option<Folder>,
}

impl TemporaryInstall {
    /// Returns a path of the library that can stand in LD_PRELOAD.
    pub(crate) fn library(&mut self, library: &Path) -> Result<PathBuf, String> {
        if unfit_for_preloading(library) { self.link(library, LIBRARY) } else { Ok(library.into()) }
    }

    /// Returns a directory that contains the software device under the names of the loader.
    pub(crate) fn device(&mut self, device: &Path) -> Result<PathBuf, String> {
        if let Some(folder) = installed(device) {
            return Ok(folder);
        }
        self.link(device, LOADER_WITHOUT_VERSION)?;
        let link = self.link(device, LOADER)?;
        Ok(link.parent().map(Path::to_path_buf).unwrap_or_default())
    }

    /// Returns a directory that contains the software device under the name of the CUDA driver.
    pub(crate) fn cuda(&mut self, cuda: &Path) -> Result<PathBuf, String> {
        let link = self.link(cuda, DRIVER)?;
        Ok(link.parent().map(Path::to_path_buf).unwrap_or_default())
    }

    /// Returns a file that leads a browser to an address. Every user of the machine can read the browser's command
    /// line, but only this one the file.
    pub(crate) fn page(&mut self, address: &str) -> Result<PathBuf, String> {
        let folder = self.folder()?;
        let path = folder.path().join(PAGE);
        let text = format!("<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url={address}\">\n");
        let written = folder.own_file(PAGE, WriteMode::Append).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map(|()| path.clone()).map_err(|error| unusable(&path, &error))
    }

    /// Keeps the directory after the run. A later run removes it.
    pub(crate) fn keep(&mut self) {
        self.place = None;
    }

    fn link(&mut self, target: &Path, name: &str) -> Result<PathBuf, String> {
        let folder = self.folder()?;
        let path = folder.path().join(name);
        folder.link(target, name).map(|()| path.clone()).map_err(|error| unusable(&path, &error))
    }

    /// The directory, which is made in the first place that is safe.
    fn folder(&mut self) -> Result<Folder, String> {
        if let Some(folder) = &self.folder {
            return Ok(folder.clone());
        }
        let mut first = None;
        for path in places() {
            match made_in(&path) {
                Ok((place, name, folder)) => {
                    (self.place, self.folder) = (Some((place, name)), Some(folder.clone()));
                    return Ok(folder);
                }
                Err(error) => first = first.or(Some(unusable(&path, &error))),
            }
        }
        Err(first.unwrap_or_else(|| unusable(&env::temp_dir(), &io::ErrorKind::NotFound.into())))
    }
}

fn unusable(path: &Path, why: &io::Error) -> String {
    let path = path.display();
    format!(
        "no private directory can be created in {path}: {why}; set TMPDIR to a directory that only you can write to"
    )
}

impl Drop for TemporaryInstall {
    fn drop(&mut self) {
        if let Some((place, name)) = &self.place {
            drop(remove(place, name));
        }
    }
}

fn installed(device: &Path) -> Option<PathBuf> {
    let folder = device.parent()?.join(INSTALLED);
    let leads_to_it = |name| fs::canonicalize(folder.join(name)).is_ok_and(|there| there == device);
    let is_there = leads_to_it(LOADER) && leads_to_it(LOADER_WITHOUT_VERSION);
    (is_there && !unfit_for_preloading(&folder)).then_some(folder)
}

/// The directories for temporary files, in the order in which they are tried.
fn places() -> impl Iterator<Item = PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let named = [env::temp_dir()].into_iter().chain(runtime);
    let all = named.chain(["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from));
    // Absolute, and without links: the directories above it are those of its path.
    all.filter_map(|path| fs::canonicalize(path).ok()).filter(|path| !unfit_for_preloading(path))
}

/// Makes a private directory with the name of this run. Those of runs that are over are removed.
fn made_in(path: &Path) -> io::Result<(Folder, String, Folder)> {
    let place = Folder::open(path)?;
    place.refuse_replaceable()?;
    remove_old(&place);
    let start = stat(process::id()).map_or(0, |stat| stat.start);
    for number in 0..100 {
        let name = format!("{}{}-{start:x}-{number}", prefix(), process::id());
        match place.make_below(&name) {
            // Somebody else has taken the name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                let folder = made?;
                folder.refuse_shared().inspect_err(|_| drop(remove(&place, &name)))?;
                return Ok((place, name, folder));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// How the names of the directories of this boot and these process numbers begin.
fn prefix() -> String {
    format!("urscope-{:08x}-", fingerprint(format!("{} {}", boot_id(), pid_namespace()).as_bytes()) as u32)
}

/// Removes the directories of runs that are over, unless a process that was left behind has one in its environment.
fn remove_old(place: &Folder) {
    let prefix = prefix();
    let over = |name: &str| {
        let mut words = name.strip_prefix(&prefix)?.split('-');
        let pid = words.next()?.parse().ok()?;
        let start = u64::from_str_radix(words.next()?, 16).ok()?;
        (!is_running(pid, start)).then_some(())
    };
    for name in place.names().unwrap_or_default() {
        if let Some(name) = name.to_str().filter(|name| over(name).is_some())
            && !is_in_use(&place.path().join(name))
        {
            drop(remove(place, name));
        }
    }
}

/// Whether a process of this user has a directory in its environment.
fn is_in_use(folder: &Path) -> bool {
    let folder = folder.as_os_str().as_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut environments = processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    environments.any(|environment| environment.windows(folder.len()).any(|part| part == folder))
}

fn remove(place: &Folder, name: &str) -> io::Result<()> {
    let folder = place.below(name)?;
    for name in [LOADER, LOADER_WITHOUT_VERSION, DRIVER, LIBRARY, PAGE] {
        drop(folder.remove_file(name));
    }
    place.remove_folder(name)
}

/// Whether the dynamic loader would misread a path: it splits at spaces and colons (and at semicolons in
/// LD_LIBRARY_PATH), and expands names after a dollar sign. The dispatcher of XPTI splits at commas.
pub(crate) fn unfit_for_preloading(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| b" :;,$\t\n".contains(byte))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_path_that_cannot_be_preloaded_gets_a_link() {
        let mut install = TemporaryInstall::default();
        assert_eq!(install.library(Path::new("/opt/liburscope.so")).unwrap(), Path::new("/opt/liburscope.so"));
        assert!(install.folder.is_none());
        let link = install.library(Path::new("/my files/liburscope.so")).unwrap();
        assert!(!unfit_for_preloading(&link), "{}", link.display());
        assert_eq!(link.read_link().unwrap(), Path::new("/my files/liburscope.so"));
        let folder = link.parent().unwrap().to_owned();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        drop(install);
        assert!(!folder.exists(), "the private directory is removed after the run");
    }

    #[test]
    fn nothing_is_left_whatever_was_linked() {
        let mut install = TemporaryInstall::default();
        let folder = install.device(Path::new("/opt/libze_loader.so")).unwrap();
        assert_eq!(install.cuda(Path::new("/opt/liburscope_cuda.so")).unwrap(), folder);
        install.library(Path::new("/my files/liburscope.so")).unwrap();
        assert_eq!(install.page("http://127.0.0.1:1/a/").unwrap().parent(), Some(&*folder));
        assert_eq!(folder.read_dir().unwrap().count(), 5);
        drop(install);
        assert!(!folder.exists(), "{}", folder.display());
    }

    #[test]
    fn the_device_is_linked_under_the_name_of_the_loader() {
        let mut install = TemporaryInstall::default();
        let folder = install.device(Path::new("/opt/libze_loader.so")).unwrap();
        for name in [LOADER, LOADER_WITHOUT_VERSION] {
            assert_eq!(folder.join(name).read_link().unwrap(), Path::new("/opt/libze_loader.so"));
        }
    }

    #[test]
    fn an_installed_device_needs_no_private_directory() {
        let tree = tempfile::tempdir().unwrap();
        let device = tree.path().canonicalize().unwrap().join("libze_loader.so");
        fs::write(&device, "").unwrap();
        assert_eq!(installed(&device), None);
        let folder = device.parent().unwrap().join(INSTALLED);
        fs::create_dir(&folder).unwrap();
        for name in [LOADER, LOADER_WITHOUT_VERSION] {
            assert_eq!(installed(&device), None);
            symlink("../libze_loader.so", folder.join(name)).unwrap();
        }
        assert_eq!(installed(&device), Some(folder));
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_used() {
        let outer = tempfile::tempdir().unwrap();
        let set = |mode| fs::set_permissions(outer.path(), fs::Permissions::from_mode(mode)).unwrap();
        let path = outer.path().canonicalize().unwrap();
        let inner = path.join("inner");
        fs::create_dir(&inner).unwrap();
        for (mode, is_used) in [(0o777, false), (0o720, false), (0o1777, true), (0o755, true)] {
            set(mode);
            for place in [&path, &inner] {
                assert_eq!(made_in(place).is_ok(), is_used, "{mode:o}");
            }
        }
    }

    #[test]
    fn what_a_run_left_behind_is_removed_when_nobody_uses_it() {
        let place = tempfile::tempdir().unwrap();
        let held = Folder::open(&place.path().canonicalize().unwrap()).unwrap();
        let start = stat(process::id()).unwrap().start;
        // Of a process that never was, of this one, and of another boot.
        let over = format!("{}{}-1-0", prefix(), u32::MAX);
        let running = format!("{}{}-{start:x}-0", prefix(), process::id());
        for name in [&over, &running, "urscope-00000000-1-1-0"] {
            held.make_below(name).unwrap().link(Path::new("/opt/a.so"), LIBRARY).unwrap();
        }
        let folder = held.path().join(&over);
        let mut user = process::Command::new("sleep").arg("60").env("LD_LIBRARY_PATH", &folder).spawn().unwrap();
        while !is_in_use(&folder) {}
        remove_old(&held);
        assert_eq!(held.names().unwrap().len(), 3);
        user.kill().unwrap();
        user.wait().unwrap();
        remove_old(&held);
        assert!(!folder.exists());
        assert_eq!(held.names().unwrap().len(), 2);
    }

    #[test]
    fn a_temporary_directory_with_a_space_is_not_used() {
        assert!(places().all(|place| !unfit_for_preloading(&place)) && unfit_for_preloading(Path::new("/my files")));
    }
}
