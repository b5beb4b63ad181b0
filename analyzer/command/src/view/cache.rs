//! Lets a browser keep answers, and ask whether they are still right: by content, because a page is loaded again and
//! again.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

/// Marks an answer of a known size by its content. If the client has this content, the answer is only that.
pub(super) async fn unless_known(asked: &HeaderMap, response: Response) -> Response {
    let size = response.body().size_hint().exact().filter(|_| response.status() == StatusCode::OK);
    let Some(size) = size else { return response };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, size as usize).await else { return Response::from_parts(parts, Body::empty()) };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag);
    parts.headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        parts.headers.insert(ETAG, tag);
    }
    if !is_known {
        return Response::from_parts(parts, bytes.into());
    }
    parts.status = StatusCode::NOT_MODIFIED;
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(CONTENT_TYPE);
    Response::from_parts(parts, Body::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_content_is_not_sent_again() {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let first = unless_known(&HeaderMap::new(), Response::new(Body::from("one"))).await;
            let tag = first.headers()[ETAG].clone();
            assert_eq!(to_bytes(first.into_body(), 9).await.unwrap(), "one");
            let asked = HeaderMap::from_iter([(IF_NONE_MATCH, tag)]);
            let again = unless_known(&asked, Response::new(Body::from("one"))).await;
            assert_eq!((again.status(), again.body().size_hint().exact()), (StatusCode::NOT_MODIFIED, Some(0)));
            let changed = unless_known(&asked, Response::new(Body::from("two"))).await;
            assert_eq!(to_bytes(changed.into_body(), 9).await.unwrap(), "two");
        });
    }
}
