//! A minimal HTTP server: one request, one response, then close ([rfc-9112] sec. 9.6).

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::text;
use crate::state::Shared;

/// Serves while the endpoint exists.
pub(super) async fn serve(listener: TcpListener, shards: Arc<[Weak<Shared>]>) {
    let room = Arc::new(Semaphore::new(SCRAPERS_MAX));
    while shards.iter().any(|shared| shared.strong_count() > 0) {
        // When the limit is reached, further connections wait in the kernel's queue.
        let Ok(Ok(permit)) = timeout(LOOK_EVERY, Arc::clone(&room).acquire_owned()).await else { continue };
        let Ok(accepted) = timeout(LOOK_EVERY, listener.accept()).await else { continue };
        let Ok((scraper, _)) = accepted else {
            // Usually too many open files.
            tokio::time::sleep(LOOK_EVERY).await;
            continue;
        };
        let shards = Arc::clone(&shards);
        tokio::spawn(async move {
            // A scraper that is gone or too slow gets no response.
            _ = timeout(PATIENCE, answer(scraper, &shards)).await;
            drop(permit);
        });
    }
}

async fn answer(mut scraper: TcpStream, shards: &[Weak<Shared>]) -> io::Result<()> {
    let mut request = Vec::with_capacity(1 << 10);
    let answer = loop {
        if let Some(head) = head(&request) {
            break Answer::to(head);
        }
        if request.len() >= REQUEST_MAX {
            break Answer::TooLong;
        }
        let room = REQUEST_MAX - request.len();
        if (&mut scraper).take(room as u64).read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    };
    let body = match &answer {
        Answer::Metrics { .. } => text::of(&shards.iter().filter_map(Weak::upgrade).collect::<Vec<_>>()),
        _ => format!("{}\n", answer.status()),
    };
    let (status, length) = (answer.status(), body.len());
    let kind = if matches!(answer, Answer::Metrics { .. }) { "text/plain; version=0.0.4" } else { "text/plain" };
    let allowed = if answer == Answer::WrongMethod { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n{allowed}Connection: close\r\n\r\n"
    );
    scraper.write_all(head.as_bytes()).await?;
    if answer != (Answer::Metrics { is_head: true }) {
        scraper.write_all(body.as_bytes()).await?;
    }
    scraper.shutdown().await
}

/// The request up to the empty line; `None` if that has not arrived yet.
fn head(request: &[u8]) -> Option<&[u8]> {
    request.windows(4).position(|window| window == b"\r\n\r\n").map(|end| &request[..end])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Metrics { is_head: bool },
    Bad,
    NotFound,
    WrongMethod,
    TooLong,
}

impl Answer {
    /// The response to this request line and header.
    fn to(head: &[u8]) -> Self {
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let parts: Vec<_> = line.split(|byte| *byte == b' ').collect();
        let [method, target, version] = parts[..] else { return Self::Bad };
        if !version.starts_with(b"HTTP/1.") || method.is_empty() {
            return Self::Bad;
        }
        if target.split(|byte| *byte == b'?').next() != Some(b"/metrics") {
            return Self::NotFound;
        }
        match method {
            b"GET" => Self::Metrics { is_head: false },
            b"HEAD" => Self::Metrics { is_head: true },
            _ => Self::WrongMethod,
        }
    }

    fn status(self) -> &'static str {
        match self {
            Self::Metrics { .. } => "200 OK",
            Self::Bad => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::WrongMethod => "405 Method Not Allowed",
            Self::TooLong => "431 Request Header Fields Too Large",
        }
    }
}

/// The limit on connections: some scrapers and browsers.
const SCRAPERS_MAX: usize = 16;

/// The limit on a request in bytes; a scraper's request has some hundred.
const REQUEST_MAX: usize = 8 << 10;

/// The time limit for a request and its response.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it checks whether the endpoint still exists.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_is_served() {
        let to = |text: &str| Answer::to(text.as_bytes());
        let (get, head) = (Answer::Metrics { is_head: false }, Answer::Metrics { is_head: true });
        assert_eq!([to("GET /metrics HTTP/1.1\r\nHost: x"), to("GET /metrics?x=1 HTTP/1.0")], [get; 2]);
        assert_eq!(to("HEAD /metrics HTTP/1.1"), head);
        assert_eq!([to("GET / HTTP/1.1"), to("GET /metrics/ HTTP/1.1"), to("PUT /x HTTP/1.1")], [Answer::NotFound; 3]);
        assert_eq!(to("POST /metrics HTTP/1.1"), Answer::WrongMethod);
        let bad = ["", "GET", "GET /metrics", "GET /metrics HTTP/2", "GET  /metrics HTTP/1.1", " /metrics HTTP/1.1"];
        assert_eq!(bad.map(to), [Answer::Bad; 6]);
    }
}
