//! Appends records to the chunk of a thread, in three steps: one instruction claims the space in the thread's position,
//! a first word with the length of the space is stored, and the first word of the record replaces it after all others.
//! So a signal handler may append on the same thread at any instruction, and a killed process leaves only whole
//! records.

use urscope_schema::trace::fxt::{CHUNK, HEAD, hole, write};

use super::super::super::signals::sync::{self, Ordering, compiler_fence};
use super::super::super::threads::variables::Variable as _;
use super::WORD;
use super::call_words::CallWords;
use super::lane::{Base, Claim, Lane};

/// The distance in bytes from the end of a record at which memory for the next ones is prefetched.
const PREFETCH_DISTANCE: usize = 128;

/// Stores the words of a record after the first one.
struct Words(*mut u64);

impl write::Sink for Words {
    #[inline]
    fn word(&mut self, word: u64) {
        // SAFETY: `append_with` has claimed space for the words that the same function passed to `Measure`.
        unsafe {
            sync::store(self.0, word);
            self.0 = self.0.add(1);
        }
    }
}

/// A record that [`append_with`] can store.
pub trait Appendable {
    /// Passes the words after the first one to `to`, and returns the first one, which contains the length; `None` for a
    /// record that cannot be written. Must do the same each time.
    fn words(&self, to: &mut impl write::Sink) -> Option<u64>;
}

/// What the record of a call needs in order to leave out the number.
#[derive(Clone, Copy)]
pub struct Short {
    /// The call of the record in front, which must be there.
    pub before: u64,
    /// The kind of the record ([`kind_of`](urscope_schema::trace::fxt::kind_of)).
    pub kind: u16,
}

/// The result of appending a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is in the file.
    Yes,
    /// This thread needs another chunk.
    NoRoom,
    /// It cannot follow the record before ([`Short::before`]).
    Unfit,
    /// It cannot be written: it is too long, or a signal handler interrupted [`Chunks::renew`].
    Never,
}

/// Appends a record to this thread's chunk.
pub fn append_with(record: &impl Appendable) -> Appended {
    let lane = Lane::own();
    loop {
        if let Some(appended) = append_at(lane, lane.next.get(), record, |_| ()) {
            return appended;
        }
    }
}

/// Appends the encoded record of the call with this number, short or not; 0 for one that says nothing to the next
/// record.
#[inline(never)] // Its code is the same for all functions.
pub fn append_call(words: &[u64], call: u64, short: Option<Short>) -> Appended {
    let lane = Lane::own();
    let [first, time, arguments @ ..] = words else { return Appended::Never };
    loop {
        let next = lane.next.get();
        let turn = lane.turn.get();
        let mut stored = words;
        let mut new_base = None;
        let all = [write::repetition(*first), *time];
        let mut some = CallWords::empty();
        if let Some(Short { before, kind }) = short {
            if before == 0 || before != lane.before(next) {
                return Appended::Unfit;
            }
            if !arguments.is_empty() {
                new_base = Some(Base { turn, kind, at: 0 });
                if let Some(base) = lane.base(kind) {
                    // Most repeat all, and the arguments are few.
                    let is_same =
                        base.len() == words.len() && base.iter().zip(words).skip(2).all(|(its, word)| its == word);
                    let repeated = if is_same { Some(&all[..]) } else { repeat(words, base, &mut some) };
                    if let Some(repeated) = repeated {
                        (stored, new_base) = (repeated, None);
                    }
                    compiler_fence(Ordering::SeqCst);
                    lane.writes.set(0);
                }
            }
        }
        let note = |end| {
            if call != 0 {
                lane.note_call(call, next, end, new_base);
            }
        };
        if let Some(appended) = append_at(lane, next, &Encoded(stored), note) {
            return appended;
        }
    }
}

/// A record that repeats a part of its base ([`write::repeat`]).
#[cold]
fn repeat<'w>(words: &[u64], base: &[u64], to: &'w mut CallWords) -> Option<&'w [u64]> {
    let first = write::repeat(words, base, to);
    to.with_first(first)
}

/// Appends a record at `next`, and passes its end to `note` unless this has interrupted another record; `None` if a
/// handler has appended one there.
#[inline]
fn append_at(lane: &Lane, next: usize, record: &impl Appendable, note: impl FnOnce(usize)) -> Option<Appended> {
    let outer = lane.writes.get();
    let Some(first) = record.words(&mut write::Measure) else { return Some(Appended::Never) };
    let end = next.wrapping_add(write::length(first) * WORD);
    let place = match lane.claim(next, end) {
        Claim::Room(place) => place,
        Claim::NoRoom if lane.busy.get() => return Some(Appended::Never),
        Claim::NoRoom => return Some(Appended::NoRoom),
        Claim::Interrupted => return None,
    };
    // SAFETY: `claim` returned space for the record, in a chunk that stays mapped while this thread writes there.
    unsafe {
        sync::store(place, hole(write::length(first)));
        record.words(&mut Words(place.add(1)));
        sync::store(place, first);
    }
    sync::prefetch_to_write(end + PREFETCH_DISTANCE);
    if outer == 0 {
        note(end);
    }
    compiler_fence(Ordering::SeqCst);
    lane.writes.set(outer);
    Some(Appended::Yes)
}

struct Encoded<'a>(&'a [u64]);

impl Appendable for Encoded<'_> {
    #[inline]
    fn words(&self, to: &mut impl write::Sink) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        for word in rest {
            to.word(*word);
        }
        Some(*first)
    }
}

/// Appends an encoded record.
pub fn append(words: &[u64]) -> Appended {
    let fits = words.first().is_some_and(|first| write::length(*first) == words.len()) && words.len() <= CHUNK - HEAD;
    if fits { append_with(&Encoded(words)) } else { Appended::Never }
}

/// Appends several encoded records to an unwritten chunk.
pub(super) fn append_all(words: &[u64]) {
    let lane = Lane::own();
    let outer = lane.writes.get();
    let next = lane.next.get();
    if let Claim::Room(place) = lane.claim(next, next.wrapping_add(words.len() * WORD)) {
        for (at, word) in words.iter().enumerate() {
            // SAFETY: as in `append_at`.
            unsafe { sync::store(place.add(at), *word) };
        }
        compiler_fence(Ordering::SeqCst);
        lane.writes.set(outer);
    }
}
