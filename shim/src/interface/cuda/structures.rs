//! Reads structures of the CUDA driver.

use std::ptr::with_exposed_provenance;

use urscope_schema::api::cuda::{constants::MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, structures};
use urscope_schema::api::role::{HandleBytes, Role as _, Sources};
use urscope_schema::call::Values;
use urscope_schema::handle::descriptor_data;

use super::{allocation, copies, kernel_arguments};
use crate::raw::args::{inputs::of_file, out_params, reader::Reader};

/// The offset of `requestedHandleTypes` in a `CUmemAllocationProp`.
const HANDLE_TYPES: usize = 4;

/// The structures of the driver.
#[derive(Debug)]
pub(super) struct Structures;

impl Reader for Structures {
    fn describe(&self, sources: &Sources, values: &mut Values) {
        for (kind, word) in sources.structures.iter() {
            let address = word as usize;
            match kind {
                // SAFETY: the caller passes one of these to the driver, which is about to read it.
                structures::COPY_2D => unsafe { copies::first_row_2d(address) }.enter(values),
                // SAFETY: as above.
                structures::COPY_3D => unsafe { copies::first_row_3d(address) }.enter(values),
                structures::ALLOCATION_PROPERTIES => {
                    let types = with_exposed_provenance::<u32>(address + HANDLE_TYPES);
                    // SAFETY: as above.
                    values.flags = Some(u64::from(unsafe { types.read_unaligned() }));
                }
                structures::IMPORTED if is_descriptor(sources) => values.data = Some(descriptor_data(word as u32)),
                structures::IMPORTED | structures::IMPORTED_POINTER => {
                    // SAFETY: as above, a handle of so many bytes.
                    unsafe { with_exposed_provenance::<HandleBytes>(address).read_unaligned() }.enter(values);
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
        let (mut kernel, mut params, mut extra) = (0, 0, 0);
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

    fn allocation_around(&self, address: u64) -> Option<[u64; 2]> {
        allocation::around(address)
    }

    fn forget_kernels(&self) {
        kernel_arguments::forget_kernels();
    }
}

/// Whether the handle of a call is a descriptor.
fn is_descriptor(sources: &Sources) -> bool {
    sources.structures.get(structures::HANDLE_TYPE) == u64::from(MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
}
