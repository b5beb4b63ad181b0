//! The Python stack of a thread: its frames, each with its code and instruction.

use std::{ffi::c_void, mem::MaybeUninit, sync::OnceLock};

use urscope_schema::trace::records::PythonFrame;

use super::layout::{Entries, Innermost};
use super::{Interpreter, lines, memory, text};

/// The most frames, innermost first.
const FRAME_LIMIT: usize = 24;

/// The most characters of a function's name and of a path.
const NAME_LIMIT: usize = 256;
const PATH: usize = 1024;

/// The most bytes of names and paths of a stack: its record, in which a byte may take six, must fit into a chunk of a
/// trace.
const TEXT_LIMIT: usize = 4 << 10;

/// The most bytes of a table of lines.
const TABLE_LIMIT: usize = 1 << 20;

/// The most interpreters and threads that are searched.
const SEARCH_LIMIT: usize = 1 << 12;

/// The largest gap between words that are read together, and the most bytes of a look.
const GAP: usize = 1024;
const LOOK: usize = 8 << 10;

/// The most parts of memory of a look.
const PART_LIMIT: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Frame {
    code: usize,
    /// The offset of the instruction in the code, in bytes.
    instruction: i64,
    /// Whether the following frames belong to an outer call of the interpreter's function.
    is_entry: bool,
}

/// The Python stack of a thread, and the words that show whether it is current.
pub struct PythonStack {
    /// The state of the thread in the interpreter.
    state: usize,
    frames: Vec<Frame>,
    /// Words of memory with their values. Each address follows from the words before it, so it is valid as long as they
    /// have these values.
    words: Vec<Word>,
    /// `None` if it would take too long.
    look: Option<Look>,
}

#[derive(Clone, Copy, Debug)]
struct Word {
    at: usize,
    value: usize,
    holder: Holder,
}

/// The structure that contains a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Thread,
    /// The C stack of the thread.
    Stack,
    Frame,
    Code,
}

/// Checks through the kernel whether a stack is current. Each part takes time, so code objects are not read: a frame
/// has the same as long as its address is the same.
#[derive(Default)]
struct Look {
    /// Parts of memory: address and length.
    parts: Vec<(usize, usize)>,
    /// The offset of a word in the concatenated parts, and its value.
    words: Vec<(usize, usize)>,
}

impl Look {
    /// `None` if the frames have too large gaps.
    fn from_words(words: &[Word]) -> Option<Self> {
        let has_stack = words.iter().any(|word| word.holder == Holder::Stack);
        let is_looked_at = |word: &&Word| match word.holder {
            // The words on the C stack show changes of the thread's state.
            Holder::Thread => !has_stack,
            Holder::Stack | Holder::Code => false,
            Holder::Frame => true,
        };
        let mut words: Vec<Word> = words.iter().filter(is_looked_at).copied().collect();
        words.sort_unstable_by_key(|word| word.at);
        let mut look = Self::default();
        let mut length = 0;
        for word in &words {
            let end = word.at + size_of::<usize>();
            match look.parts.last_mut() {
                Some((start, part)) if word.at <= *start + *part + GAP => {
                    length += (end - *start).saturating_sub(*part);
                    *part = (end - *start).max(*part);
                }
                _ => {
                    look.parts.push((word.at, size_of::<usize>()));
                    length += size_of::<usize>();
                }
            }
            look.words.push((length - size_of::<usize>(), word.value));
        }
        (look.parts.len() <= PART_LIMIT && length <= LOOK).then_some(look)
    }

    fn is_there(&self) -> bool {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PART_LIMIT];
        let mut length = 0;
        for (vector, (start, part)) in vectors.iter_mut().zip(&self.parts) {
            vector.iov_base = std::ptr::without_provenance_mut::<c_void>(*start);
            vector.iov_len = *part;
            length += part;
        }
        let mut room = [MaybeUninit::<u8>::uninit(); LOOK];
        let (Some(vectors), Some(to)) = (vectors.get(..self.parts.len()), room.get_mut(..length)) else { return false };
        let Some(read) = memory::read_parts(vectors, to) else { return false };
        self.words.iter().all(|(at, value)| {
            let found = read.get(*at..).and_then(|rest| rest.first_chunk());
            found.is_some_and(|found| usize::from_ne_bytes(*found) == *value)
        })
    }
}

impl PythonStack {
    /// The stack of this thread; `None` if it cannot be read, or has no frame.
    pub(super) fn of_this_thread(interpreter: &Interpreter) -> Option<Self> {
        let state = state_of_this_thread(interpreter)?;
        let mut stack = Self { state, frames: Vec::new(), words: Vec::new(), look: None };
        let mut at = stack.innermost(interpreter)?;
        while at != 0 && stack.frames.len() < FRAME_LIMIT && stack.words.len() < FRAME_LIMIT * 8 {
            at = stack.add(interpreter, at)?;
        }
        stack.look = Look::from_words(&stack.words);
        (!stack.frames.is_empty()).then_some(stack)
    }

    /// The address of the innermost frame.
    fn innermost(&mut self, interpreter: &Interpreter) -> Option<usize> {
        match interpreter.layout.innermost {
            Innermost::InThread(offset) => self.word(self.state + offset, Holder::Thread),
            Innermost::OnStack(structure, offset) => {
                let structure = self.word(self.state + structure, Holder::Thread)?;
                self.word(structure + offset, Holder::Stack)
            }
        }
    }

    /// Reads a word and adds it.
    fn word(&mut self, at: usize, holder: Holder) -> Option<usize> {
        let value = memory::word(at)?;
        self.words.push(Word { at, value, holder });
        Some(value)
    }

    /// Adds the frame at an address; returns the address of the next outer frame.
    fn add(&mut self, interpreter: &Interpreter, at: usize) -> Option<usize> {
        let layout = &interpreter.layout;
        // The lowest bits of a reference are flags (3.14).
        let code = self.word(at + layout.code, Holder::Frame)? & !3;
        let previous = self.word(at + layout.previous, Holder::Frame)?;
        let byte = |offset: usize| Some(*memory::bytes(at + offset, 1, 1)?.first()?);
        let is_entry = match layout.entries {
            Entries::All => true,
            Entries::Marked(offset) => byte(offset)? != 0,
            Entries::Apart(offset, least) => {
                if byte(offset)? >= least {
                    if let Some(last) = self.frames.last_mut() {
                        last.is_entry = true;
                    }
                    return Some(previous);
                }
                false
            }
        };
        let instruction = self.word(at + layout.instruction, Holder::Frame)?;
        if memory::word(code + layout.of_type)? != interpreter.types.code {
            return None;
        }
        // Another function may reuse the memory of one that was made at run time.
        for field in [layout.first_line, layout.file, layout.lines] {
            self.word(code + field, Holder::Code)?;
        }
        let instruction = match layout.first_instruction {
            // An index of units of two bytes, in half a word.
            0 => i64::from(instruction as i32) * 2,
            first => (instruction.wrapping_sub(code + first)).cast_signed() as i64,
        };
        // A frame that has not begun has no line yet.
        if instruction >= 0 {
            self.frames.push(Frame { code, instruction, is_entry });
        } else if is_entry && let Some(last) = self.frames.last_mut() {
            last.is_entry = true;
        }
        Some(previous)
    }

    /// Whether the thread has this stack now. `is_main` says whether it is the main thread.
    ///
    /// The main thread reads it without the kernel: it finalizes the interpreter, so its state lives as long as its
    /// frames. The states of other threads may be freed at that time, which no check can exclude.
    pub fn is_current(&self, is_main: impl Fn() -> bool) -> bool {
        if own_state() != Some(self.state) {
            return false;
        }
        let is_main = is_main();
        let are_there = self.words.iter().filter(|word| is_main || word.holder == Holder::Stack).all(|word| {
            // SAFETY: in the main thread, the first word is in the thread's state, which is alive. Every other address
            // was read from words before it, which have the same values now, so it is that of an object that the
            // thread's frames hold. An address on the C stack is in the frame of a function that is still called,
            // because the return addresses are the same.
            unsafe { std::ptr::with_exposed_provenance::<usize>(word.at).read_unaligned() == word.value }
        });
        are_there && (is_main || self.look.as_ref().is_some_and(Look::is_there))
    }

    /// The frames, innermost first, each at the return address of the interpreter's function that runs it.
    pub(super) fn frames(&self, interpreter: &Interpreter, addresses: &[usize]) -> Vec<PythonFrame> {
        let mut entries = addresses.iter().enumerate().filter(|(_, address)| interpreter.runs(**address));
        // The addresses of a deep stack end before its frames of Python.
        let mut next = || entries.next().map_or(addresses.len(), |(next, _)| next);
        let mut at = next();
        let mut room = TEXT_LIMIT;
        let mut found = Vec::new();
        for frame in &self.frames {
            let Some(described) = describe(interpreter, frame, at as u32) else { break };
            let Some(remaining) = room.checked_sub(described.file.len() + described.function.len()) else { break };
            room = remaining;
            // An internal frame between a class that is called and its `__init__` (3.12 and later).
            if described.line.is_some() || described.file != "__init__" {
                found.push(described);
            }
            // If the interpreter's calls cannot be distinguished, all frames are at the innermost one.
            if frame.is_entry && interpreter.is_one_function {
                at = next();
            }
        }
        found
    }
}

fn describe(interpreter: &Interpreter, frame: &Frame, at: u32) -> Option<PythonFrame> {
    let layout = &interpreter.layout;
    let field = |offset: usize| memory::word(frame.code + offset);
    let file = text::read(interpreter, field(layout.file)?, PATH, true)?;
    let function = text::read(interpreter, field(layout.name)?, NAME_LIMIT, false)?;
    let first = u32::try_from(field(layout.first_line)? as i32).ok()?;
    let table = field(layout.lines)?;
    let bytes = (memory::word(table + layout.of_type)? == interpreter.types.bytes)
        .then(|| memory::bytes(table + layout.first_byte, memory::word(table + layout.byte_count)?, TABLE_LIMIT))
        .flatten();
    let line = bytes.as_ref().and_then(|bytes| lines::line_of(layout.table, bytes, first, frame.instruction));
    let statements = bytes.and_then(|bytes| lines::statements(layout.table, &bytes, first));
    let [first, last] = statements.map_or([None, None], |lines| lines.map(Some));
    Some(PythonFrame { at, function, file, line, first, last })
}

/// The key of the interpreter's state of a thread, if there is one.
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

/// The state of this thread, from the interpreter's thread-specific data.
fn own_state() -> Option<usize> {
    let key = (*KEY.get()?)?;
    // SAFETY: pthread_getspecific(3) accepts any number, and returns null for one that is no key.
    let state = unsafe { libc::pthread_getspecific(key) }.addr();
    (state != 0).then_some(state)
}

fn state_of_this_thread(interpreter: &Interpreter) -> Option<usize> {
    if KEY.get().is_none() {
        let state = searched_state(interpreter)?;
        // SAFETY: as above.
        let mut keys = (0..KEYS).filter(|key| unsafe { libc::pthread_getspecific(*key) }.addr() == state);
        // The interpreter creates its key at its start, before libraries create others with the same value.
        let _ = KEY.set(keys.next());
    }
    let state = own_state()?;
    is_of_this_thread(interpreter, state).then_some(state)
}

/// `PTHREAD_KEYS_MAX` of limits.h.
const KEYS: libc::pthread_key_t = 1024;

fn is_of_this_thread(interpreter: &Interpreter, state: usize) -> bool {
    // SAFETY: pthread_self(3) has no arguments and cannot fail.
    let thread = unsafe { libc::pthread_self() } as usize;
    memory::word(state + interpreter.layout.thread_id) == Some(thread)
}

/// The state of this thread among those of all threads.
fn searched_state(interpreter: &Interpreter) -> Option<usize> {
    let layout = &interpreter.layout;
    let mut of = memory::word(interpreter.runtime + layout.interpreters)?;
    let mut remaining = SEARCH_LIMIT;
    while of != 0 {
        let mut state = memory::word(of + layout.threads)?;
        while state != 0 {
            remaining = remaining.checked_sub(1)?;
            if memory::word(state + layout.interpreter)? != of {
                return None;
            }
            if is_of_this_thread(interpreter, state) {
                return Some(state);
            }
            state = memory::word(state + layout.next_thread)?;
        }
        remaining = remaining.checked_sub(1)?;
        of = memory::word(of + layout.next_interpreter)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_sees_what_is_there_and_what_has_changed() {
        let mut memory = vec![0_usize; 2048];
        let start = memory.as_ptr().addr();
        let at = |index: usize| start + index * 8;
        let word = |index: usize, holder| Word { at: at(index), value: index * 3, holder };
        // In the order of the frames, which is not that of the addresses.
        let frames = [900, 901, 20, 7, 1900, 21].map(|index| word(index, Holder::Frame));
        let others = [word(1, Holder::Thread), word(3, Holder::Stack), word(1300, Holder::Code)];
        let words = [&others[..1], &frames[..], &others[2..]].concat();
        let with_thread = Look::from_words(&words).unwrap();
        let on_stack = Look::from_words(&[&words[..], &others[1..2]].concat()).unwrap();
        assert_eq!(with_thread.parts, [(at(1), 21 * 8), (at(900), 16), (at(1900), 8)]);
        assert_eq!(on_stack.parts[0], (at(7), 15 * 8));
        assert_eq!((with_thread.is_there(), on_stack.is_there()), (false, false));
        for index in [1, 900, 901, 20, 7, 1900, 21] {
            memory[index] = index * 3;
        }
        std::hint::black_box(&mut memory);
        assert_eq!((with_thread.is_there(), on_stack.is_there()), (true, true));
        memory[1] = 0;
        std::hint::black_box(&mut memory);
        assert_eq!((with_thread.is_there(), on_stack.is_there()), (false, true));
        memory[901] = 0;
        std::hint::black_box(&mut memory);
        assert_eq!((with_thread.is_there(), on_stack.is_there()), (false, false));
    }

    #[test]
    fn a_look_at_what_is_not_mapped_fails() {
        let look = Look::from_words(&[Word { at: 16, value: 0, holder: Holder::Frame }]).unwrap();
        assert!(!look.is_there());
        let far = |index: usize| Word { at: index << 20, value: 0, holder: Holder::Frame };
        assert!(Look::from_words(&(1..40).map(far).collect::<Vec<_>>()).is_none());
    }
}
