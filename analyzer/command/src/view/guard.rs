//! Checks every request before it is routed.
//!
//! A request without a valid word of the [`AccessTokens`] gets an empty 404 response, which reveals nothing. A request
//! with a valid word comes from the user, so its other errors are explained. This module must never read a body or open
//! a file.

use axum::body::Body;
use axum::http::header::{ALLOW, CONNECTION, HOST, LOCATION, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::answers::Refusal;
use super::tokens::{AccessTokens, Opens};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The longest accepted request target, in bytes.
const LONGEST_TARGET: usize = 2048;

/// A request that passed all checks.
#[derive(Debug)]
pub(super) struct Admitted {
    /// Whether it is for the copy of the Perfetto UI, and not for the page.
    pub(super) perfetto: bool,
    /// The path after the word and the `/` behind it.
    pub(super) path: String,
    pub(super) uri: Uri,
    /// The port in the Host header. It differs from the port of the server if the port is forwarded.
    pub(super) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The word is missing or wrong, or the path is malformed.
    NotFound,
    /// The host or the origin is wrong. The text explains why.
    Wrong(String),
    /// The method is not GET or HEAD. The text explains that.
    Method(String),
    /// The browser is redirected to this location.
    Elsewhere(String),
}

pub(super) fn admit<B>(tokens: &AccessTokens, request: &Request<B>) -> Result<Admitted, Refused> {
    let uri = request.uri();
    let path = uri.path();
    // Absolute URLs are for proxies, and no path of the page contains encoded characters.
    let plain =
        uri.authority().is_none() && !path.contains(['%', '\\']) && !path.contains("//") && !path.contains("..");
    if !plain || path.len() + uri.query().map_or(0, str::len) > LONGEST_TARGET {
        return Err(Refused::NotFound);
    }
    let (word, rest) = match path.strip_prefix('/').unwrap_or_default().split_once('/') {
        Some((word, rest)) => (word, Some(rest)),
        None => (path.get(1..).unwrap_or_default(), None),
    };
    let opens = tokens.try_word(word).ok_or(Refused::NotFound)?;
    let (name, port) = host(request.headers()).map_err(Refused::Wrong)?;
    if *request.method() != Method::GET && *request.method() != Method::HEAD {
        let why = format!("expected GET or HEAD, found {}; nothing here can be changed", request.method());
        return Err(Refused::Method(why));
    }
    check_origin(request.headers(), name, port).map_err(Refused::Wrong)?;
    // To a browser, the two names are different origins, so the copy of the Perfetto UI cannot read the page.
    let perfetto = opens == Opens::Perfetto;
    let right_name = if perfetto { "localhost" } else { "127.0.0.1" };
    let apart = tokens.perfetto().is_some() && !name.eq_ignore_ascii_case(right_name);
    match rest {
        rest if apart => {
            Err(Refused::Elsewhere(format!("http://{right_name}:{port}/{word}/{}", rest.unwrap_or_default())))
        }
        None => Err(Refused::Elsewhere(format!("/{word}/"))),
        Some(rest) => Ok(Admitted { perfetto, path: rest.to_owned(), uri: uri.clone(), port }),
    }
}

/// The name and the port in the Host header. Any other name may resolve to this machine, too (DNS rebinding).
fn host(headers: &HeaderMap) -> Result<(&str, u16), String> {
    let wrong = |found: &str| {
        format!("expected the Host 127.0.0.1 or localhost with a port, found {found}; use the address that was printed")
    };
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| wrong("bytes that are not text"))?,
        (None, _) => return Err(wrong("none")),
        (Some(_), Some(_)) => return Err(wrong("several")),
    };
    let (name, port) = host.split_once(':').ok_or_else(|| wrong(host))?;
    let known = name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost");
    let port =
        Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit())).and_then(|port| port.parse().ok());
    port.filter(|_| known).map(|port| (name, port)).ok_or_else(|| wrong(host))
}

/// Refuses requests from other pages. Following a link from another page is a navigation, and allowed.
fn check_origin(headers: &HeaderMap, name: &str, port: u16) -> Result<(), String> {
    let here = format!("http://{name}:{port}");
    if headers.get_all(ORIGIN).iter().any(|origin| !origin.as_bytes().eq_ignore_ascii_case(here.as_bytes())) {
        return Err(format!("expected a request of {here}, found one of another origin; open the page itself"));
    }
    let is = |name, values: &[&str]| {
        let found = headers.get(name).map(HeaderValue::as_bytes);
        found.is_none_or(|found| values.iter().any(|value| value.as_bytes() == found))
    };
    if is(FETCH_SITE, &["same-origin", "none"]) || (headers.contains_key(FETCH_MODE) && is(FETCH_MODE, &["navigate"])) {
        return Ok(());
    }
    Err(format!("expected a request of {here}, found one of another site; open the page itself"))
}

pub(super) fn nothing() -> Response {
    closing((StatusCode::NOT_FOUND, Body::empty()).into_response())
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::NotFound => nothing(),
            Self::Wrong(why) => closing(Refusal(StatusCode::FORBIDDEN, why).into_response()),
            Self::Method(why) => {
                let refused = Refusal(StatusCode::METHOD_NOT_ALLOWED, why).into_response();
                closing(([(ALLOW, HeaderValue::from_static("GET, HEAD"))], refused).into_response())
            }
            Self::Elsewhere(place) => {
                let place = HeaderValue::from_str(&place).ok();
                let place =
                    place.map(|place| (StatusCode::SEE_OTHER, [(LOCATION, place)], Body::empty()).into_response());
                place.unwrap_or_else(nothing)
            }
        }
    }
}

/// Closes the connection after a refusal.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
