//! Reads the ELF headers of programs and libraries.
//!
//! It never loads or runs them.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::{ffi::OsStr, fs::File, os::unix::ffi::OsStrExt as _};

use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, NameOrOrdinal, Object as _, ReadCache};

/// How a program finds its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// The dynamic loader starts it, so a library can be preloaded.
    Dynamic,
    Static,
    /// It is built for another processor or for 32 bits.
    Foreign,
    Other,
}

pub(crate) fn linkage(program: &Path) -> io::Result<Linkage> {
    let mut file = File::open(program)?;
    let mut magic = [0; 5];
    if file.read(&mut magic)? < magic.len() || !magic.starts_with(&elf::ELFMAG) {
        return Ok(Linkage::Other);
    }
    let cache = ReadCache::new(file);
    let Ok(header) = FileHeader64::<Endianness>::parse(&cache) else { return Ok(Linkage::Foreign) };
    let malformed = |error: object::Error| io::Error::new(io::ErrorKind::InvalidData, error);
    let endian = header.endian().map_err(malformed)?;
    if header.e_machine(endian) != MACHINE {
        return Ok(Linkage::Foreign);
    }
    let segments = header.program_headers(endian, &cache).map_err(malformed)?;
    let dynamic = segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP);
    Ok(if dynamic { Linkage::Dynamic } else { Linkage::Static })
}

#[cfg(target_arch = "x86_64")]
const MACHINE: elf::Machine = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: elf::Machine = elf::EM_AARCH64;

/// The dynamic loader that a program names; `None` if it names none, or is no 64-bit program of this processor.
pub(crate) fn loader(program: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(File::open(program).ok()?);
    let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let mut segments = header.program_headers(endian, &cache).ok()?.iter();
    let name = segments.find_map(|segment| segment.interpreter(endian, &cache).ok()?)?;
    Some(OsStr::from_bytes(name).into())
}

/// What call stacks can show of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Names {
    Lines,
    Functions,
    None,
    /// It is no ELF file.
    #[default]
    Unknown,
}

/// Reads what names a program has of its own. Debug information in another file is not looked for.
pub(crate) fn names(program: &Path) -> Names {
    let Ok(file) = File::open(program) else { return Names::Unknown };
    let cache = ReadCache::new(file);
    let Ok(file) = ElfFile64::<Endianness, _>::parse(&cache) else { return Names::Unknown };
    match (file.section_by_name(".debug_line"), file.symbol_table()) {
        (Some(_), _) => Names::Lines,
        (None, Some(_)) => Names::Functions,
        (None, None) => Names::None,
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Library {
    pub(crate) needed: Vec<String>,
    pub(crate) exports: Vec<String>,
}

impl Library {
    pub(crate) fn needs(&self, name: &str) -> bool {
        self.needed.iter().any(|needed| needed == name)
    }
}

/// Reads a 64-bit shared library. The error is a text for the user.
pub(crate) fn library(path: &Path) -> Result<Library, String> {
    let cache = ReadCache::new(File::open(path).map_err(|error| error.to_string())?);
    read(&cache).map_err(|error| format!("it is not a 64-bit shared library: {error}"))
}

fn read(cache: &ReadCache<File>) -> object::Result<Library> {
    let file = ElfFile64::<Endianness, _>::parse(cache)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let dynamic = file.elf_dynamic_table()?;
    let mut library = Library::default();
    for entry in &dynamic {
        if entry.tag == elf::DT_NEEDED {
            library.needed.push(text(dynamic.string(entry)?));
        }
    }
    for export in file.exports()? {
        if let NameOrOrdinal::Name(name) = export?.name() {
            library.exports.push(text(name));
        }
    }
    Ok(library)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn this_program_is_dynamic_and_a_script_is_not_elf() {
        assert_eq!(linkage(&std::env::current_exe().unwrap()).unwrap(), Linkage::Dynamic);
        let mut script = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(linkage(script.path()).unwrap(), Linkage::Other, "an empty file");
        script.write_all(b"#!/bin/sh\n").unwrap();
        assert_eq!(linkage(script.path()).unwrap(), Linkage::Other);
    }

    #[test]
    fn a_program_without_an_interpreter_is_static() {
        // The header of a static program, without any segments.
        let mut head = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0];
        head.extend_from_slice(&MACHINE.0.to_le_bytes());
        head.extend_from_slice(&1u32.to_le_bytes());
        head.resize(64, 0);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&head).unwrap();
        assert_eq!(linkage(file.path()).unwrap(), Linkage::Static);
    }

    #[test]
    fn a_32_bit_program_is_foreign() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0").unwrap();
        assert_eq!(linkage(file.path()).unwrap(), Linkage::Foreign);
    }

    #[test]
    fn this_program_needs_the_c_library() {
        let library = library(&std::env::current_exe().unwrap()).unwrap();
        assert!(library.needs("libc.so.6"), "{:?}", library.needed);
        assert!(super::library(Path::new("/nowhere")).unwrap_err().contains("No such file"));
    }
}
