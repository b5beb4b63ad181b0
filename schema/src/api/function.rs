//! Generated from the rows: [`Function`] with names, slots, effects and texts, and `docs/functions.md`.

#![expect(
    clippy::inline_always,
    reason = "the function is mostly a constant of the caller, so that all of this is decided when it is compiled"
)]

use super::role::{self, Role};
use super::{demand::Nulls, effect::Effect, interface::Interface, interface::ResultCode};
use crate::handle::{Kind, UsmType};
use crate::values::{Fields, Values};

macro_rules! tables {
    ($($interface:ident { $($table:ident $structure:literal $getter:literal $([$($slots:tt)*])?;)* })*) => {
        /// A table in which urscope replaces functions: of an adapter for Unified Runtime, or of a driver.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Table {
            $($(#[doc = concat!("`", $structure, "`")] $table,)*)*
        }

        impl Table {
            /// All tables, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$($(Self::$table,)*)*];

            /// The name of the function that fills this table, as an adapter or a driver exports it.
            pub const fn getter(self) -> &'static str {
                match self { $($(Self::$table => $getter,)*)* }
            }

            /// The number of slots since each minor version of the API.
            const fn lengths(self) -> &'static [(u32, usize)] {
                match self { $($(Self::$table => &[$($($slots)*)?],)*)* }
            }

            /// The interface whose functions it holds.
            pub const fn interface(self) -> &'static Interface {
                match self { $($(Self::$table)|* => &super::$interface::INTERFACE,)* }
            }

            /// The place of that interface in the list of all.
            pub const fn interface_number(self) -> usize {
                match self { $($(Self::$table)|* => InterfaceNumber::$interface as usize,)* }
            }
        }

        /// All interfaces, in the order of their numbers ([`Function::interface_number`]).
        pub static INTERFACES: &[&Interface] = &[$(&super::$interface::INTERFACE,)*];

        #[expect(non_camel_case_types, reason = "the names are those of the folders")]
        enum InterfaceNumber {
            $($interface,)*
        }
    };
}

hooked_tables!(tables);

impl Table {
    /// The number of slots in API version 1.`minor` of a driver of Level Zero; 0 for other tables.
    pub fn slots(self, minor: u32) -> usize {
        self.lengths().iter().rfind(|(since, _)| *since <= minor).map_or(0, |(_, slots)| *slots)
    }

    /// The table that the getter with this name fills, if it has rows.
    pub fn of_getter(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|table| table.getter().as_bytes() == name)
    }
}

macro_rules! functions {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        /// A hooked function of one of the interfaces. Its number is that of its row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(non_camel_case_types, reason = "the names are those of the C functions")]
        #[repr(u16)]
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

            /// The name in C of a function that differs from this one in what its default stream is, if there is one.
            pub const fn twin(self) -> Option<&'static str> {
                match self { $(Self::$name => functions!(@twin $($twin)?),)* }
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
    (@twin) => {
        None
    };
    (@twin $twin:ident) => {
        Some(stringify!($twin))
    };
}

hooked_functions!(functions);

impl Function {
    /// The interface it belongs to.
    #[inline(always)]
    pub const fn interface(self) -> &'static Interface {
        self.slot().0.interface()
    }

    /// The place of its interface in the list of all.
    #[inline(always)]
    pub const fn interface_number(self) -> usize {
        self.slot().0.interface_number()
    }

    /// Whether the function shares something between processes. The verdict is about these.
    #[inline(always)]
    pub const fn is_ipc(self) -> bool {
        self.effect().is_ipc()
    }

    /// Whether the function appends a command that accesses memory to a queue or a command list.
    #[inline(always)]
    pub const fn is_command(self) -> bool {
        self.effect().is_command()
    }

    /// The type of USM that it allocates, where only some types can be shared.
    pub fn usm_type(self) -> Option<UsmType> {
        let known = self.interface().usm_types.iter().find(|(name, _)| *name == self.name());
        known.map(|(_, usm)| *usm)
    }

    /// Whether a call with these arguments imports a descriptor that was exported.
    #[inline(always)]
    pub fn imports(self, asked: &impl Fields) -> bool {
        matches!(self.effect(), Effect::Allocates(_) | Effect::Creates(_))
            && asked.property().is_some()
            && asked.property() == self.interface().importing
    }

    /// Whether some calls import what was exported, and others make something new.
    #[inline(always)]
    pub const fn may_import(self) -> bool {
        matches!(self.effect(), Effect::Allocates(_) | Effect::Creates(_)) && self.interface().importing.is_some()
    }

    /// The slot of the function in an adapter's table of `length` slots; `None` where no known release has that length.
    ///
    /// `ur_enqueue_dditable_t` lost its first function (`pfnKernelLaunch`, in the rows the last one) in 2026.2 and has
    /// 25 since. In `ur_enqueue_exp_dditable_t`, functions changed slots between releases. Those of tables of 10 have
    /// the same slots in all of them, but for `pfnTimestampRecordingExp` and `pfnCommandBufferExp`, which changed
    /// places in 2026.2: to urscope their calls are alike.
    pub const fn slot_in(self, length: usize) -> Option<usize> {
        match (self.slot(), length) {
            ((Table::Enqueue, 25), 25) => None,
            ((Table::Enqueue, 25), 26) => Some(0),
            ((Table::Enqueue, slot), 25) | ((Table::EnqueueExp, slot), 10) => Some(slot),
            ((Table::Enqueue, slot), 26) => Some(slot + 1),
            ((Table::Enqueue | Table::EnqueueExp, _), _) => None,
            ((_, slot), _) => Some(slot),
        }
    }
}

impl ResultCode {
    /// The name in the header of the function that returned it; `None` for a number that the header does not define.
    pub fn name_of(self, function: Function) -> Option<&'static str> {
        function.interface().named(self).map(|found| found.name)
    }

    /// The name in the header of the function that returned it, with the number.
    pub fn text_of(self, function: Function) -> String {
        match self.name_of(function) {
            Some(name) if function.interface().hex_results && self.0 != 0 => format!("{name} ({:#x})", self.0),
            Some(name) => format!("{name} ({})", self.0),
            None => format!("unknown result {:#x}", self.0),
        }
    }

    /// The code of Unified Runtime with the meaning of one that a function has returned; a number that the header does
    /// not define, unchanged.
    #[must_use]
    pub fn meaning_of(self, function: Function) -> Self {
        function.interface().named(self).map_or(self, |found| found.meaning)
    }
}

/// The text of `docs/functions.md`.
pub fn functions_md() -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "# The functions that urscope hooks\n\n\
         Generated from the rows in `schema/src/api/`; `BLESS=1 cargo test -p urscope-schema` renews it.\n\n\
         | function | table and slot | a success | what it does |\n|---|---|---|---|\n",
    );
    for function in Function::ALL {
        let (table, slot) = function.slot();
        let _ = writeln!(
            text,
            "| `{}` | {table:?}[{slot}] | {} | {} |",
            function.twin().map_or_else(|| function.name().into(), |twin| format!("{}`, `{twin}", function.name())),
            format!("{:?}", function.effect()).to_lowercase().replace(['(', ')'], " ").trim(),
            function.doc(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LEVEL_ZERO;

    #[test]
    fn a_name_leads_back_to_its_function() {
        for function in Function::ALL {
            assert_eq!(Function::from_name(function.name()), Some(*function));
        }
        assert_eq!(Function::from_name("urEnqueueKernelLaunch"), Some(Function::urEnqueueKernelLaunch));
        assert_eq!(Function::from_name("urEnqueueKernelLaunch2"), None);
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
        assert_eq!([25, 26].map(|length| Function::urEnqueueKernelLaunch.slot_in(length)), [None, Some(0)]);
        assert_eq!(Function::urIPCCloseMemHandleExp.slot_in(4), Some(3));
    }

    #[test]
    fn functions_md_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/functions.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, functions_md()).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == functions_md(),
            "docs/functions.md is old: BLESS=1 cargo test -p urscope-schema renews it"
        );
    }

    #[test]
    fn a_code_is_shown_with_its_name_and_number() {
        let text = |code, function| ResultCode(code).text_of(function);
        assert_eq!(text(45, Function::urUSMFree), "UR_RESULT_ERROR_INVALID_ARGUMENT (45)");
        assert_eq!(text(0x1234_5678, Function::urUSMFree), "unknown result 0x12345678");
        assert_eq!(text(0x7800_0004, Function::zeMemFree), "ZE_RESULT_ERROR_INVALID_ARGUMENT (0x78000004)");
        assert_eq!(text(0, Function::zeMemFree), "ZE_RESULT_SUCCESS (0)");
        assert_eq!(text(0, Function::urUSMFree), "UR_RESULT_SUCCESS (0)");
        assert_eq!(text(45, Function::zeMemFree), "unknown result 0x2d");
    }

    #[test]
    fn a_code_has_the_same_meaning_in_both_directions() {
        let invalid = ResultCode(0x7800_0004);
        assert_eq!(invalid.meaning_of(Function::zeMemFree), ResultCode::INVALID_ARGUMENT);
        assert_eq!(LEVEL_ZERO.result(ResultCode::INVALID_ARGUMENT), invalid);
        assert_eq!(LEVEL_ZERO.result(ResultCode::INVALID_KERNEL_ARGS), ResultCode::UNKNOWN);
        assert_eq!(LEVEL_ZERO.result(ResultCode::SUCCESS), ResultCode::SUCCESS);
    }
}
