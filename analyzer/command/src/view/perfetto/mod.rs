//! A copy of the Perfetto UI, for where there is no network: a folder of it, or the `perfetto-ui.zip` that comes with a release of
//! Perfetto.
//!
//! It is served on our port under the other name that this machine has, `localhost`, while the page is under `127.0.0.1`. To a browser these are
//! two origins, so nothing that runs in it can read what we answer, although one port is all that has to be forwarded from another
//! host. It needs a looser policy than our page, because it compiles WebAssembly, and it may ask for nothing but its own files and
//! the timeline beside them.
//!
//! The names of all its files are in a table that is made once. What is not in it is not served, whatever a path may look like.

mod archive;
mod find;
mod folder;

use std::{io, path::Path};

pub use find::find;

/// The name of the timeline beside its files.
pub(super) const TRACE: &str = "urscope-timeline.json";

/// The file with which it begins.
const INDEX: &str = "index.html";

/// How many files a copy may have.
const FILES: usize = 4096;

/// EndReason big one of them may be, in bytes.
const BIGGEST: u64 = 64 << 20;

/// A copy.
#[derive(Debug)]
pub struct Copy {
    files: Box<dyn Files>,
}

/// Where the files of a copy are.
trait Files: std::fmt::Debug + Send + Sync {
    /// What is in the file of a name, if there is one.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
}

/// There is no copy where one was named.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} is no copy of the Perfetto UI: {why}; name the folder that holds its index.html, or the perfetto-ui.zip of a release"
)]
pub struct NoCopy {
    path: String,
    why: String,
}

impl Copy {
    /// Takes a folder or an archive.
    pub fn open(path: &Path) -> Result<Self, NoCopy> {
        let no_copy = |why: String| NoCopy { path: path.display().to_string(), why };
        let files: io::Result<Box<dyn Files>> = if path.is_dir() {
            folder::Folder::open(path).map(|folder| Box::new(folder) as _)
        } else {
            archive::Archive::open(path).map(|archive| Box::new(archive) as _)
        };
        let files = files.map_err(|error| no_copy(error.to_string()))?;
        match files.read(INDEX) {
            Ok(Some(_)) => Ok(Self { files }),
            Ok(None) => Err(no_copy(format!("it has no {INDEX}"))),
            Err(error) => Err(no_copy(format!("its {INDEX} cannot be read: {error}"))),
        }
    }

    /// The file of a name, with what it is; no name is the first one.
    pub(super) fn file(&self, name: &str) -> io::Result<Option<(&'static str, Vec<u8>)>> {
        let name = if name.is_empty() { INDEX } else { name };
        Ok(self.files.read(name)?.map(|bytes| (kind(name), bytes)))
    }
}

/// What a file is, by its name.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

fn too_big(name: &str) -> io::Error {
    io::Error::other(format!("{name} has more than {BIGGEST} bytes"))
}

fn too_many() -> io::Error {
    io::Error::other(format!("it has more than {FILES} files"))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Cursor, Write as _},
        os::unix::fs::symlink,
    };

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn text(copy: &Copy, name: &str) -> Option<String> {
        copy.file(name).unwrap().map(|(_, bytes)| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_folder_is_served_and_nothing_beside_it() {
        let outer = tempfile::tempdir().unwrap();
        let ui = outer.path().join("ui");
        fs::create_dir_all(ui.join("v1/assets")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        fs::write(ui.join("index.html"), "page").unwrap();
        fs::write(ui.join("v1/assets/a.wasm"), "code").unwrap();
        symlink("../secret", ui.join("link")).unwrap();
        symlink("v1/assets/a.wasm", ui.join("inside")).unwrap();
        symlink("..", ui.join("up")).unwrap();
        let copy = Copy::open(&ui).unwrap();
        assert_eq!(text(&copy, "").as_deref(), Some("page"));
        assert_eq!(copy.file("v1/assets/a.wasm").unwrap().unwrap().0, "application/wasm");
        for name in ["../secret", "link", "up/secret", "v1/../../secret", "/etc/passwd", "v1", "v1/assets/", "nothing"]
        {
            assert_eq!(text(&copy, name), None, "{name}");
        }
        fs::write(ui.join("later"), "later").unwrap();
        assert_eq!(text(&copy, "later"), None, "the table is made once");
        fs::remove_file(ui.join("v1/assets/a.wasm")).unwrap();
        symlink("../../../secret", ui.join("v1/assets/a.wasm")).unwrap();
        assert!(copy.file("v1/assets/a.wasm").is_err(), "a link in the place of a file is not followed");
    }

    #[test]
    fn an_archive_is_served_also_with_a_folder_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perfetto-ui.zip");
        let big = vec![b'x'; 100_000];
        for before in ["", "perfetto-ui/", "./"] {
            let (index, code) = (format!("{before}index.html"), format!("{before}v1/engine.js"));
            fs::write(&path, archive(&[(&index, b"page"), (&code, &big), ("../secret", b"secret")])).unwrap();
            let copy = Copy::open(&path).unwrap();
            assert_eq!(text(&copy, "").as_deref(), Some("page"));
            assert_eq!(text(&copy, "v1/engine.js").map(|text| text.len()), Some(big.len()));
            for name in ["../secret", "secret", "v1", "v1/"] {
                assert_eq!(text(&copy, name), None, "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_copy_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Copy::open(folder.path()).unwrap_err().to_string().contains("it has no index.html"));
        let path = folder.path().join("perfetto-ui.zip");
        fs::write(&path, "PK").unwrap();
        assert!(Copy::open(&path).unwrap_err().to_string().contains("perfetto-ui.zip is no copy"));
        fs::write(&path, archive(&[("readme", b"")])).unwrap();
        assert!(Copy::open(&path).unwrap_err().to_string().contains("it has no index.html"));
        assert!(Copy::open(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn an_archive_that_lies_about_sizes_fills_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perfetto-ui.zip");
        let zeros = vec![0; (BIGGEST + 1) as usize];
        fs::write(&path, archive(&[("index.html", b"page"), ("bomb", &zeros)])).unwrap();
        let copy = Copy::open(&path).unwrap();
        assert!(copy.file("bomb").unwrap_err().to_string().contains("bomb has more than"));
        // The table of contents says 1 byte.
        let mut lie = fs::read(&path).unwrap();
        let size = (zeros.len() as u32).to_le_bytes();
        let places: Vec<_> = (0..lie.len() - 4).filter(|at| lie[*at..*at + 4] == size).collect();
        assert!(!places.is_empty());
        for at in places {
            lie[at..at + 4].copy_from_slice(&1_u32.to_le_bytes());
        }
        fs::write(&path, lie).unwrap();
        let copy = Copy::open(&path).unwrap();
        assert!(copy.file("bomb").map_or(0, |found| found.unwrap().1.len()) <= BIGGEST as usize);
    }
}
