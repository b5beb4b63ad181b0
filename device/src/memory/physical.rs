//! Physical memory: memory without an address, which an application maps where it wants.
//!
//! Exportable memory always has a file of its own, which describes itself (`own_file`): its descriptor goes to other
//! processes, and import checks the description. An import duplicates the caller's descriptor, and from then on depends
//! neither on it nor on the exporter; with `ZE_SOFT_IMPORT_FD=keep` it also takes the number over.
//!
//! **Who owns an exported descriptor?** ze_api.h does not specify it. Intel's driver returns the same number for every
//! query and leaves it open; the Unified Runtime closes the descriptor that it gets, so its second query returns a
//! number that is closed. Here every query returns a descriptor of its own, which the caller closes; with
//! `ZE_SOFT_EXPORT_FD=one` the device behaves as Intel's driver. Must never close a descriptor that it has returned,
//! nor one that was passed in unless the setting requires it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::{fs::File, os::unix::fs::MetadataExt, sync::Arc};

use parking_lot::Mutex;

use super::allocation::{Kind, imported_id};
use crate::discovery::{context::Context, device::Device, driver, properties::EXTERNAL_MEMORY_TYPES};
use crate::ffi::descriptor::TransferredDescriptor;
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{
    ExternalMemoryExportDesc, ExternalMemoryExportFd, ExternalMemoryImportFd, PhysicalMemDesc, PhysicalMemProperties,
};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{In, Out};
use crate::platform::{budget::Charge, descriptor, settings};
use crate::shared_memory::own_file::{Description, description};
use crate::shared_memory::{PAGE, exports, segment::Span};

/// `ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST`. Bit 0 means on the device, which is the default.
const ON_HOST: u32 = 1 << 1;
/// In the description of a file: physical memory that was created to be exported.
pub(crate) const EXPORTABLE: u16 = 1 << 9;
/// All external memory types of ze_api.h (`ze_external_memory_type_flags_t`).
const ALL_TYPES: u32 = 0xff;

/// The object of a `ze_physical_mem_handle_t`.
pub struct PhysicalMemory {
    /// Unique among the allocations and physical memories of this process.
    pub(crate) id: u64,
    /// Its size in bytes, whole pages.
    pub(crate) size: usize,
    pub(crate) kind: Kind,
    /// The device that it was created for. None for host memory.
    pub(crate) device: Option<Arc<Device>>,
    backing: Backing,
    exportable: bool,
    /// The descriptor that every query returns, with `ZE_SOFT_EXPORT_FD=one`.
    exported: Mutex<Option<i32>>,
    /// Closed with the memory, with `ZE_SOFT_IMPORT_FD=keep`.
    transferred: Option<TransferredDescriptor>,
}

enum Backing {
    /// Created in this process.
    Own {
        span: Span,
        /// Returned to the budget on drop.
        _charge: Charge,
    },
    /// Created by the process that exported this file.
    Imported { file: File, inode: u64 },
}

object!(PhysicalMemory);

impl PhysicalMemory {
    /// The file that holds the memory, and the offset of the memory in it, in bytes.
    pub(crate) fn pages(&self) -> (BorrowedFd<'_>, u64) {
        match &self.backing {
            Backing::Own { span, .. } => (span.file(), span.offset),
            Backing::Imported { file, .. } => (file.as_fd(), 0),
        }
    }

    /// The inode of its file and where it begins there, if another process may have it.
    pub(crate) fn shared_range(&self) -> Option<(u64, u64)> {
        match &self.backing {
            Backing::Own { span, .. } => span.shared_range(),
            Backing::Imported { inode, .. } => Some((*inode, 0)),
        }
    }

    /// Its range of a file. None if it was imported.
    pub(crate) fn span(&self) -> Option<&Span> {
        match &self.backing {
            Backing::Own { span, .. } => Some(span),
            Backing::Imported { .. } => None,
        }
    }

    pub(crate) fn description(&self) -> Description {
        let exportable = if self.exportable { EXPORTABLE } else { 0 };
        let kind = self.kind as u16 | exportable;
        Description { kind, device: Device::number(self.device.as_ref()), size: self.size as u64 }
    }

    /// The descriptor of its file, which other processes can import: `INVALID_ARGUMENT` if the memory was not created
    /// to be exported.
    pub fn export(&self) -> Outcome<BorrowedFd<'_>> {
        if !self.exportable {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        if let Some(span) = self.span() {
            span.describe(self.description())?;
        }
        Ok(self.pages().0)
    }

    /// A descriptor for the caller of a query. The errors are those of [`export`](Self::export).
    fn export_number(&self) -> Outcome<i32> {
        let file = self.export()?;
        if !settings::get().one_export_fd {
            return duplicate(file.as_raw_fd()).map(IntoRawFd::into_raw_fd);
        }
        let mut exported = self.exported.lock();
        let number = match *exported {
            Some(number) => number,
            None => duplicate(file.as_raw_fd())?.into_raw_fd(),
        };
        *exported = Some(number);
        Ok(number)
    }
}

/// `zePhysicalMemCreate` (ze_api.h). The device may be NULL for host memory.
pub extern "C" fn create(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<PhysicalMemDesc>,
    physical: Out<Handle<PhysicalMemory>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let made = desc.read()?;
        physical.check()?;
        if made.flags & !0b11 != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let on_host = made.flags & ON_HOST != 0;
        let device = if on_host {
            device.get_optional()?;
            None
        } else {
            Some(device.get()?)
        };
        let kind = if on_host { Kind::Host } else { Kind::Device };
        if made.size == 0 || !made.size.is_multiple_of(PAGE) {
            return Err(ZeResult::UNSUPPORTED_SIZE);
        }
        let import = desc.next_of::<ExternalMemoryImportFd>();
        let export = desc.next_of::<ExternalMemoryExportDesc>();
        let made = match (import, export) {
            (Some(import), _) => {
                let ExternalMemoryImportFd { flags, fd, .. } = import.read()?;
                check_type(flags)?;
                let mut made = PhysicalMemory::import(fd, made.size, kind, device)?;
                if settings::get().keep_import_fd {
                    made.transferred = Some(TransferredDescriptor::from_import(import)?);
                }
                made
            }
            (None, Some(export)) => {
                check_type(export.read()?.flags)?;
                PhysicalMemory::make(made.size, kind, device, true)?
            }
            (None, None) => PhysicalMemory::make(made.size, kind, device, false)?,
        };
        physical.write(Handle::register(Arc::new(made)))
    })
}

/// `zePhysicalMemDestroy` (ze_api.h). Mappings of it stay until they are unmapped.
pub extern "C" fn destroy(context: Handle<Context>, physical: Handle<PhysicalMemory>) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        let gone = physical.retire()?;
        if let Some(span) = gone.span() {
            exports::revoke(span.identity);
        }
        Ok(())
    })
}

/// `zePhysicalMemGetProperties` (ze_api.h). Also exports a descriptor if the chain requests one: `INVALID_ARGUMENT` if
/// the memory was not created to be exported.
pub extern "C" fn get_properties(
    context: Handle<Context>,
    physical: Handle<PhysicalMemory>,
    properties: Out<PhysicalMemProperties>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let physical = physical.get()?;
        properties.check()?;
        if let Some(export) = properties.next_of::<ExternalMemoryExportFd>() {
            check_type(export.read()?.flags)?;
            let number = physical.export_number()?;
            export.edit(|out| out.fd = number)?;
        }
        properties.edit(|out| {
            out.id = physical.id;
            out.size = physical.size;
        })
    })
}

impl PhysicalMemory {
    /// Creates memory of `size` bytes, whole pages: `OUT_OF_HOST_MEMORY` or `OUT_OF_DEVICE_MEMORY`.
    pub fn make(size: usize, kind: Kind, device: Option<Arc<Device>>, exportable: bool) -> Outcome<Self> {
        let (budget, exhausted) = driver::budget(device.as_ref());
        let charge = budget.charge(size as u64).ok_or(exhausted)?;
        let span = if exportable { Span::own(size as u64)? } else { Span::take(size as u64)? };
        let id = span.identity;
        let backing = Backing::Own { span, _charge: charge };
        Ok(Self { id, size, kind, device, backing, exportable, exported: Mutex::default(), transferred: None })
    }

    /// The memory of a descriptor, which is that of physical memory or of an allocation:
    /// `OUT_OF_DEVICE_MEMORY` if it is not that of exported memory, as with Intel's driver;
    /// `UNSUPPORTED_SIZE` if the memory has another size, in whole pages.
    pub fn import(descriptor: i32, size: usize, kind: Kind, device: Option<Arc<Device>>) -> Outcome<Self> {
        let file = File::from(duplicate(descriptor)?);
        let described =
            description(&file).filter(|(found, _)| Kind::from_number(u32::from(found.kind & !EXPORTABLE)).is_some());
        let Some((described, found)) = described else {
            let reason = "the descriptor to import is not that of exported memory";
            return Err(ZeResult::OUT_OF_DEVICE_MEMORY.because(|| reason));
        };
        Device::reach(device.as_ref(), described.device)
            .map_err(|reason| ZeResult::OUT_OF_DEVICE_MEMORY.because(|| reason))?;
        if found != size as u64 {
            return Err(ZeResult::UNSUPPORTED_SIZE.because(|| format!("the memory to import has {found} bytes")));
        }
        let inode = file.metadata().map_or(0, |file| file.ino());
        let id = imported_id();
        let backing = Backing::Imported { file, inode };
        let exported = Mutex::default();
        Ok(Self { id, size, kind, device, backing, exportable: true, exported, transferred: None })
    }
}

/// Checks `ze_external_memory_type_flags_t`: `INVALID_ENUMERATION` for unknown flags, `UNSUPPORTED_ENUMERATION` if none
/// of them is a type of descriptor. No flag means the default, a descriptor.
pub(crate) fn check_type(flags: u32) -> Outcome {
    if flags & !ALL_TYPES != 0 {
        return Err(ZeResult::INVALID_ENUMERATION);
    }
    if flags != 0 && flags & EXTERNAL_MEMORY_TYPES == 0 { Err(ZeResult::UNSUPPORTED_ENUMERATION) } else { Ok(()) }
}

/// A duplicate of a descriptor of this process: `OUT_OF_DEVICE_MEMORY` if the number is not a descriptor,
/// `OUT_OF_HOST_MEMORY` if the process has no descriptors left.
fn duplicate(number: i32) -> Outcome<OwnedFd> {
    descriptor::duplicate(number).map_err(|error| match error.raw_os_error() {
        Some(libc::EMFILE) => ZeResult::OUT_OF_HOST_MEMORY,
        _ => ZeResult::OUT_OF_DEVICE_MEMORY,
    })
}
