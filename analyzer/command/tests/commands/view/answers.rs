//! The answers equal the output of the command, and the tables are from the same analysis.

use std::process::Command;

use serde_json::{Value, json};
use urscope_analyzer::Options;
use urscope_command::export;
use urscope_command::view::{Settings, Subject, View};

use super::{Shown, VIOLATION, client::Client, serve};
use crate::traces;

/// What the command prints.
fn printed(arguments: &[&str], shown: &Shown) -> Vec<u8> {
    Command::new(env!("CARGO_BIN_EXE_urscope")).args(arguments).arg(shown.path()).output().unwrap().stdout
}

#[test]
fn answers_are_byte_for_byte_what_the_command_prints() {
    for scenario in [VIOLATION, "", "a: get p -> h\nb@2: get p -> h\nb@2: put h"] {
        let shown = &Shown::new(scenario);
        // Without traces, the commands that answer questions refuse to; the page waits for them.
        let questions = if scenario.is_empty() { &["check"][..] } else { &["check", "stats", "holders"] };
        for question in questions {
            let answer = shown.client.get(&format!("api/{question}"));
            assert_eq!(
                answer.text(),
                String::from_utf8(printed(&[question, "--format", "json"], shown)).unwrap(),
                "{scenario}"
            );
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.header("urscope-generation"), Some("1"));
        }
        let mut timeline = Vec::new();
        export::export(&[shown.path()], &Options::default(), export::Form::Chrome, &mut timeline).unwrap();
        assert_eq!(shown.client.get("api/timeline").body, timeline);
    }
    let shown = &Shown::new(VIOLATION);
    let bytes = shown.client.json("api/check")["findings"][0]["fingerprint"].as_str().unwrap().to_owned();
    let history = shown.client.get(&format!("api/handle?name={bytes}"));
    assert_eq!(history.body, printed(&["handle", "--format", "json", &bytes], shown));
    let held = shown.client.get("api/holders?at_ns=3000");
    assert_eq!(held.body, printed(&["holders", "--format", "json", "--at", "3us"], shown));
    assert_ne!(held.body, shown.client.get("api/holders").body);
}

#[test]
fn questions_that_cannot_be_answered_are_refused() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    for (path, status, why) in [
        ("api/handle", 400, "name"),
        ("api/handle?name=x", 400, "expected a fingerprint or an address"),
        ("api/handle?name=0x1", 404, "no handle has the fingerprint"),
        ("api/holders?at_ns=x", 400, "at_ns"),
        ("api/holders?at_ns=99999999999999", 400, "ask for an earlier moment"),
        ("api/calls?sort=size", 400, "unknown variant `size`, expected one of `time`"),
        ("api/calls?process=x", 400, "expected a number as process"),
        ("api/calls?around=0", 400, "around=PROCESS:CALL"),
        ("api/calls?around=0:99", 404, "no call 99 of process 0"),
        ("api/lives?offset=-1", 400, "offset"),
    ] {
        let answer = client.get(path);
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, status, "{path}: {error}");
        assert!(error["error"].as_str().unwrap().contains(why), "{path}: {error}");
    }
}

#[test]
fn the_overview_describes_the_run() {
    let shown = &Shown::new(VIOLATION);
    let run = shown.client.json("api/run");
    let check = shown.client.json("api/check");
    assert_eq!((&run["generation"], &run["running"], &run["error"]), (&json!(1), &json!(false), &json!(null)));
    assert_eq!(run["title"], shown.path().to_str().unwrap());
    assert_eq!(run["perfetto"], json!({"url": "https://ui.perfetto.dev", "local": false}));
    assert_eq!((&run["calls"], &run["lives"], &run["limits"]), (&json!(6), &json!(2), &json!([])));
    let [producer, consumer] = run["processes"].as_array().unwrap().as_slice() else { panic!("{run}") };
    assert_eq!(
        (&producer["index"], &producer["pid"], &producer["began_ns"]),
        (&json!(0), &check["processes"][0]["pid"], &json!(0))
    );
    assert_eq!((&consumer["calls"], &consumer["ended"]), (&json!(2), &json!("exited")));
    assert!(consumer["began_ns"].as_u64() < consumer["ended_ns"].as_u64());
    assert_eq!(
        run["last_ns"],
        *run["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["ended_ns"])
            .max_by_key(|end| end.as_u64())
            .unwrap()
    );
}

#[test]
fn lifetimes_are_sent_as_columns_with_their_findings() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let lives = client.json("api/lives");
    let check = client.json("api/check");
    let columns = &lives["columns"];
    assert_eq!((&lives["total"], &columns["lane"], &columns["process"]), (&json!(2), &json!([0, 1]), &json!([0, 1])));
    assert_eq!(columns["export"][0], columns["export"][1]);
    let finding = &check["findings"][0];
    assert_eq!(columns["fingerprint"], json!([finding["fingerprint"], finding["fingerprint"]]));
    assert_eq!(columns["findings"], json!([[0], [0]]));
    let name = |of: &str, index: usize| {
        &lives[of][columns[if of == "kinds" { "kind" } else { "how" }][index].as_u64().unwrap() as usize]
    };
    assert_eq!((name("kinds", 0), name("kinds", 1)), (&json!("memory handle"), &json!("mapping")));
    assert_eq!((name("how", 0), name("how", 1)), (&json!("urIPCPutMemHandleExp"), &json!("urIPCCloseMemHandleExp")));
    // A lifetime ends when the put or the close begins.
    for (index, last) in [(0, "urIPCPutMemHandleExp"), (1, "urIPCCloseMemHandleExp")] {
        let call = &client.json(&format!("api/calls?function={last}"))["rows"][0];
        assert_eq!(columns["to_ns"][index], call["from_ns"]);
        assert!(columns["from_ns"][index].as_u64() < columns["to_ns"][index].as_u64());
    }
    let second = client.json("api/lives?offset=1&limit=1");
    assert_eq!((&second["offset"], &second["columns"]["id"]), (&json!(1), &json!([columns["id"][1]])));
    assert_eq!(client.json("api/lives?offset=9")["columns"]["id"], json!([]));
}

#[test]
fn lifetimes_have_their_memory_and_are_also_sent_packed() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let columns = client.json("api/lives")["columns"].clone();
    let call = |function: &str| client.json(&format!("api/calls?function={function}"))["rows"][0].clone();
    // From the begin of the allocation to the return of the free.
    let allocation = call("urUSMDeviceAlloc");
    let free = call("urUSMFree");
    let returned = free["from_ns"].as_u64().unwrap() + free["took_ns"].as_u64().unwrap();
    assert_eq!(columns["allocated_ns"], json!([allocation["from_ns"], null]));
    assert_eq!(columns["freed_ns"], json!([returned, null]));

    let bytes = client.get("api/lives.bin").body;
    let word = |at: usize| <[u8; 8]>::try_from(&bytes[at..at + 8]).unwrap();
    let length = u64::from_le_bytes(word(0)) as usize;
    let head: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    assert_eq!(
        (&head["total"], &head["count"], &head["findings"]),
        (&json!(2), &json!(2), &json!([[0, [0]], [1, [0]]]))
    );
    let float = |column: usize, row: usize| f64::from_le_bytes(word(8 + length + (column * 2 + row) * 8));
    for (column, name) in [(0, "from_ns"), (1, "to_ns"), (2, "allocated_ns"), (3, "freed_ns"), (4, "export")] {
        for row in 0..2 {
            let sent = Some(float(column, row)).filter(|value| value.is_finite());
            assert_eq!(sent.map(|value| value as u64), columns[name][row].as_u64(), "{name} {row}");
        }
    }
    // Six columns of eight bytes, addresses, fingerprints, two columns of four bytes and three of one byte.
    assert_eq!(bytes.len(), 8 + length + 2 * (8 * 8 + 2 * 4 + 3));
}

#[test]
fn findings_are_sentences_and_rules_are_explained() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let run = client.json("api/run");
    let text = run["sentences"][0]["text"].as_str().unwrap();
    assert!(text.contains(" freed 4 KiB while ") && text.ends_with(" had it open"), "{text}");
    assert!(run["again"].as_str().unwrap().starts_with("urscope view /"), "{run}");
    let page = client.json("api/rule?name=freed-while-open");
    assert!(page["text"].as_str().unwrap().contains("# Why it is bad"), "{page}");
    assert_eq!(client.get("api/rule?name=no-such-rule").status, 404);
}

/// No request names a file, and a stack without a source line gives none.
#[test]
fn source_is_asked_for_by_the_finding_only() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let none = client.json("api/source?finding=0");
    assert_eq!(none, json!({"none": "no source line is known here; compile with -g"}));
    assert_eq!(client.json("api/source?finding=99"), none);
    for query in ["", "?finding=-1", "?file=/etc/passwd", "?finding=/etc/passwd"] {
        assert_eq!(client.get(&format!("api/source{query}")).status, 400, "{query}");
    }
}

/// The page relies on the order, because it searches a moment by bisection.
#[test]
fn lifetimes_are_sent_in_the_order_in_which_they_began() {
    let later: Vec<_> = (1..100).map(|i| format!("p: get a -> h{i}\np: put h{i}")).collect();
    let scenario = format!("p: alloc a 64\np: get a -> h\n{}\np: put h", later.join("\n"));
    let Shown { client, .. } = &Shown::from_files(&traces::one_late(&scenario), None);
    let columns = client.json("api/lives")["columns"].clone();
    let from: Vec<_> = columns["from_ns"].as_array().unwrap().iter().map(|ns| ns.as_u64().unwrap()).collect();
    assert!(from.len() == 100 && from.is_sorted(), "{from:?}");
    let ends = columns["to_ns"].as_array().unwrap().iter().zip(&from);
    assert_eq!(
        ends.filter(|(to, from)| to.as_u64().is_some_and(|to| to > **from)).count(),
        100,
        "each has its own end"
    );
}

#[test]
fn live_objects_have_no_end() {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let start = urscope_schema::host::proc_stat::ProcStat::parse(&stat).unwrap().start;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let files = traces::files_with("p: get a -> h\np: running", |header, _| {
        (header.pid, header.start, header.boot_id) = (std::process::id(), start, boot.clone());
    });
    let Shown { client, .. } = &Shown::from_files(&files, None);
    assert_eq!(client.json("api/run")["running"], true);
    let columns = &client.json("api/lives")["columns"];
    assert_eq!((&columns["to_ns"], &columns["how"]), (&json!([null]), &json!([null])));
}

#[test]
fn calls_are_found_sorted_and_shown_in_pages() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let all = client.json("api/calls");
    assert_eq!((&all["total"], &all["matching"], &all["offset"]), (&json!(6), &json!(6), &json!(0)));
    let rows = all["rows"].as_array().unwrap();
    let bytes = &client.json("api/check")["findings"][0]["fingerprint"];
    assert_eq!(rows[1]["function"], "urIPCGetMemHandleExp");
    assert_eq!((&rows[1]["fingerprint"], &rows[1]["result"]), (bytes, &json!("UR_RESULT_SUCCESS (0)")));
    let of_it = client.json(&format!("api/calls?fingerprint={}", bytes.as_str().unwrap()));
    let functions: Vec<_> =
        of_it["rows"].as_array().unwrap().iter().map(|row| row["function"].as_str().unwrap()).collect();
    let expected = ["urIPCGetMemHandleExp", "urIPCOpenMemHandleExp", "urIPCPutMemHandleExp", "urIPCCloseMemHandleExp"];
    assert_eq!(functions, expected, "also those whose record has no fingerprint");
    let around = client.json("api/calls?around=1:2&limit=1");
    assert_eq!(
        (&around["matching"], &around["rows"][0]["call"], &around["rows"][0]["process"]),
        (&json!(2), &json!(2), &json!(1))
    );
    let searched = client.json("api/calls?q=free&sort=took&desc=1&ipc=0");
    assert_eq!((&searched["matching"], &searched["rows"][0]["function"]), (&json!(1), &json!("urUSMFree")));
}

#[test]
fn malicious_names_are_escaped() {
    let name = "/app/\u{1b}[31m\u{202e}\u{7f}<b>\u{85}";
    let files = traces::files_with(VIOLATION, |header, _| header.executable = name.into());
    let Shown { client, .. } = &Shown::from_files(&files, None);
    for path in ["api/run", "api/check", "api/stats", "api/holders", "api/timeline"] {
        let text = client.get(path).text();
        assert!(!text.chars().any(|c| c != '\n' && urscope_analyzer::plain::is_unprintable(c)), "{path}");
    }
    assert_eq!(
        client.json("api/run")["processes"][0]["executable"],
        name,
        "JSON escapes are decoded to the original name"
    );
}

#[test]
fn a_failed_analysis_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("urscope-a-1-1.json"), "\0").unwrap();
    let view = serve(folder.path(), None);
    let client = Client::new(&view);
    let run = client.json("api/run");
    assert!(run["error"].as_str().unwrap().contains("urscope-a-1-1.json"), "{run}");
    for path in ["api/check", "api/calls", "api/lives", "api/timeline"] {
        let answer = client.get(path);
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.text().contains("urscope-a-1-1.json"), "{}", answer.text());
    }
}

#[test]
fn a_port_that_is_in_use_is_reported() {
    let shown = Shown::new(VIOLATION);
    let subject = Subject::named(vec![shown.path()], Options::default());
    let port = shown.client.address.port();
    let refused = View::open(subject, Settings { port, ..Settings::default() }).err().unwrap();
    assert!(refused.contains(&format!("127.0.0.1:{port} cannot be listened on")), "{refused}");
}
