//! Modules: what they are made from, what they tell, and how they are linked.

use std::ffi::CStr;

use crate::spirv::{empty, number, scale};
use crate::*;

#[test]
fn a_module_names_its_kernels() {
    let setup = setup();
    let module = module(setup, |asm| {
        scale(asm);
        number(asm);
    });
    let names = all(|count, out| zeModuleGetKernelNames(module, count, out));
    // SAFETY: the names are C strings that live as long as the module.
    let names: Vec<_> = names.iter().map(|name| unsafe { CStr::from_ptr(*name) }).collect();
    assert_eq!(names, [c"scale", c"number"]);
    let properties: ModuleProperties = value(|out| zeModuleGetProperties(module, out));
    assert_eq!(properties.flags, 0);
    let desc = KernelDesc { name: c"none".as_ptr(), ..zeroed() };
    assert_eq!(zeKernelCreate(module, &raw const desc, &mut null_mut()), INVALID_KERNEL_NAME);
    ok(zeModuleDestroy(module));
    assert_eq!(zeModuleDestroy(module), INVALID_ARGUMENT);
}

#[test]
fn a_kernel_tells_its_properties() {
    let setup = setup();
    let module = module(setup, |asm| {
        let types = asm.types;
        let id = asm.kernel("fixed", &[types.global, types.local, types.uint], |_, _, _| {});
        asm.mode(id, &[17, 8, 4, 2]);
        asm.mode(id, &[18, 4, 4, 1]);
    });
    let kernel = kernel(module, "fixed");
    let mut largest = KernelMaxGroupSize { s_type: KernelMaxGroupSize::S_TYPE, ..zeroed() };
    let mut preferred = KernelPreferredGroupSize {
        s_type: KernelPreferredGroupSize::S_TYPE,
        p_next: (&raw mut largest).cast(),
        ..zeroed()
    };
    let mut properties = KernelProperties { p_next: (&raw mut preferred).cast(), ..zeroed() };
    ok(zeKernelGetProperties(kernel, &raw mut properties));
    assert_eq!((properties.num_kernel_args, properties.required_group_size), (3, [8, 4, 2]));
    assert!(properties.max_subgroup_size >= 4 && properties.max_num_subgroups >= 1, "{properties:?}");
    assert!(preferred.preferred_multiple >= 1 && (1..=1024).contains(&largest.max_group_size), "{largest:?}");
    assert_eq!(zeKernelSetGroupSize(kernel, 8, 8, 1), INVALID_GROUP_SIZE_DIMENSION);
    ok(zeKernelSetGroupSize(kernel, 8, 4, 2));
    let mut group = [0; 3];
    let [x, y, z] = &mut group;
    ok(zeKernelSuggestGroupSize(kernel, 64, 64, 64, x, y, z));
    assert_eq!(group, [8, 4, 2]);

    let mut size = 0;
    let mut name = [0_u8; 16];
    ok(zeKernelGetName(kernel, &raw mut size, null_mut()));
    assert_eq!(size, 6);
    ok(zeKernelGetName(kernel, &raw mut size, name.as_mut_ptr().cast()));
    assert_eq!(&name[..size], b"fixed\0");
    let mut flags = 7;
    ok(zeKernelGetIndirectAccess(kernel, &raw mut flags));
    assert_eq!(flags, 0);
    ok(zeKernelSetIndirectAccess(kernel, 0b101));
    ok(zeKernelGetIndirectAccess(kernel, &raw mut flags));
    assert_eq!(flags, 0b101);
    let mut size = 0;
    let mut text = [0_u8; 64];
    ok(zeKernelGetSourceAttributes(kernel, &raw mut size, null_mut()));
    let mut place = text.as_mut_ptr().cast();
    ok(zeKernelGetSourceAttributes(kernel, &raw mut size, &raw mut place));
    assert_eq!(&text[..size as usize], b"reqd_work_group_size(8,4,2) work_group_size_hint(4,4,1)\0");
}

/// What the device promises without an engine, every kernel has at least.
#[test]
fn the_engine_keeps_what_the_device_promises() {
    let setup = setup();
    let kernel = kernel(module(setup, empty), "empty");
    let compute: DeviceComputeProperties = value(|out| zeDeviceGetComputeProperties(setup.device, out));
    let mut largest = KernelMaxGroupSize { s_type: KernelMaxGroupSize::S_TYPE, ..zeroed() };
    let mut properties = KernelProperties { p_next: (&raw mut largest).cast(), ..zeroed() };
    ok(zeKernelGetProperties(kernel, &raw mut properties));
    assert_eq!(largest.max_group_size, compute.max_total_group_size);
    let sizes = &compute.sub_group_sizes[..compute.num_sub_group_sizes as usize];
    for size in sizes {
        let module = module(setup, |asm| {
            let id = asm.kernel("sized", &[], |_, _, _| {});
            asm.capability(58); // SubgroupDispatch
            asm.mode(id, &[35, *size]);
        });
        let kernel = crate::kernel(module, "sized");
        let properties: KernelProperties = value(|out| zeKernelGetProperties(kernel, out));
        assert_eq!((properties.required_subgroup_size, properties.max_subgroup_size), (*size, *size));
    }
    let module: DeviceModuleProperties = value(|out| zeDeviceGetModuleProperties(setup.device, out));
    assert_eq!(module.spirv_version_supported, 0x1_0004);
}

/// As a compiler writes it for the SYCL property `max_work_group_size`.
#[test]
fn a_kernel_may_limit_its_groups() {
    let setup = setup();
    let module = module(setup, |asm| {
        let id = asm.kernel("limited", &[], |_, _, _| {});
        asm.capability(5892); // KernelAttributesINTEL
        asm.extension("SPV_INTEL_kernel_attributes");
        asm.mode(id, &[5893, 8, 4, 2]); // MaxWorkgroupSizeINTEL
    });
    let kernel = kernel(module, "limited");
    let mut largest = KernelMaxGroupSize { s_type: KernelMaxGroupSize::S_TYPE, ..zeroed() };
    let mut properties = KernelProperties { p_next: (&raw mut largest).cast(), ..zeroed() };
    ok(zeKernelGetProperties(kernel, &raw mut properties));
    assert_eq!(largest.max_group_size, 64);
    ok(zeKernelSetGroupSize(kernel, 8, 4, 2));
    assert_eq!(zeKernelSetGroupSize(kernel, 65, 1, 1), INVALID_GROUP_SIZE_DIMENSION);
}

/// `constants(out)`: `out[i] = constant 5 + constant 9`, which are 100 and 1000 unless they are specialised.
fn constants(asm: &mut Assembler) {
    let types = asm.types;
    let first = asm.constant(5, 100);
    let second = asm.constant(9, 1000);
    asm.kernel("constants", &[types.global], |asm, given, item| {
        let value = asm.sum(first, second);
        let place = asm.place(types.global, given[0], item);
        asm.store(place, value);
    });
}

#[test]
fn constants_are_specialised_and_modules_do_not_share_them() {
    let setup = setup();
    let code = assembled(constants);
    let list = setup.immediate_list(1);
    let out = numbers(setup, 1);
    let run = |module| stored(list, kernel(module, "constants"), out, 1)[0];
    assert_eq!(run(module_of(setup, &code)), 1100);
    let seven = 7_u32;
    let one = 1_u32;
    let unknown = 0_u8;
    let ids = [9, 5, 77];
    let values = [&raw const seven, &raw const one, (&raw const unknown).cast()];
    let given = ModuleConstants { count: 3, ids: ids.as_ptr(), values: values.as_ptr().cast() };
    let desc = ModuleDesc { constants: &raw const given, ..describe(&code) };
    let special = make(|module| zeModuleCreate(setup.context, setup.device, &raw const desc, module, null_mut()));
    assert_eq!(run(special), 8);
    assert_eq!(run(module_of(setup, &code)), 1100);

    // A native binary has them, too.
    let mut size = 0;
    ok(zeModuleGetNativeBinary(special, &raw mut size, null_mut()));
    let mut binary = vec![0_u8; size];
    ok(zeModuleGetNativeBinary(special, &raw mut size, binary.as_mut_ptr()));
    let desc = ModuleDesc { format: 1, ..describe(&binary) };
    let again = make(|module| zeModuleCreate(setup.context, setup.device, &raw const desc, module, null_mut()));
    assert_eq!(run(again), 8);
    for bytes in [&binary[..size - 1], &binary[8..], &code] {
        let desc = ModuleDesc { format: 1, ..describe(bytes) };
        let mut module = null_mut();
        let result = zeModuleCreate(setup.context, setup.device, &raw const desc, &raw mut module, null_mut());
        assert_eq!(result, INVALID_NATIVE_BINARY);
    }
}

#[test]
fn what_cannot_be_built_has_a_log() {
    let setup = setup();
    let mut asm = Assembler::new();
    empty(&mut asm);
    asm.for_graphics();
    let code = asm.finish();
    let create = |code: &[u8], desc: &dyn Fn(ModuleDesc) -> ModuleDesc| {
        let desc = desc(describe(code));
        let mut module = null_mut();
        let mut log = null_mut();
        let result = zeModuleCreate(setup.context, setup.device, &raw const desc, &raw mut module, &raw mut log);
        assert!(module.is_null());
        (result, if log.is_null() { String::new() } else { text_of(log) })
    };
    let (result, log) = create(&code, &|desc| desc);
    assert_eq!(result, MODULE_BUILD_FAILURE);
    assert!(log.contains("Memory model") && log.contains("OpenCL error"), "{log}");
    // The engine would end the process.
    for (write, name) in [(Assembler::extension as fn(&mut _, &str), "SPV_NO_such"), (Assembler::import, "none.std")] {
        let mut asm = Assembler::new();
        write(&mut asm, name);
        let (result, log) = create(&asm.finish(), &|desc| desc);
        assert_eq!(result, MODULE_BUILD_FAILURE);
        assert!(log.contains(name), "{log}");
    }
    assert_eq!(create(b"nothing!", &|desc| desc).0, MODULE_BUILD_FAILURE);
    assert_eq!(create(&code, &|desc| ModuleDesc { format: 2, ..desc }).0, INVALID_ENUMERATION);
    assert_eq!(create(&code, &|desc| ModuleDesc { input_size: 0, ..desc }).0, INVALID_SIZE);
    assert_eq!(create(&code, &|desc| ModuleDesc { input: null(), ..desc }).0, INVALID_NULL_POINTER);
}

/// `called(out)`: `out[i] = twice(i)`, of another module.
fn importing(asm: &mut Assembler) {
    let types = asm.types;
    let twice = asm.function(types.uint, &[types.uint], |_, _| {});
    asm.linkage(twice, "twice", 1);
    asm.kernel("called", &[types.global], |asm, given, item| {
        let own = asm.gives(113, types.uint, &[item]);
        let value = asm.gives(57, types.uint, &[twice, own]);
        let place = asm.place(types.global, given[0], item);
        asm.store(place, value);
    });
}

/// Returns the function that it exports.
fn exporting(asm: &mut Assembler) -> u32 {
    let types = asm.types;
    let twice = asm.function(types.uint, &[types.uint], |asm, given| {
        asm.label();
        let value = asm.sum(given[0], given[0]);
        asm.does(254, &[value]);
    });
    asm.linkage(twice, "twice", 0);
    twice
}

#[test]
fn modules_are_linked_at_creation_and_later() {
    let setup = setup();
    let list = setup.immediate_list(1);
    let out = numbers(setup, 8);
    let run = |module| {
        assert_eq!(stored(list, kernel(module, "called"), out, 8), [0, 2, 4, 6, 8, 10, 12, 14]);
    };
    let first = module(setup, importing);
    let second = module(setup, |asm| _ = exporting(asm));
    let properties: ModuleProperties = value(|out| zeModuleGetProperties(first, out));
    assert_eq!(properties.flags, 1);
    let desc = KernelDesc { name: c"called".as_ptr(), ..zeroed() };
    let mut kernel = null_mut();
    assert_eq!(zeKernelCreate(first, &raw const desc, &raw mut kernel), INVALID_MODULE_UNLINKED);
    let mut log = null_mut();
    assert_eq!(zeModuleDynamicLink(1, &raw const first, &raw mut log), MODULE_LINK_FAILURE);
    assert!(text_of(log).contains("twice"), "{}", text_of(log));
    let both = [first, second];
    ok(zeModuleDynamicLink(2, both.as_ptr(), null_mut()));
    run(first);

    let codes = [assembled(importing), assembled(|asm| _ = exporting(asm))];
    let sizes = codes.each_ref().map(Vec::len);
    let inputs = codes.each_ref().map(Vec::as_ptr);
    let program = ModuleProgramDesc {
        s_type: ModuleProgramDesc::S_TYPE,
        count: 2,
        input_sizes: sizes.as_ptr(),
        inputs: inputs.as_ptr(),
        ..zeroed()
    };
    let desc = ModuleDesc { p_next: (&raw const program).cast_mut().cast(), ..zeroed() };
    run(make(|module| zeModuleCreate(setup.context, setup.device, &raw const desc, module, null_mut())));
}

/// `count(out)`: adds 1 to the module's variable `total`, and stores it.
fn counting(asm: &mut Assembler) {
    let types = asm.types;
    let one = asm.number(1);
    let variable = asm.id();
    let zero = asm.number(0);
    asm.declare(59, &[types.global, variable, 5, zero]);
    asm.linkage(variable, "total", 0);
    asm.kernel("count", &[types.global], |asm, given, item| {
        let before = asm.load(variable);
        let after = asm.sum(before, one);
        asm.store(variable, after);
        let place = asm.place(types.global, given[0], item);
        asm.store(place, after);
    });
}

#[test]
fn a_variable_has_an_address_and_belongs_to_one_module() {
    let setup = setup();
    let list = setup.immediate_list(1);
    let out = numbers(setup, 1);
    let run = |module| stored(list, kernel(module, "count"), out, 1)[0];
    let first = module(setup, counting);
    let second = module(setup, counting);
    assert_eq!([run(first), run(first), run(second)], [1, 2, 1]);
    let mut size = 0;
    let mut pointer = null_mut();
    ok(zeModuleGetGlobalPointer(first, c"total".as_ptr(), &raw mut size, &raw mut pointer));
    assert_eq!((size, at(pointer.cast(), 1)[0]), (4, 2));
    at(pointer.cast(), 1)[0] = 40;
    assert_eq!([run(first), run(second)], [41, 2]);
    let none = zeModuleGetGlobalPointer(first, c"none".as_ptr(), &raw mut size, &raw mut pointer);
    assert_eq!(none, INVALID_GLOBAL_NAME);
    assert_eq!(zeModuleGetFunctionPointer(first, c"none".as_ptr(), &mut null_mut()), INVALID_FUNCTION_NAME);
}

/// `found(out)`: stores the address of `twice`, its low half first. `through(out, f)`: `out[i] = f(i)`.
fn pointing(asm: &mut Assembler) {
    let twice = exporting(asm);
    let (pointer, constant) = asm.pointer_to(twice);
    let types = asm.types;
    let zero = asm.number(0);
    let one = asm.number(1);
    let half = asm.id();
    asm.declare(43, &[types.long, half, 32, 0]);
    asm.kernel("found", &[types.global], |asm, given, _| {
        let address = asm.gives(117, types.long, &[constant]);
        let high = asm.gives(194, types.long, &[address, half]);
        for (index, part) in [(zero, address), (one, high)] {
            let place = asm.place(types.global, given[0], index);
            let part = asm.gives(113, types.uint, &[part]);
            asm.store(place, part);
        }
    });
    asm.kernel("through", &[types.global, types.long], |asm, given, item| {
        let function = asm.gives(120, pointer, &[given[1]]);
        let own = asm.gives(113, types.uint, &[item]);
        let value = asm.gives(5601, types.uint, &[function, own]);
        let place = asm.place(types.global, given[0], item);
        asm.store(place, value);
    });
}

#[test]
fn a_function_has_the_address_that_kernels_call() {
    let setup = setup();
    let list = setup.immediate_list(1);
    let out = numbers(setup, 8);
    let module = module(setup, pointing);
    let mut function = null_mut();
    ok(zeModuleGetFunctionPointer(module, c"twice".as_ptr(), &raw mut function));
    let found = kernel(module, "found");
    set(found, 0, &out);
    launch(list, found, 1, 1);
    let halves = [at(out, 2)[0], at(out, 2)[1]].map(u64::from);
    assert_eq!(halves[1] << 32 | halves[0], function as u64);
    let through = kernel(module, "through");
    set(through, 0, &out);
    set(through, 1, &function);
    launch(list, through, 1, 8);
    assert_eq!(at(out, 8), [0, 2, 4, 6, 8, 10, 12, 14]);
}
