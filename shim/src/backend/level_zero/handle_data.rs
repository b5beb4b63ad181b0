//! The bytes of our handle data: what a producer says of an object, sealed against damage.
//!
//! The data travel through the application and are written by whoever likes: [`HandleData::decode`] takes any bytes, and gives
//! back what was sealed or says why not. It must stay safe and total, and must never act on what it reads.

/// How long the data are. No adapter's have this length (16, 64, 108 and 120 bytes).
pub const SIZE: usize = 128;

/// How long a driver's handle is: `ZE_MAX_IPC_HANDLE_SIZE`.
pub const NATIVE_SIZE: usize = 64;

const MAGIC: [u8; 8] = *b"urscope\x1a";

/// The format that is written, and the only one that is read.
const VERSION: u16 = 1;

/// The checksum's offset: it covers all that is before it.
const CHECKED: usize = SIZE - 8;

/// What kind of object the data are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// A USM allocation.
    Memory = 1,
    /// Physical memory.
    PhysicalMem = 2,
    /// An event.
    Event = 3,
}

impl Kind {
    fn from_number(number: u16) -> Option<Self> {
        [Self::Memory, Self::PhysicalMem, Self::Event].into_iter().find(|kind| *kind as u16 == number)
    }
}

/// What the data say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleData {
    /// The kind of the object.
    pub kind: Kind,
    /// The producer.
    pub pid: u32,
    /// When the producer started, in the kernel's ticks since boot: a pid may be given out again.
    pub started: u64,
    /// The number of this get in its producer: no two gets give the same data.
    pub serial: u64,
    /// The size of the whole object in bytes; 0 for an event.
    pub size: u64,
    /// Where in the object the application's pointer lies.
    pub offset: u64,
    /// The producer's descriptor of the object, or -1.
    pub descriptor: i32,
    /// The driver's own handle, or zeros.
    pub native: [u8; NATIVE_SIZE],
}

/// Why data are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They are of another make: they have another beginning.
    NotOurs,
    /// They are of a version of the format that this urscope does not know.
    Version,
    /// They begin as ours do, and are damaged, cut short or too long.
    Damaged,
}

impl HandleData {
    /// The data for this object.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            if let Some((to, behind)) = std::mem::take(&mut rest).split_at_mut_checked(field.len()) {
                to.copy_from_slice(field);
                rest = behind;
            }
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&(self.kind as u16).to_le_bytes());
        put(&self.pid.to_le_bytes());
        put(&self.started.to_le_bytes());
        put(&self.serial.to_le_bytes());
        put(&self.size.to_le_bytes());
        put(&self.offset.to_le_bytes());
        put(&self.descriptor.to_le_bytes());
        put(&[0; 4]);
        put(&self.native);
        let checksum = checksum(&bytes);
        if let Some(place) = bytes.last_chunk_mut::<8>() {
            *place = checksum.to_le_bytes();
        }
        bytes
    }

    /// What these bytes say, if [`Self::encode`] made them and nothing happened to them since.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Refusal::NotOurs);
        }
        let bytes: &[u8; SIZE] = bytes.try_into().map_err(|_| Refusal::Damaged)?;
        let mut fields = Fields(bytes);
        let _: Option<[u8; MAGIC.len()]> = fields.take();
        if bytes.last_chunk::<8>().map(|sum| u64::from_le_bytes(*sum)) != Some(checksum(bytes)) {
            return Err(Refusal::Damaged);
        }
        if fields.take().map(u16::from_le_bytes) != Some(VERSION) {
            return Err(Refusal::Version);
        }
        fields.object().filter(Self::is_plausible).ok_or(Refusal::Damaged)
    }

    /// Whether a producer could have said this: a checksum proves no good will.
    fn is_plausible(&self) -> bool {
        let pid = i32::try_from(self.pid).is_ok_and(|pid| pid > 0);
        let place = match self.kind {
            Kind::Memory | Kind::PhysicalMem => self.offset < self.size && self.descriptor >= 0,
            Kind::Event => self.size == 0 && self.offset == 0,
        };
        pid && place
    }
}

/// Bytes, read from the beginning.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    /// All that stands between version and checksum.
    fn object(&mut self) -> Option<HandleData> {
        let kind = Kind::from_number(u16::from_le_bytes(self.take()?))?;
        let pid = u32::from_le_bytes(self.take()?);
        let [started, serial, size, offset] =
            [self.take()?, self.take()?, self.take()?, self.take()?].map(u64::from_le_bytes);
        let descriptor = i32::from_le_bytes(self.take()?);
        if self.take()? != [0; 4] {
            return None;
        }
        Some(HandleData { kind, pid, started, serial, size, offset, descriptor, native: self.take()? })
    }
}

/// FNV-1a of what is covered. Each step is a bijection of the state, so one changed byte always shows.
fn checksum(bytes: &[u8; SIZE]) -> u64 {
    let covered = bytes.first_chunk::<CHECKED>().map_or(&[][..], |covered| covered);
    covered
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of bytes that is the same in every run.
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

        fn sealed(&mut self) -> HandleData {
            let kind = [Kind::Memory, Kind::PhysicalMem, Kind::Event][(self.next() % 3) as usize];
            let size = if kind == Kind::Event { 0 } else { 1 + self.next() / 2 };
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
    fn what_was_sealed_is_what_is_opened() {
        let mut random = Random(1);
        for _ in 0..100_000 {
            let sealed = random.sealed();
            assert_eq!(HandleData::decode(&sealed.encode()), Ok(sealed));
        }
    }

    #[test]
    fn any_damaged_bit_and_any_other_length_is_refused() {
        let mut random = Random(2);
        for _ in 0..200 {
            let whole = random.sealed().encode();
            for bit in 0..SIZE * 8 {
                let mut bytes = whole;
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(HandleData::decode(&bytes).is_err(), "bit {bit}");
            }
            // Of any length, also that of an adapter's: what begins as ours is never taken for another's.
            for length in 0..SIZE {
                let refusal = if length < MAGIC.len() { Refusal::NotOurs } else { Refusal::Damaged };
                assert_eq!(HandleData::decode(&whole[..length]), Err(refusal));
            }
            assert_eq!(HandleData::decode(&[&whole[..], &[0]].concat()), Err(Refusal::Damaged));
        }
    }

    #[test]
    fn any_damaged_byte_is_refused() {
        let mut random = Random(3);
        for _ in 0..1_000_000 {
            let mut bytes = random.sealed().encode();
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
            // Also where the bytes begin as ours do.
            bytes[..8].copy_from_slice(&MAGIC);
            assert!(HandleData::decode(&bytes[..SIZE]).is_err());
        }
    }

    /// A hostile producer can compute the checksum: what it says must still make sense.
    #[test]
    fn a_right_checksum_makes_no_sense_of_nonsense() {
        let good = Random(5).sealed();
        let memory = HandleData { kind: Kind::Memory, size: 4096, offset: 0, ..good };
        assert!(HandleData::decode(&memory.encode()).is_ok());
        for bad in [
            HandleData { offset: 4096, ..memory },
            HandleData { offset: u64::MAX, ..memory },
            HandleData { size: 0, ..memory },
            HandleData { pid: 0, ..memory },
            HandleData { pid: u32::MAX, ..memory },
            HandleData { descriptor: -1, ..memory },
            HandleData { kind: Kind::Event, ..memory },
        ] {
            assert_eq!(HandleData::decode(&bad.encode()), Err(Refusal::Damaged), "{bad:?}");
        }
    }

    #[test]
    fn another_version_is_refused_as_one() {
        let mut bytes = Random(6).sealed().encode();
        bytes[8] += 1;
        let sum = checksum(&bytes).to_le_bytes();
        bytes[CHECKED..].copy_from_slice(&sum);
        assert_eq!(HandleData::decode(&bytes), Err(Refusal::Version));
    }
}
