//! What a call does: its record decoded once, with the arguments that its kind of call has.
//!
//! The tracker and the rules use this form only. In a record, a word may have another meaning for each function
//! ([`crate::call::Values`]); here each field has one. A field is absent where the record does not show it.

mod answer;

pub use self::answer::Answer;
use crate::api::{Effect, Function, Promise, ResultCode, demand::Fault};
use crate::handle::{Handle, Kind, UsmType};
use crate::{call::Nanos, values::Fields};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It allocates memory.
    Allocate(Requested),
    /// It frees memory.
    Free(Free),
    /// It creates an object that can be shared, or could be.
    Create(Create),
    /// It creates a context, of this device if it is the only one.
    CreateContext(Option<u64>),
    /// It takes a reference to an object of this kind, and returns it.
    RetainMade(Kind),
    /// It takes a reference to the context that a device has in the process, and returns it.
    RetainPrimary(u64),
    /// It gives a reference to the context that this device has in the process back.
    ReleasePrimary(u64),
    /// It ends all that belongs to the context that this device has in the process.
    ResetPrimary(u64),
    /// It creates a USM pool.
    CreatePool,
    /// It takes a reference to an object, context or pool.
    Retain(Kind, Option<u64>),
    /// It gives a reference to one back.
    Release(Kind, Option<u64>),
    /// It ends an object, or closes one that was opened.
    Destroy(Kind, Option<u64>),
    /// It gets handle data.
    Export(Export),
    /// It puts handle data back, in this context.
    Put(Handle, Option<u64>),
    /// It opens handle data, or imports a descriptor.
    Open(Open),
    /// It closes a mapping.
    Close(Free),
    /// It asks this device whether it can share objects of this kind.
    AskSupport(u64, Kind),
    /// It maps physical memory.
    Map {
        /// At which address.
        pointer: u64,
        /// How many bytes.
        size: u64,
        /// Which physical memory.
        memory: u64,
    },
    /// It unmaps physical memory.
    Unmap {
        /// At which address, and which commands may access it.
        from: Free,
        /// How many bytes.
        size: u64,
    },
    /// It enqueues a command.
    Enqueue(Command),
    /// It enqueues commands whose accesses are not known.
    Submit,
    /// It executes a command on memory that has ended.
    Execute(LateAccess),
    /// It waits on the host for this event only.
    Wait(u64),
    /// It uses this event in another way.
    UseEvent(u64),
    /// Nothing that the tracker follows.
    Other,
}

/// The requested properties of memory; unknown for memory whose allocation was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Its type, where only some types can be shared.
    pub usm: Option<UsmType>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The device that it is made for.
    pub device: Option<u64>,
    /// The context that it belongs to.
    pub context: Option<u64>,
    /// The pool that it comes from, if that is not the default one.
    pub pool: Option<u64>,
}

/// A free of memory, a close of a mapping, or an unmap of physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// The address.
    pub pointer: Option<u64>,
    /// In which context.
    pub context: Option<u64>,
    /// It is a command of a queue.
    pub enqueued: bool,
    /// The command waits for events.
    pub waits: bool,
    /// It neither waits for the commands that access the memory nor leaves its work for later.
    pub at_once: bool,
    /// The device says that no unfinished command accesses the memory.
    pub completed: bool,
    /// The offset of the first byte that an unfinished command accesses, as the device says.
    pub unfinished: Option<u64>,
}

/// A creation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Create {
    /// Physical memory, an event or an event pool.
    pub kind: Kind,
    /// Whether it can be shared.
    pub is_shareable: bool,
    /// In which context.
    pub context: Option<u64>,
    /// On which device.
    pub device: Option<u64>,
    /// Of how many bytes.
    pub size: Option<u64>,
}

/// A get of handle data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// The kind of what is shared.
    pub kind: Kind,
    /// The address of the memory.
    pub pointer: Option<u64>,
    /// The object; of a get of memory, physical memory.
    pub object: Option<u64>,
    /// In which context.
    pub context: Option<u64>,
    /// The fingerprint of an exported descriptor, of which a handle is made.
    pub fingerprint: Option<u64>,
}

/// An open of handle data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The kind of object that is to be made: a mapping, physical memory, an event or an event pool.
    pub makes: Kind,
    /// The kind of the handle data.
    pub of: Kind,
    /// In which context.
    pub context: Option<u64>,
    /// On which device; of an event, none.
    pub device: Option<u64>,
    /// The fingerprint of the handle data.
    pub fingerprint: Option<u64>,
    /// The [`checksum`](crate::handle::checksum) of the handle data, unless its thread has recorded it before.
    pub checksum: Option<u64>,
    /// The process and the address in it that the handle data names.
    pub named: Option<(u64, u64)>,
    /// The process whose descriptor the handle data names, instead of an address.
    pub exporter: Option<Exporter>,
    /// The fingerprints of two exports, one of which it is. The tracker finds them; a record has none.
    pub one_of: Option<[u64; 2]>,
    /// The address of the handle data.
    pub data: Option<u64>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// An allocation imports it as a descriptor.
    pub imports: bool,
}

/// The process whose descriptor handle data names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exporter {
    /// Its number, in its own pid namespace.
    pub process: u64,
    /// What its get returned; unknown where the driver does not write that. In place of the descriptor a program may
    /// have stored one of its own process.
    pub got: Option<u64>,
}

/// Noticed of a command, or an execution of some: its `pointer` is no address of host memory.
pub const ACCESSED: u64 = 1;

/// Likewise: its `source` is no address of host memory.
pub const SOURCE: u64 = 2;

/// Noticed of a launch: its arguments could not be read, so that it is not known what it accesses.
pub const UNKNOWN: u64 = 4;

/// Noticed of a command: its stream does not wait for the default stream, nor that one for it
/// (`CU_STREAM_NON_BLOCKING` in `cuda.h`).
pub const NON_BLOCKING: u64 = 8;

/// Noticed of a call that ends memory: the software device says that all commands which access it have completed.
pub const COMPLETED: u64 = 1 << 31;

/// A command that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The address that it writes; of a launch, one that it accesses.
    pub writes: Option<u64>,
    /// The address that it reads.
    pub reads: Option<u64>,
    /// How many bytes.
    pub size: Option<u64>,
    /// For `writes` and `reads`: whether the program has no memory of its own at the address. It is only asked where
    /// shared memory has ended.
    pub is_not_host: [bool; 2],
    /// The context of its queue.
    pub context: Option<u64>,
    /// Its queue, where that is recorded.
    pub queue: Option<u64>,
    /// The queue does not wait for the default stream.
    pub is_non_blocking: bool,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// Whether it migrates memory, and neither reads nor changes its bytes.
    pub is_migration: bool,
}

/// A command of a command list that is executed, on memory which has ended since the command was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateAccess {
    /// The address. The program has no memory of its own there.
    pub address: u64,
    /// Whether it writes there.
    pub writes: bool,
    /// The number of the call that appended it.
    pub appended: Option<u64>,
}

/// A call that begins, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The function.
    pub function: Function,
    /// The number of the call in its process.
    pub call: u64,
    /// The kernel's number of the calling thread.
    pub tid: u32,
    /// When it began.
    pub time: Nanos,
    /// The number of its call stack.
    pub stack: Option<u64>,
    /// What it does.
    pub operation: Operation,
    /// What is wrong with its arguments according to the header.
    pub fault: Option<Fault>,
}

impl Begun {
    /// Whether the call shares something between processes. The verdict is about these.
    pub fn is_ipc(&self) -> bool {
        self.function.is_ipc() || matches!(self.operation, Operation::Open(_))
    }
}

/// A call that has returned, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The function.
    pub function: Function,
    /// The number of the call in its process.
    pub call: u64,
    /// The kernel's number of the calling thread.
    pub tid: u32,
    /// When it returned.
    pub time: Nanos,
    /// Its result.
    pub result: ResultCode,
    /// What it has returned besides.
    pub answer: Answer,
}

impl Operation {
    /// What a call does.
    pub fn from_call(function: Function, values: &impl Fields) -> Self {
        let context = || values.context();
        let device = || values.device();
        let object = || values.object();
        let pointer = || values.pointer();
        let size = || values.size();
        match function.effect() {
            Effect::Allocates(_) | Effect::Creates(_) if function.imports(values) => {
                Self::Open(open(function, function.effect().kind(), Kind::MemHandle, values, true))
            }
            Effect::Allocates(_) => {
                let usm = function.usm_type();
                Self::Allocate(Requested { usm, size: size(), device: device(), context: context(), pool: object() })
            }
            Effect::Frees(_) | Effect::FreesLater(_) => Self::Free(free(function, values)),
            Effect::Creates(Kind::Context) => Self::CreateContext(device().filter(|_| values.count() == Some(1))),
            Effect::Creates(Kind::Pool) => Self::CreatePool,
            Effect::Creates(kind) => {
                let is_shareable = is_shareable(function, kind, values);
                Self::Create(Create { kind, is_shareable, context: context(), device: device(), size: size() })
            }
            Effect::Retains(kind) if object().is_none() && kind.is_object() => Self::RetainMade(kind),
            Effect::Retains(kind) => match device().filter(|_| kind == Kind::Context) {
                Some(device) => Self::RetainPrimary(device),
                None => Self::Retain(kind, named(kind, values)),
            },
            Effect::Releases(kind) => match device().filter(|_| kind == Kind::Context) {
                Some(device) => Self::ReleasePrimary(device),
                None => Self::Release(kind, named(kind, values)),
            },
            Effect::Resets(_) => device().map_or(Self::Other, Self::ResetPrimary),
            Effect::Closes(Kind::Usm) => Self::Close(free(function, values)),
            Effect::Destroys(kind) | Effect::Closes(kind) => Self::Destroy(kind, object()),
            Effect::Exports(kind) | Effect::MayExport(kind) => {
                let fingerprint = values.fingerprint();
                Self::Export(Export { kind, pointer: pointer(), object: object(), context: context(), fingerprint })
            }
            Effect::Puts(kind) => match (kind.handle_data(), values.data()) {
                (Some(kind), Some(value)) => Self::Put(Handle { kind, value }, context()),
                _ => Self::Other,
            },
            Effect::Opens(kind) => match kind.handle_data() {
                Some(of) => Self::Open(open(function, kind, of, values, false)),
                None => Self::Other,
            },
            Effect::Asks(Kind::Device) => {
                let asked = function
                    .interface()
                    .support
                    .iter()
                    .find(|(property, _)| values.property() == Some(u64::from(*property)));
                match (asked, device()) {
                    (Some((_, kind)), Some(device)) => Self::AskSupport(device, *kind),
                    _ => Self::Other,
                }
            }
            Effect::Maps(_) => match (pointer(), size(), object()) {
                (Some(pointer), Some(size), Some(memory)) => Self::Map { pointer, size, memory },
                _ => Self::Other,
            },
            Effect::Unmaps(_) => size().map_or(Self::Other, |size| Self::Unmap { from: free(function, values), size }),
            Effect::Submits(_) => Self::Submit,
            Effect::Launches(_) if has_noticed(values, UNKNOWN) => Self::Submit,
            Effect::Enqueues(_) | Effect::Migrates(_) | Effect::Performs(_) | Effect::Launches(_) => {
                Self::Enqueue(Command {
                    writes: pointer(),
                    reads: values.source(),
                    size: size(),
                    is_not_host: [ACCESSED, SOURCE].map(|bit| has_noticed(values, bit)),
                    context: context(),
                    queue: values.queue(),
                    is_non_blocking: has_noticed(values, NON_BLOCKING),
                    is_kernel: function.effect().launches(),
                    is_migration: matches!(function.effect(), Effect::Migrates(_)),
                })
            }
            Effect::Executes(_) => {
                let late = |address: Option<u64>, bit, writes| {
                    let address = address.filter(|_| has_noticed(values, bit))?;
                    Some(LateAccess { address, writes, appended: values.appended() })
                };
                let late = late(pointer(), ACCESSED, true).or_else(|| late(values.source(), SOURCE, false));
                late.map_or(Self::Other, Self::Execute)
            }
            // In a wait for several events, it is not known which one is missing.
            Effect::Waits(Kind::Event) if values.count().is_none_or(|count| count == 1) => match object() {
                Some(event) if event != 0 => Self::Wait(event),
                _ => Self::Other,
            },
            Effect::Asks(Kind::Event) | Effect::Uses(Kind::Event) | Effect::Signals(Kind::Event) => {
                object().map_or(Self::Other, Self::UseEvent)
            }
            Effect::Asks(_)
            | Effect::Uses(_)
            | Effect::Signals(_)
            | Effect::Waits(_)
            | Effect::Clears(_)
            | Effect::Orders(_)
            | Effect::Reveals(_)
            | Effect::Exposes(_)
            | Effect::Unloads(_) => Self::Other,
        }
    }
}

impl Operation {
    /// The context that the call passes.
    pub const fn context(&self) -> Option<u64> {
        match *self {
            Self::Allocate(Requested { context, .. })
            | Self::Free(Free { context, .. })
            | Self::Close(Free { context, .. })
            | Self::Create(Create { context, .. })
            | Self::Export(Export { context, .. })
            | Self::Open(Open { context, .. })
            | Self::Put(_, context) => context,
            _ => None,
        }
    }
}

/// The context, or else the object, that a call is about.
fn named(kind: Kind, values: &impl Fields) -> Option<u64> {
    if kind == Kind::Context { values.context() } else { values.object() }
}

/// Whether urscope noticed any of these bits of a call ([`ACCESSED`] and those behind it).
#[inline]
pub fn has_noticed(values: &impl Fields, any: u64) -> bool {
    values.noticed().is_some_and(|bits| bits & any != 0)
}

fn free(function: Function, values: &impl Fields) -> Free {
    let completed = has_noticed(values, COMPLETED);
    let waits = function.interface().promises(Promise::EndsWait);
    Free {
        pointer: values.pointer(),
        context: values.context(),
        enqueued: matches!(function.effect(), Effect::FreesLater(_)),
        waits: values.count().is_some(),
        // A free with a policy can wait, or free later.
        at_once: match function.effect() {
            Effect::Unmaps(_) => true,
            Effect::FreesLater(_) => false,
            _ => !waits && (values.flags().unwrap_or_default() == 0 || completed),
        },
        completed,
        unfinished: values.unfinished(),
    }
}

fn open(function: Function, shared: Kind, of: Kind, values: &impl Fields, imports: bool) -> Open {
    let process = values.exporter();
    let exported = values.exported();
    let is_descriptor = function.interface().promises(Promise::HandlesAreDescriptors);
    Open {
        makes: if shared == Kind::Usm { Kind::Mapping } else { shared },
        of,
        context: values.context(),
        device: values.device(),
        fingerprint: values.fingerprint(),
        checksum: values.checksum(),
        named: process.zip(exported).filter(|_| !is_descriptor),
        exporter: process.filter(|_| is_descriptor).map(|process| Exporter { process, got: exported }),
        one_of: None,
        data: values.data(),
        size: values.data_size(),
        imports,
    }
}

/// Whether the description of an object says that it can be shared.
fn is_shareable(function: Function, kind: Kind, values: &impl Fields) -> bool {
    function.interface().shareable(kind).is_some_and(|how| {
        values.flags().is_some_and(|flags| flags & how.flag != 0)
            || how.property.is_some() && values.property() == how.property
    })
}
