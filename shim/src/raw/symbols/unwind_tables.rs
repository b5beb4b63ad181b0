//! The tables that the unwinder has read: the process gives their pages back, so that they are no part of its resident memory.
//!
//! The unwinder looks into the tables of each library that a stack leads through, and the kernel maps 16 pages around each place. Nobody
//! needs them before another stack is unwound or an exception is thrown, and then the kernel maps them again, from its cache. Must never
//! give back a page that holds anything else than what is in the file.

use std::ops::Range;

use super::modules::{self, Loaded, PAGE};
use crate::raw::fork_mark;

/// Smaller tables are not worth the system calls.
const LEAST: usize = 1 << 16;

/// In larger ones, a huge page may stand for pages of the file.
const MOST: usize = 1 << 21;

/// Gives back the tables of the libraries that the addresses lie in, and the constants of this library, which has its own tables among them.
pub fn give_back(addresses: &[usize]) {
    // Without this, the kernel cannot say whether memory is that of a file.
    if !fork_mark::is_of_kernel() {
        return;
    }
    let own = modules::around(give_back as *const () as usize, |loaded| Some((loaded.addresses(), constants(loaded))));
    let own = own.map_or(0..0, |(addresses, constants)| {
        give_back_range(constants.unwrap_or_default());
        addresses
    });
    let mut latest = 0..0;
    for address in addresses.iter().filter(|address| !own.contains(address)) {
        if latest.contains(address) {
            continue;
        }
        let found = modules::around(*address, |loaded| Some((loaded.addresses(), tables(loaded))));
        if let Some((addresses, tables)) = found {
            latest = addresses;
            give_back_range(tables.unwrap_or_default());
        }
    }
}

/// From the tables of the unwinder to the end of the segment that they are in: they are its last part.
fn tables(loaded: &Loaded<'_>) -> Option<Range<usize>> {
    let index = loaded.headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
    let segment = constants(loaded)?;
    let index = loaded.span(index).start;
    segment.contains(&index).then_some(index..segment.end)
}

/// The segment with the tables of the unwinder, if only reading is allowed there, and if nothing was written there when the library was loaded.
fn constants(loaded: &Loaded<'_>) -> Option<Range<usize>> {
    let index = loaded.headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
    let index = loaded.span(index).start;
    let mut segments = loaded.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let segment = segments.find(|header| loaded.span(header).contains(&index))?;
    (segment.p_flags == libc::PF_R && !has_relocated_constants(loaded)).then(|| loaded.span(segment))
}

/// Whether the dynamic loader has written into segments that are read-only (`DT_TEXTREL`).
fn has_relocated_constants(loaded: &Loaded<'_>) -> bool {
    const END: i64 = 0;
    const TEXT_RELOCATIONS: i64 = 22;
    const FLAGS: i64 = 30;
    const OF_TEXT: u64 = 4;

    let Some(dynamic) = loaded.headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return false };
    let dynamic = loaded.span(dynamic);
    // SAFETY: the dynamic section of a loaded library is mapped and aligned. Each entry is a tag and a value (elf(5)).
    let entries = unsafe {
        let first = std::ptr::with_exposed_provenance::<(i64, u64)>(dynamic.start);
        std::slice::from_raw_parts(first, dynamic.len() / size_of::<(i64, u64)>())
    };
    let mut entries = entries.iter().take_while(|(tag, _)| *tag != END);
    entries.any(|(tag, value)| *tag == TEXT_RELOCATIONS || *tag == FLAGS && value & OF_TEXT != 0)
}

/// Gives back the pages that begin in the range. Behind the end of a segment, the last one holds nothing else.
fn give_back_range(Range { start, end }: Range<usize>) {
    let (start, end) = (start.next_multiple_of(PAGE), end.next_multiple_of(PAGE));
    if (LEAST..=MOST).contains(&end.saturating_sub(start)) && is_of_file(start) && is_of_file(end - PAGE) {
        // SAFETY: pages of a file that nobody has written to. The kernel reads them again when they are used.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED) };
    }
}

/// Whether the page is that of a file. A tool may have put a copy in its place, as one does that restores processes from checkpoints, and a copy is
/// lost when it is given back. Only for such memory the kernel takes this advice, which is taken back at once.
fn is_of_file(page: usize) -> bool {
    let advise = |advice| {
        // SAFETY: a child of a fork would find the page empty, if it came between the two.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(page), PAGE, advice) }
    };
    let is_copy = advise(libc::MADV_WIPEONFORK) == 0;
    if is_copy {
        advise(libc::MADV_KEEPONFORK);
    }
    !is_copy
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    /// How many whole pages of the range this process has mapped: bit 63 of their entries in pagemap (proc(5)).
    fn resident(range: &Range<usize>) -> usize {
        let pages = range.start.div_ceil(PAGE)..range.end / PAGE;
        let mut entries = vec![0; pages.len() * 8];
        let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
        pagemap.read_exact_at(&mut entries, pages.start as u64 * 8).unwrap();
        entries.chunks(8).filter(|entry| entry[7] & 0x80 != 0).count()
    }

    #[test]
    fn tables_are_no_longer_resident_and_say_the_same() {
        fork_mark::install();
        // SAFETY: the library runs only its own initialization. No other test unwinds through it.
        let library = unsafe { libc::dlopen(c"libstdc++.so.6".as_ptr(), libc::RTLD_NOW) };
        // SAFETY: the library is open, and the symbol is only asked for its address.
        let address = unsafe { libc::dlsym(library, c"__cxa_demangle".as_ptr()) } as usize;
        let range = modules::around(address, tables).unwrap();
        // SAFETY: the tables of a library that stays loaded.
        let bytes =
            || unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(range.start), range.len()) };
        let before = bytes().to_vec();
        assert!(before.len() > LEAST && resident(&range) > 0);
        give_back(&[1, address, address]);
        assert_eq!(resident(&range), 0);
        assert_eq!(bytes(), before);
    }

    #[test]
    fn what_is_no_longer_that_of_the_file_stays() {
        let size = 2 * LEAST;
        // SAFETY: a new anonymous mapping.
        let start = unsafe {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: it is ours, and so large.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), size) };
        bytes.fill(7);
        let start = start.expose_provenance();
        give_back_range(start..start + size);
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}
