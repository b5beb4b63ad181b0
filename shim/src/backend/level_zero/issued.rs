//! The handle data that this process got and has not put: the bytes, and what keeps them good.
//!
//! A put is known by the pointer, as the specification wants it. One of an unknown pointer, or of data of another kind,
//! must change nothing.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use urscope_schema::api::UrResult;

use super::{
    caller,
    fetch::Process,
    handle_data::{self, HandleData, Kind},
};
use crate::raw::fork_reset::ForkReset;

/// Handle data of one get; `K` is what a put gives back.
struct Data<K> {
    serial: u64,
    bytes: Box<[u8; handle_data::SIZE]>,
    keeper: K,
}

/// All handle data of one kind of objects.
pub(crate) struct Issued<K: 'static> {
    kind: Kind,
    data: ForkReset<Mutex<HashMap<usize, Data<K>>>>,
}

/// What a get says of its object.
pub(crate) struct Contents {
    /// See [`HandleData`].
    pub(crate) size: u64,
    /// See [`HandleData`].
    pub(crate) offset: u64,
    /// See [`HandleData`].
    pub(crate) descriptor: i32,
    /// See [`HandleData`].
    pub(crate) native: [u8; handle_data::NATIVE_SIZE],
}

impl<K: Send> Issued<K> {
    /// No data yet.
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, data: ForkReset::new(|| Mutex::new(HashMap::new())) }
    }

    /// Answers a get. The caller may leave out the data or their size, not both; without the data, nothing is made.
    pub(crate) fn give(
        &self,
        out_data: usize,
        out_size: usize,
        make: impl FnOnce() -> Result<(Contents, K), UrResult>,
    ) -> Result<(), UrResult> {
        if out_data == 0 && out_size == 0 {
            return Err(UrResult::INVALID_NULL_POINTER);
        }
        if out_data != 0 {
            let (said, keeper) = make()?;
            caller::give(out_data, self.issue(&said, keeper));
        }
        caller::give(out_size, handle_data::SIZE);
        Ok(())
    }

    fn issue(&self, said: &Contents, keeper: K) -> usize {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let Process { pid, started } = Process::this();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed) + 1;
        let &Contents { size, offset, descriptor, native } = said;
        let sealed = HandleData { kind: self.kind, pid, started, serial, size, offset, descriptor, native };
        let bytes = Box::new(sealed.encode());
        let address = bytes.as_ptr().expose_provenance();
        self.data.get().lock().insert(address, Data { serial, bytes, keeper });
        address
    }

    /// Takes back what a get gave, and frees the bytes.
    pub(crate) fn take(&self, data: usize) -> Result<K, UrResult> {
        let taken = self.data.get().lock().remove(&data).ok_or(UrResult::INVALID_ARGUMENT)?;
        drop(taken.bytes);
        Ok(taken.keeper)
    }

    /// Looks at what keeps the data of that serial good, unless they have been put.
    pub(crate) fn find<R>(&self, serial: u64, look: impl FnOnce(&K) -> R) -> Option<R> {
        self.data.get().lock().values().find(|data| data.serial == serial).map(|data| look(&data.keeper))
    }

    /// In a forked child: its parent's data are not its own to put.
    pub(crate) fn forget(&self) {
        self.data.reset(Mutex::new(HashMap::new()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static DATA: Issued<u32> = Issued::new(Kind::Memory);

    const SAID: Contents = Contents { size: 8, offset: 0, descriptor: 3, native: [7; handle_data::NATIVE_SIZE] };

    #[test]
    fn data_can_be_put_once_and_by_their_own_pointer_only() {
        let (mut data, mut size) = (0_usize, 0_usize);
        let places = ((&raw mut data).expose_provenance(), (&raw mut size).expose_provenance());
        DATA.give(places.0, places.1, || Ok((SAID, 5))).unwrap();
        assert_eq!(size, handle_data::SIZE);
        let sealed = HandleData::decode(&caller::copy(data, size).unwrap()).unwrap();
        assert_eq!((sealed.pid, sealed.kind, sealed.native), (std::process::id(), Kind::Memory, SAID.native));
        assert_eq!(DATA.take(data + 1), Err(UrResult::INVALID_ARGUMENT));
        assert_eq!(DATA.take(data), Ok(5));
        assert_eq!(DATA.take(data), Err(UrResult::INVALID_ARGUMENT));
    }

    #[test]
    fn a_question_for_the_size_makes_nothing() {
        let mut size = 0_usize;
        let place = (&raw mut size).expose_provenance();
        DATA.give(0, place, || unreachable!("nothing is to be made")).unwrap();
        assert_eq!(size, handle_data::SIZE);
        assert_eq!(DATA.give(0, 0, || Ok((SAID, 0))), Err(UrResult::INVALID_NULL_POINTER));
    }

    #[test]
    fn no_two_gets_give_the_same_data() {
        let [one, other] = [1, 2].map(|keeper| DATA.issue(&SAID, keeper));
        assert_ne!(caller::copy(one, handle_data::SIZE), caller::copy(other, handle_data::SIZE));
        assert_eq!((DATA.take(one), DATA.take(other)), (Ok(1), Ok(2)));
    }
}
