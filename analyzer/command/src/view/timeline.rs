//! Sends the timeline of a run while it is written.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::answers::{JSON, Refusal};
use super::state::AppState;
use crate::export::{self, Form};

/// The size of a piece that is sent at a time, in bytes.
const PIECE: usize = 64 << 10;

/// How many pieces may be queued.
const AHEAD: usize = 4;

type Piece = Result<Bytes, io::Error>;

/// The Chrome trace of all processes, as `urscope export` writes it.
pub(super) async fn timeline(state: &Arc<AppState>) -> Result<Response, Refusal> {
    let state = Arc::clone(state);
    let full = || Refusal::unavailable("too many timelines are being written; try again later");
    let permit = Arc::clone(&state.timelines).try_acquire_owned().map_err(|_| full())?;
    let (pieces, mut written) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let _span = tracing::info_span!("serving").entered();
        // Released when the timeline is written, or the client has disconnected.
        let _permit = permit;
        write(&state, &pieces);
    });
    // An error before the first piece can still be reported with its status.
    match written.recv().await {
        Some(Ok(first)) => Ok(sent(first, written)),
        Some(Err(error)) => Err(Refusal::unavailable(error.to_string())),
        None => Err(Refusal::unavailable("the timeline was not written")),
    }
}

fn write(state: &AppState, pieces: &Sender<Piece>) {
    let paths = match state.paths() {
        Ok(paths) => paths,
        Err(Refusal(_, why)) => return drop(pieces.blocking_send(Err(io::Error::other(why)))),
    };
    let mut out = BufWriter::with_capacity(PIECE, Pipe(pieces.clone()));
    let exported = export::export(&paths, &state.subject.options, Form::Chrome, &mut out);
    let exported = exported.map_err(io::Error::other).and_then(|_| out.flush());
    if let Err(error) = exported {
        drop(pieces.blocking_send(Err(error)));
    }
}

fn sent(first: Bytes, written: Receiver<Piece>) -> Response {
    let rest = stream::unfold((Some(first), written), |(first, mut written)| async move {
        let piece = match first {
            Some(first) => Ok(first),
            None => written.recv().await?,
        };
        Some((piece, (None, written)))
    });
    ([(CONTENT_TYPE, JSON)], Body::from_stream(rest)).into_response()
}

/// A writer that sends its output to the connection.
struct Pipe(Sender<Piece>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
