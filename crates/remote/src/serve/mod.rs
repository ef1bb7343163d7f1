//! `firn cache serve`: a remote for those who have none. It keeps the layout of every remote in a directory and gives it out
//! over HTTP, so that a client needs to know nothing about it; people get a page.
//!
//! [`Server::run`] takes connections, [`api`] says what a request means, [`shelf`] keeps objects, [`tally`] counts, [`page`]
//! shows. What is not what its name says is not kept, and an index that is put is merged with the one there: two that push at
//! once lose nothing. The requests are written down in `docs/remote.md`.

mod api;
mod page;
mod shelf;
mod tally;

use crate::key::Keyring;
use crate::place::Trouble;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use shelf::Shelf;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tally::Tally;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory that objects are kept in.
    pub dir: String,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Nothing is taken.
    pub read_only: bool,
    /// What who puts something must show.
    pub token: Option<String>,
    /// If any are named, only answers that these signed are taken.
    pub keys: Keyring,
}

/// Connections at a time; more wait.
const CONNECTIONS: usize = 256;
/// How long a request may take to arrive, head and body.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    state: Arc<State>,
    runtime: tokio::runtime::Runtime,
}

/// What all requests share.
struct State {
    config: Config,
    shelf: Shelf,
    tally: Tally,
}

impl Server {
    /// Begins to listen. `now` tells the time, in seconds since 1970.
    pub fn start(config: Config, now: fn() -> i64) -> Result<Server, Trouble> {
        let failed = |error: std::io::Error| Trouble::Failed(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let listener = runtime.block_on(TcpListener::bind(config.listen)).map_err(failed)?;
        let shelf = {
            let _inside = runtime.enter();
            Shelf::open(&config.dir)?
        };
        let tally = Tally::new(&shelf.survey(), now);
        Ok(Server { listener, state: Arc::new(State { config, shelf, tally }), runtime })
    }

    /// The address that it listens at.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves for ever.
    pub fn run(self) -> ! {
        let Server { listener, state, runtime } = self;
        runtime.block_on(async move {
            let free = Arc::new(Semaphore::new(CONNECTIONS));
            loop {
                // The semaphore is never closed.
                let Ok(place) = free.clone().acquire_owned().await else { continue };
                let Ok((stream, _)) = listener.accept().await else {
                    // No more files, say: those that are open end some time.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let state = state.clone();
                tokio::spawn(async move {
                    let _place = place;
                    let service = service_fn(move |request| {
                        let state = state.clone();
                        async move { Ok::<_, std::convert::Infallible>(api::answer(&state, request).await) }
                    });
                    let mut connection = http1::Builder::new();
                    connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
                    // A client that goes away in the middle is no matter.
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        })
    }
}
