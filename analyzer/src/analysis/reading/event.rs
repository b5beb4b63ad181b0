//! The events of a trace.

use urscope_schema::{
    api::Function,
    call::{Enter, Exit, Nanos},
    trace::records::Device,
};

/// An event of a process. Many events wait between the reading threads and the analysis, so the type is `Copy`, without
/// allocations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceEvent {
    Begin(Nanos),
    Thread(u32, Label),
    /// An adapter, by the file name of its library.
    Adapter(Label),
    /// A device, by its handle: its index and its name.
    Device(u64, Option<u32>, Label),
    Enter(Enter),
    Exit(Exit),
    Descriptors(u64, Nanos),
    End(Nanos),
}

/// The time of an event, and its rank among events of several processes at the same time. Events that can explain others come
/// first.
pub(crate) type Moment = (Nanos, u8);

impl TraceEvent {
    /// The moment of the event, where `now` is the latest time of its process.
    pub(crate) fn order(&self, now: Nanos) -> Moment {
        match self {
            Self::Begin(time) => (*time, 0),
            Self::Thread(..) | Self::Adapter(_) | Self::Device(..) | Self::Exit(_) | Self::Descriptors(..) => (now, 1),
            Self::End(time) => ((*time).max(now), 1),
            Self::Enter(enter) => (now, if enter.function == Function::urUSMFree { 3 } else { 2 }),
        }
    }
}

/// The name of a thread, of which the kernel keeps 15 bytes, each of which may be replaced by a replacement character of 3 bytes; of
/// a library, or of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    bytes: [u8; Self::CAPACITY],
    length: u8,
}

impl Label {
    const CAPACITY: usize = Device::NAME_LIMIT;

    /// A name, truncated to the capacity.
    pub(crate) fn of(name: &str) -> Self {
        let name = name.get(..name.floor_char_boundary(Self::CAPACITY)).unwrap_or_default();
        let mut bytes = [0; Self::CAPACITY];
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
    fn a_long_name_is_truncated_at_a_character() {
        for name in ["", "worker", "fünfzehn Zeich", &"\u{fffd}".repeat(15)] {
            assert_eq!(Label::of(name).text(), name);
        }
        assert_eq!(Label::of(&format!("{}ü", "x".repeat(63))).text(), "x".repeat(63));
    }
}
