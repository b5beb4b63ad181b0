//! Finds the program to run, and checks whether a library can be loaded into it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::{io::Errno, process};

use crate::elf::{self, Linkage};

/// The search path if PATH is not set, as in the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Why there is no program to run, and a shell's exit code: 127 if there is none, 126 if it cannot be executed.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct NoProgram {
    pub(crate) exit_code: u8,
    why: String,
}

impl NoProgram {
    fn not_executable(program: &OsStr, why: &str) -> Self {
        Self { exit_code: 126, why: format!("{} cannot be executed: {why}", program.to_string_lossy()) }
    }

    /// The error that the system refused to start a program.
    pub(crate) fn start(program: &OsStr, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => {
                Self::not_executable(program, "it exists, but its interpreter or dynamic loader does not")
            }
            _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
                let name = program.to_string_lossy();
                let why = format!("{name} is neither a program nor a script with a #! line; run it as `sh {name}`");
                Self { exit_code: 126, why }
            }
            _ => Self::not_executable(program, &error.to_string()),
        }
    }
}

/// A program that passed all checks for being executable.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
}

impl Program {
    /// Finds a program as a shell does: by its path if its name contains a slash, else in PATH.
    pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> Result<Self, NoProgram> {
        let (candidates, place): (Vec<PathBuf>, _) = if name.as_bytes().contains(&b'/') {
            (vec![name.into()], "at this path")
        } else {
            let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
            (env::split_paths(path).map(|folder| folder.join(name)).collect(), "in PATH")
        };
        let mut why = None;
        for candidate in candidates {
            match usable(&candidate) {
                Ok(()) => return Ok(Self { path: candidate }),
                Err(reason) => why = why.or(reason),
            }
        }
        Err(why.map_or_else(
            || {
                let name = name.to_string_lossy();
                let advice = "give its path, or a name that is found in PATH";
                NoProgram { exit_code: 127, why: format!("{name}: there is no such program {place}; {advice}") }
            },
            |why| NoProgram::not_executable(name, &why),
        ))
    }

    /// The interpreter in the first line of a script.
    pub(crate) fn interpreter(&self) -> Option<PathBuf> {
        let mut line = Vec::new();
        // The kernel reads at most 256 bytes.
        BufReader::new(File::open(&self.path).ok()?).take(256).read_until(b'\n', &mut line).ok()?;
        let rest = line.strip_prefix(b"#!")?.trim_ascii();
        let word = rest.split(u8::is_ascii_whitespace).next().filter(|word| !word.is_empty())?;
        Some(OsString::from_vec(word.to_vec()).into())
    }

    /// The file that the kernel executes: the program, or the interpreter of a script.
    pub(crate) fn binary(&self) -> PathBuf {
        self.interpreter().unwrap_or_else(|| self.path.clone())
    }

    /// The library of AddressSanitizer that the program, or the interpreter of a script, is linked with.
    pub(crate) fn sanitizer(&self) -> Option<String> {
        let needed = elf::library(&self.binary()).ok()?.needed;
        needed.into_iter().find(|library| is_sanitizer(library))
    }

    /// Why a library cannot be loaded into the program; `None` if it can. Processes that it starts are not checked.
    pub(crate) fn obstacle(&self) -> Option<(String, &'static str)> {
        let path = self.binary();
        let name = path.display();
        Some(match elf::linkage(&path) {
            Ok(Linkage::Static) => {
                (format!("{name} is statically linked, so no library can be loaded into it"), "link it dynamically")
            }
            Ok(Linkage::Foreign) => (
                format!(
                    "{name} is built for another processor or for 32 bits, so liburscope.so cannot be loaded into it"
                ),
                "build it for x86-64",
            ),
            Ok(Linkage::Dynamic | Linkage::Other) | Err(_) => {
                let gains = gained_rights(&path)?;
                let why =
                    format!("{name} {gains}, and the dynamic loader preloads nothing into a program that gains rights");
                (why, "run it without these rights")
            }
        })
    }
}

/// Checks that a program can be executed. The error is why not; `None` if it does not exist.
fn usable(path: &Path) -> Result<(), Option<String>> {
    let because = |why: String| Err(Some(why));
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => because(format!("{} is a directory", path.display())),
        Ok(metadata) if !metadata.is_file() => because(format!("{} is not a regular file", path.display())),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 || access(path, Access::EXEC_OK).is_err() => {
            because(format!("{} exists, but may not be executed (chmod +x makes a file executable)", path.display()))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            because(format!("{}: {error}", path.display()))
        }
        Err(_) => Err(None),
    }
}

/// Whether a library, by its path or name, is that of AddressSanitizer, of GCC or Clang.
pub(crate) fn is_sanitizer(library: &str) -> bool {
    let name = library.rsplit('/').next().unwrap_or_default();
    name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan")
}

/// What gives a program more rights than its caller has, as part of a message.
fn gained_rights(path: &Path) -> Option<&'static str> {
    let metadata = fs::metadata(path).ok()?;
    let mode = metadata.mode();
    if mode & 0o4000 != 0 && metadata.uid() != process::getuid().as_raw() {
        return Some("has the setuid bit");
    }
    if mode & 0o2000 != 0 && metadata.gid() != process::getgid().as_raw() {
        return Some("has the setgid bit");
    }
    // Only the length is queried. Root gains nothing by capabilities.
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut [0u8; 0][..]);
    let has = matches!(capabilities, Ok(1..) | Err(Errno::RANGE));
    (has && !process::getuid().is_root()).then_some("has file capabilities")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str, path: Option<&str>) -> Result<PathBuf, u8> {
        Program::find(OsStr::new(name), path.map(OsStr::new))
            .map(|program| program.path)
            .map_err(|error| error.exit_code)
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let tool = folder.path().join("tool");
        fs::write(&data, "").unwrap();
        fs::write(&tool, "").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("/nowhere:{}", folder.path().display());

        assert_eq!(code("tool", Some(&path)), Ok(tool.clone()));
        assert_eq!(code(tool.to_str().unwrap(), None), Ok(tool));
        assert_eq!(code("data", Some(&path)), Err(126));
        assert_eq!(code("/", Some(&path)), Err(126));
        assert_eq!(code("absent", Some(&path)), Err(127));
        assert_eq!(code("./absent", Some(&path)), Err(127));
        assert!(code("sh", None).is_ok());
    }

    #[test]
    fn the_interpreter_of_a_script_is_checked() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, b"#! /bin/sh -e\necho\n").unwrap();
        let script = Program { path: file.path().into() };
        assert_eq!((script.interpreter(), script.obstacle()), (Some("/bin/sh".into()), None));
        assert_eq!(Program { path: "/bin/sh".into() }.interpreter(), None);
    }

    #[test]
    fn gained_rights_are_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(gained_rights(file.path()), None);
        // The owner of a setuid file gains nothing.
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(gained_rights(file.path()), None);
        if std::os::unix::fs::chown(file.path(), Some(12_345), None).is_ok() {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o4755)).unwrap();
            assert_eq!(gained_rights(file.path()), Some("has the setuid bit"));
        }
    }
}
