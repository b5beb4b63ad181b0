//! A process with one faulty circumstance joins a correct history. Only that circumstance is found.

use proptest::{prelude::*, strategy::ValueTree as _};

use crate::scenarios::correct::{Call, History, What};
use crate::scenarios::{self, choices};

/// What a process `q` does, and what is found of it. `HANDLE` is handle data of USM that is not put there.
const CIRCUMSTANCES: [(&str, &[&str]); 11] = [
    ("size-mismatch", &["open HANDLE sized 7 -> never fails 4"]),
    ("profiled-ipc-event", &["event timed ipc profiled fails 4"]),
    ("permission-denied", &["open HANDLE -> never fails 45"]),
    ("unsupported-device", &["support physical -> no", "physical denied ipc", "release-physical denied"]),
    ("released-while-mapped", &["physical own ipc", "map own -> at", "release-physical own", "unmap at"]),
    ("garbage-handle", &["open unknown -> never fails 45"]),
    ("untraced-peer", &["open unknown -> mapping", "close mapping"]),
    ("churn", &["alloc own 64", "101 times", "get own -> mine", "put mine", "end", "free own"]),
    ("descriptor-growth", &["alloc own 64", "descriptors 10", "get own -> mine", "descriptors 20", "put mine"]),
    ("calls-lost", &["alloc own 64", "incomplete"]),
    ("slow-call", &["1000 times", "support memory -> yes", "end", "support memory -> yes takes 5000"]),
];

/// The lines of a history with a circumstance inserted at `place`; none if it needs handle data and there is none.
fn inject(history: &History, circumstance: usize, place: usize) -> Option<Vec<String>> {
    let calls = &history.calls;
    let place = place % (calls.len() + 1);
    let is_put = |handle| calls[..place].iter().any(|call| call.what == What::Put && call.handle == handle);
    let mut handles = calls[..place].iter().filter(|call| call.what == What::Get && !call.physical);
    let handle = handles.rfind(|got| !is_put(got.handle));
    let (code, steps) = CIRCUMSTANCES[circumstance];
    if steps.iter().any(|step| step.contains("HANDLE")) && handle.is_none() {
        return None;
    }
    let steps = steps.iter().map(|step| match handle {
        Some(got) => step.replace("HANDLE", &got.data),
        None => (*step).to_owned(),
    });
    let mut steps: Vec<String> = steps.collect();
    match code {
        // There are many samples, and each is larger.
        "descriptor-growth" => {
            let step = |n: usize| vec![format!("descriptors {}", 10 * n), "get own -> mine".into(), "put mine".into()];
            steps = std::iter::once("alloc own 64".into()).chain((1..20).flat_map(step)).collect();
        }
        // The rights of a process come before its calls. The rest of the history has no refused opens.
        "permission-denied" => steps.insert(0, "traces-any 0".into()),
        _ => {}
    }
    let mut lines: Vec<String> = calls.iter().map(Call::text).collect();
    let block = |step: &str| step == "end" || step.ends_with(" times");
    let steps = steps.into_iter().map(|step| if block(&step) { step } else { format!("q: {step}") });
    lines.splice(place..place, steps);
    if code == "permission-denied" {
        (0..scenarios::correct::PROCESSES).for_each(|process| lines.insert(0, format!("p{process}: dumpable 0")));
    }
    Some(lines)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_circumstance_has_exactly_its_finding(choices in choices(), which in 0..CIRCUMSTANCES.len(), place: usize) {
        let history = History::from_choices(choices);
        let Some(lines) = inject(&history, which, place) else { return Ok(()) };
        let (text, found) = scenarios::history(lines.iter().map(String::as_str));
        prop_assert_eq!(found, vec![CIRCUMSTANCES[which].0], "{}", text);
    }
}

#[test]
fn each_circumstance_occurs_in_many_histories() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut times = [0; CIRCUMSTANCES.len()];
    for place in 0..60 {
        let history = History::from_choices(choices().new_tree(&mut runner).unwrap().current());
        for (which, times) in times.iter_mut().enumerate() {
            *times += usize::from(inject(&history, which, 7 * place).is_some());
        }
    }
    assert!(times.iter().all(|times| *times > 30), "{times:?}");
}
