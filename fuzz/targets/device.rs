//! The handles of the software device: opening any altered handle is safe and leaves nothing behind.
//!
//! The handles are those of a real producer, a second process of this program, and of this one. An input selects one
//! and the bytes to change; a hostile producer also corrects the checksum. Neither process may be harmed: every few
//! thousand inputs the producer is checked, and descriptors and mappings are counted.

#![no_main]

use std::io::{Read, Write, stdin, stdout};
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};
use std::{cell::RefCell, env, ffi::c_void, fs};

use libfuzzer_sys::fuzz_target;
use urscope_device::ddi;
use urscope_device::layout::{DeviceMemAllocDesc, EventCounterBasedDesc, EventPoolDesc, IpcHandle};

type Handle = *mut c_void;
type Bytes = [u8; 64];

/// Set in the environment of the producer.
const ROLE: &str = "URSCOPE_FUZZ_PRODUCER";
/// After how many inputs descriptors and mappings are counted.
const ROUND: u64 = 4096;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[allow(non_snake_case, reason = "the names of the C API")]
        fn $name($($argument: $type),*) -> u32 {
            let address = ddi::lookup(stringify!($name)).expect(stringify!($name));
            // SAFETY: the signature is that of ze_api.h, which the device implements.
            let function = unsafe { std::mem::transmute::<*const (), extern "C" fn($($type),*) -> u32>(address) };
            function($($argument),*)
        })*
    };
}

functions! {
    zeInit(flags: u32);
    zeDriverGet(count: *mut u32, drivers: *mut Handle);
    zeDeviceGet(driver: Handle, count: *mut u32, devices: *mut Handle);
    zeContextCreate(driver: Handle, desc: *const [usize; 3], context: *mut Handle);
    zeMemAllocDevice(context: Handle, desc: *const DeviceMemAllocDesc, size: usize, alignment: usize, device: Handle, out: *mut Handle);
    zeMemGetIpcHandle(context: Handle, pointer: Handle, handle: *mut IpcHandle);
    zeMemOpenIpcHandle(context: Handle, device: Handle, handle: IpcHandle, flags: u32, out: *mut Handle);
    zeMemPutIpcHandle(context: Handle, handle: IpcHandle);
    zeMemCloseIpcHandle(context: Handle, pointer: Handle);
    zeEventCounterBasedCreate(context: Handle, device: Handle, desc: *const EventCounterBasedDesc, event: *mut Handle);
    zeEventCounterBasedGetIpcHandle(event: Handle, handle: *mut IpcHandle);
    zeEventCounterBasedOpenIpcHandle(context: Handle, handle: IpcHandle, event: *mut Handle);
    zeEventCounterBasedCloseIpcHandle(event: Handle);
    zeEventQueryStatus(event: Handle);
    zeEventPoolCreate(context: Handle, desc: *const EventPoolDesc, count: u32, devices: *const Handle, pool: *mut Handle);
    zeEventPoolGetIpcHandle(pool: Handle, handle: *mut IpcHandle);
    zeEventPoolPutIpcHandle(context: Handle, handle: IpcHandle);
    zeEventPoolOpenIpcHandle(context: Handle, handle: IpcHandle, pool: *mut Handle);
    zeEventPoolCloseIpcHandle(pool: Handle);
}

/// The handle that a call returns through its out-parameter.
fn made(make: impl FnOnce(*mut Handle) -> u32) -> Handle {
    let mut handle = null_mut();
    assert_eq!(make(&raw mut handle), 0);
    handle
}

/// All zeroes: a valid value of every layout structure.
fn zeroed<T>() -> T {
    // SAFETY: only used for the layout structures, which are integers, arrays of them and pointers.
    unsafe { std::mem::zeroed() }
}

#[derive(Clone, Copy)]
struct Software {
    context: Handle,
    device: Handle,
}

impl Software {
    fn new() -> Self {
        assert_eq!(zeInit(0), 0);
        let mut count = 1;
        let driver = made(|out| zeDriverGet(&raw mut count, out));
        let device = made(|out| zeDeviceGet(driver, &raw mut count, out));
        let context = made(|out| zeContextCreate(driver, &raw const *Box::leak(Box::new([0xd, 0, 0])), out));
        Self { context, device }
    }

    fn memory(self, size: usize) -> Bytes {
        let desc: DeviceMemAllocDesc = zeroed();
        let memory = made(|out| zeMemAllocDevice(self.context, &raw const desc, size, 0, self.device, out));
        let mut handle: IpcHandle = zeroed();
        assert_eq!(zeMemGetIpcHandle(self.context, memory, &raw mut handle), 0);
        handle.data
    }

    /// A handle of each kind. The objects live as long as the process.
    fn produce(self) -> [Bytes; 4] {
        let desc = EventCounterBasedDesc { flags: 0xf, ..zeroed() };
        let event = made(|out| zeEventCounterBasedCreate(self.context, self.device, &raw const desc, out));
        let desc = EventPoolDesc { flags: 0b11, count: 100, ..zeroed() };
        let pool = made(|out| zeEventPoolCreate(self.context, &raw const desc, 0, null(), out));
        let (mut of_event, mut of_pool): (IpcHandle, IpcHandle) = (zeroed(), zeroed());
        assert_eq!(zeEventCounterBasedGetIpcHandle(event, &raw mut of_event), 0);
        assert_eq!(zeEventPoolGetIpcHandle(pool, &raw mut of_pool), 0);
        // In a file with other memory, which small allocations share when half of the descriptors are used, and in a
        // file of its own.
        let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
        // SAFETY: setrlimit reads the structure that it is given.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
        for _ in 0..32 {
            self.memory(1);
        }
        [self.memory(5000), self.memory(128 << 20), of_event.data, of_pool.data]
    }

    /// Opens the bytes as a handle of each kind, and closes what opened. Returns how many kinds opened.
    fn try_all(self, data: Bytes) -> usize {
        let mut opened = 0;
        let mut out = null_mut();
        if zeMemOpenIpcHandle(self.context, self.device, IpcHandle { data }, 0, &raw mut out) == 0 {
            // SAFETY: the call succeeded, so memory of at least one byte is mapped there.
            let first = unsafe { out.cast::<u8>().read_volatile() };
            assert_eq!(first, 0, "neither process has ever written to its memory");
            assert_eq!(zeMemCloseIpcHandle(self.context, out), 0);
            opened += 1;
        }
        if zeEventCounterBasedOpenIpcHandle(self.context, IpcHandle { data }, &raw mut out) == 0 {
            assert!(zeEventQueryStatus(out) <= 1);
            assert_eq!(zeEventCounterBasedCloseIpcHandle(out), 0);
            opened += 1;
        }
        if zeEventPoolOpenIpcHandle(self.context, IpcHandle { data }, &raw mut out) == 0 {
            assert_eq!(zeEventPoolCloseIpcHandle(out), 0);
            opened += 1;
        }
        opened
    }
}

/// Corrects the checksum of a handle.
fn correct_checksum(data: &mut Bytes) {
    let covered = data[8..58].iter().chain(&data[62..]);
    let sum = covered.fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    data[58..62].copy_from_slice(&sum.to_le_bytes());
}

struct Bench {
    software: Software,
    handles: Vec<Bytes>,
    producer: Child,
    inputs: u64,
    before: [usize; 2],
}

impl Bench {
    fn new() -> Self {
        let software = Software::new();
        let me = env::current_exe().expect("this program has a path");
        let mut producer = Command::new(me)
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let mut foreign = [[0; 64]; 4];
        let from = producer.stdout.as_mut().expect("its output is a pipe");
        from.read_exact(foreign.as_flattened_mut()).expect("the producer sends its handles");
        let handles = [foreign, software.produce()].concat();
        for handle in &handles {
            let mut corrected = *handle;
            correct_checksum(&mut corrected);
            assert_eq!((corrected, software.try_all(corrected)), (*handle, 1), "the checksum is that of the device");
        }
        Self { software, handles, producer, inputs: 0, before: counts() }
    }

    fn open(&mut self, data: &[u8]) {
        let Some(([which, how], rest)) = data.split_first_chunk() else { return };
        let mut handle = self.handles[usize::from(*which) % self.handles.len()];
        if how & 2 != 0 {
            handle = [0; 64];
            handle.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        } else {
            for change in rest.chunks_exact(2) {
                handle[usize::from(change[0]) % 64] ^= change[1];
            }
        }
        if how & 1 != 0 {
            correct_checksum(&mut handle);
        }
        self.software.try_all(handle);
        if how & 4 != 0 {
            // Puts of what may be handles of this process: handles of the producer must still open.
            assert_eq!(zeMemPutIpcHandle(self.software.context, IpcHandle { data: handle }), 0);
            assert_eq!(zeEventPoolPutIpcHandle(self.software.context, IpcHandle { data: handle }), 0);
        }
        self.inputs += 1;
        if self.inputs.is_multiple_of(ROUND) {
            self.check();
        }
    }

    /// Checks that both processes are unharmed.
    fn check(&mut self) {
        assert_eq!(counts(), self.before, "descriptors and mappings");
        assert!(self.producer.try_wait().is_ok_and(|ended| ended.is_none()), "the producer died");
        for handle in &self.handles[..4] {
            assert_eq!(self.software.try_all(*handle), 1, "the producer's handles do not open any more");
        }
    }
}

/// How many descriptors this process has open, and how many ranges of the device's memory mapped.
fn counts() -> [usize; 2] {
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    [descriptors, fs::read_to_string("/proc/self/maps").unwrap_or_default().matches("ze_soft").count()]
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

fuzz_target!(
    init: {
        if env::var_os(ROLE).is_some() {
            let handles = Software::new().produce();
            stdout().write_all(handles.as_flattened()).and_then(|()| stdout().flush()).expect("the consumer reads");
            // Until the other end is closed: this process lives as long as its consumer.
            let _ = stdin().read(&mut [0]);
            std::process::exit(0);
        }
    },
    |data: &[u8]| BENCH.with_borrow_mut(|bench| bench.open(data))
);
