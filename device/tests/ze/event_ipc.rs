//! Events shared between processes: counter-based ones by themselves, others by their pool; either side signals.

use std::ffi::c_void;
use std::io::Read;
use std::ptr::{null, null_mut};
use std::thread;
use std::time::Duration;

use crate::api::layout::event::*;
use crate::api::*;
use crate::peer::{Peer, Pipe};

fn get(event: Handle) -> IpcEventCounterBasedHandle {
    let mut handle: IpcEventCounterBasedHandle = zeroed();
    ok(zeEventCounterBasedGetIpcHandle(event, &raw mut handle));
    handle
}

fn open(stage: Stage, handle: IpcEventCounterBasedHandle) -> Handle {
    made(|event| zeEventCounterBasedOpenIpcHandle(stage.context, handle, event))
}

/// The code of an open that must fail, and leave its result alone.
fn refused(stage: Stage, data: [u8; 64]) -> u32 {
    let mut event = null_mut();
    let result = zeEventCounterBasedOpenIpcHandle(stage.context, IpcEventCounterBasedHandle { data }, &raw mut event);
    assert!(event.is_null());
    result
}

fn pool(stage: Stage, flags: u32, count: u32) -> Handle {
    let desc = EventPoolDesc { flags, count, ..zeroed() };
    made(|pool| zeEventPoolCreate(stage.context, &raw const desc, 0, null(), pool))
}

fn event_of(pool: Handle, index: u32) -> Handle {
    let desc = EventDesc { index, ..zeroed() };
    made(|event| zeEventCreate(pool, &raw const desc, event))
}

fn get_pool(pool: Handle) -> IpcEventPoolHandle {
    let mut handle: IpcEventPoolHandle = zeroed();
    ok(zeEventPoolGetIpcHandle(pool, &raw mut handle));
    handle
}

fn soon() -> u64 {
    nanoseconds(Duration::from_millis(5))
}

/// One side of a conversation about one event: does what a letter says, and answers a result code.
struct Side {
    stage: Stage,
    list: Handle,
    /// Holds up the list until it is let go.
    gate: Handle,
    pool: Handle,
    event: Handle,
}

impl Side {
    fn new() -> Self {
        let stage = Stage::new();
        let [gate] = stage.events();
        Self { stage, list: stage.immediate_list(2), gate, pool: null_mut(), event: null_mut() }
    }

    fn act(&self, letter: u8) -> u32 {
        let event = &raw const self.event;
        match letter {
            // Signals at once, or as soon as the gate opens.
            b's' => zeCommandListAppendSignalEvent(self.list, self.event),
            b'g' => {
                ok(zeEventHostReset(self.gate));
                ok(zeCommandListAppendWaitOnEvents(self.list, 1, &raw const self.gate));
                zeCommandListAppendBarrier(self.list, self.event, 0, null())
            }
            b'o' => zeEventHostSignal(self.gate),
            b'h' => zeEventHostSignal(self.event),
            b'r' => zeEventHostReset(self.event),
            // Waits: on the host, for a while, in a list, and for the list.
            b'w' => zeEventHostSynchronize(self.event, FOREVER),
            b't' => zeEventHostSynchronize(self.event, soon()),
            b'q' => zeEventQueryStatus(self.event),
            b'd' => zeCommandListAppendWaitOnEvents(self.list, 1, event),
            b'l' => zeCommandListHostSynchronize(self.list, FOREVER),
            b'L' => zeCommandListHostSynchronize(self.list, soon()),
            b'c' => zeEventCounterBasedCloseIpcHandle(self.event),
            b'x' => zeEventDestroy(self.event),
            b'X' => zeEventDestroy(self.event).max(zeEventPoolCloseIpcHandle(self.pool)),
            _ => unreachable!("{letter}"),
        }
    }
}

/// Plays the other side, with an event (`e`) or the second event of a pool (`p`) that it opens.
fn converse() {
    let (mut side, pipe) = (Side::new(), Pipe::open());
    match pipe.receive() {
        [b'e'] => side.event = open(side.stage, IpcEventCounterBasedHandle { data: pipe.receive() }),
        [b'p'] => {
            let handle = IpcEventPoolHandle { data: pipe.receive() };
            side.pool = made(|pool| zeEventPoolOpenIpcHandle(side.stage.context, handle, pool));
            side.event = event_of(side.pool, 1);
        }
        // Makes an event of its own and hands it out.
        _ => {
            side.event = side.stage.shared_event();
            pipe.send(&get(side.event).data);
        }
    }
    let mut letter = [0];
    while pipe.from.lock().read(&mut letter).unwrap() == 1 {
        pipe.send(&side.act(letter[0]).to_ne_bytes());
    }
}

impl Peer {
    fn converse(name: &str, opening: u8, handle: &[u8]) -> Self {
        let mut peer = Self::start(name, "other");
        peer.send(&[opening]);
        peer.send(handle);
        peer
    }

    fn answers(&mut self, letter: u8) -> u32 {
        self.send(&[letter]);
        u32::from_ne_bytes(self.receive())
    }

    fn does(&mut self, letters: &str) {
        for letter in letters.bytes() {
            assert_eq!(self.answers(letter), SUCCESS, "{}", char::from(letter));
        }
    }
}

#[test]
fn an_event_is_signalled_and_waited_for_on_either_side() {
    const NAME: &str = "event_ipc::an_event_is_signalled_and_waited_for_on_either_side";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    side.event = side.stage.shared_event();
    // Signalled before it is shared: complete on the other side.
    ok(side.act(b's'));
    ok(side.act(b'w'));
    let mut peer = Peer::converse(NAME, b'e', &get(side.event).data);
    peer.does("qw");
    for _ in 0..3 {
        // Here signals, there waits: not yet, then on the host and in a list.
        ok(side.act(b'g'));
        assert_eq!([peer.answers(b'q'), peer.answers(b't')], [NOT_READY; 2]);
        peer.does("d");
        assert_eq!(peer.answers(b'L'), NOT_READY);
        ok(side.act(b'o'));
        peer.does("wlq");
        // There signals, here waits.
        peer.does("g");
        assert_eq!([side.act(b'q'), side.act(b't')], [NOT_READY; 2]);
        ok(side.act(b'd'));
        assert_eq!(side.act(b'L'), NOT_READY);
        peer.does("o");
        assert_eq!([side.act(b'w'), side.act(b'l'), side.act(b'q')], [SUCCESS; 3]);
    }
    peer.does("c");
    peer.end();
    ok(zeEventDestroy(side.event));
}

#[test]
fn a_waiter_asleep_in_one_process_is_woken_by_the_other() {
    const NAME: &str = "event_ipc::a_waiter_asleep_in_one_process_is_woken_by_the_other";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    side.event = side.stage.shared_event();
    let mut peer = Peer::converse(NAME, b'e', &get(side.event).data);
    for _ in 0..100 {
        peer.does("g");
        let event = side.event as usize;
        let waiter = thread::spawn(move || zeEventHostSynchronize(event as Handle, FOREVER));
        ok(side.act(b'd'));
        peer.does("o");
        ok(waiter.join().unwrap());
        ok(side.act(b'l'));
    }
    peer.end();
    ok(zeEventDestroy(side.event));
}

#[test]
fn a_wait_is_for_what_was_signalled_last_when_it_began() {
    const NAME: &str = "event_ipc::a_wait_is_for_what_was_signalled_last_when_it_began";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    side.event = side.stage.shared_event();
    let mut peer = Peer::converse(NAME, b'e', &get(side.event).data);
    // The first signal is done, a second one is appended there: a wait here is for the second.
    ok(side.act(b's'));
    ok(side.act(b'w'));
    let (done, waiting) = (Side::new(), side.event);
    ok(zeCommandListAppendWaitOnEvents(done.list, 1, &raw const waiting));
    ok(done.act(b'l'));
    peer.does("g");
    ok(side.act(b'd'));
    assert_eq!([side.act(b'L'), side.act(b't')], [NOT_READY; 2]);
    // A wait that began before the third signal does not wait for it.
    peer.does("o");
    ok(side.act(b'l'));
    peer.does("g");
    ok(side.act(b'L'));
    assert_eq!(side.act(b'q'), NOT_READY);
    peer.does("ow");
    ok(side.act(b'q'));
    peer.end();
    ok(zeEventDestroy(side.event));
}

#[test]
fn who_opened_an_event_needs_its_maker_no_more() {
    const NAME: &str = "event_ipc::who_opened_an_event_needs_its_maker_no_more";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    // Destroyed there while it is open here.
    let mut peer = Peer::converse(NAME, b'm', &[]);
    let data = peer.receive();
    side.event = open(side.stage, IpcEventCounterBasedHandle { data });
    peer.does("x");
    assert_eq!(refused(side.stage, data), OUT_OF_DEVICE_MEMORY);
    assert_eq!([side.act(b'g'), side.act(b'o'), side.act(b'w'), side.act(b'c')], [SUCCESS; 4]);
    peer.end();
    // Killed with a signal under way, which never comes: waits say so in time, and nothing hangs.
    let mut peer = Peer::converse(NAME, b'm', &[]);
    let data = peer.receive();
    side.event = open(side.stage, IpcEventCounterBasedHandle { data });
    peer.does("g");
    let waiting = Side::new();
    ok(zeCommandListAppendWaitOnEvents(waiting.list, 1, &raw const side.event));
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    assert_eq!([side.act(b't'), side.act(b'q'), waiting.act(b'L')], [NOT_READY; 3]);
    ok(zeCommandListDestroy(waiting.list));
    assert_eq!(refused(side.stage, data), OUT_OF_DEVICE_MEMORY);
    // It can still be signalled anew.
    assert_eq!([side.act(b's'), side.act(b'w'), side.act(b'c')], [SUCCESS; 3]);
}

#[test]
fn a_process_ends_while_a_list_waits_for_what_never_comes() {
    const NAME: &str = "event_ipc::a_process_ends_while_a_list_waits_for_what_never_comes";
    match role().as_deref() {
        Some("other") => converse(),
        Some(_) => {
            let stage = Stage::new();
            let mut peer = Peer::converse(NAME, b'm', &[]);
            let event = open(stage, IpcEventCounterBasedHandle { data: peer.receive() });
            peer.does("g");
            peer.process.kill().unwrap();
            peer.process.wait().unwrap();
            let list = stage.immediate_list(2);
            ok(zeCommandListAppendWaitOnEvents(list, 1, &raw const event));
            ok(zeEventCounterBasedCloseIpcHandle(event));
            ok(zeCommandListDestroy(list));
            ok(zeContextDestroy(stage.context));
        }
        None => drop(run(actor(NAME, "waiter", &[]))),
    }
}

#[test]
fn an_event_can_be_opened_in_its_own_process_and_many_times() {
    let stage = Stage::new();
    let list = stage.immediate_list(2);
    let event = stage.shared_event();
    let (first, second) = (open(stage, get(event)), open(stage, get(event)));
    assert!(first != second && first != event);
    let [gate] = stage.events();
    for signalled in [event, first, second] {
        ok(zeEventHostReset(gate));
        ok(zeCommandListAppendBarrier(list, signalled, 1, &raw const gate));
        assert_eq!([event, first, second].map(zeEventQueryStatus), [NOT_READY; 3]);
        ok(zeEventHostSignal(gate));
        assert_eq!([event, first, second].map(|event| zeEventHostSynchronize(event, FOREVER)), [SUCCESS; 3]);
    }
    ok(zeEventCounterBasedCloseIpcHandle(first));
    assert_eq!(zeEventCounterBasedCloseIpcHandle(first), INVALID_ARGUMENT);
    ok(zeEventDestroy(event));
    ok(zeCommandListAppendSignalEvent(list, second));
    ok(zeEventHostSynchronize(second, FOREVER));
    ok(zeEventDestroy(second));
    ok(zeCommandListDestroy(list));
}

#[test]
fn only_what_was_made_for_it_is_shared_and_closed() {
    let stage = Stage::new();
    let [flag] = stage.events();
    let (plain, shared) = (stage.counter_event(), stage.shared_event());
    let opened = open(stage, get(shared));
    let mut handle: IpcEventCounterBasedHandle = zeroed();
    for event in [flag, plain, opened] {
        assert_eq!(zeEventCounterBasedGetIpcHandle(event, &raw mut handle), INVALID_ARGUMENT);
    }
    assert_eq!(handle.data, [0; 64]);
    assert_eq!(zeEventCounterBasedGetIpcHandle(null_mut(), &raw mut handle), INVALID_NULL_HANDLE);
    assert_eq!(zeEventCounterBasedGetIpcHandle(shared, null_mut()), INVALID_NULL_POINTER);
    for event in [flag, plain, shared] {
        assert_eq!(zeEventCounterBasedCloseIpcHandle(event), INVALID_ARGUMENT);
        assert_ne!(zeEventQueryStatus(event), INVALID_ARGUMENT);
    }
    assert_eq!([zeEventHostSignal(opened), zeEventHostReset(opened)], [INVALID_ARGUMENT; 2]);
    let mut result: KernelTimestampResult = zeroed();
    assert_eq!(zeEventQueryKernelTimestamp(opened, &raw mut result), NOT_READY);
    // Timestamps and sharing exclude one another.
    for flags in [0x1f, 0x2f, 0x3f] {
        let (desc, mut out) = (EventCounterBasedDesc { flags, ..zeroed() }, null_mut());
        let made = zeEventCounterBasedCreate(stage.context, stage.device, &raw const desc, &raw mut out);
        assert_eq!(made, INVALID_ARGUMENT);
    }
    let (mut flags, mut value, mut address) = (0, 0, 0);
    for (event, expected) in [(plain, 0x7), (shared, 0xf), (opened, 0xf)] {
        ok(zeEventGetCounterBasedFlags(event, &raw mut flags));
        assert_eq!(flags, expected);
    }
    assert_eq!(zeEventGetCounterBasedFlags(flag, &raw mut flags), INVALID_ARGUMENT);
    // Where the counter is, and what it comes to.
    let list = stage.immediate_list(1);
    ok(zeCommandListAppendSignalEvent(list, opened));
    ok(zeEventCounterBasedGetDeviceAddress(shared, &raw mut value, &raw mut address));
    assert_eq!((value, bytes(address as *const c_void, 8)[0]), (1, 1));
    assert_eq!(zeEventCounterBasedGetDeviceAddress(flag, &raw mut value, &raw mut address), INVALID_ARGUMENT);
    assert_eq!(zeEventCounterBasedGetDeviceAddress(plain, &raw mut value, &raw mut address), UNSUPPORTED_FEATURE);
}

#[test]
fn damaged_and_foreign_handles_are_refused_and_nothing_is_left_behind() {
    const NAME: &str = "event_ipc::damaged_and_foreign_handles_are_refused_and_nothing_is_left_behind";
    if role().is_none() {
        run(actor(NAME, "device", &[]));
        return;
    }
    let stage = Stage::new();
    let (event, pool) = (stage.shared_event(), pool(stage, 0b11, 4));
    let (handle, pool_handle) = (get(event), get_pool(pool));
    let memory = stage.device_memory(4096);
    let mut memory_handle: layout::memory::IpcMemHandle = zeroed();
    ok(zeMemGetIpcHandle(stage.context, memory, &raw mut memory_handle));
    let refused_pool = |data| {
        let mut out = null_mut();
        let result = zeEventPoolOpenIpcHandle(stage.context, IpcEventPoolHandle { data }, &raw mut out);
        assert!(out.is_null());
        result
    };
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let before = (open_descriptors(), maps());
    for byte in 0..64 {
        for change in [0x01, 0x80, 0xff] {
            let (mut one, mut two) = (handle.data, pool_handle.data);
            one[byte] ^= change;
            two[byte] ^= change;
            assert_eq!([refused(stage, one), refused_pool(two)], [INVALID_ARGUMENT; 2], "byte {byte}");
        }
    }
    for data in [[0; 64], [0x41; 64], [0xff; 64], memory_handle.data] {
        assert_eq!([refused(stage, data), refused_pool(data)], [INVALID_ARGUMENT; 2]);
    }
    // Each handle opens its own kind only.
    assert_eq!([refused(stage, pool_handle.data), refused_pool(handle.data)], [INVALID_ARGUMENT; 2]);
    let mut out = null_mut();
    for data in [handle.data, pool_handle.data] {
        let foreign = layout::memory::IpcMemHandle { data };
        let result = zeMemOpenIpcHandle(stage.context, stage.device, foreign, 0, &raw mut out);
        assert_eq!(result, INVALID_ARGUMENT);
        ok(zeMemPutIpcHandle(stage.context, foreign));
    }
    assert_eq!((open_descriptors(), maps()), before);
    ok(zeEventCounterBasedCloseIpcHandle(open(stage, handle)));
    ok(zeEventDestroy(event));
    assert_eq!(refused(stage, handle.data), OUT_OF_DEVICE_MEMORY);
    assert_eq!(zeEventCounterBasedOpenIpcHandle(stage.context, handle, null_mut()), INVALID_NULL_POINTER);
    assert_eq!(zeEventCounterBasedOpenIpcHandle(null_mut(), handle, &raw mut out), INVALID_NULL_HANDLE);
}

#[test]
fn a_maker_that_does_not_let_its_descriptors_be_fetched_is_a_clean_error() {
    const NAME: &str = "event_ipc::a_maker_that_does_not_let_its_descriptors_be_fetched_is_a_clean_error";
    match role().as_deref() {
        Some("other") => {
            // SAFETY: plain numbers. A process that is not dumpable may be traced by root only.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
            converse();
        }
        Some(_) => {
            let (stage, pipe) = (Stage::new(), Pipe::open());
            // SAFETY: plain numbers. Root gives up what would let it trace everybody; the runner's user stays as it is.
            unsafe { libc::setuid(65_534) };
            pipe.send(&refused(stage, pipe.receive()).to_ne_bytes());
        }
        None => {
            let mut maker = Peer::converse(NAME, b'm', &[]);
            let mut opener = Peer::start(NAME, "opener");
            opener.send(&maker.receive::<64>());
            assert_eq!(u32::from_ne_bytes(opener.receive()), OUT_OF_DEVICE_MEMORY);
            opener.end();
            maker.end();
        }
    }
}

#[test]
fn the_events_of_a_shared_pool_are_the_same_in_both_processes() {
    const NAME: &str = "event_ipc::the_events_of_a_shared_pool_are_the_same_in_both_processes";
    if role().is_some() {
        return converse();
    }
    let mut side = Side::new();
    let pool = pool(side.stage, 0b11, 200);
    side.event = event_of(pool, 1);
    let other = event_of(pool, 199);
    ok(side.act(b'h'));
    let handle = get_pool(pool);
    let mut peer = Peer::converse(NAME, b'p', &handle.data);
    // Opening takes nothing back, and the other side's reset does.
    peer.does("qr");
    assert_eq!([side.act(b'q'), peer.answers(b't')], [NOT_READY; 2]);
    for _ in 0..3 {
        let event = side.event as usize;
        let waiter = thread::spawn(move || zeEventHostSynchronize(event as Handle, FOREVER));
        ok(side.act(b'd'));
        assert_eq!(side.act(b'L'), NOT_READY);
        peer.does("h");
        ok(waiter.join().unwrap());
        ok(side.act(b'l'));
        peer.does("r");
        peer.does("d");
        assert_eq!(peer.answers(b'L'), NOT_READY);
        ok(side.act(b's'));
        peer.does("lw");
        ok(side.act(b'r'));
    }
    assert_eq!(zeEventQueryStatus(other), NOT_READY);
    // After the last put nobody opens it any more; who has it, has it.
    ok(zeEventPoolPutIpcHandle(side.stage.context, handle));
    let mut out = null_mut();
    let late = zeEventPoolOpenIpcHandle(side.stage.context, handle, &raw mut out);
    assert_eq!(late, OUT_OF_DEVICE_MEMORY);
    ok(zeEventPoolDestroy(pool));
    peer.does("hX");
    ok(side.act(b'q'));
    peer.end();
    ok(zeEventDestroy(side.event));
    ok(zeEventDestroy(other));
}

#[test]
fn a_pool_is_closed_by_who_opened_it_and_destroyed_by_who_made_it() {
    let stage = Stage::new();
    let (plain, shared) = (pool(stage, 0b1, 2), pool(stage, 0b111, 2));
    let mut handle: IpcEventPoolHandle = zeroed();
    assert_eq!(zeEventPoolGetIpcHandle(plain, &raw mut handle), INVALID_SYNCHRONIZATION_OBJECT);
    assert_eq!(zeEventPoolGetIpcHandle(shared, null_mut()), INVALID_NULL_POINTER);
    assert_eq!(zeEventPoolGetIpcHandle(null_mut(), &raw mut handle), INVALID_NULL_HANDLE);
    let opened = made(|out| zeEventPoolOpenIpcHandle(stage.context, get_pool(shared), out));
    let mut flags = 0;
    ok(zeEventPoolGetFlags(opened, &raw mut flags));
    assert_eq!(flags, 0b111);
    assert_eq!(zeEventPoolGetIpcHandle(opened, &raw mut handle), INVALID_ARGUMENT);
    assert_eq!(zeEventPoolDestroy(opened), INVALID_ARGUMENT);
    assert_eq!([zeEventPoolCloseIpcHandle(plain), zeEventPoolCloseIpcHandle(shared)], [INVALID_ARGUMENT; 2]);
    // Each pool seats its own events; the state is one, with its timestamps.
    let (one, two) = (event_of(shared, 0), event_of(opened, 0));
    let mut result: KernelTimestampResult = zeroed();
    assert_eq!(zeEventQueryKernelTimestamp(two, &raw mut result), NOT_READY);
    let list = stage.immediate_list(1);
    ok(zeCommandListAppendBarrier(list, one, 0, null()));
    ok(zeEventQueryKernelTimestamp(two, &raw mut result));
    assert!(result.global.kernel_start > 0 && result.global.kernel_end >= result.global.kernel_start);
    ok(zeEventPoolCloseIpcHandle(opened));
    assert_eq!(zeEventPoolCloseIpcHandle(opened), INVALID_ARGUMENT);
    ok(zeEventQueryStatus(two));
    ok(zeEventDestroy(two));
    ok(zeEventDestroy(one));
    // A place that is taken anew is not signalled.
    let again = event_of(shared, 0);
    assert_eq!(zeEventQueryStatus(again), NOT_READY);
    ok(zeEventDestroy(again));
    ok(zeEventPoolDestroy(shared));
    let (desc, mut out) = (EventPoolDesc { flags: 0b1_0000, count: 1, ..zeroed() }, null_mut());
    assert_eq!(zeEventPoolCreate(stage.context, &raw const desc, 0, null(), &raw mut out), INVALID_ENUMERATION);
}

#[test]
fn the_names_of_intels_driver_lead_to_the_same() {
    let stage = Stage::new();
    let find = |name: &std::ffi::CStr| {
        let mut address = null();
        ok(zeDriverGetExtensionFunctionAddress(driver(), name.as_ptr(), &raw mut address));
        address
    };
    // SAFETY: the signatures are those of Intel's driver headers, which the device implements.
    let (create, get, open, close) = unsafe {
        use std::mem::transmute as function;
        (
            function::<*const c_void, extern "C" fn(Handle, Handle, *const EventCounterBasedDesc, *mut Handle) -> u32>(
                find(c"zexCounterBasedEventCreate2"),
            ),
            function::<*const c_void, extern "C" fn(Handle, *mut IpcEventCounterBasedHandle) -> u32>(find(
                c"zexCounterBasedEventGetIpcHandle",
            )),
            function::<*const c_void, extern "C" fn(Handle, IpcEventCounterBasedHandle, *mut Handle) -> u32>(find(
                c"zexCounterBasedEventOpenIpcHandle",
            )),
            function::<*const c_void, extern "C" fn(Handle) -> u32>(find(c"zexCounterBasedEventCloseIpcHandle")),
        )
    };
    let desc = EventCounterBasedDesc { s_type: 0x3_001c, flags: 0xf, signal: 4, ..zeroed() };
    let event = made(|out| create(stage.context, stage.device, &raw const desc, out));
    let mut handle: IpcEventCounterBasedHandle = zeroed();
    ok(get(event, &raw mut handle));
    ok(close(made(|out| open(stage.context, handle, out))));
    ok(zeEventDestroy(event));
}

#[test]
fn no_descriptor_and_no_mapping_is_lost_over_many_cycles() {
    const NAME: &str = "event_ipc::no_descriptor_and_no_mapping_is_lost_over_many_cycles";
    match role().as_deref() {
        Some("other") => converse(),
        Some(_) => {
            let mut maker = Peer::converse(NAME, b'm', &[]);
            let remote = IpcEventCounterBasedHandle { data: maker.receive() };
            let stage = Stage::new();
            let list = stage.immediate_list(2);
            let cycle = |round: usize| {
                let event = stage.shared_event();
                let opened = open(stage, get(event));
                ok(zeCommandListAppendSignalEvent(list, opened));
                if round.is_multiple_of(2) {
                    ok(zeEventHostSynchronize(event, FOREVER));
                    ok(zeEventCounterBasedCloseIpcHandle(opened));
                    ok(zeEventDestroy(event));
                } else {
                    ok(zeEventDestroy(event));
                    ok(zeEventHostSynchronize(opened, FOREVER));
                    ok(zeEventCounterBasedCloseIpcHandle(opened));
                }
                if round.is_multiple_of(8) {
                    ok(zeEventCounterBasedCloseIpcHandle(open(stage, remote)));
                    let pool = pool(stage, 0b11, 100);
                    ok(zeEventPoolCloseIpcHandle(made(|out| {
                        zeEventPoolOpenIpcHandle(stage.context, get_pool(pool), out)
                    })));
                    ok(zeEventPoolDestroy(pool));
                }
            };
            let counts = || {
                ok(zeCommandListHostSynchronize(list, FOREVER));
                (open_descriptors(), std::fs::read_to_string("/proc/self/maps").unwrap().matches("ze_soft").count())
            };
            (0..16).for_each(cycle);
            let before = counts();
            (0..100_000).for_each(cycle);
            assert_eq!(counts(), before);
            maker.end();
        }
        None => drop(run(actor(NAME, "device", &[("ZE_SOFT_MEMORY", "64M")]))),
    }
}
