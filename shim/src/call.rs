//! What a row of the function table becomes here: a function that stands in the adapter's slot.
//!
//! It records the call around the real one. One is made per function and per adapter, because a C function in a table
//! has no other way to know whose table it was found in. This module must stay the same for every function: what is
//! special about one is said by the roles in its row.

use std::ffi::c_void;

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::{
    api::{Function, UrResult, demand::Nulls, role::*},
    call::Values,
    ur_functions,
};

use crate::{
    backend, chain,
    event_filter::{self, Recording},
    layer::validate,
    raw::out_params::{self, RedirectedOutParams},
    stacks,
};

/// How many adapters one process can have under trace. The loader knows five kinds.
pub const ADAPTERS: usize = 8;

macro_rules! stand_ins {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        mod stand_in {
            use super::*;

            $(
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: $role),*) -> UrResult {
                    let real = backend::$name::<VIA>();
                    let mut sources = Sources::default();
                    $($param.source(&mut sources);)*
                    let recording = if true $(&& $param.watched())* { event_filter::decide(Function::$name, &sources) } else { Recording::No };
                    let mut nulls = Nulls::default();
                    $(nulls.note(Function::$name, stringify!($param), $param.null());)*
                    if recording == Recording::No && (nulls.is_empty() || !validate::is_on()) {
                        return real($($param),*);
                    }
                    let event = recording.event();
                    let (mut values, mut out_params) = (Values { via: Some(VIA as u64), ..Values::NONE }, OutParams::default());
                    $($param.enter(&mut values); $param.out(&mut out_params);)*
                    out_params::take_described(&sources, &mut values);
                    out_params::take_fingerprint(&mut values);
                    values.stack = stacks::current();
                    values.object = event.map_or(values.object, |event| Some(event as u64));
                    let (flags, pointer) = (values.flags, values.pointer);
                    let entered = chain::enter(Function::$name, values, &nulls);
                    if let Some(answer) = entered.answer {
                        return chain::exit(Function::$name, entered.call, answer, Values::NONE);
                    }
                    event_filter::enter(Function::$name, event);
                    let mut answers = RedirectedOutParams::new(out_params);
                    let to = answers.addresses();
                    let thrown = Thrown { function: Function::$name, call: entered.call };
                    let result = real($($param.redirected(&to)),*);
                    std::mem::forget(thrown);
                    let mut values = answers.carry_over(result);
                    out_params::take_block(pointer, &mut values);
                    event_filter::exit(Function::$name, event, flags, result, &values);
                    chain::exit(Function::$name, entered.call, result, values)
                }
            )*
        }

        /// The function that stands in for `function` in the tables of adapter number `via`, below [`ADAPTERS`].
        pub fn stand_in(function: Function, via: usize) -> Option<*mut c_void> {
            macro_rules! of {
                ($of:ident) => {
                    match via {
                        0 => stand_in::$of::<0> as *mut c_void,
                        1 => stand_in::$of::<1> as *mut c_void,
                        2 => stand_in::$of::<2> as *mut c_void,
                        3 => stand_in::$of::<3> as *mut c_void,
                        4 => stand_in::$of::<4> as *mut c_void,
                        5 => stand_in::$of::<5> as *mut c_void,
                        6 => stand_in::$of::<6> as *mut c_void,
                        7 => stand_in::$of::<7> as *mut c_void,
                        _ => return None,
                    }
                };
            }
            Some(match function { $(Function::$name => of!($name),)* })
        }
    };
}

/// The exit of a call that the adapter leaves by a C++ exception, which passes through us: the loader answers UNKNOWN for it.
struct Thrown {
    function: Function,
    call: u64,
}

impl Drop for Thrown {
    fn drop(&mut self) {
        chain::exit(self.function, self.call, UrResult::UNKNOWN, Values::NONE);
    }
}

ur_functions!(stand_ins);
