//! The 64 bytes of an IPC handle: of memory, of an event, or of an event pool.
//!
//! Their fields are those of Intel's driver (`IpcOpaqueMemoryData` in its `context.h`), at the same places: a
//! descriptor number, of which the upper four bytes are ignored, an offset, the producer's pid, and the number once
//! more. Programs fetch that descriptor from the producer and store their own in its place, so the two numbers differ
//! then. With `ZE_SOFT_HANDLES=descriptor`, handles of memory and of pools lack the pid and the second number, as those
//! of older drivers do. The device's own fields are in the reserved bytes, with a checksum over all bytes that no
//! program changes. The checksum detects damage; it does not authenticate, so every field must be checked before use.
//! Must never use a field before the checksum is right.

use std::{process, sync::LazyLock};

use super::{own_file::Description, segment::Span};

type Bytes = [u8; 64];

/// Where the checksum is, in bytes.
const CHECKSUM: usize = 58;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandleData {
    /// The descriptor: the producer's number, or that of a copy in the consumer.
    pub descriptor: i32,
    /// The producer, if the handle names it.
    pub producer: Option<Producer>,
    /// `ze_memory_type_t` of memory, or the purpose of a shared event page.
    pub kind: u16,
    /// The number of the device that memory is on, or `NO_DEVICE`.
    pub device: u8,
    /// When the producer started, in clock ticks since boot, 40 bits. Distinguishes it from a later process with its
    /// pid.
    pub started: u64,
    pub inode: u64,
    /// Size that was requested, in bytes, 48 bits.
    pub size: u64,
    /// Where the range begins in the file, in bytes.
    pub offset: u64,
    /// Index of its record in the file, counted from the end.
    pub record: u16,
    /// Identity of the range, 40 bits.
    pub identity: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    /// Its pid, in its own pid namespace.
    pub pid: u32,
    /// Its descriptor of the file.
    pub descriptor: i32,
}

/// When this process started. Read once: it cannot change, and a forked child exports nothing.
static STARTED: LazyLock<u64> = LazyLock::new(|| crate::platform::process::start_time(process::id()).unwrap_or(0));

impl HandleData {
    /// The fields for a range of this process.
    pub(crate) fn new(span: &Span, Description { kind, device, size }: Description, names_producer: bool) -> Self {
        let descriptor = span.descriptor();
        Self {
            descriptor,
            producer: names_producer.then(|| Producer { pid: process::id(), descriptor }),
            kind,
            device,
            started: *STARTED,
            inode: span.inode,
            size,
            offset: span.offset,
            record: span.record as u16,
            identity: span.identity,
        }
    }

    /// The descriptor of a handle that consists of nothing else: the other bytes are zero. `None` for any other bytes.
    pub(crate) fn bare_descriptor(bytes: &Bytes) -> Option<i32> {
        let (descriptor, rest) = bytes.split_first_chunk()?;
        rest.iter().skip(4).all(|byte| *byte == 0).then(|| i32::from_le_bytes(*descriptor))
    }

    /// The producer of a handle whose descriptor is as the producer wrote it.
    pub(crate) fn unchanged(&self) -> Option<Producer> {
        self.producer.filter(|producer| producer.descriptor == self.descriptor)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let Producer { pid, descriptor } = self.producer.unwrap_or(Producer { pid: 0, descriptor: 0 });
        let [kind, purpose] = self.kind.to_le_bytes();
        let mut writer = Writer { bytes: [0; 64], at: 0 };
        writer.put(u64::from(self.descriptor as u32), 8);
        writer.put(self.offset, 8);
        writer.put(pid.into(), 4);
        // The type of the handle: a descriptor.
        writer.put(0, 1);
        writer.put(kind.into(), 1);
        writer.put(u64::from(descriptor as u32), 8);
        writer.put(self.inode, 8);
        writer.put(self.identity << 16 | u64::from(self.record), 7);
        writer.put(self.started << 8 | u64::from(self.device), 6);
        writer.put(self.size << 8 | u64::from(purpose), 7);
        writer.put(checksum(&writer.bytes).into(), 4);
        writer.bytes
    }

    /// The fields of a handle, or `None` if the bytes are damaged or not a handle of the device.
    pub(crate) fn decode(bytes: &Bytes) -> Option<Self> {
        let mut reader = Reader { bytes };
        let descriptor = reader.take(8)? as i32;
        let offset = reader.take(8)?;
        let pid = reader.take(4)? as u32;
        let [_, kind] = [reader.take(1)?, reader.take(1)?];
        let original = reader.take(8)? as i32;
        let inode = reader.take(8)?;
        let (identity, record) = split(reader.take(7)?, 16);
        let (started, device) = split(reader.take(6)?, 8);
        let (size, purpose) = split(reader.take(7)?, 8);
        if reader.take(4)? as u32 != checksum(bytes) {
            return None;
        }
        let producer = (pid != 0).then_some(Producer { pid, descriptor: original });
        let kind = (purpose << 8 | kind) as u16;
        let device = device as u8;
        let record = record as u16;
        Some(Self { descriptor, producer, kind, device, started, inode, size, offset, record, identity })
    }
}

/// The pid of the process that made a handle, as another interface of this device sees it: `None` if the bytes are not
/// a handle that names it.
pub fn producer(bytes: &Bytes) -> Option<u32> {
    HandleData::decode(bytes)?.producer.map(|producer| producer.pid)
}

/// What a handle of memory names, as another interface of this device sees it: the inode of the file with the identity
/// of the range in its process, and the size in bytes. `None` if the bytes are not a handle.
pub fn named(bytes: &Bytes) -> Option<((u64, u64), usize)> {
    HandleData::decode(bytes).map(|data| ((data.inode, data.identity), data.size as usize))
}

/// The bits above the lowest `low`, and these.
fn split(word: u64, low: u32) -> (u64, u64) {
    (word >> low, word & ((1 << low) - 1))
}

/// FNV-1a over all but the descriptor and the checksum itself.
fn checksum(bytes: &Bytes) -> u32 {
    let covered = bytes.iter().enumerate().filter(|(at, _)| *at >= 8 && !(CHECKSUM..CHECKSUM + 4).contains(at));
    covered.fold(0x811c_9dc5, |sum, (_, byte)| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

struct Writer {
    bytes: Bytes,
    at: usize,
}

impl Writer {
    /// A number of `size` bytes, at most 8.
    fn put(&mut self, number: u64, size: usize) {
        for (place, byte) in self.bytes.iter_mut().skip(self.at).zip(number.to_le_bytes()).take(size) {
            *place = byte;
        }
        self.at += size;
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    /// A number of `size` bytes, at most 8.
    fn take(&mut self, size: usize) -> Option<u64> {
        let (field, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        Some(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: HandleData = HandleData {
        descriptor: 7,
        producer: Some(Producer { pid: 4_000_000, descriptor: 7 }),
        kind: 0x202,
        device: 63,
        started: 123_456_789_012,
        inode: 1 << 33,
        size: 1 << 40,
        offset: 1 << 41,
        record: 8191,
        identity: (1 << 40) - 1,
    };

    #[test]
    fn encoded_data_decodes_to_the_same_fields() {
        assert_eq!(HandleData::decode(&SAMPLE.encode()), Some(SAMPLE));
    }

    #[test]
    fn the_descriptor_may_be_replaced() {
        let replaced = HandleData { descriptor: 99, ..SAMPLE };
        for upper in [0, u32::MAX] {
            let mut bytes = SAMPLE.encode();
            bytes[..8].copy_from_slice(&(u64::from(upper) << 32 | 0x63).to_le_bytes());
            assert_eq!(HandleData::decode(&bytes), Some(replaced));
        }
        assert_eq!((SAMPLE.unchanged(), replaced.unchanged()), (SAMPLE.producer, None));
    }

    #[test]
    fn the_fields_of_the_driver_are_at_its_places() {
        let bytes = SAMPLE.encode();
        let number = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!([0, 16, 22].map(number), [7, 4_000_000, 7]);
        let unnamed = HandleData { producer: None, ..SAMPLE };
        assert_eq!(HandleData::decode(&unnamed.encode()), Some(unnamed));
        assert_eq!(unnamed.encode()[16..20], [0; 4]);
    }

    #[test]
    fn nothing_but_a_descriptor_is_known_whatever_its_upper_half_is() {
        let mut bytes = [0; 64];
        bytes[0] = 7;
        assert_eq!(HandleData::bare_descriptor(&bytes), Some(7));
        bytes[4..8].fill(0xff);
        assert_eq!(HandleData::bare_descriptor(&bytes), Some(7));
        bytes[8] = 1;
        assert_eq!(HandleData::bare_descriptor(&bytes), None);
    }

    #[test]
    fn any_other_changed_bit_is_detected() {
        for bit in 64..512 {
            let mut bytes = SAMPLE.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(HandleData::decode(&bytes), None, "bit {bit}");
        }
    }
}
