//! Every supported release of Unified Runtime has the functions of the rows where the rows look for them.

use std::{collections::HashMap, path::Path, process::Command};

use urscope_schema::api::{Function, Table, UNIFIED_RUNTIME};

/// `ur_ddi.h` of a release, which is set up if it is not there yet. The rows are made from the first.
const RELEASES: [&str; 3] = ["2026.2.0", "2026.1.2", "2026.0.0"];

struct Release {
    /// The slots of the table that a getter fills, as names of types.
    slots: HashMap<String, Vec<String>>,
    /// The parameters of a type of function, as C declares them.
    parameters: HashMap<String, String>,
}

fn release(version: &str) -> Release {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let setup = Command::new(repository.join("scripts/setup")).args(["--runtime", version]).output();
    let setup = setup.expect("scripts/setup cannot be started");
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    let file = repository.join(format!("target/runtime/{version}/include/unified-runtime/ur_ddi.h"));
    let header = std::fs::read_to_string(file).expect("the runtime has a header");
    let between = |text: &str, ends: (&str, &str)| {
        let (_, rest) = text.split_once(ends.0)?;
        Some(rest.split_once(ends.1)?.0.to_owned())
    };
    let declared = |begin: &str| -> Vec<String> { header.split(begin).skip(1).map(str::to_owned).collect() };
    let parameters = declared("UR_APICALL *").into_iter().map(|function| {
        let parameters = between(&function, (")(", ");")).expect("it ends");
        let words: Vec<_> = parameters.split_whitespace().collect();
        (function.split(')').next().unwrap().to_owned(), words.join(" "))
    });
    let slots = declared("UR_DLLEXPORT ur_result_t UR_APICALL ").into_iter().map(|getter| {
        let structure =
            getter.split(" *pDdiTable").next().and_then(|before| before.split_whitespace().last()).expect("a table");
        let body = between(&header, (&format!("typedef struct {structure} {{"), "}")).expect("the table is declared");
        let types = body.split(';').filter_map(|slot| slot.split_whitespace().next().map(str::to_owned));
        (getter.split('(').next().unwrap().to_owned(), types.collect())
    });
    Release { slots: slots.collect(), parameters: parameters.collect() }
}

#[test]
fn every_release_has_the_slots_and_signatures_of_the_rows() {
    let releases = RELEASES.map(release);
    for (release, version) in releases.iter().zip(RELEASES) {
        let length = |getter: &str| release.slots.get(getter).map_or(0, Vec::len);
        // Two functions of one table have changed places. To urscope, calls of one are like those of the other.
        let alike = [Function::urEnqueueTimestampRecordingExp, Function::urEnqueueCommandBufferExp];
        let is_one = |function: &Function| function.interface() == &UNIFIED_RUNTIME && !alike.contains(function);
        for function in Function::ALL.iter().copied().filter(is_one) {
            let kind = format!("ur_pfn{}_t", function.name().trim_start_matches("ur"));
            let slots = release.slots.get(function.slot().0.getter()).map_or(&[][..], Vec::as_slice);
            let Some(slot) = slots.iter().position(|slot| *slot == kind) else {
                assert!(function.slot_in(slots.len()).is_none_or(|slot| slot >= slots.len()), "{kind} in {version}");
                continue;
            };
            assert_eq!(function.slot_in(slots.len()), Some(slot), "{kind} in {version}");
            assert_eq!(function.former_signature(length), None, "{kind} in {version}");
            let newest = releases[0].parameters.get(&kind);
            assert!(newest.is_some() || function == Function::urEnqueueKernelLaunch, "{kind}");
            assert!(newest.is_none_or(|newest| *newest == release.parameters[&kind]), "{kind} in {version}");
        }
    }
}

/// The lengths of tables in builds between releases, from the history of `ur_ddi.h`.
#[test]
fn a_build_before_a_changed_signature_is_known_by_its_tables() {
    let build = |enqueue_exp: usize, graph_exp: usize| {
        move |getter: &str| match getter {
            "urGetEnqueueExpProcAddrTable" => enqueue_exp,
            "urGetGraphExpProcAddrTable" => graph_exp,
            "urGetIPCExpProcAddrTable" => 11,
            _ => panic!("{getter} tells nothing"),
        }
    };
    let is_left_alone = |function: Function, build| -> bool { function.former_signature(build).is_some() };
    // 2025-10-16 (7, 0), 2025-10-30 (8, 0), 2025-12-03 (9, 6), 2026.0 (10, 6), 2026.2 (10, 10).
    let memory = Function::ALL.iter().filter(|function| function.slot().0 == Table::IPCExp && function.slot().1 < 4);
    for function in memory {
        let left = [(7, 0), (8, 0), (9, 6), (10, 6), (10, 10)].map(|(a, b)| is_left_alone(*function, build(a, b)));
        assert_eq!(left, [true, true, false, false, false], "{}", function.name());
    }
    // 2026-06-22 and 2026-06-24 (10, 9), 2026-06-30 (10, 10).
    let left = [(10, 9), (10, 10)].map(|(a, b)| is_left_alone(Function::urEventCreateExp, build(a, b)));
    assert_eq!(left, [true, false]);
}

/// Where functions of a longer table are is not known.
#[test]
fn a_longer_table_of_ipc_functions_is_left_alone() {
    let newest = |function: Function| function.slot().0 == Table::IPCExp;
    let longest = Function::ALL.iter().copied().filter(|function| newest(*function)).count();
    for function in Function::ALL.iter().copied() {
        let of_length = |length| function.former_signature(|getter| if getter.contains("IPCExp") { length } else { 0 });
        assert_eq!(of_length(longest), None, "{}", function.name());
        assert_eq!(of_length(longest + 1).is_some(), newest(function), "{}", function.name());
    }
}
