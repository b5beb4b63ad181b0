//! Reads structures of the CUDA driver.

use std::ptr::with_exposed_provenance;

use urscope_schema::api::cuda::constants::{MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, STREAM_NON_BLOCKING};
use urscope_schema::api::cuda::structures;
use urscope_schema::api::role::{HandleBytes, Role as _, Sources, StreamHandle};
use urscope_schema::call::Values;
use urscope_schema::handle::descriptor_data;

use super::copies::{self, Row};
use super::{allocation, kernel_arguments};
use crate::raw::args::{inputs::of_file, out_params, reader::Reader};
use crate::raw::memory::checked::read;

/// The offset of `requestedHandleTypes` in a `CUmemAllocationProp`.
const HANDLE_TYPES: usize = 4;

/// The offset of `hStream` in a `CUlaunchConfig`.
const STREAM: usize = 32;

/// The structures of the driver.
#[derive(Debug)]
pub(super) struct Structures;

impl Reader for Structures {
    fn describe(&self, sources: &Sources, values: &mut Values) {
        for (kind, word) in sources.structures.iter() {
            let address = word as usize;
            match kind {
                structures::COPY_2D => enter(copies::first_row_2d(address), values),
                structures::COPY_3D => enter(copies::first_row_3d(address), values),
                structures::ALLOCATION_PROPERTIES => {
                    values.flags = read::<u32>(address.wrapping_add(HANDLE_TYPES)).map(u64::from);
                }
                structures::IMPORTED if is_descriptor(sources) => values.data = Some(descriptor_data(word as u32)),
                structures::IMPORTED | structures::IMPORTED_POINTER => {
                    if let Some(words) = read(address) {
                        HandleBytes { words }.enter(values);
                    }
                }
                _ => {}
            }
        }
    }

    fn answers(&self, sources: &Sources, values: &mut Values) {
        let exported = sources.structures.get(structures::OUT_EXPORTED) as usize;
        if exported == 0 {
            return;
        }
        if is_descriptor(sources) {
            // SAFETY: the call succeeded, so the caller's variable holds a descriptor (`cuMemExportToShareableHandle`).
            let descriptor = unsafe { with_exposed_provenance::<u32>(exported).read_unaligned() };
            (values.data, values.fingerprint) = (Some(descriptor_data(descriptor)), of_file(descriptor));
        } else {
            // SAFETY: as above, a handle of so many bytes.
            unsafe { out_params::add_handle_bytes(exported, values) };
        }
    }

    fn kernel_pointers(&self, sources: &Sources, visit: &mut dyn FnMut(u64)) -> bool {
        let mut kernel = 0;
        let mut params = 0;
        let mut extra = 0;
        for (kind, word) in sources.structures.iter() {
            match kind {
                structures::KERNEL => kernel = word as usize,
                structures::KERNEL_PARAMS => params = word as usize,
                structures::KERNEL_EXTRA => extra = word as usize,
                _ => {}
            }
        }
        kernel_arguments::each_word(kernel, params, extra, visit)
    }

    fn makes_non_blocking(&self, sources: &Sources) -> bool {
        sources.structures.get(structures::STREAM_FLAGS) as u32 & STREAM_NON_BLOCKING != 0
    }

    fn queue(&self, sources: &Sources) -> Option<usize> {
        let configuration = sources.structures.get(structures::LAUNCH_CONFIGURATION) as usize;
        if configuration == 0 {
            return Some(sources.queue);
        }
        let mut named = Sources::default();
        StreamHandle(read(configuration.wrapping_add(STREAM))?).source(&mut named);
        Some(named.queue)
    }

    fn allocation_around(&self, address: u64) -> Option<[u64; 2]> {
        allocation::around(address)
    }

    fn forget_kernels(&self) {
        kernel_arguments::forget_kernels();
    }
}

/// Adds the first row of a copy to its arguments.
fn enter(row: Option<Row>, values: &mut Values) {
    if let Some(Row { to, from, length }) = row {
        (values.pointer, values.source, values.size) = (to, from, Some(length));
    }
}

/// Whether the handle of a call is a descriptor.
fn is_descriptor(sources: &Sources) -> bool {
    sources.structures.get(structures::HANDLE_TYPE) == u64::from(MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
}
