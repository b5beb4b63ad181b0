//! Compresses answers for clients that accept it, as through a forwarded port the network is what takes time.
//!
//! Only answers of a known size are compressed; what is sent piece by piece goes out as it is.

use std::io::Write as _;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::{Compression, write::GzEncoder};

/// Smaller answers are sent as they are, in bytes.
const SMALLEST: u64 = 2048;

/// Whether a client accepts gzip.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut words = coding.split(';').map(str::trim);
        words.next() == Some("gzip") && words.next().is_none_or(|quality| !matches!(quality, "q=0" | "q=0.0"))
    })
}

/// The answer in gzip, if it is large enough and becomes smaller.
pub(super) async fn compressed(response: Response) -> Response {
    let Some(size) = response.body().size_hint().exact().filter(|size| *size >= SMALLEST) else { return response };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, size as usize).await else { return Response::from_parts(parts, Body::empty()) };
    let pack = move || {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
        (packed.ok().filter(|packed| packed.len() < bytes.len()), bytes)
    };
    let Ok((packed, bytes)) = tokio::task::spawn_blocking(pack).await else {
        return Response::from_parts(parts, Body::empty());
    };
    parts.headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    let Some(packed) = packed else { return Response::from_parts(parts, bytes.into()) };
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(CONTENT_LENGTH, packed.len().into());
    Response::from_parts(parts, packed.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn only_clients_that_accept_it_get_gzip() {
        let accepts = |value: &'static str| {
            is_accepted(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        assert!(accepts("gzip, deflate, br, zstd") && accepts("br;q=1.0, gzip;q=0.8"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("") && !is_accepted(&HeaderMap::new()));
    }

    #[test]
    fn a_large_answer_becomes_smaller_and_a_small_one_stays() {
        let text = "{\"process\": 1}\n".repeat(1000);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(becomes_smaller(text));
    }

    async fn becomes_smaller(text: String) {
        let small = compressed(Response::new(Body::from("{}"))).await;
        assert_eq!(small.headers().get(CONTENT_ENCODING), None);
        let large = compressed(Response::new(Body::from(text.clone()))).await;
        assert_eq!(large.headers()[CONTENT_ENCODING], "gzip");
        let bytes = to_bytes(large.into_body(), 1 << 20).await.unwrap();
        assert!(bytes.len() * 20 < text.len(), "{} of {}", bytes.len(), text.len());
        let mut unpacked = String::new();
        GzDecoder::new(&*bytes).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
    }
}
