//! Entry points that share memory with other processes.
//!
//! The producer's side says where an allocation lies; the consumer's side gets at the file, by the descriptor in the
//! handle if that is the right file here already (libumf and the Unified Runtime have fetched it), else by fetching it
//! from the producer, and maps the allocation's pages and no others. Must never close a descriptor that came in a
//! handle, and must leave nothing open or mapped when it answers an error. All failures to import are
//! `INVALID_ARGUMENT`, as with Intel's driver.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::process;
use std::sync::LazyLock;

use super::allocation::{Allocation, Kind, Origin};
use super::mapping::Mapping;
use super::sealed::Sealed;
use super::segment::{self, OpenSlot, Span};
use super::{PAGE, exports, map};
use crate::context::Context;
use crate::device::Device;
use crate::ffi::{Address, Out};
use crate::layout::memory::IpcMemHandle;
use crate::log;
use crate::registry::Handle;
use crate::result::{ZeResult, answer, answer_end};

/// When this process started. Read once: it cannot change, and a forked child gets no handles.
static STARTED: LazyLock<u64> = LazyLock::new(|| crate::process::start_time(process::id()).unwrap_or(0));

/// `zeMemGetIpcHandle` (ze_api.h): a handle for the allocation that the pointer lies in; it opens at the base.
pub extern "C" fn get(context: Handle<Context>, pointer: Address, handle: Out<IpcMemHandle>) -> ZeResult {
    answer(|| {
        context.get()?;
        pointer.check()?;
        handle.check()?;
        let allocation = map::find(pointer.number()).ok_or(ZeResult::INVALID_ARGUMENT)?;
        let Origin::Own { span, .. } = allocation.origin() else {
            return Err(ZeResult::INVALID_ARGUMENT);
        };
        exports::get(span);
        handle.write(IpcMemHandle { data: describe(&allocation, span).seal() })
    })
}

/// `zeMemPutIpcHandle` (ze_api.h). A handle that is not known, or whose memory is gone, is no error: the documented
/// driver answers success, and freeing the memory ends its handles anyway.
pub extern "C" fn put(context: Handle<Context>, handle: IpcMemHandle) -> ZeResult {
    answer_end(|| {
        context.get()?;
        if let Some(sealed) = Sealed::open(&handle.data).filter(|sealed| sealed.pid == process::id()) {
            exports::put(sealed.identity);
        }
        Ok(())
    })
}

/// `zeMemOpenIpcHandle` (ze_api.h): a new address for each call, also in the producer itself.
pub extern "C" fn open(
    context: Handle<Context>,
    device: Handle<Device>,
    handle: IpcMemHandle,
    flags: u32,
    pointer: Out<Address>,
) -> ZeResult {
    answer(|| {
        context.get()?;
        let device = device.get()?;
        pointer.check()?;
        if flags & !0b11 != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let refused = |why: &str| {
            log::note(&format!("zeMemOpenIpcHandle: {why}"));
            ZeResult::INVALID_ARGUMENT
        };
        let sealed =
            Sealed::open(&handle.data).ok_or_else(|| refused("the bytes are damaged or not a handle of ours"))?;
        let kind = Kind::from_number(u32::from(sealed.kind)).ok_or_else(|| refused("unknown memory type"))?;
        let file = Source::of(&sealed).map_err(|why| refused(&why))?;
        let length = (sealed.size as usize).checked_next_multiple_of(PAGE).ok_or(ZeResult::INVALID_ARGUMENT)?;
        if !file.holds(&sealed, length as u64) {
            return Err(refused("the allocation lies outside of its file"));
        }
        let slot = OpenSlot::open(file.as_fd(), u32::from(sealed.slot), sealed.identity)
            .map_err(|_| refused("its producer has freed the memory or put the handle"))?;
        let mapping = Mapping::shared(file.as_fd(), sealed.offset, length, PAGE)?;
        let opened = Allocation::opened(mapping, slot, kind, sealed.size as usize, device);
        pointer.write(Address::of(map::insert(opened)))
    })
}

/// `zeMemCloseIpcHandle` (ze_api.h): `INVALID_ARGUMENT` for anything but an address that open gave.
pub extern "C" fn close(context: Handle<Context>, pointer: Address) -> ZeResult {
    answer_end(|| {
        context.get()?;
        pointer.check()?;
        map::remove(pointer.number(), |origin| matches!(origin, Origin::Opened { .. })).map(drop)
    })
}

fn describe(allocation: &Allocation, span: &Span) -> Sealed {
    Sealed {
        descriptor: span.descriptor(),
        kind: allocation.kind as u16,
        pid: process::id(),
        started: *STARTED,
        inode: span.inode(),
        size: allocation.size as u64,
        offset: span.offset(),
        slot: span.slot() as u16,
        identity: span.identity(),
        exported: span.descriptor(),
    }
}

/// The segment that a handle names, as this process gets at it.
enum Source {
    /// The descriptor in the handle is it. It stays its owner's: never closed here.
    Here(ManuallyDrop<File>),
    /// Fetched from the producer; closed on drop.
    Fetched(File),
}

impl Source {
    /// Finds the file, or says why it cannot be had.
    fn of(sealed: &Sealed) -> Result<Self, String> {
        if let Some(file) = borrow(sealed.descriptor).filter(|file| is_segment(file, sealed.inode)) {
            return Ok(Self::Here(file));
        }
        let file = fetch(sealed).map_err(|why| format!("cannot fetch it from process {}: {why}", sealed.pid))?;
        if is_segment(&file, sealed.inode) {
            Ok(Self::Fetched(file))
        } else {
            Err(format!("descriptor {} of process {} is another file by now", sealed.exported, sealed.pid))
        }
    }

    fn as_file(&self) -> &File {
        match self {
            Self::Here(file) => file,
            Self::Fetched(file) => file,
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.as_file().as_fd()
    }

    /// Whether the file is large enough for what the handle says.
    fn holds(&self, sealed: &Sealed, length: u64) -> bool {
        let aligned =
            sealed.size > 0 && sealed.offset.is_multiple_of(PAGE as u64) && sealed.offset > u64::from(sealed.slot) * 8;
        let end = sealed.offset.checked_add(length);
        aligned && end.is_some_and(|end| self.as_file().metadata().is_ok_and(|data| end <= data.size()))
    }
}

/// Looks at a descriptor of this process without owning it.
fn borrow(descriptor: i32) -> Option<ManuallyDrop<File>> {
    // SAFETY: F_GETFD only asks whether the number is a descriptor.
    let known = descriptor >= 0 && unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
    // SAFETY: the number is an open descriptor; ManuallyDrop sees to it that it is not closed by us.
    known.then(|| ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
}

/// Whether a file is the segment with this inode. Segments are told from ordinary files that happen to have the same
/// inode number.
fn is_segment(file: &File, inode: u64) -> bool {
    segment::is_ours(file) && file.metadata().is_ok_and(|data| data.ino() == inode)
}

/// Fetches the producer's descriptor (pidfd_open(2), pidfd_getfd(2)).
fn fetch(sealed: &Sealed) -> io::Result<File> {
    // SAFETY: pidfd_open takes plain numbers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, sealed.pid as libc::c_long, 0) };
    let process = own(process)?;
    // Asked after the process is pinned: if it started when the producer did, it is the producer.
    if crate::process::start_time(sealed.pid) != Some(sealed.started) {
        return Err(io::Error::other("the producer is gone and its pid belongs to another process"));
    }
    let exported = libc::c_long::from(sealed.exported);
    // SAFETY: pidfd_getfd takes plain numbers.
    own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), exported, 0) }).map(File::from)
}

/// Owns what a system call that makes a descriptor answered.
fn own(answer: libc::c_long) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}
