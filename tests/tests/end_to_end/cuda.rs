//! Programs that share memory and events through the CUDA driver, on the software device: what is found in them, and that
//! they get the driver's answers.

use urscope_tests::TestRun;

/// The programs: one is linked with the driver, the other one asks it for its functions.
const PROGRAMS: [&str; 2] = ["cuda_sharing", "cuda_sharing_by_proc_address"];

/// What is right or wrong, and what is found.
const CASES: [(&str, &[&str]); 47] = [
    ("memory-right", &[]),
    ("memory-of-second-context", &[]),
    ("memory-by-inner-address", &["note lost-offset"]),
    ("memory-opened-twice", &[]),
    ("memory-opened-again", &[]),
    ("memory-with-pitch", &[]),
    ("memory-copied", &[]),
    ("memory-written", &[]),
    ("memory-managed", &["warning wrong-usm"]),
    ("memory-used-again", &[]),
    ("memory-consumer-ends-first", &[]),
    ("event-right", &[]),
    ("event-before-copy", &[]),
    ("event-recorded-by-consumer", &["note freed-while-open"]),
    ("event-not-shared", &["error export-without-flag"]),
    ("physical-right", &[]),
    ("physical-fetched", &[]),
    ("physical-released-first", &[]),
    ("physical-released-while-mapped", &[]),
    ("physical-retained", &[]),
    ("pool-right", &[]),
    ("pool-default", &["warning wrong-usm"]),
    ("stale-handle", &["error stale-handle"]),
    ("freed-while-open", &["error freed-while-open"]),
    ("mapping-leaked", &["note leaked-mapping"]),
    ("mappings-leaked", &["note leaked-mapping"]),
    ("closed-twice", &["error double-close"]),
    ("closed-inside", &["error open-close-mismatch"]),
    ("closed-by-free", &["error open-close-mismatch"]),
    ("used-after-close", &["error use-after-close"]),
    ("used-after-free", &["error use-after-free"]),
    ("opened-by-producer", &["note open-in-producer"]),
    ("opened-after-free", &["error use-after-free", "note leaked-mapping"]),
    ("opened-after-end", &["note refused-open"]),
    ("producer-ends-first", &["note exporter-gone"]),
    ("producer-ends-first-and-opened-again", &["note exporter-gone", "note refused-open"]),
    ("got-after-free", &["error get-of-freed"]),
    ("got-of-mapping", &["note export-of-import"]),
    ("damaged-handle", &["note garbage-handle"]),
    ("event-destroyed-while-open", &["error use-after-free", "note freed-while-open"]),
    ("event-left-open", &["note freed-while-open", "note leaked-event"]),
    ("released-twice", &["error double-release"]),
    ("used-after-unmap", &["error use-after-close"]),
    ("physical-leaked", &["note leaked-physical-memory"]),
    ("descriptors-leaked", &[]),
    ("pool-freed-first", &["error freed-while-open"]),
    ("pool-destroyed-first", &["error freed-while-open"]),
];

#[test]
fn each_mistake_is_found_and_nothing_else_by_every_way() {
    let listed = TestRun::of_cuda(PROGRAMS[0]).arg("list").untraced().run();
    assert_eq!(listed.stdout.lines().collect::<Vec<_>>(), CASES.map(|(case, _)| case));
    for program in PROGRAMS {
        urscope_tests::on_all_processors(CASES.into_iter(), |(case, expected)| {
            let run = || TestRun::of_cuda(program).arg(case);
            let (traced, bare) = (run().run(), run().untraced().run());
            assert_eq!(traced.report().violations(), expected, "{program} {case}: {}", traced.stderr);
            let answers = |text: &str| {
                let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            assert_eq!(answers(&traced.stdout), answers(&bare.stdout), "{program} {case}");
        });
    }
}

/// The memory of both generations is named, at the lines of the program.
#[test]
fn a_handle_of_memory_that_was_allocated_again_names_both() {
    let outcome = TestRun::of_cuda(PROGRAMS[0]).arg("stale-handle").run();
    let report = outcome.report();
    let message = report.finding("stale-handle")["message"].as_str().unwrap().to_owned();
    let parts = [
        "which the driver accepted",
        "exported in call",
        "freed in call",
        "now belongs to other memory, allocated in call",
    ];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}
