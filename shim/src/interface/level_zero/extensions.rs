//! The extensions of Level Zero's structures, in the `pNext` chain, that export or import a descriptor, or tell
//! whether a driver's handles begin with tables.
//!
//! The driver walks the same chain. Only the first words of each member are read, and the flags or the descriptor of
//! the extensions that have them.

use urscope_schema::api::level_zero::constants::{
    DRIVER_DDI_HANDLE_EXT_FLAG_DDI_HANDLE_EXT_SUPPORTED, DRIVER_DDI_HANDLES_EXT_PROPERTIES,
    EXTERNAL_MEMORY_EXPORT_DESC, EXTERNAL_MEMORY_EXPORT_FD, EXTERNAL_MEMORY_IMPORT_FD,
};

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
    /// The first extension of the structure at `address`; `None` if there is none, or for null.
    ///
    /// # Safety
    ///
    /// `address` is null or a structure with `stype` and `pNext`, and so is each `pNext` (`ze_api.h`).
    pub(super) unsafe fn of(address: usize) -> Option<Self> {
        let kinds = [EXTERNAL_MEMORY_EXPORT_DESC, EXTERNAL_MEMORY_IMPORT_FD, EXTERNAL_MEMORY_EXPORT_FD];
        // SAFETY: the caller's promise.
        unsafe { Self::first(address, &kinds) }
    }

    /// The first extension of these kinds.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn first(mut address: usize, kinds: &[u64]) -> Option<Self> {
        for _ in 0..CHAIN_LIMIT {
            // SAFETY: the caller's promise.
            address = unsafe { next(address) }?;
            // SAFETY: as above; every structure begins with its type.
            let kind = u64::from(unsafe { std::ptr::with_exposed_provenance::<u32>(address).read_unaligned() });
            if kinds.contains(&kind) {
                return Some(Self { kind, address });
            }
        }
        None
    }

    /// The descriptor of the extension; `None` for an extension without one, or for an invalid number.
    ///
    /// # Safety
    ///
    /// The extension that [`of`](Self::of) found is still there.
    pub(super) unsafe fn descriptor(self) -> Option<u32> {
        if self.kind == EXTERNAL_MEMORY_EXPORT_DESC {
            return None;
        }
        let place = std::ptr::with_exposed_provenance::<i32>(self.address + DESCRIPTOR);
        // SAFETY: the caller's promise; the two other kinds have a descriptor there.
        u32::try_from(unsafe { place.read_unaligned() }).ok()
    }
}

/// Whether a driver's handles begin with its tables, from its properties.
///
/// # Safety
///
/// `properties` is null or the address of a `ze_driver_properties_t`, as for [`Extension::of`].
pub(super) unsafe fn have_tables(properties: usize) -> bool {
    // SAFETY: the caller's promise.
    let extension = unsafe { Extension::first(properties, &[DRIVER_DDI_HANDLES_EXT_PROPERTIES]) };
    let Some(Extension { address, .. }) = extension else { return false };
    // SAFETY: as above; a structure of this type has its flags there.
    let flags = unsafe { std::ptr::with_exposed_provenance::<u32>(address + FLAGS).read_unaligned() };
    flags & DRIVER_DDI_HANDLE_EXT_FLAG_DDI_HANDLE_EXT_SUPPORTED != 0
}

/// The `pNext` of a structure; `None` for null.
///
/// # Safety
///
/// As for [`Extension::of`].
unsafe fn next(address: usize) -> Option<usize> {
    if address == 0 {
        return None;
    }
    // SAFETY: the caller's promise.
    let next = unsafe { std::ptr::with_exposed_provenance::<usize>(address + NEXT).read_unaligned() };
    Some(next).filter(|next| *next != 0)
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
        // SAFETY: structures that live.
        let found = unsafe { Extension::of(address(&first)) }.unwrap();
        assert_eq!(found.kind, EXTERNAL_MEMORY_IMPORT_FD);
        // SAFETY: as above.
        assert_eq!(unsafe { found.descriptor() }, Some(7));
        // SAFETY: as above.
        assert_eq!([address(&import), 0].map(|address| unsafe { Extension::of(address) }), [None; 2]);
    }

    #[test]
    fn what_has_no_descriptor_gives_none() {
        let export = structure(EXTERNAL_MEMORY_EXPORT_DESC, 0, 7);
        let refused = structure(EXTERNAL_MEMORY_EXPORT_FD, 0, -1);
        for extension in [export, refused] {
            let first = structure(0x15, address(&extension), 0);
            // SAFETY: structures that live.
            let found = unsafe { Extension::of(address(&first)) }.unwrap();
            // SAFETY: as above.
            assert_eq!(unsafe { found.descriptor() }, None);
        }
    }

    #[test]
    fn a_driver_says_whether_its_handles_begin_with_tables() {
        for flags in [0, 1, 2] {
            let said = Structure { flags, ..structure(DRIVER_DDI_HANDLES_EXT_PROPERTIES, 0, 0) };
            let properties = structure(1, address(&said), 0);
            // SAFETY: structures that live.
            assert_eq!(unsafe { have_tables(address(&properties)) }, flags == 1);
        }
        // SAFETY: nothing is read.
        assert!(!unsafe { have_tables(0) });
    }

    #[test]
    fn a_chain_in_a_circle_is_left() {
        let mut first = structure(0x15, 0, 0);
        first.next = address(&first);
        // SAFETY: a structure that lives.
        assert_eq!(unsafe { Extension::of(address(&first)) }, None);
    }
}
