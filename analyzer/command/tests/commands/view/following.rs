//! The page follows a run that grows.

use std::io::{BufRead as _, BufReader, Write as _};
use std::time::{Duration, Instant};
use std::{fs, net::TcpStream};

use serde_json::{Value, json};

use super::{Shown, VIOLATION, client::Client, serve};
use crate::traces;

/// The stream of server-sent events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn connect(client: &Client) -> Self {
        let mut stream = client.connect();
        write!(stream, "GET /{}/api/events HTTP/1.1\r\nHost: {}\r\n\r\n", client.token, client.address).unwrap();
        Self(BufReader::new(stream))
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream has ended");
        }
        serde_json::from_str(line.trim_start_matches("data: ").trim()).unwrap()
    }
}

/// Waits for a number of analyses.
fn wait_for(client: &Client, generation: u64) -> Value {
    let start = Instant::now();
    loop {
        let run = client.json("api/run");
        if run["generation"].as_u64().unwrap() >= generation {
            return run;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "generation {generation} was not reached: {run}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn new_traces_are_analyzed_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let view = serve(folder.path(), None);
    let client = Client::new(&view);
    assert_eq!(wait_for(&client, 1)["calls"], 0);
    assert_eq!(client.json("api/check")["verdict"], "not-judged");
    let mut events = Events::connect(&client);
    assert_eq!(events.next(), json!({"generation": 1, "running": false}));
    traces::put(folder.path(), &traces::files(VIOLATION));
    assert_eq!(events.next()["generation"], 2);
    // The analysis may have started when only some of the files existed.
    let start = Instant::now();
    while client.json("api/check")["verdict"] != "findings" {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(client.json("api/run")["calls"], 6);
}

#[test]
fn a_failed_analysis_keeps_the_earlier_results() {
    let shown = Shown::new(VIOLATION);
    let check = shown.client.get("api/check").body;
    let broken = shown.path().join("urscope-x-9-9.json");
    fs::write(&broken, "\0").unwrap();
    let run = wait_for(&shown.client, 2);
    assert!(run["error"].as_str().unwrap().contains("urscope-x-9-9.json"), "{run}");
    assert_eq!((&run["calls"], shown.client.get("api/check").body), (&json!(6), check));
    fs::remove_file(broken).unwrap();
    assert_eq!(wait_for(&shown.client, 3)["error"], json!(null));
}

#[test]
fn a_server_that_is_dropped_closes_its_connections() {
    let Shown { view, client, folder } = Shown::new(VIOLATION);
    let mut events = Events::connect(&client);
    events.next();
    drop(view);
    assert!(TcpStream::connect(client.address).is_err());
    let mut line = String::new();
    while events.0.read_line(&mut line).unwrap_or_default() > 0 {}
    drop(folder);
}
