//! `anabranch playground`: the simulator in a page, served to this computer alone or written into a file.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

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
    for stream in listener.incoming().flatten() {
        // A browser that goes away concerns nobody else.
        let _ = answer(stream, &page);
    }
    Ok(())
}

/// Answers one request of a browser.
fn answer(stream: TcpStream, page: &str) -> io::Result<()> {
    // One that says nothing does not keep others waiting for long: browsers open connections ahead.
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut lines = BufReader::new(stream.try_clone()?).take(REQUEST_MAX);
    let mut first = String::new();
    lines.read_line(&mut first)?;
    // Unread bytes at the end of a connection would reset it.
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 && line.trim() != "" {
        line.clear();
    }
    let (status, kind, body) = match first.split(' ').nth(1) {
        Some("/") if first.starts_with("GET ") => ("200 OK", "text/html; charset=utf-8", page),
        _ => ("404 Not Found", "text/plain; charset=utf-8", "there is only the page /\n"),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body.as_bytes())
}

/// The limit of a request's head in bytes: browsers send some hundred.
const REQUEST_MAX: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;

    fn asked(request: &str) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut browser = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        browser.write_all(request.as_bytes()).unwrap();
        browser.shutdown(Shutdown::Write).unwrap();
        answer(listener.accept().unwrap().0, "<p>the page").unwrap();
        let mut answer = String::new();
        browser.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_the_page_is_served() {
        let page = asked("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\n<p>the page"), "{page}");
        for request in ["GET /etc/passwd HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "\r\n", "GET\r\n\r\n"] {
            assert!(asked(request).starts_with("HTTP/1.1 404 "), "{request}");
        }
    }
}
