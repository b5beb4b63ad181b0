//! Commands that access memory: which of them are recorded, and whether the host has waited for them.
//!
//! A launch of a kernel is recorded only if it has pointers into shared memory. Its record has two of them. The record
//! of a command has the context of its queue, if the creation of that was seen.
//!
//! Programs enqueue many commands, so commands are recorded only after the process has shared memory. What
//! orders them has records of its own ([`synchronization`](super::synchronization)).

#![expect(clippy::inline_always, reason = "decided when it is compiled: the effect is mostly a constant")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use urscope_schema::api::{Effect, Function, Promise, ResultCode};
use urscope_schema::handle::{Kind, descriptor_in};
use urscope_schema::{call::Executed, call::Values, operation};

use super::event_filter::Recording;
use super::ranges::{self, ENDED_RANGES, LATEST_RANGE, SHARED_RANGES};
use super::{device_errors, limit, lists, lists::ListedAccess, synchronization};
use crate::raw::args::{inputs::Inputs, inputs::NewQueue, reader::Reader};
use crate::raw::{files::kept_descriptors, memory::host_memory, software_device, software_device::CommandObserver};
use crate::{chain, knobs};

/// Whether this process has got or opened handle data of memory. The hooks of commands read it in their first
/// instruction.
pub(crate) static IS_SHARING: AtomicBool = AtomicBool::new(false);

/// The assumed size of memory whose size is unknown.
const UNKNOWN_SIZE: u64 = 1 << 32;

/// The Level Zero queues and immediate command lists in which a command has completed when its call returns; 0 for
/// none. Of more than fit, the later ones are taken for asynchronous.
static SYNCHRONOUS: [AtomicUsize; 32] = [const { AtomicUsize::new(0) }; 32];

/// Queues and command lists at a place that follows from their handles, each with its context and, in the lowest bits
/// of that, [`IS_SYNCHRONOUS`], [`IS_LATER`] and [`IS_NON_BLOCKING`]. Of several with the same place, the latest is
/// known.
static CONTEXTS: [[AtomicUsize; 2]; 256] = [const { [const { AtomicUsize::new(0) }; 2] }; 256];

/// In [`CONTEXTS`]: it is one of [`SYNCHRONOUS`].
const IS_SYNCHRONOUS: usize = 1;

/// In [`CONTEXTS`]: it is a command list that is executed later.
const IS_LATER: usize = 2;

/// In [`CONTEXTS`]: it does not wait for the default queue.
const IS_NON_BLOCKING: usize = 4;

/// The bits of [`CONTEXTS`] that are no context.
const HOW: usize = IS_SYNCHRONOUS | IS_LATER | IS_NON_BLOCKING;

/// What [`before`] has seen, for [`after`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Whether the call enqueues a command.
    pub(crate) is_command: bool,
    /// Whether the call waits for the command that it enqueues, or for those in the lists that it executes.
    pub(crate) is_blocking: bool,
    /// Whether the command is one of a list that is executed later.
    is_appended: bool,
    /// Whether an allocation imports memory of another process.
    imports: bool,
    /// How many bytes the call asks for.
    size: Option<u64>,
    /// The object that the call is about.
    object: Option<u64>,
}

impl Seen {
    /// Whether a command is left out, if the trace has reached its limit.
    #[inline(never)]
    pub(crate) fn is_left_out(self, function: Function, values: &Values) -> bool {
        let uses_ended_memory = operation::has_noticed(values, operation::ACCESSED | operation::SOURCE);
        !self.is_appended && !uses_ended_memory && !limit::is_first(values.stack.unwrap_or_default(), function)
    }
}

#[inline]
pub(crate) fn are_recorded() -> bool {
    IS_SHARING.load(Ordering::Relaxed)
}

/// Adds to the arguments of a call that ends memory what the software device says: the offset of the first byte that an
/// unfinished command accesses, or that all have completed.
#[inline(always)]
pub(crate) fn before(function: Function, effect: Effect, inputs: &Inputs, values: &mut Values) -> Seen {
    let ends_memory = effect.ends_memory();
    if ends_memory && are_recorded() {
        limit::note_change();
        // The next memory at the address may have another size.
        LATEST_RANGE.store(0, Ordering::Relaxed);
        if let Some(pointer) = values.pointer {
            note_end(effect, pointer, values.size);
        }
    }
    if ends_contents(function, effect) && are_recorded() {
        inputs.reader().forget_kernels();
        ranges::may_all_end();
    }
    if ends_memory && are_recorded() {
        match values.pointer.and_then(software_device::unfinished_from) {
            Some(None) => values.noticed = Some(operation::COMPLETED),
            unfinished => values.unfinished = unfinished.flatten(),
        }
    }
    let is_command = effect.is_command();
    let is_execution = effect.executes();
    // Only if it is needed: what a reader may read, the compiler does not keep in registers.
    let handle = if is_command || is_execution { inputs.queue().unwrap_or_default() } else { 0 };
    let known = noted(handle);
    if is_command && are_recorded() {
        values.context = context_of(known);
        values.noticed = ended(values.pointer, values.source);
        values.queue = inputs.queue().map(|queue| queue as u64);
        if known.is_some_and(|known| known & IS_NON_BLOCKING != 0) {
            values.noticed = Some(values.noticed.unwrap_or_default() | operation::NON_BLOCKING);
        }
    }
    Seen {
        is_command,
        is_blocking: is_command && waits_for_itself(values)
            || matches!(effect, Effect::Performs(_))
            || (is_command || is_execution) && is_synchronous(handle, known),
        is_appended: is_command && known.is_some_and(|known| known & IS_LATER != 0),
        imports: function.imports(values),
        size: values.size,
        object: values.object,
    }
}

/// Whether a call that enqueues a command waits for it. A C++ bool is the lowest byte of its register.
#[inline]
pub(crate) fn waits_for_itself(values: &Values) -> bool {
    values.value.is_some_and(|blocking| blocking as u8 != 0)
}

/// Registers memory that a call is about to end. If the call is refused, nothing has ended, as the trace shows.
#[inline(always)]
fn note_end(effect: Effect, pointer: u64, size: Option<u64>) {
    let ends = match effect {
        Effect::Unmaps(_) => size.map(|size| pointer.saturating_add(size)),
        // The memory may be a part of the driver's allocation.
        _ => SHARED_RANGES.around(pointer).map(|[_, ends]| ends),
    };
    if let Some(ends) = ends {
        ENDED_RANGES.add(pointer, ends);
    }
}

/// Whether a call may end all that belongs to a context. Of the references to a device's own context, the last one
/// does.
#[inline(always)]
fn ends_contents(function: Function, effect: Effect) -> bool {
    matches!(effect, Effect::Resets(Kind::Context) | Effect::Releases(Kind::Context))
        && function.interface().promises(Promise::ContextsOwnMemory)
}

/// What is noticed of a command with these addresses.
#[inline(always)]
fn ended(pointer: Option<u64>, source: Option<u64>) -> Option<u64> {
    let has_ended = |address: Option<u64>| address.is_some_and(|address| ENDED_RANGES.around(address).is_some());
    if has_ended(pointer) || has_ended(source) { not_of_host(pointer, source) } else { None }
}

#[cold]
fn not_of_host(pointer: Option<u64>, source: Option<u64>) -> Option<u64> {
    let asked = [(pointer, operation::ACCESSED), (source, operation::SOURCE)].into_iter().filter(|(address, _)| {
        address
            .is_some_and(|address| ENDED_RANGES.around(address).is_some() && host_memory::is_not_host_memory(address))
    });
    Some(asked.fold(0, |flags, (_, flag)| flags | flag)).filter(|flags| *flags != 0)
}

/// An access of a command in the lists that a call executes to memory that has ended since.
#[inline]
pub(crate) fn executed_after_end(inputs: &Inputs) -> Option<ListedAccess> {
    let is_over = |address| ENDED_RANGES.around(address).is_some() && host_memory::is_not_host_memory(address);
    if ENDED_RANGES.is_unused() { None } else { lists::find(&inputs.lists(), is_over) }
}

/// Registers what a command accesses that the call with this number is about to append, if it is one of a list that is
/// executed later. If the memory has ended before, the append is reported.
#[inline(always)]
pub(crate) fn note_appended(seen: Seen, call: u64, inputs: &Inputs, values: &Values) {
    if seen.is_appended {
        lists::note(inputs.queue().unwrap_or_default(), call, [values.pointer, values.source]);
    }
}

/// Whether a command is recorded. A launch is if one of its arguments is a pointer into shared memory, or if its
/// arguments cannot be read; other commands always are.
#[inline(always)]
pub(crate) fn recorded(effect: Effect, inputs: &Inputs) -> Recording {
    if !are_recorded() {
        return Recording::No;
    }
    if !effect.launches() {
        return Recording::Command([None; 2]);
    }
    let mut nearest = Nearest { pointers: [None; 2], distances: [u64::MAX; 2] };
    match (inputs.each_kernel_pointer(|pointer| nearest.look_at(pointer)), nearest.pointers) {
        (false, _) => Recording::UnknownLaunch,
        (true, [None, _]) => {
            synchronization::not_followed(effect, inputs);
            Recording::No
        }
        (true, pointers) => Recording::Command(pointers),
    }
}

/// The two addresses in shared memory that are nearest to its start.
struct Nearest {
    pointers: [Option<u64>; 2],
    distances: [u64; 2],
}

impl Nearest {
    #[inline(always)]
    fn look_at(&mut self, pointer: u64) {
        if SHARED_RANGES.may_have(pointer) {
            self.add(pointer);
        }
    }

    #[inline(never)]
    fn add(&mut self, pointer: u64) {
        let inside = |[begins, ends]: [u64; 2]| (begins..ends).contains(&pointer).then(|| pointer - begins);
        let Some(distance) = SHARED_RANGES.iter().filter_map(inside).min() else { return };
        let [first, second] = self.pointers;
        let [nearer, farther] = self.distances;
        if first == Some(pointer) || second == Some(pointer) {
            return;
        }
        if distance < nearer {
            (self.pointers, self.distances) = ([Some(pointer), first], [distance, nearer]);
        } else if distance < farther {
            (self.pointers, self.distances) = ([first, Some(pointer)], [nearer, distance]);
        }
    }
}

/// Registers memory that a call has made, mapped or shared: `pointer` is its argument, `answers` are its answers.
#[inline(always)]
pub(crate) fn note_memory(
    function: Function,
    effect: Effect,
    reader: &dyn Reader,
    pointer: Option<u64>,
    seen: Seen,
    result: ResultCode,
    answers: &Values,
) {
    let made = match effect {
        Effect::Allocates(_) | Effect::Opens(Kind::Usm) => answers.pointer,
        Effect::Maps(_) if result.is_success() => pointer,
        _ => None,
    };
    if let Some(made) = made {
        limit::note_change();
        ENDED_RANGES.remove(made, made.saturating_add(answers.size.or(seen.size).unwrap_or(1)));
    }
    let is_import = matches!(effect, Effect::Allocates(_)) && seen.imports;
    let begins = match effect {
        // The driver's allocation, which contains the pointer.
        Effect::Exports(Kind::Usm) | Effect::MayExport(_) if answers.data.is_some() => answers.pointer.or(pointer),
        Effect::Opens(Kind::Usm) => answers.pointer,
        Effect::Allocates(_) if is_import => answers.pointer,
        _ => None,
    };
    // Most programs share the same memory again.
    if let Some(begins) = begins
        && LATEST_RANGE.load(Ordering::Relaxed) != begins
    {
        let size = answers.size.or(seen.size.filter(|_| is_import));
        let behind = |size| [begins, begins.saturating_add(size)];
        let [first, end] =
            size.map(behind).or_else(|| reader.allocation_around(begins)).unwrap_or_else(|| behind(UNKNOWN_SIZE));
        SHARED_RANGES.add(first, end);
        LATEST_RANGE.store(begins, Ordering::Relaxed);
    }
    if result.is_success() {
        note_physical(function, effect, pointer, seen, answers);
    }
}

/// Registers physical memory that a call has exported, imported or mapped. It may be mapped before it is exported.
#[inline(always)]
fn note_physical(function: Function, effect: Effect, pointer: Option<u64>, seen: Seen, answers: &Values) {
    match effect {
        Effect::Exports(Kind::PhysicalMem) => {
            seen.object.into_iter().for_each(ranges::share_physical);
            if function.interface().promises(Promise::DescriptorsKeepMemory) {
                answers.data.and_then(descriptor_in).into_iter().for_each(kept_descriptors::note);
            }
        }
        Effect::Opens(Kind::PhysicalMem) => answers.object.into_iter().for_each(ranges::share_physical),
        Effect::Creates(Kind::PhysicalMem) if seen.imports => {
            answers.object.into_iter().for_each(ranges::share_physical);
        }
        Effect::Creates(Kind::PhysicalMem) => answers.object.into_iter().for_each(ranges::new_physical),
        Effect::Maps(_) => {
            if let (Some(begins), Some(size), Some(memory)) = (pointer, seen.size, seen.object) {
                ranges::map_physical(memory, [begins, begins.saturating_add(size)]);
            }
        }
        _ => {}
    }
}

/// Processes a recorded call that has returned. `call` is its number, `seen` comes from [`before`].
#[inline(always)]
pub(crate) fn after(effect: Effect, call: u64, seen: Seen, result: ResultCode) {
    if !result.is_success() {
        if seen.is_command {
            lists::refused(call);
        }
    } else if seen.imports
        || matches!(
            effect,
            Effect::Exports(Kind::Usm | Kind::PhysicalMem)
                | Effect::MayExport(_)
                | Effect::Opens(Kind::Usm | Kind::PhysicalMem)
        ) && !are_recorded()
    {
        begin_to_share();
    }
}

/// From now on commands are recorded.
#[cold]
fn begin_to_share() {
    if knobs::read().races.0 && !are_recorded() {
        software_device::observe_commands(&EXECUTIONS);
    }
    IS_SHARING.store(true, Ordering::Relaxed);
    synchronization::begin_to_share();
}

static EXECUTIONS: &dyn CommandObserver = &Executions;

/// Receives what the software device has executed.
struct Executions;

impl CommandObserver for Executions {
    fn executed(&self, executed: &Executed) {
        let is_left_out = executed.call == 0 && limit::is_reached();
        if !is_left_out {
            chain::executed(executed);
        }
    }
}

/// Processes a call that is about to be made and is not recorded: it may unload code.
#[inline(always)]
pub(crate) fn before_unrecorded(effect: Effect, inputs: &Inputs) {
    if matches!(effect, Effect::Unloads(_)) {
        inputs.reader().forget_kernels();
    }
}

/// Processes a call that has returned and is not recorded: it may make or clear a queue. If it reports that the device
/// has failed, it is recorded now. Returns whether it has waited for commands that it has executed.
#[inline(always)]
pub(crate) fn note_unrecorded(function: Function, effect: Effect, inputs: &Inputs, result: ResultCode) -> bool {
    if !result.is_success() {
        device_errors::note(function, result);
    }
    if matches!(effect, Effect::Creates(Kind::Queue)) {
        if result.is_success() {
            note_queue(inputs);
        }
    } else if matches!(effect, Effect::Clears(Kind::Queue)) {
        if result.is_success() {
            lists::clear(inputs.queue().unwrap_or_default());
        }
    } else if effect.executes() {
        let queue = inputs.queue().unwrap_or_default();
        return result.is_success() && is_synchronous(queue, noted(queue));
    }
    false
}

/// Registers a new queue. Its handle may have been that of another one.
#[cold]
fn note_queue(inputs: &Inputs) {
    let Some(new) = inputs.new_queue() else { return };
    let NewQueue { handle: queue, context, is_synchronous, is_list, is_non_blocking, .. } = new;
    lists::clear(queue);
    if let Some([known, its_context]) = CONTEXTS.get(place_of(queue)) {
        known.store(0, Ordering::Relaxed);
        let how = [(is_synchronous, IS_SYNCHRONOUS), (is_list, IS_LATER), (is_non_blocking, IS_NON_BLOCKING)];
        let how = how.into_iter().fold(0, |bits, (is_so, bit)| if is_so { bits | bit } else { bits });
        its_context.store(context & !HOW | how, Ordering::Release);
        known.store(queue, Ordering::Release);
    }
    let replace = |old: usize, new: usize| {
        let is_replaced =
            |known: &AtomicUsize| known.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        SYNCHRONOUS.iter().any(is_replaced)
    };
    replace(queue, 0);
    if is_synchronous {
        replace(0, queue);
    }
}

/// The place of a queue in [`CONTEXTS`]: handles are addresses of objects.
const fn place_of(queue: usize) -> usize {
    (queue >> 4 ^ queue >> 12) % CONTEXTS.len()
}

/// What [`CONTEXTS`] has of a queue.
#[inline(always)]
fn noted(queue: usize) -> Option<usize> {
    let [known, context] = CONTEXTS.get(place_of(queue))?;
    (queue != 0 && known.load(Ordering::Acquire) == queue).then(|| context.load(Ordering::Acquire))
}

/// The context in what [`noted`] has of a queue; `None` if it is not known.
#[inline(always)]
fn context_of(known: Option<usize>) -> Option<u64> {
    known.map(|known| (known & !HOW) as u64).filter(|context| *context != 0)
}

/// Whether a queue, of which this is [`noted`], is synchronous.
#[inline(always)]
fn is_synchronous(queue: usize, known: Option<usize>) -> bool {
    let is_listed = || SYNCHRONOUS.iter().any(|known| known.load(Ordering::Relaxed) == queue);
    queue != 0 && known.map_or_else(is_listed, |known| known & IS_SYNCHRONOUS != 0)
}

#[cfg(test)]
mod tests;
