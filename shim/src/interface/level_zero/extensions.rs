//! The extensions of Level Zero's structures, in the `pNext` chain, that export or import a descriptor, or tell
//! whether a driver's handles begin with tables.
//!
//! The driver walks the same chain, or may leave it alone: a `pNext` that leads nowhere ends it. Only the first words
//! of each member are read, and the flags or the descriptor of the extensions that have them.

use urscope_schema::api::level_zero::constants::{
    DRIVER_DDI_HANDLE_EXT_FLAG_DDI_HANDLE_EXT_SUPPORTED, DRIVER_DDI_HANDLES_EXT_PROPERTIES,
    EXTERNAL_MEMORY_EXPORT_DESC, EXTERNAL_MEMORY_EXPORT_FD, EXTERNAL_MEMORY_IMPORT_FD,
};

use crate::raw::memory::checked::read;

/// The most members of a chain that are read. The driver refuses a circular chain.
const CHAIN_LIMIT: usize = 64;

/// The offsets of `pNext`, of the flags, and of the descriptor (`int`) in the two extensions that have one.
const NEXT: usize = 8;
const FLAGS: usize = 16;
const DESCRIPTOR: usize = 20;

/// An extension that exports or imports a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extension {
    /// Its `stype`.
    pub(super) kind: u64,
    address: usize,
}

impl Extension {
    /// The first extension of the structure at `address`, which begins with `stype` and `pNext`; `None` if there is
    /// none, or for null.
    pub(super) fn first_of(address: usize) -> Option<Self> {
        Self::first(address, &[EXTERNAL_MEMORY_EXPORT_DESC, EXTERNAL_MEMORY_IMPORT_FD, EXTERNAL_MEMORY_EXPORT_FD])
    }

    /// The first extension of these kinds.
    fn first(mut address: usize, kinds: &[u64]) -> Option<Self> {
        for _ in 0..CHAIN_LIMIT {
            address = next(address)?;
            let kind = read::<u32>(address)?.into();
            if kinds.contains(&kind) {
                return Some(Self { kind, address });
            }
        }
        None
    }

    /// The descriptor of the extension; `None` for an extension without one, or for an invalid number.
    pub(super) fn descriptor(self) -> Option<u32> {
        if self.kind == EXTERNAL_MEMORY_EXPORT_DESC {
            return None;
        }
        u32::try_from(read::<i32>(self.address.wrapping_add(DESCRIPTOR))?).ok()
    }
}

/// Whether a driver's handles begin with its tables, from its properties, a `ze_driver_properties_t`.
pub(super) fn have_tables(properties: usize) -> bool {
    let extension = Extension::first(properties, &[DRIVER_DDI_HANDLES_EXT_PROPERTIES]);
    let flags = extension.and_then(|extension| read::<u32>(extension.address.wrapping_add(FLAGS)));
    flags.is_some_and(|flags| flags & DRIVER_DDI_HANDLE_EXT_FLAG_DDI_HANDLE_EXT_SUPPORTED != 0)
}

/// The `pNext` of a structure; `None` for null.
fn next(address: usize) -> Option<usize> {
    if address == 0 {
        return None;
    }
    read(address.wrapping_add(NEXT)).filter(|next| *next != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ze_external_memory_import_fd_t` and similar structures.
    #[repr(C)]
    struct Structure {
        kind: u32,
        next: usize,
        flags: u32,
        descriptor: i32,
    }

    const fn structure(kind: u64, next: usize, descriptor: i32) -> Structure {
        Structure { kind: kind as u32, next, flags: 0, descriptor }
    }

    fn address(structure: &Structure) -> usize {
        (&raw const *structure).expose_provenance()
    }

    #[test]
    fn an_extension_is_found_behind_others() {
        let import = structure(EXTERNAL_MEMORY_IMPORT_FD, 0, 7);
        let other = structure(0x2_0001, address(&import), 0);
        let first = structure(0x15, address(&other), 0);
        let found = Extension::first_of(address(&first)).unwrap();
        assert_eq!(found.kind, EXTERNAL_MEMORY_IMPORT_FD);
        assert_eq!(found.descriptor(), Some(7));
        assert_eq!([address(&import), 0].map(Extension::first_of), [None; 2]);
    }

    #[test]
    fn what_has_no_descriptor_gives_none() {
        let export = structure(EXTERNAL_MEMORY_EXPORT_DESC, 0, 7);
        let refused = structure(EXTERNAL_MEMORY_EXPORT_FD, 0, -1);
        for extension in [export, refused] {
            let first = structure(0x15, address(&extension), 0);
            let found = Extension::first_of(address(&first)).unwrap();
            assert_eq!(found.descriptor(), None);
        }
    }

    #[test]
    fn a_driver_says_whether_its_handles_begin_with_tables() {
        for flags in [0, 1, 2] {
            let said = Structure { flags, ..structure(DRIVER_DDI_HANDLES_EXT_PROPERTIES, 0, 0) };
            let properties = structure(1, address(&said), 0);
            assert_eq!(have_tables(address(&properties)), flags == 1);
        }
        assert!(!have_tables(0));
    }

    #[test]
    fn a_chain_in_a_circle_is_left() {
        let mut first = structure(0x15, 0, 0);
        first.next = address(&first);
        assert_eq!(Extension::first_of(address(&first)), None);
    }
}
