//! What the symbol table of a program or library calls an address: read from its file, a piece at a time.
//!
//! The file may have any size and any content; what does not look as it should gives no name. It is read only where a
//! finding is said, never on the way of a call.

use std::{fs::File, os::unix::fs::FileExt as _, path::Path};

/// The longest name that is read, in bytes: what C++ makes of templates has no end.
const NAME: usize = 1024;

/// An entry of a symbol table, in bytes (`Elf64_Sym`), and of the table of sections (`Elf64_Shdr`).
const SYMBOL: usize = 24;
const SECTION: usize = 64;

/// How much of a symbol table is read at once.
const PIECE: usize = SYMBOL << 11;

/// The name of the function that `place` lies in, an address as the file counts them; as the linker knows it.
pub fn function(file: &Path, place: u64) -> Option<String> {
    let file = File::open(file).ok()?;
    let sections = Sections::of(&file)?;
    // The full table, where it was not stripped, and then what is exported.
    [SHT_SYMTAB, SHT_DYNSYM].into_iter().find_map(|kind| {
        let table = sections.all().find(|section| section.kind() == Some(kind))?;
        let names = sections.at(table.link()?)?;
        let name = symbol_at(&file, table.offset()?, table.size()?, place)?;
        text(&file, names.offset()?.checked_add(name.into())?)
    })
}

// elf.h
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

struct Sections(Vec<u8>);

impl Sections {
    /// The table of a 64-bit file of this machine's byte order.
    fn of(file: &File) -> Option<Self> {
        let mut head = [0; SECTION];
        file.read_exact_at(&mut head, 0).ok()?;
        if !head.starts_with(b"\x7fELF\x02\x01") || word::<2>(&head, 58)? != [SECTION as u8, 0] {
            return None;
        }
        let count = u16::from_le_bytes(word(&head, 60)?);
        let mut table = vec![0; usize::from(count) * SECTION];
        file.read_exact_at(&mut table, u64::from_le_bytes(word(&head, 40)?)).ok()?;
        Some(Self(table))
    }

    fn all(&self) -> impl Iterator<Item = Section<'_>> {
        self.0.chunks_exact(SECTION).map(Section)
    }

    fn at(&self, index: u32) -> Option<Section<'_>> {
        self.all().nth(index as usize)
    }
}

struct Section<'a>(&'a [u8]);

impl Section<'_> {
    fn kind(&self) -> Option<u32> {
        word(self.0, 4).map(u32::from_le_bytes)
    }

    fn offset(&self) -> Option<u64> {
        word(self.0, 24).map(u64::from_le_bytes)
    }

    fn size(&self) -> Option<u64> {
        word(self.0, 32).map(u64::from_le_bytes)
    }

    fn link(&self) -> Option<u32> {
        word(self.0, 40).map(u32::from_le_bytes)
    }
}

/// Where the name of the function that `place` lies in stands among the names.
fn symbol_at(file: &File, mut from: u64, size: u64, place: u64) -> Option<u32> {
    let end = from.checked_add(size)?;
    let mut piece = vec![0; PIECE];
    while from < end {
        let piece = piece.get_mut(..usize::try_from(end - from).map_or(PIECE, |left| left.min(PIECE)))?;
        file.read_exact_at(piece, from).ok()?;
        from += piece.len() as u64;
        let found = piece.chunks_exact(SYMBOL).find_map(|symbol| {
            let [info] = word(symbol, 4)?;
            let (value, size) = (u64::from_le_bytes(word(symbol, 8)?), u64::from_le_bytes(word(symbol, 16)?));
            let is_function = matches!(info & 0xf, STT_FUNC | STT_GNU_IFUNC) && word(symbol, 6)? != [0, 0];
            let holds = place.checked_sub(value).is_some_and(|into| into < size);
            (is_function && holds).then_some(u32::from_le_bytes(word(symbol, 0)?))
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

fn text(file: &File, at: u64) -> Option<String> {
    let mut bytes = [0; NAME];
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at.checked_add(read as u64)?).ok()? {
            0 => break,
            more => read += more,
        }
    }
    let name = bytes.get(..read)?.split(|byte| *byte == 0).next()?;
    if name.is_empty() { None } else { Some(String::from_utf8_lossy(name).into_owned()) }
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::symbols::modules;

    fn place(address: usize) -> (std::path::PathBuf, u64) {
        let module = modules::describe(address).unwrap();
        (module.path.into(), address as u64 - module.bias.0)
    }

    #[test]
    fn a_function_is_found_by_any_of_its_addresses() {
        let (file, place) = place(symbol_at as *const () as usize);
        for place in [place, place + 1] {
            let name = function(&file, place).unwrap();
            assert!(name.contains("symbol_at"), "{name}");
        }
        assert_eq!(function(&file, 1), None);
    }

    #[test]
    fn an_exported_name_does_where_the_rest_was_stripped() {
        let (file, place) = place(libc::malloc as *const () as usize);
        assert!(function(&file, place).unwrap().contains("malloc"));
    }

    #[test]
    fn what_is_no_elf_file_or_is_cut_short_has_no_names() {
        let (file, place) = place(symbol_at as *const () as usize);
        let whole = std::fs::read(&file).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cut = folder.path().join("cut");
        for length in [0, 1, 63, 64, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&cut, &whole[..length]).unwrap();
            assert_eq!(function(&cut, place), None, "{length} bytes");
        }
        // Whatever stands in the table of sections, nothing but a name or none comes of it.
        let table = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
        for (at, value) in (table..whole.len()).step_by(97).zip([0_u8, 0xff, 0x7f, 2, 11].into_iter().cycle()) {
            let mut damaged = whole.clone();
            damaged[at] = value;
            std::fs::write(&cut, &damaged).unwrap();
            let _ = function(&cut, place);
        }
        assert_eq!(function(Path::new("/nowhere"), 0), None);
    }
}
