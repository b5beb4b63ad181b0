//! Modules that are read, written by an assembler of the tests.

use super::assembler::{Assembler, number, scale};
use super::*;

fn module(write: impl FnOnce(&mut Assembler)) -> Vec<u8> {
    let mut asm = Assembler::new();
    write(&mut asm);
    asm.finish()
}

fn parameters(info: &Info, kernel: &str) -> Vec<Parameter> {
    info.kernels[kernel].parameters.to_vec()
}

#[test]
fn kernels_are_found_with_their_parameters() {
    let code = module(|asm| {
        scale(asm);
        number(asm);
        let local = asm.types.local;
        let uint = asm.types.uint;
        let id = asm.kernel("fixed", &[local, uint], |_, _, _| {});
        asm.mode(id, &[17, 8, 4, 2]);
        asm.mode(id, &[35, 16]);
    });
    let info = read(&code).unwrap();
    assert_eq!(info.names, ["scale", "number", "fixed"]);
    assert_eq!(parameters(&info, "scale"), [Parameter::Pointer, Parameter::Pointer, Parameter::Value(4)]);
    assert_eq!(parameters(&info, "fixed"), [Parameter::Local, Parameter::Value(4)]);
    let fixed = &info.kernels["fixed"];
    assert_eq!((fixed.group, fixed.sub_group, fixed.sub_groups), ([8, 4, 2], 16, 0));
    assert!(info.imports.contains("__spirv_BuiltInGlobalInvocationId") && info.exports.is_empty());
}

#[test]
fn pointers_that_are_not_written_through_are_known() {
    let code = module(|asm| {
        scale(asm);
        let read = asm.last_parameter() - 1;
        asm.decorate(&[read, PARAMETER_ATTRIBUTE, 5]);
        asm.decorate(&[read, PARAMETER_ATTRIBUTE, 6]);
    });
    assert_eq!(*read(&code).unwrap().kernels["scale"].unwritten, [false, true, false]);
    assert_eq!(*read(&module(scale)).unwrap().kernels["scale"].unwritten, [false; 3]);
}

#[test]
fn attributes_of_kernels_are_removed_and_the_largest_group_is_known() {
    let write = |attributes: bool| {
        module(|asm| {
            let id = asm.kernel("limited", &[], |_, _, _| {});
            asm.mode(id, &[17, 4, 4, 2]);
            if attributes {
                asm.capability(5892);
                asm.extension("SPV_INTEL_kernel_attributes");
                asm.mode(id, &[5893, 8, 4, 2]);
                asm.mode(id, &[5895]);
            }
        })
    };
    let with = write(true);
    let without = write(false);
    assert_eq!(*without_attributes(&with), without);
    assert_eq!(*without_attributes(&without), without);
    assert_eq!(read(&with).unwrap().kernels["limited"].largest, 64);
    assert_eq!(read(&without).unwrap().kernels["limited"].largest, 0);
    assert_eq!(*without_attributes(&with[..with.len() - 1]), with[..with.len() - 1]);
}

/// A kernel that only knows the numbers of its items, and what makes a difference.
#[test]
fn a_kernel_that_knows_nothing_of_groups_is_found() {
    let ungrouped = |change: fn(&mut Assembler)| {
        let mut asm = Assembler::without_groups();
        scale(&mut asm);
        change(&mut asm);
        read(&asm.finish()).unwrap().kernels["scale"].ungrouped
    };
    assert!(ungrouped(|_| {}));
    assert!(ungrouped(|asm| asm.linkage(900, "__spirv_BuiltInGlobalSize", IMPORT)));
    assert!(!ungrouped(|asm| asm.linkage(900, "__spirv_BuiltInLocalInvocationId", IMPORT)));
    assert!(!ungrouped(|asm| asm.linkage(900, "elsewhere", IMPORT)));
    assert!(!ungrouped(|asm| asm.decorate(&[900, BUILT_IN, 27])));
    assert!(!ungrouped(|asm| asm.capability(18)));
    assert!(!ungrouped(|asm| asm.declare(op::TYPE_POINTER, &[900, WORKGROUP, 2])));
    assert!(!ungrouped(|asm| asm.declare(op::VARIABLE, &[901, 900, WORKGROUP])));
    assert!(!ungrouped(|asm| asm.does(op::CONTROL_BARRIER, &[901, 901, 902])));
    assert!(!ungrouped(|asm| asm.does(op::ATOMIC_LOAD, &[2, 903, 901, 902, 904])));
    assert!(!ungrouped(|asm| asm.does(op::GROUP_ASYNC_COPY, &[900, 903, 901, 902, 904, 905, 906, 907])));
    for mode in [&[MODE_LOCAL_SIZE, 8, 4, 2][..], &[MODE_SUBGROUP_SIZE, 16], &[MODE_LARGEST_GROUP, 8, 4, 2]] {
        let mut asm = Assembler::without_groups();
        let id = asm.kernel("fixed", &[], |_, _, _| {});
        asm.mode(id, mode);
        assert!(!read(&asm.finish()).unwrap().kernels["fixed"].ungrouped);
    }
}

#[test]
fn values_have_the_sizes_that_compilers_give_them() {
    let code = module(|asm| {
        let [uint, long] = [asm.types.uint, asm.types.long];
        let [byte, half, double, flag] = [asm.id(), asm.id(), asm.id(), asm.id()];
        asm.declare(21, &[byte, 8, 0]);
        asm.declare(22, &[half, 16]);
        asm.declare(22, &[double, 64]);
        asm.declare(20, &[flag]);
        let [three, four] = [asm.id(), asm.id()];
        asm.declare(23, &[three, uint, 3]);
        asm.declare(23, &[four, byte, 4]);
        let five = asm.number(5);
        let array = asm.id();
        asm.declare(28, &[array, byte, five]);
        let [plain, packed, outer] = [asm.id(), asm.id(), asm.id()];
        asm.decorate(&[packed, 10]);
        asm.declare(30, &[plain, byte, long, array]);
        asm.declare(30, &[packed, byte, long, array]);
        asm.declare(30, &[outer, plain, byte, three]);
        let pointer = asm.id();
        asm.declare(32, &[pointer, 7, outer]);
        let types = [byte, half, double, flag, three, four, array, plain, packed, pointer];
        asm.kernel("sizes", &types, |_, _, _| {});
    });
    let sizes = [1, 2, 8, 1, 16, 4, 5, 24, 14, 48].map(Parameter::Value);
    assert_eq!(parameters(&read(&code).unwrap(), "sizes"), sizes);
}

#[test]
fn constants_have_sizes_and_linkage_has_directions() {
    let code = module(|asm| {
        asm.constant(5, 1);
        let uint = asm.types.uint;
        let function = asm.function(uint, &[uint], |_, _| {});
        asm.linkage(function, "taken", 1);
        asm.linkage(function, "given", 0);
    });
    let info = read(&code).unwrap();
    assert_eq!(info.constants, BTreeMap::from([(5, 4)]));
    assert!(info.imports.contains("taken") && info.exports.contains("given"));
}

/// A structure that contains itself, one that doubles forty times, and an array that is too large.
#[test]
fn hostile_types_have_no_size() {
    let code = module(|asm| {
        let own = asm.id();
        asm.declare(30, &[own, own, own]);
        let mut last = asm.types.long;
        for _ in 0..40 {
            let next = asm.id();
            asm.declare(30, &[next, last, last]);
            last = next;
        }
        let many = asm.number(u32::MAX);
        let array = asm.id();
        asm.declare(28, &[array, asm.types.long, many]);
        asm.kernel("hostile", &[own, last, array], |_, _, _| {});
    });
    assert_eq!(parameters(&read(&code).unwrap(), "hostile"), [Parameter::Unsupported; 3]);
}

#[test]
fn every_prefix_and_every_changed_byte_is_read_or_refused() {
    let code = module(scale);
    assert!(read(&code).is_some());
    for length in 0..code.len() {
        let _ = read(&code[..length]);
    }
    for at in 0..code.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = code.clone();
            changed[at] = value;
            let _ = read(&changed);
        }
    }
    // An instruction without a word would never end.
    assert_eq!(read(&[&code[..20], &[0; 4]].concat()), None);
}

/// The inputs that the fuzzer begins with are what the assembler makes.
#[test]
fn the_seeds_of_the_fuzzer_are_modules() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/module");
    let code = module(|asm| {
        scale(asm);
        asm.constant(5, 1);
    });
    let binary = super::super::input::native_binary_of(&code).unwrap();
    for (name, bytes) in [("spirv", &code[..]), ("native", &binary), ("instructions", &code[20..])] {
        let file = folder.join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, bytes).unwrap();
        }
        assert!(std::fs::read(&file).unwrap() == bytes, "{name} is old: BLESS=1 renews it");
    }
}
