//! Metrics over HTTP: `GET /metrics`, one request a connection, read-only and bounded.

mod page;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::hub::Hub;
pub use page::page;

/// The longest request: the least that hyper can be told.
const LONGEST_REQUEST: usize = 8192;
/// How long a request may take to come.
const TO_COME: Duration = Duration::from_secs(2);
/// How long a conversation may take in all.
const TO_GO: Duration = Duration::from_secs(15);
/// How old a page may be: however many ask, the packet thread is asked no more often.
const FRESH: Duration = Duration::from_millis(100);

/// Who hands out the page.
#[derive(Debug)]
pub struct Server {
    hub: Arc<Hub>,
    last: Mutex<Option<(Instant, Result<Bytes, String>)>>,
}

impl Server {
    /// Of this router.
    #[must_use]
    pub fn new(hub: Arc<Hub>) -> Server {
        Server { hub, last: Mutex::default() }
    }

    /// One request, one answer. Whoever asks badly, or goes away, is his own affair.
    pub async fn serve(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request| {
            let this = Arc::clone(&self);
            async move { Ok::<_, Infallible>(this.respond(&request).await) }
        });
        let conversation = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(TO_COME)
            .max_buf_size(LONGEST_REQUEST)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let _ = timeout(TO_GO, conversation).await;
    }

    async fn respond(self: Arc<Self>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        // Parameters, as Prometheus may be set to send, say nothing to us.
        let (status, body) = match (request.method(), request.uri().path()) {
            (&Method::GET, "/metrics") => match self.page().await {
                Ok(page) => (StatusCode::OK, page),
                Err(e) => (StatusCode::SERVICE_UNAVAILABLE, format!("{e}\n").into()),
            },
            (&Method::GET, _) => (StatusCode::NOT_FOUND, "metrics are at /metrics\n".into()),
            _ => (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into()),
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }

    /// The page, or why there is none, no older than [`FRESH`]; those who ask meanwhile wait for the same. It is made to the end even
    /// if whoever asked is sent away: else those who come and go would each have one made.
    async fn page(self: Arc<Self>) -> Result<Bytes, String> {
        tokio::spawn(async move { self.made().await }).await.map_err(|e| e.to_string())?
    }

    async fn made(&self) -> Result<Bytes, String> {
        let mut last = self.last.lock().await;
        if let Some((made, page)) = last.as_ref()
            && made.elapsed() < FRESH
        {
            return page.clone();
        }
        let hub = Arc::clone(&self.hub);
        let work = move || Ok(page(&*hub.snapshot()?, &hub.reloads(), hub.log.counts()).into());
        let made = tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(e.to_string()));
        *last = Some((Instant::now(), made.clone()));
        made
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tokio::runtime::Builder;

    use super::*;
    use crate::config::{self, Level};
    use crate::log::Log;
    use crate::packets::Command;
    use crate::router;

    /// A server, and what it asks of the packet thread.
    fn server() -> (Arc<Server>, Receiver<Command>) {
        let text = "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"1 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"9 packets\" }\n";
        let (config, _) = config::parse(text.as_bytes(), "r.toml", &router::registry()).unwrap();
        let (commands, asked) = channel();
        let (log, _) = Log::start(Level::Error, None).unwrap();
        (Arc::new(Server::new(Arc::new(Hub::new(commands, "r.toml".into(), false, config, log)))), asked)
    }

    /// Conversations that are broken off, each by the next: what the first has asked for is waited for, and nobody asks again.
    #[test]
    fn the_packet_thread_is_asked_once_however_many_come_and_go() {
        let (server, asked) = server();
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(4).build().unwrap();
        runtime.block_on(async {
            for _ in 0..100 {
                let server = Arc::clone(&server);
                let one = tokio::spawn(async move { server.page().await });
                tokio::time::sleep(Duration::from_millis(1)).await;
                one.abort();
            }
        });
        let commands: Vec<Command> = asked.try_iter().collect();
        assert!(matches!(commands[..], [Command::Snapshot(_)]), "{}", commands.len());
        // It ends without an answer: that too is everybody's for a moment.
        drop((commands, asked));
        assert_eq!(runtime.block_on(server.page()).unwrap_err(), "the packet loop has ended");
    }
}
