//! How urscope's backend reads its arguments, writes its answers, and calls the adapter.
//!
//! Inputs are copied once, and answers are written once.

use urscope_schema::api::ResultCode;
use urscope_schema::api::role::{
    DataSize, Desc, Event, InOutEvent, OpenedData, OutBool, OutContext, OutData, OutDataSize, OutObject, OutPointer,
    OutValue, OutValueSize, PhysicalMem, Pointer, Role, ValueSize,
};

use super::{Arg, handle_data, inputs::FLAGS};

impl Arg<OpenedData> {
    /// A copy of the caller's handle data; `None` for a null pointer, or if the data is longer than any backend's, or
    /// shorter than its size says.
    pub fn copy(self, size: Arg<DataSize>) -> Option<Vec<u8>> {
        handle_data::read(self.0.0, size.0.0, <[u8]>::to_vec)
    }
}

impl Arg<Desc> {
    /// The flags of the caller's description; `None` for a null pointer.
    pub fn flags(self) -> Option<u32> {
        let desc = Some(self.0.0).filter(|desc| *desc != 0)?;
        // SAFETY: the caller passes a description there (`ur_exp_event_desc_t`, `ur_physical_mem_properties_t`).
        Some(unsafe { std::ptr::with_exposed_provenance::<u32>(desc + FLAGS).read_unaligned() })
    }
}

impl Arg<InOutEvent> {
    /// The value of the caller's variable; `None` for a null pointer. In older releases it is an out-parameter only, so
    /// it may be uninitialized: it must only be compared.
    pub fn read(self) -> Option<usize> {
        let variable = Some(self.0.0).filter(|variable| *variable != 0)?;
        // SAFETY: the caller passes the address of a variable for an event.
        Some(unsafe { std::ptr::with_exposed_provenance::<usize>(variable).read_unaligned() })
    }
}

impl Arg<OutContext> {
    /// The value of the caller's variable after a successful call; `None` for a null pointer, or if nothing was
    /// written.
    pub fn read_after(self) -> Option<usize> {
        let variable = Some(self.0.0).filter(|variable| *variable != 0)?;
        // SAFETY: the caller passes the address of a variable for a context, and the adapter has just written to it.
        let word = unsafe { std::ptr::with_exposed_provenance::<usize>(variable).read_unaligned() };
        Some(word).filter(|word| *word != 0)
    }
}

macro_rules! words {
    ($($role:ident)*) => {
        $(impl Arg<$role> {
            /// Writes to the caller's variable, unless the pointer is null.
            pub fn write(self, word: usize) {
                if self.0.0 != 0 {
                    // SAFETY: the caller passes the address of a variable of this size (an `[out]` parameter of the
                    // function).
                    unsafe { std::ptr::with_exposed_provenance_mut::<usize>(self.0.0).write_unaligned(word) };
                }
            }
        })*
    };
}

words!(OutPointer OutData OutDataSize OutObject OutValueSize);

/// The out-parameters of a query for a property: `propSize`, `pPropValue` and `pPropSizeRet`.
#[derive(Clone, Copy)]
pub struct Query<V> {
    /// The size of the buffer in bytes.
    pub size: Arg<ValueSize>,
    /// The buffer for the answer, or null.
    pub value: Arg<V>,
    /// The variable for the size of the answer in bytes, or null.
    pub size_ret: Arg<OutValueSize>,
}

/// A role of a buffer for an answer.
pub trait ValueRole: Role {
    /// Its address; 0 for null.
    fn address(self) -> usize;
}

impl ValueRole for OutValue {
    fn address(self) -> usize {
        self.0
    }
}

impl ValueRole for OutBool {
    fn address(self) -> usize {
        self.0
    }
}

impl<V: ValueRole> Query<V> {
    /// Answers the query, as all `ur…GetInfo` do. `INVALID_SIZE` if the buffer is too small.
    pub fn answer(self, bytes: &[u8]) -> Result<(), ResultCode> {
        let value = self.value.0.address();
        if value != 0 {
            if self.size.0.0 < bytes.len() {
                return Err(ResultCode::INVALID_SIZE);
            }
            let room = std::ptr::with_exposed_provenance_mut::<u8>(value);
            // SAFETY: the caller's buffer has `propSize` bytes, no fewer than these.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len()) };
        }
        self.size_ret.write(bytes.len());
        Ok(())
    }
}

/// The role of an answer of an adapter.
pub trait Received: Role {
    /// The role of the out-parameter.
    type Out: Role;
}

impl Received for Event {
    type Out = OutObject;
}

impl Received for PhysicalMem {
    type Out = OutObject;
}

impl Received for Pointer {
    type Out = OutPointer;
}

/// Calls an adapter with an out-parameter; `None` if it reports success and writes no answer.
pub fn receive<T: Received>(call: impl FnOnce(Arg<T::Out>) -> ResultCode) -> Result<Option<Arg<T>>, ResultCode> {
    receive_from(call)
}

/// Calls an adapter with an out-parameter for the event of a command; `None` as for [`receive`].
pub fn receive_event(call: impl FnOnce(Arg<InOutEvent>) -> ResultCode) -> Result<Option<Arg<Event>>, ResultCode> {
    receive_from(call)
}

fn receive_from<T: Role, Out: Role>(call: impl FnOnce(Arg<Out>) -> ResultCode) -> Result<Option<Arg<T>>, ResultCode> {
    let mut word = 0_u64;
    let result = call(Arg(Out::of_word((&raw mut word).expose_provenance() as u64)));
    // SAFETY: a live variable, read as volatile because the adapter wrote to it through its address.
    let word = unsafe { (&raw const word).read_volatile() };
    if !result.is_success() {
        return Err(result);
    }
    Ok(Some(word).filter(|word| *word != 0).map(|word| Arg(T::of_word(word))))
}

/// Queries an adapter for a `ur_bool_t`; false if it has no answer.
pub fn receive_bool(call: impl FnOnce(Query<OutBool>) -> ResultCode) -> bool {
    let mut answer = 0_u8;
    let value = Arg(OutBool((&raw mut answer).expose_provenance()));
    let result = call(Query { size: Arg(ValueSize(size_of_val(&answer))), value, size_ret: Arg(OutValueSize(0)) });
    // SAFETY: a live variable, read as volatile because the adapter wrote to it through its address.
    let answer = unsafe { (&raw const answer).read_volatile() };
    result.is_success() && answer != 0
}

/// Calls an adapter with a copy of handle data. The adapter may write into them (Level Zero v1 does).
pub fn with_data<T>(bytes: &mut [u8], call: impl FnOnce(Arg<OpenedData>, Arg<DataSize>) -> T) -> T {
    let size = DataSize(bytes.len());
    call(Arg(OpenedData(bytes.as_mut_ptr().expose_provenance())), Arg(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_without_an_answer_is_told_from_an_answer() {
        let receive_word = receive::<Event>(|out| {
            out.write(7);
            ResultCode::SUCCESS
        });
        assert_eq!(receive_word.map(|event| event.map(Arg::get)), Ok(Some(Event(7))));
        assert_eq!(receive::<Pointer>(|_| ResultCode::SUCCESS), Ok(None));
        assert_eq!(receive::<Pointer>(|_| ResultCode::INVALID_VALUE), Err(ResultCode::INVALID_VALUE));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_not_written() {
        let mut room = [9_u8; 4];
        let value = Arg(OutValue(room.as_mut_ptr().expose_provenance()));
        let query = |size| Query { size: Arg(ValueSize(size)), value, size_ret: Arg(OutValueSize(0)) };
        assert_eq!(query(1).answer(&[1, 2]), Err(ResultCode::INVALID_SIZE));
        assert_eq!(room, [9; 4]);
        assert_eq!(query(4).answer(&[1, 2]), Ok(()));
        assert_eq!(room, [1, 2, 9, 9]);
    }

    #[test]
    fn no_data_longer_than_anybodys_is_copied() {
        let mut bytes = [1_u8, 2, 3];
        let copy = |data: Arg<OpenedData>, size| data.copy(size);
        assert_eq!(with_data(&mut bytes, copy), Some(vec![1, 2, 3]));
        assert_eq!(with_data(&mut bytes, |data, _| data.copy(Arg(DataSize(handle_data::SIZE_LIMIT + 1)))), None);
        assert_eq!(Arg(OpenedData(0)).copy(Arg(DataSize(1))), None);
    }
}
