//! Initialisation, the driver, devices, and the properties that they report.

use crate::api::*;
use crate::bare_descriptors::bare;
use crate::ipc::{get, number_in};

fn properties(device: Handle) -> DeviceProperties {
    let mut properties = DeviceProperties { s_type: stype::DEVICE_PROPERTIES, ..zeroed() };
    ok(zeDeviceGetProperties(device, &raw mut properties));
    properties
}

#[test]
fn both_ways_to_initialise_return_the_same_driver() {
    ok(zeInit(0));
    ok(zeInit(1));
    assert_eq!(zeInit(4), INVALID_ENUMERATION);
    let desc = InitDriverTypeDesc { flags: u32::MAX, ..zeroed() };
    let mut count = 0;
    ok(zeInitDrivers(&raw mut count, null_mut(), &raw const desc));
    assert_eq!(count, 1);
    let mut found = null_mut();
    ok(zeInitDrivers(&raw mut count, &raw mut found, &raw const desc));
    assert_eq!(found, driver());
    ok(zeInitDrivers(&raw mut count, null_mut(), &InitDriverTypeDesc { flags: 2, ..desc }));
    assert_eq!(count, 0);
}

#[test]
fn the_driver_reports_what_the_adapters_require() {
    let driver = driver();
    assert_eq!(value(|out| zeDriverGetApiVersion(driver, out)), 1 << 16 | 0x11);
    let properties: DriverProperties = value(|out| zeDriverGetProperties(driver, out));
    assert!(properties.driver_version & 0xffff >= 38646);
    let ipc: DriverIpcProperties = value(|out| zeDriverGetIpcProperties(driver, out));
    assert_eq!(ipc.flags, 0b11);
    let extensions: Vec<DriverExtensionProperties> =
        all(|count, out| zeDriverGetExtensionProperties(driver, count, out));
    let named = |name: &[u8]| extensions.iter().filter(|extension| extension.name.starts_with(name)).count();
    // Without them the adapters refuse offsets, programs of several inputs, command buffers and batched queues.
    for name in ["global_offset", "module_program", "immediate_command_list_append"] {
        assert_eq!(named(format!("ZE_experimental_{name}\0").as_bytes()), 1, "{name}");
    }
    assert_eq!(named(b"ZE_extension_virtual_mem_readonly_properties\0"), 1);
}

#[test]
fn read_only_memory_is_enforced() {
    let s_type = DeviceReadonlyMemory::S_TYPE;
    let mut read_only = DeviceReadonlyMemory { s_type, ..zeroed() };
    let mut properties = DeviceProperties { p_next: (&raw mut read_only).cast(), ..zeroed() };
    ok(zeDeviceGetProperties(devices()[0], &raw mut properties));
    assert_eq!(read_only.capability, 2);
}

#[test]
fn extension_functions_are_found_by_name_only_when_they_exist() {
    let driver = driver();
    let mut address = null::<c_void>();
    ok(zeDriverGetExtensionFunctionAddress(driver, c"zexCounterBasedEventCreate2".as_ptr(), &raw mut address));
    assert!(!address.is_null());
    let missing = zeDriverGetExtensionFunctionAddress(driver, c"zexNothing".as_ptr(), &raw mut address);
    assert_eq!((missing, address.is_null()), (INVALID_ARGUMENT, true));
}

#[test]
fn a_device_is_an_intel_gpu_of_an_ip_version_that_selects_the_v2_adapter() {
    let mut ip = DeviceIpVersionExt { s_type: DeviceIpVersionExt::S_TYPE, ..zeroed() };
    // A structure of an unknown type precedes the one to fill.
    let mut unknown = [0x7777_0001_u64, (&raw mut ip) as u64, 0xaaaa];
    let mut properties =
        DeviceProperties { s_type: stype::DEVICE_PROPERTIES, p_next: unknown.as_mut_ptr().cast(), ..zeroed() };
    ok(zeDeviceGetProperties(devices()[0], &raw mut properties));
    assert_eq!((properties.kind, properties.vendor_id), (1, 0x8086));
    assert!(properties.name.starts_with(b"urscope software device\0"));
    assert_eq!(properties.p_next, unknown.as_mut_ptr().cast());
    assert!(ip.ip_version >= 0x0500_4000);
    assert_eq!(unknown[2], 0xaaaa);
    assert_eq!(properties.timer_resolution, 1);
    // Nothing is there: Intel SHMEM leaves it uninitialised.
    for p_next in [1_usize, 0xdead_beef, usize::MAX - 64] {
        let mut properties = DeviceProperties { p_next: p_next as *mut _, ..zeroed() };
        ok(zeDeviceGetProperties(devices()[0], &raw mut properties));
        assert_eq!((properties.kind, properties.p_next as usize), (1, p_next));
    }
    let mut newer = DeviceProperties { s_type: stype::DEVICE_PROPERTIES_1_2, ..zeroed() };
    ok(zeDeviceGetProperties(devices()[0], &raw mut newer));
    assert_eq!(newer.timer_resolution, 1_000_000_000);
}

#[test]
fn one_queue_group_does_compute_and_copy_and_the_others_copy_only() {
    let device = devices()[0];
    let groups = all(|count, out| zeDeviceGetCommandQueueGroupProperties(device, count, out));
    let groups: [CommandQueueGroupProperties; 3] = groups.try_into().unwrap();
    assert_eq!(groups.map(|group| group.flags), [0b111, 0b010, 0b010]);
    assert_eq!(groups.map(|group| group.num_queues), [4, 1, 7]);
    assert_eq!(groups.map(|group| group.max_memory_fill_pattern_size), [usize::MAX, 16, 16]);
}

#[test]
fn the_other_queries_succeed() {
    let device = devices()[0];
    let compute: DeviceComputeProperties = value(|out| zeDeviceGetComputeProperties(device, out));
    assert!(compute.max_total_group_size > 0 && compute.num_sub_group_sizes > 0);
    let _: DeviceModuleProperties = value(|out| zeDeviceGetModuleProperties(device, out));
    let access: DeviceMemoryAccessProperties = value(|out| zeDeviceGetMemoryAccessProperties(device, out));
    assert!(access.device_alloc_capabilities & access.host_alloc_capabilities & 1 == 1);
    let _: DeviceImageProperties = value(|out| zeDeviceGetImageProperties(device, out));
    let external: DeviceExternalMemoryProperties = value(|out| zeDeviceGetExternalMemoryProperties(device, out));
    assert_eq!((external.memory_allocation_import_types, external.memory_allocation_export_types), (0b11, 0b11));
    let (mut count, mut cache, mut memory): (u32, DeviceCacheProperties, DeviceMemoryProperties) =
        (1, zeroed(), zeroed());
    ok(zeDeviceGetCacheProperties(device, &raw mut count, &raw mut cache));
    ok(zeDeviceGetMemoryProperties(device, &raw mut count, &raw mut memory));
    assert_eq!(memory.total_size, 4 << 30);
    let mut root = device;
    ok(zeDeviceGetRootDevice(device, &raw mut root));
    assert!(root.is_null());
    ok(zeDeviceGetSubDevices(device, &raw mut count, null_mut()));
    assert_eq!(count, 0);
    ok(zeDeviceGetStatus(device));
}

#[test]
fn memory_of_the_system_is_offered_on_demand() {
    let capabilities = || {
        let access: DeviceMemoryAccessProperties = value(|out| zeDeviceGetMemoryAccessProperties(devices()[0], out));
        (access.shared_system_alloc_capabilities, access.device_alloc_capabilities)
    };
    if role().is_none() {
        assert_eq!(capabilities(), (0, 0b1111));
        run_child(child(this_test!(), "device", &[("ZE_SOFT_SYSTEM_USM", "on")]));
        return;
    }
    assert_eq!(capabilities(), (0b1111, 0b1111));
    let setup = Setup::new();
    let mut to = vec![0_u8; 5000];
    let from = vec![7_u8; 5000];
    let list = setup.immediate_list(1);
    copy(list, to.as_mut_ptr().cast(), from.as_ptr().cast(), 5000);
    assert_eq!(to, from);
}

#[test]
fn host_and_device_share_a_clock() {
    let device = devices()[0];
    let mut host = 0;
    let mut own = 0;
    let mut later = 0;
    ok(zeDeviceGetGlobalTimestamps(device, &raw mut host, &raw mut own));
    ok(zeDeviceGetGlobalTimestamps(device, &raw mut host, &raw mut later));
    assert!(own > 0 && later >= own);
}

#[test]
fn several_devices_differ_and_access_each_other() {
    alone!(&[("ZE_SOFT_DEVICES", "3")]);
    let devices = devices();
    assert_eq!(devices.len(), 3);
    let uuids: Vec<_> = devices.iter().map(|device| properties(*device).uuid).collect();
    assert!(uuids[0] != uuids[1] && uuids[1] != uuids[2] && uuids[0] != uuids[2]);
    let reach = value(|out| zeDeviceCanAccessPeer(devices[0], devices[2], out));
    let peer: DeviceP2pProperties = value(|out| zeDeviceGetP2PProperties(devices[1], devices[2], out));
    assert_eq!((reach, peer.flags & 1), (1, 1));
    for (index, device) in devices.iter().enumerate() {
        assert_eq!(zerTranslateDeviceHandleToIdentifier(*device), index as u32);
        assert_eq!(zerTranslateIdentifierToDeviceHandle(index as u32), *device);
    }
    assert!(zerTranslateIdentifierToDeviceHandle(3).is_null());
}

#[test]
fn devices_that_are_no_peers_open_only_their_own_memory() {
    alone!(&[("ZE_SOFT_DEVICES", "2"), ("ZE_SOFT_PEERS", "off")]);
    let setup = Setup::new();
    let devices = devices();
    let reach = |peer| {
        let (mut reach, mut properties): (_, DeviceP2pProperties) = (9, zeroed());
        ok(zeDeviceCanAccessPeer(devices[0], peer, &raw mut reach));
        ok(zeDeviceGetP2PProperties(devices[0], peer, &raw mut properties));
        (reach, properties.flags)
    };
    assert_eq!((reach(devices[0]), reach(devices[1])), ((1, 0b11), (0, 0)));

    let memory = setup.device_memory(4096);
    let handle = get(setup, memory);
    for handle in [handle, bare(number_in(handle))] {
        let mut opened = null_mut();
        assert_eq!(zeMemOpenIpcHandle(setup.context, devices[1], handle, 0, &raw mut opened), INVALID_ARGUMENT);
        assert!(opened.is_null());
        ok(zeMemOpenIpcHandle(setup.context, setup.device, handle, 0, &raw mut opened));
        ok(zeMemCloseIpcHandle(setup.context, opened));
    }
}

#[test]
fn memory_and_ip_version_are_those_of_the_variables() {
    alone!(&[("ZE_SOFT_MEMORY", "64M"), ("ZE_SOFT_IP_VERSION", "12.60.7")]);
    let mut ip = DeviceIpVersionExt { s_type: DeviceIpVersionExt::S_TYPE, ..zeroed() };
    let mut properties = DeviceProperties { p_next: (&raw mut ip).cast(), ..zeroed() };
    ok(zeDeviceGetProperties(devices()[0], &raw mut properties));
    assert_eq!(properties.max_mem_alloc_size, 64 << 20);
    assert_eq!(ip.ip_version, 0x030f_0007);
}

#[test]
fn an_invalid_variable_is_one_line_on_stderr_and_nothing_on_stdout() {
    if role().is_some() {
        assert_eq!(devices().len(), 1);
        return;
    }
    let output = run_child(child(this_test!(), "device", &[("ZE_SOFT_DEVICES", "many")]));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("ze_soft: ZE_SOFT_DEVICES=")).count(), 1, "{text}");
    assert!(!String::from_utf8(output.stdout).unwrap().contains("ze_soft"));
}

#[test]
fn a_missing_function_is_logged_once() {
    if role().is_some() {
        for _ in 0..3 {
            // SAFETY: an entry point that is not implemented reads no argument.
            let missing: extern "C" fn() -> u32 =
                unsafe { std::mem::transmute(urscope_device::ddi::lookup("zeSamplerCreate").unwrap()) };
            assert_eq!(missing(), UNSUPPORTED_FEATURE);
        }
        return;
    }
    let reported = |log: &str| {
        let output = run_child(child(this_test!(), "device", &[("ZE_SOFT_LOG", log)]));
        let text = String::from_utf8(output.stderr).unwrap();
        text.matches("zeSamplerCreate").count()
    };
    assert_eq!([reported("1"), reported("0")], [1, 0]);
}

#[test]
fn without_an_engine_a_module_is_refused_and_one_line_says_what_to_install() {
    if role().is_some() {
        let setup = Setup::new();
        for _ in 0..3 {
            let desc = zeroed();
            let mut module = null_mut();
            let result = zeModuleCreate(setup.context, setup.device, &raw const desc, &raw mut module, null_mut());
            assert_eq!((result, module), (UNSUPPORTED_FEATURE, null_mut()));
        }
        return;
    }
    for (engine, why) in [("off", "ZE_SOFT_ENGINE is off"), ("/nowhere/engine.so", "/nowhere/engine.so")] {
        let output = run_child(child(this_test!(), "device", &[("ZE_SOFT_ENGINE", engine)]));
        let text = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("ze_soft:")).collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert!(lines[0].contains(why) && lines[0].contains("pip install intel-opencl-rt"), "{text}");
    }
}

#[test]
fn the_default_context_is_a_context() {
    let context = zeDriverGetDefaultContext(driver());
    assert!(!context.is_null());
    ok(zeContextGetStatus(context));
    assert_eq!(zerGetDefaultContext(), context);
    assert!(zeDriverGetDefaultContext(null_mut()).is_null());
}

#[test]
fn each_device_is_a_fabric_vertex_without_edges() {
    alone!(&[("ZE_SOFT_DEVICES", "2")]);
    let driver = driver();
    let devices = devices();
    let mut vertices: [Handle; 2] = all(|count, out| zeFabricVertexGetExp(driver, count, out)).try_into().unwrap();
    let mut count = 2;
    for (index, (device, vertex)) in devices.iter().zip(vertices).enumerate() {
        assert_eq!(make(|out| zeDeviceGetFabricVertexExp(*device, out)), vertex);
        assert_eq!(make(|out| zeFabricVertexGetDeviceExp(vertex, out)), *device);
        let (mut of_vertex, mut of_device): (FabricVertexProperties, DeviceProperties) = (zeroed(), zeroed());
        ok(zeFabricVertexGetPropertiesExp(vertex, &raw mut of_vertex));
        ok(zeDeviceGetProperties(*device, &raw mut of_device));
        assert_eq!((of_vertex.uuid, of_vertex.kind, of_vertex.remote), (of_device.uuid, 1, 0));
        assert_eq!(of_vertex.address, [0xffff, index as u32, 0, 0]);
        ok(zeFabricVertexGetSubVerticesExp(vertex, &raw mut count, null_mut()));
        assert_eq!(count, 0);
    }
    count = 7;
    ok(zeFabricEdgeGetExp(vertices[0], vertices[1], &raw mut count, null_mut()));
    assert_eq!(count, 0);
    assert_eq!(zeDeviceGetFabricVertexExp(null_mut(), vertices.as_mut_ptr()), INVALID_NULL_HANDLE);
    assert_eq!(zeDeviceGetFabricVertexExp(devices[0], null_mut()), INVALID_NULL_POINTER);
    assert_eq!(zeFabricVertexGetPropertiesExp(devices[0], null_mut()), INVALID_ARGUMENT);
}
