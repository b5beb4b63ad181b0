//! The words of the record of a call, before they are in the file.

#![expect(clippy::inline_always, reason = "the row of a function decides which values there are")]

use std::mem::MaybeUninit;

use urscope_schema::trace::fxt::write::{self, Sink};

/// The most words of such a record: its arguments have up to two.
const LONGEST: usize = 2 + 2 * write::ARGUMENTS as usize;

/// The words while they are made.
pub struct CallWords {
    words: [MaybeUninit<u64>; LONGEST],
    count: usize,
}

impl CallWords {
    /// None but the first one, which is known last.
    #[inline(always)]
    pub const fn empty() -> Self {
        Self { words: [const { MaybeUninit::uninit() }; LONGEST], count: 1 }
    }

    /// All of them with the first one; `None` without one, or if they are too many.
    #[inline(always)]
    pub fn with_first(&mut self, first: Option<u64>) -> Option<&[u64]> {
        self.words.first_mut()?.write(first?);
        let words = self.words.get(..self.count)?;
        // SAFETY: the first one is written, and `word` has written all others up to `count`.
        Some(unsafe { words.assume_init_ref() })
    }
}

impl Sink for CallWords {
    #[inline(always)]
    fn word(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.count) {
            place.write(word);
        }
        self.count += 1;
    }
}
