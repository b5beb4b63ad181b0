//! The arguments of an observed call, as XPTI shows them: a structure of pointers to the arguments, in the order of C
//! (`ur_…_params_t` in `ur_api.h`). They are only read.

use urscope_schema::api::role::{Role, Unseen};

use super::{AdapterHandle, Arg};

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

    /// The argument at a place, from 0 on.
    pub fn get<R: Role>(self, place: usize) -> Arg<R> {
        let Self(address) = self;
        let mut word = [0_u8; size_of::<u64>()];
        let bytes = R::BYTES.min(word.len());
        // SAFETY: the promise made to `new`: there is a pointer to an argument of this size.
        unsafe {
            let argument = std::ptr::with_exposed_provenance::<usize>(address).add(place).read_unaligned();
            std::ptr::with_exposed_provenance::<u8>(argument).copy_to_nonoverlapping(word.as_mut_ptr(), bytes);
        }
        Arg(R::of_word(u64::from_le_bytes(word)))
    }

    /// The handle by which the loader dispatches the call: the first argument, or the first object of a list whose
    /// length is the first argument. `First` is the role of the first argument.
    pub fn dispatched_by<First: Role>(self) -> Option<AdapterHandle> {
        let handle = if First::BYTES == size_of::<usize>() {
            self.get::<Unseen>(0).0.0
        } else {
            let (count, list) = (self.get::<First>(0), self.get::<Unseen>(1).0.0);
            if count.null().is_some() || list == 0 {
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
    use urscope_schema::api::role::{Blocking, Context, Count, Devices, Size};

    use super::*;

    #[test]
    fn arguments_are_read_as_wide_as_they_are() {
        let (context, blocking) = (7_usize, [1_u8, 0xff, 0xff, 0xff]);
        let places = [(&raw const context).addr(), blocking.as_ptr().addr()];
        // SAFETY: a structure with two arguments.
        let parameters = unsafe { Parameters::new((&raw const places).expose_provenance()) }.unwrap();
        let _ = ((&raw const context).expose_provenance(), blocking.as_ptr().expose_provenance());
        assert_eq!(parameters.get::<Context>(0).get(), Context(7));
        assert_eq!(parameters.get::<Blocking>(1).get(), Blocking(1));
        assert_eq!(parameters.get::<Size>(0).get(), Size(7));
    }

    #[test]
    fn a_call_is_dispatched_by_its_first_handle() {
        let object = [0x10_usize];
        let handle = object.as_ptr().expose_provenance();
        let list = [handle];
        let (list, none, count) = (list.as_ptr().expose_provenance(), 0_usize, 1_u32);
        let handle_of = |places: [usize; 2], counted: bool| {
            // SAFETY: a structure with two arguments.
            let parameters = unsafe { Parameters::new((&raw const places).expose_provenance()) }.unwrap();
            let handle =
                if counted { parameters.dispatched_by::<Count>() } else { parameters.dispatched_by::<Devices>() };
            handle.map(|handle| handle.dispatch_table().addr())
        };
        let place = |word: &usize| std::ptr::from_ref(word).expose_provenance();
        let count = (&raw const count).expose_provenance();
        assert_eq!(handle_of([place(&handle), 0], false), Some(0x10));
        assert_eq!(handle_of([count, place(&list)], true), Some(0x10));
        assert_eq!(handle_of([count, place(&none)], true), None);
        assert_eq!(handle_of([place(&none), 0], false), None);
        // SAFETY: null.
        assert!(unsafe { Parameters::new(0) }.is_none());
    }
}
