//! Legacy IPC of memory: `cuIpc*MemHandle`.
//!
//! A handle is that of the software device. It ignores the bytes 4 to 7, which hold the number of the memory at its
//! address here: so memory at an address that is used again has other bytes, and a handle of the memory before it opens
//! it all the same. The driver refuses such a handle while there is memory without a handle of its own in another way
//! than while there is none. A mark behind the memory, in its file, tells the two apart.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::{fd::AsRawFd, unix::fs::FileExt};
use std::process;

use parking_lot::Mutex;
use urscope_device::{Allocation, layout::IpcHandle};

use crate::arguments::Out;
use crate::context::{current, current_device};
use crate::exports::functions;
use crate::memory::{self, Kind};
use crate::result::{Code, Outcome};

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const LAZY_PEER_ACCESS: u32 = 1;

/// Checks who made a handle: `INVALID_VALUE` for bytes that are not one, `INVALID_CONTEXT` for one of this process.
pub(crate) fn check_producer(handle: &IpcHandle) -> Outcome {
    match urscope_device::producer(&handle.data) {
        None => Err(Code::INVALID_VALUE),
        Some(pid) if pid == process::id() => Err(Code::INVALID_CONTEXT),
        Some(_) => Ok(()),
    }
}

/// Why a handle was not opened: `INVALID_HANDLE` if its producer has ended, `NOT_PERMITTED` if there is other memory at
/// its address, which has no handle.
pub(crate) fn refusal(handle: &IpcHandle) -> Code {
    let Some(pid) = urscope_device::producer(&handle.data) else { return Code::INVALID_VALUE };
    // A process that nobody has waited for has no executable either.
    let ended = fs::read_link(format!("/proc/{pid}/exe")).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if ended {
        return Code::INVALID_HANDLE;
    }
    let mut mark = [0];
    let read = marked_file(handle, pid).is_some_and(|(file, at)| file.read_exact_at(&mut mark, at).is_ok());
    if read && mark == [1] { Code::NOT_PERMITTED } else { Code::INVALID_VALUE }
}

/// Marks whether there is memory at the address of a handle of this process.
pub(crate) fn mark(handle: &IpcHandle, is_there: bool) {
    if let Some((file, at)) = marked_file(handle, process::id()) {
        // Without it, another error is returned.
        let _ = file.write_all_at(&[is_there.into()], at);
    }
}

/// The file of the memory that a handle of a process names, and where its mark is. None if the file holds other memory.
fn marked_file(handle: &IpcHandle, pid: u32) -> Option<(File, u64)> {
    let (descriptor, _) = handle.data.split_first_chunk()?;
    let path = format!("/proc/{pid}/fd/{}", i32::from_le_bytes(*descriptor));
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    // The description of the memory is shorter.
    let at = urscope_device::exported_size(file.as_raw_fd())? as u64 + 64;
    Some((file, at))
}

/// The address of memory that the context has open, if it is what the handle names. Counts one more open.
fn open_again(context: usize, handle: &IpcHandle) -> Outcome<Option<usize>> {
    let (named, _) = urscope_device::named(&handle.data).ok_or(Code::INVALID_VALUE)?;
    let mut opened = memory::all().into_iter().filter(|block| block.context == context);
    let Some(block) = opened.find(|block| matches!(block.kind, Kind::Opened { identity, .. } if identity == named))
    else {
        return Ok(None);
    };
    memory::change(block.base, |block| {
        if let Kind::Opened { count, .. } = &mut block.kind {
            *count += 1;
        }
        Ok(true)
    })?;
    Ok(Some(block.base))
}

fn open(memory: Out<usize>, handle: IpcHandle, flags: u32) -> Outcome {
    // One thread opens at a time: what one of them has open, the next one counts.
    static OPENING: Mutex<()> = Mutex::new(());
    let (context, _) = current()?;
    memory.check()?;
    if flags & !LAZY_PEER_ACCESS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    check_producer(&handle)?;
    let _opening = OPENING.lock();
    if let Some(base) = open_again(context, &handle)? {
        return memory.write(base);
    }
    let base = Allocation::open(current_device()?, &handle).map_err(|_| refusal(&handle))?;
    let (identity, size) = urscope_device::named(&handle.data).ok_or(Code::INVALID_VALUE)?;
    memory::add(base, size, Kind::Opened { identity, count: 1 })?;
    memory.write(base)
}

functions! {
    4010 "cuIpcGetMemHandle" cuIpcGetMemHandle(handle: Out<IpcHandle>, address: usize) {
        current()?;
        handle.check()?;
        let block = memory::find(address).filter(|block| block.kind == Kind::Device).ok_or(Code::INVALID_VALUE)?;
        let mut bytes = IpcHandle { data: [0; 64] };
        memory::change(block.base, |block| {
            if !block.has_handle {
                (block.handle, block.has_handle) = (Some(Allocation::export(block.base)?), true);
            }
            bytes = block.handle.unwrap_or(bytes);
            Ok(true)
        })?;
        for (byte, of) in bytes.data.iter_mut().skip(4).zip(block.generation.to_le_bytes()) {
            *byte = of;
        }
        handle.write(bytes)
    }
    4010 "cuIpcOpenMemHandle" cuIpcOpenMemHandle(memory: Out<usize>, handle: IpcHandle, flags: u32) {
        open(memory, handle, flags)
    }
    11000 "cuIpcOpenMemHandle" cuIpcOpenMemHandle_v2(memory: Out<usize>, handle: IpcHandle, flags: u32) {
        open(memory, handle, flags)
    }
    4010 "cuIpcCloseMemHandle" cuIpcCloseMemHandle(memory: usize) {
        current()?;
        memory::close(memory)
    }
}
