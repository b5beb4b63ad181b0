//! Sends changes of the run as a stream of server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use axum::http::{HeaderValue, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::{sync::watch::Receiver, time::timeout};

use super::state::Latest;

/// The interval of keep-alive comments, with which each side notices that the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream with the number of the latest analysis, now and after each new one.
pub(super) fn news(now: Receiver<Latest>) -> Response {
    let events = stream::unfold((now, true), |(mut now, first)| async move {
        let text = if first { Some(event(&mut now)) } else { next(&mut now).await }?;
        Some((Ok::<_, Infallible>(text), (now, false)))
    });
    let kind = HeaderValue::from_static("text/event-stream");
    ([(CONTENT_TYPE, kind)], Body::from_stream(events)).into_response()
}

/// The next event or a keep-alive comment; `None` at the end of the stream.
async fn next(now: &mut Receiver<Latest>) -> Option<String> {
    match timeout(KEEP_ALIVE, now.changed()).await {
        Ok(changed) => changed.ok().map(|()| event(now)),
        Err(_) => Some(":\n\n".into()),
    }
}

fn event(now: &mut Receiver<Latest>) -> String {
    let Latest { generation, running, .. } = *now.borrow_and_update();
    format!("event: run\ndata: {}\n\n", json!({"generation": generation, "running": running}))
}
