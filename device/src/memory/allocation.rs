//! One allocation as an application sees it: made here, or opened from another process.
//!
//! Between the entry points and the segments. Work in flight holds a reference, so that memory which is freed too
//! early is unmapped only when the work that uses it is done. Must never be found by a pointer after it was freed.

use std::sync::Arc;

use crate::discovery::device::Device;
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::budget::Charge;
use crate::shared_memory::PAGE;
use crate::shared_memory::mapping::Mapping;
use crate::shared_memory::segment::{OpenRecord, Span};

/// `ze_memory_type_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// `ZE_MEMORY_TYPE_HOST`.
    Host = 1,
    /// `ZE_MEMORY_TYPE_DEVICE`.
    Device = 2,
    /// `ZE_MEMORY_TYPE_SHARED`.
    Shared = 3,
}

impl Kind {
    /// The kind with this number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::Host, Self::Device, Self::Shared].into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Memory that has an address here.
pub(crate) struct Allocation {
    // In this order: the range must be unmapped before it is given back.
    mapping: Mapping,
    origin: Origin,
    /// Bytes asked for.
    pub size: usize,
    /// Host, device or shared.
    pub kind: Kind,
    /// Unique among the allocations that this process has seen.
    pub id: u64,
    /// The device it was made for, or opened on.
    pub device: Option<Arc<Device>>,
}

/// Where an allocation comes from.
pub(crate) enum Origin {
    /// Made in this process.
    Own {
        /// The pages.
        span: Span,
        /// Whether they lie in a file of their own, whose descriptor may be handed out.
        exportable: bool,
        /// What it takes of the memory that there is. Held for its drop.
        _charge: Charge,
    },
    /// Opened from an IPC handle.
    Opened {
        /// What counts this process in. Held for its drop.
        _record: OpenRecord,
    },
}

impl Allocation {
    /// Makes memory of `size` bytes, all zero. `alignment` is 0 or a power of 2. What is exportable has a file of its own.
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
        let span = if exportable { Span::dedicated(length as u64)? } else { Span::take(length as u64)? };
        let mapping = span.map(alignment)?;
        let id = span.identity();
        let origin = Origin::Own { span, exportable, _charge: charge };
        Ok(Self { mapping, origin, size, kind, id, device })
    }

    /// Memory that another allocation, as a rule of another process, shows here.
    pub(crate) fn opened(mapping: Mapping, record: OpenRecord, kind: Kind, size: usize, device: Arc<Device>) -> Self {
        Self { mapping, origin: Origin::Opened { _record: record }, size, kind, id: opened_id(), device: Some(device) }
    }

    /// Its first address.
    pub(crate) fn base(&self) -> usize {
        self.mapping.base()
    }

    /// The descriptor of the file that holds nothing else, if it was made to be exported.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        match &self.origin {
            Origin::Own { span, exportable: true, .. } => Some(span.descriptor()),
            _ => None,
        }
    }

    /// Where it comes from.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }
}

/// Identities of opened allocations count down from the top, those of own ones up from 1: they never meet.
pub(crate) fn opened_id() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};

    static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);
    NEXT.fetch_sub(1, Ordering::Relaxed)
}
