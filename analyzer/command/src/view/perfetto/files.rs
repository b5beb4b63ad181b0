//! The files of a copy: those of a directory, or of the zip archive of a release.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use zip::ZipArchive;

use super::INDEX;

/// The maximum number of files of a copy.
const FILES: usize = 4096;

/// The maximum size of a file, in bytes.
pub(super) const BIGGEST: u64 = 64 << 20;

/// The maximum depth of directories.
const DEPTH: usize = 8;

/// The files, by their paths in URLs.
#[derive(Debug)]
pub(super) enum Files {
    Folder(BTreeMap<String, PathBuf>),
    Archive(BTreeMap<String, usize>, Mutex<ZipArchive<BufReader<File>>>),
}

impl Files {
    pub(super) fn of_folder(path: &Path) -> io::Result<Self> {
        let mut table = BTreeMap::new();
        enter(path, "", DEPTH, &mut table)?;
        Ok(Self::Folder(table))
    }

    pub(super) fn of_archive(path: &Path) -> io::Result<Self> {
        let mut zip = ZipArchive::new(BufReader::new(File::open(path)?)).map_err(io::Error::other)?;
        if zip.len() > FILES {
            return Err(too_many());
        }
        let mut table = BTreeMap::new();
        for index in 0..zip.len() {
            let entry = zip.by_index_raw(index).map_err(io::Error::other)?;
            if let Some(name) = entry.is_file().then(|| address(entry.name())).flatten() {
                table.insert(name, index);
            }
        }
        // Some archives contain all files in one top-level directory.
        let first = table.keys().filter(|name| name.ends_with(INDEX)).min_by_key(|name| name.len());
        if let Some(around) = first.and_then(|name| name.strip_suffix(INDEX)).map(str::to_owned) {
            let inside = |(name, index): (String, usize)| Some((name.strip_prefix(&around)?.to_owned(), index));
            table = table.into_iter().filter_map(inside).collect();
        }
        Ok(Self::Archive(table, Mutex::new(zip)))
    }

    /// Reads a file; `None` if there is no file of this name.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        match self {
            Self::Folder(table) => {
                let Some(path) = table.get(name) else { return Ok(None) };
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
                file.take(BIGGEST + 1).read_to_end(&mut bytes)?;
            }
            Self::Archive(table, zip) => {
                let Some(index) = table.get(name) else { return Ok(None) };
                let mut zip = zip.lock().unwrap_or_else(PoisonError::into_inner);
                // The size in the table of contents may be wrong.
                zip.by_index(*index).map_err(io::Error::other)?.take(BIGGEST + 1).read_to_end(&mut bytes)?;
            }
        }
        let is_too_big = bytes.len() as u64 > BIGGEST;
        if is_too_big {
            Err(io::Error::other(format!("{name} has more than {BIGGEST} bytes")))
        } else {
            Ok(Some(bytes))
        }
    }
}

fn too_many() -> io::Error {
    io::Error::other(format!("it has more than {FILES} files"))
}

/// Adds the files below a directory to the table. Symbolic links are omitted, because they may lead anywhere.
fn enter(folder: &Path, before: &str, depth: usize, table: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(|name| format!("{before}{name}")) else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            enter(&entry.path(), &format!("{name}/"), depth - 1, table)?;
        } else if kind.is_file() {
            table.insert(name, entry.path());
        }
        if table.len() > FILES {
            return Err(too_many());
        }
    }
    Ok(())
}

/// The path of an entry of an archive in URLs; `None` if it leads out of the archive.
fn address(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}
