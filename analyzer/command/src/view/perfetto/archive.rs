//! A copy of the Perfetto UI in the zip archive of a release.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read as _},
    path::{Component, Path},
    sync::{Mutex, PoisonError},
};

use zip::ZipArchive;

use super::{BIGGEST, FILES, Files, INDEX, too_big, too_many};

/// The files of an archive, by their paths in URLs.
#[derive(Debug)]
pub(super) struct Archive {
    table: BTreeMap<String, usize>,
    zip: Mutex<ZipArchive<BufReader<File>>>,
}

impl Archive {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
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
        Ok(Self { table, zip: Mutex::new(zip) })
    }
}

/// The path of an entry in URLs; `None` if it leads out of the archive.
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

impl Files for Archive {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(index) = self.table.get(name) else { return Ok(None) };
        let mut zip = self.zip.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = zip.by_index(*index).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        // The size in the table of contents may be wrong.
        entry.take(BIGGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BIGGEST { Err(too_big(name)) } else { Ok(Some(bytes)) }
    }
}
