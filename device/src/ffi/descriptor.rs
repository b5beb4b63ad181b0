//! Descriptors whose ownership a C caller transfers to the device.

use super::{In, layout::ExternalMemoryImportFd, result::Outcome};

/// The descriptor of an import, with `ZE_SOFT_IMPORT_FD=keep`. It is closed on drop, whatever file the number stands
/// for by then. This reproduces a fault of Intel's driver: the caller may have closed the number already.
pub(crate) struct TransferredDescriptor(i32);

impl TransferredDescriptor {
    /// Takes over the descriptor of an import, or returns `INVALID_NULL_POINTER`.
    pub(crate) fn from_import(import: In<ExternalMemoryImportFd>) -> Outcome<Self> {
        Ok(Self(import.read()?.fd))
    }
}

impl Drop for TransferredDescriptor {
    fn drop(&mut self) {
        // SAFETY: close(2) takes a plain number, which the caller of the import has passed. Closing another file here
        // is the fault that this type reproduces.
        unsafe { libc::close(self.0) };
    }
}
