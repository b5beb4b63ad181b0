//! The arguments of an observed call, as XPTI shows them: a structure of pointers to the arguments, in the order of C
//! (`ur_…_params_t` in `ur_api.h`). They are only read.

use urscope_schema::api::Function;

use super::{AdapterHandle, inputs::Arguments, reader::Reader, row::Row};

/// The arguments of an active call.
#[derive(Clone, Copy, Debug)]
pub struct Parameters(usize);

impl Parameters {
    /// The arguments at an address; `None` for null.
    ///
    /// # Safety
    ///
    /// `address` is null or that of the structure of a call, whose arguments are then read with the roles of its row.
    pub unsafe fn new(address: usize) -> Option<Self> {
        Some(Self(address)).filter(|Self(address)| *address != 0)
    }

    /// The arguments of the call, whose structures `reader` reads.
    pub fn arguments(self, function: Function, reader: &'static dyn Reader) -> Arguments {
        let mut arguments = Arguments::none(function, reader);
        for parameter in Row::for_function(function).seen {
            let word = self.word(parameter.index.into(), parameter.bytes.into());
            // SAFETY: an argument of the call. The functions that are observed take no larger ones.
            unsafe { parameter.add(&raw const word, &mut arguments) };
        }
        arguments
    }

    /// The argument at a place, from 0 on, with this size in bytes.
    fn word(self, place: usize, bytes: usize) -> u64 {
        let Self(address) = self;
        let mut word = [0_u8; size_of::<u64>()];
        // SAFETY: the promise made to `new`: there is a pointer to an argument of this size.
        unsafe {
            let argument = std::ptr::with_exposed_provenance::<usize>(address).add(place).read_unaligned();
            let argument = std::ptr::with_exposed_provenance::<u8>(argument);
            argument.copy_to_nonoverlapping(word.as_mut_ptr(), bytes.min(word.len()));
        }
        u64::from_le_bytes(word)
    }

    /// The handle by which the loader dispatches a call of `function`: the first argument, or the first object of a
    /// list whose length is the first argument.
    pub fn dispatched_by(self, function: Function) -> Option<AdapterHandle> {
        let bytes = usize::from(Row::for_function(function).parameters.first()?.bytes);
        let first = self.word(0, bytes) as usize;
        let handle = if bytes == size_of::<usize>() {
            first
        } else {
            let list = self.word(1, size_of::<usize>()) as usize;
            if first == 0 || list == 0 {
                return None;
            }
            // SAFETY: the caller passes a list of handles to the loader, which is about to read the first one.
            unsafe { std::ptr::with_exposed_provenance::<usize>(list).read_unaligned() }
        };
        // SAFETY: the loader dispatches by this handle, so an adapter made it.
        unsafe { AdapterHandle::new(handle) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::NoReader;
    use super::*;

    #[test]
    fn arguments_are_read_as_wide_as_they_are() {
        let queue = 7_usize;
        let blocking = [1_u8, 0xff, 0xff, 0xff];
        let word = 9_usize;
        let address = |word: &usize| std::ptr::from_ref(word).expose_provenance();
        let places = [address(&queue), blocking.as_ptr().expose_provenance(), address(&word), address(&word)];
        let others = [address(&word); 4];
        let places = [places, others].concat();
        // SAFETY: a structure with more arguments than the function has.
        let parameters = unsafe { Parameters::new(places.as_ptr().expose_provenance()) }.unwrap();
        let arguments = parameters.arguments(Function::urEnqueueUSMMemcpy, &NoReader);
        assert_eq!((arguments.inputs().queue(), arguments.values().value), (Some(7), Some(1)));
        assert_eq!(arguments.values().pointer, Some(9));
    }

    #[test]
    fn a_call_is_dispatched_by_its_first_handle() {
        let object = [0x10_usize];
        let handle = object.as_ptr().expose_provenance();
        let list = [handle];
        let list = list.as_ptr().expose_provenance();
        let none = 0_usize;
        let count = 1_u32;
        let handle_of = |places: [usize; 2], function| {
            // SAFETY: a structure with two arguments.
            let parameters = unsafe { Parameters::new((&raw const places).expose_provenance()) }.unwrap();
            parameters.dispatched_by(function).map(|handle| handle.dispatch_table().addr())
        };
        let place = |word: &usize| std::ptr::from_ref(word).expose_provenance();
        let count = (&raw const count).expose_provenance();
        let by_handle = Function::urContextRelease;
        let by_list = Function::urEventWait;
        assert_eq!(handle_of([place(&handle), 0], by_handle), Some(0x10));
        assert_eq!(handle_of([count, place(&list)], by_list), Some(0x10));
        assert_eq!(handle_of([count, place(&none)], by_list), None);
        assert_eq!(handle_of([place(&none), 0], by_handle), None);
        // SAFETY: null.
        assert!(unsafe { Parameters::new(0) }.is_none());
    }
}
