//! One allocation as an application sees it: created in this process, opened from another one, or imported.
//!
//! Work in flight holds a reference, so memory that is freed too early is unmapped only when the work that uses it has
//! completed. Must never be found by a pointer after it was freed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::discovery::device::{Device, Numbers};
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::budget::Charge;
use crate::shared_memory::{PAGE, import::Import, mapping::Mapping, own_file::Description, segment::Span};

/// `ze_memory_type_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// `ZE_MEMORY_TYPE_HOST`.
    Host = 1,
    /// `ZE_MEMORY_TYPE_DEVICE`.
    Device = 2,
    /// `ZE_MEMORY_TYPE_SHARED`.
    Shared = 3,
}

impl Kind {
    /// The kind with this `ze_memory_type_t` value.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::Host, Self::Device, Self::Shared].into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Memory with an address in this process.
pub struct Allocation {
    pub(crate) origin: Origin,
    /// Size that was requested, in bytes.
    pub(crate) size: usize,
    pub(crate) kind: Kind,
    /// Unique among the allocations and physical memories of this process.
    pub(crate) id: u64,
    /// The device that it was created for or opened on.
    pub(crate) device: Option<Arc<Device>>,
    /// Who may use atomic operations on it (`ze_memory_atomic_attr_exp_flags_t`), by device.
    pub(crate) atomics: Mutex<BTreeMap<Numbers, u32>>,
}

/// Where an allocation comes from.
pub(crate) enum Origin {
    /// Created in this process.
    Own {
        // Before the range: the pages must be unmapped before it is returned to its segment.
        mapping: Mapping,
        /// The range of its file.
        span: Span,
        /// Returned to the budget on drop.
        _charge: Charge,
    },
    /// Opened from an IPC handle.
    Opened(Import),
    /// Imported from a descriptor.
    Imported(Import),
}

impl Allocation {
    /// Creates memory of `size` bytes, all zero, at a multiple of `alignment` (0: anywhere). Exportable
    /// memory always has a file of its own. `UNSUPPORTED_SIZE`, `UNSUPPORTED_ALIGNMENT`,
    /// `OUT_OF_HOST_MEMORY`, or the error of `charge`, which takes a size in bytes.
    pub(crate) fn new(
        kind: Kind,
        device: Option<Arc<Device>>,
        size: usize,
        alignment: usize,
        exportable: bool,
        charge: impl FnOnce(u64) -> Outcome<Charge>,
    ) -> Outcome<Self> {
        let length = size.checked_next_multiple_of(PAGE).ok_or(ZeResult::UNSUPPORTED_SIZE)?;
        let charge = charge(length as u64)?;
        let span = if exportable { Span::own(length as u64)? } else { Span::take(length as u64)? };
        let mapping = span.map(alignment)?;
        let id = span.identity;
        Ok(Self::with(Origin::Own { mapping, span, _charge: charge }, kind, size, id, device))
    }

    /// Memory of another process, or of this one, that was opened from a handle.
    pub(crate) fn opened(import: Import, kind: Kind, size: usize, device: Arc<Device>) -> Self {
        Self::with(Origin::Opened(import), kind, size, imported_id(), Some(device))
    }

    pub(crate) fn imported(import: Import, kind: Kind, size: usize, device: Option<Arc<Device>>) -> Self {
        Self::with(Origin::Imported(import), kind, size, imported_id(), device)
    }

    fn with(origin: Origin, kind: Kind, size: usize, id: u64, device: Option<Arc<Device>>) -> Self {
        Self { origin, size, kind, id, device, atomics: Mutex::default() }
    }

    /// Its first address.
    pub(crate) fn base(&self) -> usize {
        match &self.origin {
            Origin::Own { mapping, .. } => mapping.base(),
            Origin::Opened(import) | Origin::Imported(import) => import.mapping.base(),
        }
    }

    /// Its range, if it was created in this process.
    pub(crate) fn span(&self) -> Option<&Span> {
        match &self.origin {
            Origin::Own { span, .. } => Some(span),
            Origin::Opened(_) | Origin::Imported(_) => None,
        }
    }

    /// The inode of its file and where it begins there, if another process may have it.
    pub(crate) fn shared_range(&self) -> Option<(u64, u64)> {
        match &self.origin {
            Origin::Own { span, .. } => span.shared_range(),
            Origin::Opened(import) | Origin::Imported(import) => Some((import.inode, import.offset)),
        }
    }

    /// What another process learns about it.
    pub(crate) fn description(&self) -> Description {
        Description { kind: self.kind as u16, device: Device::number(self.device.as_ref()), size: self.size as u64 }
    }

    /// The descriptor of its file, if that holds nothing else.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.span().filter(|span| span.has_own_file()).map(Span::descriptor)
    }
}

/// A new id for opened or imported memory. These count down from the maximum, and identities of own memory count up
/// from 1, so the two never collide.
pub(crate) fn imported_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);
    NEXT.fetch_sub(1, Ordering::Relaxed)
}
