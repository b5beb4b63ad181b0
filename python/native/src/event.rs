//! The functions of libsycl that share events between processes (from 2026.2).

use std::ptr;

use crate::references::{ContextRef, EventRef, QueueRef};
use crate::sycl::{Function, HandleData, OwnCopy, Sycl, functions};
use crate::{guarded, shared::Shared};

/// `make_event_flag_enable_ipc`
const ENABLE_IPC: usize = 2;

functions! {
    /// The functions.
    Events:
    make = c"_ZN4sycl3_V13ext6oneapi12experimental6detail10make_eventERKNS0_7contextEj";
    signal = c"_ZN4sycl3_V13ext6oneapi12experimental20enqueue_signal_eventENS0_5queueERNS0_5eventE";
    wait = c"_ZN4sycl3_V13ext6oneapi12experimental18enqueue_wait_eventENS0_5queueERKNS0_5eventE";
    get = c"_ZN4sycl3_V13ext6oneapi12experimental3ipc5event3getERKNS0_5eventE";
    put = c"_ZN4sycl3_V13ext6oneapi12experimental3ipc5event3putERNS4_6handleERKNS0_7contextE";
    open = c"_ZN4sycl3_V16detail18openIPCEventHandleEPKSt4bytemRKNS0_7contextE";
}

impl Events {
    /// `make_event` with `enable_ipc`
    pub(crate) fn make(&self, sycl: &Sycl, context: ContextRef) -> Result<EventRef, String> {
        let mut event = Shared::empty();
        // SAFETY: `event detail::make_event(const context &, uint32_t)`; an event is returned in the place
        // that is named first.
        unsafe { guarded::call(self.make, [event.place(), context.word(), ENABLE_IPC])? };
        sycl.event_of(&event)
    }

    /// `enqueue_signal_event`
    pub(crate) fn signal(&self, sycl: &'static Sycl, queue: QueueRef, event: EventRef) -> Result<(), String> {
        Self::enqueue(sycl, self.signal, queue, event)
    }

    /// `enqueue_wait_event`
    pub(crate) fn wait(&self, sycl: &'static Sycl, queue: QueueRef, event: EventRef) -> Result<(), String> {
        Self::enqueue(sycl, self.wait, queue, event)
    }

    fn enqueue(sycl: &'static Sycl, function: Function, queue: QueueRef, event: EventRef) -> Result<(), String> {
        let own = OwnCopy::of_queue(sycl, queue)?;
        // SAFETY: `void f(queue, event &)`; an object with a destructor is passed by its address, and may be
        // emptied: it is a copy.
        unsafe { guarded::call(function, [own.get().word(), event.word()]) }.map(drop)
    }

    /// `ipc::event::get`
    pub(crate) fn get(&self, event: EventRef) -> Result<HandleData, String> {
        // SAFETY: `handle get(const event &)`; a handle is trivial and has two words.
        let [data, size] = unsafe { guarded::call(self.get, [event.word()])? };
        Ok(HandleData { data: ptr::with_exposed_provenance_mut(data), size })
    }

    /// `ipc::event::open`
    pub(crate) fn open(&self, sycl: &Sycl, data: &[u8], context: ContextRef) -> Result<EventRef, String> {
        let mut event = Shared::empty();
        let mut copy = data.to_vec();
        let bytes = copy.as_mut_ptr().expose_provenance();
        // SAFETY: `event openIPCEventHandle(const std::byte *, size_t, const context &)`
        unsafe { guarded::call(self.open, [event.place(), bytes, copy.len(), context.word()])? };
        sycl.event_of(&event)
    }
}
