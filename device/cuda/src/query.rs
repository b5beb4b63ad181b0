//! What programs ask of the driver, its devices and memory.

use std::{ffi::c_char, thread};

use crate::arguments::{In, Out};
use crate::context::{current, device, devices, initialised};
use crate::exports::functions;
use crate::memory::{self, Block, Kind};
use crate::physical;
use crate::result::{Code, Outcome};

/// The version of CUDA that this library is like, 13.0.
const VERSION: i32 = 13_000;

/// The attributes of a device that are not 0 (`CUdevice_attribute`), as an H100 has them where a program may rely on
/// them.
const ATTRIBUTES: [(i32, i32); 40] = [
    // The largest block: threads, and its extents.
    (1, 1024),
    (2, 1024),
    (3, 1024),
    (4, 64),
    // The largest grid.
    (5, i32::MAX),
    (6, 65535),
    (7, 65535),
    // Memory of a block, and constant memory.
    (8, 49152),
    (9, 65536),
    // Threads of a warp.
    (10, 32),
    (11, i32::MAX),
    (12, 65536),
    (13, 1_980_000),
    (14, 512),
    (15, 1),
    // It can map memory of the host.
    (19, 1),
    (30, 512),
    // Kernels at the same time, bus, memory clock, bus width, level 2 cache.
    (31, 1),
    (36, 2_619_000),
    (37, 5120),
    (38, 50 << 20),
    // Threads of a multiprocessor, engines for copies.
    (39, 2048),
    (40, 3),
    // One address space with the host.
    (41, 1),
    // Its architecture.
    (75, 9),
    (78, 1),
    (79, 1),
    (80, 1),
    (81, 233_472),
    (82, 65536),
    // Managed memory, and access to it by the host at any time.
    (83, 1),
    (89, 1),
    (90, 1),
    (97, 232_448),
    (99, 1),
    // Virtual memory management, by descriptors.
    (102, 1),
    (103, 1),
    // Memory pools, by descriptors.
    (115, 1),
    (119, 1),
    // Events between processes.
    (125, 1),
];
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT` and `CU_DEVICE_ATTRIBUTE_PCI_BUS_ID`.
const MULTIPROCESSORS: i32 = 16;
const PCI_BUS: i32 = 33;

fn total(ordinal: i32) -> Outcome<usize> {
    Ok(device(ordinal)?.memory_size() as usize)
}

/// Writes a text with its NUL, cut to `length` bytes.
fn write_text(to: Out<c_char>, length: i32, text: &str) -> Outcome {
    let room = usize::try_from(length).ok().and_then(|length| length.checked_sub(1)).ok_or(Code::INVALID_VALUE)?;
    to.check()?;
    let bytes = text.bytes().take(room).chain([0]);
    bytes.enumerate().try_for_each(|(at, byte)| to.element(at).write(byte as c_char))
}

fn pci_bus_id(ordinal: i32) -> String {
    format!("0000:{:02X}:00.0", ordinal + 1)
}

/// What is known of an address.
struct Known {
    base: usize,
    size: usize,
    block: Option<Block>,
}

fn known(address: usize) -> Option<Known> {
    let in_block = memory::find(address).map(|block| Known { base: block.base, size: block.size, block: Some(block) });
    in_block.or_else(|| physical::range(address).map(|(base, size)| Known { base, size, block: None }))
}

/// Writes an attribute of an address (`CUpointer_attribute`): `INVALID_VALUE` for one that there is not.
fn attribute(to: Out<u64>, attribute: i32, address: usize, found: Option<&Known>) -> Outcome {
    let block = found.and_then(|found| found.block);
    let kind = block.map(|block| block.kind);
    match attribute {
        // The context.
        1 => to.write(block.map_or(0, |block| block.context as u64)),
        // Memory of the host 1, of a device 2.
        2 => to.cast().write(match (found, kind) {
            (None, _) => 0_u32,
            (_, Some(Kind::Host)) => 1,
            _ => 2,
        }),
        // Its addresses for the device and the host.
        3 => to.write(if found.is_some() { address as u64 } else { 0 }),
        4 => to.write(if matches!(kind, Some(Kind::Host | Kind::Managed)) { address as u64 } else { 0 }),
        6 => to.cast().write(0_u8),
        // A number that no other memory of the process has.
        7 => to.write(block.map_or(0, |block| block.base as u64 ^ u64::from(block.generation) << 48)),
        8 => to.cast().write(u8::from(kind == Some(Kind::Managed))),
        9 => to.cast().write(found.map_or(-2, |_| block.map_or(0, |block| block.device))),
        10 => to.cast().write(u8::from(kind == Some(Kind::Device))),
        11 => to.write(found.map_or(0, |found| found.base as u64)),
        12 => to.write(found.map_or(0, |found| found.size as u64)),
        13 => to.cast().write(u8::from(found.is_some())),
        14 => to.write(u64::from(found.is_some() && block.is_none())),
        // The pool is not told.
        15 | 17 => to.write(0),
        16 => to.cast().write(if found.is_some() { 3_u32 } else { 0 }),
        _ => Err(Code::INVALID_VALUE),
    }
}

functions! {
    2020 "cuDriverGetVersion" cuDriverGetVersion(version: Out<i32>) {
        version.write(VERSION)
    }
    2000 "cuDeviceGetCount" cuDeviceGetCount(count: Out<i32>) {
        count.write(devices()?.len() as i32)
    }
    2000 "cuDeviceGet" cuDeviceGet(to: Out<i32>, ordinal: i32) {
        device(ordinal)?;
        to.write(ordinal)
    }
    2000 "cuDeviceGetName" cuDeviceGetName(name: Out<c_char>, length: i32, ordinal: i32) {
        device(ordinal)?;
        write_text(name, length, "urscope software device")
    }
    9020 "cuDeviceGetUuid" cuDeviceGetUuid(to: Out<[u8; 16]>, ordinal: i32) {
        to.write(device(ordinal)?.uuid())
    }
    11040 "cuDeviceGetUuid" cuDeviceGetUuid_v2(to: Out<[u8; 16]>, ordinal: i32) {
        to.write(device(ordinal)?.uuid())
    }
    3020 "cuDeviceTotalMem" cuDeviceTotalMem_v2(bytes: Out<usize>, ordinal: i32) {
        bytes.write(total(ordinal)?)
    }
    3020 "cuMemGetInfo" cuMemGetInfo_v2(free: Out<usize>, all: Out<usize>) {
        let (_, context) = current()?;
        let total = total(context.device)?;
        let used = memory::all().iter().filter(|block| block.device == context.device).map(|block| block.size).sum();
        free.write(total.saturating_sub(used))?;
        all.write(total)
    }
    2000 "cuDeviceGetAttribute" cuDeviceGetAttribute(value: Out<i32>, attribute: i32, ordinal: i32) {
        device(ordinal)?;
        value.write(match attribute {
            MULTIPROCESSORS => thread::available_parallelism().map_or(1, |count| count.get() as i32),
            PCI_BUS => ordinal + 1,
            _ => ATTRIBUTES.iter().find(|(number, _)| *number == attribute).map_or(0, |(_, value)| *value),
        })
    }
    2000 "cuDeviceComputeCapability" cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, ordinal: i32) {
        device(ordinal)?;
        major.write(9)?;
        minor.write(0)
    }
    4010 "cuDeviceGetPCIBusId" cuDeviceGetPCIBusId(id: Out<c_char>, length: i32, ordinal: i32) {
        device(ordinal)?;
        write_text(id, length, &pci_bus_id(ordinal))
    }
    4010 "cuDeviceGetByPCIBusId" cuDeviceGetByPCIBusId(to: Out<i32>, id: In<c_char>) {
        let count = devices()?.len() as i32;
        let id = id.text()?;
        let found = (0..count).find(|ordinal| pci_bus_id(*ordinal).eq_ignore_ascii_case(&id));
        to.write(found.ok_or(Code::INVALID_DEVICE)?)
    }
    4000 "cuDeviceCanAccessPeer" cuDeviceCanAccessPeer(possible: Out<i32>, ordinal: i32, peer: i32) {
        let can = device(ordinal)?.can_access_peer(&device(peer)?);
        possible.write(i32::from(can && ordinal != peer))
    }
    5050 "cuCtxGetStreamPriorityRange" cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        current()?;
        least.write_optional(0);
        greatest.write_optional(0);
        Ok(())
    }
    4000 "cuPointerGetAttribute" cuPointerGetAttribute(value: Out<u64>, number: i32, address: usize) {
        initialised()?;
        let found = known(address).ok_or(Code::INVALID_VALUE)?;
        attribute(value, number, address, Some(&found))
    }
    7000 "cuPointerGetAttributes" cuPointerGetAttributes(
        count: u32, numbers: In<i32>, values: In<Out<u64>>, address: usize,
    ) {
        initialised()?;
        let found = known(address);
        (0..count as usize).try_for_each(|at| {
            attribute(values.element(at)?, numbers.element(at)?, address, found.as_ref())
        })
    }
}
