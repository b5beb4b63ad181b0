//! What the CUDA driver promises and leaves undefined.

use urscope_rules::Severity::{Error, Note};
use urscope_rules::{Finding, Severity};

use crate::scenarios::play;

/// The rules that find something, with severities, except that a handle was not opened.
fn judged(scenario: &str) -> Vec<(&'static str, Severity)> {
    let found = play(&by_cuda(scenario));
    found.iter().map(|finding| (finding.rule.code, finding.severity)).collect()
}

/// All calls by functions of CUDA.
fn by_cuda(scenario: &str) -> String {
    let calls = [
        "context",
        "release",
        "alloc",
        "free",
        "get",
        "open",
        "close",
        "event",
        "release-event",
        "get-event",
        "open-event",
    ];
    let is_call = |line: &&str| line.split_whitespace().nth(1).is_some_and(|word| calls.contains(&word));
    let line = |line: &str| if is_call(&line) { format!("{line} cuda\n") } else { format!("{line}\n") };
    scenario.lines().map(line).collect()
}

fn message(found: &[Finding]) -> &str {
    &found.first().expect("a finding").message
}

#[test]
fn two_opens_of_two_gets_are_one_mapping_and_nothing_is_put() {
    let right = "
        producer: alloc p 4096
        producer: get p -> h
        producer: get p + 1024 -> h
        consumer: open h -> m
        consumer: open h -> m
        consumer: close m
        consumer: close m
        producer: free p";
    let codes = judged(&right.replace("get p + 1024 -> h", "get p -> h"));
    assert_eq!(codes, []);
    let closed_again = format!("{right}\nconsumer: close m fails 1");
    assert!(judged(&closed_again).contains(&("double-close", Error)), "{:?}", judged(&closed_again));
}

#[test]
fn a_handle_of_an_address_inside_names_the_allocation() {
    let inside = "
        producer: alloc p 4096
        producer: get p + 1024 -> h
        consumer: open h -> m
        consumer: close m
        producer: free p";
    let found = play(&by_cuda(inside));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].rule.code, found[0].severity), ("lost-offset", Note));
    let mapped = play(&by_cuda(&inside.replace("consumer: close m\n", "")));
    let leaked = mapped.iter().find(|finding| finding.rule.code == "freed-while-open").unwrap();
    assert_eq!(leaked.size, Some(4096), "all of it is mapped");
}

#[test]
fn a_free_of_what_is_open_elsewhere_is_undefined() {
    let freed = "
        producer: alloc p 4096
        producer: get p -> h
        consumer: open h -> m
        producer: free p
        consumer: close m";
    assert_eq!(judged(freed), [("freed-while-open", Error)]);
    let read = judged(&freed.replace("consumer: close m", "consumer: copy m sized 8"));
    assert!(read.contains(&("use-after-free", Error)), "{read:?}");
    let destroyed = "
        producer: event e ipc
        producer: get-event e -> h
        consumer: open-event h -> f
        producer: release-event e
        ";
    assert_eq!(judged(&format!("{destroyed}consumer: release-event f")), [("freed-while-open", Note)]);
    let used = judged(&format!("{destroyed}consumer: wait f\nconsumer: release-event f"));
    assert_eq!(used, [("freed-while-open", Note), ("use-after-free", Error)]);
    let right = "
        producer: event e ipc
        producer: get-event e -> h
        consumer: open-event h -> f
        consumer: open-event h -> g
        consumer: release-event f
        consumer: release-event g
        producer: release-event e";
    assert_eq!(judged(right), []);
}

#[test]
fn what_the_driver_opens_although_its_memory_is_gone_names_both_generations() {
    let stale = "
        producer: alloc p 4096
        producer: get p -> h
        producer: free p
        producer: alloc p 8192
        consumer: open h -> m
        consumer: close m
        producer: free p";
    let found = play(&by_cuda(stale));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].rule.code, found[0].severity), ("stale-handle", Error));
    let message = message(&found);
    assert!(message.contains("which the driver accepted"), "{message}");
    for part in
        ["(cuIpcGetMemHandle, ", "(cuMemFree_v2, ", "now belongs to other memory, allocated in call 4 (cuMemAlloc_v2, "]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    let after_free = "
        producer: alloc p 4096
        producer: get p -> h
        producer: free p
        consumer: open h -> m fails 1
        producer: alloc q 64
        producer: free q";
    assert_eq!(judged(after_free), [("use-after-free", Error)]);
}

#[test]
fn an_open_of_the_own_memory_is_refused() {
    let own = "
        producer: alloc p 4096
        producer: get p -> h
        producer: open h -> m fails 201
        producer: free p";
    let found = play(&by_cuda(own));
    let codes: Vec<_> = found.iter().map(|finding| (finding.rule.code, finding.severity)).collect();
    assert_eq!(codes, [("open-in-producer", Note)]);
    assert!(message(&found).contains("CUDA_ERROR_INVALID_CONTEXT (201)"), "{}", message(&found));
}

#[test]
fn a_misused_object_is_named() {
    let opened = "
        producer: alloc p 4096
        producer: get p -> h
        consumer: open h -> m
        ";
    let freed = judged(&format!("{opened}consumer: free m fails 1\nconsumer: close m\nproducer: free p"));
    assert_eq!(freed, [("open-close-mismatch", Error)]);
    let forwarded = judged(&format!("{opened}consumer: get m -> i fails 1\nconsumer: close m\nproducer: free p"));
    assert!(forwarded.iter().any(|(code, _)| *code == "export-of-import"), "{forwarded:?}");
    let twice = judged(
        "producer: event e ipc\nproducer: get-event e -> h\nproducer: release-event e\nproducer: release-event e begins",
    );
    assert!(twice.contains(&("double-release", Error)), "{twice:?}");
    let plain = judged("producer: event e\nproducer: get-event e -> h fails 400\nproducer: release-event e");
    assert!(plain.contains(&("export-without-flag", Error)), "{plain:?}");
    let managed = judged("producer: alloc p 4096 as shared\nproducer: get p -> h fails 1\nproducer: free p");
    assert!(managed.iter().any(|(code, _)| *code == "wrong-usm"), "{managed:?}");
    let gone = judged("producer: alloc p 4096\nproducer: free p\nproducer: get p -> h fails 1");
    assert!(gone.contains(&("get-of-freed", Error)), "{gone:?}");
}

#[test]
fn what_stays_open_is_closed_by_the_driver() {
    let kept =
        judged("producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nconsumer: exit\nproducer: free p");
    assert_eq!(kept, [("leaked-mapping", Note)]);
    let owner_first = judged(
        "producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nproducer: exit\nconsumer: close m",
    );
    assert_eq!(owner_first, [("exporter-gone", Note)]);
}

#[test]
fn the_end_of_a_context_ends_what_belongs_to_it() {
    let shared = "
        producer: context c
        producer: alloc p 4096 in c
        producer: get p -> h
        consumer: context d
        consumer: open h -> m in d
        ";
    let consumer_first = judged(&format!("{shared}consumer: release d\nproducer: free p\nproducer: release c"));
    assert_eq!(consumer_first, []);
    let used = "consumer: copy m sized 64\nproducer: free p\nproducer: release c";
    let used = play(&by_cuda(&format!("{shared}consumer: release d\n{used}")));
    assert_eq!(used.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), ["use-after-close"]);
    assert!(message(&used).contains(", ended with its context in call "), "{}", message(&used));
    let owner_first = play(&by_cuda(&format!("{shared}producer: release c\nconsumer: close m\nconsumer: release d")));
    let codes: Vec<_> = owner_first.iter().map(|finding| (finding.rule.code, finding.severity)).collect();
    assert_eq!(codes, [("freed-while-open", Error)]);
    assert!(message(&owner_first).contains(" with its context 0x"), "{}", message(&owner_first));
    let refused = judged(&format!("{shared}producer: release c fails 1\nconsumer: close m\nproducer: free p"));
    assert!(!refused.contains(&("freed-while-open", Error)), "{refused:?}");
    let stale = judged(
        "producer: context c\nproducer: alloc p 64 in c\nproducer: get p -> h\nproducer: release c\nconsumer: open h -> m fails 1",
    );
    assert!(stale.contains(&("use-after-free", Error)), "{stale:?}");
}

#[test]
fn a_child_of_a_process_that_has_used_the_driver_is_told_why_it_is_refused() {
    let refused = |scenario: &str| {
        let found = play(&by_cuda(scenario));
        let refusal = found.iter().find(|finding| finding.rule.code == "refused-call").expect("a refusal");
        refusal.message.clone()
    };
    let forked = refused("parent: alloc p 4096\nparent: fork child\nchild: get q -> h fails 3");
    assert!(forked.contains("had used the driver before it forked this process"), "{forked}");
    let alone = refused("parent: fork child\nchild: get q -> h fails 3");
    assert!(!alone.contains("forked"), "{alone}");
}

#[test]
fn a_get_without_a_context_names_the_thread_that_had_one() {
    let found = play(&by_cuda("p: alloc p 4096\np/2: get p -> h fails 201"));
    let message = &found.iter().find(|finding| finding.rule.code == "refused-call").expect("a refusal").message;
    assert!(message.contains("no context is current in thread") && message.contains("which allocated it"), "{message}");
}

#[test]
fn a_use_of_a_counted_mapping_lists_its_opens_and_closes() {
    let shared = "
        producer: alloc p 4096
        producer: get p -> h
        consumer: open h -> m
        consumer: open h -> m
        consumer: close m
        consumer/2: close m
        consumer: copy m sized 8
        producer: free p";
    let found = play(&by_cuda(shared));
    let used = found.iter().find(|finding| finding.rule.code == "use-after-close").expect("a use");
    let all = "; it was opened in calls 1 (thread 200) and 2 (thread 200), and closed in calls 3 (thread 200) and 4 (thread 201)";
    assert!(used.message.ends_with(all), "{}", used.message);
    assert!(used.advice.contains("close each open once"), "{}", used.advice);
    let once =
        play(&by_cuda(&shared.replacen("consumer: open h -> m\n", "", 1).replacen("consumer: close m\n", "", 1)));
    let used = once.iter().find(|finding| finding.rule.code == "use-after-close").expect("a use");
    assert!(
        !used.message.contains("it was opened in") && used.advice.contains("wait for the commands"),
        "{}",
        used.message
    );
}
