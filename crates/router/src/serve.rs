//! The control socket and the metrics, served by one thread beside the packet thread.
//!
//! Connections are tasks, each with a deadline. There are [`MOST_CONNECTIONS`] of each kind; one more replaces the oldest, so that idle
//! connections keep nobody out. Requests that wait for the packet thread do so on threads beside it, of which there are more than
//! control and metrics together may have at a time.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::hub::Hub;
use crate::privileges::Accounts;
use crate::{control, metrics};

/// Connections of a kind at a time. With the files of the router itself they are far below LimitNOFILE= of the unit.
const MOST_CONNECTIONS: usize = 32;
/// How long nothing is taken after the system refused to hand over a connection.
const PAUSE: Duration = Duration::from_millis(500);
/// Threads that wait for the packet thread.
const WAITERS: usize = 8;

/// Starts the thread.
///
/// # Errors
/// The system's error.
pub fn start(
    control: UnixListener,
    accounts: Accounts,
    metrics: Option<TcpListener>,
    hub: Arc<Hub>,
) -> io::Result<()> {
    control.set_nonblocking(true)?;
    metrics.iter().try_for_each(|m| m.set_nonblocking(true))?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WAITERS)
        .thread_name("request")
        .build()?;
    std::thread::Builder::new().name("serve".into()).spawn(move || {
        let log = hub.log.clone();
        if let Err(e) = all(&runtime, control, accounts, metrics, hub) {
            log.error("serve", "neither control nor metrics", &[("why", e.to_string().into())]);
        }
    })?;
    Ok(())
}

fn all(
    runtime: &Runtime,
    control: UnixListener,
    accounts: Accounts,
    metrics: Option<TcpListener>,
    hub: Arc<Hub>,
) -> io::Result<()> {
    runtime.block_on(async {
        let control = tokio::net::UnixListener::from_std(control)?;
        let metrics = metrics.map(tokio::net::TcpListener::from_std).transpose()?;
        let server = Arc::new(control::Server::new(accounts, Arc::clone(&hub)));
        let page = Arc::new(metrics::Server::new(Arc::clone(&hub)));
        let asked = accept(
            "control",
            &hub,
            async || control.accept().await,
            |(stream, _)| Arc::clone(&server).serve(stream),
        );
        let scraped = async {
            if let Some(metrics) = &metrics {
                accept(
                    "metrics",
                    &hub,
                    async || metrics.accept().await,
                    |(stream, _)| Arc::clone(&page).serve(stream),
                )
                .await;
            }
        };
        futures_util::future::join(asked, scraped).await;
        Ok(())
    })
}

/// Takes connections for ever; the oldest gives its place to one too many.
async fn accept<C, T: Future<Output = ()> + Send + 'static>(
    event: &str,
    hub: &Hub,
    next: impl AsyncFn() -> io::Result<C>,
    serve: impl Fn(C) -> T,
) {
    let mut open: VecDeque<AbortHandle> = VecDeque::with_capacity(MOST_CONNECTIONS);
    let mut refused = false;
    loop {
        match next().await {
            Ok(connection) => {
                refused = false;
                open.retain(|task| !task.is_finished());
                while open.len() >= MOST_CONNECTIONS {
                    open.pop_front().iter().for_each(AbortHandle::abort);
                }
                open.push_back(tokio::spawn(serve(connection)).abort_handle());
            }
            Err(e) => {
                if !refused {
                    let why = format!("{e}{}", crate::files::remedy(&e));
                    hub.log.warn(event, "no connection can be taken", &[("why", why.into())]);
                }
                refused = true;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
