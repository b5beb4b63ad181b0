//! Copies and sets of rows of memory, which may lie in planes.

use urscope_device::{Address, Region, Work};

use crate::arguments::In;
use crate::exports::functions;
use crate::memory::check;
use crate::result::{Code, Outcome};
use crate::stream::{Stream, at_once, check_given, find, values};

/// One side of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Side2d {
    x: usize,
    y: usize,
    kind: u32,
    host: usize,
    device: usize,
    array: usize,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy2d {
    from: Side2d,
    to: Side2d,
    width: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D`, or of `CUDA_MEMCPY3D_PEER`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Side {
    x: usize,
    y: usize,
    z: usize,
    level_of_detail: usize,
    /// `CUmemorytype`: host 1, device 2, array 3, unified 4.
    kind: u32,
    host: usize,
    device: usize,
    array: usize,
    /// `CUDA_MEMCPY3D` reserves it.
    context: usize,
    pitch: usize,
    /// The rows of a plane.
    height: usize,
}

/// `CUDA_MEMCPY3D`, or `CUDA_MEMCPY3D_PEER`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy3d {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
    depth: usize,
}

impl From<Side2d> for Side {
    fn from(side: Side2d) -> Self {
        let Side2d { x, y, kind, host, device, array, pitch } = side;
        Self { x, y, z: 0, level_of_detail: 0, kind, host, device, array, context: 0, pitch, height: 0 }
    }
}

impl From<Copy2d> for Copy3d {
    fn from(copy: Copy2d) -> Self {
        let Copy2d { from, to, width, height } = copy;
        Self { from: from.into(), to: to.into(), width, height, depth: 1 }
    }
}

impl Side {
    fn address(&self) -> Outcome<usize> {
        match self.kind {
            1 => Ok(self.host),
            2 | 4 => Ok(self.device),
            _ => Err(Code::NOT_SUPPORTED),
        }
    }

    /// The bytes from the start of one row, and of one plane, to that of the next.
    fn pitches(&self, copy: &Copy3d) -> (usize, usize) {
        let row = if self.pitch == 0 { copy.width } else { self.pitch };
        let rows = if self.height == 0 { copy.height } else { self.height };
        (row, row.saturating_mul(rows))
    }

    /// `INVALID_VALUE` for addresses that there cannot be, and unless all of it is memory of the device, where the caller
    /// says so.
    fn check(&self, copy: &Copy3d) -> Outcome {
        let (row, plane) = self.pitches(copy);
        let before = (self.z + copy.depth - 1).checked_mul(plane).zip((self.y + copy.height - 1).checked_mul(row));
        let end = before.and_then(|(planes, rows)| planes.checked_add(rows)?.checked_add(self.x + copy.width));
        let at = self.address()?;
        let end = end.filter(|end| at.checked_add(*end).is_some()).ok_or(Code::INVALID_VALUE)?;
        if self.kind == 2 { check(self.device, end) } else { Ok(()) }
    }

    /// What it describes of the memory at its address.
    fn region(&self, address: usize, copy: &Copy3d) -> Region {
        let (row, plane) = self.pitches(copy);
        let origin = [self.x, self.y, self.z];
        let extent = [copy.width, copy.height, copy.depth];
        // SAFETY: cuda.h promises that commands may access this memory until they have completed.
        unsafe { Region::at(Address::new(address), origin, extent, [row, plane]) }
    }
}

fn copy(copy: impl Into<Copy3d>, stream: &Stream) -> Outcome {
    let copy = copy.into();
    let Copy3d { from, to, width, height, depth } = &copy;
    if [width, height, depth].contains(&&0) {
        return Ok(());
    }
    let to_at = to.address()?;
    let from_at = from.address()?;
    to.check(&copy)?;
    from.check(&copy)?;
    check_given([to_at, from_at])?;
    let work = Work::copy_region(to.region(to_at, &copy), from.region(from_at, &copy));
    stream.submit(|commands| commands.perform(work))?;
    stream.wait_for_pageable([to_at, from_at])
}

/// Rows of a plane: where the first one begins, the bytes to the start of the next, and how many values of how many bytes in
/// how many rows.
#[derive(Clone, Copy)]
struct Rows {
    to: usize,
    pitch: usize,
    width: usize,
    count: usize,
    height: usize,
}

fn set(rows: Rows, value: u32, stream: &Stream) -> Outcome {
    let Rows { to, pitch, width, count, height } = rows;
    let length = count.checked_mul(width).ok_or(Code::INVALID_VALUE)?;
    if length == 0 || height == 0 {
        return Ok(());
    }
    let end = (height - 1).checked_mul(pitch).and_then(|before| before.checked_add(length));
    check(to, end.ok_or(Code::INVALID_VALUE)?)?;
    // SAFETY: `check` has found all of this memory, which the caller lets commands write.
    let row = |number| unsafe { values(to + number * pitch, value, width, length) };
    stream.submit(|commands| (0..height).try_for_each(|number| commands.perform(row(number))))
}

functions! {
    3020 "cuMemcpy2D" cuMemcpy2D_v2(desc: In<Copy2d>) / cuMemcpy2D_v2_ptds {
        at_once(|stream| copy(desc.read()?, stream))
    }
    3020 "cuMemcpy2DUnaligned" cuMemcpy2DUnaligned_v2(desc: In<Copy2d>) / cuMemcpy2DUnaligned_v2_ptds {
        at_once(|stream| copy(desc.read()?, stream))
    }
    3020 "cuMemcpy3D" cuMemcpy3D_v2(desc: In<Copy3d>) / cuMemcpy3D_v2_ptds {
        at_once(|stream| copy(desc.read()?, stream))
    }
    4000 "cuMemcpy3DPeer" cuMemcpy3DPeer(desc: In<Copy3d>) / cuMemcpy3DPeer_ptds {
        at_once(|stream| copy(desc.read()?, stream))
    }
    3020 "cuMemcpy2DAsync" cuMemcpy2DAsync_v2(desc: In<Copy2d>, stream: usize) / cuMemcpy2DAsync_v2_ptsz {
        copy(desc.read()?, &*find(stream)?)
    }
    3020 "cuMemcpy3DAsync" cuMemcpy3DAsync_v2(desc: In<Copy3d>, stream: usize) / cuMemcpy3DAsync_v2_ptsz {
        copy(desc.read()?, &*find(stream)?)
    }
    4000 "cuMemcpy3DPeerAsync" cuMemcpy3DPeerAsync(desc: In<Copy3d>, stream: usize) / cuMemcpy3DPeerAsync_ptsz {
        copy(desc.read()?, &*find(stream)?)
    }
    3020 "cuMemsetD2D8" cuMemsetD2D8_v2(
        to: usize, pitch: usize, value: u8, count: usize, height: usize,
    ) / cuMemsetD2D8_v2_ptds {
        at_once(|stream| set(Rows { to, pitch, width: 1, count, height }, value.into(), stream))
    }
    3020 "cuMemsetD2D8Async" cuMemsetD2D8Async(
        to: usize, pitch: usize, value: u8, count: usize, height: usize, stream: usize,
    ) / cuMemsetD2D8Async_ptsz {
        set(Rows { to, pitch, width: 1, count, height }, value.into(), &*find(stream)?)
    }
    3020 "cuMemsetD2D16" cuMemsetD2D16_v2(
        to: usize, pitch: usize, value: u16, count: usize, height: usize,
    ) / cuMemsetD2D16_v2_ptds {
        at_once(|stream| set(Rows { to, pitch, width: 2, count, height }, value.into(), stream))
    }
    3020 "cuMemsetD2D16Async" cuMemsetD2D16Async(
        to: usize, pitch: usize, value: u16, count: usize, height: usize, stream: usize,
    ) / cuMemsetD2D16Async_ptsz {
        set(Rows { to, pitch, width: 2, count, height }, value.into(), &*find(stream)?)
    }
    3020 "cuMemsetD2D32" cuMemsetD2D32_v2(
        to: usize, pitch: usize, value: u32, count: usize, height: usize,
    ) / cuMemsetD2D32_v2_ptds {
        at_once(|stream| set(Rows { to, pitch, width: 4, count, height }, value, stream))
    }
    3020 "cuMemsetD2D32Async" cuMemsetD2D32Async(
        to: usize, pitch: usize, value: u32, count: usize, height: usize, stream: usize,
    ) / cuMemsetD2D32Async_ptsz {
        set(Rows { to, pitch, width: 4, count, height }, value, &*find(stream)?)
    }
}
