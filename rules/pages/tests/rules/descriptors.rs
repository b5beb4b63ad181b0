//! Exported descriptors that the program is to close, and what they keep.

use urscope_rules::{Finding, Severity};

use crate::scenarios::play;

/// A process that exports memory in its second call, as `d`, and has the descriptor when it ends.
fn kept(steps: &str) -> Vec<Finding> {
    let first = "p: physical m ipc cuda\np: get-physical m -> d cuda\n";
    play(&format!("{first}{steps}"))
}

fn codes(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|finding| finding.rule.code).collect()
}

#[test]
fn a_descriptor_that_keeps_released_memory_is_reported_at_its_export() {
    let found = kept("p: release-physical m cuda\np: keeps d");
    assert_eq!(codes(&found), ["leaked-descriptor"]);
    let [finding] = &*found else { unreachable!("there is one") };
    let call = |place: urscope_rules::Place| place.call.map(u64::from);
    assert_eq!((call(finding.at), finding.other.and_then(call)), (Some(2), Some(3)));
    assert_eq!((finding.severity, finding.size), (Severity::Warning, Some(1 << 16)));
    for part in ["of 64 KiB (65,536 bytes)", "in call 2 (cuMemExportToShareableHandle", "in call 3 (cuMemRelease"] {
        assert!(finding.message.contains(part), "{}", finding.message);
    }
    for text in [&*finding.message, &finding.advice] {
        assert!(!text.split([' ', ',']).any(|word| ["put", "handle", "handles"].contains(&word)), "{text}");
    }
}

#[test]
fn memory_that_is_there_anyway_is_not_kept_by_a_descriptor() {
    for steps in [
        "p: keeps d",
        // It is closed.
        "p: release-physical m cuda",
        // Mapped, and by a part.
        "p: map m -> v cuda\np: release-physical m cuda\np: keeps d",
        "p: map m -> v cuda\np: release-physical m cuda\np: unmap v sized 4096 cuda\np: keeps d",
        // A reference is taken again of what is mapped.
        "p: map m -> v cuda\np: release-physical m cuda\np: retain-physical m cuda\np: unmap v cuda\np: keeps d",
        "p: retain-physical m cuda\np: release-physical m cuda\np: keeps d",
        "p: release-physical m cuda fails 1\np: keeps d",
    ] {
        let found: Vec<_> = kept(steps).into_iter().filter(|it| it.rule.code != "refused-call").collect();
        assert!(found.is_empty(), "{steps}: {found:#?}");
    }
}

#[test]
fn memory_ends_with_its_last_reference_and_mapping() {
    for steps in [
        "p: map m -> v cuda\np: release-physical m cuda\np: unmap v cuda",
        "p: map m -> v cuda\np: release-physical m cuda\np: retain-physical m cuda\np: unmap v cuda\np: release-physical m cuda",
        // New memory has the handle of the released one.
        "p: release-physical m cuda\np: physical m ipc cuda\np: map m -> v cuda",
        "p: release-physical m cuda\np: get-physical m -> d cuda fails 1",
    ] {
        let mut found = kept(&format!("{steps}\np: keeps d"));
        found.retain(|finding| finding.rule.code == "leaked-descriptor");
        assert_eq!(codes(&found), ["leaked-descriptor"], "{steps}");
    }
}

/// Nothing is certain of a process that was killed, nor what another interface promises about its handle data.
#[test]
fn only_the_end_of_a_process_shows_what_it_keeps() {
    for end in ["killed", "running", "exec"] {
        assert!(kept(&format!("p: release-physical m cuda\np: keeps d\np: {end}")).is_empty(), "{end}");
    }
    let of_runtime = "p: physical m ipc\np: get-physical m -> d\np: put-physical d\np: release-physical m\np: keeps d";
    assert!(play(of_runtime).is_empty());
}

#[test]
fn the_growth_of_descriptors_is_that_of_exports_that_are_not_closed() {
    let exports = |of: &str| {
        let steps = (0..100).map(|n| {
            format!("p: get-physical m -> {} cuda\np: descriptors {}\n", of.replace('$', &n.to_string()), 8 + n)
        });
        let found = play(&format!("p: physical m ipc cuda\n{}", steps.collect::<String>()));
        let [finding] = &*found else { panic!("{found:#?}") };
        assert_eq!(finding.rule.code, "descriptor-growth");
        (finding.message.clone(), finding.advice.clone())
    };
    let (message, advice) = exports("d$");
    assert!(message.contains("more exported descriptors were open, too"), "{message}");
    assert!(advice.contains("leaked-descriptor") && !advice.contains("put"), "{advice}");
    let (message, advice) = exports("d");
    assert!(message.contains("only 0 more mappings and shared objects were open"), "{message}");
    assert!(advice.contains("ls -l /proc/PID/fd"), "{advice}");
}
