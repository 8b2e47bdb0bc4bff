//! When what is sent arrives: `arrivals serve` waits and prints a ticket, `arrivals call TICKET SECONDS STREAMS [multipath]` sends,
//! `arrivals crowd TICKET CONNECTIONS STREAMS` opens so many connections and streams of each, and keeps them open until its input ends.
//!
//! Every byte says where in which stream it stands, and is checked. The server prints a line of JSON for each connection that has ended: how much has come, how
//! much of it was wrong, in each hundredth of a second, and the gaps of more than 50 ms in which nothing came. `cargo xtask proofs` reads that.

#![expect(clippy::print_stdout, reason = "it is what the example prints")]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anabranch::{Admission, Config, Connection, Endpoint, RecvStream, SecretKey, SendStream, StreamError, Ticket};
use bytes::Bytes;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve"] => serve("[::]:0").await,
        ["serve", address] => serve(address).await,
        ["call", ticket, seconds, streams] => call(&ticket.parse()?, seconds.parse()?, streams.parse()?, false).await,
        ["call", ticket, seconds, streams, "multipath"] => {
            call(&ticket.parse()?, seconds.parse()?, streams.parse()?, true).await
        }
        ["crowd", ticket, connections, streams] => {
            crowd(&ticket.parse()?, connections.parse()?, streams.parse()?).await
        }
        _ => Err("serve [ADDRESS] | call TICKET SECONDS STREAMS [multipath] | crowd TICKET CONNECTIONS STREAMS".into()),
    }
}

/// What has come on a connection.
struct Record {
    begin: Instant,
    /// The same, in seconds of the Unix time.
    begin_unix: f64,
    bytes: u64,
    wrong: u64,
    last: Option<Instant>,
    hundredths: Vec<u64>,
    /// When a gap began and how long it was, in seconds.
    gaps: Vec<(f64, f64)>,
}

impl Record {
    fn new() -> Self {
        let begin_unix = SystemTime::UNIX_EPOCH.elapsed().map(|since| since.as_secs_f64()).unwrap_or_default();
        let (bytes, wrong, last, hundredths, gaps) = (0, 0, None, vec![], vec![]);
        Self { begin: Instant::now(), begin_unix, bytes, wrong, last, hundredths, gaps }
    }

    fn add(&mut self, len: usize, wrong: usize) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now)
            && now - last > GAP
        {
            self.gaps.push(((last - self.begin).as_secs_f64(), (now - last).as_secs_f64()));
        }
        let place = ((now - self.begin).as_millis() / 10) as usize;
        // A day of them has 70 MB.
        self.hundredths.resize(self.hundredths.len().max(place + 1), 0);
        self.hundredths[place] += len as u64;
        self.bytes += len as u64;
        self.wrong += wrong as u64;
    }

    fn json(&self, is_whole: bool) -> String {
        let Self { begin_unix, bytes, wrong, hundredths, gaps, .. } = self;
        let gaps: Vec<_> = gaps.iter().map(|(at, long)| format!("[{at:.4},{long:.4}]")).collect();
        let gaps = gaps.join(",");
        format!(
            r#"{{"is_whole":{is_whole},"begin_unix_seconds":{begin_unix:.4},"bytes":{bytes},"wrong_bytes":{wrong},"gaps_seconds":[{gaps}],"bytes_each_10_ms":{hundredths:?}}}"#
        )
    }
}

async fn serve(address: &str) -> Result<(), Failure> {
    let config = Config { connections_max: 4096, ..Config::default() };
    let endpoint = Endpoint::server(address.parse()?, &SecretKey::generate()?, config.admit(Admission::Ticket))?;
    println!("{}", endpoint.ticket());
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            let record = Arc::new(Mutex::new(Record::new()));
            let is_whole = watch(&connection, &record).await.is_ok();
            let line = record.lock().unwrap_or_else(PoisonError::into_inner).json(is_whole);
            // One write, so that lines do not mix.
            _ = writeln!(std::io::stdout().lock(), "{line}");
        });
    }
    Ok(())
}

/// Reads all that comes until the other end has closed.
async fn watch(connection: &Connection, record: &Arc<Mutex<Record>>) -> Result<(), Failure> {
    let mut streams = JoinSet::new();
    loop {
        match connection.accept_stream().await {
            Ok(stream) => drop(streams.spawn(read(stream, Arc::clone(record)))),
            Err(StreamError::Closed) => break,
            Err(error) => return Err(error.into()),
        }
    }
    while let Some(read) = streams.join_next().await {
        read??;
    }
    connection.close().await?;
    Ok(())
}

/// A stream begins with its number.
async fn read(mut stream: RecvStream, record: Arc<Mutex<Record>>) -> Result<(), Failure> {
    let (mut number, mut head) = (None, vec![]);
    let mut at = 0;
    while let Some(piece) = stream.read_chunk(1 << 16).await? {
        let mut rest = &piece[..];
        if number.is_none() {
            let taken = rest.len().min(8 - head.len());
            head.extend(&rest[..taken]);
            rest = &rest[taken..];
            number = head.first_chunk().map(|head: &[u8; 8]| u64::from_le_bytes(*head));
        }
        let Some(number) = number else { continue };
        let wrong = rest.iter().zip(pattern(number, at, rest.len())).filter(|(got, sent)| **got != *sent).count();
        at += rest.len() as u64;
        record.lock().unwrap_or_else(PoisonError::into_inner).add(rest.len(), wrong);
    }
    Ok(())
}

async fn call(ticket: &Ticket, seconds: f64, streams: u64, is_multipath: bool) -> Result<(), Failure> {
    let endpoint = Endpoint::client(Config::default())?;
    let connection = endpoint.connect(ticket).await?;
    if is_multipath {
        connection.add_paths(ticket).await;
    }
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut writers = JoinSet::new();
    for number in 0..streams {
        writers.spawn(write(connection.open_stream().await?, number, until));
    }
    let mut bytes = 0;
    while let Some(written) = writers.join_next().await {
        bytes += written??;
    }
    let paths: Vec<_> = connection.paths().iter().map(|path| path.report.tally.sent.to_string()).collect();
    connection.close().await?;
    connection.closed().await?;
    drop(connection);
    // The server may not have heard yet that all it said has come.
    _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
    println!(r#"{{"bytes":{bytes},"segments_of_paths":[{}]}}"#, paths.join(","));
    Ok(())
}

async fn write(mut stream: SendStream, number: u64, until: Instant) -> Result<u64, Failure> {
    stream.write_all(&number.to_le_bytes()).await?;
    let mut at = 0;
    while Instant::now() < until {
        let piece: Bytes = pattern(number, at, PIECE).collect();
        stream.write_all_bytes(piece).await?;
        at += PIECE as u64;
    }
    stream.finish()?;
    Ok(at)
}

/// Connections by addresses of 127.0.0.0/8, as a server gives each address only so many handshakes a second.
async fn crowd(ticket: &Ticket, connections: usize, streams: u64) -> Result<(), Failure> {
    let config = Config { connect_timeout: Duration::from_secs(60), ..Config::default() };
    let (mut callers, mut open) = (JoinSet::new(), vec![]);
    for first in (0..connections).step_by(EACH_ADDRESS) {
        let number = (first / EACH_ADDRESS) as u32;
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + number);
        let endpoint = Endpoint::bind((address, 0).into(), &SecretKey::generate()?, config.clone())?;
        let (ticket, count) = (ticket.clone(), EACH_ADDRESS.min(connections - first));
        callers.spawn(async move {
            let mut open = vec![];
            for _ in 0..count {
                let connection = endpoint.connect(&ticket).await?;
                let mut writing = vec![];
                for number in 0..streams {
                    let mut stream = connection.open_stream().await?;
                    stream.write_all(&number.to_le_bytes()).await?;
                    stream.write_all_bytes(pattern(number, 0, SMALL).collect()).await?;
                    writing.push(stream);
                }
                open.push((connection, writing));
            }
            Ok::<_, Failure>((endpoint, open))
        });
    }
    while let Some(called) = callers.join_next().await {
        open.push(called??);
    }
    let count: usize = open.iter().map(|(_, connections)| connections.len()).sum();
    println!(r#"{{"connections":{count},"streams":{}}}"#, count as u64 * streams);
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut vec![])).await??;
    for stream in open.iter_mut().flat_map(|(_, connections)| connections.iter_mut().flat_map(|(_, streams)| streams)) {
        stream.finish()?;
    }
    for (connection, _) in open.iter().flat_map(|(_, connections)| connections) {
        connection.close().await?;
        connection.closed().await?;
    }
    for (endpoint, connections) in open {
        drop(connections);
        _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
    }
    Ok(())
}

/// Bytes that say where in which stream they stand.
fn pattern(stream: u64, from: u64, len: usize) -> impl Iterator<Item = u8> {
    let word = move |at: u64| at.wrapping_add(stream << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let skipped = (from % 8) as usize;
    (from / 8..).flat_map(word).skip(skipped).take(len)
}

/// How long a connection that has ended stays to answer.
const FAREWELL: Duration = Duration::from_secs(3);
/// What is longer is told.
const GAP: Duration = Duration::from_millis(50);
/// Bytes that are written at once.
const PIECE: usize = 1 << 16;
/// Bytes that a stream of a crowd carries at first.
const SMALL: usize = 1000;
/// Connections of a crowd by one address.
const EACH_ADDRESS: usize = 20;
