//! An interface: what differs between Unified Runtime, Level Zero and others.
//!
//! Each has a folder beside this file with the same file names, and one value of [`Interface`]. The tracker and the
//! rules ask this value, and never which interface it is.

use super::effect::Effect;
use crate::handle::{Kind, UsmType};

/// The result of a function, a number whose meaning depends on the function's interface. The constants are the codes of
/// Unified Runtime, by which urscope's own code names a result.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultCode(pub u32);

/// An interface whose functions urscope hooks.
#[derive(Debug)]
pub struct Interface {
    /// Its name.
    pub name: &'static str,
    /// The libraries that carry out its calls or pass them on.
    pub libraries: &'static [Library],
    /// Its result codes. The first is that of success, 0 in every interface.
    pub results: &'static [NamedResult],
    /// Whether its header writes result codes in hexadecimal.
    pub hex_results: bool,
    /// How an object is made so that it can be shared, for each kind that must be.
    pub shareable: &'static [Shareable],
    /// The flags that the header defines, for the functions whose flags urscope checks.
    pub flags: &'static [DefinedFlags],
    /// The `property` of an allocation that imports a descriptor, if there are such allocations.
    pub importing: Option<u64>,
    /// The functions that allocate USM of a type, where only some types can be shared.
    pub usm_types: &'static [(&'static str, UsmType)],
    /// The properties of a device that say what can be shared, with the kind.
    pub support: &'static [(u32, Kind)],
    /// What it promises beyond Unified Runtime.
    pub promises: Promises,
    /// What findings call it.
    pub words: Words,
}

/// How findings about calls of an interface name what they speak of.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// What carries out its calls.
    pub callee: &'static str,
    /// Memory that a program has allocated.
    pub memory: &'static str,
    /// Memory that can be shared.
    pub shareable_memory: &'static str,
    /// The function that frees memory.
    pub free: &'static str,
    /// The function that closes a mapping.
    pub close: &'static str,
    /// How an event is ended that was opened.
    pub end_event: &'static str,
    /// How physical memory is ended that was opened.
    pub end_physical_memory: &'static str,
    /// What may be left open, in plural.
    pub left_open: &'static str,
    /// What to do about much that is left open.
    pub end_left_open: &'static str,
    /// What else makes an object shareable, as part of a list; empty if there is no other way.
    pub or_shareable: &'static str,
    /// What to do about handle data whose bytes were changed.
    pub changed_bytes: &'static str,
    /// How a program sees why a call was refused, as part of a list; empty if there is no way.
    pub reason: &'static str,
}

/// A library of an interface.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// How its file name begins.
    pub begins: &'static str,
    /// Whose calls it makes.
    pub calls: Calls,
    /// Whether programs open a device with it.
    pub opens_devices: bool,
}

/// For whom a library calls hooked functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// For itself: its calls are part of one that a program has made.
    Own,
    /// For its caller.
    Forwarded,
}

impl Library {
    /// One with which programs open a device.
    pub(super) const fn opening_devices(begins: &'static str, calls: Calls) -> Self {
        Self { begins, calls, opens_devices: true }
    }

    /// One with which they do not.
    pub(super) const fn part(begins: &'static str, calls: Calls) -> Self {
        Self { begins, calls, opens_devices: false }
    }
}

/// A result code.
#[derive(Clone, Copy, Debug)]
pub struct NamedResult {
    /// Its number.
    pub code: u32,
    /// Its name in the header.
    pub name: &'static str,
    /// The code of Unified Runtime that has its meaning.
    pub meaning: ResultCode,
}

/// How an object of a kind is made so that it can be shared.
#[derive(Clone, Copy, Debug)]
pub struct Shareable {
    /// The kind.
    pub kind: Kind,
    /// The flag of its description; 0 if there is none.
    pub flag: u64,
    /// The `property` of its description, if an extension makes it shareable.
    pub property: Option<u64>,
    /// What the header calls that, with an article where it is no constant.
    pub name: &'static str,
    /// The result of a get of another object.
    pub refused: ResultCode,
}

impl Shareable {
    /// By a flag.
    pub(super) const fn by_flag(kind: Kind, flag: u64, name: &'static str, refused: ResultCode) -> Self {
        Self { kind, flag, property: None, name, refused }
    }
}

/// The flags of the functions with an effect.
#[derive(Clone, Copy, Debug)]
pub struct DefinedFlags {
    /// The effect.
    pub effect: Effect,
    /// The bits that are undefined.
    pub undefined: u32,
    /// The bits that exclude each other.
    pub exclusive: u32,
}

/// What an interface may promise about its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// A put is optional: what belongs to handle data ends with its object.
    PutIsOptional,
    /// Gets of the same object return the same handle data, and each is put.
    GetsAreCounted,
    /// Memory that is freed stays until all that opened it have closed it.
    MemoryOutlivesFree,
    /// What a process has opened may stay open until it ends.
    OpensMayStay,
    /// Handle data can be used without a call of the interface.
    HandlesAreDescriptors,
    /// The end of a context ends the memory and the mappings in it.
    ContextsOwnMemory,
    /// A call that frees memory or closes a mapping waits for the commands that use it; one that unmaps physical memory
    /// does not.
    EndsWait,
    /// Memory has ended for all commands that are enqueued after the call of a free, also where a queue carries it out.
    FreesEndAtOnce,
    /// Physical memory stays while it is mapped, whoever releases it.
    MappingsHoldMemory,
    /// An open of what the process has exported itself is refused.
    OwnOpensAreRefused,
    /// Handle data of an address inside an allocation is that of the whole allocation, which an open maps.
    HandlesNameAllocations,
    /// Memory of any context and of any type can be got, and used in any context.
    AnyMemoryIsShareable,
    /// A get of memory also takes physical memory, by its handle or where it is mapped.
    PhysicalMemoryIsMemory,
    /// A copy to memory of the host may wait ("API synchronization behavior" in the reference manual of the CUDA
    /// driver).
    HostCopiesWait,
    /// Each context has a default queue of its own, and a wait for all commands is for those of one context.
    ContextsHaveQueues,
    /// A get of physical memory may return a new descriptor, which only the program closes, and which keeps the memory
    /// until then.
    DescriptorsKeepMemory,
}

/// A set of promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises(u32);

impl Promises {
    /// The set of these.
    pub const fn new(promises: &[Promise]) -> Self {
        let mut all = 0;
        let mut rest = promises;
        while let [first, others @ ..] = rest {
            all |= 1 << *first as u32;
            rest = others;
        }
        Self(all)
    }
}

impl Interface {
    /// Whether it promises something.
    #[inline]
    pub const fn promises(&self, promise: Promise) -> bool {
        self.promises.0 & 1 << promise as u32 != 0
    }

    /// Its code with the meaning of one of Unified Runtime, or of `UR_RESULT_ERROR_UNKNOWN`.
    pub fn result(&self, meaning: ResultCode) -> ResultCode {
        let with = |meaning| self.results.iter().find(|known| known.meaning == meaning);
        with(meaning).or_else(|| with(ResultCode::UNKNOWN)).map_or(meaning, |found| ResultCode(found.code))
    }

    /// How objects of a kind are made so that they can be shared.
    pub fn shareable(&self, kind: Kind) -> Option<&'static Shareable> {
        self.shareable.iter().find(|shareable| shareable.kind == kind)
    }

    /// The row of a result.
    pub(super) fn named(&self, result: ResultCode) -> Option<&'static NamedResult> {
        self.results.iter().find(|known| known.code == result.0)
    }
}

impl PartialEq for Interface {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl ResultCode {
    /// Whether the call succeeded.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}
