//! Redirects a callee from the caller's memory to variables for its answers, and to a copy of the handle data that it
//! opens.
//!
//! An adapter may report success and write no answer (Level Zero v1 does if the driver refuses). The caller's variable
//! would then have its old value, so the callee gets variables of urscope's. An adapter may also write into the handle
//! data that it opens (Level Zero v1 writes a descriptor), which would change the bytes that the producer sent.

use std::{marker::PhantomData, mem::MaybeUninit};

use urscope_schema::{
    api::{
        UrResult,
        role::{EventHandle, OutParams, Role},
    },
    call::Values,
    handle::{descriptor_data, file_fingerprint},
};

use super::{
    Arg,
    extensions::Extension,
    handle_data,
    inputs::{CallerOutParams, data_fingerprint, descriptor_at},
    umf_header::{UMF_SIZES, UmfHeader},
};
use crate::raw::{open_file, process};

/// The value of a variable that the callee has not written to; no valid address or size.
const UNTOUCHED: usize = 0x5a5a_5a5a_5a5a_5a5a;

/// Variables that replace the caller's during a call. The addresses of the caller's are stored elsewhere: the callee
/// can write to this structure, so the compiler must keep it in memory.
pub struct RedirectedOutParams {
    pointer: usize,
    data: usize,
    data_size: usize,
    object: usize,
}

/// The buffer for a copy of the handle data that a call opens.
pub struct OpenedCopy(MaybeUninit<[u8; handle_data::SIZE_LIMIT]>);

/// The address and size of such a copy. They are not in the buffer, which the callee can write to, so that they are
/// not in memory for calls that open nothing.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'room> {
    address: usize,
    /// The size in bytes; 0 if nothing is opened.
    size: usize,
    room: PhantomData<&'room mut OpenedCopy>,
}

/// The addresses of the variables, to be passed on.
pub struct Redirection(OutParams);

impl Redirection {
    /// The argument to pass on: the address of the variable that replaces the caller's, otherwise the argument.
    #[inline]
    pub fn redirect<R: Role>(&self, argument: Arg<R>) -> Arg<R> {
        Arg(argument.0.redirected(&self.0))
    }
}

impl OpenedCopy {
    /// A buffer without a copy.
    #[inline]
    pub const fn room() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// Copies the handle data that a call opens, so that the callee writes into the copy. Data that is longer than any
    /// adapter's, or shorter than its size says, is passed on unchanged, and refused.
    #[inline]
    pub fn take<'room>(&'room mut self, arguments: &Values) -> Opened<'room> {
        let (Some(data), Some(size)) = (arguments.data, arguments.data_size) else { return Opened::NOTHING };
        let to = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer is large enough, and does not overlap the caller's memory.
        let copy = |bytes: &[u8]| unsafe { bytes.as_ptr().copy_to_nonoverlapping(to, bytes.len()) };
        // SAFETY: the caller passes handle data to the adapter, which reads it if it has a size of adapters' data.
        match unsafe { handle_data::read(data as usize, size as usize, copy) } {
            Some(()) => Opened { address: to.expose_provenance(), size: size as usize, room: PhantomData },
            None => Opened::NOTHING,
        }
    }
}

impl Opened<'_> {
    /// No copy.
    pub const NOTHING: Self = Self { address: 0, size: 0, room: PhantomData };

    /// The number of bytes from the exported address on that the driver maps, from libumf's header in the opened data:
    /// the driver's allocation may be larger than the exported one.
    fn extent(self) -> Option<u64> {
        // SAFETY: `size` bytes of a live buffer are initialized.
        unsafe { extent_at(self.address, self.size) }
    }
}

/// The number of bytes that the driver will map, from the data that a call opens.
pub fn extent(arguments: &Values) -> Option<u64> {
    let (Some(data), Some(size), Some(_)) = (arguments.data, arguments.data_size, arguments.fingerprint) else {
        return None;
    };
    // SAFETY: if there is a fingerprint, `size` bytes were read there.
    unsafe { extent_at(data as usize, size as usize) }
}

/// The bytes that an open of this data maps.
///
/// # Safety
///
/// `size` bytes can be read at `address`.
unsafe fn extent_at(address: usize, size: usize) -> Option<u64> {
    if !UMF_SIZES.contains(&size) {
        return None;
    }
    // SAFETY: the caller's promise.
    let header = unsafe { UmfHeader::read(address, size) }?;
    header.size.checked_sub(header.offset).filter(|extent| *extent > 0)
}

impl RedirectedOutParams {
    /// Variables that have not been written to.
    #[inline]
    pub fn untouched() -> Self {
        let [pointer, data, data_size, object] = [UNTOUCHED; 4];
        Self { pointer, data, data_size, object }
    }

    /// The addresses of the variables for the caller's out-parameters, and of the copy of the opened data. They are
    /// valid until [`CallerOutParams::carry_over`].
    #[inline]
    pub fn redirection(&mut self, CallerOutParams(caller): &CallerOutParams, opened: Opened<'_>) -> Redirection {
        // A variable whose address is not taken costs nothing.
        let redirected =
            |callers: usize, redirected: *mut usize| if callers == 0 { 0 } else { redirected.expose_provenance() };
        Redirection(OutParams {
            pointer: redirected(caller.pointer, &raw mut self.pointer),
            data: redirected(caller.data, &raw mut self.data),
            data_size: redirected(caller.data_size, &raw mut self.data_size),
            object: redirected(caller.object, &raw mut self.object),
            copied_data: opened.address,
            ..OutParams::NONE
        })
    }
}

impl CallerOutParams {
    /// Copies the callee's answers to the caller, and returns the recorded values. `exported` is the memory of a get.
    #[expect(clippy::inline_always, reason = "the row's roles decide which parts of it a function needs")]
    #[inline(always)]
    pub fn carry_over(
        &self,
        redirected: &RedirectedOutParams,
        opened: Opened<'_>,
        result: UrResult,
        exported: Option<u64>,
    ) -> Values {
        let Self(caller) = self;
        // SAFETY: the variable is live, and the caller's of the same role takes a word.
        let pointer = unsafe { carry(&redirected.pointer, caller.pointer) };
        // SAFETY: as above.
        let data = unsafe { carry(&redirected.data, caller.data) };
        // SAFETY: as above.
        let data_size = unsafe { carry(&redirected.data_size, caller.data_size) };
        // SAFETY: as above.
        let object = unsafe { carry(&redirected.object, caller.object) };
        if !result.is_success() {
            return Values::NONE;
        }
        let answers = Values { pointer, data, data_size, object, ..Values::NONE };
        // SAFETY: the call succeeded, and these are its answers.
        unsafe { self.completed(answers, exported, || if opened.size == 0 { None } else { opened.extent() }) }
    }

    /// The recorded answers of an observed call: they are read from the caller's variables. `exported` is the memory of
    /// a get, and `extent` the result of [`extent`] for an open.
    ///
    /// A success without an answer is detected only if the variable was zero before.
    pub fn read(&self, result: UrResult, exported: Option<u64>, extent: Option<u64>) -> Values {
        let Self(caller) = self;
        if !result.is_success() {
            return Values::NONE;
        }
        let answer = |variable: usize| {
            let variable = Some(variable).filter(|variable| *variable != 0)?;
            // SAFETY: the call succeeded, so the caller's variable is valid: the callee may have written a word there.
            let answer = unsafe { std::ptr::with_exposed_provenance::<u64>(variable).read_unaligned() };
            Some(answer).filter(|answer| *answer != 0)
        };
        let [pointer, data, data_size, object] =
            [caller.pointer, caller.data, caller.data_size, caller.object].map(answer);
        let answers = Values { pointer, data, data_size, object, ..Values::NONE };
        // SAFETY: the call succeeded, and these are its answers.
        unsafe { self.completed(answers, exported, || extent) }
    }

    /// Adds to the answers of a call the contents of their memory, and the answers that are not redirected.
    ///
    /// # Safety
    ///
    /// The call succeeded, and `values` are its answers.
    #[expect(clippy::inline_always, reason = "as for `carry_over`")]
    #[inline(always)]
    unsafe fn completed(
        &self,
        mut values: Values,
        exported: Option<u64>,
        extent: impl FnOnce() -> Option<u64>,
    ) -> Values {
        let Self(caller) = self;
        if let (Some(data), Some(size)) = (values.data, values.data_size) {
            // SAFETY: the callee has just made `size` bytes of handle data.
            unsafe {
                values.fingerprint = data_fingerprint(data as usize, size as usize);
                add_allocation(exported, &mut values);
            }
        }
        if values.pointer.is_some()
            && let Some(extent) = extent()
        {
            values.size = Some(extent);
        }
        if caller.context != 0 {
            // SAFETY: the call succeeded, so the caller's variable for the handle is valid and filled
            // (`urContextCreate`).
            values.context = Some(unsafe { std::ptr::with_exposed_provenance::<u64>(caller.context).read_unaligned() });
        }
        if caller.ipc_handle != 0 {
            // SAFETY: the call succeeded, so the caller's variable holds an IPC handle (`zeMemGetIpcHandle`).
            let descriptor = unsafe { descriptor_at(caller.ipc_handle) };
            values.data = Some(descriptor_data(descriptor));
            values.fingerprint = of_file(descriptor);
        }
        if caller.event_handle != 0 {
            // SAFETY: the call succeeded, so the caller's variable holds an IPC handle
            // (`zeEventCounterBasedGetIpcHandle`).
            values.fingerprint = unsafe { data_fingerprint(caller.event_handle, size_of::<EventHandle>()) };
            values.data = values.fingerprint;
        }
        if caller.exporting != 0 {
            // SAFETY: the caller passed the structure, whose chain the driver has walked.
            let descriptor = unsafe { Extension::of(caller.exporting).and_then(|extension| extension.descriptor()) };
            values.data = descriptor.map(descriptor_data);
            values.fingerprint = descriptor.and_then(of_file);
        }
        if caller.value != 0 {
            // SAFETY: the call succeeded, so the caller's variable holds a `ur_bool_t`, one byte (`urDeviceGetInfo`).
            values.value = Some(u64::from(unsafe { std::ptr::with_exposed_provenance::<u8>(caller.value).read() }));
        }
        values
    }
}

/// The fingerprint of the file that a descriptor refers to.
pub fn of_file(descriptor: u32) -> Option<u64> {
    open_file::identity(descriptor).map(|(device, inode)| file_fingerprint(device, inode))
}

/// Copies an answer to the caller's variable.
///
/// # Safety
///
/// `callers` is null or the address of a variable of the caller's that takes a word.
#[inline]
unsafe fn carry(redirected: &usize, callers: usize) -> Option<u64> {
    if callers == 0 {
        return None;
    }
    // SAFETY: `redirected` is a live variable; it is read as volatile because the callee wrote to it through its
    // address.
    let answer = unsafe { (&raw const *redirected).read_volatile() };
    if answer == UNTOUCHED {
        return None;
    }
    // SAFETY: the caller's promise; the callee would have written this word there.
    unsafe { std::ptr::with_exposed_provenance_mut::<usize>(callers).write_unaligned(answer) };
    Some(answer as u64)
}

/// Adds address and size of the driver's allocation in handle data that was got for the address `exported`.
///
/// Data with another header than libumf's fails the comparison.
///
/// # Safety
///
/// If the values have a fingerprint, then `data` and `data_size` are the readable handle data.
#[inline]
unsafe fn add_allocation(exported: Option<u64>, values: &mut Values) {
    let (Some(pointer), Some(data), Some(size), Some(_)) =
        (exported, values.data, values.data_size, values.fingerprint)
    else {
        return;
    };
    // SAFETY: the caller's promise.
    let Some(header) = (unsafe { UmfHeader::read(data as usize, size as usize) }) else { return };
    let is_it = header.exported() == Some(pointer) && header.process == process::cached_id();
    if is_it && header.offset < header.size {
        (values.pointer, values.size) = (Some(header.base), Some(header.size));
    }
}

#[cfg(test)]
mod tests {
    use urscope_schema::api::role::{OutData, OutDataSize, OutPointer};

    use super::{
        super::inputs::{CallArguments, Inputs},
        *,
    };

    /// An argument of a caller.
    fn arg<R: Role>(role: R) -> Arg<R> {
        // SAFETY: the tests pass addresses of live variables.
        unsafe { Arg::new(role) }
    }

    #[test]
    fn what_the_callee_wrote_reaches_the_caller() {
        let mut variable = 1_usize;
        let caller = arg(OutPointer((&raw mut variable).expose_provenance()));
        let mut arguments = CallArguments::new(None);
        arguments.add(caller);
        let expected = arguments.record(&Inputs::default()).1;
        let mut redirected = RedirectedOutParams::untouched();
        let to = redirected.redirection(&expected, Opened::NOTHING).redirect(caller).get().0;
        // SAFETY: the address of a variable that was just made for this.
        unsafe { std::ptr::with_exposed_provenance_mut::<usize>(to).write(7) };
        assert_eq!(expected.carry_over(&redirected, Opened::NOTHING, UrResult::SUCCESS, None).pointer, Some(7));
        assert_eq!(variable, 7);
    }

    #[test]
    fn a_success_without_an_answer_leaves_the_caller_alone_and_is_no_answer() {
        let (mut data, mut size) = (1_usize, 2_usize);
        let mut arguments = CallArguments::new(None);
        arguments.add(arg(OutData((&raw mut data).expose_provenance())));
        arguments.add(arg(OutDataSize((&raw mut size).expose_provenance())));
        let expected = arguments.record(&Inputs::default()).1;
        let mut redirected = RedirectedOutParams::untouched();
        redirected.redirection(&expected, Opened::NOTHING);
        assert_eq!(expected.carry_over(&redirected, Opened::NOTHING, UrResult::SUCCESS, None), Values::default());
        assert_eq!((data, size), (1, 2));
    }

    #[test]
    fn a_header_that_does_not_add_up_is_none() {
        let header = |process: u64, offset: u64| [1, 0x1000, process, 0x10000, offset, 7];
        let own = u64::from(std::process::id());
        let allocation = |words: [u64; 6], pointer: Option<u64>| {
            let data = Some(words.as_ptr().expose_provenance() as u64);
            let mut values = Values { data, data_size: Some(48), fingerprint: Some(0), ..Values::NONE };
            // SAFETY: 48 bytes stand there.
            unsafe { add_allocation(pointer, &mut values) };
            (values.pointer, values.size)
        };
        assert_eq!(allocation(header(own, 0x200), Some(0x1200)), (Some(0x1000), Some(0x10000)));
        for (words, pointer) in [
            (header(own, 0x200), None),
            (header(own, 0x200), Some(0x1000)),
            (header(own + 1, 0x200), Some(0x1200)),
            (header(own, 0x20000), Some(0x21000)),
            (header(own, u64::MAX), Some(0xfff)),
        ] {
            assert_eq!(allocation(words, pointer), (None, None), "{words:?}");
        }
    }
}
