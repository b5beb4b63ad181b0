//! The exported surface: the number of functions, the layout of their tables, and the bounds of what getters write.

use std::{collections::BTreeSet, ffi::c_void};

use urscope_device::ddi::{API_VERSION, TABLES, Table, lookup};

use crate::api::{INVALID_NULL_POINTER, SUCCESS, UNSUPPORTED_FEATURE, UNSUPPORTED_VERSION};

/// Members of each DDI table in the headers of API 1.4 and of API 1.17.
const MEMBERS: [(&str, usize, usize); 76] = [
    ("zeGetGlobalProcAddrTable", 1, 2),
    ("zeGetRTASBuilderProcAddrTable", 0, 5),
    ("zeGetRTASBuilderExpProcAddrTable", 0, 4),
    ("zeGetRTASParallelOperationProcAddrTable", 0, 4),
    ("zeGetRTASParallelOperationExpProcAddrTable", 0, 4),
    ("zeGetDriverProcAddrTable", 6, 9),
    ("zeGetDriverExpProcAddrTable", 0, 1),
    ("zeGetDeviceProcAddrTable", 18, 28),
    ("zeGetDeviceExpProcAddrTable", 1, 1),
    ("zeGetContextProcAddrTable", 9, 9),
    ("zeGetCommandQueueProcAddrTable", 4, 9),
    ("zeGetCommandListProcAddrTable", 28, 52),
    ("zeGetCommandListExpProcAddrTable", 0, 9),
    ("zeGetEventProcAddrTable", 7, 17),
    ("zeGetEventExpProcAddrTable", 1, 1),
    ("zeGetEventPoolProcAddrTable", 5, 8),
    ("zeGetFenceProcAddrTable", 5, 5),
    ("zeGetImageProcAddrTable", 4, 5),
    ("zeGetImageExpProcAddrTable", 2, 3),
    ("zeGetKernelProcAddrTable", 12, 12),
    ("zeGetKernelExpProcAddrTable", 2, 4),
    ("zeGetMemProcAddrTable", 10, 13),
    ("zeGetMemExpProcAddrTable", 0, 4),
    ("zeGetModuleProcAddrTable", 9, 9),
    ("zeGetModuleBuildLogProcAddrTable", 2, 2),
    ("zeGetPhysicalMemProcAddrTable", 2, 3),
    ("zeGetSamplerProcAddrTable", 2, 2),
    ("zeGetVirtualMemProcAddrTable", 7, 7),
    ("zeGetFabricEdgeExpProcAddrTable", 3, 3),
    ("zeGetFabricVertexExpProcAddrTable", 4, 4),
    ("zeGetExecutableGraphProcAddrTable", 0, 2),
    ("zeGetGraphProcAddrTable", 0, 7),
    ("zetGetMetricDecoderExpProcAddrTable", 0, 3),
    ("zetGetMetricProgrammableExpProcAddrTable", 0, 4),
    ("zetGetMetricTracerExpProcAddrTable", 0, 6),
    ("zetGetDeviceProcAddrTable", 1, 1),
    ("zetGetDeviceExpProcAddrTable", 0, 4),
    ("zetGetContextProcAddrTable", 1, 1),
    ("zetGetCommandListProcAddrTable", 4, 4),
    ("zetGetCommandListExpProcAddrTable", 0, 1),
    ("zetGetKernelProcAddrTable", 1, 1),
    ("zetGetModuleProcAddrTable", 1, 1),
    ("zetGetDebugProcAddrTable", 11, 12),
    ("zetGetMetricProcAddrTable", 2, 2),
    ("zetGetMetricExpProcAddrTable", 0, 3),
    ("zetGetMetricGroupProcAddrTable", 3, 3),
    ("zetGetMetricGroupExpProcAddrTable", 1, 9),
    ("zetGetMetricQueryProcAddrTable", 4, 4),
    ("zetGetMetricQueryPoolProcAddrTable", 2, 2),
    ("zetGetMetricStreamerProcAddrTable", 3, 3),
    ("zetGetTracerExpProcAddrTable", 5, 5),
    ("zesGetGlobalProcAddrTable", 0, 1),
    ("zesGetDeviceProcAddrTable", 29, 38),
    ("zesGetDeviceExpProcAddrTable", 0, 3),
    ("zesGetDriverProcAddrTable", 2, 5),
    ("zesGetDriverExpProcAddrTable", 0, 1),
    ("zesGetDiagnosticsProcAddrTable", 3, 3),
    ("zesGetEngineProcAddrTable", 2, 3),
    ("zesGetFabricPortProcAddrTable", 6, 8),
    ("zesGetFanProcAddrTable", 6, 6),
    ("zesGetFirmwareProcAddrTable", 2, 4),
    ("zesGetFirmwareExpProcAddrTable", 0, 2),
    ("zesGetFrequencyProcAddrTable", 17, 17),
    ("zesGetLedProcAddrTable", 4, 4),
    ("zesGetMemoryProcAddrTable", 3, 3),
    ("zesGetOverclockProcAddrTable", 0, 9),
    ("zesGetPerformanceFactorProcAddrTable", 3, 3),
    ("zesGetPowerProcAddrTable", 8, 11),
    ("zesGetPsuProcAddrTable", 2, 2),
    ("zesGetRasProcAddrTable", 4, 4),
    ("zesGetRasExpProcAddrTable", 0, 6),
    ("zesGetSchedulerProcAddrTable", 8, 8),
    ("zesGetStandbyProcAddrTable", 3, 3),
    ("zesGetTemperatureProcAddrTable", 4, 4),
    ("zesGetVFManagementExpProcAddrTable", 0, 9),
    ("zerGetGlobalProcAddrTable", 0, 4),
];
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
    assert_eq!(known, MEMBERS.map(|(getter, ..)| getter));
    for (table, (getter, old, new)) in TABLES.iter().zip(MEMBERS) {
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
    for (table, (getter, ..)) in TABLES.iter().zip(MEMBERS) {
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
