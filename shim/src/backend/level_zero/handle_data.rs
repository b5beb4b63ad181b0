//! The format of the backend's handle data: a description of an object, with a checksum.
//!
//! The application passes the data on, so they may be anything: [`HandleData::decode`] accepts any bytes and returns
//! what was encoded, or why it cannot. It must never panic, and never act on what it reads. The checksum has no key:
//! it protects against accidents, not against an adversary.

use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::backend::Family;

/// The length of the data in bytes. Adapters' data have other lengths (16, 64, 108 and 120 bytes).
pub const SIZE: usize = 128;

/// The length of a driver's handle in bytes: `ZE_MAX_IPC_HANDLE_SIZE`.
pub const NATIVE_SIZE: usize = 64;

const MAGIC: [u8; 8] = *b"urscope\x1a";

/// The only version that is written and read.
const VERSION: u16 = 1;

/// The bytes of the data, in order.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 8],
    version: U16,
    kind: U16,
    pid: U32,
    started: U64,
    serial: U64,
    size: U64,
    offset: U64,
    descriptor: I32,
    reserved: [u8; 4],
    native: [u8; NATIVE_SIZE],
    /// The checksum of everything before it.
    checksum: U64,
}

const _: () = assert!(size_of::<Layout>() == SIZE);

/// The contents of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleData {
    /// The kind of the object.
    pub kind: Family,
    /// The producer.
    pub pid: u32,
    /// When the producer started, in clock ticks since boot: pids are reused.
    pub started: u64,
    /// The number of the get in its producer: no two gets return the same data.
    pub serial: u64,
    /// The size of the whole object in bytes; 0 for an event.
    pub size: u64,
    /// The offset of the application's pointer in the object.
    pub offset: u64,
    /// The producer's descriptor of the object, or -1.
    pub descriptor: i32,
    /// The driver's own handle, or zeros.
    pub native: [u8; NATIVE_SIZE],
}

/// Why data are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They have another magic number: they come from an adapter.
    Foreign,
    /// They have an unknown version.
    Version,
    /// They have the magic number, but are damaged, cut short or too long.
    Damaged,
}

impl HandleData {
    /// The bytes of the data.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut layout = Layout {
            magic: MAGIC,
            version: VERSION.into(),
            kind: (self.kind as u16).into(),
            pid: self.pid.into(),
            started: self.started.into(),
            serial: self.serial.into(),
            size: self.size.into(),
            offset: self.offset.into(),
            descriptor: self.descriptor.into(),
            reserved: [0; 4],
            native: self.native,
            checksum: 0.into(),
        };
        layout.checksum = layout.expected_checksum().into();
        zerocopy::transmute!(layout)
    }

    /// The contents of bytes from [`Self::encode`] that were not changed.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Refusal::Foreign);
        }
        let layout = Layout::ref_from_bytes(bytes).map_err(|_| Refusal::Damaged)?;
        if layout.checksum.get() != layout.expected_checksum() {
            return Err(Refusal::Damaged);
        }
        if layout.version.get() != VERSION {
            return Err(Refusal::Version);
        }
        layout.object().filter(Self::is_plausible).ok_or(Refusal::Damaged)
    }

    /// Whether the contents are possible. An adversary can compute the checksum, too.
    fn is_plausible(&self) -> bool {
        let pid = i32::try_from(self.pid).is_ok_and(|pid| pid > 0);
        let place = match self.kind {
            Family::Memory | Family::PhysicalMem => self.offset < self.size && self.descriptor >= 0,
            Family::Event => self.size == 0 && self.offset == 0,
        };
        pid && place
    }
}

impl Layout {
    /// The contents; `None` for an unknown kind, or if a reserved byte is set.
    fn object(&self) -> Option<HandleData> {
        if self.reserved != [0; 4] {
            return None;
        }
        Some(HandleData {
            kind: Family::ALL.into_iter().find(|kind| *kind as u16 == self.kind.get())?,
            pid: self.pid.get(),
            started: self.started.get(),
            serial: self.serial.get(),
            size: self.size.get(),
            offset: self.offset.get(),
            descriptor: self.descriptor.get(),
            native: self.native,
        })
    }

    /// FNV-1a of everything before the checksum. Each step is a bijection of the state, so it detects every change of
    /// one byte.
    fn expected_checksum(&self) -> u64 {
        let checked = self.as_bytes().iter().take(size_of::<Self>() - size_of::<U64>());
        checked
            .fold(0xcbf2_9ce4_8422_2325, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deterministic source of bytes.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn fill(&mut self, bytes: &mut [u8]) {
            for word in bytes.chunks_mut(8) {
                word.copy_from_slice(&self.next().to_le_bytes()[..word.len()]);
            }
        }

        fn handle_data(&mut self) -> HandleData {
            let kind = [Family::Memory, Family::PhysicalMem, Family::Event][(self.next() % 3) as usize];
            let size = if kind == Family::Event { 0 } else { 1 + self.next() / 2 };
            let mut native = [0; NATIVE_SIZE];
            self.fill(&mut native);
            HandleData {
                kind,
                pid: 1 + (self.next() % 0x7fff_fffe) as u32,
                started: self.next(),
                serial: self.next(),
                size,
                offset: if size == 0 { 0 } else { self.next() % size },
                descriptor: (self.next() % 0x8000_0000) as i32,
                native,
            }
        }
    }

    #[test]
    fn what_was_encoded_is_what_is_decoded() {
        let mut random = Random(1);
        for _ in 0..100_000 {
            let handle_data = random.handle_data();
            assert_eq!(HandleData::decode(&handle_data.encode()), Ok(handle_data));
        }
    }

    #[test]
    fn any_damaged_bit_and_any_other_length_is_refused() {
        let mut random = Random(2);
        for _ in 0..200 {
            let whole = random.handle_data().encode();
            for bit in 0..SIZE * 8 {
                let mut bytes = whole;
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(HandleData::decode(&bytes).is_err(), "bit {bit}");
            }
            // Data of any length, also of an adapter's, are not foreign if they have the magic number.
            for length in 0..SIZE {
                let refusal = if length < MAGIC.len() { Refusal::Foreign } else { Refusal::Damaged };
                assert_eq!(HandleData::decode(&whole[..length]), Err(refusal));
            }
            assert_eq!(HandleData::decode(&[&whole[..], &[0]].concat()), Err(Refusal::Damaged));
        }
    }

    #[test]
    fn any_damaged_byte_is_refused() {
        let mut random = Random(3);
        for _ in 0..1_000_000 {
            let mut bytes = random.handle_data().encode();
            let at = (random.next() % SIZE as u64) as usize;
            bytes[at] = bytes[at].wrapping_add(1 + (random.next() % 255) as u8);
            assert!(HandleData::decode(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused() {
        let mut random = Random(4);
        let mut bytes = [0; 2 * SIZE];
        for _ in 0..1_000_000 {
            random.fill(&mut bytes);
            let length = (random.next() % (2 * SIZE as u64)) as usize;
            assert!(HandleData::decode(&bytes[..length]).is_err());
            // Also with the magic number.
            bytes[..8].copy_from_slice(&MAGIC);
            assert!(HandleData::decode(&bytes[..SIZE]).is_err());
        }
    }

    /// Data with a right checksum must still be plausible.
    #[test]
    fn a_right_checksum_makes_no_sense_of_nonsense() {
        let good = Random(5).handle_data();
        let memory = HandleData { kind: Family::Memory, size: 4096, offset: 0, ..good };
        assert!(HandleData::decode(&memory.encode()).is_ok());
        for bad in [
            HandleData { offset: 4096, ..memory },
            HandleData { offset: u64::MAX, ..memory },
            HandleData { size: 0, ..memory },
            HandleData { pid: 0, ..memory },
            HandleData { pid: u32::MAX, ..memory },
            HandleData { descriptor: -1, ..memory },
            HandleData { kind: Family::Event, ..memory },
        ] {
            assert_eq!(HandleData::decode(&bad.encode()), Err(Refusal::Damaged), "{bad:?}");
        }
    }

    #[test]
    fn another_version_is_refused_as_one() {
        let mut bytes = Random(6).handle_data().encode();
        bytes[8] += 1;
        let sum = Layout::ref_from_bytes(&bytes).unwrap().expected_checksum().to_le_bytes();
        bytes[SIZE - 8..].copy_from_slice(&sum);
        assert_eq!(HandleData::decode(&bytes), Err(Refusal::Version));
    }
}
