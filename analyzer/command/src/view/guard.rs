//! Who may ask, and for what: looked at before anything of a request reaches an answer.
//!
//! Whoever does not know a word of the [`AccessTokens`] is told nothing, not even that there is something. Whoever knows it and comes the wrong
//! way is told why, because that is our user. It must never look at a body, and never open a file.

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
        header::{ALLOW, CONNECTION, HOST, LOCATION, ORIGIN},
    },
    response::{IntoResponse, Response},
};

use super::{
    answers::Refusal,
    tokens::{AccessTokens, Opens},
};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The longest request target that is looked at, in bytes.
const LONGEST_TARGET: usize = 2048;

/// A request that may be answered.
#[derive(Debug)]
pub(super) struct Admitted {
    /// Whether it is for the copy of the Perfetto UI, and not for the page.
    pub(super) perfetto: bool,
    /// What it asks for: the path behind the word, with its `/`.
    pub(super) path: String,
    /// What comes behind a `?`.
    pub(super) query: Option<String>,
    /// The port that the browser knows us by: another one than ours where it was forwarded.
    pub(super) port: u16,
}

/// Why a request gets no answer, or another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is a stranger's.
    Stranger,
    /// It came the wrong way.
    Wrong(String),
    /// It wants to do something.
    Method(String),
    /// It is to go there.
    Elsewhere(String),
}

/// Lets a request in.
pub(super) fn admit<B>(tokens: &AccessTokens, request: &Request<B>) -> Result<Admitted, Refused> {
    let uri = request.uri();
    let path = uri.path();
    // A proxy is asked for whole addresses, and we are none. What is encoded in a path is nothing of ours.
    let plain =
        uri.authority().is_none() && !path.contains(['%', '\\']) && !path.contains("//") && !path.contains("..");
    if !plain || path.len() + uri.query().map_or(0, str::len) > LONGEST_TARGET {
        return Err(Refused::Stranger);
    }
    let (word, rest) = match path.strip_prefix('/').unwrap_or_default().split_once('/') {
        Some((word, rest)) => (word, Some(rest)),
        None => (path.get(1..).unwrap_or_default(), None),
    };
    // A ticket is gone once it was shown: it is not shown in vain.
    let host = host(request.headers());
    let opens = match &host {
        Err(_) if !tokens.is_token(word) => return Err(Refused::Stranger),
        _ => tokens.try_word(word).ok_or(Refused::Stranger)?,
    };
    let (name, port) = host.map_err(Refused::Wrong)?;
    if *request.method() != Method::GET && *request.method() != Method::HEAD {
        let told = format!("expected GET or HEAD, found {}; nothing here can be changed", request.method());
        return Err(Refused::Method(told));
    }
    stranger(request.headers(), name, port).map_err(Refused::Wrong)?;
    // Names that mean the same to the system are two origins to a browser: what runs in the copy of Perfetto's page cannot read ours.
    let perfetto = opens == Opens::Perfetto;
    let right_name = if perfetto { "localhost" } else { "127.0.0.1" };
    let apart = tokens.perfetto().is_some() && !name.eq_ignore_ascii_case(right_name);
    let query = uri.query().map(str::to_owned);
    match (opens, rest) {
        (Opens::Elsewhere(place), None) => Err(Refused::Elsewhere(place)),
        (Opens::Elsewhere(_), Some(_)) => Err(Refused::Stranger),
        (_, rest) if apart => {
            Err(Refused::Elsewhere(format!("http://{right_name}:{port}/{word}/{}", rest.unwrap_or_default())))
        }
        (_, None) => Err(Refused::Elsewhere(format!("/{word}/"))),
        (_, Some(rest)) => Ok(Admitted { perfetto, path: format!("/{rest}"), query, port }),
    }
}

/// The name and the port by which the browser knows us. Any other name is a foreign one that was made to lead here.
fn host(headers: &HeaderMap) -> Result<(&str, u16), String> {
    let wrong = |found: &str| {
        format!("expected the Host 127.0.0.1 or localhost with a port, found {found}; use the address that was printed")
    };
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| wrong("bytes that are no name"))?,
        (None, _) => return Err(wrong("none")),
        (Some(_), Some(_)) => return Err(wrong("several")),
    };
    let (name, port) = host.split_once(':').ok_or_else(|| wrong(host))?;
    let known = name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost");
    let port =
        Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit())).and_then(|port| port.parse().ok());
    port.filter(|_| known).map(|port| (name, port)).ok_or_else(|| wrong(host))
}

/// Whether another page sent the request. A person who followed a link to us comes as a navigation.
fn stranger(headers: &HeaderMap, name: &str, port: u16) -> Result<(), String> {
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

/// The answer to whoever does not know what to ask for.
pub(super) fn nothing() -> Response {
    closing((StatusCode::NOT_FOUND, Body::empty()).into_response())
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Stranger => nothing(),
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

/// Strangers do not keep connections.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
