//! The hooks of a driver's functions: one for each row of Level Zero and each driver.
//!
//! The first instructions of a hook store the return address. A call of the program or its middleware is recorded
//! around the driver's function. Any other call is passed on, or recorded as an inner call. Must never hold a lock or
//! allocate across the real call.

use std::{arch::naked_asm, ffi::c_void, mem::offset_of};

use urscope_schema::{
    api::{
        Effect, Function, LEVEL_ZERO, UrResult,
        demand::Nulls,
        level_zero::constants::EXTERNAL_MEMORY_IMPORT_FD,
        role::{
            Accessed, AllocDesc, AnyDevice, Context, CopiedFrom, Count, Desc, Descriptor, Event, EventHandle,
            Exporting, Flags, IpcHandle, IpcHandles, Length, Offset, OutEventHandle, OutIpcHandle, OutIpcHandles,
            OutObject, OutPointer, PhysicalDesc, PhysicalMem, Pointer, Unseen, Unseen32, ZePool,
        },
    },
    call::{Enter, Exit, Values},
    handle::{Kind, descriptor_in},
    ze_functions,
};

use super::{DRIVER_STATES, Driver, real, report_once};
use crate::{
    chain, commands,
    event_filter::{self, Recording},
    inner, knobs, note_caller,
    raw::{
        args::{
            Arg, extensions,
            inputs::{CallArguments, Inputs},
            out_params::{self, Opened, RedirectedOutParams},
        },
        caller::{self, Owner},
        clock, fork, thread,
    },
    stacks,
};

macro_rules! hooks {
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

        /// The hooks of commands, which jump to the driver's function while the process shares nothing: programs
        /// enqueue many commands.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod command {
            use super::*;

            $(
                /// # Safety
                ///
                /// The arguments are those of the function of this name, and the driver's function is stored.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    naked_asm!(
                        "cmp byte ptr [rip + {shares}], 0",
                        "jne {entry}",
                        "jmp qword ptr [rip + {known} + {place}]",
                        shares = sym commands::IS_SHARING,
                        entry = sym entry::$name::<VIA>,
                        known = sym DRIVER_STATES,
                        place = const place(VIA, Function::$name),
                    )
                }
            )*
        }

        /// The hooks of functions that export if their third argument, a structure, has an extension. Otherwise they
        /// jump to the driver's function.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod property {
            use super::*;

            $(
                /// # Safety
                ///
                /// As for those in `command`.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    naked_asm!(
                        "test rdx, rdx",
                        "jz {entry}",
                        "cmp qword ptr [rdx + {next}], 0",
                        "jne {entry}",
                        "jmp qword ptr [rip + {known} + {place}]",
                        next = const extensions::NEXT,
                        entry = sym entry::$name::<VIA>,
                        known = sym DRIVER_STATES,
                        place = const place(VIA, Function::$name),
                    )
                }
            )*
        }

        /// Records calls, or passes them on.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod passed {
            use super::*;

            $(
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    let real = real(VIA, Function::$name);
                    if real.is_null() {
                        return LEVEL_ZERO.result(UrResult::UNSUPPORTED_FEATURE);
                    }
                    // SAFETY: the stored function has the row's signature (`ze_api.h`, and `zex_memory.h` of Intel's
                    // driver).
                    let real = unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn($(Arg<$role>),*) -> UrResult>(real) };
                    let mut inputs = Inputs::default();
                    if depends_on_arguments(Function::$name) {
                        $(inputs.add($param);)*
                    }
                    if is_recorded(Function::$name, &inputs) $(&& $param.watched())* {
                        if is_call_of_program() {
                            return recorded::$name(VIA, real, $($param),*);
                        }
                        if let Some(outer) = inner::inside_of(Function::$name) {
                            return inside::$name(outer, real, $($param),*);
                        }
                    }
                    let result = real($($param),*);
                    commands::note_return(Function::$name, result);
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
                    let hot = knobs::hot();
                    report_once(via);
                    let mut inputs = Inputs::default();
                    $(inputs.add($param);)*
                    let mut nulls = Nulls::default();
                    $(nulls.note(Function::$name, stringify!($param), $param.null());)*
                    let mut arguments = CallArguments::new(None);
                    $(arguments.add($param);)*
                    let (mut values, expected) = arguments.record(&inputs);
                    identify(Function::$name, &mut values);
                    let event = event_filter::decide(Function::$name, &inputs).event();
                    let imports = values.property == Some(EXTERNAL_MEMORY_IMPORT_FD);
                    let flags = values.flags;
                    values.stack = stacks::current(hot);
                    let waits = commands::before(Function::$name, &mut values);
                    let pointer = values.pointer;
                    let entered = chain::enter(hot, Function::$name, values, &nulls);
                    if let Some(answer) = entered.answer {
                        return chain::exit(hot, Function::$name, entered.call, LEVEL_ZERO.result(answer), Values::NONE);
                    }
                    event_filter::enter(Function::$name, event);
                    let mut answers = RedirectedOutParams::untouched();
                    let ours = answers.redirection(&expected, Opened::NOTHING);
                    let result = real($(ours.redirect($param)),*);
                    commands::after(Function::$name, entered.call, waits, None, result);
                    if imports {
                        commands::note_imported(result);
                    }
                    let values = expected.carry_over(&answers, Opened::NOTHING, result, pointer);
                    commands::note_shared(Function::$name, pointer, &values);
                    event_filter::exit(Function::$name, event, flags, result, &values);
                    chain::exit(hot, Function::$name, entered.call, result, values)
                }
            )*
        }

        /// Records inner calls: those that the runtime makes in a recorded call.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod inside {
            use super::*;

            $(
                #[cold]
                #[inline(never)]
                #[allow(clippy::too_many_arguments, reason = "a row has the parameters of C")]
                pub(super) fn $name(call: u64, real: extern "C-unwind" fn($(Arg<$role>),*) -> UrResult, $($param: Arg<$role>),*) -> UrResult {
                    let (function, tid) = (Function::$name, thread::id());
                    let mut inputs = Inputs::default();
                    $(inputs.add($param);)*
                    let mut arguments = CallArguments::new(None);
                    $(arguments.add($param);)*
                    let (mut values, expected) = arguments.record(&inputs);
                    identify(function, &mut values);
                    let pointer = values.pointer;
                    chain::inner_enter(&Enter { function, call, tid, time: clock::now(), values });
                    let mut answers = RedirectedOutParams::untouched();
                    let ours = answers.redirection(&expected, Opened::NOTHING);
                    let result = real($(ours.redirect($param)),*);
                    commands::note_return(function, result);
                    let values = expected.carry_over(&answers, Opened::NOTHING, result, pointer);
                    chain::inner_exit(&Exit { function, call, tid, time: clock::now(), result, values });
                    result
                }
            )*
        }

        /// The hook of `function` for driver `VIA`.
        pub(super) fn hook<const VIA: usize>(function: Function) -> Option<*mut c_void> {
            match function {
                $(Function::$name => Some(match EntryKind::of(Function::$name) {
                    EntryKind::Caller => entry::$name::<VIA> as *mut c_void,
                    EntryKind::Command => command::$name::<VIA> as *mut c_void,
                    EntryKind::Property => property::$name::<VIA> as *mut c_void,
                    EntryKind::Wait => passed::$name::<VIA> as *mut c_void,
                }),)*
                _ => None,
            }
        }
    };
}

/// The hook of a function.
enum EntryKind {
    /// It stores the caller, in `entry`.
    Caller,
    /// By `command`.
    Command,
    /// By `property`.
    Property,
    /// It passes the call on, which is never recorded.
    Wait,
}

impl EntryKind {
    const fn of(function: Function) -> Self {
        if function.is_command() {
            Self::Command
        } else if may_export(function) {
            Self::Property
        } else if matches!(function.effect(), Effect::Waits(Kind::Queue)) {
            Self::Wait
        } else {
            Self::Caller
        }
    }
}

/// The offset of a driver's function in [`DRIVER_STATES`].
const fn place(via: usize, function: Function) -> usize {
    via * size_of::<Driver>() + offset_of!(Driver, functions) + function as usize * size_of::<usize>()
}

/// Whether the arguments of a call of `function` decide if it is recorded.
#[inline]
const fn depends_on_arguments(function: Function) -> bool {
    matches!(function.effect(), Effect::MayExport(_) | Effect::Destroys(Kind::Event))
}

const fn may_export(function: Function) -> bool {
    matches!(function.effect(), Effect::MayExport(_))
}

/// Whether a call of the program with these arguments is recorded.
#[inline]
fn is_recorded(function: Function, inputs: &Inputs) -> bool {
    (!may_export(function) || inputs.ask_for_descriptor()) && event_filter::decide(function, inputs) != Recording::No
}

/// Whether the file of a descriptor argument identifies the object of the call.
#[inline]
const fn is_identified_by_file(function: Function) -> bool {
    !matches!(function.effect(), Effect::Puts(_) | Effect::Closes(_) | Effect::Destroys(_) | Effect::Frees(_))
}

/// Adds the fingerprint of the file that identifies the object.
#[inline]
fn identify(function: Function, values: &mut Values) {
    if values.fingerprint.is_none() && is_identified_by_file(function) {
        values.fingerprint = values.data.and_then(descriptor_in).and_then(out_params::of_file);
    }
}

/// Whether the program or its middleware makes the current call. A call from a loader or from libumf belongs to its
/// caller. The caller of libumf is an adapter, whose call is part of one of Unified Runtime, or a program that uses
/// libumf itself. In a recorded call it is the adapter. Otherwise the caller is looked up at each call, because
/// libumf puts handles and closes mappings late: when memory is freed, another handle is opened, or a pool or a
/// provider is destroyed.
fn is_call_of_program() -> bool {
    match caller::owner(caller::address()) {
        Owner::Program => true,
        Owner::Runtime => false,
        Owner::Forwarder if inner::is_in_runtime() => false,
        Owner::Forwarder => {
            let caller = stacks::first_caller(|address| caller::owner(address) != Owner::Forwarder);
            caller.is_some_and(|address| caller::owner(address) == Owner::Program)
        }
    }
}

ze_functions!(hooks);
