//! Records when data arrives. `arrivals serve` waits and prints a ticket. `arrivals call TICKET SECONDS STREAMS [multipath |
//! MEGABITS]` sends, over several paths, or with a law that only has a constant rate. `arrivals crowd TICKET CONNECTIONS STREAMS`
//! opens this many connections with this many streams each, and keeps them open until its input ends.
//!
//! Every byte encodes its stream and position, and is checked. The server prints a line of JSON for each ended connection: how
//! much arrived in each hundredth of a second, how much of it was wrong, and the gaps of more than 50 ms in which nothing
//! arrived. `cargo xtask proofs` reads these lines.

#![expect(clippy::print_stdout, reason = "it is what the example prints")]

mod pattern;

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anabranch::cc::registry::{Fields, Law, LossContract, LossResponse, Table};
use anabranch::cc::{Ack, Controller, Loss, PathView, Row, Settings};
use anabranch::units::Rate;
use anabranch::{
    Admission, Config, Connection, Endpoint, Limit, RecvStream, SecretKey, SendStream, StreamError, Ticket,
};
use bytes::Bytes;
use tokio::task::JoinSet;

use self::pattern::pattern;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve"] => serve("[::]:0").await,
        ["serve", address] => serve(address).await,
        ["call", ticket, seconds, streams, ref more @ ..] if more.len() <= 1 => {
            let is_multipath = more == ["multipath"];
            let config = match more {
                [megabits] if !is_multipath => {
                    Config { law: Settings::parse(&CONSTANT, [("rate", *megabits)])?, ..Config::default() }
                }
                _ => Config::default(),
            };
            call(config, &ticket.parse()?, seconds.parse()?, streams.parse()?, is_multipath).await
        }
        ["crowd", ticket, connections, streams] => {
            crowd(&ticket.parse()?, connections.parse()?, streams.parse()?).await
        }
        _ => Err(
            "serve [ADDRESS] | call TICKET SECONDS STREAMS [multipath | MEGABITS] | crowd TICKET CONNECTIONS STREAMS"
                .into(),
        ),
    }
}

/// A law with a constant rate and a window that never limits: data arrives as fast as the pacer sends.
static CONSTANT: Row = Row {
    name: "constant",
    summary: "a rate, whatever is lost",
    citation: "none",
    loss_contract: LossContract {
        shrinks_above: 1e9,
        timeout_window_max: 1e9,
        loss: LossResponse::Holds { citation: "none" },
    },
    law: &Law {
        defaults: Megabits { rate: 10.0 },
        make: |settings| Box::new(Constant(Rate::from_bits_per_second((settings.rate * 1e6) as u64))),
    },
};

/// A rate in Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Megabits {
    rate: f64,
}

impl Table for Megabits {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let help = "at which segments leave, of the bytes that the peer acknowledges";
        fields.number("rate", &mut self.rate, 0.1..=10_000.0, "Mbit/s", help);
    }
}

#[derive(Debug)]
struct Constant(Rate);

impl Controller for Constant {
    fn on_ack(&mut self, _: &PathView, _: &Ack) {}

    fn on_loss(&mut self, _: &PathView, _: &Loss) {}

    /// A window for 10 Gbit/s and 1 s.
    fn window(&self) -> f64 {
        1e6
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.0)
    }
}

/// What has arrived on a connection.
struct Record {
    begin: Instant,
    /// The beginning, in seconds of Unix time.
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
        // For a day these are 70 MB.
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

/// Reads everything until the peer has closed.
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

/// Reads a stream, which begins with its number.
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
        let right = pattern(number, at, rest.len());
        let wrong = if rest == right { 0 } else { rest.iter().zip(&right).filter(|(got, sent)| got != sent).count() };
        at += rest.len() as u64;
        record.lock().unwrap_or_else(PoisonError::into_inner).add(rest.len(), wrong);
    }
    Ok(())
}

async fn call(config: Config, ticket: &Ticket, seconds: f64, streams: u64, is_multipath: bool) -> Result<(), Failure> {
    let endpoint = Endpoint::client(config)?;
    let connection = endpoint.connect(ticket).await?;
    if is_multipath {
        connection.add_paths(ticket).await;
    }
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut writers = JoinSet::new();
    for number in 0..streams {
        writers.spawn(write(connection.open_stream().await?, number, until));
    }
    tokio::time::sleep_until(until.into()).await;
    // The last segment of a stream may be short, and its RTT differs.
    let path = connection.paths().into_iter().next();
    let mut bytes = 0;
    while let Some(written) = writers.join_next().await {
        bytes += written??;
    }
    let paths: Vec<_> = connection.paths().iter().map(|path| path.report.tally.sent.to_string()).collect();
    connection.close().await?;
    let acknowledged = connection.stats().bytes_acknowledged;
    connection.closed().await?;
    drop(connection);
    // The server may not have got the acknowledgement of its last data yet.
    _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
    let limits = path.iter().flat_map(|path| Limit::ALL.map(|limit| (limit.name(), path.report.limits.share(limit))));
    let limits: Vec<_> = limits.map(|(name, share)| format!(r#""{name}":{share:.4}"#)).collect();
    let base = path.and_then(|path| path.rtt_base()).map(|rtt| 1e3 * rtt.as_secs_f64());
    let mean = path.map(|path| path.report.tally).filter(|tally| tally.rtt_samples > 0);
    let mean = mean.map(|tally| 1e3 * tally.rtt_sum.as_secs_f64() / tally.rtt_samples as f64);
    println!(
        r#"{{"bytes":{bytes},"bytes_acknowledged":{acknowledged},"rtt_base_ms":{},"rtt_mean_ms":{},"limits":{{{}}},"segments_of_paths":[{}]}}"#,
        number(base),
        number(mean),
        limits.join(","),
        paths.join(",")
    );
    Ok(())
}

/// A JSON number.
fn number(number: Option<f64>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| format!("{number:.4}"))
}

async fn write(mut stream: SendStream, number: u64, until: Instant) -> Result<u64, Failure> {
    let (mut at, mut head) = (0, Some(number.to_le_bytes()));
    while Instant::now() < until {
        // Pieces are joined, so that no segment before the end is short.
        let piece = pattern(number, at, PIECE);
        let piece = match head.take() {
            Some(head) => Bytes::from([&head[..], &piece].concat()),
            None => piece,
        };
        stream.write_all_bytes(piece).await?;
        at += PIECE as u64;
    }
    stream.finish()?;
    Ok(at)
}

/// Opens connections from different addresses of 127.0.0.0/8, as a server limits the handshakes per address and second.
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
                    stream.write_all_bytes(pattern(number, 0, SMALL)).await?;
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

/// How long an ended connection stays to answer retransmissions.
const FAREWELL: Duration = Duration::from_secs(3);
/// Longer gaps are reported.
const GAP: Duration = Duration::from_millis(50);
/// Bytes per write.
const PIECE: usize = 1 << 16;
/// Bytes that each stream of a crowd carries at first.
const SMALL: usize = 1000;
/// Connections of a crowd per address.
const EACH_ADDRESS: usize = 20;
