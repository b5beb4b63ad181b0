//! A copy of the Perfetto UI in a directory.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use super::{BIGGEST, FILES, Files, too_big, too_many};

/// The maximum depth of directories.
const DEPTH: usize = 8;

/// The files of a directory, by their paths in URLs.
#[derive(Debug)]
pub(super) struct Folder {
    table: BTreeMap<String, PathBuf>,
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut table = BTreeMap::new();
        enter(path, "", DEPTH, &mut table)?;
        Ok(Self { table })
    }
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

impl Files for Folder {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(path) = self.table.get(name) else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let mut bytes = Vec::new();
        file.take(BIGGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BIGGEST { Err(too_big(name)) } else { Ok(Some(bytes)) }
    }
}
