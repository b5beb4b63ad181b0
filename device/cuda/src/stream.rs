//! Streams, and what is submitted to them. Each has a stream of the software device, which executes in order.
//!
//! The legacy default stream waits for the other streams of its context that do not refuse that, and they for it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use urscope_device::{
    Address, Argument, Deadline, Device, Event, HostFunction, Priority, Queue, UserData, Work, ZeResult,
};

use crate::arguments::Out;
use crate::context::{current, current_device, initialised};
use crate::exports::{functions, is_stream_of_thread};
use crate::memory::{self, check};
use crate::objects::Objects;
use crate::result::{Code, Outcome};

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles that stand for the default streams.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// The queues that streams are spread over: those of the group with ordinal 0.
const QUEUES: u32 = 4;

pub(crate) struct Stream {
    context: usize,
    commands: Arc<urscope_device::Stream>,
    flags: u32,
    is_default: bool,
    /// The event by which the default stream and the others wait for each other.
    mark: Arc<Event>,
    /// Of a stream that the default stream waits for: whether it has work that this has not waited for.
    has_news: AtomicBool,
    /// How often work was submitted to the default stream, and the last of it that this one has waited for.
    submitted: AtomicU64,
}

static STREAMS: Objects<Stream> = Objects::new();

/// The order of submissions.
static ORDER: Mutex<()> = Mutex::new(());

thread_local! {
    /// The default streams of this thread, by context. Never dropped: exit handlers make calls, too.
    static OF_THREAD: RefCell<ManuallyDrop<BTreeMap<usize, usize>>> = const { RefCell::new(ManuallyDrop::new(BTreeMap::new())) };
}

impl Stream {
    fn new(context: usize, device: Arc<Device>, flags: u32, is_default: bool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let queue = Queue { ordinal: 0, index: NEXT.fetch_add(1, Ordering::Relaxed) % QUEUES };
        let commands = urscope_device::Stream::new(device, queue, Priority::Normal);
        let has_news = AtomicBool::new(false);
        let submitted = AtomicU64::new(0);
        Self { context, commands, flags, is_default, mark: Arc::new(Event::counter()), has_news, submitted }
    }

    /// The legacy default stream of a new context.
    pub(crate) fn default_of(context: usize, device: Arc<Device>) -> Self {
        Self::new(context, device, 0, true)
    }

    fn joins(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }

    /// Submits what comes after all that the stream has to wait for.
    pub(crate) fn submit(&self, append: impl FnOnce(&Arc<urscope_device::Stream>) -> Result<(), ZeResult>) -> Outcome {
        let _order = ORDER.lock();
        let others = || STREAMS.all().into_iter().filter(|(_, other)| other.context == self.context && other.joins());
        if self.is_default {
            for (_, other) in others().filter(|(_, other)| other.has_news.swap(false, Ordering::Relaxed)) {
                other.precede(self)?;
            }
            self.submitted.fetch_add(1, Ordering::Relaxed);
        } else if self.joins() {
            if let Some((_, default)) = others().find(|(_, other)| other.is_default) {
                let submitted = default.submitted.load(Ordering::Relaxed);
                if self.submitted.swap(submitted, Ordering::Relaxed) != submitted {
                    default.precede(self)?;
                }
            }
            self.has_news.store(true, Ordering::Relaxed);
        }
        append(&self.commands)?;
        Ok(())
    }

    /// What is submitted to `other` from now on waits for what was submitted to this stream.
    fn precede(&self, other: &Self) -> Outcome {
        if !self.commands.synchronize(Deadline::now()) {
            self.commands.signal(Arc::clone(&self.mark))?;
            other.commands.wait_for(Arc::clone(&self.mark))?;
        }
        Ok(())
    }

    /// Waits for a copy whose sides are at these addresses, if one of them is pageable memory of the host: as with the
    /// driver, its "asynchronous" copy has read or written it when the call returns (CUDA Driver API, "API
    /// synchronization behavior").
    pub(crate) fn wait_for_pageable(&self, sides: [usize; 2]) -> Outcome {
        if sides.into_iter().any(memory::is_pageable) { self.wait(Deadline::NEVER) } else { Ok(()) }
    }

    fn wait(&self, deadline: Deadline) -> Outcome {
        self.submit(|_| Ok(()))?;
        if self.commands.synchronize(deadline) { Ok(()) } else { Err(Code::NOT_READY) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // What was submitted completes.
        self.commands.close();
    }
}

pub(crate) fn add(stream: Stream) -> usize {
    STREAMS.add(stream)
}

/// The stream that a handle stands for in the thread's context.
pub(crate) fn find(handle: usize) -> Outcome<Arc<Stream>> {
    let (context, _) = current()?;
    match handle {
        0 if is_stream_of_thread() => of_thread(context),
        PER_THREAD => of_thread(context),
        0 | LEGACY => {
            let default = STREAMS.all().into_iter().find(|(_, other)| other.context == context && other.is_default);
            default.map(|(_, stream)| stream).ok_or(Code::INVALID_CONTEXT)
        }
        _ => STREAMS.get(handle),
    }
}

fn of_thread(context: usize) -> Outcome<Arc<Stream>> {
    let known = OF_THREAD.with_borrow(|streams| streams.get(&context).copied());
    if let Some(stream) = known.and_then(|handle| STREAMS.get(handle).ok()) {
        return Ok(stream);
    }
    let handle = add(Stream::new(context, current_device()?, 0, false));
    OF_THREAD.with_borrow_mut(|streams| streams.insert(context, handle));
    STREAMS.get(handle)
}

fn of_context(context: usize) -> impl Iterator<Item = (usize, Arc<Stream>)> {
    STREAMS.all().into_iter().filter(move |(_, stream)| stream.context == context)
}

/// Waits for everything that was submitted to the streams of a context.
pub(crate) fn synchronise_all(context: usize) {
    for (_, stream) in of_context(context) {
        stream.commands.synchronize(Deadline::NEVER);
    }
}

/// Ends the streams of a context.
pub(crate) fn end_all(context: usize) {
    for (handle, _) in of_context(context) {
        drop(STREAMS.remove(handle));
    }
}

/// Which arguments of a copy are memory of the device.
#[derive(Clone, Copy)]
enum Sides {
    To,
    From,
    Both,
    /// Either may be memory of the host that the driver does not know.
    Any,
}

fn copy(to: usize, from: usize, size: usize, sides: Sides, stream: &Stream) -> Outcome {
    if matches!(sides, Sides::To | Sides::Both) {
        check(to, size)?;
    }
    if matches!(sides, Sides::From | Sides::Both) {
        check(from, size)?;
    }
    if size == 0 {
        return Ok(());
    }
    check_given([to, from])?;
    // SAFETY: cuda.h promises memory of this size at both addresses, which commands may access until they have
    // completed.
    let work = unsafe { Work::copy(Address::new(to), Address::new(from), Argument::new(size)) };
    stream.submit(|commands| commands.perform(work))?;
    stream.wait_for_pageable([to, from])
}

/// `INVALID_VALUE` if an address of a copy is NULL.
pub(crate) fn check_given(sides: [usize; 2]) -> Outcome {
    if sides.contains(&0) { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

/// Submits to the default stream, and waits for it.
pub(crate) fn at_once(submit: impl FnOnce(&Stream) -> Outcome) -> Outcome {
    let stream = find(0)?;
    submit(&stream)?;
    stream.wait(Deadline::NEVER)
}

/// Repeats the lowest `width` bytes of a value in `size` bytes.
///
/// # Safety
/// As for [`Address::new`], for all of these bytes.
pub(crate) unsafe fn values(to: usize, value: u32, width: usize, size: usize) -> Work {
    let pattern = value.to_le_bytes().into_iter().take(width).collect();
    // SAFETY: the caller promises it.
    unsafe { Work::repeat(Address::new(to), pattern, Argument::new(size)) }
}

/// Sets `count` values of `width` bytes.
fn set(to: usize, value: u32, width: usize, count: usize, stream: &Stream) -> Outcome {
    let size = count.checked_mul(width).ok_or(Code::INVALID_VALUE)?;
    check(to, size)?;
    if size == 0 {
        return Ok(());
    }
    // SAFETY: `check` has found this memory, which the caller lets commands write.
    let work = unsafe { values(to, value, width, size) };
    stream.submit(|commands| commands.perform(work))
}

fn create(stream: Out<usize>, flags: u32) -> Outcome {
    let (context, _) = current()?;
    stream.check()?;
    stream.write(add(Stream::new(context, current_device()?, flags, false)))
}

functions! {
    2000 "cuStreamCreate" cuStreamCreate(stream: Out<usize>, flags: u32) {
        create(stream, flags)
    }
    5050 "cuStreamCreateWithPriority" cuStreamCreateWithPriority(stream: Out<usize>, flags: u32, _priority: i32) {
        create(stream, flags)
    }
    4000 "cuStreamDestroy" cuStreamDestroy_v2(stream: usize) {
        initialised()?;
        STREAMS.remove(stream).map(drop)
    }
    2000 "cuStreamSynchronize" cuStreamSynchronize(stream: usize) / cuStreamSynchronize_ptsz {
        find(stream)?.wait(Deadline::NEVER)
    }
    2000 "cuStreamQuery" cuStreamQuery(stream: usize) / cuStreamQuery_ptsz {
        find(stream)?.wait(Deadline::now())
    }
    5050 "cuStreamGetFlags" cuStreamGetFlags(stream: usize, flags: Out<u32>) / cuStreamGetFlags_ptsz {
        flags.write(find(stream)?.flags)
    }
    5050 "cuStreamGetPriority" cuStreamGetPriority(stream: usize, priority: Out<i32>) / cuStreamGetPriority_ptsz {
        find(stream)?;
        priority.write(0)
    }
    9020 "cuStreamGetCtx" cuStreamGetCtx(stream: usize, context: Out<usize>) / cuStreamGetCtx_ptsz {
        context.write(find(stream)?.context)
    }
    10000 "cuStreamIsCapturing" cuStreamIsCapturing(stream: usize, status: Out<u32>) / cuStreamIsCapturing_ptsz {
        find(stream)?;
        status.write(0)
    }
    10000 "cuLaunchHostFunc" cuLaunchHostFunc(stream: usize, function: HostFunction, data: UserData) / cuLaunchHostFunc_ptsz {
        find(stream)?.submit(|commands| commands.perform(Work::host_function(function, data)?))
    }
    4000 "cuMemcpy" cuMemcpy(to: usize, from: usize, size: usize) / cuMemcpy_ptds {
        at_once(|stream| copy(to, from, size, Sides::Any, stream))
    }
    3020 "cuMemcpyHtoD" cuMemcpyHtoD_v2(to: usize, from: usize, size: usize) / cuMemcpyHtoD_v2_ptds {
        at_once(|stream| copy(to, from, size, Sides::To, stream))
    }
    3020 "cuMemcpyDtoH" cuMemcpyDtoH_v2(to: usize, from: usize, size: usize) / cuMemcpyDtoH_v2_ptds {
        at_once(|stream| copy(to, from, size, Sides::From, stream))
    }
    3020 "cuMemcpyDtoD" cuMemcpyDtoD_v2(to: usize, from: usize, size: usize) / cuMemcpyDtoD_v2_ptds {
        at_once(|stream| copy(to, from, size, Sides::Both, stream))
    }
    4000 "cuMemcpyPeer" cuMemcpyPeer(
        to: usize, _to_context: usize, from: usize, _from_context: usize, size: usize,
    ) / cuMemcpyPeer_ptds {
        at_once(|stream| copy(to, from, size, Sides::Both, stream))
    }
    4000 "cuMemcpyAsync" cuMemcpyAsync(to: usize, from: usize, size: usize, stream: usize) / cuMemcpyAsync_ptsz {
        copy(to, from, size, Sides::Any, &*find(stream)?)
    }
    3020 "cuMemcpyHtoDAsync" cuMemcpyHtoDAsync_v2(
        to: usize, from: usize, size: usize, stream: usize,
    ) / cuMemcpyHtoDAsync_v2_ptsz {
        copy(to, from, size, Sides::To, &*find(stream)?)
    }
    3020 "cuMemcpyDtoHAsync" cuMemcpyDtoHAsync_v2(
        to: usize, from: usize, size: usize, stream: usize,
    ) / cuMemcpyDtoHAsync_v2_ptsz {
        copy(to, from, size, Sides::From, &*find(stream)?)
    }
    3020 "cuMemcpyDtoDAsync" cuMemcpyDtoDAsync_v2(
        to: usize, from: usize, size: usize, stream: usize,
    ) / cuMemcpyDtoDAsync_v2_ptsz {
        copy(to, from, size, Sides::Both, &*find(stream)?)
    }
    4000 "cuMemcpyPeerAsync" cuMemcpyPeerAsync(
        to: usize, _to_context: usize, from: usize, _from_context: usize, size: usize, stream: usize,
    ) / cuMemcpyPeerAsync_ptsz {
        copy(to, from, size, Sides::Both, &*find(stream)?)
    }
    3020 "cuMemsetD8" cuMemsetD8_v2(to: usize, value: u8, count: usize) / cuMemsetD8_v2_ptds {
        at_once(|stream| set(to, value.into(), 1, count, stream))
    }
    3020 "cuMemsetD16" cuMemsetD16_v2(to: usize, value: u16, count: usize) / cuMemsetD16_v2_ptds {
        at_once(|stream| set(to, value.into(), 2, count, stream))
    }
    3020 "cuMemsetD32" cuMemsetD32_v2(to: usize, value: u32, count: usize) / cuMemsetD32_v2_ptds {
        at_once(|stream| set(to, value, 4, count, stream))
    }
    3020 "cuMemsetD8Async" cuMemsetD8Async(to: usize, value: u8, count: usize, stream: usize) / cuMemsetD8Async_ptsz {
        set(to, value.into(), 1, count, &*find(stream)?)
    }
    3020 "cuMemsetD16Async" cuMemsetD16Async(to: usize, value: u16, count: usize, stream: usize) / cuMemsetD16Async_ptsz {
        set(to, value.into(), 2, count, &*find(stream)?)
    }
    3020 "cuMemsetD32Async" cuMemsetD32Async(to: usize, value: u32, count: usize, stream: usize) / cuMemsetD32Async_ptsz {
        set(to, value, 4, count, &*find(stream)?)
    }
}
