//! Reads the caller's memory before a hooked call is passed on.
//!
//! The callee is about to read the same memory, if it accepts the call: so addresses are not trusted. Only the first
//! few words of structures and lists are read, never more than the caller declares. Handle data, whose size the adapter
//! checks first, has its own module (`handle_data`).

#![expect(clippy::inline_always, reason = "the effect decides which parts a call needs")]

use urscope_schema::api::role::{Device, OutParams, Role, Sources};
use urscope_schema::api::{Effect, Function, demand::Nulls};
use urscope_schema::call::Values;
use urscope_schema::handle::{descriptor_in, file_fingerprint, named_fingerprint};

use super::umf_header::{UMF_SIZES, UmfHeader};
use super::{AdapterHandle, Arg, handle_data, reader::Reader};
use crate::raw::memory::checked::{read, words};
use crate::raw::{files::open_file, processes::process, threads::recent_data::hashes_of};

/// The offset of the flags in every description, after a 4-byte `stype`, 4 bytes of padding and an 8-byte `pNext`.
pub(crate) const FLAGS: usize = 16;

/// A queue or command list that a call has created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewQueue {
    /// Its handle.
    pub handle: usize,
    /// Its context.
    pub context: usize,
    /// Whether each command in it has completed when its call returns.
    pub is_synchronous: bool,
    /// Whether it is a command list that is executed later.
    pub is_list: bool,
    /// Whether it does not wait for the default queue.
    pub is_non_blocking: bool,
    /// Whether the program has a native handle of it, by which it can wait and enqueue.
    pub is_native: bool,
    /// Whether it may execute its commands in any order; `None` if all queues of the interface are in order.
    pub is_out_of_order: Option<bool>,
}

/// The inputs of a call that are passed by reference: descriptions, and lists of events and devices.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    sources: Sources,
    reader: &'static dyn Reader,
}

impl Inputs {
    /// The device of the call; the first one of a list.
    #[inline]
    pub fn device(&self) -> Option<Arg<Device>> {
        let Sources { device, devices, count, .. } = self.sources;
        let handle = if count > 0 { words(devices, 1).next() } else { None }.unwrap_or(device);
        Some(Arg(Device(handle))).filter(|_| handle != 0)
    }

    /// The queue or command list that the call is about, 0 for the default one; `None` if it is not known.
    #[inline]
    pub fn queue(&self) -> Option<usize> {
        if self.sources.structures.is_empty() { Some(self.sources.queue) } else { self.reader.queue(&self.sources) }
    }

    /// Whether there is a description: of a free, one that may ask it to wait for commands.
    pub const fn have_description(&self) -> bool {
        self.sources.desc != 0
    }

    /// What reads the structures of the call's interface.
    #[inline]
    pub const fn reader(&self) -> &'static dyn Reader {
        self.reader
    }

    /// The command lists that the call executes.
    #[inline]
    pub fn lists(&self) -> impl Iterator<Item = usize> + Clone {
        let (lists, count) = self.reader.lists(&self.sources);
        words(lists, count)
    }

    /// The queue or command list that a call which has succeeded has created.
    pub fn new_queue(&self) -> Option<NewQueue> {
        let Self { sources, reader } = self;
        let variable = std::ptr::with_exposed_provenance::<usize>(sources.new_queue);
        (sources.new_queue != 0).then(|| NewQueue {
            // SAFETY: the driver has written a handle to the caller's variable.
            handle: unsafe { variable.read_unaligned() },
            context: sources.queue_context,
            is_synchronous: reader.makes_synchronous(sources),
            is_list: reader.makes_list(sources),
            is_non_blocking: reader.makes_non_blocking(sources),
            is_native: reader.makes_native(sources),
            is_out_of_order: reader.makes_out_of_order(sources),
        })
    }

    /// The events that the command of the call waits for.
    #[inline]
    pub fn wait_list(&self) -> impl Iterator<Item = usize> {
        let has_any = !self.sources.structures.is_empty();
        let (events, count) = if has_any { self.reader.wait_list(&self.sources) } else { (0, 0) };
        words(events, count)
    }

    /// Whether the call, if it succeeds, signals an event behind what it enqueues.
    #[inline]
    pub fn signals(&self) -> bool {
        !self.sources.structures.is_empty() && self.reader.signals(&self.sources)
    }

    /// The event that is signalled behind what the call has enqueued. The call has succeeded.
    #[inline]
    pub fn signalled(&self) -> Option<usize> {
        let has_any = !self.sources.structures.is_empty();
        let event = if has_any { self.reader.signalled(&self.sources) } else { 0 };
        Some(event).filter(|event| *event != 0)
    }

    /// Whether the call, which asks for the state of an event, has shown that it is signalled.
    pub fn shows_signalled(&self) -> bool {
        self.reader.shows_signalled(&self.sources)
    }

    /// The events that the call is about.
    pub fn events(&self) -> impl Iterator<Item = usize> {
        let Sources { event, events, count, .. } = self.sources;
        let single = Some(event).filter(|event| events == 0 && *event != 0);
        single.into_iter().chain(words(events, if events == 0 { 0 } else { count as usize }))
    }

    /// Shows `visit` each word of a kernel's arguments that may be a pointer; false if it is not known where they are.
    #[inline]
    pub fn each_kernel_pointer(&self, mut visit: impl FnMut(u64)) -> bool {
        self.reader.kernel_pointers(&self.sources, &mut visit)
    }

    /// Whether a structure of the call asks for a descriptor of memory.
    pub fn ask_for_descriptor(&self) -> bool {
        self.reader.asks_for_descriptor(&self.sources)
    }

    /// The first of the call's events that `wanted` accepts.
    #[inline]
    pub fn first_event(&self, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        self.events().find(|event| wanted(*event))
    }

    /// Adds what the caller passes by reference: the flags of a description, the first of the devices, and what the
    /// interface reads.
    #[inline(always)]
    fn describe(&self, values: &mut Values) {
        let Sources { desc, devices, count, structures, .. } = self.sources;
        if desc != 0 {
            values.flags = read::<u32>(desc.wrapping_add(FLAGS)).map(u64::from);
        }
        if devices != 0 && count > 0 {
            values.device = read(devices);
        }
        if !structures.is_empty() {
            self.reader.describe(&self.sources, values);
        }
    }
}

#[cfg(test)]
impl Inputs {
    /// The inputs of a call that adds a command to `queue`, with what `reader` reads.
    pub(crate) fn of_queue(queue: usize, reader: &'static dyn Reader) -> Self {
        Self { sources: Sources { queue, ..Sources::default() }, reader }
    }

    /// The inputs of a call that has created a queue.
    pub(crate) fn of_new_queue(handle: &'static usize, queue_context: usize, reader: &'static dyn Reader) -> Self {
        let new_queue = std::ptr::from_ref(handle).expose_provenance();
        Self { sources: Sources { new_queue, queue_context, ..Sources::default() }, reader }
    }

    /// The inputs of a call about one event.
    pub(crate) fn of_event(event: usize) -> Self {
        Self { sources: Sources { event, ..Sources::default() }, reader: &super::reader::NoReader }
    }

    /// The inputs of a call about a list of events.
    pub(crate) fn of_events(events: &'static [usize]) -> Self {
        let address = events.as_ptr().expose_provenance();
        let count = events.len() as u32;
        let sources = Sources { events: address, count, ..Sources::default() };
        Self { sources, reader: &super::reader::NoReader }
    }
}

/// The arguments of one call, in the form in which they are recorded.
///
/// They are made of the arguments of a caller, so that what they refer to is readable as long as the call lasts.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    function: Function,
    values: Values,
    pub(super) out: OutParams,
    inputs: Inputs,
    nulls: Nulls,
    is_watched: bool,
}

impl Arguments {
    /// No arguments yet, of a call of `function`.
    #[inline(always)]
    pub fn none(function: Function, reader: &'static dyn Reader) -> Self {
        let inputs = Inputs { sources: Sources::default(), reader };
        let values = Values::NONE;
        let out = OutParams::NONE;
        Self { function, values, out, inputs, nulls: Nulls::default(), is_watched: true }
    }

    /// Adds the argument of the parameter with this name.
    #[inline(always)]
    pub fn add<R: Role>(&mut self, parameter: &'static str, argument: Arg<R>) {
        let Arg(role) = argument;
        role.enter(&mut self.values);
        role.out(&mut self.out);
        role.source(&mut self.inputs.sources);
        self.nulls.note(self.function, parameter, role.null());
        self.is_watched &= role.watched();
    }

    /// Adds to their recorded values the inputs in the caller's memory.
    ///
    /// The fingerprint of handle data is computed now, because an adapter may write into it (Level Zero v1 does).
    #[inline(always)]
    pub fn describe(&mut self) {
        let handle_data = self.data();
        let values = &mut self.values;
        self.inputs.describe(values);
        if let Some((data, size)) = handle_data {
            let hashes = handle_data::read(data, size, hashes_of);
            values.fingerprint = hashes.map(|(fingerprint, _)| fingerprint);
            values.checksum = hashes.and_then(|(_, checksum)| checksum);
            if values.fingerprint.is_some() && UMF_SIZES.contains(&size) {
                // SAFETY: so many bytes have just been read.
                let header = unsafe { UmfHeader::read(data, size) };
                values.exporter = header.as_ref().map(|header| header.process.into());
                values.exported = header.and_then(|header| header.exported());
            }
        }
        if values.fingerprint.is_none() && !matches!(self.function.effect(), Effect::Puts(_)) {
            values.fingerprint = of_descriptor(values);
        }
    }

    /// Address and size of the handle data that the caller passes.
    #[inline]
    pub(super) fn data(&self) -> Option<(usize, usize)> {
        Some((self.values.data? as usize, self.values.data_size? as usize))
    }

    /// Whether the callee may answer more than a result.
    #[inline]
    pub(super) const fn have_answers(&self) -> bool {
        let OutParams { pointer, data, data_size, context, object, handle_bytes, .. } = self.out;
        pointer | data | data_size | context | object | handle_bytes != 0
            || self.inputs.sources.structures.are_written()
    }

    /// Adds the answers that the interface reads, of a call that has succeeded.
    pub(super) fn add_answers(&self, values: &mut Values) {
        let Inputs { sources, reader } = &self.inputs;
        if sources.structures.are_written() {
            reader.answers(sources, values);
        }
    }

    /// The function that is called.
    #[inline]
    pub const fn function(&self) -> Function {
        self.function
    }

    /// The arguments themselves.
    #[inline]
    pub const fn values(&self) -> &Values {
        &self.values
    }

    /// The recorded values, to add what is noticed about the call.
    #[inline]
    pub const fn values_mut(&mut self) -> &mut Values {
        &mut self.values
    }

    /// What is passed by reference.
    #[inline]
    pub const fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The arguments that are missing.
    #[inline]
    pub const fn nulls(&self) -> &Nulls {
        &self.nulls
    }

    /// Whether a call with these arguments is recorded ([`Role::watched`]).
    #[inline]
    pub const fn are_watched(&self) -> bool {
        self.is_watched
    }

    /// A handle that identifies the adapter of the call.
    pub fn handle(&self) -> Option<AdapterHandle> {
        let Values { context, device, adapter, object, .. } = self.values;
        let handle = context.or(device).or(adapter).or(object)?;
        // SAFETY: these values were set by `add` only, from arguments that are handles.
        unsafe { AdapterHandle::new(handle as usize) }
    }
}

/// The fingerprint of what the descriptor in a handle stands for: the file that it refers to, or the descriptor of
/// another process that the driver will fetch, because nothing was stored in its place.
#[inline]
fn of_descriptor(values: &Values) -> Option<u64> {
    let descriptor = descriptor_in(values.data?)?;
    let is_own = |process: &u64| *process == u64::from(process::cached_id());
    match values.exporter.filter(|process| values.exported == values.data && !is_own(process)) {
        Some(process) => Some(named_fingerprint(process, descriptor)),
        None => of_file(descriptor),
    }
}

/// The fingerprint of the file that a descriptor refers to.
pub(crate) fn of_file(descriptor: u32) -> Option<u64> {
    open_file::identity(descriptor).map(|(device, inode)| file_fingerprint(device, inode))
}

/// The hashes of handle data from a get ([`hashes_of`]); `None` for a null pointer or an implausible size.
///
/// # Safety
///
/// `address` is null, or `size` bytes can be read there.
#[inline]
pub(crate) unsafe fn data_hashes(address: usize, size: usize) -> Option<(u64, Option<u64>)> {
    if address == 0 || size == 0 || size > handle_data::SIZE_LIMIT {
        return None;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), size) };
    Some(hashes_of(bytes))
}

#[cfg(test)]
mod tests {
    use urscope_schema::handle::fingerprint;

    use super::*;

    #[test]
    fn a_size_that_cannot_be_right_is_not_believed() {
        let bytes = [3_u8; 16];
        let address = bytes.as_ptr().expose_provenance();
        // SAFETY: 16 bytes stand there, and no other size is read.
        let fingerprint_of = |address, size| unsafe { data_hashes(address, size) }.map(|(fingerprint, _)| fingerprint);
        assert_eq!(fingerprint_of(address, 16), Some(fingerprint(&bytes)));
        assert_eq!(fingerprint_of(address, usize::MAX), None);
        assert_eq!(fingerprint_of(0, 16), None);
    }
}
