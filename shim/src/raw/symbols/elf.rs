//! The name of a function at an address, from the symbol table of the file of a program or library.
//!
//! The file may have any size and any contents: an invalid one gives no name. It is read for findings only, never on
//! the way of a call.

use std::path::Path;
#[cfg(feature = "frida-gum")]
use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use object::read::{ReadCache, elf::ElfFile64};
use object::{LittleEndian, Object as _, ObjectSymbol as _, SymbolKind};

use crate::raw::files::plain_file;

/// The longest name that is read, in bytes: names of C++ templates have no limit.
const NAME: usize = 1024;

/// The name of the function that `place` lies in, as the linker knows it. `place` is an address as the file counts
/// them.
pub fn function(file: &Path, place: u64) -> Option<String> {
    let file = ReadCache::new(plain_file::open(file, libc::O_RDONLY).ok()?);
    let elf = ElfFile64::<LittleEndian, _>::parse(&file).ok()?;
    // The full table, if it was not stripped, and then what is exported.
    let mut symbols = elf.symbols().chain(elf.dynamic_symbols());
    let symbol = symbols.find(|symbol| {
        let holds = place.checked_sub(symbol.address()).is_some_and(|into| into < symbol.size());
        holds && symbol.kind() == SymbolKind::Text && !symbol.is_undefined()
    })?;
    let name = symbol.name_bytes().ok()?;
    let name = name.get(..NAME).unwrap_or(name);
    if name.is_empty() { None } else { Some(String::from_utf8_lossy(name).into_owned()) }
}

/// The size in bytes of the exported function that begins at `place`.
pub fn size_of_function(file: &Path, place: u64) -> Option<usize> {
    let file = ReadCache::new(plain_file::open(file, libc::O_RDONLY).ok()?);
    let elf = ElfFile64::<LittleEndian, _>::parse(&file).ok()?;
    let symbol = elf.dynamic_symbols().find(|symbol| symbol.address() == place && symbol.kind() == SymbolKind::Text)?;
    usize::try_from(symbol.size()).ok()
}

/// Where separate debug files are by their build ids.
#[cfg(feature = "frida-gum")]
const DEBUG_FILES: &str = "/usr/lib/debug";

/// Calls `each` with the name and the place of every function that the file names: in its own tables, also of functions
/// that it does not export, and in the table of its separate debug file.
#[cfg(feature = "frida-gum")]
pub fn functions(file: &Path, mut each: impl FnMut(&[u8], u64)) {
    let Some(of_file) = functions_of(file, None, &mut each) else { return };
    if of_file.has_full_table {
        return;
    }
    for debug_file in of_file.debug_files {
        if functions_of(&debug_file, of_file.build_id.as_deref(), &mut each).is_some() {
            return;
        }
    }
}

/// What a file says about itself.
#[cfg(feature = "frida-gum")]
struct OfFile {
    /// It was not stripped.
    has_full_table: bool,
    build_id: Option<Vec<u8>>,
    /// Where its debug file may be. Only one with its build id is.
    debug_files: Vec<std::path::PathBuf>,
}

/// Passes each function in the tables of a file to `each`; `None` if it is no ELF file, or has not the build id
/// `expected`.
#[cfg(feature = "frida-gum")]
fn functions_of(file: &Path, expected: Option<&[u8]>, each: &mut impl FnMut(&[u8], u64)) -> Option<OfFile> {
    let cache = ReadCache::new(plain_file::open(file, libc::O_RDONLY).ok()?);
    let elf = ElfFile64::<LittleEndian, _>::parse(&cache).ok()?;
    let build_id = elf.build_id().ok().flatten();
    if expected.is_some() && build_id != expected {
        return None;
    }
    let mut has_full_table = false;
    for symbol in elf.symbols().inspect(|_| has_full_table = true).chain(elf.dynamic_symbols()) {
        if symbol.kind() == SymbolKind::Text && !symbol.is_undefined() && symbol.address() != 0 {
            each(symbol.name_bytes().unwrap_or_default(), symbol.address());
        }
    }
    let mut debug_files = Vec::new();
    if let Some(build_id) = build_id {
        let hex = super::modules::hex(build_id);
        if let Some((folder, name)) = hex.split_at_checked(2) {
            debug_files.push(Path::new(DEBUG_FILES).join(".build-id").join(folder).join(format!("{name}.debug")));
        }
        if let (Ok(Some((name, _))), Some(folder)) = (elf.gnu_debuglink(), file.parent()) {
            let name = OsStr::from_bytes(name);
            let elsewhere = Path::new(DEBUG_FILES).join(folder.strip_prefix("/").unwrap_or(folder));
            debug_files.extend([folder.join(name), folder.join(".debug").join(name), elsewhere.join(name)]);
        }
    }
    Some(OfFile { has_full_table, build_id: build_id.map(<[u8]>::to_vec), debug_files })
}

#[cfg(test)]
mod tests {
    use super::super::modules;
    use super::*;

    fn place(address: usize) -> (std::path::PathBuf, u64) {
        let module = modules::describe(address).unwrap();
        (module.path.into(), address as u64 - module.bias.0)
    }

    #[test]
    fn a_function_is_found_by_any_of_its_addresses() {
        let (file, place) = place(function as *const () as usize);
        for place in [place, place + 1] {
            let name = function(&file, place).unwrap();
            assert!(name.contains("elf"), "{name}");
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
        let (file, place) = place(function as *const () as usize);
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
