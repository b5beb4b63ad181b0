//! Handles that were forged with a correct checksum: opening them is safe, affects no other process and leaks nothing.
//!
//! `scripts/fuzz` does the same for any length of time.

use crate::api::*;
use crate::peer::{Peer, Pipe};

type Bytes = [u8; 64];

/// Offsets of the fields: descriptor, offset, pid, types, the producer's descriptor, inode, record, identity, device,
/// start, purpose, size.
const FIELDS: [usize; 13] = [0, 8, 16, 20, 22, 30, 38, 40, 45, 46, 51, 52, CHECKSUM];

/// Where the checksum is. It covers all other bytes but those of the descriptor.
const CHECKSUM: usize = 58;

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// A handle with up to three fields changed, and a correct checksum.
    fn forge(&mut self, mut handle: Bytes) -> Bytes {
        for _ in 0..=self.below(3) {
            let field = self.below(FIELDS.len() - 1);
            let place = &mut handle[FIELDS[field]..FIELDS[field + 1]];
            match self.below(4) {
                0 => place.fill(0xff),
                1 => place[0] = place[0].wrapping_add(1),
                2 => place.fill_with(|| self.below(256) as u8),
                _ => place[self.below(place.len())] ^= 1 << self.below(8),
            }
        }
        set_checksum(&mut handle);
        handle
    }
}

fn set_checksum(handle: &mut Bytes) {
    let covered = handle[8..CHECKSUM].iter().chain(&handle[CHECKSUM + 4..]);
    let sum = covered.fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    handle[CHECKSUM..CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Handles of memory that shares its file, of memory that does not, of an event and of a pool.
fn produce(setup: Setup) -> [Bytes; 4] {
    let desc = EventPoolDesc { flags: 0b11, count: 4, ..zeroed() };
    let pool = make(|pool| zeEventPoolCreate(setup.context, &raw const desc, 0, null(), pool));
    let (mut of_event, mut of_pool): (IpcHandle, IpcHandle) = (zeroed(), zeroed());
    ok(zeEventCounterBasedGetIpcHandle(setup.shared_event(), &raw mut of_event));
    ok(zeEventPoolGetIpcHandle(pool, &raw mut of_pool));
    let [small, large] = [5000, 1 << 27].map(|size| {
        let handle: IpcHandle = value(|out| zeMemGetIpcHandle(setup.context, setup.device_memory(size), out));
        handle.data
    });
    [small, large, of_event.data, of_pool.data]
}

/// Opens bytes as each type of handle, closes what was opened, and returns how many opens succeeded.
fn try_all(setup: Setup, data: Bytes) -> usize {
    let mut opened = 0;
    let mut out = null_mut();
    if zeMemOpenIpcHandle(setup.context, setup.device, IpcHandle { data }, 0, &raw mut out) == SUCCESS {
        assert_eq!(bytes(out, 1)[0], 0, "memory of another process");
        ok(zeMemCloseIpcHandle(setup.context, out));
        opened += 1;
    }
    if zeEventCounterBasedOpenIpcHandle(setup.context, IpcHandle { data }, &raw mut out) == SUCCESS {
        assert!([SUCCESS, NOT_READY].contains(&zeEventQueryStatus(out)));
        ok(zeEventCounterBasedCloseIpcHandle(out));
        opened += 1;
    }
    if zeEventPoolOpenIpcHandle(setup.context, IpcHandle { data }, &raw mut out) == SUCCESS {
        ok(zeEventPoolCloseIpcHandle(out));
        opened += 1;
    }
    opened
}

#[test]
fn forged_handles_affect_neither_process() {
    match role().as_deref() {
        Some("producer") => {
            let setup = Setup::new();
            let pipe = Pipe::open();
            share_files(setup);
            for handle in produce(setup) {
                pipe.send(&handle);
            }
            pipe.receive::<1>();
            // The handles of the producer still open in the producer.
            pipe.send(&[produce(setup).map(|handle| try_all(setup, handle)).iter().sum::<usize>() as u8]);
        }
        Some(_) => {
            let setup = Setup::new();
            let mut producer = Peer::start(this_test!(), "producer");
            share_files(setup);
            let theirs: [Bytes; 4] = std::array::from_fn(|_| producer.receive());
            let handles = [theirs, produce(setup)].concat();
            for handle in &handles {
                let mut same = *handle;
                set_checksum(&mut same);
                assert_eq!((same, try_all(setup, same)), (*handle, 1));
            }
            let counts = || (open_descriptors(), mappings());
            let before = counts();
            let mut random = Random(1);
            for round in 0..50_000 {
                let forged = random.forge(handles[round % handles.len()]);
                assert!(try_all(setup, forged) <= 1);
            }
            assert_eq!(counts(), before);
            assert_eq!(theirs.map(|handle| try_all(setup, handle)), [1; 4]);
            producer.send(b"?");
            assert_eq!(producer.receive(), [4]);
            producer.end();
        }
        None => drop(run_child(child(this_test!(), "consumer", &[]))),
    }
}
