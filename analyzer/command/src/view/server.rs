//! Accepts connections, limits their number and duration, and adds security headers to every response.
//!
//! Slow clients must not delay others: a connection that sends no request or does not read its response is closed.
//! Every user of the machine can connect, so a connection is a stranger until it has sent a word of the access tokens.
//! Strangers have places of their own, each for a second.

use std::thread::{self, JoinHandle};
use std::{
    collections::VecDeque, convert::Infallible, future::Future, io, net::TcpListener, pin::pin, sync::Arc,
    time::Duration,
};

use axum::http::{HeaderName, HeaderValue, Method, Request, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::{Either, select};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::{net::TcpStream, runtime::Builder};

use super::guard::{self, Refused};
use super::{cache, compression, routes, state::AppState, write_timeout::WriteTimeout};

/// The maximum number of connections at a time that have sent a word. A browser uses six.
const CONNECTIONS: usize = 64;

/// The maximum number of strangers at a time. The oldest one gives way to the next.
const STRANGERS: usize = 256;

/// How long a connection may be a stranger.
const WORD_WITHIN: Duration = Duration::from_secs(1);

/// The time limit for receiving the head of a request.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// How long a client may read nothing of a response.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);

/// The maximum size of a request line with its headers, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
const HEADERS: usize = 64;

/// The maximum number of threads that analyze traces and write timelines.
const THREADS: usize = 16;

/// The content security policy of the page: it may load only from this server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                           font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The policy of the copy of the Perfetto UI: it may also compile WebAssembly and create workers and styles. It may
/// connect only to this server.
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
    select(Box::pin(stop), Box::pin(serving)).await;
}

async fn accept(listener: tokio::net::TcpListener, state: Arc<AppState>) -> Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut strangers: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // There are no free descriptors, or the client has already disconnected.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        strangers.retain(|stranger| !stranger.is_closed());
        if strangers.len() >= STRANGERS {
            strangers.pop_front();
        }
        let (stranger, gives_way) = oneshot::channel();
        strangers.push_back(stranger);
        tokio::spawn(serve(stream, Arc::clone(&state), Arc::clone(&places), gives_way));
        // Whoever has sent a word already is known before the next one comes.
        tokio::task::yield_now().await;
    }
}

/// Serves a connection. As a stranger it is closed after a time, and when the other end of `gives_way` is dropped.
async fn serve(stream: TcpStream, state: Arc<AppState>, places: Arc<Semaphore>, gives_way: oneshot::Receiver<()>) {
    let word = Arc::new(Notify::new());
    let sent = Arc::clone(&word);
    let service = service_fn(move |request| answer(Arc::clone(&state), Arc::clone(&sent), request));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WITHIN).max_buf_size(LONGEST_HEAD).max_headers(HEADERS);
    let mut connection = pin!(http.serve_connection(TokioIo::new(WriteTimeout::new(stream, TAKEN_WITHIN)), service));
    let is_known = {
        let known = pin!(word.notified());
        let too_late = pin!(tokio::time::sleep(WORD_WITHIN));
        let known_or_over = select(known, select(gives_way, too_late));
        matches!(select(connection.as_mut(), known_or_over).await, Either::Right((Either::Left(_), _)))
    };
    if is_known {
        let _place = places.acquire().await;
        // Errors of a connection concern only its client.
        drop(connection.await);
    }
}

async fn answer(state: Arc<AppState>, word: Arc<Notify>, request: Request<Incoming>) -> Result<Response, Infallible> {
    let admitted = guard::admit(&state.tokens, &request);
    if !matches!(admitted, Err(Refused::NotFound)) {
        word.notify_one();
    }
    let (mut response, policy) = match admitted {
        Ok(admitted) if admitted.perfetto => (routes::perfetto(&state, admitted).await, PERFETTO_POLICY),
        Ok(admitted) => (routes::page(&state, &admitted, request.method()).await, PAGE_POLICY),
        Err(refused) => (refused.into_response(), PAGE_POLICY),
    };
    if request.method() == Method::GET {
        response = cache::unless_known(request.headers(), response).await;
        if compression::is_accepted(request.headers()) {
            response = compression::compressed(response).await;
        }
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    Ok(response)
}
