//! The header that libumf puts into handle data of memory (`umf_ipc_data_t` in its `src/ipc_internal.h`): the driver's
//! allocation.

/// The size of the header, in bytes.
const SIZE: usize = 40;

/// The sizes of handle data of memory that begin with the header, in bytes: of UR's adapters for CUDA and for Level
/// Zero, v1 and v2. urscope's backend has another size.
pub(super) const UMF_SIZES: [usize; 3] = [104, 108, 120];

pub(super) struct UmfHeader {
    /// The address of the driver's allocation.
    pub(super) base: u64,
    /// The process that exported it, in its pid namespace.
    pub(super) process: u32,
    /// The size of the allocation in bytes.
    pub(super) size: u64,
    /// The offset of the exported address in the allocation.
    pub(super) offset: u64,
}

impl UmfHeader {
    /// Reads the header at an address; `None` if there are too few bytes.
    ///
    /// # Safety
    ///
    /// `size` bytes can be read at `address`.
    pub(super) unsafe fn read(address: usize, size: usize) -> Option<Self> {
        if size < SIZE {
            return None;
        }
        let word = |at: usize| {
            // SAFETY: the caller's promise; `at` lies within the first `SIZE` bytes.
            unsafe { std::ptr::with_exposed_provenance::<u64>(address + at).read_unaligned() }
        };
        Some(Self { base: word(8), process: word(16) as u32, size: word(24), offset: word(32) })
    }

    pub(super) fn exported(&self) -> Option<u64> {
        self.base.checked_add(self.offset)
    }
}
