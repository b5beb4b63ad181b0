//! Events shared between processes: counter-based events one by one, others by their pool. Either process signals.

use std::{io::Read, thread};

use crate::api::*;
use crate::peer::{Peer, Pipe};

mod both_directions;
mod handles;
mod pools;

fn get(event: Handle) -> IpcHandle {
    value(|out| zeEventCounterBasedGetIpcHandle(event, out))
}

fn open(setup: Setup, handle: IpcHandle) -> Handle {
    make(|event| zeEventCounterBasedOpenIpcHandle(setup.context, handle, event))
}

/// The code of an open that must fail without writing its result.
fn refused(setup: Setup, data: [u8; 64]) -> u32 {
    let mut event = null_mut();
    let result = zeEventCounterBasedOpenIpcHandle(setup.context, IpcHandle { data }, &raw mut event);
    assert!(event.is_null());
    result
}

fn pool(setup: Setup, flags: u32, count: u32) -> Handle {
    make(|pool| zeEventPoolCreate(setup.context, &EventPoolDesc { flags, count, ..zeroed() }, 0, null(), pool))
}

fn event_of(pool: Handle, index: u32) -> Handle {
    make(|event| zeEventCreate(pool, &EventDesc { index, ..zeroed() }, event))
}

fn get_pool(pool: Handle) -> IpcHandle {
    value(|out| zeEventPoolGetIpcHandle(pool, out))
}

fn soon() -> u64 {
    nanoseconds(Duration::from_millis(5))
}

/// One of two processes that share an event. It executes commands, each a letter, and returns their result codes.
struct Endpoint {
    setup: Setup,
    list: Handle,
    /// Holds up the list until it is signalled.
    gate: Handle,
    /// Signalled, with timestamps, when the list has waited for the event.
    waited: Handle,
    pool: Handle,
    event: Handle,
}

impl Endpoint {
    fn new() -> Self {
        let setup = Setup::new();
        let [gate, waited] = setup.events();
        Self { setup, list: setup.immediate_list(2), gate, waited, pool: null_mut(), event: null_mut() }
    }

    /// When the last wait in the list (`d`) ended, by the device clock, which all processes share.
    fn waited_until(&self) -> u64 {
        started(self.waited)
    }

    fn execute(&self, letter: u8) -> u32 {
        let event = &raw const self.event;
        match letter {
            // Signals: at once, when the gate opens, or on the host.
            b's' => zeCommandListAppendSignalEvent(self.list, self.event),
            b'g' => {
                ok(zeEventHostReset(self.gate));
                ok(zeCommandListAppendWaitOnEvents(self.list, 1, &raw const self.gate));
                zeCommandListAppendBarrier(self.list, self.event, 0, null())
            }
            b'o' => zeEventHostSignal(self.gate),
            b'h' => zeEventHostSignal(self.event),
            b'r' => zeEventHostReset(self.event),
            // Waits: on the host, with a timeout, in the list, and for the list.
            b'w' => zeEventHostSynchronize(self.event, FOREVER),
            b't' => zeEventHostSynchronize(self.event, soon()),
            b'q' => zeEventQueryStatus(self.event),
            b'd' => {
                ok(zeEventHostReset(self.waited));
                zeCommandListAppendBarrier(self.list, self.waited, 1, event)
            }
            b'l' => zeCommandListHostSynchronize(self.list, FOREVER),
            b'L' => zeCommandListHostSynchronize(self.list, soon()),
            b'c' => zeEventCounterBasedCloseIpcHandle(self.event),
            b'x' => zeEventDestroy(self.event),
            b'X' => zeEventDestroy(self.event).max(zeEventPoolCloseIpcHandle(self.pool)),
            _ => unreachable!("{letter}"),
        }
    }
}

/// The other process: opens an event (`e`) or the second event of a pool (`p`), and executes what it receives.
fn serve() {
    let mut endpoint = Endpoint::new();
    let pipe = Pipe::open();
    match pipe.receive() {
        [b'e'] => endpoint.event = open(endpoint.setup, IpcHandle { data: pipe.receive() }),
        [b'p'] => {
            let handle = IpcHandle { data: pipe.receive() };
            endpoint.pool = make(|pool| zeEventPoolOpenIpcHandle(endpoint.setup.context, handle, pool));
            endpoint.event = event_of(endpoint.pool, 1);
        }
        // Creates an event, and sends its handle.
        _ => {
            endpoint.event = endpoint.setup.shared_event();
            pipe.send(&get(endpoint.event).data);
        }
    }
    let mut letter = [0];
    while pipe.from.lock().read(&mut letter).unwrap() == 1 {
        match letter {
            [b'T'] => pipe.send(&endpoint.waited_until().to_ne_bytes()),
            [letter] => pipe.send(&endpoint.execute(letter).to_ne_bytes()),
        }
    }
}

impl Peer {
    fn serve(name: &str, opening: u8, handle: &[u8]) -> Self {
        let mut peer = Self::start(name, "other");
        peer.send(&[opening]);
        peer.send(handle);
        peer
    }

    /// As [`Endpoint::waited_until`], in the other process.
    fn waited_until(&mut self) -> u64 {
        self.send(b"T");
        u64::from_ne_bytes(self.receive())
    }

    fn request(&mut self, letter: u8) -> u32 {
        self.send(&[letter]);
        u32::from_ne_bytes(self.receive())
    }

    fn execute_all(&mut self, letters: &str) {
        for letter in letters.bytes() {
            assert_eq!(self.request(letter), SUCCESS, "{}", char::from(letter));
        }
    }
}
