//! The state of a counter that lies in memory of the application.
//!
//! The application, a kernel or another process raises a word to the value that completes the event,
//! without a notification, so a wait polls the word. A signal of a list replaces this state by one of
//! this process (`local`) or adds to the word, depending on how the event was created. Destroying the
//! event does not end a wait: the word may still change.

use std::thread;
use std::time::Duration;

use super::local::Local;
use super::{Kind, Timestamps, WaitResult};
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

/// A counter in memory of the application.
pub(super) struct External {
    words: Words,
    /// The signals of lists. Value 0 stands for the words.
    local: Local,
}

impl External {
    pub(super) fn new(words: Words) -> Self {
        Self { words, local: Local::new(Kind::Counter) }
    }

    pub(super) fn submit(&self) -> u64 {
        self.local.submit()
    }

    pub(super) fn submitted(&self) -> u64 {
        if self.words.increment.is_some() { 0 } else { self.local.submitted() }
    }

    pub(super) fn complete(&self, value: u64, timestamps: Timestamps) {
        // Whoever sees the word may ask for the timestamps.
        self.local.complete(value, timestamps);
        if let Some(increment) = self.words.increment {
            self.words.device.add(increment);
        }
    }

    pub(super) fn is_complete(&self, value: u64) -> bool {
        if value == 0 { self.is_reached(self.host_word()) } else { self.local.is_complete(value) }
    }

    /// Waits on the host.
    pub(super) fn wait(&self, value: u64, deadline: Deadline) -> WaitResult {
        if value == 0 { self.watch(self.host_word(), deadline) } else { self.local.wait(value, deadline) }
    }

    /// Waits in a stream.
    pub(super) fn wait_in_stream(&self, value: u64, deadline: Deadline) -> WaitResult {
        if value == 0 { self.watch(&self.words.device, deadline) } else { self.local.wait(value, deadline) }
    }

    pub(super) fn abandon(&self) {
        self.local.abandon();
    }

    pub(super) fn wake(&self) {
        self.local.wake();
    }

    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.local.timestamps()
    }

    /// The value that completes the event, and the address of the word. None once a signal has replaced it.
    pub(super) fn counter_address(&self) -> Option<(u64, usize)> {
        (self.submitted() == 0).then(|| (self.words.completion, self.words.device.address()))
    }

    fn host_word(&self) -> &Word {
        self.words.host.as_ref().unwrap_or(&self.words.device)
    }

    fn is_reached(&self, word: &Word) -> bool {
        word.load() >= self.words.completion
    }

    fn watch(&self, word: &Word, deadline: Deadline) -> WaitResult {
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
