//! What grows with every iteration: handles that outlive their memory, mappings that are kept, and mappings of memory
//! that is gone.

use urscope_rules::{Finding, Severity};

use crate::scenarios;

/// What is found in steps that are repeated, without the notes on each free.
fn repeated(times: usize, steps: &str, end: &str) -> Vec<Finding> {
    let mut found = scenarios::play(&format!("{times} times\n{steps}\nend\n{end}"));
    found.retain(|finding| !["freed-while-exported", "get-without-open"].contains(&finding.rule.code));
    found
}

const LOSES: &str = "p: alloc a$ 64\np: get a$ -> h$\np: free a$";

#[test]
fn handles_that_outlive_their_memory_are_counted_from_hundreds_on() {
    assert!(repeated(255, LOSES, "p: exit").is_empty());
    let found = repeated(256, LOSES, "p: exit");
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), ["lost-handles"]);
    assert_eq!((found[0].severity, found[0].other.unwrap().call.map(u64::from)), (Severity::Note, Some(2)));
    for part in ["got 256 handles from call 2 (", " per second, never put them", "30 KiB (30,720 bytes) in all"] {
        assert!(found[0].message.contains(part), "{}", found[0].message);
    }
    // At a few of each, they count together.
    let three = "p: alloc a$ 64\np: get a$ -> h$\np: get a$ -> i$\np: get a$ -> j$\np: free a$";
    assert_eq!(repeated(86, three, "p: exit").len(), 1);
    // A megabyte of buffers is growth.
    assert_eq!(repeated(8191, LOSES, "p: exit")[0].severity, Severity::Note);
    assert_eq!(repeated(8192, LOSES, "p: exit")[0].severity, Severity::Warning);
}

/// However many are out at a time.
#[test]
fn hundreds_of_handles_of_one_allocation_may_be_put_later() {
    let puts =
        |count: usize| format!("300 times\np: get a -> h$\nend\n{count} times\np: put h$\nend\np: free a\np: exit");
    let found = |count| scenarios::play(&format!("p: alloc a 64\n{}", puts(count)));
    assert!(found(300).is_empty(), "{:#?}", found(300));
    assert!(found(45).iter().all(|finding| finding.rule.code != "unreturned-gets"));
    let many = found(44);
    let many = many.iter().find(|finding| finding.rule.code == "unreturned-gets").expect("256 are left");
    assert!(
        many.message.contains("got 256 handles of the USM") && many.message.contains(" per second"),
        "{}",
        many.message
    );
}

/// As libfabric's gets for each message do.
#[test]
fn gets_that_return_the_same_bytes_keep_nothing() {
    let again = "p: alloc a 64 ze\n300 times\np: get a -> h ze\nend\np: free a ze\np: exit";
    let found = scenarios::play(again);
    assert!(
        found.iter().all(|finding| finding.severity == Severity::Note && finding.rule.code != "unreturned-gets"),
        "{found:#?}"
    );
}

#[test]
fn a_put_may_follow_the_free() {
    assert!(repeated(300, &format!("{LOSES}\np: put h$"), "p: exit").is_empty());
}

#[test]
fn who_was_killed_may_have_put_them_later() {
    let found = repeated(300, LOSES, "p: killed");
    assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
    assert!(repeated(300, LOSES, "p: running").is_empty());
}

#[test]
fn a_driver_gives_handles_back_with_their_memory() {
    let steps = LOSES.lines().map(|line| format!("{line} ze")).collect::<Vec<_>>().join("\n");
    assert!(repeated(300, &steps, "p: exit").is_empty());
}

/// They are reported where they were got, and what remains of a few others is no growth.
#[test]
fn hundreds_of_handles_of_one_allocation_are_not_counted_twice() {
    let found = repeated(300, "p: get a -> h$", "p: exit");
    assert!(found.iter().all(|finding| finding.rule.code != "lost-handles"), "{found:#?}");
    let found = scenarios::play("p: alloc a 64\n300 times\np: get a -> h$\nend\np: free a\np: exit");
    let codes: Vec<_> = found.iter().map(|finding| finding.rule.code).collect();
    assert!(codes.contains(&"unreturned-gets") && !codes.contains(&"lost-handles"), "{codes:?}");
}

/// At the level of Level Zero a few mappings that are kept are a cache; what grows until the end is a leak.
#[test]
fn mappings_that_are_kept_are_a_leak_where_they_grow() {
    let found = |times: usize, size: u64, takes: u32, after: &str| {
        let steps = format!("p: alloc a$ {size} ze\np: get a$ -> h$ ze\nc: open h$ -> m$ ze takes {takes}");
        let found = scenarios::play(&format!("{times} times\n{steps}\nend\n{after}\nc: exit\np: exit"));
        found.into_iter().filter(|finding| finding.rule.code == "leaked-mapping").collect::<Vec<_>>()
    };
    // The last one stands for what grows.
    let worst = |found: Vec<Finding>| found.last().map(|last| last.severity);
    let mib = 1 << 20;
    let later = "c: alloc b 64 takes 100000";
    assert_eq!(worst(found(256, 64, 1, "")), Some(Severity::Note));
    assert_eq!(worst(found(300, 64, 1, later)), Some(Severity::Note), "they were opened at the start");
    assert_eq!(worst(found(16, 64 * mib, 700, "")), Some(Severity::Warning));
    assert_eq!(worst(found(16, 60 * mib, 700, "")), Some(Severity::Note), "less than 1 GiB");
    assert_eq!(worst(found(15, 80 * mib, 700, "")), Some(Severity::Note), "few");
    assert_eq!(worst(found(16, 64 * mib, 600, "")), Some(Severity::Note), "in less than ten seconds");
    assert_eq!(worst(found(16, 64 * mib, 700, later)), Some(Severity::Note), "they were opened at the start");
    let many = found(300, 64, 1, "");
    let last = many.last().unwrap();
    assert_eq!((many.len(), last.severity, last.count), (256, Severity::Warning, 45));
    let text = "it is one of 300 that calls from the same place in the program have left, ";
    assert!(last.message.contains(text) && last.message.ends_with(" per second"), "{}", last.message);
    assert!(many[..255].iter().all(|finding| finding.severity == Severity::Note && !finding.message.contains(text)));
}

/// Opened memory `m` of `p`, and what follows.
fn stale(steps: &str) -> Vec<&'static str> {
    let begin = "p: alloc a 4096 ze\np: get a -> h ze\nc: open h -> m ze";
    let end = "c: host-waits\nc: close m ze";
    let found = scenarios::play(&format!("{begin}\n{steps}\n{end}"));
    let worse = found.iter().filter(|finding| finding.severity > Severity::Note);
    worse.map(|finding| finding.rule.code).collect()
}

#[test]
fn a_mapping_is_stale_once_its_address_is_exported_anew() {
    let anew = "p: free a ze\np: alloc a 4096 ze\np: get a -> i ze";
    assert_eq!(stale(&format!("{anew}\nc: copy m + 4095 sized 1 ze")), ["stale-mapping"]);
    // The driver keeps the old memory, and nothing shows that the consumer should have been told.
    assert!(stale("p: free a ze\nc: copy m sized 64 ze").is_empty());
    assert!(stale("p: free a ze\np: alloc a 4096 ze\nc: copy m sized 64 ze").is_empty());
    assert!(stale(&format!("c: copy m sized 64 ze\n{anew}")).is_empty());
    assert!(stale(&format!("{anew}\nc: alloc b 64 ze\nc: copy b sized 64 ze")).is_empty());
}

/// Imported physical memory that is mapped at `w` in `c`, after its owner `p` had it at `v`, and what follows. Calls of
/// CUDA.
fn replaced(steps: &str) -> Vec<(&'static str, Severity)> {
    let begin = "p: physical m ipc\np: map m -> v\np: get-physical m -> h\nc: open-physical h -> o\nc: map o -> w\nc: copy w sized 64";
    let end = "c: host-waits\nc: unmap w\nc: close-physical o\np: put-physical h";
    let found = scenarios::play(&format!("{begin}\n{steps}\n{end}"));
    let found = found.iter().filter(|finding| finding.rule.code == "stale-mapping");
    found.map(|finding| (finding.rule.code, finding.severity)).collect()
}

#[test]
fn memory_that_its_owner_has_replaced_at_its_address_is_stale() {
    let anew = "p: unmap v\np: physical n ipc\np: map n -> v";
    let read = "c: copy w + 4095 sized 1";
    assert_eq!(replaced(&format!("{anew}\n{read}")), [("stale-mapping", Severity::Note)]);
    assert_eq!(
        replaced(&format!("{anew}\n{read}\np: unmap v\np: map m -> v\n{read}")),
        [("stale-mapping", Severity::Note)]
    );
    // It is not read again, or the owner has it elsewhere, or nothing else.
    assert_eq!(replaced(anew), []);
    assert_eq!(replaced(&format!("p: unmap v\n{read}")), []);
    assert_eq!(replaced(&format!("p: unmap v\np: map m -> v\n{read}")), []);
    assert_eq!(replaced(&format!("p: unmap v\np: map m -> x\np: physical n ipc\np: map n -> v\n{read}")), []);
    // The owner hands it over: it was not read before.
    let handed = "p: physical a ipc\np: map a -> y\np: get-physical a -> g\np: unmap y\np: physical b ipc\np: map b -> y\n\
                  c: open-physical g -> i\nc: map i -> z\nc: copy z sized 64\nc: host-waits\nc: copy z sized 64\nc: host-waits\n\
                  c: unmap z\nc: close-physical i\np: put-physical g";
    assert_eq!(replaced(handed), []);
}
