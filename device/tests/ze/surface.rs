//! The exported surface: the number of functions, the layout of their tables, and the bounds of what getters write.

use std::{collections::BTreeSet, ffi::c_void};

use urscope_device::ddi::{API_VERSION, TABLES, Table, lookup};

use crate::api::{INVALID_NULL_POINTER, SUCCESS, UNSUPPORTED_FEATURE, UNSUPPORTED_VERSION};

/// The DDI tables, each with its members in the headers of API 1.4 and of API 1.17.
const MEMBERS: &str = "\
    zeGetGlobal 1 2, zeGetRTASBuilder 0 5, zeGetRTASBuilderExp 0 4, zeGetRTASParallelOperation 0 4, \
    zeGetRTASParallelOperationExp 0 4, zeGetDriver 6 9, zeGetDriverExp 0 1, zeGetDevice 18 28, zeGetDeviceExp 1 1, \
    zeGetContext 9 9, zeGetCommandQueue 4 9, zeGetCommandList 28 52, zeGetCommandListExp 0 9, zeGetEvent 7 17, \
    zeGetEventExp 1 1, zeGetEventPool 5 8, zeGetFence 5 5, zeGetImage 4 5, zeGetImageExp 2 3, zeGetKernel 12 12, \
    zeGetKernelExp 2 4, zeGetMem 10 13, zeGetMemExp 0 4, zeGetModule 9 9, zeGetModuleBuildLog 2 2, \
    zeGetPhysicalMem 2 3, zeGetSampler 2 2, zeGetVirtualMem 7 7, zeGetFabricEdgeExp 3 3, zeGetFabricVertexExp 4 4, \
    zeGetExecutableGraph 0 2, zeGetGraph 0 7, zetGetMetricDecoderExp 0 3, zetGetMetricProgrammableExp 0 4, \
    zetGetMetricTracerExp 0 6, zetGetDevice 1 1, zetGetDeviceExp 0 4, zetGetContext 1 1, zetGetCommandList 4 4, \
    zetGetCommandListExp 0 1, zetGetKernel 1 1, zetGetModule 1 1, zetGetDebug 11 12, zetGetMetric 2 2, \
    zetGetMetricExp 0 3, zetGetMetricGroup 3 3, zetGetMetricGroupExp 1 9, zetGetMetricQuery 4 4, \
    zetGetMetricQueryPool 2 2, zetGetMetricStreamer 3 3, zetGetTracerExp 5 5, zesGetGlobal 0 1, zesGetDevice 29 38, \
    zesGetDeviceExp 0 3, zesGetDriver 2 5, zesGetDriverExp 0 1, zesGetDiagnostics 3 3, zesGetEngine 2 3, \
    zesGetFabricPort 6 8, zesGetFan 6 6, zesGetFirmware 2 4, zesGetFirmwareExp 0 2, zesGetFrequency 17 17, \
    zesGetLed 4 4, zesGetMemory 3 3, zesGetOverclock 0 9, zesGetPerformanceFactor 3 3, zesGetPower 8 11, \
    zesGetPsu 2 2, zesGetRas 4 4, zesGetRasExp 0 6, zesGetScheduler 8 8, zesGetStandby 3 3, zesGetTemperature 4 4, \
    zesGetVFManagementExp 0 9, zerGetGlobal 0 4";

/// The number of functions in each table, in both versions, by the table's getter.
fn members() -> Vec<(String, usize, usize)> {
    let table = |text: &str| {
        let [name, old, new] = text.split(' ').collect::<Vec<_>>().try_into().unwrap();
        (format!("{name}ProcAddrTable"), old.parse().unwrap(), new.parse().unwrap())
    };
    MEMBERS.split(", ").map(table).collect()
}

/// FNV-1a of all names of API 1.17, sorted, one a line.
const NAMES: u64 = 0xdab3_f9c9_c76e_a487;
const CANARY: usize = 0x5ca1_ab1e_0dd5_eed5;

fn names() -> Vec<&'static str> {
    TABLES.iter().flat_map(|table| table.functions).map(|function| function.name).collect()
}

fn fill(table: &Table, version: u32, buffer: *mut c_void) -> u32 {
    // SAFETY: every getter has this signature (ze_ddi.h).
    let getter: extern "C" fn(u32, *mut c_void) -> u32 = unsafe { std::mem::transmute(table.address) };
    getter(version, buffer)
}

#[test]
fn all_functions_of_the_api_are_there_once() {
    let names = names();
    let of = |prefix: &str| {
        names
            .iter()
            .filter(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(char::is_uppercase)))
            .count()
    };
    assert_eq!(names.len(), 478);
    assert_eq!([of("ze"), of("zet"), of("zes"), of("zer")], [248, 69, 157, 4]);
    let sorted: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(sorted.len(), names.len());
    let text = sorted.into_iter().collect::<Vec<_>>().join("\n");
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    assert_eq!(hash, NAMES);
}

#[test]
fn every_name_has_an_entry_point() {
    for name in names().into_iter().chain(TABLES.iter().map(|table| table.getter)) {
        assert!(lookup(name).is_some_and(|address| !address.is_null()), "{name}");
    }
    assert!(lookup("zeNothing").is_none());
}

#[test]
fn tables_have_as_many_members_as_in_the_headers() {
    let known: Vec<_> = TABLES.iter().map(|table| table.getter).collect();
    assert_eq!(known, members().iter().map(|(getter, ..)| getter).collect::<Vec<_>>());
    for (table, (getter, old, new)) in TABLES.iter().zip(members()) {
        assert_eq!(table.functions.iter().filter(|function| function.since <= 4).count(), old, "{getter} 1.4");
        assert_eq!(table.functions.len(), new, "{getter} 1.17");
    }
}

#[test]
fn functions_after_1_4_are_appended() {
    for table in TABLES {
        let late: Vec<_> =
            table.functions.iter().map(|function| function.since).skip_while(|since| *since <= 4).collect();
        assert!(late.is_sorted() && late.iter().all(|since| *since > 4), "{}", table.getter);
    }
}

#[test]
fn a_getter_fills_the_version_asked_for_and_nothing_beyond() {
    for table in TABLES {
        let getter = table.getter;
        for minor in 0..=17 {
            let expected: Vec<_> = table
                .functions
                .iter()
                .filter(|function| function.since <= minor)
                .map(|function| function.address as usize)
                .collect();
            let mut buffer = [CANARY; 64];
            assert_eq!(fill(table, 1 << 16 | minor, buffer.as_mut_ptr().cast()), SUCCESS);
            assert_eq!(buffer[..expected.len()], expected, "{getter} 1.{minor}");
            assert!(buffer[expected.len()..].iter().all(|word| *word == CANARY), "{getter} 1.{minor}");
        }
    }
}

#[test]
fn a_newer_minor_version_gets_all_functions() {
    let mut buffer = [CANARY; 64];
    assert_eq!(fill(&TABLES[0], API_VERSION + 1, buffer.as_mut_ptr().cast()), SUCCESS);
    assert_eq!(buffer.iter().filter(|word| **word != CANARY).count(), TABLES[0].functions.len());
}

#[test]
fn a_getter_refuses_no_table_and_another_major_version() {
    for table in TABLES {
        let mut buffer = [CANARY; 64];
        assert_eq!(fill(table, API_VERSION, std::ptr::null_mut()), INVALID_NULL_POINTER);
        assert_eq!(fill(table, 2 << 16, buffer.as_mut_ptr().cast()), UNSUPPORTED_VERSION);
        assert!(buffer.iter().all(|word| *word == CANARY));
    }
}

#[test]
fn a_function_that_is_not_implemented_returns_its_code() {
    let missing: Vec<_> =
        TABLES.iter().flat_map(|table| table.functions).filter(|function| !function.is_implemented()).collect();
    assert!(!missing.is_empty());
    for function in missing {
        // SAFETY: an entry point that is not implemented reads no argument.
        let call: extern "C" fn() -> u32 = unsafe { std::mem::transmute(function.address) };
        assert_eq!(call(), UNSUPPORTED_FEATURE, "{}", function.name);
    }
}
