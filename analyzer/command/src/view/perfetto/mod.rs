//! A copy of the Perfetto UI, for machines without a network: a directory, or the `perfetto-ui.zip` of a release.
//!
//! The copy is served under the name `localhost`, and the page under `127.0.0.1`, on the same port. To a browser these
//! are two origins, so the code of the copy cannot read the answers of the page, although only one port has to be
//! forwarded from another host. The copy needs a less strict policy than the page, because it compiles WebAssembly. It
//! can request only its own files and the timeline.
//!
//! The names of all its files are in a table that is made once. Other files must never be served.

mod files;
mod find;

use std::{io, path::Path};

use super::assets::content_type;
use files::Files;

pub use find::find;

/// The name under which the copy can request the timeline.
pub(super) const TRACE: &str = "urscope-timeline.json";

/// The file of an empty name.
const INDEX: &str = "index.html";

/// A copy of the Perfetto UI.
#[derive(Debug)]
pub struct Copy(Files);

impl Copy {
    /// Opens a directory or an archive. The error is a text for the user.
    pub fn open(path: &Path) -> Result<Self, String> {
        let no_copy = |why: String| {
            let path = path.display();
            let name = "name the directory of its index.html, or the perfetto-ui.zip of a release";
            format!("{path} is not a copy of the Perfetto UI: {why}; {name}")
        };
        let files = if path.is_dir() { Files::of_folder(path) } else { Files::of_archive(path) };
        let files = files.map_err(|error| no_copy(error.to_string()))?;
        match files.read(INDEX) {
            Ok(Some(_)) => Ok(Self(files)),
            Ok(None) => Err(no_copy(format!("it has no {INDEX}"))),
            Err(error) => Err(no_copy(format!("its {INDEX} cannot be read: {error}"))),
        }
    }

    /// Reads a file, with its content type. An empty name is the index.
    pub(super) fn file(&self, name: &str) -> io::Result<Option<(&'static str, Vec<u8>)>> {
        let name = if name.is_empty() { INDEX } else { name };
        Ok(self.0.read(name)?.map(|bytes| (content_type(name), bytes)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};
    use std::{fs, os::unix::fs::symlink};

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::{files::BIGGEST, *};

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
    fn only_files_inside_the_folder_are_served() {
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
        assert!(copy.file("v1/assets/a.wasm").is_err(), "a link that replaced a file is not followed");
    }

    #[test]
    fn an_archive_is_served_with_or_without_a_top_level_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perfetto-ui.zip");
        let big = vec![b'x'; 100_000];
        for before in ["", "perfetto-ui/", "./"] {
            let index = format!("{before}index.html");
            let code = format!("{before}v1/engine.js");
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
    fn a_path_that_is_not_a_copy_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Copy::open(folder.path()).unwrap_err().contains("it has no index.html"));
        let path = folder.path().join("perfetto-ui.zip");
        fs::write(&path, "PK").unwrap();
        assert!(Copy::open(&path).unwrap_err().contains("perfetto-ui.zip is not a copy"));
        fs::write(&path, archive(&[("readme", b"")])).unwrap();
        assert!(Copy::open(&path).unwrap_err().contains("it has no index.html"));
        assert!(Copy::open(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn wrong_sizes_in_an_archive_do_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perfetto-ui.zip");
        let zeros = vec![0; (BIGGEST + 1) as usize];
        fs::write(&path, archive(&[("index.html", b"page"), ("bomb", &zeros)])).unwrap();
        let copy = Copy::open(&path).unwrap();
        assert!(copy.file("bomb").unwrap_err().to_string().contains("bomb has more than"));
        // Set the sizes in the archive to 1 byte.
        let mut forged = fs::read(&path).unwrap();
        let size = (zeros.len() as u32).to_le_bytes();
        let places: Vec<_> = (0..forged.len() - 4).filter(|at| forged[*at..*at + 4] == size).collect();
        assert!(!places.is_empty());
        for at in places {
            forged[at..at + 4].copy_from_slice(&1_u32.to_le_bytes());
        }
        fs::write(&path, forged).unwrap();
        let copy = Copy::open(&path).unwrap();
        assert!(copy.file("bomb").map_or(0, |found| found.unwrap().1.len()) <= BIGGEST as usize);
    }
}
