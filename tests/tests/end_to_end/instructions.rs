//! A recorded call has as many instructions as the repository says: `tests/instructions.json`.

use urscope_tests::artefacts;
use urscope_tests::instructions::{RecordedCounts, count};

#[test]
fn a_call_has_as_many_as_before() {
    let (libraries, profile) = artefacts::libraries();
    let counted = count(&libraries);
    let [traced, validated, ..] = counted.ways.as_slice() else { panic!("too few ways: {counted:?}") };
    assert!(traced.1.total() < validated.1.total(), "validation adds instructions: {counted:?}");
    let differences = RecordedCounts::read().differences(&profile, &counted);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
