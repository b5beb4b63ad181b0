//! One set of cases for several implementations: what Unified Runtime specifies, and where an implementation differs
//! and why.
//!
//! The cases are in programs that call the UR loader and print the answers: `ur_result_t` as numbers (`0` success, `4`
//! invalid value, `5` invalid context, `12` invalid event, `39` out of device memory, `45` invalid argument, `46` null
//! handle, `48` null pointer, `53` invalid enumeration, …), and words for other observations. Every line is compared: a
//! deviation that no longer exists fails as much as a new one.

use urscope_tests::{Adapter, Release, TestRun};

use Implementation::{
    Older, On, Ours, OursOnV1, OursOneDescriptor, V1, V1Bare, V1Refusing, V2, V2Alone, V2AloneRefusing, V2Checked,
    V2OneDescriptor, V2Refusing,
};
use Release::{R2025_3, R2026_0, R2026_1, R2026_2};

use memory::{MEMORY, MEMORY_FAULTS, MEMORY_NULLS, MEMORY_OF_TWO};

mod memory;

/// An implementation of the entry points, with the driver that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Implementation {
    /// The v2 adapter as it is installed, with others: the loader finds its functions through the first handle of each
    /// call.
    V2,
    /// The v2 adapter as the only one: the loader calls its functions directly.
    V2Alone,
    /// The v2 adapter behind the parameter validation of the loader.
    V2Checked,
    /// The v2 adapter on a driver that exports the same descriptor of physical memory each time, and keeps the number
    /// of an imported one, as Intel's driver does.
    V2OneDescriptor,
    /// The v2 adapter behind urscope in the adapter's table, which refuses violations.
    V2Refusing,
    /// The same as the only adapter: nothing reads a handle before urscope does.
    V2AloneRefusing,
    /// The v1 adapter as it is installed, with others.
    V1,
    /// In an expectation only: the same without urscope.
    V1Bare,
    /// The same behind urscope, which refuses violations.
    V1Refusing,
    /// Our own backend in place of the v2 adapter's entry points, in the adapter's table.
    Ours,
    /// The same on the driver of `V2OneDescriptor`.
    OursOneDescriptor,
    /// Our own backend in place of the v1 adapter's entry points.
    OursOnV1,
    /// Our own backend on a release before 2026.2, through the symbols that urscope exports.
    On(Release, Adapter),
    /// In an expectation only: all `On`.
    Older,
}

const OURS_2026_1: Implementation = On(R2026_1, Adapter::V2);
const OURS_2026_0: Implementation = On(R2026_0, Adapter::V2);
const OURS_2026_0_ON_V1: Implementation = On(R2026_0, Adapter::V1);
const OURS_2025_3: Implementation = On(R2025_3, Adapter::V2);
const OURS_2025_3_ON_V1: Implementation = On(R2025_3, Adapter::V1);

/// The only adapter that is loaded.
fn alone(test_run: TestRun) -> TestRun {
    test_run.env("UR_ADAPTERS_FORCE_LOAD", R2026_2.library("libur_adapter_level_zero_v2.so.0"))
}

/// Makes the device handle descriptors of physical memory as Intel's driver does.
fn intels_descriptors(test_run: TestRun) -> TestRun {
    test_run.env("ZE_SOFT_EXPORT_FD", "one").env("ZE_SOFT_IMPORT_FD", "keep")
}

impl Implementation {
    fn test_run(self, app: &str) -> TestRun {
        let (release, adapter) = match self {
            On(release, adapter) => (release, adapter),
            V1 | V1Refusing | OursOnV1 => (R2026_2, Adapter::V1),
            _ => (R2026_2, Adapter::V2),
        };
        let test_run = TestRun::new(app, release, adapter).option("--no-check");
        match self {
            Older | V1Bare => unreachable!("it is in expectations only"),
            V1 | V2 => test_run,
            V2Alone => alone(test_run),
            V2Checked => test_run.env("UR_ENABLE_LAYERS", "UR_LAYER_PARAMETER_VALIDATION"),
            V2OneDescriptor => intels_descriptors(test_run),
            V1Refusing | V2Refusing => test_run.env("URSCOPE_ON_ERROR", "refuse"),
            Ours | OursOnV1 | On(..) => test_run.env("URSCOPE_BACKEND", "level_zero"),
            OursOneDescriptor => intels_descriptors(test_run).env("URSCOPE_BACKEND", "level_zero"),
            V2AloneRefusing => alone(test_run).env("URSCOPE_ON_ERROR", "refuse"),
        }
    }

    /// Whether an expectation for `who` applies to this one. On an older release our backend differs as it does on the
    /// newest, unless the reason is something that only the newest loader does.
    fn is(self, who: Self, reason: &str) -> bool {
        who == self || matches!(self, On(..)) && (who == Older || who == Ours && reason != TABLE)
    }
}

/// A case, the specified answer, and the implementations that answer otherwise, each with the reason.
///
/// Nothing is specified about bytes that no get returned, nor about an exporter that has ended or may not be inspected:
/// the answer given is what the adapter makes of the software device's.
type Case = (&'static str, &'static str, &'static [(Implementation, &'static str, &'static str)]);

/// Runs all cases of one group with urscope and, where the answers are not those of urscope, also without it.
fn check_cases(app: &str, which: &str, cases: &[Case], implementation: Implementation) {
    let expected = |bare: bool| -> Vec<String> {
        let is = |who: Implementation, reason| {
            implementation.is(who, reason) || bare && implementation == V1 && who == V1Bare
        };
        let answer = |(case, promised, otherwise): &Case| {
            let other = otherwise.iter().find(|(who, _, reason)| is(*who, reason));
            format!("{case}: {}", other.map_or(promised, |(_, answer, _)| answer))
        };
        cases.iter().map(answer).collect()
    };
    let test_run = || implementation.test_run(app).arg(which);
    let is_adapters = matches!(implementation, V1 | V2 | V2Alone | V2Checked | V2OneDescriptor);
    let bare = is_adapters.then(|| ("bare", test_run().option("--no-shim").run()));
    for (how, outcome) in bare.into_iter().chain([("traced", test_run().run())]) {
        assert_eq!(outcome.code, 0, "{app} {which} {how}, {implementation:?}: {}", outcome.stderr);
        let printed: Vec<&str> = outcome.stdout.lines().collect();
        assert_eq!(printed, expected(how == "bare"), "{app} {which} {how}, {implementation:?}: {}", outcome.stderr);
    }
}

/// Every deviation has a reason, and none equals the specified answer.
#[test]
fn every_deviation_is_one_and_has_its_reason() {
    let physical = [PHYSICAL, PHYSICAL_OF_TWO, PHYSICAL_NULLS];
    let event = [EVENT, EVENT_OF_TWO, EVENT_NULLS];
    for cases in [MISUSE].iter().chain(&physical).chain(&event).chain(&memory::ALL) {
        for (case, promised, otherwise) in *cases {
            for (implementation, answer, reason) in *otherwise {
                assert!(answer != promised && !reason.is_empty(), "{case}, {implementation:?}");
            }
        }
    }
}

const SIZE: &str = "the driver's refusal of the size is translated so; the conformance tests call it a known failure";
const FLAGS: &str = "undefined flags are ignored";
const NULL: &str = "the adapter leaves it to the loader's validation to look for nulls";
const TABLE: &str = "the loader reads the adapter's table from the handle before anybody has looked at it";
const UNUSED: &str = "the adapter has no use for the context";
const ONE: &str = "both handles carry the same descriptor, and the first put has closed it";
const SEALED: &str = "whatever is not what a get here handed out, or is that no more, is an invalid value";
const PERMISSION: &str = "a refused look into the exporter is told apart, as for memory";
const MADE: &str = "an older adapter does not say how its own, unshared physical memory was made";
const TIMED: &str = "no signal of ours is timed, and the older queues time events of their own only";
const OTHERS: &str = "it releases whatever physical memory it is given";
const V1_EVENTS: &str =
    "to v1, an event that was complete once is complete for good, so that there is nothing to share";
const DESCRIPTORS: &str =
    "a lack of descriptors is told apart from data that are wrong, as the adapter does for memory";

/// Undefined behaviour, which an implementation refuses if it knows what a get returned.
const MISUSE: &[Case] =
    &[("put-twice", "0 45", &[]), ("put-of-a-copy", "45 0", &[]), ("put-of-the-middle", "45 0", &[])];

#[rustfmt::skip]
const PHYSICAL: &[Case] = &[
    ("get-and-put", "0 data 0", &[]),
    ("get-twice", "0 0 two 0 0", &[]),
    ("get-after-put", "0 0 0 0 0", &[(V2OneDescriptor, "0 0 0 4 0", "the second get hands out the descriptor that the put has closed")]),
    ("put-of-one-of-two", "0 0 0", &[(V2OneDescriptor, "0 4 0", ONE)]),
    ("put-of-both-and-an-unrelated-file", "0 0 kept", &[(V2OneDescriptor, "0 0 closed", ONE)]),
    ("put-after-release", "0 0", &[]),
    ("release-without-put", "0 0 0", &[]),
    ("open-and-close", "0 0 0", &[]),
    ("open-twice", "0 0 two 0 0 0", &[]),
    ("open-a-hundred-times", "0", &[]),
    ("open-of-one-byte-more", "4", &[]),
    ("open-of-one-byte-less", "4", &[]),
    ("open-of-zeros", "4", &[]),
    ("open-of-garbage", "4", &[]),
    ("open-after-put", "0 4", &[]),
    ("open-of-a-stale-handle", "0 4 0", &[]),
    ("open-after-release", "0 0 0", &[]),
    ("support", "0 yes 0 yes 0 yes", &[(OursOnV1, "0 yes 0 yes 0 no", V1_EVENTS), (OURS_2026_0_ON_V1, "0 yes 0 yes 0 no", V1_EVENTS), (OURS_2025_3_ON_V1, "0 yes 0 yes 0 no", V1_EVENTS)]),
    ("create-and-release", "0", &[]),
    ("create-of-an-uneven-size", "49", &[(V2, "4", SIZE), (V2Alone, "4", SIZE), (V2Checked, "4", SIZE), (V2OneDescriptor, "4", SIZE), (V2Refusing, "4", SIZE)]),
    ("create-of-nothing", "49", &[(V2, "4", SIZE), (V2Alone, "4", SIZE), (V2Checked, "4", SIZE), (V2OneDescriptor, "4", SIZE), (V2Refusing, "4", SIZE)]),
    ("create-with-undefined-flags", "53", &[(V2, "0", FLAGS), (V2Alone, "0", FLAGS), (V2OneDescriptor, "0", FLAGS)]),
    ("info-context", "0 same", &[]),
    ("info-device", "0 same", &[]),
    ("info-size", "0 same", &[]),
    ("info-properties", "0 2 0 0", &[(Older, "0 2 54 0", MADE)]),
    ("info-references", "0 1 0 0 2 0 0 1", &[]),
    ("info-unknown", "54", &[(V2Checked, "53", "to the validation it is no value of the enumeration at all")]),
    ("info-too-small", "49", &[]),
    ("get-without-the-flag", "45 untouched", &[]),
    ("open-shows-the-same-memory", "0 same same 0 0", &[]),
    ("open-without-a-size", "4", &[]),
    ("open-of-pid-zero", "4", &[]),
    ("open-of-an-unknown-pid", "4", &[]),
    ("open-of-no-descriptor", "4", &[]),
    ("open-of-a-closed-descriptor", "4", &[]),
    ("open-of-another-file", "39", &[(Ours, "4", SEALED), (OursOneDescriptor, "4", SEALED), (OursOnV1, "4", SEALED)]),
    ("memory-outlives-what-was-opened", "0 0 same 0", &[]),
    ("opened-info", "0 same 0 same 0 same 0 2 0 1", &[]),
    ("opened-is-exported-again", "0 0 0 0", &[]),
    ("opened-is-retained-and-closed", "0 0 0 1 0 0", &[]),
    ("opened-is-released", "0 0", &[]),
    ("close-of-memory-never-opened", "45", &[(V2, "0", OTHERS), (V2Alone, "0", OTHERS), (V2Checked, "0", OTHERS), (V2OneDescriptor, "0", OTHERS)]),
];

#[rustfmt::skip]
const PHYSICAL_OF_TWO: &[Case] = &[
    ("open-leaves-the-data-alone", "0 untouched", &[]),
    ("open-after-the-put-of-another-process", "4", &[]),
    ("open-after-the-end-of-another-process", "4", &[]),
    ("open-without-permission", "45", &[]),
    ("open-without-descriptors", "4 0 0 none-lost", &[(Ours, "38 0 0 none-lost", DESCRIPTORS), (OursOneDescriptor, "38 0 0 none-lost", DESCRIPTORS), (OursOnV1, "38 0 0 none-lost", DESCRIPTORS)]),
    ("open-of-another-process", "0 same 0 same", &[]),
    ("close-and-unrelated-files", "0 0 kept", &[(V2OneDescriptor, "0 0 closed", "adapter and driver both close the imported descriptor")]),
];

#[rustfmt::skip]
const PHYSICAL_NULLS: &[Case] = &[
    ("get-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V2Alone, "0", UNUSED)]),
    ("get-null-memory", "46", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("get-null-data", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("get-null-size", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("put-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V2Alone, "0", UNUSED)]),
    ("put-null-data", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("open-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
    ("open-null-device", "46", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("open-null-data", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("open-null-result", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("close-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V2Alone, "0", UNUSED)]),
    ("close-null-memory", "46", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("create-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (Older, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
    ("create-null-device", "46", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("create-null-result", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL)]),
    ("retain-null", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (Older, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
    ("release-null", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (Older, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
    ("info-null", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (Older, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
];

/// SIGSEGV ended the process of the case.
const CRASH: &str = "signal 11";

const EVENT: &[Case] = &[
    ("get-and-put", "0 data 0", &[]),
    ("get-twice", "0 0 two 0 0", &[]),
    ("get-after-put", "0 0 0 0 0", &[]),
    ("put-of-one-of-two", "0 0 0", &[]),
    ("put-of-both-and-an-unrelated-file", "0 0 kept", &[]),
    ("put-after-release", "0 0", &[]),
    ("release-without-put", "0 0 0", &[]),
    ("open-and-close", "0 0 0", &[]),
    ("open-twice", "0 0 two 0 0 0", &[]),
    ("open-a-hundred-times", "0", &[]),
    ("open-of-one-byte-more", "4", &[]),
    ("open-of-one-byte-less", "4", &[]),
    ("open-of-zeros", "39", &[(Ours, "4", SEALED)]),
    ("open-of-garbage", "39", &[(Ours, "4", SEALED)]),
    ("open-after-put", "0 0", &[]),
    ("open-of-a-stale-handle", "0 0 0", &[]),
    ("open-after-release", "0 39 0", &[(Ours, "0 4 0", SEALED)]),
    ("support", "0 yes 0 yes", &[]),
    ("create-and-release", "0", &[]),
    ("create-with-profiling", "0", &[(Older, "44", TIMED)]),
    ("create-shared-with-profiling", "4", &[]),
    ("create-with-undefined-flags", "53", &[]),
    ("info-status", "0 0 0 0 0 0", &[]),
    ("info-context", "0 same", &[]),
    ("info-references", "0 1 0 0 2 0 0 1", &[]),
    ("info-profiling", "17", &[]),
    ("get-of-an-unshared-event", "12 untouched", &[]),
    ("get-of-a-profiled-event", "12", &[(Older, "not made 44", TIMED)]),
    ("get-of-a-command's-event", "12 0", &[]),
    ("get-of-an-imported-event", "12", &[]),
    ("put-keeps-the-event", "0 0 0 0 0", &[]),
    ("put-keeps-the-imported-event", "0 0 0", &[]),
    ("open-in-the-same-process", "0 0 two 0 0 0 0 0 0", &[]),
    ("open-before-the-signal", "0 0 0 0 0 0", &[]),
    ("each-signal-is-waited-for-anew", "0 2 pending 0 0 0 0 2 pending 0 0 0", &[]),
    ("both-of-two-opened-are-signalled", "0 two 0 0 0 0 0 0", &[]),
    ("sixteen-round-trips", "16", &[]),
    ("imported-info", "0 same 0 1", &[]),
    ("imported-is-retained-and-released", "0 0 0 0 0 0", &[]),
    ("imported-is-signalled", "0 0 0 0 0 0", &[]),
    ("imported-outlives-the-event", "0 0 0 0 0 0", &[]),
];

const EVENT_OF_TWO: &[Case] = &[
    ("open-leaves-the-data-alone", "0 untouched", &[]),
    ("open-after-the-put-of-another-process", "0", &[]),
    ("open-after-the-end-of-another-process", "39", &[(Ours, "4", SEALED)]),
    ("open-without-permission", "39", &[(Ours, "45", PERMISSION)]),
    ("open-without-descriptors", "39 0 0 none-lost", &[(Ours, "38 0 0 none-lost", DESCRIPTORS)]),
    ("wait-for-another-process", "0 0 0 0 0", &[]),
    ("wait-after-the-put-of-another-process", "0 0 0", &[]),
    ("signal-for-another-process", "0 waited", &[]),
    ("imported-outlives-another-process", "0 0 0 0", &[]),
];

#[rustfmt::skip]
const EVENT_NULLS: &[Case] = &[
    ("get-null-event", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE)]),
    ("get-null-data", "48", &[]),
    ("get-null-size", "48", &[]),
    ("put-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V2Alone, "0", UNUSED)]),
    ("put-null-data", "48", &[]),
    ("open-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE)]),
    ("open-null-data", "48", &[]),
    ("open-null-result", "48", &[]),
    ("create-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE)]),
    ("create-null-device", "46", &[]),
    ("create-null-description", "48", &[]),
    ("create-null-result", "48", &[]),
    ("wait-null", "48", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (Older, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
    ("wait-for-none", "4", &[(Ours, "0", "the wait is the adapter's own"), (V2, "0", NULL), (V2Alone, "0", NULL)]),
    ("retain-null", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (Older, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
    ("release-null", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (Older, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
];

macro_rules! conforms {
    ($($name:ident: $app:literal $which:literal $cases:ident to $($implementation:ident)+;)*) => {
        $(#[test]
        fn $name() {
            $(check_cases($app, $which, $cases, $implementation);)+
        })*
    };
}

conforms! {
    memory: "ur_memory" "alone" MEMORY to V2 V2Alone V2Checked V2Refusing Ours V1 V1Refusing OursOnV1;
    memory_between_two: "ur_memory" "of-two" MEMORY_OF_TWO to V2 V2Alone V2Checked V2Refusing Ours V1 V1Refusing OursOnV1;
    memory_and_nulls: "ur_memory" "apart" MEMORY_NULLS to V2 V2Alone V2Checked V2Refusing V2AloneRefusing Ours V1 V1Refusing OursOnV1;
    memory_and_a_driver_that_refuses: "ur_memory" "faults" MEMORY_FAULTS to V2 V2Refusing Ours V1 V1Refusing OursOnV1;
    memory_on_older_releases: "ur_memory" "alone" MEMORY to OURS_2026_0 OURS_2025_3 OURS_2025_3_ON_V1;
    memory_between_two_on_older_releases: "ur_memory" "of-two" MEMORY_OF_TWO to OURS_2026_0 OURS_2025_3;
    memory_and_nulls_on_2025_3: "ur_memory" "apart" MEMORY_NULLS to OURS_2025_3;
    memory_and_undefined_puts: "ur_memory" "misuse" MISUSE to V2Refusing Ours V1Refusing OursOnV1;
    physical_memory: "ur_physical" "alone" PHYSICAL to V2 V2Alone V2Checked V2OneDescriptor V2Refusing Ours OursOneDescriptor OursOnV1;
    physical_memory_between_two: "ur_physical" "of-two" PHYSICAL_OF_TWO to V2 V2Alone V2Checked V2OneDescriptor V2Refusing Ours OursOneDescriptor OursOnV1;
    physical_memory_on_older_releases: "ur_physical" "alone" PHYSICAL to OURS_2026_1 OURS_2026_0 OURS_2026_0_ON_V1 OURS_2025_3 OURS_2025_3_ON_V1;
    physical_memory_between_two_on_older_releases: "ur_physical" "of-two" PHYSICAL_OF_TWO to OURS_2026_0 OURS_2025_3 OURS_2025_3_ON_V1;
    physical_memory_and_nulls_on_older_releases: "ur_physical" "apart" PHYSICAL_NULLS to OURS_2026_0 OURS_2025_3;
    physical_memory_and_nulls: "ur_physical" "apart" PHYSICAL_NULLS to V2 V2Alone V2Checked V2Refusing V2AloneRefusing Ours;
    physical_memory_and_undefined_puts: "ur_physical" "misuse" MISUSE to V2Refusing Ours;
    events: "ur_event" "alone" EVENT to V2 V2Alone V2Checked V2Refusing Ours;
    events_on_older_releases: "ur_event" "alone" EVENT to OURS_2026_1 OURS_2026_0 OURS_2025_3;
    events_between_two_on_older_releases: "ur_event" "of-two" EVENT_OF_TWO to OURS_2026_1 OURS_2026_0 OURS_2025_3;
    events_and_nulls_on_older_releases: "ur_event" "apart" EVENT_NULLS to OURS_2026_0 OURS_2025_3;
    events_and_undefined_puts_on_2025_3: "ur_event" "misuse" MISUSE to OURS_2025_3;
    events_between_two: "ur_event" "of-two" EVENT_OF_TWO to V2 V2Alone V2Checked V2Refusing Ours;
    events_and_nulls: "ur_event" "apart" EVENT_NULLS to V2 V2Alone V2Checked V2Refusing V2AloneRefusing Ours;
    events_and_undefined_puts: "ur_event" "misuse" MISUSE to V2Refusing Ours;
}

/// On releases without these functions, the same program finds those that urscope exports.
#[test]
fn the_functions_are_found_by_name_where_the_release_has_none() {
    for release in [R2026_1, R2026_0, R2025_3] {
        let test_run = || TestRun::new("by_dlsym", release, Adapter::V2).option("--no-check");
        let outcome = test_run().run();
        let answer = (outcome.code, outcome.stdout.as_str());
        assert_eq!(answer, (0, "opened an event by name\n"), "{release:?}: {}", outcome.stderr);
        let bare = test_run().option("--no-shim").run();
        assert!(bare.stderr.contains("there is no urEventCreateExp"), "{release:?}: {}", bare.stderr);
    }
}

/// A program that looks up the functions by name finds ours when urscope is preloaded, and otherwise those of the
/// loader.
#[test]
fn the_functions_are_found_by_name() {
    for implementation in [V2, V2Alone] {
        let bare = implementation.test_run("by_dlsym").option("--no-shim").run();
        let traced = implementation.test_run("by_dlsym").run();
        for outcome in [&bare, &traced] {
            let answer = (outcome.code, outcome.stdout.as_str());
            assert_eq!(answer, (0, "opened an event by name\n"), "{}", outcome.stderr);
        }
        let traces = traced.traces();
        for call in ["urIPCGetEventHandleExp", "urIPCPutEventHandleExp", "urIPCOpenEventHandleExp"] {
            assert_eq!(urscope_tests::trace::count(&traces, "E", call), 1, "{call}: {}", traced.stderr);
        }
    }
}
