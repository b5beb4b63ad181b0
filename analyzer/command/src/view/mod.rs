//! Serves a run as a page for a browser, only to the user of this machine.
//!
//! Its answers are those of the [questions](urscope_analyzer::questions), byte for byte as the command prints them, and
//! tables of the same analysis. [`model`] holds the results of one analysis, `following` updates them while the run
//! grows, `guard` checks requests, `routes` answers them, `assets` contains the page, and `perfetto` serves a copy of
//! the Perfetto UI for machines without a network. [`saved`] writes the page as one file.
//!
//! The server listens on the loopback address only, and below a random path, because other users of the machine can
//! connect too. It must never print, run a program, write a file, or serve a file that is not in a table made before
//! the first request. Of source files that the stacks of findings name, it shows a few lines, under the conditions of
//! [`urscope_analyzer::sources`].

mod answers;
mod assets;
mod cache;
mod calls;
mod compression;
mod events;
mod following;
mod guard;
mod lifetimes;
pub mod model;
mod overview;
pub mod perfetto;
mod routes;
pub(crate) mod saved;
mod search;
mod server;
mod shared_list;
mod state;
mod table_builder;
mod timeline;
mod tokens;
mod write_timeout;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::{io, path::PathBuf, sync::Arc, thread::JoinHandle};

use tokio::sync::watch as channel;

use perfetto::Copy;
use state::AppState;
use tokens::AccessTokens;
pub(crate) use tokens::word;

use crate::shell::quoted;
use urscope_analyzer::{Options, sources::Sources};

/// The run that is shown.
pub struct Subject {
    /// The title of the page.
    pub title: String,
    /// The trace files, or directories of them, that are watched for changes.
    pub watched: Vec<PathBuf>,
    /// Lists the trace files or directories. Called before each analysis, because new files may have appeared.
    pub paths: Box<dyn Fn() -> io::Result<Vec<PathBuf>> + Send + Sync>,
    /// The options of the analysis.
    pub options: Options,
    /// The command that shows the run again.
    pub again: String,
}

impl Subject {
    /// The traces at paths that the user named.
    pub fn named(paths: Vec<PathBuf>, options: Options) -> Self {
        let title = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let again = paths.iter().fold("urscope view".to_owned(), |command, path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            format!("{command} {}", quoted(&path))
        });
        Self { title, watched: paths.clone(), paths: Box::new(move || Ok(paths.clone())), options, again }
    }
}

/// The settings of the server.
#[derive(Default)]
pub struct Settings {
    /// The port; 0 chooses a free one.
    pub port: u16,
    /// A copy of the Perfetto UI to serve beside the page.
    pub perfetto: Option<Copy>,
    /// The directories whose source files may be shown.
    pub sources: Sources,
}

/// A running server. It stops when this is dropped.
pub struct View {
    tokens: Arc<AccessTokens>,
    address: SocketAddr,
    stop: Option<channel::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

impl View {
    /// Starts the server and the analysis, for which requests wait. The error is a text for the user.
    pub fn open(subject: Subject, settings: Settings) -> Result<Self, String> {
        let port = settings.port;
        let unusable = |error| {
            format!("127.0.0.1:{port} cannot be listened on: {error}; choose another port, or 0 for a free one")
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(unusable)?;
        Self::start(listener, subject, settings).map_err(|error| format!("the server cannot be started: {error}"))
    }

    fn start(listener: TcpListener, subject: Subject, settings: Settings) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let tokens = Arc::new(AccessTokens::new(settings.perfetto.is_some())?);
        let subject = Arc::new(subject);
        let (stop, stopped) = channel::channel(());
        let now = following::start(Arc::clone(&subject), stopped.clone())?;
        let state = AppState::new(Arc::clone(&tokens), subject, now, settings);
        let server = server::start(listener, Arc::new(state), stopped)?;
        Ok(Self { tokens, address, stop: Some(stop), server: Some(server) })
    }

    /// The address of the page. Everybody on this machine who knows it can read the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.tokens.token())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            // The thread has no result.
            drop(server.join());
        }
    }
}
