//! A minimal HTTP client that sends requests byte for byte, also malformed ones.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use urscope_command::view::View;

/// The read timeout. It is longer than the time limit for requests of the server.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// The address and the token of a server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(view: &View) -> Self {
        Self::at(&view.url())
    }

    /// Parses a URL of the page.
    pub(crate) fn at(url: &str) -> Self {
        let (address, rest) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let token = rest.split('/').next().unwrap().to_owned();
        Self { address: address.replace("localhost", "127.0.0.1").parse().unwrap(), token }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream
    }

    /// Sends bytes, and reads until the server closes the connection.
    pub(crate) fn raw(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        // The server may refuse and close before it has read everything.
        drop(stream.write_all(request.as_bytes()));
        Answer::read(&mut stream)
    }

    /// Sends a request line and headers, with the correct Host header.
    pub(crate) fn ask(&self, line: &str, headers: &[&str]) -> Answer {
        let headers: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
        self.raw(&format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", self.address))
    }

    /// Gets a path below the token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET /{}/{path}", self.token), &[])
    }

    /// Gets a path below the token, and parses the JSON of a successful response.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }
}

impl Answer {
    /// Reads until the server closes the connection.
    pub(crate) fn read(stream: &mut TcpStream) -> Self {
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{stream:?}: {error}"),
            _ => Self::parse(&answer),
        }
    }

    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
        let mut body = bytes.get(end + 4..).unwrap_or_default().to_vec();
        let answer = Self { status, head, body: Vec::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
            body = joined(&body);
        }
        Self { body, ..answer }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        headers.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Joins the chunks of a body.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
    whole
}
