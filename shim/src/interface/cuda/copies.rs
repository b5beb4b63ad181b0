//! Copies of rows by the CUDA driver, whose arguments stand in a structure.

use crate::raw::memory::checked::{Plain, read};

/// One side of a `CUDA_MEMCPY2D` (`cuda.h`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Side2d {
    column: u64,
    row: u64,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: u64,
}

/// A `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy2d {
    from: Side2d,
    to: Side2d,
    width: u64,
    height: u64,
}

/// One side of a `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER`, which has a context in the place of a reserved field.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side3d {
    column: u64,
    row: u64,
    plane: u64,
    level_of_detail: u64,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    context: u64,
    pitch: u64,
    rows: u64,
}

/// A `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy3d {
    from: Side3d,
    to: Side3d,
    width: u64,
    height: u64,
    depth: u64,
}

// SAFETY: integers.
unsafe impl Plain for Copy2d {}
// SAFETY: as above.
unsafe impl Plain for Copy3d {}

/// `CU_MEMORYTYPE_DEVICE` and `CU_MEMORYTYPE_UNIFIED`.
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

/// The address of a byte; `None` of memory of the host, or of an array.
fn address(kind: u32, device: u64, rows: u64, pitch: u64, column: u64) -> Option<u64> {
    let start = device.wrapping_add(rows.wrapping_mul(pitch)).wrapping_add(column);
    Some(start).filter(|_| [DEVICE, UNIFIED].contains(&kind))
}

impl Side2d {
    fn address(&self) -> Option<u64> {
        address(self.kind, self.device, self.row, self.pitch, self.column)
    }
}

impl Side3d {
    fn address(&self) -> Option<u64> {
        let rows = self.plane.wrapping_mul(self.rows).wrapping_add(self.row);
        address(self.kind, self.device, rows, self.pitch, self.column)
    }
}

/// The first row of a copy: where it is in memory of the device, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) to: Option<u64>,
    pub(super) from: Option<u64>,
    pub(super) length: u64,
}

/// The first row of the `CUDA_MEMCPY2D` at an address.
pub(super) fn first_row_2d(copy: usize) -> Option<Row> {
    let Copy2d { from, to, width, .. } = read(copy)?;
    Some(Row { to: to.address(), from: from.address(), length: width })
}

/// The first row of the `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER` at an address.
pub(super) fn first_row_3d(copy: usize) -> Option<Row> {
    let Copy3d { from, to, width, .. } = read(copy)?;
    Some(Row { to: to.address(), from: from.address(), length: width })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_of_the_first_plane_is_told() {
        let mut words = [0_u64; 25];
        // From column 3, row 2, plane 1 of memory of the device, with 10 rows of 100 bytes in a plane; to memory of the
        // host.
        (words[0], words[1], words[2], words[4], words[6]) = (3, 2, 1, DEVICE.into(), 0x1000);
        (words[9], words[10], words[15], words[17]) = (100, 10, 1, 0x2000);
        (words[22], words[23], words[24]) = (7, 4, 2);
        let address = words.as_ptr().expose_provenance();
        assert_eq!(first_row_3d(address), Some(Row { to: None, from: Some(0x1000 + 1200 + 3), length: 7 }));
    }
}
