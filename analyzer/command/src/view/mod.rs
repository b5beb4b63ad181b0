//! The window: a run as a page in a browser, served to this machine's user and to nobody else.
//!
//! It stands at the end of the river, behind the [questions](urscope_analyzer::questions): what it answers is what they say, byte for byte
//! as the command prints it, and tables of the same hearing for what is too much to print. [`model`] holds one hearing, `watch`
//! hears again while the run goes on, `routes` answers, `guard` says who may ask, `assets` is the page itself, `perfetto` a copy of
//! Perfetto's for where there is no network.
//!
//! It listens on the loopback address only, and a random word in the path tells who may look: other users of the machine can
//! connect, but know no path. It must never print, never run a program, never write a file, and never serve a file that is not in
//! a table made before the first request.

mod answers;
mod assets;
mod calls;
mod chunks;
mod events;
mod following;
mod guard;
mod lifetimes;
pub mod model;
mod overview;
pub mod perfetto;
mod routes;
mod search;
mod server;
mod state;
mod table_builder;
mod timeline;
mod tokens;
mod write_timeout;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
};

use tokio::sync::watch as channel;

use perfetto::Copy;
use state::AppState;
use tokens::AccessTokens;
use urscope_analyzer::Options;

/// What is looked at.
pub struct Subject {
    /// What the page calls it.
    pub title: String,
    /// The files, or directories of them, that show whether the run goes on.
    pub watched: Vec<PathBuf>,
    /// Its traces, in the same way. It is asked again before each hearing, because a run that goes on makes more.
    pub paths: Box<dyn Fn() -> io::Result<Vec<PathBuf>> + Send + Sync>,
    /// How it is judged.
    pub options: Options,
}

impl Subject {
    /// Traces that the user named.
    pub fn named(paths: Vec<PathBuf>, options: Options) -> Self {
        let title = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        Self { title, watched: paths.clone(), paths: Box::new(move || Ok(paths.clone())), options }
    }
}

/// How it is shown.
#[derive(Default)]
pub struct Settings {
    /// The port; 0 takes a free one.
    pub port: u16,
    /// A copy of the Perfetto UI to serve beside the page.
    pub perfetto: Option<Copy>,
}

/// The window cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The port is taken, or not for us.
    #[error("127.0.0.1:{port} cannot be listened on: {source}; choose another port, or 0 for a free one")]
    Port {
        /// Which.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The system has no random bytes, no threads or no events for us.
    #[error("the server cannot be started: {0}")]
    Start(io::Error),
}

/// A run that is served. It ends when this is dropped.
pub struct View {
    tokens: Arc<AccessTokens>,
    address: SocketAddr,
    stop: Option<channel::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

impl View {
    /// Begins to serve, and to hear the traces: what is asked before they have been heard is answered afterwards.
    pub fn open(subject: Subject, settings: Settings) -> Result<Self, ViewError> {
        let port = settings.port;
        let observer =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|source| ViewError::Port { port, source })?;
        observer.set_nonblocking(true).map_err(ViewError::Start)?;
        let address = observer.local_addr().map_err(ViewError::Start)?;
        let tokens = Arc::new(AccessTokens::new(settings.perfetto.is_some()).map_err(ViewError::Start)?);
        let subject = Arc::new(subject);
        let (stop, stopped) = channel::channel(());
        let now = following::start(Arc::clone(&subject), stopped.clone()).map_err(ViewError::Start)?;
        let state = AppState::new(Arc::clone(&tokens), subject, now, settings.perfetto);
        let server = server::start(observer, Arc::new(state), stopped).map_err(ViewError::Start)?;
        Ok(Self { tokens, address, stop: Some(stop), server: Some(server) })
    }

    /// Where the page is. Whoever knows it may look.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.tokens.token())
    }

    /// An address that leads to a place of the page (such as `perfetto`, or nothing) once, for the command line of a browser, which
    /// other users of the machine can read.
    pub fn ticket(&self, place: &'static str) -> io::Result<String> {
        Ok(format!("http://{}/{}", self.address, self.tokens.ticket(place)?))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            // It has nothing to say.
            drop(server.join());
        }
    }
}
