//! The handle data that this process got and has not put: the bytes, and the resources that they need.
//!
//! A put identifies them by the pointer, as specified. A put of an unknown pointer, or of data of another kind,
//! changes nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use urscope_schema::api::ResultCode;
use urscope_schema::api::role::{OutData, OutDataSize};

use super::fetch::Process;
use super::handle_data::{self, HandleData};
use crate::backend::Family;
use crate::raw::{args::Arg, memory::hash_map::HashMap, processes::fork_reset::ForkReset, threads::mutex::Mutex};

/// The handle data of one get. `K` is the resource that a put releases; a forked child has none for the copies of its
/// parent's data.
struct IssuedHandle<K> {
    serial: u64,
    bytes: Box<[u8; handle_data::SIZE]>,
    resource: Option<K>,
}

/// All handle data of one kind of object.
pub(crate) struct IssuedHandles<K: 'static> {
    kind: Family,
    data: ForkReset<Mutex<HashMap<usize, IssuedHandle<K>>>>,
}

/// The part of [`HandleData`] that differs between the gets of a process.
pub(crate) struct Contents {
    pub(crate) size: u64,
    pub(crate) offset: u64,
    pub(crate) descriptor: i32,
    pub(crate) native: [u8; handle_data::NATIVE_SIZE],
}

impl<K: Send> IssuedHandles<K> {
    /// Without any data.
    pub(crate) const fn new(kind: Family) -> Self {
        Self { kind, data: ForkReset::new(|| Mutex::new(HashMap::default())) }
    }

    /// Answers a get. The pointer for the data or for their size may be null, but not both; without the former, nothing
    /// is made.
    pub(crate) fn answer_get(
        &self,
        out_data: Arg<OutData>,
        out_size: Arg<OutDataSize>,
        make: impl FnOnce() -> Result<(Contents, K), ResultCode>,
    ) -> Result<(), ResultCode> {
        let no_data = out_data.null().is_some();
        let no_size = out_size.null().is_some();
        if no_data && no_size {
            return Err(ResultCode::INVALID_NULL_POINTER);
        }
        if !no_data {
            let (contents, resource) = make()?;
            out_data.write(self.issue(&contents, resource));
        }
        out_size.write(handle_data::SIZE);
        Ok(())
    }

    /// Makes handle data, and returns their address.
    pub(crate) fn issue(&self, contents: &Contents, resource: K) -> usize {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let Process { pid, started } = Process::this();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed) + 1;
        let &Contents { size, offset, descriptor, native } = contents;
        let handle_data = HandleData { kind: self.kind, pid, started, serial, size, offset, descriptor, native };
        let bytes = Box::new(handle_data.encode());
        let address = bytes.as_ptr().expose_provenance();
        self.data.get().lock().insert(address, IssuedHandle { serial, bytes, resource: Some(resource) });
        address
    }

    /// Frees the data at an address, and returns their resource; `None` for a forked child's copy of its parent's data.
    pub(crate) fn take(&self, data: usize) -> Result<Option<K>, ResultCode> {
        let taken = self.data.get().lock().remove(&data).ok_or(ResultCode::INVALID_ARGUMENT)?;
        drop(taken.bytes);
        Ok(taken.resource)
    }

    /// Calls `of` with the resource of the data with a serial number; `None` if they have been put.
    pub(crate) fn find<R>(&self, serial: u64, of: impl FnOnce(&K) -> R) -> Option<R> {
        self.data.get().lock().values().find(|issue| issue.serial == serial)?.resource.as_ref().map(of)
    }

    /// Replaces the data in a forked child by copies without resources, which the child may put. If a thread was
    /// changing the data, the child has none.
    pub(crate) fn after_fork_in_child(&self) {
        let parents = self.data.get().try_lock().map(|mut data| std::mem::take(&mut *data)).unwrap_or_default();
        let copies = parents.into_iter().map(|(address, IssuedHandle { serial, bytes, resource })| {
            std::mem::forget(resource);
            (address, IssuedHandle { serial, bytes, resource: None })
        });
        self.data.reset(Mutex::new(copies.collect()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static DATA: IssuedHandles<u32> = IssuedHandles::new(Family::Memory);

    const CONTENTS: Contents = Contents { size: 8, offset: 0, descriptor: 3, native: [7; handle_data::NATIVE_SIZE] };

    /// The address and the bytes of the data that a get answers with, if it is asked for them, and their size.
    fn answer(
        make: impl FnOnce() -> Result<(Contents, u32), ResultCode>,
        asks: [bool; 2],
    ) -> Result<(usize, Vec<u8>, usize), ResultCode> {
        let mut answers = [0_usize; 2];
        let places = answers.each_mut().map(|answer| (&raw mut *answer).expose_provenance());
        let place = |at: usize| if asks[at] { places[at] } else { 0 };
        // SAFETY: addresses of live variables, or null.
        let (data, size) = unsafe { (Arg::new(OutData(place(0))), Arg::new(OutDataSize(place(1)))) };
        DATA.answer_get(data, size, make)?;
        let [address, size] = std::hint::black_box(&mut answers).to_owned();
        // SAFETY: the address of the data, which is not put yet, or null if it was not asked for.
        let bytes = unsafe { std::ptr::with_exposed_provenance::<[u8; handle_data::SIZE]>(address).as_ref() };
        let bytes = bytes.map_or(Vec::new(), |bytes| bytes.to_vec());
        Ok((address, bytes, size))
    }

    #[test]
    fn data_can_be_put_once_and_by_their_own_pointer_only() {
        let (data, bytes, size) = answer(|| Ok((CONTENTS, 5)), [true; 2]).unwrap();
        assert_eq!(size, handle_data::SIZE);
        let decoded = HandleData::decode(&bytes).unwrap();
        assert_eq!((decoded.pid, decoded.kind, decoded.native), (std::process::id(), Family::Memory, CONTENTS.native));
        assert_eq!(DATA.take((&raw const size).addr()), Err(ResultCode::INVALID_ARGUMENT));
        assert_eq!(DATA.take(data), Ok(Some(5)));
        assert_eq!(DATA.take(data), Err(ResultCode::INVALID_ARGUMENT));
    }

    #[test]
    fn a_question_for_the_size_makes_nothing() {
        let nothing = || unreachable!("nothing is to be made");
        assert_eq!(answer(nothing, [false, true]), Ok((0, Vec::new(), handle_data::SIZE)));
        assert_eq!(answer(nothing, [false; 2]), Err(ResultCode::INVALID_NULL_POINTER));
    }

    #[test]
    fn no_two_gets_give_the_same_data() {
        let [(one, bytes, _), (other, other_bytes, _)] =
            [1, 2].map(|resource| answer(|| Ok((CONTENTS, resource)), [true; 2]).unwrap());
        assert_ne!(bytes, other_bytes);
        assert_eq!((DATA.take(one), DATA.take(other)), (Ok(Some(1)), Ok(Some(2))));
    }
}
