//! What a process does, as its trace tells it record by record.

use urscope_schema::{
    api::Function,
    call::{Enter, Exit, Nanos},
};

/// What a process does. Many wait between the threads that read and the one that hears, so it is plain memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceEvent {
    Begin(Nanos),
    Thread(u32, Label),
    Enter(Enter),
    Exit(Exit),
    Descriptors(u64, Nanos),
    End(Nanos),
}

/// When, and what comes first of things that happen at the same time in several processes: whatever excuses.
pub(crate) type Moment = (Nanos, u8);

impl TraceEvent {
    /// Its moment, where the process is at `now`.
    pub(crate) fn order(&self, now: Nanos) -> Moment {
        match self {
            Self::Begin(time) => (*time, 0),
            Self::Thread(..) | Self::Exit(_) | Self::Descriptors(..) => (now, 1),
            Self::End(time) => ((*time).max(now), 1),
            Self::Enter(enter) => (now, if enter.function == Function::urUSMFree { 3 } else { 2 }),
        }
    }
}

/// The name of a thread. The kernel keeps 15 bytes of it, each of which may have become a replacement character.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    bytes: [u8; Self::MOST],
    length: u8,
}

impl Label {
    const MOST: usize = 48;

    /// As much of a name as has room.
    pub(crate) fn of(name: &str) -> Self {
        let name = name.get(..name.floor_char_boundary(Self::MOST)).unwrap_or_default();
        let mut bytes = [0; Self::MOST];
        for (to, from) in bytes.iter_mut().zip(name.as_bytes()) {
            *to = *from;
        }
        Self { bytes, length: name.len() as u8 }
    }

    /// The name.
    pub(crate) fn text(&self) -> &str {
        self.bytes.get(..usize::from(self.length)).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_as_far_as_there_is_room() {
        for name in ["", "worker", "fünfzehn Zeich", &"\u{fffd}".repeat(15)] {
            assert_eq!(Label::of(name).text(), name);
        }
        assert_eq!(Label::of(&format!("{}ü", "x".repeat(47))).text(), "x".repeat(47));
    }
}
