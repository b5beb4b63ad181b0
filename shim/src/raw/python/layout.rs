//! The offsets of fields in CPython's structures, by version.
//!
//! From 3.13 on the interpreter publishes them at the beginning of `_PyRuntime` (`_Py_DebugOffsets`). For 3.10 to
//! 3.12 they come from its headers on x86-64, and are the same in all releases of a version. The types of objects are
//! checked, so a build with other structures gives no frames instead of wrong ones.

use super::lines::Table;

/// A version, as `0x030b`.
pub(super) type Version = u16;

/// The location of a thread's innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Innermost {
    /// At this offset of the thread's state.
    InThread(usize),
    /// In a structure on the C stack. The first offset is that of a pointer to it, the second is in it.
    OnStack(usize, usize),
}

/// The frames with which the interpreter's C function was entered. A call between Python functions does not enter it
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    /// Every frame: 3.10.
    All,
    /// Frames with a nonzero byte at this offset: 3.11.
    Marked(usize),
    /// Each entry has an extra outer frame, whose byte at this offset has at least this value.
    Apart(usize, u8),
}

/// Offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// In `_PyRuntime`: the first interpreter.
    pub(super) interpreters: usize,
    /// In an interpreter: the next one, and its first thread.
    pub(super) next_interpreter: usize,
    pub(super) threads: usize,
    /// In the state of a thread: the next one, its interpreter, and its `pthread_self`.
    pub(super) next_thread: usize,
    pub(super) interpreter: usize,
    pub(super) thread_id: usize,
    pub(super) innermost: Innermost,
    /// In a frame: the caller's frame, the code, and the current instruction.
    pub(super) previous: usize,
    pub(super) code: usize,
    pub(super) instruction: usize,
    pub(super) entries: Entries,
    /// In a code object: texts, the first line, the table of lines, and the first instruction; 0 if frames have the
    /// index of the instruction.
    pub(super) file: usize,
    pub(super) name: usize,
    pub(super) first_line: usize,
    pub(super) lines: usize,
    pub(super) first_instruction: usize,
    pub(super) table: Table,
    /// In any object: the type.
    pub(super) of_type: usize,
    /// In a bytes object: the length, and the first byte.
    pub(super) byte_count: usize,
    pub(super) first_byte: usize,
    /// In a text: the number of characters, the form, and the characters, ASCII and other.
    pub(super) length: usize,
    pub(super) form: usize,
    pub(super) ascii: usize,
    pub(super) other: usize,
}

const V3_10: Layout = Layout {
    interpreters: 32,
    next_interpreter: 0,
    threads: 8,
    next_thread: 8,
    interpreter: 16,
    thread_id: 176,
    innermost: Innermost::InThread(24),
    previous: 24,
    code: 32,
    instruction: 96,
    entries: Entries::All,
    file: 104,
    name: 112,
    first_line: 40,
    lines: 120,
    first_instruction: 0,
    table: Table::Pairs,
    of_type: 8,
    byte_count: 16,
    first_byte: 32,
    length: 16,
    form: 32,
    ascii: 48,
    other: 72,
};

const V3_11: Layout = Layout {
    interpreters: 40,
    threads: 16,
    thread_id: 152,
    innermost: Innermost::OnStack(56, 8),
    previous: 48,
    code: 32,
    instruction: 56,
    entries: Entries::Marked(68),
    file: 112,
    name: 128,
    first_line: 72,
    lines: 136,
    first_instruction: 184,
    table: Table::Locations,
    ..V3_10
};

const V3_12: Layout = Layout {
    threads: 72,
    thread_id: 136,
    innermost: Innermost::OnStack(56, 0),
    previous: 8,
    code: 0,
    instruction: 56,
    entries: Entries::Apart(70, OWNED_BY_C_STACK),
    first_line: 68,
    first_instruction: 192,
    ascii: 40,
    other: 56,
    ..V3_11
};

/// `FRAME_OWNED_BY_CSTACK`, or from 3.14 on also the next number.
const OWNED_BY_C_STACK: u8 = 3;

/// The number of bytes of `_PyRuntime` that [`for_version`] needs.
pub(super) const HEAD: usize = 760;

/// The layout of a version; `None` for an unknown one.
///
/// `head` is the beginning of `_PyRuntime`, at least [`HEAD`] bytes from 3.13 on.
pub(super) fn for_version(version: Version, head: &[u8]) -> Option<Layout> {
    match version {
        0x030a => Some(V3_10),
        0x030b => Some(V3_11),
        0x030c => Some(V3_12),
        0x030d => published(version, head, &PLACES_3_13),
        0x030e => published(version, head, &PLACES_3_14),
        _ => None,
    }
}

/// The offsets of the fields of `_Py_DebugOffsets`, in bytes.
struct Places {
    threads: usize,
    thread: usize,
    frame: usize,
    code: usize,
    of_type: usize,
    bytes: usize,
    text: usize,
}

const PLACES_3_13: Places =
    Places { threads: 72, thread: 152, frame: 224, code: 272, of_type: 360, bytes: 512, text: 536 };
const PLACES_3_14: Places =
    Places { threads: 72, thread: 176, frame: 248, code: 312, of_type: 408, bytes: 592, text: 616 };

/// The limit of a valid offset, in bytes.
const OFFSET_LIMIT: usize = 1 << 20;

fn published(version: Version, head: &[u8], places: &Places) -> Option<Layout> {
    let word = |at: usize| Some(u64::from_ne_bytes(*head.get(at..)?.first_chunk()?));
    let is_it = head.starts_with(b"xdebugpy") && word(8)? >> 16 == u64::from(version);
    // In a free-threaded build, threads have copies of the code.
    let is_free_threaded = word(16)? != 0;
    if !is_it || is_free_threaded {
        return None;
    }
    let offset = |at: usize| usize::try_from(word(at)?).ok().filter(|offset| *offset < OFFSET_LIMIT);
    let Places { threads, thread, frame, code, of_type, bytes, text } = *places;
    let ascii = offset(text + 24)?;
    Some(Layout {
        interpreters: offset(40)?,
        next_interpreter: offset(64)?,
        threads: offset(threads)?,
        next_thread: offset(thread + 16)?,
        interpreter: offset(thread + 24)?,
        innermost: Innermost::InThread(offset(thread + 32)?),
        thread_id: offset(thread + 40)?,
        previous: offset(frame + 8)?,
        code: offset(frame + 16)?,
        instruction: offset(frame + 24)?,
        entries: Entries::Apart(offset(frame + 40)?, OWNED_BY_C_STACK),
        file: offset(code + 8)?,
        name: offset(code + 24)?,
        lines: offset(code + 32)?,
        first_line: offset(code + 40)?,
        first_instruction: offset(code + 72)?,
        table: Table::Locations,
        of_type: offset(of_type)?,
        byte_count: offset(bytes + 8)?,
        first_byte: offset(bytes + 16)?,
        form: offset(text + 8)?,
        length: offset(text + 16)?,
        ascii,
        // A text that is not ASCII also has the length and address of its UTF-8 form.
        other: ascii + 2 * size_of::<usize>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of `_PyRuntime` of a version, with values at offsets: `OFFSET VALUE, …`.
    fn head(version: u64, values: &str) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        head[..8].copy_from_slice(b"xdebugpy");
        head[8..16].copy_from_slice(&version.to_ne_bytes());
        for (at, value) in values.split(", ").map(|pair| pair.split_once(' ').unwrap()) {
            let at: usize = at.parse().unwrap();
            head[at..at + 8].copy_from_slice(&value.parse::<u64>().unwrap().to_ne_bytes());
        }
        head
    }

    /// With the values of its headers.
    fn head_of_3_13() -> Vec<u8> {
        head(
            0x030d_00f0,
            "40 632, 64 7264, 72 7344, 168 8, 176 16, 184 72, 192 152, 232 8, 240 0, 248 56, 264 70, 280 112, \
             288 120, 296 128, 304 136, 312 68, 344 200, 360 8, 520 16, 528 32, 544 32, 552 16, 560 40",
        )
    }

    #[test]
    fn an_interpreter_that_publishes_its_offsets_is_believed() {
        let layout = for_version(0x030d, &head_of_3_13()).unwrap();
        let expected = Layout {
            interpreters: 632,
            next_interpreter: 7264,
            threads: 7344,
            thread_id: 152,
            innermost: Innermost::InThread(72),
            first_instruction: 200,
            ..V3_12
        };
        assert_eq!(layout, expected);
    }

    /// Read from CPython 3.14.10 as Debian builds it.
    #[test]
    fn the_offsets_of_3_14_are_at_places_of_their_own() {
        let head = head(
            0x030e_0af0,
            "40 808, 64 7272, 72 7344, 192 8, 200 16, 208 72, 216 152, 256 8, 264 0, 272 56, 288 74, 320 112, \
             328 120, 336 128, 344 136, 352 68, 384 208, 408 8, 600 16, 608 32, 624 32, 632 16, 640 40",
        );
        let expected = Layout {
            interpreters: 808,
            next_interpreter: 7272,
            threads: 7344,
            thread_id: 152,
            innermost: Innermost::InThread(72),
            entries: Entries::Apart(74, OWNED_BY_C_STACK),
            first_instruction: 208,
            ..V3_12
        };
        assert_eq!(for_version(0x030e, &head), Some(expected));
    }

    #[test]
    fn what_is_not_known_has_no_layout() {
        assert_eq!(for_version(0x0309, &[]), None);
        assert_eq!(for_version(0x030f, &head_of_3_13()), None);
        assert_eq!(for_version(0x030e, &head_of_3_13()), None, "the head of another version");
        let change = |at: usize, value: u64| {
            let mut head = head_of_3_13();
            head[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            for_version(0x030d, &head)
        };
        assert_eq!(change(0, 0), None, "no cookie");
        assert_eq!(change(16, 1), None, "free-threaded");
        assert_eq!(change(248, 1 << 40), None, "no offset");
        for cut in [0, 8, 100, 560] {
            assert_eq!(for_version(0x030d, &head_of_3_13()[..cut]), None);
        }
    }
}
