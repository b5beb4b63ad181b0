//! The functions that replace a driver's: one for each row of Level Zero and each driver.
//!
//! Such a function notes where its call returns to, which only its first instructions know. A call of the program or its middleware is
//! recorded around the driver's own function, any other one is passed on. Must never hold a lock or allocate across the real call.

use std::ffi::c_void;

use urscope_schema::{
    api::{
        Function, UrResult,
        demand::Nulls,
        role::{
            Accessed, AnyDevice, Context, CopiedFrom, Count, Desc, Flags, IpcHandle, IpcHandles, Length, OutIpcHandle,
            OutIpcHandles, OutObject, OutPointer, Pointer, Unseen, Unseen32, ZePool,
        },
    },
    call::Values,
    ze_functions,
};

use super::{real, report_once};
use crate::{
    chain, commands, note_caller,
    raw::{
        args::{
            Arg,
            inputs::{Arguments, Inputs},
            out_params::{self, OpenedCopy, RedirectedOutParams},
        },
        caller::{self, Owner},
        fork,
    },
    stacks,
};

macro_rules! stand_ins {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod entry {
            use super::*;

            $(
                /// # Safety
                ///
                /// The arguments are those of the function of this name.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    note_caller!(passed::$name::<VIA>)
                }
            )*
        }

        /// What is recorded, and what is passed on.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod passed {
            use super::*;

            $(
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    let real = real(VIA, Function::$name);
                    if real.is_null() {
                        return UrResult::UNSUPPORTED_FEATURE.level_zero();
                    }
                    // SAFETY: what was kept for this function has its C signature (`ze_api.h`, and `zex_memory.h` of Intel's driver),
                    // which is the row's.
                    let real = unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn($(Arg<$role>),*) -> UrResult>(real) };
                    if is_recorded(Function::$name) $(&& $param.watched())* && is_programs() {
                        return recorded::$name(VIA, real, $($param),*);
                    }
                    let result = real($($param),*);
                    commands::passed(Function::$name, result);
                    result
                }
            )*
        }

        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod recorded {
            use super::*;

            $(
                #[inline(never)]
                #[allow(clippy::too_many_arguments, reason = "a row has the parameters of C")]
                pub(super) fn $name(via: usize, real: extern "C-unwind" fn($(Arg<$role>),*) -> UrResult, $($param: Arg<$role>),*) -> UrResult {
                    fork::notice();
                    report_once(via);
                    let mut inputs = Inputs::default();
                    $(inputs.add($param);)*
                    let mut nulls = Nulls::default();
                    $(nulls.note(Function::$name, stringify!($param), $param.null());)*
                    let mut arguments = Arguments::new(None);
                    $(arguments.add($param);)*
                    let (mut values, expected) = arguments.record(&inputs);
                    if Function::$name.opens().is_some() {
                        values.fingerprint = values.data.and_then(|data| out_params::of_file(data as u32));
                    }
                    values.stack = stacks::current();
                    let waits = commands::before(Function::$name, &mut values);
                    let pointer = values.pointer;
                    let entered = chain::enter(Function::$name, values, &nulls);
                    if let Some(answer) = entered.answer {
                        return chain::exit(Function::$name, entered.call, answer.level_zero(), Values::NONE);
                    }
                    let (mut answers, mut opened) = (RedirectedOutParams::untouched(), OpenedCopy::none());
                    let ours = answers.redirection(&expected, &mut opened);
                    let result = real($(ours.redirect($param)),*);
                    commands::after(Function::$name, entered.call, waits, None, result);
                    let values = expected.carry_over(&answers, &opened, result, pointer);
                    chain::exit(Function::$name, entered.call, result, values)
                }
            )*
        }

        /// The function that replaces `function` of the driver number `VIA`.
        pub(super) fn stand_in<const VIA: usize>(function: Function) -> Option<*mut c_void> {
            match function {
                $(Function::$name => Some(entry::$name::<VIA> as *mut c_void),)*
                _ => None,
            }
        }
    };
}

/// Whether calls of `function` are recorded at all, if they are the program's.
#[inline]
fn is_recorded(function: Function) -> bool {
    !function.waits() && (!function.is_command() || commands::are_recorded())
}

/// Whether the call that has just come in is one of the program, or of its middleware. What a loader passes on is its caller's.
fn is_programs() -> bool {
    match caller::owner(caller::address()) {
        Owner::Program => true,
        Owner::Runtime => false,
        Owner::LevelZero => {
            let behind = stacks::first_caller(|address| caller::owner(address) != Owner::LevelZero);
            behind.is_some_and(|address| caller::owner(address) == Owner::Program)
        }
    }
}

ze_functions!(stand_ins);
