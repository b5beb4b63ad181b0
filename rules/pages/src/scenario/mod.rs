//! Scenarios: the traces in the rules' documentation, written as one writes them on a board.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m in c
//! consumer/2: close m + 8 in c fails
//! ```
//!
//! One line, one step of one process (and thread, `/2`; and host, `@2`); a process begins where it is first named, and
//! exits at the end of the scenario if it has not ended before. `#` begins a comment.
//!
//! | step | meaning |
//! |---|---|
//! | `context c`, `retain c`, `release c` | a context is created, retained, released |
//! | `alloc p 4096`, `free p` | USM of the device, or `as host` or `as shared`, perhaps `from POOL` |
//! | `alloc p 4096 queued`, `free p queued` | the same by a command of a queue, which perhaps `waits` for events |
//! | `pool q`, `retain-pool q`, `release-pool q` | a USM pool |
//! | `get p -> h`, `put h` | handle data in the producer; without `-> h` the adapter returns success and no result |
//! | `open h -> m`, `close m` | a mapping in the consumer; `-> m` may likewise be left out |
//! | `physical m ipc`, `retain-physical m`, `release-physical m` | physical memory, with or without the IPC flag |
//! | `get-physical m -> h`, `put-physical h`, `open-physical h -> n`, `close-physical n` | its handle data |
//! | `map m -> v`, `unmap v` | addresses at which physical memory is mapped; all of it, or as much as `sized` says |
//! | `event e ipc`, `retain-event e`, `release-event e` | an event, with or without the IPC flag |
//! | `get-event e -> h`, `put-event h`, `open-event h -> f` | its handle data |
//! | `wait e` | a wait on the host for an event |
//! | `copy m sized 64` | a queue copies to that memory |
//! | `launch m` | a queue executes a kernel with that pointer |
//! | `graph g` | a queue executes a graph of CUDA, whose commands are not known |
//! | `write m seed 7`, `compare m seed 7` | bytes are written, and the same found; the host waits, without a record |
//! | `signal e` | an event is signalled; the host waits, without a record |
//! | `ran p writes 64 since 3` | the device has executed the latest copy of the process (see below) |
//! | `host-waits` | the host waits for all commands of the process, those `of q`, or those in front of `e` (`for e`) |
//! | `may-know` | the host may know that they have completed, likewise |
//! | `signals for e of q`, `awaits for e of q` | a queue signals an event, or waits for it |
//! | `not-followed` | a kernel is enqueued in some queue, or in that one (`of q`) |
//! | `in-order`, `out-of-order` | the queue (`of q`) is new, and its commands are executed so |
//! | `list`, `executes for l of q` | the queue (`of l`) is a new command list, a queue executes it |
//! | `resets` | a command list (`of l`) is empty, or an event (`for e`) is not signalled any more |
//! | `shares` | the process begins to share memory: what its lists contain is not known |
//! | `limit` | from now on not all commands of the process are recorded |
//! | `fork child` | a process begins as a copy of this one |
//! | `support events -> no` | the device reports whether it can share `memory`, `physical` memory or `events` |
//! | `uid 7`, `pid-namespace 7`, `ptrace-scope 1`, `seccomp 2` | what the kernel lets the process do, before all else |
//! | `dumpable 0`, `traces-any 1`, `descriptor-limit 64` | likewise |
//! | `device d 0 Name_of_it` | the device has that index, or none with `-`, and that name, with `_` for a space |
//! | `descriptors 20` | so many descriptors are open |
//! | `keeps d` | the process, which is about to end, has the descriptor that the latest get of CUDA named so returned |
//! | `exit`, `exec`, `killed`, `running`, `incomplete` | how the process ends (see below) |
//! | `exec next` | the same, and the other program is a process of its own name |
//! | `seen`, `gone` | somebody sees from outside that the process runs, or that it is not there any more |
//! | `returns`, `fails` | the call of this thread that `begins` left open returns |
//!
//! `ran`: the copy began so many steps ago, and wrote so many bytes of memory that all processes call so, or it `reads`
//! them, `may-read` or `may-write` them. Behind it may stand `+ NUMBER`, and `rows NUMBER NUMBER` with the pitch.
//!
//! A process that is `killed` is so some time after its last call. After `exec` it is another program. Of one that is
//! `incomplete`, one record is lost.
//!
//! `null` is the name of no object. A name is an address: named again as a result, the same address comes again. Handle
//! data that nobody got are a copy of others where they are put, and wrong bytes where they are opened; `zeros` are
//! bytes that nobody has filled in. The bytes of handle data depend on the exported address alone; those of physical
//! memory also on the name of the handle data, unless it is `like` another.
//!
//! Behind a call may stand `+ NUMBER` (an address inside; of a `map`, inside of what it makes), `in CONTEXT`, `on
//! DEVICE` (of a context: its only one), `sized NUMBER` (of the handle data of an open, or of what is mapped),
//! `overwrites NUMBER` (of an open: the adapter would have changed this byte of its caller's), `flipped NUMBER` (of an
//! open: a bit of that byte of its handle data is another one), `exposes NUMBER` (of a get: the bytes that the driver
//! exports), `profiled` (an event), `takes NUMBER` (milliseconds), `unfinished` (of a close, a free or an unmap: the
//! device says that a command accesses the memory from there on), `replaced` (of an open by Level Zero: the process has
//! written the number of its own descriptor into the handle), `on-host` (of a copy: the program may have memory of its
//! own at the address), `queue NAME` (of a copy; without it, the default stream), `non-blocking` (that queue), `ze` or
//! `cuda` (by the function of Level Zero, of USM and its handle data, or of CUDA, also of events), and one of `fails`
//! (with 45, or the `ur_result_t` behind it), `may-fail` (likewise, if the runtime likes; without a runtime it fails)
//! and `begins`.
//!
//! `&` in front of a line: the step happens at the same time as the one before it. What stands between a line `NUMBER
//! times` and a line `end` happens so often; `$` in it is the number of the repetition.
//!
//! A scenario becomes records, numbered and timed, that a tracker plays and that a trace can be written from.
//! `tests/apps/scenario.cpp` plays one with real processes on the real runtime, as far as a program in SYCL can make
//! its steps happen.

mod handle_data;
mod interfaces;
mod parse;
mod play;

pub use parse::ScenarioError;
pub use play::{Event, judge};

use urscope_rules::{End, Rights};
use urscope_schema::api::{Function, Interface};
use urscope_schema::call::{Access, SyncKind};

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    lines: Vec<Line>,
}

/// One step of one thread.
#[derive(Clone, Debug)]
struct Line {
    process: String,
    /// From 1 on, as the thread.
    host: u32,
    thread: u32,
    step: Step,
    /// The number of its line in the text, from 1 on.
    number: usize,
}

/// What a thread does.
#[derive(Clone, Debug)]
enum Step {
    /// It calls a function.
    Call(Box<Call>),
    /// Its open call returns, well or not.
    Returns(bool),
    /// A child begins.
    Fork(String),
    /// The process ends.
    Ends(End),
    /// It becomes another program, as a process of this name.
    Becomes(String),
    /// What the kernel lets the process do.
    May(SetRight, u64),
    /// A device has an index, perhaps, and a name.
    Device(String, Option<u32>, String),
    /// So many descriptors are open.
    Descriptors(u64),
    /// The descriptor of that name is open when the process ends.
    Keeps(String),
    /// The device has executed the latest command: an access to the memory with this name.
    Ran(Ran),
    /// It orders commands, or the host knows that some have completed: those of a queue, or in front of an event.
    Synchronizes(SyncKind, Option<String>, Option<String>),
    /// The process is seen from outside: running, or not there any more.
    Seen(bool),
}

/// An access of an executed command.
#[derive(Clone, Debug, Default)]
struct Ran {
    memory: String,
    access: Option<Access>,
    size: u64,
    offset: u64,
    /// The number of rows, and the bytes from one to the next.
    rows: u64,
    pitch: u64,
    /// How many steps ago it began.
    since: u64,
}

/// Sets what the kernel lets a process do, or not.
type SetRight = fn(&mut Rights, u64);

/// A call.
#[derive(Clone, Debug, Default)]
struct Call {
    verb: Verb,
    /// That of device memory, and of no queue; none of a step that leaves no record.
    function: Option<Function>,
    /// The object that is handed in, or the one that is made.
    object: Option<String>,
    /// How far behind the object's address; of a map, behind that of its result.
    offset: u64,
    /// The name of what comes back.
    result: Option<String>,
    /// Of physical memory that is got: the handle data whose descriptor the driver exports again.
    like: Option<String>,
    context: Option<String>,
    /// On which device; of a context, its only one.
    device: Option<String>,
    /// Whether it is made with the IPC flag.
    shared: bool,
    /// Whether it is made with profiling.
    profiled: bool,
    /// The size that is asked for, of what is mapped where that is not all, or of handle data that is not what its get
    /// gave.
    size: Option<u64>,
    /// Of an open: the byte of the caller's handle data that the adapter would have changed.
    overwrites: Option<u64>,
    /// Of an open: the byte of the handle data of which a bit is another one.
    flipped: Option<u64>,
    /// Of a get: how many bytes the driver exports, from the address without its offset on.
    exposes: Option<u64>,
    /// The type of USM, `host` or `shared`, where it is not of the device.
    usm: Option<String>,
    pool: Option<String>,
    /// Whether USM is allocated or freed by a command of a queue.
    queued: bool,
    /// Whether that waits for events.
    waits: bool,
    /// The interface whose function it is, if that is another one than Unified Runtime.
    interface: Option<&'static Interface>,
    /// Of a close or a free: the device says that a command accesses the memory.
    unfinished: bool,
    /// Of a copy: the program may have memory of its own at the address.
    on_host: bool,
    /// Of a copy: its queue, and whether that does not wait for the default one.
    queue: Option<String>,
    non_blocking: bool,
    /// How many milliseconds it takes longer than others.
    takes: Option<u64>,
    /// How it goes on.
    fate: Fate,
}

/// Declares the steps that are calls, each with its word and its function; a step without one leaves no record.
macro_rules! verbs {
    ($($(#[$default:meta])? $verb:ident $word:literal $($function:ident)?,)*) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        enum Verb {
            $($(#[$default])? $verb,)*
        }

        const VERBS: &[(&str, Verb, Option<Function>)] =
            &[$(($word, Verb::$verb, [$(Some(Function::$function),)? None][0])),*];
    };
}

verbs! {
    #[default] Context "context" urContextCreate,
    Retain "retain" urContextRetain,
    Release "release" urContextRelease,
    Pool "pool" urUSMPoolCreate,
    RetainPool "retain-pool" urUSMPoolRetain,
    ReleasePool "release-pool" urUSMPoolRelease,
    Alloc "alloc" urUSMDeviceAlloc,
    Free "free" urUSMFree,
    Get "get" urIPCGetMemHandleExp,
    Put "put" urIPCPutMemHandleExp,
    Open "open" urIPCOpenMemHandleExp,
    Close "close" urIPCCloseMemHandleExp,
    Physical "physical" urPhysicalMemCreate,
    RetainPhysical "retain-physical" urPhysicalMemRetain,
    ReleasePhysical "release-physical" urPhysicalMemRelease,
    GetPhysical "get-physical" urIPCGetPhysMemHandleExp,
    PutPhysical "put-physical" urIPCPutPhysMemHandleExp,
    OpenPhysical "open-physical" urIPCOpenPhysMemHandleExp,
    ClosePhysical "close-physical" urIPCClosePhysMemHandleExp,
    Map "map" urVirtualMemMap,
    Unmap "unmap" urVirtualMemUnmap,
    Event "event" urEventCreateExp,
    RetainEvent "retain-event" urEventRetain,
    ReleaseEvent "release-event" urEventRelease,
    GetEvent "get-event" urIPCGetEventHandleExp,
    PutEvent "put-event" urIPCPutEventHandleExp,
    OpenEvent "open-event" urIPCOpenEventHandleExp,
    Wait "wait" urEventWait,
    Support "support" urDeviceGetInfo,
    Copy "copy" urEnqueueUSMMemcpy,
    Launch "launch" urEnqueueKernelLaunchWithArgsExp,
    Graph "graph" cuGraphLaunch,
    Write "write",
    Compare "compare",
    Signal "signal",
}

/// The error that failing calls of a scenario return by default.
const REFUSED: u32 = 45;

/// How a call goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    /// It returns at once, well.
    Returns,
    /// It returns at once, with this `ur_result_t`.
    Fails(u32),
    /// It returns at once. The runtime may refuse it, with this `ur_result_t`.
    MayFail(u32),
    /// It does not return yet.
    Begins,
}
