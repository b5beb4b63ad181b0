//! Accepts connections, limits their number and duration, and adds security headers to every response.
//!
//! Slow clients must not delay others: a connection that sends no request or does not read its response is closed.

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::TcpListener,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use axum::{
    http::{HeaderName, HeaderValue, Request, header},
    response::{IntoResponse as _, Response},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    runtime::Builder,
    sync::{Semaphore, watch},
};

use super::{guard, routes, state::AppState, write_timeout::WriteTimeout};

/// The maximum number of connections at a time. A browser uses six.
const CONNECTIONS: usize = 64;

/// The time limit for receiving the head of a request.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// How long a client may read nothing of a response.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);

/// The maximum size of a request line with its headers, in bytes.
const LONGEST_HEAD: usize = 16 << 10;

/// The maximum number of headers of a request.
const HEADERS: usize = 64;

/// The maximum number of threads that analyze traces and write timelines.
const THREADS: usize = 16;

/// The content security policy of the page: it may load only from this server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                           font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The policy of the copy of the Perfetto UI: it may also compile WebAssembly and create workers and styles. It may connect only to
/// this server.
const PERFETTO_POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:; \
                               worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                               font-src 'self' data:; connect-src 'self' data: blob:; object-src 'none'; base-uri 'none'; \
                               form-action 'none'; frame-ancestors 'none'";

/// Browser features that the pages do not need. Writing a link to the clipboard is allowed.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), \
                           magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=(), clipboard-read=()";

/// Starts the server on a thread of its own. It runs until the sender of `stopped` is dropped.
pub(super) fn start(
    listener: TcpListener,
    state: Arc<AppState>,
    stopped: watch::Receiver<()>,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(THREADS).build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    thread::Builder::new().name("server".into()).spawn(move || {
        runtime.block_on(until_stopped(stopped, accept(listener, state)));
        // Analyses that still run end by themselves. Their results are dropped.
        runtime.shutdown_background();
    })
}

async fn until_stopped(mut stopped: watch::Receiver<()>, serving: impl Future<Output = Infallible>) {
    // Nothing is ever sent; the channel is closed.
    let stop = async { while stopped.changed().await.is_ok() {} };
    futures_util::future::select(Box::pin(stop), Box::pin(serving)).await;
}

async fn accept(listener: tokio::net::TcpListener, state: Arc<AppState>) -> Infallible {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WITHIN).max_buf_size(LONGEST_HEAD).max_headers(HEADERS);
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            // There are no free descriptors, or the client has already disconnected.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        let connection = http.serve_connection(TokioIo::new(WriteTimeout::new(stream, TAKEN_WITHIN)), service);
        tokio::spawn(async move {
            // Errors of a connection concern only its client.
            drop(connection.await);
            drop(permit);
        });
    }
}

async fn answer(state: Arc<AppState>, request: Request<Incoming>) -> Result<Response, Infallible> {
    let (mut response, policy) = match guard::admit(&state.tokens, &request) {
        Ok(admitted) if admitted.perfetto => (routes::perfetto(state, &admitted).await, PERFETTO_POLICY),
        Ok(admitted) => (routes::page(state, admitted, request.method()).await, PAGE_POLICY),
        Err(refused) => (refused.into_response(), PAGE_POLICY),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
