//! The out-parameters of a call: where the callee leaves its answers, and how the caller gets them.

use urscope_schema::{
    api::{
        UrResult,
        role::{OutParams, Sources},
    },
    call::Values,
    handle::fingerprint,
};

/// What an untouched place holds; no address and no size that an adapter would give.
const UNTOUCHED: usize = 0x5a5a_5a5a_5a5a_5a5a;

/// Where the flags of a description stand: behind a 4-byte `stype`, 4 bytes of nothing and an 8-byte `pNext`.
const FLAGS: usize = 16;

/// Handle data of memory has 108 or 120 bytes, of events 64, of physical memory 16. A caller may say any size, and only
/// the adapter knows which are right: above this one nothing is read.
const LARGEST_DATA: usize = 256;

/// Out-parameters of ours that stand in for the caller's while a call is under way.
///
/// An adapter may report success and leave an answer out (Level Zero v1 does, when the driver refuses): the caller's
/// own variable would then show what stood in it before.
pub struct RedirectedOutParams {
    caller: OutParams,
    pointer: usize,
    data: usize,
    data_size: usize,
    object: usize,
}

impl RedirectedOutParams {
    /// Makes places for a call whose caller expects its answers at `caller`.
    #[inline]
    pub fn new(caller: OutParams) -> Self {
        Self { caller, pointer: UNTOUCHED, data: UNTOUCHED, data_size: UNTOUCHED, object: UNTOUCHED }
    }

    /// The addresses to pass on. They are good until [`Self::carry_over`].
    #[inline]
    pub fn addresses(&mut self) -> OutParams {
        OutParams {
            pointer: (&raw mut self.pointer).expose_provenance(),
            data: (&raw mut self.data).expose_provenance(),
            data_size: (&raw mut self.data_size).expose_provenance(),
            object: (&raw mut self.object).expose_provenance(),
            context: 0,
            value: 0,
        }
    }

    /// Gives the caller what the callee left, and says it.
    #[inline]
    pub fn carry_over(&mut self, result: UrResult) -> Values {
        let pointer = carry(&self.pointer, self.caller.pointer);
        let data = carry(&self.data, self.caller.data);
        let data_size = carry(&self.data_size, self.caller.data_size);
        let object = carry(&self.object, self.caller.object);
        let mut values = Values { pointer, data, data_size, object, ..Values::NONE };
        if !result.is_success() {
            return Values::NONE;
        }
        take_fingerprint(&mut values);
        if self.caller.context != 0 {
            // SAFETY: the call succeeded, so the caller's place for the handle is valid and filled (`urContextCreate`).
            values.context =
                Some(unsafe { std::ptr::with_exposed_provenance::<u64>(self.caller.context).read_unaligned() });
        }
        if self.caller.value != 0 {
            // SAFETY: the question was answered, so the caller's place holds a `ur_bool_t`, one byte (`urDeviceGetInfo`).
            values.value =
                Some(u64::from(unsafe { std::ptr::with_exposed_provenance::<u8>(self.caller.value).read() }));
        }
        values
    }
}

#[inline]
fn carry(ours: &usize, callers: usize) -> Option<u64> {
    // SAFETY: `ours` is a live variable; it is read as volatile because the callee wrote to it through its address.
    let answer = unsafe { (&raw const *ours).read_volatile() };
    if callers == 0 || answer == UNTOUCHED {
        return None;
    }
    // SAFETY: the callee answered, and would have written this word to the caller's place.
    unsafe { std::ptr::with_exposed_provenance_mut::<usize>(callers).write_unaligned(answer) };
    Some(answer as u64)
}

/// Adds the flags of the description that a caller hands in, and the first of its devices, if it does.
#[inline]
pub fn take_described(sources: &Sources, values: &mut Values) {
    let word = |address: usize| {
        // SAFETY: the caller says that a description stands there, to the adapter, which is about to read it. All kinds have
        // their flags behind `stype` and `pNext` (`ur_exp_event_desc_t`, `ur_physical_mem_properties_t`,
        // `ur_context_properties_t`), and `ur_usm_desc_t` has its `hints` there.
        Some(u64::from(unsafe { std::ptr::with_exposed_provenance::<u32>(address).read_unaligned() }))
    };
    if sources.desc != 0 {
        values.flags = word(sources.desc + FLAGS);
    }
    if sources.usm_desc != 0 {
        // Most descriptions of USM ask for nothing, and every allocation of a SYCL program has one.
        values.flags = word(sources.usm_desc + FLAGS).filter(|hints| *hints != 0);
    }
    if sources.devices != 0 && sources.count > 0 {
        let first = std::ptr::with_exposed_provenance::<u64>(sources.devices);
        // SAFETY: the caller says that so many handles stand there, to the adapter, which is about to read them.
        values.device = Some(unsafe { first.read_unaligned() });
    }
}

/// The first of the caller's events that `wanted` accepts, and `None` if there is none.
#[inline]
pub fn first_event(sources: &Sources, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    if sources.events == 0 {
        return Some(sources.event).filter(|event| *event != 0 && wanted(*event));
    }
    let list = std::ptr::with_exposed_provenance::<usize>(sources.events);
    // SAFETY: the caller says that so many handles stand there, to the adapter, which is about to read them.
    (0..sources.count as usize).map(|at| unsafe { list.add(at).read_unaligned() }).find(|event| wanted(*event))
}

/// Adds the fingerprint of the handle data that the values name, if they say where it is and how long.
///
/// Of data that is handed in it is taken before the call, because an adapter may write into it (Level Zero v1 does).
#[inline]
pub fn take_fingerprint(values: &mut Values) {
    if let (Some(data), Some(size)) = (values.data, values.data_size) {
        values.fingerprint = data_fingerprint(data as usize, size as usize);
    }
}

/// Adds the allocation of the driver that handle data exports, which was got for `pointer`: its address and its size.
///
/// The Level Zero adapters have it in the header of libumf: at 8 its address, at 16 the process, at 24 its size, at 32 how far
/// the pointer lies behind that address. What is not that header does not add up.
#[inline]
pub fn take_block(pointer: Option<u64>, values: &mut Values) {
    const HEADER: usize = 40;
    let (Some(pointer), Some(data), Some(size), Some(_)) = (pointer, values.data, values.data_size, values.fingerprint)
    else {
        return;
    };
    if size as usize <= HEADER {
        return;
    }
    let word = |at: usize| {
        // SAFETY: the adapter has just made these bytes, of which the fingerprint was taken; `at` lies in the first of them.
        unsafe { std::ptr::with_exposed_provenance::<u64>(data as usize + at).read_unaligned() }
    };
    let (base, process, size, offset) = (word(8), word(16) as u32, word(24), word(32));
    if base.checked_add(offset) == Some(pointer) && offset < size && process == std::process::id() {
        (values.pointer, values.size) = (Some(base), Some(size));
    }
}

/// The fingerprint of handle data in the application's memory; nothing for a null pointer or a size that cannot be right.
#[inline]
fn data_fingerprint(address: usize, size: usize) -> Option<u64> {
    if address == 0 || size == 0 || size > LARGEST_DATA {
        return None;
    }
    // SAFETY: the caller says that `size` bytes of handle data stand at `address`, either to the adapter, which is about to
    // read them, or because the adapter has just made them.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), size) };
    Some(fingerprint(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_callee_wrote_reaches_the_caller() {
        let mut variable = 1_usize;
        let caller = OutParams { pointer: (&raw mut variable).expose_provenance(), ..OutParams::default() };
        let mut answers = RedirectedOutParams::new(caller);
        let to = answers.addresses().pointer;
        // SAFETY: a place that was just made for this.
        unsafe { std::ptr::with_exposed_provenance_mut::<usize>(to).write(7) };
        assert_eq!(answers.carry_over(UrResult::SUCCESS).pointer, Some(7));
        assert_eq!(variable, 7);
    }

    #[test]
    fn a_success_without_an_answer_leaves_the_caller_alone_and_is_no_answer() {
        let (mut data, mut size) = (1_usize, 2_usize);
        let caller = OutParams {
            data: (&raw mut data).expose_provenance(),
            data_size: (&raw mut size).expose_provenance(),
            ..OutParams::default()
        };
        let mut answers = RedirectedOutParams::new(caller);
        answers.addresses();
        assert_eq!(answers.carry_over(UrResult::SUCCESS), Values::default());
        assert_eq!((data, size), (1, 2));
    }

    #[test]
    fn a_header_that_does_not_add_up_is_none() {
        let header = |process: u64, offset: u64| [1, 0x1000, process, 0x10000, offset, 7];
        let own = u64::from(std::process::id());
        let took = |words: [u64; 6], pointer: Option<u64>| {
            let data = Some(words.as_ptr().expose_provenance() as u64);
            let mut values = Values { data, data_size: Some(48), ..Values::NONE };
            take_fingerprint(&mut values);
            take_block(pointer, &mut values);
            (values.pointer, values.size)
        };
        assert_eq!(took(header(own, 0x200), Some(0x1200)), (Some(0x1000), Some(0x10000)));
        for (words, pointer) in [
            (header(own, 0x200), None),
            (header(own, 0x200), Some(0x1000)),
            (header(own + 1, 0x200), Some(0x1200)),
            (header(own, 0x20000), Some(0x21000)),
            (header(own, u64::MAX), Some(0xfff)),
        ] {
            assert_eq!(took(words, pointer), (None, None), "{words:?}");
        }
    }

    #[test]
    fn a_size_that_cannot_be_right_is_not_believed() {
        let bytes = [3_u8; 16];
        let address = bytes.as_ptr().expose_provenance();
        assert_eq!(data_fingerprint(address, 16), Some(fingerprint(&bytes)));
        assert_eq!(data_fingerprint(address, usize::MAX), None);
        assert_eq!(data_fingerprint(0, 16), None);
    }
}
