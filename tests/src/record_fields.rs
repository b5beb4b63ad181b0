//! The fields in a record of each function, written by hand from `ur_api.h` and the trace format.
//!
//! The shim generates its records from a table of its own. This second table finds a parameter that is missing,
//! recorded twice or recorded under another name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::trace::Trace;

/// A function, the fields of its begin record, and those of its end record after a success.
const FIELDS: &[(&str, &str, &str)] = &[
    ("urEventCreateExp", "context device flags", "object"),
    ("urEventGetInfo", "object property", ""),
    ("urEventRetain", "object", ""),
    ("urEventRelease", "object", ""),
    ("urEventWait", "count object", ""),
    ("urPhysicalMemCreate", "context device size flags", "object"),
    ("urPhysicalMemGetInfo", "object property", ""),
    ("urPhysicalMemRetain", "object", ""),
    ("urPhysicalMemRelease", "object", ""),
    ("urVirtualMemMap", "context pointer size object offset flags", ""),
    ("urVirtualMemUnmap", "context pointer size", ""),
    ("urUSMDeviceAlloc", "context device size", "pointer"),
    ("urUSMFree", "context pointer", ""),
    ("urUSMPoolCreateExp", "context device flags", "object"),
    ("urUSMPoolDestroyExp", "context device object", ""),
    ("urEnqueueUSMFreeExp", "pointer", ""),
    ("urEnqueueKernelLaunchWithArgsExp", "context pointer queue", ""),
    ("urEnqueueUSMMemcpy", "context value pointer source size queue", ""),
    ("urEnqueueUSMFill2D", "context pointer size queue", ""),
    ("urEnqueueUSMMemcpy2D", "context value pointer source size queue", ""),
    ("urIPCGetMemHandleExp", "context pointer", "data data_size fingerprint"),
    ("urIPCPutMemHandleExp", "context data", ""),
    ("urIPCOpenMemHandleExp", "context device data data_size fingerprint", "pointer"),
    ("urIPCCloseMemHandleExp", "context pointer", ""),
    ("urIPCGetPhysMemHandleExp", "context object", "data data_size fingerprint"),
    ("urIPCPutPhysMemHandleExp", "context data", ""),
    ("urIPCOpenPhysMemHandleExp", "context device data data_size fingerprint", "object"),
    ("urIPCClosePhysMemHandleExp", "context object", ""),
    ("urIPCGetEventHandleExp", "object", "data data_size fingerprint"),
    ("urIPCPutEventHandleExp", "context data", ""),
    ("urIPCOpenEventHandleExp", "context data data_size fingerprint", "object"),
    ("zeContextCreate", "", "context"),
    ("zeContextDestroy", "context", ""),
    ("zeMemAllocDevice", "context device size", "pointer"),
    ("zeMemFree", "context pointer", ""),
    ("zeMemGetIpcHandle", "context pointer", "data fingerprint"),
    ("zeMemPutIpcHandle", "context data exporter exported", ""),
    ("zeMemOpenIpcHandle", "context device data flags fingerprint exporter exported", "pointer"),
    ("zeMemCloseIpcHandle", "context pointer", ""),
    ("zeCommandListAppendMemoryCopyRegion", "context pointer source", ""),
    ("zeCommandQueueExecuteCommandLists", "appended noticed", ""),
    ("zeMemGetAllocProperties", "context pointer property", "data fingerprint"),
    ("zeMemGetIpcHandleFromFileDescriptorExp", "context data fingerprint", "data fingerprint"),
    ("zeMemGetFileDescriptorFromIpcHandleExp", "context data fingerprint exporter exported", ""),
    ("zePhysicalMemCreate", "context device size property", "object"),
    ("zePhysicalMemDestroy", "context object", ""),
    ("zePhysicalMemGetProperties", "context object property", "data fingerprint"),
    ("zeVirtualMemMap", "context pointer size object offset", ""),
    ("zeVirtualMemUnmap", "context pointer size", ""),
    ("zeEventCounterBasedCreate", "context device flags", "object"),
    ("zeEventDestroy", "object", ""),
    ("zeEventHostSynchronize", "object", ""),
    ("zeEventCounterBasedGetIpcHandle", "object", "data fingerprint"),
    ("zeEventCounterBasedOpenIpcHandle", "context data fingerprint", "object"),
    ("zeEventCounterBasedCloseIpcHandle", "object", ""),
    ("zexCounterBasedEventGetIpcHandle", "object", "data fingerprint"),
    ("zexCounterBasedEventOpenIpcHandle", "context data fingerprint", "object"),
    ("zexCounterBasedEventCloseIpcHandle", "object", ""),
    ("cuCtxCreate_v4", "device", "context"),
    ("cuCtxDestroy_v2", "context", ""),
    ("cuDevicePrimaryCtxRetain", "device", "context"),
    ("cuMemAlloc_v2", "context size", "pointer"),
    ("cuMemAllocPitch_v2", "context", "pointer"),
    ("cuMemAllocManaged", "context size", "pointer"),
    ("cuMemFree_v2", "pointer", ""),
    ("cuMemAllocAsync", "size", "pointer"),
    ("cuMemAllocFromPoolAsync", "size object", "pointer"),
    ("cuMemFreeAsync", "pointer", ""),
    ("cuIpcGetMemHandle", "pointer", "data fingerprint"),
    ("cuIpcOpenMemHandle_v2", "context data flags fingerprint", "pointer"),
    ("cuIpcCloseMemHandle", "pointer", ""),
    ("cuEventCreate", "context flags", "object"),
    ("cuEventDestroy_v2", "object", ""),
    ("cuEventRecord", "object", ""),
    ("cuEventSynchronize", "object", ""),
    ("cuEventQuery", "object", ""),
    ("cuStreamWaitEvent", "object", ""),
    ("cuIpcGetEventHandle", "object", "data fingerprint"),
    ("cuIpcOpenEventHandle", "context data fingerprint", "object"),
    ("cuMemcpyDtoH_v2", "queue source size", ""),
    ("cuMemcpyHtoD_v2", "pointer queue size", ""),
    ("cuMemsetD32_v2", "pointer queue size", ""),
    ("cuMemCreate", "flags size", "object"),
    ("cuMemRelease", "object", ""),
    ("cuMemRetainAllocationHandle", "", "object"),
    ("cuMemMap", "object offset pointer size", ""),
    ("cuMemUnmap", "pointer size", ""),
    ("cuMemExportToShareableHandle", "object property", "data fingerprint"),
    ("cuMemImportFromShareableHandle", "data fingerprint property", "object"),
    ("cuMemPoolExportPointer", "pointer", "data fingerprint"),
    ("cuMemPoolImportPointer", "data fingerprint object property", "pointer"),
];

/// Fields that every record may have besides.
const COMMON: [&str; 5] = ["call", "via", "stack", "result", "result_name"];

/// Fields that records of gets and opens may have besides: the checksum of bytes that the thread has not recorded
/// lately, and the first byte that the adapter changed in urscope's copy.
const OF_BYTES: [&str; 2] = ["checksum", "changed"];

/// Fields that the end record of a function may have besides: all of them or none.
const PERHAPS: [(&str, &str); 2] = [("urIPCGetMemHandleExp", "pointer size"), ("urIPCOpenMemHandleExp", "size")];

/// Fields that the begin record of a function may have besides: all of them or none.
const PERHAPS_AT_BEGIN: [(&str, &str); 12] = [
    ("urIPCOpenMemHandleExp", "exporter exported"),
    ("urEventGetInfo", "data_size"),
    ("zeCommandQueueExecuteCommandLists", "pointer"),
    ("zeCommandQueueExecuteCommandLists", "source"),
    ("zeMemAllocDevice", "property data fingerprint"),
    ("zeMemAllocDevice", "property"),
    ("zePhysicalMemCreate", "data fingerprint"),
    ("urPhysicalMemGetInfo", "data_size"),
    ("cuMemcpyDtoH_v2", "noticed"),
    ("cuMemcpyHtoD_v2", "noticed"),
    ("cuMemsetD32_v2", "noticed"),
    ("cuMemUnmap", "unfinished"),
];

/// What is noticed of a call that ends memory, if the software device says that nothing uses it.
const COMPLETED: &str = "0x80000000";

/// Checks that every call in a trace has the fields of the table, and no others.
pub fn assert_as_declared(trace: &Trace) {
    let ends: BTreeMap<u64, &Value> = trace.calls("E").map(|end| (number(end), end)).collect();
    for begin in trace.calls("B") {
        let name = begin["name"].as_str().expect("a call has a name");
        let Some((_, at_begin, at_end)) = FIELDS.iter().find(|(function, ..)| *function == name) else {
            assert!(!name.starts_with("urIPC"), "an entry point that is not in the table: {begin}");
            continue;
        };
        let end = ends.get(&number(begin)).unwrap_or_else(|| panic!("a call that never returned: {begin}"));
        let mut perhaps =
            PERHAPS_AT_BEGIN.iter().filter(|(function, _)| *function == name).map(|(_, fields)| words(fields));
        let mut found = fields(begin);
        if begin["args"]["noticed"] == COMPLETED {
            found.remove("noticed");
        }
        let more = perhaps.find(|perhaps| perhaps.is_subset(&found));
        assert_eq!(found, words(at_begin).into_iter().chain(more.into_iter().flatten()).collect(), "{begin}");
        let answers = if end["args"]["result"] == 0 { words(at_end) } else { BTreeSet::new() };
        let perhaps = PERHAPS.iter().find(|(function, _)| *function == name).map(|(_, fields)| words(fields));
        let more = perhaps.filter(|perhaps| !answers.is_empty() && perhaps.is_subset(&fields(end)));
        assert_eq!(fields(end), answers.into_iter().chain(more.into_iter().flatten()).collect(), "{end}");
    }
}

/// Checks that every device that a successful call names has one `urscope_device` record, before that call's end, with
/// the software device's name and an index of its own.
pub fn assert_devices(trace: &Trace) {
    let mut described = BTreeMap::new();
    let mut named = BTreeMap::new();
    for record in &trace.records {
        let args = &record["args"];
        let device = args["device"].as_str();
        match (record["ph"].as_str(), device) {
            (Some("M"), Some(device)) => {
                assert_eq!(record["name"], "urscope_device", "{record}");
                assert_eq!(fields_of(record), words("via device native index name"), "{record}");
                assert_eq!(args["name"], "urscope software device", "{record}");
                let index = args["index"].as_u64();
                assert!(index.is_some() && !described.values().any(|known| *known == index), "{record}");
                assert_eq!(described.insert(device.to_owned(), index), None, "described again: {record}");
            }
            (Some("B"), Some(device)) => {
                named.insert(number(record), device);
            }
            (Some("E"), _) if args["result"] == 0 => {
                if let Some(device) = named.get(&number(record)) {
                    assert!(described.contains_key(*device), "not described before its end: {record}");
                }
            }
            _ => {}
        }
    }
}

/// The values of one field in the begin or end records of a function, in the order of the traces.
pub fn values(traces: &[Trace], phase: &str, function: &str, field: &str) -> Vec<Value> {
    let calls = traces.iter().flat_map(|trace| trace.calls(phase)).filter(|record| record["name"] == function);
    calls.map(|record| record["args"][field].clone()).collect()
}

/// The same values, sorted: to compare those of two functions.
pub fn sorted(traces: &[Trace], phase: &str, function: &str, field: &str) -> Vec<String> {
    let mut found: Vec<String> = values(traces, phase, function, field).iter().map(Value::to_string).collect();
    found.sort();
    found
}

fn fields(record: &Value) -> BTreeSet<&str> {
    let found = record["args"].as_object().expect("a call has its fields");
    let name = record["name"].as_str().unwrap_or_default();
    let shares = ["urIPCGet", "urIPCOpen"].iter().any(|shares| name.starts_with(shares));
    let is_extra = |field: &&str| COMMON.contains(field) || shares && OF_BYTES.contains(field);
    found.keys().map(String::as_str).filter(|field| !is_extra(field)).collect()
}

fn fields_of(record: &Value) -> BTreeSet<&str> {
    record["args"].as_object().expect("a record has its fields").keys().map(String::as_str).collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

fn number(record: &Value) -> u64 {
    record["args"]["call"].as_u64().expect("a call has its number")
}
