//! The rows of the CUDA driver are what `cuda.h` and `cudaTypedefs.h` of a newer release declare, and every function
//! there that shares something has a row or a reason. The headers come with a wheel of NVIDIA's, and are not
//! distributed with urscope.

use std::{fs, path::Path, process::Command};

use urscope_schema::api::{CUDA, Function, cuda::constants};

const RELEASE: &str = "cuda-runtime-13.5.37";

fn header(name: &str) -> String {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let setup = Command::new(repository.join("scripts/setup")).args(["--runtime", RELEASE]).output();
    let setup = setup.expect("scripts/setup cannot be started");
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    let python =
        fs::read_dir(repository.join("target/runtime").join(RELEASE).join("lib")).unwrap().next().unwrap().unwrap();
    fs::read_to_string(python.path().join("site-packages/nvidia/cu13/include").join(name))
        .expect("a header of the wheel")
}

fn rows() -> impl Iterator<Item = Function> {
    Function::ALL.iter().copied().filter(|function| function.interface() == &CUDA)
}

/// The number behind `NAME =` in an enumeration of the header.
fn value(api: &str, name: &str) -> Option<u64> {
    let (_, behind) = api.split_once(&format!("    {name} "))?;
    let number = behind.trim_start().strip_prefix('=')?.trim_start();
    let number = number.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    number.strip_prefix("0x").map_or_else(|| number.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

/// The parameters of the versions of a function, from the oldest on, or of those for a thread's own default stream.
fn versions<'h>(typedefs: &'h str, name: &str, of_thread: bool) -> Vec<Vec<&'h str>> {
    let mut found: Vec<(u32, Vec<&str>)> = typedefs
        .lines()
        .filter_map(|line| {
            let (_, declared) = line.split_once(&format!("(CUDAAPI *PFN_{name}_v"))?;
            let (version, parameters) = declared.split_once(")(")?;
            let (version, stream) = version.split_once('_').map_or((version, false), |(version, _)| (version, true));
            let parameters = parameters.trim_end_matches(");").split(',').map(str::trim).collect();
            (stream == of_thread).then_some((version.parse().ok()?, parameters))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, parameters)| parameters).collect()
}

/// A symbol's function, which of its versions it is, from 1 on, and whether it is for a thread's own default stream.
fn parts(symbol: &str) -> (&str, Option<usize>, bool) {
    let of_thread = ["_ptsz", "_ptds"].iter().find_map(|form| symbol.strip_suffix(form));
    let name = of_thread.unwrap_or(symbol);
    let version = name.rsplit_once("_v").and_then(|(name, version)| Some((name, version.parse().ok()?)));
    (version.map_or(name, |(name, _)| name), version.map(|(_, version)| version), of_thread.is_some())
}

/// The bytes of an argument, and those of a role. C passes a smaller argument in 4.
fn width(parameter: &str) -> usize {
    let words: Vec<_> = parameter.split(' ').filter(|word| *word != "const").collect();
    match words[..] {
        _ if parameter.contains('*') => 8,
        ["CUipcMemHandle_v1" | "CUipcEventHandle_v1", _] => 64,
        [
            "int" | "cuuint32_t" | "CUdevice" | "CUdevice_v1" | "CUmemAllocationHandleType" | "CUstreamCaptureMode",
            _,
        ]
        | ["unsigned", "int" | "char" | "short", _] => 4,
        [
            "size_t"
            | "cuuint64_t"
            | "CUdeviceptr_v2"
            | "CUgraph"
            | "CUstream"
            | "CUfunction"
            | "CUevent"
            | "CUgraphExec"
            | "CUarray"
            | "CUmodule"
            | "CUlibrary"
            | "CUhostFn"
            | "CUstreamCallback"
            | "CUcontext"
            | "CUmemoryPool"
            | "CUmemGenericAllocationHandle_v1",
            _,
        ]
        | ["unsigned", "long", "long", _] => 8,
        _ => panic!("how large is {parameter}?"),
    }
}

fn width_of_role(role: &str) -> usize {
    match role {
        "HandleBytes" => 64,
        "Unseen32" | "Ordinal" | "Flags" | "StreamFlags" | "HandleType" => 4,
        _ => 8,
    }
}

#[test]
fn rows_have_the_parameters_of_the_header() {
    let typedefs = header("cudaTypedefs.h");
    for (function, symbol) in
        rows().flat_map(|row| [Some(row.name()), row.twin()].map(|name| Some((row, name?)))).flatten()
    {
        let (name, version, of_thread) = parts(symbol);
        let versions = versions(&typedefs, name, of_thread);
        // Most functions had their second version before there was a form for a thread's own default stream.
        let place = version.unwrap_or(1) - 1;
        let place = if of_thread { place.min(versions.len().saturating_sub(1)) } else { place };
        let parameters = versions.get(place).unwrap_or_else(|| panic!("{symbol}: {versions:?}"));
        let parameters = if *parameters == ["void"] { Vec::new() } else { parameters.clone() };
        let widths: Vec<_> = parameters.iter().map(|parameter| width(parameter)).collect();
        let roles: Vec<_> = function.parameters().iter().map(|(_, role)| width_of_role(role)).collect();
        assert_eq!(roles, widths, "{symbol}: {parameters:?}");
    }
}

#[test]
fn results_and_constants_are_those_of_the_header() {
    let api = header("cuda.h");
    for result in CUDA.results {
        assert_eq!(value(&api, result.name), Some(result.code.into()), "{}", result.name);
    }
    assert_eq!(value(&api, "CU_EVENT_INTERPROCESS"), Some(constants::EVENT_INTERPROCESS));
}

/// What shares something, by its name, and has no row, and why.
const WITHOUT_A_ROW: [(&str, &str); 7] = [
    ("cuGetExportTable", "it returns tables without names, for NVIDIA's tools"),
    ("cuImportExternalMemory", "the memory is that of a graphics API"),
    ("cuImportExternalSemaphore", "the semaphore is that of a graphics API"),
    ("cuLogicalEndpointExport", "it shares an endpoint of a fabric, not memory"),
    ("cuLogicalEndpointImport", "it shares an endpoint of a fabric, not memory"),
    ("cuMemPoolExportToShareableHandle", "what of the pool is shared is exported by itself"),
    ("cuMemPoolImportFromShareableHandle", "what of the pool is shared is imported by itself"),
];

#[test]
fn every_sharing_function_of_the_newest_header_has_a_row_or_a_reason() {
    let api = header("cuda.h");
    let declared = api.lines().filter_map(|line| line.strip_prefix("CUresult CUDAAPI ")?.split('(').next());
    let shares = |name: &&str| ["Ipc", "Shareable", "Import", "Export"].iter().any(|part| name.contains(part));
    let mut sharing: Vec<_> = declared.filter(shares).collect();
    sharing.sort_unstable();
    sharing.dedup();
    assert!(sharing.len() > 10, "{sharing:?}");
    for name in &sharing {
        let has_row = rows().any(|function| parts(function.name()).0 == *name);
        let reason = WITHOUT_A_ROW.iter().find(|(without, _)| without == name);
        assert!(has_row != reason.is_some(), "{name}");
    }
    for (name, reason) in WITHOUT_A_ROW {
        assert!(sharing.contains(&name) && !reason.is_empty(), "{name}");
    }
}
