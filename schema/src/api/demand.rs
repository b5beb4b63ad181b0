//! What the header requires of arguments: what must not be null or zero, and which flags are defined.
//!
//! The requirements depend on the role and on the kind of object, so they are written once for all rows. A fault is
//! only what `ur_api.h` lists among a function's results and can be checked without an adapter. This module reports
//! faults; the rules and the shim decide what follows from one.

use super::{Effect, Function, ResultCode, common_roles::Null};
use crate::{handle::Kind, values::Values};

/// The arguments of a call that are null or zero and must not be: the first of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nulls {
    pointer: Option<&'static str>,
    handle: Option<&'static str>,
    count: Option<&'static str>,
    size: Option<&'static str>,
    /// The out-parameters that may be null, but not all of them, and not with every size.
    optional: Optional,
}

/// Which of several related arguments are null or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Optional {
    /// How many out-parameters of a get are null.
    answers: u8,
    value: bool,
    value_size: bool,
    answer_size: bool,
}

impl Optional {
    /// What is wrong with their combination.
    const fn fault(self) -> Option<Fault> {
        if self.answers == 2 {
            Some(Fault::new("data", Wrong::AllNull, ResultCode::INVALID_NULL_POINTER))
        } else if self.value && !self.value_size {
            Some(Fault::new("value", Wrong::Null, ResultCode::INVALID_NULL_POINTER))
        } else if self.value && self.answer_size {
            Some(Fault::new("value", Wrong::AllNull, ResultCode::INVALID_NULL_POINTER))
        } else if self.value_size && !self.value {
            Some(Fault::new("size", Wrong::Zero, ResultCode::INVALID_SIZE))
        } else {
            None
        }
    }
}

/// An argument for which the header specifies an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the parameter in the function's row.
    pub parameter: &'static str,
    /// What is wrong with it.
    pub why: Wrong,
    /// The result that the header specifies.
    pub answer: ResultCode,
}

impl Fault {
    const fn new(parameter: &'static str, why: Wrong, answer: ResultCode) -> Self {
        Self { parameter, why, answer }
    }
}

/// What is wrong with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is null.
    Null,
    /// It is zero.
    Zero,
    /// It has these bits, which are undefined.
    Bits(u64),
    /// It has these bits, which exclude each other.
    Together(u64),
    /// It is null, and so are all other out-parameters.
    AllNull,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Zero => f.write_str("0"),
            Self::Bits(bits) => write!(f, "a set with the undefined bits {bits:#x}"),
            Self::AllNull => f.write_str("null, like all other out-parameters,"),
            Self::Together(bits) => write!(f, "a set with the bits {bits:#x}, which exclude each other"),
        }
    }
}

impl Nulls {
    /// Adds an argument if it is missing and the header lists that as an error of the function.
    #[expect(
        clippy::inline_always,
        reason = "the function is mostly a constant of the caller, so that all of this is decided when it is compiled"
    )]
    #[inline(always)]
    pub const fn note(&mut self, function: Function, parameter: &'static str, null: Option<Null>) {
        let Some(null) = null else { return };
        let effect = function.effect();
        let place = match (null, effect) {
            // Only the adapter knows whether the memory can be exported, and the header lists no such errors for the
            // properties of physical memory.
            (Null::Memory, Effect::Exports(_) | Effect::MayExport(_))
            | (Null::Value | Null::ValueSize | Null::AnswerSize, Effect::Asks(Kind::PhysicalMem)) => return,
            // The header calls both out-parameters of a get of memory optional, but lists their absence as an error.
            // Adapters and this check accept one null.
            (Null::Answer, Effect::Exports(Kind::Usm)) => {
                self.optional.answers += 1;
                return;
            }
            (Null::Value, _) => {
                self.optional.value = true;
                return;
            }
            (Null::ValueSize, _) => {
                self.optional.value_size = true;
                return;
            }
            (Null::AnswerSize, _) => {
                self.optional.answer_size = true;
                return;
            }
            (Null::Description, effect) if !matches!(effect, Effect::Creates(Kind::Event | Kind::Pool)) => return,
            (Null::Size, effect) if !matches!(effect, Effect::Allocates(_)) => return,
            (Null::Handle, _) => &mut self.handle,
            (Null::Pointer | Null::Memory | Null::Answer | Null::Description, _) => &mut self.pointer,
            (Null::Count, _) => &mut self.count,
            (Null::Size, _) => &mut self.size,
        };
        if place.is_none() {
            *place = Some(parameter);
        }
    }

    /// Whether nothing is missing.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.pointer.is_none()
            && self.handle.is_none()
            && self.count.is_none()
            && self.size.is_none()
            && self.optional.fault().is_none()
    }

    /// The fault that is reported first: the order is that of Unified Runtime's own validation layer.
    #[inline]
    pub fn fault(&self, function: Function, values: &Values) -> Option<Fault> {
        let fault = |why, answer| move |parameter| Fault::new(parameter, why, answer);
        let optional = |answer| self.optional.fault().filter(|fault| fault.answer == answer);
        let no_objects = if matches!(function.effect(), Effect::Creates(Kind::Context)) {
            ResultCode::INVALID_SIZE
        } else {
            ResultCode::INVALID_VALUE
        };
        self.pointer
            .map(fault(Wrong::Null, ResultCode::INVALID_NULL_POINTER))
            .or_else(|| optional(ResultCode::INVALID_NULL_POINTER))
            .or_else(|| self.handle.map(fault(Wrong::Null, ResultCode::INVALID_NULL_HANDLE)))
            .or_else(|| flags(function, values))
            .or_else(|| self.size.map(fault(Wrong::Zero, ResultCode::INVALID_USM_SIZE)))
            .or_else(|| optional(ResultCode::INVALID_SIZE))
            .or_else(|| self.count.map(fault(Wrong::Zero, no_objects)))
    }
}

/// What is wrong with the flags. Only those that the interface defines are checked; a driver checks the others.
#[inline]
fn flags(function: Function, values: &Values) -> Option<Fault> {
    let flags = values.flags?;
    let defined = function.interface().flags.iter().find(|defined| defined.effect == function.effect())?;
    let undefined = flags & u64::from(defined.undefined);
    let exclusive = u64::from(defined.exclusive);
    if undefined != 0 {
        return Some(Fault::new("flags", Wrong::Bits(undefined), ResultCode::INVALID_ENUMERATION));
    }
    let all = exclusive != 0 && flags & exclusive == exclusive;
    all.then(|| Fault::new("flags", Wrong::Together(exclusive), ResultCode::INVALID_VALUE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(function: Function, values: Values) -> Option<u32> {
        function.nulls(&values).fault(function, &values).map(|fault| fault.answer.0)
    }

    const NOTHING: Values = Values::NONE;

    #[test]
    fn a_missing_pointer_is_answered_before_a_missing_handle() {
        let put = Function::urIPCPutMemHandleExp;
        let with = |context, data| Values { context: Some(context), data: Some(data), ..NOTHING };
        assert_eq!(answer(put, with(0, 0)), Some(48));
        assert_eq!(answer(put, with(0, 1)), Some(46));
        assert_eq!(answer(put, with(1, 1)), None);
        assert_eq!(answer(put, NOTHING), None, "what is not recorded is no fault");
    }

    #[test]
    fn what_the_header_calls_optional_is_no_fault() {
        let get = Function::urIPCGetMemHandleExp;
        let mut nulls = Nulls::default();
        for (parameter, null) in [("pointer", Null::Memory), ("data", Null::Answer), ("data_size", Null::Answer)] {
            nulls.note(get, parameter, Some(null));
        }
        assert!(!nulls.is_empty());
        assert_eq!(nulls.fault(get, &NOTHING).map(|fault| fault.answer), Some(ResultCode(48)), "nothing to answer to");
        let mut nulls = Nulls::default();
        nulls.note(get, "data", Some(Null::Answer));
        assert!(nulls.is_empty());
        nulls.note(Function::urIPCGetEventHandleExp, "data", Some(Null::Answer));
        let fault = nulls.fault(Function::urIPCGetEventHandleExp, &NOTHING).unwrap();
        assert_eq!((fault.parameter, fault.answer), ("data", ResultCode(48)));
        let memory = Values { context: Some(1), device: Some(1), size: Some(0), ..NOTHING };
        assert_eq!(answer(Function::urPhysicalMemCreate, memory), None, "properties may be null");
        assert_eq!(answer(Function::urUSMDeviceAlloc, memory), Some(64));
        assert_eq!(answer(Function::urEventCreateExp, memory), Some(48));
    }

    #[test]
    fn undefined_flags_and_flags_that_exclude_each_other_are_different_faults() {
        let with = |flags| Values { context: Some(1), device: Some(1), object: Some(1), flags: Some(flags), ..NOTHING };
        let [event, memory, map] =
            [Function::urEventCreateExp, Function::urPhysicalMemCreate, Function::urVirtualMemMap];
        assert_eq!([0, 1, 2, 3, 4].map(|flags| answer(event, with(flags))), [None, None, None, Some(4), Some(53)]);
        assert_eq!([0, 1, 2, 4].map(|flags| answer(memory, with(flags))), [None, None, None, Some(53)]);
        assert_eq!([0, 7, 8].map(|flags| answer(map, with(flags))), [None, None, Some(53)]);
    }

    #[test]
    fn a_list_of_nothing_is_a_fault() {
        let none = Values { count: Some(0), ..NOTHING };
        assert_eq!(answer(Function::urEventWait, none), Some(4));
        assert_eq!(answer(Function::urContextCreate, none), Some(49));
    }

    #[test]
    fn a_property_has_room_for_its_value_or_for_the_size() {
        let ask = |function: Function, zero: &[&str]| {
            let nulls = function.nulls_of(|parameter| u64::from(!zero.contains(&parameter)));
            assert_eq!(nulls.is_empty(), nulls.fault(function, &NOTHING).is_none());
            nulls.fault(function, &NOTHING).map(|fault| fault.answer.0)
        };
        for function in [Function::urDeviceGetInfo, Function::urEventGetInfo] {
            assert_eq!(ask(function, &[]), None);
            assert_eq!(ask(function, &["size_ret"]), None);
            assert_eq!(ask(function, &["size", "value"]), None, "how long is the answer?");
            assert_eq!(ask(function, &["size"]), Some(49));
            assert_eq!(ask(function, &["value"]), Some(48));
            assert_eq!(ask(function, &["size", "value", "size_ret"]), Some(48));
        }
        assert_eq!(ask(Function::urPhysicalMemGetInfo, &["value"]), None, "the header lists no error");
    }
}
