//! Generated from the rows: [`Function`] with names, slots, effects and texts, and `docs/functions.md`.

use super::{
    constants,
    demand::{IPC, Nulls},
    role::{self, Role},
};
use crate::{handle::Kind, values::Values};

/// What a successful call does to the lifetime of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It makes the object, at the exit of the call.
    Makes(Kind),
    /// It ends the object, at the enter of the call.
    Ends(Kind),
    /// It adds a reference to the object.
    Retains(Kind),
    /// It releases a reference to the object; the last one ends it.
    Releases(Kind),
    /// None: it asks the object for a property.
    Asks(Kind),
    /// None: it uses the object.
    Uses(Kind),
    /// None: it waits on the host for commands, or lets the program do so.
    Waits(Kind),
}

impl Effect {
    /// The kind of the object.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Makes(kind)
            | Self::Ends(kind)
            | Self::Retains(kind)
            | Self::Releases(kind)
            | Self::Asks(kind)
            | Self::Uses(kind)
            | Self::Waits(kind) => kind,
        }
    }
}

/// The tables: the name in the rows, the structure in `ur_ddi.h` or `ze_ddi.h`, and the function of an adapter or
/// driver that fills it.
macro_rules! tables {
    ($($table:ident $structure:literal $getter:literal;)*) => {
        /// A table in which urscope replaces functions: of an adapter for Unified Runtime, or of a Level Zero driver.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Table {
            $(#[doc = concat!("`", $structure, "`")] $table,)*
        }

        impl Table {
            /// All tables, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$table,)*];

            /// The name of the function that fills this table, as an adapter or a driver exports it.
            pub const fn getter(self) -> &'static str {
                match self { $(Self::$table => $getter,)* }
            }
        }
    };
}

tables! {
    Adapter "ur_adapter_dditable_t" "urGetAdapterProcAddrTable";
    Context "ur_context_dditable_t" "urGetContextProcAddrTable";
    Device "ur_device_dditable_t" "urGetDeviceProcAddrTable";
    USM "ur_usm_dditable_t" "urGetUSMProcAddrTable";
    USMExp "ur_usm_exp_dditable_t" "urGetUSMExpProcAddrTable";
    IPCExp "ur_ipc_exp_dditable_t" "urGetIPCExpProcAddrTable";
    Event "ur_event_dditable_t" "urGetEventProcAddrTable";
    EventExp "ur_event_exp_dditable_t" "urGetEventExpProcAddrTable";
    PhysicalMem "ur_physical_mem_dditable_t" "urGetPhysicalMemProcAddrTable";
    VirtualMem "ur_virtual_mem_dditable_t" "urGetVirtualMemProcAddrTable";
    Enqueue "ur_enqueue_dditable_t" "urGetEnqueueProcAddrTable";
    EnqueueExp "ur_enqueue_exp_dditable_t" "urGetEnqueueExpProcAddrTable";
    Queue "ur_queue_dditable_t" "urGetQueueProcAddrTable";
    ZeMem "ze_mem_dditable_t" "zeGetMemProcAddrTable";
    ZeEventPool "ze_event_pool_dditable_t" "zeGetEventPoolProcAddrTable";
    ZeCommandList "ze_command_list_dditable_t" "zeGetCommandListProcAddrTable";
    ZeCommandQueue "ze_command_queue_dditable_t" "zeGetCommandQueueProcAddrTable";
    ZeFence "ze_fence_dditable_t" "zeGetFenceProcAddrTable";
    ZeEvent "ze_event_dditable_t" "zeGetEventProcAddrTable";
    ZeMemExp "ze_mem_exp_dditable_t" "zeGetMemExpProcAddrTable";
    ZePhysicalMem "ze_physical_mem_dditable_t" "zeGetPhysicalMemProcAddrTable";
    ZeVirtualMem "ze_virtual_mem_dditable_t" "zeGetVirtualMemProcAddrTable";
    ZeExtension "the functions that zeDriverGetExtensionFunctionAddress names" "zeGetDriverProcAddrTable";
}

impl Table {
    /// The number of tables of adapters, which come first.
    pub const OF_ADAPTERS: usize = Self::ZeMem as usize;

    /// Whether it is one of a Level Zero driver.
    pub const fn is_level_zero(self) -> bool {
        self as usize >= Self::OF_ADAPTERS
    }

    /// The number of slots of a Level Zero table in API version 1.`minor` (`ze_ddi.h` 1.17). Tables of Unified Runtime
    /// have their own length.
    pub fn slots(self, minor: u32) -> usize {
        // Since which minor version a table has how many.
        let known: &[(u32, usize)] = match self {
            Self::ZeMem => &[(0, 9), (3, 10), (6, 11), (9, 12), (15, 13)],
            Self::ZeEventPool => &[(0, 5), (6, 6), (9, 8)],
            Self::ZeCommandList => &[(0, 26), (3, 28), (6, 29), (9, 34), (12, 36), (14, 38), (16, 41), (17, 52)],
            Self::ZeCommandQueue => &[(0, 4), (9, 6), (17, 9)],
            Self::ZeFence => &[(0, 5)],
            Self::ZeEvent => &[(0, 7), (6, 8), (9, 11), (15, 16), (17, 17)],
            Self::ZeMemExp => &[(6, 2), (7, 4)],
            Self::ZePhysicalMem => &[(0, 2), (15, 3)],
            Self::ZeVirtualMem => &[(0, 7)],
            _ => &[],
        };
        known.iter().rfind(|(since, _)| *since <= minor).map_or(0, |(_, slots)| *slots)
    }

    /// The table that the getter with this name fills, if it has rows.
    pub fn of_getter(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|table| table.getter().as_bytes() == name)
    }
}

macro_rules! functions {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// A hooked function of Unified Runtime or of Level Zero. Its number is that of its row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(non_camel_case_types, reason = "the names are those of the C functions")]
        #[repr(u8)]
        pub enum Function {
            $(#[doc = $doc] $name,)*
        }

        impl Function {
            /// All functions, in the order of the rows.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The number of functions.
            pub const COUNT: usize = Self::ALL.len();

            /// The name in C.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The function with this name in C.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::from_bytes(name.as_bytes())
            }

            /// The function with this name in C, as bytes of unknown encoding.
            #[inline]
            pub(crate) fn from_bytes(name: &[u8]) -> Option<Self> {
                $(if name == stringify!($name).as_bytes() { return Some(Self::$name); })*
                None
            }

            /// One sentence on what the function does.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$name => $doc.trim_ascii(),)* }
            }

            /// The adapter's table, and the slot in it.
            // The function is mostly a constant of the caller.
            #[inline(always)]
            pub const fn slot(self) -> (Table, usize) {
                match self { $(Self::$name => (Table::$table, $slot),)* }
            }

            /// What a successful call does.
            // The function is mostly a constant of the caller.
            #[inline(always)]
            pub const fn effect(self) -> Effect {
                match self { $(Self::$name => Effect::$verb(Kind::$kind),)* }
            }

            /// The arguments that are missing in a recorded call.
            pub fn nulls(self, values: &Values) -> Nulls {
                let mut nulls = Nulls::default();
                match self {
                    $(Self::$name => { $(nulls.note(self, stringify!($param), <role::$role as Role>::null_in(values));)* })*
                }
                nulls
            }

            /// The missing arguments if each parameter has the word that `of` returns for its name.
            pub fn nulls_of(self, of: impl Fn(&'static str) -> u64) -> Nulls {
                let mut nulls = Nulls::default();
                match self {
                    $(Self::$name => {
                        $(nulls.note(self, stringify!($param), <role::$role as Role>::of_word(of(stringify!($param))).null());)*
                    })*
                }
                nulls
            }

            /// Parameters and their roles, in C order.
            pub const fn parameters(self) -> &'static [(&'static str, &'static str)] {
                match self { $(Self::$name => &[$((stringify!($param), stringify!($role)),)*],)* }
            }
        }
    };
}

hooked_functions!(functions);

impl Function {
    /// Whether the function shares something between processes. The verdict is about these.
    #[expect(
        clippy::inline_always,
        reason = "the function is mostly a constant of the caller, so that all of this is decided when it is compiled"
    )]
    #[inline(always)]
    pub const fn is_ipc(self) -> bool {
        match self.effect() {
            _ if !self.is_level_zero() => matches!(self.slot().0, Table::IPCExp),
            Effect::Makes(Kind::Event | Kind::PhysicalMem) | Effect::Releases(Kind::Event | Kind::PhysicalMem) => {
                matches!(
                    self,
                    Self::zeEventCounterBasedOpenIpcHandle
                        | Self::zeEventCounterBasedCloseIpcHandle
                        | Self::zexCounterBasedEventOpenIpcHandle
                        | Self::zexCounterBasedEventCloseIpcHandle
                )
            }
            // The first two of the table create and destroy a pool.
            Effect::Makes(Kind::EventPool) | Effect::Releases(Kind::EventPool) => self.slot().1 > 1,
            Effect::Makes(kind) | Effect::Ends(kind) => kind.shares().is_some() || matches!(kind, Kind::Mapping),
            _ => false,
        }
    }

    /// Whether the function appends a command that accesses memory to a queue or a command list.
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    pub const fn is_command(self) -> bool {
        matches!(self.effect(), Effect::Uses(Kind::Usm))
    }

    /// Whether the host knows after a success that commands have completed, or can find out.
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    pub const fn waits(self) -> bool {
        // The rows of these two are about events, because they are recorded for shared events.
        matches!(self.effect(), Effect::Waits(_)) || matches!(self, Self::urEventWait | Self::urEventGetInfo)
    }

    /// Whether it is a function of Level Zero.
    pub const fn is_level_zero(self) -> bool {
        self.slot().0.is_level_zero()
    }

    /// Whether a call with these arguments imports a descriptor that was exported.
    pub fn imports(self, asked: &Values) -> bool {
        self.is_level_zero()
            && matches!(self.effect(), Effect::Makes(Kind::Usm | Kind::PhysicalMem))
            && asked.property == Some(constants::ze::EXTERNAL_MEMORY_IMPORT_FD)
    }

    /// Whether the function exports a descriptor if its structure asks for one, and shares nothing otherwise.
    pub const fn may_export(self) -> bool {
        matches!(self, Self::zeMemGetAllocProperties | Self::zePhysicalMemGetProperties)
    }

    /// The flag of a description that makes an event, an event pool or Unified Runtime's physical memory shareable.
    /// Level Zero's physical memory has an extension for that.
    pub const fn ipc_flag(self) -> u64 {
        match self.effect().kind() {
            _ if !self.is_level_zero() => IPC,
            Kind::EventPool => constants::ze::EVENT_POOL_FLAG_IPC,
            Kind::Event => constants::ze::EVENT_COUNTER_BASED_FLAG_IPC,
            _ => 0,
        }
    }

    /// The kind of the handle data that the function opens; `None` if it opens none.
    pub const fn opens(self) -> Option<Kind> {
        match self.effect() {
            Effect::Makes(Kind::Mapping) => Some(Kind::MemHandle),
            Effect::Makes(Kind::PhysicalMem) if self.is_ipc() => Some(Kind::PhysicalMemHandle),
            Effect::Makes(Kind::Event) if self.is_ipc() => Some(Kind::EventHandle),
            Effect::Makes(Kind::EventPool) if self.is_ipc() => Some(Kind::EventPoolHandle),
            _ => None,
        }
    }

    /// The slot of the function in an adapter's table of `length` slots; `None` where no known release has that length.
    ///
    /// `ur_enqueue_dditable_t` lost its first function (`pfnKernelLaunch`) in 2026.2 and has 25 since. In
    /// `ur_enqueue_exp_dditable_t`, functions changed slots between releases; those of asynchronous allocation have the
    /// same slots in all releases with a table of 10.
    pub const fn slot_in(self, length: usize) -> Option<usize> {
        match (self.slot(), length) {
            ((Table::Enqueue, slot), 25) | ((Table::EnqueueExp, slot), 10) => Some(slot),
            ((Table::Enqueue, slot), 26) => Some(slot + 1),
            ((Table::Enqueue | Table::EnqueueExp, _), _) => None,
            ((_, slot), _) => Some(slot),
        }
    }
}

/// The text of `docs/functions.md`.
pub fn functions_md() -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "# The functions that urscope hooks\n\n\
         Generated from the rows of `schema/src/api/ur.rs` and `schema/src/api/ze.rs`; `BLESS=1 cargo test -p urscope-schema` renews it.\n\n\
         | function | table and slot | a success | what it does |\n|---|---|---|---|\n",
    );
    for function in Function::ALL {
        let (table, slot) = function.slot();
        let _ = writeln!(
            text,
            "| `{}` | {table:?}[{slot}] | {} | {} |",
            function.name(),
            format!("{:?}", function.effect()).to_lowercase().replace(['(', ')'], " ").trim(),
            function.doc(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_function() {
        for function in Function::ALL {
            assert_eq!(Function::from_name(function.name()), Some(*function));
        }
        assert_eq!(Function::from_name("urEnqueueKernelLaunch"), None);
    }

    #[test]
    fn no_two_rows_take_the_same_slot() {
        for (i, a) in Function::ALL.iter().enumerate() {
            for b in &Function::ALL[i + 1..] {
                assert_ne!(a.slot(), b.slot(), "{} and {}", a.name(), b.name());
            }
        }
    }

    #[test]
    fn a_table_that_lost_its_first_slot_is_known_by_its_length() {
        let barrier = Function::urEnqueueEventsWaitWithBarrierExt;
        assert_eq!([24, 25, 26, 27].map(|length| barrier.slot_in(length)), [None, Some(24), Some(25), None]);
        assert_eq!(Function::urIPCCloseMemHandleExp.slot_in(4), Some(3));
    }

    #[test]
    fn functions_md_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/functions.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, functions_md()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), functions_md(), "run with BLESS=1");
    }
}
