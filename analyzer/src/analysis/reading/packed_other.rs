//! Events that are no calls, in few words: a name takes room only for its letters.

use urscope_schema::call::Nanos;

use super::event::{Label, Moment, Other};

/// What the second byte of an event says in its lower half: what it is. The upper half is the rank of its moment.
const BEGIN: u64 = 0;
const THREAD: u64 = 1;
const ADAPTER: u64 = 2;
const DEVICE: u64 = 3;
const INDEXED_DEVICE: u64 = 4;
const DESCRIPTORS: u64 = 5;
const END: u64 = 6;

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// An event that is no call, at the front of some words: four words and its name. Its first byte is 0, which no call begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedOther<'w> {
    head: &'w [u64; 4],
    name: &'w [u64],
}

/// Adds an event with its moment behind some words.
pub(super) fn pack((time, rank): Moment, other: &Other, words: &mut Vec<u64>) {
    let (what, number, values, name) = match other {
        Other::Begin(at) => (BEGIN, 0, [at.0, 0], None),
        Other::Thread(tid, name) => (THREAD, *tid, [0; 2], Some(name)),
        Other::Adapter(library) => (ADAPTER, 0, [0; 2], Some(library)),
        Other::Device(handle, None, name) => (DEVICE, 0, [*handle, 0], Some(name)),
        Other::Device(handle, Some(index), name) => (INDEXED_DEVICE, *index, [*handle, 0], Some(name)),
        Other::Descriptors(open, at) => (DESCRIPTORS, 0, [*open, at.0], None),
        Other::End(at) => (END, 0, [at.0, 0], None),
    };
    let name = name.map(|name| name.text().as_bytes()).unwrap_or_default();
    let [one, two] = values;
    let first = what << 8 | u64::from(rank) << 12 | (name.len() as u64) << 16 | u64::from(number) << 32;
    words.extend_from_slice(&[first, time.0, one, two]);
    words.extend(name.chunks(WORD).map(|part| {
        let mut word = [0; WORD];
        word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    }));
}

impl<'w> PackedOther<'w> {
    /// The event at the front of `words`; `None` if there is none.
    pub(super) fn first_of(words: &'w [u64]) -> Option<Self> {
        let (head, rest) = words.split_first_chunk()?;
        let name = rest.get(..length(head).div_ceil(WORD))?;
        let [kind, ..] = head[0].to_le_bytes();
        (kind == 0).then_some(Self { head, name })
    }

    /// The number of its words.
    pub(super) fn size(&self) -> usize {
        self.head.len() + self.name.len()
    }

    /// Its moment.
    pub(super) fn moment(&self) -> Moment {
        (Nanos(self.head[1]), (self.head[0] >> 12 & 0xf) as u8)
    }

    /// Whether it is the beginning of the process.
    pub(crate) fn begins(&self) -> bool {
        self.head[0] >> 8 & 0xf == BEGIN
    }

    /// Whether it is the end of the process.
    pub(crate) fn ends(&self) -> bool {
        self.head[0] >> 8 & 0xf == END
    }

    /// The event.
    pub(crate) fn other(&self) -> Other {
        let [first, _, one, two] = *self.head;
        let number = (first >> 32) as u32;
        match first >> 8 & 0xf {
            BEGIN => Other::Begin(Nanos(one)),
            THREAD => Other::Thread(number, self.name()),
            ADAPTER => Other::Adapter(self.name()),
            DEVICE => Other::Device(one, None, self.name()),
            INDEXED_DEVICE => Other::Device(one, Some(number), self.name()),
            DESCRIPTORS => Other::Descriptors(one, Nanos(two)),
            _ => Other::End(Nanos(one)),
        }
    }

    fn name(&self) -> Label {
        let mut bytes = [0; Label::CAPACITY];
        bytes.iter_mut().zip(self.name.iter().flat_map(|word| word.to_le_bytes())).for_each(|(to, from)| *to = from);
        let text = bytes.get(..length(self.head)).and_then(|bytes| str::from_utf8(bytes).ok());
        Label::of(text.unwrap_or_default())
    }
}

/// The bytes of the name.
fn length(head: &[u64; 4]) -> usize {
    (head[0] >> 16 & 0xff) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_unpacked_as_they_were() {
        let name = Label::of;
        let others = [
            Other::Begin(Nanos(u64::MAX)),
            Other::Thread(u32::MAX, name("fünfzehn Zeich")),
            Other::Thread(0, name("")),
            Other::Adapter(name("12345678")),
            Other::Device(7, None, name(&"x".repeat(64))),
            Other::Device(u64::MAX, Some(3), name("Intel(R) Data Center GPU Max 1550")),
            Other::Descriptors(5, Nanos(6)),
            Other::End(Nanos(8)),
        ];
        let mut words = Vec::new();
        for (rank, other) in (0..).zip(&others) {
            pack((Nanos(9), rank), other, &mut words);
        }
        let mut rest = words.as_slice();
        for (rank, other) in (0..).zip(&others) {
            let packed = PackedOther::first_of(rest).unwrap();
            assert_eq!(format!("{:?}", packed.other()), format!("{other:?}"));
            assert_eq!(packed.moment(), (Nanos(9), rank));
            assert_eq!((packed.begins(), packed.ends()), (rank == 0, rank == 7));
            rest = &rest[packed.size()..];
        }
        assert!(rest.is_empty() && PackedOther::first_of(rest).is_none());
    }
}
