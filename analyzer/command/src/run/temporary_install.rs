//! A private directory with symbolic links to parts of urscope. It exists as long as the run.
//!
//! The adapters and libumf open a Level Zero loader by its soname, `libze_loader.so.1`. LD_PRELOAD cannot contain a path with a
//! space or a colon. A symbolic link solves both.

use std::{
    env, io,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::error::RunError;

/// The name under which programs load the Level Zero loader.
pub(crate) const LOADER: &str = "libze_loader.so.1";
/// The name under which some open it themselves, oneCCL for example.
const LOADER_WITHOUT_VERSION: &str = "libze_loader.so";

/// The private directory, created with its first link.
#[derive(Debug, Default)]
pub(crate) struct TemporaryInstall {
    folder: Option<TempDir>,
}

impl TemporaryInstall {
    /// Returns a path of the library that can stand in LD_PRELOAD.
    pub(crate) fn library(&mut self, library: &Path) -> Result<PathBuf, RunError> {
        if unfit_for_preloading(library) { self.link(library, "liburscope.so") } else { Ok(library.into()) }
    }

    /// Returns a directory that contains the software device under the names of the loader.
    pub(crate) fn device(&mut self, device: &Path) -> Result<PathBuf, RunError> {
        self.link(device, LOADER_WITHOUT_VERSION)?;
        let link = self.link(device, LOADER)?;
        Ok(link.parent().map(Path::to_path_buf).unwrap_or_default())
    }

    /// Keeps the directory after the run.
    pub(crate) fn keep(&mut self) {
        if let Some(folder) = self.folder.take() {
            let _ = folder.keep();
        }
    }

    fn link(&mut self, target: &Path, name: &str) -> Result<PathBuf, RunError> {
        let parent = suitable(env::temp_dir());
        let failed = |source: io::Error| RunError::TemporaryInstall { path: parent.clone(), source };
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => tempfile::Builder::new().prefix("urscope-").tempdir_in(&parent).map_err(failed)?,
        };
        let link = folder.path().join(name);
        self.folder = Some(folder);
        symlink(target, &link).map_err(failed)?;
        Ok(link)
    }
}

/// Returns a directory for temporary files whose path can stand in LD_PRELOAD and LD_LIBRARY_PATH.
fn suitable(folder: PathBuf) -> PathBuf {
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    if unfit_for_preloading(&folder) { "/tmp".into() } else { folder }
}

/// Whether the dynamic loader would misread a path: it splits at spaces and colons (and at semicolons in
/// LD_LIBRARY_PATH), and expands names after a dollar sign. The dispatcher of XPTI splits at commas.
pub(crate) fn unfit_for_preloading(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| b" :;,$\t\n".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_preloaded_gets_a_link() {
        let mut install = TemporaryInstall::default();
        assert_eq!(install.library(Path::new("/opt/liburscope.so")).unwrap(), Path::new("/opt/liburscope.so"));
        assert!(install.folder.is_none());
        let link = install.library(Path::new("/my files/liburscope.so")).unwrap();
        assert!(!unfit_for_preloading(&link), "{}", link.display());
        assert_eq!(link.read_link().unwrap(), Path::new("/my files/liburscope.so"));
        drop(install);
        assert!(link.symlink_metadata().is_err(), "the private directory is removed after the run");
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
    fn a_temporary_directory_with_a_space_is_not_used() {
        assert_eq!(suitable("/my files".into()), Path::new("/tmp"));
        assert_eq!(suitable("/scratch".into()), Path::new("/scratch"));
    }
}
