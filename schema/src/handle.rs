//! The objects whose lifetimes are tracked.
//!
//! A [`Handle`] always has its [`Kind`]: one address can be USM, then a mapping, then handle data.

use std::ops::Range;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $noun:literal;)*) => {
        /// The type of an object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name in reports and suppressions, in kebab case.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The noun in a sentence.
            pub const fn noun(self) -> &'static str {
                match self { $(Self::$kind => $noun,)* }
            }
        }
    };
}

kinds! {
    /// A `ur_adapter_handle_t`.
    Adapter "adapter" "adapter";
    /// A `ur_device_handle_t`.
    Device "device" "device";
    /// A `ur_context_handle_t`.
    Context "context" "context";
    /// A USM allocation (host, device or shared), identified by its address.
    Usm "usm" "USM allocation";
    /// Handle data of memory, made by `urIPCGetMemHandleExp`, identified by its address in the producer.
    MemHandle "mem-handle" "memory handle";
    /// Memory of another process, mapped by `urIPCOpenMemHandleExp`, identified by its address in the consumer.
    Mapping "mapping" "mapping";
    /// A `ur_physical_mem_handle_t` or `ze_physical_mem_handle_t`.
    PhysicalMem "physical-mem" "physical memory";
    /// Handle data of physical memory, identified by its address in the producer.
    PhysicalMemHandle "physical-mem-handle" "physical memory handle";
    /// A `ur_event_handle_t` or `ze_event_handle_t`.
    Event "event" "event";
    /// Handle data of an event, identified by its address in the producer; in Level Zero, by its bytes.
    EventHandle "event-handle" "event handle";
    /// A `ur_usm_pool_handle_t`.
    Pool "pool" "USM pool";
    /// A `ze_event_pool_handle_t`.
    EventPool "event-pool" "event pool";
    /// An IPC handle of an event pool, identified by its descriptor in the producer.
    EventPoolHandle "event-pool-handle" "event pool handle";
    /// A `ur_queue_handle_t`, or what commands go to in Level Zero.
    Queue "queue" "queue";
    /// A `CUmodule` or `CUlibrary`: code with kernels.
    Module "module" "module";
}

impl Kind {
    /// The kind of object that handle data of this kind share; `None` for other kinds.
    #[inline]
    pub const fn shares(self) -> Option<Self> {
        match self {
            Self::MemHandle => Some(Self::Usm),
            Self::PhysicalMemHandle => Some(Self::PhysicalMem),
            Self::EventHandle => Some(Self::Event),
            Self::EventPoolHandle => Some(Self::EventPool),
            _ => None,
        }
    }

    /// The kind of the handle data of such objects; `None` for kinds that are not shared.
    #[inline]
    pub const fn handle_data(self) -> Option<Self> {
        match self {
            Self::Usm => Some(Self::MemHandle),
            Self::PhysicalMem => Some(Self::PhysicalMemHandle),
            Self::Event => Some(Self::EventHandle),
            Self::EventPool => Some(Self::EventPoolHandle),
            _ => None,
        }
    }

    /// Whether objects of this kind have a handle and a reference count, and can be shared.
    pub const fn is_object(self) -> bool {
        matches!(self, Self::PhysicalMem | Self::Event | Self::EventPool)
    }
}

/// One object in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    /// The type of the object.
    pub kind: Kind,
    /// Its address or handle in its process.
    pub value: u64,
}

impl std::fmt::Display for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:#x}", self.kind.noun(), self.value)
    }
}

/// The type of USM (`ur_usm_type_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsmType {
    /// Memory of a device.
    Device,
    /// Memory of the host.
    Host,
    /// Memory that moves between host and device.
    Shared,
    /// Memory of a pool that is shared as a whole.
    Pool,
}

impl UsmType {
    /// As in `shared USM`.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Device => "device USM",
            Self::Host => "host USM",
            Self::Shared => "shared USM",
            Self::Pool => "memory of a pool",
        }
    }
}

/// A 64-bit fingerprint of handle data, by which a consumer's open is matched to a producer's get.
///
/// Little-endian words of eight bytes (the last one padded with zeros) are folded in by a 128-bit multiplication
/// whose halves are xored, seeded with the length. Equal bytes have equal fingerprints in every process and release
/// of format version 1. It is no protection against an adversary.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(KEY);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut state = fold(KEY, bytes.len() as u64 ^ 0x5bd1_e995);
    for word in words {
        state = fold(state.rotate_left(29), u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    fold(state.rotate_left(29), u64::from_le_bytes(last))
}

/// A second hash of handle data, by which [`changed_bytes`] tells how two pieces of handle data differ.
///
/// The little-endian words of eight bytes (the last one padded with zeros) are the coefficients of a polynomial, modulo
/// the prime 2^64 - 59: the first word has the highest power.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0, |sum, chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        reduced(u128::from(sum) * FACTOR + u128::from(u64::from_le_bytes(word)))
    })
}

/// The modulus of [`checksum`], its base, and the inverse of that.
const MODULUS: u64 = u64::MAX - 58;
const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u128 = 0x1b31_fd93_2dd6_dc65;

/// A number modulo [`MODULUS`].
const fn reduced(number: u128) -> u64 {
    // 2^64 is 59.
    let folded = (number >> 64) * 59 + (number as u64) as u128;
    let folded = (folded >> 64) * 59 + (folded as u64) as u128;
    (folded % MODULUS as u128) as u64
}

/// The bytes in which two pieces of handle data of a size differ, by their [`checksum`]s, if one word holds them all:
/// the fewest that explain it. For other data it is a made-up range: one of a single byte comes out by chance once in
/// 2^44 times, and one more byte makes that 2^8 times as likely.
pub fn changed_bytes(size: usize, one: u64, other: u64) -> Option<Range<usize>> {
    let mut change = reduced(u128::from(other) + u128::from(MODULUS - one % MODULUS));
    let words = (0..size.div_ceil(8)).rev().flat_map(|word| {
        // It has grown or shrunk.
        let by = [change, MODULUS - change];
        change = reduced(u128::from(change) * INVERSE);
        by.map(|by| {
            let first = by.trailing_zeros() as usize / 8;
            let end = 8 - by.leading_zeros() as usize / 8;
            word * 8 + first..word * 8 + end
        })
    });
    words.filter(|bytes| one != other && bytes.end <= size).min_by_key(Range::len)
}

/// The value that identifies a Level Zero IPC handle in its process: its descriptor, with bit 32 set, so that it is
/// neither 0 nor an address of memory (the lowest 64 KiB are never mapped, and no descriptor is that large).
pub const fn descriptor_data(descriptor: u32) -> u64 {
    1 << 32 | descriptor as u64
}

/// The descriptor in a value of [`descriptor_data`]; `None` for any other value.
pub const fn descriptor_in(data: u64) -> Option<u32> {
    if data >> 32 == 1 { Some(data as u32) } else { None }
}

/// The fingerprint of a Level Zero IPC handle that names a descriptor of another process, which has that number: of
/// these two, because that process may have closed its descriptor.
pub fn named_fingerprint(process: u64, descriptor: u32) -> u64 {
    file_fingerprint(process, u64::MAX << 32 | u64::from(descriptor))
}

/// The fingerprint of a Level Zero IPC handle: of the file that its descriptor refers to, which is the same in every
/// process.
pub fn file_fingerprint(device: u64, inode: u64) -> u64 {
    let mut bytes = *b"Level Zero: 0123456789abcdef";
    for (to, from) in bytes.iter_mut().skip(12).zip(device.to_le_bytes().into_iter().chain(inode.to_le_bytes())) {
        *to = from;
    }
    fingerprint(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_says_what_it_is() {
        let handle = Handle { kind: Kind::Mapping, value: 0x7f00 };
        assert_eq!(handle.to_string(), "mapping 0x7f00");
    }

    #[test]
    fn every_bit_and_the_length_count_in_a_fingerprint() {
        let mut seen = std::collections::HashSet::new();
        for len in [0, 1, 7, 8, 9, 64, 108, 120] {
            let mut bytes = vec![0; len];
            assert!(seen.insert(fingerprint(&bytes)), "length {len}");
            for bit in 0..len * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(fingerprint(&bytes)), "length {len}, bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn files_are_told_apart_by_device_and_inode() {
        let of = [file_fingerprint(1, 2), file_fingerprint(2, 1), file_fingerprint(1, 3), file_fingerprint(1 << 40, 2)];
        assert_eq!(std::collections::HashSet::from(of).len(), 4);
    }

    #[test]
    fn one_changed_byte_or_number_is_found_by_the_checksums() {
        assert_eq!(reduced(FACTOR * INVERSE), 1);
        let bytes: Vec<u8> = (0..120_u8).map(|byte| byte.wrapping_mul(37)).collect();
        for size in [16, 64, 108, 120] {
            let original = &bytes[..size];
            let changed = |at: usize, with: &[u8]| {
                let mut changed = original.to_vec();
                changed[at..at + with.len()].copy_from_slice(with);
                changed_bytes(size, checksum(original), checksum(&changed))
            };
            for (at, byte) in original.iter().enumerate() {
                for bit in 0..8 {
                    assert_eq!(changed(at, &[byte ^ 1 << bit]), Some(at..at + 1), "size {size}, byte {at}");
                }
            }
            assert_eq!(changed(0, &original[..1]), None);
            assert_eq!(changed(4, &[original[4] + 1, original[5] + 1]), Some(4..6));
            assert_ne!(changed(1, &[!original[1]; 14]).unwrap().len(), 1, "no single byte");
        }
    }

    #[test]
    fn fingerprints_of_format_version_1_never_change() {
        assert_eq!(fingerprint(&[]), 0x2dfd_3d89_d4b3_f4f3);
        assert_eq!(fingerprint(b"urscope"), 0x6ec9_9723_6004_fcae);
        assert_eq!(fingerprint(&[0xa5; 120]), 0xccf9_a0be_01bb_1f77);
    }
}
