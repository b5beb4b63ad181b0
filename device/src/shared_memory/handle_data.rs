//! The 64 bytes of an IPC handle: of memory, of an event, or of an event pool.
//!
//! The first four bytes are a descriptor number, because libumf and the Unified Runtime fetch that descriptor from the
//! producer and store their own in its place before they open the handle. The rest is the device's format, with a
//! checksum over all but those four bytes. The checksum detects damage; it does not authenticate, so every field must
//! be checked before use. Must never use a field before the magic, the version and the checksum are right.

use std::{process, sync::LazyLock};

use super::{own_file::Description, segment::Span};

/// Marks the format.
const MAGIC: u32 = u32::from_le_bytes(*b"zsmh");
/// Version of the format. Any other version is refused.
const VERSION: u8 = 3;

type Bytes = [u8; 64];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandleData {
    /// The descriptor in the first four bytes: the producer's number, or that of a copy in the consumer.
    pub descriptor: i32,
    /// `ze_memory_type_t` of memory, or the purpose of a shared event page.
    pub kind: u16,
    /// The number of the device that memory is on, or `NO_DEVICE`.
    pub device: u8,
    /// The pid of the producer, in its own pid namespace.
    pub pid: u32,
    /// When the producer started, in clock ticks since boot. Distinguishes it from a later process with its pid.
    pub started: u64,
    pub inode: u64,
    /// Size that was requested, in bytes.
    pub size: u64,
    /// Where the range begins in the file, in bytes.
    pub offset: u64,
    /// Index of its record in the file, counted from the end.
    pub record: u16,
    /// Identity of the range, 40 bits.
    pub identity: u64,
    /// The producer's descriptor of the file.
    pub exported: i32,
}

/// When this process started. Read once: it cannot change, and a forked child exports nothing.
static STARTED: LazyLock<u64> = LazyLock::new(|| crate::platform::process::start_time(process::id()).unwrap_or(0));

impl HandleData {
    /// The fields for a range of this process.
    pub(crate) fn of(span: &Span, Description { kind, device, size }: Description) -> Self {
        Self {
            descriptor: span.descriptor(),
            kind,
            device,
            pid: process::id(),
            started: *STARTED,
            inode: span.inode,
            size,
            offset: span.offset,
            record: span.record as u16,
            identity: span.identity,
            exported: span.descriptor(),
        }
    }

    /// The descriptor of a handle that consists of nothing else: the other bytes are zero. `None` for any other bytes.
    pub(crate) fn bare_descriptor(bytes: &Bytes) -> Option<i32> {
        let (descriptor, rest) = bytes.split_first_chunk()?;
        rest.iter().all(|byte| *byte == 0).then(|| i32::from_le_bytes(*descriptor))
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer { bytes: [0; 64], at: 0 };
        writer.put(&self.descriptor.to_le_bytes());
        writer.put(&MAGIC.to_le_bytes());
        writer.put(&[VERSION, self.device]);
        writer.put(&self.kind.to_le_bytes());
        writer.put(&self.pid.to_le_bytes());
        writer.put(&self.started.to_le_bytes());
        writer.put(&self.inode.to_le_bytes());
        writer.put(&self.size.to_le_bytes());
        // Identity and record share a word: 40 and 16 bits.
        writer.put(&(self.identity << 16 | u64::from(self.record)).to_le_bytes());
        writer.put(&self.offset.to_le_bytes());
        writer.put(&self.exported.to_le_bytes());
        let sum = checksum(&writer.bytes);
        writer.put(&sum.to_le_bytes());
        writer.bytes
    }

    /// The fields of a handle, or `None` if the bytes are damaged or not a handle of the device.
    pub(crate) fn decode(bytes: &Bytes) -> Option<Self> {
        let mut reader = Reader { bytes };
        let descriptor = i32::from_le_bytes(reader.take()?);
        let magic = u32::from_le_bytes(reader.take()?);
        let [version, device] = reader.take()?;
        let kind = u16::from_le_bytes(reader.take()?);
        let pid = u32::from_le_bytes(reader.take()?);
        let started = u64::from_le_bytes(reader.take()?);
        let inode = u64::from_le_bytes(reader.take()?);
        let size = u64::from_le_bytes(reader.take()?);
        let word = u64::from_le_bytes(reader.take()?);
        let offset = u64::from_le_bytes(reader.take()?);
        let exported = i32::from_le_bytes(reader.take()?);
        let sum = u32::from_le_bytes(reader.take()?);
        if magic != MAGIC || version != VERSION || sum != checksum(bytes) {
            return None;
        }
        let (identity, record) = (word >> 16, word as u16);
        Some(Self { descriptor, kind, device, pid, started, inode, size, offset, record, identity, exported })
    }
}

/// FNV-1a over all but the first four bytes and the last four.
fn checksum(bytes: &Bytes) -> u32 {
    let covered = bytes.iter().skip(4).take(56);
    covered.fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

struct Writer {
    bytes: Bytes,
    at: usize,
}

impl Writer {
    fn put(&mut self, field: &[u8]) {
        for (place, byte) in self.bytes.iter_mut().skip(self.at).zip(field) {
            *place = *byte;
        }
        self.at += field.len();
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: HandleData = HandleData {
        descriptor: 7,
        kind: 2,
        device: 63,
        pid: 4_000_000,
        started: 123_456_789_012,
        inode: 1 << 33,
        size: 1 << 40,
        offset: 1 << 41,
        record: 8191,
        identity: (1 << 40) - 1,
        exported: 7,
    };

    #[test]
    fn encoded_data_decodes_to_the_same_fields() {
        assert_eq!(HandleData::decode(&SAMPLE.encode()), Some(SAMPLE));
    }

    #[test]
    fn the_descriptor_may_be_replaced() {
        let mut bytes = SAMPLE.encode();
        bytes[..4].copy_from_slice(&99_i32.to_le_bytes());
        assert_eq!(HandleData::decode(&bytes), Some(HandleData { descriptor: 99, ..SAMPLE }));
    }

    #[test]
    fn any_other_changed_bit_is_detected() {
        for bit in 32..512 {
            let mut bytes = SAMPLE.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(HandleData::decode(&bytes), None, "bit {bit}");
        }
    }
}
