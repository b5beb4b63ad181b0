//! Unauthorized, malformed and excessive requests are refused.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use urscope_command::view::perfetto::Copy;

use super::client::{Answer, Client};
use super::{Shown, VIOLATION};

/// The response reveals nothing, and closes the connection.
fn assert_nothing(answer: &Answer, what: &str) {
    assert_eq!((answer.status, answer.text().as_str()), (404, ""), "{what}");
    assert_eq!(answer.header("connection"), Some("close"), "{what}");
    assert_guarded(answer, what);
}

/// The security headers are those of every response.
fn assert_guarded(answer: &Answer, what: &str) {
    let policy = answer.header("content-security-policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{what}: {policy}");
    assert!(policy.ends_with("base-uri 'none'; form-action 'none'; frame-ancestors 'none'"), "{what}: {policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{what}: {name}");
    }
    // What is kept is asked for again, by its content.
    let cached = answer.header("etag").map_or("no-store", |_| "private, no-cache");
    assert_eq!(answer.header("cache-control"), Some(cached), "{what}");
    for name in ["access-control-allow-origin", "cross-origin-opener-policy", "set-cookie", "server"] {
        assert_eq!(answer.header(name), None, "{what}: {name}");
    }
}

fn assert_refused(answer: &Answer, status: u16, why: &str, what: &str) {
    assert_eq!(answer.status, status, "{what}: {}", answer.text());
    let error: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(error["error"].as_str().unwrap().contains(why), "{what}: {error}");
    assert_guarded(answer, what);
}

#[test]
fn requests_without_the_token_get_an_empty_404() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let token = &client.token;
    for path in [
        "/".into(),
        "/index.html".into(),
        "/api/check".into(),
        "/0000000000000000000000000000000/".into(),
        format!("/{}/", &token[1..]),
        format!("/{token}0/"),
        format!("/{}", token.to_uppercase() + "X"),
        format!("//{token}/"),
        format!("/x/../{token}/"),
        format!("/./{token}/"),
        format!("/%{:x}{}/", token.as_bytes()[0], &token[1..]),
    ] {
        assert_nothing(&client.ask(&format!("GET {path}"), &[]), &path);
    }
    assert_nothing(&client.ask("POST /", &["Content-Length: 0"]), "POST");
    assert_nothing(&client.raw("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.0");
    assert_nothing(&client.raw("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), "another host");
}

#[test]
fn unknown_and_malformed_paths_get_an_empty_404() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let paths = "../ .. ../../etc/passwd /etc/passwd %2e%2e/ ..%2f %2e%2e%2fCargo.toml ..\\ %5c // ./ x/../ \
                 %69ndex.html index.html%00 index.html/ index.html;x INDEX.HTML README.md api api/ api/check/ \
                 api//check api/../api/check api/%63heck api/Check api/check.json assets.rs . ~ *";
    for path in paths.split(' ') {
        assert_nothing(&client.get(path), path);
    }
    let long = "x".repeat(4000);
    assert_nothing(&client.get(&long), "a long path");
    assert_nothing(&client.get(&format!("api/check?{long}")), "a long query");
}

#[test]
fn proxy_requests_are_refused() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let Client { address, token } = client;
    for line in [
        format!("GET http://{address}/{token}/"),
        format!("GET http://evil.example/{token}/"),
        format!("CONNECT {address}"),
        "OPTIONS *".into(),
    ] {
        assert_nothing(&client.ask(&line, &[]), &line);
    }
}

#[test]
fn foreign_host_names_are_refused() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let path = format!("/{}/", client.token);
    let port = client.address.port();
    let hosts = |hosts: &[String]| {
        let hosts: String = hosts.iter().flat_map(|host| ["Host: ", host.as_str(), "\r\n"]).collect();
        client.raw(&format!("GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"))
    };
    for host in [
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("evil.example@127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        format!("0.0.0.0:{port}"),
        "127.0.0.1".into(),
        "127.0.0.1:".into(),
        "127.0.0.1:x".into(),
        "127.0.0.1:+80".into(),
        "127.0.0.1:99999".into(),
        String::new(),
    ] {
        assert_refused(&hosts(std::slice::from_ref(&host)), 403, "expected the Host 127.0.0.1 or localhost", &host);
    }
    assert_refused(&hosts(&[]), 403, "found none", "no host");
    assert_refused(&client.raw(&format!("GET {path} HTTP/1.0\r\n\r\n")), 403, "found none", "HTTP/1.0");
    let two = [format!("127.0.0.1:{port}"), "evil.example".into()];
    assert_refused(&hosts(&two), 403, "found several", "two hosts");
    // The port may be forwarded from another machine.
    for host in
        [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "LocalHost:8080".into(), "127.0.0.1:1".into()]
    {
        assert_eq!(hosts(std::slice::from_ref(&host)).status, 200, "{host}");
    }
}

#[test]
fn requests_from_other_pages_are_refused() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let port = client.address.port();
    let ask = |headers: &[&str]| client.ask(&format!("GET /{}/api/check", client.token), headers);
    for origin in [
        "http://evil.example".into(),
        "null".into(),
        format!("https://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        "http://127.0.0.1:1".into(),
        "http://127.0.0.1".into(),
        String::new(),
    ] {
        assert_refused(&ask(&[&format!("Origin: {origin}")]), 403, "of another origin", &origin);
    }
    let ours = format!("Origin: http://127.0.0.1:{port}");
    assert_eq!(ask(&[&ours]).status, 200);
    assert_refused(&ask(&[&ours, "Origin: http://evil.example"]), 403, "of another origin", "two origins");
    for site in ["cross-site", "same-site", "x"] {
        let header = format!("Sec-Fetch-Site: {site}");
        assert_refused(&ask(&[&header, "Sec-Fetch-Mode: no-cors"]), 403, "of another site", site);
        assert_refused(&ask(&[&header]), 403, "of another site", site);
        assert_eq!(ask(&[&header, "Sec-Fetch-Mode: navigate"]).status, 200, "a link was followed");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(ask(&[&format!("Sec-Fetch-Site: {site}"), "Sec-Fetch-Mode: cors"]).status, 200, "{site}");
    }
}

#[test]
fn only_get_and_head_are_allowed() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let answer = client.ask(&format!("{method} /{}/", client.token), &["Content-Length: 0"]);
        assert_refused(&answer, 405, "expected GET or HEAD", method);
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    let head = client.ask(&format!("HEAD /{}/api/run", client.token), &[]);
    assert_eq!((head.status, head.text().as_str()), (200, ""));
    assert_guarded(&head, "HEAD");
}

#[test]
fn all_answers_have_the_security_headers() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    for path in ["", "index.html", "api/run", "api/check", "api/timeline", "api/handle?name=x"] {
        assert_guarded(&client.get(path), path);
    }
}

#[test]
fn requests_that_are_too_big_are_refused() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let big = format!("X: {}", "x".repeat(64 << 10));
    assert_eq!(client.ask("GET /", &[&big]).status, 431);
    let many: Vec<_> = (0..100).map(|number| format!("X{number}: x")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(client.ask("GET /", &many).status, 431);
    assert!(matches!(client.ask(&format!("GET /{}", "x".repeat(100_000)), &[]).status, 414 | 431));
    for garbage in
        ["\x16\x03\x01\x02\0\x01\0\x01", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"]
    {
        assert!(matches!(client.raw(garbage).status, 0 | 400 | 404), "{garbage:?}");
    }
    assert_eq!(client.get("api/run").status, 200);
}

#[test]
fn slow_clients_do_not_delay_others() {
    // The timeline of this run is larger than the socket buffers.
    let Shown { client, .. } = &Shown::new(&"p: get a -> h\np: put h\n".repeat(20_000));
    client.json("api/run");
    let silent: Vec<TcpStream> = (0..20).map(|_| client.connect()).collect();
    let mut begun: Vec<TcpStream> = (0..20).map(|_| client.connect()).collect();
    for stream in &mut begun {
        stream.write_all(b"GET / HTT").unwrap();
    }
    let mut stalled: Vec<TcpStream> = (0..10).map(|_| client.connect()).collect();
    let request =
        format!("GET /{}/api/timeline HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", client.token, client.address);
    for stream in &mut stalled {
        stream.write_all(request.as_bytes()).unwrap();
    }
    for question in ["api/check", "api/handle?name=1", "api/calls?sort=took", "api/lives"] {
        assert!(matches!(client.get(question).status, 200 | 404), "{question}");
    }
    // These answers still complete, so the requests above did not wait for the server's write timeout.
    for stream in &mut stalled {
        serde_json::from_slice::<serde::de::IgnoredAny>(&Answer::read(stream).body).unwrap();
    }
    drop((silent, begun));
}

#[test]
fn idle_connections_are_closed_to_make_room_for_others() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let mut crowd: Vec<TcpStream> = (0..100).map(|_| client.connect()).collect();
    for stream in crowd.iter_mut().step_by(2) {
        drop(stream.write_all(b"GET /"));
    }
    assert_eq!(client.get("api/check").status, 200);
    assert_eq!(crowd[1].read(&mut [0; 1]).unwrap(), 0, "it was closed");
}

/// Another user of the machine can connect, and knows no word.
#[test]
fn strangers_have_a_place_for_a_second_and_never_the_last_one() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    // More than the server has places for, and all of them stay as long as they are let.
    for _ in 0..3 {
        let mut strangers: Vec<TcpStream> = (0..200).map(|_| client.connect()).collect();
        for (number, stream) in strangers.iter_mut().enumerate() {
            drop(stream.write_all(["", "GET /", "GET /wrong/api/run HTTP/1.1\r\n"][number % 3].as_bytes()));
        }
        assert_eq!(client.get("api/check").status, 200);
        for stream in &mut strangers {
            assert!(!matches!(stream.read(&mut [0; 1]), Ok(1)), "a stranger gets an answer");
        }
    }
}

/// A connection that has sent a word goes on when strangers take all of their places.
#[test]
fn a_known_connection_is_not_closed_for_strangers() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    let mut known = client.connect();
    let request = format!("GET /{}/api/check HTTP/1.1\r\nHost: {}\r\n\r\n", client.token, client.address);
    known.write_all(request.as_bytes()).unwrap();
    assert_eq!(known.read(&mut [0; 1]).unwrap(), 1);
    let crowd: Vec<TcpStream> = (0..600).map(|_| client.connect()).collect();
    known.write_all(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answers = Vec::new();
    known.read_to_end(&mut answers).unwrap();
    assert_eq!(String::from_utf8_lossy(&answers).matches("HTTP/1.1 200 OK").count(), 1, "the second answer");
    drop(crowd);
}

#[test]
fn only_the_loopback_address_of_the_printed_name_answers() {
    let Shown { client, .. } = &Shown::new(VIOLATION);
    assert!(client.address.ip().is_loopback());
    assert!(
        TcpStream::connect(("127.0.0.2", client.address.port())).is_err(),
        "it listens on more than the loopback address 127.0.0.1"
    );
    assert!(TcpStream::connect(("::1", client.address.port())).is_err());
}

#[test]
fn the_copy_of_perfetto_is_another_origin_and_reads_only_the_timeline() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "perfetto").unwrap();
    let shown = Shown::with(VIOLATION, Some(Copy::open(folder.path()).unwrap()));
    let client = &shown.client;
    let run = client.json("api/run");
    let url = run["perfetto"]["url"].as_str().unwrap();
    assert_eq!(run["perfetto"]["local"], true);
    assert!(url.starts_with(&format!("http://localhost:{}/", client.address.port())), "{url}");
    let copy = Client::at(url);
    assert_ne!(copy.token, client.token);
    let by_name = |client: &Client, name: &str, path: &str| {
        let token = &client.token;
        let port = client.address.port();
        client.raw(&format!("GET /{token}/{path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"))
    };
    let page = by_name(&copy, "localhost", "");
    assert_eq!((page.status, page.text().as_str()), (200, "perfetto"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("'wasm-unsafe-eval'") && policy.contains("connect-src 'self' data: blob:"), "{policy}");
    let timeline = by_name(&copy, "localhost", "urscope-timeline.json");
    assert_eq!(timeline.body, client.get("api/timeline").body);
    for path in ["api/check", "api/run", "index.html/", "../x", "secret"] {
        assert_eq!(by_name(&copy, "localhost", path).status, 404, "{path}");
    }
    // Each is served under its own name only, so that neither can read the other.
    for (client, wrong, right) in [(client, "localhost", "127.0.0.1"), (&copy, "127.0.0.1", "localhost")] {
        let sent_on = by_name(client, wrong, "api/check");
        let there = format!("http://{right}:{}/{}/api/check", client.address.port(), client.token);
        assert_eq!((sent_on.status, sent_on.header("location")), (303, Some(there.as_str())));
    }
}
