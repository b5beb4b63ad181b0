//! Physical memory: memory that has no address of its own and is mapped where an application wants it.
//!
//! What is made without the wish to export it shares the segments of all memory. What can be exported has a segment of
//! its own, whose head says so (`segment::Span::dedicated`): its descriptor is what crosses to another process, and what
//! import looks for. An import duplicates the caller's descriptor and is from then on independent of it, and of the
//! exporter; with `ZE_SOFT_IMPORT_FD=keep` it takes the number over as well.
//!
//! **Who owns an exported descriptor?** `ze_api.h` does not say. Intel's driver gives the same number on every query
//! and leaves it open; the Unified Runtime closes what it got, so its second get there is of a dead number. Here each
//! query gives a descriptor of its own, which its caller closes; `ZE_SOFT_EXPORT_FD=one` does as Intel's driver.
//! Must never close a descriptor that was handed out, nor one that was handed in unless it is told to keep it.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;

use super::allocation::{Kind, opened_id};
use crate::discovery::context::Context;
use crate::discovery::device::Device;
use crate::discovery::driver;
use crate::ffi::handles::{Handle, Object, Registry};
use crate::ffi::layout::memory::{ExternalMemoryExportDesc, ExternalMemoryFd, PhysicalMemDesc, PhysicalMemProperties};
use crate::ffi::layout::stype;
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{In, Out};
use crate::platform::budget::Charge;
use crate::platform::log;
use crate::platform::settings;
use crate::shared_memory::segment::{self, Span};
use crate::shared_memory::{PAGE, exports};

/// `ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST`; bit 0 is "on the device", the default.
const ON_HOST: u32 = 1 << 1;
/// `ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD` and `_DMA_BUF`: both are the same descriptor here.
pub(crate) const DESCRIPTORS: u32 = 0b11;
/// All external memory types that there are.
const ALL_TYPES: u32 = 0xff;

/// Physical memory.
pub struct PhysicalMemory {
    /// Unique among the memory that this process has seen.
    pub(crate) id: u64,
    /// Its size, whole pages.
    pub(crate) size: usize,
    /// Host or device.
    pub(crate) kind: Kind,
    /// The device it was made for. None for host memory.
    pub(crate) device: Option<Arc<Device>>,
    backing: Backing,
    exportable: bool,
    /// The number that every query gives, with `ZE_SOFT_EXPORT_FD=one`.
    exported: Mutex<Option<i32>>,
}

enum Backing {
    /// Made here.
    Own {
        span: Span,
        /// What it takes of the memory that there is. Held for its drop.
        _charge: Charge,
    },
    /// Made by whoever exported this file.
    Imported {
        file: File,
        /// What else ends with it. Held for its drop.
        _transferred: Option<TransferredDescriptor>,
    },
}

/// The number of a descriptor that was handed in, with `ZE_SOFT_IMPORT_FD=keep`: closed with the memory, as Intel's driver
/// does, which is a stranger's by then if whoever handed it in has closed it too.
struct TransferredDescriptor(i32);

impl Drop for TransferredDescriptor {
    fn drop(&mut self) {
        // SAFETY: close(2) takes a plain number. That it may be another file's by now is the fault that is shown here.
        unsafe { libc::close(self.0) };
    }
}

impl Object for PhysicalMemory {
    fn registry() -> &'static Registry<Self> {
        static LIVE: Registry<PhysicalMemory> = Registry::new();
        &LIVE
    }
}

impl PhysicalMemory {
    /// The file that the memory lies in, and where in it.
    pub(crate) fn pages(&self) -> (BorrowedFd<'_>, u64) {
        match &self.backing {
            Backing::Own { span, .. } => (span.file(), span.offset()),
            Backing::Imported { file, .. } => (file.as_fd(), segment::DEDICATED_OFFSET),
        }
    }

    /// Its range of a segment, unless it was imported.
    pub(crate) fn span(&self) -> Option<&Span> {
        match &self.backing {
            Backing::Own { span, .. } => Some(span),
            Backing::Imported { .. } => None,
        }
    }

    /// A descriptor for another process.
    fn export(&self) -> Outcome<i32> {
        if !self.exportable {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        let (file, _) = self.pages();
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

/// `zePhysicalMemCreate` (ze_api.h). A device is not needed for host memory.
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
        let import = desc.next_of::<ExternalMemoryFd>(stype::EXTERNAL_MEMORY_IMPORT_FD);
        let export = desc.next_of::<ExternalMemoryExportDesc>(stype::EXTERNAL_MEMORY_EXPORT_DESC);
        let made = match (import, export) {
            (Some(import), _) => PhysicalMemory::import(&import.read()?, made.size, kind, device)?,
            (None, Some(export)) => {
                check_type(export.read()?.flags)?;
                PhysicalMemory::make(made.size, kind, device, true)?
            }
            (None, None) => PhysicalMemory::make(made.size, kind, device, false)?,
        };
        physical.write(Handle::register(Arc::new(made)))
    })
}

/// `zePhysicalMemDestroy` (ze_api.h). Where it is mapped it stays until it is unmapped.
pub extern "C" fn destroy(context: Handle<Context>, physical: Handle<PhysicalMemory>) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        let gone = physical.retire()?;
        if let Some(span) = gone.span() {
            exports::revoke(span.identity());
        }
        Ok(())
    })
}

/// `zePhysicalMemGetProperties` (ze_api.h), with the export of a descriptor if the chain asks for one:
/// `INVALID_ARGUMENT` if that was not wished for when the memory was made.
pub extern "C" fn get_properties(
    context: Handle<Context>,
    physical: Handle<PhysicalMemory>,
    properties: Out<PhysicalMemProperties>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let physical = physical.get()?;
        properties.check()?;
        if let Some(export) = properties.next_of::<ExternalMemoryFd>(stype::EXTERNAL_MEMORY_EXPORT_FD) {
            check_type(export.read()?.flags)?;
            let number = physical.export()?;
            export.edit(|out| out.fd = number)?;
        }
        properties.edit(|out| {
            out.id = physical.id;
            out.size = physical.size;
        })
    })
}

impl PhysicalMemory {
    fn make(size: usize, kind: Kind, device: Option<Arc<Device>>, exportable: bool) -> Outcome<Self> {
        let (budget, exhausted) = match &device {
            Some(device) => (&device.memory, ZeResult::OUT_OF_DEVICE_MEMORY),
            None => (driver::host_memory(), ZeResult::OUT_OF_HOST_MEMORY),
        };
        let charge = budget.charge(size as u64).ok_or(exhausted)?;
        let span = if exportable { Span::dedicated(size as u64)? } else { Span::take(size as u64)? };
        let (id, backing) = (span.identity(), Backing::Own { span, _charge: charge });
        Ok(Self { id, size, kind, device, backing, exportable, exported: Mutex::default() })
    }

    /// The memory behind a descriptor. What is not the descriptor of exported physical memory is
    /// `OUT_OF_DEVICE_MEMORY`, as with Intel's driver; another size than it was made with is `UNSUPPORTED_SIZE`.
    fn import(import: &ExternalMemoryFd, size: usize, kind: Kind, device: Option<Arc<Device>>) -> Outcome<Self> {
        check_type(import.flags)?;
        let file = File::from(duplicate(import.fd)?);
        let Some(found) = segment::dedicated_size(&file) else {
            log::note("zePhysicalMemCreate: the descriptor to import is not that of exported physical memory");
            return Err(ZeResult::OUT_OF_DEVICE_MEMORY);
        };
        if found != size as u64 {
            log::note("zePhysicalMemCreate: the memory to import has another size");
            return Err(ZeResult::UNSUPPORTED_SIZE);
        }
        let transferred = settings::get().keep_import_fd.then(|| TransferredDescriptor(import.fd));
        let (id, backing) = (opened_id(), Backing::Imported { file, _transferred: transferred });
        Ok(Self { id, size, kind, device, backing, exportable: true, exported: Mutex::default() })
    }
}

/// Refuses types of external memory that are not descriptors. No type is the default, which is one.
pub(crate) fn check_type(flags: u32) -> Outcome {
    if flags & !ALL_TYPES != 0 {
        return Err(ZeResult::INVALID_ENUMERATION);
    }
    if flags != 0 && flags & DESCRIPTORS == 0 { Err(ZeResult::UNSUPPORTED_ENUMERATION) } else { Ok(()) }
}

/// A duplicate of a descriptor of this process: `OUT_OF_DEVICE_MEMORY` if the number is none.
fn duplicate(number: i32) -> Outcome<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes a number, and makes a new descriptor if that is one.
    let made = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if made < 0 {
        let exhausted = std::io::Error::last_os_error().raw_os_error() == Some(libc::EMFILE);
        return Err(if exhausted { ZeResult::OUT_OF_HOST_MEMORY } else { ZeResult::OUT_OF_DEVICE_MEMORY });
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}
