//! The path of a call: what is done around the real function, whatever way the call came.
//!
//! [`intercept`] takes a call ([`RealCall`]) through the layers to the real function and back. Its two halves,
//! [`begin`] and [`end`], also show calls to the layers that urscope does not carry out. Must never hold a lock or
//! allocate across the real call.

#![expect(
    clippy::inline_always,
    reason = "the effect is known in each copy of the path, so that much is decided when it is compiled"
)]

use urscope_schema::api::{Effect, Function, ResultCode, role::Device};
use urscope_schema::{call::Values, operation};

use crate::knobs::{self, Hot};
use crate::raw::args::row::{Call, RealCall};
use crate::raw::args::{Arg, inputs::Arguments, inputs::Inputs, out_params, reader::Reader};
use crate::raw::{call_stacks::outer::Outer, processes::fork, threads::thread};
use crate::sharing::event_filter::{self, Recording};
use crate::sharing::{commands, limit, synchronization};
use crate::{chain, devices, inner, stacks};

/// Where a call came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A hook of the adapter with this number: in its table, in its code, or behind an exported symbol.
    Adapter(usize),
    /// XPTI, which only shows a call of the adapter with this number: what a layer answers has no effect.
    Xpti(usize),
    /// A hook in a table of a Level Zero driver.
    Driver,
    /// A hook of a driver's function that stands for itself. A library may have its own in front of it, so what is
    /// called in it is part of it. The number is the context that is current, of a call that makes something in it, or
    /// 0.
    Library(u64),
    /// The runtime, in the recorded call with this number. Only the trace sees such an inner call.
    Inner(u64),
}

impl Origin {
    /// The number of the adapter that is called.
    #[inline]
    const fn adapter(self) -> Option<usize> {
        match self {
            Self::Adapter(via) | Self::Xpti(via) => Some(via),
            Self::Driver | Self::Library(_) | Self::Inner(_) => None,
        }
    }
}

/// The outcome of [`begin`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    /// The call is not recorded.
    Unrecorded,
    /// A layer has answered it, and it must not be passed on.
    Answered(ResultCode),
    /// It is passed on, and its return is for [`end`].
    Recorded(Pending),
}

/// A recorded call that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    hot: Hot,
    origin: Origin,
    /// Its number in the process; for an inner call, that of the outer one.
    call: u64,
    /// The event because of which it is recorded.
    event: Option<usize>,
    /// Of its arguments.
    flags: Option<u64>,
    pointer: Option<u64>,
    device: Option<Arg<Device>>,
    reader: &'static dyn Reader,
    commands: commands::Seen,
}

impl Pending {
    /// Shows the layers that a C++ exception has left the call.
    pub(crate) fn left_by_exception(self, function: Function) {
        without_answers(function, self.origin, self.call, ResultCode::UNKNOWN);
    }
}

/// Records a call around the real function, unless nobody wants to know of it; returns the result for the caller.
pub fn intercept(origin: Origin, call: &mut Call) -> ResultCode {
    intercept_as(None, origin, call)
}

/// Records a call around the real function. `decided` is whether and why, if the caller has asked.
///
/// The path has a copy for commands, in which the compiler knows the effect, and one for all other functions.
pub(crate) fn intercept_as(decided: Option<Recording>, origin: Origin, call: &mut dyn RealCall) -> ResultCode {
    match call.arguments().function().effect() {
        Effect::Enqueues(kind) => around::<false>(decided, origin, call, Effect::Enqueues(kind)),
        Effect::Launches(kind) => around::<false>(decided, origin, call, Effect::Launches(kind)),
        effect => around_other(decided, origin, call, effect),
    }
}

/// Records a call of a function that the compiler knows, as [`intercept`] does, by a copy of the path of its own.
#[inline(always)]
pub(crate) fn intercept_known(origin: Origin, call: &mut impl RealCall, effect: Effect) -> ResultCode {
    around::<true>(None, origin, call, effect)
}

/// Records a call that the runtime makes in the recorded call with the number `outer`.
#[cold]
pub(crate) fn intercept_inner(outer: u64, call: &mut dyn RealCall) -> ResultCode {
    let effect = call.arguments().function().effect();
    around_other(None, Origin::Inner(outer), call, effect)
}

/// Makes a call that is not recorded.
#[inline(always)]
pub(crate) fn pass_on(effect: Effect, call: &(impl RealCall + ?Sized)) -> ResultCode {
    before_unrecorded(effect, call.arguments().inputs());
    let result = call.make();
    after_unrecorded(effect, call.arguments(), result);
    result
}

/// Makes a call that is not recorded and part of one of another interface.
#[inline(always)]
pub(crate) fn pass_on_inner(effect: Effect, call: &(impl RealCall + ?Sized)) -> ResultCode {
    commands::before_unrecorded(effect, call.arguments().inputs());
    let result = call.make();
    let _ = commands::note_unrecorded(call.arguments().function(), effect, call.arguments().inputs(), result);
    result
}

/// A call is about to be made that is not recorded.
#[inline(always)]
pub(crate) fn before_unrecorded(effect: Effect, inputs: &Inputs) {
    commands::before_unrecorded(effect, inputs);
    synchronization::before_unrecorded(effect, inputs);
}

/// A call has returned that is not recorded.
#[inline(always)]
pub(crate) fn after_unrecorded(effect: Effect, arguments: &Arguments, result: ResultCode) {
    let function = arguments.function();
    let inputs = arguments.inputs();
    let has_waited = commands::note_unrecorded(function, effect, inputs, result)
        || matches!(effect, Effect::Orders(_)) && commands::waits_for_itself(arguments.values());
    synchronization::after(function, effect, inputs, result, has_waited);
}

/// The path of a call with an effect that has no copy.
#[inline(never)]
fn around_other(decided: Option<Recording>, origin: Origin, call: &mut dyn RealCall, effect: Effect) -> ResultCode {
    around::<false>(decided, origin, call, effect)
}

/// The path of a call, whose function has this effect and is `KNOWN` to the compiler or not.
#[inline(always)]
fn around<const KNOWN: bool>(
    decided: Option<Recording>,
    origin: Origin,
    call: &mut (impl RealCall + ?Sized),
    effect: Effect,
) -> ResultCode {
    let function = call.arguments().function();
    let begun = match begin::<KNOWN>(function, effect, decided, origin, call.arguments_mut()) {
        Begin::Recorded(begun) => begun,
        Begin::Answered(result) => return result,
        Begin::Unrecorded => return pass_on(effect, call),
    };
    let outer = inner::outer(effect, begun.call);
    let is_outer = matches!(origin, Origin::Adapter(_) | Origin::Library(_));
    if is_outer {
        outer.begin();
    }
    let exception_guard = ExceptionGuard { function, origin, call: begun.call, outer: is_outer.then_some(&outer) };
    let (result, answers) = out_params::call(effect, call);
    std::mem::forget(exception_guard);
    if is_outer {
        outer.end();
    }
    end::<KNOWN>(function, effect, begun, call.arguments().inputs(), result, answers.as_ref())
}

/// Shows the layers a call that begins. Whether it is recorded, and why, may have been decided.
#[inline(always)]
pub(crate) fn begin<const KNOWN: bool>(
    function: Function,
    effect: Effect,
    decided: Option<Recording>,
    origin: Origin,
    arguments: &mut Arguments,
) -> Begin {
    fork::notice();
    let hot = knobs::hot();
    let mut begun = Pending {
        hot,
        origin,
        call: 0,
        event: None,
        flags: None,
        pointer: None,
        device: None,
        reader: arguments.inputs().reader(),
        commands: commands::Seen::default(),
    };
    if let Origin::Inner(outer) = origin {
        begun.call = outer;
        begun.pointer = arguments.values().pointer;
        arguments.describe();
        chain::inner_enter(function, outer, *arguments.values());
        return Begin::Recorded(begun);
    }
    // Not by a closure, in which the compiler would not know the effect.
    let recording = match decided {
        Some(recording) => recording,
        None => event_filter::recording(effect, arguments),
    };
    // A call with a missing argument is always recorded: it is a violation.
    if recording == Recording::No && arguments.nulls().is_empty() {
        return Begin::Unrecorded;
    }
    arguments.describe();
    let inputs = *arguments.inputs();
    let values = arguments.values_mut();
    values.via = origin.adapter().map(|via| via as u64);
    if let Origin::Library(context) = origin {
        values.context = values.context.or(Some(context).filter(|context| *context != 0));
    }
    values.stack = stacks::current(hot);
    begun.event = recording.event();
    values.object = begun.event.map_or(values.object, |event| Some(event as u64));
    match recording {
        Recording::Command([Some(pointer), source]) => (values.pointer, values.source) = (Some(pointer), source),
        Recording::Execution(access) => access.enter(values),
        _ => {}
    }
    begun.commands = commands::before(function, effect, &inputs, values);
    if begun.commands.is_command && limit::is_reached() && begun.commands.is_left_out(function, values) {
        return Begin::Unrecorded;
    }
    if recording == Recording::UnknownLaunch {
        values.noticed = Some(operation::UNKNOWN);
    }
    if effect.submits() || recording == Recording::UnknownLaunch {
        synchronization::not_followed(effect, &inputs);
    }
    (begun.flags, begun.pointer) = (values.flags, values.pointer);
    if let Origin::Adapter(via) = origin {
        begun.device = inputs.device();
        devices::before(effect, via, begun.device);
    }
    if begun.commands.is_command || matches!(effect, Effect::Allocates(_) | Effect::FreesLater(_)) {
        synchronization::before(&inputs);
    }
    let entered = chain::enter::<KNOWN>(hot, function, arguments.values(), arguments.nulls());
    begun.call = entered.call;
    if let Some(answer) = entered.answer
        && !matches!(origin, Origin::Xpti(_))
    {
        return Begin::Answered(without_answers(function, origin, begun.call, answer));
    }
    if begun.commands.is_command {
        thread::set_command(begun.call);
        synchronization::command_recorded();
        commands::note_appended(begun.commands, begun.call, &inputs, arguments.values());
    }
    event_filter::enter(effect, begun.event);
    Begin::Recorded(begun)
}

/// Shows the layers a call that has returned; returns the result for the caller.
#[inline(always)]
pub(crate) fn end<const KNOWN: bool>(
    function: Function,
    effect: Effect,
    begun: Pending,
    inputs: &Inputs,
    result: ResultCode,
    answers: Option<&Values>,
) -> ResultCode {
    let none = const { &Values::NONE };
    if let Origin::Inner(_) = begun.origin {
        synchronization::after(function, effect, inputs, result, false);
        return exit::<false>(begun.hot, function, begun.origin, begun.call, result, answers);
    }
    if begun.commands.is_command {
        thread::set_command(0);
    }
    commands::after(effect, begun.call, begun.commands, result);
    synchronization::after(function, effect, inputs, result, begun.commands.is_blocking);
    commands::note_memory(
        function,
        effect,
        begun.reader,
        begun.pointer,
        begun.commands,
        result,
        answers.unwrap_or(none),
    );
    if let Origin::Adapter(via) = begun.origin
        && result.is_success()
    {
        devices::after(via, begun.device);
    }
    event_filter::exit(function, effect, begun.event, begun.flags, result, answers.unwrap_or(none));
    exit::<KNOWN>(begun.hot, function, begun.origin, begun.call, result, answers)
}

/// Shows the layers a call that was answered by one of them, or that a C++ exception has left.
#[cold]
#[inline(never)]
fn without_answers(function: Function, origin: Origin, call: u64, result: ResultCode) -> ResultCode {
    thread::set_command(0);
    exit::<false>(knobs::hot(), function, origin, call, result, None)
}

#[inline(always)]
fn exit<const KNOWN: bool>(
    hot: Hot,
    function: Function,
    origin: Origin,
    call: u64,
    result: ResultCode,
    answers: Option<&Values>,
) -> ResultCode {
    let all = || answers.copied().unwrap_or_default();
    match origin {
        Origin::Adapter(_) | Origin::Driver | Origin::Library(_) => {
            return chain::exit::<KNOWN>(hot, function, call, result, answers);
        }
        Origin::Xpti(_) => chain::returned(hot, function, call, result, all()),
        Origin::Inner(_) => chain::inner_exit(function, call, result, all()),
    }
    result
}

/// Records the exit of a call that ends by a C++ exception of the real function. The exception passes through, and the
/// loader returns UNKNOWN for it.
struct ExceptionGuard<'a> {
    function: Function,
    origin: Origin,
    call: u64,
    outer: Option<&'a Outer>,
}

impl Drop for ExceptionGuard<'_> {
    fn drop(&mut self) {
        if let Some(outer) = self.outer {
            outer.end();
        }
        without_answers(self.function, self.origin, self.call, ResultCode::UNKNOWN);
    }
}
