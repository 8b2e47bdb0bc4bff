//! `anabranch playground`: the simulator in a page, served to this computer alone or written into a file.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anabranch_web::page::page;

use crate::args::Playground;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};

/// Writes the page, or serves it until the command is ended.
pub(crate) fn playground(args: &Playground) -> Outcome {
    let page = page();
    if let Some(path) = &args.write {
        let (folder, name) = Folder::of_file(path, &Inputs::default())?;
        return folder.write(&name, |out| out.write_all(page.as_bytes()));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        Failure::failed(format!(
            "port {} of this computer cannot be served: {error}; choose another by --port",
            args.port
        ))
    })?;
    let address = listener.local_addr().map_err(|error| Failure::failed(error.to_string()))?;
    let mut out = anstream::stdout();
    writeln!(
        out,
        "the playground is at http://{address}/ until Ctrl-C; `--write FILE` makes a page that needs no server"
    )?;
    out.flush()?;
    let page = Arc::new(page);
    let busy = Arc::new(());
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Without a free descriptor the next one would be refused at once, too.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        // Each guest has a thread, so that one that is slow keeps nobody waiting. What is too much is closed.
        if Arc::strong_count(&busy) > GUESTS_MAX {
            continue;
        }
        let (page, guest) = (Arc::clone(&page), Arc::clone(&busy));
        let serve = move || {
            // A browser that goes away concerns nobody else.
            let _ = answer(stream, &page);
            drop(guest);
        };
        // Without a thread the connection is closed.
        let _ = thread::Builder::new().spawn(serve);
    }
    Ok(())
}

/// Answers one request of a browser.
fn answer(mut stream: TcpStream, page: &str) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let Some(head) = head(&mut stream, until)? else {
        return send(&mut stream, "431 Request Header Fields Too Large", TEXT, "the request is too large\n");
    };
    let (status, kind, body) = answered(&head, page);
    send(&mut stream, status, kind, body)
}

/// The head of a request, up to its empty line, the end of the connection or the end of patience; nothing if it is too large.
fn head(stream: &mut TcpStream, until: Instant) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        // A limit for the whole head: a byte now and then would keep a limit for each away.
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut part)?;
        if read == 0 {
            break;
        }
        head.extend(&part[..read]);
        if head.len() > HEAD_MAX {
            return Ok(None);
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

/// Status, type and text for a request.
fn answered<'a>(head: &str, page: &'a str) -> (&'static str, &'static str, &'a str) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let hosts = lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    // A page of another site whose name an attacker has pointed here (DNS rebinding) has its own name as the host.
    if !hosts.map(|(_, value)| value.trim()).all(is_here) {
        return (
            "421 Misdirected Request",
            TEXT,
            "this is the playground of this computer alone; open the address that it printed\n",
        );
    }
    match (method, target) {
        ("GET" | "HEAD", "/") => ("200 OK", "text/html; charset=utf-8", if method == "GET" { page } else { "" }),
        ("GET" | "HEAD", _) => ("404 Not Found", TEXT, "there is only the page /\n"),
        _ => ("405 Method Not Allowed", TEXT, "the page can only be got\n"),
    }
}

/// Whether a `Host` is this computer by a name that no name server can take away.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")
}

fn send(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The limit of a request's head in bytes: browsers send some hundred.
const HEAD_MAX: usize = 16 << 10;

/// The limit of guests at a time: a browser has six connections.
const GUESTS_MAX: usize = 32;

/// The longest wait for a request, and for a guest who takes nothing of the page.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;

    /// A browser, and what answers it.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let browser = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (browser, listener.accept().unwrap().0)
    }

    fn asked(request: &str) -> String {
        let (mut browser, stream) = pair();
        browser.write_all(request.as_bytes()).unwrap();
        browser.shutdown(Shutdown::Write).unwrap();
        answer(stream, "<p>the page").unwrap();
        let mut answer = String::new();
        browser.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_the_page_is_served() {
        let page = asked("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\n<p>the page"), "{page}");
        assert!(asked("HEAD / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        for (request, status) in [
            ("GET /etc/passwd HTTP/1.1\r\n\r\n", 404),
            ("GET /../../etc/passwd HTTP/1.1\r\n\r\n", 404),
            ("GET /%2e%2e/etc/passwd HTTP/1.1\r\n\r\n", 404),
            ("GET //etc/passwd HTTP/1.1\r\n\r\n", 404),
            ("GET\r\n\r\n", 404),
            ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na=b", 405),
            ("DELETE / HTTP/1.1\r\n\r\n", 405),
            ("OPTIONS * HTTP/1.1\r\n\r\n", 405),
            ("\0\u{7f}\r\n\r\n", 405),
            ("", 405),
        ] {
            assert!(asked(request).starts_with(&format!("HTTP/1.1 {status} ")), "{request}");
        }
    }

    /// A site whose name leads here is another site, whatever address its name has.
    #[test]
    fn another_host_gets_no_page() {
        let status = |host: &str| asked(&format!("GET / HTTP/1.1\r\nhost:{host}\r\n\r\n"))[9..12].to_owned();
        for host in [" localhost:80", "127.0.0.1", " LOCALHOST "] {
            assert_eq!(status(host), "200", "{host}");
        }
        for host in [
            "evil.example",
            " evil.example:8000",
            "127.0.0.1.evil.example",
            "localhost:80@evil.example",
            "",
            "127.0.0.1\r\nHost: evil.example",
        ] {
            assert_eq!(status(host), "421", "{host}");
        }
    }

    #[test]
    fn a_head_without_an_end_is_refused() {
        let (mut browser, mut stream) = pair();
        let writer = thread::spawn(move || {
            // It may be refused before all of it is written.
            let _ = browser.write_all("GET / HTTP/1.1\r\nX: ".as_bytes());
            let _ = browser.write_all(&[b'a'; 2 * HEAD_MAX]);
        });
        assert_eq!(head(&mut stream, Instant::now() + PATIENCE).unwrap(), None);
        drop(stream);
        writer.join().unwrap();
    }

    /// One byte now and then does not lengthen the wait.
    #[test]
    fn a_slow_guest_is_not_waited_for() {
        let (mut browser, mut stream) = pair();
        let writer = thread::spawn(move || {
            while browser.write_all(b"G").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let begun = Instant::now();
        let refused = head(&mut stream, begun + Duration::from_millis(200));
        assert!(refused.is_err() && begun.elapsed() < Duration::from_secs(5));
        drop(stream);
        writer.join().unwrap();
    }
}
