//! Reads structures of Level Zero.

use std::ptr::with_exposed_provenance;

use urscope_schema::api::level_zero::constants::{EXTERNAL_MEMORY_EXPORT_FD, EXTERNAL_MEMORY_IMPORT_FD};
use urscope_schema::api::level_zero::structures;
use urscope_schema::api::role::{IpcHandle, Role as _, Sources};
use urscope_schema::call::Values;
use urscope_schema::handle::descriptor_data;

use super::extensions::Extension;
use crate::raw::args::{inputs::of_file, reader::Reader};
use crate::raw::memory::checked::read;

/// The offset of the size in a `ze_physical_mem_desc_t`, after the flags and 4 bytes of padding.
const PHYSICAL_SIZE: usize = 24;

/// The offsets of the flags and of the mode in a `ze_command_queue_desc_t`, after ordinal and index.
const QUEUE_FLAGS: usize = 24;
const QUEUE_MODE: usize = 28;

/// `ZE_COMMAND_QUEUE_FLAG_IN_ORDER`, and `ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS`.
const IN_ORDER: u32 = 2;
const SYNCHRONOUS: u32 = 1;

/// The structures of Level Zero.
#[derive(Debug)]
pub(super) struct Structures;

impl Reader for Structures {
    fn describe(&self, sources: &Sources, values: &mut Values) {
        for (kind, word) in sources.structures.iter() {
            let address = word as usize;
            match kind {
                structures::IPC_HANDLES if sources.count > 0 => {
                    if let Some(words) = read(address) {
                        IpcHandle { words }.enter(values);
                    }
                }
                structures::EXTENDED | structures::EXPORTING | structures::PHYSICAL_DESC => {
                    let extension = Extension::first_of(address);
                    values.property = extension.map(|extension| extension.kind);
                    if let Some(import) = extension.filter(|extension| extension.kind == EXTERNAL_MEMORY_IMPORT_FD) {
                        values.data = import.descriptor().map(descriptor_data);
                    }
                    if kind == structures::PHYSICAL_DESC {
                        values.size = read(address.wrapping_add(PHYSICAL_SIZE));
                    }
                }
                _ => {}
            }
        }
    }

    fn answers(&self, sources: &Sources, values: &mut Values) {
        for (kind, word) in sources.structures.iter() {
            let address = word as usize;
            let descriptor = match kind {
                // SAFETY: the call succeeded, so the caller's variable holds an IPC handle (`zeMemGetIpcHandle`), which
                // begins with it.
                structures::OUT_IPC_HANDLE => Some(unsafe { with_exposed_provenance::<u32>(address).read_unaligned() }),
                structures::EXPORTING => Extension::first_of(address).and_then(Extension::descriptor),
                _ => continue,
            };
            (values.data, values.fingerprint) = (descriptor.map(descriptor_data), descriptor.and_then(of_file));
        }
    }

    fn asks_for_descriptor(&self, sources: &Sources) -> bool {
        let extension = Extension::first_of(sources.structures.get(structures::EXPORTING) as usize);
        extension.is_some_and(|extension| extension.kind == EXTERNAL_MEMORY_EXPORT_FD)
    }

    fn makes_synchronous(&self, sources: &Sources) -> bool {
        let desc = sources.structures.get(structures::QUEUE_DESC) as usize;
        desc != 0 && read(desc.wrapping_add(QUEUE_MODE)) == Some(SYNCHRONOUS)
    }

    fn makes_out_of_order(&self, sources: &Sources) -> Option<bool> {
        let desc = sources.structures.get(structures::QUEUE_DESC) as usize;
        let flags = || read::<u32>(desc.wrapping_add(QUEUE_FLAGS));
        (desc != 0).then(|| flags().is_none_or(|flags| flags & IN_ORDER == 0))
    }

    fn wait_list(&self, sources: &Sources) -> (usize, usize) {
        let events = sources.structures.get(structures::WAIT_LIST) as usize;
        (events, if events == 0 { 0 } else { sources.structures.get(structures::WAIT_COUNT) as usize })
    }

    fn signals(&self, sources: &Sources) -> bool {
        self.signalled(sources) != 0
    }

    fn signalled(&self, sources: &Sources) -> usize {
        sources.structures.get(structures::SIGNAL_EVENT) as usize
    }

    fn makes_list(&self, sources: &Sources) -> bool {
        sources.structures.get(structures::LIST_DESC) != 0
    }

    fn lists(&self, sources: &Sources) -> (usize, usize) {
        match sources.structures.get(structures::LISTS) as usize {
            0 => (0, 0),
            lists => (lists, sources.count as usize),
        }
    }
}
