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
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl Server {
    /// Of this router.
    #[must_use]
    pub fn new(hub: Arc<Hub>) -> Server {
        Server { hub, last: Mutex::default() }
    }

    /// One request, one answer. Whoever asks badly, or goes away, is his own affair.
    pub async fn converse(self: Arc<Self>, stream: TcpStream) {
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

    async fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
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

    /// The page, no older than [`FRESH`]; those who ask meanwhile wait for the same.
    async fn page(&self) -> Result<Bytes, String> {
        let mut last = self.last.lock().await;
        if let Some((made, page)) = last.as_ref()
            && made.elapsed() < FRESH
        {
            return Ok(page.clone());
        }
        let hub = Arc::clone(&self.hub);
        let work = move || Ok(page(&*hub.snapshot()?, &hub.reloads(), hub.log.counts()));
        let made: Result<String, String> =
            tokio::task::spawn_blocking(work).await.map_err(|e| e.to_string())?;
        let page = Bytes::from(made?);
        *last = Some((Instant::now(), page.clone()));
        Ok(page)
    }
}
