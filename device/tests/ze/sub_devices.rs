//! Sub-devices: what they are parts of, their memory, their queues, and what the whole device has of them.

use crate::api::*;
use crate::memory::describe;

/// The smallest allocation that takes a 16th of the memory.
const SHARE: usize = 4 << 20;

/// The rest of a test happens in a process of its own with two devices of 64 MB, each with two sub-devices.
macro_rules! with_parts {
    ($variables:expr) => {
        let devices = [("ZE_SOFT_DEVICES", "2"), ("ZE_SOFT_SUB_DEVICES", "2"), ("ZE_SOFT_MEMORY", "64M")];
        alone!(&[&devices[..], $variables].concat())
    };
}

fn parts(device: Handle) -> Vec<Handle> {
    all(|count, out| zeDeviceGetSubDevices(device, count, out))
}

fn properties(device: Handle) -> DeviceProperties {
    value(|out| zeDeviceGetProperties(device, out))
}

fn root_of(device: Handle) -> Handle {
    let mut root = device;
    ok(zeDeviceGetRootDevice(device, &raw mut root));
    root
}

fn on(device: Handle) -> Setup {
    Setup { device, ..Setup::new() }
}

#[test]
fn a_sub_device_knows_its_device_and_is_told_apart() {
    with_parts!(&[]);
    let devices = devices();
    assert_eq!(devices.len(), 2);
    let mut uuids = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let whole = properties(*device);
        let parts = parts(*device);
        assert_eq!((whole.flags & 2, whole.max_mem_alloc_size, parts.len()), (0, 64 << 20, 2));
        uuids.push(whole.uuid);
        for (number, part) in parts.iter().enumerate() {
            let found = properties(*part);
            assert_eq!((found.flags & 2, found.subdevice_id), (2, number as u32));
            assert_eq!((found.max_mem_alloc_size, found.num_slices * 2), (32 << 20, whole.num_slices));
            uuids.push(found.uuid);
            assert_eq!(make(|out| zeDeviceGetRootDevice(*part, out)), *device);
            let mut count = 7;
            ok(zeDeviceGetSubDevices(*part, &raw mut count, null_mut()));
            assert_eq!(count, 0);
            let identifier = zerTranslateDeviceHandleToIdentifier(*part);
            assert_eq!(identifier as usize, 2 + 2 * index + number);
            assert_eq!(zerTranslateIdentifierToDeviceHandle(identifier), *part);
            let vertex = make(|out| zeDeviceGetFabricVertexExp(*part, out));
            assert_eq!(make(|out| zeFabricVertexGetDeviceExp(vertex, out)), *part);
            let described: FabricVertexProperties = value(|out| zeFabricVertexGetPropertiesExp(vertex, out));
            assert_eq!((described.kind, described.uuid), (2, found.uuid));
            let mut vertices = [null_mut(); 2];
            count = 2;
            let of_device = make(|out| zeDeviceGetFabricVertexExp(*device, out));
            ok(zeFabricVertexGetSubVerticesExp(of_device, &raw mut count, vertices.as_mut_ptr()));
            assert_eq!((count, vertices[number]), (2, vertex));
        }
        assert!(root_of(*device).is_null());
        assert_eq!(zerTranslateDeviceHandleToIdentifier(*device), index as u32);
    }
    uuids.sort_unstable();
    uuids.dedup();
    assert_eq!(uuids.len(), 6);
}

#[test]
fn the_memory_of_sub_devices_is_that_of_their_device() {
    with_parts!(&[]);
    let device = devices()[0];
    let [first, second] = [0, 1].map(|number| on(parts(device)[number]));
    let whole = on(device);
    let allocate = |setup: Setup| {
        let (desc, mut out): (DeviceMemAllocDesc, _) = (zeroed(), null_mut());
        (zeMemAllocDevice(setup.context, &raw const desc, SHARE, 0, setup.device, &raw mut out), out)
    };
    let held: Vec<_> = (0..8).map(|_| first.device_memory(SHARE)).collect();
    assert_eq!(allocate(first), (OUT_OF_DEVICE_MEMORY, null_mut()));
    let rest: Vec<_> = (0..7).map(|_| second.device_memory(SHARE)).collect();
    let last = whole.device_memory(SHARE);
    // The whole device has no more, although the second part has.
    assert_eq!(allocate(second), (OUT_OF_DEVICE_MEMORY, null_mut()));
    assert_eq!(describe(first, held[0]).1, first.device);
    for memory in held.into_iter().chain(rest).chain([last]) {
        whole.free(memory);
    }
    ok(allocate(second).0);
}

#[test]
fn sub_devices_use_each_others_memory_and_have_queues_of_their_own() {
    with_parts!(&[("ZE_SOFT_PEERS", "off")]);
    let devices = devices();
    let [first, second] = [0, 1].map(|number| on(parts(devices[0])[number]));
    let mut reach = [9; 4];
    for (peer, reach) in [first.device, second.device, devices[0], devices[1]].into_iter().zip(&mut reach) {
        ok(zeDeviceCanAccessPeer(first.device, peer, reach));
    }
    assert_eq!(reach, [1, 1, 1, 0]);
    let from = first.device_memory(64);
    let to = second.device_memory(64);
    bytes(from, 64).fill(7);
    let list = second.immediate_list(2);
    assert_eq!(make(|out| zeCommandListGetDeviceHandle(list, out)), second.device);
    copy(list, to, from, 64);
    // The whole device waits for its parts.
    ok(zeDeviceSynchronize(devices[0]));
    assert_eq!(bytes(to, 64), [7; 64]);
    let handle: IpcHandle = value(|out| zeMemGetIpcHandle(first.context, from, out));
    for device in [first.device, second.device, devices[0]] {
        let opened = make(|out| zeMemOpenIpcHandle(first.context, device, handle, 0, out));
        assert_eq!(bytes(opened, 1)[0], 7);
        ok(zeMemCloseIpcHandle(first.context, opened));
    }
    let mut out = null_mut();
    let foreign = zeMemOpenIpcHandle(first.context, parts(devices[1])[0], handle, 0, &raw mut out);
    assert_eq!((foreign, out), (INVALID_ARGUMENT, null_mut()));
}

/// With one engine for both parts, the second copy would begin after the first one.
#[test]
fn a_part_does_not_wait_for_the_other_one() {
    with_parts!(&[("ZE_SOFT_DELAY", "3s")]);
    let setups = [0, 1].map(|number| on(parts(devices()[0])[number]));
    let events: [_; 2] = setups[0].events();
    let memory = setups[0].device_memory(64);
    let lists = setups.map(|setup| setup.immediate_list(2));
    for (list, event) in lists.into_iter().zip(events) {
        ok(zeCommandListAppendMemoryCopy(list, memory, memory, 32, event, 0, null()));
    }
    ok(zeDeviceSynchronize(devices()[0]));
    let [first, second] = events.map(|event| {
        let result: KernelTimestampResult = value(|out| zeEventQueryKernelTimestamp(event, out));
        result.global
    });
    // Each has waited 3 s before it began, and both did so at the same time.
    assert!(second.kernel_start.abs_diff(first.kernel_start) < 2_500_000_000, "{first:?} {second:?}");
}

/// What the process sees with a hierarchy and a mask: the UUIDs of the devices that are listed, whether each is a
/// sub-device, and how many sub-devices it has.
fn seen() -> Vec<([u8; 16], bool, usize)> {
    let described = |device: &Handle| {
        let properties = properties(*device);
        (properties.uuid, properties.flags & 2 != 0, parts(*device).len())
    };
    devices().iter().map(described).collect()
}

#[test]
fn flat_sub_devices_are_devices() {
    with_parts!(&[("ZE_FLAT_DEVICE_HIERARCHY", "FLAT")]);
    let seen = seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|(_, is_part, parts)| !is_part && *parts == 0));
    for (number, device) in devices().into_iter().enumerate() {
        assert!(root_of(device).is_null());
        assert_eq!(zerTranslateDeviceHandleToIdentifier(device) as usize, number);
        let vertex = make(|out| zeDeviceGetFabricVertexExp(device, out));
        let described: FabricVertexProperties = value(|out| zeFabricVertexGetPropertiesExp(vertex, out));
        assert_eq!(described.kind, 1);
        on(device).free(on(device).device_memory(SHARE));
    }
    assert!(zerTranslateIdentifierToDeviceHandle(4).is_null());
}

#[test]
fn combined_sub_devices_know_their_device() {
    with_parts!(&[("ZE_FLAT_DEVICE_HIERARCHY", "COMBINED"), ("ZE_AFFINITY_MASK", "1,2,3")]);
    assert!(seen().iter().all(|(_, is_part, parts)| *is_part && *parts == 0));
    let listed = devices();
    let roots: Vec<Handle> = listed.iter().map(|device| make(|out| zeDeviceGetRootDevice(*device, out))).collect();
    assert_eq!((listed.len(), roots[1]), (3, roots[2]));
    assert_eq!(parts(roots[0]), [listed[0]]);
    assert_eq!(parts(roots[1]), listed[1..]);
    // The first device has the memory of the sub-device that is seen.
    assert_eq!(properties(roots[0]).max_mem_alloc_size, 32 << 20);
    assert_eq!(properties(roots[1]).max_mem_alloc_size, 64 << 20);
    let list = on(roots[1]).immediate_list(1);
    let memory = on(listed[0]).device_memory(SHARE);
    ok(append!(zeCommandListAppendMemoryFill(list, memory, [7_u8].as_ptr().cast(), 1, SHARE)));
    assert_eq!(bytes(memory, SHARE)[SHARE - 1], 7);
}

#[test]
fn a_mask_leaves_one_sub_device_as_a_device() {
    with_parts!(&[("ZE_AFFINITY_MASK", "0.1,1,7")]);
    let seen = seen();
    assert_eq!(seen.iter().map(|(_, is_part, parts)| (*is_part, *parts)).collect::<Vec<_>>(), [(false, 0), (false, 2)]);
    // The second sub-device of the first device.
    assert_eq!(seen[0].0[12..], [0, 2, 0, 0]);
    assert!(root_of(devices()[0]).is_null());
    assert_eq!(properties(devices()[0]).max_mem_alloc_size, 32 << 20);
}

#[test]
fn a_mask_for_nothing_leaves_no_device() {
    if role().is_none() {
        let name = "sub_devices::a_mask_for_nothing_leaves_no_device";
        run_child(child(name, "device", &[("ZE_AFFINITY_MASK", "3")]));
        return;
    }
    assert_eq!(zeInit(0), UNINITIALIZED);
    let mut count = 7;
    ok(zeInitDrivers(&raw mut count, null_mut(), &InitDriverTypeDesc { flags: 1, ..zeroed() }));
    assert_eq!(count, 0);
}
