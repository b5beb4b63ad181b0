//! Connections: how many, how long, and what every answer says to the browser.
//!
//! Whoever is slow waits for themselves: a connection that sends no request, or takes no answer, is closed.

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

/// How many connections there are at a time: a browser takes six.
const CONNECTIONS: usize = 64;

/// How long a connection may be without a whole request.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// How long a client may take nothing of an answer.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);

/// What a request and its headers may have, in bytes.
const LONGEST_HEAD: usize = 16 << 10;

/// How many headers a request may have.
const HEADERS: usize = 64;

/// How many threads hear and write at a time.
const THREADS: usize = 16;

/// What the page may do: show what comes from here, and nothing else.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                           font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the copy of the Perfetto UI may do: it compiles WebAssembly, and makes workers and styles. It still asks nobody but us.
const PERFETTO_POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:; \
                               worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                               font-src 'self' data:; connect-src 'self' data: blob:; object-src 'none'; base-uri 'none'; \
                               form-action 'none'; frame-ancestors 'none'";

/// What no page of ours needs. A link may be put on the clipboard.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), \
                           magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=(), clipboard-read=()";

/// Serves on a thread of its own, until it is stopped.
pub(super) fn start(
    observer: TcpListener,
    state: Arc<AppState>,
    stopped: watch::Receiver<()>,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(THREADS).build()?;
    let observer = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(observer)?
    };
    thread::Builder::new().name("server".into()).spawn(move || {
        runtime.block_on(until_stopped(stopped, accept(observer, state)));
        // Hearings that are under way end by themselves; nobody waits for their answers.
        runtime.shutdown_background();
    })
}

async fn until_stopped(mut stopped: watch::Receiver<()>, serving: impl Future<Output = Infallible>) {
    // Nothing is ever sent: the sender goes.
    let stop = async { while stopped.changed().await.is_ok() {} };
    futures_util::future::select(Box::pin(stop), Box::pin(serving)).await;
}

async fn accept(observer: tokio::net::TcpListener, state: Arc<AppState>) -> Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WITHIN).max_buf_size(LONGEST_HEAD).max_headers(HEADERS);
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let Ok((stream, _)) = observer.accept().await else {
            // There are no descriptors left, or the client is gone already.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        let connection = http.serve_connection(TokioIo::new(WriteTimeout::new(stream, TAKEN_WITHIN)), service);
        tokio::spawn(async move {
            // What goes wrong on a connection is its client's own affair.
            drop(connection.await);
            drop(place);
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
