//! Memory of processes that have ended: who keeps it, for how long, and whether it grows from process to process.

use urscope_rules::Severity::{self, Note, Warning};

use crate::scenarios;

/// What `exporter-gone` finds in these steps.
fn found(scenario: &str) -> Vec<(Severity, String)> {
    let found = scenarios::play(scenario);
    let of_rule = found.into_iter().filter(|finding| finding.rule.code == "exporter-gone");
    of_rule.map(|finding| (finding.severity, finding.message)).collect()
}

fn severities(scenario: &str) -> Vec<Severity> {
    found(scenario).into_iter().map(|(severity, _)| severity).collect()
}

/// A client that is killed after its memory was opened, which is later than its last call.
const KILLED: &str = "client: alloc a 4096\nclient: get a -> h\nclient: killed\nserver: open h -> m\nclient: gone\n";

#[test]
fn memory_that_is_opened_after_the_last_call_of_a_killed_process_is_its_memory() {
    let kept = found(&format!("{KILLED}server: exit"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].0, Note);
    for part in
        ["client (pid 100) was killed", "of 4 KiB (4,096 bytes) open as", "and keeps it to its own end, 2 us later"]
    {
        assert!(kept[0].1.contains(part), "{}", kept[0].1);
    }
    let running = found(&format!("{KILLED}server: running"));
    assert!(running[0].1.contains("and still has it open"), "{running:?}");
    // It was opened twice, and is open still.
    assert_eq!(severities(&format!("{KILLED}server: open h -> m\nserver: close m\nserver: exit")), [Note]);
    assert_eq!(severities(&format!("{KILLED}server: open h -> m\nserver: close m\nserver: close m")), []);
    // Nobody has seen when it was killed.
    assert_eq!(severities(&KILLED.replace("client: gone\n", "")), []);
}

#[test]
fn a_process_has_a_second_to_notice_a_kill() {
    assert_eq!(severities(&format!("{KILLED}server: close m")), []);
    let late = found(&format!("{KILLED}server: alloc b 64 takes 1500\nserver: close m"));
    assert!(late[0].1.contains("and closes it 1.5 s later"), "{late:?}");
    // Who is killed, too, cannot close it.
    assert_eq!(severities(&format!("{KILLED}server: seen\nserver: killed")), []);
    assert_eq!(severities(&format!("{KILLED}server: alloc b 64 takes 1500\nserver: killed")), [Note]);
}

#[test]
fn the_order_of_two_ends_that_were_seen_together_is_not_proved() {
    let together = "client: alloc a 4096\nclient: get a -> h\nclient: killed\nserver: open h -> m\nclient: seen\nserver: exit\nclient: gone";
    let found = found(together);
    assert!(found[0].1.ends_with("; not proved, because that process may have ended before"), "{found:?}");
    let last = together.replace("client: seen\nserver: exit", "server: exit\nclient: seen");
    assert_eq!(severities(&last), []);
}

#[test]
fn what_ends_with_its_context_is_not_kept() {
    let opened = "client: alloc a 4096 cuda\nclient: get a -> h cuda\nclient: killed\nserver: context x cuda\nserver: open h -> m in x cuda\nclient: gone\n";
    assert_eq!(severities(&format!("{opened}server: release x cuda\nserver: exit")), []);
    assert_eq!(severities(&format!("{opened}server: exit")), [Note]);
}

/// Clients one after the other, each with so many bytes. `then` happens after the end of each.
fn clients(count: usize, bytes: u64, end: &str, then: &str) -> String {
    let one = format!("c$: alloc a$ {bytes}\nc$: get a$ -> h$\n{end}{then}");
    format!("{count} times\n{one}\nend\n")
}

const KILL: &str = "c$: killed\nserver: open h$ -> m$\nc$: gone\n";
const EXIT: &str = "server: open h$ -> m$\nc$: exit\n";

#[test]
fn memory_that_is_kept_from_process_to_process_is_a_warning_by_bytes_and_time() {
    for end in [KILL, EXIT] {
        let growth = found(&clients(3, 32 << 20, end, ""));
        assert_eq!(growth.len(), 1, "{growth:?}");
        assert_eq!(growth[0].0, Warning, "{growth:?}");
        for part in [
            "keeps 96 MiB (100,663,296 bytes) of 3 ended processes open, in 3 mappings, for up to ",
            "the memory of 3 of them",
        ] {
            assert!(growth[0].1.contains(part), "{}", growth[0].1);
        }
        // Two of them may be a restart, and a thousand with little memory are no harm.
        assert_eq!(severities(&clients(2, 1 << 30, end, "")), [Note]);
        assert_eq!(severities(&clients(1000, 4096, end, "")), [Note]);
    }
    // It was there when its memory was opened, whatever was observed.
    let early = KILL.replace("server: open h$ -> m$\nc$: gone\n", "c$: gone\nserver: open h$ -> m$\n");
    let growth = found(&clients(3, 32 << 20, &early, ""));
    assert!(growth[0].1.contains("the memory of 3 of them"), "{growth:?}");
    // It is closed after a while.
    let closed =
        |takes: u32| clients(3, 32 << 20, KILL, &format!("server: alloc b 64 takes {takes}\nserver: close m$"));
    assert_eq!(severities(&closed(100)), []);
    assert_eq!(severities(&closed(5000)), [Note]);
    assert_eq!(severities(&clients(3, 32 << 20, KILL, "server: close m$")), []);
    let late = [0, 1, 2].map(|n| format!("server: close m{n}\n")).concat();
    let later = |takes: u32| format!("{}server: alloc b 64 takes {takes}\n{late}", clients(3, 32 << 20, KILL, ""));
    assert_eq!((severities(&later(5000)), severities(&later(61_000))), (vec![Note], vec![Warning]));
}

/// The ranks of a job open each other's memory, never close it, and end one after the other.
#[test]
fn memory_that_is_opened_before_the_first_end_does_not_grow() {
    let ranks = |line: &str| (0..8).map(|n| line.replace('$', &n.to_string())).collect::<String>();
    let begin = ranks("c$: alloc a$ 1073741824\nc$: get a$ -> h$\n");
    let opens = ranks("server: open h$ -> m$\n");
    assert_eq!(severities(&format!("{begin}{opens}{}", ranks("c$: exit\n"))), [Note]);
    let killed = format!("{begin}{}{opens}{}", ranks("c$: killed\n"), ranks("c$: gone\n"));
    assert_eq!(severities(&killed), [Note]);
}
