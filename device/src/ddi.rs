//! What the table becomes: an entry point for every function, the DDI tables with the functions that hand them out,
//! and a lookup by name.
//!
//! Stands between the table and everybody who calls the device. Must never write past the table of the version that a
//! caller asks for: older callers hand in shorter tables.

use crate::ffi::Out;
use crate::log;
use crate::result::ZeResult;

/// The API version that this device speaks: 1.17 (`ze_api_version_t`, major in the upper half).
pub const API_VERSION: u32 = (1 << 16) + 17;

/// One function: a slot of a DDI table, or a name outside of them.
pub struct Slot {
    /// The C name.
    pub name: &'static str,
    /// The minor API version since which the slot exists.
    pub since: u32,
    /// Whether there is more behind it than an error code.
    pub implemented: bool,
    /// The entry point.
    pub address: *const (),
}

// SAFETY: the address is that of a function, which is the same for all threads and is never written through.
unsafe impl Sync for Slot {}

/// One DDI table.
pub struct Table {
    /// The C name of the function that hands it out.
    pub getter: &'static str,
    /// The entry point of that function.
    pub address: *const (),
    /// Its members, in memory order.
    pub slots: &'static [Slot],
}

// SAFETY: as for Slot.
unsafe impl Sync for Table {}

/// The entry point with this C name: an API function, a table getter or a loader function.
pub fn lookup(name: &str) -> Option<*const ()> {
    let in_tables = TABLES
        .iter()
        .find_map(|table| if table.getter == name { Some(table.address) } else { address_in(table.slots, name) });
    in_tables.or_else(|| address_in(LOADER, name))
}

/// The entry point of a driver extension function, which has no exported symbol.
pub(crate) fn lookup_extension(name: &str) -> Option<*const ()> {
    address_in(EXTENSIONS, name)
}

fn address_in(slots: &[Slot], name: &str) -> Option<*const ()> {
    slots.iter().find(|slot| slot.name == name).map(|slot| slot.address)
}

/// Fills a caller's DDI table. A table of version 1.n holds the slots that exist since 1.n or before, packed in order;
/// ze_ddi.h promises that what a caller hands in is a table of the version that it asks for.
fn fill(version: u32, table: Out<*const ()>, getter: &str) -> ZeResult {
    if table.is_null() {
        return ZeResult::INVALID_NULL_POINTER;
    }
    if version >> 16 != API_VERSION >> 16 {
        return ZeResult::UNSUPPORTED_VERSION;
    }
    let minor = version & 0xffff;
    let slots = TABLES.iter().filter(|candidate| candidate.getter == getter).flat_map(|found| found.slots);
    for (index, slot) in slots.filter(|slot| slot.since <= minor).enumerate() {
        table.element(index).write_optional(slot.address);
    }
    ZeResult::SUCCESS
}

macro_rules! entry_point {
    ($name:ident) => {
        /// Not implemented.
        pub extern "C" fn $name() -> ZeResult {
            log::unsupported(stringify!($name))
        }
    };
    ($name:ident => $($path:ident)::+) => {
        pub use crate::$($path)::+ as $name;
    };
}

macro_rules! is_implemented {
    () => {
        false
    };
    ($($path:ident)::+) => {
        true
    };
}

macro_rules! expand {
    (
        loader { $($loader:ident => $($loader_path:ident)::+;)* }
        extensions { $($extension:ident => $($extension_path:ident)::+;)* }
        $($getter:ident { $($since:literal $name:ident $(=> $($path:ident)::+)?;)* })*
    ) => {
        /// Every entry point under its C name.
        #[allow(non_snake_case, reason = "the names are those of the C API")]
        pub mod entry {
            use super::*;

            $(entry_point!($loader => $($loader_path)::+);)*
            $(entry_point!($extension => $($extension_path)::+);)*
            $($(entry_point!($name $(=> $($path)::+)?);)*)*
            $(
                /// Hands out the DDI table of this name (ze_ddi.h).
                pub extern "C" fn $getter(version: u32, table: Out<*const ()>) -> ZeResult {
                    fill(version, table, stringify!($getter))
                }
            )*
        }

        /// All DDI tables of the API.
        pub static TABLES: &[Table] = &[$(Table {
            getter: stringify!($getter),
            address: entry::$getter as *const (),
            slots: &[$(Slot {
                name: stringify!($name),
                since: $since,
                implemented: is_implemented!($($($path)::+)?),
                address: entry::$name as *const (),
            }),*],
        }),*];

        /// What a loader has beside the API.
        pub static LOADER: &[Slot] = &[$(Slot {
            name: stringify!($loader),
            since: 0,
            implemented: true,
            address: entry::$loader as *const (),
        }),*];

        /// What the driver hands out by name only.
        pub static EXTENSIONS: &[Slot] = &[$(Slot {
            name: stringify!($extension),
            since: 0,
            implemented: true,
            address: entry::$extension as *const (),
        }),*];
    };
}

crate::ze_functions!(expand);
