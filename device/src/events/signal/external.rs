//! The state of a counter that lies in memory of the application.
//!
//! The application, a kernel or another process raises a word to the value that completes the event, without a
//! notification, so a wait polls the word. A signal of a list replaces this state by one of this process (`local`) or
//! adds to the word, depending on how the event was created. Destroying the event does not end a wait: the word may
//! still change. A wait for value 0 of the signal is one for the word.

use std::{thread, time::Duration};

use super::WaitResult;
use crate::memory::word::Word;
use crate::platform::deadline::{self, Deadline, Next};
use crate::platform::process;

/// The first and the longest sleep of a wait between two reads of the word.
const PAUSES: [Duration; 2] = [Duration::from_micros(10), Duration::from_millis(1)];

/// The words of an event, as its descriptor names them.
pub(crate) struct Words {
    /// The word that commands read.
    pub device: Word,
    /// The word that the host reads, if it is another one.
    pub host: Option<Word>,
    /// The least value that completes the event.
    pub completion: u64,
    /// What a signal adds to the word of commands. Without it, a signal replaces the state.
    pub increment: Option<u64>,
}

impl Words {
    pub(super) fn host_word(&self) -> &Word {
        self.host.as_ref().unwrap_or(&self.device)
    }

    /// Whether a word has the value that completes the event.
    pub(super) fn is_reached(&self, word: &Word) -> bool {
        word.load() >= self.completion
    }

    pub(super) fn watch(&self, word: &Word, deadline: Deadline) -> WaitResult {
        let [mut pause, longest] = PAUSES;
        let mut wait = deadline.wait();
        loop {
            if self.is_reached(word) {
                return WaitResult::Completed;
            }
            if process::devices_are_lost() {
                return WaitResult::Abandoned;
            }
            match wait.next() {
                Next::Sleep(left) => {
                    thread::sleep(left.map_or(pause, |left| left.min(pause)));
                    pause = longest.min(pause * 2);
                }
                Next::Spin => deadline::pause(),
                Next::End => return WaitResult::TimedOut,
            }
        }
    }
}
