//! Events that the driver shares, and the command lists that signal them.

use std::ptr::null;

use urscope_schema::api::ResultCode;

use super::{super::handle_data::NATIVE_SIZE, Driver, EventDesc, IpcHandle, QueueDesc, ZeHandle, structs::stype};

impl Driver {
    /// `zeEventCounterBasedCreate`. A `shared` event can be exported.
    pub(crate) fn make_event(&self, context: ZeHandle, device: ZeHandle, shared: bool) -> Result<ZeHandle, ResultCode> {
        // Immediate and other lists, visible to the host.
        const FLAGS: u32 = 0b0111;
        const FLAG_IPC: u32 = 0b1000;
        const SCOPE_HOST: u32 = 4;
        let flags = if shared { FLAGS | FLAG_IPC } else { FLAGS };
        let desc =
            EventDesc { stype: stype::EVENT_COUNTER_BASED_DESC, next: null(), flags, signal: SCOPE_HOST, wait: 0 };
        let mut made = ZeHandle::NULL;
        // SAFETY: the description and the out-parameter are live variables.
        unsafe { self.create_event(context, device, &raw const desc, &raw mut made) }?;
        made.not_null()
    }

    /// `zeEventDestroy`
    pub(crate) fn end_event(&self, event: ZeHandle) {
        // SAFETY: the driver made it.
        let _ = unsafe { self.destroy_event(event) };
    }

    /// `zeEventQueryStatus`: whether the event is signalled.
    pub(crate) fn is_signalled(&self, event: ZeHandle) -> bool {
        // SAFETY: the driver made it.
        unsafe { self.query_event(event) }.is_ok()
    }

    /// `zeEventCounterBasedGetIpcHandle`
    pub(crate) fn export_event(&self, event: ZeHandle) -> Result<IpcHandle, ResultCode> {
        let mut handle = IpcHandle([0; NATIVE_SIZE]);
        // SAFETY: the out-parameter is a live variable.
        unsafe { self.get_event(event, &raw mut handle) }?;
        Ok(handle)
    }

    /// `zeEventCounterBasedOpenIpcHandle`
    pub(crate) fn open_event(&self, context: ZeHandle, handle: IpcHandle) -> Result<ZeHandle, ResultCode> {
        let mut event = ZeHandle::NULL;
        // SAFETY: the out-parameter is a live variable. A handle may hold anything: the driver checks it.
        unsafe { self.import_event(context, handle, &raw mut event) }?;
        event.not_null()
    }

    /// `zeEventCounterBasedCloseIpcHandle`
    pub(crate) fn close_event(&self, event: ZeHandle) {
        // SAFETY: the driver opened it.
        let _ = unsafe { self.end_import(event) };
    }

    /// `zeCommandListCreateImmediate`, for an in-order, asynchronous list.
    pub(crate) fn make_list(&self, context: ZeHandle, device: ZeHandle) -> Result<ZeHandle, ResultCode> {
        const IN_ORDER: u32 = 2;
        const ASYNCHRONOUS: u32 = 2;
        // Every queue group can wait and signal: the first one is used.
        let [ordinal, index, priority] = [0; 3];
        let stype = stype::COMMAND_QUEUE_DESC;
        let desc = QueueDesc { stype, next: null(), ordinal, index, flags: IN_ORDER, mode: ASYNCHRONOUS, priority };
        let mut made = ZeHandle::NULL;
        // SAFETY: the description and the out-parameter are live variables.
        unsafe { self.create_list(context, device, &raw const desc, &raw mut made) }?;
        made.not_null()
    }

    /// Appends to a list: wait for `first`, then signal `event`.
    pub(crate) fn signal_after(&self, list: ZeHandle, first: ZeHandle, event: ZeHandle) -> Result<(), ResultCode> {
        // SAFETY: there is one event, which the driver copies.
        unsafe { self.append_wait(list, 1, &raw const first) }?;
        // SAFETY: the driver made both.
        unsafe { self.append_signal(list, event) }
    }

    /// Waits until a list is complete, and destroys it.
    pub(crate) fn end_list(&self, list: ZeHandle) {
        // SAFETY: the driver made it.
        let _ = unsafe { self.finish_list(list, u64::MAX) };
        // SAFETY: it is complete.
        let _ = unsafe { self.destroy_list(list) };
    }
}
