//! Redirects a callee from the caller's memory to variables for its answers, and to a copy of the handle data that it
//! opens.
//!
//! An adapter may report success and write no answer (Level Zero v1 does if the driver refuses). The caller's variable
//! would then have its old value, so the callee gets variables of urscope's. An adapter may also write into the handle
//! data that it opens (Level Zero v1 writes a descriptor), which would change the bytes that the producer sent.

#![expect(clippy::inline_always, reason = "the row's roles decide which parts a function needs")]

use std::mem::MaybeUninit;

use urscope_schema::api::role::{HandleBytes, OutParams};
use urscope_schema::{api::Effect, api::ResultCode, call::Values};

use super::inputs::{Arguments, data_hashes};
use super::umf_header::{UMF_SIZES, UmfHeader};
use super::{handle_data, row::RealCall};
use crate::raw::processes::process;

/// The value of a variable that the callee has not written to; no valid address or size.
const UNTOUCHED: usize = 0x5a5a_5a5a_5a5a_5a5a;

/// Variables that replace the caller's during a call. The addresses of the caller's are stored elsewhere: the callee
/// can write to this structure, so the compiler must keep it in memory.
struct Variables {
    pointer: usize,
    data: usize,
    data_size: usize,
    object: usize,
}

/// Makes a call with out-parameters of urscope's, copies its answers to the caller, and returns its result with the
/// recorded values, if there are any.
#[inline(always)]
pub fn call(effect: Effect, of: &(impl RealCall + ?Sized)) -> (ResultCode, Option<Values>) {
    let arguments = of.arguments();
    if !arguments.have_answers() && effect.opens().is_none() {
        return (of.make(), None);
    }
    let mut room = MaybeUninit::uninit();
    let opened = if effect.opens().is_some() { copy(arguments, &mut room) } else { None };
    let mut variables = Variables::untouched();
    let result = of.make_redirected(&variables.redirection(&arguments.out, opened));
    let answers = variables.carry_over(&arguments.out);
    if !result.is_success() {
        return (result, None);
    }
    let overwritten = opened.and_then(|copy| overwritten(arguments, copy));
    // SAFETY: `size` bytes of the buffer, which is live, are initialized.
    let extent = || opened.and_then(|copy| unsafe { extent_at(copy.address, copy.size) });
    // SAFETY: the function was called (`RealCall`) and succeeded, and these are its answers.
    let values = unsafe { completed(arguments, answers, extent) };
    (result, Some(Values { changed: overwritten, ..values }))
}

/// The caller's out-parameters of an observed call.
#[derive(Clone, Copy, Debug)]
pub struct ObservedOutParams {
    arguments: Arguments,
    /// The number of bytes that an open maps.
    extent: Option<u64>,
}

impl ObservedOutParams {
    /// Those of a call that begins.
    pub fn new(arguments: Arguments) -> Self {
        let extent = |(data, size)| {
            // SAFETY: so many bytes.
            handle_data::read(data, size, |bytes| unsafe { extent_at(bytes.as_ptr().expose_provenance(), size) })
        };
        let opened = arguments.data().filter(|_| arguments.function().effect().opens().is_some());
        let extent = opened.and_then(extent).flatten();
        Self { arguments, extent }
    }

    /// The arguments of the call.
    pub fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// The recorded answers, which are read from the caller's variables. A success without an answer is detected only
    /// if the variable was zero before.
    ///
    /// # Safety
    ///
    /// The call has just returned this result, and its caller's variables are still there.
    pub unsafe fn read(&self, result: ResultCode) -> Values {
        let Self { arguments, extent } = self;
        let out = &arguments.out;
        if !result.is_success() {
            return Values::NONE;
        }
        let answer = |variable: usize| {
            let variable = Some(variable).filter(|variable| *variable != 0)?;
            // SAFETY: the call succeeded, so the caller's variable is valid: the callee may have written a word there.
            let answer = unsafe { std::ptr::with_exposed_provenance::<u64>(variable).read_unaligned() };
            Some(answer).filter(|answer| *answer != 0)
        };
        let [pointer, data, data_size, object] = [out.pointer, out.data, out.data_size, out.object].map(answer);
        let answers = Values { pointer, data, data_size, object, ..Values::NONE };
        // SAFETY: the call succeeded, and these are its answers.
        unsafe { completed(arguments, answers, || *extent) }
    }
}

/// A copy of the handle data that a call opens, into which the callee may write.
#[derive(Clone, Copy)]
struct DataCopy {
    address: usize,
    size: usize,
}

/// A copy of the handle data that a call opens. Data that is longer than any adapter's, or shorter than its size says,
/// is passed on unchanged, and refused.
#[inline(always)]
fn copy(arguments: &Arguments, room: &mut MaybeUninit<[u8; handle_data::SIZE_LIMIT]>) -> Option<DataCopy> {
    let (data, size) = arguments.data()?;
    let to = room.as_mut_ptr().cast::<u8>();
    // SAFETY: the buffer is large enough, and does not overlap the caller's memory.
    let copy = |bytes: &[u8]| unsafe { bytes.as_ptr().copy_to_nonoverlapping(to, bytes.len()) };
    handle_data::read(data, size, copy).map(|()| DataCopy { address: to.expose_provenance(), size })
}

/// The first byte of the copy that the callee has changed: without urscope, the caller's would have changed.
#[inline(always)]
fn overwritten(arguments: &Arguments, copy: DataCopy) -> Option<u64> {
    let DataCopy { address, size } = copy;
    let (data, _) = arguments.data()?;
    // SAFETY: the copy, which is live, has `size` bytes.
    let copy = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), size) };
    let first = |bytes: &[u8]| {
        if bytes == copy { None } else { bytes.iter().zip(copy).position(|(caller, callee)| caller != callee) }
    };
    handle_data::read(data, size, first).flatten().map(|first| first as u64)
}

/// The number of bytes from the exported address on that the driver maps, from libumf's header in the opened data: the
/// driver's allocation may be larger than the exported one.
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

impl Variables {
    /// Variables that have not been written to.
    #[inline]
    fn untouched() -> Self {
        let [pointer, data, data_size, object] = [UNTOUCHED; 4];
        Self { pointer, data, data_size, object }
    }

    /// The addresses of the variables for the caller's out-parameters, and of the copy of the opened data.
    #[inline]
    fn redirection(&mut self, caller: &OutParams, opened: Option<DataCopy>) -> OutParams {
        // A variable whose address is not taken costs nothing.
        let redirected =
            |callers: usize, redirected: *mut usize| if callers == 0 { 0 } else { redirected.expose_provenance() };
        OutParams {
            pointer: redirected(caller.pointer, &raw mut self.pointer),
            data: redirected(caller.data, &raw mut self.data),
            data_size: redirected(caller.data_size, &raw mut self.data_size),
            object: redirected(caller.object, &raw mut self.object),
            copied_data: opened.map_or(0, |copy| copy.address),
            ..OutParams::NONE
        }
    }

    /// Copies the callee's answers to the caller's variables.
    #[inline(always)]
    fn carry_over(&self, caller: &OutParams) -> Values {
        // SAFETY: the variable is live, and the caller's of the same role takes a word.
        let carry = |redirected, callers| unsafe { carry(redirected, callers) };
        Values {
            pointer: carry(&self.pointer, caller.pointer),
            data: carry(&self.data, caller.data),
            data_size: carry(&self.data_size, caller.data_size),
            object: carry(&self.object, caller.object),
            ..Values::NONE
        }
    }
}

/// Adds to the answers of a call the contents of their memory, and the answers that are not redirected.
///
/// # Safety
///
/// The call with these arguments succeeded, and `values` are its answers.
#[inline(always)]
unsafe fn completed(arguments: &Arguments, mut values: Values, extent: impl FnOnce() -> Option<u64>) -> Values {
    let OutParams { context, handle_bytes, .. } = arguments.out;
    if let (Some(data), Some(size)) = (values.data, values.data_size) {
        // SAFETY: the callee has just made `size` bytes of handle data.
        unsafe {
            if let Some((fingerprint, checksum)) = data_hashes(data as usize, size as usize) {
                (values.fingerprint, values.checksum) = (Some(fingerprint), checksum);
            }
            add_allocation(arguments.values().pointer, &mut values);
        }
    }
    if values.pointer.is_some()
        && let Some(extent) = extent()
    {
        values.size = Some(extent);
    }
    if context != 0 {
        // SAFETY: the call succeeded, so the caller's variable for the handle is valid and filled (`urContextCreate`).
        values.context = Some(unsafe { std::ptr::with_exposed_provenance::<u64>(context).read_unaligned() });
    }
    if handle_bytes != 0 {
        // SAFETY: the call succeeded, so the caller's variable holds a handle (`zeEventCounterBasedGetIpcHandle`).
        unsafe { add_handle_bytes(handle_bytes, &mut values) };
    }
    arguments.add_answers(&mut values);
    values
}

/// Adds a handle of 64 bytes, which its bytes identify.
///
/// # Safety
///
/// `address` is that of such a handle.
pub(crate) unsafe fn add_handle_bytes(address: usize, values: &mut Values) {
    // SAFETY: the caller's promise.
    let hashes = unsafe { data_hashes(address, size_of::<HandleBytes>()) };
    values.fingerprint = hashes.map(|(fingerprint, _)| fingerprint);
    values.data = values.fingerprint;
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
    use std::ffi::c_void;

    use urscope_schema::api::Function;

    use super::super::reader::NoReader;
    use super::super::row::{Call, Callee, Frame};
    use super::*;

    /// Calls a function of four arguments in the place of `function`.
    fn called(function: Function, words: [usize; 6], real: *mut c_void) -> (ResultCode, Option<Values>) {
        // SAFETY: the tests pass addresses of live variables to functions that take them.
        unsafe {
            let frame = Frame::new(words.as_ptr().cast(), words.as_ptr().cast());
            call(function.effect(), &Call::new(function, &NoReader, frame, Callee::Function(real)))
        }
    }

    #[test]
    fn what_the_callee_wrote_reaches_the_caller() {
        unsafe extern "C-unwind" fn real(_: usize, _: usize, pool: *mut usize) -> ResultCode {
            // SAFETY: a variable of the caller.
            unsafe { pool.write(7) };
            ResultCode::SUCCESS
        }
        let mut variable = 1_usize;
        let words = [1, 0, (&raw mut variable).expose_provenance(), 0, 0, 0];
        let made = called(Function::urUSMPoolCreate, words, real as *mut c_void);
        assert_eq!(made, (ResultCode::SUCCESS, Some(Values { object: Some(7), ..Values::NONE })));
        assert_eq!(variable, 7);
    }

    #[test]
    fn a_success_without_an_answer_leaves_the_caller_alone_and_is_no_answer() {
        extern "C-unwind" fn real(_: usize, _: usize, _: usize, _: usize) -> ResultCode {
            ResultCode::SUCCESS
        }
        let mut data = 1_usize;
        let mut size = 2_usize;
        let words = [1, 8, (&raw mut data).expose_provenance(), (&raw mut size).expose_provenance(), 0, 0];
        let made = called(Function::urIPCGetMemHandleExp, words, real as *mut c_void);
        assert_eq!(made, (ResultCode::SUCCESS, Some(Values::NONE)));
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
