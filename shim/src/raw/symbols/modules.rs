//! The loaded libraries: which one an address belongs to, and which memory may be searched for a table. Must load no
//! library.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::{ops::Range, os::unix::ffi::OsStrExt as _, sync::OnceLock};

use libloading::os::unix::{Library, RTLD_LAZY};
use urscope_schema::trace::records::{self, Hex};

use super::find_object;
use crate::raw::{processes::fork, signals::interruptions};

/// A loaded library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The address at which it is loaded.
    pub base: usize,
    /// The path it was loaded from.
    pub path: PathBuf,
}

impl Module {
    /// The library that `address` lies in.
    pub fn containing(address: usize) -> Option<Self> {
        around(address, |loaded| loaded.module_of(address)).or_else(|| Self::by_dladdr(address))
    }

    /// The program itself, or a library of another namespace (dlmopen(3)): neither is among the libraries that are
    /// searched.
    fn by_dladdr(address: usize) -> Option<Self> {
        let mut info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: dladdr(3) only compares the address, and fills the structure when it returns other than 0.
        if unsafe { libc::dladdr(std::ptr::without_provenance(address), &raw mut info) } == 0
            || info.dli_fname.is_null()
        {
            return None;
        }
        // SAFETY: dladdr gave the name, a C string that lives as long as the library.
        let path = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(Self { base: info.dli_fbase as usize, path: PathBuf::from(path.to_string_lossy().as_ref()) })
    }

    /// Whether the library itself exports `symbol`. Its dependencies do not count.
    pub fn exports(&self, symbol: &CStr) -> bool {
        self.address_of(symbol).is_some()
    }

    /// The address of a `symbol` that the library itself exports.
    pub fn address_of(&self, symbol: &CStr) -> Option<usize> {
        find(&self.path, symbol)
            .filter(|address| Self::containing(*address).is_some_and(|module| module.base == self.base))
    }

    /// The paths of the libraries whose file names begin with one of `names`, with links resolved, so that they show
    /// the version.
    pub fn paths_of(names: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        first_loaded(|loaded| {
            let path = Path::new(loaded.name);
            let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
            if names.iter().any(|wanted| name.starts_with(wanted)) {
                found.push(loaded.resolved_path().to_string_lossy().into_owned());
            }
            None::<()>
        });
        found
    }

    /// The file name.
    pub fn file_name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// The path without the file name.
    pub fn directory(&self) -> String {
        self.path.parent().map_or_else(String::new, |directory| directory.to_string_lossy().into_owned())
    }
}

/// The address of `symbol` in a loaded library or its dependencies; `None` if it is not loaded.
pub fn find(library: impl AsRef<OsStr>, symbol: &CStr) -> Option<usize> {
    // SAFETY: with RTLD_NOLOAD nothing is loaded, so no code of a library runs.
    let library = unsafe { Library::open(Some(library.as_ref()), libc::RTLD_NOLOAD | RTLD_LAZY) }.ok()?;
    // SAFETY: the symbol is only asked for its address, whatever its type is.
    let symbol = unsafe { library.get::<*mut c_void>(symbol.to_bytes_with_nul()) }.ok()?;
    Some(symbol.as_raw_ptr() as usize)
}

/// The address of `symbol` in the library or program at `address`; `None` if it does not export it.
pub fn symbol_of(address: usize, symbol: &CStr) -> Option<usize> {
    // By the name that it was loaded with, the dynamic loader knows a library again without opening its file.
    let (own, name) = around(address, |loaded| Some((loaded.addresses(), loaded.name.to_owned())))?;
    // The program itself has no name by which the dynamic loader finds it.
    let of_library = if name.is_empty() { None } else { find(&name, symbol) };
    let found = of_library.or_else(|| {
        // SAFETY: the symbol is only asked for its address, whatever its type is.
        let symbol = unsafe { Library::this().get::<*mut c_void>(symbol.to_bytes_with_nul()) }.ok()?;
        Some(symbol.as_raw_ptr() as usize)
    })?;
    own.contains(&found).then_some(found)
}

/// The size of the exported function that begins at `address`, in bytes.
pub fn size_of_function(address: usize) -> Option<usize> {
    let module = describe(address)?;
    super::elf::size_of_function(Path::new(&module.path), (address as u64).checked_sub(module.bias.0)?)
}

/// The addresses of the library or program that `address` lies in; none if there is none.
pub fn addresses_around(address: usize) -> Range<usize> {
    around(address, |loaded| Some(loaded.addresses())).unwrap_or(0..0)
}

/// The addresses of the library or program that `address` lies in, and the name of its file with links resolved.
pub fn file_around(address: usize) -> Option<(Range<usize>, String)> {
    around(address, |loaded| {
        let path = loaded.path();
        // Links among its directories do not change the name.
        let path = if std::fs::read_link(path).is_ok() { loaded.resolved_path() } else { path.into() };
        Some((loaded.addresses(), path.file_name().unwrap_or_default().to_string_lossy().into_owned()))
    })
}

/// The library or program that `address` lies in, as a record for the trace.
pub fn describe(address: usize) -> Option<records::Module> {
    around(address, |loaded| Some(loaded.record()))
}

/// The program and all loaded libraries, as records for the trace, in the order in which they were loaded.
#[cfg(feature = "frida-gum")]
pub fn all() -> Vec<records::Module> {
    let mut all = Vec::new();
    first_loaded(|loaded| {
        all.push(loaded.record());
        None::<()>
    });
    all
}

/// How many libraries have been loaded so far. It never gets smaller.
#[cfg(feature = "frida-gum")]
pub fn loads() -> u64 {
    first_loaded(|loaded| Some(loaded.loads)).unwrap_or(0)
}

/// Whether this library came into a process that was running: one that was preloaded, and one that was linked, is
/// loaded before the C library or together with it.
pub fn came_late() -> bool {
    // A forked child has it from its parent.
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| is_late(came_late as *const () as usize))
}

/// Whether the library with the code at `address` was loaded after the C library, and not together with it.
fn is_late(address: usize) -> bool {
    let c_library = libc::gnu_get_libc_version as *const () as usize;
    // They come in the order in which they were loaded.
    let first = first_loaded(|loaded| {
        let has = |address| loaded.addresses().contains(&address);
        if has(address) { Some(false) } else { has(c_library).then_some(true) }
    });
    first.unwrap_or(false)
}

/// The build id among the notes of a segment, in hexadecimal: note type 3 of the owner `GNU` (elf.h).
fn build_id(mut notes: &[u8]) -> Option<String> {
    loop {
        let (header, rest) = notes.split_first_chunk::<12>()?;
        let word = |at: usize| Some(u32::from_ne_bytes(*header.get(at..)?.first_chunk()?) as usize);
        let owner_size = word(0)?;
        let size = word(4)?;
        let kind = word(8)?;
        let owner = rest.get(..owner_size)?;
        let rest = rest.get(owner_size.next_multiple_of(4)..)?;
        if kind == 3 && owner == b"GNU\0" {
            return Some(hex(rest.get(..size)?));
        }
        notes = rest.get(size.next_multiple_of(4)..)?;
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The addresses of the code of the library that an address of its code is in.
pub fn code_around(address: usize) -> Option<Range<usize>> {
    around(address, |loaded| loaded.segments().find(|segment| segment.contains(&address)))
}

/// The number of bytes from `address` on that are writable data of a library; 0 if the address is in no library, or in
/// a part that is read-only after loading.
pub fn writable_from(address: usize) -> usize {
    around(address, |loaded| {
        let mut writable = None;
        for header in loaded.headers.iter().filter(|header| loaded.span(header).contains(&address)) {
            match header.p_type {
                libc::PT_LOAD if header.p_flags & libc::PF_W != 0 => writable = Some(loaded.span(header).end - address),
                libc::PT_GNU_RELRO => return Some(0),
                _ => {}
            }
        }
        writable
    })
    .unwrap_or(0)
}

/// The number of bytes from `address` on that are in the same part of a library, which can be read; 0 if the address is
/// in no library.
pub fn mapped_from(address: usize) -> usize {
    around(address, |loaded| {
        let mut parts = loaded.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let part = parts.find(|header| header.p_flags & libc::PF_R != 0 && loaded.span(header).contains(&address))?;
        Some(loaded.span(part).end - address)
    })
    .unwrap_or(0)
}

/// Calls `act` while no other thread can load or unload a library. The dynamic loader's lock for that is not taken in a
/// forked child, where a thread that did not come along may hold it.
pub fn while_nothing_is_loaded(act: impl FnOnce()) {
    if fork::own().is_some() {
        return act();
    }
    let mut act = Some(act);
    first_loaded(|_| act.take().map(|act| act()));
}

/// The dynamic loader's description of a loaded library or program.
pub(super) struct Loaded<'a> {
    /// The difference between an address in the process and the address in the file.
    bias: usize,
    /// The path with which it was opened; empty for the program.
    name: &'a OsStr,
    pub(super) headers: &'a [libc::Elf64_Phdr],
    /// How many libraries have been loaded so far.
    #[cfg(feature = "frida-gum")]
    loads: u64,
}

impl Loaded<'_> {
    /// The addresses of the parts that are loaded.
    fn segments(&self) -> impl Iterator<Item = Range<usize>> {
        self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| self.span(header))
    }

    /// The addresses from its first segment to the end of its last one.
    pub(super) fn addresses(&self) -> Range<usize> {
        let all = (usize::MAX, 0);
        let (start, end) = self.segments().fold(all, |(start, end), span| (start.min(span.start), end.max(span.end)));
        start..end
    }

    /// The path of its file, as the dynamic loader has it.
    fn path(&self) -> &Path {
        Path::new(if self.is_program() { OsStr::new("/proc/self/exe") } else { self.name })
    }

    /// The path of its file with links resolved; without that if there is no such file any more.
    fn resolved_path(&self) -> PathBuf {
        let path = self.path();
        // The kernel knows the program by a path without links.
        let resolved = if self.is_program() { std::fs::read_link(path) } else { path.canonicalize() };
        resolved.unwrap_or_else(|_| path.into())
    }

    fn is_program(&self) -> bool {
        self.name.is_empty()
    }

    fn record(&self) -> records::Module {
        let addresses = self.addresses();
        let path = self.resolved_path();
        let mut notes = self.headers.iter().filter(|header| header.p_type == libc::PT_NOTE).map(|header| {
            let span = self.span(header);
            // SAFETY: the segment of the library that the header describes is mapped as long as the library is.
            unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(span.start), span.len()) }
        });
        records::Module {
            bias: Hex(self.bias as u64),
            start: Hex(addresses.start as u64),
            end: Hex(addresses.end as u64),
            path: path.to_string_lossy().into_owned(),
            build_id: notes.find_map(build_id).unwrap_or_default(),
        }
    }

    /// The library, if `address` lies in it and it has a name.
    fn module_of(&self, address: usize) -> Option<Module> {
        if self.is_program() || !self.segments().any(|segment| segment.contains(&address)) {
            return None;
        }
        let base = self.addresses().start & !(PAGE - 1);
        Some(Module { base, path: PathBuf::from(self.name.to_string_lossy().as_ref()) })
    }

    /// The addresses of the segment of a program header.
    pub(super) fn span(&self, header: &libc::Elf64_Phdr) -> Range<usize> {
        let from = self.bias + header.p_vaddr as usize;
        from..from + header.p_memsz as usize
    }
}

/// The size of a page, on which libraries begin.
const PAGE: usize = 4096;

/// Asks the library or the program that `address` lies in, which must not be unloaded meanwhile.
pub(super) fn around<T>(address: usize, mut ask: impl FnMut(&Loaded<'_>) -> Option<T>) -> Option<T> {
    let object = find_object::at(address)?;
    let Some(headers) = headers_at(object.start) else {
        return first_loaded(|loaded| if loaded.addresses().contains(&address) { ask(loaded) } else { None });
    };
    // SAFETY: the address lies in the object, so the object is loaded.
    let map = unsafe { object.map.as_ref() };
    ask(&Loaded {
        bias: map.bias,
        name: OsStr::from_bytes(map.name().to_bytes()),
        headers,
        #[cfg(feature = "frida-gum")]
        loads: 0,
    })
}

/// The program headers of the library whose first byte is at `start`. `None` if the library does not begin with its ELF
/// header, or the program headers are not in the page behind it.
fn headers_at<'a>(start: usize) -> Option<&'a [libc::Elf64_Phdr]> {
    if !start.is_multiple_of(PAGE) {
        return None;
    }
    // SAFETY: the first page of a loaded library is mapped. The caller looks at it as long as the library is.
    let header = unsafe { &*std::ptr::with_exposed_provenance::<libc::Elf64_Ehdr>(start) };
    let from = header.e_phoff as usize;
    let count = usize::from(header.e_phnum);
    let size = size_of::<libc::Elf64_Phdr>();
    let is_usual = header.e_ident.starts_with(b"\x7fELF") && usize::from(header.e_phentsize) == size;
    if !is_usual || !from.is_multiple_of(align_of::<libc::Elf64_Phdr>()) || from.checked_add(count * size)? > PAGE {
        return None;
    }
    // SAFETY: as above; they end in that page.
    Some(unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start + from), count) })
}

/// Calls `each` for every loaded library until it gives an answer. A lock of the dynamic loader is held meanwhile,
/// which a forked child would find taken for ever. So nothing may interrupt it.
fn first_loaded<T, F: FnMut(&Loaded<'_>) -> Option<T>>(each: F) -> Option<T> {
    struct Search<T, F> {
        each: F,
        answer: Option<T>,
    }

    unsafe extern "C" fn look<T, F: FnMut(&Loaded<'_>) -> Option<T>>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr(3) hands in a valid description, and the data that we gave it.
        let (info, search) = unsafe { (&*info, &mut *data.cast::<Search<T, F>>()) };
        let name = if info.dlpi_name.is_null() {
            c""
        } else {
            // SAFETY: the description's name is a C string.
            unsafe { CStr::from_ptr(info.dlpi_name) }
        };
        // SAFETY: the description says where its program headers are and how many.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let loaded = Loaded {
            bias: info.dlpi_addr as usize,
            name: OsStr::from_bytes(name.to_bytes()),
            headers,
            #[cfg(feature = "frida-gum")]
            loads: info.dlpi_adds,
        };
        search.answer = (search.each)(&loaded);
        c_int::from(search.answer.is_some())
    }

    let _held_off = interruptions::hold_off();
    let mut search = Search { each, answer: None };
    // SAFETY: the callback has the signature of dl_iterate_phdr(3), and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look::<T, F>), (&raw mut search).cast()) };
    search.answer
}

#[cfg(test)]
mod tests {
    use super::*;

    static mut DATA: [usize; 4] = [1; 4];
    static TEXT: &CStr = c"read only";

    #[test]
    fn an_address_is_found_in_its_library() {
        let module = Module::containing(libc::malloc as *const c_void as usize).unwrap();
        assert!(module.file_name().starts_with("libc.so"), "{module:?}");
        assert!(module.exports(c"malloc"));
        assert!(!module.exports(c"urLoaderInit"));
        assert_eq!(Module::containing(1), None);
        let of_c = libc::malloc as *const c_void as usize;
        assert_eq!(Module::containing(of_c), Module::by_dladdr(of_c));
        let own = first_loaded::<(), fn(&Loaded<'_>) -> Option<()>> as *const c_void as usize;
        assert_eq!(Module::containing(own), Module::by_dladdr(own), "that of the program has no name");
    }

    #[test]
    fn both_ways_find_the_same_library() {
        let variable = 0;
        let addresses = [
            libc::malloc as *const c_void as usize,
            headers_at as *const c_void as usize,
            TEXT.as_ptr() as usize,
            (&raw const DATA) as usize,
            (&raw const variable) as usize,
            1,
        ];
        for address in addresses {
            let by_search = first_loaded(|loaded| loaded.addresses().contains(&address).then(|| loaded.record()));
            assert_eq!(around(address, |loaded| Some(loaded.record())), by_search, "{address:#x}");
        }
    }

    #[test]
    fn a_module_is_described_with_its_build_id() {
        let here = build_id as *const c_void as usize;
        let module = describe(here).unwrap();
        assert!((module.start.0..module.end.0).contains(&(here as u64)));
        assert_eq!(Path::new(&module.path), std::env::current_exe().unwrap().canonicalize().unwrap());
        let libc = describe(libc::malloc as *const c_void as usize).unwrap();
        assert!(libc.build_id.len() == 40 && libc.path.contains("libc"), "{libc:?}");
        assert_eq!(describe(1), None);
    }

    #[test]
    fn a_note_that_is_cut_short_is_no_build_id() {
        let note =
            [&4_u32.to_ne_bytes()[..], &2_u32.to_ne_bytes(), &3_u32.to_ne_bytes(), b"GNU\0", &[0xab, 0x0c]].concat();
        assert_eq!(build_id(&note).as_deref(), Some("ab0c"));
        for cut in 0..note.len() {
            assert_eq!(build_id(&note[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn libraries_are_found_by_the_beginning_of_their_name() {
        let found = Module::paths_of(&["libc.so", "libnothing"]);
        assert!(matches!(&found[..], [path] if path.contains("libc")), "{found:?}");
    }

    #[test]
    fn a_program_does_not_come_late_but_what_it_opens_does() {
        assert!(!came_late());
        // SAFETY: this library runs only its own initialization.
        let opened = unsafe { libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW) };
        assert!(!opened.is_null());
        // SAFETY: the library is open, and the symbol is only asked for its address.
        let address = unsafe { libc::dlsym(opened, c"__ctype_get_mb_cur_max".as_ptr()) };
        assert!(is_late(address as usize));
    }

    #[test]
    fn only_writable_data_of_a_library_is_searched() {
        let room = writable_from((&raw const DATA) as usize);
        assert!(room >= size_of::<[usize; 4]>(), "{room}");
        assert_eq!(writable_from(TEXT.as_ptr() as usize), 0, "constants");
        assert_eq!(writable_from(libc::malloc as *const c_void as usize), 0, "code");
        assert_eq!(writable_from((&raw const room) as usize), 0, "the stack");
    }
}
