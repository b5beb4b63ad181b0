//! Reads the caller's memory before a hooked call is passed on.
//!
//! The adapter is about to read the same memory. Only the first few words of structures and lists are read, never more
//! than the caller declares. Handle data, whose size the adapter checks first, has its own module (`handle_data`).

#![expect(clippy::inline_always, reason = "the row's roles decide which parts a function needs")]

use urscope_schema::api::cuda::constants::MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
use urscope_schema::api::level_zero::constants::{EXTERNAL_MEMORY_EXPORT_FD, EXTERNAL_MEMORY_IMPORT_FD};
use urscope_schema::api::role::{Device, HandleBytes, IpcHandle, OutParams, Role, Sources};
use urscope_schema::api::{Effect, Function, demand::Nulls};
use urscope_schema::call::Values;
use urscope_schema::handle::{descriptor_data, descriptor_in, file_fingerprint, named_fingerprint};

use super::umf_header::{UMF_SIZES, UmfHeader};
use super::{AdapterHandle, Arg, cuda_rows, extensions::Extension, handle_data, kernel_arguments};
use crate::raw::{files::open_file, processes::process, threads::recent_data::hashes_of};

/// The offset of the flags in every description, after a 4-byte `stype`, 4 bytes of padding and an 8-byte `pNext`.
pub(super) const FLAGS: usize = 16;

/// The offset of `requestedHandleTypes` in a `CUmemAllocationProp`.
const HANDLE_TYPES: usize = 4;

/// The offset of the size in a `ze_physical_mem_desc_t`, after the flags and 4 bytes of padding.
const PHYSICAL_SIZE: usize = 24;

/// A `ur_exp_kernel_arg_properties_t` (`ur_api.h`). The value is a union whose largest member has two words.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelArgument {
    stype: u32,
    next: usize,
    kind: u32,
    index: u32,
    size: usize,
    value: u64,
    more: u64,
}

/// `UR_EXP_KERNEL_ARG_TYPE_POINTER`.
const KERNEL_ARG_TYPE_POINTER: u32 = 1;

/// The offset of the mode in a `ze_command_queue_desc_t`, after ordinal, index and flags, and its synchronous value.
const QUEUE_MODE: usize = 28;
const SYNCHRONOUS: u32 = 1;

/// The inputs of a call that are passed by reference: descriptions, and lists of events and devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs(Sources);

impl Inputs {
    /// The device of the call; the first one of a list.
    #[inline]
    pub fn device(&self) -> Option<Arg<Device>> {
        let Sources { device, devices, count, .. } = self.0;
        let handle = if devices != 0 && count > 0 {
            // SAFETY: the caller passes a list of so many handles to the adapter, which is about to read them.
            unsafe { std::ptr::with_exposed_provenance::<usize>(devices).read_unaligned() }
        } else {
            device
        };
        Some(Arg(Device(handle))).filter(|_| handle != 0)
    }

    /// The queue or command list that the call adds a command to, 0 if there is none.
    #[inline]
    pub const fn queue(&self) -> usize {
        self.0.queue
    }

    /// The command lists that the call executes.
    #[inline]
    pub fn lists(&self) -> impl Iterator<Item = usize> + Clone {
        let Sources { lists, count, .. } = self.0;
        let count = if lists == 0 { 0 } else { count as usize };
        let first = std::ptr::with_exposed_provenance::<usize>(lists);
        // SAFETY: the caller passes a list of so many handles to the driver, which is about to read them.
        (0..count).map(move |place| unsafe { first.add(place).read_unaligned() })
    }

    /// Whether the call creates a command list that is executed later.
    #[inline]
    pub const fn makes_list(&self) -> bool {
        self.0.list_desc != 0
    }

    /// The queue or command list that a call which has succeeded has created, its context, and whether each command in it
    /// has completed when its call returns.
    pub fn new_queue(&self) -> Option<(usize, usize, bool)> {
        let Sources { queue_desc, new_queue, queue_context, .. } = self.0;
        let mode = |desc: usize| {
            // SAFETY: the caller has passed a `ze_command_queue_desc_t` to the driver, which has read it.
            unsafe { std::ptr::with_exposed_provenance::<u32>(desc + QUEUE_MODE).read_unaligned() }
        };
        (new_queue != 0).then(|| {
            // SAFETY: the driver has written a handle to the caller's variable.
            let handle = unsafe { std::ptr::with_exposed_provenance::<usize>(new_queue).read_unaligned() };
            (handle, queue_context, queue_desc != 0 && mode(queue_desc) == SYNCHRONOUS)
        })
    }

    /// Shows `visit` the pointers among the arguments of a kernel, and what may be pointers in arguments of the CUDA driver, which has no
    /// types of them; false if it is not known where they are.
    pub fn each_kernel_pointer(&self, mut visit: impl FnMut(u64)) -> bool {
        let Sources { kernel, kernel_params, kernel_extra, kernel_args, kernel_arg_count, .. } = self.0;
        let count = if kernel_args == 0 { 0 } else { kernel_arg_count as usize };
        for place in 0..count {
            let argument = std::ptr::with_exposed_provenance::<KernelArgument>(kernel_args);
            // SAFETY: the caller passes a list of so many to the adapter, which is about to read them.
            let KernelArgument { kind, value, .. } = unsafe { argument.add(place).read_unaligned() };
            if kind == KERNEL_ARG_TYPE_POINTER {
                visit(value);
            }
        }
        kernel_arguments::each_word(kernel, kernel_params, kernel_extra, visit)
    }

    /// Whether a structure of the call asks for a descriptor of memory.
    #[inline]
    pub fn ask_for_descriptor(&self) -> bool {
        // SAFETY: the caller passes the structure to the driver, which is about to walk its chain.
        let extension = unsafe { Extension::of(self.0.extended) };
        extension.is_some_and(|extension| extension.kind == EXTERNAL_MEMORY_EXPORT_FD)
    }

    /// The first of the call's events that `wanted` accepts.
    #[inline]
    pub fn first_event(&self, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let Sources { event, events, count, .. } = self.0;
        if events == 0 {
            return Some(event).filter(|event| *event != 0 && wanted(*event));
        }
        let list = std::ptr::with_exposed_provenance::<usize>(events);
        // SAFETY: the caller passes a list of so many handles to the adapter, which is about to read them.
        (0..count as usize).map(|at| unsafe { list.add(at).read_unaligned() }).find(|event| wanted(*event))
    }

    /// Adds the flags of the description that the caller passes, and the first of its devices.
    #[inline(always)]
    fn describe(&self, values: &mut Values) {
        let word = |address: usize| {
            // SAFETY: the caller passes a description there to the adapter, which is about to read it. All kinds have
            // their flags behind `stype` and `pNext` (`ur_exp_event_desc_t`, `ur_physical_mem_properties_t`,
            // `ur_context_properties_t`), and `ur_usm_desc_t` has its `hints` there.
            Some(u64::from(unsafe { std::ptr::with_exposed_provenance::<u32>(address).read_unaligned() }))
        };
        let Sources { desc, usm_desc, devices, count, ipc_handles, extended, physical_desc, .. } = self.0;
        let Sources { allocation_properties, handle_bytes, imported, handle_type, copy_2d, copy_3d, .. } = self.0;
        if desc != 0 {
            values.flags = word(desc + FLAGS);
        }
        if usm_desc != 0 {
            // A SYCL program passes a description with every allocation, and nearly all of them ask for nothing.
            values.flags = word(usm_desc + FLAGS).filter(|hints| *hints != 0);
        }
        if ipc_handles != 0 && count > 0 {
            // SAFETY: the caller passes a list of so many IPC handles to the driver, which is about to read them.
            unsafe { std::ptr::with_exposed_provenance::<IpcHandle>(ipc_handles).read_unaligned() }.enter(values);
        }
        if extended != 0 {
            // SAFETY: the caller passes the structure to the driver, which is about to walk its chain.
            let extension = unsafe { Extension::of(extended) };
            values.property = extension.map(|extension| extension.kind);
            if let Some(import) = extension.filter(|extension| extension.kind == EXTERNAL_MEMORY_IMPORT_FD) {
                // SAFETY: as above.
                values.data = unsafe { import.descriptor() }.map(descriptor_data);
            }
        }
        if physical_desc != 0 {
            let size = std::ptr::with_exposed_provenance::<u64>(physical_desc + PHYSICAL_SIZE);
            // SAFETY: the caller passes a `ze_physical_mem_desc_t` to the driver, which is about to read it.
            values.size = Some(unsafe { size.read_unaligned() });
        }
        // SAFETY: the caller passes one of these to the driver, which is about to read it.
        if let Some(row) = unsafe { cuda_rows::first_row(copy_2d, copy_3d) } {
            (values.pointer, values.source, values.size) = (row.to, row.from, Some(row.length));
        }
        if allocation_properties != 0 {
            values.flags = word(allocation_properties + HANDLE_TYPES);
        }
        let is_descriptor = handle_type == MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        if is_descriptor && imported != 0 {
            values.data = Some(descriptor_data(imported as u32));
        }
        let bytes = if is_descriptor { 0 } else { imported.max(handle_bytes) };
        if bytes != 0 {
            // SAFETY: the caller passes a handle of so many bytes to the driver, which is about to read it.
            unsafe { std::ptr::with_exposed_provenance::<HandleBytes>(bytes).read_unaligned() }.enter(values);
        }
        if devices != 0 && count > 0 {
            let first = std::ptr::with_exposed_provenance::<u64>(devices);
            // SAFETY: the caller passes a list of so many handles to the adapter, which is about to read them.
            values.device = Some(unsafe { first.read_unaligned() });
        }
    }
}

#[cfg(test)]
impl Inputs {
    /// The inputs of a call that has made a queue with such a description, or that adds a command to `queue`.
    pub(crate) fn of_queue(desc: &[u32; 10], new_queue: &usize, queue: usize) -> Self {
        let address = |pointer: *const u32| pointer.expose_provenance();
        let (queue_desc, new_queue) = (address(desc.as_ptr()), address(std::ptr::from_ref(new_queue).cast()));
        Self(Sources { queue, queue_desc, new_queue, queue_context: 0xc0, ..Sources::default() })
    }

    /// The inputs of a call that has made a command list, that appends to `list`, or that executes `lists`.
    pub(crate) fn of_lists(made: &usize, list: usize, lists: &[usize]) -> Self {
        let new_queue = std::ptr::from_ref(made).expose_provenance();
        let (lists, count) = (lists.as_ptr().expose_provenance(), lists.len() as u32);
        Self(Sources { list_desc: 1, new_queue, queue: list, lists, count, ..Sources::default() })
    }

    /// The inputs of a call about one event.
    pub(crate) fn of_event(event: usize) -> Self {
        Self(Sources { event, ..Sources::default() })
    }

    /// The inputs of a call about a list of events.
    pub(crate) fn of_events(events: &'static [usize]) -> Self {
        let (address, count) = (events.as_ptr().expose_provenance(), events.len() as u32);
        Self(Sources { events: address, count, ..Sources::default() })
    }
}

/// The arguments of one call, in the form in which they are recorded.
///
/// They are made of the arguments of a caller, so that what they refer to is readable as long as the call lasts.
#[derive(Debug)]
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
    pub fn none(function: Function) -> Self {
        let (values, out) = (Values::NONE, OutParams::NONE);
        Self { function, values, out, inputs: Inputs::default(), nulls: Nulls::default(), is_watched: true }
    }

    /// Adds the argument of the parameter with this name.
    #[inline(always)]
    pub fn add<R: Role>(&mut self, parameter: &'static str, argument: Arg<R>) {
        let Arg(role) = argument;
        role.enter(&mut self.values);
        role.out(&mut self.out);
        role.source(&mut self.inputs.0);
        self.nulls.note(self.function, parameter, role.null());
        self.is_watched &= role.watched();
    }

    /// Their recorded values, with the inputs in the caller's memory.
    ///
    /// The fingerprint of handle data is computed now, because an adapter may write into it (Level Zero v1 does).
    #[inline(always)]
    pub fn record(&self) -> Values {
        let mut values = self.values;
        self.inputs.describe(&mut values);
        if let Some((data, size)) = self.data() {
            // SAFETY: the caller passes handle data to the adapter, which reads it if it has a size of adapters' data.
            let hashes = unsafe { handle_data::read(data, size, hashes_of) };
            values.fingerprint = hashes.map(|(fingerprint, _)| fingerprint);
            values.value = hashes.and_then(|(_, checksum)| checksum).or(values.value);
            if values.fingerprint.is_some() && UMF_SIZES.contains(&size) {
                // SAFETY: so many bytes have just been read.
                let header = unsafe { UmfHeader::read(data, size) };
                values.exporter = header.as_ref().map(|header| header.process.into());
                values.exported = header.and_then(|header| header.exported());
            }
        }
        if values.fingerprint.is_none() && !matches!(self.function.effect(), Effect::Puts(_)) {
            values.fingerprint = of_descriptor(&values);
        }
        values
    }

    /// Address and size of the handle data that the caller passes.
    #[inline]
    pub(super) fn data(&self) -> Option<(usize, usize)> {
        Some((self.values.data? as usize, self.values.data_size? as usize))
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

/// The descriptor in a `ze_ipc_mem_handle_t`.
///
/// # Safety
///
/// `handle` is the address of an IPC handle.
#[inline]
pub(super) unsafe fn descriptor_at(handle: usize) -> u32 {
    // SAFETY: the caller's promise; an IPC handle is larger.
    unsafe { std::ptr::with_exposed_provenance::<u32>(handle).read_unaligned() }
}

/// The fingerprint of what the descriptor in a handle stands for: the file that it refers to, or the descriptor of another
/// process that the driver will fetch, because nothing was stored in its place.
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
pub(super) fn of_file(descriptor: u32) -> Option<u64> {
    open_file::identity(descriptor).map(|(device, inode)| file_fingerprint(device, inode))
}

/// The hashes of handle data from a get ([`hashes_of`]); `None` for a null pointer or an implausible size.
///
/// # Safety
///
/// `address` is null, or `size` bytes can be read there.
#[inline]
pub(super) unsafe fn data_hashes(address: usize, size: usize) -> Option<(u64, Option<u64>)> {
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
